/* SPDX-License-Identifier: MIT */
/*
 * The clock, CLOCK_MONOTONIC in nanoseconds, with arithmetic that saturates; and when waits for
 * other processes end: at their deadline, or when the program interrupts the thread (see
 * <sluice/time.h>).
 */
#ifndef SLU_CLOCK_H
#define SLU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/time.h>

int64_t slu_now(void);
/*
 * Returns the time of the kernel's last tick: earlier than slu_now() by up to SLU_LONGEST_TICK, and
 * read in a fifth of the time. A tick is at most 10 ms, but comes late if the host gives no time to
 * the processor that counts the ticks.
 */
#define SLU_LONGEST_TICK SLUICE_MS(50)
int64_t slu_tick(void);

static inline int64_t slu_add_time(int64_t time, int64_t relative)
{
    return relative < SLUICE_FOREVER - time ? time + relative : SLUICE_FOREVER;
}

/* Returns the absolute time of a relative one. */
static inline int64_t slu_after(int64_t relative)
{
    return relative == SLUICE_FOREVER ? SLUICE_FOREVER : slu_add_time(slu_now(), relative);
}

/* The same, or up to SLU_LATE_MOST later if the relative time is at least SLU_LATE_LEAST. */
#define SLU_LATE_LEAST SLUICE_MS(500)
#define SLU_LATE_MOST SLU_LONGEST_TICK
static inline int64_t slu_after_or_later(int64_t relative)
{
    return relative < SLU_LATE_LEAST || relative == SLUICE_FOREVER
               ? slu_after(relative)
               : slu_add_time(slu_tick() + SLU_LATE_MOST, relative);
}

static inline int64_t slu_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Writes "500 ms" to text and returns text. time is not negative. */
#define SLU_DURATION_BYTES 32
const char *slu_say_duration(int64_t time, char text[SLU_DURATION_BYTES]);

/* Tells whether calls of this thread that wait for other processes are to end now. */
bool slu_is_interrupted(void);
/* Tells whether such a wait is over: the deadline has passed, or the thread is interrupted. */
bool slu_is_late(int64_t until);
/* The same, for a caller that has just read the clock. */
bool slu_is_late_at(int64_t now, int64_t until);
/* Returns until when such a wait may sleep before it calls slu_is_late() again. */
int64_t slu_sleep_until(int64_t until);
/* Returns that time in milliseconds from now, rounded up, for poll(2); -1: for ever. */
int slu_milliseconds(int64_t until);

#endif
