/* SPDX-License-Identifier: MIT */
/*
 * Barriers and gathers of all ranks of a lazy node: values of all lengths, over few connections;
 * and all ranks learn which one is missing, or in another call.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/fair.h"
#include "lazy.h"

static const size_t lengths[] = {0, 1, 8, 240, 2000, 20000, 65536};

/* The values of rank "from" for rank "to". */
static void fill_value(uint8_t *value, size_t bytes, uint32_t from, uint32_t to)
{
    pattern_fill(value, bytes, pattern_key(from, to, (uint32_t)bytes));
}

static void give_to_all(struct ranks *ranks, uint32_t rank, size_t bytes, bool in_place)
{
    struct sluice_node *node = ranks->nodes[rank];
    uint8_t *own = malloc(ranks->count * bytes + 1), *all = malloc(ranks->count * bytes + 1);
    require(own && all, "%zu bytes", bytes);
    uint8_t *from = in_place ? all + rank * bytes : own;
    fill_value(from, bytes, rank, 0);
    require_ok(sluice_node_allgather(node, from, all, bytes, LONG));
    for (uint32_t i = 0; i < ranks->count; i++) {
        pattern_check(all + i * bytes, bytes, pattern_key(i, 0, (uint32_t)bytes));
    }
    from = in_place ? all : own;
    for (uint32_t i = 0; i < ranks->count; i++) {
        fill_value(from + i * bytes, bytes, rank, i);
    }
    require_ok(sluice_node_alltoall(node, from, all, bytes, LONG));
    for (uint32_t i = 0; i < ranks->count; i++) {
        pattern_check(all + i * bytes, bytes, pattern_key(i, rank, (uint32_t)bytes));
    }
    free(all);
    free(own);
}

static void give_all_lengths(struct ranks *ranks, uint32_t rank)
{
    for (size_t i = 0; i < COUNT(lengths); i++) {
        give_to_all(ranks, rank, lengths[i], i % 2);
        give_to_all(ranks, rank, lengths[i], i % 2);
    }
    for (int i = 0; i < (short_run() ? 20 : 200); i++) {
        give_to_all(ranks, rank, 8, false);
    }
    ranks_meet(ranks);
    ranks_reset(ranks, rank);
    give_to_all(ranks, rank, 8, false);
    require_ok(sluice_node_shutdown(ranks->nodes[rank], LONG));
}

/* With a sanitizer, the shortest run has 2, 3 and 5 ranks here; the next test has 8. */
TEST(gathers_of_lazy_nodes)
{
    bool few = SANITIZED && shortest_run();
    for (uint32_t count = 2; count <= RANKS_MAX; count += few ? count - 1 : 1) {
        lazy_try(count, &lazy, give_all_lengths);
    }
}

/* Without inline writes and with room for only one request. */
TEST(gathers_of_lazy_nodes_with_little_room)
{
    struct sluice_channel_attr channel = {
        .size = sizeof(channel), .max_inline = 1, .send_depth = 1, .receive_depth = 1};
    struct sluice_node_attr attr = lazy;
    attr.channel = &channel;
    lazy_try(RANKS_MAX, &attr, give_all_lengths);
}

/* The last rank comes late. Waits for each part that comes afterwards are short all the same. */
static void give_late(struct ranks *ranks, uint32_t rank)
{
    const size_t bytes = lengths[COUNT(lengths) - 1];
    uint8_t *all = calloc(ranks->count, bytes);
    require(all, "%zu bytes", bytes);
    node_meets(ranks->nodes[rank], NULL, 0);
    if (rank + 1 == ranks->count) {
        poll(NULL, 0, 400);
    }
    int64_t begin = fair_now();
    require_ok(sluice_node_allgather(ranks->nodes[rank], all + rank * bytes, all, bytes, LONG));
    if (rank + 1 == ranks->count && device_is_soft() && !SANITIZED) {
        require_within(begin, SLUICE_S(1));
    }
    free(all);
}

TEST(long_gathers_of_lazy_nodes_are_fast_behind_a_late_rank)
{
    lazy_try(RANKS_MAX, &lazy, give_late);
}

static uint32_t count_used(const struct ranks *ranks, uint32_t rank)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < ranks->count; i++) {
        used += state_of(ranks, rank, i) == SLUICE_STATE_READY;
    }
    return used;
}

/* An allgather uses the connections of barriers, and an alltoall two more a step. */
static void gather_with_few(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    struct memory memory;
    uint64_t own = rank, all[RANKS_MAX];
    memory_open(&memory, ranks->pds[rank], 64);
    require_ok(sluice_node_barrier(node, NULL, 0, 0, LONG));
    require_ok(sluice_node_allgather(node, &own, all, sizeof(own), LONG));
    require_ok(sluice_node_share_mr(node, memory.mr, remotes, LONG));
    for (uint32_t i = 0; i < ranks->count; i++) {
        require(all[i] == i && remotes[i].peer == i && remotes[i].remote.length == 64,
                "rank %u got %llu of rank %u", rank, (unsigned long long)all[i], i);
    }
    require_ok(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, LONG));
    require(count_used(ranks, rank) <= 4, "%u connections", count_used(ranks, rank));
    require_ok(sluice_node_shutdown(node, LONG));
    memory_close(&memory);
}

TEST(gathers_use_few_connections)
{
    lazy_try(RANKS_MAX, &lazy, gather_with_few);
}

/* One rank makes another call than the others, or gives more bytes: all fail. */
static void disagree(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    uint32_t own[RANKS_MAX] = {0}, all[RANKS_MAX] = {0};
    for (uint32_t odd = 0; odd < ranks->count; odd++) {
        require_error(sluice_node_allgather(node, own, all, rank == odd ? 2 : 4, LONG), -EPROTO,
                      "");
        ranks_reset(ranks, rank);
        require_error(rank == odd ? sluice_node_alltoall(node, own, all, 4, LONG)
                                  : sluice_node_barrier(node, NULL, 0, 0, LONG),
                      -EPROTO, "");
        ranks_reset(ranks, rank);
        require_ok(sluice_node_allgather(node, own, all, 4, LONG));
        ranks_meet(ranks);
    }
}

TEST(ranks_of_lazy_nodes_in_different_calls_fail)
{
    lazy_try(RANKS_MAX, &lazy, disagree);
}

/* More than a rank may be given before it takes any. */
#define MANY 20000

/* A call of all ranks, by its number. */
#define TURNS 4
static int call(struct sluice_node *node, int turn, uint8_t *own, uint8_t *all, int64_t deadline)
{
    switch (turn) {
    case 0:
        return sluice_node_barrier(node, NULL, 0, 0, deadline);
    case 1:
        return sluice_node_allgather(node, own, all, 8, deadline);
    default:
        return sluice_node_alltoall(node, own, all, turn == 2 ? 8 : MANY, deadline);
    }
}

/*
 * All ranks learn which one did not come, and that one that the others gave up. Of eight ranks, 0
 * is the root of the tree, 2 is within it, and 1 is a leaf. Five ranks differ in the steps of
 * alltoalls.
 */
static void miss_one(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t odds[] = {0, 2, 1};
    struct sluice_node *node = ranks->nodes[rank];
    uint8_t *own = calloc(ranks->count, MANY), *all = calloc(ranks->count, MANY);
    char name[16];
    require(own && all, "%d bytes", MANY);
    for (size_t i = 0; i < COUNT(odds); i++) {
        uint32_t odd = odds[i];
        for (int turn = ranks->count < RANKS_MAX ? 2 : 0; turn < TURNS; turn++) {
            snprintf(name, sizeof(name), "rank %u", odd);
            if (rank != odd) {
                int error = call(node, turn, own, all, SLUICE_MS(300));
                require(error == -ETIMEDOUT || error == -ECANCELED, "%d", error);
                require(strstr(sluice_last_error(), name) != NULL,
                        "rank %u, call %d: %s instead of %s", rank, turn, sluice_last_error(),
                        name);
            }
            ranks_meet(ranks);
            if (rank == odd) {
                require_error(call(node, turn, own, all, LONG), -ECANCELED, "gave up");
            }
            ranks_reset(ranks, rank);
        }
    }
    node_meets(node, NULL, 0);
    free(all);
    free(own);
}

TEST(all_ranks_of_a_lazy_node_learn_who_is_missing)
{
    lazy_try(RANKS_MAX, &lazy, miss_one);
    lazy_try(5, &lazy, miss_one);
}

/*
 * The last rank, a leaf of the tree, does not come. One of the others has a shorter deadline, and
 * all of these learn at once that it gave up.
 */
static void give_up_early(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    uint8_t *own = calloc(ranks->count, MANY), *all = calloc(ranks->count, MANY);
    require(own && all, "%d bytes", MANY);
    for (uint32_t early = 0; early + 1 < ranks->count; early++) {
        for (int turn = 0; turn < TURNS; turn++) {
            if (rank + 1 < ranks->count) {
                int64_t deadline = rank == early ? SLUICE_MS(100) : SLUICE_FOREVER;
                int error = call(node, turn, own, all, deadline);
                require(error == -ETIMEDOUT || error == -ECANCELED, "%d", error);
            }
            ranks_meet(ranks);
            ranks_reset(ranks, rank);
        }
    }
    free(all);
    free(own);
}

TEST(ranks_of_a_lazy_node_learn_at_once_who_gave_up)
{
    lazy_try(5, &lazy, give_up_early);
}

static void learn_who_gave_up(struct ranks *ranks, uint32_t rank)
{
    uint64_t own = rank, all[RANKS_MAX];
    require_error(sluice_node_allgather(ranks->nodes[rank], &own, all, sizeof(own), LONG),
                  -ECANCELED, "gave up");
}

/* One rank gives up before its first call of all ranks. A child of it in the tree comes late. */
static void give_up_first(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node_endpoint endpoint;
    if (rank == 2) {
        require_ok(sluice_node_peer_reset(ranks->nodes[rank], 4, &endpoint));
    } else if (rank != 3) {
        learn_who_gave_up(ranks, rank);
    }
    ranks_meet(ranks);
    if (rank == 3) {
        learn_who_gave_up(ranks, rank);
    }
    ranks_meet(ranks);
}

TEST(ranks_of_a_lazy_node_learn_who_gave_up_before_any_call)
{
    lazy_try(RANKS_MAX, &lazy, give_up_first);
}

int main(void)
{
    return RUN_GROUPS("node_lazy_calls", {"self", WIRE_SELF, 120}, {"tcp", WIRE_TCP, 120});
}
