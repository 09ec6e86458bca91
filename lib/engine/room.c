/* SPDX-License-Identifier: MIT */
/*
 * Room for peers that come and go: memory for them, slots for their requests, and
 * entries of the completion queue. Guarantee: whatever fails, all is as it was; and
 * credits and entries grow and shrink by the same numbers.
 *
 * Arrays move here and nowhere else, while the program is in a call of its own that
 * adds a peer. Nothing in the engine keeps a pointer into them from one call to the
 * next. Of other threads one looks at them, which deregisters memory: it scans slots
 * and keys under the lock of the protection domain, and they are exchanged under that
 * lock, so that it sees the old ones or the new ones, whole. The threads of a transport
 * know a peer by its number only, and wakers look at nothing that moves.
 *
 * Slots do not go again with their peers: their ids stay unique, and the memory is
 * at most what the most peers at a time needed, and half as much again.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/members.h"

/* By half at least, so that many peers that come one by one cost few copies. */
static uint32_t grown(uint32_t size, uint32_t needed, uint32_t most)
{
    uint32_t more = size + size / 2;

    if (more > most)
        more = most;
    return more > needed ? more : needed;
}

int slu_room_reserve(struct slu_engine *engine, uint32_t index)
{
    struct slu_peer *peers;
    uint32_t room;

    if (index < engine->peer_room)
        return 0;
    if (index >= SLUICE_MAX_PEERS)
        return slu_fail(ENOMEM, "a multichannel has at most %d peers", SLUICE_MAX_PEERS);
    room = grown(engine->peer_room, index + 1, SLUICE_MAX_PEERS);
    peers = realloc(engine->peers, room * sizeof *peers);
    if (peers == NULL)
        return slu_fail(ENOMEM, "no memory for %u peers", room);
    engine->peers = peers;
    engine->peer_room = room;
    return 0;
}

static void exchange_slots(struct slu_engine *engine, struct slu_pool *pool, struct slu_slot *slots,
                           _Atomic uint32_t *keys, uint32_t count)
{
    struct slu_slot *old_slots = pool->slots;
    _Atomic uint32_t *old_keys = pool->keys;

    pthread_mutex_lock(&engine->pd->lock);
    pool->slots = slots;
    pool->keys = keys;
    pool->slot_count = count;
    pthread_mutex_unlock(&engine->pd->lock);
    free(old_slots);
    free((void *)old_keys);
}

/* Sees to it that there are so many slots. */
static int grow_pool(struct slu_engine *engine, enum slu_queue queue, uint32_t size)
{
    struct slu_pool *pool = &engine->pools[queue];
    uint32_t before = pool->slot_count;
    size_t sges = engine->attr.max_sge;
    struct slu_slot *slots;
    _Atomic uint32_t *keys;
    uint32_t count;

    if (size <= before)
        return 0;
    count = grown(before, size, SLU_MAX_SLOTS);
    slots = calloc(count, sizeof *slots);
    keys = calloc(count * sges, sizeof *keys);
    if (slots == NULL || keys == NULL) {
        free(slots);
        free((void *)keys);
        return slu_fail(ENOMEM, "no memory for %u requests in flight", count);
    }
    memcpy(slots, pool->slots, before * sizeof *slots);
    memcpy((void *)keys, (const void *)pool->keys, before * sges * sizeof *keys);
    exchange_slots(engine, pool, slots, keys, count);
    for (uint32_t i = before; i < count; i++) {
        slots[i].id = (uint64_t)queue << SLU_INDEX_BITS | (i + 1);
        slots[i].owner = SLU_OWNER_NOBODY;
        slu_list_push(pool, &pool->free, &slots[i]);
    }
    return 0;
}

/* Slots of a queue that so many peers can use. */
static uint32_t pool_size(const struct slu_engine *engine, enum slu_queue queue, uint32_t peers)
{
    uint64_t size = (uint64_t)slu_queue_depth(engine, queue) * peers;

    return size < SLU_MAX_SLOTS ? (uint32_t)size : SLU_MAX_SLOTS;
}

/* That a peer can use: its two depths, and one for a probe. */
static uint32_t entries_of_peer(const struct slu_engine *engine)
{
    return engine->attr.send_depth + engine->attr.receive_depth + 1;
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

static void set_sizes(struct slu_engine *engine)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++)
        engine->pools[queue].size = pool_size(engine, (enum slu_queue)queue, engine->present_count);
}

int slu_room_grow(struct slu_engine *engine)
{
    uint32_t peers = engine->present_count + 1;
    int error = 0;

    /* They share what there is, slots too. */
    if (engine->entries_shared) {
        engine->present_count = peers;
        return 0;
    }
    for (int queue = 0; queue < SLU_QUEUES && error == 0; queue++)
        error = grow_pool(engine, (enum slu_queue)queue,
                          pool_size(engine, (enum slu_queue)queue, peers));
    if (error == 0)
        error = grow_queue(engine);
    if (error < 0)
        return error;
    engine->present_count = peers;
    for (int queue = 0; queue < SLU_QUEUES; queue++)
        engine->pools[queue].cq_free += slu_queue_depth(engine, (enum slu_queue)queue);
    engine->probe_limit++;
    engine->probe_room++;
    set_sizes(engine);
    return 0;
}

void slu_room_shrink(struct slu_engine *engine)
{
    engine->present_count--;
    if (engine->entries_shared)
        return;
    for (int queue = 0; queue < SLU_QUEUES; queue++)
        engine->pools[queue].cq_free -= slu_queue_depth(engine, (enum slu_queue)queue);
    engine->probe_limit--;
    engine->probe_room--;
    set_sizes(engine);
    engine->transport->cq_reduce(engine->cq, entries_of_peer(engine));
}
