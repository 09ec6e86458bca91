/* SPDX-License-Identifier: MIT */
/*
 * Nodes within one process, each with a thread, on the wire of the running test;
 * and an exchange among the processes of a group.
 */
#ifndef SUPPORT_RANKS_H
#define SUPPORT_RANKS_H

#include <pthread.h>

#include "group.h"

#define RANKS_MAX 8

struct ranks {
    uint32_t count;
    struct sluice_context *contexts[RANKS_MAX]; /* on the self wire all are the first */
    struct sluice_pd *pds[RANKS_MAX];
    struct sluice_node *nodes[RANKS_MAX];
    /* made[i][j] is the endpoint that rank i made for rank j. */
    struct sluice_node_endpoint made[RANKS_MAX][RANKS_MAX];
    const void *argument; /* the test's */
    pthread_barrier_t meeting;
};

void ranks_open(struct ranks *ranks, uint32_t count, const struct sluice_node_attr *attr);
/* Closes all that the test has not closed. */
void ranks_close(struct ranks *ranks);
/* Calls the function in a thread for each rank, and waits for all. */
void ranks_run(struct ranks *ranks, void (*function)(struct ranks *ranks, uint32_t rank));
/* Opens this many ranks, calls the function for each, and closes them. */
void ranks_try(uint32_t count, const struct sluice_node_attr *attr,
               void (*function)(struct ranks *ranks, uint32_t rank));
/* A barrier of the threads, independent of the library. */
void ranks_meet(struct ranks *ranks);
/* All reset their barriers, between two meetings. */
void ranks_reset(struct ranks *ranks, uint32_t rank);

/* Passes barriers of these ranks, by each algorithm; all of them call it. NULL and 0: all ranks. */
void node_meets(struct sluice_node *node, const uint32_t *ranks, uint32_t count);
/* Does those, allgathers, shared memory, and messages of all to all: all must succeed. */
void node_works(struct sluice_node *node, struct sluice_pd *pd);

/*
 * Rank 1 writes words into its line at rank 0, that many bytes from its begin: the form
 * of endpoints is not secret.
 */
void ranks_forge(struct ranks *ranks, uint32_t at, const uint64_t *words, uint32_t count);

/* Writes the checksum into an endpoint that was changed. */
void node_endpoint_sign(struct sluice_node_endpoint *endpoint);

/* An exchange through the hub of the group; deadlines are left to that. */
struct sluice_exchange *rank_exchange_open(struct rank *rank);

#endif
