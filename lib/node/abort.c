/* SPDX-License-Identifier: MIT */
/*
 * How barriers break: a rank that gives up writes a mark to all ranks, which names itself and
 * the rank that it gave up for. Every wait checks the marks of the others, and fails as they
 * did. The reason is sent before the mark: it tells the rank that others gave up for what it did.
 * The word of a peer only selects one of the texts below.
 *
 * Beside the reason is how many calls of all ranks the rank had completed. So a rank that waits in
 * one of these knows that all have come to it, and that the mark is of a later call.
 *
 * A rank that passes a mark on writes its own number beside it, and not that of the rank which gave
 * up. The mark means that it completes no further call itself. A rank in an earlier call may
 * ignore that: it waits only for ranks that have not completed this call, along a chain whose last
 * one is the rank that gave up or is missing. All of these have a lower number, and each tells the
 * one that waits for it.
 */
#include "config.h"

#include <stdio.h>

#include "node/node.h"

/* Set in a mark if two ranks are in different calls. No generation is so high. */
#define DISAGREED (UINT64_C(1) << 63)

/* Set in a reason, to tell it from the number of a lost rank, which is never so high. */
#define IS_REASON (UINT32_C(1) << 31)
#define REASON_BITS 8 /* then 16 bits with the number of completed calls */

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

/* Reads the word that a rank sent with its mark. Returns false if there is none. */
static bool read_word(const struct sluice_node *node, uint32_t rank, uint32_t *low)
{
    uint64_t word = slu_node_word_read(node, rank, SLU_FAREWELL_AT);

    *low = (uint32_t)word & ~IS_REASON;
    return word >> 32 == node->generation && ((uint32_t)word & IS_REASON) != 0;
}

/* Returns the reason that a rank sent with its mark, or UNKNOWN. */
static enum slu_abort_reason read_reason(const struct sluice_node *node, uint32_t rank)
{
    uint32_t low;

    if (!read_word(node, rank, &low) || low % (1U << REASON_BITS) >= SLU_ABORT_REASONS)
        return SLU_ABORT_UNKNOWN;
    return (enum slu_abort_reason)(low % (1U << REASON_BITS));
}

/* Tells whether a rank that gave up had completed the call of this group before. */
static bool has_completed(const struct slu_group *group, uint32_t rank)
{
    uint32_t low;

    return group->call != 0 && read_word(group->node, rank, &low) &&
           (int16_t)(uint16_t)((low >> REASON_BITS) - group->call) >= 0;
}

static uint32_t make_reason(const struct slu_group *group)
{
    uint32_t completed = group->node->calls - (group->call != 0);

    return IS_REASON | (completed & 0xffff) << REASON_BITS | (uint32_t)group->reason;
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

/* A word that is being written to all ranks: a mark, or a farewell. */
struct announcement {
    struct sluice_node *node;
    uint32_t at;
    uint64_t word;
    uint64_t reason; /* written before the word, if there is room for both; 0: none */
};

/*
 * The send queue must have room for one request. The reason is left out if there is room for no
 * more than that: a stopped peer may take nothing for long, and the mark matters more.
 */
static void announce_to(const struct announcement *announcement, uint32_t rank)
{
    struct sluice_node *node = announcement->node;
    struct slu_engine *engine = slu_node_engine(node);

    if (announcement->reason != 0 && slu_has_room(engine, rank, 2))
        slu_node_word_write(node, rank, SLU_FAREWELL_AT, announcement->reason);
    if (slu_node_connected(node, rank) && slu_has_room(engine, rank, 1))
        node->peers[rank].abort_id =
            slu_node_word_write(node, rank, announcement->at, announcement->word);
}

static bool is_announced(const struct announcement *announcement, uint32_t rank)
{
    struct sluice_node *node = announcement->node;
    struct slu_engine *engine = slu_node_engine(node);
    struct slu_rank *peer = &node->peers[rank];

    if (rank == node->rank || !slu_node_connected(node, rank))
        return true;
    if (peer->abort_id == 0 && slu_has_room(engine, rank, 1))
        announce_to(announcement, rank);
    return peer->abort_id != 0 && !slu_is_pending(engine, peer->abort_id);
}

/* Under a limit of connections, that to a rank which waits may have been closed. */
static bool is_announced_to_used(const struct announcement *announcement)
{
    const struct sluice_node *node = announcement->node;
    bool all = true;

    if (slu_deferred_is_limited(slu_node_engine(node)->cq->deferred))
        for (uint32_t i = 0; i < node->ranks; i++)
            all &= is_announced(announcement, i);
    return all;
}

/*
 * In a lazy node, the word goes to ranks that have a connection to this one, even if this one has
 * not used it, and to the neighbours in the tree, which may come late.
 */
static bool is_lazy_announced(const struct announcement *announcement)
{
    struct sluice_node *node = announcement->node;
    struct slu_engine *engine = slu_node_engine(node);
    const struct slu_tree *tree = &node->tree;
    bool all = is_announced_to_used(announcement);
    uint32_t count;
    const uint16_t *live = slu_deferred_live(engine->cq->deferred, &count);

    /* The use of a rank can take it off the list, and another one is missed: until the next try. */
    for (uint32_t i = 0; i < count; i++)
        if (slu_peer_takes(engine, &engine->peers[live[i]]))
            all &= is_announced(announcement, live[i]);
    if (!node->tree_made)
        return all;
    if (tree->parent != SLU_NONE && slu_peer_takes(engine, &engine->peers[tree->parent]))
        all &= is_announced(announcement, tree->parent);
    for (uint32_t i = 0; i < tree->child_count; i++)
        if (slu_peer_takes(engine, &engine->peers[tree->children[i].rank]))
            all &= is_announced(announcement, tree->children[i].rank);
    return all;
}

static bool all_announced(void *argument)
{
    const struct announcement *announcement = argument;
    bool all = true;

    if (announcement->node->connector != NULL)
        return is_lazy_announced(announcement);
    for (uint32_t i = 0; i < announcement->node->ranks; i++)
        all &= is_announced(announcement, i);
    return all;
}

/* Best effort, since ranks may be stopped or lost. Leaves the thread's text as it is. */
static void announce(struct announcement *announcement)
{
    struct slu_text text;

    slu_text_save(&text);
    slu_wait(slu_node_engine(announcement->node), all_announced, announcement,
             slu_now() + SLU_ABORT_TIMEOUT);
    slu_text_restore(&text);
}

/* A rank may give up before its first call of all ranks: it tells its neighbours all the same. */
static void find_neighbours(struct sluice_node *node)
{
    struct slu_text text;

    slu_text_save(&text);
    (void)slu_node_make_tree(node);
    slu_text_restore(&text);
}

void slu_abort_announce(const struct slu_group *group)
{
    uint64_t word = slu_node_word(group->node, group->quitter << 16 | group->culprit);
    struct announcement announcement = {.node = group->node,
                                        .at = SLU_MARK_AT,
                                        .word = group->disagreed ? word | DISAGREED : word,
                                        .reason = slu_node_word(group->node, make_reason(group))};

    group->node->broken = true;
    slu_node_publish_state(group->node, SLU_NODE_GAVE_UP);
    find_neighbours(group->node);
    announce(&announcement);
}

/*
 * If the barriers were broken, the mark has said more than a farewell does. A loss before the last
 * reset is known to all ranks that continue.
 */
void slu_abort_farewell(struct sluice_node *node)
{
    const struct slu_engine *engine = slu_node_engine(node);
    struct announcement announcement = {.node = node, .at = SLU_FAREWELL_AT};
    uint32_t lost = SLU_NONE;

    for (uint32_t i = 0; i < node->ranks; i++) {
        const struct slu_peer *peer = &engine->peers[i];

        if (i == node->rank || peer->state != SLUICE_STATE_FAILED ||
            peer->failed_at < node->reset_at)
            continue;
        if (lost == SLU_NONE || peer->failed_at < engine->peers[lost].failed_at)
            lost = i;
    }
    if (lost == SLU_NONE || node->broken)
        return;
    /* If that one had left because of another, the other is what all should hear of. */
    announcement.word = slu_node_word(node, slu_node_lost_by(node, lost));
    announce(&announcement);
}

int slu_abort_blame(struct slu_group *group, uint32_t quitter, uint32_t culprit,
                    enum slu_abort_reason reason, int error)
{
    group->quitter = quitter;
    group->culprit = culprit;
    group->reason = reason;
    return error;
}

int slu_abort_blame_rank(struct slu_group *group, uint32_t culprit, enum slu_abort_reason reason,
                         int error)
{
    return slu_abort_blame(group, group->node->rank, culprit, reason, error);
}

int slu_abort_fail_invalid(struct slu_group *group, uint32_t rank, const char *what, uint64_t word)
{
    return slu_abort_blame_rank(group, rank, SLU_ABORT_INVALID,
                                slu_fail(EPROTO, "rank %u wrote an invalid %s: %#llx", rank, what,
                                         (unsigned long long)word));
}

/* The rank continues with barriers that this rank does not know of. */
int slu_abort_fail_reset(struct slu_group *group, uint32_t rank)
{
    slu_fail(ECANCELED, "rank %u has reset its barriers, this rank has not", rank);
    return slu_abort_blame(group, rank, group->node->rank, SLU_ABORT_NO_RESET, -ECANCELED);
}

/* All ranks of the node learn that two ranks disagree, whichever of them noticed it. */
static int fail_disagreed(struct slu_group *group, uint32_t quitter, uint32_t culprit)
{
    char names[2][SLU_RANK_BYTES];

    slu_fail(EPROTO, "%s and %s are in different calls, or do not agree on the bytes of a value",
             slu_node_rank_name(group->node, quitter, names[0]),
             slu_node_rank_name(group->node, culprit, names[1]));
    group->disagreed = true;
    return slu_abort_blame(group, quitter, culprit, SLU_ABORT_OTHER_CALL, -EPROTO);
}

static int fail_aborted(struct slu_group *group, uint32_t quitter, uint32_t culprit,
                        enum slu_abort_reason reason)
{
    char names[2][SLU_RANK_BYTES];

    slu_node_rank_name(group->node, quitter, names[0]);
    slu_node_rank_name(group->node, culprit, names[1]);
    if (culprit == quitter)
        slu_fail(ECANCELED, "%s gave up its barriers", names[0]);
    else
        slu_fail(ECANCELED, "%s gave up its barriers, because of %s%s", names[0], names[1],
                 texts[reason]);
    return slu_abort_blame(group, quitter, culprit, reason, -ECANCELED);
}

/* Returns 0 if no mark of the rank is here. */
static int check_mark(struct slu_group *group, uint32_t rank)
{
    const struct sluice_node *node = group->node;
    uint64_t read = slu_node_word_read(node, rank, SLU_MARK_AT), word = read & ~DISAGREED;
    uint32_t quitter = (uint32_t)word >> 16;
    uint32_t culprit = (uint32_t)word & 0xffff;

    if (SLU_LIKELY(word >> 32 < node->generation && slu_node_word_is_valid(node, word)))
        return 0;
    if (!slu_node_word_is_valid(node, word) || quitter >= node->ranks || culprit >= node->ranks)
        return slu_abort_fail_invalid(group, rank, "mark", read);
    if (word >> 32 > node->generation)
        return slu_abort_fail_reset(group, rank);
    if (has_completed(group, rank))
        return 0;
    if (read != word)
        return fail_disagreed(group, quitter, culprit);
    return fail_aborted(group, quitter, culprit, read_reason(node, rank));
}

static bool is_in(const struct slu_group *group, uint32_t rank)
{
    return slu_group_rank(group, slu_group_position(group, rank)) == rank;
}

/*
 * Most ranks of a lazy node can have written nothing here, since neither side has connected to the
 * other. If one of these gives up, others pass that on. Under a limit, one that has written may be
 * without a connection by now.
 */
static int check_live_marks(struct slu_group *group)
{
    uint32_t count;
    const uint16_t *live = slu_deferred_live(slu_node_engine(group->node)->cq->deferred, &count);
    int error = 0;

    for (uint32_t i = 0; i < count && error == 0; i++)
        if (live[i] != group->node->rank && is_in(group, live[i]))
            error = check_mark(group, live[i]);
    return error;
}

int slu_abort_check_marks(struct slu_group *group)
{
    const struct slu_engine *engine = slu_node_engine(group->node);
    int error = 0;

    if (group->node->connector != NULL && !slu_deferred_is_limited(engine->cq->deferred))
        return check_live_marks(group);
    for (uint32_t i = 0; i < group->count && error == 0; i++)
        if (i != group->self)
            error = check_mark(group, slu_group_rank(group, i));
    return error;
}

int slu_group_enter(struct slu_group *group)
{
    struct sluice_node *node = group->node;
    int error;

    if (group->count != slu_node_count(node))
        return 0;
    group->call = ++node->calls;
    error = slu_node_make_tree(node);
    return error < 0 ? slu_abort_blame_rank(group, node->rank, SLU_ABORT_UNKNOWN, error) : 0;
}
