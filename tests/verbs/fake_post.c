/* SPDX-License-Identifier: MIT */
/* Posting, with every reason that a device has to refuse a request. */
#include "fake_device.h"

static bool is_read(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static uint64_t length_of(const struct ibv_sge *sges, int count)
{
    uint64_t length = 0;

    for (int i = 0; i < count; i++)
        length += sges[i].length;
    return length;
}

/* Some devices take the length 0 for 2^31. */
static bool has_empty_element(const struct ibv_sge *sges, int count)
{
    return count > 0 && sges[count - 1].length == 0;
}

static int check_atomic(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    if (fake_device_of(qp->ibv.context)->atomic_cap == IBV_ATOMIC_NONE)
        return EINVAL;
    return wr->num_sge == 1 && wr->sg_list[0].length == 8 ? 0 : EINVAL;
}

static bool is_iwarp(const struct fake_qp *qp)
{
    return fake_device_of(qp->ibv.context)->transport_type == IBV_TRANSPORT_IWARP;
}

/* As siw: no immediates, and a read has one element, even of no bytes. */
static int check_iwarp(const struct ibv_send_wr *wr)
{
    if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        return EINVAL;
    return wr->opcode == IBV_WR_RDMA_READ && wr->num_sge != 1 ? EINVAL : 0;
}

static int check_send(const struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    const struct ibv_qp_cap *cap = &qp->init.cap;

    if (is_iwarp(qp) && check_iwarp(wr))
        return EINVAL;
    if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT || qp->state == IBV_QPS_RTR)
        return EINVAL;
    if (qp->work[FAKE_SEND].used >= cap->max_send_wr)
        return ENOMEM;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > cap->max_send_sge ||
        wr->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD ||
        (!is_iwarp(qp) && has_empty_element(wr->sg_list, wr->num_sge)))
        return EINVAL;
    if (wr->opcode == IBV_WR_RDMA_READ && wr->num_sge > fake_device_of(qp->ibv.context)->max_sge_rd)
        return EINVAL;
    if (wr->send_flags & IBV_SEND_INLINE &&
        (is_read(wr->opcode) || length_of(wr->sg_list, wr->num_sge) > cap->max_inline_data))
        return EINVAL;
    if (wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP)
        return check_atomic(qp, wr);
    return 0;
}

static int check_recv(const struct fake_qp *qp, const struct ibv_recv_wr *wr)
{
    if (qp->state == IBV_QPS_RESET || qp->init.srq)
        return EINVAL;
    if (qp->work[FAKE_RECEIVE].used >= qp->init.cap.max_recv_wr)
        return ENOMEM;
    /* libsiw takes no receive without elements. */
    if (is_iwarp(qp))
        return wr->num_sge < 1 || (uint32_t)wr->num_sge > qp->init.cap.max_recv_sge ? EINVAL : 0;
    return wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_recv_sge ||
                   has_empty_element(wr->sg_list, wr->num_sge)
               ? EINVAL
               : 0;
}

/* A request with room for its list and its inline data behind. */
static struct fake_wqe *make(const struct ibv_sge *sges, int count, uint64_t inline_bytes)
{
    size_t list = (size_t)count * sizeof(*sges);
    struct fake_wqe *wqe = fake_alloc(sizeof(*wqe) + list + inline_bytes);

    wqe->sges = (struct ibv_sge *)(wqe + 1);
    if (count)
        memcpy(wqe->sges, sges, list);
    wqe->wr.num_sge = count;
    wqe->inline_bytes = (uint32_t)inline_bytes;
    return wqe;
}

static void append(struct fake_qp *qp, enum fake_queue queue, struct fake_wqe *wqe)
{
    struct fake_work *work = &qp->work[queue];

    fake_list_add(&work->list, &wqe->link);
    work->count++;
    work->used++;
    work->posted++;
    /*
     * The peer notices the lost packet before it and reports that: no timer is needed to
     * retransmit.
     */
    if (queue == FAKE_SEND && qp->wake_at == INT64_MAX)
        qp->wake_at = 0;
    fake_wire_wake(qp);
}

static void take_send(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    bool within = wr->send_flags & IBV_SEND_INLINE;
    uint64_t bytes = within ? length_of(wr->sg_list, wr->num_sge) : 0;
    struct fake_wqe *wqe = make(wr->sg_list, wr->num_sge, bytes);
    uint8_t *to;

    /* Fields that an opcode lacks may hold anything, and must not be copied. */
    wqe->wr.wr_id = wr->wr_id;
    wqe->wr.opcode = wr->opcode;
    wqe->wr.send_flags = wr->send_flags | (qp->init.sq_sig_all ? IBV_SEND_SIGNALED : 0);
    wqe->wr.imm_data = wr->imm_data;
    if (wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP)
        wqe->wr.wr.atomic = wr->wr.atomic;
    else
        wqe->wr.wr.rdma = wr->wr.rdma;
    if (within) {
        to = wqe->data = (uint8_t *)(wqe->sges + wr->num_sge);
        for (int i = 0; i < wr->num_sge; i++) {
            if (wr->sg_list[i].length)
                memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
            to += wr->sg_list[i].length;
        }
        qp->inline_data += bytes;
    }
    if (wqe->wr.send_flags & IBV_SEND_SIGNALED)
        qp->signaled++;
    append(qp, FAKE_SEND, wqe);
}

struct fake_wqe *fake_wqe_of_receive(const struct ibv_recv_wr *wr)
{
    struct fake_wqe *wqe = make(wr->sg_list, wr->num_sge, 0);

    wqe->wr.wr_id = wr->wr_id;
    return wqe;
}

static void take_recv(struct fake_qp *qp, const struct ibv_recv_wr *wr)
{
    append(qp, FAKE_RECEIVE, fake_wqe_of_receive(wr));
}

/*
 * A refusal that a test ordered fails the k-th request and those behind it. With k of 0 the
 * doorbell fails, and *bad is not set. With refused_runs, the device executes the refused requests
 * all the same.
 */
int fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct fake_qp *qp = fake_qp_of(ibv);
    uint32_t at = UINT32_MAX, i = 1;
    int err = 0, ordered = 0;

    fake_lock();
    qp->doorbells++;
    if (fake_fails(FAKE_POST_SEND)) {
        *bad = wr;
        err = errno;
        wr = NULL;
    } else if (fake_refuses(ibv->qp_num, FAKE_SEND, &at)) {
        ordered = errno;
    }
    for (; wr && !err; wr = wr->next, i++) {
        if (ordered && i >= at && !fake_verbs.refused_runs)
            err = ordered;
        else
            err = check_send(qp, wr);
        if (!err)
            take_send(qp, wr);
        if ((err || i == at) && at != 0 && !(ordered && i > at))
            *bad = wr;
    }
    fake_wire_hasten(qp);
    fake_unlock();
    return err ? err : ordered;
}

int fake_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct fake_qp *qp = fake_qp_of(ibv);
    uint32_t at = UINT32_MAX, i = 1;
    int err = 0, ordered = 0;

    fake_lock();
    if (fake_fails(FAKE_POST_RECV)) {
        *bad = wr;
        err = errno;
        wr = NULL;
    } else if (fake_refuses(ibv->qp_num, FAKE_RECEIVE, &at)) {
        ordered = errno;
    }
    for (; wr && !err; wr = wr->next, i++) {
        if (ordered && i >= at && !fake_verbs.refused_runs)
            err = ordered;
        else
            err = check_recv(qp, wr);
        if (!err)
            take_recv(qp, wr);
        if ((err || i == at) && at != 0 && !(ordered && i > at))
            *bad = wr;
    }
    fake_wire_hasten(qp);
    fake_unlock();
    return err ? err : ordered;
}
