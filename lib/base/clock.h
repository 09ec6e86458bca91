/* SPDX-License-Identifier: MIT */
/* The clock: CLOCK_MONOTONIC in nanoseconds, and arithmetic that saturates. */
#ifndef SLU_CLOCK_H
#define SLU_CLOCK_H

#include <stdint.h>

#include <sluice/time.h>

int64_t slu_now(void);
/* A relative time as an absolute one. */
int64_t slu_after(int64_t relative);
/*
 * From now until then in milliseconds, rounded up, for poll(2); -1: for ever. 0 if such a wait
 * is over, and never more than it may sleep.
 */
int slu_milliseconds(int64_t until);

#endif
