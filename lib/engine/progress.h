/* SPDX-License-Identifier: MIT */
/* A poll and what becomes of its completions, inline where calls poll for what they return. */
#ifndef SLU_ENGINE_PROGRESS_H
#define SLU_ENGINE_PROGRESS_H

#include "engine/inside.h"

#define SLU_BATCH 32
/* Under load the clock is looked at once in so many polls. */
#define SLU_BUSY_POLLS 64

/* What is no plain success: of no request, of a part of one, or not in order; or a failure. */
void slu_dispatch_rare(struct slu_engine *engine, const struct slu_wc *wc);

/*
 * Whether it was the success of the oldest request of a ring, with nothing else to be said of
 * it, which is at its end then. queue is a constant. The engine's counts are the caller's.
 */
static SLU_INLINE bool slu_end_plain(struct slu_engine *engine, struct slu_peer *peer,
                                     const enum slu_queue queue, const struct slu_wc *wc)
{
    struct slu_ring *ring = &peer->rings[queue];
    struct slu_entry *entry = slu_ring_entry(ring, wc->id);

    if (SLU_UNLIKELY(wc->id != ring->oldest || wc->status != SLUICE_STATUS_SUCCESS ||
                     entry->course != SLU_PLAIN_COURSE))
        return false;
    ring->oldest = wc->id + SLU_ID_STEP;
    peer->free[queue]++;
    if (queue == SLU_RECEIVE_QUEUE) {
        entry->bytes = wc->bytes;
        entry->marks.flags = (uint8_t)(wc->flags & SLU_RECEIVED_FLAGS);
        entry->immediate = wc->immediate;
    }
    slu_count_success(peer, entry);
    slu_entry_end(engine, queue, wc->id, entry, false);
    return true;
}

/* So many requests, which were one work request each, are at their ends. */
static SLU_INLINE void slu_count_ended(struct slu_engine *engine, enum slu_queue queue,
                                       uint32_t count)
{
    if (count == 0)
        return;
    engine->pending[queue] -= count;
    engine->cq_free[queue] += count;
}

static SLU_INLINE void slu_dispatch(struct slu_engine *engine, const struct slu_wc *wcs, int count)
{
    uint32_t ended[SLU_QUEUES] = {0};

    for (const struct slu_wc *wc = wcs; wc < wcs + count; wc++) {
        uint32_t number = slu_id_ring(wc->id);
        uint32_t index = slu_id_peer(wc->id);

        if (SLU_LIKELY(index < engine->peer_count)) {
            struct slu_peer *peer = &engine->peers[index];

            if (SLU_LIKELY(number == SLU_SEND_QUEUE &&
                           slu_end_plain(engine, peer, SLU_SEND_QUEUE, wc))) {
                ended[SLU_SEND_QUEUE]++;
                continue;
            }
            if (SLU_LIKELY(number == SLU_RECEIVE_QUEUE &&
                           slu_end_plain(engine, peer, SLU_RECEIVE_QUEUE, wc))) {
                ended[SLU_RECEIVE_QUEUE]++;
                continue;
            }
        }
        slu_dispatch_rare(engine, wc);
    }
    slu_count_ended(engine, SLU_SEND_QUEUE, ended[SLU_SEND_QUEUE]);
    slu_count_ended(engine, SLU_RECEIVE_QUEUE, ended[SLU_RECEIVE_QUEUE]);
}

/* What an event of the device has told of is known before what the queue has. */
static inline int slu_poll_cq(struct slu_engine *engine, struct slu_wc *wcs, uint32_t count)
{
    if (SLU_UNLIKELY(atomic_load_explicit(&engine->cq->alerted, memory_order_relaxed)))
        slu_peers_alerted(engine);
    engine->polls++;
    return engine->transport->cq_poll(engine->cq, wcs, count);
}

/* As slu_progress(). */
static SLU_INLINE void slu_progress_inline(struct slu_engine *engine)
{
    struct slu_wc wcs[SLU_BATCH];
    int count = slu_poll_cq(engine, wcs, SLU_BATCH);

    if (SLU_UNLIKELY(count < 0))
        count = slu_take_batch(engine, wcs, count);
    else
        slu_dispatch(engine, wcs, count);
    if (SLU_UNLIKELY(count == 0 || ++engine->busy_polls >= SLU_BUSY_POLLS))
        slu_look_at_clock(engine, count);
}

/* Polls once for the next completion, and counts it; the clock is the caller's. */
static SLU_INLINE void slu_poll_one(struct slu_engine *engine)
{
    struct slu_wc wc;
    int count = slu_poll_cq(engine, &wc, 1);

    engine->busy_polls++;
    if (SLU_LIKELY(count == 1))
        slu_dispatch(engine, &wc, 1);
    else if (SLU_UNLIKELY(count < 0))
        slu_take_batch(engine, &wc, count);
}

#endif
