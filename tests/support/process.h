/* SPDX-License-Identifier: MIT */
/* Facts about its own process that a test reads from the system. */
#ifndef SUPPORT_PROCESS_H
#define SUPPORT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sluice.h>

#include "fair.h"

/* Counts open file descriptors of the process, except the one used for that. */
int count_fds(void);
/*
 * Waits until at most this many descriptors are open: a peer takes some time to close. Returns how
 * many there are, also after the deadline.
 */
int settle_fds(int most);
/*
 * Counts objects of a kind, "qp" or "mr", that the kernel has for this process on the device under
 * test; 0 on soft, and where rdma(8) is missing. Returns -1 on failure.
 */
int count_objects(const char *kind);
/* Returns whether the device is the pretend one, whose peers are all in the process. */
bool device_is_pretend(void);
/*
 * Returns the class of a send or a write whose own memory is wrong: SLUICE_CLASS_LOCAL, but rxe of
 * newer kernels (6.12 does, 6.1 does not) reports only that the request was flushed.
 */
enum sluice_error_class class_of_own_mistakes(void);
/* Nanoseconds of a monotonic clock, and of CPU time of the whole process. */
int64_t clock_now(void);
int64_t cpu_used(void);
/* Sends SIGSTOP, which takes some time: on return all threads of the process are stopped. */
void stop_process(pid_t pid);
/* Waits this much real time, without using the CPU. */
void let_pass(int64_t nanoseconds);

#endif
