/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void reset_and_hope(struct sluice_node *node, struct sluice_node_endpoint *endpoint)
{
    sluice_node_peer_reset(node, 1, endpoint);
}
