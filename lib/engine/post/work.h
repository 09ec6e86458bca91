/* SPDX-License-Identifier: MIT */
/* Work requests: filling them in, the room for them, and giving them to the driver. */
#ifndef SLU_ENGINE_POST_WORK_H
#define SLU_ENGINE_POST_WORK_H

#include "engine/request/source.h"
#include "engine/ring/id.h"

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

/* Fails the peer of a request that the driver refused, and makes its drain due at once. */
void slu_post_refused(struct slu_engine *engine, struct slu_peer *peer, struct slu_entry *entry,
                      int error);
/* Does the same for the first request of a chain that the driver did not take, by its id. */
void slu_chain_refused(struct slu_engine *engine, struct slu_peer *peer, uint64_t id, int error);

/* Post a chain. If the driver does not say which request it refused, the first is blamed. */
static SLU_INLINE void slu_post_sends(struct slu_engine *engine, struct slu_peer *peer,
                                      struct slu_send_wr *first)
{
    struct slu_send_wr *bad = NULL;
    int error = engine->transport->post_send(peer->qp, first, &bad);

    if (SLU_UNLIKELY(error < 0))
        slu_chain_refused(engine, peer, bad != NULL ? bad->id : first->id, error);
}

static SLU_INLINE void slu_post_receives(struct slu_engine *engine, struct slu_peer *peer,
                                         struct slu_receive_wr *first)
{
    struct slu_receive_wr *bad = NULL;
    int error = engine->transport->post_receive(peer->qp, first, &bad);

    if (SLU_UNLIKELY(error < 0))
        slu_chain_refused(engine, peer, bad != NULL ? bad->id : first->id, error);
}

#endif
