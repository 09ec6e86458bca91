/* SPDX-License-Identifier: MIT */
/*
 * Posting. Every request of the send queue is copied to a ring. From there it is started on the
 * first queue pair, or in stripes on all of them: a striped request when all before it are
 * complete, and those behind it when all its stripes are. Guarantee: the peer sees the same as with
 * one queue pair.
 */
#include "config.h"

#include <string.h>

#include "transport/cut.h"
#include "transport/stripes/inside.h"

/* Stripes end at cache lines, if the memory of the request begins at one. */
#define STRIPE_ALIGN 64
#define SGES_MOST 32

static uint64_t sum_lengths(const struct slu_send_wr *wr)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < wr->sge_count; i++)
        sum += wr->sges[i].length;
    return sum;
}

static uint64_t stripe_bytes(const struct stripes_qp *qp, uint64_t bytes)
{
    uint64_t each = (bytes + qp->count - 1) / qp->count;

    return (each + STRIPE_ALIGN - 1) & ~(uint64_t)(STRIPE_ALIGN - 1);
}

/*
 * Returns the number of stripes of a request; 0: it is not striped. A write with immediate data
 * uses a receive of the peer, which reports its bytes, so it must be sent whole.
 */
static uint32_t count_stripes(const struct stripes_qp *qp, const struct slu_send_wr *wr,
                              uint64_t bytes)
{
    bool can_be = wr->opcode == SLUICE_OP_READ || wr->opcode == SLUICE_OP_WRITE;
    uint64_t each;

    if (!can_be || (wr->flags & (SLUICE_IMMEDIATE | SLUICE_INLINE)) != 0 || bytes < qp->least ||
        bytes == 0)
        return 0;
    each = stripe_bytes(qp, bytes);
    return bytes > each ? (uint32_t)((bytes + each - 1) / each) : 0;
}

/* Stores inline bytes behind the one element that names them. */
static void copy_inline(struct stripes_slot *slot, const struct slu_send_wr *wr)
{
    uint8_t *bytes = (uint8_t *)&slot->sges[1];

    slot->sges[0] =
        (struct sluice_sge){.addr = (uint64_t)(uintptr_t)bytes, .length = (uint32_t)slot->bytes};
    slot->wr.sge_count = 1;
    for (uint32_t i = 0; i < wr->sge_count; i++) {
        /* An empty element may have any address, even NULL. */
        if (wr->sges[i].length > 0)
            memcpy(bytes, (const void *)(uintptr_t)wr->sges[i].addr, wr->sges[i].length);
        bytes += wr->sges[i].length;
    }
}

/*
 * Appends a request to the ring. All requests are signalled to the transport, as their ends are
 * needed to start others.
 */
static void append(struct stripes_qp *qp, const struct slu_send_wr *wr)
{
    struct stripes_ring *ring = &qp->ring;
    struct stripes_slot *slot = stripes_slot(qp, ring->posted);

    slot->wr = *wr;
    slot->wr.next = NULL;
    slot->wr.id = stripes_id(qp, STRIPES_WORK, 0, ring->posted);
    slot->wr.flags |= SLU_SIGNALED;
    slot->wr.sges = slot->sges;
    slot->wr.operand = slot->operand;
    slot->id = wr->id;
    slot->signaled = (wr->flags & SLU_SIGNALED) != 0;
    slot->bytes = sum_lengths(wr);
    slot->stripes = count_stripes(qp, wr, slot->bytes);
    slot->out = 0;
    slot->status = SLUICE_STATUS_SUCCESS;
    slot->vendor = 0;
    if (slu_opcode_is_atomic(wr->opcode))
        memcpy(slot->operand, wr->operand, sizeof slot->operand);
    if ((wr->flags & SLUICE_INLINE) != 0)
        copy_inline(slot, wr);
    else if (wr->sge_count > 0)
        memcpy(slot->sges, wr->sges, wr->sge_count * sizeof *wr->sges);
    ring->posted++;
}

/*
 * Notes that the transport refused the request at position. If the request runs all the same, it
 * ends as flushed, and the engine gets the reason separately. If not, it and those behind it end
 * when the queue pair is destroyed.
 */
static int refuse(struct stripes_qp *qp, uint32_t position, int error)
{
    stripes_slot(qp, position)->status = SLUICE_STATUS_WR_FLUSH_ERR;
    qp->refused = position;
    qp->failed = true;
    return error;
}

/* Starts requests that are not striped, from the next one on, as one chain. */
static int start_plain(struct stripes_qp *qp, bool posting)
{
    struct stripes_ring *ring = &qp->ring;
    struct stripes_slot *first = stripes_slot(qp, ring->started);
    struct stripes_slot *last = first;
    uint32_t begun = ring->started;
    struct slu_send_wr *bad = NULL;
    int error;

    first->out = 1;
    if (!posting)
        first->wr.flags &= ~SLU_BLOCKING;
    while (++ring->started != ring->posted) {
        struct stripes_slot *next = stripes_slot(qp, ring->started);

        if (next->stripes > 0)
            break;
        next->out = 1;
        last->wr.next = &next->wr;
        last = next;
    }
    error = qp->inner->post_send(qp->qps[0], &first->wr, &bad);
    if (SLU_LIKELY(error == 0))
        return 0;
    for (const struct slu_send_wr *wr = &first->wr; bad != NULL && wr != bad; wr = wr->next)
        begun++;
    return refuse(qp, begun, error);
}

/* Starts a striped request. All before it are complete, so a fence need not wait. */
static int start_striped(struct stripes_qp *qp)
{
    uint32_t position = qp->ring.started++;
    struct stripes_slot *slot = stripes_slot(qp, position);
    uint64_t each = stripe_bytes(qp, slot->bytes);

    qp->striping = true;
    for (uint32_t i = 0; i < slot->stripes; i++) {
        uint64_t offset = i * each;
        struct sluice_sge pieces[SGES_MOST];
        struct slu_send_wr wr = slot->wr, *bad = NULL;
        int error;

        wr.id = stripes_id(qp, STRIPES_WORK, i, position);
        wr.flags &= SLU_SIGNALED | SLU_WAITED;
        wr.sges = pieces;
        wr.sge_count = slu_cut_sges(slot->sges, slot->wr.sge_count, offset,
                                    slu_least(each, slot->bytes - offset), pieces);
        wr.remote_addr += offset;
        slot->out |= UINT32_C(1) << i;
        error = qp->inner->post_send(qp->qps[i], &wr, &bad);
        if (SLU_UNLIKELY(error < 0))
            return refuse(qp, position, error);
    }
    return 0;
}

/*
 * Starts requests as far as the order permits. If posting is false, the caller does not wait for
 * these requests, and SLU_BLOCKING is cleared.
 */
static int start(struct stripes_qp *qp, bool posting)
{
    struct stripes_ring *ring = &qp->ring;
    int error = 0;

    while (error == 0 && !qp->failed && !qp->striping && ring->started != ring->posted) {
        if (stripes_slot(qp, ring->started)->stripes == 0)
            error = start_plain(qp, posting);
        else if (ring->started == ring->done)
            error = start_striped(qp);
        else
            break;
    }
    return error;
}

/* Starts held requests. Their posts have already succeeded, so a failure here becomes an alert. */
void slu_stripes_go_on(struct stripes_qp *qp)
{
    int error = start(qp, false);

    if (SLU_UNLIKELY(error < 0))
        slu_stripes_alert(qp, qp->refused, SLUICE_STATUS_GENERAL_ERR, (uint32_t)-error,
                          sluice_last_error());
}

static int fail_full(const char *queue, uint32_t size)
{
    return slu_fail(ENOMEM, "the %s queue of %u requests is full", queue, size);
}

int slu_stripes_post_send(struct slu_qp *base, struct slu_send_wr *chain, struct slu_send_wr **bad)
{
    struct stripes_qp *qp = stripes_qp_of(base);
    struct stripes_ring *ring = &qp->ring;
    uint32_t first = ring->posted;
    int error = 0;

    *bad = chain;
    for (const struct slu_send_wr *wr = chain; wr != NULL; wr = wr->next) {
        if (SLU_UNLIKELY(ring->posted - ring->done > ring->mask)) {
            ring->posted = first;
            return fail_full("send", ring->mask + 1);
        }
        append(qp, wr);
    }
    if (SLU_UNLIKELY(qp->failed))
        slu_stripes_flush(qp);
    else
        error = start(qp, true);
    /* Only a request of this chain can have failed: none held before can start until a poll. */
    if (SLU_UNLIKELY(error < 0))
        for (; first != qp->refused; first++)
            *bad = (*bad)->next;
    return error;
}

/* Receives posted at a time, as in the transports. */
#define BATCH 16

static int post_receives(struct stripes_qp *qp, struct slu_receive_wr **chain)
{
    struct stripes_receives *receives = &qp->receives;
    struct slu_receive_wr batch[BATCH], *bad = batch;
    struct slu_receive_wr *from = *chain;
    uint32_t count = 0;
    int error;

    for (; from != NULL && count < BATCH; from = from->next) {
        uint32_t at = receives->posted + count;

        if (SLU_UNLIKELY(at - receives->done > receives->mask))
            return fail_full("receive", receives->mask + 1);
        receives->ids[at & receives->mask] = from->id;
        batch[count] = *from;
        batch[count].id = stripes_id(qp, STRIPES_RECEIVE, 0, at);
        batch[count].next = &batch[count + 1];
        count++;
    }
    batch[count - 1].next = NULL;
    error = qp->inner->post_receive(qp->qps[0], batch, &bad);
    /* Refused receives may run all the same, so they are counted as posted. */
    receives->posted += count;
    receives->started = receives->posted;
    if (SLU_UNLIKELY(error < 0))
        count = (uint32_t)(bad - batch);
    for (; count > 0; count--)
        *chain = (*chain)->next;
    return error;
}

/* Keeps receives after a failure, to flush them. Receives that the transport has return first. */
static int hold_receives(struct stripes_qp *qp, struct slu_receive_wr **chain)
{
    struct stripes_receives *receives = &qp->receives;

    for (; *chain != NULL; *chain = (*chain)->next) {
        if (receives->posted - receives->done > receives->mask)
            return fail_full("receive", receives->mask + 1);
        receives->ids[receives->posted++ & receives->mask] = (*chain)->id;
    }
    slu_stripes_flush(qp);
    return 0;
}

int slu_stripes_post_receive(struct slu_qp *base, struct slu_receive_wr *chain,
                             struct slu_receive_wr **bad)
{
    int error = 0;

    while (chain != NULL && error == 0)
        error = SLU_UNLIKELY(stripes_qp_of(base)->stopped)
                    ? hold_receives(stripes_qp_of(base), &chain)
                    : post_receives(stripes_qp_of(base), &chain);
    *bad = chain;
    return error;
}
