/* SPDX-License-Identifier: MIT */
/* The programs that ranks run, and what they share. */
#ifndef SIM_PROGRAMS_H
#define SIM_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice.h>

#include "sim.h"

/*
 * Adds a call of the library to the trace, with its result: called.h, which is made of the map,
 * calls it beside each public function. Repetitions are counted.
 */
enum result { NO_RESULT, NUMBER, OBJECT };
void called(const char *name, enum result kind, int64_t result, int64_t began);
#define CALLED(number, name, call)                                                    \
    ({                                                                                \
        int64_t began_##number = sim_own_time();                                      \
        __auto_type result_##number = call;                                           \
        called(name, __builtin_classify_type(result_##number) == 5 ? OBJECT : NUMBER, \
               (int64_t)result_##number, began_##number);                             \
        result_##number;                                                              \
    })
#define CALLED_IN_VOID(number, name, call)          \
    ({                                              \
        int64_t began_##number = sim_own_time();    \
        call;                                       \
        called(name, NO_RESULT, 0, began_##number); \
    })
#define CALL(number, name, call) CALLED(number, name, call)
#define CALL_IN_VOID(number, name, call) CALLED_IN_VOID(number, name, call)
#include "called.h"

/* Waits long enough for everything but a peer that is gone. */
#define PATIENCE SLUICE_S(60)

#define must(condition, ...) ((condition) ? (void)0 : sim_break(__VA_ARGS__))

/* Steps of scatter and gather between all ranks, in which contents are checked. */
void run_scatter(void);
void end_scatter(void);
/* Random requests of all kinds, see traffic.h. */
void run_traffic(void);
void end_traffic(void);
/* A node over the built-in exchange: barriers, gathers, messages, and ranks that are missing. */
int run_node(void);
/* Agents in a ring: messages, memory under leases, and memory that is withdrawn. */
int run_agent(void);
/* Buffers by name: batches, cancelled ones, released buffers, and services that start again. */
int run_buffer(void);
/* A listener with clients of all kinds, some of which are no clients. */
int run_listener(void);
/* All forms of calls, on channels and multichannels: forms.h. */
int run_forms(void);
/* Prepared lists, arrivals, blocks, stripes and plain memory. */
int run_batch(void);
/* A node whose ranks die, and come again as new processes. */
int run_rejoin(void);
/* A node whose members come later, and leave for good. */
int run_grow(void);
/* Agents: memory that is lent, renewed, sent back, and over. */
int run_lease(void);
/* A listener with many clients at once, some of which are bad ones. */
int run_crowd(void);
/* Buffers by name in memory of an allocator, with prepared batches. */
int run_store(void);

/*
 * A call has failed. Returns if one was refused, so that the caller tries again. The rank ends if a
 * device has a fault. Otherwise the run fails.
 */
void again(const char *what);
/* A random number below a limit. */
uint64_t below(uint64_t limit);
/* A random number below a limit that is the same at all ranks, which ask for it in one order. */
uint64_t agreed(uint64_t limit);
/* Where these numbers go on, for a process that comes later. */
uint64_t agreed_so_far(void);
void agree_from(uint64_t state);
/* Returns the condition. A call that fails in a run without any fault breaks the run. */
bool works(bool condition, const char *what);
/*
 * Returns the condition. A call that fails although nothing befell this rank or that one, or with
 * ANYBODY any rank, breaks the run.
 */
bool well_with(bool condition, uint32_t rank, const char *what);
#define ANYBODY UINT32_MAX
/* A blocking call that began then is over: breaks the run if that is too late. */
void in_time(int64_t began, int64_t deadline, const char *what);
/* Waits for all ranks that live. Returns whether all ranks live, and all of them are well. */
bool all_well(bool well);
/* Neighbours in a ring of all ranks. */
uint32_t next_rank(void);
uint32_t rank_before(void);
/* Notes that this rank will not come again, in flags of all ranks; counts those gone or dead. */
enum { MOST_GONE = 16384 };
struct gone {
    bool ranks[MOST_GONE];
};
void leave(struct gone *gone);
uint32_t count_gone(const struct gone *gone);
/* Connects without the library to an address, sends noise or nothing, and leaves; listener.c. */
void be_stranger(const char *address, int port, bool silent);
/* Sends noise to a listener that a thread serves, which hangs up at once. */
void be_noise(const char *address, int port);
/* Writes the address of this host with a port as text, as sluice_connect() takes it. */
void write_address(char *text, size_t size, int port);

#endif
