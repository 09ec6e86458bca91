/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#include "wrong.h"

WRONG(endpoint_after_handshake, "-Wuse-after-free", struct sluice_pd *pd,
      const struct sluice_endpoint *remote, struct sluice_endpoint *own)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);
    int result = sluice_prepared_channel_endpoint(prepared, own);
    sluice_channel_close(channel);
    return result;
}

WRONG(forgotten_prepared, "-Wanalyzer-malloc-leak", struct sluice_pd *pd,
      struct sluice_endpoint *endpoint)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    return sluice_prepared_channel_endpoint(prepared, endpoint);
}

WRONG(forgotten, "-Wanalyzer-malloc-leak", struct sluice_prepared_channel *prepared,
      const struct sluice_endpoint *remote)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);
    return sluice_channel_state(channel);
}

WRONG(free_prepared, "-Wmismatched-dealloc", struct sluice_pd *pd)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    free(prepared);
}

WRONG(free, "-Wmismatched-dealloc", struct sluice_prepared_channel *prepared,
      const struct sluice_endpoint *remote)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);
    free(channel);
}

WRONG(handshake_after_free, "-Wuse-after-free", struct sluice_pd *pd,
      const struct sluice_endpoint *remote)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    sluice_prepared_channel_free(prepared);
    return sluice_prepared_channel_handshake(prepared, remote);
}

WRONG(handshake_again, "-Wincompatible-pointer-types", struct sluice_channel *channel,
      const struct sluice_endpoint *remote)
{
    return sluice_prepared_channel_handshake(channel, remote);
}

/* If it failed, the memory is still in use. */
WRONG(ignored_cancel, "-Wunused-result", struct sluice_channel *channel,
      const struct sluice_handle *handle)
{
    struct sluice_completion completion;
    sluice_channel_cancel(channel, handle, &completion);
}

/* If it timed out, the memory is still in use. */
WRONG(ignored_flush, "-Wunused-result", struct sluice_channel *channel)
{
    sluice_channel_flush(channel, SLUICE_S(1));
}

WRONG(ignored_handshake, "-Wunused-result", struct sluice_prepared_channel *prepared,
      const struct sluice_endpoint *remote)
{
    sluice_prepared_channel_handshake(prepared, remote);
}

WRONG(ignored_post, "-Wunused-result", struct sluice_channel *channel,
      const struct sluice_request *request)
{
    sluice_channel_post(channel, request, 1, SLUICE_S(1), NULL);
}

WRONG(ignored_prepare, "-Wunused-result", struct sluice_pd *pd)
{
    sluice_channel_prepare(pd, NULL);
}

/* Ignores that it may not have been posted at all. */
WRONG(ignored_post_send, "-Wunused-result", struct sluice_channel *channel,
      const struct sluice_sge *sge)
{
    sluice_channel_post_send(channel, sge, 1, SLUICE_S(1), NULL);
}

WRONG(ignored_send, "-Wunused-result", struct sluice_channel *channel, const struct sluice_sge *sge)
{
    sluice_channel_send(channel, sge, 1, SLUICE_S(1));
}

WRONG(second_handshake, "-Wuse-after-free", struct sluice_pd *pd,
      const struct sluice_endpoint *remote)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_channel *one = sluice_prepared_channel_handshake(prepared, remote);
    struct sluice_channel *two = sluice_prepared_channel_handshake(prepared, remote);
    sluice_channel_close(one);
    sluice_channel_close(two);
}

WRONG(send_after_close, "-Wuse-after-free", struct sluice_prepared_channel *prepared,
      const struct sluice_endpoint *remote, const struct sluice_sge *sge)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);
    sluice_channel_close(channel);
    return sluice_channel_send(channel, sge, 1, SLUICE_S(1));
}

WRONG(send_after_reset, "-Wuse-after-free", struct sluice_prepared_channel *prepared,
      const struct sluice_endpoint *remote, const struct sluice_sge *sge)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);
    struct sluice_prepared_channel *again = sluice_channel_reset(channel);
    int result = sluice_channel_send(channel, sge, 1, SLUICE_S(1));
    sluice_prepared_channel_free(again);
    return result;
}

WRONG(send_before_handshake, "-Wincompatible-pointer-types",
      struct sluice_prepared_channel *prepared, const struct sluice_sge *sge)
{
    return sluice_channel_send(prepared, sge, 1, SLUICE_S(1));
}
