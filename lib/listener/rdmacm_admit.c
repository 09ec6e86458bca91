/* SPDX-License-Identifier: MIT */
/* Admitting connections over rdma_cm, and the steps that both sides share. */
#include "config.h"

#include "connect/cm.h"
#include "engine/engine.h"
#include "listener/rdmacm.h"
#include "transport/verbs/events/events.h"
#include "transport/verbs/pairs/pairs.h"

int slu_rdmacm_check_context(const struct slu_joint *joint)
{
    const struct slu_tcontext *context = slu_joint_context(joint);

    if (context->transport == &slu_transport_verbs)
        return 0;
    return slu_fail(EOPNOTSUPP,
                    "device %s is of transport %s, which has no rdma_cm: open an RDMA device, or "
                    "leave out \"rdmacm:\"",
                    context->device, context->transport->name);
}

int slu_rdmacm_expect(struct slu_joint *joint)
{
    int error = slu_rdmacm_check_context(joint);

    return error == 0 ? slu_verbs_qp_expect(slu_joint_qp(joint, 0)) : error;
}

static uint8_t at_most(uint32_t wanted, uint32_t allowed)
{
    return (uint8_t)slu_verbs_min(slu_verbs_min(wanted, allowed), UINT8_MAX);
}

struct rdma_conn_param slu_rdmacm_param(const struct slu_joint *joint, uint32_t index,
                                        const struct slu_cm *other,
                                        const struct sluice_private_data *own)
{
    const struct slu_verbs_qp *qp = slu_verbs_const_qp_of(slu_joint_qp(joint, index));
    bool answers = (qp->attr.access & (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_ATOMIC));
    struct rdma_conn_param param = {
        .private_data = own != NULL ? own->data : NULL,
        .private_data_len = own != NULL ? (uint8_t)own->bytes : 0,
        .responder_resources = at_most(answers ? qp->attr.read_depth : 0,
                                       other != NULL ? other->remote_reads : UINT8_MAX),
        .initiator_depth = at_most(qp->attr.read_depth, other != NULL ? other->reads : UINT8_MAX),
        .flow_control = 1,
        .retry_count = (uint8_t)qp->attr.retry_count,
        .rnr_retry_count = (uint8_t)qp->attr.rnr_retry,
        .qp_num = qp->ibv->qp_num,
    };

    return param;
}

int slu_rdmacm_join(struct slu_joint *joint, uint32_t index, struct slu_cm *cm)
{
    struct slu_endpoint remote;
    int error = slu_verbs_qp_agree(slu_joint_qp(joint, index), cm, &remote);

    if (error < 0)
        return error;
    slu_endpoint_encode(&remote, &joint->remote[index]);
    return slu_joint_shake(joint, index);
}

int slu_rdmacm_hand_over(struct slu_joint *joint, uint32_t index, struct slu_cm *cm)
{
    struct slu_peer *peer = slu_joint_peer(joint, index);
    int error = slu_joint_check_peer(joint, index);

    if (error < 0)
        return error;
    /* The channel has failed already, and has the reason. */
    if (peer->qp == NULL)
        return slu_fail(ECONNRESET, "the channel failed before it was connected");
    error = slu_verbs_qp_bind(slu_joint_qp(joint, index), cm);
    if (error == 0)
        slu_peer_heard(peer);
    return error;
}

int slu_rdmacm_check_answer(const struct sluice_private_data *own)
{
    if (own == NULL || own->bytes <= SLU_CM_ANSWER_BYTES)
        return 0;
    return slu_misuse(EINVAL, "private data of %u bytes: rdma_cm takes %d along with an accept",
                      own->bytes, SLU_CM_ANSWER_BYTES);
}

static int fail_left(const struct sluice_incoming *incoming)
{
    char who[SLU_ADDRESS_TEXT];
    int error = incoming->cm->error == ETIMEDOUT ? ETIMEDOUT : ECONNRESET;

    return slu_fail(error, "%s left before all was connected: %s",
                    slu_address_text(&incoming->address, who), incoming->cm->why);
}

static int agree(struct sluice_incoming *incoming, struct slu_joint *joint,
                 const struct sluice_private_data *own)
{
    char who[SLU_ADDRESS_TEXT];
    int error = slu_verbs_cm_check(slu_joint_context(joint), incoming->cm,
                                   slu_address_text(&incoming->address, who));

    if (error == 0)
        error = slu_rdmacm_check_answer(own);
    return error == 0 ? slu_rdmacm_join(joint, 0, incoming->cm) : error;
}

int slu_rdmacm_answer(struct sluice_incoming *incoming, struct slu_joint *joint,
                      const struct sluice_private_data *own)
{
    struct rdma_conn_param param = slu_rdmacm_param(joint, 0, incoming->cm, own);
    int error = agree(incoming, joint, own);

    /* If the other side has left, before or during this, that is the cause to report. */
    if (error < 0)
        return slu_cm_has_ended(incoming->cm) ? fail_left(incoming) : error;
    error = slu_cm_answer(incoming->cm, &param);
    return error < 0 && incoming->cm->state == SLU_CM_ENDED ? fail_left(incoming) : error;
}

int slu_rdmacm_look(struct sluice_incoming *incoming, struct slu_joint *joint)
{
    int error;

    if (incoming->cm->state == SLU_CM_ENDED)
        return fail_left(incoming);
    if (incoming->cm->state != SLU_CM_CONNECTED)
        return 0;
    error = slu_rdmacm_hand_over(joint, 0, incoming->cm);
    if (error < 0)
        return error;
    incoming->cm = NULL;
    return 1;
}

void slu_rdmacm_reject(struct sluice_incoming *incoming, const char *reason)
{
    if (incoming->cm != NULL)
        slu_cm_reject(incoming->cm, reason);
}

void slu_rdmacm_drop(struct sluice_incoming *incoming)
{
    slu_cm_end(incoming->cm);
    incoming->cm = NULL;
}

bool slu_rdmacm_has_left(const struct sluice_incoming *incoming)
{
    return incoming->cm != NULL && slu_cm_has_ended(incoming->cm);
}
