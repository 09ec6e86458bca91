/* SPDX-License-Identifier: MIT */
/* One allgather or alltoall: what its two ways have in common, all pairs and flows. */
#ifndef SLU_NODE_GATHER_H
#define SLU_NODE_GATHER_H

#include "node/node.h"

/* The values go over the wire and must not change. */
enum slu_gather_kind { SLU_ALLGATHER = 1, SLU_SHARE_MR = 2, SLU_ALLTOALL = 3 };

/*
 * One call. The value of rank i goes to all + i * stride. The value for rank i is at own + i *
 * own_stride, where own_stride is 0 if all ranks get the same.
 */
struct slu_gathering {
    struct slu_group group;
    enum slu_gather_kind kind;
    const uint8_t *own;
    uint8_t *all;
    size_t bytes, stride, own_stride;
};

/* Packs the kind of the call, the number of the piece, and the bytes of a value into one word. */
static inline uint64_t slu_gather_describe(const struct slu_gathering *gathering, size_t piece)
{
    return (uint64_t)gathering->kind << 56 | (uint64_t)(piece & 0xffffff) << 32 | gathering->bytes;
}

/* gather_call.c. Fails because a rank is in another call, or describes it by an invalid word. */
int slu_gather_fail_call(struct slu_gathering *gathering, uint32_t rank, uint64_t theirs);

/* gather_tree.c: an allgather along the tree of a node. */
int slu_gather_tree(struct slu_gathering *gathering);
/* gather_steps.c: an alltoall in a node with a tree. */
int slu_gather_steps(struct slu_gathering *gathering);

#endif
