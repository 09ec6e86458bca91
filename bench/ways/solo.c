/* SPDX-License-Identifier: MIT */
/*
 * One thread with both ends of its connections, so that its instructions do not depend on time:
 * for tools that count them. --before N is the number of other peers, or, for the ways "after",
 * of results that are left untaken before.
 */
#include "ways.h"

struct ends {
    struct sluice_multichannel *ours, *theirs;
};

static void join(struct rank *rank, const struct sluice_channel_attr *attr)
{
    const uint32_t peers = 1 + rank->before;
    struct sluice_prepared_multichannel *one =
        MAKE(sluice_multichannel_prepare(rank->pd, peers, NULL));
    struct sluice_prepared_multichannel *two =
        MAKE(sluice_multichannel_prepare(rank->pd, peers, attr));
    struct sluice_endpoint *endpoints = MAKE(calloc(2 * (size_t)peers, sizeof *endpoints));
    struct ends *ends = MAKE(calloc(1, sizeof *ends));

    MUST(sluice_prepared_multichannel_endpoints(one, endpoints, peers));
    MUST(sluice_prepared_multichannel_endpoints(two, endpoints + peers, peers));
    ends->ours = MAKE(sluice_prepared_multichannel_handshake(one, endpoints + peers, peers));
    ends->theirs = MAKE(sluice_prepared_multichannel_handshake(two, endpoints, peers));
    free(endpoints);
    rank->state = ends;
}

static void join_ends(struct rank *rank)
{
    join(rank, NULL);
}

/* The other end has a pool of receives. */
static void join_pool(struct rank *rank)
{
    const struct sluice_channel_attr attr = {.size = sizeof attr, .receive_pool = POOL_COUNT};

    join(rank, &attr);
}

static void close_ends(struct rank *rank)
{
    struct ends *ends = rank->state;

    sluice_multichannel_close(ends->ours);
    sluice_multichannel_close(ends->theirs);
    free(ends);
}

static void solo_write(struct rank *rank, uint64_t count)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);

    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_multichannel_write(ends->ours, 0, &sge, 1, &rank->remotes[0], DEADLINE));
}

static void solo_write_poll(struct rank *rank, uint64_t count)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);
    struct sluice_completion done;

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_post_write(ends->ours, 0, &sge, 1, &rank->remotes[0], DEADLINE,
                                            NULL));
        while (MUST(sluice_multichannel_poll(ends->ours, &done, 1)) == 0)
            ;
    }
}

/* Leaves that many results untaken before the measurement. */
static void leave_results(struct rank *rank)
{
    const uint32_t results = rank->before;
    const struct sluice_sge sge = place(rank, 0, 8);
    const struct ends *ends;

    rank->before = 0;
    join_ends(rank);
    ends = rank->state;
    for (uint32_t i = 0; i < results; i++) {
        MUST(sluice_multichannel_post_read(ends->ours, 0, &sge, 1, &rank->remotes[0],
                                           SLUICE_FOREVER, NULL));
        if (i % WINDOW == WINDOW - 1 || i + 1 == results)
            MUST(sluice_multichannel_flush(ends->ours, DEADLINE));
    }
}

static void solo_wait(struct rank *rank, uint64_t count)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);
    struct sluice_completion done;
    struct sluice_handle handle;

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_post_write(ends->ours, 0, &sge, 1, &rank->remotes[0], DEADLINE,
                                            &handle));
        MUST(sluice_multichannel_wait(ends->ours, &handle, DEADLINE, &done));
    }
}

/* Takes no results; after every 64 requests waits until they are complete. */
static void solo_write_untaken(struct rank *rank, uint64_t count)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_post_write(ends->ours, 0, &sge, 1, &rank->remotes[0], DEADLINE,
                                            NULL));
        if (i % WINDOW == WINDOW - 1 || i + 1 == count)
            MUST(sluice_multichannel_flush(ends->ours, DEADLINE));
    }
}

static void solo_write_backwards(struct rank *rank, uint64_t count)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);
    struct sluice_handle handles[WINDOW];
    struct sluice_completion done;

    for (uint64_t sent = 0; sent < count;) {
        uint32_t window = count - sent < WINDOW ? (uint32_t)(count - sent) : WINDOW;

        for (uint32_t i = 0; i < window; i++)
            MUST(sluice_multichannel_post_write(ends->ours, 0, &sge, 1, &rank->remotes[0], DEADLINE,
                                                &handles[i]));
        for (uint32_t i = window; i-- > 0;)
            MUST(sluice_multichannel_wait(ends->ours, &handles[i], DEADLINE, &done));
        sent += window;
    }
}

static void solo_write_detach(struct rank *rank, uint64_t count)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);
    struct sluice_handle handle;

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_post_write(ends->ours, 0, &sge, 1, &rank->remotes[0], DEADLINE,
                                            &handle));
        sluice_multichannel_detach(ends->ours, &handle);
        if (i % WINDOW == WINDOW - 1 || i + 1 == count)
            MUST(sluice_multichannel_flush(ends->ours, DEADLINE));
    }
}

/* Receives each message by its handle; takes the results of sends, or not. */
static void send_solo(struct rank *rank, uint64_t count, bool taken)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge to = place(rank, 0, 8), from = place(rank, 64, 8);
    struct sluice_handle receive, sent;
    struct sluice_completion done;

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_post_receive(ends->theirs, 0, &from, 1, DEADLINE, &receive));
        MUST(sluice_multichannel_post_send(ends->ours, 0, &to, 1, DEADLINE, taken ? &sent : NULL));
        MUST(sluice_multichannel_wait(ends->theirs, &receive, DEADLINE, &done));
        if (taken)
            MUST(sluice_multichannel_wait(ends->ours, &sent, DEADLINE, &done));
        else if (i % WINDOW == WINDOW - 1 || i + 1 == count)
            MUST(sluice_multichannel_flush(ends->ours, DEADLINE));
    }
}

static void solo_send(struct rank *rank, uint64_t count)
{
    send_solo(rank, count, true);
}

static void solo_send_untaken(struct rank *rank, uint64_t count)
{
    send_solo(rank, count, false);
}

/* Takes no results of receives; waits for its messages by a flush. */
static void solo_receive_untaken(struct rank *rank, uint64_t count)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge to = place(rank, 0, 8), from = place(rank, 64, 8);

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_post_receive(ends->theirs, 0, &from, 1, DEADLINE, NULL));
        MUST(sluice_multichannel_send(ends->ours, 0, &to, 1, DEADLINE));
        MUST(sluice_multichannel_flush(ends->theirs, DEADLINE));
    }
}

static void solo_scope(struct rank *rank, uint64_t count)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_scope *scope = MAKE(sluice_multichannel_scope_begin(ends->ours, DEADLINE));

        MUST(sluice_scope_post_write(scope, 0, &sge, 1, &rank->remotes[0], NULL));
        MUST(sluice_scope_end(scope, NULL));
    }
}

static void solo_register(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_mr_deregister(
            MAKE(sluice_mr_register(rank->pd, rank->memory, 4096, SLUICE_ACCESS_LOCAL_WRITE))));
}

/* As solo_send, with a receive of the pool. */
static void solo_send_any(struct rank *rank, uint64_t count)
{
    const struct ends *ends = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);
    const struct sluice_request receive = {.sge_count = 1, .sge = place(rank, 8, 8)};
    struct sluice_completion done;

    for (uint64_t i = 0; i < count; i++) {
        MUST(sluice_multichannel_post_receive_any(ends->theirs, &receive, 1, NULL));
        MUST(sluice_multichannel_post_send(ends->ours, 0, &sge, 1, DEADLINE, NULL));
        while (MUST(sluice_multichannel_poll(ends->theirs, &done, 1)) == 0)
            ;
        while (MUST(sluice_multichannel_poll(ends->ours, &done, 1)) == 0)
            ;
    }
}

#define WAY(name, against, calls)                                                                \
    {                                                                                            \
#name, "solo", against, NULL, NULL, calls, SELF, {1 }, {8 }, join_ends, name, close_ends \
    }
/* The same after many results that are left untaken. */
#define AFTER(name, calls)                                      \
    {                                                           \
#name "_after", "solo", #name, NULL, NULL, calls, SELF, \
            {1 }, {8 }, leave_results, name, close_ends         \
    }

const struct way ways_solo[] = {
    WAY(solo_write, "solo_write", "multichannel_write"),
    WAY(solo_write_poll, "solo_write", "multichannel_post_write multichannel_poll"),
    WAY(solo_write_untaken, "solo_write", "multichannel_post_write multichannel_flush"),
    WAY(solo_write_backwards, "solo_write", "multichannel_post_write multichannel_wait"),
    WAY(solo_write_detach, "solo_write", "multichannel_detach"),
    WAY(solo_send, "solo_send", "multichannel_post_send multichannel_post_receive"),
    {"solo_send_any",
     "solo",
     "solo_send",
     NULL,
     NULL,
     "multichannel_post_receive_any",
     SELF,
     {1},
     {8},
     join_pool,
     solo_send_any,
     close_ends},
    WAY(solo_send_untaken, "solo_send", "multichannel_post_send"),
    WAY(solo_receive_untaken, "solo_send", "multichannel_post_receive multichannel_send"),
    WAY(solo_scope, "solo_write", "multichannel_scope_begin scope_post_write scope_end"),
    WAY(solo_wait, "solo_write", "multichannel_post_write multichannel_wait"),
    AFTER(solo_write, "multichannel_write"),
    AFTER(solo_wait, "multichannel_wait"),
    WAY(solo_register, NULL, "mr_register mr_deregister"),
    {0},
};
