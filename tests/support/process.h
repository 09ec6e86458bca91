/* SPDX-License-Identifier: MIT */
/* Facts about its own process that a test reads from the system. */
#ifndef SUPPORT_PROCESS_H
#define SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fair.h"

/* Open file descriptors of the process, but not the one that counts them. */
int count_fds(void);
/*
 * Waits until at most this many descriptors are open: a peer takes some time to close. Returns how
 * many there are, also after the deadline.
 */
int settle_fds(int most);
/*
 * Objects of a kind, "qp" or "mr", that the kernel has for this process on the
 * device under test; 0 on soft, and where rdma(8) is not there to be asked. -1:
 * it could not be asked.
 */
int count_objects(const char *kind);
/* Returns whether the device is the pretend one, whose peers are all in the process. */
bool device_is_pretend(void);
/* Nanoseconds of a monotonic clock, and of CPU time of the whole process. */
int64_t clock_now(void);
int64_t cpu_used(void);
/* SIGSTOP, which takes its time: on return all threads of the process stand still. */
void stop_process(pid_t pid);
/* Lets so much real time pass, without using the CPU. */
void let_pass(int64_t nanoseconds);

#endif
