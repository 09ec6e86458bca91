/* SPDX-License-Identifier: MIT */
/*
 * Room in a completion queue whose queue pairs come and go. The ring is memory that
 * nobody but the owner of the queue looks at, so the owner may exchange it for a
 * larger or a smaller one: what is in it keeps its order, and is neither lost nor
 * seen twice, as no device writes into it.
 */
#include "transport/soft/core/soft.h"

#include <stdlib.h>

/* What may stay unused for one entry that is used: queue pairs that come and go cost no copy. */
#define SPARE 4

static uint32_t size_for(uint32_t depth)
{
    uint32_t size = 1;
    while (size < depth)
        size *= 2;
    return size;
}

/* Positions count on as before, and are at other places of the ring. */
static int exchange_ring(struct soft_cq *cq, uint32_t size)
{
    struct soft_completion *ring = calloc(size, sizeof *ring);
    if (ring == NULL)
        return slu_fail(ENOMEM, "no memory for a completion queue of %u entries", size);
    for (uint32_t i = cq->head; i != cq->tail; i++)
        ring[i & (size - 1)] = cq->ring[i & cq->mask];
    free(cq->ring);
    cq->ring = ring;
    cq->mask = size - 1;
    return 0;
}

int slu_soft_cq_extend(struct slu_cq *base, uint32_t entries)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    uint32_t size = size_for(base->depth + entries);
    if (size > cq->mask + 1) {
        int err = exchange_ring(cq, size);
        if (err != 0)
            return err;
    }
    base->depth += entries;
    return 0;
}

/* It goes on with the large one if there is no memory for a small one. */
void slu_soft_cq_reduce(struct slu_cq *base, uint32_t entries)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    uint32_t size;
    base->depth -= entries;
    size = size_for(base->depth);
    if (cq->mask + 1 > SPARE * size && cq->tail - cq->head <= size)
        exchange_ring(cq, size);
}
