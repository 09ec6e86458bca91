/* SPDX-License-Identifier: MIT */
/*
 * Posting: items become entries of rings and work requests, as fast as can be as long as
 * nothing about them is rare.
 */
#include "config.h"

#include "engine/chain.h"

/* The work request of one that is whole. */
static inline void add_plain(struct slu_chain *chain, const struct sluice_request *request,
                             const struct sluice_remote_mr *remote, uint32_t opcode, uint64_t id,
                             const struct sluice_sge *sges)
{
    uint32_t at = chain->count++;
    struct slu_send_wr *wr = &chain->sends[at];

    if (chain->queue == SLU_RECEIVE_QUEUE) {
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

/* Some items of one list of a source, and what each of them may get. */
struct some {
    const struct slu_source *source;
    int list;
    uint32_t from, end; /* their indices */
    uint32_t first;     /* index of the first of the list */
    struct sluice_handle *handles;
};

/* What the owner of a request has in its entry. owner may be a constant. */
static SLU_INLINE void fill_entry(const struct slu_chain *chain, struct slu_entry *entry,
                                  const enum slu_owner owner, uint32_t index,
                                  const struct sluice_request *request)
{
    if (owner == SLU_OWNER_CALL) {
        entry->index = index;
        entry->call = chain->call;
        return;
    }
    entry->user_data = request->user_data;
    if (owner == SLU_OWNER_SCOPE) {
        entry->index = chain->call->first + index;
        entry->tag = chain->engine->scope.tag;
    } else {
        entry->deadline = chain->deadline;
        entry->time = chain->time;
    }
}

static inline uint32_t count_room(const struct slu_chain *chain, enum slu_owner owner)
{
    return owner == SLU_OWNER_CALL ? chain->engine->cq_free[chain->queue]
                                   : slu_room_and_places(chain->engine, chain->queue);
}

/*
 * Posts the items as far as nothing about them is rare. Returns the index of the first that is
 * left.
 */
static __attribute__((noinline)) uint32_t post_plain(struct slu_chain *chain,
                                                     const struct some *some)
{
    struct slu_engine *const engine = chain->engine;
    const struct slu_source *const source = some->source;
    const enum slu_queue queue = chain->queue;
    const enum slu_owner owner = chain->owner;
    const uint64_t tag = owner == SLU_OWNER_SCOPE ? engine->scope.tag : engine->tag;
    const uint32_t room = count_room(chain, owner);
    uint32_t left = room;
    uint32_t i = some->from;

    for (; i < some->end; i++) {
        struct slu_entry *entry;
        struct slu_item item;
        struct slu_peer *peer;
        struct slu_ring *ring;
        uint64_t id;

        slu_source_item(source, i, &item);
        if (slu_item_queue(&item) != queue)
            continue;
        peer = &engine->peers[item.peer];
        ring = &peer->rings[queue];
        /* What is posted of it now may fail its peer. */
        slu_chain_set_peer(chain, peer);
        if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY || peer->free[queue] == 0 || left == 0 ||
                         item.bytes > engine->attr.max_message))
            break;
        left--;
        peer->free[queue]--;
        id = ring->next;
        entry = slu_entry_take(engine, ring, owner, item.opcode, item.request, item.bytes);
        fill_entry(chain, entry, owner, i, item.request);
        if (some->handles != NULL)
            slu_give_handle(&some->handles[i], id, tag);
        add_plain(chain, item.request, item.remote != NULL ? item.remote : &item.request->remote,
                  item.opcode, id, item.sges);
    }
    engine->cq_free[queue] -= room - left;
    slu_count_taken(engine, queue, owner, room - left);
    return i;
}
/* What the work requests of usual requests have in common, in the next place of the chain. */
static SLU_INLINE void lay_usual(struct slu_chain *chain, const enum slu_queue queue,
                                 uint32_t opcode)
{
    uint32_t at = chain->laid++;

    if (queue == SLU_RECEIVE_QUEUE)
        chain->receives[at].sge_count = 1;
    else
        chain->sends[at] =
            (struct slu_send_wr){.opcode = opcode, .flags = chain->send_flags, .sge_count = 1};
}

/* The next one follows so many. */
static SLU_INLINE void link_usual(struct slu_chain *chain, const enum slu_queue queue,
                                  uint32_t count)
{
    if (count == chain->laid)
        lay_usual(chain, queue, chain->sends[0].opcode);
    if (queue == SLU_RECEIVE_QUEUE)
        chain->receives[count - 1].next = &chain->receives[count];
    else
        chain->sends[count - 1].next = &chain->sends[count];
}

/* And what each has of its own. */
static SLU_INLINE void fill_usual(struct slu_chain *chain, const enum slu_queue queue, uint32_t at,
                                  uint64_t id, const struct sluice_sge *sge)
{
    if (queue == SLU_RECEIVE_QUEUE) {
        chain->receives[at].id = id;
        chain->receives[at].sges = sge;
    } else {
        chain->sends[at].id = id;
        chain->sends[at].sges = sge;
    }
}

static SLU_INLINE void aim_usual(struct slu_send_wr *wr, const struct sluice_remote_mr *remote)
{
    wr->remote_addr = remote->addr;
    wr->rkey = remote->rkey;
}

/*
 * The same of a list of usual requests of one operation: what all of them have in common is
 * written once. queue, owner and multicast are constants.
 */
static SLU_INLINE uint32_t post_usual(struct slu_chain *chain, const struct some *some,
                                      const enum slu_queue queue, const enum slu_owner owner,
                                      const bool multicast)
{
    struct slu_engine *const engine = chain->engine;
    const struct slu_source *const source = some->source;
    const struct sluice_request *request =
        source->lists[some->list] + (multicast ? 0 : some->from - some->first);
    const uint32_t named = source->opcodes[some->list];
    const uint32_t opcode = named != SLUICE_OP_NONE ? named : request->opcode;
    struct sluice_handle *const handles = owner == SLU_OWNER_CALL ? NULL : some->handles;
    const uint32_t end =
        some->from + (uint32_t)slu_least(some->end - some->from, count_room(chain, owner));
    uint32_t i = some->from;

    slu_chain_flush(chain);
    chain->head = slu_pending_head(owner, opcode, 1);
    chain->laid = 0;
    lay_usual(chain, queue, opcode);
    while (i < end) {
        uint32_t index = multicast ? slu_source_peer(source, i) : request->peer;
        struct slu_peer *peer = &engine->peers[index];
        struct slu_ring *ring = &peer->rings[queue];
        uint32_t count = 0;

        if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY || peer->free[queue] == 0))
            break;
        for (;;) {
            const struct sluice_sge *sge = slu_request_sges(request);
            uint64_t id = ring->next;

            peer->free[queue]--;
            fill_entry(chain, slu_entry_begin(engine, ring, chain->head, sge, 1, sge->length),
                       owner, i, request);
            if (handles != NULL)
                slu_give_handle(&handles[i], id,
                                owner == SLU_OWNER_SCOPE ? engine->scope.tag : engine->tag);
            fill_usual(chain, queue, count, id, sge);
            if (queue == SLU_SEND_QUEUE && chain->sends[0].opcode != SLUICE_OP_SEND)
                aim_usual(&chain->sends[count],
                          multicast ? &source->remotes[i].remote : &request->remote);
            count++;
            i++;
            if (multicast)
                break;
            request++;
            if (i == end || request->peer != index || count == SLU_CHAIN || peer->free[queue] == 0)
                break;
            link_usual(chain, queue, count);
        }
        chain->peer = peer;
        slu_chain_post(chain, queue, count);
    }
    engine->cq_free[queue] -= i - some->from;
    slu_count_taken(engine, queue, owner, i - some->from);
    return i;
}

/* The forms that it has. A multicast has no receives. */
#define FORM(name, queue, owner, multicast)                                 \
    static __attribute__((noinline)) uint32_t name(struct slu_chain *chain, \
                                                   const struct some *some) \
    {                                                                       \
        return post_usual(chain, some, queue, owner, multicast);            \
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

typedef uint32_t form(struct slu_chain *chain, const struct some *some);

/* By owner, and then: sends, receives, multicast. */
static form *const forms[][3] = {
    [SLU_OWNER_PROGRAM] = {program_sends, program_receives, program_multicast},
    [SLU_OWNER_SCOPE] = {scope_sends, scope_receives, scope_multicast},
    [SLU_OWNER_CALL] = {call_sends, call_receives, call_multicast},
};

static inline form *form_of(const struct slu_chain *chain, const struct slu_source *source,
                            int queues)
{
    return SLU_LIKELY((queues & SLU_ALIKE) != 0)
               ? forms[chain->owner][source->multicast ? 2 : (int)chain->queue]
               : post_plain;
}

/* The items of one list of a call: those that are rare one by one. */
static SLU_INLINE void post_list(struct slu_chain *chain, form *most, int list, uint32_t first)
{
    struct slu_call *call = chain->call;
    struct some some = {.source = call->source,
                        .list = list,
                        .from = first,
                        .end = first + call->source->counts[list],
                        .first = first,
                        .handles = call->owner == SLU_OWNER_SCOPE ? call->handles : NULL};

    while (some.from < some.end) {
        struct slu_item item;

        /* Once one has stalled, what follows it to its peer must not overtake it. */
        if (SLU_LIKELY(!call->expired && chain->share == UINT32_MAX &&
                       chain->engine->stalled[chain->queue] == SLU_NONE))
            some.from = most(chain, &some);
        if (SLU_LIKELY(some.from == some.end))
            return;
        slu_source_item(call->source, some.from, &item);
        if (slu_item_queue(&item) == chain->queue)
            slu_chain_post_item(chain, &item, some.from);
        some.from++;
    }
}

/* Whether a list of it may have requests for the queue. */
static inline bool list_has(const struct slu_source *source, int list, enum slu_queue queue)
{
    uint32_t opcode = source->opcodes[list];

    return source->counts[list] > 0 &&
           (opcode == SLUICE_OP_NONE || slu_opcode_queue(opcode) == queue);
}

void slu_post_call(struct slu_call *call, enum slu_queue queue)
{
    const struct slu_source *source = call->source;
    struct slu_chain chain;
    form *most;

    slu_chain_begin_call(&chain, call, queue);
    slu_note_deadline(call->engine, call->deadline);
    most = form_of(&chain, source, (int)call->queues);
    for (int list = 0; list < 2; list++)
        if (list_has(source, list, queue))
            post_list(&chain, most, list, list == 0 ? 0 : source->counts[0]);
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
    struct some some = {
        .source = source, .from = prefix->from, .end = prefix->count, .handles = prefix->handles};
    struct slu_chain chain;
    form *most;

    slu_chain_begin(&chain, engine, queue, SLU_OWNER_PROGRAM, prefix->time, prefix->deadline);
    slu_note_deadline(engine, prefix->deadline);
    most = form_of(&chain, source, prefix->queues);
    prefix->why = 0;
    for (;;) {
        struct slu_item item;
        uint64_t id;

        some.from = most(&chain, &some);
        if (SLU_LIKELY(some.from == some.end))
            break;
        slu_source_item(source, some.from, &item);
        slu_chain_set_peer(&chain, &engine->peers[item.peer]);
        prefix->why = find_room(&chain, &item);
        if (prefix->why != 0 && !prefix->counted)
            break;
        id = slu_chain_post_unpolled(&chain, &item);
        if (prefix->handles != NULL)
            slu_give_handle(&prefix->handles[some.from], id, engine->tag);
        some.from++;
    }
    slu_chain_flush(&chain);
    return some.from;
}
