/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

void free_node(struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    free(sluice_node_open(pd, exchange, NULL, SLUICE_S(1)));
}
