/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../support/suite.h"

void machine_write(const struct machine *machine, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", machine->root, name);
    for (char *slash = path + strlen(machine->root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        require(mkdir(path, 0700) == 0 || errno == EEXIST, "%s: %s", path, strerror(errno));
        *slash = '/';
    }
    if (!text) {
        unlink(path);
        return;
    }
    FILE *file = fopen(path, "we");
    require(file, "%s: %s", path, strerror(errno));
    fprintf(file, "%s\n", text);
    require(fclose(file) == 0, "%s: %s", path, strerror(errno));
}

void machine_make(struct machine *machine, const char *prefix)
{
    char name[100];
    snprintf(machine->root, sizeof(machine->root), "/tmp/sluice-machine-XXXXXX");
    require(mkdtemp(machine->root), "%s", strerror(errno));
    for (const struct machine_node *node = machine->nodes;
         node < machine->nodes + MACHINE_NODES && (node->cpulist || node->distance); node++) {
        snprintf(name, sizeof(name), "devices/system/node/node%u/cpulist", node->number);
        machine_write(machine, name, node->cpulist);
        snprintf(name, sizeof(name), "devices/system/node/node%u/distance", node->number);
        machine_write(machine, name, node->distance);
    }
    for (uint32_t i = 0; i < machine->devices; i++) {
        snprintf(name, sizeof(name), "class/infiniband/%s%u/device/numa_node", prefix, i);
        machine_write(machine, name, machine->numa[i]);
    }
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

void machine_remove(const struct machine *machine)
{
    require(nftw(machine->root, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0, "%s: %s",
            machine->root, strerror(errno));
}
