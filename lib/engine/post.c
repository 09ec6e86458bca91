/* SPDX-License-Identifier: MIT */
/*
 * Posting: items become entries of rings and work requests, as fast as can be as long as
 * nothing about them is rare.
 */
#include "config.h"

#include "engine/chain.h"

/* The work request of one that is whole. queue is a constant. */
static SLU_INLINE void add_plain(struct slu_chain *chain, const enum slu_queue queue,
                                 const struct sluice_request *request,
                                 const struct sluice_remote_mr *remote, uint32_t opcode,
                                 uint64_t id, const struct sluice_sge *sges)
{
    uint32_t at = chain->count++;
    struct slu_send_wr *wr = &chain->sends[at];

    if (queue == SLU_RECEIVE_QUEUE) {
        chain->receives[at].next = &chain->receives[at + 1];
        slu_fill_receive(&chain->receives[at], id, sges, request->sge_count);
        return;
    }
    wr->next = wr + 1;
    wr->id = id;
    wr->opcode = opcode;
    wr->flags = request->flags | chain->send_flags;
    wr->immediate = request->immediate;
    wr->sge_count = request->sge_count;
    wr->sges = sges;
    wr->operand = request->operand;
    wr->remote_addr = remote->addr;
    wr->rkey = remote->rkey;
}

/*
 * The items of one list of a source, the first of which has the index first, as far as
 * nothing about them is rare. queue, owner and multicast are constants. What is the same
 * for all of them is at hand. Returns the index of the first that is left: it is rare.
 */
static SLU_INLINE uint32_t post_plain(struct slu_chain *chain, const struct slu_source *source,
                                      int list, uint32_t from, uint32_t end, uint32_t first,
                                      struct sluice_handle *handles, const enum slu_queue queue,
                                      const enum slu_owner owner, const bool multicast)
{
    struct slu_engine *const engine = chain->engine;
    const struct sluice_request *request = source->lists[list] + (multicast ? 0 : from - first);
    const uint32_t named = source->opcodes[list];
    const uint64_t max_message = engine->attr.max_message;
    const uint64_t tag = owner == SLU_OWNER_SCOPE ? engine->scope.tag : engine->tag;
    struct slu_call *const call = chain->call;
    const uint32_t room =
        owner == SLU_OWNER_CALL ? engine->cq_free[queue] : slu_room_and_places(engine, queue);
    uint32_t left = room;
    uint32_t i = from;

    for (; i < end; i++, request += !multicast) {
        uint32_t opcode = named != SLUICE_OP_NONE ? named : request->opcode;
        uint32_t index = !multicast                ? request->peer
                         : source->remotes != NULL ? source->remotes[i].peer
                                                   : source->peers[i];
        const struct sluice_sge *sges = slu_request_sges(request);
        struct slu_peer *peer = &engine->peers[index];
        struct slu_ring *ring = &peer->rings[queue];
        uint32_t sge_count = request->sge_count;
        struct slu_entry *entry;
        uint64_t bytes, id;

        if (SLU_UNLIKELY(slu_opcode_queue(opcode) != queue))
            continue;
        bytes = slu_sge_bytes(sges, sge_count);
        /* What is posted of it now may fail its peer. */
        slu_chain_set_peer(chain, peer);
        if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY || peer->free[queue] == 0 || left == 0 ||
                         bytes > max_message))
            break;
        left--;
        peer->free[queue]--;
        id = ring->next;
        entry = slu_entry_begin(engine, ring, opcode, sges, slu_key_count(request), bytes, owner);
        if (owner == SLU_OWNER_CALL) {
            entry->index = i;
            entry->call = call;
        } else {
            entry->user_data = request->user_data;
        }
        if (owner == SLU_OWNER_SCOPE) {
            entry->index = call->first + i;
            entry->tag = tag;
        }
        if (owner == SLU_OWNER_PROGRAM) {
            entry->deadline = chain->deadline;
            entry->time = chain->time;
        }
        if (owner != SLU_OWNER_CALL && handles != NULL)
            slu_give_handle(&handles[i], id, tag);
        add_plain(chain, queue, request,
                  multicast && source->remotes != NULL ? &source->remotes[i].remote
                                                       : &request->remote,
                  opcode, id, sges);
    }
    engine->cq_free[queue] -= room - left;
    slu_count_taken(engine, queue, owner, room - left);
    return i;
}

/* The forms that it has. A multicast has no receives, and is never of a mixed list. */
#define FORM(name, queue, owner, multicast)                                                \
    static __attribute__((noinline)) uint32_t name(                                        \
        struct slu_chain *chain, const struct slu_source *source, int list, uint32_t from, \
        uint32_t end, uint32_t first, struct sluice_handle *handles)                       \
    {                                                                                      \
        return post_plain(chain, source, list, from, end, first, handles, queue, owner,    \
                          multicast);                                                      \
    }
FORM(call_sends, SLU_SEND_QUEUE, SLU_OWNER_CALL, false)
FORM(call_receives, SLU_RECEIVE_QUEUE, SLU_OWNER_CALL, false)
FORM(call_multicast, SLU_SEND_QUEUE, SLU_OWNER_CALL, true)
FORM(scope_sends, SLU_SEND_QUEUE, SLU_OWNER_SCOPE, false)
FORM(scope_receives, SLU_RECEIVE_QUEUE, SLU_OWNER_SCOPE, false)
FORM(scope_multicast, SLU_SEND_QUEUE, SLU_OWNER_SCOPE, true)
FORM(program_sends, SLU_SEND_QUEUE, SLU_OWNER_PROGRAM, false)
FORM(program_receives, SLU_RECEIVE_QUEUE, SLU_OWNER_PROGRAM, false)
FORM(program_multicast, SLU_SEND_QUEUE, SLU_OWNER_PROGRAM, true)

typedef uint32_t form(struct slu_chain *chain, const struct slu_source *source, int list,
                      uint32_t from, uint32_t end, uint32_t first, struct sluice_handle *handles);

/* By owner, and then: sends, receives, multicast. */
static form *const forms[][3] = {
    [SLU_OWNER_PROGRAM] = {program_sends, program_receives, program_multicast},
    [SLU_OWNER_SCOPE] = {scope_sends, scope_receives, scope_multicast},
    [SLU_OWNER_CALL] = {call_sends, call_receives, call_multicast},
};

static form *form_of(const struct slu_chain *chain, const struct slu_source *source)
{
    return forms[chain->owner][source->multicast ? 2 : (int)chain->queue];
}

/* The items of one list of a call: those that are rare one by one. */
static void post_list(struct slu_chain *chain, const struct slu_source *source, int list,
                      uint32_t first)
{
    form *plain = form_of(chain, source);
    uint32_t end = first + source->counts[list];
    uint32_t i = first;

    while (i < end) {
        struct slu_item item;

        /* Once one has stalled, what follows it to its peer must not overtake it. */
        if (SLU_LIKELY(!chain->call->expired && chain->share == UINT32_MAX &&
                       chain->engine->stalled[chain->queue] == SLU_NONE))
            i = plain(chain, source, list, i, end, first, chain->call->handles);
        if (i == end)
            return;
        slu_source_item(source, i, &item);
        if (slu_item_queue(&item) == chain->queue)
            slu_chain_post_item(chain, &item, i);
        i++;
    }
}

/* Whether a list of it may have requests for the queue. */
static bool list_has(const struct slu_source *source, int list, enum slu_queue queue)
{
    uint32_t opcode = source->opcodes[list];

    return source->counts[list] > 0 &&
           (opcode == SLUICE_OP_NONE || slu_opcode_queue(opcode) == queue);
}

void slu_post_call(struct slu_call *call, enum slu_queue queue)
{
    const struct slu_source *source = call->source;
    struct slu_chain chain;

    if ((call->queues & 1U << queue) == 0)
        return;
    slu_chain_begin_call(&chain, call, queue);
    slu_note_deadline(call->engine, call->deadline);
    if (list_has(source, 0, queue))
        post_list(&chain, source, 0, 0);
    if (list_has(source, 1, queue))
        post_list(&chain, source, 1, source->counts[0]);
    slu_chain_flush(&chain);
}

/*
 * 0, or why an unpolled item is not posted. What follows one of its list that the driver
 * has refused is taken all the same, as far as there are entries, and cancelled.
 */
static inline int find_room(const struct slu_chain *chain, const struct slu_item *item)
{
    const struct slu_peer *peer = chain->peer;

    if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY &&
                     (peer->refused_in != chain->engine->call_number ||
                      slu_ring_room(&peer->rings[chain->queue]) == 0)))
        return -ENOTCONN;
    return SLU_LIKELY(slu_post_room(chain->engine, peer, chain->queue,
                                    slu_item_parts(chain->engine, item)))
               ? 0
               : -EAGAIN;
}

uint32_t slu_post_prefix(struct slu_engine *engine, const struct slu_source *source,
                         struct slu_prefix *prefix, enum slu_queue queue)
{
    uint32_t i = prefix->from;
    struct slu_chain chain;
    form *plain;

    slu_chain_begin(&chain, engine, queue, SLU_OWNER_PROGRAM, prefix->time, prefix->deadline);
    slu_note_deadline(engine, prefix->deadline);
    plain = form_of(&chain, source);
    prefix->why = 0;
    for (;;) {
        struct slu_item item;
        uint64_t id;

        i = plain(&chain, source, 0, i, prefix->count, 0, prefix->handles);
        if (SLU_LIKELY(i == prefix->count))
            break;
        slu_source_item(source, i, &item);
        slu_chain_set_peer(&chain, &engine->peers[item.peer]);
        prefix->why = find_room(&chain, &item);
        if (prefix->why != 0 && !prefix->counted)
            break;
        id = slu_chain_post_unpolled(&chain, &item);
        if (prefix->handles != NULL)
            slu_give_handle(&prefix->handles[i], id, engine->tag);
        i++;
    }
    slu_chain_flush(&chain);
    return i;
}
