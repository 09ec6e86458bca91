/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

#define MOST_PROCESSORS (1 << 17)

/* The processors that this launcher may use. */
static int *processors;
static uint32_t processor_count;

/* Returns the set of usable processors, for CPU_FREE(), or NULL. *room: its size in processors. */
static cpu_set_t *get_affinity(int *room)
{
    for (*room = 1024; *room <= MOST_PROCESSORS; *room *= 2) {
        cpu_set_t *set = CPU_ALLOC(*room);

        if (set != NULL && sched_getaffinity(0, CPU_ALLOC_SIZE(*room), set) == 0)
            return set;
        CPU_FREE(set);
        if (errno != EINVAL)
            return NULL;
    }
    return NULL;
}

static int set_affinity(int processor)
{
    cpu_set_t *set = CPU_ALLOC(processor + 1);
    size_t size = CPU_ALLOC_SIZE(processor + 1);
    int result;

    if (set == NULL)
        return -1;
    CPU_ZERO_S(size, set);
    CPU_SET_S(processor, size, set);
    result = sched_setaffinity(0, size, set);
    CPU_FREE(set);
    return result;
}

int bind_find(char *text, size_t size)
{
    int room, result;
    cpu_set_t *set = get_affinity(&room);

    if (set == NULL) {
        snprintf(text, size, "--bind cannot find the processors to use: %s", strerror(errno));
        return STATUS_ARGUMENTS;
    }
    processors = calloc((size_t)room, sizeof *processors);
    if (processors == NULL)
        die(STATUS_ARGUMENTS, "no memory for %d processors", room);
    for (int i = 0; i < room; i++)
        if (CPU_ISSET_S(i, CPU_ALLOC_SIZE(room), set))
            processors[processor_count++] = i;
    result = processor_count > 0 ? set_affinity(processors[0]) : -1;
    if (result == 0)
        result = sched_setaffinity(0, CPU_ALLOC_SIZE(room), set);
    if (result != 0)
        snprintf(text, size, "--bind cannot bind ranks to processors: %s", strerror(errno));
    CPU_FREE(set);
    return result == 0 ? 0 : STATUS_ARGUMENTS;
}

void bind_self(uint32_t local)
{
    if (set_affinity(processors[local % processor_count]) != 0) {
        fprintf(stderr, "sluice-launch: cannot bind to processor %d: %s\n",
                processors[local % processor_count], strerror(errno));
        _Exit(STATUS_ARGUMENTS);
    }
}
