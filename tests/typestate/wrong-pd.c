/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>
#include <sluice/verbs.h>

#include "wrong.h"

WRONG(forgotten, "-Wanalyzer-malloc-leak", struct sluice_context *context)
{
    struct sluice_pd *pd = sluice_pd_alloc(context);
    return pd != NULL;
}

WRONG(free_wrapped, "-Wmismatched-dealloc", struct sluice_context *context, struct ibv_pd *ibv)
{
    struct sluice_pd *pd = sluice_verbs_pd_wrap(context, ibv);
    free(pd);
}

WRONG(free, "-Wmismatched-dealloc", struct sluice_context *context)
{
    struct sluice_pd *pd = sluice_pd_alloc(context);
    free(pd);
}

WRONG(ignored, "-Wunused-result", struct sluice_context *context)
{
    sluice_pd_alloc(context);
}

WRONG(of_device_list, "-Wincompatible-pointer-types", struct sluice_device_list *list)
{
    return sluice_pd_alloc(list);
}

WRONG(prepare_after_free, "-Wuse-after-free", struct sluice_context *context)
{
    struct sluice_pd *pd = sluice_pd_alloc(context);
    sluice_pd_free(pd);
    return sluice_channel_prepare(pd, NULL);
}
