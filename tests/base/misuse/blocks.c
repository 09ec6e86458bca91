/* SPDX-License-Identifier: MIT */
/* Mistakes with the blocks of a request. */
#include "mistakes.h"

/* A write of two blocks of 8 bytes, from here to there. */
static struct sluice_blocks two_blocks(void)
{
    const struct sluice_layout strided = {
        .kind = SLUICE_LAYOUT_STRIDED, .count = 2, .bytes = 8, .stride = 16};
    return (struct sluice_blocks){
        .size = sizeof(struct sluice_blocks), .local = strided, .remote = strided};
}

static void request_blocks(struct world *world, const struct sluice_blocks *blocks)
{
    world->sge = memory_sge(&world->memory, 0, WORLD_BYTES);
    world->request = request_of(SLUICE_OP_WRITE, 0, &world->sge);
    world->request.remote = world->remote;
    world->request.blocks = blocks;
}

static int submit_blocks(struct world *world, const struct sluice_blocks *blocks)
{
    request_blocks(world, blocks);
    return submit_request(world);
}

/* Mistakes. */

/* Two blocks on each side, after these statements. */
#define SUBMITS_BLOCKS(name, ...)                                           \
    MISTAKE_(name, struct sluice_blocks blocks = two_blocks(); __VA_ARGS__; \
             return submit_blocks(world, &blocks))

SUBMITS_BLOCKS(sizeless_blocks, blocks.size = 0);
SUBMITS_BLOCKS(wild_size_of_blocks, blocks.size = 5000);
SUBMITS_BLOCKS(pages_without_indices, blocks.local.kind = SLUICE_LAYOUT_PAGED;
               blocks.local.stride = 0);
SUBMITS_BLOCKS(flag_of_blocks, blocks.flags = 1);
SUBMITS_BLOCKS(reserved_field_of_layout, blocks.remote.reserved[1] = 1);
SUBMITS_BLOCKS(count_of_contiguous_blocks, blocks.local.kind = SLUICE_LAYOUT_CONTIGUOUS);

int stride_of_pages(struct world *world)
{
    static const uint32_t indices[2] = {0, 1};
    struct sluice_blocks blocks = two_blocks();
    blocks.remote.kind = SLUICE_LAYOUT_PAGED;
    blocks.remote.indices = indices;
    return submit_blocks(world, &blocks);
}

int atomic_of_blocks(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    request_blocks(world, &blocks);
    world->request.opcode = SLUICE_OP_FETCH_ADD;
    return submit_request(world);
}

int send_with_blocks_of_the_peer(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    request_blocks(world, &blocks);
    world->request.opcode = SLUICE_OP_SEND;
    return submit_request(world);
}

int inline_blocks(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    request_blocks(world, &blocks);
    world->request.flags = SLUICE_INLINE;
    return submit_request(world);
}

int blocks_of_two_elements(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    struct sluice_sge sges[2] = {world->sge, world->sge};
    request_blocks(world, &blocks);
    world->request.sge_count = 2;
    world->request.sges = sges;
    return submit_request(world);
}

SUBMITS_BLOCKS(unknown_layout, blocks.local.kind = 9);
SUBMITS_BLOCKS(blocks_of_no_bytes, blocks.remote.bytes = 0);
SUBMITS_BLOCKS(sides_of_different_length, blocks.remote.bytes = 9);
SUBMITS_BLOCKS(block_outside, blocks.local.stride = WORLD_BYTES);

int page_outside(struct world *world)
{
    static const uint32_t indices[2] = {0, WORLD_BYTES / 8};
    struct sluice_blocks blocks = two_blocks();
    blocks.local = (struct sluice_layout){
        .kind = SLUICE_LAYOUT_PAGED, .count = 2, .bytes = 8, .indices = indices};
    return submit_blocks(world, &blocks);
}

/* No mistakes. */

int newer_blocks(struct world *world)
{
    struct {
        struct sluice_blocks blocks;
        uint64_t unknown;
    } newer = {two_blocks(), 1};
    newer.blocks.size = sizeof(newer);
    return submit_blocks(world, &newer.blocks);
}

/* The length is the one that the peer announced. */
SUBMITS_BLOCKS(remote_block_outside, world->remote.length = 23);

int blocks_deeper_than_the_queue(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    struct sluice_multichannel *loop;
    world->attr.send_depth = 2;
    loop = loop_open(world->sides.pds[0], 2, &world->attr);
    request_blocks(world, &blocks);
    world->request.remote = memory_remote(&world->memory, 0, WORLD_BYTES);
    blocks.local.count = blocks.remote.count = 3;
    return sluice_multichannel_post(loop, &world->request, 1, DEADLINE, NULL);
}

int blocks_without_staging(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    request_blocks(world, &blocks);
    world->request.opcode = SLUICE_OP_SEND;
    blocks.local.count = 5;
    blocks.remote = (struct sluice_layout){0};
    return submit_request(world);
}
