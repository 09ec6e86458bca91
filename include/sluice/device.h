/* SPDX-License-Identifier: MIT */
/*
 * Devices on which a context can be opened. The RDMA devices of the host come first, then "soft",
 * which always exists.
 *
 * A list is a snapshot of devices, their ports and their GIDs. A list holds no device open. Any
 * thread may read it.
 */
#ifndef SLUICE_DEVICE_H
#define SLUICE_DEVICE_H

#include <stdint.h>

#include <sluice/context.h>
#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_device_list;

/*
 * The medium that carries the bytes, in ascending order of nearness. The numbers leave room for
 * others between them.
 */
enum sluice_transport_level {
    SLUICE_LEVEL_TCP = 16,   /* sockets */
    SLUICE_LEVEL_NIC = 32,   /* an RDMA device */
    SLUICE_LEVEL_MEMORY = 48 /* memory of this host */
};

/* Logical state of a port. */
enum sluice_port_state {
    SLUICE_PORT_UNKNOWN = 0, /* it cannot be queried */
    SLUICE_PORT_DOWN = 1,
    SLUICE_PORT_INIT = 2,        /* no subnet manager has configured it yet */
    SLUICE_PORT_ARMED = 3,       /* configured, and not active yet */
    SLUICE_PORT_ACTIVE = 4,      /* it carries data */
    SLUICE_PORT_ACTIVE_DEFER = 5 /* it was active, and its link is recovering */
};

/* Kind of an entry of the GID table, which says how packets with it look. */
enum sluice_gid_type {
    SLUICE_GID_INFINIBAND = 1,
    SLUICE_GID_ROCE_V1 = 2, /* Ethernet frames: within one segment */
    SLUICE_GID_ROCE_V2 = 3  /* UDP: routable */
};

struct sluice_device_info {
    uint32_t size;         /* set to sizeof(struct sluice_device_info) by the caller */
    uint32_t active;       /* 1: it has an active port that can be used; else 0 */
    uint32_t ports;        /* physical ports; 1 for soft; 0: not known */
    uint32_t gids;         /* entries of the GID tables of all ports; 0 for soft */
    uint32_t level;        /* enum sluice_transport_level; the lowest that it may use */
    int32_t numa_node;     /* NUMA node it is attached to; -1: none, or not known */
    uint32_t vendor_id;    /* of the vendor, as assigned by IEEE or PCI; 0: not known */
    uint32_t vendor_part;  /* part number of the vendor */
    uint64_t guid;         /* node GUID in host byte order; 0: none */
    char name[64];         /* name for sluice_context_open(), such as "mlx5_0" */
    char transport[16];    /* "verbs" or "soft" */
    char firmware[64];     /* version; empty: none, or not known */
    char description[128]; /* one line for people: port, state, address, or what is wrong */
};

struct sluice_port_info {
    uint32_t size;         /* set to sizeof(struct sluice_port_info) by the caller */
    uint32_t port;         /* its number, from 1 */
    uint32_t state;        /* enum sluice_port_state */
    uint32_t active;       /* 1: it is active, has an address and is not iWARP; else 0 */
    uint32_t link_layer;   /* enum sluice_link_layer of context.h */
    uint32_t lid;          /* InfiniBand: local identifier; else 0 */
    uint32_t sm_lid;       /* InfiniBand: that of the subnet manager; else 0 */
    uint32_t mtu;          /* largest packet payload now, bytes; 0: soft, or not known */
    uint32_t max_mtu;      /* largest the port is capable of; 0: soft, or not known */
    uint32_t width;        /* lanes; 0: not known */
    uint32_t speed;        /* signalling rate of all lanes together, Mbit/s; 0: not known */
    uint32_t gid_table;    /* entries the GID table has room for */
    uint32_t pkey_table;   /* entries the partition key table has room for */
    uint32_t reserved;     /* 0 */
    uint64_t max_message;  /* largest message, bytes; 0: not known */
    char description[128]; /* one line for people: state, link layer, address, or what is wrong */
};

struct sluice_gid_info {
    uint32_t size;      /* set to sizeof(struct sluice_gid_info) by the caller */
    uint32_t port;      /* the port it belongs to */
    uint32_t index;     /* its place in the table of that port */
    uint32_t type;      /* enum sluice_gid_type */
    uint32_t chosen;    /* 1: the library uses this entry of the port by default; else 0 */
    uint8_t gid[16];    /* as on the wire; a RoCE v2 address over IPv4 is IPv4-mapped */
    char interface[16]; /* network interface, such as "eth0"; empty: none, or not known */
    char text[64];      /* for people, such as "RoCE v2 192.0.2.1" */
};

/* Result of a device in a choice. */
enum sluice_choice_verdict {
    SLUICE_CHOICE_TAKEN = 1,
    SLUICE_CHOICE_OTHER_RANK = 2,  /* as near as the device taken, but used by other local ranks */
    SLUICE_CHOICE_FARTHER = 3,     /* farther than the device taken, or soft beside RDMA devices */
    SLUICE_CHOICE_NOT_ACTIVE = 4,  /* the device, or the port that was named, cannot be used now */
    SLUICE_CHOICE_LAST_RESORT = 5, /* soft, where an RDMA device is active */
    SLUICE_CHOICE_NOT_NAMED = 6    /* others are named */
};

struct sluice_choice_info {
    uint32_t size;     /* set to sizeof(struct sluice_choice_info) by the caller */
    uint32_t verdict;  /* enum sluice_choice_verdict */
    uint32_t port;     /* port that is named with the device; 0: none, the first active one */
    uint32_t distance; /* NUMA distance from the thread's CPUs, 10 is next to them; 0: not known */
    uint32_t place;    /* if it is taken: its number, from 1, among equals; else 0 */
    uint32_t equals;   /* if it is taken: number of devices that are as near; else 0 */
    uint32_t local_rank;  /* local rank of the choice; also 0 if one device is named */
    uint32_t reserved;    /* 0 */
    char source[32];      /* source of the names: "the caller", "SLUICE_DEVICE", "preference" */
    char rank_source[64]; /* variable that has the local rank; empty: there is none */
    char reason[192];     /* one line for people: why it is taken, or why it is not */
};

SLUICE_EXPORT void sluice_device_list_free(struct sluice_device_list *list);

/*
 * Takes a snapshot of the devices. NULL and errno on failure: ENOMEM; EMFILE or ENFILE (too few
 * file descriptors are left to look for devices). On a host without RDMA devices the call succeeds,
 * and the list has only "soft".
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_device_list_free)
struct sluice_device_list *sluice_device_list_get(void);

/* Returns the number of devices, at least 1; 0: list is NULL, which is misuse. */
SLUICE_EXPORT uint32_t sluice_device_list_count(const struct sluice_device_list *list);

/*
 * Describes the device at the index, 0 to count - 1. Set info->size first (see
 * sluice(7)). -ERANGE: no such index. -EINVAL: NULL argument or too small a size.
 * -E2BIG: a size above 4096.
 */
SLUICE_EXPORT int sluice_device_list_info(const struct sluice_device_list *list, uint32_t index,
                                          struct sluice_device_info *info);

/*
 * Returns the index of the device that the process of this local rank should take; the first
 * process of a host has local rank 0. It is the device that sluice_context_open() takes without a
 * name for that local rank. The choice is among the devices of SLUICE_DEVICE, if it is set. The
 * active devices nearest to the CPUs that the calling thread may run on are assigned to local ranks
 * in turn. The port that SLUICE_DEVICE names is not returned. -EINVAL: list is NULL, or
 * SLUICE_DEVICE is invalid; -ENODEV: it names no device of the list; -ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_device_list_nearest(const struct sluice_device_list *list,
                                                              uint32_t local_rank);

/*
 * Describes whether sluice_context_open() would take the device at the index, and why or why not.
 * device is NULL, a name, or a list of names, as for that call, without a port in its attributes.
 * The choice is made on the list, by the same rules; nothing is opened or logged. Set info->size
 * first. -EINVAL: list or info is NULL, too small a size; device, SLUICE_DEVICE or the local rank
 * of the environment is invalid, as the text says; -E2BIG: a size above 4096; -ERANGE: no such
 * index; -ENODEV: no device that is named is in the list; -ENOMEM.
 */
SLUICE_EXPORT int sluice_device_list_choice(const struct sluice_device_list *list, uint32_t index,
                                            const char *device, struct sluice_choice_info *info);

/*
 * Describes a port, 1 to sluice_device_info.ports, of the device at the index.
 * Errors as sluice_device_list_info().
 */
SLUICE_EXPORT int sluice_device_list_port(const struct sluice_device_list *list, uint32_t index,
                                          uint32_t port, struct sluice_port_info *info);

/*
 * Describes an entry, 0 to sluice_device_info.gids - 1, of the GID tables of the device at the
 * index. Only entries in use count, ordered by port and then by place. Errors as
 * sluice_device_list_info().
 */
SLUICE_EXPORT int sluice_device_list_gid(const struct sluice_device_list *list, uint32_t index,
                                         uint32_t entry, struct sluice_gid_info *info);

#ifdef __cplusplus
}
#endif

#endif
