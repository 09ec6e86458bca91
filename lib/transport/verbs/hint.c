/* SPDX-License-Identifier: MIT */
/*
 * Hints of receives. A message that comes before its receive is answered "not ready" by the
 * peer's device, and sent again when a timer says so: long after the receive is there. So where
 * sends are found to be slow, a side asks its peer to tell it how many receives it has posted so
 * far, and a send that its caller waits for is posted when its receive is known to be there, or
 * when it has waited for a millisecond, about as long as that timer takes by default.
 *
 * A queue pair has a place in a region that its peer may write to. Each side writes two words
 * to the place of the other: the number of its receives, and whether it wants to be told theirs.
 * The third word of a place is for farewells, see farewell.c.
 * All of it is a hint: whatever stands there, a send is posted soon, and completes as it would
 * without. A peer that is no channel of this library, or gives no right to write, has no place.
 * A hint costs the network a packet and its answer, so hints that are of no use end: a side whose
 * sends find their receives there for a while asks for no more, and then only asks again after
 * more slow calls than the last time.
 *
 * Of requests of our own, one is in flight at a time: such a write, or a probe. What is to be
 * said in the meantime is said when that has ended.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/verbs/places.h"

/* Waits between two polls: as long as the usual timers, so that little is lost twice. */
#define PATIENCE SLUICE_MS(1)
/* And with the time that others had the processor. */
#define MOST_PATIENCE SLUICE_MS(4)
/* A yield that took longer went to somebody. */
#define EMPTY_YIELD SLUICE_US(1)
/* So long a wait gives way to nobody: as long as a round trip. */
#define HOT_TIME SLUICE_US(20)
/* Looks at a place between two at the clock. */
#define LOOKS 32
/* So many sends in a row that did not wait for a receive, or waits in vain: they are of no use. */
#define NEEDLESS 32
#define USELESS 4
/* And so many waits that were not in vain: they are of use. */
#define USEFUL 32
/* Slow calls until they are asked for again: twice as many each time that they were of no use. */
#define LEAST_PAUSE 32
#define MOST_PAUSE 1024

/* What the device may still write to is given to nobody. */
static void free_places(struct slu_verbs_places *places)
{
    int err = places->ibv ? ibv_dereg_mr(places->ibv) : 0;

    if (err)
        slu_log(SLUICE_LOG_ERROR, "deregistering memory for hints of receives failed: %s",
                strerror(slu_verbs_errno(err)));
    else
        free(places->all);
    free(places);
}

/* A region more, which is the first then; or none, if the device does not register it. */
static int add_places(struct slu_verbs_pd *pd)
{
    size_t bytes = SLU_VERBS_PLACES * sizeof(struct slu_verbs_place),
           page = (size_t)sysconf(_SC_PAGESIZE);
    struct slu_verbs_places *places = calloc(1, sizeof *places);

    if (!places)
        return slu_fail(ENOMEM, "no memory for hints of receives");
    bytes = bytes < page ? page : bytes;
    places->all = aligned_alloc(page, bytes);
    if (!places->all) {
        free_places(places);
        return slu_fail(ENOMEM, "no memory for hints of receives");
    }
    places->ibv =
        ibv_reg_mr(pd->ibv, places->all, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!places->ibv) {
        slu_log(SLUICE_LOG_WARN,
                "%s registers no %zu bytes for hints of receives, so there are none: %s",
                pd->base.context->device, bytes, strerror(slu_verbs_errno(errno)));
        free_places(places);
        return 0;
    }
    places->next = pd->places;
    pd->places = places;
    return 0;
}

void slu_verbs_hints_end(struct slu_verbs_pd *pd)
{
    while (pd->places) {
        struct slu_verbs_places *places = pd->places;

        pd->places = places->next;
        free_places(places);
    }
}

static bool has_place(const struct slu_verbs_places *places)
{
    return places->free_count > 0 || places->used < SLU_VERBS_PLACES;
}

static struct slu_verbs_place *take_place(struct slu_verbs_places *places)
{
    uint32_t at = places->free_count > 0 ? places->free[--places->free_count] : places->used++;

    memset(&places->all[at], 0, sizeof places->all[at]);
    return &places->all[at];
}

int slu_verbs_hint_open(struct slu_verbs_qp *qp)
{
    struct slu_verbs_pd *pd = slu_verbs_pd_of(qp->base.pd);
    struct slu_verbs_places *places;
    int err = 0;

    if (qp->attr.first || qp->attr.scarce || !(qp->attr.access & SLUICE_ACCESS_REMOTE_WRITE))
        return 0;
    err = slu_verbs_farewell_open(qp);
    if (err)
        return err;
    pthread_mutex_lock(&pd->places_lock);
    for (places = pd->places; places && !has_place(places);)
        places = places->next;
    if (!places) {
        err = add_places(pd);
        places = pd->places && has_place(pd->places) ? pd->places : NULL;
    }
    if (places) {
        qp->own.places = places;
        qp->own.place = take_place(places);
    } else {
        qp->own.farewell_word = 0;
    }
    pthread_mutex_unlock(&pd->places_lock);
    return err;
}

/* The queue pair is gone, and what its peer has still in flight for the place with it. */
void slu_verbs_hint_close(struct slu_verbs_qp *qp)
{
    struct slu_verbs_pd *pd = slu_verbs_pd_of(qp->base.pd);
    struct slu_verbs_places *places = qp->own.places;

    slu_verbs_cq_of(qp->base.cq)->own_busy -= qp->own.hints;
    if (!places)
        return;
    pthread_mutex_lock(&pd->places_lock);
    places->free[places->free_count++] = (uint32_t)(qp->own.place - places->all);
    pthread_mutex_unlock(&pd->places_lock);
}

/* Further queue pairs of a peer name the place of the first, as they do all else of it. */
void slu_verbs_hint_endpoint(const struct slu_verbs_qp *given, struct slu_endpoint *endpoint)
{
    const struct slu_verbs_qp *qp =
        given->attr.first ? slu_verbs_const_qp_of(given->attr.first) : given;

    endpoint->verbs.hint_addr = (uintptr_t)qp->own.place;
    endpoint->verbs.hint_rkey = qp->own.place ? qp->own.places->ibv->rkey : 0;
    endpoint->verbs.farewell = qp->own.farewell_word;
}

/*
 * Its id comes once, so that what some drivers still say of a queue pair that is gone is not taken
 * for the end of another's.
 */
int slu_verbs_own_post(struct slu_verbs_qp *qp, struct ibv_send_wr *wr)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(qp->base.cq);
    struct ibv_send_wr *bad;
    int err;

    cq->own_number++;
    wr->wr_id = cq->own_number << SLU_ID_OWN_SHIFT | SLU_ID_OWN;
    wr->send_flags = IBV_SEND_SIGNALED;
    err = ibv_post_send(qp->ibv, wr, &bad);
    if (err)
        return err;
    qp->own.in_flight = wr->wr_id;
    return 0;
}

/* A failure that no request of the program's has. */
static void fail(struct slu_verbs_qp *qp, uint32_t status, uint32_t vendor)
{
    qp->own.failed = status;
    qp->own.vendor = vendor;
    atomic_store(&qp->base.cq->alerted, true);
}

/* What a driver refuses may run later all the same: the queue pair ends then. */
static void say(struct slu_verbs_qp *qp)
{
    struct slu_verbs_own *own = &qp->own;
    struct slu_verbs_words *said = &own->place->said;
    struct ibv_sge sge = {
        .addr = (uintptr_t)said, .length = SLU_VERBS_HINT_BYTES, .lkey = own->places->ibv->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

    own->more = own->in_flight != 0;
    if (own->in_flight || own->farewell || qp->state != SLU_QP_CONNECTED)
        return;
    atomic_store_explicit(&said->receives, htole64(own->receives), memory_order_relaxed);
    atomic_store_explicit(&said->wanted, htole64(own->wants), memory_order_relaxed);
    wr.wr.rdma.remote_addr = qp->link.hint_addr;
    wr.wr.rdma.rkey = qp->link.hint_rkey;
    if (slu_verbs_own_post(qp, &wr)) {
        slu_verbs_qp_error(&qp->base);
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

/* A peer that leaves asks as well: the receives are to end, see farewell.c. */
static void answer(struct slu_verbs_qp *qp)
{
    if (!slu_verbs_has_left(qp))
        say(qp);
    else if (qp->state == SLU_QP_CONNECTED)
        slu_verbs_qp_error(&qp->base);
}

void slu_verbs_hint_received(struct slu_verbs_qp *qp, uint32_t count)
{
    qp->own.receives += count;
    if (has_peer(qp) &&
        SLU_UNLIKELY(atomic_load_explicit(&qp->own.place->heard.wanted, memory_order_relaxed)))
        answer(qp);
}

/* How many receives the peer has told of. */
static uint64_t heard_of(const struct slu_verbs_qp *qp)
{
    return le64toh(atomic_load_explicit(&qp->own.place->heard.receives, memory_order_acquire));
}

/* What was heard before is old: nothing is waited for until the peer has told more. */
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

/* The peer is told to say no more. */
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

/* The time of others is not counted up to a limit: what is waited for may come from them. */
bool slu_verbs_wait_on(struct slu_verbs_wait *wait, int64_t hot, int64_t most, int64_t most_in_all)
{
    int64_t now = slu_now(), took = now - wait->begun;

    wait->own += took;
    wait->in_all += took;
    wait->begun = now;
    if (wait->own > most || wait->in_all > most_in_all)
        return false;
    if (wait->own < hot)
        return true;
    sched_yield();
    wait->begun = slu_now();
    took = wait->begun - now;
    wait->in_all += took;
    wait->own += took > EMPTY_YIELD ? 0 : took;
    return true;
}

static bool is_known(const struct slu_verbs_qp *qp, uint64_t receives)
{
    return (int64_t)(receives - qp->own.sends) > 0;
}

/* Until the peer has a receive for one message more than were sent. False: it was in vain. */
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

/*
 * A write of no bytes needs no key, and a read none either (C9-88 of the specification); but
 * the peer's queue pair must allow such operations. A peer that is not connected yet drops it,
 * and it is sent again. A hint that is in flight is as good.
 */
int slu_verbs_qp_probe(struct slu_qp *base, uint64_t id)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    bool write = (qp->link.access & SLUICE_ACCESS_REMOTE_WRITE) != 0;
    struct ibv_send_wr wr = {.opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ};
    int err;

    if (!write && !qp->link.reads)
        return slu_verbs_fail_read(base);
    qp->own.probe = id;
    err = qp->own.in_flight ? 0 : slu_verbs_own_post(qp, &wr);
    return err ? slu_verbs_fail_post(base, "send-queue request", err) : 0;
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
