/* SPDX-License-Identifier: MIT */
/*
 * Describing a channel, or a peer of a multichannel, to the program: the attributes in use, what
 * was negotiated, and the first error.
 */
#include "config.h"

#include "engine/inside.h"

/* The sizes of sluice_channel_info and sluice_error in version 0.1. */
#define FIRST_INFO_SIZE 240
#define FIRST_ERROR_SIZE 384

int slu_peer_query(struct slu_engine *engine, struct slu_peer *peer,
                   struct sluice_channel_info *info)
{
    const struct slu_qp_attr *attr = &engine->attr;

    struct sluice_channel_info known = {
        .send_depth = attr->send_depth,
        .receive_depth = attr->receive_depth,
        .max_sge = attr->max_sge,
        .max_inline = attr->max_inline,
        .max_message = attr->max_message,
        .gid_index = -1,
        .queue_pairs = attr->queue_pairs,
        .stripe_least = attr->stripe_least,
    };
    int error = slu_info_check(info, sizeof known, FIRST_INFO_SIZE, "sluice_channel_info");

    if (error < 0)
        return error;
    slu_engine_enter(engine);
    slu_progress_all(engine);
    if (peer->qp != NULL && engine->transport->qp_query != NULL)
        engine->transport->qp_query(peer->qp, &known);
    slu_engine_leave(engine);
    slu_info_copy(info, &known, sizeof known);
    return 0;
}

int slu_peer_first_error(struct slu_engine *engine, struct slu_peer *peer,
                         struct sluice_error *error)
{
    struct sluice_error known;
    int found = slu_info_check(error, sizeof known, FIRST_ERROR_SIZE, "sluice_error");

    if (found < 0)
        return found;
    slu_engine_enter(engine);
    slu_progress_all(engine);
    slu_peer_notice_loss(engine, peer);
    found = slu_peer_error(engine, peer, &known) ? 1 : 0;
    slu_engine_leave(engine);
    slu_info_copy(error, &known, sizeof known);
    return found;
}
