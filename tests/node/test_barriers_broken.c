/* SPDX-License-Identifier: MIT */
/*
 * Barriers that fail: all ranks get the culprit at once; a mistake in the arguments breaks nothing;
 * and a reset repairs what is broken.
 */
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

/* The time until another rank's failure is known here, on a busy machine. */
#define AT_ONCE SLUICE_S(5)

static void all_pass(struct ranks *ranks, uint32_t rank)
{
    for (uint32_t algorithm = 0; algorithm <= 3; algorithm++) {
        require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, algorithm, DEADLINE));
    }
}

TEST(wrong_lists)
{
    static const struct {
        uint32_t ranks[3];
        uint32_t count;
        const char *words;
    } wrong[] = {
        {{0}, 0, "no ranks"},
        {{1, 0}, 2, "ranks[1] is 0 after 1 strictly ascending"},
        {{0, 0}, 2, "ranks[1] is 0 after 0"},
        {{0, 1, 1}, 3, "ranks[2] is 1 after 1"},
        {{0, 3}, 2, "ranks[1] is 3 ranks 0..2"},
        {{0, UINT32_MAX}, 2, "ranks[1]"},
        {{1}, 1, "without this one, rank 0"},
        {{1, 2}, 2, "without this one, rank 0"},
    };
    struct ranks ranks;
    ranks_open(&ranks, 3, NULL);
    struct sluice_node *node = ranks.nodes[0];
    const uint32_t own = 0;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        for (uint32_t algorithm = 0; algorithm <= 3; algorithm++) {
            require_error(
                sluice_node_barrier(node, wrong[i].ranks, wrong[i].count, algorithm, DEADLINE),
                -EINVAL, wrong[i].words);
        }
    }
    require_error(sluice_node_barrier(node, NULL, 2, 0, DEADLINE), -EINVAL, "list of 2");
    require_error(sluice_node_barrier(node, NULL, 0, 4, DEADLINE), -EINVAL, "algorithm 4 0..3");
    require_error(sluice_node_barrier(node, NULL, 0, 0, -1), -EINVAL, "deadline -1");
    require_error(sluice_node_barrier(node, NULL, 0, 0, 0), -ETIMEDOUT, "deadline is 0");
    require_error(sluice_node_barrier(NULL, NULL, 0, 0, DEADLINE), -EINVAL, "not a node");
    require_error(sluice_node_barrier_reset(NULL), -EINVAL, "not a node");
    require_ok(sluice_node_barrier(node, &own, 1, 0, 0));
    ranks_run(&ranks, all_pass);
    ranks_close(&ranks);
}

/*
 * The last rank never comes; rank 0 gives up first, and the others with it. In the tree rank 0
 * waits for rank 1, which has come and is not blamed.
 */
static void miss_one(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        int64_t start = fair_now();
        if (rank == 0) {
            require_error(sluice_node_barrier(node, NULL, 0, algorithm, SLUICE_MS(1500)),
                          -ETIMEDOUT, "rank 3 did not come");
        } else if (rank < 3) {
            require_error(sluice_node_barrier(node, NULL, 0, algorithm, 2 * DEADLINE), -ECANCELED,
                          "rank 0 gave up because of rank 3: it did not come in time");
            require(fair_now() - start < AT_ONCE, "%lld ms",
                    (long long)(fair_now() - start) / 1000000);
        }
        ranks_meet(ranks);
        if (rank == 3) {
            require_error(sluice_node_barrier(node, NULL, 0, algorithm, 2 * DEADLINE), -ECANCELED,
                          "gave up");
        }
        ranks_meet(ranks);
        require_error(sluice_node_barrier(node, NULL, 0, algorithm, DEADLINE), -ENOTCONN, "reset");
        require_error(sluice_node_barrier(node, &rank, 1, algorithm, DEADLINE), -ENOTCONN, "reset");
        require_error(sluice_node_shutdown(node, DEADLINE), -ENOTCONN,
                      "sluice_node_barrier_reset() sluice_node_close()");
        ranks_reset(ranks, rank);
        all_pass(ranks, rank);
    }
}

TEST(a_rank_that_never_comes)
{
    ranks_try(4, NULL, miss_one);
}

/* A rank that was queried but had no time to answer is blamed as well. */
static bool blamed_in_vain(struct span took)
{
    return took.real - took.fair > SLUICE_MS(200) &&
           (strstr(sluice_last_error(), "does not answer") ||
            strstr(sluice_last_error(), "because of rank"));
}

/* All but one time out together: none of them blames another. */
static void miss_one_of_many(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        ranks_meet(ranks);
        if (rank < ranks->count - 1) {
            struct span begin = span_begin();
            int result = sluice_node_barrier(node, NULL, 0, algorithm, SLUICE_MS(1500));
            struct span took = span_since(begin);
            require(result == -ETIMEDOUT || result == -ECANCELED, "%d", result);
            require(strstr(sluice_last_error(),
                           result == -ETIMEDOUT ? "rank 7 did not come" : "because of rank 7") ||
                        blamed_in_vain(took),
                    "rank %u, algorithm %u: %s", rank, algorithm, sluice_last_error());
        }
        ranks_reset(ranks, rank);
    }
    all_pass(ranks, rank);
}

TEST(one_of_many_never_comes)
{
    ranks_try(8, NULL, miss_one_of_many);
}

/* All ranks have come, but each to a different barrier: none is reported missing. */
static void wait_in_a_ring(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t groups[3][2] = {{0, 1}, {1, 2}, {0, 2}};
    struct sluice_node *node = ranks->nodes[rank];
    if (rank == 0) {
        require_error(sluice_node_barrier(node, groups[0], 2, 0, SLUICE_MS(1500)), -ETIMEDOUT,
                      "rank 1 sent nothing 2 ranks may itself have waited");
    } else {
        require_error(sluice_node_barrier(node, groups[rank], 2, 0, DEADLINE), -ECANCELED,
                      "rank 0 gave up");
    }
    ranks_reset(ranks, rank);
    all_pass(ranks, rank);
}

TEST(a_ring_of_groups)
{
    ranks_try(3, NULL, wait_in_a_ring);
}

/* Without the right to read, no rank is blamed, and the attempt loses no connection. */
static void miss_without_reads(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    if (rank == 0) {
        require_error(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_MS(1000)),
                      -ETIMEDOUT, "rank 1 sent nothing 4 ranks may itself have waited");
    } else if (rank < 3) {
        require_error(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, DEADLINE), -ECANCELED,
                      "rank 0 gave up");
    }
    ranks_reset(ranks, rank);
    all_pass(ranks, rank);
}

TEST(no_reads)
{
    const struct sluice_channel_attr channel = {.size = sizeof(channel),
                                                .access = SLUICE_ACCESS_REMOTE_WRITE};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    ranks_try(4, &attr, miss_without_reads);
}

/* A query stands behind a message without a receive: it is not sent twice, and ends nothing. */
static void ask_in_vain(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    if (rank == 0) {
        require_ok(sluice_multichannel_post_send(all, 1, &sge, 1, SLUICE_FOREVER, NULL));
    }
    for (int turn = 0; turn < 2; turn++) {
        if (rank == 0) {
            require_error(sluice_node_barrier(node, NULL, 0, 0, SLUICE_MS(1)), -ETIMEDOUT,
                          "rank 1 does not answer");
        }
        ranks_reset(ranks, rank);
    }
    if (rank == 1) {
        require_ok(sluice_multichannel_receive(all, 0, &sge, 1, DEADLINE, NULL));
    }
    ranks_reset(ranks, rank);
    all_pass(ranks, rank);
    ranks_meet(ranks);
    /* Then it can be queried again: that makes two queries in all. */
    if (rank == 0) {
        struct sluice_counters counters = {.size = sizeof(counters)};
        require_error(sluice_node_barrier(node, NULL, 0, 0, SLUICE_MS(1)), -ETIMEDOUT,
                      "rank 1 did not come");
        require_ok(sluice_multichannel_counters(all, &counters));
        require(counters.requests[SLUICE_OP_READ] == 2, "%llu questions",
                (unsigned long long)counters.requests[SLUICE_OP_READ]);
    }
    ranks_reset(ranks, rank);
    memory_close(&memory);
}

TEST(query_behind_a_blocked_message)
{
    ranks_try(2, NULL, ask_in_vain);
}

/* Rank 0 waits for room in a full queue, and sleeps, while rank 2 gives up. */
static void wait_for_room(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    int64_t start = fair_now();
    if (rank == 0) {
        require_ok(sluice_multichannel_post_send(all, 1, &sge, 1, SLUICE_FOREVER, NULL));
        require_error(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_DISSEMINATION, DEADLINE),
                      -ECANCELED, "rank 2 gave up");
        require(fair_now() - start < AT_ONCE, "%lld ms", (long long)(fair_now() - start) / 1000000);
    } else if (rank == 2) {
        require_error(
            sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_DISSEMINATION, SLUICE_MS(100)),
            -ETIMEDOUT, "rank 1 did not come");
    }
    ranks_meet(ranks);
    if (rank == 1) {
        require_ok(sluice_multichannel_receive(all, 0, &sge, 1, DEADLINE, NULL));
    }
    ranks_reset(ranks, rank);
    all_pass(ranks, rank);
    memory_close(&memory);
}

TEST(no_room)
{
    const struct sluice_channel_attr channel = {.size = sizeof(channel), .send_depth = 1};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    ranks_try(3, &attr, wait_for_room);
}

/*
 * A rank that failed in one group passes the failure on to its next group; groups without such a
 * rank go on.
 */
static void spread(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t first[] = {0, 1}, second[] = {1, 2}, apart[] = {3, 4};
    struct sluice_node *node = ranks->nodes[rank];
    if (rank == 0) {
        require_result(sluice_node_barrier(node, first, 2, 0, SLUICE_MS(1)), -ETIMEDOUT);
    }
    ranks_meet(ranks);
    if (rank == 1) {
        require_error(sluice_node_barrier(node, first, 2, 0, DEADLINE), -ECANCELED, "rank 0");
    } else if (rank == 2) {
        require_error(sluice_node_barrier(node, second, 2, 0, DEADLINE), -ECANCELED, "rank 0");
    } else if (rank > 2) {
        for (uint32_t i = 0; i < 20; i++) {
            require_ok(sluice_node_barrier(node, apart, 2, i % 4, DEADLINE));
        }
    }
    ranks_reset(ranks, rank);
    all_pass(ranks, rank);
}

TEST(groups_that_fail)
{
    ranks_try(5, NULL, spread);
}

/* Rank 1 writes a word into its line at rank 0. */
static void forge(struct ranks *ranks, uint32_t at, uint64_t value)
{
    ranks_forge(ranks, at, &value, 1);
}

#define COUNT_AT 0
#define MARK_AT 8

/* Rank 1 is hostile. No word makes rank 0 leave early, hang, or read outside of its memory. */
TEST(garbage)
{
    static const struct {
        uint32_t at;
        uint64_t low;       /* of the word */
        int64_t generation; /* of it, after ours */
        int error;
        const char *words;
    } wrong[] = {
        {COUNT_AT, 3, 0, -EPROTO, "rank 1 count"},
        {COUNT_AT, 0xffffffff, 0, -EPROTO, "rank 1 count"},
        {COUNT_AT, 0x8000, 0, -EPROTO, "rank 1 count"},
        {COUNT_AT, 0xdead0005, 0, -EPROTO, "rank 1 in another barrier"},
        {COUNT_AT, 1, 100000, -EPROTO, "rank 1 count"},
        {COUNT_AT, 1, 0xdeadbeef, -EPROTO, "rank 1 count"},
        {COUNT_AT, 1, 1, -ECANCELED, "rank 1 has reset"},
        {MARK_AT, 0x00020000, 0, -EPROTO, "rank 1 mark"},
        {MARK_AT, 0x00000002, 0, -EPROTO, "rank 1 mark"},
        {MARK_AT, 0xffffffff, 0, -EPROTO, "rank 1 mark"},
        {MARK_AT, 0, 5000, -EPROTO, "rank 1 mark"},
        {MARK_AT, 0x00010000, 0, -ECANCELED, "rank 1 gave up because of this rank"},
        {MARK_AT, 0x00010001, 0, -ECANCELED, "rank 1 gave up its barriers"},
        {MARK_AT, 0x00010000, 3, -ECANCELED, "rank 1 has reset"},
    };
    struct ranks ranks;
    ranks_open(&ranks, 2, NULL);
    int64_t generation = 1;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        int64_t start = fair_now();
        uint64_t word = (uint64_t)(generation + wrong[i].generation) << 32 | wrong[i].low;
        forge(&ranks, wrong[i].at, word);
        uint32_t algorithm = (uint32_t)i % 3 + 1;
        require_error(sluice_node_barrier(ranks.nodes[0], NULL, 0, algorithm, DEADLINE),
                      wrong[i].error, wrong[i].words);
        require(fair_now() - start < AT_ONCE, "case %zu", i);
        /* By dissemination, rank 0 has notified rank 1, which may see that before the mark. */
        int result = sluice_node_barrier(ranks.nodes[1], NULL, 0, 0, DEADLINE);
        require(result == -ECANCELED ||
                    (result == -EPROTO && algorithm == SLUICE_BARRIER_DISSEMINATION),
                "case %zu: %d, %s", i, result, sluice_last_error());
        /* Such a rank must repair its line before it goes on. */
        forge(&ranks, wrong[i].at, 0);
        require_ok(sluice_node_barrier_reset(ranks.nodes[0]));
        require_ok(sluice_node_barrier_reset(ranks.nodes[1]));
        generation++;
        ranks_run(&ranks, all_pass);
    }
    /* Marks of an earlier generation are ignored. */
    require_ok(sluice_node_barrier_reset(ranks.nodes[0]));
    require_ok(sluice_node_barrier_reset(ranks.nodes[1]));
    forge(&ranks, COUNT_AT, (uint64_t)generation << 32 | 77);
    forge(&ranks, MARK_AT, (uint64_t)generation << 32 | 0x10000);
    ranks_run(&ranks, all_pass);
    /* A count that goes backwards is as wrong as one that is ahead. */
    forge(&ranks, COUNT_AT, 0);
    require_error(sluice_node_barrier(ranks.nodes[0], NULL, 0, 0, DEADLINE), -EPROTO,
                  "rank 1 count");
    ranks_close(&ranks);
}

/* A peer that was never connected, or that this side disconnected, counts as lost. */
static void lose_rank(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t rest[] = {0, 2};
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_endpoint unused;
    /* Only a peer that was heard before can be found lost. */
    all_pass(ranks, rank);
    ranks_meet(ranks);
    if (rank == 1) {
        struct sluice_multichannel *all = sluice_node_multichannel(node);
        for (uint32_t i = 0; i < 3; i++) {
            require_ok(sluice_multichannel_peer_reset(all, i, &unused));
        }
        ranks_meet(ranks);
        require_error(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_CENTRAL, DEADLINE),
                      -ECONNRESET, "rank 0 is not connected");
    } else {
        ranks_meet(ranks);
        if (rank == 0) {
            require_error(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_CENTRAL, 2 * DEADLINE),
                          -ECONNRESET, "rank 1 is lost");
        } else {
            require_error(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_CENTRAL, 2 * DEADLINE),
                          -ECANCELED, "rank 0 gave up because of rank 1");
        }
    }
    ranks_reset(ranks, rank);
    for (uint32_t algorithm = 1; algorithm <= 3 && rank != 1; algorithm++) {
        require_ok(sluice_node_barrier(node, rest, 2, algorithm, DEADLINE));
    }
}

TEST(a_lost_connection)
{
    /* A device without traffic to the peer notices the loss by keep-alive probes. */
    const struct sluice_channel_attr channel = {
        .size = sizeof(channel), .ack_timeout = 14, .keepalive = SLUICE_S(1)};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    ranks_try(3, &attr, lose_rank);
}

/* Rank 1 loses rank 2, notices that itself, and closes its node: it is not blamed. */
static void leave_for_another(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct sluice_endpoint unused;
    all_pass(ranks, rank);
    ranks_meet(ranks);
    if (rank == 2) {
        require_ok(sluice_multichannel_peer_reset(all, 1, &unused));
    } else if (rank == 1) {
        int64_t end = clock_now() + DEADLINE;
        while (sluice_multichannel_peer_state(all, 2) != SLUICE_STATE_FAILED) {
            struct sluice_completion completion;
            require_ok(sluice_multichannel_poll(all, &completion, 1));
            require(clock_now() < end, "rank 2 is not lost");
            let_pass(SLUICE_MS(1));
        }
        sluice_node_close(ranks->nodes[1]);
        ranks->nodes[1] = NULL;
    } else {
        struct memory memory;
        memory_open(&memory, ranks->pds[0], 64);
        struct sluice_sge sge = memory_sge(&memory, 0, 64);
        require_error(sluice_multichannel_receive(all, 1, &sge, 1, 2 * DEADLINE, NULL), -ECONNRESET,
                      "receive from rank 1: it has left, because it had lost rank 2");
        require_error(
            sluice_node_barrier(ranks->nodes[0], NULL, 0, SLUICE_BARRIER_CENTRAL, 2 * DEADLINE),
            -ECONNRESET, "rank 1 has left had lost rank 2");
        memory_close(&memory);
    }
}

TEST(rank_that_reset_its_peers_is_lost)
{
    const struct sluice_channel_attr channel = {
        .size = sizeof(channel), .ack_timeout = 14, .keepalive = SLUICE_S(1)};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    ranks_try(3, &attr, leave_for_another);
}

/* The last rank is killed, outside of the barrier or in it. */
struct killing {
    uint32_t algorithm;
    bool inside;
};

static void survive(struct rank *rank, struct sluice_node *node, const struct killing *killing)
{
    static const uint32_t living[] = {0, 1, 2};
    if (rank->index == 0) {
        let_pass(killing->inside ? SLUICE_MS(200) : 0);
        rank_kill(rank, 3);
    }
    int64_t start = fair_now();
    int result = sluice_node_barrier(node, NULL, 0, killing->algorithm, 2 * DEADLINE);
    require(result == -ECONNRESET || result == -ECANCELED || (result == 0 && killing->inside),
            "%d: %s", result, sluice_last_error());
    if (result == -ECONNRESET) {
        require(strstr(sluice_last_error(), "rank 3 is lost"), "%s", sluice_last_error());
    }
    require(fair_now() - start < AT_ONCE || !device_is_soft(), "%lld ms",
            (long long)(fair_now() - start) / 1000000);
    rank_barrier(rank);
    require_ok(sluice_node_barrier_reset(node));
    rank_barrier(rank);
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        require_ok(sluice_node_barrier(node, living, 3, algorithm, DEADLINE));
    }
}

static void live_or_die(struct rank *rank)
{
    const struct killing *killing = rank->argument;
    const struct sluice_channel_attr channel = {
        .size = sizeof(channel), .ack_timeout = 16, .keepalive = SLUICE_S(1)};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    struct sluice_node *node = made(sluice_node_open(pd, exchange, &attr, DEADLINE));
    rank_barrier(rank);
    if (rank->index < 3) {
        survive(rank, node, killing);
    } else {
        if (killing->inside) {
            (void)!sluice_node_barrier(node, NULL, 0, killing->algorithm, 2 * DEADLINE);
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
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        for (int inside = 0; inside < 2; inside++) {
            const struct killing killing = {algorithm, inside};
            group_run(4, live_or_die, &killing, 60);
        }
    }
}

/* A rank leaves a barrier, and fails in the next one before another has its release. */
static void fail_in_next(struct ranks *ranks, uint32_t rank)
{
    const size_t bytes = (size_t)32 << 20;
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct sluice_completion completion;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], bytes);
    struct sluice_sge sge = memory_sge(&memory, 0, (uint32_t)bytes);
    struct sluice_request request =
        request_of(rank == 0 ? SLUICE_OP_SEND : SLUICE_OP_RECEIVE, 2 - rank, &sge);
    ranks_meet(ranks);
    /* The release of rank 2 comes behind this message. */
    if (rank != 1) {
        require_result(sluice_multichannel_post(all, &request, 1, DEADLINE, NULL), 1);
    }
    require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, SLUICE_BARRIER_CENTRAL, DEADLINE));
    if (rank == 1) {
        require_error(
            sluice_node_barrier(ranks->nodes[rank], NULL, 0, SLUICE_BARRIER_CENTRAL, SLUICE_MS(1)),
            -ETIMEDOUT, "");
    } else {
        require_result(sluice_multichannel_next(all, DEADLINE, &completion), 0);
    }
    ranks_meet(ranks);
    ranks_reset(ranks, rank);
    node_meets(ranks->nodes[rank], NULL, 0);
    memory_close(&memory);
}

/* The message is longer than devices allow. */
static bool device_is_not_soft(void)
{
    return !device_is_soft();
}

TEST(a_complete_barrier_succeeds_although_the_next_one_fails, .unless = device_is_not_soft)
{
    ranks_try(3, NULL, fail_in_next);
}

int main(void)
{
    return RUN_GROUPS("barriers_broken", {"self", WIRE_SELF, 120}, {"tcp", WIRE_TCP, 120},
                      {"processes", WIRE_SHM, 240});
}
