/* SPDX-License-Identifier: MIT */
/*
 * Which rank is missing, when the time of a barrier or a gather is up. The one that was
 * waited for may have come, and wait for another one itself; so all ranks of the group are
 * asked whether they are inside of one: their states are read from their memory,
 * which needs nothing of their programs. Only what was read is told, and if it
 * accuses nobody, nobody is accused.
 *
 * A rank that is outside may have left already, while what it wrote to us waits behind a
 * message for which this rank has posted no receive. So its state names the call that it was
 * in, and the rank that we wait for is asked, too, what it has told us.
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
    LEFT, /* so all have come */
    CAME,
    UNKNOWN, /* it cannot be asked */
    SILENT,
    MISSING,
};

/* What is asked of a rank. */
enum question { STATE, TOLD };

static const uint32_t answers_at[] = {
    [STATE] = SLU_STATE_ANSWER_AT, [TOLD] = SLU_PUBLISHED_ANSWER_AT};

/* What we have there is our block; the state is in the block that the rank has of itself. */
static uint64_t address_of(const struct sluice_node *node, uint32_t rank, enum question question)
{
    const struct slu_rank *peer = &node->peers[rank];

    if (question == TOLD)
        return peer->addr + SLU_PUBLISHED_AT;
    return peer->addr + (uint64_t)rank * peer->block_bytes -
           (uint64_t)node->rank * peer->block_bytes + SLU_STATE_AT;
}

static uint64_t *answer_of(const struct sluice_node *node, uint32_t rank, enum question question)
{
    char *blocks = sluice_mr_addr(node->blocks);
    void *word = blocks + (size_t)rank * SLU_BLOCK_BYTES + answers_at[question];

    return word;
}

/* A read that it does not permit would end the connection. */
static bool may_ask(const struct sluice_node *node, uint32_t rank)
{
    uint64_t addr = address_of(node, rank, STATE);

    return slu_node_connected(node, rank) && addr + WORD_BYTES > addr &&
           (slu_node_engine(node)->peers[rank].probe.access & SLUICE_ACCESS_REMOTE_READ) != 0;
}

/* There is room. */
static void ask(struct sluice_node *node, uint32_t rank, enum question question)
{
    uint64_t *answer = answer_of(node, rank, question);
    const struct sluice_request request = {.opcode = SLUICE_OP_READ,
                                           .peer = rank,
                                           .sge = {.addr = (uintptr_t)answer,
                                                   .length = WORD_BYTES,
                                                   .lkey = sluice_mr_lkey(node->blocks)},
                                           .sge_count = 1,
                                           .remote = {.addr = address_of(node, rank, question),
                                                      .length = WORD_BYTES,
                                                      .rkey = node->peers[rank].rkey}};

    __atomic_store_n(answer, NO_ANSWER, __ATOMIC_RELEASE);
    node->peers[rank].query_ids[question] = slu_post_detached(slu_node_engine(node), &request);
}

static bool is_pending(struct sluice_node *node, uint32_t rank, enum question question)
{
    return slu_is_pending(slu_node_engine(node), node->peers[rank].query_ids[question]);
}

/* What was answered; NO_ANSWER: nothing was. */
static uint64_t read_answer(struct sluice_node *node, uint32_t rank, enum question question)
{
    if (node->peers[rank].query_ids[question] == 0 || is_pending(node, rank, question))
        return NO_ANSWER;
    return be64toh(sluice_load_acquire64(answer_of(node, rank, question)));
}

/* The answers to questions of before count for nothing. */
static void forget_answer(struct sluice_node *node, uint32_t rank, enum question question)
{
    if (!is_pending(node, rank, question))
        node->peers[rank].query_ids[question] = 0;
}

/* Whether nothing more is to be waited for. */
static bool is_asked(struct sluice_node *node, uint32_t rank, enum question question)
{
    const uint64_t *asked = &node->peers[rank].query_ids[question];

    if (rank == node->rank || !may_ask(node, rank))
        return true;
    if (*asked == 0 && slu_has_room(slu_node_engine(node), rank, 1))
        ask(node, rank, question);
    return *asked != 0 && !is_pending(node, rank, question);
}

static bool all_asked(void *argument)
{
    const struct slu_group *group = argument;
    bool all = true;

    for (uint32_t i = 0; i < group->count; i++)
        all &= is_asked(group->node, slu_group_rank(group, i), STATE);
    return all;
}

static void ask_all(struct slu_group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        forget_answer(group->node, slu_group_rank(group, i), STATE);
    slu_wait(slu_node_engine(group->node), all_asked, group, slu_now() + SLU_ABORT_TIMEOUT);
}

/* The rank that is waited for. */
struct late {
    struct slu_group *group;
    uint32_t rank;
};

static bool has_said(void *argument)
{
    const struct late *late = argument;

    return is_asked(late->group->node, late->rank, TOLD);
}

/*
 * A rank that is outside. Its state names the last call that it was in: this one, the one
 * before, of which it knows no more, or one of other ranks.
 */
static enum verdict judge_outside(const struct slu_group *group, uint32_t state)
{
    const struct slu_tally *own = &group->node->last;
    uint16_t count = (state >> 2) % (SLU_TALLY_MOST + 1);

    if (state >> 2 == 0)
        return MISSING;
    if (state >> 16 != own->tag || count == 0 || own->count == 0)
        return UNKNOWN;
    if (count == own->count)
        return LEFT;
    return own->count == count % SLU_TALLY_MOST + 1 ? MISSING : UNKNOWN;
}

/* A rank that has given up had come. One of another generation is not where we are. */
static enum verdict classify(const struct slu_group *group, uint32_t rank)
{
    struct sluice_node *node = group->node;
    uint64_t word = read_answer(node, rank, STATE);
    uint32_t state = (uint32_t)word % 4;

    if (rank == node->rank)
        return CAME;
    if (node->peers[rank].query_ids[STATE] == 0)
        return slu_node_connected(node, rank) ? UNKNOWN : SILENT;
    if (word == NO_ANSWER)
        return SILENT;
    if (word >> 32 != node->generation)
        return MISSING;
    if (state == SLU_NODE_INSIDE || state == SLU_NODE_GAVE_UP)
        return CAME;
    return judge_outside(group, (uint32_t)word);
}

/* Whether it has written to us what we wait for, as it says itself: LEFT, MISSING, or UNKNOWN. */
static enum verdict ask_awaited(struct slu_group *group, uint32_t rank)
{
    struct sluice_node *node = group->node;
    struct late late = {group, rank};
    uint64_t word;
    uint16_t ahead;

    forget_answer(node, rank, TOLD);
    slu_wait(slu_node_engine(node), has_said, &late, slu_now() + SLU_ABORT_TIMEOUT);
    word = read_answer(node, rank, TOLD);
    ahead = group->gathering ? (uint16_t)((uint16_t)word - (uint16_t)node->round)
                             : (uint16_t)((uint16_t)(word >> 16) - node->peers[rank].expected);
    if (word == NO_ANSWER)
        return UNKNOWN;
    return word >> 32 == node->generation && ahead <= 1 ? LEFT : MISSING;
}

/* One that is inside, or was in a call of others, may have written what has not arrived. */
static enum verdict judge_awaited(struct slu_group *group, uint32_t rank)
{
    enum verdict verdict = classify(group, rank), told;

    if (verdict != CAME && verdict != UNKNOWN)
        return verdict;
    told = ask_awaited(group, rank);
    return told == LEFT || verdict == UNKNOWN ? told : verdict;
}

/* The first rank that the worst is known of; none is missing from where one has left. */
static enum verdict find_culprit(struct slu_group *group, uint32_t awaited, uint32_t *culprit)
{
    enum verdict worst = judge_awaited(group, awaited);

    *culprit = awaited;
    for (uint32_t i = 0; i < group->count && worst != LEFT; i++) {
        uint32_t rank = slu_group_rank(group, i);
        enum verdict verdict = rank == awaited ? worst : classify(group, rank);

        if (verdict == LEFT || verdict > worst) {
            worst = verdict;
            *culprit = rank;
        }
    }
    return worst;
}

/* It came, and its word is not here: what it sent before holds it up, or the network does. */
static enum slu_abort_reason say_behind(const struct slu_group *group, uint32_t rank)
{
    const struct slu_peer *peer = &slu_node_engine(group->node)->peers[rank];

    if (slu_peer_has_posted(peer, SLU_RECEIVE_QUEUE)) {
        slu_fail(ETIMEDOUT, "what rank %u wrote for the %s of %u ranks did not arrive in time",
                 rank, slu_group_name(group), group->count);
        return SLU_ABORT_NOT_NOTIFIED;
    }
    slu_fail(ETIMEDOUT,
             "rank %u came to the %s of %u ranks, but what it wrote waits behind a message that it "
             "had sent before: this rank has posted no receive for it",
             rank, slu_group_name(group), group->count);
    return SLU_ABORT_HELD_UP;
}

/* Nobody is to be accused. */
static enum slu_abort_reason say_unheard(const struct slu_group *group, uint32_t rank)
{
    slu_fail(ETIMEDOUT,
             "nothing was heard in time from rank %u, of %s %s of %u ranks; it may itself have "
             "waited for another one%s",
             rank, group->gathering ? "an" : "a", slu_group_name(group), group->count,
             slu_abort_reason_own(group->node, rank));
    return SLU_ABORT_NOT_NOTIFIED;
}

static enum slu_abort_reason say_missing(const struct slu_group *group, uint32_t rank,
                                         enum verdict verdict)
{
    const char *name = slu_group_name(group);

    if (verdict == SILENT) {
        slu_fail(ETIMEDOUT,
                 "rank %u does not answer, and may not have come to the %s of %u ranks%s", rank,
                 name, group->count, slu_abort_reason_own(group->node, rank));
        return SLU_ABORT_NO_ANSWER;
    }
    slu_fail(ETIMEDOUT, "rank %u did not come to the %s of %u ranks in time", rank, name,
             group->count);
    return SLU_ABORT_LATE;
}

/* What the group waits for may be here by now: a rank that came while we asked let others leave. */
static bool has_arrived(void *argument)
{
    const struct late *late = argument;

    return slu_node_poll(late->group, late->rank) != 0;
}

int slu_missing_rank_blame(struct slu_group *group, uint32_t rank)
{
    struct late late = {group, rank};
    uint32_t culprit;
    enum slu_abort_reason reason;
    enum verdict verdict;

    ask_all(group);
    verdict = find_culprit(group, rank, &culprit);
    /* What was told at last is still on its way. */
    if (verdict == LEFT && culprit == rank)
        slu_wait(slu_node_engine(group->node), has_arrived, &late, slu_now() + SLU_ABORT_TIMEOUT);
    if (verdict == LEFT && culprit == rank && !has_arrived(&late)) {
        reason = say_behind(group, rank);
    } else if (verdict < SILENT || has_arrived(&late)) {
        culprit = rank;
        reason = say_unheard(group, rank);
    } else {
        reason = say_missing(group, culprit, verdict);
    }
    return slu_abort_blame_rank(group, culprit, reason, -ETIMEDOUT);
}
