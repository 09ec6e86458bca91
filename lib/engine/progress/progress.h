/* SPDX-License-Identifier: MIT */
/*
 * Polling, and handling completions. These are inline for calls that poll for their own requests.
 */
#ifndef SLU_ENGINE_PROGRESS_PROGRESS_H
#define SLU_ENGINE_PROGRESS_PROGRESS_H

#include "engine/peer/peer.h"
#include "engine/ring/result.h"

#define SLU_BATCH 32

/* Under load, check the clock once in this many polls. */
#define SLU_BUSY_POLLS 64

/* Flags that a receive may complete with. */
#define SLU_RECEIVED_FLAGS (SLUICE_IMMEDIATE | SLUICE_WRITTEN)

/* Handles a completion on the slow path: of no request, of a part, out of order, or a failure. */
void slu_dispatch_rare(struct slu_engine *engine, const struct slu_wc *wc);
/* Goes on polling until the sink is full, or nothing is left. */
void slu_progress_rest(struct slu_engine *engine);
/* Polls until the completion queue is empty. */
void slu_progress_all(struct slu_engine *engine);
/* Handles the return value of a poll. Returns how many completions came. */
int slu_take_batch(struct slu_engine *engine, const struct slu_wc *wcs, int count);
/* Polls once, for at most that many completions. Returns how many came. */
int slu_poll_queue(struct slu_engine *engine, uint32_t most);
/* Checks for overdue work after a poll that returned count. Returns whether anything came. */
bool slu_look_at_clock(struct slu_engine *engine, int count);
/* Does the same after a poll that found nothing, for a caller that has just read the clock. */
void slu_act_on_time(struct slu_engine *engine, int64_t now);
/*
 * Completes a request with a failure: nothing of it is in flight, and nothing will be, because its
 * peer failed.
 */
void slu_fail_unposted(struct slu_engine *engine, struct slu_peer *peer, uint64_t id,
                       struct slu_entry *entry);
/* Destroys the queue pair of a peer, and then completes the work that it held. */
void slu_peer_abandon(struct slu_engine *engine, struct slu_peer *peer);
/* Deregisters regions that the program gave up, once no posted work names them. */
void slu_end_regions(struct slu_engine *engine);

/*
 * Ends the oldest request of a ring on the fast path: it has succeeded, as one work request without
 * marks. Returns its entry. The request is counted, but its owner does not have the result yet.
 * Returns NULL if the completion needs the slow path. queue is a constant.
 */
static SLU_INLINE struct slu_entry *slu_take_plain(struct slu_engine *engine, struct slu_peer *peer,
                                                   const enum slu_queue queue,
                                                   const struct slu_wc *wc)
{
    struct slu_ring *ring = &peer->rings[queue];
    struct slu_entry *entry = slu_ring_entry(ring, wc->id);

    if (SLU_UNLIKELY(wc->id != ring->oldest || wc->status != SLUICE_STATUS_SUCCESS ||
                     entry->course != SLU_PLAIN_COURSE))
        return NULL;
    ring->oldest = wc->id + SLU_ID_STEP;
    peer->free[queue]++;
    engine->cq_free[queue]++;
    engine->pending[queue]--;
    /*
     * The entry stops being plain, so a wrong completion of the device for a later id finds no
     * plain one.
     */
    entry->posted = 0;
    if (queue == SLU_RECEIVE_QUEUE) {
        entry->bytes = wc->bytes;
        entry->marks.flags = (uint8_t)(wc->flags & SLU_RECEIVED_FLAGS);
        slu_entry_set_immediate(entry, wc->immediate);
    } else {
        slu_entry_set_immediate(entry, 0);
    }
    slu_count_success(engine, peer, wc->id, entry);
    return entry;
}

/*
 * Does the same and gives the result to its owner. Returns whether the fast path applied. likely is
 * as in slu_entry_end().
 */
static SLU_INLINE bool slu_end_plain(struct slu_engine *engine, struct slu_peer *peer,
                                     const enum slu_queue queue, const struct slu_wc *wc,
                                     const enum slu_owner likely)
{
    struct slu_entry *entry = slu_take_plain(engine, peer, queue, wc);

    if (entry == NULL)
        return false;
    slu_entry_end(engine, queue, wc->id, entry, false, likely);
    return true;
}

static SLU_INLINE void slu_dispatch(struct slu_engine *engine, const struct slu_wc *wcs, int count,
                                    const enum slu_owner likely)
{
    for (const struct slu_wc *wc = wcs; wc < wcs + count; wc++) {
        uint16_t index = slu_id_peer(wc->id);
        bool ended = false;

        if (SLU_LIKELY(index < engine->peer_count)) {
            struct slu_peer *peer = &engine->peers[index];

            if (SLU_LIKELY(slu_id_is_of(wc->id, SLU_SEND_QUEUE)))
                ended = slu_end_plain(engine, peer, SLU_SEND_QUEUE, wc, likely);
            else if (slu_id_is_of(wc->id, SLU_RECEIVE_QUEUE))
                ended = slu_end_plain(engine, peer, SLU_RECEIVE_QUEUE, wc, likely);
        }
        if (SLU_UNLIKELY(!ended))
            slu_dispatch_rare(engine, wc);
    }
}

/* Polls the completion queue, after taking the events that the device has raised. */
static inline int slu_poll_cq(struct slu_engine *engine, struct slu_wc *wcs, uint32_t count)
{
    if (SLU_UNLIKELY(atomic_load_explicit(&engine->cq->alerted, memory_order_relaxed)))
        slu_peers_alerted(engine);
    engine->polls++;
    return engine->transport->cq_poll(engine->cq, wcs, count);
}

/*
 * Polls once for the success of the program's request with that id. If it is the next completion,
 * and the oldest of its ring, marks it as seen and returns its entry; else returns NULL. *count is
 * what came. queue is a constant.
 */
static SLU_INLINE const struct slu_entry *
slu_poll_next(struct slu_engine *engine, const enum slu_queue queue, uint64_t id, int *count)
{
    struct slu_peer *peer = &engine->peers[slu_id_peer(id)];
    struct slu_entry *entry = NULL;
    struct slu_wc wc;

    *count = slu_poll_cq(engine, &wc, 1);
    if (SLU_LIKELY(*count == 1 && wc.id == id))
        entry = slu_take_plain(engine, peer, queue, &wc);
    if (SLU_UNLIKELY(entry == NULL)) {
        if (*count != 0)
            *count = slu_take_batch(engine, &wc, *count);
        return NULL;
    }
    engine->held[queue]--;
    atomic_store_explicit(&entry->state, SLU_ENTRY_SEEN, memory_order_relaxed);
    return entry;
}

/*
 * Does the same as slu_progress(), and goes on while there is more and the program has room for it.
 */
static SLU_INLINE void slu_progress_inline(struct slu_engine *engine)
{
    struct slu_wc wcs[SLU_BATCH];
    int count = slu_poll_cq(engine, wcs, SLU_BATCH);

    if (SLU_UNLIKELY(count < 0))
        count = slu_take_batch(engine, wcs, count);
    else
        slu_dispatch(engine, wcs, count, SLU_OWNER_PROGRAM);
    if (SLU_UNLIKELY(count == 0 || ++engine->busy_polls >= SLU_BUSY_POLLS))
        slu_look_at_clock(engine, count);
    if (SLU_UNLIKELY(count == SLU_BATCH))
        slu_progress_rest(engine);
}

#endif
