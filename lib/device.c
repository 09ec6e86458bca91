/* SPDX-License-Identifier: MIT */
/* The device list: a snapshot of what the transports offer. */
#include "config.h"

#include <stdlib.h>

#include <sluice/device.h>

#include "internal.h"

struct sluice_device_list {
    struct sluice_device_info *infos;
    uint32_t count;
};

struct sluice_device_list *sluice_device_list_get(void)
{
    struct sluice_device_list *list = calloc(1, sizeof *list);
    int error = 0;

    if (list == NULL)
        return slu_fail_null(ENOMEM, "no memory for a device list");
    for (uint32_t i = 0; i < slu_transport_count && error == 0; i++)
        error = slu_transports[i]->device_list(&list->infos, &list->count);
    if (error < 0) {
        sluice_device_list_free(list);
        errno = -error;
        return NULL;
    }
    return list;
}

void sluice_device_list_free(struct sluice_device_list *list)
{
    if (list == NULL)
        return;
    free(list->infos);
    free(list);
}

uint32_t sluice_device_list_count(const struct sluice_device_list *list)
{
    return list == NULL ? 0 : list->count;
}

int sluice_device_list_info(const struct sluice_device_list *list, uint32_t index,
                            struct sluice_device_info *info)
{
    if (list == NULL || info == NULL)
        return slu_fail(EINVAL, "device list and info must not be NULL");
    if (info->size != sizeof *info)
        return slu_fail(EINVAL, "sluice_device_info.size is %u, must be %zu", info->size,
                        sizeof *info);
    if (index >= list->count)
        return slu_fail(ERANGE, "device index %u is not in 0..%u", index, list->count - 1);
    *info = list->infos[index];
    info->size = sizeof *info;
    return 0;
}
