/* SPDX-License-Identifier: MIT */
/* A run of the simulation: its ranks, their hosts, and the faults that befall them. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

struct sim_plan {
    uint64_t seed;
    uint32_t ranks, hosts; /* 0: chosen by the seed */
    bool faults;
    uint64_t most_turns;
    int64_t most_time; /* ns */
    const char *const *environment;
    const char *scenario; /* NULL: the seed or program=N chooses a program */
};

struct sim_outcome {
    uint64_t turns;
    int64_t time; /* ns */
    uint32_t killed;
};

/* The program that the ranks run, or -1: it is not known yet. */
extern int sim_program;

/* Adds NAME=VALUE for sim_number(). */
void sim_number_set(const char *text);

struct sim_process *sim_world_process(uint32_t rank);
/* Kills a rank if it lives, and starts its next generation. */
void sim_world_restart(uint32_t rank);

/* Runs all ranks to their end. Breaks of promises end the simulator, see report.h. */
struct sim_outcome sim_world_run(const struct sim_module *module, const struct sim_plan *plan);

#endif
