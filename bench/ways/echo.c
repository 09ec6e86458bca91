/* SPDX-License-Identifier: MIT */
/*
 * A message and its answer between two ranks, which both run the same loop. An iteration is a
 * round trip. Rank 0 begins.
 */
#include <errno.h>
#include <poll.h>

#include "ways.h"

static struct sluice_sge out(const struct rank *rank)
{
    return place(rank, 0, rank->size);
}

static struct sluice_sge in(const struct rank *rank)
{
    return place(rank, rank->size, rank->size);
}

static void echo_blocking(struct rank *rank, uint64_t count)
{
    const struct sluice_sge to = out(rank), from = in(rank);

    for (uint64_t i = 0; i < count; i++) {
        if (rank->rank == 0)
            MUST(sluice_channel_send(rank->channel, &to, 1, DEADLINE));
        MUST(sluice_channel_receive(rank->channel, &from, 1, DEADLINE, NULL));
        if (rank->rank == 1)
            MUST(sluice_channel_send(rank->channel, &to, 1, DEADLINE));
    }
}

static void echo_immediate(struct rank *rank, uint64_t count)
{
    const struct sluice_sge to = out(rank), from = in(rank);

    for (uint64_t i = 0; i < count; i++) {
        if (rank->rank == 0)
            MUST(sluice_channel_send_immediate(rank->channel, &to, 1, 7, DEADLINE));
        MUST(sluice_channel_receive(rank->channel, &from, 1, DEADLINE, NULL));
        if (rank->rank == 1)
            MUST(sluice_channel_send_immediate(rank->channel, &to, 1, 7, DEADLINE));
    }
}

/* Submits the send and the receive as one list, and waits for both. */
static void echo_submit(struct rank *rank, uint64_t count)
{
    const struct sluice_request receive = {
        .opcode = SLUICE_OP_RECEIVE, .sge_count = 1, .sge = in(rank)};
    const struct sluice_request send = {.opcode = SLUICE_OP_SEND, .sge_count = 1, .sge = out(rank)};
    const struct sluice_request both[2] = {receive, send};

    if (rank->rank == 1)
        MUST(sluice_channel_submit(rank->channel, &receive, 1, DEADLINE, NULL));
    for (uint64_t i = 1; i < count; i++)
        MUST(sluice_channel_submit(rank->channel, both, 2, DEADLINE, NULL));
    if (rank->rank == 0)
        MUST(sluice_channel_submit(rank->channel, both, 2, DEADLINE, NULL));
    else
        MUST(sluice_channel_submit(rank->channel, &send, 1, DEADLINE, NULL));
}

static void echo_list(struct rank *rank, uint64_t count)
{
    const struct sluice_request receive = {
        .opcode = SLUICE_OP_RECEIVE, .sge_count = 1, .sge = in(rank)};
    const struct sluice_request send = {.opcode = SLUICE_OP_SEND, .sge_count = 1, .sge = out(rank)};
    const struct sluice_request both[2] = {receive, send};
    struct sluice_list *list = MAKE(sluice_channel_list_prepare(rank->channel, both, 2));

    if (rank->rank == 1)
        MUST(sluice_channel_submit(rank->channel, &receive, 1, DEADLINE, NULL));
    for (uint64_t i = 1; i < count; i++) {
        MUST(sluice_list_aim(list, 1, &send.sge, 0));
        MUST(sluice_list_post(list, DEADLINE, NULL));
        MUST(sluice_list_wait(list, DEADLINE));
        MUST(sluice_list_result(list));
    }
    if (rank->rank == 0)
        MUST(sluice_list_submit(list, DEADLINE, NULL));
    else
        MUST(sluice_channel_submit(rank->channel, &send, 1, DEADLINE, NULL));
    sluice_list_free(list);
}

static void echo_scope(struct rank *rank, uint64_t count)
{
    const struct sluice_sge to = out(rank), from = in(rank);

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_scope *scope = MAKE(sluice_channel_scope_begin(rank->channel, DEADLINE));
        struct sluice_handle handle;
        struct sluice_completion done;

        MUST(sluice_scope_post_receive(scope, 0, &from, 1, &handle));
        if (rank->rank == 0)
            MUST(sluice_scope_post_send(scope, 0, &to, 1, NULL));
        MUST(sluice_scope_wait(scope, &handle, DEADLINE, &done));
        if (rank->rank == 1)
            MUST(sluice_scope_post_send(scope, 0, &to, 1, NULL));
        MUST(sluice_scope_end(scope, NULL));
    }
}

/* How an answer is sent, and how the receive that was posted ahead is waited for. */
struct manner {
    void (*answer)(struct rank *rank, const struct sluice_sge *to);
    void (*take)(struct rank *rank, const struct sluice_handle *handle);
};

/* Posts the receive of the next round before the peer can answer. */
static void echo_ahead(struct rank *rank, uint64_t count, struct manner manner)
{
    const struct sluice_sge to = out(rank), from = in(rank);
    struct sluice_handle *handle = rank->state;

    if (handle == NULL) {
        rank->state = handle = MAKE(calloc(1, sizeof *handle));
        MUST(sluice_channel_post_receive(rank->channel, &from, 1, SLUICE_FOREVER, handle));
        meet(rank);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (rank->rank == 0)
            manner.answer(rank, &to);
        manner.take(rank, handle);
        MUST(sluice_channel_post_receive(rank->channel, &from, 1, SLUICE_FOREVER, handle));
        if (rank->rank == 1)
            manner.answer(rank, &to);
    }
}

static void end_echo(struct rank *rank)
{
    free(rank->state);
}

static void answer_blocking(struct rank *rank, const struct sluice_sge *to)
{
    MUST(sluice_channel_send(rank->channel, to, 1, DEADLINE));
}

static void answer_untaken(struct rank *rank, const struct sluice_sge *to)
{
    MUST(sluice_channel_post_send(rank->channel, to, 1, DEADLINE, NULL));
}

static void answer_detached(struct rank *rank, const struct sluice_sge *to)
{
    struct sluice_handle handle;

    MUST(sluice_channel_post_send(rank->channel, to, 1, DEADLINE, &handle));
    sluice_channel_detach(rank->channel, &handle);
}

static void take_by_handle(struct rank *rank, const struct sluice_handle *handle)
{
    struct sluice_completion done;

    MUST(sluice_channel_wait(rank->channel, handle, DEADLINE, &done));
    MUST(done.error);
}

static void take_by_next(struct rank *rank, const struct sluice_handle *handle)
{
    struct sluice_completion done = {.opcode = SLUICE_OP_NONE};

    (void)handle;
    while (done.opcode != SLUICE_OP_RECEIVE)
        MUST(sluice_channel_next(rank->channel, DEADLINE, &done));
}

static void take_by_poll(struct rank *rank, const struct sluice_handle *handle)
{
    struct sluice_completion done[4];
    bool came = false;

    (void)handle;
    while (!came) {
        int count = MUST(sluice_channel_poll(rank->channel, done, 4));

        for (int i = 0; i < count; i++)
            came |= done[i].opcode == SLUICE_OP_RECEIVE;
    }
}

/* An event loop as in sluice_channel_fd(3). */
static void take_by_fd(struct rank *rank, const struct sluice_handle *handle)
{
    struct pollfd entry = {.fd = sluice_channel_fd(rank->channel), .events = POLLIN};
    struct sluice_completion done;

    (void)handle;
    for (;;) {
        while (MUST(sluice_channel_poll(rank->channel, &done, 1)) == 1)
            if (done.opcode == SLUICE_OP_RECEIVE)
                return;
        if (MUST(sluice_channel_arm(rank->channel, NULL)) == 0)
            poll(&entry, 1, 1000);
    }
}

#define AHEAD(name, answer, take)                                   \
    static void name(struct rank *rank, uint64_t count)             \
    {                                                               \
        echo_ahead(rank, count, (struct manner){(answer), (take)}); \
    }

AHEAD(echo_posted, answer_blocking, take_by_handle)
AHEAD(echo_untaken, answer_untaken, take_by_handle)
AHEAD(echo_detached, answer_detached, take_by_handle)
AHEAD(echo_next, answer_untaken, take_by_next)
AHEAD(echo_poll, answer_untaken, take_by_poll)
AHEAD(echo_fd, answer_untaken, take_by_fd)

/* Polls a word of memory that the peer writes; its number shows when it has arrived. */
static void echo_word(struct rank *rank, uint64_t count)
{
    const struct sluice_sge to = place(rank, 0, 8);
    const struct sluice_remote_mr there = remote(rank, other(rank), 64, 8);
    uint64_t *number = (uint64_t *)(void *)rank->memory;

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t wanted = *number + 1;

        for (int turn = 0; turn < 2; turn++)
            if ((uint32_t)turn == rank->rank) {
                *number = wanted;
                MUST(sluice_channel_write(rank->channel, &to, 1, &there, DEADLINE));
            } else {
                while (sluice_load_acquire64(number + 8) < wanted)
                    ;
            }
    }
}

static void echo_arrivals(struct rank *rank, uint64_t count)
{
    const struct sluice_sge to = out(rank);
    const struct sluice_remote_mr there = remote(rank, other(rank), rank->size, rank->size);
    uint64_t before;

    MUST(sluice_channel_arrivals(rank->channel, 3, &before));
    if (rank->ranks == 2)
        meet(rank);
    for (uint64_t i = 1; i <= count; i++) {
        if (rank->rank == 0)
            MUST(sluice_channel_write_immediate(rank->channel, &to, 1, &there, 3, DEADLINE));
        MUST(sluice_channel_wait_arrivals(rank->channel, 3, before + i, DEADLINE));
        if (rank->rank == 1)
            MUST(sluice_channel_write_immediate(rank->channel, &to, 1, &there, 3, DEADLINE));
    }
}

#define ECHO(name, calls, ...)                                                  \
    {                                                                           \
#name, "echo", "echo_posted", "plain_echo", "send_lat", calls, CHANNEL, \
            {2 }, __VA_ARGS__, NULL, name, NULL                                 \
    }
#define ECHO_AHEAD(name, calls, ...)                                            \
    {                                                                           \
#name, "echo", "echo_posted", "plain_echo", "send_lat", calls, CHANNEL, \
            {2 }, __VA_ARGS__, NULL, name, end_echo                             \
    }

const struct way ways_echo[] = {
    ECHO_AHEAD(echo_posted, "channel_post_receive channel_send channel_wait", SIZES),
    ECHO(echo_blocking, "channel_receive channel_send", SIZES),
    ECHO(echo_immediate, "channel_send_immediate", SMALL),
    ECHO(echo_submit, "channel_submit", SIZES),
    ECHO(echo_list,
         "channel_list_prepare list_aim list_post list_wait list_result list_submit list_free",
         SMALL),
    ECHO(echo_scope, "channel_scope_begin scope_post_receive scope_post_send scope_wait scope_end",
         SMALL),
    ECHO_AHEAD(echo_untaken, "channel_post_send", SIZES),
    ECHO_AHEAD(echo_detached, "channel_detach", SMALL),
    ECHO_AHEAD(echo_next, "channel_next", SMALL),
    ECHO_AHEAD(echo_poll, "channel_poll", SMALL),
    ECHO_AHEAD(echo_fd, "channel_arm", SMALL),
    ECHO(echo_word, "channel_write", SMALL),
    {"echo_arrivals",
     "echo",
     "echo_posted",
     "plain_echo",
     "send_lat",
     "channel_write_immediate channel_wait_arrivals channel_arrivals",
     CHANNEL | ARRIVALS,
     {2},
     SIZES,
     NULL,
     echo_arrivals,
     NULL},
    {0},
};
