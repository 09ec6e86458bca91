/* SPDX-License-Identifier: MIT */
/*
 * BLOCK_COUNT blocks of the size, scattered on both sides: as a list of writes, as one paged
 * write, and as one contiguous write. An iteration is all of them; the time of posting is
 * reported as well.
 */
#include "ways.h"

struct blocks {
    struct sluice_request requests[BLOCK_COUNT];
    struct sluice_blocks paged;
    uint32_t indices[BLOCK_COUNT];
};

/* Uses every second block of the memory, in a different order at the peer. */
static void make_blocks(struct rank *rank)
{
    struct blocks *blocks = MAKE(calloc(1, sizeof *blocks));
    const size_t size = rank->size;

    for (uint32_t i = 0; i < BLOCK_COUNT; i++) {
        const uint32_t there = 2 * ((i * 37) % BLOCK_COUNT);

        blocks->indices[i] = there;
        blocks->requests[i] =
            (struct sluice_request){.opcode = SLUICE_OP_WRITE,
                                    .sge_count = 1,
                                    .sge = place(rank, 2 * i * size, size),
                                    .remote = remote(rank, other(rank), there * size, size)};
    }
    blocks->paged.size = sizeof blocks->paged;
    blocks->paged.local = (struct sluice_layout){
        .kind = SLUICE_LAYOUT_STRIDED, .count = BLOCK_COUNT, .bytes = size, .stride = 2 * size};
    blocks->paged.remote = (struct sluice_layout){.kind = SLUICE_LAYOUT_PAGED,
                                                  .count = BLOCK_COUNT,
                                                  .bytes = size,
                                                  .indices = blocks->indices};
    rank->state = blocks;
}

static void free_blocks(struct rank *rank)
{
    free(rank->state);
}

static void post_and_flush(struct rank *rank, const struct sluice_request *requests, uint32_t count)
{
    int64_t begin = now();

    for (uint32_t posted = 0; posted < count;)
        posted += (uint32_t)MUST(
            sluice_channel_post(rank->channel, requests + posted, count - posted, DEADLINE, NULL));
    rank->posting += now() - begin;
    MUST(sluice_channel_flush(rank->channel, DEADLINE));
}

static void blocks_list(struct rank *rank, uint64_t count)
{
    const struct blocks *blocks = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        post_and_flush(rank, blocks->requests, BLOCK_COUNT);
}

static void blocks_pages(struct rank *rank, uint64_t count)
{
    const struct blocks *blocks = rank->state;
    const uint32_t all = 2 * BLOCK_COUNT * rank->size;
    const struct sluice_request request = {.opcode = SLUICE_OP_WRITE,
                                           .sge_count = 1,
                                           .sge = place(rank, 0, all),
                                           .remote = remote(rank, other(rank), 0, all),
                                           .blocks = &blocks->paged};

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        post_and_flush(rank, &request, 1);
}

static void blocks_whole(struct rank *rank, uint64_t count)
{
    const uint32_t all = BLOCK_COUNT * rank->size;
    const struct sluice_request request = {.opcode = SLUICE_OP_WRITE,
                                           .sge_count = 1,
                                           .sge = place(rank, 0, all),
                                           .remote = remote(rank, other(rank), 0, all)};

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        post_and_flush(rank, &request, 1);
}

#define WAY(name, calls)                                                     \
    {                                                                        \
#name, "block", "blocks_whole", NULL, NULL, calls, CHANNEL | BLOCKS, \
            {2 }, BLOCK_SIZES, make_blocks, name, free_blocks                \
    }
#define BLOCK_SIZES               \
    {                             \
        1024, 4096, 16384, 262144 \
    }

const struct way ways_block[] = {
    WAY(blocks_list, "channel_post channel_flush"),
    WAY(blocks_pages, "channel_post channel_flush"),
    WAY(blocks_whole, "channel_post channel_flush"),
    {0},
};
