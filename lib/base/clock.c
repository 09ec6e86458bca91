/* SPDX-License-Identifier: MIT */
/*
 * The clock, and the flag by which a program ends calls of a thread that wait for other processes.
 * Such a wait reads the flag at least every FLAG_TIME.
 */
#include "config.h"

#include "base/clock.h"

#include <limits.h>
#include <stddef.h>
#include <time.h>

#define FLAG_TIME SLUICE_MS(20)

/* Owned by the program, which sets it in another thread or in a signal handler. */
static _Thread_local const volatile int *interrupt;

static inline int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * SLUICE_S(1) + now.tv_nsec;
}

int64_t slu_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t slu_tick(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

const volatile int *sluice_interrupt_set(const volatile int *flag)
{
    const volatile int *before = interrupt;

    interrupt = flag;
    return before;
}

bool slu_is_interrupted(void)
{
    return interrupt != NULL && __atomic_load_n(interrupt, __ATOMIC_RELAXED) != 0;
}

bool slu_is_late_at(int64_t now, int64_t until)
{
    return now >= until || slu_is_interrupted();
}

bool slu_is_late(int64_t until)
{
    return slu_is_late_at(slu_now(), until);
}

int64_t slu_sleep_until(int64_t until)
{
    int64_t next;

    if (interrupt == NULL)
        return until;
    next = slu_now() + (slu_is_interrupted() ? 0 : FLAG_TIME);
    return slu_earlier(next, until);
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
