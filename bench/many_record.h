/* SPDX-License-Identifier: MIT */
/*
 * Records of the steps and the memory of a rank, for bench/many and for the program that does the
 * same by MPI. All ranks are on one host: each writes its record to a file in memory of rank 0,
 * which prints the table. So the report needs no calls of the library that is measured.
 */
#ifndef BENCH_MANY_RECORD_H
#define BENCH_MANY_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#define MANY_STEPS 20
#define MANY_SAMPLES 4

/* Bytes of memory, those of the process when it began left out. */
enum many_memory {
    MANY_RESIDENT,  /* pages that the process has in its page tables */
    MANY_SHARE,     /* the same, where a page of n processes counts as an n-th of it */
    MANY_PRIVATE,   /* pages that no other process has */
    MANY_TABLES,    /* page tables, which the kernel keeps for the process */
    MANY_CONNECTED, /* no memory: the number of ranks that this one is connected to */
    MANY_COLUMNS
};

/* Seconds of the clock that all processes of a host share. */
struct many_span {
    double begin, end;
};

struct many_record {
    uint32_t complete; /* last to be written */
    uint32_t steps, samples;
    struct many_span spans[MANY_STEPS];
    double memory[MANY_SAMPLES][MANY_COLUMNS];
    double before[MANY_COLUMNS];
};

struct many {
    uint32_t rank, ranks;
    int file; /* of rank 0, with a record for each rank */
    const char *library;
    struct many_record own;
    /* Names are the same at all ranks. */
    const char *names[MANY_STEPS], *samples[MANY_SAMPLES];
    bool meets[MANY_STEPS];
};

/* Takes the memory of the process as that of an empty one. Call it first in main(). */
void many_begin(struct many *many, const char *library);

/* Rank 0 makes the file. The word names it, for the other ranks. 0 or -1, with a text on stderr. */
int many_make_file(struct many *many, uint64_t *word);
int many_open_file(struct many *many, uint64_t word);

/*
 * Begin and end a step. If all ranks meet in it, no rank may end it before the last one has begun
 * it, which many_print() checks.
 */
void many_step_begin(struct many *many, const char *name, bool meets);
void many_step_end(struct many *many);

/* Waits until this many ranks have made the call, once in a job. 0 or -1. */
int many_meet(struct many *many, uint32_t count, double seconds);

/* Records the memory of the process now. */
void many_sample(struct many *many, const char *name, uint32_t connected);

/* Writes the record of this rank. 0 or -1. */
int many_submit(struct many *many);

/*
 * At rank 0: waits for the records of count ranks, at most this many seconds, and prints the table.
 * 0; -1 if a record is missing, or a rank left a step too early; the text is on stderr.
 */
int many_print(const struct many *many, const uint32_t *ranks, uint32_t count, double seconds);

#endif
