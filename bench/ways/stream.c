/* SPDX-License-Identifier: MIT */
/*
 * Streams: WINDOW small requests, one after the other, whose results are taken in some way, or
 * not at all. An iteration is one request. Rank 0 posts; in one-sided streams rank 1 sleeps.
 */
#include <poll.h>
#include <string.h>

#include "ways.h"

/* How requests are posted, and what follows a window of them. */
struct manner {
    void (*post)(struct rank *rank, struct sluice_handle *handle);
    void (*take)(struct rank *rank, struct sluice_handle *handles, uint32_t count);
    bool handles;
};

static void stream(struct rank *rank, uint64_t count, struct manner manner)
{
    struct sluice_handle handles[WINDOW];

    for (uint64_t done = 0; rank->rank == 0 && done < count;) {
        uint32_t window = count - done < WINDOW ? (uint32_t)(count - done) : WINDOW;

        for (uint32_t i = 0; i < window; i++)
            manner.post(rank, manner.handles ? &handles[i] : NULL);
        manner.take(rank, handles, window);
        done += window;
    }
}

static void post_write(struct rank *rank, struct sluice_handle *handle)
{
    const struct sluice_sge sge = {(uint64_t)(uintptr_t)rank->memory, rank->size,
                                   sluice_mr_lkey(rank->mr)};

    MUST(sluice_channel_post_write(rank->channel, &sge, 1, &rank->remotes[1], DEADLINE, handle));
}

static void post_read(struct rank *rank, struct sluice_handle *handle)
{
    const struct sluice_sge sge = {(uint64_t)(uintptr_t)rank->memory, rank->size,
                                   sluice_mr_lkey(rank->mr)};

    MUST(sluice_channel_post_read(rank->channel, &sge, 1, &rank->remotes[1], DEADLINE, handle));
}

static void post_add(struct rank *rank, struct sluice_handle *handle)
{
    const struct sluice_sge sge = place(rank, 0, 8);

    MUST(
        sluice_channel_post_fetch_add(rank->channel, &sge, &rank->remotes[1], 1, DEADLINE, handle));
}

static void post_swap(struct rank *rank, struct sluice_handle *handle)
{
    const struct sluice_sge sge = place(rank, 0, 8);

    MUST(sluice_channel_post_compare_swap(rank->channel, &sge, &rank->remotes[1], 0, 0, DEADLINE,
                                          handle));
}

static void post_request(struct rank *rank, struct sluice_handle *handle)
{
    const struct sluice_request request = {.opcode = SLUICE_OP_WRITE,
                                           .sge_count = 1,
                                           .sge = place(rank, 0, rank->size),
                                           .remote = rank->remotes[1]};

    MUST(sluice_channel_post(rank->channel, &request, 1, DEADLINE, handle));
}

static void post_many(struct rank *rank, struct sluice_handle *handle)
{
    const struct sluice_sge sge = place(rank, 0, rank->size);

    MUST(
        sluice_multichannel_post_write(rank->all, 1, &sge, 1, &rank->remotes[1], DEADLINE, handle));
}

static void take_by_flush(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    (void)handles;
    (void)count;
    MUST(sluice_channel_flush(rank->channel, DEADLINE));
}

static void take_by_poll(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct sluice_completion done[16];

    (void)handles;
    while (count > 0)
        count -= (uint32_t)MUST(sluice_channel_poll(rank->channel, done, count < 16 ? count : 16));
}

static void take_by_next(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct sluice_completion done;

    (void)handles;
    while (count-- > 0)
        MUST(sluice_channel_next(rank->channel, DEADLINE, &done));
}

static void take_in_order(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct sluice_completion done;

    for (uint32_t i = 0; i < count; i++)
        MUST(sluice_channel_wait(rank->channel, &handles[i], DEADLINE, &done));
}

static void take_backwards(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct sluice_completion done;

    while (count-- > 0)
        MUST(sluice_channel_wait(rank->channel, &handles[count], DEADLINE, &done));
}

static void take_last(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct sluice_completion done;

    MUST(sluice_channel_wait(rank->channel, &handles[count - 1], DEADLINE, &done));
}

static void detach_all(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sluice_channel_detach(rank->channel, &handles[i]);
    MUST(sluice_channel_flush(rank->channel, DEADLINE));
}

static void take_by_fd(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct pollfd entry = {.fd = sluice_channel_fd(rank->channel), .events = POLLIN};
    struct sluice_completion done[16];

    (void)handles;
    while (count > 0) {
        int taken = MUST(sluice_channel_poll(rank->channel, done, 16));

        count -= (uint32_t)taken;
        if (taken == 0 && MUST(sluice_channel_arm(rank->channel, NULL)) == 0)
            poll(&entry, 1, 1000);
    }
}

static void many_by_poll(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct sluice_completion done[16];

    (void)handles;
    while (count > 0)
        count -= (uint32_t)MUST(sluice_multichannel_poll(rank->all, done, count < 16 ? count : 16));
}

static void many_by_flush(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    (void)handles;
    (void)count;
    MUST(sluice_multichannel_flush(rank->all, DEADLINE));
}

static void many_by_next(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct sluice_completion done;

    (void)handles;
    while (count-- > 0)
        MUST(sluice_multichannel_next(rank->all, DEADLINE, &done));
}

static void many_by_wait(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct sluice_completion done;

    for (uint32_t i = 0; i < count; i++)
        MUST(sluice_multichannel_wait(rank->all, &handles[i], DEADLINE, &done));
}

static void many_detached(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sluice_multichannel_detach(rank->all, &handles[i]);
    MUST(sluice_multichannel_flush(rank->all, DEADLINE));
}

static void many_by_fd(struct rank *rank, struct sluice_handle *handles, uint32_t count)
{
    struct pollfd entry = {.fd = sluice_multichannel_fd(rank->all), .events = POLLIN};
    struct sluice_completion done[16];

    (void)handles;
    while (count > 0) {
        int taken = MUST(sluice_multichannel_poll(rank->all, done, 16));

        count -= (uint32_t)taken;
        if (taken == 0 && MUST(sluice_multichannel_arm(rank->all, NULL)) == 0)
            poll(&entry, 1, 1000);
    }
}

#define STREAM(name, post, take, handles)                                \
    static void name(struct rank *rank, uint64_t count)                  \
    {                                                                    \
        stream(rank, count, (struct manner){(post), (take), (handles)}); \
    }

STREAM(write_poll, post_write, take_by_poll, false)
STREAM(write_flush, post_write, take_by_flush, false)
STREAM(write_handles_flush, post_write, take_by_flush, true)
STREAM(write_next, post_write, take_by_next, false)
STREAM(write_wait, post_write, take_in_order, true)
STREAM(write_wait_backwards, post_write, take_backwards, true)
STREAM(write_wait_last, post_write, take_last, true)
STREAM(write_detach, post_write, detach_all, true)
STREAM(write_fd, post_write, take_by_fd, false)
STREAM(post_poll, post_request, take_by_poll, false)
STREAM(read_poll, post_read, take_by_poll, false)
STREAM(read_flush, post_read, take_by_flush, false)
STREAM(read_wait, post_read, take_in_order, true)
STREAM(add_poll, post_add, take_by_poll, false)
STREAM(add_flush, post_add, take_by_flush, false)
STREAM(swap_poll, post_swap, take_by_poll, false)
STREAM(swap_flush, post_swap, take_by_flush, false)
STREAM(many_write_poll, post_many, many_by_poll, false)
STREAM(many_write_flush, post_many, many_by_flush, false)
STREAM(many_write_next, post_many, many_by_next, false)
STREAM(many_write_wait, post_many, many_by_wait, true)
STREAM(many_write_detach, post_many, many_detached, true)
STREAM(many_write_fd, post_many, many_by_fd, false)

/* Blocking requests, one at a time. */
#define BLOCKING(name, call)                                                    \
    static void name(struct rank *rank, uint64_t count)                         \
    {                                                                           \
        const struct sluice_sge sge = place(rank, 0, rank->size);               \
        const struct sluice_remote_mr *there = &rank->remotes[rank->ranks - 1]; \
                                                                                \
        for (uint64_t i = 0; rank->rank == 0 && i < count; i++)                 \
            MUST(call);                                                         \
    }

BLOCKING(write_blocking, sluice_channel_write(rank->channel, &sge, 1, there, DEADLINE))
BLOCKING(read_blocking, sluice_channel_read(rank->channel, &sge, 1, there, DEADLINE))
BLOCKING(add_blocking, sluice_channel_fetch_add(rank->channel, &sge, there, 1, DEADLINE))
BLOCKING(swap_blocking, sluice_channel_compare_swap(rank->channel, &sge, there, 0, 0, DEADLINE))
BLOCKING(many_write, sluice_multichannel_write(rank->all, 1, &sge, 1, there, DEADLINE))
BLOCKING(many_read, sluice_multichannel_read(rank->all, 1, &sge, 1, there, DEADLINE))
BLOCKING(many_add, sluice_multichannel_fetch_add(rank->all, 1, &sge, there, 1, DEADLINE))
BLOCKING(many_swap, sluice_multichannel_compare_swap(rank->all, 1, &sge, there, 0, 0, DEADLINE))

/* A list for each window. */
static void write_list(struct rank *rank, uint64_t count)
{
    struct sluice_request requests[WINDOW];
    struct sluice_completion done[WINDOW];

    fill_writes(rank, requests, WINDOW);
    for (uint64_t sent = 0; rank->rank == 0 && sent < count;) {
        uint32_t window = count - sent < WINDOW ? (uint32_t)(count - sent) : WINDOW;

        MUST(sluice_channel_submit(rank->channel, requests, window, DEADLINE, done));
        sent += window;
    }
}

/* Writes from memory of the program that is not registered. */
static void write_plain(struct rank *rank, uint64_t count)
{
    const struct sluice_request request = {
        .opcode = SLUICE_OP_WRITE,
        .flags = SLUICE_PLAIN_MEMORY,
        .sge_count = 1,
        .sge = {(uint64_t)(uintptr_t)rank->state, rank->size, 0},
        .remote = rank->remotes[1],
    };

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_channel_submit(rank->channel, &request, 1, DEADLINE, NULL));
}

static void make_plain(struct rank *rank)
{
    rank->state = MAKE(calloc(1, rank->size));
}

static void free_plain(struct rank *rank)
{
    if (rank->cache != NULL && sluice_mr_cache_forget(rank->cache, rank->state, rank->size) == 0)
        free(rank->state);
}

/* Sends windows, for which the peer posts that many receives at a time. */
static void send_window(struct rank *rank, uint64_t count, uint32_t posted, int64_t late)
{
    static const uint32_t mixed[4] = {8, 256, 4096, 65536};
    struct sluice_completion done[WINDOW];

    if (rank->rank == 0) {
        for (uint64_t i = 0; i < count; i++) {
            uint32_t size = rank->size == 65536 ? mixed[i % 4] : rank->size;
            const struct sluice_sge sge = place(rank, 0, size);

            MUST(sluice_channel_post_send(rank->channel, &sge, 1, DEADLINE, NULL));
            if (i % WINDOW == WINDOW - 1 || i + 1 == count)
                MUST(sluice_channel_flush(rank->channel, DEADLINE));
        }
        return;
    }
    for (uint64_t taken = 0; taken < count;) {
        struct sluice_request receives[WINDOW] = {{0}};
        uint32_t now_posted = count - taken < posted ? (uint32_t)(count - taken) : posted;

        for (int64_t end = now() + late; late > 0 && now() < end;)
            ;
        for (uint32_t i = 0; i < now_posted; i++) {
            receives[i].opcode = SLUICE_OP_RECEIVE;
            receives[i].sge_count = 1;
            receives[i].sge = place(rank, 0, rank->size);
        }
        MUST(sluice_channel_submit(rank->channel, receives, now_posted, DEADLINE, done));
        taken += now_posted;
    }
}

static void send_window_64(struct rank *rank, uint64_t count)
{
    send_window(rank, count, WINDOW, 0);
}

static void send_window_8(struct rank *rank, uint64_t count)
{
    send_window(rank, count, 8, 0);
}

static void send_window_1(struct rank *rank, uint64_t count)
{
    send_window(rank, count, 1, 0);
}

/* Sends messages of 8 bytes to 64 KiB, in turn. */
static void send_mixed(struct rank *rank, uint64_t count)
{
    send_window(rank, count, WINDOW, 0);
}

/* The receives come 20 us after the messages. */
static void send_window_late(struct rank *rank, uint64_t count)
{
    send_window(rank, count, WINDOW, 20000);
}

#define WAY(name, against, mpi, calls, needs, size)                                        \
    {                                                                                      \
#name, "stream", against, NULL, mpi, calls, needs, {2 }, {size }, NULL, name, NULL \
    }
#define ONE(name, calls) WAY(name, "write_poll", NULL, calls, CHANNEL, 8)
#define MANY(name, calls) WAY(name, "many_write_poll", NULL, calls, NODE, 8)

const struct way ways_stream[] = {
    ONE(write_poll, "channel_post_write channel_poll"),
    ONE(write_flush, "channel_post_write channel_flush"),
    ONE(write_handles_flush, "channel_post_write channel_flush"),
    ONE(write_next, "channel_next"),
    ONE(write_wait, "channel_wait"),
    ONE(write_wait_backwards, "channel_wait"),
    ONE(write_wait_last, "channel_wait"),
    ONE(write_detach, "channel_detach channel_flush"),
    ONE(write_fd, "channel_fd channel_arm channel_poll"),
    ONE(post_poll, "channel_post channel_poll"),
    ONE(write_list, "channel_submit"),
    ONE(write_blocking, "channel_write"),
    {"write_plain",
     "stream",
     "write_blocking",
     NULL,
     NULL,
     "mr_cache_create",
     CHANNEL | CACHE,
     {2},
     {8},
     make_plain,
     write_plain,
     free_plain},
    WAY(read_poll, "read_poll", NULL, "channel_post_read", CHANNEL, 8),
    WAY(read_flush, "read_poll", NULL, "channel_post_read channel_flush", CHANNEL, 8),
    WAY(read_wait, "read_poll", NULL, "channel_post_read channel_wait", CHANNEL, 8),
    WAY(read_blocking, "read_poll", NULL, "channel_read", CHANNEL, 8),
    WAY(add_poll, "add_poll", NULL, "channel_post_fetch_add", CHANNEL, 8),
    WAY(add_flush, "add_poll", NULL, "channel_post_fetch_add", CHANNEL, 8),
    WAY(add_blocking, "add_poll", NULL, "channel_fetch_add", CHANNEL, 8),
    WAY(swap_poll, "swap_poll", NULL, "channel_post_compare_swap", CHANNEL, 8),
    WAY(swap_flush, "swap_poll", NULL, "channel_post_compare_swap", CHANNEL, 8),
    WAY(swap_blocking, "swap_poll", NULL, "channel_compare_swap", CHANNEL, 8),
    MANY(many_write_poll, "multichannel_post_write multichannel_poll"),
    MANY(many_write_flush, "multichannel_flush"),
    MANY(many_write_next, "multichannel_next"),
    MANY(many_write_wait, "multichannel_wait"),
    MANY(many_write_detach, "multichannel_detach"),
    MANY(many_write_fd, "multichannel_fd multichannel_arm"),
    MANY(many_write, "multichannel_write"),
    WAY(many_read, "read_blocking", NULL, "multichannel_read", NODE, 8),
    WAY(many_add, "add_blocking", NULL, "multichannel_fetch_add", NODE, 8),
    WAY(many_swap, "swap_blocking", NULL, "multichannel_compare_swap", NODE, 8),
    WAY(send_window_64, "send_window_64", "msg_rate", "channel_post_send channel_submit", CHANNEL,
        8),
    WAY(send_window_8, "send_window_64", "msg_rate", "channel_post_send", CHANNEL, 8),
    WAY(send_window_1, "send_window_64", "msg_rate", "channel_post_send", CHANNEL, 8),
    WAY(send_window_late, "send_window_64", "msg_rate", "channel_post_send", CHANNEL, 8),
    WAY(send_mixed, "send_mixed", NULL, "channel_post_send", CHANNEL, 65536),
    {0},
};
