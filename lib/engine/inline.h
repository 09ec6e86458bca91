/* SPDX-License-Identifier: MIT */
/*
 * What every request goes through, inline: items of a list, slots by id, lists
 * of slots. Part of engine.h.
 */
#ifndef SLU_INLINE_H
#define SLU_INLINE_H

static inline void slu_engine_enter(struct slu_engine *engine)
{
    engine->call_number++;
    engine->saved_errno = errno;
    if (engine->transport->cq_enter != NULL)
        engine->transport->cq_enter(engine->cq);
}

static inline void slu_engine_leave(struct slu_engine *engine)
{
    if (engine->transport->cq_leave != NULL)
        engine->transport->cq_leave(engine->cq);
    errno = engine->saved_errno;
}

/* The list of a call, which it need not look at if it has no elements: a request has none then. */
static inline const struct sluice_sge *slu_list_of(const struct sluice_sge *sges, uint32_t count)
{
    return count > 0 ? sges : NULL;
}

/* A request of one operation with one peer; sge_count elements of sges. */
static inline struct sluice_request
slu_request_of(uint32_t opcode, uint32_t peer, const struct sluice_sge *sges, uint32_t sge_count)
{
    return (struct sluice_request){.opcode = opcode,
                                   .peer = peer,
                                   .sges = slu_list_of(sges, sge_count),
                                   .sge_count = sge_count};
}

/* The elements of a request that is right: its list, or the one that is in it. */
static inline const struct sluice_sge *slu_request_sges(const struct sluice_request *request)
{
    return SLU_LIKELY(request->sges != NULL) ? request->sges : &request->sge;
}

static inline bool slu_sge_is_empty(const struct sluice_sge *sge)
{
    return (sge->addr | sge->length | sge->lkey) == 0;
}

/* The list must be known to be good. */
static inline uint64_t slu_sge_bytes(const struct sluice_sge *sges, uint32_t count)
{
    uint64_t bytes = SLU_LIKELY(count > 0) ? sges[0].length : 0;

    for (uint32_t i = 1; i < count; i++)
        bytes += sges[i].length;
    return bytes;
}

/* The same message to many peers; the same bytes into memory of many peers. */
static inline struct slu_source slu_multicast_send(const struct sluice_request *request,
                                                   const uint32_t *peers, uint32_t count)
{
    return (struct slu_source){.lists = {request},
                               .counts = {1},
                               .opcodes = {SLUICE_OP_SEND},
                               .peers = peers,
                               .count = count,
                               .multicast = true};
}

static inline struct slu_source slu_multicast_write(const struct sluice_request *request,
                                                    const struct sluice_peer_remote_mr *remotes,
                                                    uint32_t count)
{
    return (struct slu_source){.lists = {request},
                               .counts = {1},
                               .opcodes = {SLUICE_OP_WRITE},
                               .remotes = remotes,
                               .count = count,
                               .multicast = true};
}

static inline const struct sluice_request *slu_source_request(const struct slu_source *source,
                                                              uint32_t index)
{
    if (source->multicast)
        return source->lists[0];
    return index < source->counts[0] ? &source->lists[0][index]
                                     : &source->lists[1][index - source->counts[0]];
}

static inline uint32_t slu_source_peer(const struct slu_source *source, uint32_t index)
{
    if (SLU_LIKELY(!source->multicast))
        return slu_source_request(source, index)->peer;
    return source->remotes != NULL ? source->remotes[index].peer : source->peers[index];
}

static inline uint32_t slu_source_opcode(const struct slu_source *source, uint32_t index)
{
    uint32_t opcode = source->opcodes[!source->multicast && index >= source->counts[0]];

    return opcode != SLUICE_OP_NONE ? opcode : slu_source_request(source, index)->opcode;
}

static inline void slu_source_item(const struct slu_source *source, uint32_t index,
                                   struct slu_item *item)
{
    item->request = slu_source_request(source, index);
    item->remote = SLU_UNLIKELY(source->remotes != NULL) ? &source->remotes[index].remote
                   : SLU_UNLIKELY(source->multicast)     ? NULL
                                                         : &item->request->remote;
    item->peer = slu_source_peer(source, index);
    item->opcode = slu_source_opcode(source, index);
    item->sges = slu_request_sges(item->request);
    item->bytes = slu_sge_bytes(item->sges, item->request->sge_count);
}

/* What later versions may give a meaning; source.c says what is wrong. */
static inline bool slu_request_is_clean(const struct sluice_request *request)
{
    return (request->reserved | (uintptr_t)request->extension | request->reserved2[0] |
            request->reserved2[1]) == 0;
}

static inline bool slu_remote_is_clean(const struct sluice_remote_mr *remote)
{
    return (remote->reserved[0] | remote->reserved[1] | remote->reserved[2]) == 0;
}

/* Whether a remote region is right and has so many bytes; source.c says what is wrong. */
static inline bool slu_remote_holds(const struct sluice_remote_mr *remote, uint64_t bytes)
{
    return slu_remote_is_clean(remote) && bytes <= remote->length &&
           remote->addr + remote->length >= remote->addr;
}

static inline bool slu_device_has_atomics(const struct slu_engine *engine)
{
    return engine->pd->context->transport->atomics != SLUICE_ATOMICS_NONE;
}

/* Whether its operands are those of an operation that is known. */
static inline bool slu_operands_fit(const struct sluice_request *request, uint32_t opcode)
{
    return (request->operand[0] | request->operand[1]) == 0 || opcode == SLUICE_OP_COMPARE_SWAP ||
           (opcode == SLUICE_OP_FETCH_ADD && request->operand[1] == 0);
}

/* Whether an atomic operation has the form that only these have; source.c says what is wrong. */
static inline bool slu_atomic_is_right(const struct slu_engine *engine, const struct slu_item *item)
{
    return slu_device_has_atomics(engine) && item->request->sge_count == 1 &&
           item->sges[0].length == 8 && item->sges[0].addr % 8 == 0 &&
           item->request->remote.addr % 8 == 0;
}

/* Whether a request has elements, and has them right. */
static inline bool slu_has_elements(const struct slu_engine *engine,
                                    const struct sluice_request *request)
{
    return SLU_LIKELY(request->sges != NULL)
               ? request->sge_count - 1 < engine->plain_sges
               : request->sge_count == 1 && !slu_sge_is_empty(&request->sge);
}

/*
 * Whether there is nothing at all to complain of in a request and nothing rare
 * about it, asked as one question. Of the item, request and opcode are given;
 * the rest is found on the way.
 */
static inline __attribute__((always_inline)) bool slu_item_is_plain(const struct slu_engine *engine,
                                                                    struct slu_item *item)
{
    const struct sluice_request *request = item->request;
    const struct sluice_remote_mr *remote = &request->remote;

    item->peer = request->peer;
    item->remote = remote;
    item->sges = slu_request_sges(request);
    if (!slu_has_elements(engine, request) || request->peer >= engine->peer_count ||
        item->opcode == SLUICE_OP_NONE || item->opcode >= SLU_OPCODES ||
        (request->opcode != item->opcode && request->opcode != SLUICE_OP_NONE) ||
        (request->flags & ~slu_opcode_flags[item->opcode]) != 0 || !slu_request_is_clean(request) ||
        !slu_operands_fit(request, item->opcode) ||
        (slu_opcode_is_atomic(item->opcode) && !slu_atomic_is_right(engine, item)))
        return false;
    item->bytes = slu_sge_bytes(item->sges, request->sge_count);
    if (item->bytes > engine->max_plain ||
        ((request->flags & SLUICE_INLINE) != 0 && item->bytes > engine->attr.max_inline))
        return false;
    return item->opcode < SLUICE_OP_WRITE || slu_remote_holds(remote, item->bytes);
}

/* Work requests that an item needs. */
static inline uint32_t slu_item_parts(const struct slu_engine *engine, const struct slu_item *item)
{
    uint64_t max = engine->attr.max_message;

    if (SLU_LIKELY(item->bytes <= max || item->opcode == SLUICE_OP_RECEIVE))
        return 1;
    return (uint32_t)((item->bytes + max - 1) / max);
}

/* Flags of what a receive took. */
#define SLU_RECEIVED_FLAGS (SLUICE_IMMEDIATE | SLUICE_WRITTEN)

#define SLU_INDEX_BITS 19
/* In an id the index is one more; 0 is that of refused requests, which have no slot. */
#define SLU_MAX_SLOTS ((UINT32_C(1) << SLU_INDEX_BITS) - 1)
#define SLU_QUEUE_BIT (UINT64_C(1) << SLU_INDEX_BITS)
#define SLU_GENERATION (UINT64_C(1) << (SLU_INDEX_BITS + 1))

static inline void slu_fill_receive(struct slu_receive_wr *wr, uint64_t id,
                                    const struct sluice_sge *sges, uint32_t sge_count)
{
    wr->id = id;
    wr->sge_count = sge_count;
    wr->sges = sges;
}

/*
 * Every request has a result of its own, so every one is signalled: that a later
 * one failed does not tell whether an earlier one was done.
 */
static inline void slu_fill_send(struct slu_send_wr *wr, uint64_t id, const struct slu_item *item,
                                 const struct sluice_sge *sges, uint32_t sge_count)
{
    wr->id = id;
    wr->opcode = item->opcode;
    wr->flags = item->request->flags | SLU_SIGNALED;
    wr->immediate = item->request->immediate;
    wr->sge_count = sge_count;
    wr->sges = sges;
    wr->operand = item->request->operand;
    wr->remote_addr = item->remote != NULL ? item->remote->addr : 0;
    wr->rkey = item->remote != NULL ? item->remote->rkey : 0;
}

static inline uint32_t slu_slot_index(const struct slu_pool *pool, const struct slu_slot *slot)
{
    return (uint32_t)(slot - pool->slots);
}

static inline enum slu_queue slu_slot_queue(const struct slu_slot *slot)
{
    return (enum slu_queue)(slot->id >> SLU_INDEX_BITS & 1);
}

static inline struct slu_slot *slu_slot_find(struct slu_engine *engine, uint64_t id)
{
    struct slu_pool *pool = &engine->pools[id >> SLU_INDEX_BITS & 1];
    uint64_t index = (id & (SLU_QUEUE_BIT - 1)) - 1;

    if (SLU_UNLIKELY(index >= pool->slot_count || pool->slots[index].id != id))
        return NULL;
    return &pool->slots[index];
}

/* Gives it an id that no request had before; not in 2^44 of its requests, when they start again. */
static inline void slu_slot_rename(struct slu_slot *slot)
{
    slot->id += SLU_GENERATION;
}

static inline void slu_list_push(struct slu_pool *pool, struct slu_list *list,
                                 struct slu_slot *slot)
{
    uint32_t index = slu_slot_index(pool, slot);

    slot->next = SLU_NONE;
    slot->prev = list->tail;
    if (list->tail == SLU_NONE)
        list->head = index;
    else
        pool->slots[list->tail].next = index;
    list->tail = index;
}

static inline void slu_list_push_front(struct slu_pool *pool, struct slu_list *list,
                                       struct slu_slot *slot)
{
    uint32_t index = slu_slot_index(pool, slot);

    slot->prev = SLU_NONE;
    slot->next = list->head;
    if (list->head == SLU_NONE)
        list->tail = index;
    else
        pool->slots[list->head].prev = index;
    list->head = index;
}

static inline void slu_list_remove(struct slu_pool *pool, struct slu_list *list,
                                   struct slu_slot *slot)
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

/* Slots that are free or can be made so. */
static inline uint32_t slu_pool_room(const struct slu_pool *pool)
{
    uint32_t slots = pool->size - pool->pending;

    return slots < pool->cq_free ? slots : pool->cq_free;
}

/* Is there room for so many work requests of a request? */
static inline bool slu_post_room(const struct slu_engine *engine, const struct slu_item *item,
                                 uint32_t parts)
{
    enum slu_queue queue = slu_item_queue(item);

    return engine->peers[item->peer].free[queue] >= parts &&
           engine->pools[queue].cq_free >= parts && slu_pool_room(&engine->pools[queue]) > 0;
}

/*
 * Keys of the memory that a request uses, for the scan that deregistering
 * makes; from here on it counts. The slot is the one with that index.
 */
static inline void slu_slot_hold_keys(const struct slu_engine *engine, const struct slu_pool *pool,
                                      struct slu_slot *slot, uint32_t index,
                                      const struct sluice_sge *sges, uint32_t count)
{
    _Atomic uint32_t *keys = pool->keys + (size_t)index * engine->attr.max_sge;

    if (SLU_LIKELY(count > 0))
        atomic_store_explicit(&keys[0], sges[0].lkey, memory_order_relaxed);
    for (uint32_t i = 1; i < count; i++)
        atomic_store_explicit(&keys[i], sges[i].lkey, memory_order_relaxed);
    atomic_store_explicit(&slot->key_count, (uint8_t)count, memory_order_relaxed);
    atomic_store_explicit(&slot->state, SLU_SLOT_PENDING, memory_order_release);
}

static inline void slu_slot_release_keys(struct slu_slot *slot)
{
    atomic_store_explicit(&slot->state, SLU_SLOT_FREE, memory_order_relaxed);
}

/* The first of the free slots is taken; nobody asks for the prev of a free one. */
static inline void slu_free_take(struct slu_pool *pool, const struct slu_slot *slot)
{
    pool->free.head = slot->next;
    if (SLU_UNLIKELY(slot->next == SLU_NONE))
        pool->free.tail = SLU_NONE;
}

/* The first free slot, with its id and keys, becomes that of a request that is being posted. */
static inline void slu_slot_begin(struct slu_engine *engine, enum slu_queue queue,
                                  struct slu_slot *slot, const struct slu_item *item,
                                  enum slu_slot_owner owner)
{
    struct slu_pool *pool = &engine->pools[queue];

    slu_free_take(pool, slot);
    pool->pending++;
    slot->owner = (uint8_t)owner;
    slot->posted = 0;
    slot->unfinished = slot->passed = false;
    slot->result = (struct sluice_completion){.user_data = item->request->user_data,
                                              .bytes = item->bytes,
                                              .peer = item->peer,
                                              .opcode = item->opcode};
    slu_list_push(pool, &engine->peers[item->peer].posted[queue], slot);
}

/* Makes a slot that began one of a call, or NULL, with this index in it. */
static inline void slu_slot_join(struct slu_engine *engine, struct slu_slot *slot,
                                 struct slu_call *call, uint32_t index, int64_t deadline)
{
    slot->call = call;
    slot->index = index;
    slot->deadline = deadline;
    if (deadline < engine->next_deadline)
        engine->next_deadline = deadline;
}

static inline void slu_count_success(struct slu_peer *peer, uint32_t opcode, uint64_t bytes)
{
    peer->counts.done[opcode].requests++;
    peer->counts.done[opcode].bytes += bytes;
}

static inline void slu_count_result(struct slu_engine *engine, const struct slu_slot *slot)
{
    struct slu_peer *peer = &engine->peers[slot->result.peer];

    if (SLU_LIKELY(slot->result.error == 0))
        slu_count_success(peer, slot->result.opcode, slot->result.bytes);
    else
        peer->counts.failed[slot->result.error_class]++;
}

/* The result is in: gives it to its owner. The slot has left the posted list. */
static inline void slu_slot_done(struct slu_engine *engine, enum slu_queue queue,
                                 struct slu_slot *slot)
{
    struct slu_pool *pool = &engine->pools[queue];

    pool->pending--;
    slu_count_result(engine, slot);
    if (slot->owner <= SLU_OWNER_NOBODY) {
        if (slot->owner == SLU_OWNER_CALL)
            slu_slot_tell_call(slot);
        else
            engine->detached--;
        slot->call = NULL;
        atomic_store_explicit(&slot->state, SLU_SLOT_FREE, memory_order_relaxed);
        /* First to go again: it is at hand, and remembers nothing that may be asked for. */
        slu_list_push_front(pool, &pool->free, slot);
        return;
    }
    if (slot->owner == SLU_OWNER_SCOPE)
        engine->scope.pending--;
    slot->done_number = ++engine->done_number;
    atomic_store_explicit(&slot->state, SLU_SLOT_DONE, memory_order_relaxed);
    slu_list_push(pool, &pool->done[slot->owner], slot);
}

/* The owner has seen it. */
static inline void slu_slot_seen(struct slu_engine *engine, struct slu_slot *slot)
{
    struct slu_pool *pool = &engine->pools[slu_slot_queue(slot)];

    slu_list_remove(pool, &pool->done[slot->owner], slot);
    atomic_store_explicit(&slot->state, SLU_SLOT_FREE, memory_order_relaxed);
    slu_list_push(pool, &pool->free, slot);
}

#endif
