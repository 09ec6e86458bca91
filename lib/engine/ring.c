/* SPDX-License-Identifier: MIT */
/*
 * Rings: every accepted request has exactly one entry, an id names it for as long
 * as its result may be asked for, and no id is ever given out twice.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/members.h"

#define LINE sizeof(struct slu_entry)

static uint32_t power_of_two(uint32_t least)
{
    uint32_t size = 1;

    while (size < least)
        size *= 2;
    return size;
}

static uint32_t ring_size(const struct slu_engine *engine, uint32_t ring)
{
    return ring == SLU_OWN_RING ? engine->own_size > 0 ? power_of_two(engine->own_size) : 0
                                : power_of_two(slu_queue_depth(engine, (enum slu_queue)ring));
}

/* The one allocation of all rings of a peer: what it is aligned from is behind its end. */
static void share_memory(const struct slu_engine *engine, struct slu_ring *rings, void *memory)
{
    struct slu_entry *entries = (void *)(((uintptr_t)memory + LINE - 1) & ~(uintptr_t)(LINE - 1));
    _Atomic uint32_t *keys;

    for (uint32_t i = 0; i < SLU_RINGS; i++) {
        rings[i].entries = entries;
        entries += rings[i].size;
    }
    keys = (void *)entries;
    for (uint32_t i = 0; i < SLU_RINGS; i++) {
        rings[i].keys = keys;
        keys += (size_t)rings[i].size * (engine->attr.max_sge - 1);
    }
    rings->memory = memory;
}

int slu_rings_create(struct slu_engine *engine, struct slu_ring *rings, uint32_t index)
{
    size_t entries = 0;
    void *memory;

    for (uint32_t i = 0; i < SLU_RINGS; i++) {
        uint32_t size = ring_size(engine, i);

        rings[i] = (struct slu_ring){.size = size, .mask = size > 0 ? size - 1 : 0};
        rings[i].next = SLU_ID_STEP | (uint64_t)index << SLU_RING_BITS | (i + 1);
        rings[i].oldest = rings[i].since = rings[i].next;
        entries += size;
    }
    memory = calloc(1, LINE + entries * (LINE + (engine->attr.max_sge - 1) * sizeof(uint32_t)));
    if (memory == NULL)
        return slu_fail(ENOMEM, "no memory for %zu requests in flight", entries);
    share_memory(engine, rings, memory);
    for (uint32_t i = 0; i < SLU_RINGS; i++)
        for (uint32_t k = 0; k < rings[i].size; k++)
            rings[i].entries[k].owner = SLU_OWNER_NOBODY;
    return 0;
}

void slu_rings_destroy(struct slu_ring *rings)
{
    free(rings->memory);
    memset(rings, 0, SLU_RINGS * sizeof *rings);
}

uint32_t slu_rings_results(const struct slu_engine *engine)
{
    return ring_size(engine, SLU_SEND_QUEUE) + ring_size(engine, SLU_RECEIVE_QUEUE);
}

bool slu_ring_uses_key(const struct slu_ring *ring, uint32_t max_sge, uint32_t lkey)
{
    for (uint32_t i = 0; i < ring->size; i++) {
        const struct slu_entry *entry = &ring->entries[i];
        uint32_t count;

        if (atomic_load_explicit(&entry->state, memory_order_acquire) != SLU_ENTRY_PENDING)
            continue;
        count = atomic_load_explicit(&entry->key_count, memory_order_relaxed);
        if (count > 0 && atomic_load_explicit(&entry->key, memory_order_relaxed) == lkey)
            return true;
        for (uint32_t k = 1; k < count; k++)
            if (atomic_load_explicit(&ring->keys[(size_t)i * (max_sge - 1) + k - 1],
                                     memory_order_relaxed) == lkey)
                return true;
    }
    return false;
}

static int grow_order(struct slu_order *order, uint32_t entries)
{
    uint32_t size = power_of_two(4 * entries);
    uint64_t *ids;

    if (order->ids != NULL && size <= order->mask + 1)
        return 0;
    ids = calloc(size, sizeof *ids);
    if (ids == NULL)
        return slu_fail(ENOMEM, "no memory for the results of %u requests", entries);
    for (uint32_t i = order->tail; i != order->head; i++)
        ids[i & (size - 1)] = order->ids[i & order->mask];
    free(order->ids);
    order->ids = ids;
    order->mask = size - 1;
    return 0;
}

int slu_orders_grow(struct slu_engine *engine, uint32_t entries)
{
    int error = 0;

    for (int i = 0; i < SLU_OWNERS_KEEP && error == 0; i++)
        error = grow_order(&engine->orders[i], entries);
    return error == 0 ? slu_aside_grow(engine, entries) : error;
}

void slu_orders_destroy(struct slu_engine *engine)
{
    for (int i = 0; i < SLU_OWNERS_KEEP; i++)
        free(engine->orders[i].ids);
    slu_aside_destroy(engine);
}

/* The entry of an id of the order, if it is still done and unseen. */
static struct slu_entry *find_unseen(const struct slu_engine *engine, const struct slu_order *order,
                                     uint64_t id)
{
    struct slu_entry *entry = slu_entry_find(engine, id);

    return entry != NULL && entry->state == SLU_ENTRY_DONE &&
                   entry->owner == (uint32_t)(order - engine->orders)
               ? entry
               : NULL;
}

void slu_order_tidy(struct slu_engine *engine, struct slu_order *order)
{
    uint32_t to = order->tail;

    for (uint32_t from = order->tail; from != order->head; from++) {
        uint64_t id = order->ids[from & order->mask];

        if (find_unseen(engine, order, id) != NULL)
            order->ids[to++ & order->mask] = id;
    }
    order->head = to;
}

void slu_order_make_room(struct slu_engine *engine, struct slu_order *order)
{
    /* Of a program that never looks it is the oldest that were forgotten. */
    while (order->tail != order->head &&
           find_unseen(engine, order, order->ids[order->tail & order->mask]) == NULL)
        order->tail++;
    if (order->head - order->tail > order->mask - order->mask / 4)
        slu_order_tidy(engine, order);
}

struct slu_entry *slu_order_first(const struct slu_engine *engine, struct slu_order *order)
{
    struct slu_entry *entry = NULL;

    if (order->unseen == 0) {
        order->tail = order->head;
        return NULL;
    }
    while (entry == NULL) {
        entry = find_unseen(engine, order, order->ids[order->tail & order->mask]);
        order->tail += entry == NULL;
    }
    return entry;
}

bool slu_take_done(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completion)
{
    struct slu_order *order = &engine->orders[owner];
    struct slu_entry *entry = slu_order_first(engine, order);

    if (engine->failure_count > 0 &&
        slu_failure_take(engine, owner, entry != NULL ? entry->number : UINT64_MAX, completion))
        return true;
    if (entry == NULL)
        return false;
    slu_entry_result(entry, slu_id_peer(order->ids[order->tail++ & order->mask]), completion);
    slu_entry_seen(engine, entry);
    return true;
}

/* A failure goes to those that are kept, a success aside; what is left of a past scope, nowhere. */
void slu_entry_displace(struct slu_engine *engine, struct slu_ring *ring, struct slu_entry *entry)
{
    uint64_t id = ring->next - (uint64_t)ring->size * SLU_ID_STEP;

    if (entry->owner == SLU_OWNER_SCOPE && (!engine->scope.open || entry->tag != engine->scope.tag))
        return;
    if (!entry->marks.failed) {
        slu_aside_keep(engine, ring, id, entry);
        return;
    }
    slu_failure_keep_entry(engine, id, entry);
    slu_entry_seen(engine, entry);
}

void slu_entry_failure(const struct slu_entry *entry, struct sluice_completion *completion)
{
    enum sluice_error_class error_class = slu_class_of(entry->status, entry->opcode);

    completion->bytes = 0;
    completion->immediate = 0;
    completion->error = slu_class_error(error_class);
    completion->error_class = error_class;
    completion->status = entry->status;
    completion->vendor = entry->vendor;
    completion->cause = entry->marks.cause;
}

/* An id of its own for a request that has no entry. */
uint64_t slu_id_refused(uint64_t number)
{
    return number * SLU_ID_STEP | SLU_ID_REFUSED;
}

void slu_engine_set_number(struct slu_engine *engine, uint64_t number)
{
    for (uint32_t i = 0; i < engine->peer_count; i++)
        for (uint32_t k = 0; k < SLU_RINGS; k++) {
            struct slu_ring *ring = &engine->peers[i].rings[k];

            ring->next = number * SLU_ID_STEP | ring->next % SLU_ID_STEP;
            ring->oldest = ring->since = ring->next;
        }
    engine->refused_number = number - 1;
}

void slu_entry_tell_call(const struct slu_entry *entry, uint32_t peer)
{
    struct sluice_completion completion;

    slu_entry_result(entry, peer, &completion);
    slu_call_result(entry->call, entry->index, &completion);
}
