/* SPDX-License-Identifier: MIT */
/*
 * Connecting, and queries that combine the answers of all queue pairs. Guarantee: both sides use
 * the smaller number of queue pairs; a peer without support for further ones connects to the first.
 */
#include "config.h"

#include <string.h>

#include "transport/stripes/inside.h"

static void read_endpoint(const struct stripes_qp *qp, uint32_t index,
                          struct slu_endpoint *endpoint)
{
    memset(endpoint, 0, sizeof *endpoint);
    qp->inner->qp_endpoint(qp->qps[index], endpoint);
}

bool slu_stripes_agree(const struct stripes_qp *qp)
{
    struct slu_endpoint first, other;

    read_endpoint(qp, 0, &first);
    for (uint32_t i = 1; i < qp->count; i++) {
        read_endpoint(qp, i, &other);
        other.qpn = first.qpn;
        other.psn = first.psn;
        if (memcmp(&first, &other, sizeof first) != 0)
            return false;
    }
    return true;
}

void slu_stripes_qp_endpoint(const struct slu_qp *base, struct slu_endpoint *endpoint)
{
    const struct stripes_qp *qp = stripes_const_qp_of(base);
    struct slu_endpoint other;

    qp->inner->qp_endpoint(qp->qps[0], endpoint);
    endpoint->further_count = qp->count - 1;
    for (uint32_t i = 1; i < qp->count; i++) {
        read_endpoint(qp, i, &other);
        endpoint->further[i - 1].qpn = other.qpn;
        endpoint->further[i - 1].psn = other.psn;
    }
}

/* Destroys queue pairs for which the peer has no counterpart. */
static void leave_out(struct stripes_qp *qp, uint32_t count)
{
    while (qp->count > count) {
        qp->count--;
        qp->inner->qp_destroy(qp->qps[qp->count]);
        qp->qps[qp->count] = NULL;
    }
}

/*
 * Posts the receive of a further queue pair. No message uses it; it completes when the queue pair
 * fails, as the program's receives do on the first one. So the loss of the peer is detected even if
 * the queue pair is idle.
 */
static int watch(struct stripes_qp *qp, uint32_t index)
{
    struct slu_receive_wr wr = {.id = stripes_id(qp, STRIPES_WATCH, index, 0)};
    struct slu_receive_wr *bad = NULL;

    qp->watched |= UINT32_C(1) << index;
    return qp->inner->post_receive(qp->qps[index], &wr, &bad);
}

static int connect_one(struct stripes_qp *qp, uint32_t index, const struct slu_endpoint *remote)
{
    struct slu_endpoint one = *remote;
    int error;

    one.further_count = 0;
    if (index > 0) {
        one.qpn = remote->further[index - 1].qpn;
        one.psn = remote->further[index - 1].psn;
    }
    error = qp->inner->qp_connect(qp->qps[index], &one);
    return error < 0 || index == 0 ? error : watch(qp, index);
}

/* Connects the first queue pair last, so that a peer that gets an answer from it can use all. */
int slu_stripes_qp_connect(struct slu_qp *base, const struct slu_endpoint *remote)
{
    struct stripes_qp *qp = stripes_qp_of(base);
    int error = 0;

    /* A completion of a pool names the peer of its queue pair. */
    for (uint32_t i = 0; i < qp->count; i++)
        qp->qps[i]->peer = base->peer;
    leave_out(qp, (uint32_t)slu_least(qp->count, 1 + remote->further_count));
    for (uint32_t i = qp->count; i > 0 && error == 0; i--)
        error = connect_one(qp, i - 1, remote);
    qp->connected = error == 0;
    return error;
}

int slu_stripes_qp_state(const struct slu_qp *base)
{
    const struct stripes_qp *qp = stripes_const_qp_of(base);

    if (qp->failed)
        return SLU_QP_ERROR;
    for (uint32_t i = 1; i < qp->count; i++)
        if (qp->inner->qp_state(qp->qps[i]) == SLU_QP_ERROR)
            return SLU_QP_ERROR;
    return qp->inner->qp_state(qp->qps[0]);
}

void slu_stripes_qp_query(const struct slu_qp *base, struct sluice_channel_info *info)
{
    const struct stripes_qp *qp = stripes_const_qp_of(base);

    if (qp->inner->qp_query != NULL)
        qp->inner->qp_query(qp->qps[0], info);
    info->queue_pairs = qp->count;
}

/* Probes all queue pairs; the probe completes when all have answered. */
int slu_stripes_qp_probe(struct slu_qp *base, uint64_t id)
{
    struct stripes_qp *qp = stripes_qp_of(base);
    struct stripes_probe *probe = &qp->probe;
    int error = 0;

    *probe = (struct stripes_probe){.id = id, .number = probe->number + 1};
    if (qp->stopped) {
        probe->flushed = true;
        slu_stripes_flush(qp);
        return 0;
    }
    for (uint32_t i = 0; i < qp->count && error == 0; i++) {
        probe->out |= UINT32_C(1) << i;
        error = qp->inner->qp_probe(qp->qps[i], stripes_id(qp, STRIPES_PROBE, i, probe->number));
    }
    return error;
}

uint32_t slu_stripes_qp_moved(struct slu_qp *base)
{
    struct stripes_qp *qp = stripes_qp_of(base);
    uint32_t moved = 0;

    for (uint32_t i = 0; i < qp->count && qp->inner->qp_moved != NULL; i++)
        moved |= qp->inner->qp_moved(qp->qps[i]);
    return moved;
}

/* Combines the states. Sends and receives are those of the first queue pair, which carries all. */
void slu_stripes_qp_stand(const struct slu_qp *base, struct slu_stand *stand)
{
    const struct stripes_qp *qp = stripes_const_qp_of(base);

    if (qp->inner->qp_stand == NULL)
        return;
    qp->inner->qp_stand(qp->qps[0], stand);
    for (uint32_t i = 1; i < qp->count; i++) {
        struct slu_stand other = {.heard = -1};

        qp->inner->qp_stand(qp->qps[i], &other);
        stand->connected &= other.connected;
        if (stand->waits == NULL)
            stand->waits = other.waits;
        if (other.heard >= 0 && (stand->heard < 0 || other.heard < stand->heard))
            stand->heard = other.heard;
    }
}

const char *slu_stripes_qp_loss(const struct slu_qp *base, bool *closed)
{
    const struct stripes_qp *qp = stripes_const_qp_of(base);
    const char *loss = NULL;

    if (qp->inner->qp_loss == NULL)
        return NULL;
    if (qp->culprit < qp->count)
        loss = qp->inner->qp_loss(qp->qps[qp->culprit], closed);
    for (uint32_t i = 0; i < qp->count && loss == NULL; i++)
        loss = qp->inner->qp_loss(qp->qps[i], closed);
    return loss;
}

void slu_stripes_qp_farewell(struct slu_qp *base, enum slu_farewell why)
{
    const struct stripes_qp *qp = stripes_qp_of(base);

    /* All messages go over the first one. */
    qp->qps[0]->taken = base->taken;
    for (uint32_t i = 0; i < qp->count && qp->inner->qp_farewell != NULL; i++)
        qp->inner->qp_farewell(qp->qps[i], why);
}
