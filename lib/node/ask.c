/* SPDX-License-Identifier: MIT */
/*
 * Who is missing, when the time of a barrier or an allgather is up. Who was waited
 * for may have come, and wait for another one itself; so all ranks of the group are
 * asked whether they are inside of one: their states are read from their memory,
 * which needs nothing of their programs. Only what was read is told, and if it
 * accuses nobody, nobody is accused.
 *
 * A question has no deadline, as a notification has none: it must not end the
 * connection of a rank that is only stopped. So an answer may come at any later
 * time, into the block of its rank, and a rank is not asked again before.
 */
#include "config.h"

#include <endian.h>

#include "node/node.h"

#define WORD_BYTES 8
/* No rank has such a state. */
#define NO_ANSWER UINT64_MAX

enum verdict {
    CAME,
    UNKNOWN, /* it cannot be asked */
    SILENT,
    MISSING,
};

static uint64_t *answer_of(const struct sluice_node *node, uint32_t rank)
{
    char *blocks = sluice_mr_addr(node->blocks);
    void *word = blocks + (size_t)rank * SLU_BLOCK_BYTES + SLU_ANSWER_AT;

    return word;
}

/* What we have there is our block; the state is in the block that the rank has of itself. */
static uint64_t state_addr(const struct sluice_node *node, uint32_t rank)
{
    const struct slu_rank *peer = &node->peers[rank];

    return peer->addr + (uint64_t)rank * peer->block_bytes -
           (uint64_t)node->rank * peer->block_bytes + SLU_STATE_AT;
}

/* A read that it does not permit would end the connection. */
static bool may_ask(const struct sluice_node *node, uint32_t rank)
{
    uint64_t addr = state_addr(node, rank);

    return slu_node_connected(node, rank) && addr + WORD_BYTES > addr &&
           (slu_node_engine(node)->peers[rank].probe.access & SLUICE_ACCESS_REMOTE_READ) != 0;
}

/* There is room. */
static void ask(struct sluice_node *node, uint32_t rank)
{
    uint64_t *answer = answer_of(node, rank);
    const struct sluice_request request = {.opcode = SLUICE_OP_READ,
                                           .peer = rank,
                                           .sge = {.addr = (uintptr_t)answer,
                                                   .length = WORD_BYTES,
                                                   .lkey = sluice_mr_lkey(node->blocks)},
                                           .sge_count = 1,
                                           .remote = {.addr = state_addr(node, rank),
                                                      .length = WORD_BYTES,
                                                      .rkey = node->peers[rank].rkey}};

    __atomic_store_n(answer, NO_ANSWER, __ATOMIC_RELEASE);
    node->peers[rank].asked = slu_post_detached(slu_node_engine(node), &request);
}

static bool is_pending(struct sluice_node *node, uint32_t rank)
{
    return slu_is_pending(slu_node_engine(node), node->peers[rank].asked);
}

/* Whether nothing more is to be waited for. */
static bool is_asked(struct sluice_node *node, uint32_t rank)
{
    struct slu_rank *peer = &node->peers[rank];

    if (rank == node->rank || !may_ask(node, rank))
        return true;
    if (peer->asked == 0 && slu_has_room(slu_node_engine(node), rank, 1))
        ask(node, rank);
    return peer->asked != 0 && !is_pending(node, rank);
}

static bool all_asked(void *argument)
{
    const struct slu_group *group = argument;
    bool all = true;

    for (uint32_t i = 0; i < group->count; i++)
        all &= is_asked(group->node, slu_group_rank(group, i));
    return all;
}

/* The answers to questions of before count for nothing. */
static void ask_all(struct slu_group *group)
{
    struct sluice_node *node = group->node;

    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t rank = slu_group_rank(group, i);

        if (!is_pending(node, rank))
            node->peers[rank].asked = 0;
    }
    slu_wait(slu_node_engine(node), all_asked, group, slu_now() + SLU_TELL_TIME);
}

/* A rank that has given up had come. One of another generation is not where we are. */
static enum verdict classify(struct sluice_node *node, uint32_t rank)
{
    uint64_t word = be64toh(sluice_load_acquire64(answer_of(node, rank)));
    uint32_t state = (uint32_t)word;

    if (rank == node->rank)
        return CAME;
    if (node->peers[rank].asked == 0)
        return slu_node_connected(node, rank) ? UNKNOWN : SILENT;
    if (is_pending(node, rank) || word == NO_ANSWER)
        return SILENT;
    if (word >> 32 == node->generation && (state == SLU_NODE_INSIDE || state == SLU_NODE_GAVE_UP))
        return CAME;
    return MISSING;
}

/* The first rank that the worst is known of. */
static enum verdict find_culprit(const struct slu_group *group, uint32_t *culprit)
{
    enum verdict worst = CAME;

    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t rank = slu_group_rank(group, i);
        enum verdict verdict = classify(group->node, rank);

        if (verdict > worst) {
            worst = verdict;
            *culprit = rank;
        }
    }
    return worst;
}

int slu_ask_late(struct slu_group *group, uint32_t rank)
{
    const char *name = slu_group_name(group);
    uint32_t culprit = rank;
    enum slu_why why;
    enum verdict verdict;

    ask_all(group);
    verdict = find_culprit(group, &culprit);
    /* Who comes while we ask lets others leave, who are then outside, too. */
    if (verdict < SILENT || slu_notify_look(group, rank) != 0) {
        culprit = rank;
        why = SLU_WHY_UNHEARD;
        slu_fail(ETIMEDOUT,
                 "nothing was heard in time from rank %u, of %s of %u ranks; it may itself have "
                 "waited for another one",
                 culprit, group->gathering ? "an allgather" : "a barrier", group->count);
    } else if (verdict == SILENT) {
        why = SLU_WHY_SILENT;
        slu_fail(ETIMEDOUT, "rank %u does not answer, and may not have come to the %s of %u ranks",
                 culprit, name, group->count);
    } else {
        why = SLU_WHY_LATE;
        slu_fail(ETIMEDOUT, "rank %u did not come to the %s of %u ranks in time", culprit, name,
                 group->count);
    }
    return slu_notify_blame(group, group->node->rank, culprit, why, -ETIMEDOUT);
}
