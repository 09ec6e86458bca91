/* SPDX-License-Identifier: MIT */
/* Prepared channels: a queue pair with an endpoint; the handshake turns it into a channel. */
#include "config.h"

#include "channel/channel.h"

static bool is_prepared(const struct sluice_prepared_channel *prepared)
{
    return prepared != NULL && prepared->base.magic == SLU_MAGIC_PREPARED_CHANNEL;
}

struct sluice_prepared_channel *slu_channel_prepare(struct sluice_pd *pd,
                                                    const struct sluice_channel_attr *attr)
{
    return (void *)slu_channel_create(SLU_MAGIC_PREPARED_CHANNEL, pd, 1, 0, attr);
}

struct sluice_prepared_channel *sluice_channel_prepare(struct sluice_pd *pd,
                                                       const struct sluice_channel_attr *attr)
{
    SLU_UNCANCELLED_BLOCK;
    int error = slu_channel_check_device(pd);

    return error == 0 ? slu_channel_prepare(pd, attr) : slu_none(error);
}

int sluice_prepared_channel_endpoint(const struct sluice_prepared_channel *prepared,
                                     struct sluice_endpoint *endpoint)
{
    if (!is_prepared(prepared))
        return slu_misuse(EINVAL, "not a prepared channel%s", slu_none_hint(prepared));
    if (endpoint == NULL)
        return slu_misuse(EINVAL, "endpoint must not be NULL");
    slu_engine_enter(prepared->base.engine);
    slu_peer_endpoint(prepared->base.engine, &prepared->base.engine->peers[0], endpoint);
    slu_engine_leave(prepared->base.engine);
    return 0;
}

void sluice_prepared_channel_free(struct sluice_prepared_channel *prepared)
{
    SLU_UNCANCELLED_BLOCK;
    if (slu_may_end(prepared, SLU_MAGIC_PREPARED_CHANNEL, "prepared channel"))
        slu_channel_destroy(&prepared->base);
}

struct sluice_channel *sluice_prepared_channel_handshake(struct sluice_prepared_channel *prepared,
                                                         const struct sluice_endpoint *remote)
{
    SLU_UNCANCELLED_BLOCK;
    int error;

    if (!is_prepared(prepared))
        return slu_misuse_null(EINVAL,
                               "not a prepared channel (or its handshake was done before)%s",
                               slu_none_hint(prepared));
    error = remote != NULL ? slu_channel_connect(&prepared->base, 0, remote)
                           : slu_misuse(EINVAL, "a handshake needs the peer's endpoint");
    if (error < 0) {
        slu_channel_destroy(&prepared->base);
        return slu_none(error);
    }
    prepared->base.magic = SLU_MAGIC_CHANNEL;
    slu_made();
    return (void *)prepared;
}

struct sluice_prepared_channel *sluice_channel_reset(struct sluice_channel *channel)
{
    SLU_UNCANCELLED_BLOCK;
    int error;

    if (!slu_is_channel(channel))
        return slu_misuse_null(EINVAL, "not a channel%s", slu_none_hint(channel));
    error = slu_scope_check(channel->base.engine);
    if (error == 0)
        error = slu_channel_reset(&channel->base, 0, NULL);
    if (error < 0) {
        slu_channel_destroy(&channel->base);
        return slu_none(error);
    }
    channel->base.magic = SLU_MAGIC_PREPARED_CHANNEL;
    slu_made();
    return (void *)channel;
}
