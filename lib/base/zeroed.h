/* SPDX-License-Identifier: MIT */
/*
 * Memory of zeros for rings and tables. The kernel gives a page of it when it is first touched, so
 * a large ring costs what is used of it, whatever its depth. At most 512 KiB of what was freed are
 * kept for the next allocations, until a context closes.
 */
#ifndef SLU_ZEROED_H
#define SLU_ZEROED_H

#include <stddef.h>

/* Allocates zeroed memory for an array. Returns NULL if there is none. */
void *slu_zeroed_alloc(size_t count, size_t size);
/* Frees memory of slu_zeroed_alloc(), which had the same arguments. NULL is ignored. */
void slu_zeroed_free(void *memory, size_t count, size_t size);
/* Gives back what is kept. */
void slu_zeroed_trim(void);

#endif
