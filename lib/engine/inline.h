/* SPDX-License-Identifier: MIT */
/*
 * The inline code that every request goes through: items of a list, and entries of rings by id.
 * Part of inside.h.
 */
#ifndef SLU_INLINE_H
#define SLU_INLINE_H

/* Returns the elements of a valid request: its list, or the element inside it. */
static inline const struct sluice_sge *slu_request_sges(const struct sluice_request *request)
{
    return SLU_LIKELY(request->sges != NULL) ? request->sges : &request->sge;
}

static inline bool slu_sge_is_empty(const struct sluice_sge *sge)
{
    return (sge->addr | sge->length | sge->lkey) == 0;
}

/* Adds up the bytes of a list, which must be valid. */
static inline uint64_t slu_sge_bytes(const struct sluice_sge *sges, uint32_t count)
{
    uint64_t bytes = SLU_LIKELY(count > 0) ? sges[0].length : 0;

    for (uint32_t i = 1; i < count; i++)
        bytes += sges[i].length;
    return bytes;
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

static SLU_INLINE void slu_source_item(const struct slu_source *source, uint32_t index,
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

/* Returns the bytes of a request with valid blocks. */
static inline uint64_t slu_blocks_bytes_within(const struct sluice_blocks *blocks,
                                               uint64_t local_length)
{
    const struct sluice_layout *layout =
        blocks->local.kind != SLUICE_LAYOUT_CONTIGUOUS ? &blocks->local : &blocks->remote;

    return layout->kind != SLUICE_LAYOUT_CONTIGUOUS ? layout->count * layout->bytes : local_length;
}

static inline uint64_t slu_blocks_bytes(const struct sluice_request *request)
{
    const struct sluice_blocks *blocks = request->blocks;

    return slu_blocks_bytes_within(blocks, blocks->local_length != 0
                                               ? blocks->local_length
                                               : slu_request_sges(request)->length);
}

/* Does the same for an item that may have blocks. */
static inline void slu_source_any_item(const struct slu_source *source, uint32_t index,
                                       struct slu_item *item)
{
    slu_source_item(source, index, item);
    if (SLU_UNLIKELY(item->request->blocks != NULL))
        item->bytes = slu_blocks_bytes(item->request);
}

/* Returns whether reserved fields are 0. Later versions may use them; source.c reports errors. */
static inline bool slu_request_is_clean(const struct sluice_request *request)
{
    return (request->reserved | request->reserved2[0] | request->reserved2[1]) == 0;
}

static inline bool slu_remote_is_clean(const struct sluice_remote_mr *remote)
{
    return (remote->reserved[0] | remote->reserved[1] | remote->reserved[2]) == 0;
}

/* Returns whether a remote region is valid and has that many bytes; source.c reports errors. */
static inline bool slu_remote_holds(const struct sluice_remote_mr *remote, uint64_t bytes)
{
    return slu_remote_is_clean(remote) && bytes <= remote->length &&
           remote->addr + remote->length >= remote->addr;
}

static inline bool slu_device_has_atomics(const struct slu_engine *engine)
{
    return engine->pd->context->transport->atomics != SLUICE_ATOMICS_NONE;
}

/* Returns whether the operands of a request suit its operation. */
static inline bool slu_operands_fit(const struct sluice_request *request, uint32_t opcode)
{
    return (request->operand[0] | request->operand[1]) == 0 || opcode == SLUICE_OP_COMPARE_SWAP ||
           (opcode == SLUICE_OP_FETCH_ADD && request->operand[1] == 0);
}

/* Returns whether a request has elements, and they are valid. */
static inline bool slu_has_elements(const struct slu_engine *engine,
                                    const struct sluice_request *request)
{
    return SLU_LIKELY(request->sges != NULL)
               ? request->sge_count - 1 < engine->plain_sges
               : request->sge_count == 1 && !slu_sge_is_empty(&request->sge);
}

/* Returns whether all fields are 0 that must be, or that only slow-path requests use. */
static inline bool slu_request_is_bare(const struct sluice_request *request)
{
    return (request->reserved | (uintptr_t)request->blocks | request->reserved2[0] |
            request->reserved2[1] | request->operand[0] | request->operand[1]) == 0;
}

/* Returns the bytes of a request of one element; UINT64_MAX if the element is missing. */
static SLU_INLINE uint64_t slu_request_length(const struct sluice_request *request)
{
    if (SLU_LIKELY(request->sges != NULL))
        return request->sges->length;
    return !slu_sge_is_empty(&request->sge) ? request->sge.length : UINT64_MAX;
}

/*
 * Returns whether a request takes the fast path: one element, no flags, short enough for one work
 * request, and valid. given is the opcode that the request has, which is opcode or none.
 */
static SLU_INLINE bool slu_request_is_usual(const struct slu_engine *engine,
                                            const struct sluice_request *request, uint32_t given,
                                            uint32_t opcode)
{
    uint64_t length;

    if (request->opcode != given || request->sge_count != 1 ||
        request->peer >= engine->peer_count ||
        (request->flags | request->reserved | (uintptr_t)request->blocks | request->reserved2[0] |
         request->reserved2[1] | request->operand[0] | request->operand[1]) != 0)
        return false;
    length = slu_request_length(request);
    return length <= engine->max_plain &&
           (opcode < SLUICE_OP_WRITE || slu_remote_holds(&request->remote, length));
}

/* Returns whether a request is valid and needs nothing of the slow path, in one test. */
static SLU_INLINE bool slu_request_is_plain(const struct slu_engine *engine,
                                            const struct sluice_request *request, uint32_t opcode)
{
    uint64_t bytes;

    if (!slu_has_elements(engine, request) || request->peer >= engine->peer_count ||
        opcode - SLUICE_OP_SEND > SLUICE_OP_READ - SLUICE_OP_SEND ||
        (request->opcode != opcode && request->opcode != SLUICE_OP_NONE) ||
        !slu_request_is_bare(request))
        return false;
    bytes = slu_sge_bytes(slu_request_sges(request), request->sge_count);
    if (bytes > engine->max_plain)
        return false;
    if (request->flags != 0 &&
        ((request->flags & ~slu_opcode_flags[opcode]) != 0 ||
         ((request->flags & SLUICE_INLINE) != 0 && bytes > engine->attr.max_inline)))
        return false;
    return opcode < SLUICE_OP_WRITE || slu_remote_holds(&request->remote, bytes);
}

/* Returns how many work requests an item needs. */
static inline uint32_t slu_item_parts(const struct slu_engine *engine, const struct slu_item *item)
{
    uint64_t max = engine->attr.max_message;

    if (SLU_LIKELY(item->bytes <= max || item->opcode == SLUICE_OP_RECEIVE))
        return 1;
    return (uint32_t)((item->bytes + max - 1) / max);
}

/* Flags that a receive may complete with. */
#define SLU_RECEIVED_FLAGS (SLUICE_IMMEDIATE | SLUICE_WRITTEN)

#define SLU_RING_BITS 2
#define SLU_PEER_BITS 16
#define SLU_NUMBER_BITS (64 - SLU_PEER_BITS - SLU_RING_BITS)
/* The distance from one id of a ring to the next. */
#define SLU_ID_STEP (UINT64_C(1) << (SLU_PEER_BITS + SLU_RING_BITS))
/* Kinds of ids that belong to no ring. */
#define SLU_ID_REFUSED (UINT64_C(1) << SLU_RING_BITS)
#define SLU_ID_PROBE (UINT64_C(2) << SLU_RING_BITS)
#define SLU_ID_ARRIVAL (UINT64_C(3) << SLU_RING_BITS)
#define SLU_ID_PART (UINT64_C(4) << SLU_RING_BITS)
_Static_assert(SLU_ID_OWN % SLU_ID_STEP > SLU_ID_PART && SLU_ID_OWN % (1 << SLU_RING_BITS) == 0 &&
                   SLU_ID_OWN_MASK % SLU_ID_STEP == SLU_ID_STEP - 1,
               "of no ring either: those of a transport");
_Static_assert(SLUICE_MAX_PEERS <= 1 << SLU_PEER_BITS, "an id names its peer");
_Static_assert(SLU_RINGS < 1 << SLU_RING_BITS, "and its ring");

static SLU_INLINE void slu_fill_receive(struct slu_receive_wr *wr, uint64_t id,
                                        const struct sluice_sge *sges, uint32_t sge_count)
{
    wr->id = id;
    wr->sge_count = sge_count;
    wr->sges = sges;
}

/*
 * Fills in a send. Every request is signaled because each has a result of its own: the failure of a
 * later one does not say whether an earlier one was done.
 */
static SLU_INLINE void slu_fill_send(struct slu_send_wr *wr, uint64_t id,
                                     const struct slu_item *item, const struct sluice_sge *sges,
                                     uint32_t sge_count)
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

static inline uint32_t slu_id_ring(uint64_t id)
{
    return (uint32_t)(id % (1 << SLU_RING_BITS)) - 1;
}

static inline bool slu_id_is_of(uint64_t id, enum slu_queue queue)
{
    return id % (1 << SLU_RING_BITS) == (uint64_t)queue + 1;
}

static inline uint16_t slu_id_peer(uint64_t id)
{
    return (uint16_t)(id >> SLU_RING_BITS);
}
_Static_assert(SLU_PEER_BITS == 16, "what a uint16_t has");

static inline enum slu_queue slu_ring_queue(uint32_t ring)
{
    return ring == SLU_RECEIVE_QUEUE ? SLU_RECEIVE_QUEUE : SLU_SEND_QUEUE;
}

/*
 * Returns how many requests ago an id was posted: 1 if it was the last; 0 or huge if it was not
 * yet.
 */
static inline uint64_t slu_ring_age(const struct slu_ring *ring, uint64_t id)
{
    return (ring->next - id) / SLU_ID_STEP;
}

/* Returns whether the peer that has the index now had that id, or could have had it. */
static inline bool slu_ring_is_of_today(const struct slu_ring *ring, uint64_t id)
{
    return ring->next - id <= ring->next - ring->since;
}

static inline struct slu_entry *slu_ring_entry(const struct slu_ring *ring, uint64_t id)
{
    return &ring->entries[(uint32_t)(id / SLU_ID_STEP) & ring->mask];
}

/* Returns how many places of a ring are free. */
static inline uint32_t slu_ring_room(const struct slu_ring *ring)
{
    return ring->size - (uint32_t)((ring->next - ring->oldest) / SLU_ID_STEP);
}

/* Returns the ring of an id, which may be any number; NULL: none. */
static inline struct slu_ring *slu_ring_of(const struct slu_engine *engine, uint64_t id)
{
    uint32_t ring = slu_id_ring(id);
    uint32_t peer = slu_id_peer(id);

    if (SLU_UNLIKELY(ring >= SLU_RINGS || peer >= engine->peer_count))
        return NULL;
    return &engine->peers[peer].rings[ring];
}

/* Returns the entry taken with that id, if it still has the request or its result; else NULL. */
static inline struct slu_entry *slu_ring_find(const struct slu_engine *engine,
                                              const struct slu_ring *ring, uint64_t id)
{
    if (SLU_UNLIKELY(ring == NULL))
        return NULL;
    if (SLU_UNLIKELY(slu_ring_age(ring, id) - 1 >= ring->size))
        return engine->aside.used > 0 ? slu_aside_find(engine, id) : NULL;
    return slu_ring_entry(ring, id);
}

static inline struct slu_entry *slu_entry_find(const struct slu_engine *engine, uint64_t id)
{
    return slu_ring_find(engine, slu_ring_of(engine, id), id);
}

static inline void slu_give_handle(struct sluice_handle *handle, uint64_t id, uint64_t owner)
{
    *handle = (struct sluice_handle){.id = id, .owner = owner};
}

/* Counts the unseen results of an owner, without the failures of failure.c. */
static inline uint32_t slu_unseen(const struct slu_engine *engine, enum slu_owner owner)
{
    const struct slu_order *orders = engine->orders[owner];

    return orders[SLU_SEND_QUEUE].unseen + orders[SLU_RECEIVE_QUEUE].unseen;
}

/*
 * Makes sure that there is a place for one more result. If none is left, the oldest is forgotten.
 */
static inline void slu_find_place(struct slu_engine *engine, enum slu_queue queue)
{
    if (SLU_UNLIKELY(engine->held[queue] >= engine->places[queue]))
        slu_place_clear(engine, queue);
}

/* Returns whether there is room for that many work requests. */
static inline bool slu_post_room(const struct slu_engine *engine, const struct slu_peer *peer,
                                 enum slu_queue queue, uint32_t parts)
{
    return peer->free[queue] >= parts && engine->cq_free[queue] >= parts;
}

/* Returns for how many work requests there is room. */
static inline uint32_t slu_peer_room(const struct slu_engine *engine, const struct slu_peer *peer,
                                     enum slu_queue queue)
{
    return peer->free[queue] < engine->cq_free[queue] ? peer->free[queue] : engine->cq_free[queue];
}

/* Counts the elements whose memory a request uses. Inline data is copied, so it uses none. */
static inline uint32_t slu_key_count(const struct sluice_request *request)
{
    return SLU_UNLIKELY((request->flags & SLUICE_INLINE) != 0) ? 0 : request->sge_count;
}

/* Returns whether an entry has an unseen result. Results of past scopes do not count. */
static inline bool slu_entry_is_unseen(const struct slu_engine *engine,
                                       const struct slu_entry *entry)
{
    return entry->state == SLU_ENTRY_DONE &&
           (entry->owner != SLU_OWNER_SCOPE ||
            (engine->scope.open && entry->tag == engine->scope.tag));
}

/* Returns the first word of a pending entry. */
static SLU_INLINE uint32_t slu_pending_head(enum slu_owner owner, uint32_t opcode, uint32_t keys)
{
    const union slu_entry_head head = {.state = SLU_ENTRY_PENDING,
                                       .key_count = (uint8_t)keys,
                                       .owner = (uint8_t)owner,
                                       .opcode = (uint8_t)opcode};

    return head.whole;
}

/*
 * Makes an entry pending, with the memory that its request uses, for the scan that deregistering
 * memory makes. The release store publishes the keys and places before the state.
 */
static SLU_INLINE void slu_entry_pend(const struct slu_engine *engine, const struct slu_ring *ring,
                                      struct slu_entry *entry, uint32_t head,
                                      const struct sluice_sge *sges, uint32_t count)
{
    if (SLU_LIKELY(count > 0)) {
        atomic_store_explicit(&entry->key, sges[0].lkey, memory_order_relaxed);
        atomic_store_explicit(&entry->place, (uint32_t)sges[0].addr, memory_order_relaxed);
    }
    if (SLU_UNLIKELY(count > 1)) {
        struct slu_element *elements =
            ring->elements + (size_t)(entry - ring->entries) * (engine->attr.max_sge - 1);

        for (uint32_t i = 1; i < count; i++) {
            atomic_store_explicit(&elements[i - 1].key, sges[i].lkey, memory_order_relaxed);
            atomic_store_explicit(&elements[i - 1].place, (uint32_t)sges[i].addr,
                                  memory_order_relaxed);
        }
    }
    atomic_store_explicit(&entry->head, head, memory_order_release);
}

/* Sets immediate or cause, which share memory with place: the scan may still be reading that. */
static SLU_INLINE void slu_entry_set_immediate(struct slu_entry *entry, uint32_t value)
{
    atomic_store_explicit(&entry->place, value, memory_order_relaxed);
}

/* Returns the room in the completion queue, limited to the free places for results. */
static inline uint32_t slu_room_and_places(const struct slu_engine *engine, enum slu_queue queue)
{
    uint32_t places = engine->places[queue] - engine->held[queue];

    return engine->held[queue] >= engine->places[queue] ? 0
           : places < engine->cq_free[queue]            ? places
                                                        : engine->cq_free[queue];
}

/*
 * Turns the next entry of a ring into that of a request that is being posted as one work request.
 * The id is the previous ring->next. The caller sets the owner's fields, and counts it.
 */
static SLU_INLINE struct slu_entry *slu_entry_begin(struct slu_engine *engine,
                                                    struct slu_ring *ring, uint32_t head,
                                                    const struct sluice_sge *sges,
                                                    uint32_t key_count, uint64_t bytes)
{
    struct slu_entry *entry = slu_ring_entry(ring, ring->next);

    if (SLU_UNLIKELY(slu_entry_is_unseen(engine, entry)))
        slu_entry_displace(engine, ring, entry);
    ring->next += SLU_ID_STEP;
    entry->bytes = bytes;
    entry->course = SLU_PLAIN_COURSE;
    slu_entry_pend(engine, ring, entry, head, sges, key_count);
    return entry;
}

/* Does the same for any request. */
static SLU_INLINE struct slu_entry *slu_entry_take(struct slu_engine *engine, struct slu_ring *ring,
                                                   enum slu_owner owner, uint32_t opcode,
                                                   const struct sluice_request *request,
                                                   uint64_t bytes)
{
    uint32_t keys = slu_key_count(request);

    return slu_entry_begin(engine, ring, slu_pending_head(owner, opcode, keys),
                           slu_request_sges(request), keys, bytes);
}

/* Counts requests that have become pending; owner is a constant. */
static SLU_INLINE void slu_count_taken(struct slu_engine *engine, enum slu_queue queue,
                                       enum slu_owner owner, uint32_t count)
{
    engine->pending[queue] += count;
    if (owner < SLU_OWNERS_KEEP)
        engine->held[queue] += count;
    if (owner == SLU_OWNER_SCOPE)
        engine->scope.pending += count;
}

/* Notes a deadline if it is the nearest. */
static inline void slu_note_deadline(struct slu_engine *engine, int64_t deadline)
{
    if (deadline < engine->next_deadline)
        engine->next_deadline = deadline;
}

/* Records an error of an entry, unless it has one already that is no flush. */
static inline void slu_entry_fail(struct slu_entry *entry, uint32_t status, uint32_t vendor)
{
    if (entry->marks.failed && entry->status != SLUICE_STATUS_WR_FLUSH_ERR)
        return;
    entry->marks.failed = true;
    entry->status = status;
    entry->vendor = vendor;
}

/* Fills in the result of an entry that is not pending. failed is entry->marks.failed. */
static SLU_INLINE void slu_entry_result(const struct slu_entry *entry, uint32_t peer,
                                        const bool failed, struct sluice_completion *completion)
{
    *completion = (struct sluice_completion){.user_data = entry->user_data,
                                             .bytes = entry->bytes,
                                             .peer = peer,
                                             .opcode = entry->opcode,
                                             .flags = entry->marks.flags,
                                             .immediate = entry->immediate};
    if (SLU_UNLIKELY(failed))
        slu_entry_failure(entry, completion);
}

static inline void slu_order_push(struct slu_engine *engine, enum slu_owner owner,
                                  struct slu_order *order, uint64_t id)
{
    if (SLU_UNLIKELY(order->head - order->tail > order->mask))
        slu_order_tidy(engine, owner, order);
    order->ids[order->head++ & order->mask] = id;
    order->unseen++;
}

/* Marks a done entry as seen by its owner. */
static inline void slu_entry_seen(struct slu_engine *engine, struct slu_entry *entry)
{
    enum slu_queue queue = slu_opcode_queue(entry->opcode);

    engine->orders[entry->owner][queue].unseen--;
    engine->held[queue]--;
    if (entry->owner == SLU_OWNER_SCOPE)
        engine->scope.failures -= entry->marks.failed;
    atomic_store_explicit(&entry->state, SLU_ENTRY_SEEN, memory_order_relaxed);
}

/*
 * Writes a result to the sink of a poll in progress, or else keeps it, in the order of completion.
 */
static SLU_INLINE void slu_entry_keep(struct slu_engine *engine, enum slu_queue queue, uint64_t id,
                                      struct slu_entry *entry, enum slu_owner owner,
                                      const bool failed)
{
    if (owner == SLU_OWNER_SCOPE) {
        engine->scope.pending--;
        engine->scope.failures += failed;
    } else if (engine->sink.left > 0) {
        engine->sink.left--;
        engine->held[queue]--;
        slu_entry_result(entry, slu_id_peer(id), failed, engine->sink.next++);
        atomic_store_explicit(&entry->state, SLU_ENTRY_SEEN, memory_order_relaxed);
        return;
    }
    entry->number = ++engine->done_number;
    slu_order_push(engine, owner, &engine->orders[owner][queue], id);
    atomic_store_explicit(&entry->state, SLU_ENTRY_DONE, memory_order_relaxed);
}

/*
 * Counts a request that has succeeded. The trace probe is here, where all its arguments are at
 * hand.
 */
static inline void slu_count_success(const struct slu_engine *engine, struct slu_peer *peer,
                                     uint64_t id, const struct slu_entry *entry)
{
    uint64_t bytes = entry->bytes;
    uint32_t opcode = entry->opcode;

    peer->counts.requests[opcode]++;
    peer->counts.bytes[opcode] += bytes;
    SLU_PROBE5(completion, engine, id, opcode, bytes, SLUICE_STATUS_SUCCESS);
}

/*
 * Gives a result that is complete and counted to its owner. failed is entry->marks.failed; likely
 * is a constant: the owner that it probably has.
 */
static SLU_INLINE void slu_entry_end(struct slu_engine *engine, enum slu_queue queue, uint64_t id,
                                     struct slu_entry *entry, const bool failed,
                                     const enum slu_owner likely)
{
    enum slu_owner owner = (enum slu_owner)entry->owner;

    if (likely < SLU_OWNERS_KEEP && SLU_LIKELY(owner == likely)) {
        slu_entry_keep(engine, queue, id, entry, likely, failed);
    } else if (owner == SLU_OWNER_CALL) {
        struct slu_call *call = entry->call;

        atomic_store_explicit(&entry->state, SLU_ENTRY_FREE, memory_order_relaxed);
        if (failed)
            slu_entry_tell_failure(entry, slu_id_peer(id));
        else if (call->completions != NULL)
            slu_entry_tell_success(entry, slu_id_peer(id));
        else
            call->incomplete--;
    } else if (owner == SLU_OWNER_NOBODY) {
        atomic_store_explicit(&entry->state, SLU_ENTRY_FREE, memory_order_relaxed);
        engine->detached--;
    } else {
        slu_entry_keep(engine, queue, id, entry, owner, failed);
    }
}

/* Return the deadline of a request, as an absolute time and as it was given. */
static inline int64_t slu_entry_deadline(const struct slu_engine *engine,
                                         const struct slu_entry *entry)
{
    return entry->owner == SLU_OWNER_CALL    ? entry->call->deadline
           : entry->owner == SLU_OWNER_SCOPE ? engine->scope.deadline
                                             : entry->deadline;
}

static inline int64_t slu_entry_time(const struct slu_engine *engine, const struct slu_entry *entry)
{
    return entry->owner == SLU_OWNER_CALL    ? entry->call->time
           : entry->owner == SLU_OWNER_SCOPE ? engine->scope.time
                                             : entry->time;
}

#endif
