/* SPDX-License-Identifier: MIT */
/*
 * Flows: bytes from one rank to another in a gather of a node with a tree, in chunks. The receiver
 * has a window of two chunks for each neighbour that it may have, behind its blocks, and the sender
 * writes alternately into both: first the chunk, then its number into the block. The number counts
 * all chunks between the two ranks, so neither needs to know which gather the other is in.
 *
 * There are two sets of windows, used by alternate generations: when ranks come again or change, a
 * window may belong to another rank, while a chunk of the generation before is still on its way. A
 * rank that is two generations behind could still do harm.
 *
 * A sender may be two chunks ahead of those that were taken, and the receiver writes how many these
 * are after each. In a node that grows, windows belong to other ranks after a change. So there the
 * receiver also writes that none was taken, when it begins to wait in a new generation.
 */
#ifndef SLU_NODE_FLOW_H
#define SLU_NODE_FLOW_H

#include "node/node.h"

#define SLU_CHUNK_BYTES 4096
#define SLU_CHUNK_HEAD 8 /* the description of the call */
#define SLU_CHUNK_MOST (SLU_CHUNK_BYTES - SLU_CHUNK_HEAD)

/* Windows: of the parent, the children, and the steps of an alltoall. */
#define SLU_WINDOW_PARENT 0
#define SLU_WINDOW_CHILD 1
#define SLU_WINDOW_STEP (SLU_WINDOW_CHILD + SLU_TREE_CHILDREN)

/* Returns the size of both sets of windows. An alltoall takes a step for each bit of a rank. */
static inline size_t slu_windows_bytes(uint32_t ranks)
{
    uint32_t windows = SLU_WINDOW_STEP;

    for (uint32_t largest = ranks - 1; largest > 0; largest /= 2)
        windows++;
    return (size_t)windows * 2 * 2 * SLU_CHUNK_BYTES;
}

/* A flow of no bytes still takes one chunk. */
struct slu_flow {
    uint32_t rank;
    uint32_t here, there; /* the window here, and of an outgoing flow the one of the rank */
    bool outgoing;
    bool written; /* the next chunk was given, and its number is not written yet */
    bool ended;
    size_t bytes, done; /* of the whole flow */
    /* Where the bytes belong: a program of the flow may use these. */
    size_t from, gap_at, gap;
};

/* Allocates what flows are written from, at the first gather. */
int slu_flow_prepare(struct slu_group *group);
/* Returns the bytes of the next chunk. */
static inline size_t slu_flow_next(const struct slu_flow *flow)
{
    size_t left = flow->bytes - flow->done;

    return left < SLU_CHUNK_MOST ? left : SLU_CHUNK_MOST;
}
/*
 * Where members change, a window may be that of another rank until this rank has reached the
 * generation. So the other one waits for a word of this one before its first chunk: this writes it,
 * if there is room and it was not written yet.
 */
void slu_flow_invite(const struct slu_group *group, uint32_t rank);
/*
 * Ends the last give, and returns 1 if the next chunk may be given, or has come and may be taken;
 * 0 if not yet; or an error.
 */
int slu_flow_poll(struct slu_group *group, struct slu_flow *flow);
/* Returns where the bytes of the next chunk are, behind its head. */
uint8_t *slu_flow_chunk(const struct slu_group *group, const struct slu_flow *flow);
/* Gives the next chunk. */
void slu_flow_give(struct slu_group *group, struct slu_flow *flow, uint64_t call);
/* Reads the description of the call from the next chunk. */
uint64_t slu_flow_call(const struct slu_group *group, const struct slu_flow *flow);
/* Goes on behind the next chunk, which was copied. */
void slu_flow_take(struct slu_group *group, struct slu_flow *flow);
/*
 * Waits until step() returns 1 or an error. step() moves what it can, and returns 0 if some flows
 * have not ended.
 */
int slu_flow_run(struct slu_group *group, int (*step)(void *argument), void *argument,
                 struct slu_flow *const *flows, uint32_t count);

#endif
