/* SPDX-License-Identifier: MIT */
/*
 * Tests of allgathers and of alltoalls: values of any length, in place, and with ranks that run
 * ahead; a failure is one for all ranks, and a reset cures it.
 */
#include "values.h"

#include <stdlib.h>

static const uint32_t sizes[] = {1, 2, 3, 8};
static const size_t lengths[] = {0, 1, 4, 7, 8, 32, 239, 240, 241, 480, 481, 5000};

static int exchange_values(struct sluice_node *node, const void *own, void *all, size_t length,
                           int64_t deadline)
{
    return call == ALLGATHER ? sluice_node_allgather(node, own, all, length, deadline)
                             : sluice_node_alltoall(node, own, all, length, deadline);
}

/* An allgather has one value for all ranks, and an alltoall one for each. */
static uint64_t key_of(uint32_t from, uint32_t to, uint32_t turn)
{
    return call == ALLGATHER ? pattern_key(from, turn, 0) : pattern_key(from, to, turn);
}

void give(struct ranks *ranks, uint32_t rank, size_t length, uint32_t turn, bool in_place)
{
    uint32_t values = call == ALLGATHER ? 1 : ranks->count;
    uint8_t *all = malloc(ranks->count * length + 1);
    uint8_t *own = malloc(values * length + 1);
    require(all && own, "%zu bytes", length);
    uint8_t *from = !in_place ? own : call == ALLGATHER ? all + rank * length : all;
    memset(all, 0xee, ranks->count * length + 1);
    for (uint32_t i = 0; i < values; i++) {
        pattern_fill(from + i * length, length, key_of(rank, i, turn));
    }
    int result = exchange_values(ranks->nodes[rank], from, all, length, DEADLINE);
    require(result == 0, "rank %u, turn %u: %s", rank, turn, sluice_last_error());
    for (uint32_t i = 0; i < ranks->count; i++) {
        pattern_check(all + i * length, length, key_of(i, rank, turn));
    }
    value_check(all + ranks->count * length, 1, 0xee);
    free(own);
    free(all);
}

static void give_all_lengths(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t turn = 0; turn < (short_run() ? 2U : 5U); turn++) {
        for (size_t i = 0; i < COUNT(lengths); i++) {
            give(ranks, rank, lengths[i], turn, (turn + i) % 2);
        }
    }
    give(ranks, rank, call == ALLGATHER ? SLUICE_NODE_ALLGATHER_BYTES : SLUICE_NODE_ALLTOALL_BYTES,
         0, false);
}

TEST(lengths_of_values)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        ranks_try(sizes[i], NULL, give_all_lengths);
    }
}

/* Without a pause, so that some ranks are a call ahead of others. */
static void give_often(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t turn = 0; turn < (device_is_soft() && !short_run() ? 300U : 30U); turn++) {
        give(ranks, rank, call == ALLGATHER ? 16 : 8, turn, false);
    }
}

TEST(ranks_that_run_ahead)
{
    for (size_t i = 1; i < COUNT(sizes); i++) {
        ranks_try(sizes[i], NULL, give_often);
    }
}

/* A rank without time does not begin, and repeats the call. */
static void give_without_time(struct ranks *ranks, uint32_t rank)
{
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    uint8_t own[RANKS_MAX] = {7};
    uint8_t all[RANKS_MAX];
    for (uint32_t turn = 0; turn < ranks->count; turn++) {
        if (rank == turn || call == ALLTOALL) {
            require_error(exchange_values(ranks->nodes[rank], own, all, 1, 0), -ETIMEDOUT,
                          "deadline 0 nothing was sent");
            require_error(sluice_node_share_mr(ranks->nodes[rank], NULL, remotes, 0), -ETIMEDOUT,
                          "deadline 0 nothing was sent");
        }
        give(ranks, rank, 16, turn, false);
    }
}

/* A rank alone needs no time. */
static void give_alone(struct ranks *ranks, uint32_t rank)
{
    uint8_t own = 7;
    uint8_t all = 0;
    require_ok(exchange_values(ranks->nodes[rank], &own, &all, 1, 0));
    require(all == 7, "%u", all);
}

TEST(deadlines_of_zero)
{
    ranks_try(3, NULL, give_without_time);
    ranks_try(1, NULL, give_alone);
}

/* Without inline writes and with room for only one request; and each way to wait. */
TEST(attributes)
{
    static const uint32_t modes[] = {SLUICE_WAIT_ADAPTIVE, SLUICE_WAIT_EVENT, SLUICE_WAIT_SPIN};
    struct sluice_channel_attr channel = {
        .size = sizeof(channel), .max_inline = 1, .send_depth = 1, .receive_depth = 1};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    struct ranks ranks;
    for (size_t i = 0; i < COUNT(modes); i++) {
        channel.wait_mode = modes[i];
        /* Spinning ranks must not outnumber the processors. */
        ranks_open(&ranks, modes[i] == SLUICE_WAIT_SPIN ? 2 : 4, &attr);
        ranks_run(&ranks, give_all_lengths);
        ranks_run(&ranks, give_often);
        ranks_close(&ranks);
    }
}

void still_works(struct ranks *ranks, uint32_t rank)
{
    give(ranks, rank, 300, 7, false);
    require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, DEADLINE));
}

/* Rank 2 makes the first call, all others the second: calls that do not match. */
enum act { NONE, GATHER_8, GATHER_16, TRADE_8, TRADE_16, SHARE, TREE, DISSEMINATE, CENTRAL, END };

static int act(struct sluice_node *node, enum act what)
{
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    uint8_t own[16 * RANKS_MAX] = {0}, all[16 * RANKS_MAX];
    switch (what) {
    case GATHER_8:
    case GATHER_16:
        return sluice_node_allgather(node, own, all, what == GATHER_8 ? 8 : 16, DEADLINE);
    case TRADE_8:
    case TRADE_16:
        return sluice_node_alltoall(node, own, all, what == TRADE_8 ? 8 : 16, DEADLINE);
    case SHARE:
        return sluice_node_share_mr(node, NULL, remotes, DEADLINE);
    case TREE:
        return sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, DEADLINE);
    case DISSEMINATE:
        return sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_DISSEMINATION, DEADLINE);
    case CENTRAL:
        return sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_CENTRAL, DEADLINE);
    default:
        return sluice_node_shutdown(node, DEADLINE);
    }
}

static void disagree(struct ranks *ranks, uint32_t rank)
{
    const enum act *acts = ranks->argument;
    int64_t start = fair_now();
    int result = act(ranks->nodes[rank], acts[rank != 2]);
    require(result == -EPROTO, "rank %u, %d and %d: %d, %s", rank, acts[0], acts[1], result,
            sluice_last_error());
    require(strstr(sluice_last_error(), "rank"), "%s", sluice_last_error());
    require(fair_now() - start < DEADLINE / 2, "rank %u", rank);
    ranks_reset(ranks, rank);
    give(ranks, rank, 100, 1, false);
    require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, DEADLINE));
}

/* All ranks get the same error about the program, whichever rank found it. */
TEST(ranks_that_disagree)
{
    static const enum act mixes[][11][2] = {
        [ALLGATHER] = {{GATHER_8, GATHER_16},
                       {GATHER_16, GATHER_8},
                       {SHARE, GATHER_8},
                       {GATHER_16, SHARE},
                       {TREE, GATHER_8},
                       {GATHER_8, TREE},
                       {SHARE, CENTRAL},
                       {CENTRAL, SHARE},
                       {DISSEMINATE, GATHER_8},
                       {END, GATHER_8},
                       {GATHER_8, END}},
        [ALLTOALL] = {{TRADE_8, TRADE_16},
                      {TRADE_8, GATHER_8},
                      {GATHER_8, TRADE_8},
                      {SHARE, TRADE_16},
                      {TRADE_8, SHARE},
                      {TREE, TRADE_8},
                      {TRADE_8, TREE},
                      {END, TRADE_8}},
    };
    struct ranks ranks;
    ranks_open(&ranks, 4, NULL);
    for (size_t i = 0; i < COUNT(mixes[call]) && mixes[call][i][0] != NONE; i++) {
        ranks.argument = mixes[call][i];
        ranks_run(&ranks, disagree);
    }
    ranks_close(&ranks);
}

/* The last rank does not come; the first rank that gives up notifies the others. */
static void miss_one(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    uint64_t own[RANKS_MAX] = {rank}, all[RANKS_MAX];
    for (int turn = 0; turn < 3; turn++) {
        if (rank == 0) {
            require_error(exchange_values(node, own, all, 8, SLUICE_MS(1500)), -ETIMEDOUT,
                          call == ALLGATHER ? "rank 3 did not come to the allgather of 4 ranks"
                                            : "rank 3 did not come to the alltoall of 4 ranks");
        } else if (rank < 3) {
            require_error(exchange_values(node, own, all, 8, 2 * DEADLINE), -ECANCELED,
                          "rank 0 gave up because of rank 3");
        }
        ranks_meet(ranks);
        if (rank == 3) {
            require_error(exchange_values(node, own, all, 8, 2 * DEADLINE), -ECANCELED, "gave up");
        }
        ranks_meet(ranks);
        require_error(exchange_values(node, own, all, 8, DEADLINE), -ENOTCONN, "reset");
        require_error(sluice_node_barrier(node, NULL, 0, 0, DEADLINE), -ENOTCONN, "reset");
        ranks_reset(ranks, rank);
        still_works(ranks, rank);
    }
}

TEST(a_rank_that_never_comes)
{
    ranks_try(4, NULL, miss_one);
}

/* A piece stands behind a message without a receive; its memory is used again later. */
static void give_in_vain(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    uint64_t own[2] = {rank}, values[2];
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    if (rank == 0) {
        require_ok(sluice_multichannel_post_send(all, 1, &sge, 1, SLUICE_FOREVER, NULL));
    }
    for (int turn = 0; turn < 3; turn++) {
        int result = exchange_values(node, own, values, 8, SLUICE_MS(100));
        /* Rank 0 has the value of rank 1, the first time. */
        require(result == -ETIMEDOUT || result == -ECANCELED ||
                    (rank == 0 && turn == 0 && result == 0),
                "%d: %s", result, sluice_last_error());
        ranks_reset(ranks, rank);
    }
    if (rank == 1) {
        require_ok(sluice_multichannel_receive(all, 0, &sge, 1, DEADLINE, NULL));
    }
    ranks_reset(ranks, rank);
    give_often(ranks, rank);
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(a_piece_in_vain)
{
    const struct sluice_channel_attr channel = {.size = sizeof(channel), .max_inline = 1};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    ranks_try(2, NULL, give_in_vain);
    ranks_try(2, &attr, give_in_vain);
}

/* Rank 1 is hostile. No word that it writes makes rank 0 hang, or access memory outside. */
TEST(garbage)
{
    static const struct {
        enum call call;
        int64_t generation; /* of the head, after ours */
        uint32_t round;
        uint64_t word;
        int error;
        const char *words;
    } wrong[] = {
        {ALLGATHER, 0, 3, 0, -EPROTO, "rank 1 piece"},
        {ALLGATHER, 0, 0x80000000, 0, -EPROTO, "rank 1 piece"},
        {ALLGATHER, 100000, 1, 0, -EPROTO, "rank 1 piece"},
        {ALLGATHER, 1, 1, 0, -ECANCELED, "rank 1 has reset"},
        {ALLGATHER, 0, 1, 0, -EPROTO, "rank 1 call"},
        {ALLGATHER, 0, 1, UINT64_MAX, -EPROTO, "rank 1 call"},
        {ALLGATHER, 0, 1, UINT64_C(1) << 56 | 0xffffffff, -EPROTO,
         "rank 1 gives 4294967295 bytes this rank 8"},
        {ALLGATHER, 0, 1, UINT64_C(1) << 56 | 9, -EPROTO, "rank 1 gives 9 bytes"},
        {ALLGATHER, 0, 1, UINT64_C(2) << 56 | 32, -EPROTO, "rank 1 is in sluice_node_share_mr()"},
        {ALLTOALL, 0, 1, UINT64_C(4) << 56 | 8, -EPROTO, "rank 1 call"},
        {ALLTOALL, 0, 1, UINT64_C(3) << 56 | 0xffffffff, -EPROTO,
         "rank 1 gives 4294967295 bytes alltoall this rank 8"},
        {ALLTOALL, 0, 1, UINT64_C(3) << 56 | UINT64_C(1) << 32 | 8, -EPROTO,
         "rank 1 gives 8 bytes"},
        {ALLTOALL, 0, 1, UINT64_C(1) << 56 | 8, -EPROTO,
         "rank 1 is in sluice_node_allgather() sluice_node_alltoall()"},
    };
    static const uint64_t nothing[2];
    struct ranks ranks;
    ranks_open(&ranks, 2, NULL);
    int64_t generation = 1;
    uint64_t own[2] = {1}, all[2];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (wrong[i].call != call) {
            continue;
        }
        const uint64_t words[2] = {
            (uint64_t)(generation + wrong[i].generation) << 32 | wrong[i].round, wrong[i].word};
        ranks_forge(&ranks, SLOTS_AT + SLOT_BYTES, words, 2);
        require_error(exchange_values(ranks.nodes[0], own, all, 8, DEADLINE), wrong[i].error,
                      wrong[i].words);
        ranks_forge(&ranks, SLOTS_AT + SLOT_BYTES, nothing, 2);
        require_ok(sluice_node_barrier_reset(ranks.nodes[0]));
        require_ok(sluice_node_barrier_reset(ranks.nodes[1]));
        ranks_run(&ranks, still_works);
        require_ok(sluice_node_barrier_reset(ranks.nodes[0]));
        require_ok(sluice_node_barrier_reset(ranks.nodes[1]));
        generation += 2;
    }
    ranks_close(&ranks);
}

/* The last rank is killed, before the call or in it. */
static void survive(struct rank *rank, struct sluice_node *node, bool inside)
{
    uint64_t own[4] = {rank->index}, all[4];
    if (rank->index == 0) {
        let_pass(inside ? SLUICE_MS(200) : 0);
        rank_kill(rank, 3);
    }
    int result = exchange_values(node, own, all, sizeof(own[0]), 2 * DEADLINE);
    require(result == -ECONNRESET || result == -ECANCELED || (result == 0 && inside), "%d: %s",
            result, sluice_last_error());
    if (result == -ECONNRESET) {
        require(strstr(sluice_last_error(), "rank 3 is lost"), "%s", sluice_last_error());
    }
}

static void live_or_die(struct rank *rank)
{
    const bool *inside = rank->argument;
    const struct sluice_channel_attr channel = {
        .size = sizeof(channel), .ack_timeout = 16, .keepalive = SLUICE_S(1)};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    struct sluice_node *node = made(sluice_node_open(pd, exchange, &attr, DEADLINE));
    uint64_t own[4], all[4];
    for (uint64_t i = 0; i < 4; i++) {
        own[i] = rank->index * 10 + i;
    }
    for (int turn = 0; turn < 20; turn++) {
        require_ok(exchange_values(node, own, all, sizeof(own[0]), DEADLINE));
        for (uint64_t i = 0; i < rank->size; i++) {
            require(all[i] == i * 10 + (call == ALLGATHER ? 0 : rank->index), "%llu of rank %u",
                    (unsigned long long)all[i], (unsigned)i);
        }
    }
    rank_barrier(rank);
    if (rank->index < 3) {
        survive(rank, node, *inside);
    } else {
        if (*inside) {
            (void)!sluice_node_barrier(node, &rank->index, 1, 0, DEADLINE);
        }
        rank_await_death(rank);
    }
    sluice_node_close(node);
    sluice_exchange_close(exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(a_rank_that_is_killed, .group = "processes", .unless = device_is_pretend)
{
    for (int inside = 0; inside < 2; inside++) {
        bool argument = inside != 0;
        group_run(4, live_or_die, &argument, 60);
    }
}

int run_values(const char *name)
{
    const struct tests cases[] = {
        {"self", WIRE_SELF, 120},
        {"tcp", WIRE_TCP, 120},
        {"processes", WIRE_SHM, 120},
    };
    return run_groups(name, cases, COUNT(cases));
}
