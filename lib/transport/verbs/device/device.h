/* SPDX-License-Identifier: MIT */
/* Devices and their ports. */
#ifndef SLU_VERBS_DEVICE_H
#define SLU_VERBS_DEVICE_H

#include "transport/verbs/verbs.h"

/* devices.c */
int slu_verbs_device_list(struct sluice_device_list *list);
/* Returns whether this transport can drive the device. */
bool slu_verbs_is_known(const struct ibv_device *device);

/*
 * open.c: work like the functions of libibverbs, with errno. Descriptors that they open follow the
 * rules of descriptor.h.
 */
struct ibv_device **slu_verbs_devices(int *count);
struct ibv_context *slu_verbs_device_open(struct ibv_device *device);
int slu_verbs_device_close(struct ibv_context *ibv);
struct ibv_comp_channel *slu_verbs_comp_channel(struct ibv_context *ibv);
void slu_verbs_comp_channel_end(struct ibv_comp_channel *channel);
/* Returns the errno value for a failure of slu_verbs_device_open(). */
int slu_verbs_open_errno(const struct ibv_device *device);

/* limits.c: sets the limits of the device and its port. */
void slu_verbs_limits_set(struct slu_verbs_context *context, const struct ibv_device_attr *attr,
                          const struct ibv_port_attr *port);

/* gids.c */
#define SLU_VERBS_ADDRESS_CHARS 64
/* Writes "RoCE v2 192.0.2.1", "RoCE v1 fe80::1" or "GID fe80::1". */
void slu_verbs_gid_text(const uint8_t gid[16], uint32_t type, char text[SLU_VERBS_ADDRESS_CHARS]);
bool slu_verbs_gid_is_ipv4(const uint8_t gid[16]);
/* Returns an upper bound of the entries in the GID tables of all ports. */
uint32_t slu_verbs_gid_entries(struct ibv_context *ibv, uint32_t ports);
/*
 * Chooses the GID of a path, whose link_layer is set, and further ones for its endpoints. table:
 * length of the port's table. index: -1 for the best. -EADDRNOTAVAIL: there is none at index, or
 * all belong to other network namespaces.
 */
int slu_verbs_gid_choose(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries,
                         uint32_t table, int32_t index, struct slu_verbs_path *path);
/*
 * Chooses of the GIDs of both sides two that are in one subnet, or else of one kind. An index of 0
 * is the path's gid or the endpoint's, and 1 the first of the others.
 */
void slu_verbs_gid_agree(const struct slu_verbs_path *path, const struct slu_endpoint *remote,
                         uint32_t *ours, uint32_t *theirs);

/* path.c */
#define SLU_VERBS_MTU_UNKNOWN IBV_MTU_256 /* for a port that reports none: every port has it */
#define SLU_VERBS_PKEY_FULL 0x8000        /* the other bits name the partition */
/*
 * Reads the path of a port. -ENETDOWN: the port is not active. -EADDRNOTAVAIL: it has no address.
 */
int slu_verbs_path_read(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries,
                        struct slu_verbs_path *path);
/* Returns the path of the context's port, at most PATH_LIFE (10 ms) old. Errors likewise. */
int slu_verbs_path_of(struct slu_verbs_context *context, struct slu_verbs_path *path);
/*
 * Chooses MTU, partition key and other parameters of a queue pair from qp->attr and qp->path.
 * -EINVAL: the port does not have what was asked for.
 */
int slu_verbs_path_choose(struct slu_verbs_qp *qp);
/* Invalidates the path, so that the next queue pair reads it again. Called under events_lock. */
void slu_verbs_path_forget(struct slu_verbs_context *context);

#endif
