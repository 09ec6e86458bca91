/* SPDX-License-Identifier: MIT */
/* Interruption of waits for other processes by the program: see <sluice/time.h>. */
#ifndef SLU_INTERRUPT_H
#define SLU_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/time.h>

/* Tells whether calls of this thread that wait for other processes are to end now. */
bool slu_is_interrupted(void);
/* Tells whether such a wait is over: the deadline has passed, or the thread is interrupted. */
bool slu_is_late(int64_t until);
/* The same, for a caller that has just read the clock. */
bool slu_is_late_at(int64_t now, int64_t until);
/* Returns until when such a wait may sleep before it calls slu_is_late() again. */
int64_t slu_sleep_until(int64_t until);

#endif
