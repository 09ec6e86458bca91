/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stdlib.h>

#include <sluice.h>
#include <sluice/verbs.h>

void free_pd(struct sluice_context *context, struct ibv_pd *ibv)
{
    struct sluice_pd *pd = sluice_verbs_pd_wrap(context, ibv);

    free(pd);
}
