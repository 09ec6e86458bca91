/* SPDX-License-Identifier: MIT */
/* The queue pairs of a completion queue: finding and failing them, and requests of our own. */
#include "config.h"

#include <string.h>
#include <sys/epoll.h>

#include "transport/verbs/events/events.h"
#include "transport/verbs/queues/queues.h"

static struct slu_verbs_qp **bucket_of(struct slu_verbs_cq *cq, uint32_t qpn)
{
    return &cq->qps[qpn & (SLU_VERBS_BUCKETS - 1)];
}

void slu_verbs_cq_add(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp)
{
    struct slu_verbs_qp **bucket = bucket_of(cq, qp->ibv->qp_num);

    qp->next = *bucket;
    *bucket = qp;
}

void slu_verbs_cq_remove(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp)
{
    struct slu_verbs_qp **link = bucket_of(cq, qp->ibv->qp_num);

    while (*link != qp)
        link = &(*link)->next;
    *link = qp->next;
}

struct slu_verbs_qp *slu_verbs_cq_find(struct slu_verbs_cq *cq, uint32_t qpn)
{
    struct slu_verbs_qp *qp = *bucket_of(cq, qpn);

    while (qp && qp->ibv->qp_num != qpn)
        qp = qp->next;
    return qp;
}

/*
 * Stops watching the channel of a device that is gone: it stays readable for ever and would keep an
 * event loop awake.
 */
static void unwatch_device(const struct slu_verbs_cq *cq)
{
    int saved = errno;

    epoll_ctl(cq->fd, EPOLL_CTL_DEL, cq->channel->fd, NULL);
    errno = saved;
}

void slu_verbs_cq_fail(struct slu_verbs_cq *cq, const char *reason)
{
    if (!cq->dead) {
        cq->reason = reason;
        unwatch_device(cq);
    }
    cq->dead = true;
    for (uint32_t i = 0; i < SLU_VERBS_BUCKETS; i++) {
        for (struct slu_verbs_qp *qp = cq->qps[i]; qp; qp = qp->next)
            qp->state = SLU_QP_ERROR;
    }
}

/*
 * If the device refuses the error state, nothing completes: the engine's limit for draining ends
 * that.
 */
void slu_verbs_qp_fail(struct slu_verbs_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int err = ibv_modify_qp(qp->ibv, &attr, IBV_QP_STATE);

    qp->state = SLU_QP_ERROR;
    slu_verbs_qp_part(qp);
    if (err)
        slu_log(SLUICE_LOG_WARN, "queue pair %u of %s cannot be put into the error state: %s",
                qp->ibv->qp_num, qp->base.pd->context->device, strerror(slu_verbs_errno(err)));
}

/*
 * Ids are unique: some drivers still deliver completions of a destroyed queue pair, which must not
 * be mistaken for those of another one.
 */
int slu_verbs_own_post(struct slu_verbs_qp *qp, struct ibv_send_wr *wr)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(qp->base.cq);
    struct ibv_send_wr *bad;
    int err;

    cq->own_number++;
    wr->wr_id = cq->own_number << SLU_ID_OWN_SHIFT | SLU_ID_OWN;
    wr->send_flags = IBV_SEND_SIGNALED;
    err = ibv_post_send(qp->ibv, wr, &bad);
    if (err)
        return err;
    qp->own.in_flight = wr->wr_id;
    return 0;
}
