/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void open_nothing(struct sluice_pd *pd, struct sluice_exchange *exchange)
{
    sluice_node_open(pd, exchange, NULL, SLUICE_S(1));
}
