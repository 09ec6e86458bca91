/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <stddef.h>

#include <sluice.h>

int prepare_and_forget(struct sluice_pd *pd, struct sluice_node_endpoint *endpoints)
{
    struct sluice_prepared_node *prepared = sluice_node_prepare(pd, 0, 2, NULL);

    return sluice_prepared_node_endpoints(prepared, endpoints, 2);
}
