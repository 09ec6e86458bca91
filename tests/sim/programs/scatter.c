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
    struct sluice_endpoint *endpoints; /* of all ranks, each with one for each rank */
    uint8_t *memory;                   /* what goes to each rank, then what comes from each */
    uint32_t bytes;
    bool device;
};

static struct rank rank;

static uint8_t value(uint32_t from, uint32_t to, uint32_t step, uint32_t at)
{
    return (uint8_t)(from * 31 + to * 17 + step * 7 + at * 3);
}

static void connect_all(void)
{
    struct sluice_endpoint own[MOST_RANKS], theirs[MOST_RANKS];
    struct sluice_prepared_multichannel *prepared;
    while ((rank.endpoints = malloc(sim_ranks() * sizeof own)) == NULL) {
        again("malloc");
    }
    while ((prepared = sluice_multichannel_prepare(rank.pd, sim_ranks(), NULL)) == NULL) {
        again("prepare");
    }
    must(sluice_prepared_multichannel_endpoints(prepared, own, sim_ranks()) == 0, "endpoints: %s",
         sluice_last_error());
    memset(own + sim_ranks(), 0, (MOST_RANKS - sim_ranks()) * sizeof *own);
    sim_allgather(own, rank.endpoints, sizeof own);
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        theirs[i] = rank.endpoints[i * MOST_RANKS + sim_rank()];
    }
    while ((rank.all = sluice_prepared_multichannel_handshake(prepared, theirs, sim_ranks())) ==
           NULL) {
        again("handshake");
        while ((prepared = sluice_multichannel_prepare(rank.pd, sim_ranks(), NULL)) == NULL) {
            again("prepare");
        }
        memset(theirs, 0, sizeof theirs);
    }
}

/*
 * Without keep-alive no device tells a rank that only receives of the death of its peer, or that a
 * call of the peer was refused. That rank stays in its step up to the deadline, and others give it
 * up in the next one.
 */
static bool may_be_held_up(void)
{
    uint32_t befell = 0;
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        befell |= sim_befell(i, i);
    }
    return (befell & SIM_REFUSED) != 0 || (rank.device && (befell & SIM_KILLED) != 0);
}

/* A request fails only if a fault befell its peer or this rank. */
static void check(uint32_t number, const struct sluice_completion *result)
{
    uint32_t ranks = sim_ranks(), own = sim_rank(), peer = result->peer;
    must(result->error == 0 || may_be_held_up() ||
             (sim_befell(own, peer) & (SIM_KILLED | SIM_CUT | SIM_DEVICE)) != 0,
         "step %u: rank %u failed for no reason: %s", number, peer,
         sluice_status_name(result->status));
    for (uint32_t at = 0;
         result->error == 0 && result->opcode == SLUICE_OP_RECEIVE && at < rank.bytes; at++) {
        must(rank.memory[(ranks + peer) * rank.bytes + at] == value(peer, own, number, at),
             "step %u: byte %u from rank %u is wrong", number, at, peer);
    }
}

static void step(uint32_t number)
{
    struct sluice_request sends[MOST_RANKS], receives[MOST_RANKS];
    struct sluice_completion results[2 * MOST_RANKS];
    uint32_t ranks = sim_ranks(), own = sim_rank();
    bool failed = false;
    int result;
    for (uint32_t i = 0; i < ranks; i++) {
        sends[i] = (struct sluice_request){.peer = i, .sge_count = 1};
        receives[i] = sends[i];
        must(sluice_mr_sge(rank.mr, i * rank.bytes, rank.bytes, &sends[i].sge) == 0 &&
                 sluice_mr_sge(rank.mr, (ranks + i) * rank.bytes, rank.bytes, &receives[i].sge) ==
                     0,
             "element: %s", sluice_last_error());
        for (uint32_t at = 0; at < rank.bytes; at++) {
            rank.memory[i * rank.bytes + at] = value(own, i, number, at);
        }
    }
    rank.memory[0] += (uint8_t)sim_number("wrong", 0); /* to see that it would be noticed */
    result = sluice_multichannel_scatter_gather(rank.all, sends, ranks, receives, ranks, PATIENCE,
                                                results);
    for (uint32_t i = 0; i < 2 * ranks; i++) {
        must(results[i].peer == i % ranks, "step %u: result %u is of rank %u", number, i,
             results[i].peer);
        check(number, &results[i]);
        failed |= results[i].error != 0;
    }
    must((result != 0) == failed, "step %u: %d: %s", number, result, sluice_last_error());
}

void run_scatter(void)
{
    uint32_t steps = 0,
             shared[2] = {1 + (uint32_t)below(MOST_BYTES), 1 + (uint32_t)below(1 + below(20))};
    struct sluice_context_info info = {.size = sizeof info};
    uint32_t all[MOST_RANKS][2];
    sim_allgather(shared, all, sizeof shared);
    for (uint32_t i = 0; i < sim_ranks() && rank.bytes == 0; i++) {
        rank.bytes = all[i][0];
        steps = all[i][1];
    }
    while ((rank.context = sluice_context_open(NULL, NULL)) == NULL) {
        again("open");
    }
    must(sluice_context_query(rank.context, &info) == 0, "query: %s", sluice_last_error());
    rank.device = strcmp(info.transport, "soft") != 0;
    while ((rank.pd = sluice_pd_alloc(rank.context)) == NULL) {
        again("pd");
    }
    while ((rank.mr = sluice_mr_alloc(rank.pd, (size_t)2 * sim_ranks() * rank.bytes,
                                      SLUICE_ACCESS_LOCAL_WRITE)) == NULL) {
        again("memory");
    }
    rank.memory = sluice_mr_addr(rank.mr);
    connect_all();
    for (uint32_t i = 0; i < steps; i++) {
        step(i);
    }
    sim_allgather(shared, all, sizeof shared);
}

void end_scatter(void)
{
    sluice_multichannel_close(rank.all);
    free(rank.endpoints);
    must(sluice_mr_deregister(rank.mr) == 0, "deregister: %s", sluice_last_error());
    sluice_pd_free(rank.pd);
    sluice_context_close(rank.context);
}
