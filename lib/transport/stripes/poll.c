/* SPDX-License-Identifier: MIT */
/*
 * Polling: translates completions of the transport to those of the engine, and starts requests that
 * waited for them.
 */
#include "config.h"

#include "transport/stripes/inside.h"

/* Arms the queue, unless the next poll has work to do. */
int slu_stripes_cq_arm(struct slu_cq *cq)
{
    const struct stripes *stripes = cq->stripes;

    if (stripes->lists[STRIPES_FAILING] != NULL || stripes->lists[STRIPES_FLUSHING] != NULL ||
        stripes->alerts > 0)
        return 1;
    return stripes->inner->cq_arm(cq);
}

/* Ranks how precise a status is. */
static int weigh(uint32_t status)
{
    return status == SLUICE_STATUS_SUCCESS         ? 0
           : status == SLUICE_STATUS_WR_FLUSH_ERR  ? 1
           : status == SLUICE_STATUS_RETRY_EXC_ERR ? 2
                                                   : 3;
}

static void note(uint32_t *status, uint32_t *vendor, const struct slu_wc *wc)
{
    if (weigh(wc->status) <= weigh(*status))
        return;
    *status = wc->status;
    *vendor = wc->vendor;
}

/* Passes on a completion of an unknown request with id 0, which the engine counts as unknown. */
static bool pass_on(struct slu_wc *to)
{
    *to = (struct slu_wc){.id = 0};
    return true;
}

/*
 * Handlers of completions, by kind: index is that of the queue pair, number that of the request.
 * Each returns whether the engine gets a completion, which is then in *to.
 */

/*
 * Ends a send. Sends complete in order: plain ones share one queue pair, and a striped one is
 * alone.
 */
static bool end_work(struct stripes_qp *qp, uint32_t index, uint32_t number,
                     const struct slu_wc *wc, struct slu_wc *to)
{
    struct stripes_ring *ring = &qp->ring;
    uint32_t skipped = (number - ring->done) & STRIPES_NUMBER_MASK;
    uint32_t bit = UINT32_C(1) << index;
    struct stripes_slot *slot = stripes_slot(qp, ring->done + skipped);

    if (SLU_UNLIKELY(skipped >= ring->started - ring->done || (slot->out & bit) == 0))
        return pass_on(to);
    /* The engine decides about skipped requests, which the device did not report. */
    ring->done += skipped;
    slot->out &= ~bit;
    if (SLU_UNLIKELY(wc->status != SLUICE_STATUS_SUCCESS)) {
        note(&slot->status, &slot->vendor, wc);
        slu_stripes_fail(qp, index);
    }
    if (slot->out != 0)
        return false;
    *to = (struct slu_wc){.id = slot->id, .status = slot->status, .vendor = slot->vendor};
    ring->done++;
    qp->striping = false;
    if (SLU_UNLIKELY(qp->failed))
        slu_stripes_flush(qp);
    else if (ring->started != ring->posted)
        slu_stripes_go_on(qp);
    return slot->signaled || to->status != SLUICE_STATUS_SUCCESS;
}

static bool end_receive(struct stripes_qp *qp, uint32_t index, uint32_t number,
                        const struct slu_wc *wc, struct slu_wc *to)
{
    struct stripes_receives *receives = &qp->receives;
    bool flushed = wc->status == SLUICE_STATUS_WR_FLUSH_ERR;
    bool behind = receives->done != receives->back;
    bool waits = flushed && (qp->striping || behind);

    /* After one flushed receive, all later ones must be flushed as well. */
    if (SLU_UNLIKELY(receives->back == receives->started ||
                     number != (receives->back & STRIPES_NUMBER_MASK) || (behind && !flushed)))
        return pass_on(to);
    if (SLU_LIKELY(!waits)) {
        *to = *wc;
        to->id = receives->ids[receives->done++ & receives->mask];
    }
    receives->back++;
    if (SLU_UNLIKELY(wc->status != SLUICE_STATUS_SUCCESS) && wc->status != SLU_STATUS_DROPPED)
        slu_stripes_fail(qp, index);
    /* This may have been the last receive in flight, for which held ones waited. */
    if (SLU_UNLIKELY(qp->failed))
        slu_stripes_flush(qp);
    return !waits;
}

static bool end_watch(struct stripes_qp *qp, uint32_t index, uint32_t number,
                      const struct slu_wc *wc, struct slu_wc *to)
{
    uint32_t bit = UINT32_C(1) << index;

    (void)number;
    if ((qp->watched & bit) == 0)
        return pass_on(to);
    qp->watched &= ~bit;
    if (wc->status == SLUICE_STATUS_SUCCESS)
        slu_stripes_alert(qp, qp->ring.done, SLUICE_STATUS_BAD_RESP_ERR, 0,
                          "the peer sent a message over a queue pair that only has parts of reads "
                          "and writes");
    slu_stripes_fail(qp, index);
    return false;
}

static bool end_probe(struct stripes_qp *qp, uint32_t index, uint32_t number,
                      const struct slu_wc *wc, struct slu_wc *to)
{
    struct stripes_probe *probe = &qp->probe;
    uint32_t bit = UINT32_C(1) << index;

    if (number != (probe->number & STRIPES_NUMBER_MASK) || (probe->out & bit) == 0)
        return pass_on(to);
    probe->out &= ~bit;
    if (wc->status != SLUICE_STATUS_SUCCESS) {
        note(&probe->status, &probe->vendor, wc);
        slu_stripes_fail(qp, index);
    }
    *to = (struct slu_wc){.id = probe->id, .status = probe->status, .vendor = probe->vendor};
    return probe->out == 0;
}

typedef bool end_one(struct stripes_qp *qp, uint32_t index, uint32_t number,
                     const struct slu_wc *wc, struct slu_wc *to);
static end_one *const ends[STRIPES_KINDS] = {
    [STRIPES_WORK] = end_work,
    [STRIPES_RECEIVE] = end_receive,
    [STRIPES_WATCH] = end_watch,
    [STRIPES_PROBE] = end_probe,
};

/* Passes on the completion of a receive of the pool, which names the peer of the engine. */
static bool end_shared(const struct stripes *stripes, const struct slu_wc *wc, struct slu_wc *to)
{
    bool failed = wc->status != SLUICE_STATUS_SUCCESS && wc->status != SLU_STATUS_DROPPED;
    struct stripes_qp *qp = NULL;

    *to = *wc;
    if (SLU_UNLIKELY(failed) && (wc->flags & SLU_WC_NO_PEER) == 0)
        qp = slu_stripes_of_peer(stripes, wc->flags >> SLU_WC_PEER_SHIFT);
    if (SLU_UNLIKELY(qp != NULL))
        slu_stripes_fail(qp, 0);
    return true;
}

static bool translate(const struct stripes *stripes, const struct slu_wc *wc, struct slu_wc *to)
{
    uint32_t key = (uint32_t)(wc->id >> 32);
    uint32_t low = (uint32_t)wc->id >> 1;
    uint32_t kind = low >> (STRIPES_NUMBER_BITS + STRIPES_INDEX_BITS);
    uint32_t index = low >> STRIPES_NUMBER_BITS & ((UINT32_C(1) << STRIPES_INDEX_BITS) - 1);
    uint32_t at = key & 0xffff;
    struct stripes_qp *qp = at < stripes->size ? stripes->places[at].qp : NULL;

    if (slu_id_is_pool(wc->id))
        return end_shared(stripes, wc, to);
    if (SLU_UNLIKELY(qp == NULL || qp->key != key || kind >= STRIPES_KINDS))
        return pass_on(to);
    return ends[kind](qp, index, low & STRIPES_NUMBER_MASK, wc, to);
}

/* Translates completions in place: each becomes one at most. */
static uint32_t translate_all(const struct stripes *stripes, struct slu_wc *wcs, uint32_t count)
{
    uint32_t given = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct slu_wc wc = wcs[i];

        given += translate(stripes, &wc, &wcs[given]);
    }
    return given;
}

/*
 * Polls until wcs is full or the transport has no more, as several of its completions may become
 * one.
 */
int slu_stripes_cq_poll(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    struct stripes *stripes = cq->stripes;
    uint32_t given = 0;

    for (;;) {
        uint32_t wanted;
        int got;

        if (SLU_UNLIKELY(stripes->lists[STRIPES_FLUSHING] != NULL))
            given += slu_stripes_flush_held(stripes, wcs + given, count - given);
        wanted = count - given;
        if (wanted == 0)
            return (int)given;
        got = stripes->inner->cq_poll(cq, wcs + given, wanted);
        if (SLU_UNLIKELY(got < 0))
            return given > 0 ? (int)given : got;
        given += translate_all(stripes, wcs + given, (uint32_t)got);
        if (SLU_LIKELY((uint32_t)got < wanted && stripes->lists[STRIPES_FAILING] == NULL &&
                       stripes->lists[STRIPES_FLUSHING] == NULL))
            return (int)given;
        while (got == 0 && stripes->lists[STRIPES_FAILING] != NULL)
            slu_stripes_end(stripes->lists[STRIPES_FAILING]);
    }
}
