/* SPDX-License-Identifier: MIT */
/* Pages that large blocks of the heaps of many processes share. */
#ifndef SIM_SHARE_H
#define SIM_SHARE_H

#include <stdbool.h>
#include <stddef.h>

struct sim_process;
struct sim_large;

/* Tells whether a block of this size may share pages. It then begins with a page. */
bool sim_may_share(size_t bytes);
/* Shares what has become equal, once in many allocations. */
void sim_share_seldom(void);
struct sim_large *sim_share_add(struct sim_process *process, char *memory, size_t bytes);
/* The process has received bytes, perhaps into a block that may share pages. */
void sim_share_received(const struct sim_process *process, const void *at, size_t bytes);
/* The block is freed, and has pages of its own, with any bytes. */
void sim_share_remove(struct sim_large *large);
/* A run has ended. Returns whether the heap, which is this, has no bytes of it any more. */
bool sim_share_end(char *heap, size_t bytes);

#endif
