/* SPDX-License-Identifier: MIT */
/* The programs that ranks run, and what they share. */
#ifndef SIM_PROGRAMS_H
#define SIM_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice.h>

#include "sim.h"

/* Waits long enough for everything but a peer that is gone. */
#define PATIENCE SLUICE_S(60)

#define must(condition, ...) ((condition) ? (void)0 : sim_break(__VA_ARGS__))

/* Steps of scatter and gather between all ranks, in which contents are checked. */
void run_scatter(void);
void end_scatter(void);
/* Random requests of all kinds, see traffic.h. */
void run_traffic(void);
void end_traffic(void);

/*
 * A call has failed. Returns if one was refused, so that the caller tries again. The rank ends if a
 * device has a fault. Otherwise the run fails.
 */
void again(const char *what);
/* A random number below a limit. */
uint64_t below(uint64_t limit);

#endif
