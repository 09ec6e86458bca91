/* SPDX-License-Identifier: MIT */
/*
 * The blame for broken barriers: the reason that other ranks get, and what the rank does that was
 * given up on. A healthy rank is not called lost because this side ended the connection.
 */
#include <stdio.h>
#include <string.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define MARK_AT 8
#define WHY_AT 16
#define TEXT 400

/* The text depends on whether the rank could be asked in time. */
static const char *reason_of(const char *text)
{
    return strstr(text, "did not come") ? ": it did not come in time" : ": it did not answer";
}

/* Rank 0 waits only for rank 1 and gives up on it; all ranks then get that reason. */
static void come_late(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t first[] = {0, 1};
    static char told[TEXT];
    char wanted[TEXT];
    struct sluice_node *node = ranks->nodes[rank];
    if (rank == 0) {
        require_result(sluice_node_barrier(node, first, 2, 0, SLUICE_MS(200)), -ETIMEDOUT);
        snprintf(told, sizeof(told), "%s", sluice_last_error());
    }
    ranks_meet(ranks);
    if (rank > 0) {
        require_result(sluice_node_barrier(node, NULL, 0, 0, DEADLINE), -ECANCELED);
        snprintf(wanted, sizeof(wanted), "rank 0 gave up its barriers, because of %s%s",
                 rank == 1 ? "this rank" : "rank 1", reason_of(told));
        require(strcmp(sluice_last_error(), wanted) == 0, "'%s', not '%s'", sluice_last_error(),
                wanted);
    }
    ranks_reset(ranks, rank);
    node_meets(node, NULL, 0);
}

TEST(late_rank_gets_the_reason)
{
    struct ranks ranks;
    ranks_open(&ranks, 3, NULL);
    for (int turn = 0; turn < 3; turn++) {
        ranks_run(&ranks, come_late);
    }
    ranks_close(&ranks);
}

/*
 * Queries stand behind messages without a receive. So rank 1, for which rank 0 waits, does not
 * answer, and rank 3, for which rank 1 waits, answers as late as on a busy host.
 */
static void answer_late(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    for (uint32_t i = 1; rank == 0 && i <= 3; i += 2) {
        require_ok(sluice_multichannel_post_send(all, i, &sge, 1, SLUICE_FOREVER, NULL));
    }
    ranks_meet(ranks);
    if (rank == 0) {
        require_error(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_MS(50)),
                      -ETIMEDOUT, "rank 3 did not come");
    } else if (rank == 3) {
        let_pass(SLUICE_MS(250));
    } else {
        require(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, SLUICE_S(2)) < 0,
                "rank 3 did not come");
    }
    if (rank % 2 == 1) {
        require_ok(sluice_multichannel_receive(all, 0, &sge, 1, DEADLINE, NULL));
    }
    ranks_meet(ranks);
    ranks_reset(ranks, rank);
    node_meets(node, NULL, 0);
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(a_rank_that_is_missing_is_blamed_before_one_that_is_silent)
{
    ranks_try(4, NULL, answer_late);
}

/* Rank 1 writes a word of the first generation into its line at rank 0. */
static void forge(struct ranks *ranks, uint32_t at, uint32_t value)
{
    uint64_t word = UINT64_C(1) << 32 | value;
    ranks_forge(ranks, at, &word, 1);
}

/* The reason that a rank sends selects a known text, or none. */
TEST(unknown_reasons)
{
    static const struct {
        uint32_t why;
        const char *text;
    } reasons[] = {
        {0, "rank 1 gave up its barriers, because of this rank"},
        {1, "rank 1 gave up its barriers, because of this rank"},
        {0x80000000, "rank 1 gave up its barriers, because of this rank"},
        {0x80000001, "rank 1 gave up its barriers, because of this rank: it did not come in time"},
        {0x8000000b, "rank 1 gave up its barriers, because of this rank"},
        {0xffffffff, "rank 1 gave up its barriers, because of this rank"},
    };
    for (size_t i = 0; i < COUNT(reasons); i++) {
        struct ranks ranks;
        ranks_open(&ranks, 2, NULL);
        forge(&ranks, WHY_AT, reasons[i].why);
        forge(&ranks, MARK_AT, 0x00010000);
        require_result(sluice_node_barrier(ranks.nodes[0], NULL, 0, 0, DEADLINE), -ECANCELED);
        require(strcmp(sluice_last_error(), reasons[i].text) == 0, "%#x: %s", reasons[i].why,
                sluice_last_error());
        ranks_close(&ranks);
    }
}

/*
 * Rank 0 sends to rank 1, which has forgotten its receive. Later writes of rank 0 wait behind that
 * message, so rank 1 must not report rank 0 as missing, nor may another rank report one that came
 * and left.
 */
#define FORGETFUL_TIME SLUICE_MS(300)

static void send_into_nothing(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);

    if (rank == 0)
        require_ok(sluice_multichannel_post_send(all, 1, NULL, 0, SLUICE_FOREVER, NULL));
}

static int meet_or_gather(struct ranks *ranks, uint32_t rank, bool gathers)
{
    uint64_t own = rank, values[8];

    return gathers
               ? sluice_node_allgather(ranks->nodes[rank], &own, values, sizeof own, FORGETFUL_TIME)
               : sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, FORGETFUL_TIME);
}

/* Whether the text is right about a rank that came. */
static bool is_true(const struct ranks *ranks, uint32_t rank, int result, bool gathers)
{
    char wanted[TEXT];
    const char *text = sluice_last_error();

    if (result == 0)
        return rank != 1;
    if (rank == 1 && result == -ETIMEDOUT) {
        snprintf(wanted, sizeof wanted,
                 "rank 0 came to the %s of %u ranks, but what it wrote waits behind a message "
                 "that it had sent before: this rank has posted no receive for it",
                 gathers ? "allgather" : "barrier", ranks->count);
        return strcmp(text, wanted) == 0;
    }
    if (result == -ETIMEDOUT)
        return strstr(text, "rank 1 sent nothing in time") &&
               (rank != 0 || strstr(text, "this rank sent it before waits for its receive"));
    return result == -ECANCELED && strstr(text, "gave up its barriers") &&
           !strstr(text, "did not come");
}

static void forget_a_receive(struct ranks *ranks, uint32_t rank, bool gathers)
{
    int result;

    send_into_nothing(ranks, rank);
    ranks_meet(ranks);
    result = meet_or_gather(ranks, rank, gathers);
    require(is_true(ranks, rank, result, gathers), "rank %u of %u: %d: %s", rank, ranks->count,
            result, result == 0 ? "it left" : sluice_last_error());
}

static void forget_in_a_barrier(struct ranks *ranks, uint32_t rank)
{
    forget_a_receive(ranks, rank, false);
}

static void forget_in_an_allgather(struct ranks *ranks, uint32_t rank)
{
    forget_a_receive(ranks, rank, true);
}

/* With earlier barriers of the same ranks and of others, and without. */
static void forget_after_others(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t some[] = {0, 1};

    node_meets(ranks->nodes[rank], NULL, 0);
    if (rank < 2)
        node_meets(ranks->nodes[rank], some, 2);
    node_meets(ranks->nodes[rank], NULL, 0);
    ranks_meet(ranks);
    forget_a_receive(ranks, rank, false);
}

TEST(a_forgotten_receive)
{
    void (*const ways[])(struct ranks * ranks, uint32_t rank) = {
        forget_in_a_barrier, forget_in_an_allgather, forget_after_others};

    for (size_t i = 0; i < COUNT(ways); i++) {
        for (uint32_t count = 2; count <= 6; count++) {
            struct ranks ranks;

            ranks_open(&ranks, count, NULL);
            ranks_run(&ranks, ways[i]);
            ranks_close(&ranks);
        }
    }
}

/* The peer is alive: the deadline of this side ended the connection. */
TEST(a_deadline_of_our_own)
{
    struct ranks ranks;
    ranks_open(&ranks, 2, NULL);
    struct sluice_multichannel *all = sluice_node_multichannel(ranks.nodes[0]);
    require_result(sluice_multichannel_send(all, 1, NULL, 0, SLUICE_MS(50)), -ETIMEDOUT);
    require_error(sluice_node_barrier(ranks.nodes[0], NULL, 0, 0, DEADLINE), -ECONNRESET,
                  "a deadline that passed on this side ended the connection to rank 1: send to "
                  "rank 1: deadline of 50 ms passed");
    require(!strstr(sluice_last_error(), "lost"), "%s", sluice_last_error());
    ranks_close(&ranks);
}

TEST(a_cancel_of_our_own)
{
    struct ranks ranks;
    struct sluice_handle handle;
    struct sluice_completion completion;
    ranks_open(&ranks, 2, NULL);
    struct sluice_multichannel *all = sluice_node_multichannel(ranks.nodes[0]);
    require_ok(sluice_multichannel_post_receive(all, 1, NULL, 0, DEADLINE, &handle));
    require_ok(sluice_multichannel_cancel(all, &handle, &completion));
    require_result(sluice_node_barrier(ranks.nodes[0], NULL, 0, 0, DEADLINE), -ECONNRESET);
    require(strcmp(sluice_last_error(), "this side ended the connection to rank 1") == 0, "%s",
            sluice_last_error());
    ranks_close(&ranks);
}

/* Requests of the rank to itself, for which no other rank is to blame. */
TEST(work_with_itself)
{
    struct ranks ranks;
    ranks_open(&ranks, 1, NULL);
    struct sluice_multichannel *all = sluice_node_multichannel(ranks.nodes[0]);
    require_ok(sluice_multichannel_post_send(all, 0, NULL, 0, DEADLINE, NULL));
    require_result(sluice_node_shutdown(ranks.nodes[0], SLUICE_MS(50)), -ETIMEDOUT);
    require(strcmp(sluice_last_error(), "still pending: 1 send, write or read, to this rank") == 0,
            "%s", sluice_last_error());
    ranks_close(&ranks);
}

int main(void)
{
    return RUN_GROUPS("barriers_blame", {"self", WIRE_SELF, 60}, {"shm", WIRE_SHM, 60},
                      {"tcp", WIRE_TCP, 60});
}
