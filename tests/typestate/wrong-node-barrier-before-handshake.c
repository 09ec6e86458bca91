/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <stddef.h>

#include <sluice.h>

int wait_too_early(struct sluice_prepared_node *prepared)
{
    return sluice_node_barrier(prepared, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(1));
}
