/* SPDX-License-Identifier: MIT */
/*
 * Engines whose peers are absent until they are used. Guarantees: an absent peer costs no memory
 * but its place in the array, whose pages are untouched. It appears in the call that uses it first,
 * and its connection is made by the user of the engine. A peer that has failed can become absent
 * again.
 */
#include "config.h"

#include <stdlib.h>

#include "engine/engine.h"
#include "engine/life.h"
#include "engine/peer/probe.h"
#include "engine/progress/progress.h"

static int check_attr(const struct slu_engine *engine)
{
    if (engine->attr.queue_pairs > 1)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.queue_pairs is %u: a lazy node has one for "
                          "each rank",
                          engine->attr.queue_pairs);
    if (engine->arrival_tags > 0)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.arrival_tags is %u: a lazy node counts no "
                          "arrivals",
                          engine->arrival_tags);
    if (engine->pool_limits.depth > 0)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.receive_pool is %u: a lazy node has no pool of "
                          "receives",
                          engine->pool_limits.depth);
    return 0;
}

/* Takes the place of the peers, which stay zero. calloc() does not touch so much memory. */
static int make_places(struct slu_engine *engine, uint32_t peers)
{
    struct slu_peer *places = calloc(peers, sizeof *places);

    if (places == NULL)
        return slu_fail(ENOMEM, "no memory for %u peers", peers);
    /* A thread that deregisters memory may scan the peers. */
    pthread_mutex_lock(&engine->pd->lock);
    free(engine->peers);
    engine->peers = places;
    engine->peer_count = engine->peer_room = peers;
    pthread_mutex_unlock(&engine->pd->lock);
    return 0;
}

int slu_engine_use_lazy(struct slu_engine *engine, struct slu_lazy *lazy, uint32_t peers)
{
    struct slu_deferred *deferred;
    int error = check_attr(engine);

    if (error < 0)
        return error;
    deferred = slu_deferred_create(engine->pd->transport, &engine->attr, peers, lazy->user);
    if (deferred == NULL)
        return -errno;
    error = make_places(engine, peers);
    if (error < 0) {
        slu_deferred_free(deferred);
        return error;
    }
    slu_deferred_over(engine->transport, &engine->striped);
    slu_deferred_take(engine->cq, deferred);
    engine->transport = &engine->striped;
    engine->guarded = true;
    engine->lazy = lazy;
    return 0;
}

/* Regions must not be ended while the engine is entered. */
static void forget(struct slu_engine *engine, struct slu_peer *fresh)
{
    engine->transport->cq_leave(engine->cq);
    slu_index_destroy(engine, fresh);
    engine->transport->cq_enter(engine->cq);
}

/*
 * Makes what belongs to the index; a peer that was there before has it already. A thread that
 * deregisters memory scans the rings under the lock of the protection domain.
 */
static int make_index(struct slu_engine *engine, struct slu_peer *peer)
{
    struct slu_peer fresh = {0};
    int error;

    if (peer->rings->memory != NULL)
        return 0;
    error = slu_peer_identify(&fresh);
    if (error == 0)
        error = slu_index_create(engine, &fresh, slu_peer_index(engine, peer));
    if (error == 0)
        error = slu_room_grow(engine);
    if (error < 0) {
        forget(engine, &fresh);
        return error;
    }
    pthread_mutex_lock(&engine->pd->lock);
    *peer = fresh;
    pthread_mutex_unlock(&engine->pd->lock);
    return 0;
}

static int make_peer(struct slu_engine *engine, struct slu_peer *peer)
{
    int error = make_index(engine, peer);

    if (error == 0)
        error = slu_peer_create(engine, peer);
    if (error < 0)
        return error;
    slu_deferred_attach(peer->qp);
    peer->state = SLUICE_STATE_READY;
    engine->ready_count++;
    slu_peer_tell_state(engine, peer);
    slu_probe_connected(engine, peer,
                        engine->lazy->access(engine->lazy, slu_peer_index(engine, peer)));
    return 0;
}

bool slu_peer_appear(struct slu_engine *engine, struct slu_peer *peer)
{
    uint32_t index = slu_peer_index(engine, peer);
    int error = make_peer(engine, peer);

    if (error == 0)
        return true;
    peer->state = SLU_PEER_ABSENT;
    slu_log(SLUICE_LOG_WARN, "channel %llu, %s %u could not be prepared: %s",
            (unsigned long long)engine->tag, engine->peer_word, index, sluice_last_error());
    return false;
}

void slu_peer_vanish(struct slu_engine *engine, struct slu_peer *peer)
{
    slu_peer_end(engine, peer);
    peer->name.generation++;
    peer->counts.resets++;
    slu_peer_init(engine, peer);
    peer->state = SLU_PEER_ABSENT;
    slu_peer_tell_state(engine, peer);
}

bool slu_peer_rests(const struct slu_engine *engine, uint32_t index)
{
    const struct slu_peer *peer = &engine->peers[index];

    return peer->state == SLU_PEER_ABSENT ||
           (!slu_peer_busy(peer) && peer->probe.id == 0 && !peer->probe.awaited);
}

/* Such an engine has no shared receives and no arrivals, whose ids name no peer. */
uint32_t slu_lazy_peer_of(uint64_t id, bool *receives)
{
    *receives = slu_id_is_of(id, SLU_RECEIVE_QUEUE);
    return slu_id_any_peer(id);
}
