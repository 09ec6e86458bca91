/* SPDX-License-Identifier: MIT */
/*
 * Pools: receives that the queue pairs of a completion queue share. A receive is moved to the ring
 * of a queue pair when a message of its peer waits for one. So an idle peer has none, and
 * everything behind that ring works as with receives of its own. Queue pairs that find the pool
 * empty wait in a list and are served in turn, one receive each. The owner of the completion queue
 * makes all calls.
 */
#ifndef SLU_SOFT_POOL_H
#define SLU_SOFT_POOL_H

#include <string.h>

#include "transport/soft/core/regions.h"

struct soft_pool {
    struct slu_tpool base;
    struct soft_ring ring; /* the receives that no queue pair has, the oldest first */
    struct soft_qp *members;
    struct soft_qp *first; /* of those that wait for a receive */
    struct soft_qp **last; /* the link behind the last one */
    uint32_t waiting;      /* number of those */
    bool serving;          /* slu_soft_pool_take() gives nothing: each gets one in its turn */
    bool stalled;          /* some of those that wait have used up their shares */
    bool lost;             /* a queue pair has failed, which no receive of its own tells */
    struct soft_qp heir;   /* stands for queue pairs that were destroyed, and for none */
};

/* pools.c */
int slu_soft_pool_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_pool_attr *attr,
                         struct slu_tpool **pool);
void slu_soft_pool_destroy(struct slu_tpool *pool);
int slu_soft_pool_post(struct slu_tpool *pool, struct slu_receive_wr *chain,
                       struct slu_receive_wr **bad);
bool slu_soft_pool_take_back(struct slu_tpool *pool, uint64_t id, bool force);

/* pool.c */
/* Add a queue pair to its pool, if it has one, and remove it. */
void slu_soft_pool_join(struct soft_qp *qp);
void slu_soft_pool_leave(struct soft_qp *qp);
/* Returns the receives that no message has used, because the queue pair has failed. */
void slu_soft_pool_return(struct soft_qp *qp);
/* Has the engine look for a queue pair that has failed: no receive is flushed that would say so. */
void slu_soft_pool_tell_loss(struct soft_qp *qp);
/* Serves those that wait, each with one receive in its turn, until none may have another. */
void slu_soft_pool_serve(struct soft_pool *pool);
/* Gives receives to peers that had used up their share, after the program has polled. */
void slu_soft_pool_polled(struct soft_cq *cq);
/* Returns the queue pair that completions are noted with once theirs has been destroyed. */
struct soft_qp *slu_soft_pool_heir(const struct soft_cq *cq);

static inline void slu_soft_receive_move(struct soft_ring *to, uint32_t at,
                                         const struct soft_ring *from, uint32_t position)
{
    const struct soft_receive *receive = slu_soft_receive_at(from, position);
    memcpy(slu_soft_receive_at(to, at), receive,
           sizeof(*receive) + receive->sge_count * sizeof(receive->sges[0]));
}

#endif
