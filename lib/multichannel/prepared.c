/* SPDX-License-Identifier: MIT */
/* Prepared multichannels: queue pairs with an endpoint each. */
#include "config.h"

#include <string.h>

#include "multichannel/multichannel.h"

static bool is_prepared(const struct sluice_prepared_multichannel *prepared)
{
    return prepared != NULL && prepared->base.magic == SLU_MAGIC_PREPARED_MULTICHANNEL;
}

struct sluice_prepared_multichannel *
slu_multichannel_prepare(struct sluice_pd *pd, uint32_t peers, uint32_t own,
                         const struct sluice_channel_attr *attr)
{
    if (peers > SLUICE_MAX_PEERS)
        return slu_misuse_null(EINVAL, "a multichannel of %u peers: must be in 0..%d", peers,
                               SLUICE_MAX_PEERS);
    if (peers > 0 && slu_channel_check_device(pd) < 0)
        return slu_none(-EOPNOTSUPP);
    return (void *)slu_channel_create(SLU_MAGIC_PREPARED_MULTICHANNEL, pd, peers, own, attr);
}

struct sluice_prepared_multichannel *
sluice_multichannel_prepare(struct sluice_pd *pd, uint32_t peers,
                            const struct sluice_channel_attr *attr)
{
    return slu_multichannel_prepare(pd, peers, 0, attr);
}

void sluice_prepared_multichannel_free(struct sluice_prepared_multichannel *prepared)
{
    SLU_UNCANCELLED_BLOCK;
    if (slu_may_end(prepared, SLU_MAGIC_PREPARED_MULTICHANNEL, "prepared multichannel"))
        slu_channel_destroy(&prepared->base);
}

int sluice_prepared_multichannel_endpoints(const struct sluice_prepared_multichannel *prepared,
                                           struct sluice_endpoint *endpoints, uint32_t count)
{
    if (!is_prepared(prepared))
        return slu_misuse(EINVAL, "not a prepared multichannel%s", slu_none_hint(prepared));
    if (endpoints == NULL && count > 0)
        return slu_misuse(EINVAL, "endpoints must not be NULL");
    if (count != prepared->base.engine->peer_count)
        return slu_misuse(EINVAL, "room for %u endpoint%s, but there are %u peer%s", count,
                          SLU_S(count), prepared->base.engine->peer_count,
                          SLU_S(prepared->base.engine->peer_count));
    slu_engine_enter(prepared->base.engine);
    for (uint32_t i = 0; i < count; i++)
        slu_peer_endpoint(prepared->base.engine, &prepared->base.engine->peers[i], &endpoints[i]);
    slu_engine_leave(prepared->base.engine);
    return 0;
}

/* Returns whether an endpoint is all zeros: its peer is connected later. */
static bool is_absent(const struct sluice_endpoint *remote)
{
    static const struct sluice_endpoint none;

    return memcmp(remote, &none, sizeof none) == 0;
}

/* Connects all peers. A peer that cannot be connected fails alone, with its reason. */
static void connect_peers(struct slu_engine *engine, const struct sluice_endpoint *remotes)
{
    slu_engine_enter(engine);
    for (uint32_t i = 0; i < engine->peer_count; i++)
        if (!is_absent(&remotes[i]) && slu_peer_connect(engine, &engine->peers[i], &remotes[i]) < 0)
            slu_log(SLUICE_LOG_WARN, "channel %llu, %s %u could not be connected: %s",
                    (unsigned long long)engine->tag, engine->peer_word, i, sluice_last_error());
    slu_engine_leave(engine);
}

struct sluice_multichannel *
sluice_prepared_multichannel_handshake(struct sluice_prepared_multichannel *prepared,
                                       const struct sluice_endpoint *remotes, uint32_t count)
{
    int error = 0;

    if (!is_prepared(prepared))
        return slu_misuse_null(EINVAL,
                               "not a prepared multichannel (or its handshake was done before)%s",
                               slu_none_hint(prepared));
    if (remotes == NULL && count > 0)
        error = slu_misuse(EINVAL, "a handshake needs the peers' endpoints");
    else if (count != prepared->base.engine->peer_count)
        error =
            slu_misuse(EINVAL, "%u endpoint%s for %u peer%s", count, SLU_S(count),
                       prepared->base.engine->peer_count, SLU_S(prepared->base.engine->peer_count));
    if (error < 0) {
        slu_channel_destroy(&prepared->base);
        return slu_none(error);
    }
    connect_peers(prepared->base.engine, remotes);
    prepared->base.magic = SLU_MAGIC_MULTICHANNEL;
    slu_made();
    return (void *)prepared;
}
