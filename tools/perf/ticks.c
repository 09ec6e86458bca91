/* SPDX-License-Identifier: MIT */
#include "ticks.h"

#include <stdio.h>
#include <string.h>

/* Long enough for a length that is right to within a thousandth. */
#define LEAST_SPAN INT64_C(20000000)

bool ticks_are_counted;
static uint64_t first_tick;
static int64_t first_time;

int64_t clock_nanoseconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The kernel's word on it: one rate whatever the processor does, and the same on all. */
static bool is_counter_even(void)
{
    char line[8192];
    FILE *file = fopen("/proc/cpuinfo", "re");
    bool even = false;

    while (file != NULL && !even && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "flags", 5) == 0) {
            even = strstr(line, " constant_tsc") != NULL && strstr(line, " rdtscp") != NULL;
            break;
        }
    if (file != NULL)
        fclose(file);
    return even;
}

void ticks_begin(void)
{
#if defined(__x86_64__)
    ticks_are_counted = is_counter_even();
#endif
    first_tick = ticks_now();
    first_time = clock_nanoseconds();
}

double ticks_length(void)
{
    int64_t time = clock_nanoseconds();
    uint64_t tick = ticks_now();

    if (!ticks_are_counted)
        return 1;
    while (time - first_time < LEAST_SPAN) {
        time = clock_nanoseconds();
        tick = ticks_now();
    }
    return (double)(time - first_time) / (double)(tick - first_tick);
}
