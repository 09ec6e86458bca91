/* SPDX-License-Identifier: MIT */
/*
 * Gathers of the programs. Two rounds have memory: a rank that comes to a round has copied all of
 * the round before the last one.
 */
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "process.h"
#include "report.h"
#include "sim.h"

struct round {
    char *values; /* NULL: no rank has come yet */
    size_t bytes;
    uint32_t came;
};

static struct {
    uint32_t ranks, alive;
    uint64_t *entered; /* rounds, of each rank */
    bool *left;
    struct sim_task **waiting; /* of each rank, or NULL */
    uint64_t complete;         /* rounds */
    struct round rounds[2];
} gather;

void sim_gather_begin(uint32_t ranks)
{
    gather.ranks = gather.alive = ranks;
    gather.entered = sim_alloc(ranks, sizeof *gather.entered);
    gather.left = sim_alloc(ranks, sizeof *gather.left);
    gather.waiting = sim_alloc(ranks, sizeof(struct sim_task *));
}

void sim_gather_end(void)
{
    free(gather.rounds[0].values);
    free(gather.rounds[1].values);
    free(gather.entered);
    free(gather.left);
    free(gather.waiting);
    memset(&gather, 0, sizeof gather);
}

/* Ends the round that goes on if all living ranks have come to it. */
static void complete_round(void)
{
    struct round *next;
    if (gather.alive == 0 || gather.rounds[gather.complete % 2].came < gather.alive) {
        return;
    }
    next = &gather.rounds[++gather.complete % 2];
    free(next->values);
    *next = (struct round){.values = NULL};
    for (uint32_t i = 0; i < gather.ranks; i++) {
        if (gather.waiting[i] != NULL && !gather.left[i]) {
            sim_wake(gather.waiting[i]);
        }
    }
}

void sim_gather_leave(uint32_t rank)
{
    gather.left[rank] = true;
    gather.alive--;
    if (gather.entered[rank] > gather.complete) {
        gather.rounds[gather.complete % 2].came--;
    }
    complete_round();
}

void sim_gather_return(uint32_t rank)
{
    gather.left[rank] = false;
    gather.alive++;
    gather.entered[rank] = 0;
    gather.waiting[rank] = NULL;
}

void sim_allgather(const void *own, void *all, size_t bytes)
{
    uint64_t number = gather.complete;
    struct round *round = &gather.rounds[number % 2];
    if (round->values == NULL) {
        round->values = sim_alloc(gather.ranks, bytes);
        round->bytes = bytes;
    }
    sim_require(round->bytes == bytes, "ranks gather %zu and %zu bytes", round->bytes, bytes);
    memcpy(round->values + sim_rank() * bytes, own, bytes);
    gather.entered[sim_rank()] = number + 1;
    round->came++;
    gather.waiting[sim_rank()] = sim_task;
    complete_round();
    while (gather.complete == number) {
        sim_wait(INT64_MAX);
    }
    gather.waiting[sim_rank()] = NULL;
    memcpy(all, round->values, gather.ranks * bytes);
}
