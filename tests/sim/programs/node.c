/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

enum { MARKS = 1024, MOST_BYTES = 3000, SHORT_MS = 1500 };

/* How many ranks have entered each barrier of the run. */
struct marks {
    uint32_t entered[MARKS];
};

static uint32_t barriers;

static uint8_t value(uint32_t from, uint32_t to, uint32_t at)
{
    return (uint8_t)(from * 29 + to * 13 + at * 5 + barriers);
}

static bool enter(struct sluice_node *node, const uint32_t *group, uint32_t count,
                  uint32_t algorithm)
{
    struct marks *marks = sim_shared(sizeof *marks);
    uint32_t number = barriers++ % MARKS;
    int64_t began = sim_own_time();
    int error;
    marks->entered[number]++;
    error = sluice_node_barrier(node, group, count, algorithm, PATIENCE);
    in_time(began, PATIENCE, "barrier");
    if (!works(error == 0, "barrier")) {
        return false;
    }
    must(marks->entered[number] == count, "barrier %u ends at %u of %u ranks", number,
         marks->entered[number], count);
    return true;
}

/* A barrier of every second rank; the others do nothing. */
static bool enter_group(struct sluice_node *node)
{
    uint32_t *group = malloc(sim_ranks() * sizeof *group), count = 0, odd = (uint32_t)agreed(2);
    bool well = works(group != NULL, "memory");
    for (uint32_t i = odd; well && i < sim_ranks(); i += 2) {
        group[count++] = i;
    }
    if (well && sim_rank() % 2 == odd) {
        well = enter(node, group, count, (uint32_t)agreed(4));
    } else {
        barriers++;
        agreed(4);
    }
    free(group);
    return well;
}

static bool gather(struct sluice_node *node, bool alltoall)
{
    uint32_t ranks = sim_ranks(), bytes = (uint32_t)agreed(ranks > 64 ? 16 : MOST_BYTES);
    uint8_t *own = calloc(ranks, bytes + 1), *all = calloc(ranks, bytes + 1);
    bool well = works(own != NULL && all != NULL, "memory");
    int64_t began = sim_own_time();
    barriers++;
    for (uint32_t i = 0; well && i < (alltoall ? ranks : 1); i++) {
        for (uint32_t at = 0; at < bytes; at++) {
            own[i * bytes + at] = value(sim_rank(), i, at);
        }
    }
    if (well) {
        well = works((alltoall ? sluice_node_alltoall(node, own, all, bytes, PATIENCE)
                               : sluice_node_allgather(node, own, all, bytes, PATIENCE)) == 0,
                     alltoall ? "alltoall" : "allgather");
        in_time(began, PATIENCE, "gather");
    }
    for (uint32_t i = 0; well && i < ranks; i++) {
        for (uint32_t at = 0; at < bytes; at++) {
            must(all[i * bytes + at] == value(i, alltoall ? sim_rank() : 0, at),
                 "byte %u of %u from rank %u is wrong", at, bytes, i);
        }
    }
    free(own);
    free(all);
    return well;
}

/*
 * Sends to the next rank, and receives from the one before: in a region of the library's, or in
 * memory of the program, which needs no descriptor.
 */
static bool pass_on(struct sluice_node *node, bool in_own)
{
    uint32_t next = (sim_rank() + 1) % sim_ranks(), bytes = 1 + (uint32_t)agreed(MOST_BYTES);
    uint32_t before = (sim_rank() + sim_ranks() - 1) % sim_ranks();
    uint8_t *own = in_own ? malloc((size_t)2 * bytes) : NULL;
    struct sluice_mr *mr =
        own != NULL
            ? sluice_mr_register(sluice_node_pd(node), own, (size_t)2 * bytes,
                                 SLUICE_ACCESS_LOCAL_WRITE)
            : sluice_mr_alloc(sluice_node_pd(node), (size_t)2 * bytes, SLUICE_ACCESS_LOCAL_WRITE);
    struct sluice_request send = {.peer = next, .sge_count = 1};
    struct sluice_request receive = {.peer = before, .sge_count = 1};
    uint8_t *memory = mr != NULL ? sluice_mr_addr(mr) : NULL;
    bool well = works(mr != NULL, "memory");
    barriers++;
    if (well) {
        must(sluice_mr_sge(mr, 0, bytes, &send.sge) == 0 &&
                 sluice_mr_sge(mr, bytes, bytes, &receive.sge) == 0,
             "element: %s", sluice_last_error());
        for (uint32_t at = 0; at < bytes; at++) {
            memory[at] = value(sim_rank(), next, at);
        }
        well = works(sluice_multichannel_scatter_gather(sluice_node_multichannel(node), &send, 1,
                                                        &receive, 1, PATIENCE, NULL) == 0,
                     "message");
        for (uint32_t at = 0; well && at < bytes; at++) {
            must(memory[bytes + at] == value(before, sim_rank(), at), "byte %u is wrong", at);
        }
    }
    must(mr == NULL || sluice_mr_deregister(mr) == 0, "deregister: %s", sluice_last_error());
    free(own);
    return well;
}

/* The text of an error names a rank. */
static bool names(uint32_t rank)
{
    char text[32];
    const char *found = sluice_last_error();
    size_t length = (size_t)snprintf(text, sizeof text, "rank %u", rank);
    while ((found = strstr(found, text)) != NULL) {
        if (found[length] < '0' || found[length] > '9') {
            return true;
        }
        found++;
    }
    return false;
}

/*
 * One rank is late for a barrier. All ranks fail, know which rank it was, and begin again. A rank
 * that is stopped for longer than the late one sees after its deadline that all have come.
 */
static bool miss_barrier(struct sluice_node *node)
{
    struct marks *marks = sim_shared(sizeof *marks);
    uint32_t odd = (uint32_t)agreed(sim_ranks()), number = barriers++ % MARKS;
    int64_t began;
    int error;
    /* The last barrier may end at one rank seconds before it ends at another. */
    if (!all_well(true)) {
        return false;
    }
    began = sim_own_time();
    if (sim_rank() == odd) {
        sim_pause(SLUICE_MS(2 * SHORT_MS));
        marks->entered[number]++;
    }
    error = sluice_node_barrier(node, NULL, 0, 0, SLUICE_MS(SHORT_MS));
    if (sim_rank() != odd) {
        in_time(began, SLUICE_MS(SHORT_MS), "barrier");
        must(error != 0 || marks->entered[number] != 0, "the barrier ended without rank %u", odd);
        sim_note("without rank %u: error %d, %s", odd, -error, sluice_last_error());
        /* If the network is slow, the text names the rank that was waited for, and says so. */
        works((error == -ETIMEDOUT || error == -ECANCELED) &&
                  (names(odd) || strstr(sluice_last_error(), "sent nothing in time") != NULL ||
                   strstr(sluice_last_error(), "not answer") != NULL),
              "barrier without a rank");
    }
    return works(error != 0, "late barrier") && all_well(true) &&
           works(sluice_node_barrier_reset(node) == 0, "reset") && all_well(true);
}

/* Connects the next rank, or all of them, ahead of their use. */
static bool reach(struct sluice_node *node)
{
    uint32_t next = next_rank();
    int64_t began = sim_own_time();
    bool all = below(2) == 0;
    int error = sluice_node_reach(node, all ? NULL : &next, all ? 0 : 1, PATIENCE);
    barriers++;
    in_time(began, PATIENCE, "reach");
    return works(error == 0, "reach");
}

/* All ranks come to the end of a step, and go on when its traffic is printed. */
static bool end_step(bool well, const char *name)
{
    well = all_well(well);
    if (sim_rank() == 0) {
        sim_print_traffic(name);
    }
    return all_well(true) && well;
}

/* A program that talks to its neighbours. step=7 chooses it, to count the traffic of large jobs. */
static bool talk_to_neighbours(struct sluice_node *node)
{
    return end_step(true, "all ranks have opened the node") &&
           end_step(enter(node, NULL, sim_ranks(), SLUICE_BARRIER_DEFAULT),
                    "the end of the first barrier") &&
           end_step(pass_on(node, true), "each rank has a message from the one before") &&
           end_step(pass_on(node, true), "each rank has a second message");
}

static bool step(struct sluice_node *node)
{
    switch (sim_number("step", agreed(7))) {
    case 0:
        return gather(node, false);
    case 1:
        return gather(node, true);
    case 2:
        return enter_group(node);
    case 3:
        return miss_barrier(node);
    case 4:
        return pass_on(node, false);
    case 5:
        return reach(node);
    case 7:
        return talk_to_neighbours(node);
    default:
        return enter(node, NULL, sim_ranks(), (uint32_t)agreed(4));
    }
}

static bool work(void)
{
    int64_t began = sim_own_time(), patience = SLUICE_S(20 + sim_ranks());
    struct sluice_node_attr attr = {.size = sizeof attr,
                                    .connect = (uint32_t)sim_number("lazy", agreed(2))};
    uint32_t most = (uint32_t)sim_number("limit", agreed(2) * (4 + agreed(4)));
    uint64_t steps = sim_number("steps", agreed(1 + agreed(12)));
    struct sluice_node *node;
    bool well;
    /* Ranks that are ahead hold two connections of a rank with the messages of pass_on(). */
    attr.max_connections = attr.connect == SLUICE_NODE_CONNECT_LAZY ? most : 0;
    node = sluice_node_open(NULL, NULL, &attr, patience);
    well = works(node != NULL, "open");
    in_time(began, patience, "open");
    must(node == NULL || (sluice_node_rank(node) == (int)sim_rank() &&
                          sluice_node_ranks(node) == (int)sim_ranks() &&
                          sluice_node_context(node) != NULL && sluice_node_exchange(node) != NULL),
         "the node has the wrong rank, or lacks what it opened");
    for (uint64_t i = 0; well && i < steps; i++) {
        well = step(node);
    }
    well = well && works(sluice_node_shutdown(node, PATIENCE) == 0, "shutdown");
    sluice_node_close(node);
    return well;
}

/* One rank does not come, or has another secret. The others know which rank that is. */
static bool fail_to_open(bool absent)
{
    uint32_t odd = (uint32_t)agreed(sim_ranks());
    const bool own = sim_rank() == odd;
    struct sluice_exchange_attr attr = {.size = sizeof attr,
                                        .secret_file = own ? "/run/wrong-secret" : NULL};
    struct sluice_exchange *exchange;
    int64_t began = sim_own_time();
    int error;
    if (own && absent) {
        return true;
    }
    exchange = sluice_exchange_open(&attr, SLUICE_MS(SHORT_MS));
    error = errno;
    in_time(began, SLUICE_MS(SHORT_MS), "exchange");
    must(exchange == NULL, "an exchange opened without rank %u", odd);
    if (!absent) {
        return works((error == EACCES || error == ETIMEDOUT) && (own || names(odd)),
                     "exchange with the wrong secret");
    }
    return works(error == ETIMEDOUT && names(odd), "exchange without a rank");
}

/* An exchange of its own, with values that a connection takes in parts. */
static bool swap_values(void)
{
    uint32_t ranks = sim_ranks(), bytes = 1 + (uint32_t)agreed(ranks > 64 ? 16 : MOST_BYTES);
    uint8_t *own = calloc(ranks, bytes), *all = calloc(ranks, bytes);
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(20 + ranks));
    bool well = works(own != NULL && all != NULL, "memory") && works(exchange != NULL, "exchange");
    for (uint64_t i = 1 + agreed(3); well && i > 0; i--) {
        bool alltoall = agreed(2) == 0;
        barriers++;
        for (uint32_t at = 0; at < ranks * bytes; at++) {
            own[at] = value(sim_rank(), alltoall ? at / bytes : 0, at % bytes);
        }
        well =
            works((alltoall ? sluice_exchange_alltoall(exchange, own, all, bytes, PATIENCE)
                            : sluice_exchange_allgather(exchange, own, all, bytes, PATIENCE)) == 0,
                  "a gather of an exchange");
        for (uint32_t at = 0; well && at < ranks * bytes; at++) {
            must(all[at] == value(at / bytes, alltoall ? sim_rank() : 0, at % bytes),
                 "byte %u of %u from rank %u is wrong", at % bytes, bytes, at / bytes);
        }
    }
    sluice_exchange_close(exchange);
    free(own);
    free(all);
    return well;
}

int run_node(void)
{
    uint64_t rounds = sim_number("rounds", 1 + agreed(3));
    bool well = true;
    for (uint64_t i = 0; well && i < rounds; i++) {
        uint64_t kind = sim_number("kind", agreed(6));
        well = all_well(kind < 2 ? fail_to_open(kind == 0) : kind == 2 ? swap_values() : work());
    }
    return 0;
}
