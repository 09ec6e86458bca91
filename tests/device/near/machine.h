/* SPDX-License-Identifier: MIT */
/* Made-up machines: sysfs files of NUMA nodes and RDMA devices, in a folder of /tmp. */
#ifndef NEAR_MACHINE_H
#define NEAR_MACHINE_H

#include <stdint.h>

#define MACHINE_NODES 8
#define MACHINE_DEVICES 8

/* A node that has a cpulist. NULL: there is no such file. */
struct machine_node {
    uint32_t number;
    const char *cpulist, *distance;
};

struct machine {
    struct machine_node nodes[MACHINE_NODES];
    uint32_t devices;
    const char *numa[MACHINE_DEVICES]; /* contents of numa_node of device i; NULL: no such file */
    char root[64];
};

/* Writes all files, each with a line end; device i is PREFIXi. */
void machine_make(struct machine *machine, const char *prefix);
/* Writes one file below the root, making its folder, or removes it if text is NULL. */
void machine_write(const struct machine *machine, const char *name, const char *text);
void machine_remove(const struct machine *machine);

#endif
