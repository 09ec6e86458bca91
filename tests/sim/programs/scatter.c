/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "programs.h"

enum { MOST_BYTES = 40000, MOST_RANKS = 64 };

struct rank {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    struct sluice_multichannel *all;
    uint8_t *memory; /* what goes to each rank, then what comes from each */
    uint32_t bytes;
};

/* A failure ends the program; without any fault in the run, it is one of the library. */
static bool works(bool condition, const char *what)
{
    must(condition || sim_is_troubled(), "%s: %s", what, sluice_last_error());
    return condition;
}

static uint8_t value(uint32_t from, uint32_t to, uint32_t step, uint32_t at)
{
    return (uint8_t)(from * 31 + to * 17 + step * 7 + at * 3);
}

static bool connect_all(struct rank *rank)
{
    struct sluice_endpoint own[MOST_RANKS], theirs[MOST_RANKS];
    struct sluice_endpoint(*all)[MOST_RANKS] = calloc(sim_ranks(), sizeof own);
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(rank->pd, sim_ranks(), NULL);
    if (!works(all != NULL && prepared != NULL, "prepare") ||
        !works(sluice_prepared_multichannel_endpoints(prepared, own, sim_ranks()) == 0,
               "endpoints")) {
        sluice_prepared_multichannel_free(prepared);
        free(all);
        return false;
    }
    memset(own + sim_ranks(), 0, (MOST_RANKS - sim_ranks()) * sizeof *own);
    sim_allgather(own, all, sizeof own);
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        theirs[i] = all[i][sim_rank()];
    }
    free(all);
    rank->all = sluice_prepared_multichannel_handshake(prepared, theirs, sim_ranks());
    return works(rank->all != NULL, "handshake");
}

static bool step(struct rank *rank, uint32_t number)
{
    struct sluice_request sends[MOST_RANKS], receives[MOST_RANKS];
    uint32_t ranks = sim_ranks();
    for (uint32_t i = 0; i < ranks; i++) {
        sends[i] = (struct sluice_request){.peer = i, .sge_count = 1};
        receives[i] = sends[i];
        must(sluice_mr_sge(rank->mr, i * rank->bytes, rank->bytes, &sends[i].sge) == 0 &&
                 sluice_mr_sge(rank->mr, (ranks + i) * rank->bytes, rank->bytes,
                               &receives[i].sge) == 0,
             "element: %s", sluice_last_error());
        for (uint32_t at = 0; at < rank->bytes; at++) {
            rank->memory[i * rank->bytes + at] = value(sim_rank(), i, number, at);
        }
    }
    rank->memory[0] += (uint8_t)sim_number("wrong", 0); /* to see that it would be noticed */
    if (!works(sluice_multichannel_scatter_gather(rank->all, sends, ranks, receives, ranks,
                                                  PATIENCE, NULL) == 0,
               "scatter and gather")) {
        return false;
    }
    for (uint32_t i = 0; i < ranks; i++) {
        for (uint32_t at = 0; at < rank->bytes; at++) {
            must(rank->memory[(ranks + i) * rank->bytes + at] == value(i, sim_rank(), number, at),
                 "step %u: byte %u from rank %u is wrong", number, at, i);
        }
    }
    return true;
}

static bool take_steps(struct rank *rank, uint32_t steps)
{
    rank->context = sluice_context_open(NULL, NULL);
    if (!works(rank->context != NULL, "open")) {
        return false;
    }
    rank->pd = sluice_pd_alloc(rank->context);
    if (!works(rank->pd != NULL, "pd")) {
        return false;
    }
    rank->mr =
        sluice_mr_alloc(rank->pd, (size_t)2 * sim_ranks() * rank->bytes, SLUICE_ACCESS_LOCAL_WRITE);
    if (!works(rank->mr != NULL, "memory")) {
        return false;
    }
    rank->memory = sluice_mr_addr(rank->mr);
    if (!connect_all(rank)) {
        return false;
    }
    for (uint32_t i = 0; i < steps; i++) {
        if (!step(rank, i)) {
            return false;
        }
    }
    return true;
}

int run_scatter(void)
{
    struct rank rank = {.bytes = 0};
    uint32_t steps, shared[2] = {1 + (uint32_t)below(MOST_BYTES), 1 + (uint32_t)below(20)};
    uint32_t all[MOST_RANKS][2];
    sim_allgather(shared, all, sizeof shared);
    rank.bytes = all[0][0];
    steps = all[0][1];
    /* Rank 0 may have been killed before it said how much. */
    if (rank.bytes > 0 && take_steps(&rank, steps)) {
        sim_allgather(shared, all, sizeof shared);
    }
    sluice_multichannel_close(rank.all);
    must(rank.mr == NULL || sluice_mr_deregister(rank.mr) == 0, "deregister: %s",
         sluice_last_error());
    sluice_pd_free(rank.pd);
    sluice_context_close(rank.context);
    return 0;
}
