/* SPDX-License-Identifier: MIT */
/* expect: -Wuse-after-free */
#include <sluice.h>

uint32_t count_late(void)
{
    struct sluice_device_list *list = sluice_device_list_get();

    sluice_device_list_free(list);
    return sluice_device_list_count(list);
}
