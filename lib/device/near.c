/* SPDX-License-Identifier: MIT */
/* NUMA distances. A file in an unexpected format is treated as missing. */
#include "config.h"

#include "device/near.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/environment.h"

/* Upper limit of a distance; the kernel's fit in a byte almost everywhere. 0 is not a distance. */
#define FARTHEST 65535

/* The nodes of this host, ascending. Their numbers may have gaps. */
struct nodes {
    uint32_t count;
    uint32_t numbers[SLU_NEAR_NODES];
};

void slu_cpus_read(struct slu_cpus *cpus)
{
    int saved = errno;

    memset(cpus, 0, sizeof *cpus);
    if (sched_getaffinity(0, sizeof cpus->sets, cpus->sets) < 0)
        memset(cpus, 0, sizeof *cpus);
    errno = saved;
}

static FILE *open_node(const char *root, uint32_t node, const char *name)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/devices/system/node/node%u/%s", root, node, name) >=
        (int)sizeof path)
        return NULL;
    return slu_fd_read_file(path);
}

/* Reads a number of up to 9 digits; leaves the character behind it in the file. */
static bool take_number(FILE *file, uint32_t *number)
{
    uint32_t digits = 0;
    int c;

    *number = 0;
    for (c = getc(file); c >= '0' && c <= '9' && digits < 9; c = getc(file)) {
        *number = *number * 10 + (uint32_t)(c - '0');
        digits++;
    }
    ungetc(c, file);
    return digits > 0;
}

static bool ends(FILE *file)
{
    int c = getc(file);

    return c == EOF || (c == '\n' && getc(file) == EOF);
}

static bool any_of(const struct slu_cpus *cpus, uint32_t first, uint32_t last)
{
    for (uint32_t cpu = first; cpu <= last && cpu < SLU_NEAR_CPUS; cpu++)
        if (CPU_ISSET_S(cpu, sizeof cpus->sets, cpus->sets))
            return true;
    return false;
}

/* Returns whether the whole file is a list such as "0-3,8-11" that has one of the CPUs. */
static bool find_cpu(FILE *list, const struct slu_cpus *cpus)
{
    bool found = false;
    int c;

    do {
        uint32_t first, last;

        if (!take_number(list, &first))
            return false;
        last = first;
        c = getc(list);
        if (c == '-') {
            if (!take_number(list, &last) || last < first)
                return false;
            c = getc(list);
        }
        found = found || any_of(cpus, first, last);
    } while (c == ',');
    ungetc(c, list);
    return found && ends(list);
}

static bool has_cpu(const char *root, uint32_t node, const struct slu_cpus *cpus)
{
    FILE *list = open_node(root, node, "cpulist");
    bool found;

    if (list == NULL)
        return false;
    found = find_cpu(list, cpus);
    fclose(list);
    return found;
}

/* Reads a row such as "10 21 31": one number for each node of this host, in ascending order. */
static bool read_row(FILE *file, uint32_t count, uint32_t *row)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && getc(file) != ' ')
            return false;
        if (!take_number(file, &row[i]) || row[i] == 0 || row[i] > FARTHEST)
            return false;
    }
    return ends(file);
}

static void take_row(const char *root, uint32_t node, const struct nodes *nodes,
                     struct slu_near *near)
{
    FILE *file = open_node(root, node, "distance");
    uint32_t row[SLU_NEAR_NODES];
    bool whole;

    if (file == NULL)
        return;
    whole = read_row(file, nodes->count, row);
    fclose(file);
    for (uint32_t i = 0; whole && i < nodes->count; i++)
        if (row[i] < near->distance[nodes->numbers[i]])
            near->distance[nodes->numbers[i]] = row[i];
}

static void find_nodes(const char *root, struct nodes *nodes)
{
    bool there[SLU_NEAR_NODES] = {false};
    char path[PATH_MAX];
    const struct dirent *entry;
    uint32_t node;
    DIR *folder = NULL;

    nodes->count = 0;
    if (snprintf(path, sizeof path, "%s/devices/system/node", root) < (int)sizeof path)
        folder = slu_fd_read_folder(path);
    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, "node", 4) == 0 &&
            slu_parse_number(entry->d_name + 4, 0, SLU_NEAR_NODES - 1, &node) == 0)
            there[node] = true;
    closedir(folder);
    for (node = 0; node < SLU_NEAR_NODES; node++)
        if (there[node])
            nodes->numbers[nodes->count++] = node;
}

void slu_near_read(const char *root, const struct slu_cpus *cpus, struct slu_near *near)
{
    int saved = errno;
    struct nodes nodes;

    for (uint32_t i = 0; i < SLU_NEAR_NODES; i++)
        near->distance[i] = SLU_NEAR_UNKNOWN;
    find_nodes(root, &nodes);
    for (uint32_t i = 0; i < nodes.count; i++)
        if (has_cpu(root, nodes.numbers[i], cpus))
            take_row(root, nodes.numbers[i], &nodes, near);
    errno = saved;
}

uint32_t slu_near_distance(const struct slu_near *near, int32_t node)
{
    return node < 0 || node >= SLU_NEAR_NODES ? SLU_NEAR_UNKNOWN : near->distance[node];
}

int32_t slu_near_node(const char *device)
{
    int saved = errno;
    char path[PATH_MAX];
    uint32_t node;
    FILE *file = NULL;
    bool whole = false;

    if (snprintf(path, sizeof path, "%s/device/numa_node", device) < (int)sizeof path)
        file = slu_fd_read_file(path);
    if (file != NULL) {
        whole = take_number(file, &node) && ends(file);
        fclose(file);
    }
    errno = saved;
    return whole ? (int32_t)node : -1;
}
