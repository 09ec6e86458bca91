/* SPDX-License-Identifier: MIT */
/* The device list: a snapshot of what the transports offer. */
#include "config.h"

#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "transport/transport.h"

struct slu_device *slu_device_add(struct sluice_device_list *list, const char *name,
                                  const char *transport)
{
    struct slu_device *grown = realloc(list->devices, (list->count + 1) * sizeof *grown);
    struct slu_device *device;

    if (grown == NULL)
        return slu_fail_null(ENOMEM, "no memory for a list of %u devices", list->count + 1);
    list->devices = grown;
    device = &grown[list->count++];
    *device = (struct slu_device){.info = {.size = sizeof device->info, .numa_node = -1}};
    snprintf(device->info.name, sizeof device->info.name, "%s", name);
    snprintf(device->info.transport, sizeof device->info.transport, "%s", transport);
    return device;
}

int slu_device_add_ports(struct slu_device *device, uint32_t ports)
{
    if (ports == 0)
        return 0;
    device->ports = calloc(ports, sizeof *device->ports);
    if (device->ports == NULL)
        return slu_fail(ENOMEM, "no memory for the %u ports of %s", ports, device->info.name);
    device->info.ports = ports;
    for (uint32_t i = 0; i < ports; i++) {
        device->ports[i].size = sizeof device->ports[i];
        device->ports[i].port = i + 1;
    }
    return 0;
}

int slu_device_add_gids(struct slu_device *device, uint32_t gids)
{
    if (gids == 0)
        return 0;
    device->gids = calloc(gids, sizeof *device->gids);
    if (device->gids == NULL)
        return slu_fail(ENOMEM, "no memory for the %u GIDs of %s", gids, device->info.name);
    device->info.gids = gids;
    for (uint32_t i = 0; i < gids; i++)
        device->gids[i].size = sizeof device->gids[i];
    return 0;
}

struct sluice_device_list *sluice_device_list_get(void)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_device_list *list = calloc(1, sizeof *list);
    int error = 0;

    if (list == NULL)
        return slu_fail_null(ENOMEM, "no memory for a device list");
    for (uint32_t i = 0; i < slu_transport_count && error == 0; i++)
        error = slu_transports[i]->device_list(list);
    if (error < 0) {
        sluice_device_list_free(list);
        return slu_none(error);
    }
    slu_made();
    return list;
}

void sluice_device_list_free(struct sluice_device_list *list)
{
    SLU_UNCANCELLED_BLOCK;
    if (list == NULL)
        return;
    for (uint32_t i = 0; i < list->count; i++) {
        free(list->devices[i].ports);
        free(list->devices[i].gids);
    }
    free(list->devices);
    free(list);
}

static int not_a_list(const struct sluice_device_list *list)
{
    return slu_misuse(EINVAL, "device list must not be NULL%s", slu_none_hint(list));
}

uint32_t sluice_device_list_count(const struct sluice_device_list *list)
{
    if (list != NULL)
        return list->count;
    not_a_list(list);
    return 0;
}

static int find_device(const struct sluice_device_list *list, uint32_t index,
                       const struct slu_device **device)
{
    if (list == NULL)
        return not_a_list(list);
    if (index >= list->count)
        return slu_fail(ERANGE, "device index %u is not in 0..%u", index, list->count - 1);
    *device = &list->devices[index];
    return 0;
}

int sluice_device_list_info(const struct sluice_device_list *list, uint32_t index,
                            struct sluice_device_info *info)
{
    const struct slu_device *device = NULL;
    int error = SLU_INFO_CHECK(sluice_device_info, info);

    if (error == 0)
        error = find_device(list, index, &device);
    if (error < 0)
        return error;
    slu_info_copy(info, &device->info, sizeof *info);
    return 0;
}

int sluice_device_list_port(const struct sluice_device_list *list, uint32_t index, uint32_t port,
                            struct sluice_port_info *info)
{
    const struct slu_device *device = NULL;
    int error = SLU_INFO_CHECK(sluice_port_info, info);

    if (error == 0)
        error = find_device(list, index, &device);
    if (error < 0)
        return error;
    if (port == 0 || port > device->info.ports)
        return slu_fail(ERANGE, "%s has no port %u, it has %u", device->info.name, port,
                        device->info.ports);
    slu_info_copy(info, &device->ports[port - 1], sizeof *info);
    return 0;
}

int sluice_device_list_gid(const struct sluice_device_list *list, uint32_t index, uint32_t entry,
                           struct sluice_gid_info *info)
{
    const struct slu_device *device = NULL;
    int error = SLU_INFO_CHECK(sluice_gid_info, info);

    if (error == 0)
        error = find_device(list, index, &device);
    if (error < 0)
        return error;
    if (entry >= device->info.gids)
        return slu_fail(ERANGE, "%s has no GID entry %u, it has %u", device->info.name, entry,
                        device->info.gids);
    slu_info_copy(info, &device->gids[entry], sizeof *info);
    return 0;
}
