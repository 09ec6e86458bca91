/* SPDX-License-Identifier: MIT */
/*
 * Values from each rank of a node to each other one: of any length, in place, with ranks that run
 * ahead, beside allgathers, barriers and messages; sizes that are exchanged before the messages;
 * and failures, which are those of an allgather, and are cured by a reset.
 */
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

static const uint32_t sizes[] = {1, 2, 3, 8};
static const size_t lengths[] = {0, 1, 4, 8, 239, 240, 241, 480, 481, 5000};

/* Gives each rank a value of its own, and checks those that came, and the byte behind them. */
static void trade(struct ranks *ranks, uint32_t rank, size_t length, uint32_t turn, bool in_place)
{
    uint8_t *all = malloc(ranks->count * length + 1);
    uint8_t *own = in_place ? all : malloc(ranks->count * length + 1);

    require(all && own, "%zu bytes", length);
    memset(all, 0xee, ranks->count * length + 1);
    for (uint32_t i = 0; i < ranks->count; i++)
        pattern_fill(own + i * length, length, pattern_key(rank, i, turn));
    int result = sluice_node_alltoall(ranks->nodes[rank], own, all, length, DEADLINE);
    require(result == 0, "rank %u, turn %u: %s", rank, turn, sluice_last_error());
    for (uint32_t i = 0; i < ranks->count; i++)
        pattern_check(all + i * length, length, pattern_key(i, rank, turn));
    value_check(all + ranks->count * length, 1, 0xee);
    if (!in_place)
        free(own);
    free(all);
}

static void trade_all_lengths(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t turn = 0; turn < (short_run() ? 2U : 4U); turn++)
        for (size_t i = 0; i < COUNT(lengths); i++)
            trade(ranks, rank, lengths[i], turn, (turn + i) % 2 != 0);
    trade(ranks, rank, SLUICE_NODE_ALLTOALL_BYTES, 0, false);
}

TEST(lengths_of_values)
{
    for (size_t i = 0; i < COUNT(sizes); i++)
        ranks_try(sizes[i], NULL, trade_all_lengths);
}

/* Without a pause, so that some ranks are a call ahead of others. */
static void trade_often(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t turn = 0; turn < (device_is_soft() && !short_run() ? 300U : 30U); turn++)
        trade(ranks, rank, 8, turn, false);
}

TEST(ranks_that_run_ahead)
{
    for (size_t i = 1; i < COUNT(sizes); i++)
        ranks_try(sizes[i], NULL, trade_often);
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
        ranks_run(&ranks, trade_all_lengths);
        ranks_run(&ranks, trade_often);
        ranks_close(&ranks);
    }
}

/* A rank without time does not begin, and repeats the call; a rank alone needs no time. */
static void trade_without_time(struct ranks *ranks, uint32_t rank)
{
    uint8_t own[RANKS_MAX] = {7}, all[RANKS_MAX] = {0};
    int result = sluice_node_alltoall(ranks->nodes[rank], own, all, 1, 0);

    if (ranks->count == 1) {
        require_ok(result);
        require(all[0] == 7, "%u", all[0]);
        return;
    }
    require_error(result, -ETIMEDOUT, "deadline 0 nothing was sent");
    trade(ranks, rank, 16, 0, false);
}

TEST(deadlines_of_zero)
{
    ranks_try(1, NULL, trade_without_time);
    ranks_try(3, NULL, trade_without_time);
}

/* The three kinds of calls use the same slots, and barriers go between them. */
static void mix(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    uint64_t own = rank, all[RANKS_MAX];

    for (uint32_t turn = 0; turn < 30; turn++) {
        trade(ranks, rank, turn * 16, turn, turn % 2 != 0);
        require_ok(sluice_node_allgather(node, &own, all, sizeof own, DEADLINE));
        for (uint32_t i = 0; i < ranks->count; i++)
            require(all[i] == i, "%llu of rank %u", (unsigned long long)all[i], i);
        if (turn % 3 == 0)
            require_ok(sluice_node_barrier(node, NULL, 0, turn % 4, DEADLINE));
        trade(ranks, rank, 8, turn, false);
        require_ok(sluice_node_share_mr(node, NULL, remotes, DEADLINE));
    }
    require_ok(sluice_node_shutdown(node, DEADLINE));
}

TEST(beside_other_calls)
{
    ranks_try(4, NULL, mix);
}

#define MOST 300

/* Each message has a different size, which the receiver knows before it posts the receive. */
static void send_what_was_told(struct ranks *ranks, uint32_t rank, uint32_t turn,
                               struct memory *memory)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct sluice_request requests[2 * RANKS_MAX] = {{0}};
    struct sluice_completion results[2 * RANKS_MAX];
    uint32_t own[RANKS_MAX], theirs[RANKS_MAX], count = ranks->count;

    for (uint32_t i = 0; i < count; i++)
        own[i] = (turn * 37 + rank * 11 + i * 101) % (MOST + 1);
    require_ok(sluice_node_alltoall(ranks->nodes[rank], own, theirs, sizeof own[0], DEADLINE));
    for (uint32_t i = 0; i < count; i++) {
        require(theirs[i] == (turn * 37 + i * 11 + rank * 101) % (MOST + 1), "%u of rank %u",
                theirs[i], i);
        requests[i] = (struct sluice_request){.opcode = SLUICE_OP_RECEIVE, .peer = i};
        requests[i].sge = memory_sge(memory, i * MOST, theirs[i]);
        requests[count + i] = (struct sluice_request){.opcode = SLUICE_OP_SEND, .peer = i};
        requests[count + i].sge = memory_sge(memory, (count + i) * MOST, own[i]);
        requests[i].sge_count = requests[count + i].sge_count = 1;
        pattern_fill(memory->bytes + (count + i) * MOST, own[i], pattern_key(rank, i, turn));
    }
    require_ok(sluice_multichannel_submit(all, requests, 2 * count, DEADLINE, results));
    for (uint32_t i = 0; i < count; i++) {
        require(results[i].bytes == theirs[i], "%llu bytes", (unsigned long long)results[i].bytes);
        pattern_check(memory->bytes + i * MOST, theirs[i], pattern_key(i, rank, turn));
    }
}

static void send_sizes_first(struct ranks *ranks, uint32_t rank)
{
    struct memory memory;

    memory_open(&memory, ranks->pds[rank], 2 * RANKS_MAX * MOST);
    for (uint32_t turn = 0; turn < 20; turn++)
        send_what_was_told(ranks, rank, turn, &memory);
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(sizes_before_messages)
{
    ranks_try(4, NULL, send_sizes_first);
}

static void still_works(struct ranks *ranks, uint32_t rank)
{
    trade(ranks, rank, 300, 7, false);
    require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, DEADLINE));
}

TEST(arguments)
{
    struct ranks ranks;
    uint8_t own[16] = {0}, all[16];

    ranks_open(&ranks, 2, NULL);
    struct sluice_node *node = ranks.nodes[0];
    require_error(sluice_node_alltoall(NULL, own, all, 8, DEADLINE), -EINVAL, "not a node");
    require_error(sluice_node_alltoall(node, NULL, all, 8, DEADLINE), -EINVAL, "8 bytes NULL");
    require_error(sluice_node_alltoall(node, own, NULL, 8, DEADLINE), -EINVAL, "8 bytes NULL");
    require_error(sluice_node_alltoall(node, own, all, SLUICE_NODE_ALLTOALL_BYTES + 1, DEADLINE),
                  -EINVAL, "65537 bytes 0 to 65536");
    require_error(sluice_node_alltoall(node, own, all, 8, -1), -EINVAL, "deadline -1");
    require_error(sluice_node_alltoall(node, own, all, 8, 0), -ETIMEDOUT, "deadline is 0");
    ranks_run(&ranks, still_works);
    ranks_close(&ranks);
}

/* Rank 2 makes the first call, all others the second: calls that do not match. */
enum act { TRADE_8, TRADE_16, GATHER, SHARE, MEET, END };

static int act(struct sluice_node *node, enum act what)
{
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    uint8_t own[16 * RANKS_MAX] = {0}, all[16 * RANKS_MAX];

    switch (what) {
    case TRADE_8:
        return sluice_node_alltoall(node, own, all, 8, DEADLINE);
    case TRADE_16:
        return sluice_node_alltoall(node, own, all, 16, DEADLINE);
    case GATHER:
        return sluice_node_allgather(node, own, all, 8, DEADLINE);
    case SHARE:
        return sluice_node_share_mr(node, NULL, remotes, DEADLINE);
    case MEET:
        return sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, DEADLINE);
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
    trade(ranks, rank, 100, 1, false);
    require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, DEADLINE));
}

/* All ranks get the same error about the program, whichever rank found it. */
TEST(ranks_that_disagree)
{
    static const enum act mixes[][2] = {
        {TRADE_8, TRADE_16}, {TRADE_8, GATHER}, {GATHER, TRADE_8}, {SHARE, TRADE_16},
        {TRADE_8, SHARE},    {MEET, TRADE_8},   {TRADE_8, MEET},   {END, TRADE_8},
    };
    struct ranks ranks;

    ranks_open(&ranks, 4, NULL);
    for (size_t i = 0; i < COUNT(mixes); i++) {
        ranks.argument = mixes[i];
        ranks_run(&ranks, disagree);
    }
    ranks_close(&ranks);
}

/* The last rank does not come; the first rank that gives up notifies the others. */
static void miss_one(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    uint64_t own[RANKS_MAX] = {0}, all[RANKS_MAX];

    for (int turn = 0; turn < 2; turn++) {
        if (rank == 0)
            require_error(sluice_node_alltoall(node, own, all, 8, SLUICE_MS(1500)), -ETIMEDOUT,
                          "rank 3 did not come to the alltoall of 4 ranks");
        else if (rank < 3)
            require_error(sluice_node_alltoall(node, own, all, 8, 2 * DEADLINE), -ECANCELED,
                          "rank 0 gave up because of rank 3");
        ranks_meet(ranks);
        if (rank == 3)
            require_error(sluice_node_alltoall(node, own, all, 8, 2 * DEADLINE), -ECANCELED,
                          "gave up");
        ranks_meet(ranks);
        require_error(sluice_node_alltoall(node, own, all, 8, DEADLINE), -ENOTCONN, "reset");
        ranks_reset(ranks, rank);
        still_works(ranks, rank);
    }
}

TEST(a_rank_that_never_comes)
{
    ranks_try(4, NULL, miss_one);
}

/* A piece stands behind a message without a receive; its slot is used again later. */
static void trade_in_vain(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    uint64_t own[2] = {0}, values[2];
    struct memory memory;

    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    if (rank == 0)
        require_ok(sluice_multichannel_send_unpolled(all, 1, &sge, 1, SLUICE_FOREVER, NULL));
    for (int turn = 0; turn < 3; turn++) {
        int result = sluice_node_alltoall(node, own, values, 8, SLUICE_MS(100));

        /* Rank 0 has the value of rank 1, the first time. */
        require(result == -ETIMEDOUT || result == -ECANCELED ||
                    (rank == 0 && turn == 0 && result == 0),
                "%d: %s", result, sluice_last_error());
        ranks_reset(ranks, rank);
    }
    if (rank == 1)
        require_ok(sluice_multichannel_receive(all, 0, &sge, 1, DEADLINE, NULL));
    ranks_reset(ranks, rank);
    trade_often(ranks, rank);
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(a_piece_in_vain)
{
    ranks_try(2, NULL, trade_in_vain);
}

#define SLOTS_AT 64
#define SLOT_BYTES 256

/* Rank 1 is hostile. No word that it writes makes rank 0 hang, or access memory outside. */
TEST(garbage)
{
    static const struct {
        uint64_t call;
        const char *words;
    } wrong[] = {
        {UINT64_C(4) << 56 | 8, "rank 1 call"},
        {UINT64_C(3) << 56 | 0xffffffff, "rank 1 gives 4294967295 bytes alltoall this rank 8"},
        {UINT64_C(3) << 56 | UINT64_C(1) << 32 | 8, "rank 1 gives 8 bytes"},
        {UINT64_C(1) << 56 | 8, "rank 1 is in sluice_node_allgather() sluice_node_alltoall()"},
    };
    static const uint64_t nothing[2];
    struct ranks ranks;
    uint64_t own[2] = {0}, all[2];

    ranks_open(&ranks, 2, NULL);
    for (uint64_t i = 0; i < COUNT(wrong); i++) {
        const uint64_t words[2] = {(2 * i + 1) << 32 | 1, wrong[i].call};

        ranks_forge(&ranks, SLOTS_AT + SLOT_BYTES, words, 2);
        require_error(sluice_node_alltoall(ranks.nodes[0], own, all, 8, DEADLINE), -EPROTO,
                      wrong[i].words);
        ranks_forge(&ranks, SLOTS_AT + SLOT_BYTES, nothing, 2);
        require_ok(sluice_node_barrier_reset(ranks.nodes[0]));
        require_ok(sluice_node_barrier_reset(ranks.nodes[1]));
        ranks_run(&ranks, still_works);
        require_ok(sluice_node_barrier_reset(ranks.nodes[0]));
        require_ok(sluice_node_barrier_reset(ranks.nodes[1]));
    }
    ranks_close(&ranks);
}

/* The last rank of four processes is killed, and the others are notified. */
static void live_or_die(struct rank *rank)
{
    const struct sluice_channel_attr channel = {
        .size = sizeof(channel), .ack_timeout = 16, .keepalive = SLUICE_S(1)};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    struct sluice_node *node = sluice_node_open(pd, exchange, &attr, DEADLINE);
    uint64_t own[4], all[4];

    require(node, "%s", sluice_last_error());
    for (uint64_t i = 0; i < 4; i++)
        own[i] = rank->index * 10 + i;
    for (int turn = 0; turn < 20; turn++) {
        require_ok(sluice_node_alltoall(node, own, all, sizeof own[0], DEADLINE));
        for (uint64_t i = 0; i < 4; i++)
            require(all[i] == i * 10 + rank->index, "%llu of rank %u", (unsigned long long)all[i],
                    (unsigned)i);
    }
    rank_barrier(rank);
    if (rank->index == 3) {
        rank_await_death(rank);
    } else {
        if (rank->index == 0)
            rank_kill(rank, 3);
        int result = sluice_node_alltoall(node, own, all, sizeof own[0], 2 * DEADLINE);
        require(result == -ECONNRESET || result == -ECANCELED, "%d: %s", result,
                sluice_last_error());
        if (result == -ECONNRESET)
            require(strstr(sluice_last_error(), "rank 3 is lost"), "%s", sluice_last_error());
    }
    sluice_node_close(node);
    sluice_exchange_close(exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(a_rank_that_is_killed, .group = "processes", .unless = device_is_pretend)
{
    group_run(4, live_or_die, NULL, 60);
}

int main(void)
{
    const struct tests cases[] = {
        {"self", WIRE_SELF, 120},
        {"tcp", WIRE_TCP, 120},
        {"processes", WIRE_SHM, 120},
    };
    return run_groups("alltoall", cases, COUNT(cases));
}
