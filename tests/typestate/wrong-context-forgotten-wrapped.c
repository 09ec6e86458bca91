/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <stddef.h>

#include <sluice.h>
#include <sluice/verbs.h>

int wrap_and_forget(struct ibv_context *ibv, struct sluice_context_info *info)
{
    struct sluice_context *context = sluice_verbs_context_wrap(ibv, NULL);

    return sluice_context_query(context, info);
}
