/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#include "wrong.h"

WRONG(barrier_after_close, "-Wuse-after-free", struct sluice_pd *pd,
      struct sluice_exchange *exchange)
{
    struct sluice_node *node = sluice_node_open(pd, exchange, NULL, SLUICE_S(1));
    sluice_node_close(node);
    return sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
}

WRONG(barrier_before_handshake, "-Wincompatible-pointer-types",
      struct sluice_prepared_node *prepared)
{
    return sluice_node_barrier(prepared, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
}

WRONG(forgotten_connect, "-Wanalyzer-malloc-leak", struct sluice_node *node)
{
    struct sluice_multichannel *more = sluice_node_multichannel_open(node, NULL, SLUICE_S(1));
    return sluice_multichannel_peer_state(more, 0);
}

WRONG(forgotten_prepared, "-Wanalyzer-malloc-leak", struct sluice_pd *pd,
      struct sluice_node_endpoint *endpoints)
{
    struct sluice_prepared_node *prepared = sluice_node_prepare(pd, 0, 2, NULL);
    return sluice_prepared_node_endpoints(prepared, endpoints, 2);
}

WRONG(forgotten, "-Wanalyzer-malloc-leak", struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    struct sluice_node *node = sluice_node_open(pd, exchange, NULL, SLUICE_S(1));
    return sluice_node_rank(node);
}

WRONG(free_prepared, "-Wmismatched-dealloc", struct sluice_pd *pd)
{
    free(sluice_node_prepare(pd, 0, 2, NULL));
}

WRONG(free, "-Wmismatched-dealloc", struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    free(sluice_node_open(pd, exchange, NULL, SLUICE_S(1)));
}

WRONG(ignored_barrier, "-Wunused-result", struct sluice_node *node)
{
    sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
}

WRONG(ignored_connect, "-Wunused-result", struct sluice_node *node)
{
    sluice_node_multichannel_open(node, NULL, SLUICE_S(1));
}

WRONG(ignored_open, "-Wunused-result", struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    sluice_node_open(pd, exchange, NULL, SLUICE_S(1));
}

WRONG(ignored_peer_reset, "-Wunused-result", struct sluice_node *node,
      struct sluice_node_endpoint *endpoint)
{
    sluice_node_peer_reset(node, 1, endpoint);
}

WRONG(second_handshake, "-Wuse-after-free", struct sluice_pd *pd,
      const struct sluice_node_endpoint *remotes)
{
    struct sluice_prepared_node *prepared = sluice_node_prepare(pd, 0, 2, NULL);
    struct sluice_node *one = sluice_prepared_node_handshake(prepared, remotes, 2);
    struct sluice_node *two = sluice_prepared_node_handshake(prepared, remotes, 2);
    sluice_node_close(one);
    sluice_node_close(two);
}
