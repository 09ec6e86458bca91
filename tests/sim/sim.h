/* SPDX-License-Identifier: MIT */
/*
 * Functions of the simulation that a simulated program may call, beside the library under test. The
 * module has one function, rank_main(), which each rank runs in a process of its own.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs the program of the run; returns its exit status. */
int rank_main(void);

uint32_t sim_rank(void);
uint32_t sim_ranks(void);
/* Random numbers of this rank, which follow from the seed. */
uint64_t sim_program_random(void);
/* A number that was given by NAME=VALUE on the command line, else the default. */
uint64_t sim_number(const char *name, uint64_t otherwise);
/* Tells which program runs, which the report of a failure names. */
void sim_chosen(uint32_t program);
/* Memory that all ranks share, of zeros at first: the same for each call with that size. */
void *sim_shared(size_t bytes);
/* Each rank gives bytes, and gets those of all ranks. A rank that is dead gives zeros. */
void sim_allgather(const void *own, void *all, size_t bytes);
/* Returns whether a rank was killed or has ended. */
bool sim_is_dead(uint32_t rank);
/* Returns whether a fault has happened in this run, to any rank, host or device. */
bool sim_is_troubled(void);
/*
 * Faults of a rank: it is killed, it is stopped for a time, a call of it is refused, its host and
 * another one are apart for a time, and a device has a fault, which counts for all ranks.
 */
enum sim_mishap {
    SIM_KILLED = 1,
    SIM_STOPPED = 2,
    SIM_REFUSED = 4,
    SIM_PARTED = 8,
    SIM_DEVICE = 16
};
/* Returns what has befallen two ranks, which may be the same, or the way between them so far. */
uint32_t sim_befell(uint32_t a, uint32_t b);
/* Sleeps for some ns. */
void sim_pause(int64_t ns);
int64_t sim_own_time(void);
/* A promise of the library is broken: the run fails. */
void sim_break(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Adds a line to the trace. */
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
