/* SPDX-License-Identifier: MIT */
/*
 * Streams to all peers. Posted, each peer has up to a window of messages in flight, posted in
 * lists of at least a quarter of it. Blocking and scoped, a call has a list of a window. The time
 * of a message is that of a window divided by its messages.
 */
#include "perf.h"

/* A stream of sends, writes or reads. */
struct stream {
    struct team *team;
    struct run *run;
    uint32_t opcode;
    uint64_t all, posted, done; /* messages to all peers */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Message i of a stream goes to peer i modulo peers. A division takes as long as a send. */
static uint32_t peer_of(const struct team *team, uint64_t i)
{
    return team->peers == 1 ? 0 : (uint32_t)(i % team->peers);
}

static uint64_t number_of(const struct team *team, uint64_t i)
{
    return team->peers == 1 ? i : i / team->peers;
}

static struct sluice_request request_of(const struct stream *stream, uint64_t i)
{
    const struct team *team = stream->team;
    size_t size = stream->run->size;
    uint32_t peer = peer_of(team, i);
    uint64_t number = number_of(team, i);
    struct sluice_request request = {
        .opcode = stream->opcode, .peer = peer, .sge_count = 1, .user_data = i};

    if (stream->opcode == SLUICE_OP_READ) {
        request.sge = place_in(team, peer, number, size);
        request.remote = place_remote_out(team, peer, number, size);
        return request;
    }
    request.flags = calls_flags(team, size);
    request.sge = place_out(team, peer, number, size);
    if (stream->opcode == SLUICE_OP_WRITE)
        request.remote = place_remote_in(team, peer, number, size);
    return request;
}

static void write_message(const struct stream *stream, uint64_t i)
{
    const struct team *team = stream->team;

    if (stream->opcode != SLUICE_OP_READ && content_matters(team))
        content_write(team, peer_of(team, i), number_of(team, i), stream->run->size);
}

/* Checks what was read; the peer has the same messages in its slots all the time. */
static int check_message(const struct stream *stream, uint64_t i)
{
    const struct team *team = stream->team;

    if (stream->opcode != SLUICE_OP_READ)
        return 0;
    return content_check(team, stream->run, peer_of(team, i), number_of(team, i) % team->slots);
}

static void add_time(const struct stream *stream, uint64_t begin, uint64_t messages)
{
    uint64_t taken = ticks_now() - begin;

    if (messages != 0)
        histogram_add(stream->run->times, taken / messages);
}

static int stream_lists(struct stream *stream)
{
    struct team *team = stream->team;
    uint64_t most = (uint64_t)team->window * team->peers;

    while (stream->done < stream->all) {
        uint64_t left = stream->all - stream->done;
        uint32_t count = (uint32_t)(left < most ? left : most);
        uint64_t begin = ticks_now();

        for (uint32_t i = 0; i < count; i++) {
            write_message(stream, stream->done + i);
            team->list[i] = request_of(stream, stream->done + i);
        }
        if (calls_do(team, &calls_any, team->list, count, "stream") != 0)
            return -1;
        add_time(stream, begin, count);
        for (uint32_t i = 0; i < count; i++)
            if (check_message(stream, stream->done + i) != 0)
                return -1;
        stream->done += count;
    }
    return 0;
}

/* A list is posted once it is 1/LIST_PART of the window: cheaper than one request at a time. */
#define LIST_PART 4

/*
 * Posts as many messages as the window has room for, if these are enough for a list, to all
 * peers in turn.
 */
static int fill_window(struct stream *stream)
{
    struct team *team = stream->team;
    uint64_t most = (uint64_t)team->window * team->peers;
    uint64_t in_flight = stream->posted - stream->done;
    uint64_t count = least(stream->all - stream->posted, most - in_flight);
    uint32_t early = 0;

    if (count == 0 || (in_flight > 0 && (most - in_flight) * LIST_PART < most))
        return 0;
    for (uint64_t i = 0; i < count; i++) {
        write_message(stream, stream->posted + i);
        team->list[i] = request_of(stream, stream->posted + i);
    }
    if (calls_post(team, team->list, (uint32_t)count, &early, "stream") != 0)
        return -1;
    stream->posted += count;
    stream->done += early;
    return 0;
}

static int stream_posted(struct stream *stream)
{
    struct sluice_completion completions[CALLS_BATCH];
    struct team *team = stream->team;
    uint64_t window = (uint64_t)team->window * team->peers, counted = 0, begin = ticks_now();

    while (stream->done < stream->all) {
        int got;

        if (fill_window(stream) != 0)
            return -1;
        got = calls_next(team, completions, CALLS_BATCH, "stream");
        for (int i = 0; i < got; i++)
            if (check_message(stream, completions[i].user_data) != 0)
                return -1;
        if (got < 0)
            return -1;
        stream->done += (uint64_t)got;
        if (stream->done - counted >= window || stream->done == stream->all) {
            add_time(stream, begin, stream->done - counted);
            counted = stream->done;
            begin = ticks_now();
        }
    }
    return 0;
}

static int lead(struct team *team, struct run *run, uint32_t opcode, bool posted)
{
    struct stream stream = {
        .team = team, .run = run, .opcode = opcode, .all = run->count * team->peers};
    uint64_t begin;

    if (team_meet(team) != 0)
        return -1;
    begin = ticks_now();
    if ((posted ? stream_posted(&stream) : stream_lists(&stream)) != 0)
        return -1;
    run->ticks += ticks_now() - begin;
    return 0;
}

int send_bw_lead(struct team *team, struct run *run)
{
    return lead(team, run, SLUICE_OP_SEND, team->plan.level == LEVEL_POSTED);
}

int read_bw_lead(struct team *team, struct run *run)
{
    return lead(team, run, SLUICE_OP_READ, team->plan.level == LEVEL_POSTED);
}

/* Meets the peers at the end, because only then can they check what was written. */
int write_bw_lead(struct team *team, struct run *run)
{
    if (lead(team, run, SLUICE_OP_WRITE, team->plan.level == LEVEL_POSTED) != 0)
        return -1;
    return team_meet(team);
}

int write_bw_follow(struct team *team, struct run *run)
{
    uint64_t first = run->count > team->slots ? run->count - team->slots : 0;

    if (team_meet(team) != 0 || team_meet(team) != 0)
        return -1;
    for (uint64_t number = first; number < run->count; number++)
        if (content_check(team, run, 0, number) != 0)
            return -1;
    return 0;
}

/* Posts receives for messages up to number most. */
static int post_receives(struct team *team, const struct run *run, uint64_t *posted, uint64_t most)
{
    while (*posted < most) {
        uint32_t count = (uint32_t)least(most - *posted, team->list_size);

        for (uint32_t i = 0; i < count; i++)
            team->list[i] =
                (struct sluice_request){.opcode = SLUICE_OP_RECEIVE,
                                        .sge_count = 1,
                                        .sge = place_in(team, 0, *posted + i, run->size),
                                        .user_data = *posted + i};
        if (sluice_multichannel_post(team->channels, team->list, count, SLUICE_FOREVER, NULL) !=
            (int)count)
            return team_fail(team, "post a receive");
        *posted += count;
    }
    return 0;
}

int send_bw_follow(struct team *team, struct run *run)
{
    struct sluice_completion completions[CALLS_BATCH];
    uint64_t ahead = 2 * (uint64_t)team->window, posted = 0, done = 0;

    if (post_receives(team, run, &posted, least(run->count, ahead)) != 0 || team_meet(team) != 0)
        return -1;
    while (done < run->count) {
        int got = calls_next(team, completions, CALLS_BATCH, "receive");

        for (int i = 0; i < got; i++)
            if (content_check(team, run, 0, completions[i].user_data) != 0)
                return -1;
        if (got < 0)
            return -1;
        done += (uint64_t)got;
        if (post_receives(team, run, &posted, least(run->count, done + ahead)) != 0)
            return -1;
    }
    return 0;
}

int gather_follow(struct team *team, struct run *run)
{
    return lead(team, run, SLUICE_OP_SEND, true);
}

/* Answers each message with one of the same number. */
int scatter_gather_follow(struct team *team, struct run *run)
{
    struct sluice_completion completions[CALLS_BATCH];
    struct stream answers = {.team = team, .run = run, .opcode = SLUICE_OP_SEND};
    uint64_t ahead = 2 * (uint64_t)team->window, posted = 0, done = 0;

    if (post_receives(team, run, &posted, least(run->count, ahead)) != 0 || team_meet(team) != 0)
        return -1;
    while (done < run->count || answers.done < run->count) {
        int got = calls_next(team, completions, CALLS_BATCH, "receive and answer");

        if (got < 0)
            return -1;
        for (int i = 0; i < got; i++) {
            struct sluice_request answer = request_of(&answers, completions[i].user_data);

            if (completions[i].opcode != SLUICE_OP_RECEIVE) {
                answers.done++;
                continue;
            }
            done++;
            if (content_check(team, run, 0, completions[i].user_data) != 0)
                return -1;
            write_message(&answers, completions[i].user_data);
            if (sluice_multichannel_post(team->channels, &answer, 1, team->deadline, NULL) != 1)
                return team_fail(team, "answer");
        }
        if (post_receives(team, run, &posted, least(run->count, done + ahead)) != 0)
            return -1;
    }
    return 0;
}
