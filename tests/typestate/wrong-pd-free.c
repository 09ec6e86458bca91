/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stdlib.h>

#include <sluice.h>

void free_pd(struct sluice_context *context)
{
    struct sluice_pd *pd = sluice_pd_alloc(context);

    free(pd);
}
