/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs that are connected over rdma_cm. Guarantee: negotiated parameters are checked like an
 * endpoint before they reach the driver.
 */
#include "config.h"

#include <string.h>

#include "connect/cm.h"
#include "transport/verbs/events/events.h"
#include "transport/verbs/pairs/pairs.h"

/* Parameters that rdma_cm negotiated for a queue pair. */
struct terms {
    struct ibv_qp_attr init, rtr, rts;
};

static int ask_for(const struct slu_cm *cm, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
    int mask = 0;

    memset(attr, 0, sizeof *attr);
    attr->qp_state = state;
    if (slu_rdma.init_qp_attr(cm->id, attr, &mask) == 0)
        return 0;
    return slu_fail(EIO, "rdma_cm does not tell what it has agreed on: %s", strerror(errno));
}

static int read_terms(const struct slu_cm *cm, struct terms *terms)
{
    int err = ask_for(cm, IBV_QPS_INIT, &terms->init);

    if (!err)
        err = ask_for(cm, IBV_QPS_RTR, &terms->rtr);
    return err ? err : ask_for(cm, IBV_QPS_RTS, &terms->rts);
}

/*
 * Describes an iWARP peer, of which rdma_cm tells neither a number nor a path. TCP chooses the size
 * of packets.
 */
static int agree_on_iwarp(struct slu_verbs_qp *qp, const struct slu_cm *cm,
                          struct slu_endpoint *remote)
{
    if (qp->attr.path_mtu)
        return slu_fail(EINVAL,
                        "sluice_channel_attr.path_mtu is %u, and on iWARP (%s) TCP chooses the "
                        "size of packets",
                        qp->attr.path_mtu, qp->base.pd->context->device);
    *remote = (struct slu_endpoint){
        .transport = SLU_TRANSPORT_VERBS,
        .qpn = qp->ibv->qp_num, /* an endpoint needs one */
        .mtu = slu_verbs_mtu_bytes(qp->mtu),
        .initiator_depth = cm->remote_reads,
        .responder_depth = cm->reads,
        .max_message = qp->attr.max_message,
        .generation = 1,
    };
    remote->access = cm->reads ? SLUICE_ACCESS_REMOTE_READ : SLUICE_ACCESS_REMOTE_WRITE;
    return 0;
}

static int fail_attribute(const char *name, uint32_t wanted, uint32_t agreed)
{
    return slu_fail(EINVAL, "sluice_channel_attr.%s is %u, and rdma_cm has agreed on %u", name,
                    wanted, agreed);
}

/* Checks attributes of the channel that rdma_cm decides. */
static int check_wishes(const struct slu_verbs_qp *qp, const struct terms *terms)
{
    uint32_t mtu = slu_verbs_mtu_bytes(terms->rtr.path_mtu);

    if (qp->attr.path_mtu && qp->attr.path_mtu != mtu)
        return fail_attribute("path_mtu", qp->attr.path_mtu, mtu);
    if (mtu > slu_verbs_mtu_bytes(qp->mtu))
        return slu_fail(EPROTO, "rdma_cm has agreed on packets of %u bytes, our port has %u", mtu,
                        slu_verbs_mtu_bytes(qp->mtu));
    return 0;
}

static int take_pkey(struct slu_verbs_qp *qp, const struct slu_verbs_context *context,
                     uint16_t index)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = index,
        .port_num = context->port,
        .qp_access_flags = (unsigned int)slu_verbs_access(qp->attr.access),
    };
    __be16 pkey = 0;
    int err;

    if (index == qp->pkey_index)
        return 0;
    if (ibv_query_pkey(context->ibv, context->port, index, &pkey) != 0)
        pkey = 0;
    if (qp->attr.pkey && qp->attr.pkey != be16toh(pkey))
        return fail_attribute("pkey", qp->attr.pkey, be16toh(pkey));
    err = ibv_modify_qp(qp->ibv, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (err)
        return slu_fail(slu_verbs_errno(err), "cannot take partition key %#x on port %u of %s: %s",
                        be16toh(pkey), context->port, context->base.device,
                        strerror(slu_verbs_errno(err)));
    qp->pkey_index = index;
    qp->pkey = be16toh(pkey);
    return 0;
}

/*
 * Takes over the address and path of this side from rdma_cm. Attributes set by the program override
 * them.
 */
static int take_path(struct slu_verbs_qp *qp, const struct slu_verbs_context *context,
                     const struct ibv_ah_attr *ah)
{
    struct slu_qp_attr *attr = &qp->attr;
    int err;

    if (ah->is_global) {
        err = ibv_query_gid_ex(context->ibv, context->port, ah->grh.sgid_index, &qp->path.gid, 0);
        if (err)
            return slu_fail(EADDRNOTAVAIL, "port %u of %s has lost the address of the connection",
                            context->port, context->base.device);
        qp->path.has_gid = true;
        attr->flags |= SLUICE_CHANNEL_GLOBAL;
        attr->hop_limit = ah->grh.hop_limit;
        attr->traffic_class = attr->traffic_class ? attr->traffic_class : ah->grh.traffic_class;
        attr->flow_label = attr->flow_label ? attr->flow_label : ah->grh.flow_label;
    }
    attr->service_level = attr->service_level ? attr->service_level : ah->sl;
    attr->path_bits = ah->src_path_bits;
    return 0;
}

/*
 * Describes the peer as an endpoint. rdma_cm does not exchange rights: a peer that answers reads is
 * taken to permit reads, any other one to permit writes.
 */
static void describe_peer(const struct slu_verbs_qp *qp, const struct terms *terms,
                          const struct slu_cm *cm, struct slu_endpoint *remote)
{
    const struct ibv_ah_attr *ah = &terms->rtr.ah_attr;

    *remote = (struct slu_endpoint){
        .transport = SLU_TRANSPORT_VERBS,
        .qpn = terms->rtr.dest_qp_num,
        .psn = terms->rtr.rq_psn,
        .mtu = slu_verbs_mtu_bytes(terms->rtr.path_mtu),
        .initiator_depth = slu_verbs_min(terms->rtr.max_dest_rd_atomic, cm->remote_reads),
        .responder_depth = slu_verbs_min(terms->rts.max_rd_atomic, cm->reads),
        .max_message = qp->attr.max_message,
        .generation = 1,
    };
    remote->access =
        remote->responder_depth ? SLUICE_ACCESS_REMOTE_READ : SLUICE_ACCESS_REMOTE_WRITE;
    remote->verbs.lid = ah->dlid;
    remote->verbs.link_layer = qp->path.link_layer;
    remote->verbs.port = terms->init.port_num;
    if (!ah->is_global)
        return;
    remote->verbs.global = 1;
    remote->verbs.gid_type = qp->path.gid.gid_type;
    memcpy(remote->verbs.gid, ah->grh.dgid.raw, sizeof remote->verbs.gid);
}

static int agree(struct slu_verbs_qp *qp, struct slu_cm *cm, struct slu_endpoint *remote)
{
    const struct slu_verbs_context *context = slu_verbs_context_of(qp->base.pd->context);
    struct terms terms;
    int err = read_terms(cm, &terms);

    if (!err)
        err = check_wishes(qp, &terms);
    if (!err)
        err = take_pkey(qp, context, terms.init.pkey_index);
    if (!err)
        err = take_path(qp, context, &terms.rtr.ah_attr);
    if (err)
        return err;
    qp->psn = terms.rts.sq_psn;
    describe_peer(qp, &terms, cm, remote);
    return 0;
}

int slu_verbs_qp_agree(struct slu_qp *base, struct slu_cm *cm, struct slu_endpoint *remote)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    int err = qp->path.iwarp ? agree_on_iwarp(qp, cm, remote) : agree(qp, cm, remote);

    if (err)
        return err;
    qp->agreed = true;
    /* An identity that no endpoint has, so that the peer after a reset counts as a new one. */
    do
        err = slu_random(&remote->identity, sizeof remote->identity);
    while (!err && remote->identity == 0);
    return err ? slu_fail(EIO, "no random number for a peer: %s", strerror(-err)) : 0;
}

int slu_verbs_cm_check(const struct slu_tcontext *base, const struct slu_cm *cm, const char *who)
{
    const char *device = cm->id->verbs ? ibv_get_device_name(cm->id->verbs->device) : "no device";

    if (strcmp(device, base->device) == 0 && cm->id->port_num == base->port)
        return 0;
    return slu_fail(EADDRNOTAVAIL,
                    "%.64s is reached by port %u of %s, and the protection domain is of port %u of "
                    "%s: open that device",
                    who, cm->id->port_num, device, base->port, base->device);
}

int slu_verbs_qp_expect(struct slu_qp *base)
{
    if (slu_verbs_qp_of(base)->attr.flags & SLUICE_CHANNEL_PSN)
        return slu_fail(EINVAL, "SLUICE_CHANNEL_PSN: rdma_cm chooses the packet sequence numbers");
    return slu_verbs_cm_open(slu_verbs_context_of(base->pd->context));
}
