/* SPDX-License-Identifier: MIT */
/*
 * Durations. Every duration of the library is a relative int64_t in
 * nanoseconds; a negative one is -EINVAL. There are two kinds:
 *
 *   deadline  Of an operation, and destructive. A reliable connection cannot
 *             take back one receive, so when it passes, the queue pair of
 *             that peer goes to the error state, its other work ends
 *             cancelled, and what the remote side saw is unknown.
 *   timeout   Of a wait, and harmless: -ETIMEDOUT, and the work is still
 *             pending.
 *
 * A program may pass the rest of its own time as it is, even if that is 0. A deadline of 0 posts
 * nothing: each request ends with -ETIMEDOUT and status DEADLINE, and no connection is harmed. A
 * call with a timeout of 0 does not wait.
 */
#ifndef SLUICE_TIME_H
#define SLUICE_TIME_H

#include <stdint.h>

#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * n is an integer, and the product is exact, or a floating-point number, such as SLUICE_S(0.5),
 * whose product is truncated to whole nanoseconds. The product must be in the range of int64_t,
 * which is 292 years.
 */
#define SLUICE_NS(n) ((int64_t)(n))
#define SLUICE_US(n) ((int64_t)((n)*INT64_C(1000)))
#define SLUICE_MS(n) ((int64_t)((n)*INT64_C(1000000)))
#define SLUICE_S(n) ((int64_t)((n)*INT64_C(1000000000)))

/* No deadline, or no timeout. There is no default: a call that may wait for ever must say so. */
#define SLUICE_FOREVER INT64_MAX

/*
 * Sets a flag of the calling thread, by which another thread or a signal handler ends those of its
 * calls that wait for other processes and have no wake of their own: calls of exchanges, nodes and
 * buffer services, sluice_connect(), sluice_incoming_accept() and similar ones. As long as *flag is
 * not 0, such a call ends within 50 ms as if its deadline had passed. The flag must stay valid
 * until another flag, or NULL, replaces it. Returns the flag that was set before, or NULL: code
 * that sets a flag for a part of the work of a thread restores that one.
 */
SLUICE_EXPORT const volatile int *sluice_interrupt_set(const volatile int *flag);

#ifdef __cplusplus
}
#endif

#endif
