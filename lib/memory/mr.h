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
    struct slu_cached *cached; /* mr_cache.c's, if it is a cache's */
};

/* Whether a domain can have a region of that length with these rights; 0 or a negative errno. */
int slu_mr_check(const struct sluice_pd *pd, size_t length, uint32_t access);

#endif
