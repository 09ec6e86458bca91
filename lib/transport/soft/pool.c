/* SPDX-License-Identifier: MIT */
/*
 * Small memory of regions that have ended, kept for regions to come: to make a memfd and map
 * it takes many times as long as to fill a few pages with zeros.
 *
 * Guarantee: no peer was ever given the descriptor of memory that is here, so none can touch
 * the region that gets it next. A context keeps few of them, for each is a descriptor, too.
 */
#include "transport/soft/regions.h"

#include <stdlib.h>
#include <string.h>

void slu_soft_memory_end(const struct soft_memory *memory)
{
    /* Closed first: the pages go with what comes last, which takes time, and no lock here. */
    if (memory->fd >= 0)
        slu_fd_close(memory->fd);
    slu_pages_unmap(&memory->pages);
}

/* The caller has the lock. */
static struct soft_memory remove_kept(struct soft_pool *pool, uint32_t index)
{
    struct soft_memory removed = pool->kept[index];
    pool->count--;
    memmove(&pool->kept[index], &pool->kept[index + 1],
            (pool->count - index) * sizeof(pool->kept[0]));
    return removed;
}

bool slu_soft_pool_take(struct soft_pool *pool, size_t mapped, bool changes,
                        struct soft_memory *memory)
{
    bool found = false;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = pool->count; i-- > 0 && !found;) {
        found = pool->kept[i].pages.mapped == mapped && pool->kept[i].changes == changes;
        if (found)
            *memory = remove_kept(pool, i);
    }
    pthread_mutex_unlock(&pool->lock);
    /* All of its pages, since a peer that maps a region has the whole of the last one. */
    if (found)
        memset(memory->pages.addr, 0, mapped);
    return found;
}

void slu_soft_pool_put(struct soft_pool *pool, const struct soft_memory *memory)
{
    struct soft_memory oldest = {.pages.map = NULL};
    pthread_mutex_lock(&pool->lock);
    if (pool->count == SOFT_POOL_MOST)
        oldest = remove_kept(pool, 0);
    pool->kept[pool->count++] = *memory;
    pthread_mutex_unlock(&pool->lock);
    if (oldest.pages.map != NULL)
        slu_soft_memory_end(&oldest);
}

bool slu_soft_pool_drain(struct soft_pool *pool)
{
    struct soft_pool drained = {.count = 0};
    pthread_mutex_lock(&pool->lock);
    drained.count = pool->count;
    memcpy(drained.kept, pool->kept, sizeof(drained.kept));
    pool->count = 0;
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < drained.count; i++)
        slu_soft_memory_end(&drained.kept[i]);
    return drained.count > 0;
}
