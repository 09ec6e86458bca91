/* SPDX-License-Identifier: MIT */
/*
 * Checks whether the word that a call waits for has come from a rank: its count of notifications
 * for a barrier, its piece for a gather. Every word is checked, since a peer may write anything.
 */
#include "config.h"

#include "node/node.h"

static int fail_other(struct slu_group *group, uint32_t rank)
{
    return slu_abort_blame_rank(
        group, rank, SLU_ABORT_OTHER_CALL,
        slu_fail(EPROTO,
                 "rank %u is in another barrier than this rank: of other ranks, by "
                 "another algorithm, or at the end of its node",
                 rank));
}

/*
 * Returns 1 if a rank has notified this one as often as it was waited for, 0 if not, or an error. A
 * rank that is ahead has left this barrier, so it was in it.
 */
static int poll_count(struct slu_group *group, uint32_t rank)
{
    const struct sluice_node *node = group->node;
    struct slu_rank *peer = &node->peers[rank];
    uint64_t word = slu_node_word_read(node, rank, SLU_COUNT_AT);
    uint16_t ahead = slu_node_word_ahead(peer, word);

    if (word >> 32 < node->generation && slu_node_word_is_valid(node, word) && !peer->seen)
        return 0;
    if (word >> 32 > node->generation && slu_node_word_is_valid(node, word))
        return slu_abort_fail_reset(group, rank);
    /* Valid: one notification is missing, none is, or the rank is in the next barrier already. */
    if (word >> 32 != node->generation || (uint16_t)(ahead + 1) > 2)
        return slu_abort_fail_invalid(group, rank, "count", word);
    peer->seen = true;
    if (ahead == 0 && (uint16_t)(word >> 16) != group->tag)
        return fail_other(group, rank);
    return ahead != UINT16_MAX;
}

uint32_t slu_node_next_piece(const struct sluice_node *node, uint32_t rank)
{
    return node->by_tree ? node->peers[rank].taken + 1 : node->round;
}

static bool has_piece(const struct sluice_node *node, uint32_t rank, uint32_t number)
{
    return slu_node_word_read(node, rank, slu_number_at(node, number)) ==
           slu_node_word(node, number);
}

static int poll_piece(struct slu_group *group, uint32_t rank)
{
    const struct sluice_node *node = group->node;
    uint32_t number = slu_node_next_piece(node, rank);
    uint64_t word = slu_node_word_read(node, rank, slu_number_at(node, number));
    bool known = slu_node_word_is_valid(node, word);

    if (word == slu_node_word(node, number))
        return 1;
    if (word == slu_node_word(node, number - 2) ||
        (known && word >> 32 < node->generation && number <= 2))
        return 0;
    if (known && word >> 32 > node->generation)
        return slu_abort_fail_reset(group, rank);
    return slu_abort_fail_invalid(group, rank, "piece number", word);
}

int slu_node_poll(struct slu_group *group, uint32_t rank)
{
    return SLU_UNLIKELY(group->gathering) ? poll_piece(group, rank) : poll_count(group, rank);
}

/* A rank that is in the next call has left this one, but then what this rank waits for is here. */
bool slu_node_is_elsewhere(const struct slu_group *group, uint32_t rank)
{
    const struct sluice_node *node = group->node;
    uint64_t word;

    if (!group->gathering)
        return has_piece(node, rank, slu_node_next_piece(node, rank) + !node->by_tree);
    word = slu_node_word_read(node, rank, SLU_COUNT_AT);
    return word >> 32 == node->generation && slu_node_word_ahead(&node->peers[rank], word) == 1;
}
