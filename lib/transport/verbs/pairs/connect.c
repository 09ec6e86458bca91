/* SPDX-License-Identifier: MIT */
/*
 * The handshake: moves a queue pair from INIT through RTR to RTS. Guarantee: no field of the peer's
 * endpoint reaches the driver unchecked.
 */
#include "config.h"

#include <string.h>

#include "transport/verbs/device/device.h"
#include "transport/verbs/events/events.h"
#include "transport/verbs/pairs/pairs.h"

#define LID_UNICAST_LAST 0xbfff
#define QPN_MULTICAST 0xffffff

static bool is_zero_gid(const uint8_t gid[16])
{
    static const uint8_t zero[16];

    return memcmp(gid, zero, sizeof zero) == 0;
}

static bool is_mtu(uint32_t bytes)
{
    return bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
}

/* Checks the read depths. With rdma_cm, both sides may have agreed on 0. */
static int check_depths(const struct slu_verbs_qp *qp, const struct slu_endpoint *remote)
{
    if (!qp->agreed && (remote->initiator_depth == 0 || remote->responder_depth == 0))
        return slu_fail(EPROTO, "the endpoint allows no reads");
    return 0;
}

static int check_numbers(const struct slu_endpoint *remote)
{
    /* 0 and 1 belong to subnet management. */
    if (remote->qpn <= 1 || remote->qpn >= QPN_MULTICAST)
        return slu_fail(EPROTO, "the endpoint names queue pair %u: none can have that number",
                        remote->qpn);
    if (remote->psn > 0xffffff)
        return slu_fail(EPROTO, "the endpoint has packet sequence number %u: above 24 bits",
                        remote->psn);
    if (!is_mtu(remote->mtu))
        return slu_fail(EPROTO, "the endpoint names an MTU of %u bytes: not 256 to 4096",
                        remote->mtu);
    if (remote->verbs.lid > 0xffff)
        return slu_fail(EPROTO, "the endpoint has LID %#x: above 16 bits", remote->verbs.lid);
    if (remote->verbs.pkey > 0xffff)
        return slu_fail(EPROTO, "the endpoint has partition key %#x: above 16 bits",
                        remote->verbs.pkey);
    if (remote->verbs.global > 1)
        return slu_fail(EPROTO, "the endpoint has %u where it says if it wants a GRH: not 0 or 1",
                        remote->verbs.global);
    return 0;
}

static int check_ethernet(const struct slu_verbs_path *path, const struct slu_endpoint *remote)
{
    const uint8_t *gid = remote->verbs.gid;
    char ours[SLU_VERBS_ADDRESS_CHARS], theirs[SLU_VERBS_ADDRESS_CHARS];

    if (is_zero_gid(gid) || gid[0] == 0xff)
        return slu_fail(EPROTO, "the endpoint has no unicast address");
    if (remote->verbs.gid_type == path->gid.gid_type &&
        (path->gid.gid_type != IBV_GID_TYPE_ROCE_V2 ||
         slu_verbs_gid_is_ipv4(gid) == slu_verbs_gid_is_ipv4(path->gid.gid.raw)))
        return 0;
    slu_verbs_gid_text(path->gid.gid.raw, path->gid.gid_type, ours);
    slu_verbs_gid_text(gid, remote->verbs.gid_type, theirs);
    return slu_fail(EPROTO, "the endpoint's address, %s, is of another kind than ours, %s", theirs,
                    ours);
}

bool slu_verbs_wants_grh(const struct slu_verbs_qp *qp)
{
    return (qp->path.link_layer == IBV_LINK_LAYER_ETHERNET && !qp->path.iwarp) ||
           qp->path.grh_required || (qp->attr.flags & SLUICE_CHANNEL_GLOBAL);
}

/*
 * Returns whether packets need a GRH: if one side wants it, if a LID is missing, or between
 * subnets. Within a subnet packets are routed by LID.
 */
static bool needs_grh(const struct slu_verbs_qp *qp, const struct slu_endpoint *remote)
{
    const struct slu_verbs_path *path = &qp->path;

    if (slu_verbs_wants_grh(qp) || remote->verbs.global)
        return true;
    if (!path->has_gid || is_zero_gid(remote->verbs.gid))
        return false;
    return !path->lid || !remote->verbs.lid || memcmp(path->gid.gid.raw, remote->verbs.gid, 8) != 0;
}

static int check_infiniband(const struct slu_verbs_qp *qp, const struct slu_endpoint *remote)
{
    bool global = needs_grh(qp, remote);

    if (remote->verbs.lid > LID_UNICAST_LAST)
        return slu_fail(EPROTO, "the endpoint has LID %u: not a unicast one", remote->verbs.lid);
    if (remote->verbs.gid[0] == 0xff)
        return slu_fail(EPROTO, "the endpoint has no unicast address");
    if (global && is_zero_gid(remote->verbs.gid))
        return slu_fail(EPROTO, "the endpoint has no GID, and packets are to be routed by GID");
    if (global && !qp->path.has_gid)
        return slu_fail(EPROTO, "the peer wants packets to be routed by GID, and our port has no "
                                "GID");
    if (!global && (!remote->verbs.lid || !qp->path.lid))
        return slu_fail(EPROTO, "the endpoint can be reached neither by LID nor by GID");
    return 0;
}

/*
 * Checks that both sides are in one partition, in which limited members communicate only with full
 * ones.
 */
static int check_pkey(const struct slu_verbs_qp *qp, const struct slu_endpoint *remote)
{
    uint32_t ours = qp->pkey, theirs = remote->verbs.pkey;

    if (!ours || !theirs)
        return 0;
    if (((ours ^ theirs) & ~SLU_VERBS_PKEY_FULL) != 0)
        return slu_fail(EPROTO, "the endpoint has partition key %#x, we have %#x: they differ",
                        theirs, ours);
    if (!((ours | theirs) & SLU_VERBS_PKEY_FULL))
        return slu_fail(EPROTO,
                        "both sides are limited members of partition %#x, and such cannot "
                        "talk to each other",
                        ours);
    return 0;
}

static int check_remote(const struct slu_verbs_qp *qp, const struct slu_endpoint *remote)
{
    const struct slu_verbs_path *path = &qp->path;
    int err = check_numbers(remote);

    if (!err)
        err = check_depths(qp, remote);
    if (!err && remote->verbs.link_layer != path->link_layer)
        err = slu_fail(EPROTO,
                       "the endpoint is on link layer %u, and we are on %u "
                       "(1 is InfiniBand, 2 Ethernet)",
                       remote->verbs.link_layer, path->link_layer);
    if (!err)
        err = path->link_layer == IBV_LINK_LAYER_ETHERNET ? check_ethernet(path, remote)
                                                          : check_infiniband(qp, remote);
    return err ? err : check_pkey(qp, remote);
}

/* Negotiates the parameters. Both sides compute the same, each from the endpoint of the other. */
static struct slu_verbs_link negotiate(const struct slu_verbs_qp *qp,
                                       const struct slu_endpoint *remote)
{
    struct slu_verbs_link link = {
        .made = true,
        .qpn = remote->qpn,
        .psn = remote->psn,
        .gid_type = remote->verbs.gid_type,
        .lid = (uint16_t)remote->verbs.lid,
        .global = needs_grh(qp, remote),
        .mtu = slu_verbs_min(slu_verbs_mtu_bytes(qp->mtu), remote->mtu),
        .reads = slu_verbs_min(qp->attr.read_depth, remote->responder_depth),
        .remote_reads = slu_verbs_min(qp->attr.read_depth, remote->initiator_depth),
        .access = remote->access,
        .hint_addr = remote->verbs.hint_addr,
        .hint_rkey = remote->verbs.hint_rkey,
        .farewell = remote->verbs.hint_addr != 0 ? remote->verbs.farewell : 0,
    };

    memcpy(link.gid, remote->verbs.gid, sizeof link.gid);
    return link;
}

static struct ibv_ah_attr address_of(const struct slu_verbs_qp *qp, uint8_t port,
                                     const struct slu_verbs_link *link)
{
    struct ibv_ah_attr ah = {
        .dlid = link->lid,
        .sl = (uint8_t)qp->attr.service_level,
        .src_path_bits = (uint8_t)qp->attr.path_bits,
        .port_num = port,
    };

    if (!link->global)
        return ah;
    ah.is_global = 1;
    ah.grh.sgid_index = (uint8_t)qp->path.gid.gid_index;
    ah.grh.hop_limit = (uint8_t)qp->attr.hop_limit;
    ah.grh.traffic_class = (uint8_t)qp->attr.traffic_class;
    ah.grh.flow_label = qp->attr.flow_label;
    memcpy(ah.grh.dgid.raw, link->gid, sizeof ah.grh.dgid.raw);
    return ah;
}

/* Returns our own MTU, or the next smaller one that fits. */
static enum ibv_mtu mtu_of(const struct slu_verbs_qp *qp, uint32_t bytes)
{
    enum ibv_mtu mtu = qp->mtu;

    while (mtu > IBV_MTU_256 && slu_verbs_mtu_bytes(mtu) > bytes)
        mtu--;
    return mtu;
}

static int move_to_rtr(struct slu_verbs_qp *qp, uint8_t port, const struct slu_verbs_link *link)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_of(qp, link->mtu),
        .dest_qp_num = link->qpn,
        .rq_psn = link->psn,
        .max_dest_rd_atomic = (uint8_t)link->remote_reads,
        .min_rnr_timer = (uint8_t)qp->attr.rnr_timer,
        .ah_attr = address_of(qp, port, link),
    };

    return ibv_modify_qp(qp->ibv, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int move_to_rts(struct slu_verbs_qp *qp, const struct slu_verbs_link *link)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t)qp->attr.ack_timeout,
        .retry_cnt = (uint8_t)qp->attr.retry_count,
        .rnr_retry = (uint8_t)qp->attr.rnr_retry,
        .sq_psn = qp->psn,
        .max_rd_atomic = (uint8_t)link->reads,
    };

    return ibv_modify_qp(qp->ibv, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int fail_connect(int err, const struct slu_verbs_qp *qp, const struct slu_endpoint *remote)
{
    char address[SLU_VERBS_ADDRESS_CHARS];

    slu_verbs_gid_text(remote->verbs.gid, remote->verbs.gid_type, address);
    return slu_fail(err, "cannot connect queue pair %u of %s to %u at %s, LID %u: %s",
                    qp->ibv->qp_num, qp->base.pd->context->device, remote->qpn, address,
                    remote->verbs.lid, strerror(err));
}

/* On iWARP rdma_cm moves the queue pair to RTS. */
static int connect_iwarp(struct slu_verbs_qp *qp, const struct slu_endpoint *remote)
{
    if (!qp->agreed)
        return slu_fail(EOPNOTSUPP,
                        "queue pair %u of %s, an iWARP device: only rdma_cm connects it",
                        qp->ibv->qp_num, qp->base.pd->context->device);
    qp->link = negotiate(qp, remote);
    qp->link.qpn = 0;
    slu_verbs_events_connected(qp);
    return 0;
}

/*
 * Takes, of the GIDs that both sides offer, the one that the peer takes for this side, and puts the
 * peer's into its endpoint.
 */
static void agree_on_gids(struct slu_verbs_qp *qp, struct slu_endpoint *remote)
{
    struct slu_verbs_context *context = slu_verbs_context_of(qp->base.pd->context);
    uint32_t ours, theirs;

    slu_verbs_gid_agree(&qp->path, remote, &ours, &theirs);
    if (theirs > 0)
        memcpy(remote->verbs.gid, remote->verbs.others[theirs - 1].gid, sizeof remote->verbs.gid);
    if (ours == 0)
        return;
    /* The thread that reads events looks at it. */
    pthread_mutex_lock(&context->events_lock);
    qp->path.gid = qp->path.others[ours - 1].gid;
    pthread_mutex_unlock(&context->events_lock);
}

int slu_verbs_qp_connect(struct slu_qp *base, const struct slu_endpoint *given)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    uint8_t port = slu_verbs_context_of(base->pd->context)->port;
    struct slu_endpoint copy = *given, *remote = &copy;
    struct slu_verbs_link link;
    int err;

    if (qp->path.iwarp)
        return connect_iwarp(qp, remote);
    if (qp->path.has_gid)
        agree_on_gids(qp, remote);
    err = check_remote(qp, remote);
    if (err)
        return err;
    link = negotiate(qp, remote);
    err = slu_verbs_events_check(qp, link.global);
    if (err)
        return err;
    err = move_to_rtr(qp, port, &link);
    if (!err)
        err = move_to_rts(qp, &link);
    /*
     * A peer that has closed meanwhile has put the queue pair into the error state, as it would
     * after the handshake: this is a success.
     */
    if (err && slu_verbs_has_left(qp))
        err = 0;
    if (err)
        return fail_connect(slu_verbs_errno(err), qp, remote);
    qp->link = link;
    slu_verbs_events_connected(qp);
    return 0;
}
