/* SPDX-License-Identifier: MIT */
/*
 * A context: one opened device. Any thread may call these. Children (protection domains, and
 * through them all other objects) keep the device open: objects may be closed in any order, and the
 * device is closed with its last child.
 */
#ifndef SLUICE_CONTEXT_H
#define SLUICE_CONTEXT_H

#include <stdint.h>

#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_context;

/* Flags of a context. */
#define SLUICE_CONTEXT_GID_INDEX (UINT32_C(1) << 0) /* gid_index is given */
#define SLUICE_CONTEXT_FORK (UINT32_C(1) << 1)      /* verbs: fork(2) is made safe */

/* Zero, or a NULL pointer, means the default. */
struct sluice_context_attr {
    uint32_t size;       /* set to sizeof(struct sluice_context_attr) */
    uint32_t flags;      /* SLUICE_CONTEXT_* */
    uint32_t port;       /* verbs: port number, 1 to the device's count; 0: first active */
    uint32_t gid_index;  /* verbs: entry of the port's GID table, if SLUICE_CONTEXT_GID_INDEX is
                            set; 0..255; else the best entry, chosen anew for each connection */
    const char *address; /* soft: numeric IP address to listen on; NULL: SLUICE_TCP_ADDRESS
                            of the environment, else every address of the host */
};

enum sluice_link_layer {
    SLUICE_LINK_NONE = 0, /* soft */
    SLUICE_LINK_INFINIBAND = 1,
    SLUICE_LINK_ETHERNET = 2, /* RoCE */
    SLUICE_LINK_IWARP = 3     /* Ethernet, too, but connections are made over rdma_cm alone */
};

/*
 * Accesses against which an atomic operation of a peer is atomic; each level includes the one
 * before.
 */
enum sluice_atomics {
    SLUICE_ATOMICS_NONE = 0,   /* the device has no atomic operations */
    SLUICE_ATOMICS_DEVICE = 1, /* other operations through this device */
    SLUICE_ATOMICS_GLOBAL = 2  /* and accesses by processors and other devices */
};

/* On verbs, port and the fields after it have the values from when the context was opened. */
struct sluice_context_info {
    uint32_t size;              /* set to sizeof(struct sluice_context_info) by the caller */
    uint32_t level;             /* enum sluice_transport_level; the lowest it may use */
    uint32_t max_send_depth;    /* largest send_depth of a channel, in requests */
    uint32_t max_receive_depth; /* largest receive_depth of a channel, in requests */
    uint32_t max_sge;           /* largest number of SGEs of a request */
    uint32_t max_inline;        /* largest max_inline of a channel, in bytes */
    uint32_t max_read_depth;    /* largest number of reads and atomics in flight on a channel */
    uint32_t port;              /* port in use; 0: soft */
    uint32_t link_layer;        /* enum sluice_link_layer */
    uint32_t active_mtu;        /* of the port, in bytes: largest path_mtu; 0: soft */
    int32_t gid_index;          /* of the GID that channels use if they need one; -1: none */
    int32_t numa_node;          /* NUMA node that the device is attached to; -1: not known */
    uint32_t atomics;           /* enum sluice_atomics */
    uint32_t max_read_sge;      /* largest number of SGEs of a read; at most max_sge */
    uint64_t max_message;       /* largest message of a send, in bytes */
    char device[64];            /* name of the device */
    char transport[16];         /* "verbs" or "soft" */
    uint64_t max_region;        /* largest memory region, in bytes; 0: the device sets none */
    uint32_t max_channels;      /* peers of all programs of the device together; 0: the device sets
                                   no limit */
    uint32_t max_regions;       /* memory regions of all programs; 0: the device sets no limit */
    uint32_t max_completions;   /* entries of one completion queue of the device */
    uint32_t reserved;          /* 0 */
};

SLUICE_EXPORT void sluice_context_close(struct sluice_context *context);

/*
 * Opens a device. device is a name, such as "mlx5_0" or "soft", a name and a port, "mlx5_0:1", or
 * several of these with commas between; attr->port overrides the port here. If device is NULL,
 * SLUICE_DEVICE of the environment is used, which has the same form, else all RDMA devices with an
 * active port, else "soft". If there are several, devices that are absent or not active are
 * skipped, and only those nearest to the CPUs that the thread may run on are considered. If n such
 * devices remain, the process of local rank i takes number i modulo n. The choice is logged at
 * level info. A NULL attr means all defaults.
 *
 * NULL and errno on failure: ENODEV (no such device; the text lists those that exist), EINVAL
 * (device, SLUICE_DEVICE, the local rank of the environment or attr; the text names which), E2BIG
 * (attr; the text names the field), ENETDOWN (no port is active), EADDRNOTAVAIL (the port has no
 * address, or nothing at gid_index; the text lists what it has), EBUSY (too late for
 * SLUICE_CONTEXT_FORK), EMFILE, ENOMEM, EACCES, and errors of the driver.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_context_close)
struct sluice_context *sluice_context_open(const char *device,
                                           const struct sluice_context_attr *attr);

/*
 * Describes the context. Set info->size first (see sluice(7)). -EINVAL: not a
 * context, NULL or too small a size. -E2BIG: a size above 4096.
 */
SLUICE_EXPORT int sluice_context_query(const struct sluice_context *context,
                                       struct sluice_context_info *info);

#ifdef __cplusplus
}
#endif

#endif
