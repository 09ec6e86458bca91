/* SPDX-License-Identifier: MIT */
/* Functions that channels and multichannels, prepared or connected, share. */
#include "config.h"

#include "channel/object.h"

#include <stdlib.h>

struct slu_channel *slu_channel_create(uint32_t magic, struct sluice_pd *pd, uint32_t peers,
                                       uint32_t own, const struct sluice_channel_attr *attr)
{
    struct slu_channel *object = calloc(1, sizeof *object);

    if (object == NULL)
        return slu_fail_null(ENOMEM, "no memory for a %schannel",
                             magic == SLU_MAGIC_PREPARED_CHANNEL ? "" : "multi");
    object->engine = slu_engine_create(pd, peers, own, attr);
    if (object->engine == NULL) {
        free(object);
        return NULL;
    }
    if (magic == SLU_MAGIC_PREPARED_CHANNEL && object->engine->attr.pool != NULL) {
        slu_channel_destroy(object);
        return slu_misuse_null(EINVAL, "sluice_channel_attr.receive_pool is for multichannels: a "
                                       "channel has a single peer");
    }
    object->magic = magic;
    return object;
}

int slu_channel_check_device(const struct sluice_pd *pd)
{
    const struct slu_tcontext *device;

    if (pd == NULL || pd->magic != SLU_MAGIC_PD || !pd->context->transport->by_rdmacm)
        return 0;
    device = pd->context->transport;
    return slu_fail(EOPNOTSUPP,
                    "device %s is iWARP, where rdma_cm makes the connections and endpoints connect "
                    "nothing: use sluice_connect() and sluice_listen() with an address such as "
                    "\"rdmacm:host:port\", or open the device soft",
                    device->device);
}

bool slu_channel_seems_ready(const struct slu_engine *engine, uint32_t index)
{
    const struct slu_peer *peer = &engine->peers[index];

    return peer->state == SLUICE_STATE_READY && engine->transport->cq_alert == NULL &&
           engine->transport->qp_state(peer->qp) != SLU_QP_ERROR;
}

void slu_channel_destroy(struct slu_channel *object)
{
    object->magic = SLU_MAGIC_DEAD;
    slu_engine_destroy(object->engine);
    free(object);
}

int slu_channel_connect(struct slu_channel *object, uint32_t peer,
                        const struct sluice_endpoint *remote)
{
    struct slu_engine *engine = object->engine;
    int error;

    slu_engine_enter(engine);
    error = slu_peer_connect(engine, &engine->peers[peer], remote);
    slu_engine_leave(engine);
    return error;
}

int slu_channel_reset(struct slu_channel *object, uint32_t peer, struct sluice_endpoint *endpoint)
{
    struct slu_engine *engine = object->engine;
    int error = slu_channel_check_device(engine->pd);

    if (error < 0)
        return error;
    slu_engine_enter(engine);
    error = slu_peer_reset(engine, &engine->peers[peer]);
    if (error == 0 && endpoint != NULL)
        slu_peer_endpoint(engine, &engine->peers[peer], endpoint);
    slu_engine_leave(engine);
    return error;
}
