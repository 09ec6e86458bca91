/* SPDX-License-Identifier: MIT */
/*
 * Posting: turning items into entries of rings and work requests, on a fast path for as long as the
 * items allow it.
 */
#include "config.h"

#include "engine/post/post.h"

#include "engine/peer/peer.h"
#include "engine/post/call.h"
#include "engine/post/chain.h"
#include "engine/request/message.h"
#include "engine/ring/entry.h"

/* Adds the work request of an item that is posted whole. */
static inline void add_plain(struct slu_chain *chain, const struct slu_item *item, uint64_t id)
{
    uint32_t at = chain->count++;

    if (chain->queue == SLU_RECEIVE_QUEUE) {
        chain->receives[at].next = &chain->receives[at + 1];
        slu_fill_receive(&chain->receives[at], id, item->sges, item->request->sge_count);
        return;
    }
    chain->sends[at].next = &chain->sends[at + 1];
    slu_fill_send(&chain->sends[at], id, item, item->sges, item->request->sge_count);
    chain->sends[at].flags |= chain->send_flags;
}

/*
 * Posts items from one index on, until one needs the slow path. Returns the index of the first that
 * is left.
 */
static uint32_t post_plain(struct slu_chain *chain, uint32_t from, uint32_t end)
{
    struct slu_engine *const engine = chain->engine;
    struct slu_call *const call = chain->call;
    const enum slu_queue queue = chain->queue;
    const enum slu_owner owner = chain->owner;
    const uint32_t room = slu_owner_room(engine, queue, owner);
    uint32_t left = room;
    uint32_t i = from;

    for (; i < end; i++) {
        struct slu_entry *entry;
        struct slu_item item;
        struct slu_peer *peer;
        struct slu_ring *ring;
        uint64_t id;

        slu_source_item(call->source, i, &item);
        if (slu_item_queue(&item) != queue)
            continue;
        peer = &engine->peers[item.peer];
        ring = &peer->rings[queue];
        /* This may flush the chain, which may fail its peer: check the state afterwards. */
        slu_chain_set_peer(chain, peer);
        if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY || peer->free[queue] == 0 || left == 0 ||
                         item.bytes > engine->attr.max_message))
            break;
        left--;
        peer->free[queue]--;
        id = ring->next;
        entry = slu_entry_take(engine, ring, owner, item.opcode, item.request, item.bytes);
        slu_entry_own(call, entry, owner, i, item.request);
        if (call->handles != NULL)
            slu_give_handle(&call->handles[i], id, slu_owner_tag(engine, owner));
        SLU_PROBE2(post, engine, id);
        add_plain(chain, &item, id);
    }
    engine->cq_free[queue] -= room - left;
    slu_count_taken(engine, queue, owner, room - left);
    return i;
}

/*
 * Returns whether the fast path may be used. Once a peer has stalled, later requests must not
 * overtake its earlier ones.
 */
static inline bool is_easy(const struct slu_call *call, enum slu_queue queue)
{
    return !call->expired && call->engine->stalled[queue] == SLU_NONE &&
           !(call->owner == SLU_OWNER_CALL && call->engine->entries_shared);
}

/*
 * Returns whether requests may have blocks. These are posted one by one, because their elements do
 * not say what they move.
 */
static inline bool has_blocks(const struct slu_call *call)
{
    return SLU_UNLIKELY((call->queues & SLU_BLOCKY) != 0);
}

/* Posts the rest of a list, with the slow path for each item that needs it. */
static __attribute__((noinline)) void post_rest(struct slu_call *call, enum slu_queue queue,
                                                uint32_t from, uint32_t end)
{
    struct slu_chain chain;

    slu_chain_begin(&chain, call, queue);
    for (uint32_t i = from; i < end; i++) {
        struct slu_item item;

        if (!has_blocks(call) && is_easy(call, queue))
            i = post_plain(&chain, i, end);
        if (i == end)
            break;
        slu_source_any_item(call->source, i, &item);
        if (slu_item_queue(&item) == queue)
            slu_chain_post_item(&chain, &item, i);
    }
    slu_chain_flush(&chain);
}

/* Returns whether a list of the source may have requests for the queue. */
static inline bool list_has(const struct slu_source *source, int list, enum slu_queue queue)
{
    uint32_t opcode = source->opcodes[list];

    return source->counts[list] > 0 &&
           (opcode == SLUICE_OP_NONE || slu_opcode_queue(opcode) == queue);
}

/* Posts one list of a call. first is the index of its first request in the call. */
static inline void post_list(struct slu_call *call, enum slu_queue queue, int list, uint32_t first)
{
    uint32_t end = first + call->source->counts[list];
    uint32_t from = first;

    if (SLU_LIKELY((call->queues & SLU_ALIKE) != 0 && is_easy(call, queue)))
        from = slu_post_usual(call, queue, list, from, end);
    if (SLU_UNLIKELY(from < end))
        post_rest(call, queue, from, end);
}

void slu_post_call(struct slu_call *call, enum slu_queue queue)
{
    const struct slu_source *source = call->source;

    slu_note_deadline(call->engine, call->deadline);
    if (list_has(source, 0, queue))
        post_list(call, queue, 0, 0);
    if (SLU_UNLIKELY(list_has(source, 1, queue)))
        post_list(call, queue, 1, source->counts[0]);
}

/*
 * Checks whether a posted item can be posted: 0, or the error. If the driver refused an earlier
 * request of the list, later ones to that peer are accepted while there are entries, and are
 * cancelled.
 */
static inline int find_room(const struct slu_chain *chain, const struct slu_item *item)
{
    struct slu_peer *peer = chain->peer;
    bool takes = slu_peer_takes(chain->engine, peer);
    uint32_t room = slu_peer_room(chain->engine, peer, chain->queue);

    if (SLU_UNLIKELY(!takes && (peer->refused_in != chain->engine->call_number ||
                                slu_ring_room(&peer->rings[chain->queue]) == 0)))
        return -ENOTCONN;
    if (SLU_UNLIKELY(slu_parts_need(chain->engine, item, room) > room))
        return -EAGAIN;
    return !slu_item_is_gathered(item) || slu_message_has_room(chain->engine, item) ? 0 : -EAGAIN;
}

/* Posts the rest of a prefix, with the slow path for each item that needs it. */
static __attribute__((noinline)) uint32_t
post_prefix(struct slu_call *call, struct slu_prefix *prefix, enum slu_queue queue, uint32_t from)
{
    uint32_t i = from;
    struct slu_chain chain;

    slu_chain_begin(&chain, call, queue);
    for (;;) {
        struct slu_item item;

        if (!has_blocks(call))
            i = post_plain(&chain, i, prefix->count);
        if (i == prefix->count)
            break;
        slu_source_any_item(call->source, i, &item);
        if (has_blocks(call) && slu_item_queue(&item) != queue) {
            i++;
            continue;
        }
        slu_chain_set_peer(&chain, &call->engine->peers[item.peer]);
        prefix->why = find_room(&chain, &item);
        if (prefix->why != 0 && !prefix->counted)
            break;
        slu_chain_post_posted(&chain, &item, i);
        i++;
    }
    slu_chain_flush(&chain);
    return i;
}

uint32_t slu_post_prefix(struct slu_call *call, struct slu_prefix *prefix, enum slu_queue queue)
{
    uint32_t i = prefix->from;

    slu_note_deadline(call->engine, call->deadline);
    prefix->why = 0;
    if (SLU_LIKELY((call->queues & SLU_ALIKE) != 0))
        i = slu_post_usual(call, queue, 0, i, prefix->count);
    return SLU_LIKELY(i == prefix->count) ? i : post_prefix(call, prefix, queue, i);
}
