/* SPDX-License-Identifier: MIT */
/*
 * Processes that use all calls at random while one of them is killed and started
 * again and again; see soak/soak.h. It runs for 10 s, or 3 s if the run is
 * short, on the device under test; scripts/soak runs it for longer.
 *
 *   test_soak [--seconds N] [--kills N] [--ranks N] [--seed N] [--kill-every MILLISECONDS]
 *             [--hang SECONDS] [--device NAME] [--verbose]
 */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak/soak.h"

static const struct option long_options[] = {
    {"seconds", required_argument, NULL, 's'},
    {"ranks", required_argument, NULL, 'n'},
    {"seed", required_argument, NULL, 'r'},
    {"kill-every", required_argument, NULL, 'k'},
    {"hang", required_argument, NULL, 'h'},
    {"device", required_argument, NULL, 'd'},
    {"kills", required_argument, NULL, 'K'},
    {"verbose", no_argument, NULL, 'v'},
    {NULL, 0, NULL, 0},
};

static uint64_t read_number(const char *text, uint64_t least, uint64_t most)
{
    char *end = NULL;
    uint64_t number = strtoull(text, &end, 0);
    if (end == text || *end || number < least || number > most) {
        fprintf(stderr, "test_soak: %s is not a number of %llu to %llu\n", text,
                (unsigned long long)least, (unsigned long long)most);
        exit(2);
    }
    return number;
}

static void read_options(int argc, char **argv, struct options *options)
{
    int option;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case 's':
            options->seconds = (uint32_t)read_number(optarg, 1, 1000000);
            break;
        case 'n':
            options->ranks = (uint32_t)read_number(optarg, 2, RANKS_MAX);
            break;
        case 'r':
            options->seed = read_number(optarg, 0, UINT64_MAX);
            break;
        case 'K':
            options->kills = (uint32_t)read_number(optarg, 1, 1000000);
            options->seconds = 1000000;
            break;
        case 'k':
            options->kill_every = (uint32_t)read_number(optarg, 100, 1000000);
            break;
        case 'h':
            options->hang = (uint32_t)read_number(optarg, 1, 100000);
            break;
        case 'd':
            options->device = optarg;
            break;
        case 'v':
            options->verbose = true;
            break;
        default:
            exit(2);
        }
    }
}

/*
 * If the device is missing, the test is skipped. A process of its own checks that, as the parent of
 * the ranks does not use the library.
 */
static bool can_run(const struct options *options)
{
    int status = 0;
    pid_t pid = fork();
    if (pid != 0) {
        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
    }
    struct sluice_context *context = sluice_context_open(options->device, NULL);
    if (!context) {
        printf("1..0 # SKIP no context on %s: %s\n", options->device, sluice_last_error());
        exit(EXIT_FAILURE);
    }
    sluice_context_close(context);
    exit(EXIT_SUCCESS);
}

/*
 * Turns off the caches of malloc(), as memory freed into a thread's cache counts as in use; without
 * them, memory in use is memory that was not freed. The setting must be there at the start of the
 * process.
 */
static void spare_caches(char **argv)
{
    if (!getenv("GLIBC_TUNABLES")) {
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
        execv("/proc/self/exe", argv);
    }
    mallopt(M_MXFAST, 0);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

int main(int argc, char **argv)
{
    spare_caches(argv);
    /* Devices are emulated here, and take seconds to notice that a peer is dead. */
    bool quick = device_is_soft();
    struct options options = {
        .ranks = short_run() || !quick ? 4 : 8,
        .seconds = short_run() ? 3 : 10,
        .kill_every = !quick        ? 8000
                      : short_run() ? 200
                                    : 5000,
        .hang = 90,
        .seed = (uint64_t)clock_now() & UINT32_MAX,
        .device = test_device(),
    };
    read_options(argc, argv, &options);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(options.device, "soft") != 0 && !can_run(&options)) {
        return EXIT_SUCCESS;
    }
    const char *wire = getenv("SLUICE_WIRE");
    printf("1..1\n# %u ranks on %s (wire %s) for %u %s, a kill every %.1f s, seed %llu\n",
           options.ranks, options.device, wire ? wire : "auto",
           options.kills != 0 ? options.kills : options.seconds, options.kills != 0 ? "kills" : "s",
           options.kill_every / 1000.0, (unsigned long long)options.seed);
    int status = run_broker(&options);
    printf("%s 1 - soak\n", status == EXIT_SUCCESS ? "ok" : "not ok");
    return status;
}
