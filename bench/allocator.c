/* SPDX-License-Identifier: MIT */
/*
 * Measures what a block of an allocator costs, compared with malloc(3) and free(3).
 *
 *   bench/allocator [threads...]    1 and 2, if none are given
 *
 * Each thread allocates BLOCKS blocks, writes a byte of each, and frees them, repeatedly. A row
 * is one size: the median of PAIRS interleaved pairs of runs, one of sluice and one of malloc(3),
 * the ratio of each pair, its quartiles, and the number of registrations after the first run. The
 * result is 0 if all ratios are within the budget and nothing was registered, otherwise 1.
 */
#include "config.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sluice.h>

#include "numbers.h"

#define BLOCKS 16
#define PAIRS 31
#define ROUNDS 4000
#define BUDGET 2.0
#define MOST_THREADS 64

struct run {
    struct sluice_allocator *allocator; /* NULL: malloc(3) */
    size_t size;
    double *nanoseconds; /* of a block, of each thread */
};

struct worker {
    const struct run *run;
    pthread_barrier_t *barrier;
    uint32_t number;
    bool failed;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static bool use_ours(struct sluice_allocator *allocator, size_t size)
{
    char *volatile blocks[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = sluice_allocator_alloc(allocator, size, 0);
        if (blocks[i] == NULL)
            return false;
        *blocks[i] = 1;
    }
    for (int i = 0; i < BLOCKS; i++)
        if (sluice_allocator_free(allocator, blocks[i]) != 0)
            return false;
    return true;
}

static bool use_malloc(size_t size)
{
    char *volatile blocks[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size);
        if (blocks[i] == NULL)
            return false;
        *blocks[i] = 1;
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return true;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct run *run = worker->run;
    double begin;

    pthread_barrier_wait(worker->barrier);
    begin = now();
    for (int i = 0; i < ROUNDS && !worker->failed; i++)
        worker->failed =
            run->allocator ? !use_ours(run->allocator, run->size) : !use_malloc(run->size);
    run->nanoseconds[worker->number] = (now() - begin) / ((double)ROUNDS * BLOCKS);
    return NULL;
}

/* Returns the mean of the threads; negative if it failed. */
static double measure(struct sluice_allocator *allocator, size_t size, uint32_t threads)
{
    double nanoseconds[MOST_THREADS], sum = 0;
    struct run run = {.allocator = allocator, .size = size, .nanoseconds = nanoseconds};
    struct worker workers[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, threads);
    for (uint32_t i = 0; i < threads; i++) {
        workers[i] = (struct worker){.run = &run, .barrier = &barrier, .number = i};
        if (i > 0 && pthread_create(&ids[i], NULL, work, &workers[i]) != 0)
            abort();
    }
    work(&workers[0]);
    for (uint32_t i = 0; i < threads; i++) {
        if (i > 0)
            pthread_join(ids[i], NULL);
        sum = workers[i].failed ? -1e9 : sum + nanoseconds[i];
    }
    pthread_barrier_destroy(&barrier);
    return sum / threads;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static uint64_t registrations(struct sluice_allocator *allocator)
{
    struct sluice_allocator_info info = {.size = sizeof info};

    return sluice_allocator_query(allocator, &info) == 0 ? info.registrations : UINT64_MAX;
}

/* Prints a row. Returns whether it meets the budget. */
static bool row(struct sluice_allocator *allocator, size_t size, uint32_t threads)
{
    double ours[PAIRS], theirs[PAIRS], ratios[PAIRS];
    bool good = measure(allocator, size, threads) >= 0;
    uint64_t before = registrations(allocator), more;

    for (int i = 0; i < PAIRS; i++) {
        ours[i] = measure(allocator, size, threads);
        theirs[i] = measure(NULL, size, threads);
        good = good && ours[i] > 0 && theirs[i] > 0;
        ratios[i] = ours[i] / theirs[i];
    }
    more = registrations(allocator) - before;
    qsort(ours, PAIRS, sizeof *ours, compare);
    qsort(theirs, PAIRS, sizeof *theirs, compare);
    qsort(ratios, PAIRS, sizeof *ratios, compare);
    good = good && ratios[PAIRS / 2] <= BUDGET && more == 0;
    printf("%7zu %7u %8.1f %8.1f %8.2f [%.2f, %.2f] %8llu  %s\n", size, threads, ours[PAIRS / 2],
           theirs[PAIRS / 2], ratios[PAIRS / 2], ratios[PAIRS / 4], ratios[PAIRS * 3 / 4],
           (unsigned long long)more, good ? "met" : "not met");
    fflush(stdout);
    return good;
}

static struct sluice_allocator *open_allocator(struct sluice_context *context)
{
    struct sluice_pd *pd = context != NULL ? sluice_pd_alloc(context) : NULL;
    struct sluice_allocator *allocator =
        pd != NULL ? sluice_allocator_create(pd, SLUICE_ACCESS_LOCAL_WRITE, NULL) : NULL;

    sluice_pd_free(pd);
    return allocator;
}

int main(int argc, char **argv)
{
    uint32_t threads[MOST_NUMBERS] = {1, 2};
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_allocator *allocator = open_allocator(context);
    int count = argc > 1 ? argc - 1 : 2;
    bool good = true;

    if (!read_numbers(argc, argv, 1, MOST_THREADS, threads)) {
        fprintf(stderr, "usage: allocator [threads...], at most %d numbers of 1 to %d\n",
                MOST_NUMBERS, MOST_THREADS);
        return 2;
    }
    if (allocator == NULL) {
        fprintf(stderr, "allocator: %s\n", sluice_last_error());
        return 1;
    }
    printf("%7s %7s %8s %8s %8s %12s %10s  budget %.1f\n", "bytes", "threads", "ours/ns", "malloc",
           "ratio", "[quartiles]", "registered", BUDGET);
    for (int i = 0; i < count; i++)
        for (size_t size = 64; size <= 65536; size *= 4)
            good = row(allocator, size, threads[i]) && good;
    if (sluice_allocator_destroy(allocator) != 0)
        good = false;
    sluice_context_close(context);
    return good ? 0 : 1;
}
