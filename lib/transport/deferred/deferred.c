/* SPDX-License-Identifier: MIT */
/*
 * The engine's queue pairs, and the requests that they keep. Guarantee: each request that was taken
 * is posted to the transport in its order once the connection is ready, or completes as flushed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/deferred/inside.h"

/* Entries of the completion queue for one peer: its requests, and a probe. */
uint32_t slu_deferred_entries(const struct slu_deferred *deferred)
{
    return deferred->attr->send_depth + deferred->attr->receive_depth + 1;
}

void slu_deferred_enliven(struct slu_deferred *deferred, struct deferred_slot *slot)
{
    if (slot->state == SLU_DEFERRED_NONE)
        deferred->live[deferred->live_count++] = (uint16_t)(slot - deferred->slots);
}

static void remove_live(struct slu_deferred *deferred, const struct deferred_slot *slot)
{
    uint32_t i = 0;

    if (slot->state == SLU_DEFERRED_NONE)
        return;
    while (deferred->live[i] != slot - deferred->slots)
        i++;
    deferred->live[i] = deferred->live[--deferred->live_count];
}

void slu_deferred_end(struct slu_deferred *deferred, struct deferred_slot *slot)
{
    remove_live(deferred, slot);
    if (slot->real != NULL) {
        deferred->inner->qp_destroy(slot->real);
        deferred->reals--;
        deferred->made -= slot->state == SLU_DEFERRED_MADE;
        deferred->retiring -=
            slot->state == SLU_DEFERRED_RETIRING && (slot->flags & DEFERRED_STALLED) == 0;
    }
    if ((slot->flags & DEFERRED_EXTENDED) != 0)
        deferred->inner->cq_reduce(deferred->cq, slu_deferred_entries(deferred));
    slot->real = NULL;
    slot->flags &= DEFERRED_NO_ROOM | DEFERRED_TOLD;
    slot->promises = 0;
    slot->serial++;
    slot->state = SLU_DEFERRED_NONE;
}

int slu_deferred_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                           struct slu_qp **qp)
{
    struct deferred_qp *made = calloc(1, sizeof *made);

    (void)attr;
    if (made == NULL)
        return slu_fail(ENOMEM, "no memory for a queue pair");
    made->base = (struct slu_qp){.pd = pd, .cq = cq};
    made->owner = cq->deferred;
    made->last = &made->first;
    *qp = &made->base;
    return 0;
}

static void keep(struct deferred_qp *qp, struct deferred_work *work)
{
    *qp->last = work;
    qp->last = &work->next;
}

static struct deferred_work *take_kept(struct deferred_qp *qp)
{
    struct deferred_work *work = qp->first;

    if (work == NULL)
        return NULL;
    qp->first = work->next;
    if (qp->first == NULL)
        qp->last = &qp->first;
    return work;
}

static void delist(struct deferred_qp *qp)
{
    struct deferred_qp **at = &qp->owner->flushing;

    if (!qp->flushing)
        return;
    while (*at != qp)
        at = &(*at)->next;
    *at = qp->next;
    qp->flushing = false;
}

/* Schedules what is kept to be flushed. */
static void enlist(struct deferred_qp *qp)
{
    if (qp->flushing || (qp->first == NULL && !qp->probing))
        return;
    qp->flushing = true;
    qp->next = qp->owner->flushing;
    qp->owner->flushing = qp;
}

void slu_deferred_qp_destroy(struct slu_qp *base)
{
    struct deferred_qp *qp = deferred_qp_of(base);
    struct deferred_slot *slot = qp->attached ? deferred_slot_of(qp) : NULL;
    struct deferred_work *work;

    delist(qp);
    qp->owner->alerts -= qp->alerts;
    /* The connection of a failed queue pair ends with it, even while it is being made. */
    if (slot != NULL && (qp->real != NULL || qp->failed))
        slu_deferred_end(qp->owner, slot);
    if (slot != NULL)
        slot->qp = NULL;
    while ((work = take_kept(qp)) != NULL)
        free(work);
    free(qp);
}

/* Copies the elements of a request, or the bytes of an inline one, which are the caller's. */
static struct deferred_work *copy(const struct sluice_sge *sges, uint32_t count, bool whole)
{
    size_t bytes = 0, at = 0;
    struct deferred_work *work;

    for (uint32_t i = 0; whole && i < count; i++)
        bytes += sges[i].length;
    work = calloc(1, sizeof *work + (whole ? 1 : count) * sizeof *sges + bytes);
    if (work == NULL)
        return NULL;
    if (!whole) {
        if (count > 0)
            memcpy(work->sges, sges, count * sizeof *sges);
        return work;
    }
    work->sges[0] =
        (struct sluice_sge){.addr = (uintptr_t)&work->sges[1], .length = (uint32_t)bytes};
    for (uint32_t i = 0; i < count; i++) {
        memcpy((uint8_t *)&work->sges[1] + at, (const void *)(uintptr_t)sges[i].addr,
               sges[i].length);
        at += sges[i].length;
    }
    return work;
}

static struct deferred_work *copy_send(const struct slu_send_wr *wr)
{
    bool whole = (wr->flags & SLUICE_INLINE) != 0;
    struct deferred_work *work = copy(wr->sges, wr->sge_count, whole);

    if (work == NULL)
        return NULL;
    work->send = *wr;
    work->send.next = NULL;
    work->send.sges = work->sges;
    if (whole)
        work->send.sge_count = 1;
    if (slu_opcode_is_atomic(wr->opcode)) {
        memcpy(work->operand, wr->operand, sizeof work->operand);
        work->send.operand = work->operand;
    }
    return work;
}

/* Queues end in order. An end without a signal is not noticed, so the last request has one. */
static void note_sends(struct deferred_qp *qp, const struct slu_send_wr *chain)
{
    qp->used = ++qp->owner->uses;
    while (chain->next != NULL)
        chain = chain->next;
    qp->last_send = chain->id;
}

static void note_receives(struct deferred_qp *qp, const struct slu_receive_wr *chain)
{
    qp->used = ++qp->owner->uses;
    while (chain->next != NULL)
        chain = chain->next;
    qp->last_receive = chain->id;
}

int slu_deferred_post_send(struct slu_qp *base, struct slu_send_wr *chain, struct slu_send_wr **bad)
{
    struct deferred_qp *qp = deferred_qp_of(base);

    note_sends(qp, chain);
    if (SLU_LIKELY(qp->real != NULL))
        return qp->owner->inner->post_send(qp->real, chain, bad);
    for (struct slu_send_wr *wr = chain; wr != NULL; wr = wr->next) {
        struct deferred_work *work = copy_send(wr);

        if (work == NULL) {
            *bad = wr;
            return slu_fail(ENOMEM, "no memory for a request to a peer that is not connected yet");
        }
        keep(qp, work);
    }
    slu_deferred_want(base);
    return 0;
}

int slu_deferred_post_receive(struct slu_qp *base, struct slu_receive_wr *chain,
                              struct slu_receive_wr **bad)
{
    struct deferred_qp *qp = deferred_qp_of(base);

    note_receives(qp, chain);
    if (SLU_LIKELY(qp->real != NULL))
        return qp->owner->inner->post_receive(qp->real, chain, bad);
    for (struct slu_receive_wr *wr = chain; wr != NULL; wr = wr->next) {
        struct deferred_work *work = copy(wr->sges, wr->sge_count, false);

        if (work == NULL) {
            *bad = wr;
            return slu_fail(ENOMEM,
                            "no memory for a receive from a peer that is not connected yet");
        }
        work->receives = true;
        work->receive = *wr;
        work->receive.next = NULL;
        work->receive.sges = work->sges;
        keep(qp, work);
    }
    /* Under a limit, a connection that only the other side may use has to wait for that. */
    if (qp->owner->most == 0)
        slu_deferred_want(base);
    return 0;
}

int slu_deferred_qp_probe(struct slu_qp *base, uint64_t id)
{
    struct deferred_qp *qp = deferred_qp_of(base);

    qp->last_probe = id;
    if (qp->real != NULL)
        return qp->owner->inner->qp_probe(qp->real, id);
    qp->probing = true;
    qp->probe_id = id;
    slu_deferred_want(base);
    return 0;
}

void slu_deferred_want(struct slu_qp *base)
{
    struct deferred_qp *qp = deferred_qp_of(base);
    struct deferred_slot *slot = deferred_slot_of(qp);

    /* A connection that one side gave up while it was made is connected still, and is resumed. */
    if (qp->failed || (slot->flags & DEFERRED_ASKED) != 0 ||
        (slot->state != SLU_DEFERRED_NONE && slot->state != SLU_DEFERRED_CONNECTED))
        return;
    slot->flags |= DEFERRED_ASKED;
    slu_deferred_enliven(qp->owner, slot);
    if (slot->state == SLU_DEFERRED_NONE)
        slot->state = SLU_DEFERRED_WANTED;
    qp->owner->user->wanted(qp->owner->user, base->peer);
}

void slu_deferred_want_kept(struct deferred_slot *slot)
{
    const struct deferred_work *work = slot->qp != NULL ? slot->qp->first : NULL;

    while (work != NULL && work->receives)
        work = work->next;
    if (work != NULL || (slot->qp != NULL && slot->qp->probing))
        slu_deferred_want(&slot->qp->base);
}

struct slu_qp *slu_deferred_real(struct slu_qp *base)
{
    return deferred_qp_of(base)->real;
}

void slu_deferred_qp_error(struct slu_qp *base)
{
    struct deferred_qp *qp = deferred_qp_of(base);

    qp->failed = true;
    if (qp->real != NULL)
        qp->owner->inner->qp_error(qp->real);
    enlist(qp);
}

void slu_deferred_raise(struct deferred_qp *qp, uint32_t status, const char *reason)
{
    if (qp->failed)
        return;
    qp->alert = (struct slu_alert){.qp = &qp->base, .status = status};
    snprintf(qp->alert.reason, sizeof qp->alert.reason, "%s", reason);
    qp->owner->alerts += !qp->alerts;
    qp->alerts = true;
    atomic_store(&qp->base.cq->alerted, true);
    slu_deferred_qp_error(&qp->base);
}

/* Posts a kept request. Returns 0, or the error of the transport. */
static int post(const struct slu_deferred *deferred, struct slu_qp *real,
                struct deferred_work *work)
{
    struct slu_receive_wr *bad_receive;
    struct slu_send_wr *bad_send;

    return work->receives ? deferred->inner->post_receive(real, &work->receive, &bad_receive)
                          : deferred->inner->post_send(real, &work->send, &bad_send);
}

/*
 * A request that the driver refuses stays kept, and is flushed with those behind it, after the
 * requests before it, which the failure of the connection completes.
 */
void slu_deferred_open(struct deferred_qp *qp, struct slu_qp *real)
{
    int error = 0;

    if (qp->failed)
        return;
    qp->real = real;
    while (qp->first != NULL && (error = post(qp->owner, real, qp->first)) == 0)
        free(take_kept(qp));
    if (error == 0 && qp->probing)
        error = qp->owner->inner->qp_probe(real, qp->probe_id);
    if (error == 0)
        qp->probing = false;
    else
        slu_deferred_raise(qp, SLUICE_STATUS_GENERAL_ERR, sluice_last_error());
}

/* Takes the id of the next kept request, or of the probe. Returns false if there is none. */
static bool next_kept(struct deferred_qp *qp, uint64_t *id)
{
    struct deferred_work *work = take_kept(qp);

    if (work != NULL) {
        *id = work->receives ? work->receive.id : work->send.id;
        free(work);
        return true;
    }
    *id = qp->probe_id;
    if (!qp->probing)
        return false;
    qp->probing = false;
    return true;
}

uint32_t slu_deferred_flush(struct slu_deferred *deferred, struct slu_wc *wcs, uint32_t count)
{
    uint32_t given = 0;

    while (given < count && deferred->flushing != NULL) {
        wcs[given] = (struct slu_wc){.status = SLUICE_STATUS_WR_FLUSH_ERR};
        if (next_kept(deferred->flushing, &wcs[given].id))
            given++;
        else
            delist(deferred->flushing);
    }
    return given;
}
