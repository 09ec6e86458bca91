/* SPDX-License-Identifier: MIT */
/* Memory: registering, allocating, caching and releasing it. An iteration is one of each. */
#include "ways.h"

#define ALL (SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ)

static void make_plain(struct rank *rank)
{
    rank->state = MAKE(calloc(1, rank->size));
}

static void free_state(struct rank *rank)
{
    free(rank->state);
}

static void mr_register(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(
            sluice_mr_deregister(MAKE(sluice_mr_register(rank->pd, rank->state, rank->size, ALL))));
}

static void mr_register_wait(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_mr_deregister_wait(
            MAKE(sluice_mr_register(rank->pd, rank->state, rank->size, ALL)), DEADLINE));
}

static void mr_alloc(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_mr_deregister(MAKE(sluice_mr_alloc(rank->pd, rank->size, ALL))));
}

static void mr_alloc_release(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_mr_release(MAKE(sluice_mr_alloc(rank->pd, rank->size, ALL)), NULL, NULL));
}

static void mr_cache(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_mr_cache_put(rank->cache,
                                 MAKE(sluice_mr_cache_get(rank->cache, rank->state, rank->size))));
}

/* Uses an empty cache, as in a program that has just started. */
static void mr_cache_new(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sluice_mr_cache *cache =
            MAKE(sluice_mr_cache_create(rank->pd, SLUICE_ACCESS_LOCAL_WRITE, NULL));

        MUST(sluice_mr_cache_put(cache, MAKE(sluice_mr_cache_get(cache, rank->state, rank->size))));
        MUST(sluice_mr_cache_forget(cache, rank->state, rank->size));
        MUST(sluice_mr_cache_destroy(cache));
    }
}

static void make_allocator(struct rank *rank)
{
    rank->state = MAKE(sluice_allocator_create(rank->pd, ALL, NULL));
}

static void end_allocator(struct rank *rank)
{
    MUST(sluice_allocator_trim(rank->state));
    MUST(sluice_allocator_destroy(rank->state));
}

static void allocator_alloc(struct rank *rank, uint64_t count)
{
    struct sluice_sge sge;

    for (uint64_t i = 0; i < count; i++) {
        char *block = MAKE(sluice_allocator_alloc(rank->state, rank->size, 0));

        *(volatile char *)block = 1;
        MUST(sluice_allocator_sge(rank->state, block, rank->size, &sge));
        MUST(sluice_allocator_free(rank->state, block));
    }
}

static void allocator_zeroed(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_allocator_release(
            rank->state, MAKE(sluice_allocator_alloc_zeroed(rank->state, rank->size, 0)), NULL,
            NULL));
}

static void allocator_realloc(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char *block = MAKE(sluice_allocator_alloc(rank->state, rank->size, 0));

        block = MAKE(sluice_allocator_realloc(rank->state, block, 2 * (size_t)rank->size, 0));
        MUST(sluice_allocator_free_wait(rank->state, block, DEADLINE));
    }
}

static void allocator_shared(struct rank *rank, uint64_t count)
{
    struct sluice_remote_mr handle;

    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_allocator_free(
            rank->state, MAKE(sluice_allocator_alloc_shared(rank->state, rank->size, &handle))));
}

#define PAGE_SIZES           \
    {                        \
        4096, 65536, 1048576 \
    }
#define WAY(name, against, plain, calls, needs, setup, end)                                     \
    {                                                                                           \
#name, "memory", against, plain, NULL, calls, needs, {1 }, PAGE_SIZES, setup, name, end \
    }

const struct way ways_memory[] = {
    WAY(mr_register, "mr_cache", NULL, "mr_register mr_deregister", 0, make_plain, free_state),
    WAY(mr_register_wait, "mr_cache", NULL, "mr_deregister_wait", 0, make_plain, free_state),
    WAY(mr_cache, "mr_cache", NULL, "mr_cache_get mr_cache_put", CACHE, make_plain, NULL),
    WAY(mr_cache_new, "mr_register", NULL, "mr_cache_create mr_cache_forget mr_cache_destroy", 0,
        make_plain, free_state),
    WAY(mr_alloc, "allocator_alloc", "plain_mmap", "mr_alloc mr_deregister", 0, NULL, NULL),
    WAY(mr_alloc_release, "allocator_alloc", "plain_mmap", "mr_release", 0, NULL, NULL),
    WAY(allocator_alloc, "allocator_alloc", "plain_malloc",
        "allocator_create allocator_alloc allocator_sge allocator_free allocator_trim "
        "allocator_destroy",
        0, make_allocator, end_allocator),
    WAY(allocator_zeroed, "allocator_alloc", "plain_malloc",
        "allocator_alloc_zeroed allocator_release", 0, make_allocator, end_allocator),
    WAY(allocator_realloc, "allocator_alloc", "plain_malloc",
        "allocator_realloc allocator_free_wait", 0, make_allocator, end_allocator),
    WAY(allocator_shared, "mr_alloc", "plain_mmap", "allocator_alloc_shared", 0, make_allocator,
        end_allocator),
    {0},
};
