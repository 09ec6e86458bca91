/* SPDX-License-Identifier: MIT */
/* Output of the simulation: its trace, and the failure that ends it. */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the trace is written; a line costs nothing otherwise. */
extern bool sim_traces;

/* Adds a line to the trace, with the time and the task. */
void sim_trace_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define sim_trace(...) (sim_traces ? sim_trace_line(__VA_ARGS__) : (void)0)

/* Ends the simulator: a promise was broken, or it cannot go on. */
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define sim_require(condition, ...) ((condition) ? (void)0 : sim_fail(__VA_ARGS__))

/* Returns so many zeros, or ends the simulator. */
void *sim_alloc(size_t count, size_t bytes);
/* Returns an array with more than twice the room, of which the rest is zeros. */
void *sim_grow(void *array, int *room, size_t bytes);

#endif
