/* SPDX-License-Identifier: MIT */
/*
 * Lists of usual requests of one operation: what their entries and work requests have in
 * common is laid out once, and nothing is asked of a request that was asked when it was
 * checked. Guarantee: they are posted as slu_post_call() would post each.
 */
#include "config.h"

#include "engine/chain.h"

/* Work requests of one peer, of which so many have all that is common to them. */
struct usual {
    uint32_t opcode;
    uint32_t flags; /* of each work request that is no receive */
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

/* One more follows so many. */
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

/* queue, owner and multicast are constants. */
static SLU_INLINE uint32_t post_usual(struct slu_call *call, int list, uint32_t from, uint32_t most,
                                      const enum slu_queue queue, const enum slu_owner owner,
                                      const bool multicast)
{
    struct slu_engine *const engine = call->engine;
    const struct slu_source *const source = call->source;
    const struct sluice_request *request =
        source->lists[list] + (multicast ? 0 : from - (list == 0 ? 0 : source->counts[0]));
    const uint32_t named = source->opcodes[list];
    struct sluice_handle *const handles = owner == SLU_OWNER_CALL ? NULL : call->handles;
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
        struct slu_ring *ring = &peer->rings[queue];
        uint32_t count = 0;

        if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY || peer->free[queue] == 0))
            break;
        for (;;) {
            const struct sluice_sge *sge = slu_request_sges(request);
            uint64_t id = ring->next;

            peer->free[queue]--;
            slu_entry_own(call, slu_entry_begin(engine, ring, usual.head, sge, 1, sge->length),
                          owner, i, request);
            if (handles != NULL)
                slu_give_handle(&handles[i], id, slu_owner_tag(engine, owner));
            fill_work(&usual, queue, count, id, sge);
            if (queue == SLU_SEND_QUEUE && usual.opcode != SLUICE_OP_SEND)
                aim_work(&usual.sends[count],
                         multicast ? &source->remotes[i].remote : &request->remote);
            count++;
            i++;
            if (multicast)
                break;
            request++;
            if (i == end || request->peer != index || count == SLU_CHAIN || peer->free[queue] == 0)
                break;
            link_work(&usual, queue, count);
        }
        post_work(engine, peer, &usual, queue, count);
    }
    engine->cq_free[queue] -= i - from;
    slu_count_taken(engine, queue, owner, i - from);
    return i;
}

/* The forms that it has. A multicast has no receives. */
#define FORM(name, queue, owner, multicast)                                            \
    static uint32_t name(struct slu_call *call, int list, uint32_t from, uint32_t end) \
    {                                                                                  \
        return post_usual(call, list, from, end, queue, owner, multicast);             \
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

slu_usual_form *const slu_usual_forms[][SLU_USUAL_FORMS] = {
    [SLU_OWNER_PROGRAM] = {program_sends, program_receives, program_multicast},
    [SLU_OWNER_SCOPE] = {scope_sends, scope_receives, scope_multicast},
    [SLU_OWNER_CALL] = {call_sends, call_receives, call_multicast},
};
