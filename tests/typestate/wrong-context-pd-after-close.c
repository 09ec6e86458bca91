/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <stddef.h>

#include <sluice.h>

struct sluice_pd *alloc_late(void)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);

    sluice_context_close(context);
    return sluice_pd_alloc(context);
}
