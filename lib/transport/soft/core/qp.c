/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs: making, naming, connecting and ending them. A queue pair has a reference count:
 * messages on their way to or from it keep its memory after its end.
 */
#include "transport/soft/core/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/zeroed.h"

/* Receives of a pool that a queue pair can have at a time: for long messages on their way. */
#define POOLED_MOST 8

int slu_soft_ring_make(struct soft_ring *ring, uint32_t depth, size_t stride)
{
    uint32_t size = slu_soft_ring_size(depth);
    ring->depth = depth;
    ring->mask = size - 1;
    ring->stride = (uint32_t)((stride + 7) & ~(size_t)7);
    ring->entries = slu_zeroed_alloc(size, ring->stride);
    if (ring->entries == NULL)
        return slu_fail(ENOMEM, "no memory for a queue of %u requests", depth);
    return 0;
}

void slu_soft_ring_free(const struct soft_ring *ring)
{
    slu_zeroed_free(ring->entries, (size_t)ring->mask + 1, ring->stride);
}

size_t slu_soft_receive_bytes(uint32_t max_sge)
{
    return sizeof(struct soft_receive) + max_sge * sizeof(struct sluice_sge);
}

static int make_rings(struct soft_qp *qp, const struct slu_qp_attr *attr)
{
    size_t sges = attr->max_sge * sizeof(struct sluice_sge);
    size_t bytes = sizeof(struct sluice_sge) + attr->max_inline;
    uint32_t pooled = attr->pool_share < POOLED_MOST ? attr->pool_share : POOLED_MOST;
    int err = slu_soft_ring_make(&qp->sends, attr->send_depth,
                                 sizeof(struct soft_wqe) + (sges > bytes ? sges : bytes));
    if (err != 0)
        return err;
    err = slu_soft_ring_make(&qp->receives, qp->pool != NULL ? pooled : attr->receive_depth,
                             slu_soft_receive_bytes(attr->max_sge));
    if (err != 0)
        slu_soft_ring_free(&qp->sends);
    return err;
}

static int enlist(struct soft_qp *qp)
{
    struct soft_context *context = slu_soft_context(qp);
    uint32_t slot;
    pthread_mutex_lock(&context->lock);
    int err = slu_soft_slot_take(&context->qps, qp, &slot);
    /* From here on the helper can find it. */
    if (err == 0)
        qp->qpn = slot + 1;
    pthread_mutex_unlock(&context->lock);
    return err == 0 ? 0 : slu_fail(ENOMEM, "no memory for a queue pair");
}

/*
 * Gives the queue pair its generation and nonce. A further queue pair of a peer shares those of
 * the first; only its number differs, which peers prove too.
 */
static int name(struct soft_qp *qp, struct soft_context *context)
{
    const struct soft_qp *first = (const struct soft_qp *)qp->attr.first;
    if (first == NULL) {
        qp->generation = 1 + atomic_fetch_add(&context->generation, 1);
        return slu_random(qp->nonce, sizeof(qp->nonce));
    }
    qp->generation = first->generation;
    memcpy(qp->nonce, first->nonce, sizeof(qp->nonce));
    return 0;
}

int slu_soft_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                       struct slu_qp **made)
{
    struct soft_context *context = (struct soft_context *)pd->context;
    int err = slu_soft_helper_start(context);
    if (err != 0)
        return err;
    struct soft_qp *qp = calloc(1, sizeof(*qp));
    if (qp == NULL)
        return slu_fail(ENOMEM, "no memory for a queue pair");
    qp->base.pd = pd;
    qp->base.cq = cq;
    qp->attr = *attr;
    qp->pool = (struct soft_pool *)attr->pool;
    qp->cause = SLUICE_STATUS_WR_FLUSH_ERR;
    qp->parked_end = &qp->parked;
    atomic_init(&qp->references, 1);
    atomic_init(&qp->state, SLU_QP_PREPARED);
    err = name(qp, context);
    if (err == 0)
        err = make_rings(qp, attr);
    if (err != 0)
        goto free_struct;
    err = enlist(qp);
    if (err != 0)
        goto free_rings;
    slu_soft_cq_hold((struct soft_cq *)cq);
    slu_soft_pool_join(qp);
    *made = &qp->base;
    return 0;

free_rings:
    slu_soft_ring_free(&qp->receives);
    slu_soft_ring_free(&qp->sends);
free_struct:
    free(qp);
    return err;
}

void slu_soft_qp_hold(struct soft_qp *qp)
{
    atomic_fetch_add_explicit(&qp->references, 1, memory_order_relaxed);
}

void slu_soft_qp_release(struct soft_qp *qp)
{
    if (atomic_fetch_sub_explicit(&qp->references, 1, memory_order_acq_rel) != 1)
        return;
    slu_soft_cq_release(slu_soft_cq_of(qp));
    slu_soft_ring_free(&qp->receives);
    slu_soft_ring_free(&qp->sends);
    free(qp);
}

struct soft_qp *slu_soft_qp_find(struct soft_context *context, uint32_t qpn)
{
    struct soft_qp *qp = NULL;
    pthread_mutex_lock(&context->lock);
    if (qpn > 0 && qpn <= context->qps.size)
        qp = context->qps.items[qpn - 1];
    if (qp != NULL)
        slu_soft_qp_hold(qp);
    pthread_mutex_unlock(&context->lock);
    return qp;
}

void slu_soft_qp_endpoint(const struct slu_qp *base, struct slu_endpoint *endpoint)
{
    const struct soft_qp *qp = (const struct soft_qp *)base;
    const struct soft_context *context = slu_soft_context(qp);
    const struct soft_qp *first = (const struct soft_qp *)qp->attr.first;
    endpoint->qpn = qp->qpn;
    endpoint->psn = 0;
    endpoint->mtu = 4096;
    endpoint->initiator_depth = qp->attr.read_depth;
    endpoint->responder_depth = qp->attr.read_depth;
    endpoint->max_message = qp->attr.max_message;
    endpoint->soft.who = context->who;
    endpoint->soft.everywhere = context->listen.family == 0;
    endpoint->soft.early = SLU_EARLY_MOST;
    endpoint->soft.knows = SLU_KNOWS_FAREWELL |
                           ((first != NULL ? first : qp)->pool != NULL ? SLU_KNOWS_WANT : 0) |
                           (context->shares ? SLU_KNOWS_SHARING : 0);
    endpoint->soft.context = context->identity;
    endpoint->soft.generation = qp->generation;
    memcpy(endpoint->soft.nonce, qp->nonce, sizeof(qp->nonce));
    memcpy(endpoint->soft.addresses, context->addresses, sizeof(context->addresses));
}

int slu_soft_qp_connect(struct slu_qp *base, const struct slu_endpoint *remote)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    const struct soft_context *context = slu_soft_context(qp);
    uint32_t reads = remote->responder_depth > 0 ? remote->responder_depth : 1;
    uint32_t peer_reads = remote->initiator_depth > 0 ? remote->initiator_depth : 1;
    bool same = remote->soft.context == context->identity &&
                memcmp(remote->soft.who.host, context->who.host, sizeof(context->who.host)) == 0;
    if (qp->wire != NULL)
        return slu_fail(EINVAL, "the queue pair is connected already");
    qp->max_reads = reads < qp->attr.read_depth ? reads : qp->attr.read_depth;
    qp->peer_max_reads = peer_reads < qp->attr.read_depth ? peer_reads : qp->attr.read_depth;
    qp->peer_qpn = remote->qpn;
    qp->wire = same ? &slu_soft_wire_self : &slu_soft_wire_tcp;
    qp->level = same ? SLUICE_LEVEL_MEMORY : SLUICE_LEVEL_TCP;
    if (!slu_soft_in_error(qp)) {
        memcpy(qp->peer_nonce, remote->soft.nonce, sizeof(qp->peer_nonce));
        atomic_store_explicit(&qp->state, SLU_QP_CONNECTED, memory_order_release);
    }
    if (same)
        slu_soft_meet_end(qp);
    int err = qp->wire->start(qp, remote);
    if (err != 0)
        slu_soft_qp_fail(qp, SLUICE_STATUS_WR_FLUSH_ERR, true);
    return err;
}

int slu_soft_qp_state(const struct slu_qp *qp)
{
    uint32_t state =
        atomic_load_explicit(&((const struct soft_qp *)qp)->state, memory_order_acquire);
    return state == SOFT_QP_TELLING ? SLU_QP_CONNECTED : (int)state;
}

void slu_soft_qp_error(struct slu_qp *base)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    /* From now on requests are flushed because the caller asked for it, not because of an error. */
    if (!slu_soft_in_error(qp))
        qp->caused = true;
    slu_soft_qp_fail(qp, SLUICE_STATUS_WR_FLUSH_ERR, true);
    slu_soft_cq_wake(slu_soft_cq_of(qp));
}

void slu_soft_qp_destroy(struct slu_qp *base)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    struct soft_context *context = slu_soft_context(qp);
    pthread_mutex_lock(&context->lock);
    slu_soft_slot_free(&context->qps, qp->qpn - 1);
    pthread_mutex_unlock(&context->lock);
    slu_soft_meet_end(qp);
    qp->caused = true;
    slu_soft_qp_fail(qp, SLUICE_STATUS_WR_FLUSH_ERR, true);
    if (qp->wire != NULL)
        qp->wire->destroy(qp);
    slu_soft_pool_leave(qp);
    slu_soft_cq_forget(qp);
    slu_soft_qp_release(qp);
}
