/* SPDX-License-Identifier: MIT */
#include "fault.h"

#include <string.h>

#include "network.h"
#include "random.h"
#include "report.h"
#include "sim.h"
#include "system.h"

enum { MOST = 16, CALLS = 9 };

enum kind { KILL, PAUSE, PART, REFUSE, KINDS };

struct fault {
    struct sim_event event; /* the first field */
    enum kind kind;
    struct sim_process *process;
    uint32_t other; /* a host */
    int64_t lasts;
    /* Of REFUSE: the call fails once, after so many that do not. */
    const char *call;
    uint64_t skips;
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

static void happen(struct sim_event *event)
{
    struct fault *fault = (struct fault *)event;
    struct sim_process *process = fault->process;
    if (process->ended) {
        return;
    }
    sim_troubles++;
    fault->happened = true;
    switch (fault->kind) {
    case KILL:
        sim_trace("fault %ld: rank %u is killed", fault - faults, process->rank);
        sim_process_kill(process);
        break;
    case PAUSE:
        sim_trace("fault %ld: rank %u stops for %ld ns", fault - faults, process->rank,
                  (long)fault->lasts);
        process->paused_until = sim_time() + fault->lasts;
        break;
    default:
        sim_trace("fault %ld: hosts %u and %u are apart for %ld ns", fault - faults,
                  process->host->index, fault->other, (long)fault->lasts);
        sim_network_part(process->host->index, fault->other, sim_time() + fault->lasts);
        break;
    }
}

static void plan_one(struct fault *fault, struct sim_process **processes, uint32_t ranks)
{
    /* The last two are those of a device. */
    static const char *const calls[CALLS] = {"malloc",    "descriptor", "memfd_create",
                                             "fallocate", "mmap",       "pthread_create",
                                             "open",      "post",       "register"};
    *fault = (struct fault){
        .event.happen = happen,
        .kind = (enum kind)sim_number("fault", sim_below(SIM_FAULTS, KINDS)),
        .process = processes[sim_below(SIM_FAULTS, ranks)],
        .other = (uint32_t)sim_below(SIM_FAULTS, sim_host_count()),
        .lasts = (int64_t)sim_spread(SIM_FAULTS, INT64_C(8000000000)),
        .call = calls[sim_number("call", sim_below(SIM_FAULTS, CALLS)) % CALLS],
        .skips = sim_spread(SIM_FAULTS, 500),
    };
}

void sim_faults_plan(bool wanted, struct sim_process **processes, uint32_t ranks)
{
    count = wanted ? (uint32_t)sim_number("faults", sim_below(SIM_FAULTS, 4)) % MOST : 0;
    sim_troubles = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t at = sim_time() + (int64_t)sim_spread(SIM_FAULTS, INT64_C(2000000000));
        plan_one(&faults[i], processes, ranks);
        if ((skipped & UINT64_C(1) << i) == 0 && faults[i].kind != REFUSE) {
            sim_event_set(&faults[i].event, at);
        }
    }
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
    static const uint32_t bits[KINDS] = {SIM_KILLED, SIM_STOPPED, 0, SIM_REFUSED};
    uint32_t befell = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (faults[i].happened && faults[i].process == process) {
            befell |= bits[faults[i].kind];
        }
    }
    return befell;
}

bool sim_fault_parted(const struct sim_host *a, const struct sim_host *b)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct fault *fault = &faults[i];
        uint32_t one = fault->process->host->index;
        if (fault->kind == PART && fault->happened && a != b &&
            ((one == a->index && fault->other == b->index) ||
             (one == b->index && fault->other == a->index))) {
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
        killed += faults[i].happened && faults[i].kind == KILL;
    }
    return killed;
}

bool sim_fault_is_due(const char *call)
{
    for (uint32_t i = 0; i < count; i++) {
        struct fault *fault = &faults[i];
        if (fault->kind == REFUSE && fault->process == sim_task->process &&
            (skipped & UINT64_C(1) << i) == 0 && strcmp(fault->call, call) == 0 &&
            fault->skips-- == 0) {
            sim_trace("fault %u: %s() is refused", i, call);
            sim_troubles++;
            fault->happened = true;
            return true;
        }
    }
    return false;
}
