/* SPDX-License-Identifier: MIT */
/*
 * Slots: every accepted request has exactly one, an id names it for as long as
 * its result may be asked for, and no id is ever given out twice.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/members.h"

static void init_lists(struct slu_pool *pool)
{
    pool->free = (struct slu_list){SLU_NONE, SLU_NONE};
    for (int i = 0; i < SLU_OWNERS; i++)
        pool->done[i] = pool->free;
}

int slu_pool_create(struct slu_pool *pool, enum slu_queue queue, uint32_t size, uint32_t spare,
                    uint32_t max_sge)
{
    pool->size = size < SLU_MAX_SLOTS - spare ? size : SLU_MAX_SLOTS - spare;
    pool->slot_count = pool->size + spare;
    init_lists(pool);
    pool->slots = calloc(pool->slot_count, sizeof *pool->slots);
    pool->keys = calloc((size_t)pool->slot_count * max_sge, sizeof *pool->keys);
    if (pool->slots == NULL || pool->keys == NULL) {
        slu_pool_destroy(pool);
        return slu_fail(ENOMEM, "no memory for %u requests in flight", pool->size);
    }
    for (uint32_t i = 0; i < pool->slot_count; i++) {
        pool->slots[i].id = (uint64_t)queue << SLU_INDEX_BITS | (i + 1);
        pool->slots[i].owner = SLU_OWNER_NOBODY;
        slu_list_push(pool, &pool->free, &pool->slots[i]);
    }
    return 0;
}

void slu_pool_destroy(struct slu_pool *pool)
{
    free(pool->slots);
    free((void *)pool->keys);
    pool->slots = NULL;
    pool->keys = NULL;
}

/* Frees the oldest result that nobody saw: a success is forgotten, else a failure kept aside. */
static void recycle(struct slu_engine *engine, struct slu_pool *pool)
{
    static const enum slu_slot_owner owners[] = {SLU_OWNER_PROGRAM, SLU_OWNER_SCOPE};
    struct slu_slot *failed = NULL;

    for (unsigned i = 0; i < 2; i++) {
        uint32_t at = pool->done[owners[i]].head;

        for (; at != SLU_NONE; at = pool->slots[at].next) {
            struct slu_slot *slot = &pool->slots[at];

            if (slot->result.error == 0) {
                engine->scope.recycled += slot->owner == SLU_OWNER_SCOPE;
                slu_counts_of(engine, &slot->result)->forgotten += slot->owner == SLU_OWNER_PROGRAM;
                slu_slot_seen(engine, slot);
                return;
            }
            if (failed == NULL)
                failed = slot;
        }
    }
    slu_failure_keep_slot(engine, failed);
    slu_slot_seen(engine, failed);
}

struct slu_slot *slu_slot_take(struct slu_engine *engine, enum slu_queue queue,
                               const struct slu_item *item, enum slu_slot_owner owner)
{
    struct slu_pool *pool = &engine->pools[queue];
    struct slu_slot *slot;

    if (pool->free.head == SLU_NONE)
        recycle(engine, pool);
    slot = &pool->slots[pool->free.head];
    slu_slot_rename(slot);
    /* What is posted inline is copied, and uses nothing. */
    slu_slot_hold_keys(engine, pool, slot, pool->free.head, item->sges,
                       (item->request->flags & SLUICE_INLINE) != 0 ? 0 : item->request->sge_count);
    slu_slot_begin(engine, queue, slot, item, owner);
    return slot;
}

/* An id of its own for a request that has no slot. */
uint64_t slu_slot_no_id(uint64_t number)
{
    return number * SLU_GENERATION | SLU_QUEUE_BIT;
}

void slu_engine_set_generation(struct slu_engine *engine, uint64_t generation)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++)
        for (uint32_t i = 0; i < engine->pools[queue].slot_count; i++) {
            struct slu_slot *slot = &engine->pools[queue].slots[i];

            slot->id = (generation - 1) * SLU_GENERATION | (slot->id & (SLU_GENERATION - 1));
        }
    engine->refused_number = generation - 1;
}

void slu_slot_tell_call(const struct slu_slot *slot)
{
    if (SLU_LIKELY(slot->result.error == 0 && slot->call->completions == NULL))
        slot->call->incomplete--;
    else
        slu_call_result(slot->call, slot->index, &slot->result);
}

static struct slu_slot *oldest_done(struct slu_engine *engine, enum slu_slot_owner owner)
{
    struct slu_slot *oldest = NULL;

    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        struct slu_pool *pool = &engine->pools[queue];
        uint32_t head = pool->done[owner].head;

        if (head != SLU_NONE &&
            (oldest == NULL || pool->slots[head].done_number < oldest->done_number))
            oldest = &pool->slots[head];
    }
    return oldest;
}

bool slu_take_done(struct slu_engine *engine, enum slu_slot_owner owner,
                   struct sluice_completion *completion)
{
    struct slu_slot *slot = oldest_done(engine, owner);

    if (engine->failure_count > 0 &&
        slu_failure_take(engine, owner, slot != NULL ? slot->done_number : UINT64_MAX, completion))
        return true;
    if (slot == NULL)
        return false;
    *completion = slot->result;
    slu_slot_seen(engine, slot);
    return true;
}

bool slu_pool_uses_key(const struct slu_pool *pool, uint32_t max_sge, uint32_t lkey)
{
    for (uint32_t i = 0; i < pool->slot_count; i++) {
        const struct slu_slot *slot = &pool->slots[i];
        uint32_t count;

        if (atomic_load_explicit(&slot->state, memory_order_acquire) != SLU_SLOT_PENDING)
            continue;
        count = atomic_load_explicit(&slot->key_count, memory_order_relaxed);
        for (uint32_t k = 0; k < count; k++)
            if (atomic_load_explicit(&pool->keys[(size_t)i * max_sge + k], memory_order_relaxed) ==
                lkey)
                return true;
    }
    return false;
}
