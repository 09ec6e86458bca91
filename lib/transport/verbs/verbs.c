/* SPDX-License-Identifier: MIT */
/* The table of the verbs transport, with functions from the other files of this folder. */
#include "config.h"

#include "transport/verbs/verbs.h"

const struct slu_transport slu_transport_verbs = {
    .name = "verbs",
    /* About a round trip of a device, with one or two switches. */
    .hot_spin = SLUICE_US(20),
    .id = SLU_TRANSPORT_VERBS,
    .probe_is_request = true,
    .device_list = slu_verbs_device_list,
    .open = slu_verbs_open,
    .close = slu_verbs_close,
    .pd_alloc = slu_verbs_pd_alloc,
    .pd_free = slu_verbs_pd_free,
    .pds_share_keys = slu_verbs_pds_share_keys,
    .mr_register = slu_verbs_mr_register,
    .mr_register_dmabuf = slu_verbs_mr_register_dmabuf,
    .mr_alloc = slu_verbs_mr_alloc,
    .mr_deregister = slu_verbs_mr_deregister,
    .cq_create = slu_verbs_cq_create,
    .cq_extend = slu_verbs_cq_extend,
    .cq_reduce = slu_verbs_cq_reduce,
    .cq_destroy = slu_verbs_cq_destroy,
    .cq_poll = slu_verbs_cq_poll,
    .cq_alert = slu_verbs_cq_alert,
    .cq_arm = slu_verbs_cq_arm,
    .cq_fd = slu_verbs_cq_fd,
    .cq_wake = slu_verbs_cq_wake,
    .qp_create = slu_verbs_qp_create,
    .qp_endpoint = slu_verbs_qp_endpoint,
    .qp_connect = slu_verbs_qp_connect,
    .qp_state = slu_verbs_qp_state,
    .qp_query = slu_verbs_qp_query,
    .qp_probe = slu_verbs_qp_probe,
    .qp_slow = slu_verbs_qp_slow,
    .qp_loss = slu_verbs_qp_loss,
    .qp_farewell = slu_verbs_qp_farewell,
    .qp_error = slu_verbs_qp_error,
    .qp_destroy = slu_verbs_qp_destroy,
    .post_send = slu_verbs_post_send,
    .post_receive = slu_verbs_post_receive,
};
