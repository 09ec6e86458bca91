/* SPDX-License-Identifier: MIT */
/* Pages that large blocks of the heaps of many processes share. */
#ifndef SIM_SHARE_H
#define SIM_SHARE_H

#include <stdbool.h>
#include <stddef.h>

/* Tells whether a block of this size may share pages. It then begins with a page. */
bool sim_may_share(size_t bytes);
/* Shares what has become equal, once in many allocations. */
void sim_share_seldom(void);
void sim_share_add(char *memory, size_t bytes);
/* The block is freed, and has pages of its own, with any bytes. */
void sim_share_remove(char *memory, size_t bytes);
/* A run has ended. Returns whether the heap, which is this, has no bytes of it any more. */
bool sim_share_end(char *heap, size_t bytes);

#endif
