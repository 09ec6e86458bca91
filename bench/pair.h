/* SPDX-License-Identifier: MIT */
/*
 * What benchmarks of two processes share: the processes, and a channel between
 * them with a region on each side that the other one may write and read.
 */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include <stdint.h>

#include <sluice.h>

/* A deadline for ever costs the least, as programs without one are compared with. */
#define PAIR_DEADLINE SLUICE_FOREVER

struct pair {
    const char *program; /* for messages */
    int serves;          /* begins, and prints the results */
    int socket;
    struct sluice_channel *channel;
    struct sluice_mr *mr;
    struct sluice_remote_mr remote; /* the other's region */
};

/*
 * Starts the other process and runs play in both. The device is that of
 * SLUICE_DEVICE; each side has a region of so many bytes. Returns an exit status.
 */
int pair_run(const char *program, const struct sluice_channel_attr *attr, size_t memory,
             int (*play)(struct pair *pair));

/* From now on each side runs on one processor, the serving one on the second if there are two. */
extern int pair_pinned;

/* Waits for the other side to come here too. -1: it is gone. */
int pair_meet(const struct pair *pair);

/* Says what failed and why. Always -1. */
int pair_complain(const struct pair *pair, const char *what);

/* A number of 1 to most, or exits with 2 after saying which option is wrong. */
uint32_t pair_number(const char *program, char option, const char *text, uint32_t most);

/*
 * Time as perftest takes it, where it can be: the counter of the processor. It
 * costs less than a look at the clock. Both are read at the beginning and at the
 * end of a run, which gives the length of a tick.
 */
uint64_t pair_ticks(void);
struct pair_clock {
    uint64_t ticks;
    double seconds;
};
struct pair_clock pair_clock(void);
double pair_tick(const struct pair_clock *begin, const struct pair_clock *end);

/* Sorts them. */
uint64_t pair_median(uint64_t *values, uint32_t count);

#endif
