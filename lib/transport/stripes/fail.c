/* SPDX-License-Identifier: MIT */
/*
 * Failures, which several queue pairs of a peer may report, and the lists of queue pairs that have
 * failed.
 *
 * When one queue pair fails, another may have a more precise reason: the peer may have refused a
 * stripe, and then closed all its queue pairs. So the others enter the error state only once the
 * queue is empty after the failure, when everything the peer did before has been polled. If several
 * stripes of a request fail, the first of the most precise statuses counts. The request is reported
 * once all its stripes have ended; receives that return meanwhile are reported after it, because on
 * their own they would only report a lost peer.
 */
#include "config.h"

#include <stdio.h>

#include "transport/stripes/inside.h"

static void enlist(struct stripes_qp *qp, enum stripes_list list)
{
    struct stripes *stripes = qp->owner;

    if (qp->listed[list])
        return;
    qp->listed[list] = true;
    qp->next[list] = stripes->lists[list];
    stripes->lists[list] = qp;
}

static void delist(struct stripes_qp *qp, enum stripes_list list)
{
    struct stripes_qp **at = &qp->owner->lists[list];

    if (!qp->listed[list])
        return;
    while (*at != qp)
        at = &(*at)->next[list];
    *at = qp->next[list];
    qp->listed[list] = false;
}

void slu_stripes_forget(struct stripes_qp *qp)
{
    struct stripes *stripes = qp->owner;

    for (int list = 0; list < STRIPES_LISTS; list++)
        delist(qp, (enum stripes_list)list);
    stripes->alerts -= qp->alerts;
    stripes->places[qp->key & 0xffff].qp = NULL;
}

static void raise_alert(struct stripes_qp *qp)
{
    if (qp->alert.qp == NULL || qp->alerts || (int32_t)(qp->ring.done - qp->alert_at) < 0)
        return;
    qp->alerts = true;
    qp->owner->alerts++;
    atomic_store(&qp->base.cq->alerted, true);
}

void slu_stripes_alert(struct stripes_qp *qp, uint32_t position, uint32_t status, uint32_t vendor,
                       const char *reason)
{
    struct slu_alert *alert = &qp->alert;

    if (alert->qp != NULL)
        return;
    *alert = (struct slu_alert){.qp = &qp->base, .status = status, .vendor = vendor};
    snprintf(alert->reason, sizeof alert->reason, "%s", reason);
    qp->alert_at = position;
    raise_alert(qp);
}

struct stripes_qp *slu_stripes_of_peer(const struct stripes *stripes, uint32_t peer)
{
    for (uint32_t at = 0; at < stripes->size; at++)
        if (stripes->places[at].qp != NULL && stripes->places[at].qp->base.peer == peer)
            return stripes->places[at].qp;
    return NULL;
}

/*
 * Finds the queue pairs with a pool that have failed, after an alert that names none: no request
 * may say so.
 */
static void notice_losses(const struct stripes *stripes)
{
    for (uint32_t at = 0; at < stripes->size; at++) {
        struct stripes_qp *qp = stripes->places[at].qp;

        for (uint32_t i = 0; qp != NULL && qp->pooled && qp->connected && i < qp->count; i++)
            if (!qp->failed && qp->inner->qp_state(qp->qps[i]) == SLU_QP_ERROR)
                slu_stripes_fail(qp, i);
    }
}

bool slu_stripes_cq_alert(struct slu_cq *cq, struct slu_alert *alert)
{
    struct stripes *stripes = cq->stripes;

    if (stripes->inner->cq_alert == NULL) {
        if (atomic_exchange(&cq->alerted, false))
            notice_losses(stripes);
    } else if (stripes->inner->cq_alert(cq, alert)) {
        alert->qp = &slu_stripes_of_peer(stripes, alert->qp->peer)->base;
        return true;
    }
    for (uint32_t i = 0; stripes->alerts > 0; i++) {
        struct stripes_qp *qp = stripes->places[i].qp;

        if (qp == NULL || !qp->alerts)
            continue;
        *alert = qp->alert;
        qp->alert.qp = NULL;
        qp->alerts = false;
        stripes->alerts--;
        return true;
    }
    return false;
}

static bool has_held_sends(const struct stripes_qp *qp)
{
    return qp->ring.done == qp->ring.started && qp->ring.done != qp->ring.posted;
}

static bool has_held_receives(const struct stripes_qp *qp)
{
    const struct stripes_receives *receives = &qp->receives;

    return !qp->striping &&
           (receives->done != receives->back ||
            (receives->done == receives->started && receives->done != receives->posted));
}

void slu_stripes_flush(struct stripes_qp *qp)
{
    if (!qp->failed)
        return;
    raise_alert(qp);
    if (has_held_sends(qp) || has_held_receives(qp) || qp->probe.flushed)
        enlist(qp, STRIPES_FLUSHING);
}

void slu_stripes_qp_error(struct slu_qp *base)
{
    struct stripes_qp *qp = stripes_qp_of(base);

    delist(qp, STRIPES_FAILING);
    qp->failed = qp->stopped = true;
    for (uint32_t i = 0; i < qp->count; i++)
        qp->inner->qp_error(qp->qps[i]);
    slu_stripes_flush(qp);
}

void slu_stripes_end(struct stripes_qp *qp)
{
    slu_stripes_qp_error(&qp->base);
    if (!qp->pooled || qp->alert.qp != NULL)
        return;
    slu_stripes_alert(qp, qp->ring.posted, SLUICE_STATUS_RETRY_EXC_ERR, 0, "");
    qp->alert.inferred = true;
}

void slu_stripes_fail(struct stripes_qp *qp, uint32_t index)
{
    if (!qp->failed)
        qp->culprit = index;
    qp->failed = true;
    if (!qp->stopped)
        enlist(qp, STRIPES_FAILING);
}

/* Finds the id of the next held request to flush. False: there are no more. */
static bool next_held(struct stripes_qp *qp, uint64_t *id)
{
    struct stripes_ring *ring = &qp->ring;
    struct stripes_receives *receives = &qp->receives;

    if (has_held_sends(qp)) {
        *id = stripes_slot(qp, ring->done)->id;
        ring->started = ++ring->done;
    } else if (has_held_receives(qp)) {
        if (receives->done == receives->back)
            receives->started = ++receives->back;
        *id = receives->ids[receives->done++ & receives->mask];
    } else if (qp->probe.flushed) {
        *id = qp->probe.id;
        qp->probe.flushed = false;
    } else {
        return false;
    }
    return true;
}

uint32_t slu_stripes_flush_held(struct stripes *stripes, struct slu_wc *wcs, uint32_t count)
{
    uint32_t given = 0;

    while (given < count && stripes->lists[STRIPES_FLUSHING] != NULL) {
        struct stripes_qp *qp = stripes->lists[STRIPES_FLUSHING];

        wcs[given] = (struct slu_wc){.status = SLUICE_STATUS_WR_FLUSH_ERR};
        if (next_held(qp, &wcs[given].id))
            given++;
        else
            delist(qp, STRIPES_FLUSHING);
    }
    return given;
}
