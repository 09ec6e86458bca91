/* SPDX-License-Identifier: MIT */
/* Memory of small regions that have ended, for the next ones: see spares.c. */
#ifndef SLU_SOFT_SPARES_H
#define SLU_SOFT_SPARES_H

#include <pthread.h>

#include "memory/pages.h"

struct soft_context;
struct soft_mr;

struct soft_spare {
    struct slu_pages pages;
    int memfd;      /* -1: none */
    bool read_only; /* sealed for regions that no peer changes */
};

#define SOFT_MOST_SPARES 8
/* Protected by the lock. */
struct soft_spares {
    pthread_mutex_t lock;
    uint32_t count;
    uint32_t unused;                        /* the least count since the helper's last look */
    bool ticking;                           /* the helper is to look again */
    struct soft_spare of[SOFT_MOST_SPARES]; /* the oldest first */
};

/* Returns whether the memory of such a region may be kept, or may be that of an earlier one. */
bool slu_soft_may_spare(size_t length, uint32_t access, int32_t node);
/* Takes memory for a region, filled with zeros. False: there is none of this size. */
bool slu_soft_spare_take(struct soft_context *context, size_t length, uint32_t access,
                         struct soft_spare *taken);
/* Keeps the memory of a region that no peer can touch any more. False: the caller frees it. */
bool slu_soft_spare_keep(struct soft_context *context, const struct soft_mr *mr);
void slu_soft_spare_free(const struct soft_spare *spare);
/* Frees all. False: there were none. */
bool slu_soft_spares_drop(struct soft_context *context);
/* Frees what no region has needed since the last call. */
void slu_soft_spares_tidy(struct soft_context *context);

#endif
