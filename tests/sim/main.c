/* SPDX-License-Identifier: MIT */
/* The simulator: see docs/simulation.md. */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#include "process.h"
#include "report.h"
#include "system.h"
#include "task.h"
#include "world.h"

bool sim_traces;
static struct sim_plan plan = {
    .most_turns = 20000000, .most_time = INT64_C(600000000000), .faults = true};
static const char *usage_arguments = "";

void sim_trace_line(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%14.3f us  ", (double)sim_time() / 1000);
    if (sim_task != NULL) {
        fprintf(stderr, "rank %u%s%s: ", sim_task->process->rank,
                sim_task->name[0] != '\0' ? " " : "", sim_task->name);
    }
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void sim_fail(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "\nsimulate: seed %llu: ", (unsigned long long)plan.seed);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n    after %.3f us and %llu turns", (double)sim_time() / 1000,
            (unsigned long long)sim_turns());
    if (sim_task != NULL) {
        fprintf(stderr, ", in rank %u", sim_task->process->rank);
    }
    fprintf(stderr, "\n    again: scripts/simulate --seed %llu%s --trace\n",
            (unsigned long long)plan.seed, usage_arguments);
    exit(1);
}

/* Starts this program again where addresses are the same each time. */
static void fix_addresses(char **arguments)
{
    int now = personality(0xffffffff);
    if (now >= 0 && (now & ADDR_NO_RANDOMIZE) == 0 &&
        personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0) {
        execv("/proc/self/exe", arguments);
    }
}

static double real_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run_for(const struct sim_module *module, double seconds, uint64_t most)
{
    double begin = real_seconds();
    uint64_t runs = 0, turns = 0, killed = 0;
    double simulated = 0;
    while (runs < most && (seconds == 0 || real_seconds() - begin < seconds)) {
        struct sim_outcome outcome = sim_world_run(module, &plan);
        runs++;
        turns += outcome.turns;
        killed += outcome.killed;
        simulated += (double)outcome.time / 1e9;
        plan.seed++;
    }
    printf("simulate: %llu programs, %.3f s of simulated time in %.3f s, %llu turns, %llu ranks "
           "killed: all promises were kept\n",
           (unsigned long long)runs, simulated, real_seconds() - begin, (unsigned long long)turns,
           (unsigned long long)killed);
}

int main(int count, char **arguments)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"seconds", required_argument, NULL, 't'},
        {"ranks", required_argument, NULL, 'n'},
        {"hosts", required_argument, NULL, 'h'},
        {"no-faults", no_argument, NULL, 'f'},
        {"trace", no_argument, NULL, 'v'},
        {"skip", required_argument, NULL, 'k'},
        {"module", required_argument, NULL, 'm'},
        {"runs", required_argument, NULL, 'r'},
        {"log", no_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    static const char *const logging[] = {"SLUICE_LOG=debug", NULL};
    const char *path = "tests/sim/.libs/rank.so";
    double seconds = 0;
    uint64_t most = 1;
    int option;
    fix_addresses(arguments);
    plan.seed = (uint64_t)time(NULL) * 1000000;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        switch (option) {
        case 's':
            plan.seed = strtoull(optarg, NULL, 0);
            break;
        case 't':
            seconds = strtod(optarg, NULL);
            most = UINT64_MAX;
            break;
        case 'r':
            most = strtoull(optarg, NULL, 0);
            break;
        case 'n':
            plan.ranks = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'h':
            plan.hosts = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'f':
            plan.faults = false;
            break;
        case 'v':
            sim_traces = true;
            break;
        case 'l':
            plan.environment = logging;
            break;
        case 'm':
            path = optarg;
            break;
        default:
            return 2;
        }
    }
    for (int i = optind; i < count; i++) {
        sim_number_set(arguments[i]);
    }
    sim_catch_faults();
    run_for(sim_module_open(path, sim_resolve), seconds, most);
    return 0;
}
