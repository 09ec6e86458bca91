/* SPDX-License-Identifier: MIT */
/*
 * Lazy nodes: ranks are connected by the request that first needs it, of any kind and from either
 * side, or ahead; a rank that is gone fails alone; and a connection that has failed is made anew.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lazy.h"

static void require_states(const struct ranks *ranks, uint32_t rank, int wanted)
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        require_result(state_of(ranks, rank, i), wanted);
    }
}

static void use_all(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    require_states(ranks, rank, SLUICE_STATE_PREPARED);
    ranks_meet(ranks);
    node_works(node, ranks->pds[rank]);
    require_states(ranks, rank, SLUICE_STATE_READY);
    require_ok(sluice_node_shutdown(node, LONG));
}

TEST(ranks_connect_at_first_use)
{
    static const uint32_t counts[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < COUNT(counts); i++) {
        lazy_try(counts[i], &lazy, use_all);
    }
}

/* A barrier of a tree needs one to five neighbours, and no other rank: here four at most. */
static void meet_in_tree(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    uint32_t connected = 0;
    require_ok(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_DEFAULT, LONG));
    require_ok(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_DEFAULT, LONG));
    for (uint32_t i = 0; i < ranks->count; i++) {
        connected += state_of(ranks, rank, i) == SLUICE_STATE_READY;
    }
    require(connected >= 1 && connected <= 4, "rank %u uses %u ranks", rank, connected);
    require_ok(sluice_node_shutdown(node, LONG));
}

TEST(barriers_use_few_connections)
{
    lazy_try(8, &lazy, meet_in_tree);
}

/* A rank comes late to its first barrier: those that waited have given up, and it learns that. */
static void come_late(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    if (rank == 0) {
        require_error(sluice_node_barrier(node, NULL, 0, 0, SLUICE_MS(200)), -ETIMEDOUT, "rank 1");
    }
    ranks_meet(ranks);
    if (rank == 1) {
        require_error(sluice_node_barrier(node, NULL, 0, 0, LONG), -ECANCELED, "rank 0 gave up");
    }
    ranks_reset(ranks, rank);
    node_meets(node, NULL, 0);
}

TEST(a_late_rank_learns_that_others_gave_up)
{
    lazy_try(2, &lazy, come_late);
}

/* Posted requests of all kinds are posted before there is a connection, and complete after. */
static void post_posted(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    uint32_t next = (rank + 1) % ranks->count, before = (rank + ranks->count - 1) % ranks->count;
    struct sluice_completion completion;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    memset(memory.bytes, (int)rank + 1, 64);
    struct sluice_sge from = memory_sge(&memory, 0, 16), to = memory_sge(&memory, 16, 16);
    struct sluice_sge small = memory_sge(&memory, 48, 8), room = memory_sge(&memory, 32, 16);
    struct sluice_request requests[] = {
        request_of(SLUICE_OP_RECEIVE, before, &to),
        request_of(SLUICE_OP_RECEIVE, before, &room),
        request_of(SLUICE_OP_SEND, next, &from),
        request_of(SLUICE_OP_SEND, next, &small),
    };
    requests[3].flags = SLUICE_INLINE;
    require_result(sluice_multichannel_post(all, requests, 4, LONG, NULL), 4);
    /* The inline bytes were copied. */
    memset(memory.bytes + 48, 0, 8);
    for (int i = 0; i < 4; i++) {
        require_result(sluice_multichannel_next(all, LONG, &completion), 0);
        require(completion.error == 0, "rank %u: %d", rank, completion.error);
    }
    value_check(memory.bytes + 16, 16, (uint8_t)(before + 1));
    value_check(memory.bytes + 32, 8, (uint8_t)(before + 1));
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(posted_requests_wait_for_the_connection)
{
    for (uint32_t count = 1; count <= 4; count++) {
        lazy_try(count, &lazy, post_posted);
    }
}

static struct sluice_remote_mr shared;

/* Rank 0 makes no call while the others read its memory, and write to it. */
static void reach_silent_rank(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge own = memory_sge(&memory, 0, 8);
    memset(memory.bytes, (int)rank + 1, 64);
    if (rank == 0) {
        shared = memory_remote(&memory, 0, 64);
    }
    ranks_meet(ranks);
    if (rank > 0) {
        struct sluice_remote_mr place;
        require_ok(sluice_remote_mr_slice(&shared, 8 * (uint64_t)rank, 8, &place));
        require_ok(sluice_multichannel_write(all, 0, &own, 1, &place, LONG));
        require_ok(sluice_remote_mr_slice(&shared, 0, 8, &place));
        require_ok(sluice_multichannel_read(all, 0, &own, 1, &place, LONG));
        value_check(memory.bytes, 8, 1);
    }
    ranks_meet(ranks);
    for (uint32_t i = 1; rank == 0 && i < ranks->count; i++) {
        value_check(memory.bytes + 8 * (size_t)i, 8, (uint8_t)(i + 1));
        require_result(state_of(ranks, 0, i), SLUICE_STATE_PREPARED);
    }
    ranks_meet(ranks);
    /* This side uses the connections that the others have made. */
    node_meets(ranks->nodes[rank], NULL, 0);
    memory_close(&memory);
}

TEST(a_rank_is_reached_while_its_program_is_elsewhere)
{
    lazy_try(4, &lazy, reach_silent_rank);
}

/* A scope posts to ranks that are not connected, and drains what it has posted. */
static void use_scope(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    uint32_t other = ranks->count - 1 - rank;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 16);
    memset(memory.bytes, (int)rank + 1, 8);
    struct sluice_sge from = memory_sge(&memory, 0, 8), to = memory_sge(&memory, 8, 8);
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(all, LONG));
    require_ok(sluice_scope_post_receive(scope, other, &to, 1, NULL));
    require_ok(sluice_scope_post_send(scope, other, &from, 1, NULL));
    require_ok(sluice_scope_end(scope, NULL));
    value_check(memory.bytes + 8, 8, (uint8_t)(other + 1));
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(scopes_connect)
{
    lazy_try(4, &lazy, use_scope);
}

/* All begin at the same moment, in both directions. */
static void begin_at_once(struct ranks *ranks, uint32_t rank)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    ranks_meet(ranks);
    require_ok(sluice_node_reach(ranks->nodes[rank], NULL, 0, LONG));
    require_states(ranks, rank, SLUICE_STATE_READY);
    node_meets(ranks->nodes[rank], NULL, 0);
    require_ok(
        sluice_multichannel_counters(sluice_node_multichannel(ranks->nodes[rank]), &counters));
    require(counters.resets == 0, "%llu resets", (unsigned long long)counters.resets);
}

TEST(both_sides_at_once_are_one_connection)
{
    for (int i = 0; i < (short_run() ? 2 : 10); i++) {
        lazy_try(8, &lazy, begin_at_once);
    }
}

static void know_neighbours(struct ranks *ranks, uint32_t rank)
{
    require_result(state_of(ranks, rank, 0), SLUICE_STATE_READY);
    require_result(state_of(ranks, rank, 2), SLUICE_STATE_READY);
    ranks_meet(ranks);
}

TEST(given_ranks_are_connected_when_the_node_opens)
{
    static const uint32_t given[] = {0, 2};
    struct sluice_node_attr attr = lazy;
    attr.peers = given;
    attr.peer_count = 2;
    lazy_try(4, &attr, know_neighbours);
}

/* Rank 2 names itself, and the others name it twice. */
static void know_one(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t i = 0; i < 4 && rank != 2; i++)
        require_result(state_of(ranks, rank, i),
                       i == 2 ? SLUICE_STATE_READY : SLUICE_STATE_PREPARED);
    require_result(state_of(ranks, rank, 2), SLUICE_STATE_READY);
    ranks_meet(ranks);
}

TEST(given_ranks_may_have_the_own_one_and_one_twice)
{
    static const uint32_t given[] = {2, 2};
    struct sluice_node_attr attr = lazy;
    attr.peers = given;
    attr.peer_count = 2;
    lazy_try(4, &attr, know_one);
}

static void know_none(struct ranks *ranks, uint32_t rank)
{
    require_states(ranks, rank, SLUICE_STATE_PREPARED);
    ranks_meet(ranks);
}

TEST(an_empty_list_connects_no_rank)
{
    static const uint32_t given[] = {0};
    struct sluice_node_attr attr = lazy;
    attr.peers = given;
    lazy_try(4, &attr, know_none);
}

/* A deadline that passes ends the connection at both sides. Both reach each other anew. */
static void reach_anew(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    const uint32_t other = 1 - rank;
    struct sluice_endpoint endpoint;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 16);
    struct sluice_sge sge = memory_sge(&memory, 0, 8);
    require_ok(sluice_node_reach(node, &other, 1, LONG));
    ranks_meet(ranks);
    if (rank == 0) {
        require_error(sluice_multichannel_receive(all, 1, &sge, 1, SLUICE_MS(20), NULL), -ETIMEDOUT,
                      "");
    }
    ranks_meet(ranks);
    require_error(sluice_multichannel_peer_reset(all, other, &endpoint), -EINVAL,
                  "sluice_node_reach");
    require_ok(sluice_node_reach(node, &other, 1, LONG));
    ranks_meet(ranks);
    if (rank == 0) {
        require_ok(sluice_multichannel_receive(all, 1, &sge, 1, LONG, NULL));
    } else {
        require_ok(sluice_multichannel_send(all, 0, &sge, 1, LONG));
    }
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(a_failed_rank_is_reached_anew)
{
    lazy_try(2, &lazy, reach_anew);
}

TEST(arguments)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_channel_attr channel = {.size = sizeof(channel), .arrival_tags = 1};
    struct sluice_node_attr attr = lazy;
    const uint32_t rank = 1;
    attr.peers = &rank;
    attr.peer_count = 1;
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "peers sluice_node_open");
    attr.peers = NULL;
    attr.peer_count = 0;
    attr.connect = 2;
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "sluice_node_attr.connect 2 0..1");
    attr.connect = SLUICE_NODE_CONNECT_LAZY;
    attr.peer_count = 1;
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL,
                 "peer_count is 1, and peers is NULL");
    attr.connect = SLUICE_NODE_CONNECT_ALL;
    attr.peers = &rank;
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "peers lazy");
    attr.peer_count = 0;
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "peers lazy");
    attr = lazy;
    attr.channel = &channel;
    const struct sluice_exchange_attr alone = {.size = sizeof(alone), .ranks = 1};
    struct sluice_exchange *exchange = made(sluice_exchange_open(&alone, LONG));
    require_null(sluice_node_open(pd, exchange, &attr, LONG), EINVAL, "arrival_tags");
    channel.arrival_tags = 0;
    channel.queue_pairs = 2;
    require_null(sluice_node_open(pd, exchange, &attr, LONG), EINVAL, "queue_pairs");
    attr = lazy;
    attr.peers = &rank;
    attr.peer_count = 1;
    require_null(sluice_node_open(pd, exchange, &attr, LONG), EINVAL,
                 "sluice_node_attr.peers[0] is 1: there are ranks 0..0");
    attr = lazy;
    attr.barrier = 99;
    require_null(sluice_node_open(pd, exchange, &attr, LONG), EINVAL, "sluice_node_attr.barrier");
    struct sluice_node *node = made(sluice_node_open(pd, exchange, &lazy, LONG));
    require_error(sluice_node_reach(NULL, NULL, 0, LONG), -EINVAL, "not a node");
    require_error(sluice_node_reach(node, &rank, 1, LONG), -EINVAL, "ranks[0] 1 0..0");
    require_error(sluice_node_reach(node, NULL, 2, LONG), -EINVAL, "2 ranks NULL");
    require_error(sluice_node_reach(node, NULL, 0, -1), -EINVAL, "deadline -1");
    require_error(sluice_node_reach(node, NULL, 0, 0), -ETIMEDOUT, "deadline 0");
    require_ok(sluice_node_shutdown(node, LONG));
    require_error(sluice_node_reach(node, NULL, 0, LONG), -ENOTCONN, "shut down");
    sluice_node_close(node);
    sluice_exchange_close(exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

/* The part of a process in a test of several. */
struct process {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_node *node;
    struct memory memory;
};

static void process_open_with(struct process *process, struct rank *rank,
                              const struct sluice_node_attr *attr)
{
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    process->context = open_context();
    process->pd = made(sluice_pd_alloc(process->context));
    process->node = sluice_node_open(process->pd, exchange, attr, LONG);
    require(process->node, "rank %u: %s", rank->index, sluice_last_error());
    sluice_exchange_close(exchange);
    memory_open(&process->memory, process->pd, 64);
}

static void process_open(struct process *process, struct rank *rank)
{
    process_open_with(process, rank, &lazy);
}

static void process_close(struct process *process)
{
    sluice_node_close(process->node);
    memory_close(&process->memory);
    sluice_pd_free(process->pd);
    sluice_context_close(process->context);
}

static void work_in_process(struct rank *rank)
{
    struct process process;
    process_open(&process, rank);
    node_works(process.node, process.pd);
    require_ok(sluice_node_shutdown(process.node, LONG));
    process_close(&process);
}

TEST(processes_connect_at_first_use, .group = "processes", .unless = device_is_pretend)
{
    group_run(2, work_in_process, NULL, 40);
    group_run(5, work_in_process, NULL, 40);
}

/*
 * A rank that is gone is gone for each call, also for those after the one that noticed it. A call
 * for a connected rank succeeds until its end has been heard of.
 */
static void reach_lost_rank(struct sluice_node *node)
{
    static const uint32_t lost = 1;
    int64_t start = fair_now();
    while (sluice_node_reach(node, &lost, 1, LONG) == 0) {
        require(fair_now() - start < LONG, "rank 1 is connected%s", "");
    }
    for (int i = 0; i < 2; i++) {
        require_error(sluice_node_reach(node, &lost, 1, LONG), -ECONNRESET, "rank 1");
        require(!strstr(sluice_last_error(), "peer 1"), "%s", sluice_last_error());
    }
}

/* Ends rank 1 when all have come. The others go on when it is dead. */
static void kill_rank_1(struct rank *rank)
{
    rank_barrier(rank);
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    if (rank->index == 0) {
        rank_kill(rank, 1);
    }
    rank_barrier(rank);
}

/* Rank 1 dies before it was ever used: those that use it learn that at once, and others work. */
static void lose_unused_rank(struct rank *rank)
{
    static const uint32_t others[] = {0, 2};
    struct process process;
    process_open(&process, rank);
    kill_rank_1(rank);
    struct sluice_sge sge = memory_sge(&process.memory, 0, 8);
    int64_t start = fair_now();
    require(sluice_multichannel_send(sluice_node_multichannel(process.node), 1, &sge, 1, LONG) ==
                -ECONNRESET,
            "%s", sluice_last_error());
    require(strstr(sluice_last_error(), "could not be reached") != NULL, "%s", sluice_last_error());
    reach_lost_rank(process.node);
    require(fair_now() - start < SLUICE_S(10), "%lld ms",
            (long long)(fair_now() - start) / 1000000);
    node_meets(process.node, others, 2);
    /* A barrier with the rank that is gone fails as well, long before its deadline. */
    start = fair_now();
    require(sluice_node_barrier(process.node, NULL, 0, SLUICE_BARRIER_TREE, LONG) < 0, "a barrier");
    require(fair_now() - start < SLUICE_S(10), "%lld ms",
            (long long)(fair_now() - start) / 1000000);
    rank_barrier(rank);
    process_close(&process);
}

TEST(a_rank_that_is_gone_fails_alone, .group = "processes", .unless = device_is_pretend)
{
    group_run(3, lose_unused_rank, NULL, 40);
}

/* Rank 1 dies when all were connected. */
static void lose_connected_rank(struct rank *rank)
{
    struct process process;
    process_open_with(&process, rank, NULL);
    kill_rank_1(rank);
    reach_lost_rank(process.node);
    rank_barrier(rank);
    process_close(&process);
}

TEST(a_rank_that_was_connected_is_gone, .group = "processes", .unless = device_is_pretend)
{
    group_run(3, lose_connected_rank, NULL, 40);
}

/* One rank cannot open its node: all learn why. */
static void open_in_vain(struct rank *rank)
{
    struct sluice_channel_attr channel = {.size = sizeof(channel),
                                          .max_sge = rank->index == 1 ? 33 : 0};
    struct sluice_node_attr attr = lazy;
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    attr.channel = &channel;
    require_null(sluice_node_open(pd, exchange, &attr, LONG), rank->index == 1 ? EINVAL : ECANCELED,
                 rank->index == 1 ? "max_sge" : "rank 1 could not open its node max_sge");
    const uint32_t peer = rank->index == 1 ? 3 : 0;
    attr = lazy;
    attr.peers = &peer;
    attr.peer_count = 1;
    require_null(sluice_node_open(pd, exchange, &attr, LONG), rank->index == 1 ? EINVAL : ECANCELED,
                 rank->index == 1 ? "sluice_node_attr.peers[0] 3"
                                  : "rank 1 could not open its node sluice_node_attr.peers[0]");
    attr = lazy;
    attr.barrier = rank->index == 1 ? 99 : 0;
    require_null(sluice_node_open(pd, exchange, &attr, LONG), rank->index == 1 ? EINVAL : ECANCELED,
                 rank->index == 1 ? "sluice_node_attr.barrier"
                                  : "rank 1 could not open its node sluice_node_attr.barrier");
    attr = lazy;
    attr.barrier = rank->index == 2 ? SLUICE_BARRIER_TREE : SLUICE_BARRIER_CENTRAL;
    require_null(sluice_node_open(pd, exchange, &attr, LONG), EPROTO,
                 "sluice_node_attr.barrier rank 2 algorithm 1");
    sluice_exchange_close(exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(all_learn_why_a_rank_could_not_open, .group = "processes", .unless = device_is_pretend)
{
    group_run(3, open_in_vain, NULL, 40);
}

int main(void)
{
    return RUN_GROUPS("node_lazy", {"self", WIRE_SELF, 120}, {"tcp", WIRE_TCP, 120},
                      {"processes", WIRE_SHM, 240});
}
