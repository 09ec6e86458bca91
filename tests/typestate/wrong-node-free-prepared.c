/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

void free_prepared(struct sluice_pd *pd)
{
    free(sluice_node_prepare(pd, 0, 2, NULL));
}
