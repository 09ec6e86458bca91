/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stdlib.h>

#include <sluice.h>

void free_prepared(struct sluice_pd *pd)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);

    free(prepared);
}
