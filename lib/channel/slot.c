/* SPDX-License-Identifier: MIT */
/*
 * Slots: every accepted request has exactly one, an id names it for as long as
 * its result may be asked for, and no id is ever given out twice.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine.h"

#define INDEX_BITS 19
#define MAX_SLOTS ((UINT32_C(1) << INDEX_BITS) - 1) /* the last index is for refused requests */
#define QUEUE_BIT (UINT64_C(1) << INDEX_BITS)
#define GENERATION (UINT64_C(1) << (INDEX_BITS + 1))

static uint32_t slot_index(const struct slu_pool *pool, const struct slu_slot *slot)
{
    return (uint32_t)(slot - pool->slots);
}

void slu_list_push(struct slu_pool *pool, struct slu_list *list, struct slu_slot *slot)
{
    uint32_t index = slot_index(pool, slot);

    slot->next = SLU_NONE;
    slot->prev = list->tail;
    if (list->tail == SLU_NONE)
        list->head = index;
    else
        pool->slots[list->tail].next = index;
    list->tail = index;
}

void slu_list_remove(struct slu_pool *pool, struct slu_list *list, struct slu_slot *slot)
{
    if (slot->prev == SLU_NONE)
        list->head = slot->next;
    else
        pool->slots[slot->prev].next = slot->next;
    if (slot->next == SLU_NONE)
        list->tail = slot->prev;
    else
        pool->slots[slot->next].prev = slot->prev;
}

static void init_lists(struct slu_pool *pool)
{
    pool->free = (struct slu_list){SLU_NONE, SLU_NONE};
    for (int i = 0; i < SLU_OWNERS; i++)
        pool->done[i] = pool->free;
}

int slu_pool_create(struct slu_pool *pool, uint32_t size, uint32_t max_sge)
{
    pool->size = size < MAX_SLOTS ? size : MAX_SLOTS;
    init_lists(pool);
    pool->slots = calloc(pool->size, sizeof *pool->slots);
    pool->keys = calloc((size_t)pool->size * max_sge, sizeof *pool->keys);
    if (pool->slots == NULL || pool->keys == NULL) {
        slu_pool_destroy(pool);
        return slu_fail(ENOMEM, "no memory for %u requests in flight", pool->size);
    }
    for (uint32_t i = 0; i < pool->size; i++)
        slu_list_push(pool, &pool->free, &pool->slots[i]);
    return 0;
}

void slu_pool_destroy(struct slu_pool *pool)
{
    free(pool->slots);
    free((void *)pool->keys);
    pool->slots = NULL;
    pool->keys = NULL;
}

/* Slots that are free or can be made so. */
uint32_t slu_pool_room(const struct slu_pool *pool)
{
    uint32_t slots = pool->size - pool->pending;

    return slots < pool->cq_free ? slots : pool->cq_free;
}

enum slu_queue slu_slot_queue(const struct slu_slot *slot)
{
    return (slot->id & QUEUE_BIT) != 0 ? SLU_RECEIVE_QUEUE : SLU_SEND_QUEUE;
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

            if (slot->error == 0) {
                engine->scope.recycled += slot->owner == SLU_OWNER_SCOPE;
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

static void remember_keys(struct slu_engine *engine, struct slu_pool *pool, struct slu_slot *slot,
                          const struct sluice_request *request)
{
    _Atomic uint32_t *keys = pool->keys + (size_t)slot_index(pool, slot) * engine->attr.max_sge;

    /* What was posted inline was copied. */
    uint32_t count = (request->flags & SLUICE_INLINE) != 0 ? 0 : request->sge_count;

    for (uint32_t i = 0; i < count; i++)
        atomic_store_explicit(&keys[i], request->sges[i].lkey, memory_order_relaxed);
    atomic_store_explicit(&slot->key_count, (uint8_t)count, memory_order_relaxed);
    atomic_store_explicit(&slot->state, SLU_SLOT_PENDING, memory_order_release);
}

struct slu_slot *slu_slot_take(struct slu_engine *engine, enum slu_queue queue,
                               const struct slu_item *item, enum slu_slot_owner owner)
{
    struct slu_pool *pool = &engine->pools[queue];
    struct slu_slot *slot;

    if (pool->free.head == SLU_NONE)
        recycle(engine, pool);
    slot = &pool->slots[pool->free.head];
    slu_list_remove(pool, &pool->free, slot);
    pool->pending++;
    slot->id = ((slot->id & ~(GENERATION - 1)) + GENERATION) |
               (queue == SLU_RECEIVE_QUEUE ? QUEUE_BIT : 0) | slot_index(pool, slot);
    slot->user_data = item->request->user_data;
    slot->bytes = item->bytes;
    slot->peer = item->peer;
    slot->opcode = (uint8_t)item->opcode;
    slot->owner = (uint8_t)owner;
    slot->posted = 0;
    slot->unfinished = false;
    slot->status = slot->cause = slot->vendor = 0;
    slot->error = 0;
    slot->error_class = SLUICE_CLASS_NONE;
    slot->flags = 0;
    slot->immediate = 0;
    remember_keys(engine, pool, slot, item->request);
    slu_list_push(pool, &engine->peers[item->peer].posted[queue], slot);
    return slot;
}

/* An id of its own for a request that has no slot. */
uint64_t slu_slot_no_id(uint64_t number)
{
    return number * GENERATION | (QUEUE_BIT - 1);
}

struct slu_slot *slu_slot_find(struct slu_engine *engine, uint64_t id)
{
    struct slu_pool *pool =
        &engine->pools[(id & QUEUE_BIT) != 0 ? SLU_RECEIVE_QUEUE : SLU_SEND_QUEUE];
    uint64_t index = id & (QUEUE_BIT - 1);

    if (index >= pool->size || pool->slots[index].id != id)
        return NULL;
    return &pool->slots[index];
}

void slu_slot_fill(const struct slu_slot *slot, struct sluice_completion *completion)
{
    *completion = (struct sluice_completion){
        .user_data = slot->user_data,
        .bytes = slot->error == 0 ? slot->bytes : 0,
        .peer = slot->peer,
        .opcode = slot->opcode,
        .flags = slot->flags,
        .immediate = slot->immediate,
        .error = slot->error,
        .error_class = slot->error_class,
        .status = slot->status,
        .cause = slot->cause,
        .vendor = slot->vendor,
    };
}

void slu_slot_done(struct slu_engine *engine, struct slu_slot *slot)
{
    struct slu_pool *pool = &engine->pools[slu_slot_queue(slot)];
    struct sluice_completion completion;

    pool->pending--;
    if (slot->owner == SLU_OWNER_CALL) {
        slu_slot_fill(slot, &completion);
        slu_call_result(slot->call, slot->index, &completion);
        slot->call = NULL;
        atomic_store_explicit(&slot->state, SLU_SLOT_FREE, memory_order_relaxed);
        slu_list_push(pool, &pool->free, slot);
        return;
    }
    if (slot->owner == SLU_OWNER_SCOPE)
        engine->scope.pending--;
    slot->done_number = ++engine->done_number;
    atomic_store_explicit(&slot->state, SLU_SLOT_DONE, memory_order_relaxed);
    slu_list_push(pool, &pool->done[slot->owner], slot);
}

void slu_slot_seen(struct slu_engine *engine, struct slu_slot *slot)
{
    struct slu_pool *pool = &engine->pools[slu_slot_queue(slot)];

    slu_list_remove(pool, &pool->done[slot->owner], slot);
    atomic_store_explicit(&slot->state, SLU_SLOT_FREE, memory_order_relaxed);
    slu_list_push(pool, &pool->free, slot);
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
    slu_slot_fill(slot, completion);
    slu_slot_seen(engine, slot);
    return true;
}

bool slu_pool_uses_key(const struct slu_pool *pool, uint32_t max_sge, uint32_t lkey)
{
    for (uint32_t i = 0; i < pool->size; i++) {
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
