/* SPDX-License-Identifier: MIT */
/*
 * The reason why a rank gave up for another one, which is sent before the mark. It tells the rank
 * that others gave up for what it did: nobody else knows. The word of a peer only selects one of
 * the texts below.
 */
#include "config.h"

#include <stdio.h>

#include "node/node.h"

/* Set in a reason, to tell it from the number of a lost rank, which is never so high. */
#define IS_REASON (UINT32_C(1) << 31)

static const char *const texts[SLU_ABORT_REASONS] = {
    [SLU_ABORT_UNKNOWN] = "",
    [SLU_ABORT_LATE] = ": it did not come in time",
    [SLU_ABORT_NO_ANSWER] = ": it did not answer",
    [SLU_ABORT_NOT_NOTIFIED] = ": it sent nothing in time",
    [SLU_ABORT_QUEUE_FULL] = ": it did not take in time what was written or sent to it",
    [SLU_ABORT_LOST] = ": the connection to it had ended",
    [SLU_ABORT_RECONNECTED] = ": the connection to it was made new",
    [SLU_ABORT_OTHER_CALL] = ": it was in another call",
    [SLU_ABORT_NO_RESET] = ": it had not reset its barriers",
    [SLU_ABORT_INVALID] = ": it wrote an invalid word",
    [SLU_ABORT_HELD_UP] = ": it came, but a message that it had sent before waits for a receive",
};

uint32_t slu_abort_reason_encode(enum slu_abort_reason reason)
{
    return IS_REASON | (uint32_t)reason;
}

enum slu_abort_reason slu_abort_reason_read(const struct sluice_node *node, uint32_t rank)
{
    uint64_t word = slu_node_word_read(node, rank, SLU_FAREWELL_AT);
    uint32_t low = (uint32_t)word;

    if (word >> 32 != node->generation || (low & IS_REASON) == 0 ||
        (low & ~IS_REASON) >= SLU_ABORT_REASONS)
        return SLU_ABORT_UNKNOWN;
    return (enum slu_abort_reason)(low & ~IS_REASON);
}

const char *slu_abort_reason_text(enum slu_abort_reason reason)
{
    return texts[reason];
}

const char *slu_abort_reason_own(const struct sluice_node *node, uint32_t rank)
{
    return slu_peer_has_message(&slu_node_engine(node)->peers[rank])
               ? "; a message that this rank sent it before waits for its receive"
               : "";
}

const char *slu_node_rank_name(const struct sluice_node *node, uint32_t rank,
                               char text[SLU_RANK_BYTES])
{
    if (rank == node->rank)
        snprintf(text, SLU_RANK_BYTES, "this rank");
    else
        snprintf(text, SLU_RANK_BYTES, "rank %u", rank);
    return text;
}
