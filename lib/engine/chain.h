/* SPDX-License-Identifier: MIT */
/*
 * A chain: neighbours in a list that go to one queue of one peer are posted together, with
 * one doorbell. chain.c has what is rare: requests that are refused, wait, or are split.
 */
#ifndef SLU_ENGINE_CHAIN_H
#define SLU_ENGINE_CHAIN_H

#include "engine/inside.h"

#define SLU_CHAIN 16

#define SLU_SPARE_UNKNOWN INT64_MIN

/* What is gathered for one queue of one peer, and what all of a list has in common. */
struct slu_chain {
    struct slu_engine *engine;
    struct slu_call *call; /* NULL: it is unpolled */
    enum slu_queue queue;
    enum slu_owner owner;
    int64_t deadline;
    int64_t time; /* that as it was given */
    struct slu_peer *peer;
    uint32_t send_flags; /* of each work request that is no receive */
    uint32_t share;      /* requests that a peer may have in flight in any case */
    int64_t spare; /* entries of the completion queue beside what the shares need; see has_share */
    uint32_t head; /* of the entries of usual requests */
    uint32_t laid; /* work requests with all that usual ones have in common */
    uint32_t count;
    union {
        struct slu_send_wr sends[SLU_CHAIN];
        struct slu_receive_wr receives[SLU_CHAIN];
    };
};

/* What each peer may have of a completion queue that is shared. */
uint32_t slu_chain_share(const struct slu_engine *engine, enum slu_queue queue);
/* The driver did not take the request of that id. */
void slu_chain_refused(struct slu_chain *chain, uint64_t id, int error);
/* Posts one item of a call, or part of it, or gives it the result that it is refused with. */
void slu_chain_post_item(struct slu_chain *chain, const struct slu_item *item, uint32_t index);
/* Posts an unpolled item, whole or split, for which there was room; its id. */
uint64_t slu_chain_post_unpolled(struct slu_chain *chain, const struct slu_item *item);

static inline void slu_chain_begin(struct slu_chain *chain, struct slu_engine *engine,
                                   enum slu_queue queue, enum slu_owner owner, int64_t time,
                                   int64_t deadline)
{
    chain->engine = engine;
    chain->call = NULL;
    chain->queue = queue;
    chain->owner = owner;
    chain->time = time;
    chain->deadline = deadline;
    chain->peer = NULL;
    chain->send_flags = SLU_SIGNALED;
    chain->share = UINT32_MAX;
    chain->spare = SLU_SPARE_UNKNOWN;
    chain->count = 0;
}

static inline void slu_chain_begin_call(struct slu_chain *chain, struct slu_call *call,
                                        enum slu_queue queue)
{
    slu_chain_begin(chain, call->engine, queue, call->owner, call->time, call->deadline);
    chain->call = call;
    if (call->owner != SLU_OWNER_CALL)
        return;
    if (SLU_UNLIKELY(call->engine->entries_shared))
        chain->share = slu_chain_share(call->engine, queue);
    if ((call->queues & 1U << SLU_RECEIVE_QUEUE) == 0)
        chain->send_flags |= SLU_WAITED;
}

/* Posts the first so many that are gathered, which are linked; there is one. */
static SLU_INLINE void slu_chain_post(struct slu_chain *chain, enum slu_queue queue, uint32_t count)
{
    const struct slu_transport *transport = chain->engine->transport;
    int error;

    if (queue == SLU_RECEIVE_QUEUE) {
        struct slu_receive_wr *bad = NULL;

        chain->receives[count - 1].next = NULL;
        error = transport->post_receive(chain->peer->qp, chain->receives, &bad);
        if (SLU_UNLIKELY(error < 0))
            slu_chain_refused(chain, bad != NULL ? bad->id : chain->receives[0].id, error);
    } else {
        struct slu_send_wr *bad = NULL;

        chain->sends[count - 1].next = NULL;
        error = transport->post_send(chain->peer->qp, chain->sends, &bad);
        if (SLU_UNLIKELY(error < 0))
            slu_chain_refused(chain, bad != NULL ? bad->id : chain->sends[0].id, error);
    }
}

static inline void slu_chain_flush(struct slu_chain *chain)
{
    uint32_t count = chain->count;

    if (count == 0)
        return;
    chain->count = 0;
    slu_chain_post(chain, chain->queue, count);
}

static inline void slu_chain_set_peer(struct slu_chain *chain, struct slu_peer *peer)
{
    if (chain->peer != peer || chain->count == SLU_CHAIN) {
        slu_chain_flush(chain);
        chain->peer = peer;
    }
}

#endif
