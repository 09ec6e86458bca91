/* SPDX-License-Identifier: MIT */
/* Queue pairs: making, moving from state to state, and destroying. */
#include "fake_device.h"

#define BUCKETS 1024
#define FIRST_QPN 0x11

struct fake_link fake_qps = {&fake_qps, &fake_qps};
static struct fake_qp *buckets[BUCKETS];
static uint32_t last_qpn = FIRST_QPN;

struct fake_qp *fake_qp_find(uint32_t qpn)
{
    struct fake_qp *qp = buckets[qpn % BUCKETS];

    while (qp && qp->ibv.qp_num != qpn)
        qp = qp->next;
    return qp;
}

struct ibv_qp *fake_verbs_find(uint32_t qpn)
{
    struct fake_qp *qp;

    fake_lock();
    qp = fake_qp_find(qpn);
    fake_unlock();
    return qp ? &qp->ibv : NULL;
}

static int check_init(const struct fake_device *device, const struct ibv_qp_init_attr *init)
{
    const struct ibv_qp_cap *cap = &init->cap;

    if (init->qp_type != IBV_QPT_RC || !init->send_cq || !init->recv_cq)
        return EINVAL;
    if (cap->max_send_wr > (uint32_t)device->max_qp_wr ||
        cap->max_recv_wr > (uint32_t)device->max_qp_wr ||
        cap->max_send_sge > (uint32_t)device->max_sge ||
        cap->max_recv_sge > (uint32_t)device->max_sge || cap->max_inline_data > device->max_inline)
        return EINVAL;
    return fake_verbs.live.qps >= (uint32_t)device->max_qp ? ENOMEM : 0;
}

static struct fake_qp *make(struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
    struct fake_qp *qp = fake_alloc(sizeof(*qp));
    struct fake_qp **bucket;

    qp->ibv.context = pd->context;
    qp->ibv.qp_context = init->qp_context;
    qp->ibv.pd = pd;
    qp->ibv.srq = init->srq;
    qp->ibv.send_cq = init->send_cq;
    qp->ibv.recv_cq = init->recv_cq;
    qp->ibv.qp_num = ++last_qpn;
    qp->ibv.state = IBV_QPS_RESET;
    qp->ibv.qp_type = init->qp_type;
    qp->init = *init;
    qp->holding = fake_holds_all();
    for (int queue = 0; queue < 2; queue++) {
        fake_list_init(&qp->work[queue].list);
        fake_list_init(&qp->held[queue]);
    }
    bucket = &buckets[qp->ibv.qp_num % BUCKETS];
    qp->next = *bucket;
    *bucket = qp;
    fake_list_add(&fake_qps, &qp->link);
    return qp;
}

/* Grants what was asked for and writes it back; some devices grant more inline data. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct fake_qp *qp = NULL;

    fake_lock();
    if (!fake_fails(FAKE_CREATE_QP)) {
        errno = check_init(fake_device_of(pd->context), init);
        if (!errno) {
            qp = make(pd, init);
            fake_cq_of(init->send_cq)->qps++;
            fake_cq_of(init->recv_cq)->qps++;
            if (init->srq)
                fake_srq_of(init->srq)->qps++;
            fake_container_of(pd, struct fake_pd, ibv)->children++;
            fake_context_of(pd->context)->children++;
            fake_verbs.live.qps++;
        }
    }
    fake_unlock();
    return qp ? &qp->ibv : NULL;
}

static void forget(struct fake_qp *qp)
{
    struct fake_qp **link = &buckets[qp->ibv.qp_num % BUCKETS];

    while (*link != qp)
        link = &(*link)->next;
    *link = qp->next;
    fake_list_remove(&qp->link);
    fake_wire_forget(qp);
    fake_cq_forget(fake_cq_of(qp->ibv.send_cq), qp);
    if (qp->ibv.recv_cq != qp->ibv.send_cq)
        fake_cq_forget(fake_cq_of(qp->ibv.recv_cq), qp);
    fake_events_drop(&fake_context_of(qp->ibv.context)->async, &qp->ibv);
    fake_cq_of(qp->ibv.send_cq)->qps--;
    fake_cq_of(qp->ibv.recv_cq)->qps--;
    if (qp->init.srq)
        fake_srq_of(qp->init.srq)->qps--;
    fake_container_of(qp->ibv.pd, struct fake_pd, ibv)->children--;
    fake_context_of(qp->ibv.context)->children--;
    fake_verbs.live.qps--;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
    struct fake_qp *qp = fake_qp_of(ibv);
    int err;

    fake_lock();
    err = fake_fails(FAKE_DESTROY_QP) ? errno : 0;
    if (!err) {
        if (qp->unacked)
            fake_complain("queue pair %u is destroyed with %u events read and not acknowledged: "
                          "that waits for ever",
                          ibv->qp_num, qp->unacked);
        forget(qp);
        free(qp);
    }
    fake_unlock();
    return err;
}

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                                      \
    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS                                                                             \
    (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
     IBV_QP_MAX_QP_RD_ATOMIC)

/* A change of state, its required attributes, and the optional ones. */
struct change {
    enum ibv_qp_state from, to;
    int needs, takes;
};

static const struct change changes[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT},
    {IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_ALT_PATH},
    {IBV_QPS_RTR, IBV_QPS_RTS, TO_RTS,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
         IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
         IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE},
};

static const char *check_mask(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    if (to == IBV_QPS_ERR || to == IBV_QPS_RESET)
        return mask == IBV_QP_STATE ? NULL : "more than the state is given";
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        const struct change *change = &changes[i];

        if (change->from != from || change->to != to)
            continue;
        if ((mask & change->needs) != change->needs)
            return "an attribute is missing";
        return mask & ~(change->needs | change->takes) ? "an attribute does not belong there"
                                                       : NULL;
    }
    return "there is no such change of state";
}

static const char *check_address(struct fake_qp *qp, const struct ibv_ah_attr *ah)
{
    const struct fake_port *port = fake_port_of(qp->ibv.context, qp->attr.port_num);

    if (ah->port_num != qp->attr.port_num)
        return "the path is from another port";
    if (port->link_layer == IBV_LINK_LAYER_ETHERNET && !ah->is_global)
        return "a RoCE path without GRH";
    if (ah->src_path_bits >> port->lmc)
        return "a LID that the port has not";
    if (!ah->is_global)
        return ah->dlid ? NULL : "a path without LID and GRH";
    if (ah->grh.sgid_index >= port->gids || !port->gid[ah->grh.sgid_index].type)
        return "the GID table has no such entry";
    return ah->grh.hop_limit ? NULL : "a hop limit of 0";
}

const char *fake_qp_check(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    const struct fake_device *device = fake_device_of(qp->ibv.context);
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->state;
    const struct fake_port *port =
        fake_port_of(qp->ibv.context, mask & IBV_QP_PORT ? attr->port_num : qp->attr.port_num);
    const char *why = check_mask(qp->state, to, mask);

    if (why)
        return why;
    if (device->transport_type == IBV_TRANSPORT_IWARP && !fake_verbs.rdmacm_moves &&
        (to == IBV_QPS_RTR || to == IBV_QPS_RTS))
        return "only rdma_cm connects a queue pair of iWARP";
    if (mask & IBV_QP_PORT && !port)
        return "there is no such port";
    if (mask & IBV_QP_ACCESS_FLAGS && attr->qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC &&
        device->atomic_cap == IBV_ATOMIC_NONE)
        return "the device has no atomic operations";
    if (mask & IBV_QP_PKEY_INDEX && attr->pkey_index >= port->pkeys)
        return "the partition key table has no such entry";
    if (mask & IBV_QP_PATH_MTU &&
        (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > port->active_mtu))
        return "an MTU that the port has not";
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > device->max_qp_rd_atom)
        return "max_dest_rd_atomic is above the device's";
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > device->max_qp_init_rd_atom)
        return "max_rd_atomic is above the device's";
    if ((mask & IBV_QP_SQ_PSN && attr->sq_psn > 0xffffff) ||
        (mask & IBV_QP_RQ_PSN && attr->rq_psn > 0xffffff) ||
        (mask & IBV_QP_DEST_QPN && attr->dest_qp_num > 0xffffff))
        return "a number of more than 24 bits";
    if ((mask & IBV_QP_TIMEOUT && attr->timeout > 31) ||
        (mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) ||
        (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7) ||
        (mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31))
        return "a timer or count is out of range";
    return mask & IBV_QP_AV ? check_address(qp, &attr->ah_attr) : NULL;
}

#define TAKE(bit, field)                  \
    do {                                  \
        if (mask & (bit))                 \
            qp->attr.field = attr->field; \
    } while (0)

static void apply(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    TAKE(IBV_QP_PKEY_INDEX, pkey_index);
    TAKE(IBV_QP_PORT, port_num);
    TAKE(IBV_QP_AV, ah_attr);
    TAKE(IBV_QP_PATH_MTU, path_mtu);
    TAKE(IBV_QP_DEST_QPN, dest_qp_num);
    TAKE(IBV_QP_RQ_PSN, rq_psn);
    TAKE(IBV_QP_SQ_PSN, sq_psn);
    TAKE(IBV_QP_TIMEOUT, timeout);
    TAKE(IBV_QP_RETRY_CNT, retry_cnt);
    TAKE(IBV_QP_RNR_RETRY, rnr_retry);
    TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    if (mask & IBV_QP_RQ_PSN)
        qp->receive_psn = attr->rq_psn;
    if (mask & IBV_QP_SQ_PSN)
        qp->send_psn = attr->sq_psn;
    if (qp->modifies < FAKE_MODIFIES) {
        qp->changes[qp->modifies] = *attr;
        qp->masks[qp->modifies] = mask;
    }
    qp->modifies++;
}

static void move(struct fake_qp *qp, enum ibv_qp_state state)
{
    qp->attr.qp_state = state;
    qp->ibv.state = state;
    if (state == IBV_QPS_ERR) {
        fake_wire_error(qp);
        return;
    }
    qp->state = state;
    if (state == IBV_QPS_RESET) {
        fake_wire_forget(qp);
        fake_cq_forget(fake_cq_of(qp->ibv.send_cq), qp);
        if (qp->ibv.recv_cq != qp->ibv.send_cq)
            fake_cq_forget(fake_cq_of(qp->ibv.recv_cq), qp);
    }
    fake_wire_wake(qp);
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    struct fake_qp *qp = fake_qp_of(ibv);
    const char *why = NULL;
    int err = 0;

    fake_lock();
    if (fake_fails(FAKE_MODIFY_QP)) {
        err = errno;
    } else {
        why = fake_qp_check(qp, attr, mask);
        if (why) {
            strncpy(fake_verbs.complaint, why, sizeof(fake_verbs.complaint) - 1);
            err = EINVAL;
        } else {
            apply(qp, attr, mask);
            if (mask & IBV_QP_STATE)
                move(qp, attr->qp_state);
        }
    }
    fake_unlock();
    return err;
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    struct fake_qp *qp = fake_qp_of(ibv);
    int err;

    fake_lock();
    (void)mask; /* unrequested attributes may be filled in as well */
    err = fake_fails(FAKE_QUERY_QP) ? errno : 0;
    if (!err) {
        *attr = qp->attr;
        attr->qp_state = attr->cur_qp_state = qp->state;
        attr->cap = qp->init.cap;
        *init = qp->init;
    }
    fake_unlock();
    return err;
}
