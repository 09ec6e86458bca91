/* SPDX-License-Identifier: MIT */
/*
 * Measures an exchange over TCP, with ranks in threads of one process, on the
 * loopback. Prints the time of each call, which is that of the slowest rank, and
 * the traffic of rank 0.
 *
 *   bench/exchange [RANKS]...       default 16 64 256 1000
 *
 *   open       all ranks, started at once, find each other
 *   barrier, allgather, alltoall    of 448 bytes; mean of 5, after one that is not counted
 *   frames     that rank 0 receives and sends for a call
 *   alltoall/s bytes that pass through rank 0 in an alltoall, by its time
 *
 * Each rank needs two file descriptors of this process.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#include "numbers.h"

#define BYTES 448
#define ROUNDS 5
#define STACK ((size_t)256 << 10)
#define DEADLINE SLUICE_S(120)

enum call { BARRIER = 0, ALLGATHER = 1, ALLTOALL = 2, CALLS = 3 };

struct run {
    uint32_t ranks;
    char root[32];
    double start, open, calls[CALLS]; /* seconds, of rank 0 */
};

struct rank {
    pthread_t thread;
    struct run *run;
    uint32_t rank;
    int error;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int complain(const struct rank *rank, const char *what)
{
    fprintf(stderr, "exchange: rank %u of %u: %s: %s\n", rank->rank, rank->run->ranks, what,
            sluice_last_error());
    return -1;
}

static int call_once(struct sluice_exchange *exchange, enum call call, const char *to, char *from)
{
    if (call == BARRIER)
        return sluice_exchange_barrier(exchange, DEADLINE);
    if (call == ALLGATHER)
        return sluice_exchange_allgather(exchange, to, from, BYTES, DEADLINE);
    return sluice_exchange_alltoall(exchange, to, from, BYTES, DEADLINE);
}

/* Measures at rank 0. No rank is ahead by more than a call, so this is the time of all. */
static int measure_calls(const struct rank *rank, struct sluice_exchange *exchange, const char *to,
                         char *from)
{
    for (int call = 0; call < CALLS; call++) {
        double start = 0;

        for (int round = 0; round <= ROUNDS; round++) {
            if (round == 1)
                start = now();
            if (call_once(exchange, (enum call)call, to, from) < 0)
                return complain(rank, "a call failed");
        }
        if (rank->rank == 0)
            rank->run->calls[call] = (now() - start) / ROUNDS;
    }
    return 0;
}

static void *run_rank(void *argument)
{
    struct rank *rank = argument;
    struct sluice_exchange_attr attr = {
        .size = sizeof attr,
        .kind = SLUICE_EXCHANGE_TCP,
        .rank = rank->rank,
        .ranks = rank->run->ranks,
        .root = rank->run->root,
    };
    char *to = calloc(attr.ranks, BYTES), *from = calloc(attr.ranks, BYTES);
    struct sluice_exchange *exchange = sluice_exchange_open(&attr, DEADLINE);

    rank->error = -1;
    if (exchange == NULL || to == NULL || from == NULL)
        complain(rank, "no exchange");
    else if (sluice_exchange_barrier(exchange, DEADLINE) < 0)
        complain(rank, "the first barrier failed");
    else {
        if (rank->rank == 0)
            rank->run->open = now() - rank->run->start;
        rank->error = measure_calls(rank, exchange, to, from);
    }
    sluice_exchange_close(exchange);
    free(to);
    free(from);
    return NULL;
}

/* Finds a free port of the loopback. */
static int find_root(struct run *run)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int failed;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    failed = fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 ||
             getsockname(fd, (struct sockaddr *)&address, &length) != 0;
    if (failed)
        perror("exchange: no port");
    if (fd >= 0)
        close(fd);
    snprintf(run->root, sizeof run->root, "127.0.0.1:%u", ntohs(address.sin_port));
    return failed ? -1 : 0;
}

static void print(const struct run *run)
{
    double bytes = 2.0 * (run->ranks - 1) * run->ranks * BYTES;

    printf("%6u  %8.1f ms  %8.2f ms  %8.2f ms  %9.2f ms  %6u  %8.0f MB/s\n", run->ranks,
           1e3 * run->open, 1e3 * run->calls[BARRIER], 1e3 * run->calls[ALLGATHER],
           1e3 * run->calls[ALLTOALL], 2 * (run->ranks - 1), 1e-6 * bytes / run->calls[ALLTOALL]);
}

static int measure(uint32_t ranks)
{
    struct run run = {.ranks = ranks};
    struct rank *all = calloc(ranks, sizeof *all);
    pthread_attr_t attr;
    uint32_t started = 0;
    int error = all == NULL ? -1 : find_root(&run);

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    run.start = now();
    while (error == 0 && started < ranks) {
        all[started].run = &run;
        all[started].rank = started;
        error = pthread_create(&all[started].thread, &attr, run_rank, &all[started]);
        started += error == 0;
    }
    if (started < ranks)
        fprintf(stderr, "exchange: only %u of %u ranks could be started\n", started, ranks);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(all[i].thread, NULL);
        error = all[i].error < 0 ? -1 : error;
    }
    pthread_attr_destroy(&attr);
    free(all);
    if (error == 0)
        print(&run);
    return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    uint32_t ranks[MOST_NUMBERS] = {16, 64, 256, 1000};
    int count = argc > 1 ? argc - 1 : 4, result = EXIT_SUCCESS;
    struct rlimit limit;

    if (!read_numbers(argc, argv, 2, SLUICE_MAX_RANKS, ranks)) {
        fprintf(stderr, "usage: exchange [RANKS]...\nup to %d numbers of 2 to %d ranks\n",
                MOST_NUMBERS, SLUICE_MAX_RANKS);
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    printf(" ranks         open      barrier    allgather      alltoall  frames      alltoall/s\n");
    for (int i = 0; i < count && result == EXIT_SUCCESS; i++)
        result = measure(ranks[i]);
    return result;
}
