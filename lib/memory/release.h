/* SPDX-License-Identifier: MIT */
/* Regions that end when no posted work names them any more. */
#ifndef SLU_RELEASE_H
#define SLU_RELEASE_H

#include <stdatomic.h>
#include <stdbool.h>

/* How many there are, in the process. */
extern atomic_uint slu_releases;

static inline bool slu_has_releases(void)
{
    return atomic_load_explicit(&slu_releases, memory_order_relaxed) != 0;
}

/*
 * Ends those that nothing names, and tells the program; by any thread, but without a lock of
 * the library's, and outside of the turn of a transport.
 */
void slu_releases_look(void);

#endif
