/* SPDX-License-Identifier: MIT */
/* Times in ticks, which are cheap to read, and histograms of them. */
#ifndef PERF_TICKS_H
#define PERF_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Whether ticks are those of the processor's counter; otherwise they are nanoseconds. */
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

/* Begins to measure the length of a tick. ticks_length() returns it in nanoseconds; the later it
   is called, the more accurate it is. */
void ticks_begin(void);
double ticks_length(void);

/* A histogram of times, accurate to a thousandth. */
struct histogram;

struct histogram *histogram_make(void);
void histogram_free(struct histogram *histogram);
void histogram_clear(struct histogram *histogram);
/* Adds a time; does nothing if histogram is NULL. */
void histogram_add(struct histogram *histogram, uint64_t ticks);
uint64_t histogram_count(const struct histogram *histogram);
/* Returns the time that a share, 0 to 1, of all times did not exceed; 0 if it is empty. */
double histogram_quantile(const struct histogram *histogram, double share);
double histogram_mean(const struct histogram *histogram);
double histogram_least(const struct histogram *histogram);
double histogram_most(const struct histogram *histogram);

#endif
