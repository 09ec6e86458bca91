/* SPDX-License-Identifier: MIT */
/*
 * NUMA distances, from sysfs, between devices and the CPUs that a thread may run on. If a
 * file of sysfs is missing or malformed, the distance is unknown; nothing fails, and errno
 * is kept.
 */
#ifndef SLU_NEAR_H
#define SLU_NEAR_H

#include <sched.h>
#include <stdint.h>

/* The limits of Linux (NR_CPUS and NODES_SHIFT). */
#define SLU_NEAR_CPUS 8192
#define SLU_NEAR_NODES 1024

/* An unknown distance: farther than any of the kernel, which are 10 or more. */
#define SLU_NEAR_UNKNOWN (UINT32_MAX - 1)

struct slu_cpus {
    cpu_set_t sets[SLU_NEAR_CPUS / CPU_SETSIZE];
};

/* For each NUMA node, its distance from the nearest node that has one of the CPUs. */
struct slu_near {
    uint32_t distance[SLU_NEAR_NODES];
};

/* Reads the CPUs that the calling thread may run on; none if the kernel refuses. */
void slu_cpus_read(struct slu_cpus *cpus);

/* root is where sysfs is, such as "/sys". */
void slu_near_read(const char *root, const struct slu_cpus *cpus, struct slu_near *near);

/* Returns the distance of a NUMA node; SLU_NEAR_UNKNOWN for -1, which is no node. */
uint32_t slu_near_distance(const struct slu_near *near, int32_t node);

/* Returns the NUMA node of the device at a path like "/sys/class/infiniband/mlx5_0"; or -1. */
int32_t slu_near_node(const char *device);

#endif
