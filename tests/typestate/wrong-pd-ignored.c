/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void alloc_nothing(struct sluice_context *context)
{
    sluice_pd_alloc(context);
}
