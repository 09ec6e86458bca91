/* SPDX-License-Identifier: MIT */
/* A thread that drives a channel, while another gives up its memory or waits for it. */
#ifndef MEMORY_DRIVER_H
#define MEMORY_DRIVER_H

#include <sched.h>
#include <stdatomic.h>

#include "../support/pair.h"

struct driver {
    struct pair *pair;
    atomic_bool stop;
};

/* Polls the first channel of the pair until told to stop. */
static inline void *drive(void *argument)
{
    struct driver *driver = argument;
    struct sluice_completion completion;

    while (!atomic_load(&driver->stop)) {
        require(sluice_channel_poll(driver->pair->channels[0], &completion, 1) >= 0, "%s",
                sluice_last_error());
        sched_yield();
    }
    return NULL;
}

#endif
