/* SPDX-License-Identifier: MIT */
/*
 * Hints of receives. If a message comes before its receive, the peer's device answers "not ready",
 * and the message is sent again when a timer expires, long after the receive was posted. So a side
 * whose sends are slow asks its peer for hints: how many receives it has posted so far. A send that
 * its caller waits for is then posted when its receive is known to be posted, or after a wait of a
 * millisecond. That is about the default of the timer.
 *
 * A queue pair has a place in a region that its peer may write to. Each side writes two words to
 * the place of the other: the number of its receives, and whether it wants hints itself. The third
 * word of a place is for farewells, see farewell.c. Hints affect only timing: whatever the words
 * are, a send is posted soon and completes as it would without them. A peer that is no channel of
 * this library, or grants no right to write, has no place. A hint costs the network a packet and
 * its answer, so hints without a benefit end: a side whose sends find their receives posted for
 * NEEDLESS sends stops asking, and asks again only after a longer pause than the last time.
 *
 * The transport has one request of its own in flight at a time: such a write, or a probe. A hint
 * that is due in the meantime is sent when that request has ended.
 */
#include "config.h"

#include <endian.h>

#include "transport/verbs/queues/queues.h"
#include "transport/verbs/queues/seam.h"
#include "transport/verbs/words/words.h"

/*
 * Maximum wait for receives between two polls. It is as long as the usual timers, so that little
 * time is lost if both expire.
 */
#define PATIENCE SLUICE_MS(1)
/* The same, including the time for which the processor ran others. */
#define MOST_PATIENCE SLUICE_MS(4)
/* Wait this long before yielding the processor: about a round trip. */
#define HOT_TIME SLUICE_US(20)
/* Reads of a place between two reads of the clock. */
#define LOOKS 32
/*
 * Hints have no benefit after this many consecutive sends without a wait, or waits without a
 * result.
 */
#define NEEDLESS 32
#define USELESS 4
/* Hints have a benefit after this many waits with a result. */
#define USEFUL 32
/* Slow calls until hints are asked for again; doubled each time they had no benefit. */
#define LEAST_PAUSE 32
#define MOST_PAUSE 1024

/*
 * The receives of a queue pair that has a pool, as it says: its peer need never wait for more. How
 * many there are depends on all peers.
 */
#define POOLED_RECEIVES (UINT64_C(1) << 62)

int slu_verbs_hint_open(struct slu_verbs_qp *qp)
{
    int err;

    if (qp->attr.pool)
        qp->own.receives = POOLED_RECEIVES;
    if (qp->attr.first || qp->attr.scarce || !(qp->attr.access & SLUICE_ACCESS_REMOTE_WRITE))
        return 0;
    /* Over rdma_cm there are no words: a peer learns of places from an endpoint alone. */
    if (qp->base.pd->context->by_rdmacm)
        return 0;
    err = slu_verbs_farewell_open(qp);
    if (err)
        return err;
    err = slu_verbs_place_take(qp);
    if (!qp->own.place)
        qp->own.farewell_word = 0;
    return err;
}

/*
 * Frees the place. The queue pair is destroyed, so writes of its peer that are in flight are
 * dropped.
 */
void slu_verbs_hint_close(struct slu_verbs_qp *qp)
{
    slu_verbs_cq_of(qp->base.cq)->own_busy -= qp->own.hints;
    slu_verbs_place_give(qp);
}

/*
 * Fills in the place of the first queue pair of a peer, also for further ones: endpoints of a peer
 * must be equal except for qpn and psn.
 */
void slu_verbs_hint_endpoint(const struct slu_verbs_qp *given, struct slu_endpoint *endpoint)
{
    const struct slu_verbs_qp *qp =
        given->attr.first ? slu_verbs_const_qp_of(given->attr.first) : given;

    endpoint->verbs.hint_addr = (uintptr_t)qp->own.place;
    endpoint->verbs.hint_rkey = qp->own.place ? qp->own.places->ibv->rkey : 0;
    endpoint->verbs.farewell = qp->own.farewell_word;
}

/* Notes a failure that belongs to no request of the program, for an alert. */
static void fail(struct slu_verbs_qp *qp, uint32_t status, uint32_t vendor)
{
    qp->own.failed = status;
    qp->own.vendor = vendor;
    atomic_store(&qp->base.cq->alerted, true);
}

/*
 * Sends a hint, or notes that one is due. If the driver refuses it, it may still run later, so the
 * queue pair is failed.
 */
static void say(struct slu_verbs_qp *qp)
{
    struct slu_verbs_own *own = &qp->own;
    struct slu_verbs_words *said = &own->place->said;

    own->more = own->in_flight != 0;
    if (own->in_flight || own->farewell || qp->state != SLU_QP_CONNECTED)
        return;
    atomic_store_explicit(&said->receives, htole64(own->receives), memory_order_relaxed);
    atomic_store_explicit(&said->wanted, htole64(own->wants), memory_order_relaxed);
    if (slu_verbs_words_write(qp, said, SLU_VERBS_HINT_BYTES, qp->link.hint_addr)) {
        slu_verbs_qp_fail(qp);
        fail(qp, SLUICE_STATUS_GENERAL_ERR, 0);
        return;
    }
    own->hints = true;
    slu_verbs_cq_of(qp->base.cq)->own_busy++;
}

static bool has_peer(const struct slu_verbs_qp *qp)
{
    return qp->own.place && qp->link.hint_addr;
}

/*
 * Answers a peer that wants hints. A farewell asks for hints as well: then fail the queue pair to
 * end its receives, see farewell.c.
 */
static void answer(struct slu_verbs_qp *qp)
{
    if (!slu_verbs_has_left(qp))
        say(qp);
    else if (qp->state == SLU_QP_CONNECTED)
        slu_verbs_qp_fail(qp);
}

void slu_verbs_hint_received(struct slu_verbs_qp *qp, uint32_t count)
{
    qp->own.receives += count;
    if (has_peer(qp) &&
        SLU_UNLIKELY(atomic_load_explicit(&qp->own.place->heard.wanted, memory_order_relaxed)))
        answer(qp);
}

void slu_verbs_hint_pooled(struct slu_verbs_qp *qp)
{
    if (qp->own.pooled || !has_peer(qp) ||
        SLU_LIKELY(!atomic_load_explicit(&qp->own.place->heard.wanted, memory_order_relaxed)))
        return;
    qp->own.pooled = true;
    answer(qp);
}

/* Returns the number of receives in the peer's last hint. */
static uint64_t heard_of(const struct slu_verbs_qp *qp)
{
    return le64toh(atomic_load_explicit(&qp->own.place->heard.receives, memory_order_acquire));
}

/*
 * Asks the peer for hints. An earlier hint is outdated, so no send waits until a new one has come.
 */
void slu_verbs_qp_slow(struct slu_qp *base)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    struct slu_verbs_own *own = &qp->own;

    if (own->wants || !has_peer(qp) || !(qp->link.access & SLUICE_ACCESS_REMOTE_WRITE))
        return;
    if (own->pause_left > 0) {
        own->pause_left--;
        return;
    }
    own->wants = true;
    own->in_vain = heard_of(qp);
    own->needless = own->useless = own->useful = 0;
    say(qp);
}

/* Tells the peer to send no more hints. */
static void give_up(struct slu_verbs_qp *qp)
{
    struct slu_verbs_own *own = &qp->own;

    if (own->pause == 0)
        own->pause = LEAST_PAUSE;
    else if (own->pause < MOST_PAUSE)
        own->pause *= 2;
    own->pause_left = own->pause;
    own->wants = false;
    say(qp);
}

static bool is_known(const struct slu_verbs_qp *qp, uint64_t receives)
{
    return (int64_t)(receives - qp->own.sends) > 0;
}

/* Waits until the peer has a receive for the next message. False: the time is up. */
static bool await_receive(struct slu_verbs_qp *qp, uint64_t receives)
{
    struct slu_verbs_wait *wait = &slu_verbs_cq_of(qp->base.cq)->wait;

    wait->begun = slu_now();
    for (uint32_t looks = 1; !is_known(qp, receives); looks++) {
        if (looks % LOOKS == 0 && !slu_verbs_wait_on(wait, HOT_TIME, PATIENCE, MOST_PATIENCE)) {
            qp->own.in_vain = receives;
            return false;
        }
        receives = heard_of(qp);
    }
    return true;
}

void slu_verbs_hint_await(struct slu_verbs_qp *qp, bool blocking)
{
    struct slu_verbs_own *own = &qp->own;
    uint64_t receives = heard_of(qp);

    if (is_known(qp, receives) || !blocking) {
        if (++own->needless == NEEDLESS)
            give_up(qp);
    } else if (receives == own->in_vain || slu_verbs_cq_of(qp->base.cq)->wait.own > PATIENCE) {
        return;
    } else if (await_receive(qp, receives)) {
        own->needless = own->useless = 0;
        if (++own->useful == USEFUL)
            own->pause = 0;
    } else if (++own->useless == USELESS) {
        give_up(qp);
    }
}

bool slu_verbs_own_ended(struct slu_verbs_cq *cq, const struct ibv_wc *from, struct slu_wc *to)
{
    struct slu_verbs_qp *qp = slu_verbs_cq_find(cq, from->qp_num);
    struct slu_verbs_own *own;

    *to = (struct slu_wc){.id = from->wr_id, .status = (uint32_t)from->status};
    if (!qp || qp->own.in_flight != from->wr_id)
        return true;
    own = &qp->own;
    to->id = own->probe;
    own->in_flight = own->probe = 0;
    cq->own_busy -= own->hints;
    own->hints = false;
    if (from->status == IBV_WC_SUCCESS) {
        if (own->farewell)
            slu_verbs_farewell_step(qp);
        else if (own->more)
            say(qp);
        return to->id != 0;
    }
    qp->state = SLU_QP_ERROR;
    to->vendor = from->vendor_err;
    if (own->farewell)
        own->farewell = SLU_VERBS_OVER;
    else if (to->id == 0 && from->status != IBV_WC_WR_FLUSH_ERR)
        fail(qp, (uint32_t)from->status, from->vendor_err);
    return to->id != 0;
}

bool slu_verbs_own_failure(struct slu_verbs_qp *qp, struct slu_alert *alert)
{
    if (!qp->own.failed)
        return false;
    *alert = (struct slu_alert){.qp = &qp->base,
                                .status = qp->own.failed,
                                .vendor = qp->own.vendor,
                                .reason = "a hint of receives to the peer failed"};
    qp->own.failed = 0;
    return true;
}
