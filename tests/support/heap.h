/* SPDX-License-Identifier: MIT */
/* The size of the heap, which only glibc reports. */
#ifndef HEAP_H
#define HEAP_H

#include <malloc.h>
#include <stddef.h>

/*
 * Returns the bytes that the process has allocated and not freed, without allocations that have a
 * mapping of their own; 0 if the C library does not report them.
 */
static inline size_t heap_bytes(void)
{
#if !defined(__GLIBC__)
    return 0;
#elif __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return (unsigned)mallinfo().uordblks;
#endif
}

/* Returns the same of allocations that have one. */
static inline size_t mapped_heap_bytes(void)
{
#if !defined(__GLIBC__)
    return 0;
#elif __GLIBC_PREREQ(2, 33)
    return mallinfo2().hblkhd;
#else
    return (unsigned)mallinfo().hblkhd;
#endif
}

#endif
