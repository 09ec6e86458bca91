/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void prepare_nothing(struct sluice_pd *pd)
{
    sluice_channel_prepare(pd, NULL);
}
