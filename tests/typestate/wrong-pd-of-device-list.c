/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <sluice.h>

struct sluice_pd *alloc_of_list(struct sluice_device_list *list)
{
    return sluice_pd_alloc(list);
}
