/* SPDX-License-Identifier: MIT */
/*
 * The tree of a lazy node: what each rank makes of it fits what all others do, for any number of
 * ranks on any hosts.
 */
#include <stdlib.h>

#include "node/tree.h"

#include "../support/suite.h"

#define MOST 150

static struct slu_tree trees[MOST];

/* The host of a rank, by a layout: all on one, each on its own, in turn, in blocks, uneven. */
static uint32_t host_of(int layout, uint32_t rank, uint32_t ranks)
{
    switch (layout) {
    case 0:
        return 7;
    case 1:
        return rank;
    case 2:
        return rank % 3;
    case 3:
        return rank / 16;
    default:
        return rank < ranks / 2 ? 1 : rank % 5;
    }
}

#define LAYOUTS 5

static void make_all(int layout, uint32_t ranks)
{
    uint32_t hosts[MOST];
    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t i = 0; i < ranks; i++) {
            hosts[i] = host_of(layout, i, ranks);
        }
        require_ok(slu_tree_make(&trees[rank], rank, ranks, hosts));
    }
}

static void free_all(uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        slu_tree_free(&trees[rank]);
    }
}

/* A child names this rank as its parent, with the same place and positions; places are unique. */
static void check_children(const struct slu_tree *tree, uint32_t rank)
{
    uint32_t next = tree->position + 1, places = 0;
    for (uint32_t i = 0; i < tree->child_count; i++) {
        const struct slu_tree_child *child = &tree->children[i];
        const struct slu_tree *below = &trees[child->rank];
        require_equal(below->parent, rank);
        require_equal(below->place, child->place);
        require_equal(below->position, child->first);
        require_equal(below->end, child->end);
        require_equal(child->first, next);
        require(child->place < SLU_TREE_CHILDREN && (places & 1U << child->place) == 0,
                "place %u of rank %u", child->place, child->rank);
        places |= 1U << child->place;
        next = child->end;
    }
    require_equal(next, tree->end);
}

/* There is one edge to each further host, and a rank has few branches on its own. */
static void check_hosts(int layout, uint32_t ranks)
{
    uint32_t hosts = 0, crossings = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t host = host_of(layout, rank, ranks), near = 0;
        bool first = true;
        for (uint32_t i = 0; i < rank; i++) {
            first = first && host_of(layout, i, ranks) != host;
        }
        hosts += first;
        for (uint32_t i = 0; i < trees[rank].child_count; i++) {
            near += host_of(layout, trees[rank].children[i].rank, ranks) == host;
        }
        crossings += trees[rank].child_count - near;
        require(near <= SLU_TREE_BRANCHES, "rank %u has %u children on its host", rank, near);
    }
    require_equal(crossings, hosts - 1);
}

/* The steps from a rank to the root, which are the logarithm of both numbers at most. */
static void check_depth(uint32_t ranks)
{
    uint32_t most = 0;
    for (uint32_t all = 1; all < ranks; all = SLU_TREE_BRANCHES * all + 1) {
        most++;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t depth = 0;
        for (uint32_t at = rank; trees[at].parent != SLU_NONE; at = trees[at].parent) {
            depth++;
        }
        require(depth <= 2 * most + 1, "rank %u of %u is %u steps below the root", rank, ranks,
                depth);
    }
}

TEST(all_ranks_make_the_same_tree)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        for (uint32_t ranks = 1; ranks <= MOST; ranks += ranks < 24 ? 1 : 21) {
            make_all(layout, ranks);
            for (uint32_t rank = 0; rank < ranks; rank++) {
                check_children(&trees[rank], rank);
            }
            require(trees[0].parent == SLU_NONE && trees[0].end == ranks, "rank 0 is no root");
            check_hosts(layout, ranks);
            check_depth(ranks);
            free_all(ranks);
        }
    }
}

int main(void)
{
    return RUN_GROUPS("trees", {"table", WIRE_SELF, 20});
}
