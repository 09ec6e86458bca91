/* SPDX-License-Identifier: MIT */
#include "fault.h"

#include <string.h>

#include "fabric/fabric.h"
#include "network.h"
#include "random.h"
#include "report.h"
#include "sim.h"
#include "stream.h"
#include "system.h"
#include "world.h"

enum { MOST = 64 };

struct fault {
    struct sim_event event; /* the first field */
    enum sim_blow blow;
    struct sim_process *process;
    uint32_t other; /* a host; UINT32_MAX: all others */
    int64_t lasts;
    /* Of SIM_REFUSE: the call fails so often, after so many that do not. */
    const char *call;
    uint64_t skips;
    uint32_t times, refused;
    bool happened;
};

static struct fault faults[MOST];
static uint32_t count;
static uint64_t skipped; /* one bit for each */
uint32_t sim_troubles;

void sim_fault_skip(uint32_t number)
{
    skipped |= UINT64_C(1) << number;
}

static void part(const struct fault *fault)
{
    uint32_t own = fault->process->host->index;
    int64_t until = fault->lasts == INT64_MAX ? INT64_MAX : sim_time() + fault->lasts;
    for (uint32_t i = 0; i < sim_host_count(); i++) {
        if (i == fault->other || (i != own && fault->other == UINT32_MAX)) {
            sim_network_part(own, i, until);
        }
    }
}

/* Nothing comes from the host any more, not even the ends of its connections. */
static void lose_power(struct sim_host *host)
{
    host->down = true;
    sim_host_kill(host);
}

/* The name of each fault, and its meaning for those that it befalls. */
static const struct {
    const char *name;
    enum sim_mishap mishap;
} kinds[] = {
    [SIM_KILL] = {"is killed", SIM_KILLED},
    [SIM_STOP] = {"stops", SIM_STOPPED},
    [SIM_PART] = {"is on a host that others do not reach", 0},
    [SIM_REFUSE] = {"has calls refused", SIM_REFUSED},
    [SIM_RESET] = {"has its connections reset", SIM_CUT},
    [SIM_JUMP] = {"is on a host whose clock of the day jumps", 0},
    [SIM_RESTART] = {"is killed and starts again", SIM_KILLED},
    [SIM_POWER] = {"is on a host that loses its power", SIM_KILLED},
    [SIM_MOVE] = {"is on a host that gets another address", SIM_CUT},
    [SIM_DIE] = {"is on a host whose device dies", SIM_DEVICE},
    [SIM_LOSE] = {"is in a network that loses packets", 0},
    [SIM_HIDE] = {"is on a host without /proc", 0},
    [SIM_CRAWL] = {"is on a host whose device is slow", 0},
    [SIM_ISLE] = {"is on a host with an address to which there is no route", 0},
    [SIM_HOLD] = {"has no processor for its helper threads", 0},
};

static void happen(struct sim_event *event)
{
    struct fault *fault = (struct fault *)event;
    struct sim_process *process = fault->process;
    if (process->ended && fault->blow != SIM_RESTART) {
        return;
    }
    sim_troubles += fault->blow != SIM_DIE;
    fault->happened = fault->blow != SIM_DIE;
    sim_trace("fault %ld: rank %u %s, %ld ns", fault - faults, process->rank,
              kinds[fault->blow].name, (long)fault->lasts);
    switch (fault->blow) {
    case SIM_KILL:
        sim_process_kill(process);
        break;
    case SIM_STOP:
        process->paused_until = sim_time() + fault->lasts;
        break;
    case SIM_PART:
        part(fault);
        break;
    case SIM_RESET:
        sim_streams_reset(process);
        break;
    case SIM_JUMP:
        process->host->clock_ahead += fault->lasts;
        break;
    case SIM_RESTART:
        sim_world_restart(process->rank);
        break;
    case SIM_POWER:
        lose_power(process->host);
        break;
    case SIM_MOVE:
        process->host->moves++;
        break;
    case SIM_DIE:
        sim_fabric_die(process->host);
        break;
    case SIM_LOSE:
        sim_network.lose = sim_network.fabric_lose = (uint64_t)fault->lasts;
        break;
    case SIM_HIDE:
        process->host->hides_proc = true;
        break;
    case SIM_CRAWL:
        sim_fabric_slow_down(process->host, fault->lasts);
        break;
    case SIM_ISLE:
        process->host->has_isle = true;
        break;
    case SIM_HOLD:
        process->helpers_held_until = sim_time() + fault->lasts;
        break;
    case SIM_REFUSE:
        break;
    }
}

/* Calls that may be refused. A fabric has the last two. */
static const char *const calls[] = {
    "malloc",  "descriptor", "memfd_create", "fallocate", "mmap",  "pthread_create", "open",
    "sendmsg", "send",       "socket",       "epoll_ctl", "readv", "register",       "post",
};
enum { CALLS = sizeof calls / sizeof *calls };

static void plan_one(struct fault *fault, struct sim_process **processes, uint32_t ranks)
{
    *fault = (struct fault){
        .event.happen = happen,
        .blow = (enum sim_blow)sim_number("fault", sim_below(SIM_FAULTS, SIM_DRAWN)),
        .process = processes[sim_below(SIM_FAULTS, ranks)],
        .other = (uint32_t)sim_below(SIM_FAULTS, sim_host_count()),
        .lasts = (int64_t)sim_spread(SIM_FAULTS, INT64_C(8000000000)),
        .call = calls[sim_number("call", sim_below(SIM_FAULTS, CALLS)) % CALLS],
        .skips = sim_spread(SIM_FAULTS, 500),
        .times = 1,
    };
    if (fault->blow == SIM_JUMP) {
        fault->lasts = (fault->lasts - INT64_C(4000000000)) * 3600;
    }
}

void sim_faults_plan(bool wanted, struct sim_process **processes, uint32_t ranks)
{
    count = wanted ? (uint32_t)sim_number("faults", sim_below(SIM_FAULTS, 4)) % MOST : 0;
    sim_troubles = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t at = sim_time() + (int64_t)sim_spread(SIM_FAULTS, INT64_C(2000000000));
        plan_one(&faults[i], processes, ranks);
        if ((skipped & UINT64_C(1) << i) == 0 && faults[i].blow != SIM_REFUSE) {
            sim_event_set(&faults[i].event, at);
        }
    }
}

static struct fault *add(enum sim_blow blow, uint32_t rank)
{
    sim_require(count < MOST, "too many faults");
    faults[count] = (struct fault){.event.happen = happen,
                                   .blow = blow,
                                   .process = sim_world_process(rank),
                                   .other = UINT32_MAX};
    return &faults[count++];
}

void sim_strike(enum sim_blow blow, uint32_t rank, int64_t after, int64_t lasts)
{
    struct fault *fault = add(blow, rank);
    fault->lasts = lasts;
    sim_event_set(&fault->event, sim_time() + after);
}

void sim_refuse(uint32_t rank, const char *call, uint64_t skips, uint32_t times)
{
    struct fault *fault = add(SIM_REFUSE, rank);
    fault->call = call;
    fault->skips = skips;
    fault->times = times;
}

uint32_t sim_refused(void)
{
    return count > 0 ? faults[count - 1].refused : 0;
}

void sim_forget(void)
{
    count -= count > 0;
}

void sim_faults_end(void)
{
    for (uint32_t i = 0; i < count; i++) {
        sim_event_clear(&faults[i].event);
    }
    count = 0;
}

uint32_t sim_fault_befell(const struct sim_process *process)
{
    uint32_t befell = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (faults[i].happened && faults[i].process->rank == process->rank) {
            befell |= kinds[faults[i].blow].mishap;
        }
    }
    return befell;
}

bool sim_fault_parted(const struct sim_host *a, const struct sim_host *b)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct fault *fault = &faults[i];
        uint32_t one = fault->process->host->index;
        if (fault->blow == SIM_PART && fault->happened && a != b &&
            ((one == a->index && (fault->other == b->index || fault->other == UINT32_MAX)) ||
             (one == b->index && (fault->other == a->index || fault->other == UINT32_MAX)))) {
            return true;
        }
    }
    return false;
}

uint32_t sim_faults_happened(void)
{
    uint32_t happened = 0;
    for (uint32_t i = 0; i < count; i++) {
        happened += faults[i].happened;
    }
    return happened;
}

uint32_t sim_faults_killed(void)
{
    uint32_t killed = 0;
    for (uint32_t i = 0; i < count; i++) {
        killed += faults[i].happened && faults[i].blow == SIM_KILL;
    }
    return killed;
}

bool sim_fault_is_due(const char *call)
{
    for (uint32_t i = 0; i < count; i++) {
        struct fault *fault = &faults[i];
        if (fault->blow != SIM_REFUSE || fault->process != sim_task->process || fault->times == 0 ||
            (skipped & UINT64_C(1) << i) != 0 || strcmp(fault->call, call) != 0) {
            continue;
        }
        if (fault->skips > 0) {
            fault->skips--;
            continue;
        }
        fault->times--;
        fault->refused++;
        sim_trace("fault %u: %s() is refused", i, call);
        sim_troubles += !fault->happened;
        fault->happened = true;
        return true;
    }
    return false;
}
