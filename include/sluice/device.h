/* SPDX-License-Identifier: MIT */
/*
 * Devices: what a context can be opened on. The RDMA devices of the host come
 * first, then "soft", which is always there.
 */
#ifndef SLUICE_DEVICE_H
#define SLUICE_DEVICE_H

#include <stdint.h>

#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_device_list;

/* What carries the bytes, in ascending order of nearness. */
enum sluice_transport_level {
    SLUICE_LEVEL_TCP = 1,   /* sockets */
    SLUICE_LEVEL_NIC = 2,   /* an RDMA device */
    SLUICE_LEVEL_MEMORY = 3 /* memory of this host */
};

struct sluice_device_info {
    uint32_t size;        /* set to sizeof(struct sluice_device_info) by the caller */
    uint32_t active;      /* 1: a port is active and the device can be used; else 0 */
    uint32_t ports;       /* physical ports; 1 for soft */
    uint32_t level;       /* enum sluice_transport_level; the lowest it may use */
    char name[64];        /* what sluice_context_open() takes, such as "mlx5_0" */
    char transport[16];   /* "verbs" or "soft" */
    char description[96]; /* one line for people: port, state, address */
};

SLUICE_EXPORT void sluice_device_list_free(struct sluice_device_list *list);

/*
 * Takes a snapshot of the devices. NULL and errno (ENOMEM) on failure. A host
 * without RDMA devices is no failure: the list then holds "soft" alone.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_device_list_free)
struct sluice_device_list *sluice_device_list_get(void);

/* Number of devices, at least 1. */
SLUICE_EXPORT uint32_t sluice_device_list_count(const struct sluice_device_list *list);

/*
 * Describes the device at the index, 0 to count - 1. Set info->size first.
 * -ERANGE: no such index. -EINVAL: NULL argument or wrong size.
 */
SLUICE_EXPORT int sluice_device_list_info(const struct sluice_device_list *list, uint32_t index,
                                          struct sluice_device_info *info);

#ifdef __cplusplus
}
#endif

#endif
