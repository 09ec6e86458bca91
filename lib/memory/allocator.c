/* SPDX-License-Identifier: MIT */
/*
 * Allocators: creating, destroying, trimming and querying them. The calls for blocks are in
 * allocator_block.c.
 */
#include "config.h"

#include "memory/allocator.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KNOWN_FLAGS (SLUICE_ALLOCATOR_HUGE_PAGES | SLUICE_ALLOCATOR_NUMA_NODE)
#define DEFAULT_THREAD_BLOCKS 64
#define MOST_THREAD_BLOCKS 1024
#define LEAST_SLAB (UINT64_C(1) << 20)
#define MOST_SLAB (UINT64_C(1) << 30)
#define DEFAULT_SLAB (UINT64_C(1) << 22)
#define MOST_NODE 1023

int slu_allocator_check(const struct sluice_allocator *allocator)
{
    if (slu_is_allocator(allocator))
        return 0;
    if (allocator == NULL)
        return slu_misuse(EINVAL, "not an allocator, but NULL%s", slu_none_hint(allocator));
    return slu_misuse(EINVAL, "not an allocator, or one that was destroyed%s",
                      slu_none_hint(allocator));
}

/* Attributes. */

/* Checks, with one page, that the kernel can place memory on the node. */
static int check_node(uint32_t node)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int err;

    if (memory == MAP_FAILED)
        return slu_fail(ENOMEM, "no memory to check NUMA node %u with", node);
    err = slu_pages_bind(memory, page, (int32_t)node);
    munmap(memory, page);
    if (err == EINVAL)
        return slu_misuse(EINVAL, "numa_node is %u, but this machine has no such node", node);
    if (err != 0)
        return slu_fail(EOPNOTSUPP, "the kernel cannot place memory on NUMA node %u: %s", node,
                        strerror(err));
    return 0;
}

static int check_numbers(const struct sluice_allocator_attr *attr)
{
    bool has_node = (attr->flags & SLUICE_ALLOCATOR_NUMA_NODE) != 0;

    if ((attr->flags & ~KNOWN_FLAGS) != 0)
        return slu_misuse(EINVAL, "flags are %#x, known are %#x", attr->flags, KNOWN_FLAGS);
    if (attr->numa_node > MOST_NODE)
        return slu_misuse(EINVAL, "numa_node is %u, above %u", attr->numa_node, MOST_NODE);
    if (attr->numa_node != 0 && !has_node)
        return slu_misuse(EINVAL, "numa_node is %u without SLUICE_ALLOCATOR_NUMA_NODE",
                          attr->numa_node);
    if (attr->thread_blocks != SLUICE_ZERO &&
        (attr->thread_blocks == 1 || attr->thread_blocks > MOST_THREAD_BLOCKS))
        return slu_misuse(EINVAL, "thread_blocks is %u, not in 2..%u, nor SLUICE_ZERO",
                          attr->thread_blocks, MOST_THREAD_BLOCKS);
    if (attr->slab_bytes != 0 && (attr->slab_bytes < LEAST_SLAB || attr->slab_bytes > MOST_SLAB))
        return slu_misuse(EINVAL, "slab_bytes is %llu, not in %llu..%llu",
                          (unsigned long long)attr->slab_bytes, (unsigned long long)LEAST_SLAB,
                          (unsigned long long)MOST_SLAB);
    return has_node ? check_node(attr->numa_node) : 0;
}

static int apply_attr(struct sluice_allocator *allocator)
{
    struct sluice_allocator_attr *attr = &allocator->attr;
    int error = check_numbers(attr);

    if (error < 0)
        return error;
    if (attr->thread_blocks == 0)
        attr->thread_blocks = DEFAULT_THREAD_BLOCKS;
    if (attr->slab_bytes == 0)
        attr->slab_bytes = DEFAULT_SLAB;
    attr->slab_bytes = (attr->slab_bytes + SLU_UNIT - 1) & ~(uint64_t)(SLU_UNIT - 1);
    allocator->node =
        (attr->flags & SLUICE_ALLOCATOR_NUMA_NODE) != 0 ? (int32_t)attr->numa_node : SLU_ANY_NODE;
    return 0;
}

/* Creating and destroying. */

static struct sluice_allocator *make(struct sluice_pd *pd, uint32_t access,
                                     const struct sluice_allocator *given)
{
    struct sluice_allocator *allocator = calloc(1, sizeof *allocator);

    if (allocator != NULL)
        allocator->tree = calloc(SLU_TREE_WIDTH, sizeof *allocator->tree);
    if (allocator == NULL || allocator->tree == NULL) {
        free(allocator);
        return slu_fail_null(ENOMEM, "no memory for an allocator");
    }
    allocator->access = access;
    allocator->attr = given->attr;
    allocator->node = given->node;
    allocator->pd = pd;
    slu_pd_hold(pd);
    TAILQ_INIT(&allocator->slabs);
    for (uint32_t kind = 0; kind <= SLU_SIZES; kind++) {
        TAILQ_INIT(&allocator->partial[kind]);
        TAILQ_INIT(&allocator->unused[kind]);
    }
    pthread_mutex_init(&allocator->lock, NULL);
    allocator->magic = SLU_MAGIC_ALLOCATOR;
    slu_threads_join(allocator);
    slu_made();
    return allocator;
}

struct sluice_allocator *sluice_allocator_create(struct sluice_pd *pd, uint32_t access,
                                                 const struct sluice_allocator_attr *given)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_allocator wanted;
    int error = slu_mr_check(pd, 1, access);

    if (error == 0)
        error = SLU_ATTR_COPY(sluice_allocator_attr, &wanted.attr, given);
    if (error == 0)
        error = apply_attr(&wanted);
    return error == 0 ? make(pd, access, &wanted) : slu_none(error);
}

static uint64_t count_taken(const struct sluice_allocator *allocator)
{
    uint64_t taken = allocator->long_blocks + allocator->alone_count;

    for (uint32_t kind = 0; kind < SLU_SIZES; kind++)
        taken += allocator->taken[kind];
    return taken;
}

int sluice_allocator_destroy(struct sluice_allocator *allocator)
{
    SLU_UNCANCELLED_BLOCK;
    uint64_t taken;
    uint32_t given_up;

    if (allocator == NULL)
        return 0;
    if (slu_allocator_check(allocator) < 0)
        return -EINVAL;
    if (slu_has_releases())
        slu_releases_look();
    slu_threads_flush(allocator);
    pthread_mutex_lock(&allocator->lock);
    taken = count_taken(allocator);
    given_up = allocator->given_up;
    pthread_mutex_unlock(&allocator->lock);
    if (taken > 0 || given_up > 0)
        return slu_fail(EBUSY,
                        "%llu block%s of the allocator must be freed first; %u more are released "
                        "but still used by requests in flight",
                        (unsigned long long)taken, SLU_S(taken), given_up);
    allocator->magic = SLU_MAGIC_DEAD;
    slu_threads_leave(allocator);
    slu_slabs_destroy(allocator);
    pthread_mutex_destroy(&allocator->lock);
    free(allocator->alone);
    slu_pd_release(allocator->pd);
    free(allocator);
    return 0;
}

int sluice_allocator_trim(struct sluice_allocator *allocator)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_thread_cache *cache;
    int error = slu_allocator_check(allocator);

    if (error < 0)
        return error;
    cache = slu_thread_cache(allocator);
    pthread_mutex_lock(&allocator->lock);
    atomic_fetch_add_explicit(&allocator->trims, 1, memory_order_relaxed);
    if (cache != NULL)
        slu_thread_flush(allocator, cache);
    slu_slabs_trim(allocator);
    pthread_mutex_unlock(&allocator->lock);
    return 0;
}

/* Counts the blocks of each kind that are allocated, and those that threads keep. */
static void count_blocks(struct sluice_allocator *allocator, struct sluice_allocator_info *info)
{
    for (uint32_t kind = 0; kind < SLU_SIZES; kind++) {
        uint64_t kept = slu_threads_kept(allocator, kind);
        size_t size = slu_kind_size(kind);
        uint64_t out;

        pthread_mutex_lock(&allocator->lock);
        /* Threads change the two numbers meanwhile, so their difference may be negative. */
        out = allocator->taken[kind] > kept ? allocator->taken[kind] - kept : 0;
        pthread_mutex_unlock(&allocator->lock);
        info->blocks += out;
        info->block_bytes += out * size;
        info->kept_bytes += kept * size;
    }
}

int sluice_allocator_query(struct sluice_allocator *allocator, struct sluice_allocator_info *info)
{
    struct sluice_allocator_info now = {.size = sizeof now};
    int error = slu_allocator_check(allocator);

    if (error == 0)
        error = SLU_INFO_CHECK(sluice_allocator_info, info);
    if (error < 0)
        return error;
    count_blocks(allocator, &now);
    pthread_mutex_lock(&allocator->lock);
    now.slabs = allocator->slab_count;
    now.regions = allocator->alone_count;
    now.released = allocator->given_up;
    now.registered_bytes = allocator->registered;
    now.blocks += allocator->long_blocks + allocator->alone_count;
    now.block_bytes += allocator->long_bytes + allocator->alone_bytes;
    now.registrations = allocator->registrations;
    pthread_mutex_unlock(&allocator->lock);
    slu_info_copy(info, &now, sizeof now);
    return 0;
}
