/* SPDX-License-Identifier: MIT */
/*
 * Progress: completions become results, deadlines act, and failed peers are drained. Every accepted
 * request gets a result: what a queue pair in error does not complete in time is completed by the
 * engine, after the queue pair was destroyed.
 */
#include "config.h"

#include "engine/progress/progress.h"

#include "engine/peer/arrivals.h"
#include "engine/peer/probe.h"
#include "engine/progress/wait.h"
#include "engine/request/message.h"
#include "engine/ring/pool.h"
#include "memory/release.h"

/* Check for events of the device once in this many polls that find nothing. */
#define IDLE_ROUNDS 4096
/*
 * Check for regions to be released once in this many checks of the clock, if the number of pending
 * requests stays the same.
 */
#define RELEASE_ROUNDS 64

/* Sets the cause and the final status of a failed request, and counts it. */
static void judge_failure(const struct slu_engine *engine, struct slu_peer *peer, uint64_t id,
                          struct slu_entry *entry)
{
    /* A request that was due when a deadline failed its peer has missed that deadline itself. */
    if (entry->status == SLUICE_STATUS_WR_FLUSH_ERR && !entry->marks.passed &&
        peer->cause_status == SLUICE_STATUS_DEADLINE &&
        slu_entry_deadline(engine, entry) <= peer->failed_at)
        entry->status = SLUICE_STATUS_DEADLINE;
    entry->marks.flags = 0;
    /* This sets entry->cause. */
    slu_entry_set_immediate(entry, entry->marks.dropped ? entry->status : peer->cause_status);
    peer->counts.failed[slu_class_of(entry->status, entry->opcode)]++;
    SLU_PROBE5(completion, engine, id, entry->opcode, UINT64_C(0), entry->status);
}

/* Moves oldest to the next pending request, because the oldest one has ended. */
static void advance(struct slu_ring *ring)
{
    do
        ring->oldest += SLU_ID_STEP;
    while (ring->oldest != ring->next &&
           slu_ring_entry(ring, ring->oldest)->state != SLU_ENTRY_PENDING);
}

/*
 * Marks the requests before one that has ended. These are still pending, and must not end on the
 * fast path.
 */
static void overtake(const struct slu_ring *ring, uint64_t id)
{
    for (uint64_t at = ring->oldest; at != id; at += SLU_ID_STEP)
        slu_ring_entry(ring, at)->marks.overtaken = true;
}

static inline void return_credits(struct slu_engine *engine, struct slu_peer *peer,
                                  enum slu_queue queue, struct slu_entry *entry, uint32_t count)
{
    entry->posted -= count;
    peer->free[queue] += count;
    engine->cq_free[queue] += count;
}

static void end_entry(struct slu_engine *engine, struct slu_peer *peer, struct slu_ring *ring,
                      uint64_t id, struct slu_entry *entry)
{
    enum slu_queue queue = slu_ring_queue(slu_id_ring(id));

    if (queue == SLU_SEND_QUEUE)
        slu_entry_set_immediate(entry, 0);
    if (entry->marks.failed)
        judge_failure(engine, peer, id, entry);
    else
        slu_count_success(engine, peer, id, entry);
    engine->pending[queue]--;
    slu_entry_end(engine, queue, id, entry, entry->marks.failed, SLU_OWNER_CALL);
    if (id == ring->oldest)
        advance(ring);
    else
        overtake(ring, id);
}

void slu_fail_unposted(struct slu_engine *engine, struct slu_peer *peer, uint64_t id,
                       struct slu_entry *entry)
{
    if (!entry->marks.failed)
        slu_entry_fail(entry, SLUICE_STATUS_WR_FLUSH_ERR, 0);
    end_entry(engine, peer, &peer->rings[slu_id_ring(id)], id, entry);
}

/*
 * Ends the requests before one that has ended, in a send queue. Sends complete in order: if a
 * request was done, or failed for a reason of its own, those before it were done, even if they were
 * not reported.
 */
static void retire_unsignaled(struct slu_engine *engine, struct slu_peer *peer,
                              struct slu_ring *ring, uint64_t id)
{
    while (ring->oldest != id) {
        struct slu_entry *earlier = slu_ring_entry(ring, ring->oldest);

        return_credits(engine, peer, SLU_SEND_QUEUE, earlier, earlier->posted);
        end_entry(engine, peer, ring, ring->oldest, earlier);
    }
}

/*
 * Marks the requests before one that was flushed. A flush proves nothing: if they were not
 * reported, they may be done or not, in time or not. Such requests are cancelled when their peer is
 * drained.
 */
static void mark_unknown(const struct slu_ring *ring, uint64_t id)
{
    for (uint64_t at = ring->oldest; at != id; at += SLU_ID_STEP)
        slu_ring_entry(ring, at)->marks.passed = true;
}

/*
 * Gives a failure that was reported without a request to the first request that it ends, unless
 * that has a better status. If a port is down, devices report one of two statuses that only say
 * that the request failed.
 */
static void assign_async_error(struct slu_peer *peer, struct slu_entry *entry)
{
    bool vague = entry->status == SLUICE_STATUS_WR_FLUSH_ERR ||
                 (!peer->cause_inferred && (entry->status == SLUICE_STATUS_RETRY_EXC_ERR ||
                                            entry->status == SLUICE_STATUS_LOC_QP_OP_ERR));

    if (!peer->async_error_pending || !vague)
        return;
    peer->async_error_pending = false;
    entry->status = peer->cause_status;
    entry->vendor = peer->cause_vendor;
}

/*
 * Fails a receive whose message was dropped; nothing else has failed. The length fits 32 bits,
 * because no transport drops messages of 4 GiB.
 */
static void drop_message(struct slu_entry *entry, const struct slu_wc *wc)
{
    slu_entry_fail(entry, SLUICE_STATUS_LOC_LEN_ERR, (uint32_t)wc->bytes);
    entry->marks.dropped = true;
}

static void fail_work(struct slu_engine *engine, struct slu_peer *peer, struct slu_entry *entry,
                      const struct slu_wc *wc)
{
    uint32_t status = wc->status;
    bool inferred;

    if (status == SLU_STATUS_DROPPED) {
        drop_message(entry, wc);
        return;
    }
    /* Take events first: if a port is down, the request itself only says that it failed. */
    if (peer->state == SLUICE_STATE_READY)
        slu_peers_alerted(engine);
    inferred = status == SLUICE_STATUS_WR_FLUSH_ERR && peer->state == SLUICE_STATE_READY;
    /* A queue pair that fails without a reason has lost its peer. */
    if (inferred)
        status = SLUICE_STATUS_RETRY_EXC_ERR;
    status = slu_peer_judge_loss(engine, peer, status);
    if (peer->state == SLUICE_STATE_READY && (wc->flags & SLU_WC_LENGTHS) != 0) {
        peer->long_message = wc->bytes;
        peer->short_receive = wc->immediate;
    }
    slu_entry_fail(entry, status, wc->vendor);
    assign_async_error(peer, entry);
    slu_peer_fail(engine, peer, status, entry->opcode, wc->vendor);
    peer->cause_inferred |= inferred;
}

/*
 * Counts the work requests that end with a part: it and those before it in its chain, without those
 * that have completed themselves. In a failed queue pair, each part that fails completes itself.
 */
static uint32_t count_ended(struct slu_entry *entry, uint32_t part)
{
    uint32_t number = part % SLU_PART_LAST;
    uint32_t ended = number - entry->marks.returned;

    entry->marks.returned = part == number ? (uint16_t)number : 0;
    return ended;
}

static bool is_pending_send(const struct slu_ring *ring, uint64_t id)
{
    const struct slu_entry *entry = slu_ring_entry(ring, id);

    return entry->state == SLU_ENTRY_PENDING && entry->posted > 0 &&
           entry->opcode == SLUICE_OP_SEND;
}

/* Returns the id of the first message that the peer does not have, which lacks the last so many. */
static uint64_t find_untaken(const struct slu_ring *ring, uint64_t id, uint64_t untaken)
{
    uint64_t behind = 0;

    for (uint64_t at = id; at != ring->next; at += SLU_ID_STEP)
        behind += is_pending_send(ring, at);
    for (; behind > untaken; id += SLU_ID_STEP)
        behind -= is_pending_send(ring, id);
    return id;
}

/*
 * Returns whether the flush of a send is a success all the same: the peer has closed, and said that
 * it has this message. Messages behind it are pending as well, since a queue ends in order.
 */
static bool was_taken(const struct slu_engine *engine, struct slu_peer *peer,
                      const struct slu_ring *ring, uint64_t id)
{
    uint64_t untaken;

    if (engine->transport->qp_untaken == NULL || peer->qp == NULL ||
        slu_ring_entry(ring, id)->opcode != SLUICE_OP_SEND)
        return false;
    if (!peer->untaken_known) {
        if (!engine->transport->qp_untaken(peer->qp, &untaken))
            return false;
        peer->untaken_from = find_untaken(ring, id, untaken);
        peer->untaken_known = true;
    }
    return id < peer->untaken_from;
}

/* Handles the completion of a request. part is 0, or the value of slu_part_of(). */
static __attribute__((noinline)) void
end_request(struct slu_engine *engine, const struct slu_wc *wc, uint64_t id, uint32_t part)
{
    struct slu_entry *entry = slu_entry_find(engine, id);
    enum slu_queue queue = slu_ring_queue(slu_id_ring(id));
    struct slu_ring *ring;
    struct slu_peer *peer;
    uint32_t ended;
    bool taken;

    if (entry == NULL || entry->state != SLU_ENTRY_PENDING || entry->posted == 0) {
        engine->discarded++;
        return;
    }
    peer = &engine->peers[slu_id_peer(id)];
    ring = &peer->rings[slu_id_ring(id)];
    if (id != ring->oldest && queue == SLU_SEND_QUEUE) {
        if (wc->status == SLUICE_STATUS_WR_FLUSH_ERR)
            mark_unknown(ring, id);
        else
            retire_unsignaled(engine, peer, ring, id);
    }
    taken = wc->status == SLUICE_STATUS_WR_FLUSH_ERR && queue == SLU_SEND_QUEUE &&
            was_taken(engine, peer, ring, id);
    ended = part == 0 ? 1 : count_ended(entry, part);
    return_credits(engine, peer, queue, entry, ended < entry->posted ? ended : entry->posted);
    if (wc->status != SLUICE_STATUS_SUCCESS && !taken) {
        fail_work(engine, peer, entry, wc);
    } else if (queue == SLU_RECEIVE_QUEUE && !entry->marks.failed) {
        /* A receive that was refused may run all the same; it has its status in this place. */
        entry->bytes = wc->bytes;
        entry->marks.flags = (uint8_t)(wc->flags & SLU_RECEIVED_FLAGS);
        slu_entry_set_immediate(entry, wc->immediate);
        /* A write that consumed the receive has put nothing into the staging buffer. */
        if (entry->marks.staged && (wc->flags & SLUICE_WRITTEN) == 0)
            slu_message_scatter(peer, id, wc->bytes);
    }
    if (entry->posted == 0 && !entry->marks.unfinished)
        end_entry(engine, peer, ring, id, entry);
    /* The peer has closed, and no other request will say so. */
    if (taken && !slu_peer_busy(peer))
        slu_peer_notice_loss(engine, peer);
}

/*
 * Handles the completion of a receive of the pool. The queue pair that took it says whose message
 * it was. A failure ends the connection to that peer, as that of a receive of its own would.
 */
static void end_shared(struct slu_engine *engine, const struct slu_wc *wc)
{
    struct slu_entry *entry = slu_pool_find(engine, wc->id);
    uint32_t index = wc->flags >> SLU_WC_PEER_SHIFT;
    struct slu_peer *peer;

    if (engine->arrivals != NULL) {
        slu_arrival_shared_ended(engine, wc);
        return;
    }
    if (entry == NULL || entry->state != SLU_ENTRY_PENDING) {
        engine->discarded++;
        return;
    }
    slu_pool_untake(engine, entry);
    if ((wc->flags & SLU_WC_NO_PEER) != 0 || index >= engine->peer_count) {
        slu_pool_give_cancelled(engine, wc->id, entry);
        return;
    }
    peer = &engine->peers[index];
    if (wc->status != SLUICE_STATUS_SUCCESS) {
        fail_work(engine, peer, entry, wc);
        judge_failure(engine, peer, wc->id, entry);
    } else {
        entry->bytes = wc->bytes;
        entry->marks.flags = (uint8_t)(wc->flags & SLU_RECEIVED_FLAGS);
        slu_entry_set_immediate(entry, wc->immediate);
        slu_count_success(engine, peer, wc->id, entry);
    }
    slu_pool_give(engine, wc->id, entry, index);
}

/* Arrivals come first: where they are counted, they are frequent. */
void slu_dispatch_rare(struct slu_engine *engine, const struct slu_wc *wc)
{
    if (wc->id % SLU_ID_STEP == SLU_ID_ARRIVAL)
        slu_arrival_ended(engine, wc);
    else if (slu_id_is_pool(wc->id))
        end_shared(engine, wc);
    else if (slu_id_is_part(wc->id))
        end_request(engine, wc, slu_part_request(engine, wc->id), slu_part_of(wc->id));
    else if (slu_id_ring(wc->id) < SLU_RINGS)
        end_request(engine, wc, wc->id, 0);
    else
        engine->discarded += !slu_probe_ended(engine, wc);
}

static void abandon_ring(struct slu_engine *engine, struct slu_peer *peer, uint32_t number)
{
    struct slu_ring *ring = &peer->rings[number];
    uint64_t end = ring->next;

    for (uint64_t id = ring->oldest; id != end; id += SLU_ID_STEP) {
        struct slu_entry *entry = slu_ring_entry(ring, id);

        if (entry->state != SLU_ENTRY_PENDING)
            continue;
        return_credits(engine, peer, slu_ring_queue(number), entry, entry->posted);
        if (!entry->marks.failed)
            slu_entry_fail(entry, SLUICE_STATUS_WR_FLUSH_ERR, 0);
        assign_async_error(peer, entry);
        /* The call that posts the parts ends the request when it finds that no more can follow. */
        if (!entry->marks.unfinished)
            end_entry(engine, peer, ring, id, entry);
    }
}

void slu_peer_abandon(struct slu_engine *engine, struct slu_peer *peer)
{
    if (peer->qp != NULL)
        engine->transport->qp_destroy(peer->qp);
    peer->qp = NULL;
    peer->drain_by = SLUICE_FOREVER;
    slu_probe_abandon(engine, peer);
    slu_arrivals_abandon(engine, peer);
    for (uint32_t i = 0; i < SLU_RINGS; i++)
        abandon_ring(engine, peer, i);
}

/* Returns whether the queue pair has work requests. */
static bool holds_work(const struct slu_engine *engine, const struct slu_peer *peer)
{
    return peer->free[SLU_SEND_QUEUE] != engine->attr.send_depth ||
           peer->free[SLU_RECEIVE_QUEUE] != engine->attr.receive_depth;
}

/* Abandons failed peers that still have work after the drain bound. */
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
        const struct slu_ring *ring = &peer->rings[queue];

        for (uint64_t id = ring->oldest; id != ring->next; id += SLU_ID_STEP) {
            const struct slu_entry *entry = slu_ring_entry(ring, id);
            int64_t deadline;

            if (entry->state != SLU_ENTRY_PENDING)
                continue;
            deadline = slu_entry_deadline(engine, entry);
            if (deadline <= now) {
                engine->scope.expired |= entry->owner == SLU_OWNER_SCOPE;
                slu_peer_note_late(engine, peer, slu_entry_time(engine, entry));
                slu_peer_fail(engine, peer, SLUICE_STATUS_DEADLINE, entry->opcode, 0);
                return;
            }
            slu_note_deadline(engine, deadline);
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
        slu_log(SLUICE_LOG_ERROR, "channel %llu: completion queue failed: %s",
                (unsigned long long)engine->tag, sluice_last_error());
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        struct slu_peer *peer = &engine->peers[i];

        slu_peer_fail_alone(engine, peer, SLUICE_STATUS_FATAL_ERR, (uint32_t)-error, false,
                            sluice_last_error());
        slu_peer_abandon(engine, peer);
    }
}

int slu_take_batch(struct slu_engine *engine, const struct slu_wc *wcs, int count)
{
    if (SLU_UNLIKELY(count < 0)) {
        fail_all(engine, count);
        return 1;
    }
    slu_dispatch(engine, wcs, count, SLU_OWNER_CALL);
    return count;
}

int slu_poll_queue(struct slu_engine *engine, uint32_t most)
{
    struct slu_wc wcs[SLU_BATCH];
    int count = slu_poll_cq(engine, wcs, most < SLU_BATCH ? most : SLU_BATCH);

    return count == 0 ? 0 : slu_take_batch(engine, wcs, count);
}

/* This ends, because nothing is posted meanwhile. */
void slu_progress_all(struct slu_engine *engine)
{
    while (slu_poll_queue(engine, SLU_BATCH) == SLU_BATCH)
        ;
}

void slu_progress_rest(struct slu_engine *engine)
{
    while (engine->sink.left > 0 && slu_poll_queue(engine, SLU_BATCH) == SLU_BATCH)
        ;
}

void slu_end_regions(struct slu_engine *engine)
{
    if (!slu_has_releases())
        return;
    if (engine->guarded)
        engine->transport->cq_leave(engine->cq);
    slu_releases_look();
    if (engine->guarded)
        engine->transport->cq_enter(engine->cq);
}

/*
 * Deregisters regions that are free. Each check scans all posted work, so it is rare while nothing
 * completes.
 */
static void end_regions_now_and_then(struct slu_engine *engine)
{
    uint32_t pending = engine->pending[SLU_SEND_QUEUE] + engine->pending[SLU_RECEIVE_QUEUE];

    if (pending == engine->release_pending && ++engine->release_rounds % RELEASE_ROUNDS != 0)
        return;
    engine->release_pending = pending;
    slu_end_regions(engine);
}

/*
 * Acts on deadlines, probes and drains that are due. Before that it polls everything, because a
 * request that completed in time must not be judged late.
 */
static SLU_COLD void act_on_due(struct slu_engine *engine, int64_t now)
{
    slu_progress_all(engine);
    if (engine->next_deadline <= now)
        end_deadlines(engine, now);
    if (engine->next_probe <= now)
        slu_probe_peers(engine, now);
    if (engine->next_drain <= now)
        end_drains(engine, now);
}

static inline void act_at(struct slu_engine *engine, int64_t now)
{
    if (SLU_UNLIKELY(slu_next_due(engine) <= now))
        act_on_due(engine, now);
}

/* Begins a check of the clock, with all that is due from time to time. */
static inline void begin_check(struct slu_engine *engine)
{
    engine->busy_polls = 0;
    if (SLU_UNLIKELY(slu_has_releases()))
        end_regions_now_and_then(engine);
}

/* A program that never sleeps, or only polls, must notice a dead device as well. */
static inline void count_idle_poll(struct slu_engine *engine)
{
    if (SLU_UNLIKELY(++engine->idle_polls % IDLE_ROUNDS == 0))
        slu_peers_alerted(engine);
}

void slu_act_on_time(struct slu_engine *engine, int64_t now)
{
    count_idle_poll(engine);
    begin_check(engine);
    act_at(engine, now);
}

bool slu_look_at_clock(struct slu_engine *engine, int count)
{
    if (count == 0)
        count_idle_poll(engine);
    if (count == 0 || ++engine->busy_polls >= SLU_BUSY_POLLS) {
        begin_check(engine);
        if (slu_next_due(engine) != SLUICE_FOREVER)
            act_at(engine, slu_now());
    }
    return count > 0;
}

bool slu_progress(struct slu_engine *engine)
{
    return slu_look_at_clock(engine, slu_poll_queue(engine, SLU_BATCH));
}
