/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stdlib.h>

#include <sluice.h>

void free_prepared(struct sluice_pd *pd)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);

    free(prepared);
}
