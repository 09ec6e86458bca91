/* SPDX-License-Identifier: MIT */
/* Memory of regions that the library allocates, and what is kept of it for later ones. */
#ifndef SLU_SOFT_POOL_H
#define SLU_SOFT_POOL_H

#include <pthread.h>

#include "memory/pages.h"

/* Memory of a memfd, all of which is there. */
struct soft_memory {
    struct slu_pages pages;
    int fd;
    bool sealed;  /* as a peer that maps it needs it, and we do if it does */
    bool pooled;  /* it is for a region to come, unless a peer was given it */
    bool changes; /* peers may change it, so it is not sealed against that */
};

/* Small memory of regions that have ended; see pool.c. */
#define SOFT_POOL_MOST 4
struct soft_pool {
    pthread_mutex_t lock;
    uint32_t count;
    struct soft_memory kept[SOFT_POOL_MOST]; /* the oldest first */
};

/* Any thread may call these. */
/* Takes memory of so many bytes, zeroed, of which peers may change something, or nothing. */
bool slu_soft_pool_take(struct soft_pool *pool, size_t mapped, bool changes,
                        struct soft_memory *memory);
/* Owns memory from now on that no peer was given; perhaps the oldest goes in its place. */
void slu_soft_pool_put(struct soft_pool *pool, const struct soft_memory *memory);
/* Gives all back to the kernel. False: there was none. */
bool slu_soft_pool_drain(struct soft_pool *pool);
/* Gives memory back to the kernel. */
void slu_soft_memory_end(const struct soft_memory *memory);

#endif
