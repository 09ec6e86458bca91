/* SPDX-License-Identifier: MIT */
/*
 * The part of 12-kmeans that does not depend on ranks: reading the file, and k-means of
 * the rows of one process.
 *
 * All numbers are whole: pixels, sums, and centres in units of 1/256, which are rounded
 * after the sums of all rows are known. So no result depends on the order of additions,
 * and any number of processes finds the same result as one, to the last bit.
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

/* The parameters of a run. */
struct plan {
    uint32_t rows; /* of the whole file */
    uint32_t clusters;
    uint32_t iterations; /* at most */
    uint32_t repeat;     /* how often to do it all */
};

/*
 * Sums are one list of numbers, so that those of several processes can be added: for each
 * cluster the sums of its pixels and the number of its rows; then the number of rows that
 * have changed their cluster; and the inertia, which is the sum of the squared distances
 * of the rows from their centres.
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
    uint32_t *centres;  /* result: the centres of the last assignment */
    uint32_t *assigned; /* result: the cluster of each row */
    uint64_t *sums;     /* count_of_sums() */
    uint32_t rows, clusters;
    uint32_t iterations; /* result */
    uint64_t inertia;    /* result, of all rows, in 1 / UNIT^2 */
    int64_t nanoseconds; /* result, for one of the repetitions */
};

/* Adds the sums of all other parts to those of this part; returns 0, or -1. */
typedef int add_up(void *argument, struct part *part);

/* Reads a file; returns 0, or -1 after it has printed what is wrong and in which line. */
int data_load(struct data *data, const char *name, uint32_t *rows);

void data_free(struct data *data);

/*
 * Chooses rows as first centres: the first row of the file, and then always the row that
 * is farthest from the centres so far. Returns 0, or -1 after it has printed why.
 */
int choose_centres(const struct data *data, const struct plan *plan, uint32_t *centres);

/*
 * Clusters until no row changes its cluster, or for the iterations of the plan. Without a
 * function to add up, the part has all rows. Returns 0, or -1 if that function failed.
 */
int cluster(struct part *part, const struct plan *plan, add_up *function, void *argument);

/*
 * Does it all alone and compares each number of the result; assigned is of all rows. Prints
 * the result and both times and returns 0, or prints the first difference and returns -1.
 */
int verify(const struct data *data, const struct plan *plan, const struct part *result);

#endif
