/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

struct sluice_prepared_channel *prepare_late(struct sluice_context *context)
{
    struct sluice_pd *pd = sluice_pd_alloc(context);

    sluice_pd_free(pd);
    return sluice_channel_prepare(pd, NULL);
}
