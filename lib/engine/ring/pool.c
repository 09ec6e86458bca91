/* SPDX-License-Identifier: MIT */
/*
 * The pool: entries of receives that belong to no peer until a message takes them. Guarantee: an
 * entry keeps its result until its place is needed, as those of the rings of peers do.
 */
#include "config.h"

#include "engine/ring/pool.h"

#include <stdlib.h>

#include "base/zeroed.h"
#include "engine/ring/entry.h"
#include "engine/ring/result.h"

static int fail_make(const struct slu_engine *engine)
{
    return slu_fail(ENOMEM, "no memory for a pool of %u receives", engine->pool_limits.depth);
}

int slu_pool_make(struct slu_engine *engine)
{
    uint32_t size = slu_power_of_two(2 * engine->pool_limits.depth);
    struct slu_pool *pool = calloc(1, sizeof *pool);
    struct slu_ring *ring;

    engine->pool = pool;
    if (pool == NULL)
        return fail_make(engine);
    ring = &pool->ring;
    ring->size = size;
    ring->memory = slu_zeroed_alloc(1, slu_entries_bytes(engine, size));
    pool->ids = slu_zeroed_alloc(size, sizeof *pool->ids);
    if (ring->memory == NULL || pool->ids == NULL)
        return fail_make(engine);
    ring->entries = slu_entries_in(ring->memory);
    ring->elements = (void *)(ring->entries + size);
    ring->mask = size - 1;
    ring->next = SLU_ID_STEP | SLU_ID_POOL;
    return 0;
}

void slu_pool_free(struct slu_engine *engine)
{
    struct slu_pool *pool = engine->pool;

    if (pool == NULL)
        return;
    slu_zeroed_free(pool->ring.memory, 1, slu_entries_bytes(engine, pool->ring.size));
    slu_zeroed_free(pool->ids, pool->ring.size, sizeof *pool->ids);
    free(pool);
    engine->pool = NULL;
}

uint32_t slu_pool_room(const struct slu_engine *engine)
{
    uint32_t room = engine->pool_limits.depth - engine->pool->pending;

    return room < engine->cq_free[SLU_RECEIVE_QUEUE] ? room : engine->cq_free[SLU_RECEIVE_QUEUE];
}

/* Moves an unseen result elsewhere, because its entry is needed. */
static void displace(struct slu_engine *engine, uint64_t id, struct slu_entry *entry)
{
    if (!entry->marks.failed) {
        slu_aside_keep(engine, id, entry);
        return;
    }
    slu_failure_keep_entry(engine, id, entry);
    slu_entry_seen(engine, entry);
}

/* Returns the next entry that is not pending, whose id is then the next one of the ring. */
static struct slu_entry *next_entry(struct slu_ring *ring)
{
    while (slu_ring_entry(ring, ring->next)->state == SLU_ENTRY_PENDING)
        ring->next += SLU_ID_STEP;
    return slu_ring_entry(ring, ring->next);
}

uint64_t slu_pool_take(struct slu_engine *engine, enum slu_owner owner,
                       const struct sluice_request *request)
{
    struct slu_pool *pool = engine->pool;
    struct slu_ring *ring = &pool->ring;
    const struct sluice_sge *sges = slu_request_sges(request);
    uint32_t keys = request->sge_count;
    struct slu_entry *entry;
    uint64_t id;

    if (owner < SLU_OWNERS_KEEP)
        slu_find_place(engine, SLU_RECEIVE_QUEUE);
    entry = next_entry(ring);
    if (SLU_UNLIKELY(slu_entry_is_unseen(engine, entry)))
        displace(engine, *slu_pool_id_at(pool, ring->next), entry);
    id = ring->next;
    ring->next += SLU_ID_STEP;
    *slu_pool_id_at(pool, id) = id;
    entry->bytes = slu_sge_bytes(sges, keys);
    entry->course = SLU_PLAIN_COURSE;
    entry->user_data = request->user_data;
    entry->deadline = entry->time = SLUICE_FOREVER;
    entry->index = 0;
    slu_entry_pend(engine, ring, entry, slu_pending_head(owner, SLUICE_OP_RECEIVE, keys), sges,
                   keys);
    pool->pending++;
    engine->cq_free[SLU_RECEIVE_QUEUE]--;
    if (owner < SLU_OWNERS_KEEP)
        engine->held[SLU_RECEIVE_QUEUE]++;
    return id;
}

void slu_pool_untake(struct slu_engine *engine, struct slu_entry *entry)
{
    entry->posted = 0;
    engine->pool->pending--;
    engine->cq_free[SLU_RECEIVE_QUEUE]++;
}

/* Gives a result to the program: to a poll in progress, or else it is kept until one comes. */
static void give_to_program(struct slu_engine *engine, uint64_t id, struct slu_entry *entry)
{
    struct slu_order *order = &engine->orders[SLU_OWNER_PROGRAM][SLU_RECEIVE_QUEUE];

    if (engine->sink.left > 0) {
        engine->sink.left--;
        engine->held[SLU_RECEIVE_QUEUE]--;
        slu_entry_result(entry, entry->index, entry->marks.failed, engine->sink.next++);
        atomic_store_explicit(&entry->state, SLU_ENTRY_SEEN, memory_order_relaxed);
        return;
    }
    entry->number = ++engine->done_number;
    slu_order_push(engine, SLU_OWNER_PROGRAM, order, id);
    atomic_store_explicit(&entry->state, SLU_ENTRY_DONE, memory_order_relaxed);
}

void slu_pool_give(struct slu_engine *engine, uint64_t id, struct slu_entry *entry, uint32_t peer)
{
    if (entry->owner == SLU_OWNER_PROGRAM) {
        entry->index = peer;
        give_to_program(engine, id, entry);
        return;
    }
    atomic_store_explicit(&entry->state, SLU_ENTRY_FREE, memory_order_relaxed);
    if (entry->owner != SLU_OWNER_CALL)
        return;
    if (entry->marks.failed)
        slu_entry_tell_failure(entry, peer);
    else if (entry->call->completions != NULL)
        slu_entry_tell_success(entry, peer);
    else
        entry->call->incomplete--;
}

void slu_pool_give_cancelled(struct slu_engine *engine, uint64_t id, struct slu_entry *entry)
{
    slu_entry_fail(entry, SLUICE_STATUS_WR_FLUSH_ERR, 0);
    slu_entry_set_immediate(entry, SLUICE_STATUS_WR_FLUSH_ERR);
    slu_pool_give(engine, id, entry, SLU_NONE);
}

void slu_pool_mark_removed(struct slu_engine *engine, uint32_t peer)
{
    struct slu_aside *aside = &engine->aside;
    const struct slu_pool *pool = engine->pool;

    if (pool == NULL)
        return;
    for (uint32_t i = 0; i < pool->ring.size; i++) {
        struct slu_entry *entry = &pool->ring.entries[i];

        if (entry->state == SLU_ENTRY_DONE && entry->index == peer)
            entry->marks.flags |= SLUICE_PEER_REMOVED;
    }
    for (uint32_t i = 0; i < aside->used; i++)
        if (slu_id_is_pool(aside->places[i].id) && aside->places[i].entry.index == peer)
            aside->places[i].entry.marks.flags |= SLUICE_PEER_REMOVED;
}
