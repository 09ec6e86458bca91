/* SPDX-License-Identifier: MIT */
/*
 * Values and handles that each rank of a node gives to all: of any length, with ranks that run
 * ahead, beside barriers and the program's own messages; a failure is one for all ranks, and a
 * reset cures it.
 */
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

static const uint32_t sizes[] = {1, 2, 3, 8};
static const size_t lengths[] = {0, 1, 7, 8, 32, 239, 240, 241, 480, 481, 5000};

/* Gives a value that identifies its rank and turn, and checks those of all. */
static void give(struct ranks *ranks, uint32_t rank, size_t length, uint32_t turn, bool in_place)
{
    uint8_t *all = malloc(ranks->count * length + 1);
    uint8_t *own = in_place ? all + rank * length : malloc(length + 1);
    require(all && own, "%zu bytes", length);
    memset(all, 0xee, ranks->count * length + 1);
    pattern_fill(own, length, pattern_key(rank, turn, 0));
    int result = sluice_node_allgather(ranks->nodes[rank], own, all, length, DEADLINE);
    require(result == 0, "rank %u, turn %u: %s", rank, turn, sluice_last_error());
    for (uint32_t i = 0; i < ranks->count; i++) {
        pattern_check(all + i * length, length, pattern_key(i, turn, 0));
    }
    value_check(all + ranks->count * length, 1, 0xee);
    if (!in_place) {
        free(own);
    }
    free(all);
}

static void give_all_lengths(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t turn = 0; turn < (short_run() ? 2U : 5U); turn++) {
        for (size_t i = 0; i < COUNT(lengths); i++) {
            give(ranks, rank, lengths[i], turn, (turn + i) % 2);
        }
    }
    give(ranks, rank, SLUICE_NODE_ALLGATHER_BYTES, 0, false);
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
        give(ranks, rank, 16, turn, false);
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
    uint8_t own = 7;
    uint8_t all[RANKS_MAX];
    for (uint32_t turn = 0; turn < ranks->count; turn++) {
        if (rank == turn) {
            require_error(sluice_node_allgather(ranks->nodes[rank], &own, all, 1, 0), -ETIMEDOUT,
                          "deadline 0 nothing was sent");
            require_error(sluice_node_share_mr(ranks->nodes[rank], NULL, remotes, 0), -ETIMEDOUT,
                          "deadline 0 nothing was sent");
        }
        give(ranks, rank, 16, turn, false);
    }
}

static void give_alone(struct ranks *ranks, uint32_t rank)
{
    uint8_t own = 7;
    uint8_t all = 0;
    require_ok(sluice_node_allgather(ranks->nodes[rank], &own, &all, 1, 0));
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

/* Barriers of all and of some between the calls, and a message to each rank around them. */
static void mix(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t pairs[2][2] = {{0, 1}, {2, 3}};
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    uint32_t next = (rank + 1) % ranks->count, last = (rank + ranks->count - 1) % ranks->count;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 128);
    struct sluice_sge in = memory_sge(&memory, 0, 64), out = memory_sge(&memory, 64, 64);
    struct sluice_handle handle;
    struct sluice_completion completion;
    for (uint32_t turn = 0; turn < 30; turn++) {
        require_ok(sluice_multichannel_receive_unpolled(all, last, &in, 1, DEADLINE, &handle));
        give(ranks, rank, turn * 16, turn, false);
        require_ok(sluice_node_barrier(node, pairs[rank / 2], 2, turn % 4, DEADLINE));
        give(ranks, rank, 8, turn, true);
        require_ok(sluice_node_barrier(node, NULL, 0, (turn + 1) % 4, DEADLINE));
        pattern_fill(memory.bytes + 64, 64, pattern_key(rank, next, turn));
        require_ok(sluice_multichannel_send(all, next, &out, 1, DEADLINE));
        require_ok(sluice_multichannel_wait(all, &handle, DEADLINE, &completion));
        require(completion.bytes == 64, "%llu bytes", (unsigned long long)completion.bytes);
        pattern_check(memory.bytes, 64, pattern_key(last, rank, turn));
    }
    memory_close(&memory);
    require_ok(sluice_node_shutdown(node, DEADLINE));
}

TEST(beside_barriers_and_messages)
{
    ranks_try(4, NULL, mix);
}

/* An allgather loses no unread result. */
static void leave_results(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct sluice_handle handles[2];
    struct sluice_completion completion;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    require_ok(sluice_node_share_mr(ranks->nodes[rank], memory.mr, remotes, DEADLINE));
    require_ok(sluice_multichannel_flush(all, DEADLINE));
    struct sluice_sge sge = memory_sge(&memory, 0, 8);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t peer = (rank + 1 + i) % 3;
        require_ok(sluice_multichannel_write_unpolled(all, peer, &sge, 1, &remotes[peer].remote,
                                                      DEADLINE, &handles[i]));
    }
    for (uint32_t turn = 0; turn < 10; turn++) {
        give(ranks, rank, 500, turn, false);
    }
    for (uint32_t i = 0; i < 2; i++) {
        require_ok(sluice_multichannel_wait(all, &handles[i], DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(results_left_for_later)
{
    const struct sluice_channel_attr channel = {.size = sizeof(channel), .send_depth = 1};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    ranks_try(3, &attr, leave_results);
}

/* With the handles each rank writes its block into the memory of all that share a region. */
static void write_to_all(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    bool shares = rank != 1 || ranks->count == 1;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], (RANKS_MAX + 1) * 64);
    memset(remotes, 0xff, sizeof(remotes));
    for (int turn = 0; turn < 3; turn++) {
        require_ok(sluice_node_share_mr(node, shares ? memory.mr : NULL, remotes, DEADLINE));
    }
    struct sluice_sge sge = memory_sge(&memory, RANKS_MAX * 64, 64);
    pattern_fill(memory.bytes + RANKS_MAX * 64, 64, pattern_key(rank, 0, 0));
    for (uint32_t i = 0; i < ranks->count; i++) {
        struct sluice_remote_mr slice;
        require(remotes[i].peer == i && remotes[i].generation == 0, "handle %u", i);
        if (i == 1) {
            require(remotes[i].remote.length == 0 && remotes[i].remote.rkey == 0, "an empty one");
            continue;
        }
        require(remotes[i].remote.length == memory.length, "handle %u", i);
        require_ok(sluice_remote_mr_slice(&remotes[i].remote, rank * 64, 64, &slice));
        require_ok(sluice_multichannel_write(all, i, &sge, 1, &slice, DEADLINE));
    }
    require_ok(sluice_node_barrier(node, NULL, 0, 0, DEADLINE));
    for (uint32_t i = 0; i < ranks->count && shares; i++) {
        pattern_check(memory.bytes + i * 64, 64, pattern_key(i, 0, 0));
    }
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(shared_regions)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        ranks_try(sizes[i], NULL, write_to_all);
    }
}

static void still_works(struct ranks *ranks, uint32_t rank)
{
    give(ranks, rank, 300, 7, false);
    require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, DEADLINE));
}

TEST(arguments)
{
    struct ranks ranks;
    struct sluice_peer_remote_mr remotes[2];
    uint8_t own[8] = {0}, all[16];
    ranks_open(&ranks, 2, NULL);
    struct sluice_node *node = ranks.nodes[0];
    require_error(sluice_node_allgather(NULL, own, all, 8, DEADLINE), -EINVAL, "not a node");
    require_error(sluice_node_allgather(node, NULL, all, 8, DEADLINE), -EINVAL, "8 bytes NULL");
    require_error(sluice_node_allgather(node, own, NULL, 8, DEADLINE), -EINVAL, "8 bytes NULL");
    require_error(sluice_node_allgather(node, own, all, SLUICE_NODE_ALLGATHER_BYTES + 1, DEADLINE),
                  -EINVAL, "65537 bytes 0 to 65536");
    require_error(sluice_node_allgather(node, own, all, 8, -1), -EINVAL, "deadline -1");
    require_error(sluice_node_allgather(node, own, all, 8, 0), -ETIMEDOUT, "deadline is 0");
    require_error(sluice_node_share_mr(node, NULL, remotes, 0), -ETIMEDOUT, "deadline is 0");
    require_error(sluice_node_share_mr(NULL, NULL, remotes, DEADLINE), -EINVAL, "not a node");
    require_error(sluice_node_share_mr(node, NULL, NULL, DEADLINE), -EINVAL, "remotes NULL");
    require_error(sluice_node_share_mr(node, NULL, remotes, -1), -EINVAL, "deadline -1");
    require_error(
        sluice_node_share_mr(node, (const struct sluice_mr *)(const void *)node, remotes, DEADLINE),
        -EINVAL, "region");
    ranks_run(&ranks, still_works);
    ranks_close(&ranks);
}

/* The calls of rank 0 and of the others, which do not match. */
enum act { GIVE_8, GIVE_16, SHARE, BARRIER, DISSEMINATE, CENTRAL, END };

static int act(struct sluice_node *node, enum act what)
{
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    uint8_t own[16] = {0}, all[16 * RANKS_MAX];
    switch (what) {
    case GIVE_8:
        return sluice_node_allgather(node, own, all, 8, DEADLINE);
    case GIVE_16:
        return sluice_node_allgather(node, own, all, 16, DEADLINE);
    case SHARE:
        return sluice_node_share_mr(node, NULL, remotes, DEADLINE);
    case BARRIER:
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
    static const enum act mixes[][2] = {
        {GIVE_8, GIVE_16},     {GIVE_16, GIVE_8}, {SHARE, GIVE_8},  {GIVE_16, SHARE},
        {BARRIER, GIVE_8},     {GIVE_8, BARRIER}, {SHARE, CENTRAL}, {CENTRAL, SHARE},
        {DISSEMINATE, GIVE_8}, {END, GIVE_8},     {GIVE_8, END},
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
    uint64_t own = rank, all[RANKS_MAX];
    for (int turn = 0; turn < 3; turn++) {
        if (rank == 0) {
            require_error(sluice_node_allgather(node, &own, all, 8, SLUICE_MS(1500)), -ETIMEDOUT,
                          "rank 3 did not come to the allgather of 4 ranks");
        } else if (rank < 3) {
            require_error(sluice_node_allgather(node, &own, all, 8, 2 * DEADLINE), -ECANCELED,
                          "rank 0 gave up because of rank 3");
        }
        ranks_meet(ranks);
        if (rank == 3) {
            require_error(sluice_node_allgather(node, &own, all, 8, 2 * DEADLINE), -ECANCELED,
                          "gave up");
        }
        ranks_meet(ranks);
        require_error(sluice_node_allgather(node, &own, all, 8, DEADLINE), -ENOTCONN, "reset");
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
    uint64_t own = rank, values[2];
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    if (rank == 0) {
        require_ok(sluice_multichannel_send_unpolled(all, 1, &sge, 1, SLUICE_FOREVER, NULL));
    }
    for (int turn = 0; turn < 3; turn++) {
        int result = sluice_node_allgather(node, &own, values, 8, SLUICE_MS(100));
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

#define SLOTS_AT 64
#define SLOT_BYTES 256

/* Rank 1 is hostile. No word that it writes makes rank 0 hang, or access memory outside. */
TEST(garbage)
{
    static const struct {
        int64_t generation; /* of the head, after ours */
        uint32_t round;
        uint64_t call;
        int error;
        const char *words;
    } wrong[] = {
        {0, 3, 0, -EPROTO, "rank 1 piece"},
        {0, 0x80000000, 0, -EPROTO, "rank 1 piece"},
        {100000, 1, 0, -EPROTO, "rank 1 piece"},
        {1, 1, 0, -ECANCELED, "rank 1 has reset"},
        {0, 1, 0, -EPROTO, "rank 1 call"},
        {0, 1, UINT64_MAX, -EPROTO, "rank 1 call"},
        {0, 1, UINT64_C(1) << 56 | 0xffffffff, -EPROTO,
         "rank 1 gives 4294967295 bytes this rank 8"},
        {0, 1, UINT64_C(1) << 56 | 9, -EPROTO, "rank 1 gives 9 bytes"},
        {0, 1, UINT64_C(2) << 56 | 32, -EPROTO, "rank 1 is in sluice_node_share_mr()"},
    };
    static const uint64_t nothing[2];
    struct ranks ranks;
    ranks_open(&ranks, 2, NULL);
    int64_t generation = 1;
    uint64_t own = 1, all[2];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const uint64_t words[2] = {
            (uint64_t)(generation + wrong[i].generation) << 32 | wrong[i].round, wrong[i].call};
        ranks_forge(&ranks, SLOTS_AT + SLOT_BYTES, words, 2);
        require_error(sluice_node_allgather(ranks.nodes[0], &own, all, 8, DEADLINE), wrong[i].error,
                      wrong[i].words);
        ranks_forge(&ranks, SLOTS_AT + SLOT_BYTES, nothing, 2);
        require_ok(sluice_node_barrier_reset(ranks.nodes[0]));
        require_ok(sluice_node_barrier_reset(ranks.nodes[1]));
        generation++;
        ranks_run(&ranks, still_works);
        require_ok(sluice_node_barrier_reset(ranks.nodes[0]));
        require_ok(sluice_node_barrier_reset(ranks.nodes[1]));
        generation++;
    }
    /* An invalid handle. */
    struct sluice_peer_remote_mr remotes[2];
    const uint64_t handle[6] = {(uint64_t)generation << 32 | 1, UINT64_C(2) << 56 | 32};
    ranks_forge(&ranks, SLOTS_AT + SLOT_BYTES, handle, 6);
    require_error(sluice_node_share_mr(ranks.nodes[0], NULL, remotes, DEADLINE), -EPROTO,
                  "rank 1 shares no valid handle");
    ranks_close(&ranks);
}

/* The last rank is killed, before the call or in it. */
static void survive(struct rank *rank, struct sluice_node *node, bool inside)
{
    uint64_t own = rank->index, all[4];
    if (rank->index == 0) {
        let_pass(inside ? SLUICE_MS(200) : 0);
        rank_kill(rank, 3);
    }
    int result = sluice_node_allgather(node, &own, all, sizeof(own), 2 * DEADLINE);
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
    struct sluice_node *node = sluice_node_open(pd, exchange, &attr, DEADLINE);
    require(node, "%s", sluice_last_error());
    uint64_t own = rank->index + 100, all[4];
    for (int turn = 0; turn < 20; turn++) {
        require_ok(sluice_node_allgather(node, &own, all, sizeof(own), DEADLINE));
        for (uint64_t i = 0; i < rank->size; i++) {
            require(all[i] == i + 100, "%llu of rank %u", (unsigned long long)all[i], (unsigned)i);
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

int main(void)
{
    const struct tests cases[] = {
        {"self", WIRE_SELF, 120},
        {"tcp", WIRE_TCP, 120},
        {"processes", WIRE_SHM, 120},
    };
    return run_groups("gather", cases, COUNT(cases));
}
