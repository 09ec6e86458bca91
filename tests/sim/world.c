/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fault.h"
#include "launch.h"
#include "network.h"
#include "process.h"
#include "random.h"
#include "report.h"
#include "sim.h"
#include "system.h"

enum { NUMBERS = 16, SHARED = 8, THREAD_PAUSE = 1000000 /* ns */ };

int sim_program;
static const char *numbers[NUMBERS];
static uint32_t number_count;

static struct {
    const struct sim_module *module;
    const char *scenario;
    struct sim_process **processes;
    uint64_t *streams; /* of random numbers of the programs */
    uint32_t ranks, running;
    struct {
        void *memory;
        size_t bytes;
    } shared[SHARED];
} world;

void sim_number_set(const char *text)
{
    sim_require(number_count < NUMBERS && strchr(text, '=') != NULL, "%s: not NAME=VALUE", text);
    numbers[number_count++] = text;
}

uint64_t sim_number(const char *name, uint64_t otherwise)
{
    size_t length = strlen(name);
    for (uint32_t i = 0; i < number_count; i++) {
        if (strncmp(numbers[i], name, length) == 0 && numbers[i][length] == '=') {
            return strtoull(numbers[i] + length + 1, NULL, 0);
        }
    }
    return otherwise;
}

void sim_chosen(uint32_t program)
{
    sim_program = (int)program;
}

uint32_t sim_rank(void)
{
    return sim_task->process->rank;
}

uint32_t sim_ranks(void)
{
    return world.ranks;
}

uint32_t sim_generation(void)
{
    return sim_task->process->generation;
}

uint32_t sim_mapped(void)
{
    return (uint32_t)sim_task->process->map_count;
}

uint64_t sim_allocated(void)
{
    return sim_task->process->bytes;
}

const char *sim_scenario(void)
{
    return world.scenario;
}

struct sim_process *sim_world_process(uint32_t rank)
{
    return world.processes[rank];
}

uint64_t sim_program_random(void)
{
    return sim_next(&world.streams[sim_rank()]);
}

void *sim_shared(size_t bytes)
{
    for (uint32_t i = 0; i < SHARED; i++) {
        if (world.shared[i].memory == NULL) {
            world.shared[i].memory = sim_alloc(1, bytes);
            world.shared[i].bytes = bytes;
        }
        if (world.shared[i].bytes == bytes) {
            return world.shared[i].memory;
        }
    }
    sim_fail("too many kinds of shared memory");
}

bool sim_is_dead(uint32_t rank)
{
    return world.processes[rank]->ended;
}

bool sim_is_troubled(void)
{
    return sim_troubles > 0;
}

uint32_t sim_befell(uint32_t a, uint32_t b)
{
    return sim_fault_befell(world.processes[a]) | sim_fault_befell(world.processes[b]) |
           (sim_fault_parted(world.processes[a]->host, world.processes[b]->host) ? SIM_PARTED : 0) |
           (sim_troubles > sim_faults_happened() ? SIM_DEVICE : 0);
}

void sim_pause(int64_t ns)
{
    sim_wait(sim_task->now + ns);
}

int64_t sim_own_time(void)
{
    return sim_task->now;
}

/* Returns a thread that has not ended, of a process that ended by itself, or NULL. */
static const struct sim_task *find_thread(void)
{
    for (uint32_t i = 0; i < world.ranks; i++) {
        const struct sim_task *at = world.processes[i]->tasks;
        while (at != NULL && at->ended) {
            at = at->next;
        }
        if (at != NULL) {
            return at;
        }
    }
    return NULL;
}

/* Threads that nobody waits for may run for a while after the program has returned. */
static void look_for_threads(struct sim_event *event)
{
    if (find_thread() == NULL) {
        sim_stop();
    } else {
        sim_event_set(event, event->at + THREAD_PAUSE);
    }
}

static struct sim_event over = {.happen = look_for_threads};

static void process_ended(struct sim_process *process)
{
    sim_gather_leave(process->rank);
    if (--world.running == 0) {
        sim_event_set(&over, sim_time() + THREAD_PAUSE);
    }
}

static void choose_network(void)
{
    sim_network = (struct sim_network){
        .delay = 1000 + (int64_t)sim_spread(SIM_NETWORK, 200000),
        .jitter = (int64_t)sim_spread(SIM_NETWORK, 1000000),
        .lose = sim_once_in(SIM_NETWORK, 4) ? 20 + sim_spread(SIM_NETWORK, 2000) : 0,
        .pieces = (uint32_t)(sim_once_in(SIM_NETWORK, 2) ? 1 + sim_below(SIM_NETWORK, 8) : 0),
        .buffer = 2048 + (uint32_t)sim_spread(SIM_NETWORK, 1 << 20),
        .fabric_delay = 300 + (int64_t)sim_spread(SIM_FABRIC, 20000),
        .fabric_jitter = (int64_t)sim_spread(SIM_FABRIC, 20000),
        .fabric_pace = 20 + (int64_t)sim_spread(SIM_FABRIC, 4000),
        .fabric_lose = sim_once_in(SIM_FABRIC, 4) ? 1000 + sim_spread(SIM_FABRIC, 50000) : 0,
    };
    sim_trace("network: delay %ld ns, jitter %ld ns, loses 1 in %lu, 1 send in %u is partial, "
              "%u bytes in flight",
              (long)sim_network.delay, (long)sim_network.jitter, (unsigned long)sim_network.lose,
              sim_network.pieces, sim_network.buffer);
}

/* A process that ended by itself has given everything back. */
static void check_end(const struct sim_process *process)
{
    uint32_t open = sim_descriptors_open(process);
    const char *leaks = sim_heap_leaks(process);
    sim_require(process->status == 0, "rank %u ended with status %d", process->rank,
                process->status);
    sim_descriptors_list(process);
    sim_require(open == 0, "rank %u ended with %u open descriptors", process->rank, open);
    open = sim_fabric_left(process);
    sim_require(open == 0, "rank %u ended with %u objects of its device", process->rank, open);
    sim_require(process->map_count == 0, "rank %u ended with %zu mappings, one of %zu bytes",
                process->rank, process->map_count, process->maps[0].bytes);
    sim_require(leaks == NULL, "rank %u ended with %lu bytes of its heap: %s", process->rank,
                (unsigned long)process->bytes, leaks);
}

static void start(const struct sim_plan *plan)
{
    uint64_t stream = plan->seed;
    for (uint32_t i = 0; i < world.ranks; i++) {
        struct sim_host *host = sim_host(i % sim_host_count());
        world.streams[i] = sim_next(&stream);
        world.processes[i] = sim_process_start(host, world.module, i, world.ranks);
        world.processes[i]->environment = sim_launch_environment(i, world.ranks, plan->environment);
        /* Rank 0 of a job needs a descriptor for each rank. */
        world.processes[i]->descriptor_limit += (int)(4 * world.ranks);
    }
}

void sim_world_restart(uint32_t rank)
{
    struct sim_process *before = world.processes[rank], *process;
    if (!before->ended) {
        sim_process_kill(before);
    }
    process = sim_process_start(before->host, world.module, rank, world.ranks);
    process->before = before;
    process->generation = before->generation + 1;
    process->environment = before->environment;
    world.processes[rank] = process;
    world.running++;
    sim_gather_return(rank);
}

static void end(void)
{
    sim_fabric_end();
    /* The last one first, so that each rank has the same image in the next run. */
    for (uint32_t i = world.ranks; i-- > 0;) {
        const char *const *environment = world.processes[i]->environment;
        for (struct sim_process *at = world.processes[i], *before; at != NULL; at = before) {
            before = at->before;
            sim_process_free(at);
        }
        sim_launch_environment_free(environment);
    }
    for (uint32_t i = 0; i < SHARED; i++) {
        free(world.shared[i].memory);
    }
    sim_gather_end();
    free(world.processes);
    free(world.streams);
    memset(&world, 0, sizeof world);
    sim_hosts_free();
    sim_network_reset();
}

struct sim_outcome sim_world_run(const struct sim_module *module, const struct sim_plan *plan)
{
    struct sim_outcome outcome;
    uint64_t before = sim_turns();
    uint64_t most_turns = plan->most_turns;
    int64_t began;
    sim_program = -1;
    sim_random_begin(plan->seed);
    sim_time_reset();
    began = sim_time();
    world.ranks = plan->ranks != 0 ? plan->ranks : 2 + (uint32_t)sim_below(SIM_SYSTEM, 4);
    world.running = world.ranks;
    world.module = module;
    world.scenario = plan->scenario;
    most_turns *= 1 + world.ranks / 16;
    world.processes = sim_alloc(world.ranks, sizeof(struct sim_process *));
    world.streams = sim_alloc(world.ranks, sizeof *world.streams);
    sim_heap_begin();
    sim_maps_begin();
    sim_stacks_begin();
    sim_gather_begin(world.ranks);
    sim_hosts_make(plan->hosts != 0 ? plan->hosts
                                    : 1 + (uint32_t)sim_below(SIM_SYSTEM, world.ranks));
    choose_network();
    sim_pace = 1 << (world.ranks <= 16 ? sim_below(SIM_SYSTEM, 5) : 0);
    sim_pace = (int64_t)sim_number("pace", (uint64_t)sim_pace);
    sim_fabric_begin(plan->faults && plan->scenario == NULL);
    sim_process_ended = process_ended;
    start(plan);
    sim_faults_plan(plan->faults && plan->scenario == NULL, world.processes, world.ranks);
    if (!sim_run(began + plan->most_time, before + most_turns)) {
        const struct sim_task *left = world.running == 0 ? find_thread() : NULL;
        sim_require(left == NULL, "rank %u ended, and its thread \"%s\" runs on",
                    left->process->rank, left->name);
        sim_fail("the ranks do not come to an end: %u of %u run, %s", world.running, world.ranks,
                 sim_turns() - before >= most_turns ? "and take turns all the time"
                                                    : "and wait for ever");
    }
    for (uint32_t i = 0; i < world.ranks; i++) {
        if (!world.processes[i]->killed) {
            check_end(world.processes[i]);
        }
    }
    outcome = (struct sim_outcome){sim_turns() - before, sim_time() - began, sim_faults_killed()};
    sim_faults_end();
    end();
    return outcome;
}
