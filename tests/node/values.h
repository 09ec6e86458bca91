/* SPDX-License-Identifier: MIT */
/*
 * What allgathers and alltoalls of a node have in common: values.c has tests of both, and each
 * program names the one that it is of.
 */
#ifndef NODE_VALUES_H
#define NODE_VALUES_H

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

enum call { ALLGATHER, ALLTOALL };

/* The call of this program. */
extern const enum call call;

#define SLOTS_AT 64
#define SLOT_BYTES 256

/* Gives values that identify their ranks and turn, and checks those of all, and the byte behind. */
void give(struct ranks *ranks, uint32_t rank, size_t length, uint32_t turn, bool in_place);
/* After a reset: a call and a barrier. */
void still_works(struct ranks *ranks, uint32_t rank);

/* Runs all tests of the program. Returns the result of main(). */
int run_values(const char *name);

#endif
