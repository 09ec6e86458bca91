/* SPDX-License-Identifier: MIT */
/*
 * Pools of receives: shared receive queues of the device. Guarantee: a pool is refilled in time if
 * the device reports that it runs low, because that wakes a thread that sleeps on the completion
 * queue: slu_verbs_cq_arm() asks for it. A device takes no receive back.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "transport/verbs/events/events.h"
#include "transport/verbs/pairs/pairs.h"
#include "transport/verbs/queues/queues.h"

#define BATCH 16

int slu_verbs_pool_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_pool_attr *attr,
                          struct slu_tpool **pool)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = attr->depth, .max_sge = attr->max_sge}};
    struct slu_verbs_pool *made = calloc(1, sizeof *made);

    if (!made)
        return slu_fail(ENOMEM, "no memory for a pool of receives");
    made->base = (struct slu_tpool){.pd = pd, .cq = cq};
    made->low = attr->low;
    made->depth = attr->depth;
    made->ibv = ibv_create_srq(slu_verbs_pd_of(pd)->ibv, &init);
    if (!made->ibv) {
        int err = slu_verbs_errno(-1);

        free(made);
        return slu_fail(err,
                        "cannot create a shared receive queue on %s with receive_pool %u, "
                        "max_sge %u: %s",
                        pd->context->device, attr->depth, attr->max_sge, strerror(err));
    }
    slu_verbs_events_set_pool(slu_verbs_cq_of(cq), made);
    *pool = &made->base;
    return 0;
}

void slu_verbs_pool_destroy(struct slu_tpool *base)
{
    struct slu_verbs_pool *pool = slu_verbs_pool_of(base);
    int err;

    slu_verbs_events_set_pool(slu_verbs_cq_of(base->cq), NULL);
    err = ibv_destroy_srq(pool->ibv);
    if (err)
        slu_log(SLUICE_LOG_ERROR, "destroying a shared receive queue of %s failed: %s",
                base->pd->context->device, strerror(slu_verbs_errno(err)));
    free(pool);
}

int slu_verbs_pool_post(struct slu_tpool *base, struct slu_receive_wr *chain,
                        struct slu_receive_wr **bad)
{
    struct slu_verbs_pool *pool = slu_verbs_pool_of(base);
    struct ibv_recv_wr batch[BATCH], *ibv_bad;

    /* So few are left that the event was raised, even if no thread has read it yet. */
    if (pool->posted < pool->low)
        atomic_store(&pool->armed, false);
    while (chain) {
        struct slu_receive_wr *first = chain;
        uint32_t count = 0;
        int err;

        for (; chain && count < BATCH; chain = chain->next)
            slu_verbs_translate_receive(chain, &batch[count++], base->pd->context->by_rdmacm);
        batch[count - 1].next = NULL;
        ibv_bad = batch;
        err = ibv_post_srq_recv(pool->ibv, batch, &ibv_bad);
        if (err) {
            for (; ibv_bad > batch; ibv_bad--, pool->posted++)
                first = first->next;
            *bad = first;
            err = slu_verbs_errno(err);
            return slu_fail(err, "%s refused a receive of a pool: %s", base->pd->context->device,
                            strerror(err));
        }
        pool->posted += count;
    }
    return 0;
}
