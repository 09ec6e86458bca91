/* SPDX-License-Identifier: MIT */
/* A memory region as a program has it. */
#ifndef SLU_MR_H
#define SLU_MR_H

#include <sluice/mr.h>

#include "device/pd.h"

struct sluice_mr {
    uint32_t magic;
    struct sluice_pd *pd;
    struct slu_tmr *transport;
    struct slu_cached *cached;       /* mr_cache.c's, if it is a cache's */
    struct sluice_mr *next_released; /* release.c's; of these is the rest */
    void (*released)(void *argument);
    void *argument;
};

/* Whether a domain can have a region of that length with these rights; 0 or a negative errno. */
int slu_mr_check(const struct sluice_pd *pd, size_t length, uint32_t access);
/* Whether the program may end it, or it is NULL; 0 or a negative errno. */
int slu_mr_may_end(const struct sluice_mr *mr);
/* Ends it; no posted work names it. */
void slu_mr_end(struct sluice_mr *mr);

#endif
