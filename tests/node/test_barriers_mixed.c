/* SPDX-License-Identifier: MIT */
/*
 * Ranks that disagree: a barrier of other ranks, by another algorithm, or the end of the node. None
 * may leave as if all had come.
 */
#include <stdatomic.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define RANKS 4
/* The time until another rank's failure is known here, on a busy machine. */
#define AT_ONCE SLUICE_S(5)

/* The calls of rank 0, and those of the others. */
struct mix {
    uint32_t count;         /* of ranks 0, 1, ...; 0: all, by no list */
    uint32_t algorithms[2]; /* of rank 0, and of the others */
    bool ends;              /* rank 0 shuts down */
};

static atomic_uint found; /* ranks that met one in another call */

static void meet_elsewhere(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t all[RANKS] = {0, 1, 2, 3};
    const struct mix *mix = ranks->argument;
    struct sluice_node *node = ranks->nodes[rank];
    int64_t start = fair_now();
    int result;
    if (rank == 0 && mix->ends) {
        result = sluice_node_shutdown(node, DEADLINE);
    } else if (rank == 0 && mix->count != 0) {
        result = sluice_node_barrier(node, all, mix->count, mix->algorithms[0], DEADLINE);
    } else {
        result = sluice_node_barrier(node, NULL, 0, mix->algorithms[rank != 0], DEADLINE);
    }
    require(result == -EPROTO || result == -ECANCELED, "rank %u: %d, %s", rank, result,
            sluice_last_error());
    require(fair_now() - start < AT_ONCE, "rank %u", rank);
    if (result == -EPROTO) {
        require_error(result, -EPROTO, "rank in another barrier");
        atomic_fetch_add(&found, 1);
    }
    ranks_reset(ranks, rank);
    require_ok(sluice_node_barrier(node, NULL, 0, 0, DEADLINE));
}

static void try_mixes(const struct mix *mixes, size_t count)
{
    struct ranks ranks;
    ranks_open(&ranks, RANKS, NULL);
    for (size_t i = 0; i < count; i++) {
        found = 0;
        ranks.argument = &mixes[i];
        ranks_run(&ranks, meet_elsewhere);
        require(found > 0, "mix %zu: no rank found another call", i);
    }
    ranks_close(&ranks);
}

TEST(other_ranks)
{
    static const struct mix mixes[] = {{2, {1, 1}, false}, {2, {2, 2}, false}, {2, {3, 3}, false},
                                       {3, {1, 1}, false}, {3, {2, 2}, false}, {3, {3, 3}, false}};
    try_mixes(mixes, COUNT(mixes));
}

/* Some wait for each other in a circle, until their deadlines. */
TEST(other_algorithms)
{
    static const struct mix mixes[] = {
        {0, {1, 2}, false}, {0, {2, 1}, false}, {0, {3, 1}, false}, {0, {3, 2}, false}};
    try_mixes(mixes, COUNT(mixes));
}

/* Otherwise it would close while the others go on. */
TEST(an_early_end)
{
    static const struct mix mixes[] = {{0, {0, 0}, true}, {0, {0, 1}, true}, {0, {0, 2}, true}};
    try_mixes(mixes, COUNT(mixes));
}

/*
 * The list of all ranks is the same group as no list, and naming the default algorithm the same as
 * none.
 */
static void say_it_otherwise(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t all[RANKS] = {0, 1, 2, 3};
    for (int i = 0; i < 10; i++) {
        require_ok(sluice_node_barrier(ranks->nodes[rank], rank % 2 ? all : NULL,
                                       rank % 2 ? RANKS : 0,
                                       rank < 2 ? 0 : SLUICE_BARRIER_DISSEMINATION, DEADLINE));
    }
}

TEST(the_same_in_other_words)
{
    ranks_try(RANKS, NULL, say_it_otherwise);
}

int main(void)
{
    return RUN_GROUPS("barriers_mixed", {"self", WIRE_SELF, 60}, {"tcp", WIRE_TCP, 60});
}
