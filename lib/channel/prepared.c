/* SPDX-License-Identifier: MIT */
/* Prepared channels: a queue pair with an endpoint, consumed by the handshake. */
#include "config.h"

#include <stdlib.h>

#include "channel/channel.h"

static bool is_prepared(const struct sluice_prepared_channel *prepared)
{
    return prepared != NULL && prepared->magic == SLU_MAGIC_PREPARED_CHANNEL;
}

struct sluice_prepared_channel *sluice_channel_prepare(struct sluice_pd *pd,
                                                       const struct sluice_channel_attr *attr)
{
    struct sluice_prepared_channel *prepared = calloc(1, sizeof *prepared);

    if (prepared == NULL)
        return slu_fail_null(ENOMEM, "no memory for a channel");
    prepared->engine = slu_engine_create(pd, 1, 0, attr);
    if (prepared->engine == NULL) {
        free(prepared);
        return NULL;
    }
    prepared->magic = SLU_MAGIC_PREPARED_CHANNEL;
    return prepared;
}

int sluice_prepared_channel_endpoint(const struct sluice_prepared_channel *prepared,
                                     struct sluice_endpoint *endpoint)
{
    if (!is_prepared(prepared))
        return slu_misuse(EINVAL, "not a prepared channel%s", slu_none_hint(prepared));
    if (endpoint == NULL)
        return slu_misuse(EINVAL, "endpoint must not be NULL");
    slu_engine_enter(prepared->engine);
    slu_peer_endpoint(prepared->engine, &prepared->engine->peers[0], endpoint);
    slu_engine_leave(prepared->engine);
    return 0;
}

void sluice_prepared_channel_free(struct sluice_prepared_channel *prepared)
{
    if (!slu_may_end(prepared, SLU_MAGIC_PREPARED_CHANNEL, "prepared channel"))
        return;
    prepared->magic = SLU_MAGIC_DEAD;
    slu_engine_destroy(prepared->engine);
    free(prepared);
}

static int connect_peer(struct slu_engine *engine, const struct sluice_endpoint *remote)
{
    int error;

    if (remote == NULL)
        return slu_misuse(EINVAL, "a handshake needs the peer's endpoint");
    slu_engine_enter(engine);
    error = slu_peer_connect(engine, &engine->peers[0], remote);
    slu_engine_leave(engine);
    return error;
}

struct sluice_channel *sluice_prepared_channel_handshake(struct sluice_prepared_channel *prepared,
                                                         const struct sluice_endpoint *remote)
{
    struct sluice_channel *channel;
    int error;

    if (!is_prepared(prepared))
        return slu_misuse_null(EINVAL,
                               "not a prepared channel (or its handshake was done before)%s",
                               slu_none_hint(prepared));
    channel = calloc(1, sizeof *channel);
    error = channel != NULL ? connect_peer(prepared->engine, remote)
                            : slu_fail(ENOMEM, "no memory for a channel");
    if (error < 0) {
        free(channel);
        sluice_prepared_channel_free(prepared);
        return slu_none(error);
    }
    channel->magic = SLU_MAGIC_CHANNEL;
    channel->engine = prepared->engine;
    prepared->magic = SLU_MAGIC_DEAD;
    free(prepared);
    slu_made();
    return channel;
}

struct sluice_prepared_channel *sluice_channel_reset(struct sluice_channel *channel)
{
    struct sluice_prepared_channel *prepared;
    int error;

    if (channel == NULL || channel->magic != SLU_MAGIC_CHANNEL)
        return slu_misuse_null(EINVAL, "not a channel%s", slu_none_hint(channel));
    error = slu_scope_check(channel->engine);
    if (error < 0) {
        sluice_channel_close(channel);
        return slu_none(error);
    }
    prepared = calloc(1, sizeof *prepared);
    if (prepared == NULL) {
        sluice_channel_close(channel);
        return slu_fail_null(ENOMEM, "no memory for a channel");
    }
    slu_engine_enter(channel->engine);
    error = slu_peer_reset(channel->engine, &channel->engine->peers[0]);
    slu_engine_leave(channel->engine);
    if (error < 0) {
        sluice_channel_close(channel);
        free(prepared);
        return slu_none(error);
    }
    prepared->magic = SLU_MAGIC_PREPARED_CHANNEL;
    prepared->engine = channel->engine;
    channel->magic = SLU_MAGIC_DEAD;
    free(channel);
    slu_made();
    return prepared;
}
