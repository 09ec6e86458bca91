/* SPDX-License-Identifier: MIT */
/* The device list, as the transports fill it. */
#ifndef SLU_DEVICE_H
#define SLU_DEVICE_H

#include <sluice/device.h>

/* info.ports and info.gids count the two arrays. */
struct slu_device {
    struct sluice_device_info info;
    struct sluice_port_info *ports;
    struct sluice_gid_info *gids;
};

struct sluice_device_list {
    struct slu_device *devices;
    uint32_t count;
};

/*
 * Adds a device without ports and GIDs. The pointer is valid until the next device is added.
 * Returns NULL if there is no memory.
 */
struct slu_device *slu_device_add(struct sluice_device_list *list, const char *name,
                                  const char *transport);
/* Allocate the ports or GIDs of a device, and fill in size and the port numbers. */
int slu_device_add_ports(struct slu_device *device, uint32_t ports);
int slu_device_add_gids(struct slu_device *device, uint32_t gids);

#endif
