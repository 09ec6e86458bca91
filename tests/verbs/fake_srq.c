/* SPDX-License-Identifier: MIT */
/*
 * Receives that queue pairs share. A message takes the oldest one to its queue pair, where it is
 * the only receive, so everything behind that works as for receives of a queue pair. If a queue
 * pair fails, a receive that it has taken and not used is flushed; the rest stays for others.
 */
#include "fake_device.h"

static int check_init(const struct fake_device *device, const struct ibv_srq_init_attr *init)
{
    if (device->max_srq == 0)
        return EOPNOTSUPP;
    if (init->attr.max_wr == 0 || init->attr.max_wr > (uint32_t)device->max_srq_wr ||
        init->attr.max_sge > (uint32_t)device->max_srq_sge)
        return EINVAL;
    return fake_verbs.live.srqs >= (uint32_t)device->max_srq ? ENOMEM : 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    struct fake_srq *srq = NULL;

    fake_lock();
    if (!fake_fails(FAKE_CREATE_SRQ)) {
        errno = check_init(fake_device_of(pd->context), init);
        if (!errno) {
            srq = fake_alloc(sizeof(*srq));
            srq->ibv.context = pd->context;
            srq->ibv.srq_context = init->srq_context;
            srq->ibv.pd = pd;
            srq->attr = init->attr;
            fake_list_init(&srq->list);
            fake_container_of(pd, struct fake_pd, ibv)->children++;
            fake_context_of(pd->context)->children++;
            fake_verbs.live.srqs++;
        }
    }
    fake_unlock();
    return srq ? &srq->ibv : NULL;
}

static struct fake_wqe *first_of(const struct fake_srq *srq)
{
    return fake_list_empty(&srq->list) ? NULL
                                       : fake_container_of(srq->list.next, struct fake_wqe, link);
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
    struct fake_srq *srq = fake_srq_of(ibv);
    struct fake_wqe *wqe;
    int err;

    fake_lock();
    err = fake_fails(FAKE_DESTROY_SRQ) ? errno : 0;
    if (!err && srq->qps)
        err = EBUSY;
    if (err == EBUSY)
        fake_complain("a shared receive queue is destroyed with %u queue pairs", srq->qps);
    if (!err) {
        while ((wqe = first_of(srq))) {
            fake_list_remove(&wqe->link);
            free(wqe);
        }
        fake_events_drop(&fake_context_of(ibv->context)->async, ibv);
        fake_container_of(ibv->pd, struct fake_pd, ibv)->children--;
        fake_context_of(ibv->context)->children--;
        fake_verbs.live.srqs--;
        free(srq);
    }
    fake_unlock();
    return err;
}

/* Raises the event once, when fewer than the limit are left. */
static void check_limit(struct fake_srq *srq)
{
    if (srq->attr.srq_limit == 0 || srq->count >= srq->attr.srq_limit)
        return;
    srq->attr.srq_limit = 0;
    fake_verbs.srq_limits++;
    fake_async(fake_context_of(srq->ibv.context), IBV_EVENT_SRQ_LIMIT_REACHED, &srq->ibv, 0);
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
    struct fake_srq *srq = fake_srq_of(ibv);
    int err;

    fake_lock();
    err = fake_fails(FAKE_MODIFY_SRQ) ? errno : 0;
    if (!err && (mask != IBV_SRQ_LIMIT || attr->srq_limit > srq->attr.max_wr))
        err = EINVAL;
    if (!err) {
        srq->attr.srq_limit = attr->srq_limit;
        check_limit(srq);
    }
    fake_unlock();
    return err;
}

static int check(const struct fake_srq *srq, const struct ibv_recv_wr *wr)
{
    if (srq->count >= srq->attr.max_wr)
        return ENOMEM;
    /* libsiw takes no receive without elements. */
    if (fake_device_of(srq->ibv.context)->transport_type == IBV_TRANSPORT_IWARP)
        return wr->num_sge < 1 || (uint32_t)wr->num_sge > srq->attr.max_sge ? EINVAL : 0;
    return wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->attr.max_sge ||
                   (wr->num_sge > 0 && wr->sg_list[wr->num_sge - 1].length == 0)
               ? EINVAL
               : 0;
}

int fake_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct fake_srq *srq = fake_srq_of(ibv);
    int err = 0;

    fake_lock();
    if (fake_fails(FAKE_POST_SRQ_RECV))
        err = errno;
    while (wr && !err) {
        err = check(srq, wr);
        if (err)
            break;
        fake_list_add(&srq->list, &fake_wqe_of_receive(wr)->link);
        srq->count++;
        wr = wr->next;
    }
    if (err)
        *bad = wr;
    fake_unlock();
    return err;
}

void fake_srq_take(struct fake_qp *qp)
{
    struct fake_srq *srq = qp->init.srq ? fake_srq_of(qp->init.srq) : NULL;
    struct fake_work *work = &qp->work[FAKE_RECEIVE];
    struct fake_wqe *wqe;

    if (!srq || fake_first(qp, FAKE_RECEIVE) || !(wqe = first_of(srq)))
        return;
    fake_list_remove(&wqe->link);
    srq->count--;
    fake_list_add(&work->list, &wqe->link);
    work->count++;
    work->used++;
    work->posted++;
    check_limit(srq);
}
