/* SPDX-License-Identifier: MIT */
/*
 * The two queues of a queue pair: posting, completing in order, matching, and
 * the one way into the error state.
 */
#include "transport/soft/core/pool.h"

#include <endian.h>
#include <string.h>

/*
 * Stores inline bytes behind the one SGE that names them. The keys of the caller's SGEs are not
 * checked.
 */
static void copy_inline(struct soft_wqe *wqe, const struct slu_send_wr *wr)
{
    uint8_t *bytes = (uint8_t *)&wqe->sges[1];
    struct sluice_sge one = {(uint64_t)(uintptr_t)bytes, (uint32_t)wqe->length, 0};
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        /* An empty element may have any address, even NULL. */
        if (wr->sges[i].length > 0)
            memcpy(bytes, (const void *)(uintptr_t)wr->sges[i].addr, wr->sges[i].length);
        bytes += wr->sges[i].length;
    }
    wqe->sges[0] = one;
    wqe->sge_count = 1;
    wqe->checked = true;
}

static void copy_list(const struct soft_qp *qp, struct soft_wqe *wqe, const struct slu_send_wr *wr)
{
    if (wr->sge_count == 0)
        return;
    memcpy(wqe->sges, wr->sges, wr->sge_count * sizeof(*wr->sges));
    wqe->guarded = slu_soft_find_places(qp, wqe->sges, wqe->sge_count);
}

/* The engine has checked all of this. A mistake there must not overwrite memory. */
static bool takes_send(const struct soft_qp *qp, const struct slu_send_wr *wr, uint64_t length)
{
    const struct soft_ring *ring = &qp->sends;
    return atomic_load_explicit(&qp->state, memory_order_relaxed) != SLU_QP_PREPARED &&
           ring->posted - ring->done < ring->depth && wr->sge_count <= qp->attr.max_sge &&
           ((wr->flags & SLUICE_INLINE) == 0 || length <= qp->attr.max_inline) &&
           (wr->opcode == SLUICE_OP_SEND ||
            (wr->opcode >= SLUICE_OP_WRITE && wr->opcode < SLU_OPCODES));
}

static int append_send(struct soft_qp *qp, const struct slu_send_wr *wr)
{
    uint64_t length = slu_soft_sum_lengths(wr->sges, wr->sge_count);
    if (!takes_send(qp, wr, length))
        return slu_fail(EINVAL, "the send queue does not take this request");
    struct soft_wqe *wqe = slu_soft_wqe(qp, qp->sends.posted);
    wqe->id = wr->id;
    wqe->length = length;
    wqe->remote_addr = wr->remote_addr;
    wqe->rkey = wr->rkey;
    wqe->immediate = wr->immediate;
    wqe->flags = wr->flags;
    wqe->opcode = wr->opcode;
    wqe->status = SLUICE_STATUS_SUCCESS;
    wqe->state = SOFT_WQE_QUEUED;
    wqe->guarded = false;
    wqe->checked = false;
    wqe->replied = false;
    wqe->sge_count = wr->sge_count;
    if (slu_opcode_is_atomic(wqe->opcode)) {
        wqe->operand[0] = htobe64(wr->operand[0]);
        wqe->operand[1] = htobe64(wr->operand[1]);
    }
    if ((wr->flags & SLUICE_INLINE) != 0)
        copy_inline(wqe, wr);
    else
        copy_list(qp, wqe, wr);
    qp->sends.posted++;
    return 0;
}

int slu_soft_post_send(struct slu_qp *base, struct slu_send_wr *chain, struct slu_send_wr **bad)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    int err = 0;
    if (SLU_LIKELY(qp->swift)) {
        while (chain != NULL && slu_soft_shm_send(qp, chain))
            chain = chain->next;
        if (chain == NULL)
            return 0;
    }
    for (; chain != NULL; chain = chain->next) {
        uint32_t done =
            qp->direct && chain->opcode != SLUICE_OP_SEND ? slu_soft_shm_direct(qp, chain) : 0;
        if (done > 0) {
            while (--done > 0)
                chain = chain->next;
            continue;
        }
        err = append_send(qp, chain);
        if (err != 0) {
            *bad = chain;
            break;
        }
    }
    if (SLU_UNLIKELY(slu_soft_in_error(qp)))
        slu_soft_retire(qp);
    else if (qp->wire != NULL)
        qp->wire->push(qp);
    return err;
}

static inline int append_receive(const struct soft_qp *qp, struct soft_ring *ring,
                                 const struct slu_receive_wr *wr)
{
    if (ring->posted - ring->done == ring->depth || wr->sge_count > qp->attr.max_sge)
        return slu_fail(EINVAL, "the receive queue does not take this request");
    struct soft_receive *receive = slu_soft_receive_at(ring, ring->posted);
    receive->id = wr->id;
    receive->length = slu_soft_sum_lengths(wr->sges, wr->sge_count);
    receive->sge_count = wr->sge_count;
    if (SLU_LIKELY(wr->sge_count == 1))
        receive->sges[0] = wr->sges[0];
    else if (wr->sge_count > 0)
        memcpy(receive->sges, wr->sges, wr->sge_count * sizeof(*wr->sges));
    receive->guarded = slu_soft_find_places(qp, receive->sges, receive->sge_count);
    ring->posted++;
    return 0;
}

int slu_soft_append_receive(const struct soft_qp *qp, struct soft_ring *ring,
                            const struct slu_receive_wr *wr)
{
    return append_receive(qp, ring, wr);
}

static bool is_telling(const struct soft_qp *qp)
{
    return atomic_load_explicit(&qp->state, memory_order_relaxed) == SOFT_QP_TELLING;
}

static void flush_receives(struct soft_qp *qp)
{
    if (qp->pool != NULL) {
        slu_soft_pool_return(qp);
        slu_soft_pool_tell_loss(qp);
    }
    while (qp->receives.done != qp->receives.posted)
        slu_soft_complete_receive(qp, SLUICE_STATUS_WR_FLUSH_ERR, 0, 0, 0);
}

int slu_soft_post_receive(struct slu_qp *base, struct slu_receive_wr *chain,
                          struct slu_receive_wr **bad)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    int err = 0;
    for (; chain != NULL; chain = chain->next) {
        err = append_receive(qp, &qp->receives, chain);
        if (err != 0) {
            *bad = chain;
            break;
        }
    }
    if (SLU_LIKELY(!slu_soft_in_error(qp))) {
        if (qp->wire != NULL)
            qp->wire->receives(qp);
    } else if (!is_telling(qp)) {
        flush_receives(qp);
    }
    return err;
}

/* Returns the status for an unfinished request of a queue pair in error. */
static uint32_t choose_status(struct soft_qp *qp, const struct soft_wqe *wqe)
{
    uint32_t own = wqe->state == SOFT_WQE_DONE ? wqe->status : SLUICE_STATUS_WR_FLUSH_ERR;
    if (qp->caused)
        return SLUICE_STATUS_WR_FLUSH_ERR;
    qp->caused = true;
    /* A status from the request itself is more precise than the cause of the queue pair. */
    if (own == SLUICE_STATUS_WR_FLUSH_ERR || own == SLUICE_STATUS_RETRY_EXC_ERR)
        return qp->cause;
    return own;
}

/* Enters the error state, or the one before it, without completing any request. */
static void enter_error(struct soft_qp *qp, uint32_t state, uint32_t cause, bool hard)
{
    qp->cause = cause;
    if (qp->farewell == SLU_FAREWELL_NONE)
        qp->farewell = SLU_FAREWELL_FAILED;
    atomic_store_explicit(&qp->state, state, memory_order_release);
    slu_soft_self_bounce(qp);
    if (qp->wire != NULL)
        qp->wire->stop(qp, hard);
}

/* Completes the oldest requests that have succeeded, while the queue pair works. */
static inline void retire_successes(struct soft_qp *qp)
{
    while (qp->sends.done != qp->sends.posted) {
        const struct soft_wqe *wqe = slu_soft_wqe(qp, qp->sends.done);
        if (wqe->state != SOFT_WQE_DONE || wqe->status != SLUICE_STATUS_SUCCESS)
            return;
        if ((wqe->flags & SLU_SIGNALED) != 0) {
            struct slu_wc wc = {.id = wqe->id};
            slu_soft_cq_complete(qp, &wc);
        }
        qp->sends.done++;
    }
}

static void retire_sends(struct soft_qp *qp)
{
    if (!slu_soft_in_error(qp))
        retire_successes(qp);
    while (qp->sends.done != qp->sends.posted) {
        const struct soft_wqe *wqe = slu_soft_wqe(qp, qp->sends.done);
        bool done = wqe->state == SOFT_WQE_DONE;
        uint32_t status = SLUICE_STATUS_SUCCESS;
        if (wqe->state == SOFT_WQE_OUT || (!done && !slu_soft_in_error(qp)))
            return;
        if (is_telling(qp) && (!done || wqe->status != SLUICE_STATUS_SUCCESS))
            return;
        if (!done || wqe->status != SLUICE_STATUS_SUCCESS) {
            if (!slu_soft_in_error(qp)) {
                enter_error(qp, SLU_QP_ERROR, wqe->status, false);
                continue;
            }
            status = choose_status(qp, wqe);
        }
        if (status != SLUICE_STATUS_SUCCESS || (wqe->flags & SLU_SIGNALED) != 0) {
            struct slu_wc wc = {.id = wqe->id, .status = status};
            slu_soft_cq_complete(qp, &wc);
        }
        qp->sends.done++;
    }
}

/* Reports a peer that broke the protocol on a receive, if no send reported it. */
static void tell_receive(struct soft_qp *qp)
{
    if (qp->caused || qp->cause != SLUICE_STATUS_BAD_RESP_ERR ||
        qp->receives.done == qp->receives.posted || qp->pool != NULL)
        return;
    qp->caused = true;
    slu_soft_complete_receive(qp, SLUICE_STATUS_BAD_RESP_ERR, 0, 0, 0);
}

/* Completes a waiting probe, with the cause of the error if no request has reported it. */
static void tell_probe(struct soft_qp *qp)
{
    if (!qp->asking)
        return;
    slu_soft_answered(qp, qp->caused ? SLUICE_STATUS_WR_FLUSH_ERR : qp->cause);
    qp->caused = true;
}

/* The request that reports the cause completes before all that are flushed because of it. */
void slu_soft_retire(struct soft_qp *qp)
{
    retire_sends(qp);
    if (!slu_soft_in_error(qp) || is_telling(qp) ||
        (!qp->caused && qp->sends.done != qp->sends.posted))
        return;
    tell_receive(qp);
    tell_probe(qp);
    flush_receives(qp);
}

void slu_soft_qp_fail(struct soft_qp *qp, uint32_t cause, bool hard)
{
    if (!slu_soft_in_error(qp))
        enter_error(qp, SLU_QP_ERROR, cause, hard);
    else if (hard && qp->wire != NULL)
        qp->wire->stop(qp, hard);
    if (hard)
        slu_soft_qp_told(qp);
    slu_soft_retire(qp);
}

void slu_soft_qp_refuse(struct soft_qp *qp)
{
    slu_soft_note_loss(qp, SOFT_LOSS_REFUSED);
    if (!slu_soft_in_error(qp))
        enter_error(qp, SOFT_QP_TELLING, SLUICE_STATUS_WR_FLUSH_ERR, false);
    slu_soft_retire(qp);
}

void slu_soft_qp_told(struct soft_qp *qp)
{
    if (is_telling(qp))
        atomic_store_explicit(&qp->state, SLU_QP_ERROR, memory_order_release);
}

uint32_t slu_soft_match(struct soft_qp *qp, uint64_t length, uint32_t *status)
{
    const struct soft_receive *receive = slu_soft_receive(qp, qp->receives.done);
    *status =
        slu_soft_check_local(qp, receive->sges, receive->sge_count, SLUICE_ACCESS_LOCAL_WRITE);
    if (*status != SLUICE_STATUS_SUCCESS)
        return SLUICE_STATUS_REM_OP_ERR;
    if (length <= receive->length)
        return SLUICE_STATUS_SUCCESS;
    if ((qp->attr.flags & SLUICE_CHANNEL_DROP_LONG) != 0)
        return *status = SLU_STATUS_DROPPED;
    *status = SLUICE_STATUS_LOC_LEN_ERR;
    return SLUICE_STATUS_REM_INV_REQ_ERR;
}

void slu_soft_fail_receive(struct soft_qp *qp, uint32_t status, uint64_t length)
{
    uint64_t room = slu_least(slu_soft_receive(qp, qp->receives.done)->length, UINT32_MAX);
    if (status == SLUICE_STATUS_LOC_LEN_ERR)
        slu_soft_complete_receive(qp, status, length, SLU_WC_LENGTHS, (uint32_t)room);
    else
        slu_soft_complete_receive(qp, status, 0, 0, 0);
}

/*
 * Posts a probe of the engine. A peer of the same context answers when it is connected. A peer at
 * the other end of a stream answers a frame of a type of its own, even while requests wait for a
 * receive or for memory; if its program is outside the library, its helper thread answers.
 */
int slu_soft_qp_probe(struct slu_qp *base, uint64_t id)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    qp->probe_id = id;
    qp->asking = true;
    if (slu_soft_in_error(qp))
        slu_soft_retire(qp);
    else
        qp->wire->ask(qp);
    return 0;
}

void slu_soft_answered(struct soft_qp *qp, uint32_t status)
{
    struct slu_wc wc = {.id = qp->probe_id, .status = status};
    if (!qp->asking)
        return;
    qp->asking = false;
    slu_soft_cq_complete(qp, &wc);
}
