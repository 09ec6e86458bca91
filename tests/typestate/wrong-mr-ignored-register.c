/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void register_nothing(struct sluice_pd *pd, void *buffer)
{
    sluice_mr_register(pd, buffer, 4096, SLUICE_ACCESS_LOCAL_WRITE);
}
