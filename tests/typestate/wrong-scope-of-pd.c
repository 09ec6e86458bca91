/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <sluice.h>

struct sluice_scope *begin_on_pd(struct sluice_pd *pd)
{
    return sluice_channel_scope_begin(pd, SLUICE_S(1));
}
