/* SPDX-License-Identifier: MIT */
/*
 * Peers that come and go. A removed peer leaves its index, which the next one that
 * comes takes, the lowest first; each time it is used again the index is one
 * generation older.
 *
 * Guarantee: what was made for a peer is never used for another with its index.
 * Its work is drained before it goes. What nobody has seen of it is polled later,
 * and marked. Its handles name its requests until its index is used again, and then
 * nothing. A region that is tagged with another generation is refused.
 */
#include "config.h"

#include <string.h>

#include "engine/message.h"
#include "engine/timing.h"

/* The lowest index that is free, or the next one. */
static uint32_t find_index(const struct slu_engine *engine)
{
    uint32_t index = 0;

    if (engine->present_count == engine->peer_count)
        return engine->peer_count;
    /* One that was used 2^32 times is not used again: its generations are over. */
    while (index < engine->peer_count && (engine->peers[index].state != SLUICE_STATE_REMOVED ||
                                          engine->peers[index].name.index_generation == UINT32_MAX))
        index++;
    return index;
}

/* What is counted of all together never gets less. */
static void keep_counts(struct slu_counts *past, const struct slu_counts *counts)
{
    for (uint32_t i = 0; i < SLU_COUNTED_OPCODES; i++) {
        past->requests[i] += counts->requests[i];
        past->bytes[i] += counts->bytes[i];
    }
    for (uint32_t i = 0; i < SLU_COUNTED_CLASSES; i++)
        past->failed[i] += counts->failed[i];
    past->refused += counts->refused;
    past->queue_full += counts->queue_full;
    past->forgotten += counts->forgotten;
    past->resets += counts->resets;
    past->arrivals += counts->arrivals;
    past->strays += counts->strays;
}

struct slu_counts *slu_counts_of(struct slu_engine *engine, uint32_t index, uint32_t flags)
{
    struct slu_peer *peer = &engine->peers[index];
    bool gone = (flags & SLUICE_PEER_REMOVED) != 0;

    return gone && peer->state != SLUICE_STATE_REMOVED ? &engine->past : &peer->counts;
}

/*
 * A place for it there is. The rings are of the index, and go on: from now on no handle
 * names a request of who had it; what nobody has seen is still polled.
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
    keep_counts(&engine->past, &peer->counts);
    slu_times_pass_on(engine, peer);
    fresh->name.index_generation = peer->name.index_generation + 1;
    memcpy(&peer->qp, &fresh->qp, sizeof *peer - offsetof(struct slu_peer, qp));
}

/* One that did not come to have an index. No region ends while the engine is entered. */
static void forget(struct slu_engine *engine, struct slu_peer *fresh)
{
    slu_rings_destroy(fresh->rings);
    slu_times_destroy(fresh->times);
    if (fresh->staging == NULL)
        return;
    if (engine->guarded)
        engine->transport->cq_leave(engine->cq);
    slu_staging_destroy(fresh->staging);
    if (engine->guarded)
        engine->transport->cq_enter(engine->cq);
}

/* In a place of its own first, so that whoever had the index stays as he was if this fails. */
int slu_peer_add(struct slu_engine *engine, struct sluice_endpoint *endpoint)
{
    struct slu_peer fresh = {0};
    uint32_t index = find_index(engine);
    int error = slu_room_reserve(engine, index);

    if (error == 0)
        error = slu_peer_identify(&fresh);
    if (error == 0 && index == engine->peer_count)
        error = slu_rings_create(engine, fresh.rings, index);
    if (error == 0 && index == engine->peer_count)
        error = slu_times_create(engine, fresh.rings, &fresh.times);
    if (error == 0 && index == engine->peer_count)
        error = slu_staging_create(engine, fresh.rings, &fresh.staging);
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

/* What nobody has seen of it, so that it is not taken for another's. */
static void mark_results(struct slu_engine *engine, uint32_t index)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        const struct slu_ring *ring = &engine->peers[index].rings[queue];

        for (uint32_t i = 0; i < ring->size; i++)
            if (ring->entries[i].state == SLU_ENTRY_DONE)
                ring->entries[i].marks.flags |= SLUICE_PEER_REMOVED;
    }
    for (uint32_t i = 0; i < SLU_FAILURES; i++)
        if (engine->failures[i].completion.peer == index)
            engine->failures[i].completion.flags |= SLUICE_PEER_REMOVED;
}

void slu_peer_remove(struct slu_engine *engine, struct slu_peer *peer)
{
    const struct slu_name name = peer->name;

    /* What is complete by now is not cancelled. */
    slu_progress_all(engine);
    slu_peer_end(engine, peer);
    mark_results(engine, slu_peer_index(engine, peer));
    slu_peer_init(engine, peer);
    peer->name = (struct slu_name){.index_generation = name.index_generation};
    peer->state = SLUICE_STATE_REMOVED;
    slu_peer_tell_state(engine, peer);
    slu_room_shrink(engine);
}
