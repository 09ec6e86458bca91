/* SPDX-License-Identifier: MIT */
/*
 * A node whose ranks die and come again, each as a new process, which knows nothing: the others
 * notice that it is gone, take it back, and go on with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

enum { MOST_RANKS = 16, BYTES = 512, MOST_RESTARTS = 4 };

/* From here a new process learns where the others are: memory that no real cluster has. */
struct history {
    uint64_t agreed; /* where the numbers that all ranks agree on go on */
    uint32_t step, restarts;
    bool restarted[MOST_RANKS];
    uint32_t connect; /* enum sluice_node_connect */
};

static struct {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    uint8_t *memory; /* BYTES to be read by others, then a place for each rank */
    struct sluice_exchange *exchange;
    struct sluice_node *node;
    struct sluice_multichannel *second;
    uint32_t step;
    bool soft; /* without a device */
} rejoin;

static struct history *history(void)
{
    return sim_shared(sizeof(struct history));
}

/* Returns whether nothing has happened to any rank but the restarts of this program. */
static bool is_quiet(void)
{
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        uint32_t excused = SIM_STOPPED | SIM_PARTED;
        excused |= history()->restarted[i] ? SIM_KILLED : 0;
        if (sim_is_dead(i) || (sim_befell(i, i) & ~excused) != 0) {
            return false;
        }
    }
    return true;
}

/* Returns whether nothing has held up any rank, either. */
static bool is_prompt(void)
{
    bool prompt = is_quiet();
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        prompt = prompt && (sim_befell(sim_rank(), i) & (SIM_STOPPED | SIM_PARTED)) == 0;
    }
    return prompt;
}

/* Returns the condition. A call that fails breaks a run in which nothing else has happened. */
static bool holds(bool condition, const char *what)
{
    must(condition || !is_quiet(), "step %u: %s: %s", rejoin.step, what, sluice_last_error());
    if (!condition) {
        sim_note("%s: %s", what, sluice_last_error());
    }
    return condition;
}

static uint8_t value(uint32_t from, uint32_t to, uint32_t at)
{
    return (uint8_t)(from * 37 + to * 11 + rejoin.step * 5 + at * 3);
}

/* The exchange of the program: gathers of the simulation. */

static int gather(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    (void)argument;
    (void)deadline;
    sim_allgather(own, all, bytes);
    return 0;
}

static int meet(void *argument, int64_t deadline)
{
    uint8_t own = 1, all[MOST_RANKS];
    return gather(argument, &own, all, 1, deadline);
}

static bool use_exchange(void)
{
    struct sluice_exchange_info info = {.size = sizeof info};
    uint32_t own[MOST_RANKS], all[MOST_RANKS], missing, place = 0, count = 0;
    must(sluice_exchange_query(rejoin.exchange, &info) == 0 && info.kind == SLUICE_EXCHANGE_OWN &&
             info.rank == sim_rank() && info.ranks == sim_ranks() &&
             sluice_exchange_missing(rejoin.exchange, &missing, 1) == 0,
         "an exchange does not know its rank");
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        own[i] = sim_rank() * 100 + i;
    }
    if (!holds(sluice_exchange_alltoall(rejoin.exchange, own, all, sizeof *own, PATIENCE) == 0,
               "alltoall of an exchange")) {
        return false;
    }
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        must(all[i] == i * 100 + sim_rank() || !is_quiet(), "a value of rank %u is wrong", i);
    }
    return holds(sluice_exchange_allgather(rejoin.exchange, own, all, sizeof *own, PATIENCE) == 0 &&
                     sluice_exchange_locality(rejoin.exchange, &place, &count, PATIENCE) == 0 &&
                     place < count && count <= sim_ranks() &&
                     sluice_exchange_barrier(rejoin.exchange, PATIENCE) == 0,
                 "an exchange");
}

/* Barriers, gathers and memory work with all ranks, also with new ones. */
static bool work(void)
{
    uint8_t own[BYTES], all[MOST_RANKS * BYTES];
    struct sluice_peer_remote_mr remotes[MOST_RANKS];
    uint32_t ranks = sim_ranks();
    int64_t began = sim_own_time();
    for (uint32_t i = 0; i < BYTES; i++) {
        own[i] = rejoin.memory[i] = value(sim_rank(), 0, i);
    }
    if (!holds(sluice_node_barrier(rejoin.node, NULL, 0, (uint32_t)agreed(4), PATIENCE) == 0,
               "barrier") ||
        !holds(sluice_node_allgather(rejoin.node, own, all, BYTES, PATIENCE) == 0, "allgather") ||
        !holds(sluice_node_share_mr(rejoin.node, rejoin.mr, remotes, PATIENCE) == 0, "share")) {
        return false;
    }
    in_time(began, 3 * PATIENCE, "the work of a step");
    for (uint32_t i = 0; i < ranks * BYTES; i++) {
        must(all[i] == value(i / BYTES, 0, i % BYTES), "step %u: byte %u of rank %u is wrong",
             rejoin.step, i % BYTES, i / BYTES);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        struct sluice_multichannel *via =
            below(2) ? sluice_node_multichannel(rejoin.node) : rejoin.second;
        struct sluice_sge sge;
        must(sluice_mr_sge(rejoin.mr, (1 + i) * BYTES, BYTES, &sge) == 0, "element");
        if (!holds(sluice_multichannel_read(via, i, &sge, 1, &remotes[i].remote, PATIENCE) == 0,
                   "a read")) {
            return false;
        }
        for (uint32_t at = 0; at < BYTES; at++) {
            must(rejoin.memory[(1 + i) * BYTES + at] == value(i, 0, at),
                 "step %u: byte %u that was read from rank %u is wrong", rejoin.step, at, i);
        }
    }
    return true;
}

/* All ranks are in barriers as one of them dies; the others fail soon, and never by themselves. */
static void lose(uint32_t victim)
{
    int64_t after = (int64_t)agreed(20000000), began = sim_own_time(), failed;
    int result;
    history()->restarted[victim] = true;
    if (sim_rank() == (victim + 1) % sim_ranks()) {
        history()->agreed = agreed_so_far();
        history()->step = rejoin.step;
        history()->restarts++;
        sim_strike(SIM_RESTART, victim, after, 0);
    }
    do {
        result = sluice_node_barrier(rejoin.node, NULL, 0, 0, SLUICE_S(10));
        failed = sim_own_time();
    } while (result == 0);
    sim_note("the barriers end: %s", sluice_last_error());
    while (sim_rank() == victim) {
        sim_pause(PATIENCE); /* until it is killed */
    }
    /* A device tells nothing to a rank that only waits. */
    must(failed - began < after + SLUICE_S(rejoin.soft ? 3 : 13) || !is_prompt(),
         "a lost rank is noticed after %ld ms: %s", (long)((failed - began - after) / 1000000),
         sluice_last_error());
}

/* Gives each rank its endpoint of this one, and takes theirs; and waits for all. */
static bool swap(const struct sluice_node_endpoint *own, struct sluice_node_endpoint *theirs,
                 bool well)
{
    return all_well(
        holds(sluice_exchange_alltoall(rejoin.exchange, own, theirs, sizeof *own, PATIENCE) == 0,
              "swap endpoints") &&
        well);
}

static bool is_zero(const struct sluice_node_endpoint *endpoint)
{
    static const struct sluice_node_endpoint none;
    return memcmp(endpoint, &none, sizeof none) == 0;
}

/* A rank that goes on connects one that came again. */
static bool take_back(uint32_t victim)
{
    struct sluice_node_endpoint own[MOST_RANKS], theirs[MOST_RANKS];
    bool well;
    memset(own, 0, sizeof own);
    well = holds(sluice_node_peer_reset(rejoin.node, victim, &own[victim]) == 0, "reset a rank");
    if (!swap(own, theirs, well) || is_zero(&theirs[victim])) {
        return all_well(false);
    }
    return all_well(holds(sluice_node_peer_handshake(rejoin.node, victim, &theirs[victim]) == 0,
                          "take a rank back"));
}

/* Makes a node in steps: at the beginning, or as a process that comes again. */
static bool come(void)
{
    struct sluice_node_endpoint own[MOST_RANKS], theirs[MOST_RANKS];
    const struct sluice_node_attr attr = {.size = sizeof attr, .connect = history()->connect};
    struct sluice_prepared_node *prepared =
        sluice_node_prepare(rejoin.pd, sim_rank(), sim_ranks(), &attr);
    bool well = holds(prepared != NULL, "prepare");
    memset(own, 0, sizeof own);
    well =
        well && holds(sluice_prepared_node_endpoints(prepared, own, sim_ranks()) == 0, "endpoints");
    if (!swap(own, theirs, well)) {
        sluice_prepared_node_free(prepared);
        return all_well(false);
    }
    rejoin.node = sluice_prepared_node_handshake(prepared, theirs, sim_ranks());
    return all_well(holds(rejoin.node != NULL, "handshake"));
}

/* All ranks reset their barriers, and meet before any uses one. */
static bool begin_again(void)
{
    return all_well(holds(sluice_node_barrier_reset(rejoin.node) == 0, "reset the barriers"));
}

static bool connect_second(void)
{
    struct sluice_channel_attr attr = {.size = sizeof attr, .send_depth = 8};
    if (rejoin.second != NULL) {
        return all_well(
            holds(sluice_node_multichannel_reconnect(rejoin.node, rejoin.second, PATIENCE) == 0,
                  "reconnect"));
    }
    rejoin.second = sluice_node_multichannel_open(rejoin.node, &attr, PATIENCE);
    return all_well(holds(rejoin.second != NULL, "connect once more"));
}

static bool begin(void)
{
    struct sluice_exchange_provider provider = {
        .size = sizeof provider, .allgather = gather, .barrier = meet};
    uint32_t access = SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ;
    struct sluice_context_info limits = {.size = sizeof limits};
    rejoin.context = sluice_context_open(NULL, NULL);
    if (rejoin.context != NULL) {
        must(sluice_context_query(rejoin.context, &limits) == 0, "query");
        rejoin.soft = strcmp(limits.transport, "soft") == 0;
    }
    rejoin.pd = rejoin.context != NULL ? sluice_pd_alloc(rejoin.context) : NULL;
    rejoin.mr = rejoin.pd != NULL
                    ? sluice_mr_alloc(rejoin.pd, (size_t)(1 + MOST_RANKS) * BYTES, access)
                    : NULL;
    rejoin.exchange = sluice_exchange_wrap(&provider, NULL, sim_rank(), sim_ranks());
    rejoin.memory = rejoin.mr != NULL ? sluice_mr_addr(rejoin.mr) : NULL;
    return holds(rejoin.memory != NULL && rejoin.exchange != NULL, "memory");
}

/* One rank is lost and comes again. The new process begins in the middle of this. */
static bool replace(void)
{
    uint32_t victim = (uint32_t)agreed(sim_ranks());
    lose(victim);
    return all_well(true) && take_back(victim) && begin_again() && connect_second();
}

static bool step(void)
{
    bool replaces = sim_ranks() > 1 && agreed(3) == 0 && history()->restarts < MOST_RESTARTS;
    if (!all_well(true)) {
        return false;
    }
    return replaces ? replace() : all_well(agreed(4) == 0 ? use_exchange() : work());
}

int run_rejoin(void)
{
    uint64_t most;
    bool well = sim_ranks() <= MOST_RANKS;
    if (sim_generation() > 0) {
        agree_from(history()->agreed);
        rejoin.step = history()->step;
        most = sim_number("steps", 12);
        well = well && all_well(begin()) && come() && begin_again() && connect_second();
        rejoin.step++;
    } else {
        history()->connect = (uint32_t)sim_number("lazy", agreed(2));
        most = sim_number("steps", 12);
        well = well && all_well(begin()) && come() && connect_second();
    }
    for (; well && rejoin.step < most; rejoin.step++) {
        well = step();
    }
    if (well && rejoin.second != NULL) {
        (void)!sluice_multichannel_flush(rejoin.second, PATIENCE);
        holds(sluice_node_shutdown(rejoin.node, PATIENCE) == 0, "shutdown");
        all_well(true);
    }
    sluice_multichannel_close(rejoin.second);
    sluice_node_close(rejoin.node);
    sluice_exchange_close(rejoin.exchange);
    must(rejoin.mr == NULL || sluice_mr_deregister(rejoin.mr) == 0, "deregister: %s",
         sluice_last_error());
    sluice_pd_free(rejoin.pd);
    sluice_context_close(rejoin.context);
    return 0;
}
