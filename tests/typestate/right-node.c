/* SPDX-License-Identifier: MIT */
/* The life of a node, as it should be. */
#include <stddef.h>

#include <sluice.h>

int trade(const struct sluice_node_endpoint *own, struct sluice_node_endpoint *remotes);
struct sluice_node *connect_ranks(struct sluice_pd *pd, uint32_t rank);
int mend(struct sluice_node *node, struct sluice_exchange *exchange);
int work(struct sluice_pd *pd, struct sluice_exchange *exchange);

struct sluice_node *connect_ranks(struct sluice_pd *pd, uint32_t rank)
{
    struct sluice_node_endpoint own[2], remotes[2];
    struct sluice_prepared_node *prepared = sluice_node_prepare(pd, rank, 2, NULL);

    if (!prepared)
        return NULL;
    if (sluice_prepared_node_endpoints(prepared, own, 2) || trade(own, remotes)) {
        sluice_prepared_node_free(prepared);
        return NULL;
    }
    return sluice_prepared_node_handshake(prepared, remotes, 2);
}

int mend(struct sluice_node *node, struct sluice_exchange *exchange)
{
    int result = sluice_node_barrier_reset(node);

    return result ? result : sluice_exchange_barrier(exchange, SLUICE_S(1));
}

int work(struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    struct sluice_node *node = sluice_node_open(pd, exchange, NULL, SLUICE_S(1));
    int result;

    if (!node)
        return -1;
    result = sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
    if (result)
        result = mend(node, exchange);
    if (!result)
        result = sluice_node_shutdown(node, SLUICE_S(1));
    sluice_node_close(node);
    return result;
}
