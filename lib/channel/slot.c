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

static void keep_failure(struct slu_engine *engine, uint64_t id, enum slu_slot_owner owner,
                         const struct sluice_completion *completion)
{
    struct slu_failure *failure = &engine->failures[engine->failure_next++ % SLU_FAILURES];

    if (failure->id != 0 && failure->owner != SLU_OWNER_CALL)
        slu_log(SLUICE_LOG_WARN,
                "more than %d failures that nobody looked at: forgot one of "
                "peer %u (%s)",
                SLU_FAILURES, failure->completion.peer,
                sluice_status_name(failure->completion.status));
    failure->id = id;
    failure->owner = (uint8_t)owner;
    failure->completion = *completion;
}

static void keep_failed_slot(struct slu_engine *engine, const struct slu_slot *slot)
{
    struct sluice_completion completion;

    slu_slot_fill(slot, &completion);
    keep_failure(engine, slot->id, slot->owner, &completion);
}

/* Frees done slots, oldest first, until a success went; failures are kept aside. */
static void recycle(struct slu_engine *engine, struct slu_pool *pool)
{
    static const enum slu_slot_owner owners[] = {SLU_OWNER_PROGRAM, SLU_OWNER_SCOPE};

    for (unsigned i = 0; i < 2; i++) {
        struct slu_list *done = &pool->done[owners[i]];

        while (done->head != SLU_NONE) {
            struct slu_slot *slot = &pool->slots[done->head];
            bool failed = slot->error != 0;

            if (failed)
                keep_failed_slot(engine, slot);
            else if (slot->owner == SLU_OWNER_SCOPE)
                engine->scope.recycled++;
            slu_slot_seen(engine, slot);
            if (!failed)
                return;
        }
    }
}

static void remember_keys(struct slu_engine *engine, struct slu_pool *pool, struct slu_slot *slot,
                          const struct sluice_request *request)
{
    _Atomic uint32_t *keys = pool->keys + (size_t)slot_index(pool, slot) * engine->attr.max_sge;

    for (uint32_t i = 0; i < request->sge_count; i++)
        atomic_store_explicit(&keys[i], request->sges[i].lkey, memory_order_relaxed);
    atomic_store_explicit(&slot->key_count, (uint8_t)request->sge_count, memory_order_relaxed);
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

/* Failures that were kept aside are older than what is in the lists. */
static bool take_failure(struct slu_engine *engine, enum slu_slot_owner owner,
                         struct sluice_completion *completion)
{
    for (uint32_t i = 0; i < SLU_FAILURES; i++) {
        struct slu_failure *failure = &engine->failures[(engine->failure_next + i) % SLU_FAILURES];

        if (failure->id != 0 && failure->owner == owner) {
            *completion = failure->completion;
            failure->id = 0;
            return true;
        }
    }
    return false;
}

bool slu_take_done(struct slu_engine *engine, enum slu_slot_owner owner,
                   struct sluice_completion *completion)
{
    struct slu_slot *oldest = NULL;

    if (engine->failure_next > 0 && take_failure(engine, owner, completion))
        return true;
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        struct slu_pool *pool = &engine->pools[queue];
        uint32_t head = pool->done[owner].head;

        if (head != SLU_NONE &&
            (oldest == NULL || pool->slots[head].done_number < oldest->done_number))
            oldest = &pool->slots[head];
    }
    if (oldest == NULL)
        return false;
    slu_slot_fill(oldest, completion);
    slu_slot_seen(engine, oldest);
    return true;
}

bool slu_find_failure(struct slu_engine *engine, uint64_t id, struct sluice_completion *completion)
{
    for (uint32_t i = 0; i < SLU_FAILURES; i++)
        if (engine->failures[i].id == id) {
            *completion = engine->failures[i].completion;
            engine->failures[i].owner = SLU_OWNER_CALL;
            return true;
        }
    return false;
}

uint64_t slu_keep_refused(struct slu_engine *engine, enum slu_slot_owner owner,
                          const struct sluice_completion *completion)
{
    uint64_t id = ++engine->refused_number * GENERATION | (QUEUE_BIT - 1);

    keep_failure(engine, id, owner, completion);
    return id;
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
