/* SPDX-License-Identifier: MIT */
/* What a channel, or a peer of a multichannel, uses: attributes, and what was negotiated. */
#include "config.h"

#include "engine.h"

int slu_peer_query(struct slu_engine *engine, struct slu_peer *peer,
                   struct sluice_channel_info *info)
{
    const struct slu_qp_attr *attr = &engine->attr;

    if (info == NULL || info->size != sizeof *info)
        return slu_misuse(EINVAL, "info is NULL, or its size is not %zu", sizeof *info);
    *info = (struct sluice_channel_info){
        .size = sizeof *info,
        .send_depth = attr->send_depth,
        .receive_depth = attr->receive_depth,
        .max_sge = attr->max_sge,
        .max_inline = attr->max_inline,
        .max_message = attr->max_message,
        .gid_index = -1,
    };
    slu_engine_enter(engine);
    slu_progress_all(engine);
    if (peer->qp != NULL && engine->transport->qp_query != NULL)
        engine->transport->qp_query(peer->qp, info);
    slu_engine_leave(engine);
    return 0;
}
