/* SPDX-License-Identifier: MIT */
/* Helpers shared by the tests on the pretend RDMA device. */
#ifndef VERBS_CHECK_H
#define VERBS_CHECK_H

#include "../support/pair.h"
#include "fake_verbs.h"

/*
 * Runs all tests of a program on fake0, whatever the device under test is. Each begins with a new
 * device, and ends with check_nothing_left().
 */
int run_verbs(const char *name, enum wire wire, unsigned seconds);
/* Prepares a program that runs its groups by itself for that. */
void use_pretend_device(void);

/*
 * Requires that no object of the device is left, that all events were acknowledged, and that both
 * sides of each connection had agreed on its parameters.
 */
void check_nothing_left(void);

/* Returns the number of the i-th queue pair, in the order of creation. */
uint32_t qpn_of(uint32_t i);
/* Waits until the condition holds on the device; what describes it. */
void await_device(bool (*done)(const void *argument), const void *argument, const char *what);
/* Waits until the device holds this many completions of the queue. */
void await_held(uint32_t qpn, enum fake_queue queue, uint32_t count);

/* A multichannel connected to itself, peer 2 i with peer 2 i + 1. NULL: sluice_last_error(). */
struct sluice_multichannel *make_loop(struct sluice_pd *pd, uint32_t peers,
                                      const struct sluice_channel_attr *attr);

#endif
