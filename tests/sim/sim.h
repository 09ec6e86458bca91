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
 * another one are apart for a time, a device has a fault, which counts for all ranks, and its
 * connections are cut.
 */
enum sim_mishap {
    SIM_KILLED = 1,
    SIM_STOPPED = 2,
    SIM_REFUSED = 4,
    SIM_PARTED = 8,
    SIM_DEVICE = 16,
    SIM_CUT = 32
};
/* Returns what has befallen two ranks, which may be the same, or the way between them so far. */
uint32_t sim_befell(uint32_t a, uint32_t b);
/*
 * Faults of a rank. Those before SIM_DRAWN are drawn in random runs. Programs of scenarios
 * choose them: after some ns it strikes the rank, and lasts for some ns, if it ends at all.
 */
enum sim_blow {
    SIM_KILL,
    SIM_STOP,
    SIM_PART,   /* its host cannot reach others */
    SIM_REFUSE, /* see sim_refuse() */
    SIM_RESET,  /* its connections to other hosts are reset */
    SIM_JUMP,   /* the clock of the day of its host jumps by so many ns */
    SIM_DRAWN,
    SIM_RESTART = SIM_DRAWN, /* it is killed, and begins again as the next generation */
    SIM_POWER,               /* its host loses its power: nothing comes from it any more */
    SIM_MOVE,                /* its host gets another address, and loses the old one */
    SIM_DIE,                 /* the device of its host dies */
    SIM_LOSE,                /* the network loses one packet in so many, instead of ns */
    SIM_HIDE,                /* its host shows no /proc to processes */
    SIM_CRAWL, /* its device takes so many ns more for a packet, 3000 times for a flush */
    SIM_ISLE,  /* its host has a second address, to which others have no route */
    SIM_HOLD   /* its helper threads get no processor, as on a host with too many threads */
};
void sim_strike(enum sim_blow blow, uint32_t rank, int64_t after, int64_t lasts);
/* After so many calls of that name, the rank has the next ones refused. fault.c has the names. */
void sim_refuse(uint32_t rank, const char *call, uint64_t skips, uint32_t times);
/* Returns how many calls were refused since the last sim_refuse(). */
uint32_t sim_refused(void);
/* Forgets the last sim_refuse(), as if it had never been. */
void sim_forget(void);
/* Each first access to the pages of this memory takes so long from now on, as from a slow disk. */
void sim_slow(void *memory, size_t bytes, int64_t lasts);
/* How often the process of this rank was started again. */
uint32_t sim_generation(void);
/* Returns how many ranges of memory this process has mapped, and the bytes of its heap. */
uint32_t sim_mapped(void);
uint64_t sim_allocated(void);
/* The name of the scenario, or NULL. */
const char *sim_scenario(void);
/* Sleeps for some ns. */
void sim_pause(int64_t ns);
int64_t sim_own_time(void);
/* A promise of the library is broken: the run fails. */
void sim_break(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Prints what went between hosts so far, if traffic is printed. */
void sim_print_traffic(const char *until);
/* Adds a line to the trace. */
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
