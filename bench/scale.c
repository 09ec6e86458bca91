/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of many peers: one process with a multichannel whose peers are
 * all connected to themselves. Prints time and memory for each number of peers.
 *
 *   bench/scale [--depth N | --pool N] [PEERS]...    default 10 100 1000
 *
 *   handshake   prepare, endpoints and handshake of all peers
 *   heap        bytes allocated by malloc, per peer
 *   idle        growth of the process in memory once all are connected, per peer
 *   used        the same, once each peer has sent and received
 *   fds         file descriptors open in the process, with device and memory
 *   scatter+gather  8 bytes to and from each peer, in one call; median of 11
 *
 * Each line is measured in a process of its own. The depth is that of sends and of receives;
 * the default is 16. With a pool all peers share that many receives, and the depth of sends is 128;
 * the last column is then the time until all messages were taken from the pool.
 */
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#include "numbers.h"

#define DEPTH 16
#define MAX_DEPTH 16384
#define ROUNDS 11
#define DEADLINE SLUICE_S(60)

static uint32_t depth = DEPTH;
static uint32_t pool; /* receives that all peers share; 0: each has its own */

struct usage {
    double seconds;
    double heap;
    double resident;
};

static int complain(uint32_t peers, const char *what)
{
    fprintf(stderr, "scale: %u peers: %s: %s\n", peers, what, sluice_last_error());
    return -1;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static struct usage take_usage(void)
{
    struct mallinfo2 heap = mallinfo2();
    struct usage usage = {.heap = (double)(heap.uordblks + heap.hblkhd)};
    unsigned long size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file != NULL) {
        if (fscanf(file, "%lu %lu", &size, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    usage.resident = (double)resident * (double)sysconf(_SC_PAGESIZE);
    usage.seconds = now();
    return usage;
}

static int count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = -3; /* the folder itself, "." and ".." */

    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

static struct sluice_multichannel *connect_to_itself(struct sluice_pd *pd, uint32_t peers)
{
    struct sluice_channel_attr attr = {
        .size = sizeof(attr), .send_depth = depth, .receive_depth = depth, .receive_pool = pool};
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, peers, &attr);
    struct sluice_endpoint *endpoints = malloc(peers * sizeof(*endpoints));
    struct sluice_multichannel *multichannel = NULL;

    if (prepared == NULL || endpoints == NULL ||
        sluice_prepared_multichannel_endpoints(prepared, endpoints, peers) != 0)
        sluice_prepared_multichannel_free(prepared);
    else
        multichannel = sluice_prepared_multichannel_handshake(prepared, endpoints, peers);
    free(endpoints);
    return multichannel;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Sends 8 bytes to each peer and receives 8. Returns the median in seconds, or -1. */
static double time_scatter_gather(struct sluice_multichannel *multichannel, struct sluice_mr *mr,
                                  uint32_t peers)
{
    struct sluice_request *requests = calloc((size_t)2 * peers, sizeof(*requests));
    uint64_t *words = sluice_mr_addr(mr);
    double times[ROUNDS] = {0};
    int result = requests != NULL ? 0 : -1;

    for (uint32_t i = 0; i < 2 * peers && result == 0; i++) {
        requests[i].peer = i % peers;
        requests[i].sge_count = 1;
        result = sluice_mr_sge(mr, (size_t)i * 8, 8, &requests[i].sge);
    }
    for (uint32_t round = 0; round < ROUNDS && result == 0; round++) {
        for (uint32_t i = 0; i < peers; i++)
            words[i] = (uint64_t)round << 32 | i;
        times[round] = now();
        result = sluice_multichannel_scatter_gather(multichannel, requests, peers, requests + peers,
                                                    peers, DEADLINE, NULL);
        times[round] = now() - times[round];
        for (uint32_t i = 0; i < peers && result == 0; i++)
            if (words[peers + i] != words[i]) {
                fprintf(stderr, "scale: peer %u received wrong bytes\n", i);
                result = -1;
            }
    }
    free(requests);
    qsort(times, ROUNDS, sizeof(times[0]), compare);
    return result == 0 ? times[ROUNDS / 2] : -1;
}

/* Fills the pool with receives for one word each, behind the words of the peers. */
static int refill(struct sluice_multichannel *multichannel, struct sluice_mr *mr, uint32_t peers)
{
    int room = sluice_multichannel_receive_any_room(multichannel);

    for (int posted = 0; posted < room; posted++) {
        struct sluice_request request = {.sge_count = 1};

        if (sluice_mr_sge(mr, (size_t)(peers + (uint32_t)posted % peers) * 8, 8, &request.sge) <
                0 ||
            sluice_multichannel_post_receive_any(multichannel, &request, 1, NULL) < 0)
            return -1;
    }
    return room < 0 ? -1 : 0;
}

/* Sends one message to each peer and takes as many from the pool. */
static int pass_messages(struct sluice_multichannel *multichannel, struct sluice_mr *mr,
                         const struct sluice_request *sends, uint32_t peers)
{
    struct sluice_completion done[64];
    uint32_t sent = 0, ended = 0;
    int result = 0;

    while (ended < 2 * peers && result >= 0) {
        if (sent < peers) {
            result = sluice_multichannel_post_scatter_send(multichannel, sends + sent, peers - sent,
                                                           DEADLINE, NULL);
            sent += result > 0 ? (uint32_t)result : 0;
            result = result == -EAGAIN ? 0 : result;
        }
        if (result >= 0)
            result = sluice_multichannel_poll(multichannel, done, 64);
        for (int i = 0; i < result; i++)
            if (done[i].error < 0)
                return -1;
        ended += result > 0 ? (uint32_t)result : 0;
        if (result >= 0)
            result = refill(multichannel, mr, peers);
    }
    return result;
}

/* As time_scatter_gather(), with receives of the pool. */
static double time_pool(struct sluice_multichannel *multichannel, struct sluice_mr *mr,
                        uint32_t peers)
{
    struct sluice_request *sends = calloc(peers, sizeof(*sends));
    double times[ROUNDS] = {0};
    int result = sends != NULL ? refill(multichannel, mr, peers) : -1;

    for (uint32_t i = 0; i < peers && result == 0; i++) {
        sends[i].peer = i;
        sends[i].sge_count = 1;
        result = sluice_mr_sge(mr, (size_t)i * 8, 8, &sends[i].sge);
    }
    for (uint32_t round = 0; round < ROUNDS && result == 0; round++) {
        times[round] = now();
        result = pass_messages(multichannel, mr, sends, peers);
        times[round] = now() - times[round];
    }
    free(sends);
    qsort(times, ROUNDS, sizeof(times[0]), compare);
    return result == 0 ? times[ROUNDS / 2] : -1;
}

static int measure(uint32_t peers)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = NULL;
    struct sluice_mr *mr = NULL;
    struct sluice_multichannel *multichannel = NULL;
    struct usage before, after, later;
    double seconds = -1;

    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        mr = sluice_mr_alloc(pd, (size_t)peers * 16, SLUICE_ACCESS_LOCAL_WRITE);
    before = take_usage();
    if (mr != NULL)
        multichannel = connect_to_itself(pd, peers);
    after = take_usage();
    if (multichannel == NULL)
        complain(peers, "connect");
    else if ((seconds = pool > 0 ? time_pool(multichannel, mr, peers)
                                 : time_scatter_gather(multichannel, mr, peers)) < 0)
        complain(peers, "scatter and gather");
    later = take_usage();
    if (seconds >= 0)
        printf("%6u %11.2f ms %9.1f us %10.1f KiB %8.1f KiB %8.1f KiB %6d %12.3f ms\n", peers,
               (after.seconds - before.seconds) * 1e3,
               (after.seconds - before.seconds) * 1e6 / peers,
               (later.heap - before.heap) / peers / 1024,
               (after.resident - before.resident) / peers / 1024,
               (later.resident - before.resident) / peers / 1024, count_fds(), seconds * 1e3);
    sluice_multichannel_close(multichannel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return seconds >= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int measure_apart(uint32_t peers)
{
    int status;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0)
        exit(measure(peers));
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return EXIT_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    uint32_t peers[MOST_NUMBERS] = {10, 100, 1000}, given[MOST_NUMBERS];
    int count, result = EXIT_SUCCESS;
    bool right = true;

    if (argc > 1 && strcmp(argv[1], "--depth") == 0) {
        char *one[] = {argv[0], argc > 2 ? argv[2] : argv[1]};

        right = read_numbers(2, one, 1, MAX_DEPTH, given);
        depth = given[0];
        argc = argc > 2 ? argc - 2 : 1;
        argv += 2;
    } else if (argc > 1 && strcmp(argv[1], "--pool") == 0) {
        char *one[] = {argv[0], argc > 2 ? argv[2] : argv[1]};

        right = read_numbers(2, one, 1, MAX_DEPTH, given);
        pool = given[0];
        depth = 128;
        argc = argc > 2 ? argc - 2 : 1;
        argv += 2;
    }
    count = argc > 1 ? argc - 1 : 3;
    if (!right || !read_numbers(argc, argv, 1, SLUICE_MAX_PEERS, peers)) {
        fprintf(stderr,
                "usage: scale [--depth N | --pool N] [PEERS]...\n"
                "a depth or pool of 1 to %d, and up to %d numbers of 1 to %d peers\n",
                MAX_DEPTH, MOST_NUMBERS, SLUICE_MAX_PEERS);
        return 2;
    }
    printf(" peers      handshake       a peer    heap a peer  idle a peer  used a peer    fds"
           "  scatter+gather\n");
    for (int i = 0; i < count && result == EXIT_SUCCESS; i++)
        result = measure_apart(peers[i]);
    return result;
}
