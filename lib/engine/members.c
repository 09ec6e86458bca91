/* SPDX-License-Identifier: MIT */
/*
 * Adding and removing peers. A removed peer leaves its index to a later one; the lowest free index
 * is used first. Each reuse of an index increases its generation by 1.
 *
 * Guarantee: what was made for a peer is never used for another one with its index. The work of a
 * peer is drained before it is removed. The unseen results of a removed peer are polled later, with
 * a mark. Handles of its requests stay valid until its index is used again. A region that is tagged
 * with another generation is refused.
 */
#include "config.h"

#include <string.h>

#include "engine/engine.h"
#include "engine/life.h"
#include "engine/progress/progress.h"
#include "engine/request/message.h"
#include "engine/ring/pool.h"
#include "engine/statistics/timing.h"

int slu_index_create(struct slu_engine *engine, struct slu_peer *peer, uint32_t index)
{
    int error = slu_rings_create(engine, peer->rings, index);

    if (error == 0)
        error = slu_times_create(engine, peer->rings, &peer->times);
    if (error == 0)
        error = slu_staging_create(engine, peer->rings, &peer->staging);
    return error;
}

void slu_index_destroy(const struct slu_engine *engine, struct slu_peer *peer)
{
    slu_rings_destroy(engine, peer->rings);
    slu_times_destroy(peer->times);
    slu_staging_destroy(peer->staging);
}

/* Returns the lowest free index, or the next new one. */
static uint32_t find_index(const struct slu_engine *engine)
{
    uint32_t index = 0;

    if (engine->present_count == engine->peer_count)
        return engine->peer_count;
    /* An index is retired after 2^32 peers, because its generation must not repeat. */
    while (index < engine->peer_count && (engine->peers[index].state != SLUICE_STATE_REMOVED ||
                                          engine->peers[index].name.index_generation == UINT32_MAX))
        index++;
    return index;
}

/*
 * Puts a new peer in its index, for which there is room. The rings belong to the index and go on:
 * handles of the previous peer's requests become stale, and its unseen results can still be polled.
 */
static void settle(struct slu_engine *engine, uint32_t index, struct slu_peer *fresh)
{
    struct slu_peer *peer = &engine->peers[index];

    if (index == engine->peer_count) {
        pthread_mutex_lock(&engine->pd->lock);
        *peer = *fresh;
        engine->peer_count++;
        pthread_mutex_unlock(&engine->pd->lock);
        return;
    }
    for (uint32_t i = 0; i < SLU_RINGS; i++)
        peer->rings[i].since = peer->rings[i].next;
    /* The sums of the counters never decrease. */
    slu_counts_add(&engine->past, &peer->counts);
    slu_times_pass_on(engine, peer);
    fresh->name.index_generation = peer->name.index_generation + 1;
    memcpy(&peer->qp, &fresh->qp, sizeof *peer - offsetof(struct slu_peer, qp));
}

/*
 * Frees a peer that got no index. Regions must not be ended while the engine is entered, so it is
 * left for that.
 */
static void forget(struct slu_engine *engine, struct slu_peer *fresh)
{
    if (engine->guarded)
        engine->transport->cq_leave(engine->cq);
    slu_index_destroy(engine, fresh);
    if (engine->guarded)
        engine->transport->cq_enter(engine->cq);
}

/*
 * Adds a peer. It is built in a local struct first, so that the previous peer of the index stays
 * unchanged if this fails.
 */
int slu_peer_add(struct slu_engine *engine, struct sluice_endpoint *endpoint)
{
    struct slu_peer fresh = {0};
    uint32_t index = find_index(engine);
    int error = slu_room_reserve(engine, index);

    if (error == 0)
        error = slu_peer_identify(&fresh);
    if (error == 0 && index == engine->peer_count)
        error = slu_index_create(engine, &fresh, index);
    if (error == 0)
        error = slu_room_grow(engine);
    if (error < 0) {
        forget(engine, &fresh);
        return error;
    }
    slu_peer_init(engine, &fresh);
    error = slu_listed(
        engine->transport->qp_create(engine->pd->transport, engine->cq, &engine->attr, &fresh.qp));
    if (error < 0) {
        slu_room_shrink(engine);
        forget(engine, &fresh);
        return error;
    }
    fresh.qp->peer = index;
    settle(engine, index, &fresh);
    slu_peer_tell_state(engine, &engine->peers[index]);
    slu_peer_endpoint(engine, &engine->peers[index], endpoint);
    return (int)index;
}

/* Marks the unseen results of a removed peer, so that they are not taken for a later one's. */
static void mark_results(struct slu_engine *engine, uint32_t index)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        const struct slu_ring *ring = &engine->peers[index].rings[queue];

        for (uint32_t i = 0; i < ring->size; i++)
            if (ring->entries[i].state == SLU_ENTRY_DONE)
                ring->entries[i].marks.flags |= SLUICE_PEER_REMOVED;
    }
    slu_pool_mark_removed(engine, index);
    for (uint32_t i = 0; i < SLU_FAILURES; i++)
        if (engine->failures[i].completion.peer == index)
            engine->failures[i].completion.flags |= SLUICE_PEER_REMOVED;
}

void slu_peer_remove(struct slu_engine *engine, struct slu_peer *peer)
{
    const struct slu_name name = peer->name;

    /* A request that is complete by now is not cancelled. */
    slu_progress_all(engine);
    slu_peer_end(engine, peer);
    mark_results(engine, slu_peer_index(engine, peer));
    slu_peer_init(engine, peer);
    peer->name = (struct slu_name){.index_generation = name.index_generation};
    peer->state = SLUICE_STATE_REMOVED;
    slu_peer_tell_state(engine, peer);
    slu_room_shrink(engine);
    /* Its drain has ended: find the next one, so that no event loop wakes for this one. */
    engine->next_drain = 0;
}
