/* SPDX-License-Identifier: MIT */
/*
 * How far devices are from the CPUs that a thread may run on, by the NUMA nodes of
 * sysfs. What sysfs does not tell, or tells in a way that makes no sense, is not
 * known; nothing fails for it, and errno is kept.
 */
#ifndef SLU_NEAR_H
#define SLU_NEAR_H

#include <sched.h>
#include <stdint.h>

/* As many as Linux can be built for. */
#define SLU_NEAR_CPUS 8192
#define SLU_NEAR_NODES 1024

/* A distance farther than any; those of the kernel are 10 and more. */
#define SLU_NEAR_UNKNOWN (UINT32_MAX - 1)

struct slu_cpus {
    cpu_set_t sets[SLU_NEAR_CPUS / CPU_SETSIZE];
};

/* Of each NUMA node: the distance to it from that node of the CPUs that is nearest to it. */
struct slu_near {
    uint32_t distance[SLU_NEAR_NODES];
};

/* Those that the calling thread may run on; none if the kernel does not tell. */
void slu_cpus_read(struct slu_cpus *cpus);

/* root is where sysfs is, such as "/sys". */
void slu_near_read(const char *root, const struct slu_cpus *cpus, struct slu_near *near);

/* Of a NUMA node; -1, which is none, is as far as one that is not known. */
uint32_t slu_near_distance(const struct slu_near *near, int32_t node);

/* The NUMA node of the device at this path, such as "/sys/class/infiniband/mlx5_0"; or -1. */
int32_t slu_near_node(const char *device);

#endif
