/* SPDX-License-Identifier: MIT */
#include "ticks.h"

#include <stdio.h>
#include <string.h>

/* Nanoseconds: long enough for a length that is accurate to a thousandth. */
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

#if defined(__x86_64__)
/* Reads the first line of a file with that beginning; empty if there is none. */
static void find_line(const char *path, const char *begin, char *line, int room)
{
    FILE *file = fopen(path, "re");
    bool found = false;

    while (file != NULL && !found && fgets(line, room, file) != NULL)
        found = strncmp(line, begin, strlen(begin)) == 0;
    if (!found)
        line[0] = '\0';
    if (file != NULL)
        fclose(file);
}

/*
 * Returns whether the kernel considers the counter constant, and the same on all processors. In
 * an emulated machine the flag is missing, but the kernel may use the counter as its clock.
 */
static bool is_counter_even(void)
{
    char flags[8192], source[64];

    find_line("/proc/cpuinfo", "flags", flags, sizeof flags);
    find_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n", source,
              sizeof source);
    return strstr(flags, " rdtscp") != NULL &&
           (strstr(flags, " constant_tsc") != NULL || source[0] != '\0');
}
#endif

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
