/* SPDX-License-Identifier: MIT */
/* Buffers by name: rank 1 publishes, rank 0 reads and writes. */
#include <poll.h>

#include "ways.h"

struct names {
    struct sluice_buffer_service *service;
    struct sluice_buffer *buffer;
    struct sluice_buffer *part;         /* of a region */
    struct sluice_buffer_handle handle; /* of rank 1's buffer */
    struct sluice_buffer_handle of_part;
    char *plain;
};

static struct sluice_buffer_service *open_service(struct rank *rank)
{
    static const struct sluice_buffer_service_attr attr = {.size = sizeof attr,
                                                           .address = "127.0.0.1:0"};

    return MAKE(sluice_buffer_service_open(&rank->pd, 1, &attr));
}

static struct sluice_buffer *publish_part(struct rank *rank, const struct names *names)
{
    return MAKE(sluice_buffer_publish_mr(names->service, rank->mr, 0, rank->size,
                                         SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE));
}

static void make_names(struct rank *rank)
{
    struct names *names = MAKE(calloc(1, sizeof *names));
    struct sluice_buffer_handle own[2], all[2][2];

    names->service = open_service(rank);
    names->plain = MAKE(calloc(1, rank->size));
    names->buffer = MAKE(sluice_buffer_publish(
        names->service, NULL, rank->size, SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE));
    names->part = publish_part(rank, names);
    MUST(sluice_buffer_export(names->buffer, &own[0]));
    MUST(sluice_buffer_export(names->part, &own[1]));
    share(rank, own, all, sizeof own);
    names->handle = all[1][0];
    names->of_part = all[1][1];
    rank->state = names;
}

static void end_names(struct rank *rank)
{
    struct names *names = rank->state;

    meet(rank);
    sluice_buffer_release(names->part);
    sluice_buffer_release(names->buffer);
    sluice_buffer_service_close(names->service);
    free(names->plain);
    free(names);
}

static void buffer_read(struct rank *rank, uint64_t count)
{
    const struct names *names = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_buffer_read(names->service, &names->handle, 0, rank->mr, rank->memory,
                                rank->size, DEADLINE));
}

/* Reads a region that the owner has published. */
static void buffer_read_region(struct rank *rank, uint64_t count)
{
    const struct names *names = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_buffer_read(names->service, &names->of_part, 0, rank->mr, rank->memory,
                                rank->size, DEADLINE));
}

static void buffer_read_plain(struct rank *rank, uint64_t count)
{
    const struct names *names = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_buffer_read(names->service, &names->handle, 0, NULL, names->plain, rank->size,
                                DEADLINE));
}

static void buffer_write(struct rank *rank, uint64_t count)
{
    const struct names *names = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_buffer_write(names->service, &names->handle, 0, rank->mr, rank->memory,
                                 rank->size, DEADLINE));
}

/* One action of a batch of 8. */
static void buffer_submit(struct rank *rank, uint64_t count)
{
    const struct names *names = rank->state;
    struct sluice_buffer_action actions[8];

    for (uint32_t i = 0; i < 8; i++)
        actions[i] = (struct sluice_buffer_action){.opcode = SLUICE_OP_READ,
                                                   .handle = &names->handle,
                                                   .length = rank->size,
                                                   .addr = rank->memory,
                                                   .mr = rank->mr};
    for (uint64_t i = 0; rank->rank == 0 && i < count; i += 8)
        MUST(sluice_buffer_submit(names->service, actions, 8, DEADLINE, NULL));
}

/* A list of reads; completions are taken one by one, or all at once. */
static struct sluice_buffer_batch *prepare_reads(const struct rank *rank, uint32_t count)
{
    const struct names *names = rank->state;
    struct sluice_buffer_action actions[8];

    for (uint32_t i = 0; i < count; i++)
        actions[i] = (struct sluice_buffer_action){.opcode = SLUICE_OP_READ,
                                                   .handle = &names->handle,
                                                   .length = rank->size,
                                                   .addr = rank->memory,
                                                   .mr = rank->mr};
    return MAKE(sluice_buffer_batch_prepare(names->service, actions, count));
}

/* One action of a prepared batch of 8. */
static void buffer_batch(struct rank *rank, uint64_t count)
{
    struct sluice_buffer_batch *batch = rank->rank == 0 ? prepare_reads(rank, 8) : NULL;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i += 8) {
        MUST(sluice_buffer_batch_post(batch, DEADLINE));
        MUST(sluice_buffer_batch_wait(batch, DEADLINE));
        MUST(sluice_buffer_batch_results(batch, NULL));
    }
    sluice_buffer_batch_free(batch);
}

static void buffer_batch_next(struct rank *rank, uint64_t count)
{
    struct sluice_buffer_batch *batch = rank->rank == 0 ? prepare_reads(rank, 8) : NULL;
    struct sluice_completion done;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        if (i % 8 == 0)
            MUST(sluice_buffer_batch_post(batch, DEADLINE));
        MUST(sluice_buffer_batch_next(batch, DEADLINE, &done));
        MUST(done.error);
    }
    sluice_buffer_batch_free(batch);
}

/* Takes results in an event loop, which sleeps only when armed. */
static void buffer_batch_loop(struct rank *rank, uint64_t count)
{
    struct sluice_buffer_batch *batch = rank->rank == 0 ? prepare_reads(rank, 8) : NULL;
    struct sluice_completion done[8];

    for (uint64_t i = 0; rank->rank == 0 && i < count; i += 8) {
        struct pollfd fd = {.fd = sluice_buffer_batch_fd(batch), .events = POLLIN};
        int left = 8;

        MUST(sluice_buffer_batch_post(batch, DEADLINE));
        while (left > 0) {
            int taken = sluice_buffer_batch_poll(batch, done, 8);

            MUST(taken < 0 ? taken : 0);
            left -= taken;
            if (left > 0 && sluice_buffer_batch_arm(batch, NULL) == 0)
                (void)!poll(&fd, 1, -1);
        }
    }
    sluice_buffer_batch_free(batch);
}

/* Posts a batch of one action, and cancels it before waiting. */
static void buffer_post_cancel(struct rank *rank, uint64_t count)
{
    const struct names *names = rank->state;
    const struct sluice_buffer_action action = {.opcode = SLUICE_OP_READ,
                                                .handle = &names->handle,
                                                .length = rank->size,
                                                .addr = rank->memory,
                                                .mr = rank->mr};

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        struct sluice_buffer_batch *batch =
            MAKE(sluice_buffer_post(names->service, &action, 1, DEADLINE));

        MUST(sluice_buffer_batch_cancel(batch));
        sluice_buffer_batch_free(batch);
    }
}

/* Reads the same bytes as eight pages in another order. */
static void buffer_read_pages(struct rank *rank, uint64_t count)
{
    static const uint32_t pages[8] = {7, 2, 5, 0, 3, 6, 1, 4};
    const struct names *names = rank->state;
    const struct sluice_blocks blocks = {
        .size = sizeof blocks,
        .remote = {
            .kind = SLUICE_LAYOUT_PAGED, .count = 8, .bytes = rank->size / 8, .indices = pages}};
    const struct sluice_buffer_action action = {.opcode = SLUICE_OP_READ,
                                                .handle = &names->handle,
                                                .length = rank->size,
                                                .addr = rank->memory,
                                                .mr = rank->mr,
                                                .blocks = &blocks};

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_buffer_submit(names->service, &action, 1, DEADLINE, NULL));
}

static void buffer_publish(struct rank *rank, uint64_t count)
{
    const struct names *names = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        sluice_buffer_release(MAKE(sluice_buffer_publish(names->service, names->plain, rank->size,
                                                         SLUICE_ACCESS_REMOTE_READ)));
}

static void buffer_publish_mr(struct rank *rank, uint64_t count)
{
    const struct names *names = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        sluice_buffer_release(publish_part(rank, names));
}

/* Opens a service, which connects for its first read. */
static void buffer_service(struct rank *rank, uint64_t count)
{
    const struct names *names = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        struct sluice_buffer_service *service = open_service(rank);

        MUST(sluice_buffer_read(service, &names->handle, 0, rank->mr, rank->memory, rank->size,
                                DEADLINE));
        sluice_buffer_service_close(service);
    }
}

static void channel_read(struct rank *rank, uint64_t count)
{
    const struct sluice_sge sge = place(rank, 0, rank->size);

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_channel_read(rank->channel, &sge, 1, &rank->remotes[1], DEADLINE));
}

static void channel_write(struct rank *rank, uint64_t count)
{
    const struct sluice_sge sge = place(rank, 0, rank->size);

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_channel_write(rank->channel, &sge, 1, &rank->remotes[1], DEADLINE));
}

#define WAY(name, against, plain, calls, sizes)                                                   \
    {                                                                                             \
#name, "buffer", against, plain, NULL, calls, 0, {2 }, sizes, make_names, name, end_names \
    }
#define REFERENCE(name, calls)                                                            \
    {                                                                                     \
#name, "buffer", #name, NULL, NULL, calls, CHANNEL, {2 }, SIZES, NULL, name, NULL \
    }

const struct way ways_buffer[] = {
    REFERENCE(channel_read, "channel_read"),
    REFERENCE(channel_write, "channel_write"),
    WAY(buffer_read, "channel_read", NULL, "buffer_read", SIZES),
    WAY(buffer_read_plain, "channel_read", NULL, "buffer_read", SIZES),
    WAY(buffer_write, "channel_write", NULL, "buffer_write", SIZES),
    WAY(buffer_submit, "channel_read", NULL, "buffer_submit", SIZES),
    WAY(buffer_batch, "channel_read", NULL,
        "buffer_batch_prepare buffer_batch_post buffer_batch_wait buffer_batch_results "
        "buffer_batch_free",
        SIZES),
    WAY(buffer_batch_next, "channel_read", NULL, "buffer_batch_next", SIZES),
    WAY(buffer_batch_loop, "channel_read", NULL, "buffer_batch_poll buffer_batch_arm", SIZES),
    WAY(buffer_post_cancel, "channel_read", NULL, "buffer_post buffer_batch_cancel", SIZES),
    WAY(buffer_read_region, "buffer_read", NULL, "buffer_publish_mr buffer_read", SIZES),
    WAY(buffer_read_pages, "buffer_read", NULL, "buffer_submit", {65536}),
    WAY(buffer_publish, "mr_register", NULL, "buffer_publish buffer_release", SIZES),
    WAY(buffer_publish_mr, "buffer_publish", NULL, "buffer_publish_mr buffer_release", SIZES),
    WAY(buffer_service, "connect_accept", "plain_connect",
        "buffer_service_open buffer_service_close", {8}),
    {0},
};
