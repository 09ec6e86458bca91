/* SPDX-License-Identifier: MIT */
/* Times in ticks, which are cheap to read, and how often each came. */
#ifndef PERF_TICKS_H
#define PERF_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Whether the processor's counter runs evenly; else ticks are nanoseconds. */
extern bool ticks_are_counted;

int64_t clock_nanoseconds(void);

static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    if (ticks_are_counted)
        return __rdtsc();
#endif
    return (uint64_t)clock_nanoseconds();
}

/* Begins to measure how long a tick is; ticks_length() tells, in nanoseconds, better ever after. */
void ticks_begin(void);
double ticks_length(void);

/* How often each time came, to within a thousandth. */
struct histogram;

struct histogram *histogram_make(void);
void histogram_free(struct histogram *histogram);
void histogram_clear(struct histogram *histogram);
/* A NULL one forgets it. */
void histogram_add(struct histogram *histogram, uint64_t ticks);
uint64_t histogram_count(const struct histogram *histogram);
/* The time that this share, 0 to 1, of all did not exceed. Of none: 0. */
double histogram_quantile(const struct histogram *histogram, double share);
double histogram_mean(const struct histogram *histogram);
double histogram_least(const struct histogram *histogram);
double histogram_most(const struct histogram *histogram);

#endif
