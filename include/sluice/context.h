/* SPDX-License-Identifier: MIT */
/*
 * A context: one opened device. Any thread may call these. Children (protection
 * domains, and through them everything else) keep the device open, so closing
 * in any order is safe and the device goes away with its last child.
 */
#ifndef SLUICE_CONTEXT_H
#define SLUICE_CONTEXT_H

#include <stdint.h>

#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_context;

/* Zero, or a NULL pointer, means the default. */
struct sluice_context_attr {
    uint32_t size;       /* sizeof(struct sluice_context_attr) */
    uint32_t flags;      /* none yet: must be 0 */
    uint32_t port;       /* verbs: port number, 1 to the device's count; 0: first active */
    uint32_t reserved;   /* must be 0 */
    const char *address; /* soft: numeric IP address to listen on; NULL: SLUICE_TCP_ADDRESS
                            of the environment, else every address of the host */
};

struct sluice_context_info {
    uint32_t size;              /* set to sizeof(struct sluice_context_info) by the caller */
    uint32_t level;             /* enum sluice_transport_level; the lowest it may use */
    uint32_t max_send_depth;    /* largest send_depth of a channel, in requests */
    uint32_t max_receive_depth; /* largest receive_depth of a channel, in requests */
    uint32_t max_sge;           /* largest number of SGEs of a request */
    uint32_t max_read_depth;    /* largest number of reads in flight on a channel */
    uint64_t max_message;       /* largest message of a send, in bytes */
    char device[64];            /* name of the device */
    char transport[16];         /* "verbs" or "soft" */
};

SLUICE_EXPORT void sluice_context_close(struct sluice_context *context);

/*
 * Opens a device. A NULL name takes SLUICE_DEVICE of the environment, else the
 * first RDMA device with an active port, else "soft", and logs the choice at
 * level info. A NULL attr means all defaults.
 *
 * NULL and errno on failure: ENODEV (no such device; the text lists those that
 * exist), EINVAL and E2BIG (attr; the text names the field), ENETDOWN (no port
 * is active), EMFILE, ENOMEM, EACCES, and what the driver gives.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_context_close)
struct sluice_context *sluice_context_open(const char *device,
                                           const struct sluice_context_attr *attr);

/* Describes the context. Set info->size first. -EINVAL: NULL or wrong size. */
SLUICE_EXPORT int sluice_context_query(const struct sluice_context *context,
                                       struct sluice_context_info *info);

#ifdef __cplusplus
}
#endif

#endif
