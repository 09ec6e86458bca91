/* SPDX-License-Identifier: MIT */
/* A number that several processes may add to, in the memory of one of them; here our own. */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdint.h>

#include <sluice.h>

struct counter {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr; /* the number, and the place of its old value */
    struct sluice_channel *channel;
};

/* Returns 0, or -1 and sluice_last_error(); to be closed in both cases. */
int counter_open(struct counter *counter);

/* Adds to the number and returns its old value in was. Returns 0 or a negative errno value. */
int counter_add(struct counter *counter, uint64_t addend, uint64_t *was);

void counter_close(struct counter *counter);

#endif
