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

int sizeless_blocks(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    blocks.size = 0;
    return submit_blocks(world, &blocks);
}

int wild_size_of_blocks(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    blocks.size = 5000;
    return submit_blocks(world, &blocks);
}

int pages_without_indices(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    blocks.local.kind = SLUICE_LAYOUT_PAGED;
    blocks.local.stride = 0;
    return submit_blocks(world, &blocks);
}

int flag_of_blocks(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    blocks.flags = 1;
    return submit_blocks(world, &blocks);
}

int count_of_contiguous_blocks(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    blocks.local.kind = SLUICE_LAYOUT_CONTIGUOUS;
    return submit_blocks(world, &blocks);
}

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

int unknown_layout(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    blocks.local.kind = 9;
    return submit_blocks(world, &blocks);
}

int blocks_of_no_bytes(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    blocks.remote.bytes = 0;
    return submit_blocks(world, &blocks);
}

int sides_of_different_length(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    blocks.remote.bytes = 9;
    return submit_blocks(world, &blocks);
}

int block_outside(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    blocks.local.stride = WORLD_BYTES;
    return submit_blocks(world, &blocks);
}

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
int remote_block_outside(struct world *world)
{
    struct sluice_blocks blocks = two_blocks();
    world->remote.length = 23;
    return submit_blocks(world, &blocks);
}

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
