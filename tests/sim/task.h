/* SPDX-License-Identifier: MIT */
/*
 * Tasks and time of the simulation. A task is a thread of a simulated process: a coroutine with a
 * stack and a clock of its own. The scheduler always runs what is earliest, a task or an event, so
 * that tasks run in parallel in simulated time, in one thread of the host.
 *
 * A task loses its turn only in sim_tick() and sim_wait(), that is in the calls that the library
 * makes of its system.
 */
#ifndef SIM_TASK_H
#define SIM_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader.h"

struct sim_process;

/* Something that happens at a time. */
struct sim_event {
    int64_t at;     /* ns */
    uint64_t order; /* of events at the same time */
    size_t place;   /* in the heap, from 1; 0: it is not in there */
    void (*happen)(struct sim_event *event);
};

enum { SIM_KEYS = 16 };

struct sim_task {
    struct sim_event turn; /* the first field */
    struct sim_process *process;
    struct sim_task *next; /* of the process */
    char *stack;
    void *sp;
    int64_t now;
    int error;                     /* its errno */
    char variables[SIM_TLS_BYTES]; /* its thread-local ones, while it does not run */
    const void *keys[SIM_KEYS];
    const void *waits_for; /* a lock or condition; else NULL */
    bool blocked, ended, joined, detached;
    bool helps; /* a helper thread of the library */
    void *(*run)(void *argument);
    void *argument, *result;
    char name[16];
};

/* The task that runs, or NULL in an event. */
extern struct sim_task *sim_task;

/* How many times longer than on a fast processor everything takes that a task does. */
extern int64_t sim_pace;

/* The time of the simulation: that of the task that runs, else that of the event. */
int64_t sim_time(void);
/* Begins again at the first moment; nothing may be left to happen. */
void sim_time_reset(void);

void sim_event_set(struct sim_event *event, int64_t at);
void sim_event_clear(struct sim_event *event);

struct sim_task *sim_task_start(struct sim_process *process, void *(*run)(void *), void *argument);
/* Takes its stack away. If it is the task that runs, the call does not return. */
void sim_task_end(struct sim_task *task);
/* Frees a task that has ended. */
void sim_task_free(struct sim_task *task);

/* The running task works for some ns. Others may have a turn. */
void sim_tick(int64_t ns);
/* The running task sleeps until sim_wake(), or until a time. Returns false if that has come. */
bool sim_wait(int64_t until);
void sim_wake(struct sim_task *task);

/*
 * Runs until sim_stop(), or until nothing can happen any more. Returns false in that case, and if
 * more than so many turns were taken or the time has passed.
 */
bool sim_run(int64_t until, uint64_t turns);
void sim_stop(void);
uint64_t sim_turns(void);

#endif
