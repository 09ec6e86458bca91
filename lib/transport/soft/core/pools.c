/* SPDX-License-Identifier: MIT */
/* The calls of the transport's table for pools. The caller owns the completion queue. */
#include "transport/soft/core/pool.h"

#include <stdlib.h>
#include <string.h>

int slu_soft_pool_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_pool_attr *attr,
                         struct slu_tpool **made)
{
    struct soft_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL)
        return slu_fail(ENOMEM, "no memory for a pool of receives");
    int err = slu_soft_ring_make(&pool->ring, attr->depth, slu_soft_receive_bytes(attr->max_sge));
    if (err != 0) {
        free(pool);
        return err;
    }
    pool->base = (struct slu_tpool){.pd = pd, .cq = cq};
    pool->last = &pool->first;
    pool->heir.base = (struct slu_qp){.pd = pd, .cq = cq};
    pool->heir.attr.max_sge = attr->max_sge;
    ((struct soft_cq *)cq)->pool = pool;
    *made = &pool->base;
    return 0;
}

void slu_soft_pool_destroy(struct slu_tpool *base)
{
    struct soft_pool *pool = (struct soft_pool *)base;
    ((struct soft_cq *)base->cq)->pool = NULL;
    slu_soft_ring_free(&pool->ring);
    free(pool);
}

int slu_soft_pool_post(struct slu_tpool *base, struct slu_receive_wr *chain,
                       struct slu_receive_wr **bad)
{
    struct soft_pool *pool = (struct soft_pool *)base;
    int err = 0;
    for (; chain != NULL && err == 0; chain = chain->next) {
        err = slu_soft_append_receive(&pool->heir, &pool->ring, chain);
        if (err != 0)
            *bad = chain;
    }
    slu_soft_pool_serve(pool);
    return err;
}

/* Removes the receive with that id. Returns whether it was there. */
static bool remove_receive(struct soft_ring *ring, uint64_t id)
{
    uint32_t at = ring->done;
    while (at != ring->posted && slu_soft_receive_at(ring, at)->id != id)
        at++;
    if (at == ring->posted)
        return false;
    for (ring->posted--; at != ring->posted; at++)
        slu_soft_receive_move(ring, at, ring, at + 1);
    return true;
}

static bool holds(const struct soft_qp *qp, uint64_t id)
{
    uint32_t at = qp->receives.done;
    while (at != qp->receives.posted && slu_soft_receive(qp, at)->id != id)
        at++;
    return at != qp->receives.posted;
}

/* Ends the connection that a receive was given to, which returns it. */
static void end_holder(struct soft_pool *pool, uint64_t id)
{
    struct soft_qp *qp = pool->members;
    while (qp != NULL && !holds(qp, id))
        qp = qp->pool_member.next;
    if (qp == NULL)
        return;
    slu_soft_note_loss(qp, "this side took back a receive that a message of the peer was using");
    slu_soft_qp_fail(qp, SLUICE_STATUS_RETRY_EXC_ERR, true);
}

bool slu_soft_pool_take_back(struct slu_tpool *base, uint64_t id, bool force)
{
    struct soft_pool *pool = (struct soft_pool *)base;
    if (remove_receive(&pool->ring, id))
        return true;
    if (!force)
        return false;
    /* Keep the receive from those that wait until it is removed. */
    pool->serving = true;
    end_holder(pool, id);
    pool->serving = false;
    bool removed = remove_receive(&pool->ring, id);
    slu_soft_pool_serve(pool);
    return removed;
}
