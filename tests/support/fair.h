/* SPDX-License-Identifier: MIT */
/*
 * A clock for deadlines of tests. It stands still while the machine, or one of its processors, does
 * not run the tests at all (a host that stops its guests, memory that is slow to come, a frozen
 * group of processes), for then a late call is not at fault. The minimum time of a call is measured
 * with clock_now().
 */
#ifndef SUPPORT_FAIR_H
#define SUPPORT_FAIR_H

#include <stdint.h>

/*
 * Starts processes, one on each processor, that detect whether the processor runs them, before all
 * tests; they end with their parent at the latest. Without them fair_now() is clock_now().
 */
void fair_start(void);
void fair_stop(void);
/* Lets these processes sleep until a test asks for the time. */
void fair_rest(void);

/* Nanoseconds, monotonic in each thread. */
int64_t fair_now(void);

/* A point in time, or the time between two, on both clocks. */
struct span {
    int64_t real;
    int64_t fair;
};

struct span span_begin(void);
struct span span_between(struct span begin, struct span end);
struct span span_since(struct span begin);

/* Requires that it took at least this much real time, and less than this much fair time. */
#define require_took(span, least, most) check_took(__FILE__, __LINE__, span, least, most)
/* The same of the time since this value of fair_now(). */
#define require_within(begin, most) \
    check_took(__FILE__, __LINE__, (struct span){.fair = fair_now() - (begin)}, 0, most)
void check_took(const char *file, int line, struct span took, int64_t least, int64_t most);

#endif
