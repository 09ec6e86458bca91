/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/clock.h"

#include <limits.h>
#include <time.h>

#include "base/interrupt.h"

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

int slu_milliseconds(int64_t until)
{
    int64_t left;

    until = slu_sleep_until(until);
    if (until == SLUICE_FOREVER)
        return -1;
    left = until - slu_now();
    if (left <= 0)
        return 0;
    left = (left + 999999) / 1000000;
    return left < INT_MAX ? (int)left : INT_MAX;
}
