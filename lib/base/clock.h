/* SPDX-License-Identifier: MIT */
/* The clock: CLOCK_MONOTONIC in nanoseconds, and arithmetic that saturates. */
#ifndef SLU_CLOCK_H
#define SLU_CLOCK_H

#include <stdint.h>

#include <sluice/time.h>

int64_t slu_now(void);
/* Returns the absolute time of a relative one. */
int64_t slu_after(int64_t relative);
/*
 * Returns the time left in milliseconds, rounded up, for poll(2); -1: for ever. 0 if the wait is
 * over, and never more than slu_sleep_until() allows.
 */
int slu_milliseconds(int64_t until);

#endif
