/* SPDX-License-Identifier: MIT */
/*
 * The tree of a lazy node, along which its barriers and gathers go, so that a rank is connected to
 * few others. Ranks have positions in the order of their hosts. The first rank of a host leads it:
 * the leaders are a tree, and below each of them is one of the ranks of its host. Each rank has the
 * positions from its own on up to an end below it.
 *
 * A rank has up to four branches on its host. With two a barrier of 64 ranks that share two
 * processors took twice as long, because each step waits until the next rank has run; with eight
 * it was hardly faster.
 */
#ifndef SLU_NODE_TREE_H
#define SLU_NODE_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

#define SLU_TREE_BRANCHES 4
/* Children of the same host, and of a leader as many leaders of others. */
#define SLU_TREE_CHILDREN (2 * SLU_TREE_BRANCHES)

struct slu_tree_child {
    uint32_t rank;
    uint32_t first, end; /* positions below it, with its own */
    uint32_t place;      /* which child it is, less than SLU_TREE_CHILDREN */
};

struct slu_tree {
    uint32_t ranks;
    uint32_t position, end; /* of this rank */
    uint32_t parent;        /* a rank; SLU_NONE: this rank is the root */
    uint32_t place;         /* of this rank among the children of its parent */
    uint32_t child_count;
    struct slu_tree_child children[SLU_TREE_CHILDREN]; /* ascending */
    uint32_t *order;                                   /* NULL: a position is its rank */
};

/*
 * Fills in the tree of a rank. hosts has a number for the host of each rank, equal for ranks of
 * one host; it is overwritten. Returns 0, or -ENOMEM with a text. slu_tree_free() frees it.
 */
int slu_tree_make(struct slu_tree *tree, uint32_t rank, uint32_t ranks, uint32_t *hosts);
/* Likewise for the members of a node: their tree was made with their indexes in place of ranks. */
int slu_tree_rename(struct slu_tree *tree, const uint32_t *members);
void slu_tree_free(struct slu_tree *tree);

static inline uint32_t slu_tree_rank(const struct slu_tree *tree, uint32_t position)
{
    return tree->order != NULL ? tree->order[position] : position;
}

#endif
