/* SPDX-License-Identifier: MIT */
/* The simulator: see docs/simulation.md. */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "network.h"
#include "process.h"
#include "report.h"
#include "sim.h"
#include "system.h"
#include "task.h"
#include "world.h"

bool sim_traces;
static struct sim_plan plan = {
    .most_turns = 20000000, .most_time = INT64_C(600000000000), .faults = true};
#define RANK "tests/sim/.libs/rank.so"
#define FABRIC "tests/sim/.libs/fabric.so" /* as scripts/simulate --module fabric has it */
static const char *path = RANK;
static double seconds;
static uint64_t most_runs = 1;
static bool shows_traffic; /* is printed */
/* The options that a run depends on, for the line that says how to repeat it. */
static char arguments_given[256];

void sim_trace_line(const char *format, ...)
{
    va_list arguments;
    if (!sim_traces) {
        return;
    }
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
    if (sim_program >= 0) {
        fprintf(stderr, " of program %d", sim_program);
    }
    fprintf(stderr, "\n    again: scripts/simulate --seed %llu%s --trace\n",
            (unsigned long long)plan.seed, arguments_given);
    exit(1);
}

void *sim_alloc(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    sim_require(memory != NULL, "no memory for the simulation");
    return memory;
}

void *sim_grow(void *array, int *room, size_t bytes)
{
    size_t old = (size_t)*room * bytes, grown = (2 * (size_t)*room + 16) * bytes;
    char *memory = realloc(array, grown);
    sim_require(memory != NULL, "no memory for the simulation");
    memset(memory + old, 0, grown - old);
    *room = 2 * *room + 16;
    return memory;
}

void sim_note(const char *format, ...) __attribute__((alias("sim_trace_line")));
void sim_break(const char *format, ...) __attribute__((alias("sim_fail")));

/* Starts this program again where addresses are the same each time. */
static void fix_addresses(char **arguments)
{
    int now = personality(0xffffffff);
    if (now >= 0 && (now & ADDR_NO_RANDOMIZE) == 0 &&
        personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0) {
        execv("/proc/self/exe", arguments);
    }
}

/* A turn that takes this many seconds of the processor has no end. */
enum { LONGEST_TURN = 20 };

static void check_turns(int number)
{
    static uint64_t last;
    if (sim_turns() == last && sim_task != NULL) {
        sim_fail("rank %u keeps its turn for %d s", sim_task->process->rank, LONGEST_TURN);
    }
    last = sim_turns();
}

static void watch_turns(void)
{
    const struct sigaction action = {.sa_handler = check_turns,
                                     .sa_flags = SA_RESTART | SA_ONSTACK};
    const struct itimerval time = {{LONGEST_TURN, 0}, {LONGEST_TURN, 0}};
    sigaction(SIGVTALRM, &action, NULL);
    setitimer(ITIMER_VIRTUAL, &time, NULL);
}

static double real_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_traffic(const char *what, const struct sim_traffic *traffic)
{
    printf("  %s: %llu messages, %llu bytes\n", what, (unsigned long long)traffic->messages,
           (unsigned long long)traffic->bytes);
}

static void print_all_traffic(void)
{
    print_traffic("between hosts", &sim_sent);
    print_traffic("from the first host", &sim_sent_by_first);
    print_traffic("to the first host", &sim_sent_to_first);
}

void sim_print_traffic(const char *until)
{
    if (shows_traffic) {
        printf("until %s:\n", until);
        print_all_traffic();
        fflush(stdout);
    }
}

static void run_for(const struct sim_module *module)
{
    double begin = real_seconds();
    uint64_t runs = 0, turns = 0, killed = 0;
    double simulated = 0;
    while (runs < most_runs && (seconds == 0 || real_seconds() - begin < seconds)) {
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
    if (shows_traffic) {
        print_all_traffic();
    }
}

/* Adds an option to those that a run depends on. */
static void remember(const char *option, const char *value)
{
    size_t used = strlen(arguments_given);
    snprintf(arguments_given + used, sizeof arguments_given - used, " %s%s%s", option,
             value != NULL ? " " : "", value != NULL ? value : "");
}

/* Takes the name of a scenario and its wire: NAME:WIRE. */
static void take_scenario(const char *value)
{
    static char name[64];
    const char *wire = strchr(value, ':');
    if (wire == NULL || (size_t)(wire - value) >= sizeof name) {
        fprintf(stderr, "simulate: %s: not NAME:WIRE\n", value);
        exit(2);
    }
    memcpy(name, value, (size_t)(wire - value));
    plan.scenario = name;
    plan.ranks = strcmp(wire, ":self") == 0 ? 1 : strcmp(wire, ":many") == 0 ? 40 : 3;
    plan.hosts = strcmp(wire, ":self") == 0 || strcmp(wire, ":shm") == 0 ? 1 : 3;
    path = strcmp(wire, ":fabric") == 0 ? FABRIC : path;
    remember("--scenario", value);
}

static void take_option(int option, const char *value)
{
    static const char *const logging[] = {"SLUICE_LOG=debug", NULL};
    uint64_t number = value != NULL ? strtoull(value, NULL, 0) : 0;
    switch (option) {
    case 's':
        plan.seed = number;
        break;
    case 't':
        seconds = strtod(value, NULL);
        most_runs = UINT64_MAX;
        break;
    case 'r':
        most_runs = number;
        break;
    case 'n':
        plan.ranks = (uint32_t)number;
        remember("--ranks", value);
        break;
    case 'h':
        plan.hosts = (uint32_t)number;
        remember("--hosts", value);
        break;
    case 'f':
        plan.faults = false;
        remember("--no-faults", NULL);
        break;
    case 'k':
        sim_fault_skip((uint32_t)number);
        remember("--skip", value);
        break;
    case 'm':
        path = value;
        if (strcmp(value, FABRIC) == 0) {
            remember("--module", "fabric");
        } else if (strcmp(value, RANK) != 0) {
            remember("--module", value);
        }
        break;
    case 'c':
        take_scenario(value);
        break;
    case 'l':
        plan.environment = logging;
        break;
    case 'b':
        shows_traffic = true;
        break;
    case 'v':
        sim_traces = true;
        break;
    default:
        exit(2);
    }
}

int main(int count, char **arguments)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"seconds", required_argument, NULL, 't'},
        {"runs", required_argument, NULL, 'r'},
        {"ranks", required_argument, NULL, 'n'},
        {"hosts", required_argument, NULL, 'h'},
        {"no-faults", no_argument, NULL, 'f'},
        {"skip", required_argument, NULL, 'k'},
        {"module", required_argument, NULL, 'm'},
        {"scenario", required_argument, NULL, 'c'},
        {"log", no_argument, NULL, 'l'},
        {"trace", no_argument, NULL, 'v'},
        {"traffic", no_argument, NULL, 'b'},
        {NULL, 0, NULL, 0},
    };
    int option;
    fix_addresses(arguments);
    plan.seed = (uint64_t)time(NULL) * 1000000;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        take_option(option, optarg);
    }
    for (int i = optind; i < count; i++) {
        sim_number_set(arguments[i]);
        remember(arguments[i], NULL);
    }
    sim_catch_faults();
    watch_turns();
    run_for(sim_module_open(path, sim_resolve));
    return 0;
}
