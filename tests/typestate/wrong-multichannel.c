/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#include "wrong.h"

WRONG(forgotten_prepared, "-Wanalyzer-malloc-leak", struct sluice_pd *pd,
      struct sluice_endpoint *endpoints)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);
    return sluice_prepared_multichannel_endpoints(prepared, endpoints, 2);
}

WRONG(forgotten, "-Wanalyzer-malloc-leak", struct sluice_prepared_multichannel *prepared,
      const struct sluice_endpoint *remotes)
{
    struct sluice_multichannel *mc = sluice_prepared_multichannel_handshake(prepared, remotes, 2);
    return sluice_multichannel_peer_state(mc, 1);
}

WRONG(free_prepared, "-Wmismatched-dealloc", struct sluice_pd *pd)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);
    free(prepared);
}

WRONG(free, "-Wmismatched-dealloc", struct sluice_prepared_multichannel *prepared,
      const struct sluice_endpoint *remotes)
{
    struct sluice_multichannel *mc = sluice_prepared_multichannel_handshake(prepared, remotes, 2);
    free(mc);
}

WRONG(gather_after_close, "-Wuse-after-free", struct sluice_prepared_multichannel *prepared,
      const struct sluice_endpoint *remotes, const struct sluice_request *requests)
{
    struct sluice_multichannel *mc = sluice_prepared_multichannel_handshake(prepared, remotes, 2);
    sluice_multichannel_close(mc);
    return sluice_multichannel_gather_receive(mc, requests, 2, SLUICE_S(1), NULL);
}

WRONG(ignored_peer_add, "-Wunused-result", struct sluice_multichannel *mc,
      struct sluice_endpoint *endpoint)
{
    sluice_multichannel_peer_add(mc, endpoint);
}

WRONG(ignored_peer_remove, "-Wunused-result", struct sluice_multichannel *mc)
{
    sluice_multichannel_peer_remove(mc, 1);
}

WRONG(ignored_peer_reset, "-Wunused-result", struct sluice_multichannel *mc,
      struct sluice_endpoint *endpoint)
{
    sluice_multichannel_peer_reset(mc, 1, endpoint);
}

WRONG(ignored_prepare, "-Wunused-result", struct sluice_pd *pd)
{
    sluice_multichannel_prepare(pd, 2, NULL);
}

WRONG(ignored_scatter_gather, "-Wunused-result", struct sluice_multichannel *mc,
      const struct sluice_request *sends, const struct sluice_request *receives)
{
    sluice_multichannel_scatter_gather(mc, sends, 2, receives, 2, SLUICE_S(1), NULL);
}

/* Ignores how many were posted, and so takes the rest for posted, too. */
WRONG(ignored_scatter_posted, "-Wunused-result", struct sluice_multichannel *multichannel,
      const struct sluice_request *requests, uint32_t count)
{
    sluice_multichannel_post_scatter_send(multichannel, requests, count, SLUICE_S(1), NULL);
}

WRONG(scatter_before_handshake, "-Wincompatible-pointer-types",
      struct sluice_prepared_multichannel *prepared, const struct sluice_request *requests)
{
    return sluice_multichannel_scatter_send(prepared, requests, 2, SLUICE_S(1), NULL);
}

WRONG(second_handshake, "-Wuse-after-free", struct sluice_pd *pd,
      const struct sluice_endpoint *remotes)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);
    struct sluice_multichannel *one = sluice_prepared_multichannel_handshake(prepared, remotes, 2);
    struct sluice_multichannel *two = sluice_prepared_multichannel_handshake(prepared, remotes, 2);
    sluice_multichannel_close(one);
    sluice_multichannel_close(two);
}
