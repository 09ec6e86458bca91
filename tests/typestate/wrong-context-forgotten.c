/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <stddef.h>

#include <sluice.h>

int open_and_forget(struct sluice_context_info *info)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);

    return sluice_context_query(context, info);
}
