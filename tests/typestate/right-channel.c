/* SPDX-License-Identifier: MIT */
/* The life of a channel, from the device list to a second connection, as it should be. */
#include <stddef.h>

#include <sluice.h>

struct sluice_pd *open_device(struct sluice_context **context);
int exchange(const struct sluice_endpoint *own, struct sluice_endpoint *remote);
struct sluice_channel *connect_peer(struct sluice_pd *pd);
int talk(struct sluice_channel *channel, struct sluice_pd *pd,
         const struct sluice_remote_mr *remote);
struct sluice_channel *connect_again(struct sluice_channel *channel);

struct sluice_pd *open_device(struct sluice_context **context)
{
    struct sluice_device_list *list = sluice_device_list_get();
    uint32_t count = list ? sluice_device_list_count(list) : 0;
    struct sluice_pd *pd;

    sluice_device_list_free(list);
    *context = count > 0 ? sluice_context_open(NULL, NULL) : NULL;
    if (!*context)
        return NULL;
    pd = sluice_pd_alloc(*context);
    if (!pd) {
        sluice_context_close(*context);
        *context = NULL;
    }
    return pd;
}

struct sluice_channel *connect_peer(struct sluice_pd *pd)
{
    struct sluice_endpoint own, remote;
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);

    if (!prepared)
        return NULL;
    if (sluice_prepared_channel_endpoint(prepared, &own) || exchange(&own, &remote)) {
        sluice_prepared_channel_free(prepared);
        return NULL;
    }
    return sluice_prepared_channel_handshake(prepared, &remote);
}

int talk(struct sluice_channel *channel, struct sluice_pd *pd,
         const struct sluice_remote_mr *remote)
{
    struct sluice_mr *mr = sluice_mr_alloc(pd, 4096, SLUICE_ACCESS_LOCAL_WRITE);
    struct sluice_sge sge;
    struct sluice_remote_mr piece;
    int result;

    if (!mr)
        return -1;
    result = sluice_mr_sge(mr, 0, 64, &sge);
    if (!result)
        result = sluice_remote_mr_slice(remote, 0, 64, &piece);
    if (!result)
        result = sluice_channel_send(channel, &sge, 1, SLUICE_S(1));
    if (!result)
        result = sluice_channel_write(channel, &sge, 1, &piece, SLUICE_MS(500));
    sluice_mr_deregister(mr);
    return result;
}

struct sluice_channel *connect_again(struct sluice_channel *channel)
{
    struct sluice_endpoint own, remote;
    struct sluice_prepared_channel *prepared = sluice_channel_reset(channel);

    if (!prepared)
        return NULL;
    if (sluice_prepared_channel_endpoint(prepared, &own) || exchange(&own, &remote)) {
        sluice_prepared_channel_free(prepared);
        return NULL;
    }
    return sluice_prepared_channel_handshake(prepared, &remote);
}
