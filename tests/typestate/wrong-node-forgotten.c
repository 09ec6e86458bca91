/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <stddef.h>

#include <sluice.h>

int64_t open_and_forget(struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    struct sluice_node *node = sluice_node_open(pd, exchange, NULL, SLUICE_S(1));

    return sluice_node_rank(node);
}
