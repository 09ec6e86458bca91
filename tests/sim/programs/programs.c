/* SPDX-License-Identifier: MIT */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void called(const char *name, enum result kind, int64_t result, int64_t began)
{
    static const char *last;
    static int64_t last_result;
    static uint32_t times;
    char number[24];
    bool fails = (kind == NUMBER && result < 0) || (kind == OBJECT && result == 0);
    result = kind == OBJECT ? result != 0 : result;
    if (name == last && result == last_result && sim_own_time() - began < SLUICE_MS(1)) {
        times++;
        return;
    }
    if (times > 0) {
        sim_note("calls %s() %u times more", last, times);
    }
    last = name;
    last_result = result;
    times = 0;
    snprintf(number, sizeof number, "%ld", (long)result);
    sim_note("calls %s() for %ld us: %s%s%s", name, (long)((sim_own_time() - began) / 1000),
             kind == NUMBER ? number
             : fails        ? "NULL"
                            : "done",
             fails ? ": " : "", fails ? sluice_last_error() : "");
}

uint64_t below(uint64_t limit)
{
    return sim_program_random() % limit;
}

static void *give_up[5];

void again(const char *what)
{
    static uint32_t refusals;
    uint32_t befell = sim_befell(sim_rank(), sim_rank());
    bool refused = (befell & SIM_REFUSED) != 0 && refusals++ < 8;
    must(refused || (befell & SIM_DEVICE) != 0, "%s: %s", what, sluice_last_error());
    if (!refused) {
        __builtin_longjmp(give_up, 1);
    }
}

static uint64_t agreed_state;

uint64_t agreed(uint64_t limit)
{
    uint64_t *first = sim_shared(sizeof *first);
    if (*first == 0) {
        *first = sim_program_random() | 1;
    }
    agreed_state = (agreed_state != 0 ? agreed_state : *first) * UINT64_C(6364136223846793005) +
                   1442695040888963407;
    return (agreed_state >> 33) % limit;
}

uint64_t agreed_so_far(void)
{
    return agreed_state;
}

void agree_from(uint64_t state)
{
    agreed_state = state;
}

bool works(bool condition, const char *what)
{
    must(condition || sim_is_troubled(), "%s: %s", what, sluice_last_error());
    if (!condition) {
        sim_note("%s: %s", what, sluice_last_error());
    }
    return condition;
}

bool well_with(bool condition, uint32_t rank, const char *what)
{
    uint32_t excuses = SIM_KILLED | SIM_CUT | SIM_REFUSED | SIM_DEVICE, befell = 0;
    for (uint32_t i = 0; i < sim_ranks() && !condition; i++) {
        befell |= rank == ANYBODY || rank == i ? sim_befell(sim_rank(), i) : 0;
    }
    must(condition || (befell & excuses) != 0, "%s with rank %u failed for no reason: %s", what,
         rank, sluice_last_error());
    if (!condition) {
        sim_note("%s with rank %u: %s", what, rank, sluice_last_error());
    }
    return condition;
}

uint32_t next_rank(void)
{
    return (sim_rank() + 1) % sim_ranks();
}

uint32_t rank_before(void)
{
    return (sim_rank() + sim_ranks() - 1) % sim_ranks();
}

void in_time(int64_t began, int64_t deadline, const char *what)
{
    /* Requests end within 1 s of their deadline. Faults may stop a process for 8 s each. */
    int64_t most = deadline + SLUICE_MS(1500) + (sim_is_troubled() ? SLUICE_S(24) : 0);
    must(sim_own_time() - began <= most, "%s took %ld ms, its deadline is %ld ms", what,
         (long)((sim_own_time() - began) / 1000000), (long)(deadline / 1000000));
}

bool all_well(bool well)
{
    uint8_t own = well, *all = malloc(sim_ranks());
    must(all != NULL || sim_is_troubled(), "no memory");
    if (all == NULL) {
        uint8_t none[256];
        must(sim_ranks() <= sizeof none, "no memory");
        own = 0;
        sim_allgather(&own, none, 1);
        return false;
    }
    sim_allgather(&own, all, 1);
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        well = well && all[i] == 1;
    }
    free(all);
    return well;
}

void leave(struct gone *gone)
{
    gone->ranks[sim_rank() % MOST_GONE] = true;
}

uint32_t count_gone(const struct gone *gone)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        count += gone->ranks[i % MOST_GONE] || sim_is_dead(i);
    }
    return count;
}

void write_address(char *text, size_t size, int port)
{
    char host[64] = "host0";
    unsigned number;
    must(gethostname(host, sizeof host) == 0, "no name of the host");
    number = (unsigned)strtoul(host + 4, NULL, 10) + 1;
    snprintf(text, size, "10.%u.%u.%u:%d", number >> 16 & 255, number >> 8 & 255, number & 255,
             port);
}

int rank_main(void)
{
    /* Most of all runs are traffic: it calls most of the library. */
    static const struct {
        void (*run)(void);
        void (*end)(void);    /* after run(), even if it gave up */
        int (*service)(void); /* in their place */
        uint32_t weight;
    } programs[] = {
        {.run = run_scatter, .end = end_scatter, .weight = 1},
        {.run = run_traffic, .end = end_traffic, .weight = 8},
        {.service = run_node, .weight = 2},
        {.service = run_agent, .weight = 2},
        {.service = run_buffer, .weight = 2},
        {.service = run_listener, .weight = 2},
        {.service = run_forms, .weight = 4},
        {.service = run_batch, .weight = 2},
        {.service = run_lease, .weight = 2},
        {.service = run_store, .weight = 2},
        {.service = run_crowd, .weight = 2},
        {.service = run_rejoin, .weight = 2},
        {.service = run_grow, .weight = 2},
    };
    uint64_t chosen = 0, drawn;
    if (sim_scenario() != NULL) {
        return run_scenario(sim_scenario());
    }
    drawn = agreed(33);
    while (drawn >= programs[chosen].weight) {
        drawn -= programs[chosen++].weight;
    }
    chosen = sim_number("program", sim_number("wrong", 0) != 0 ? 0 : chosen);
    must(chosen < sizeof programs / sizeof *programs, "there is no such program");
    sim_chosen((uint32_t)chosen);
    if (programs[chosen].service != NULL) {
        return programs[chosen].service();
    }
    if (__builtin_setjmp(give_up) == 0) {
        programs[chosen].run();
    }
    programs[chosen].end();
    return 0;
}
