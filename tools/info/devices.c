/* SPDX-License-Identifier: MIT */
/* Finds the devices through the library: its list, its choice, and their limits once opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

static void keep_error(char *text, size_t size)
{
    snprintf(text, size, "%s", sluice_last_error());
}

static void find_tables(const struct sluice_device_list *list, uint32_t index,
                        struct device *device)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < device->info.ports; i++) {
        device->ports = facts_grow(device->ports, &count, sizeof *device->ports);
        device->ports[i].size = sizeof device->ports[i];
        sluice_device_list_port(list, index, i + 1, &device->ports[i]);
    }
    count = 0;
    for (uint32_t i = 0; i < device->info.gids; i++) {
        device->gids = facts_grow(device->gids, &count, sizeof *device->gids);
        device->gids[i].size = sizeof device->gids[i];
        sluice_device_list_gid(list, index, i, &device->gids[i]);
    }
}

/* Finds the limits of a device by opening it, as a program would. */
static void find_limits(struct device *device)
{
    struct sluice_context *context;

    watch_step("opening a device");
    device->limits.size = sizeof device->limits;
    context = sluice_context_open(device->info.name, NULL);
    if (context == NULL || sluice_context_query(context, &device->limits) < 0)
        keep_error(device->limits_error, sizeof device->limits_error);
    sluice_context_close(context);
}

static void find_place(struct device *device)
{
    const char *name = device->info.name;

    file_link(device->driver, sizeof device->driver, "/sys/class/infiniband/%s/device/driver",
              name);
    if (device->info.numa_node >= 0)
        file_text(device->near_cpus, sizeof device->near_cpus,
                  "/sys/devices/system/node/node%d/cpulist", device->info.numa_node);
}

/* Returns whether the user has named a device; the library parses the names. */
static bool is_wanted(const struct facts *facts, const struct sluice_device_list *list,
                      uint32_t index)
{
    struct sluice_choice_info choice = {.size = sizeof choice};

    return facts->options->device == NULL ||
           sluice_device_list_choice(list, index, facts->options->device, &choice) < 0 ||
           choice.verdict != SLUICE_CHOICE_NOT_NAMED;
}

static void find_device(struct facts *facts, const struct sluice_device_list *list, uint32_t index)
{
    struct device *device;

    facts->devices = facts_grow(facts->devices, &facts->device_count, sizeof *facts->devices);
    device = &facts->devices[facts->device_count - 1];
    device->info.size = sizeof device->info;
    device->choice.size = sizeof device->choice;
    if (sluice_device_list_info(list, index, &device->info) < 0)
        keep_error(facts->devices_error, sizeof facts->devices_error);
    if (sluice_device_list_choice(list, index, facts->options->device, &device->choice) < 0)
        keep_error(facts->choice_error, sizeof facts->choice_error);
    find_tables(list, index, device);
    find_place(device);
    if (is_wanted(facts, list, index))
        find_limits(device);
}

/* Finds the devices that the first local ranks would open. */
static void find_ranks(struct facts *facts, const struct sluice_device_list *list)
{
    for (uint32_t rank = 0; rank < INFO_RANKS; rank++) {
        int index = sluice_device_list_nearest(list, rank);

        if (index < 0)
            return;
        facts->by_rank[facts->by_rank_count++] = (uint32_t)index;
    }
}

void devices_find(struct facts *facts)
{
    struct sluice_device_list *list;

    watch_step("listing the devices");
    list = sluice_device_list_get();
    if (list == NULL) {
        keep_error(facts->devices_error, sizeof facts->devices_error);
        return;
    }
    for (uint32_t i = 0; i < sluice_device_list_count(list); i++)
        find_device(facts, list, i);
    if (facts->options->device == NULL)
        find_ranks(facts, list);
    sluice_device_list_free(list);
}
