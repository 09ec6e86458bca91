/* SPDX-License-Identifier: MIT */
/*
 * Gives the receives of a pool to the queue pairs whose messages wait for them. Guarantee: while
 * the program does not poll, a peer uses at most its share.
 */
#include "transport/soft/core/pool.h"

#include <string.h>

static bool is_empty(const struct soft_pool *pool)
{
    return pool->ring.done == pool->ring.posted;
}

static void append_waiting(struct soft_pool *pool, struct soft_qp *qp)
{
    if (qp->pooled)
        return;
    qp->pooled = true;
    qp->pool_next = NULL;
    *pool->last = qp;
    pool->last = &qp->pool_next;
    pool->waiting++;
}

static struct soft_qp *remove_first(struct soft_pool *pool)
{
    struct soft_qp *qp = pool->first;
    pool->first = qp->pool_next;
    if (pool->first == NULL)
        pool->last = &pool->first;
    qp->pooled = false;
    pool->waiting--;
    return qp;
}

static void remove_waiting(struct soft_pool *pool, struct soft_qp *qp)
{
    struct soft_qp **link = &pool->first;
    if (!qp->pooled)
        return;
    while (*link != qp)
        link = &(*link)->pool_next;
    *link = qp->pool_next;
    if (pool->last == &qp->pool_next)
        pool->last = link;
    qp->pooled = false;
    pool->waiting--;
}

static void give(struct soft_pool *pool, struct soft_qp *qp)
{
    slu_soft_receive_move(&qp->receives, qp->receives.posted++, &pool->ring, pool->ring.done++);
}

/* Returns whether the share and the ring of a queue pair allow it one more receive. */
static bool may_have(const struct soft_qp *qp)
{
    uint32_t held = qp->receives.posted - qp->receives.done;
    return held < qp->receives.depth && held + qp->posted < qp->attr.pool_share;
}

bool slu_soft_pool_take(struct soft_qp *qp)
{
    struct soft_pool *pool = qp->pool;
    if (slu_soft_in_error(qp))
        return false;
    if (!pool->serving && !is_empty(pool) && may_have(qp)) {
        give(pool, qp);
        return true;
    }
    pool->stalled = pool->stalled || !is_empty(pool);
    append_waiting(pool, qp);
    return false;
}

void slu_soft_pool_serve(struct soft_pool *pool)
{
    if (pool->serving)
        return;
    pool->serving = true;
    for (uint32_t left = pool->waiting; left > 0 && pool->first != NULL && !is_empty(pool);) {
        struct soft_qp *qp = remove_first(pool);
        left--;
        if (qp->wire == NULL || slu_soft_in_error(qp) || !qp->wire->wants(qp))
            continue;
        if (!may_have(qp)) {
            append_waiting(pool, qp);
            continue;
        }
        give(pool, qp);
        qp->wire->receives(qp);
        if (!slu_soft_in_error(qp) && qp->wire->wants(qp))
            append_waiting(pool, qp);
        left = pool->waiting;
    }
    pool->serving = false;
    pool->stalled = pool->waiting > 0 && !is_empty(pool);
}

void slu_soft_pool_polled(struct soft_cq *cq)
{
    /* What was completed has to be reported first: it may be the reason. */
    if (cq->pool->lost && cq->head == cq->tail) {
        cq->pool->lost = false;
        atomic_store(&cq->base.alerted, true);
    }
    if (!cq->pool->stalled)
        return;
    slu_soft_pool_serve(cq->pool);
    slu_soft_tcp_flush_urgent(cq);
}

void slu_soft_pool_return(struct soft_qp *qp)
{
    struct soft_pool *pool = qp->pool;
    remove_waiting(pool, qp);
    if (!slu_soft_holds_receive(qp))
        return;
    while (slu_soft_holds_receive(qp))
        slu_soft_receive_move(&pool->ring, --pool->ring.done, &qp->receives, --qp->receives.posted);
    slu_soft_pool_serve(pool);
}

void slu_soft_pool_tell_loss(struct soft_qp *qp)
{
    if (qp->told)
        return;
    qp->told = true;
    qp->pool->lost = true;
    slu_soft_cq_wake(slu_soft_cq_of(qp));
}

void slu_soft_pool_join(struct soft_qp *qp)
{
    if (qp->pool != NULL)
        SOFT_INSERT(&qp->pool->members, qp, pool_member);
}

void slu_soft_pool_leave(struct soft_qp *qp)
{
    if (qp->pool == NULL)
        return;
    slu_soft_pool_return(qp);
    SOFT_REMOVE(qp, pool_member);
    qp->pool = NULL;
}

struct soft_qp *slu_soft_pool_heir(const struct soft_cq *cq)
{
    return &cq->pool->heir;
}
