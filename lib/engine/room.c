/* SPDX-License-Identifier: MIT */
/*
 * Room for peers that are added and removed: memory, and entries of the completion queue.
 * Guarantee: if anything fails, nothing has changed. Credits and entries grow and shrink by the
 * same numbers.
 *
 * Arrays are moved only here, while the program is in a call that adds a peer. Nothing in the
 * engine keeps a pointer into them from one call to the next. The only other thread that reads them
 * is one that deregisters memory. It scans the rings of the peers under the lock of the protection
 * domain, and the array of peers is exchanged under that lock, so it sees either the old array or
 * the new one. The threads of a transport know a peer by its number only, and wakers read nothing
 * that moves.
 *
 * The rings of a removed peer stay with its index, so that ids stay unique. The memory in use is
 * therefore that of the largest number of peers so far.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/life.h"
#include "engine/peer/arrivals.h"
#include "engine/ring/order.h"

/*
 * Returns the new size of an array. It grows by half at least, so that adding many peers one by one
 * makes few copies.
 */
static uint32_t grown(uint32_t size, uint32_t needed, uint32_t most)
{
    uint32_t more = size + size / 2;

    if (more > most)
        more = most;
    return more > needed ? more : needed;
}

int slu_room_reserve(struct slu_engine *engine, uint32_t index)
{
    struct slu_peer *peers, *old;
    uint32_t room;

    if (index < engine->peer_room)
        return 0;
    if (index >= SLUICE_MAX_PEERS)
        return slu_fail(ENOMEM, "a multichannel has at most %d peers", SLUICE_MAX_PEERS);
    room = grown(engine->peer_room, index + 1, SLUICE_MAX_PEERS);
    peers = calloc(room, sizeof *peers);
    if (peers == NULL)
        return slu_fail(ENOMEM, "no memory for %u peers", room);
    memcpy(peers, engine->peers, engine->peer_count * sizeof *peers);
    old = engine->peers;
    pthread_mutex_lock(&engine->pd->lock);
    engine->peers = peers;
    pthread_mutex_unlock(&engine->pd->lock);
    engine->peer_room = room;
    free(old);
    return 0;
}

/*
 * Returns the entries that a peer can use: its two depths, one for a probe, and those of its
 * further queue pairs.
 */
static uint32_t entries_of_peer(const struct slu_engine *engine)
{
    return engine->attr.send_depth + engine->attr.receive_depth + 1 +
           slu_stripes_entries(engine->attr.queue_pairs);
}

static int grow_queue(struct slu_engine *engine)
{
    const struct slu_tcontext *device = engine->pd->context->transport;
    uint32_t entries = entries_of_peer(engine);

    if (entries > device->max_cq_entries - engine->cq->depth)
        return slu_fail(ENOMEM,
                        "the completion queues of device %s have %u entries, and %u are taken: a "
                        "peer needs %u; lower send_depth and receive_depth",
                        device->device, device->max_cq_entries, engine->cq->depth, entries);
    return slu_listed(engine->transport->cq_extend(engine->cq, entries));
}

/*
 * Grows the places of results. The places of a removed peer stay, because its results may still be
 * unseen; a later peer may reuse them.
 */
static int grow_places(struct slu_engine *engine, uint32_t places[SLU_QUEUES])
{
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        places[queue] = engine->cq_size[queue] + slu_queue_depth(engine, (enum slu_queue)queue);
        if (places[queue] < engine->places[queue])
            places[queue] = engine->places[queue];
    }
    return slu_places_grow(engine, places, engine->present_count + 1);
}

/*
 * Admits a peer when entries are scarce. Entries of further queue pairs are not shared: a new peer
 * needs those that a removed one has left.
 */
static int share_what_there_is(struct slu_engine *engine)
{
    const struct slu_tcontext *device = engine->pd->context->transport;
    int error = 0;

    if (engine->attr.queue_pairs > 1 && engine->present_count >= engine->further_peers)
        error = slu_fail(ENOMEM,
                         "the completion queues of device %s have %u entries, and all are taken: "
                         "none is left for %u queue pairs of another peer",
                         device->device, device->max_cq_entries, engine->attr.queue_pairs);
    if (error == 0)
        error = slu_places_grow(engine, engine->places, engine->present_count + 1);
    engine->present_count += error == 0;
    return error;
}

int slu_room_grow(struct slu_engine *engine)
{
    uint32_t places[SLU_QUEUES];
    int error;

    error = slu_arrivals_grow(engine);
    if (error < 0)
        return error;
    if (engine->entries_shared)
        return share_what_there_is(engine);
    error = grow_places(engine, places);
    if (error == 0)
        error = grow_queue(engine);
    if (error < 0)
        return error;
    engine->present_count++;
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        engine->cq_free[queue] += slu_queue_depth(engine, (enum slu_queue)queue);
        engine->cq_size[queue] += slu_queue_depth(engine, (enum slu_queue)queue);
        engine->places[queue] = places[queue];
    }
    engine->probe_limit++;
    engine->probe_room++;
    engine->further_peers++;
    return 0;
}

void slu_room_shrink(struct slu_engine *engine)
{
    engine->present_count--;
    if (engine->entries_shared)
        return;
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        engine->cq_free[queue] -= slu_queue_depth(engine, (enum slu_queue)queue);
        engine->cq_size[queue] -= slu_queue_depth(engine, (enum slu_queue)queue);
    }
    engine->probe_limit--;
    engine->probe_room--;
    engine->further_peers--;
    engine->transport->cq_reduce(engine->cq, entries_of_peer(engine));
}
