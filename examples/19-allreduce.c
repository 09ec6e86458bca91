/* SPDX-License-Identifier: MIT */
/*
 * Sums over all ranks, with the result on all ranks: an allreduce, by two algorithms that you can
 * copy and change. docs/reductions.md explains when to use which.
 *
 *   sluice-launch -n 4 19-allreduce [-a ring|tree] [-n NUMBERS] [-r ROUNDS]
 *
 * In a ring each rank sends 2 (N - 1) / N of the vector, for any N: use it for long vectors. In a
 * tree a vector takes 2 log2 N steps: use it for short ones.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#define DEADLINE SLUICE_S(60)
#define MAX_ROUNDS 1000

/* The vector of this rank, and as much room for data from others. */
struct job {
    struct sluice_node *node;
    struct sluice_multichannel *all;
    struct sluice_mr *mr;
    double *vector, *room;
    size_t numbers;
    uint32_t rank, ranks;
    int (*reduce)(const struct job *job);
    const char *algorithm;
    int rounds;
};

static int complain(const char *what)
{
    fprintf(stderr, "19-allreduce: %s: %s\n", what, sluice_last_error());
    return -1;
}

/* Makes a request for numbers of our memory; without numbers it has no element. */
static int name(const struct job *job, struct sluice_request *request, uint32_t peer,
                double *numbers, size_t count)
{
    *request = (struct sluice_request){.peer = peer, .sge_count = count > 0 ? 1 : 0};
    if (count == 0)
        return 0;
    return sluice_mr_sge_at(job->mr, numbers, count * sizeof(*numbers), &request->sge);
}

static int give(const struct job *job, uint32_t peer, double *numbers, size_t count)
{
    struct sluice_request request;
    int error = name(job, &request, peer, numbers, count);

    if (error == 0)
        error = sluice_multichannel_scatter_gather(job->all, &request, 1, NULL, 0, DEADLINE, NULL);
    return error;
}

static int take(const struct job *job, uint32_t peer, double *numbers, size_t count)
{
    struct sluice_request request;
    int error = name(job, &request, peer, numbers, count);

    if (error == 0)
        error = sluice_multichannel_scatter_gather(job->all, NULL, 0, &request, 1, DEADLINE, NULL);
    return error;
}

static void add(double *restrict to, const double *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

/*
 * The ring. The vector has a part for each rank; some may be empty. In each step a rank sends a
 * part to the next rank and receives another one from the rank before it, both at the same time.
 */
#define PIECE ((size_t)16384) /* numbers: 128 KiB */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static double *part(const struct job *job, uint32_t index, size_t *count)
{
    size_t i = index % job->ranks, begin = job->numbers * i / job->ranks;

    *count = job->numbers * (i + 1) / job->ranks - begin;
    return job->vector + begin;
}

/*
 * Sends one part and receives another, which is added to ours, or replaces it. Parts to be added
 * are received piece by piece, so that each piece is added while it is in the cache.
 */
static int pass(const struct job *job, uint32_t out, uint32_t in, bool adds)
{
    uint32_t next = (job->rank + 1) % job->ranks;
    uint32_t before = (job->rank + job->ranks - 1) % job->ranks;
    size_t out_count, in_count, piece = adds ? PIECE : SIZE_MAX / 2;
    double *from = part(job, out, &out_count), *to = part(job, in, &in_count);
    struct sluice_request sends, receives;
    int error = 0;

    for (size_t at = 0; (at < out_count || at < in_count) && error == 0; at += piece) {
        size_t give = smaller(piece, at < out_count ? out_count - at : 0);
        size_t take = smaller(piece, at < in_count ? in_count - at : 0);

        error |= name(job, &sends, next, from + at, give);
        error |= name(job, &receives, before, adds ? job->room : to + at, take);
        if (error == 0)
            error = sluice_multichannel_scatter_gather(job->all, &sends, give > 0, &receives,
                                                       take > 0, DEADLINE, NULL);
        if (error == 0 && adds)
            add(to + at, job->room, take);
    }
    return error;
}

static int reduce_ring(const struct job *job)
{
    uint32_t n = job->ranks, me = job->rank;
    int error = 0;

    /* After n - 1 steps the part after our own has the sums of all ranks. */
    for (uint32_t step = 0; step + 1 < n && error == 0; step++)
        error = pass(job, me + n - step, me + n - step - 1, true);
    for (uint32_t step = 0; step + 1 < n && error == 0; step++)
        error = pass(job, me + n - step + 1, me + n - step, false);
    return error;
}

/* The tree. Ranks with the same lowest set bit send to their parents at the same time. */
static int reduce_tree(const struct job *job)
{
    uint32_t bit = 1;
    int error = 0;

    for (; bit < job->ranks && (job->rank & bit) == 0 && error == 0; bit <<= 1) {
        if (job->rank + bit >= job->ranks)
            continue;
        error = take(job, job->rank + bit, job->room, job->numbers);
        if (error == 0)
            add(job->vector, job->room, job->numbers);
    }
    if (job->rank != 0 && error == 0)
        error = give(job, job->rank - bit, job->vector, job->numbers);
    if (job->rank != 0 && error == 0)
        error = take(job, job->rank - bit, job->vector, job->numbers);
    for (bit >>= 1; bit > 0 && error == 0; bit >>= 1)
        if (job->rank + bit < job->ranks)
            error = give(job, job->rank + bit, job->vector, job->numbers);
    return error;
}

/* Returns whole numbers, whose sums are exact in any order. */
static double number(uint32_t rank, size_t i)
{
    return (double)(rank + 1) + (double)(i % 7);
}

static bool is_right(const struct job *job)
{
    double ranks = job->ranks;

    for (size_t i = 0; i < job->numbers; i++)
        if (job->vector[i] != ranks * (ranks + 1) / 2 + ranks * (double)(i % 7))
            return false;
    return true;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static int work(const struct job *job)
{
    static double times[MAX_ROUNDS];

    for (int round = 0; round < job->rounds; round++) {
        for (size_t i = 0; i < job->numbers; i++)
            job->vector[i] = number(job->rank, i);
        if (sluice_node_barrier(job->node, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE) != 0)
            return complain("wait for the others");
        times[round] = now();
        if (job->reduce(job) != 0)
            return complain("reduce");
        times[round] = now() - times[round];
        if (!is_right(job)) {
            fprintf(stderr, "19-allreduce: rank %u: wrong sums\n", job->rank);
            return -1;
        }
    }
    qsort(times, (size_t)job->rounds, sizeof(*times), compare);
    if (job->rank == 0)
        printf("%s: %zu numbers, %u ranks, sums are right, median %.1f us\n", job->algorithm,
               job->numbers, job->ranks, times[job->rounds / 2] * 1e6);
    return 0;
}

static bool parse(struct job *job, int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "a:n:r:")) != -1) {
        if (option == 'a')
            job->algorithm = optarg;
        if (option == 'n')
            job->numbers = strtoull(optarg, NULL, 10);
        if (option == 'r')
            job->rounds = atoi(optarg);
        if (option == '?')
            return false;
    }
    job->reduce = strcmp(job->algorithm, "tree") == 0 ? reduce_tree : reduce_ring;
    return optind == argc && job->numbers > 0 && job->numbers <= (size_t)1 << 32 &&
           job->rounds > 0 && job->rounds <= MAX_ROUNDS &&
           (job->reduce == reduce_tree || strcmp(job->algorithm, "ring") == 0);
}

int main(int argc, char **argv)
{
    struct job job = {.algorithm = "ring", .numbers = 100003, .rounds = 5};
    int result = -1;

    if (!parse(&job, argc, argv))
        return fprintf(stderr, "usage: 19-allreduce [-a ring|tree] [-n NUMBERS] [-r ROUNDS]\n"), 2;
    job.node = sluice_node_open(NULL, NULL, NULL, DEADLINE);
    if (job.node == NULL)
        return complain("join the other ranks") != 0;
    job.all = sluice_node_multichannel(job.node);
    job.rank = sluice_node_rank(job.node);
    job.ranks = sluice_node_ranks(job.node);
    job.mr = sluice_mr_alloc(sluice_node_pd(job.node), 2 * job.numbers * sizeof(double),
                             SLUICE_ACCESS_LOCAL_WRITE);
    if (job.mr == NULL) {
        complain("allocate memory");
    } else {
        job.vector = sluice_mr_addr(job.mr);
        job.room = job.vector + job.numbers;
        result = work(&job);
    }
    /* Shut down first: closing at once would break the connections for ranks still at work. */
    if (result == 0 && sluice_node_shutdown(job.node, DEADLINE) != 0)
        result = complain("shut down");
    sluice_mr_deregister(job.mr);
    sluice_node_close(job.node);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
