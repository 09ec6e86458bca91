/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "report.h"

static struct sim_host *hosts;
static uint32_t host_count;
/* Processes by their numbers, which are FIRST_PID and further ones. */
static struct sim_process **processes;
static int process_count, process_room;

enum { FIRST_PID = 101 };

void (*sim_process_ended)(struct sim_process *process);

void sim_hosts_make(uint32_t count)
{
    hosts = sim_alloc(count, sizeof *hosts);
    host_count = count;
    for (uint32_t i = 0; i < count; i++) {
        hosts[i].index = i;
        hosts[i].hides_proc = sim_once_in(SIM_SYSTEM, 16);
        hosts[i].last_port = (uint16_t)(32768 + sim_below(SIM_SYSTEM, 1000));
    }
}

void sim_hosts_free(void)
{
    free(hosts);
    hosts = NULL;
    host_count = 0;
    process_count = 0;
}

struct sim_host *sim_host(uint32_t index)
{
    return index < host_count ? &hosts[index] : NULL;
}

uint32_t sim_host_count(void)
{
    return host_count;
}

struct sim_process *sim_process_find(const struct sim_host *host, pid_t pid)
{
    struct sim_process *process =
        pid >= FIRST_PID && pid < FIRST_PID + process_count ? processes[pid - FIRST_PID] : NULL;
    return process != NULL && process->host == host && !process->ended ? process : NULL;
}

static void add_process(struct sim_process *process)
{
    if (process_count == process_room) {
        processes = sim_grow(processes, &process_room, sizeof(struct sim_process *));
    }
    process->pid = FIRST_PID + process_count;
    processes[process_count++] = process;
}

/* The first thread: what the loader and main() do in a real process. */
static void *run_program(void *argument)
{
    struct sim_process *process = argument;
    int (*program)(void);
    sim_image_construct(&process->image);
    program = (int (*)(void))sim_image_find(&process->image, "rank_main");
    sim_require(program != NULL, "the module has no rank_main()");
    process->status = program();
    sim_trace("ends with status %d", process->status);
    return NULL;
}

struct sim_process *sim_process_start(struct sim_host *host, const struct sim_module *module,
                                      uint32_t rank, uint32_t ranks)
{
    struct sim_process *process = sim_alloc(1, sizeof *process);
    process->host = host;
    process->rank = rank;
    process->ranks = ranks;
    process->began = sim_time();
    process->descriptor_limit = 1024;
    sim_image_make(module, &process->image);
    add_process(process);
    sim_task_start(process, run_program, process);
    return process;
}

static void end(struct sim_process *process)
{
    process->ended = true;
    if (sim_process_ended != NULL) {
        sim_process_ended(process);
    }
}

void sim_process_thread_ends(struct sim_task *task)
{
    struct sim_process *process = task->process;
    for (uint32_t i = 0; i < process->key_count; i++) {
        const void *value = task->keys[i];
        task->keys[i] = NULL;
        if (value != NULL && process->key_end[i] != NULL) {
            process->key_end[i]((void *)(uintptr_t)value);
        }
    }
    if (task->run == run_program) {
        end(process);
        return;
    }
    for (struct sim_task *at = process->tasks; at != NULL; at = at->next) {
        if (at->waits_for == task) {
            sim_wake(at);
        }
    }
}

void sim_process_kill(struct sim_process *process)
{
    struct sim_task *self = NULL;
    sim_polls_end(process);
    for (struct sim_task *at = process->tasks; at != NULL; at = at->next) {
        if (at == sim_task) {
            self = at;
        } else if (!at->ended) {
            sim_task_end(at);
        }
    }
    sim_descriptors_close(process);
    process->killed = true;
    end(process);
    if (self != NULL) {
        sim_task_end(self);
    }
}

void sim_host_kill(const struct sim_host *host)
{
    for (int i = 0; i < process_count; i++) {
        if (processes[i] != NULL && processes[i]->host == host && !processes[i]->ended) {
            sim_process_kill(processes[i]);
        }
    }
}

void sim_process_free(struct sim_process *process)
{
    processes[process->pid - FIRST_PID] = NULL;
    sim_polls_end(process);
    sim_descriptors_close(process);
    for (struct sim_task *task = process->tasks, *next; task != NULL; task = next) {
        next = task->next;
        if (!task->ended) {
            sim_task_end(task);
        }
        sim_task_free(task);
    }
    sim_maps_free(process);
    sim_image_free(&process->image);
    free(process->descriptors);
    free(process->maps);
    free(process);
}
