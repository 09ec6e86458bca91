/* SPDX-License-Identifier: MIT */
/* Simulated processes and the hosts they run on. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "loader.h"
#include "task.h"

struct sim_object;
struct sim_block;
struct sim_large;
struct sim_poll;
struct stream;

enum { SIM_NAMES = 64 };

struct sim_host {
    uint32_t index;
    LIST_HEAD(sim_named, stream) named[SIM_NAMES]; /* see socket.c */
    bool down;           /* it has lost its power: nothing comes from it any more */
    bool hides_proc;     /* its processes see no /proc */
    bool has_isle;       /* it has a second address, without a route from others */
    uint32_t moves;      /* how often it got another address */
    int64_t clock_ahead; /* ns, of the clock of the day */
    uint16_t last_port;
};

struct sim_descriptor {
    struct sim_object *object;
};

/* A range of addresses that the process has mapped. */
struct sim_map {
    char *from;
    size_t bytes;
};

struct sim_process {
    struct sim_host *host;
    uint32_t rank, ranks, generation;
    struct sim_process *before; /* of the same rank */
    pid_t pid;
    int64_t began; /* ns */
    struct sim_image image;
    struct sim_task *tasks;
    int64_t paused_until;
    int64_t helpers_held_until; /* its helper threads get no processor */
    bool ended, killed;
    int status; /* what its program returned */

    struct sim_descriptor *descriptors;
    int descriptor_room, descriptor_limit;
    int descriptor_least;        /* all below it are open */
    LIST_HEAD(, sim_poll) polls; /* calls of poll(2) that wait */
    struct sim_map *maps;
    size_t map_count;
    int map_room;
    LIST_HEAD(, sim_block) blocks; /* of its heap */
    LIST_HEAD(, sim_large) large;  /* those of its heap that may share pages */
    uint64_t bytes, allocations;
    uint32_t key_count;
    void (*key_end[SIM_KEYS])(void *value);
    const char *const *environment; /* NAME=value; NULL at the end */
};

void sim_hosts_make(uint32_t count);
void sim_hosts_free(void);
struct sim_host *sim_host(uint32_t index);
uint32_t sim_host_count(void);

struct sim_process *sim_process_start(struct sim_host *host, const struct sim_module *module,
                                      uint32_t rank, uint32_t ranks);
/* Ends a process at once, as SIGKILL does. Does not return if the running task is of it. */
void sim_process_kill(struct sim_process *process);
/* Releases all that a process has that did not end by itself. */
void sim_process_free(struct sim_process *process);
struct sim_process *sim_process_find(const struct sim_host *host, pid_t pid);
/* Kills all processes of a host. */
void sim_host_kill(const struct sim_host *host);

/* A thread has run to its end: runs the destructors of its keys. */
void sim_process_thread_ends(struct sim_task *task);

/* Release or count resources of a process; each is defined by the file of its kind. */
void sim_polls_end(struct sim_process *process);
void sim_descriptors_close(struct sim_process *process);
void sim_descriptors_list(const struct sim_process *process);
uint32_t sim_descriptors_open(const struct sim_process *process);
/*
 * A run begins: memory, mappings and stacks have the addresses that they had in each other run,
 * because the order of addresses may decide what a program does.
 */
void sim_heap_begin(void);
void sim_maps_begin(void);
void sim_stacks_begin(void);
/* Returns which blocks are in the heap, or NULL if these are only what the library may keep. */
const char *sim_heap_leaks(const struct sim_process *process);
void sim_maps_free(struct sim_process *process);

/* Called when the program of a process has returned, or the process was killed. */
extern void (*sim_process_ended)(struct sim_process *process);

#endif
