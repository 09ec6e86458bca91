/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <sluice.h>

uint32_t count_and_forget(void)
{
    struct sluice_device_list *list = sluice_device_list_get();

    return sluice_device_list_count(list);
}
