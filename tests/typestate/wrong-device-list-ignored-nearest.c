/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void look_away(const struct sluice_device_list *list)
{
    sluice_device_list_nearest(list, 0);
}
