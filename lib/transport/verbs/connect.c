/* SPDX-License-Identifier: MIT */
/*
 * The handshake: from INIT by way of RTR to RTS. Guarantee: no field of the
 * peer's endpoint reaches the driver unchecked.
 */
#include "config.h"

#include <netinet/in.h>
#include <string.h>

#include "verbs.h"

#define HOP_LIMIT 64
#define RNR_TIMER 12         /* 0.64 ms until a sender that found no receive tries again */
#define RNR_RETRY_FOR_EVER 7 /* the deadline decides */
#define RETRY_COUNT_MOST 6   /* 7 means for ever on rxe: a lost peer would never be noticed */
#define LID_UNICAST_LAST 0xbfff
#define QPN_MULTICAST 0xffffff

static bool is_zero_gid(const uint8_t gid[16])
{
    static const uint8_t zero[16];

    return memcmp(gid, zero, sizeof(zero)) == 0;
}

static bool is_ipv4_gid(const uint8_t gid[16])
{
    struct in6_addr address;

    memcpy(&address, gid, sizeof(address));
    return IN6_IS_ADDR_V4MAPPED(&address);
}

static bool is_mtu(uint32_t bytes)
{
    return bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
}

static int check_numbers(const struct slu_endpoint *remote)
{
    /* 0 and 1 belong to subnet management. */
    if (remote->qpn <= 1 || remote->qpn >= QPN_MULTICAST)
        return slu_fail(EPROTO, "the endpoint names queue pair %u: none can have that number",
                        remote->qpn);
    if (remote->psn > 0xffffff)
        return slu_fail(EPROTO, "the endpoint names packet %u: above 2^24", remote->psn);
    if (!is_mtu(remote->mtu))
        return slu_fail(EPROTO, "the endpoint names an MTU of %u bytes: not 256 to 4096",
                        remote->mtu);
    if (remote->initiator_depth == 0 || remote->responder_depth == 0)
        return slu_fail(EPROTO, "the endpoint allows no reads");
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
         is_ipv4_gid(gid) == is_ipv4_gid(path->gid.gid.raw)))
        return 0;
    slu_verbs_gid_text(path->gid.gid.raw, path->gid.gid_type, ours);
    slu_verbs_gid_text(gid, remote->verbs.gid_type, theirs);
    return slu_fail(EPROTO, "the endpoint's address, %s, is of another kind than ours, %s", theirs,
                    ours);
}

/* By LID within a subnet; by GID if a LID is missing, or between subnets. */
static bool needs_grh(const struct slu_verbs_path *path, const struct slu_endpoint *remote)
{
    if (path->link_layer == IBV_LINK_LAYER_ETHERNET)
        return true;
    if (!path->has_gid || is_zero_gid(remote->verbs.gid))
        return false;
    return path->grh_required || !path->lid || !remote->verbs.lid ||
           memcmp(path->gid.gid.raw, remote->verbs.gid, 8) != 0;
}

static int check_infiniband(const struct slu_verbs_path *path, const struct slu_endpoint *remote)
{
    if (remote->verbs.lid > LID_UNICAST_LAST)
        return slu_fail(EPROTO, "the endpoint has LID %u: not a unicast one", remote->verbs.lid);
    if (remote->verbs.gid[0] == 0xff)
        return slu_fail(EPROTO, "the endpoint has no unicast address");
    if (!needs_grh(path, remote) && (!remote->verbs.lid || !path->lid))
        return slu_fail(EPROTO, "the endpoint can be reached neither by LID nor by GID");
    return 0;
}

static int check_remote(const struct slu_verbs_path *path, const struct slu_endpoint *remote)
{
    int err = check_numbers(remote);

    if (err)
        return err;
    if (remote->verbs.link_layer != path->link_layer)
        return slu_fail(EPROTO,
                        "the endpoint is on link layer %u, and we are on %u "
                        "(1 is InfiniBand, 2 Ethernet)",
                        remote->verbs.link_layer, path->link_layer);
    return path->link_layer == IBV_LINK_LAYER_ETHERNET ? check_ethernet(path, remote)
                                                       : check_infiniband(path, remote);
}

static struct ibv_ah_attr address_of(const struct slu_verbs_qp *qp, uint8_t port,
                                     const struct slu_endpoint *remote)
{
    struct ibv_ah_attr ah = {.dlid = (uint16_t)remote->verbs.lid, .port_num = port};

    if (!needs_grh(&qp->path, remote))
        return ah;
    ah.is_global = 1;
    ah.grh.sgid_index = (uint8_t)qp->path.gid.gid_index;
    ah.grh.hop_limit = HOP_LIMIT;
    memcpy(ah.grh.dgid.raw, remote->verbs.gid, sizeof(ah.grh.dgid.raw));
    return ah;
}

static enum ibv_mtu smaller_mtu(enum ibv_mtu own, uint32_t remote_bytes)
{
    enum ibv_mtu mtu = own;

    while (mtu > IBV_MTU_256 && slu_verbs_mtu_bytes(mtu) > remote_bytes)
        mtu--;
    return mtu;
}

static int move_to_rtr(struct slu_verbs_qp *qp, uint8_t port, const struct slu_endpoint *remote)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = smaller_mtu(qp->path.mtu, remote->mtu),
        .dest_qp_num = remote->qpn,
        .rq_psn = remote->psn,
        .max_dest_rd_atomic = (uint8_t)slu_verbs_min(qp->attr.read_depth, remote->initiator_depth),
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = address_of(qp, port, remote),
    };

    return ibv_modify_qp(qp->ibv, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int move_to_rts(struct slu_verbs_qp *qp, const struct slu_endpoint *remote)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t)qp->attr.ack_timeout,
        .retry_cnt = (uint8_t)slu_verbs_min(qp->attr.retry_count, RETRY_COUNT_MOST),
        .rnr_retry = RNR_RETRY_FOR_EVER,
        .sq_psn = qp->psn,
        .max_rd_atomic = (uint8_t)slu_verbs_min(qp->attr.read_depth, remote->responder_depth),
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

int slu_verbs_qp_connect(struct slu_qp *base, const struct slu_endpoint *remote)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    uint8_t port = slu_verbs_context_of(base->pd->context)->port;
    int err = check_remote(&qp->path, remote);

    if (err)
        return err;
    err = move_to_rtr(qp, port, remote);
    if (!err)
        err = move_to_rts(qp, remote);
    if (err)
        return fail_connect(slu_verbs_errno(err), qp, remote);
    qp->state = SLU_QP_CONNECTED;
    return 0;
}
