/* SPDX-License-Identifier: MIT */
/*
 * The faults of a run: they follow from the seed, and each has a number, so that a run can be
 * repeated without some of them.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

/* How many faults have happened in this run. */
extern uint32_t sim_troubles;

void sim_faults_plan(bool wanted, struct sim_process **processes, uint32_t ranks);
void sim_faults_end(void);
/* Returns what has befallen a process so far: of enum sim_mishap. */
uint32_t sim_fault_befell(const struct sim_process *process);
/* Returns whether two hosts were apart. */
bool sim_fault_parted(const struct sim_host *a, const struct sim_host *b);
uint32_t sim_faults_killed(void);
uint32_t sim_faults_happened(void);
/* Leaves a fault out; called before the plan. */
void sim_fault_skip(uint32_t number);

#endif
