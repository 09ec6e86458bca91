/* SPDX-License-Identifier: MIT */
/*
 * Why a rank gave up for another one, as it is told beside its mark: so the rank that
 * it gave up for, of which nobody else knows more, learns what it did. What a peer
 * wrote chooses among our words, and nothing else.
 */
#include "config.h"

#include <stdio.h>

#include "node/node.h"

/* Of what is told, to tell it from a rank that was lost; no rank is so high. */
#define IS_WHY (UINT32_C(1) << 31)

static const char *const words[SLU_WHYS] = {
    [SLU_WHY_UNKNOWN] = "",
    [SLU_WHY_LATE] = ": it did not come in time",
    [SLU_WHY_SILENT] = ": it did not answer",
    [SLU_WHY_UNHEARD] = ": nothing was heard from it in time",
    [SLU_WHY_FULL] = ": it did not take in time what was written or sent to it",
    [SLU_WHY_LOST] = ": the connection to it had ended",
    [SLU_WHY_RECONNECTED] = ": the connection to it was made new",
    [SLU_WHY_ELSEWHERE] = ": it was in another call",
    [SLU_WHY_NO_RESET] = ": it had not reset its barriers",
    [SLU_WHY_INVALID] = ": it wrote what no rank writes",
    [SLU_WHY_BEHIND] = ": it came, but a message that it had sent before waits for a receive",
};

uint32_t slu_why_word(enum slu_why why)
{
    return IS_WHY | (uint32_t)why;
}

enum slu_why slu_why_read(const struct sluice_node *node, uint32_t rank)
{
    uint64_t word = slu_notify_read(node, rank, SLU_FAREWELL_AT);
    uint32_t low = (uint32_t)word;

    if (word >> 32 != node->generation || (low & IS_WHY) == 0 || (low & ~IS_WHY) >= SLU_WHYS)
        return SLU_WHY_UNKNOWN;
    return (enum slu_why)(low & ~IS_WHY);
}

const char *slu_why_words(enum slu_why why)
{
    return words[why];
}

const char *slu_why_own(const struct sluice_node *node, uint32_t rank)
{
    return slu_peer_has_message(&slu_node_engine(node)->peers[rank])
               ? "; a message that this rank sent it before waits for its receive"
               : "";
}

const char *slu_node_say_rank(const struct sluice_node *node, uint32_t rank,
                              char text[SLU_RANK_BYTES])
{
    if (rank == node->rank)
        snprintf(text, SLU_RANK_BYTES, "this rank");
    else
        snprintf(text, SLU_RANK_BYTES, "rank %u", rank);
    return text;
}
