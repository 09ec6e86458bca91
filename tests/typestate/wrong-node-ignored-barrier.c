/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void wait_and_hope(struct sluice_node *node)
{
    sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
}
