/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/clock.h"

#include <time.h>

int64_t slu_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SLUICE_S(1) + now.tv_nsec;
}

int64_t slu_after(int64_t relative)
{
    int64_t now;

    if (relative == SLUICE_FOREVER)
        return SLUICE_FOREVER;
    now = slu_now();
    return relative < SLUICE_FOREVER - now ? now + relative : SLUICE_FOREVER;
}
