/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

int wait_for_nobody(struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    struct sluice_node *node = sluice_node_open(pd, exchange, NULL, SLUICE_S(1));

    sluice_node_close(node);
    return sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
}
