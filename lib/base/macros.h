/* SPDX-License-Identifier: MIT */
/* Attributes for the compiler, and small helpers. */
#ifndef SLU_MACROS_H
#define SLU_MACROS_H

#include <stddef.h>

#define SLU_PRINTF(a, b) __attribute__((format(printf, a, b)))
#define slu_container_of(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define SLU_LIKELY(x) __builtin_expect(!!(x), 1)
#define SLU_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SLU_COLD __attribute__((noinline, cold))

static inline size_t slu_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* For texts: the plural ending of a noun. */
#define SLU_S(count) ((count) == 1 ? "" : "s")

#endif
