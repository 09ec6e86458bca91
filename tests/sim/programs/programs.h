/* SPDX-License-Identifier: MIT */
/* The programs that ranks run, and what they share. */
#ifndef SIM_PROGRAMS_H
#define SIM_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice.h>

#include "sim.h"

/* Waits long enough for everything but a peer that is gone. */
#define PATIENCE SLUICE_S(20)

#define must(condition, ...) ((condition) ? (void)0 : sim_break(__VA_ARGS__))

/* Steps of scatter and gather between all ranks, in which contents are checked. */
int run_scatter(void);

/* A random number below a limit. */
uint64_t below(uint64_t limit);

#endif
