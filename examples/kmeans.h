/* SPDX-License-Identifier: MIT */
/*
 * What 12-kmeans does with its rows, and nothing of how the ranks work together: the
 * file, and k-means of the rows of one process.
 *
 * All numbers are whole: pixels, sums, and centres in units of 1/256, which are
 * rounded once the sums of all rows are known. So no result depends on the order of
 * additions, and the answer of any number of processes is that of one, to the last bit.
 */
#ifndef EXAMPLES_KMEANS_H
#define EXAMPLES_KMEANS_H

#include <stddef.h>
#include <stdint.h>

#define PIXELS 64 /* of a row, 0 to BRIGHTEST */
#define BRIGHTEST 16
#define DIGITS 10
#define UNIT 256u         /* centres are in fractions of this */
#define MOST_ROWS 1000000 /* of a file, keeps all sums in range */

/* A file of images and the digits that they show, which are not used for clustering. */
struct data {
    uint8_t *pixels; /* PIXELS for each row */
    uint8_t *digits; /* one for each row */
};

/* What is to be done. */
struct plan {
    uint32_t rows; /* of the whole file */
    uint32_t clusters;
    uint32_t iterations; /* at most */
    uint32_t repeat;     /* how often all of it is done */
};

/*
 * Sums are one list of numbers, so that those of several processes are added alike:
 * for each cluster those of its pixels and the number of its rows, and then how many
 * rows have changed their cluster, and the inertia, which is the sum of the squared
 * distances of the rows from their centres.
 */
#define STRIDE (PIXELS + 1)

static inline size_t count_of_sums(uint32_t clusters)
{
    return (size_t)clusters * STRIDE + 2;
}

/* Rows that are clustered by one process: its share, or all of them. */
struct part {
    const uint8_t *pixels;
    uint32_t *start;    /* the first centres, PIXELS for each cluster */
    uint32_t *centres;  /* result: those that the last assignment was to */
    uint32_t *assigned; /* result: the cluster of each row */
    uint64_t *sums;     /* count_of_sums() */
    uint32_t rows, clusters;
    uint32_t iterations; /* result */
    uint64_t inertia;    /* result, of all rows, in 1 / UNIT^2 */
    int64_t nanoseconds; /* result, for one of the repetitions */
};

/* Makes the sums of this part those of all parts; returns 0, or -1. */
typedef int add_up(void *argument, struct part *part);

/* Reads a file; returns 0, or -1 after it has said what is wrong and in which line. */
int data_load(struct data *data, const char *name, uint32_t *rows);

void data_free(struct data *data);

/*
 * The first centres are rows: the first one of the file, and then always that which is
 * farthest from the centres before it. Returns 0, or -1 after it has said why.
 */
int choose_centres(const struct data *data, const struct plan *plan, uint32_t *centres);

/*
 * Until no row changes its cluster, or the plan says that it is enough. Without a
 * function to add up, the part has all rows. Returns 0, or -1 if that function failed.
 */
int cluster(struct part *part, const struct plan *plan, add_up *function, void *argument);

/*
 * Does it all alone and compares each number of the result, where assigned is of all
 * rows. Prints the result and both times and returns 0, or says what the first
 * difference is and returns -1.
 */
int verify(const struct data *data, const struct plan *plan, const struct part *result);

#endif
