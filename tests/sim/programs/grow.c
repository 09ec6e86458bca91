/* SPDX-License-Identifier: MIT */
/*
 * A node whose members come and go. Ranks that live agree, over the gathers of the simulation, who
 * is dead, who comes and who leaves, and all members make that change. After each change the
 * members work, without a meeting before it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

enum { MOST_RANKS = 12, NUMBERS = 14, BYTES = 300, FREE = NUMBERS };

/* Each rank gives this to the others in a round. */
struct report {
    uint8_t here, well;
    struct sluice_node_endpoint endpoint; /* zeros: none */
};

static struct {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    uint8_t *memory; /* BYTES to be read by others, and as many for what was read */
    struct sluice_node *node;
    struct sluice_prepared_node *prepared;
    struct report reports[MOST_RANKS];
    uint32_t numbers[MOST_RANKS]; /* of each rank, which all ranks know alike */
    uint32_t step;
} grow;

static bool holds(bool condition, const char *what)
{
    must(condition || sim_is_troubled(), "step %u: %s: %s", grow.step, what, sluice_last_error());
    if (!condition) {
        sim_note("%s: %s", what, sluice_last_error());
    }
    return condition;
}

static bool is_here(uint32_t rank)
{
    return grow.reports[rank].here != 0;
}

/* Exchanges reports. Returns whether all members that were here before are, and are well. */
static bool report(bool well, const struct sluice_node_endpoint *endpoint)
{
    struct report own = {.here = 1, .well = well};
    bool all = true;
    if (endpoint != NULL) {
        own.endpoint = *endpoint;
    }
    memset(grow.reports, 0, sizeof grow.reports);
    sim_allgather(&own, grow.reports, sizeof own);
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        all = all && (grow.numbers[i] == FREE || (is_here(i) && grow.reports[i].well != 0));
    }
    return all;
}

static bool has_endpoint(uint32_t rank)
{
    static const struct sluice_node_endpoint none;
    return memcmp(&grow.reports[rank].endpoint, &none, sizeof none) != 0;
}

static bool is_taken(uint32_t number)
{
    bool taken = false;
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        taken = taken || grow.numbers[i] == number;
    }
    return taken;
}

/* Returns one of the ranks that live and are members, or are not; or MOST_RANKS. */
static uint32_t choose(bool member)
{
    uint32_t ranks[MOST_RANKS], count = 0;
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        if (is_here(i) && (grow.numbers[i] != FREE) == member) {
            ranks[count++] = i;
        }
    }
    uint32_t drawn = (uint32_t)agreed(MOST_RANKS);
    return count > 0 ? ranks[drawn % count] : MOST_RANKS;
}

static void end_node(void)
{
    sluice_node_close(grow.node);
    sluice_prepared_node_free(grow.prepared);
    grow.node = NULL;
    grow.prepared = NULL;
}

/* A rank that came while another one was dead does not know that one: it only begins anew. */
static bool remove_number(uint32_t number)
{
    uint32_t members[NUMBERS];
    int64_t count = sluice_node_members(grow.node, members, NUMBERS);
    bool known = false;
    for (int64_t i = 0; i < count; i++) {
        known = known || members[i] == number;
    }
    return holds((known ? sluice_node_shrink(grow.node, &number, 1)
                        : sluice_node_barrier_reset(grow.node)) == 0,
                 "shrink");
}

static bool bury(void)
{
    bool well = true;
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        uint32_t number = grow.numbers[i];
        if (is_here(i) || number == FREE) {
            continue;
        }
        grow.numbers[i] = FREE;
        well = well && (grow.node == NULL || remove_number(number));
    }
    return well;
}

static bool leave_one(void)
{
    uint32_t who = choose(true), number;
    if (who == MOST_RANKS || choose(true) == who) {
        return true;
    }
    number = grow.numbers[who];
    grow.numbers[who] = FREE;
    if (who == sim_rank()) {
        end_node();
        return true;
    }
    return grow.node == NULL || remove_number(number);
}

static bool prepare(uint32_t number, struct sluice_node_endpoint *endpoint)
{
    const struct sluice_node_attr attr = {.size = sizeof attr,
                                          .connect = SLUICE_NODE_CONNECT_LAZY,
                                          .max_ranks = NUMBERS,
                                          .max_connections = (uint32_t)(below(2) * (1 + below(4)))};
    struct sluice_node_endpoint endpoints[NUMBERS];
    grow.prepared = sluice_node_prepare(grow.pd, number, NUMBERS, &attr);
    if (!holds(grow.prepared != NULL, "prepare") ||
        !holds(sluice_prepared_node_endpoints(grow.prepared, endpoints, NUMBERS) == 0,
               "endpoints")) {
        return false;
    }
    *endpoint = endpoints[0];
    return true;
}

static bool join(void)
{
    struct sluice_node_endpoint remotes[NUMBERS];
    memset(remotes, 0, sizeof remotes);
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        if (grow.numbers[i] != FREE) {
            remotes[grow.numbers[i]] = grow.reports[i].endpoint;
        }
    }
    grow.node = sluice_prepared_node_handshake(grow.prepared, remotes, NUMBERS);
    grow.prepared = NULL;
    return holds(grow.node != NULL, "handshake");
}

/* All members give their endpoints, and the new one its own. */
static bool come_one(void)
{
    struct sluice_node_endpoint endpoint;
    uint32_t who = choose(false), number = (uint32_t)agreed(NUMBERS);
    bool well = true, gives = false;
    while (is_taken(number)) {
        number = (number + 1) % NUMBERS;
    }
    if (who == sim_rank()) {
        gives = prepare(number, &endpoint);
    } else if (grow.node != NULL) {
        gives = well = holds(sluice_node_own_endpoint(grow.node, &endpoint) == 0, "endpoint");
    }
    report(well, gives ? &endpoint : NULL);
    if (who == MOST_RANKS || !has_endpoint(who)) {
        sluice_prepared_node_free(grow.prepared);
        grow.prepared = NULL;
        return well;
    }
    grow.numbers[who] = number;
    if (who == sim_rank()) {
        return join() && holds(sluice_node_barrier_reset(grow.node) == 0, "reset");
    }
    return well &&
           (grow.node == NULL ||
            holds(sluice_node_grow(grow.node, &grow.reports[who].endpoint, 1) == 0, "grow"));
}

static uint8_t value(uint32_t number, uint32_t at)
{
    return (uint8_t)(number * 31 + grow.step * 7 + at * 3);
}

static bool work(void)
{
    uint8_t own[BYTES], all[NUMBERS * BYTES];
    struct sluice_peer_remote_mr remotes[NUMBERS];
    uint32_t mine = grow.numbers[sim_rank()], members[NUMBERS];
    int64_t began = sim_own_time(), count = sluice_node_members(grow.node, members, NUMBERS);
    struct sluice_sge sge;
    for (uint32_t i = 0; i < BYTES; i++) {
        own[i] = grow.memory[i] = value(mine, i);
    }
    if (!holds(sluice_node_barrier(grow.node, NULL, 0, 0, PATIENCE) == 0, "barrier") ||
        !holds(sluice_node_allgather(grow.node, own, all, BYTES, PATIENCE) == 0, "allgather") ||
        !holds(sluice_node_share_mr(grow.node, grow.mr, remotes, PATIENCE) == 0, "share")) {
        return false;
    }
    in_time(began, 3 * PATIENCE, "the work of a step");
    must(sluice_mr_sge(grow.mr, BYTES, BYTES, &sge) == 0, "element");
    for (int64_t i = 0; i < count; i++) {
        for (uint32_t at = 0; at < BYTES; at++) {
            must(all[members[i] * BYTES + at] == value(members[i], at),
                 "step %u: byte %u of number %u is wrong", grow.step, at, members[i]);
        }
        if (!holds(sluice_multichannel_read(sluice_node_multichannel(grow.node), members[i], &sge,
                                            1, &remotes[members[i]].remote, PATIENCE) == 0,
                   "a read")) {
            return false;
        }
        must(memcmp(grow.memory + BYTES, all + members[i] * BYTES, BYTES) == 0,
             "step %u: what was read from number %u is wrong", grow.step, members[i]);
    }
    return holds(sluice_node_barrier(grow.node, NULL, 0, 0, PATIENCE) == 0, "barrier after reads");
}

/*
 * A connection that was refused stays failed, and would hold up the others in each step. So does
 * one to a rank that has a device of another kind, because its own was dead.
 */
static bool is_cut_off(void)
{
    return (sim_befell(sim_rank(), sim_rank()) & SIM_REFUSED) != 0 ||
           strstr(sluice_last_error(), "runs another transport") != NULL;
}

/* Returns whether this rank goes on. A rank that cannot make a change ends, as if it had died. */
static bool step(void)
{
    uint64_t kind;
    bool well, works_well, ends;
    report(true, NULL);
    kind = agreed(3);
    well = bury() && (kind == 0 ? come_one() : kind == 1 ? leave_one() : true);
    if (!well) {
        return false;
    }
    works_well = grow.node == NULL || work();
    ends = !works_well && is_cut_off();
    if (!report(works_well, NULL) && grow.node != NULL) {
        return !ends && holds(sluice_node_barrier_reset(grow.node) == 0, "reset after a failure");
    }
    return true;
}

static bool begin(void)
{
    uint32_t access = SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ;
    struct sluice_node_endpoint endpoint;
    uint32_t first = 1 + (uint32_t)agreed(sim_ranks());
    bool well;
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        grow.numbers[i] = i < first ? i : FREE;
    }
    grow.context = sluice_context_open(NULL, NULL);
    grow.pd = grow.context != NULL ? sluice_pd_alloc(grow.context) : NULL;
    grow.mr = grow.pd != NULL ? sluice_mr_alloc(grow.pd, (size_t)2 * BYTES, access) : NULL;
    grow.memory = grow.mr != NULL ? sluice_mr_addr(grow.mr) : NULL;
    well = holds(grow.memory != NULL, "memory");
    well = well && (sim_rank() >= first || prepare(sim_rank(), &endpoint));
    if (!report(well, well && sim_rank() < first ? &endpoint : NULL)) {
        return false;
    }
    well = well && (sim_rank() >= first || join());
    return report(well, NULL) && well;
}

int run_grow(void)
{
    uint64_t most = sim_number("steps", 12);
    bool well = sim_ranks() <= MOST_RANKS && all_well(begin());
    for (; well && grow.step < most; grow.step++) {
        well = step();
    }
    if (well && report(true, NULL) && grow.node != NULL) {
        holds(sluice_node_shutdown(grow.node, PATIENCE) == 0, "shutdown");
    }
    end_node();
    must(grow.mr == NULL || sluice_mr_deregister(grow.mr) == 0, "deregister: %s",
         sluice_last_error());
    sluice_pd_free(grow.pd);
    sluice_context_close(grow.context);
    return 0;
}
