/* SPDX-License-Identifier: MIT */
#include <sluice.h>

#ifdef AFTER_FREE /* expect: -Wuse-after-free */
uint32_t count_late(void)
{
    struct sluice_device_list *list = sluice_device_list_get();

    sluice_device_list_free(list);
    return sluice_device_list_count(list);
}
#endif

#ifdef FORGOTTEN /* expect: -Wanalyzer-malloc-leak */
uint32_t count_and_forget(void)
{
    struct sluice_device_list *list = sluice_device_list_get();

    return sluice_device_list_count(list);
}
#endif

#ifdef IGNORED_NEAREST /* expect: -Wunused-result */
void look_away(const struct sluice_device_list *list)
{
    sluice_device_list_nearest(list, 0);
}
#endif
