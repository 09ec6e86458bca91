/* SPDX-License-Identifier: MIT */
/* Waits for other processes, which the program may end before their time: see <sluice/time.h>. */
#ifndef SLU_INTERRUPT_H
#define SLU_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/time.h>

/* Whether the thread's calls that wait for other processes are to end now. */
bool slu_is_interrupted(void);
/* Whether a wait for other processes is over: the time has come, or the thread is interrupted. */
bool slu_is_late(int64_t until);
/* The same for whoever has just looked at the clock. */
bool slu_is_late_at(int64_t now, int64_t until);
/* Until when such a wait may sleep before it asks slu_is_late() again. */
int64_t slu_sleep_until(int64_t until);

#endif
