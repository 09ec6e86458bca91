/* SPDX-License-Identifier: MIT */
/*
 * Zeroed memory. An allocator would give memory that was freed before and clear it, which touches
 * each page; so what takes pages is mapped. The pages are small ones, because a large one would
 * hold the rings of many peers, used or not. Adjacent mappings are one for the kernel, so thousands
 * of rings stay far below vm.max_map_count.
 *
 * A little of what was freed is kept for the next allocation of the same size, which clears it: a
 * channel has six such blocks, and unmapping interrupts the other processors of the process.
 */
#include "config.h"

#include "base/zeroed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fork.h"

/*
 * Less than this is not mapped. Rounding up to pages would waste much of it, and the rings of small
 * depths, which would all begin at the start of a page, would share a few sets of a cache.
 */
#define LEAST_BYTES 3300

/* The address sanitizer finds accesses outside of what malloc() gave, not outside of mappings. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

/* Three channels of default attributes have this much. Clearing more takes as long as mapping. */
#define KEPT_BYTES ((size_t)512 * 1024)
#define KEPT_BLOCK ((size_t)128 * 1024)
#define KEPT_BLOCKS 32

struct block {
    void *memory;
    size_t bytes;
};

/* Blocks that were freed, the oldest first. */
static struct {
    struct slu_fork_lock lock;
    size_t bytes;
    uint32_t count;
    struct block blocks[KEPT_BLOCKS];
} kept = {.lock = {.lock = PTHREAD_MUTEX_INITIALIZER, .waits = true}};

static bool is_mapped(size_t bytes)
{
    return !SANITIZED && bytes >= LEAST_BYTES;
}

static struct block remove_block(uint32_t index)
{
    struct block block = kept.blocks[index];

    kept.count--;
    kept.bytes -= block.bytes;
    memmove(&kept.blocks[index], &kept.blocks[index + 1],
            (kept.count - index) * sizeof kept.blocks[0]);
    return block;
}

/* Returns a block of this size, the last that was freed, or NULL. */
static void *take_kept(size_t bytes)
{
    void *memory = NULL;

    slu_fork_lock(&kept.lock);
    for (uint32_t i = kept.count; i > 0 && memory == NULL; i--)
        if (kept.blocks[i - 1].bytes == bytes)
            memory = remove_block(i - 1).memory;
    pthread_mutex_unlock(&kept.lock.lock);
    return memory;
}

/* Keeps a block in place of the oldest ones. */
static void keep(void *memory, size_t bytes)
{
    slu_fork_lock(&kept.lock);
    while (kept.count == KEPT_BLOCKS || kept.bytes + bytes > KEPT_BYTES) {
        struct block block = remove_block(0);

        (void)munmap(block.memory, block.bytes);
    }
    kept.blocks[kept.count++] = (struct block){memory, bytes};
    kept.bytes += bytes;
    pthread_mutex_unlock(&kept.lock.lock);
}

void slu_zeroed_trim(void)
{
    slu_fork_lock(&kept.lock);
    while (kept.count > 0) {
        struct block block = remove_block(kept.count - 1);

        (void)munmap(block.memory, block.bytes);
    }
    pthread_mutex_unlock(&kept.lock.lock);
}

void *slu_zeroed_alloc(size_t count, size_t size)
{
    void *memory;
    size_t bytes;
    int saved;

    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    if (!is_mapped(bytes))
        return calloc(count, size);
    memory = bytes <= KEPT_BLOCK ? take_kept(bytes) : NULL;
    if (memory != NULL)
        return memset(memory, 0, bytes);
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    /* A kernel without large pages refuses this, and needs none of it. */
    saved = errno;
    (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
    errno = saved;
    return memory;
}

void slu_zeroed_free(void *memory, size_t count, size_t size)
{
    size_t bytes = count * size;

    if (!is_mapped(bytes))
        free(memory);
    else if (memory != NULL && bytes <= KEPT_BLOCK)
        keep(memory, bytes);
    else if (memory != NULL)
        (void)munmap(memory, bytes);
}
