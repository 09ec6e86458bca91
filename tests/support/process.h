/* SPDX-License-Identifier: MIT */
/* What a test asks the system about its own process. */
#ifndef SUPPORT_PROCESS_H
#define SUPPORT_PROCESS_H

#include <stdint.h>

/* Open file descriptors of the process, but not the one that counts them. */
int count_fds(void);
/*
 * Waits until there are no more than so many: what a peer closes takes its
 * time, but not for ever. Returns how many there are.
 */
int settle_fds(int most);
/* Nanoseconds of a monotonic clock, and of CPU time of the whole process. */
int64_t clock_now(void);
int64_t cpu_used(void);
/* Lets so much real time pass, without using the CPU. */
void let_pass(int64_t nanoseconds);

#endif
