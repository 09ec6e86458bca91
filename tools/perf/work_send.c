/* SPDX-License-Identifier: MIT */
/*
 * Round trips of messages. Blocking and scoped, a call sends a message and receives the
 * next, so that the receive is posted before the message arrives. Posted, receives are
 * posted ahead, and the completion of a send is taken after the answer.
 */
#include <string.h>

#include "perf.h"

#define AHEAD 64

struct rally {
    struct team *team;
    struct run *run;
    uint64_t posted, received; /* receives: posted, and completed */
    uint64_t sent;
    struct sluice_handle receives[AHEAD];
    struct sluice_handle send;
};

static struct sluice_request receive_of(const struct rally *rally, uint64_t number)
{
    return (struct sluice_request){.opcode = SLUICE_OP_RECEIVE,
                                   .sge_count = 1,
                                   .sge = place_in(rally->team, 0, number, rally->run->size)};
}

static struct sluice_request send_of(const struct rally *rally)
{
    return (struct sluice_request){.opcode = SLUICE_OP_SEND,
                                   .flags = calls_flags(rally->team, rally->run->size),
                                   .sge_count = 1,
                                   .sge = place_out(rally->team, 0, rally->sent, rally->run->size)};
}

static int post_receive(struct rally *rally)
{
    struct sluice_request receive = receive_of(rally, rally->posted);
    struct team *team = rally->team;

    if (rally->posted == rally->run->count)
        return 0;
    if (sluice_multichannel_post(team->channels, &receive, 1, team->deadline,
                                 &rally->receives[rally->posted % AHEAD]) != 1)
        return team_fail(team, "post a receive");
    rally->posted++;
    return 0;
}

static int wait_for(struct rally *rally, const struct sluice_handle *handle, const char *what)
{
    struct sluice_completion completion;
    struct team *team = rally->team;

    if (sluice_multichannel_wait(team->channels, handle, team->deadline, &completion) != 0 ||
        completion.error != 0)
        return team_fail(team, what);
    return 0;
}

static int posted_send(struct rally *rally)
{
    struct sluice_request send = send_of(rally);
    struct team *team = rally->team;

    if (sluice_multichannel_post(team->channels, &send, 1, team->deadline, &rally->send) != 1)
        return team_fail(team, "post a send");
    rally->sent++;
    if ((team->plan.flags & PLAN_WAITED) != 0)
        return wait_for(rally, &rally->send, "send");
    return 0;
}

static int posted_sent(struct rally *rally)
{
    if ((rally->team->plan.flags & PLAN_WAITED) != 0)
        return 0;
    return wait_for(rally, &rally->send, "send");
}

/* The caller posts the receive again after it has checked the message. */
static int posted_receive(struct rally *rally)
{
    return wait_for(rally, &rally->receives[rally->received++ % AHEAD], "receive");
}

/* Sends, receives, or does both in one list; blocking or scoped. */
static int do_both(struct rally *rally, bool out, bool in)
{
    struct sluice_request list[2];
    uint32_t count = 0;

    if (in)
        list[count++] = receive_of(rally, rally->received++);
    if (out) {
        list[count++] = send_of(rally);
        rally->sent++;
    }
    return calls_do(rally->team, &calls_any, list, count, "send and receive");
}

/* Writes the next message, and into it the time that this took, in nanoseconds. */
static void write_next(struct rally *rally)
{
    struct team *team = rally->team;
    size_t size = rally->run->size;
    int64_t begin = clock_nanoseconds(), taken;
    struct sluice_sge sge;

    if (!content_matters(team))
        return;
    content_write(team, 0, rally->sent, size);
    if ((team->plan.flags & PLAN_DIRTY) == 0 || size < sizeof taken)
        return;
    sge = place_out(team, 0, rally->sent, size);
    taken = clock_nanoseconds() - begin;
    memcpy((char *)(uintptr_t)sge.addr, &taken, sizeof taken);
}

/* Returns how long the peer took to write a received message, in ticks. */
static uint64_t writing_of_peer(const struct rally *rally, uint64_t number)
{
    struct sluice_sge sge = place_in(rally->team, 0, number, rally->run->size);
    int64_t taken;

    if ((rally->team->plan.flags & PLAN_DIRTY) == 0 || rally->run->size < sizeof taken)
        return 0;
    memcpy(&taken, (const char *)(uintptr_t)sge.addr, sizeof taken);
    return taken > 0 ? (uint64_t)((double)taken / rally->run->tick_length) : 0;
}

static void add_time(struct rally *rally, uint64_t begin)
{
    uint64_t taken = ticks_now() - begin;
    uint64_t wrote = writing_of_peer(rally, rally->received - 1);

    taken -= wrote < taken ? wrote : 0;
    histogram_add(rally->run->times, taken);
    rally->run->ticks += taken;
}

static int post_ahead(struct rally *rally)
{
    uint64_t most = rally->team->slots < AHEAD && (rally->team->plan.flags & PLAN_VALIDATE) != 0
                        ? rally->team->slots
                        : AHEAD;

    while (rally->posted < rally->run->count && rally->posted < most)
        if (post_receive(rally) != 0)
            return -1;
    return 0;
}

int send_lat_lead(struct team *team, struct run *run)
{
    struct rally rally = {.team = team, .run = run};
    bool posted = team->plan.level == LEVEL_POSTED;

    if ((posted && post_ahead(&rally) != 0) || team_meet(team) != 0)
        return -1;
    for (uint64_t i = 0; i < run->count; i++) {
        uint64_t begin;

        write_next(&rally);
        begin = ticks_now();
        if (posted ? posted_send(&rally) != 0 || posted_receive(&rally) != 0 ||
                         posted_sent(&rally) != 0
                   : do_both(&rally, true, true) != 0)
            return -1;
        add_time(&rally, begin);
        if (content_check(team, run, 0, rally.received - 1) != 0 ||
            (posted && post_receive(&rally) != 0))
            return -1;
    }
    return 0;
}

static int answer_posted(struct rally *rally)
{
    for (uint64_t i = 0; i < rally->run->count; i++) {
        if (posted_receive(rally) != 0 ||
            content_check(rally->team, rally->run, 0, rally->received - 1) != 0 ||
            post_receive(rally) != 0)
            return -1;
        write_next(rally);
        if (posted_send(rally) != 0 || posted_sent(rally) != 0)
            return -1;
    }
    return 0;
}

int send_lat_follow(struct team *team, struct run *run)
{
    struct rally rally = {.team = team, .run = run};

    if (team->plan.level == LEVEL_POSTED)
        return post_ahead(&rally) != 0 || team_meet(team) != 0 ? -1 : answer_posted(&rally);
    if (team_meet(team) != 0 || do_both(&rally, false, true) != 0)
        return -1;
    for (uint64_t i = 0; i < run->count; i++) {
        if (content_check(team, run, 0, rally.received - 1) != 0)
            return -1;
        write_next(&rally);
        if (do_both(&rally, true, i + 1 < run->count) != 0)
            return -1;
    }
    return 0;
}
