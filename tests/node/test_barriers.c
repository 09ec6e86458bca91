/* SPDX-License-Identifier: MIT */
/*
 * Barriers that hold: no rank leaves before all have come, whatever the algorithm, the group and
 * the order, and data written before are visible afterwards.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

static const uint32_t algorithms[] = {SLUICE_BARRIER_DEFAULT, SLUICE_BARRIER_TREE,
                                      SLUICE_BARRIER_CENTRAL, SLUICE_BARRIER_DISSEMINATION};
static const uint32_t sizes[] = {1, 2, 3, 5, 8};

/*
 * Returns whether the processor time of a wait can be judged: polling the queue of an emulated
 * device takes many times as long, and so does everything under a sanitizer.
 */
static bool is_measured(void)
{
    return device_is_soft() && !SANITIZED;
}

static uint32_t rounds(void)
{
    if (!short_run() && !SANITIZED) {
        return 1000;
    }
    return device_is_soft() ? 100 : 20;
}

/* The last barrier that each rank has come to. */
static atomic_uint_fast32_t arrived[RANKS_MAX];

/* Comes to barrier number turn of the group, after which all of it have. */
static void pass(struct ranks *ranks, uint32_t rank, const uint32_t *group, uint32_t count,
                 uint32_t algorithm, uint32_t turn)
{
    atomic_store_explicit(&arrived[rank], turn, memory_order_relaxed);
    int result = sluice_node_barrier(ranks->nodes[rank], group, count, algorithm, DEADLINE);
    require(result == 0, "rank %u, barrier %u: %s", rank, turn, sluice_last_error());
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = group ? group[i] : i;
        require(atomic_load_explicit(&arrived[other], memory_order_relaxed) >= turn,
                "rank %u left barrier %u before rank %u had come", rank, turn, other);
    }
}

static void pass_all(struct ranks *ranks, uint32_t rank)
{
    const uint32_t *algorithm = ranks->argument;
    for (uint32_t turn = 1; turn <= rounds(); turn++) {
        pass(ranks, rank, NULL, ranks->count, *algorithm, turn);
    }
}

TEST(all_ranks)
{
    struct ranks ranks;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        ranks_open(&ranks, sizes[i], NULL);
        for (size_t k = 1; k < COUNT(algorithms); k++) {
            memset(arrived, 0, sizeof(arrived));
            ranks.argument = &algorithms[k];
            ranks_run(&ranks, pass_all);
        }
        ranks_close(&ranks);
    }
}

/* One rank names no algorithm, the others that which the number of ranks selects. */
static void choose(struct ranks *ranks, uint32_t rank)
{
    uint32_t algorithm = ranks->count <= 4 ? SLUICE_BARRIER_DISSEMINATION : SLUICE_BARRIER_CENTRAL;
    uint32_t asked = rank == 0 ? SLUICE_BARRIER_DEFAULT : algorithm;
    for (uint32_t turn = 1; turn <= 10; turn++) {
        pass(ranks, rank, NULL, ranks->count, asked, turn);
    }
}

TEST(no_algorithm_asked_for)
{
    static const uint32_t counts[] = {2, 4, 5, 8};
    for (size_t i = 0; i < COUNT(counts); i++) {
        memset(arrived, 0, sizeof(arrived));
        ranks_try(counts[i], NULL, choose);
    }
}

/* More barriers than the counters between ranks can count. */
static void pass_often(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t turn = 1; turn <= 70000; turn++) {
        pass(ranks, rank, NULL, ranks->count, SLUICE_BARRIER_DISSEMINATION, turn);
    }
}

TEST(counts_that_wrap, .group = "wrap")
{
    if (short_run() || SANITIZED) {
        return;
    }
    memset(arrived, 0, sizeof(arrived));
    ranks_try(2, NULL, pass_often);
}

/* Without inline writes and with room for only one of them; and each way to wait. */
TEST(attributes)
{
    static const uint32_t modes[] = {SLUICE_WAIT_ADAPTIVE, SLUICE_WAIT_EVENT, SLUICE_WAIT_SPIN};
    struct sluice_channel_attr channel = {
        .size = sizeof(channel), .max_inline = 1, .send_depth = 1, .receive_depth = 1};
    struct ranks ranks;
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        const struct sluice_node_attr attr = {
            .size = sizeof(attr), .barrier = algorithm, .channel = &channel};
        /* Spinning ranks must not outnumber the processors. */
        bool spins = modes[algorithm - 1] == SLUICE_WAIT_SPIN;
        channel.wait_mode = modes[algorithm - 1];
        ranks_open(&ranks, spins ? 2 : 4, &attr);
        memset(arrived, 0, sizeof(arrived));
        ranks.argument = &algorithms[0];
        ranks_run(&ranks, pass_all);
        ranks_close(&ranks);
    }
}

/* Random groups that overlap, the same for all ranks, each with an algorithm of its own. */
#define GROUPS 300
struct plan {
    uint32_t counts[GROUPS];
    uint32_t algorithms[GROUPS];
    uint32_t ranks[GROUPS][RANKS_MAX];
};

static void make_plan(struct plan *plan, unsigned seed)
{
    uint32_t state = seed;
    for (uint32_t i = 0; i < GROUPS; i++) {
        uint32_t members = 0;
        while (members == 0) {
            state = state * 1664525 + 1013904223;
            members = state >> 24;
        }
        plan->algorithms[i] = state >> 16 & 3;
        for (uint32_t rank = 0; rank < RANKS_MAX; rank++) {
            if (members >> rank & 1) {
                plan->ranks[i][plan->counts[i]++] = rank;
            }
        }
    }
}

static void follow_plan(struct ranks *ranks, uint32_t rank)
{
    const struct plan *plan = ranks->argument;
    for (uint32_t i = 0; i < GROUPS; i++) {
        for (uint32_t k = 0; k < plan->counts[i]; k++) {
            if (plan->ranks[i][k] == rank) {
                pass(ranks, rank, plan->ranks[i], plan->counts[i], plan->algorithms[i], i + 1);
            }
        }
    }
}

TEST(groups_that_overlap)
{
    static struct plan plan;
    struct ranks ranks;
    memset(&plan, 0, sizeof(plan));
    memset(arrived, 0, sizeof(arrived));
    make_plan(&plan, 20261121);
    ranks_open(&ranks, RANKS_MAX, NULL);
    ranks.argument = &plan;
    ranks_run(&ranks, follow_plan);
    ranks_close(&ranks);
}

#define LATE SLUICE_MS(300)
static void come_late(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t turn = 1; turn <= 3; turn++) {
        if (rank == 2) {
            let_pass(LATE);
        }
        pass(ranks, rank, NULL, ranks->count, turn, turn);
    }
}

/* The others wait for the late rank, and sleep meanwhile. */
TEST(a_late_rank)
{
    struct ranks ranks;
    memset(arrived, 0, sizeof(arrived));
    ranks_open(&ranks, 4, NULL);
    int64_t start = clock_now();
    int64_t used = cpu_used();
    ranks_run(&ranks, come_late);
    used = cpu_used() - used;
    require(clock_now() - start >= 3 * LATE, "%lld ms", (long long)(clock_now() - start) / 1000000);
    require(used < LATE || !is_measured(), "%lld ms of CPU time in 900", (long long)used / 1000000);
    ranks_close(&ranks);
}

/* A rank without time enters no barrier, and repeats the call. */
static void come_without_time(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t turn = 1; turn <= 3; turn++) {
        if (rank == turn) {
            require_error(sluice_node_barrier(ranks->nodes[rank], NULL, 0, turn, 0), -ETIMEDOUT,
                          "deadline 0 nothing was sent");
            require_error(sluice_node_shutdown(ranks->nodes[rank], 0), -ETIMEDOUT,
                          "deadline 0 nothing was sent");
        }
        pass(ranks, rank, NULL, ranks->count, turn, turn);
    }
}

TEST(deadlines_of_zero)
{
    memset(arrived, 0, sizeof(arrived));
    ranks_try(4, NULL, come_without_time);
}

/* Every rank writes to every other one, and finds what all wrote. */
#define WRITTEN 256
struct room {
    struct memory in[RANKS_MAX]; /* of each rank: block i is of rank i */
    struct memory out[RANKS_MAX];
    uint32_t algorithm;
};

static void write_to_all(struct ranks *ranks, uint32_t rank, uint32_t turn)
{
    const struct room *room = ranks->argument;
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    pattern_fill(room->out[rank].bytes, WRITTEN, pattern_key(rank, 0, turn));
    struct sluice_sge sge = memory_sge(&room->out[rank], 0, WRITTEN);
    for (uint32_t i = 0; i < ranks->count; i++) {
        struct sluice_remote_mr remote = memory_remote(&room->in[i], rank * WRITTEN, WRITTEN);
        require_ok(sluice_multichannel_write(all, i, &sge, 1, &remote, DEADLINE));
    }
}

static void write_and_look(struct ranks *ranks, uint32_t rank)
{
    const struct room *room = ranks->argument;
    for (uint32_t turn = 1; turn <= 50; turn++) {
        write_to_all(ranks, rank, turn);
        require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, room->algorithm, DEADLINE));
        for (uint32_t i = 0; i < ranks->count; i++) {
            pattern_check(room->in[rank].bytes + i * WRITTEN, WRITTEN, pattern_key(i, 0, turn));
        }
        require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, room->algorithm, DEADLINE));
    }
}

TEST(earlier_writes_are_visible)
{
    struct room room;
    struct ranks ranks;
    ranks_open(&ranks, 5, NULL);
    ranks.argument = &room;
    for (uint32_t i = 0; i < ranks.count; i++) {
        memory_open(&room.in[i], ranks.pds[i], RANKS_MAX * WRITTEN);
        memory_open(&room.out[i], ranks.pds[i], WRITTEN);
    }
    for (room.algorithm = 1; room.algorithm <= 3; room.algorithm++) {
        ranks_run(&ranks, write_and_look);
    }
    for (uint32_t i = 0; i < ranks.count; i++) {
        memory_close(&room.in[i]);
        memory_close(&room.out[i]);
    }
    ranks_close(&ranks);
}

/* Two unread results, of a message around the ring, are unchanged after the barriers. */
static void keep_results(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct sluice_completion completions[3];
    struct memory memory;
    uint32_t next = (rank + 1) % ranks->count;
    uint32_t last = (rank + ranks->count - 1) % ranks->count;
    memory_open(&memory, ranks->pds[rank], 16);
    struct sluice_sge in = memory_sge(&memory, 0, 8);
    struct sluice_sge out = memory_sge(&memory, 8, 8);
    memset(memory.bytes, (int)rank, 16);
    struct sluice_request requests[2] = {request_of(SLUICE_OP_RECEIVE, last, &in),
                                         request_of(SLUICE_OP_SEND, next, &out)};
    requests[0].user_data = 70;
    requests[1].user_data = 71;
    require_result(sluice_multichannel_post(all, &requests[0], 1, DEADLINE, NULL), 1);
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, algorithm, DEADLINE));
    }
    require_result(sluice_multichannel_post(all, &requests[1], 1, DEADLINE, NULL), 1);
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, algorithm, DEADLINE));
    }
    uint32_t seen = 0;
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_multichannel_next(all, DEADLINE, &completions[i]));
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].bytes == 8, "%llu bytes", (unsigned long long)completions[i].bytes);
        seen += (uint32_t)completions[i].user_data;
    }
    require(seen == 141, "%u", seen);
    require_result(sluice_multichannel_next(all, 0, &completions[2]), -ENOENT);
    value_check(memory.bytes, 8, (uint8_t)last);
    memory_close(&memory);
}

#define FULL_DEPTH 4
#define FULL_RANKS 3

/* Leaves as many unread results as the queues are deep before the barriers. */
static void keep_all_results(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct sluice_counters counters = {.size = sizeof(counters)};
    struct sluice_completion completion;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 16);
    struct sluice_sge from = memory_sge(&memory, 0, 8);
    struct sluice_remote_mr to = memory_remote(&memory, 8, 8);
    for (uint32_t i = 0; i < FULL_DEPTH * FULL_RANKS; i++) {
        int result = -EAGAIN;
        while (result == -EAGAIN) {
            result = sluice_multichannel_post_write(all, rank, &from, 1, &to, DEADLINE, NULL);
            require_ok(sluice_multichannel_poll(all, &completion, 0));
        }
        require_ok(result);
    }
    for (uint32_t turn = 0; turn < 30; turn++) {
        require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, turn % 4, DEADLINE));
    }
    for (uint32_t i = 0; i < FULL_DEPTH * FULL_RANKS; i++) {
        require_ok(sluice_multichannel_next(all, DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    require_result(sluice_multichannel_next(all, 0, &completion), -ENOENT);
    require_ok(sluice_multichannel_counters(all, &counters));
    require(counters.forgotten == 0, "%llu", (unsigned long long)counters.forgotten);
    memory_close(&memory);
}

TEST(all_results_are_kept)
{
    const struct sluice_channel_attr channel = {
        .size = sizeof(channel), .send_depth = FULL_DEPTH, .receive_depth = FULL_DEPTH};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    ranks_try(FULL_RANKS, &attr, keep_all_results);
}

TEST(results_are_kept)
{
    ranks_try(3, NULL, keep_results);
}

/* Many more ranks than processors, in processes. */
#define CROWD 64
static void join_crowd(struct rank *rank)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    const struct sluice_channel_attr channel = {
        .size = sizeof(channel), .send_depth = 8, .receive_depth = 8};
    const struct sluice_node_attr attr = {
        .size = sizeof(attr), .barrier = SLUICE_BARRIER_DISSEMINATION, .channel = &channel};
    uint32_t turns = short_run() || SANITIZED ? 20 : 1000;
    struct rusage usage;
    struct sluice_node *node = made(sluice_node_open(pd, exchange, &attr, SLUICE_S(100)));
    for (uint32_t i = 0; i < turns; i++) {
        int result = sluice_node_barrier(node, NULL, 0, 0, SLUICE_S(60));
        require(result == 0, "barrier %u: %s", i, sluice_last_error());
    }
    rank_barrier(rank);
    /*
     * All ranks but one wait for a second, and sleep: a spinning one would use much of its
     * processor.
     */
    getrusage(RUSAGE_SELF, &usage);
    int64_t before = cpu_used();
    if (rank->index == 0) {
        let_pass(SLUICE_S(1));
    }
    require_ok(sluice_node_barrier(node, NULL, 0, 0, SLUICE_S(60)));
    int64_t used = cpu_used() - before;
    require(used < SLUICE_MS(150) || !is_measured(),
            "%lld ms of CPU time in one second, %ld.%03ld before", (long long)used / 1000000,
            (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec / 1000);
    require_ok(sluice_node_shutdown(node, SLUICE_S(60)));
    sluice_node_close(node);
    sluice_exchange_close(exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(a_crowd, .group = "processes", .unless = device_is_pretend)
{
    bool small = SANITIZED || (short_run() && !device_is_soft());
    group_run(small ? 8 : CROWD, join_crowd, NULL, 300);
}

/* By each algorithm once. */
static void meet(struct ranks *ranks, uint32_t rank)
{
    for (size_t i = 0; i < COUNT(algorithms); i++)
        require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, algorithms[i], DEADLINE));
}

/*
 * Ranks meet during a scope, with its requests in flight and with unread results, of which none is
 * lost. Only its node must not end.
 */
static void meet_in_scope(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    uint32_t next = (rank + 1) % ranks->count, last = (rank + ranks->count - 1) % ranks->count;
    struct sluice_handle handles[2];
    struct sluice_completion completion;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 128);
    struct sluice_sge in = memory_sge(&memory, 0, 64), out = memory_sge(&memory, 64, 64);
    for (uint32_t turn = 0; turn < 10; turn++) {
        struct sluice_scope_report report = {.size = sizeof(report)};
        uint32_t own = rank, values[RANKS_MAX];
        struct sluice_scope *scope = made(sluice_multichannel_scope_begin(all, DEADLINE));
        const struct sluice_request requests[2] = {
            {.opcode = SLUICE_OP_RECEIVE, .peer = last, .sges = &in, .sge_count = 1},
            {.opcode = SLUICE_OP_SEND, .peer = next, .sges = &out, .sge_count = 1}};
        pattern_fill(memory.bytes + 64, 64, pattern_key(rank, next, turn));
        require_result(sluice_scope_post(scope, requests, 2, handles), 2);
        meet(ranks, rank);
        require_ok(sluice_node_allgather(node, &own, values, sizeof(own), DEADLINE));
        require(values[last] == last, "%u", values[last]);
        require_error(sluice_node_shutdown(node, DEADLINE), -EBUSY, "scope");
        require_ok(sluice_scope_wait(scope, &handles[turn % 2], DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
        require_ok(sluice_scope_end(scope, &report));
        require(report.posted == 2 && report.failed == 0 && report.unseen == 1, "%u, %u, %u",
                report.posted, report.failed, report.unseen);
        pattern_check(memory.bytes, 64, pattern_key(last, rank, turn));
        meet(ranks, rank);
    }
    memory_close(&memory);
}

/* A barrier that fails there leaves the scope unchanged, and has a deadline of its own. */
static void miss_in_scope(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_scope *scope =
        made(sluice_multichannel_scope_begin(sluice_node_multichannel(node), DEADLINE));
    if (rank == 0) {
        /* Long enough for rank 1 to come, even if the machine stalls. */
        require_error(sluice_node_barrier(node, NULL, 0, 0, SLUICE_S(5)), -ETIMEDOUT,
                      "rank 2 not come");
    } else if (rank == 1) {
        require_error(sluice_node_barrier(node, NULL, 0, 0, DEADLINE), -ECANCELED, "rank 0");
    }
    ranks_reset(ranks, rank);
    meet(ranks, rank);
    require_ok(sluice_scope_end(scope, NULL));
}

TEST(an_open_scope)
{
    const struct sluice_channel_attr channel = {
        .size = sizeof(channel), .send_depth = 2, .receive_depth = 2};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    struct ranks ranks;
    for (int tight = 0; tight < 2; tight++) {
        ranks_open(&ranks, 3, tight ? &attr : NULL);
        ranks_run(&ranks, meet_in_scope);
        ranks_run(&ranks, miss_in_scope);
        ranks_close(&ranks);
    }
}

int main(void)
{
    return RUN_GROUPS("barriers", {"self", WIRE_SELF, 240}, {"tcp", WIRE_TCP, 240},
                      {"wrap", WIRE_SELF, 240}, {"processes", WIRE_SHM, 320});
}
