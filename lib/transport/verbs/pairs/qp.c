/* SPDX-License-Identifier: MIT */
/*
 * Creates, queries and destroys queue pairs; connect.c has the handshake. Guarantee: the queue pair
 * does what its endpoint says.
 */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/device/device.h"
#include "transport/verbs/events/events.h"
#include "transport/verbs/pairs/pairs.h"
#include "transport/verbs/queues/queues.h"
#include "transport/verbs/words/words.h"

/* Give up if the port changes this often while one queue pair is created. */
#define PATH_TRIES 8

static int fail_create(int err, const char *device, const struct slu_qp_attr *attr)
{
    return slu_fail(err,
                    "cannot create a queue pair on %s with send_depth %u, receive_depth %u, "
                    "max_sge %u, max_inline %u: %s",
                    device, attr->send_depth, attr->receive_depth, attr->max_sge, attr->max_inline,
                    strerror(err));
}

static int create_ibv(struct slu_verbs_qp *qp, struct slu_verbs_pd *pd, struct slu_verbs_cq *cq)
{
    const struct slu_qp_attr *attr = &qp->attr;
    struct ibv_qp_init_attr init = {
        .send_cq = cq->parts[qp->part].ibv,
        .recv_cq = cq->parts[qp->part].ibv,
        .srq = attr->pool ? slu_verbs_pool_of(attr->pool)->ibv : NULL,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 0,
        .cap = {.max_send_wr = attr->send_depth + 1, /* for one of our own */
                .max_recv_wr = attr->receive_depth,
                .max_send_sge = attr->max_sge,
                .max_recv_sge = attr->pool ? 0 : attr->max_sge,
                .max_inline_data = attr->max_inline},
    };

    qp->ibv = ibv_create_qp(pd->ibv, &init);
    if (!qp->ibv)
        return fail_create(slu_verbs_errno(-1), pd->base.context->device, attr);
    return 0;
}

static int move_to_init(struct slu_verbs_qp *qp, const struct slu_verbs_context *context)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = qp->pkey_index,
        .port_num = context->port,
        .qp_access_flags = (unsigned int)slu_verbs_access(qp->attr.access),
    };
    int err = ibv_modify_qp(qp->ibv, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    if (!err)
        return 0;
    err = slu_verbs_errno(err);
    return slu_fail(err, "cannot prepare a queue pair on port %u of %s: %s", context->port,
                    context->base.device, strerror(err));
}

/*
 * Chooses the packet sequence number: random, so that an attacker cannot guess it to inject
 * packets, and late packets of an earlier connection do not match.
 */
static int choose_psn(struct slu_verbs_qp *qp)
{
    int err;

    if (qp->attr.flags & SLUICE_CHANNEL_PSN) {
        qp->psn = qp->attr.psn;
        return 0;
    }
    err = slu_random(&qp->psn, sizeof qp->psn);
    if (err)
        return slu_fail(-err, "no random number for a queue pair: %s", strerror(-err));
    qp->psn &= 0xffffff;
    return 0;
}

static void destroy_ibv(struct slu_verbs_qp *qp)
{
    uint32_t qpn = qp->ibv->qp_num;
    int err = ibv_destroy_qp(qp->ibv);

    if (err)
        slu_log(SLUICE_LOG_ERROR, "destroying queue pair %u of %s failed: %s", qpn,
                qp->base.pd->context->device, strerror(slu_verbs_errno(err)));
}

/* Creates the device's queue pair, for the current path of the port. */
static int make(struct slu_verbs_qp *qp, struct slu_verbs_context *context, struct slu_verbs_cq *cq)
{
    int err = slu_verbs_path_of(context, &qp->path);

    if (!err)
        err = slu_verbs_path_choose(qp);
    if (!err)
        err = choose_psn(qp);
    if (!err)
        err = slu_verbs_cq_reserve(cq, slu_verbs_qp_entries(qp), &qp->part);
    if (err)
        return err;
    err = create_ibv(qp, slu_verbs_pd_of(qp->base.pd), cq);
    if (err)
        goto release_cq;
    err = move_to_init(qp, context);
    if (err)
        goto destroy_ibv;
    atomic_store(&qp->uses_gid, qp->path.has_gid);
    return 0;

destroy_ibv:
    destroy_ibv(qp);
release_cq:
    slu_verbs_cq_release(cq, slu_verbs_qp_entries(qp), qp->part);
    return err;
}

/*
 * Creates the queue pair and adds it to those that get events. If the port changed in between, the
 * event was missed, so starts again.
 */
static int make_known(struct slu_verbs_qp *qp, struct slu_verbs_context *context,
                      struct slu_verbs_cq *cq)
{
    for (int i = 0; i < PATH_TRIES; i++) {
        int err = make(qp, context, cq);

        if (err)
            return err;
        if (slu_verbs_events_add_qp(context, qp))
            return 0;
        destroy_ibv(qp);
        slu_verbs_cq_release(cq, slu_verbs_qp_entries(qp), qp->part);
    }
    return slu_fail(EADDRNOTAVAIL, "port %u of %s has changed %d times while a queue pair was made",
                    context->port, context->base.device, PATH_TRIES);
}

int slu_verbs_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                        struct slu_qp **qp)
{
    struct slu_verbs_context *context = slu_verbs_context_of(pd->context);
    struct slu_verbs_qp *made;
    int err = slu_verbs_events_prepare(context, slu_verbs_cq_of(cq));

    if (err)
        return err;
    made = calloc(1, sizeof *made);
    if (!made)
        return slu_fail(ENOMEM, "no memory for a queue pair");
    made->base = (struct slu_qp){.pd = pd, .cq = cq};
    made->attr = *attr;
    made->state = SLU_QP_PREPARED;
    err = slu_verbs_hint_open(made);
    if (!err)
        err = make_known(made, context, slu_verbs_cq_of(cq));
    if (err) {
        slu_verbs_hint_close(made);
        free(made);
        return err;
    }
    slu_verbs_cq_add(slu_verbs_cq_of(cq), made);
    *qp = &made->base;
    return 0;
}

static void offer_gids(const struct slu_verbs_path *path, struct slu_endpoint *endpoint)
{
    endpoint->verbs.gids = (uint8_t)(1 + path->other_gids);
    endpoint->verbs.gid_prefix = path->gid_prefix;
    for (uint32_t i = 0; i < path->other_gids; i++) {
        memcpy(endpoint->verbs.others[i].gid, path->others[i].gid.gid.raw,
               sizeof endpoint->verbs.others[i].gid);
        endpoint->verbs.others[i].prefix = path->others[i].prefix;
    }
}

void slu_verbs_qp_endpoint(const struct slu_qp *base, struct slu_endpoint *endpoint)
{
    const struct slu_verbs_qp *qp = slu_verbs_const_qp_of(base);
    const struct slu_verbs_path *path = &qp->path;

    endpoint->qpn = qp->ibv->qp_num;
    endpoint->psn = qp->psn;
    endpoint->mtu = slu_verbs_mtu_bytes(qp->mtu);
    endpoint->initiator_depth = qp->attr.read_depth;
    endpoint->responder_depth = qp->attr.read_depth;
    endpoint->max_message = qp->attr.max_message;
    memset(&endpoint->verbs, 0, sizeof endpoint->verbs);
    endpoint->verbs.lid = path->lid | qp->attr.path_bits;
    endpoint->verbs.link_layer = path->link_layer;
    endpoint->verbs.port = slu_verbs_context_of(base->pd->context)->port;
    endpoint->verbs.pkey = qp->pkey;
    endpoint->verbs.global = slu_verbs_wants_grh(qp);
    if (path->has_gid) {
        endpoint->verbs.gid_type = path->gid.gid_type;
        memcpy(endpoint->verbs.gid, path->gid.gid.raw, sizeof endpoint->verbs.gid);
        if (path->link_layer == IBV_LINK_LAYER_ETHERNET)
            offer_gids(path, endpoint);
    }
    slu_verbs_hint_endpoint(qp, endpoint);
}

/* Also reports a peer that has closed, to a side that has nothing posted. */
int slu_verbs_qp_state(const struct slu_qp *base)
{
    const struct slu_verbs_qp *qp = slu_verbs_const_qp_of(base);

    return qp->state == SLU_QP_CONNECTED && slu_verbs_has_left(qp) ? (int)SLU_QP_ERROR
                                                                   : (int)qp->state;
}

/* Writes "RoCE v2 192.0.2.1", "LID 7" or "LID 7, GID fe80::1". */
static void describe_address(char *text, size_t size, bool infiniband, uint32_t lid,
                             const uint8_t *gid, uint32_t type)
{
    char address[SLU_VERBS_ADDRESS_CHARS] = "";

    if (gid)
        slu_verbs_gid_text(gid, type, address);
    if (infiniband)
        snprintf(text, size, "LID %u%s%.48s", lid, gid ? ", " : "", address);
    else
        snprintf(text, size, "%s", address);
}

/* Fills in the fields that only a connected queue pair has. */
static void query_link(const struct slu_verbs_qp *qp, struct sluice_channel_info *info)
{
    const struct slu_verbs_link *link = &qp->link;
    bool infiniband = qp->path.link_layer == IBV_LINK_LAYER_INFINIBAND;

    info->level = SLUICE_LEVEL_NIC;
    info->read_depth = link->reads;
    info->remote_read_depth = link->remote_reads;
    info->remote_qpn = link->qpn;
    info->remote_psn = link->psn;
    info->path_mtu = link->mtu;
    describe_address(info->remote_address, sizeof info->remote_address, infiniband, link->lid,
                     link->global ? link->gid : NULL, link->gid_type);
    if (!link->global)
        return;
    info->gid_index = (int32_t)qp->path.gid.gid_index;
    info->traffic_class = qp->attr.traffic_class;
    info->flow_label = qp->attr.flow_label;
    info->hop_limit = qp->attr.hop_limit;
}

void slu_verbs_qp_query(const struct slu_qp *base, struct sluice_channel_info *info)
{
    const struct slu_verbs_qp *qp = slu_verbs_const_qp_of(base);
    const struct slu_verbs_path *path = &qp->path;
    bool infiniband = path->link_layer == IBV_LINK_LAYER_INFINIBAND;
    /* If this side can be reached by LID and GID, the one that is used. */
    bool by_gid = qp->link.made ? qp->link.global : path->has_gid;

    info->qpn = qp->ibv->qp_num;
    info->psn = qp->psn;
    info->port = slu_verbs_context_of(base->pd->context)->port;
    info->pkey = qp->pkey;
    info->service_level = qp->attr.service_level;
    info->ack_timeout = qp->attr.ack_timeout;
    info->retry_count = qp->attr.retry_count;
    info->rnr_timer = qp->attr.rnr_timer;
    info->rnr_retry = qp->attr.rnr_retry;
    describe_address(info->address, sizeof info->address, infiniband,
                     path->lid | qp->attr.path_bits, by_gid ? path->gid.gid.raw : NULL,
                     path->gid.gid_type);
    if (qp->link.made)
        query_link(qp, info);
    if (path->iwarp)
        slu_verbs_cm_addresses(qp, info);
}

void slu_verbs_qp_error(struct slu_qp *base)
{
    slu_verbs_farewell_await(slu_verbs_qp_of(base));
    slu_verbs_qp_fail(slu_verbs_qp_of(base));
}

/*
 * Waits until a queue pair in error has taken its last receive of the pool, so that none is lost
 * with it (C10-98 of the specification). Not every device reports that, so all queue pairs of a
 * queue together wait for a bounded time.
 */
static void await_last(struct slu_verbs_qp *qp)
{
    struct slu_verbs_context *context = slu_verbs_context_of(qp->base.pd->context);
    struct slu_verbs_cq *cq = slu_verbs_cq_of(qp->base.cq);
    int64_t begun = slu_now(), now = begun;

    if (!qp->attr.pool || !qp->link.made || context->wrapped || cq->dead ||
        atomic_load(&context->fatal))
        return;
    if (qp->state != SLU_QP_ERROR)
        slu_verbs_qp_fail(qp);
    while (slu_verbs_events_read(context), !atomic_load(&qp->last_taken)) {
        now = slu_now();
        if (now - begun >= cq->last_left) {
            cq->last_left = 0;
            return;
        }
        sched_yield();
    }
}

/*
 * ibv_destroy_qp() ends all access of the device to buffers; completions delivered before are
 * purged after it.
 */
void slu_verbs_qp_destroy(struct slu_qp *base)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base->cq);
    uint32_t qpn = qp->ibv->qp_num;

    await_last(qp);
    slu_verbs_qp_unbind(qp);
    slu_verbs_events_remove_qp(slu_verbs_context_of(base->pd->context), qp);
    slu_verbs_cq_remove(cq, qp);
    destroy_ibv(qp);
    slu_verbs_cq_purge(cq, qpn, base->peer, qp->part);
    slu_verbs_cq_release(cq, slu_verbs_qp_entries(qp), qp->part);
    slu_verbs_hint_close(qp);
    free(qp);
}
