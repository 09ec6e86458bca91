/* SPDX-License-Identifier: MIT */
/*
 * Progress: completions become results, deadlines act, and failed peers are
 * drained. Nothing that was accepted is ever left without a result: what a
 * queue pair in error does not give back in time is completed by hand, after
 * the queue pair was destroyed.
 */
#include "config.h"

#include "engine/members.h"

#define BATCH 32
/* Under load the clock is looked at once in so many polls. */
#define BUSY_POLLS 64
/* And events of the device are looked for once in so many rounds in which nothing came. */
#define IDLE_ROUNDS 4096

void slu_slot_failed(const struct slu_peer *peer, struct slu_slot *slot)
{
    enum sluice_error_class error_class;

    /* What was due when its peer was failed for a deadline missed that deadline itself. */
    if (slot->result.status == SLUICE_STATUS_WR_FLUSH_ERR && !slot->passed &&
        peer->cause_status == SLUICE_STATUS_DEADLINE && slot->deadline <= peer->failed_at)
        slot->result.status = SLUICE_STATUS_DEADLINE;
    error_class = slu_class_of(slot->result.status, slot->result.opcode);
    slot->result.error_class = error_class;
    slot->result.bytes = 0;
    slot->result.error = slu_class_error(error_class);
    slot->result.cause = peer->cause_status;
}

static void return_credit(struct slu_peer *peer, struct slu_pool *pool, struct slu_slot *slot,
                          enum slu_queue queue)
{
    slot->posted--;
    peer->free[queue]++;
    pool->cq_free++;
}

static inline void end_slot(struct slu_engine *engine, struct slu_peer *peer, struct slu_slot *slot,
                            enum slu_queue queue)
{
    if (SLU_UNLIKELY(slot->result.status != SLUICE_STATUS_SUCCESS))
        slu_slot_failed(peer, slot);
    slu_list_remove(&engine->pools[queue], &peer->posted[queue], slot);
    slu_slot_done(engine, queue, slot);
}

/*
 * Sends complete in order. One that was done, or failed for a reason of its own,
 * proves that those before it were done, should they not have been reported.
 */
static void retire_unsignaled(struct slu_engine *engine, struct slu_peer *peer,
                              struct slu_slot *slot)
{
    struct slu_pool *pool = &engine->pools[SLU_SEND_QUEUE];

    while (peer->posted[SLU_SEND_QUEUE].head != (uint32_t)(slot - pool->slots)) {
        struct slu_slot *earlier = &pool->slots[peer->posted[SLU_SEND_QUEUE].head];

        while (earlier->posted > 0)
            return_credit(peer, pool, earlier, SLU_SEND_QUEUE);
        end_slot(engine, peer, earlier, SLU_SEND_QUEUE);
    }
}

/*
 * One that was flushed proves nothing. Those before it that were not reported
 * may be done or not, in time or not: they are cancelled when their peer is drained.
 */
static void mark_unknown(struct slu_engine *engine, const struct slu_slot *slot)
{
    struct slu_slot *slots = engine->pools[SLU_SEND_QUEUE].slots;

    for (uint32_t at = slot->prev; at != SLU_NONE && !slots[at].passed; at = slots[at].prev)
        slots[at].passed = true;
}

/*
 * What befell a peer as a whole is the answer to the first request that it ends,
 * unless that one knows better. When a port is down, devices give one of two
 * statuses that only mean that the request failed.
 */
static void assign_async_error(struct slu_peer *peer, struct slu_slot *slot)
{
    bool vague = slot->result.status == SLUICE_STATUS_WR_FLUSH_ERR ||
                 (!peer->cause_inferred && (slot->result.status == SLUICE_STATUS_RETRY_EXC_ERR ||
                                            slot->result.status == SLUICE_STATUS_LOC_QP_OP_ERR));

    if (!peer->async_error_pending || !vague)
        return;
    peer->async_error_pending = false;
    slot->result.status = peer->cause_status;
    slot->result.vendor = peer->cause_vendor;
}

static void fail_work(struct slu_engine *engine, struct slu_peer *peer, struct slu_slot *slot,
                      const struct slu_wc *wc)
{
    uint32_t status = wc->status;
    bool inferred;

    /* A request that fails because the port is down only says that it failed. */
    if (peer->state == SLUICE_STATE_READY)
        slu_peers_alerted(engine);
    inferred = status == SLUICE_STATUS_WR_FLUSH_ERR && peer->state == SLUICE_STATE_READY;
    /* A queue pair that fails without saying why has lost its peer. */
    if (inferred)
        status = SLUICE_STATUS_RETRY_EXC_ERR;
    if (slot->result.status == SLUICE_STATUS_SUCCESS ||
        slot->result.status == SLUICE_STATUS_WR_FLUSH_ERR) {
        slot->result.status = status;
        slot->result.vendor = wc->vendor;
    }
    assign_async_error(peer, slot);
    slu_peer_fail(engine, peer, status, slot->result.opcode, wc->vendor);
    peer->cause_inferred |= inferred;
}

static inline void take_received(struct slu_slot *slot, const struct slu_wc *wc)
{
    slot->result.bytes = wc->bytes;
    slot->result.flags = wc->flags & SLU_RECEIVED_FLAGS;
    slot->result.immediate = wc->immediate;
}

static void dispatch(struct slu_engine *engine, const struct slu_wc *wc)
{
    struct slu_slot *slot = slu_slot_find(engine, wc->id);
    enum slu_queue queue;
    struct slu_peer *peer;

    if (SLU_UNLIKELY(slot == NULL || slot->posted == 0)) {
        engine->discarded += !slu_probe_ended(engine, wc);
        return;
    }
    queue = slu_slot_queue(slot);
    peer = &engine->peers[slot->result.peer];
    if (queue == SLU_SEND_QUEUE && slot->prev != SLU_NONE) {
        if (wc->status == SLUICE_STATUS_WR_FLUSH_ERR)
            mark_unknown(engine, slot);
        else
            retire_unsignaled(engine, peer, slot);
    }
    return_credit(peer, &engine->pools[queue], slot, queue);
    if (SLU_UNLIKELY(wc->status != SLUICE_STATUS_SUCCESS)) {
        fail_work(engine, peer, slot, wc);
    } else if (queue == SLU_RECEIVE_QUEUE) {
        take_received(slot, wc);
    }
    if (slot->posted == 0 && !slot->unfinished)
        end_slot(engine, peer, slot, queue);
}

static void abandon_queue(struct slu_engine *engine, struct slu_peer *peer, enum slu_queue queue)
{
    struct slu_pool *pool = &engine->pools[queue];
    uint32_t next = peer->posted[queue].head;

    while (next != SLU_NONE) {
        struct slu_slot *slot = &pool->slots[next];

        next = slot->next;
        while (slot->posted > 0)
            return_credit(peer, pool, slot, queue);
        if (slot->result.status == SLUICE_STATUS_SUCCESS)
            slot->result.status = SLUICE_STATUS_WR_FLUSH_ERR;
        assign_async_error(peer, slot);
        /* The call that posts its parts has yet to see that no more will follow. */
        if (!slot->unfinished)
            end_slot(engine, peer, slot, queue);
    }
}

void slu_peer_abandon(struct slu_engine *engine, struct slu_peer *peer)
{
    if (peer->qp != NULL)
        engine->transport->qp_destroy(peer->qp);
    peer->qp = NULL;
    peer->drain_by = SLUICE_FOREVER;
    slu_probe_abandon(engine, peer);
    abandon_queue(engine, peer, SLU_SEND_QUEUE);
    abandon_queue(engine, peer, SLU_RECEIVE_QUEUE);
}

static bool holds_work(const struct slu_engine *engine, const struct slu_peer *peer)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        const struct slu_pool *pool = &engine->pools[queue];

        for (uint32_t i = peer->posted[queue].head; i != SLU_NONE; i = pool->slots[i].next)
            if (pool->slots[i].posted > 0)
                return true;
    }
    return false;
}

/* Failed peers that kept work longer than the drain bound. */
static void end_drains(struct slu_engine *engine, int64_t now)
{
    engine->next_drain = SLUICE_FOREVER;
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        struct slu_peer *peer = &engine->peers[i];

        if (peer->state != SLUICE_STATE_FAILED || !holds_work(engine, peer))
            continue;
        if (peer->drain_by <= now)
            slu_peer_abandon(engine, peer);
        else if (peer->drain_by < engine->next_drain)
            engine->next_drain = peer->drain_by;
    }
}

/* Fails a peer if one of its requests is late; else notes when the next one is due. */
static void check_deadlines(struct slu_engine *engine, struct slu_peer *peer, int64_t now)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        const struct slu_pool *pool = &engine->pools[queue];

        for (uint32_t i = peer->posted[queue].head; i != SLU_NONE; i = pool->slots[i].next) {
            const struct slu_slot *slot = &pool->slots[i];

            if (slot->deadline <= now) {
                engine->scope.expired |= slot->owner == SLU_OWNER_SCOPE;
                slu_peer_note_late(engine, peer, slot->time);
                slu_peer_fail(engine, peer, SLUICE_STATUS_DEADLINE, slot->result.opcode, 0);
                return;
            }
            if (slot->deadline < engine->next_deadline)
                engine->next_deadline = slot->deadline;
        }
    }
}

static void end_deadlines(struct slu_engine *engine, int64_t now)
{
    engine->next_deadline = SLUICE_FOREVER;
    for (uint32_t i = 0; i < engine->peer_count; i++)
        if (engine->peers[i].state == SLUICE_STATE_READY)
            check_deadlines(engine, &engine->peers[i], now);
}

static void fail_all(struct slu_engine *engine, int error)
{
    bool known = true;

    for (uint32_t i = 0; i < engine->peer_count; i++)
        known &= slu_peer_over(&engine->peers[i]);
    if (!known)
        slu_log(SLUICE_LOG_ERROR, "completion queue failed: %s", sluice_last_error());
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        struct slu_peer *peer = &engine->peers[i];

        slu_peer_fail_alone(engine, peer, SLUICE_STATUS_FATAL_ERR, (uint32_t)-error, false,
                            sluice_last_error());
        slu_peer_abandon(engine, peer);
    }
}

static int take_batch(struct slu_engine *engine, const struct slu_wc *wcs, int count)
{
    if (SLU_UNLIKELY(count < 0)) {
        fail_all(engine, count);
        return 1;
    }
    for (int i = 0; i < count; i++)
        dispatch(engine, &wcs[i]);
    return count;
}

/*
 * Of the slot that a call waits for alone: its success, if it is the next to end
 * of its queue, is seen at once, and passes by the list of what is done.
 */
static inline bool complete_awaited(struct slu_engine *engine, struct slu_slot *slot,
                                    const struct slu_wc *wc)
{
    enum slu_queue queue = slu_slot_queue(slot);
    struct slu_pool *pool = &engine->pools[queue];
    struct slu_peer *peer = &engine->peers[slot->result.peer];

    if (wc->id != slot->id || wc->status != SLUICE_STATUS_SUCCESS ||
        slot->state != SLU_SLOT_PENDING || slot->prev != SLU_NONE || slot->posted != 1 ||
        slot->unfinished || slot->result.status != SLUICE_STATUS_SUCCESS)
        return false;
    return_credit(peer, pool, slot, queue);
    if (queue == SLU_RECEIVE_QUEUE)
        take_received(slot, wc);
    slu_list_remove(pool, &peer->posted[queue], slot);
    if (slot->owner == SLU_OWNER_CALL) {
        slu_slot_done(engine, queue, slot);
        return true;
    }
    slu_count_success(peer, slot->result.opcode, slot->result.bytes);
    pool->pending--;
    if (slot->owner == SLU_OWNER_SCOPE)
        engine->scope.pending--;
    atomic_store_explicit(&slot->state, SLU_SLOT_FREE, memory_order_relaxed);
    slu_list_push(pool, &pool->free, slot);
    return true;
}

static inline int poll_queue(struct slu_engine *engine, struct slu_wc *wcs, uint32_t count)
{
    if (SLU_UNLIKELY(atomic_load_explicit(&engine->cq->alerted, memory_order_relaxed)))
        slu_peers_alerted(engine);
    engine->polls++;
    return engine->transport->cq_poll(engine->cq, wcs, count);
}

static int poll_batch(struct slu_engine *engine)
{
    struct slu_wc wcs[BATCH];
    int count = poll_queue(engine, wcs, BATCH);

    return count == 0 ? 0 : take_batch(engine, wcs, count);
}

/* Inline, because who waits polls often, and mostly for nothing. */
static inline int poll_one(struct slu_engine *engine, struct slu_slot *slot)
{
    struct slu_wc wc;
    int count = poll_queue(engine, &wc, 1);

    if (SLU_LIKELY(count == 0))
        return 0;
    return SLU_LIKELY(count == 1) && complete_awaited(engine, slot, &wc)
               ? 1
               : take_batch(engine, &wc, count);
}

int slu_poll_for(struct slu_engine *engine, struct slu_slot *slot)
{
    return slot == NULL ? poll_batch(engine) : poll_one(engine, slot);
}

/* Bounded, because nothing is posted meanwhile. */
void slu_progress_all(struct slu_engine *engine)
{
    while (poll_batch(engine) == BATCH)
        ;
}

/* What was done in time must be seen before anything is judged late. */
static void check_clock(struct slu_engine *engine)
{
    int64_t now;

    engine->busy_polls = 0;
    if (engine->next_deadline == SLUICE_FOREVER && engine->next_drain == SLUICE_FOREVER &&
        engine->next_probe == SLUICE_FOREVER)
        return;
    now = slu_now();
    if (engine->next_deadline > now && engine->next_drain > now && engine->next_probe > now)
        return;
    slu_progress_all(engine);
    if (engine->next_deadline <= now)
        end_deadlines(engine, now);
    if (engine->next_probe <= now)
        slu_probe_peers(engine, now);
    if (engine->next_drain <= now)
        end_drains(engine, now);
}

static inline bool look_at_clock(struct slu_engine *engine, int count)
{
    /* Who never sleeps, or only polls, must hear of a dead device all the same. */
    if (SLU_UNLIKELY(count == 0 && ++engine->idle_polls % IDLE_ROUNDS == 0))
        slu_peers_alerted(engine);
    if (count == 0 || ++engine->busy_polls >= BUSY_POLLS)
        check_clock(engine);
    return count > 0;
}

bool slu_look_at_clock(struct slu_engine *engine, int count)
{
    return look_at_clock(engine, count);
}

bool slu_progress(struct slu_engine *engine)
{
    return slu_look_at_clock(engine, poll_batch(engine));
}

bool slu_progress_with(struct slu_engine *engine, const struct slu_wc *wcs, int count)
{
    return slu_look_at_clock(engine, take_batch(engine, wcs, count));
}

bool slu_look_for_slot(struct slu_engine *engine, struct slu_slot *slot)
{
    look_at_clock(engine, poll_one(engine, slot));
    return slot->state != SLU_SLOT_PENDING;
}
