/* SPDX-License-Identifier: MIT */
/* RDMA devices of the kernel. libibverbs does not show those without a provider. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "info.h"

#define CLASS "/sys/class/infiniband"

void kernel_find(struct kernel *kernel)
{
    const struct dirent *entry;
    DIR *folder;

    watch_step("looking for RDMA in the kernel");
    kernel->has_uverbs = access("/sys/class/infiniband_verbs", F_OK) == 0;
    kernel->has_nodes = access("/dev/infiniband", F_OK) == 0;
    kernel->has_cm = access("/dev/infiniband/rdma_cm", F_OK) == 0;
    folder = opendir(CLASS);
    kernel->has_class = folder != NULL;
    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL) {
        struct kernel_device *device;

        if (entry->d_name[0] == '.')
            continue;
        kernel->devices = facts_grow(kernel->devices, &kernel->count, sizeof *kernel->devices);
        device = &kernel->devices[kernel->count - 1];
        snprintf(device->name, sizeof device->name, "%.63s", entry->d_name);
        file_link(device->driver, sizeof device->driver, CLASS "/%s/device/driver", entry->d_name);
    }
    closedir(folder);
}
