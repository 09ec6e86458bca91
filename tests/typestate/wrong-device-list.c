/* SPDX-License-Identifier: MIT */
#include <sluice.h>

#include "wrong.h"

WRONG(after_free, "-Wuse-after-free", void)
{
    struct sluice_device_list *list = sluice_device_list_get();
    sluice_device_list_free(list);
    return sluice_device_list_count(list);
}

WRONG(forgotten, "-Wanalyzer-malloc-leak", void)
{
    struct sluice_device_list *list = sluice_device_list_get();
    return sluice_device_list_count(list);
}

WRONG(ignored_nearest, "-Wunused-result", const struct sluice_device_list *list)
{
    sluice_device_list_nearest(list, 0);
}
