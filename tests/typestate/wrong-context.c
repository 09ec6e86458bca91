/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>
#include <sluice/verbs.h>

#include "wrong.h"

WRONG(forgotten_wrapped, "-Wanalyzer-malloc-leak", struct ibv_context *ibv,
      struct sluice_context_info *info)
{
    struct sluice_context *context = sluice_verbs_context_wrap(ibv, NULL);
    return sluice_context_query(context, info);
}

WRONG(forgotten, "-Wanalyzer-malloc-leak", struct sluice_context_info *info)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    return sluice_context_query(context, info);
}

WRONG(free, "-Wmismatched-dealloc", void)
{
    struct sluice_context *context = sluice_context_open("soft", NULL);
    free(context);
}

WRONG(ignored, "-Wunused-result", void)
{
    sluice_context_open("soft", NULL);
}

WRONG(pd_after_close, "-Wuse-after-free", void)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    sluice_context_close(context);
    return sluice_pd_alloc(context);
}
