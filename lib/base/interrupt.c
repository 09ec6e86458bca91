/* SPDX-License-Identifier: MIT */
/*
 * The flag by which a program ends calls of a thread that wait for other processes. Such a wait
 * reads the flag at least every FLAG_TIME.
 */
#include "config.h"

#include "base/interrupt.h"

#include <stddef.h>

#include "base/clock.h"

/* How often a wait reads the flag of its thread. */
#define FLAG_TIME SLUICE_MS(20)

/* Owned by the program, which sets it in another thread or in a signal handler. */
static _Thread_local const volatile int *interrupt;

void sluice_interrupt_set(const volatile int *flag)
{
    interrupt = flag;
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
    return next < until ? next : until;
}
