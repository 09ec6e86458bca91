/* SPDX-License-Identifier: MIT */
/* An allocator beside a connection, for its tests. */
#ifndef MEMORY_ALLOCATOR_H
#define MEMORY_ALLOCATOR_H

#include "../support/pair.h"

#define SLAB (UINT64_C(1) << 20)

struct work {
    struct pair pair;
    struct sluice_allocator *allocator;
};

static inline void work_open(struct work *work, const struct sluice_allocator_attr *attr)
{
    pair_open(&work->pair, NULL);
    work->allocator = made(sluice_allocator_create(work->pair.sides.pds[0], ACCESS_ALL, attr));
}

static inline void work_close(struct work *work)
{
    require_ok(sluice_allocator_destroy(work->allocator));
    pair_close(&work->pair);
}

static inline void *alloc(const struct work *work, size_t size, size_t align)
{
    void *block = sluice_allocator_alloc(work->allocator, size, align);

    require(block, "%zu bytes at %zu: %s", size, align, sluice_last_error());
    require((uintptr_t)block % (align ? align : 64) == 0, "%p for %zu", block, align);
    return block;
}

static inline void *alloc_shared(const struct work *work, size_t size,
                                 struct sluice_remote_mr *remote)
{
    void *block = sluice_allocator_alloc_shared(work->allocator, size, remote);

    require(block, "%zu bytes: %s", size, sluice_last_error());
    value_check(block, size, 0);
    return block;
}

static inline void free_block(const struct work *work, void *block)
{
    require_ok(sluice_allocator_free(work->allocator, block));
}

static inline struct sluice_sge sge_of(const struct work *work, const void *pointer, size_t length)
{
    struct sluice_sge sge;

    require(sluice_allocator_sge(work->allocator, pointer, length, &sge) == 0, "%zu: %s", length,
            sluice_last_error());
    return sge;
}

static inline struct sluice_allocator_info query(const struct work *work)
{
    struct sluice_allocator_info info = {.size = sizeof info};

    require_ok(sluice_allocator_query(work->allocator, &info));
    return info;
}

/* Posts a receive that names the block, which completes when the peer sends. */
static inline void post_receive(struct work *work, const struct sluice_sge *sges, uint32_t count)
{
    require_ok(sluice_channel_post_receive(work->pair.channels[0], sges, count, DEADLINE, NULL));
}

static inline void complete_receive(struct work *work)
{
    struct sluice_completion completion;

    require_ok(sluice_channel_send(work->pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_channel_next(work->pair.channels[0], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
}

#endif
