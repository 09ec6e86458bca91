/* SPDX-License-Identifier: MIT */
/*
 * Zeroed memory. An allocator would give memory that was freed before and clear it, which touches
 * each page; so what takes pages is mapped. The pages are small ones, because a large one would
 * hold the rings of many peers, used or not. Adjacent mappings are one for the kernel, so thousands
 * of rings stay far below vm.max_map_count.
 */
#include "config.h"

#include "base/zeroed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

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

static bool is_mapped(size_t bytes)
{
    return !SANITIZED && bytes >= LEAST_BYTES;
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
    else if (memory != NULL)
        (void)munmap(memory, bytes);
}
