/* SPDX-License-Identifier: MIT */
/* Mistakes with allocators and their blocks. */
#include "mistakes.h"

static struct sluice_allocator *allocator_with(struct world *world,
                                               struct sluice_allocator_attr attr)
{
    struct sluice_allocator *allocator;
    attr.size = sizeof(attr);
    allocator = made(sluice_allocator_create(world->sides.pds[0], ACCESS_ALL, &attr));
    return allocator;
}

static struct sluice_allocator *allocator_of(struct world *world)
{
    return allocator_with(world, (struct sluice_allocator_attr){.flags = 0});
}

static uint8_t *block_of(struct sluice_allocator *allocator)
{
    uint8_t *block = sluice_allocator_alloc(allocator, 64, 0);
    require(block, "%s", sluice_last_error());
    return block;
}

/* Mistakes. */

MAKES(null_allocator, sluice_allocator_alloc, NULL, 1, 0);
RETURNS(other_allocator, sluice_allocator_trim, OTHER(sluice_allocator));
MAKES(no_size_of_allocator, sluice_allocator_create, world->sides.pds[0], 0,
      &(struct sluice_allocator_attr){.size = 0});
MAKES(blocks_of_threads_out_of_range, sluice_allocator_create, world->sides.pds[0], 0,
      &(struct sluice_allocator_attr){.size = sizeof(struct sluice_allocator_attr),
                                      .thread_blocks = 1});
MAKES(block_of_no_bytes, sluice_allocator_alloc, allocator_of(world), 0, 0);
MAKES(alignment_that_is_none, sluice_allocator_alloc, allocator_of(world), 8, 24);

int block_freed_twice(struct world *world)
{
    struct sluice_allocator *allocator = allocator_of(world);
    void *volatile block = block_of(allocator);
    require_ok(sluice_allocator_free(allocator, block));
    return CALL(sluice_allocator_free)(allocator, block);
}

int free_within_a_block(struct world *world)
{
    struct sluice_allocator *allocator = allocator_of(world);
    return CALL(sluice_allocator_free)(allocator, block_of(allocator) + 8);
}

RETURNS(free_of_other_memory, sluice_allocator_free, allocator_of(world), world->memory.bytes);

int element_beyond_a_block(struct world *world)
{
    struct sluice_allocator *allocator = allocator_of(world);
    return CALL(sluice_allocator_sge)(allocator, block_of(allocator), WORLD_BYTES, &world->sge);
}

/* No mistakes. */

int allocator_with_a_block(struct world *world)
{
    struct sluice_allocator *allocator = allocator_of(world);
    block_of(allocator);
    return sluice_allocator_destroy(allocator);
}

int block_in_use(struct world *world)
{
    struct sluice_allocator *allocator = allocator_of(world);
    uint8_t *block = block_of(allocator);
    require_ok(sluice_allocator_sge(allocator, block, 8, &world->sge));
    world->request.opcode = SLUICE_OP_RECEIVE;
    post(world->pair.channels[0], &world->request);
    return sluice_allocator_free(allocator, block);
}

int more_than_an_allocator_may(struct world *world)
{
    struct sluice_allocator *allocator =
        allocator_with(world, (struct sluice_allocator_attr){.max_bytes = 65536});
    return result_of(sluice_allocator_alloc(allocator, 65537, 0));
}
