/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <sluice.h>

int alloc_and_forget(struct sluice_context *context)
{
    struct sluice_pd *pd = sluice_pd_alloc(context);

    return pd ? 0 : -1;
}
