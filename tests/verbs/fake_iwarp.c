/* SPDX-License-Identifier: MIT */
/*
 * The iWARP personality of the pretend rdma_cm: it connects queue pairs itself, when the answer is
 * sent, and puts them into the error state when their connection ends.
 */
#include "fake_iwarp.h"

#include <string.h>

#include "../support/suite.h"

bool fake_iwarp(void)
{
    return fake_verbs.device[0].transport_type == IBV_TRANSPORT_IWARP;
}

void fake_iwarp_address(struct ibv_ah_attr *ah)
{
    const struct fake_port *port = &fake_verbs.device[0].port[0];
    uint32_t index = 0;
    while (index + 1 < port->gids && port->gid[index].type != 1 + IBV_GID_TYPE_ROCE_V2) {
        index++;
    }
    ah->is_global = 1;
    ah->port_num = 1;
    ah->grh.sgid_index = (uint8_t)index;
    ah->grh.hop_limit = 64;
    memcpy(ah->grh.dgid.raw, port->gid[index].raw, 16);
}

/* Both numbers begin at the same packet. A message without a receive is not sent again. */
static bool move_to_rts(uint32_t qpn, uint32_t peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = fake_verbs.device[0].port[0].active_mtu,
                               .dest_qp_num = peer,
                               .max_dest_rd_atomic = 16,
                               .max_rd_atomic = 16,
                               .min_rnr_timer = 1,
                               .timeout = 14,
                               .retry_cnt = 6};
    struct ibv_qp *qp = fake_verbs_find(qpn);
    fake_iwarp_address(&attr.ah_attr);
    if (qp == NULL ||
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
        return false;
    }
    attr.qp_state = IBV_QPS_RTS;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

bool fake_iwarp_join(uint32_t a, uint32_t b)
{
    bool joined;
    fake_verbs.rdmacm_moves = true;
    joined = move_to_rts(a, b) && move_to_rts(b, a);
    fake_verbs.rdmacm_moves = false;
    return joined;
}

void fake_iwarp_end(uint32_t qpn)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_qp *qp = fake_iwarp() ? fake_verbs_find(qpn) : NULL;
    if (qp != NULL) {
        ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    }
}
