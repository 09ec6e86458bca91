/* SPDX-License-Identifier: MIT */
/*
 * Resizes a completion queue whose queue pairs come and go. Only the owner of the queue reads and
 * writes the ring, and no device does, so the owner can replace it by a larger or smaller one.
 * Completions keep their order; none is lost or delivered twice.
 */
#include "transport/soft/core/soft.h"

#include "base/zeroed.h"

/*
 * Shrink only if the ring has more than this many times the entries needed, so that queue pairs
 * that come and go cost no copy.
 */
#define SPARE 4

void slu_soft_cq_free_ring(const struct soft_cq *cq)
{
    slu_zeroed_free(cq->ring, (size_t)cq->mask + 1, sizeof *cq->ring);
}

/* Positions continue to count, at other places of the new ring. */
int slu_soft_cq_set_ring(struct soft_cq *cq, uint32_t size)
{
    struct soft_completion *ring = slu_zeroed_alloc(size, sizeof *ring);
    if (ring == NULL)
        return slu_fail(ENOMEM, "no memory for a completion queue of %u entries", size);
    for (uint32_t i = cq->head; i != cq->tail; i++)
        ring[i & (size - 1)] = cq->ring[i & cq->mask];
    slu_soft_cq_free_ring(cq);
    cq->ring = ring;
    cq->mask = size - 1;
    return 0;
}

int slu_soft_cq_extend(struct slu_cq *base, uint32_t entries)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    uint32_t size = slu_soft_ring_size(base->depth + entries);
    if (size > cq->mask + 1) {
        int err = slu_soft_cq_set_ring(cq, size);
        if (err != 0)
            return err;
    }
    base->depth += entries;
    return 0;
}

/* Keeps the large ring if there is no memory for a small one. */
void slu_soft_cq_reduce(struct slu_cq *base, uint32_t entries)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    uint32_t size;
    base->depth -= entries;
    size = slu_soft_ring_size(base->depth);
    if (cq->mask + 1 > SPARE * size && cq->tail - cq->head <= size)
        slu_soft_cq_set_ring(cq, size);
}
