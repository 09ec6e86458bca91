/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void alloc_nothing(struct sluice_pd *pd)
{
    sluice_mr_alloc(pd, 4096, SLUICE_ACCESS_LOCAL_WRITE);
}
