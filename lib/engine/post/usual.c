/* SPDX-License-Identifier: MIT */
/*
 * The fast path for lists of requests of one operation. The fields that their entries and work
 * requests have in common are filled in once, and nothing is checked that slu_source_check() has
 * checked. Guarantee: the requests are posted as slu_post_call() would post each of them.
 */
#include "config.h"

#include "engine/post/chain.h"
#include "engine/ring/entry.h"

/* Work requests for one peer. The common fields of the first laid of them are filled in. */
struct usual {
    uint32_t opcode;
    uint32_t flags; /* of each work request in the send queue */
    uint32_t head;  /* of each entry */
    uint32_t laid;
    union {
        struct slu_send_wr sends[SLU_CHAIN];
        struct slu_receive_wr receives[SLU_CHAIN];
    };
};

static SLU_INLINE void lay_next(struct usual *usual, const enum slu_queue queue)
{
    uint32_t at = usual->laid++;

    if (queue == SLU_RECEIVE_QUEUE)
        usual->receives[at].sge_count = 1;
    else
        usual->sends[at] =
            (struct slu_send_wr){.opcode = usual->opcode, .flags = usual->flags, .sge_count = 1};
}

static SLU_INLINE void fill_work(struct usual *usual, const enum slu_queue queue, uint32_t at,
                                 uint64_t id, const struct sluice_sge *sge)
{
    if (queue == SLU_RECEIVE_QUEUE) {
        usual->receives[at].id = id;
        usual->receives[at].sges = sge;
    } else {
        usual->sends[at].id = id;
        usual->sends[at].sges = sge;
    }
}

static SLU_INLINE void aim_work(struct slu_send_wr *work, const struct sluice_remote_mr *remote)
{
    work->remote_addr = remote->addr;
    work->rkey = remote->rkey;
}

/* Links one more work request behind the first count. */
static SLU_INLINE void link_work(struct usual *usual, const enum slu_queue queue, uint32_t count)
{
    if (count == usual->laid)
        lay_next(usual, queue);
    if (queue == SLU_RECEIVE_QUEUE)
        usual->receives[count - 1].next = &usual->receives[count];
    else
        usual->sends[count - 1].next = &usual->sends[count];
}

static SLU_INLINE void post_work(struct slu_engine *engine, struct slu_peer *peer,
                                 struct usual *usual, const enum slu_queue queue, uint32_t count)
{
    if (queue == SLU_RECEIVE_QUEUE) {
        usual->receives[count - 1].next = NULL;
        slu_post_receives(engine, peer, usual->receives);
    } else {
        usual->sends[count - 1].next = NULL;
        slu_post_sends(engine, peer, usual->sends);
    }
}

/*
 * Turns a request into work request number at of a chain. queue, owner and multicast are constants.
 */
static SLU_INLINE void add_usual(struct slu_call *call, struct usual *usual, uint32_t at,
                                 struct slu_peer *peer, const struct sluice_request *request,
                                 uint32_t index, const enum slu_queue queue,
                                 const enum slu_owner owner, const bool multicast)
{
    const struct sluice_sge *sge = slu_request_sges(request);
    struct slu_engine *engine = call->engine;
    struct slu_ring *ring = &peer->rings[queue];
    uint64_t id = ring->next;

    peer->free[queue]--;
    slu_entry_own(call, slu_entry_begin(engine, ring, usual->head, sge, 1, sge->length), owner,
                  index, request);
    if (owner != SLU_OWNER_CALL && call->handles != NULL)
        slu_give_handle(&call->handles[index], id, slu_owner_tag(engine, owner));
    SLU_PROBE2(post, engine, id);
    fill_work(usual, queue, at, id, sge);
    if (queue == SLU_SEND_QUEUE && usual->opcode != SLUICE_OP_SEND)
        aim_work(&usual->sends[at],
                 multicast ? &call->source->remotes[index].remote : &request->remote);
}

/*
 * Adds the requests that follow the first of a chain and go to the same peer, as far as there is
 * room. Returns how many the chain has then. queue and owner are constants.
 */
static SLU_INLINE uint32_t add_followers(struct slu_call *call, struct usual *usual,
                                         struct slu_peer *peer,
                                         const struct sluice_request *request, uint32_t index,
                                         uint32_t end, const enum slu_queue queue,
                                         const enum slu_owner owner)
{
    uint32_t count = 1;

    while (index + count < end && request[count].peer == request->peer && count < SLU_CHAIN &&
           peer->free[queue] > 0) {
        link_work(usual, queue, count);
        add_usual(call, usual, count, peer, &request[count], index + count, queue, owner, false);
        count++;
    }
    return count;
}

/*
 * Posts the requests of a list. Most chains have a single request; longer ones are left to more(),
 * which is add_followers() of that queue and owner. It is NULL for a multicast. queue, owner and
 * more are constants.
 */
typedef uint32_t add_more(struct slu_call *call, struct usual *usual, struct slu_peer *peer,
                          const struct sluice_request *request, uint32_t index, uint32_t end);
static SLU_INLINE uint32_t post_usual(struct slu_call *call, int list, uint32_t from, uint32_t most,
                                      const enum slu_queue queue, const enum slu_owner owner,
                                      add_more *const more)
{
    struct slu_engine *const engine = call->engine;
    const struct slu_source *const source = call->source;
    const bool multicast = more == NULL;
    const struct sluice_request *request =
        source->lists[list] + (multicast ? 0 : from - (list == 0 ? 0 : source->counts[0]));
    const uint32_t named = source->opcodes[list];
    const uint32_t end =
        from + (uint32_t)slu_least(most - from, slu_owner_room(engine, queue, owner));
    uint32_t i = from;
    struct usual usual;

    usual.opcode = named != SLUICE_OP_NONE ? named : request->opcode;
    usual.flags = slu_call_flags(call, owner);
    usual.head = slu_pending_head(owner, usual.opcode, 1);
    usual.laid = 0;
    lay_next(&usual, queue);
    while (i < end) {
        uint32_t index = multicast ? slu_source_peer(source, i) : request->peer;
        struct slu_peer *peer = &engine->peers[index];
        uint32_t count = 1;

        if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY || peer->free[queue] == 0))
            break;
        add_usual(call, &usual, 0, peer, request, i, queue, owner, multicast);
        if (!multicast && i + 1 < end && request[1].peer == index)
            count = more(call, &usual, peer, request, i, end);
        post_work(engine, peer, &usual, queue, count);
        i += count;
        if (!multicast)
            request += count;
    }
    engine->cq_free[queue] -= i - from;
    slu_count_taken(engine, queue, owner, i - from);
    return i;
}

/* The forms of the fast path. A multicast has no receives. */
#define FORM(name, queue, owner)                                                             \
    static __attribute__((noinline))                                                         \
    uint32_t name##_more(struct slu_call *call, struct usual *usual, struct slu_peer *peer,  \
                         const struct sluice_request *request, uint32_t index, uint32_t end) \
    {                                                                                        \
        return add_followers(call, usual, peer, request, index, end, queue, owner);          \
    }                                                                                        \
    static uint32_t name(struct slu_call *call, int list, uint32_t from, uint32_t end)       \
    {                                                                                        \
        return post_usual(call, list, from, end, queue, owner, name##_more);                 \
    }
#define MULTICAST(name, owner)                                                         \
    static uint32_t name(struct slu_call *call, int list, uint32_t from, uint32_t end) \
    {                                                                                  \
        return post_usual(call, list, from, end, SLU_SEND_QUEUE, owner, NULL);         \
    }
FORM(call_sends, SLU_SEND_QUEUE, SLU_OWNER_CALL)
FORM(call_receives, SLU_RECEIVE_QUEUE, SLU_OWNER_CALL)
MULTICAST(call_multicast, SLU_OWNER_CALL)
FORM(scope_sends, SLU_SEND_QUEUE, SLU_OWNER_SCOPE)
FORM(scope_receives, SLU_RECEIVE_QUEUE, SLU_OWNER_SCOPE)
MULTICAST(scope_multicast, SLU_OWNER_SCOPE)
FORM(program_sends, SLU_SEND_QUEUE, SLU_OWNER_PROGRAM)
FORM(program_receives, SLU_RECEIVE_QUEUE, SLU_OWNER_PROGRAM)
MULTICAST(program_multicast, SLU_OWNER_PROGRAM)

slu_usual_form *const slu_usual_forms[][SLU_USUAL_FORMS] = {
    [SLU_OWNER_PROGRAM] = {program_sends, program_receives, program_multicast},
    [SLU_OWNER_SCOPE] = {scope_sends, scope_receives, scope_multicast},
    [SLU_OWNER_CALL] = {call_sends, call_receives, call_multicast},
};
