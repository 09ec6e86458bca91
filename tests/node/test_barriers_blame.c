/* SPDX-License-Identifier: MIT */
/*
 * Who is to blame for barriers that broke, and why: what the others hear, and what
 * the rank does for which they were given up. And a rank that is well is not called
 * lost because this side ended the connection.
 */
#include <stdio.h>
#include <string.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define MARK_AT 8
#define WHY_AT 16
#define TEXT 400

/* Which of the two there is depends on whether the rank could be asked in time. */
static const char *reason_of(const char *text)
{
    return strstr(text, "did not come") ? ": it did not come in time" : ": it did not answer";
}

/* Rank 0 waits for rank 1 alone, so it gives up for that one; then all hear of it. */
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

TEST(who_was_late_hears_why)
{
    struct ranks ranks;
    ranks_open(&ranks, 3, NULL);
    for (int turn = 0; turn < 3; turn++) {
        ranks_run(&ranks, come_late);
    }
    ranks_close(&ranks);
}

/* Rank 1 writes a word of the first generation into its line at rank 0. */
static void forge(struct ranks *ranks, uint32_t at, uint32_t value)
{
    uint64_t word = UINT64_C(1) << 32 | value;
    ranks_forge(ranks, at, &word, 1);
}

/* What a rank says of its reason chooses one that is known, or none. */
TEST(reasons_that_are_none)
{
    static const struct {
        uint32_t why;
        const char *text;
    } reasons[] = {
        {0, "rank 1 gave up its barriers, because of this rank"},
        {1, "rank 1 gave up its barriers, because of this rank"},
        {0x80000000, "rank 1 gave up its barriers, because of this rank"},
        {0x80000001, "rank 1 gave up its barriers, because of this rank: it did not come in time"},
        {0x8000000a, "rank 1 gave up its barriers, because of this rank"},
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

/* The peer is there: what ended is this side's patience. */
TEST(a_deadline_of_our_own)
{
    struct ranks ranks;
    ranks_open(&ranks, 2, NULL);
    struct sluice_multichannel *all = sluice_node_multichannel(ranks.nodes[0]);
    require_result(sluice_multichannel_send(all, 1, NULL, 0, SLUICE_MS(50)), -ETIMEDOUT);
    require_error(sluice_node_barrier(ranks.nodes[0], NULL, 0, 0, DEADLINE), -ECONNRESET,
                  "a deadline that passed on this side ended the connection to rank 1: send to "
                  "peer 1: deadline of 50 ms passed");
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
    require_ok(sluice_multichannel_receive_unpolled(all, 1, NULL, 0, DEADLINE, &handle));
    require_ok(sluice_multichannel_cancel(all, &handle, &completion));
    require_result(sluice_node_barrier(ranks.nodes[0], NULL, 0, 0, DEADLINE), -ECONNRESET);
    require(strcmp(sluice_last_error(), "this side ended the connection to rank 1") == 0, "%s",
            sluice_last_error());
    ranks_close(&ranks);
}

/* Its own work to itself, of which no other rank is to blame. */
TEST(work_with_itself)
{
    struct ranks ranks;
    ranks_open(&ranks, 1, NULL);
    struct sluice_multichannel *all = sluice_node_multichannel(ranks.nodes[0]);
    require_ok(sluice_multichannel_send_unpolled(all, 0, NULL, 0, DEADLINE, NULL));
    require_result(sluice_node_shutdown(ranks.nodes[0], SLUICE_MS(50)), -ETIMEDOUT);
    require(strcmp(sluice_last_error(), "still pending: 1 send, write or read, to this rank") == 0,
            "%s", sluice_last_error());
    ranks_close(&ranks);
}

int main(void)
{
    static const struct tests cases[] = {
        {"self", WIRE_SELF, 60},
        {"tcp", WIRE_TCP, 60},
    };
    return run_groups("barriers_blame", cases, COUNT(cases));
}
