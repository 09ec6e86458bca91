/* SPDX-License-Identifier: MIT */
/*
 * Finds out which rank is missing when the deadline of a barrier or a gather has passed. The rank
 * that was waited for may have come, and wait for another one itself. So all ranks of the group are
 * queried whether they are inside of a call: their published states are read from their memory,
 * which does not involve their programs. A rank is blamed only if what was read proves it.
 *
 * A rank that is outside may have left already, while its write to this rank waits behind a message
 * for which this rank has posted no receive. So its state names its last call, and the rank that
 * was waited for is also queried for what it has sent to this one.
 *
 * A query has no deadline, nor has a notification: one that passed would end the connection to a
 * rank that is only stopped. So an answer may arrive at any later time, into the block of its rank,
 * and a rank is not queried again before that.
 */
#include "config.h"

#include <endian.h>

#include "node/node.h"

#define WORD_BYTES 8
/* How much longer ranks may take to answer before one is blamed for its silence. */
#define SILENT_TIME SLUICE_MS(300)
/* How long a rank of a lazy node waits to be told which rank is missing, which others find out. */
#define MARK_TIME (SILENT_TIME + SLUICE_MS(300))
/* How long all of this takes at most. The others are told after it, within 1 s of the deadline. */
#define BLAME_TIME SLUICE_MS(800)
/* No rank has this state. */
#define NO_ANSWER UINT64_MAX

enum verdict {
    LEFT, /* it has left the call, so all have come */
    CAME,
    UNKNOWN, /* it cannot be queried */
    SILENT,
    MISSING,
};

/* The words that are read from a rank. */
enum query { STATE, PUBLISHED };

static const uint32_t answers_at[] = {
    [STATE] = SLU_STATE_ANSWER_AT, [PUBLISHED] = SLU_PUBLISHED_ANSWER_AT};

/* The place is the block of this rank there. Its state is in the block that it has for itself. */
static uint64_t address_of(const struct sluice_node *node, uint32_t rank, enum query kind)
{
    const struct slu_place *place = &node->places[rank];

    if (kind == PUBLISHED)
        return place->addr + SLU_PUBLISHED_AT;
    return place->addr + (uint64_t)rank * place->block_bytes -
           (uint64_t)node->rank * place->block_bytes + SLU_STATE_AT;
}

static uint64_t *answer_of(const struct sluice_node *node, uint32_t rank, enum query kind)
{
    char *blocks = sluice_mr_addr(node->blocks);
    void *word = blocks + (size_t)rank * slu_block_bytes(node) + answers_at[kind];

    return word;
}

/* A read that the rank does not permit would end the connection. */
static bool may_query(const struct sluice_node *node, uint32_t rank)
{
    uint64_t addr = address_of(node, rank, STATE);

    return slu_node_connected(node, rank) && addr + WORD_BYTES > addr &&
           (slu_node_engine(node)->peers[rank].probe.access & SLUICE_ACCESS_REMOTE_READ) != 0;
}

/* The send queue must have room. */
static void query(struct sluice_node *node, uint32_t rank, enum query kind)
{
    uint64_t *answer = answer_of(node, rank, kind);
    const struct sluice_request request = {.opcode = SLUICE_OP_READ,
                                           .peer = rank,
                                           .sge = {.addr = (uintptr_t)answer,
                                                   .length = WORD_BYTES,
                                                   .lkey = sluice_mr_lkey(node->blocks)},
                                           .sge_count = 1,
                                           .remote = {.addr = address_of(node, rank, kind),
                                                      .length = WORD_BYTES,
                                                      .rkey = node->places[rank].rkey}};

    __atomic_store_n(answer, NO_ANSWER, __ATOMIC_RELEASE);
    node->peers[rank].query_ids[kind] = slu_post_detached(slu_node_engine(node), &request);
}

static bool is_pending(struct sluice_node *node, uint32_t rank, enum query kind)
{
    return slu_is_pending(slu_node_engine(node), node->peers[rank].query_ids[kind]);
}

/* Returns NO_ANSWER if there is none. */
static uint64_t read_answer(struct sluice_node *node, uint32_t rank, enum query kind)
{
    if (node->peers[rank].query_ids[kind] == 0 || is_pending(node, rank, kind))
        return NO_ANSWER;
    return be64toh(sluice_load_acquire64(answer_of(node, rank, kind)));
}

/* Discards the answer to an earlier query, unless that is still pending. */
static void discard_answer(struct sluice_node *node, uint32_t rank, enum query kind)
{
    if (node->peers[rank].query_ids[kind] != 0 && !is_pending(node, rank, kind))
        node->peers[rank].query_ids[kind] = 0;
}

/* Queries a rank if it can be, and tells whether its answer is here or none is to be expected. */
static bool has_answered(struct sluice_node *node, uint32_t rank, enum query kind)
{
    const uint64_t *asked = &node->peers[rank].query_ids[kind];

    if (rank == node->rank || !may_query(node, rank))
        return true;
    if (*asked == 0 && slu_has_room(slu_node_engine(node), rank, 1))
        query(node, rank, kind);
    return *asked != 0 && !is_pending(node, rank, kind);
}

/* The rank that is waited for. */
struct late {
    struct slu_group *group;
    uint32_t rank;
};

static bool late_has_answered(void *argument)
{
    const struct late *late = argument;

    return has_answered(late->group->node, late->rank, PUBLISHED);
}

/*
 * Judges a rank that is outside by its last call, which its state names: this one, the one before,
 * or one of other ranks, in which case nothing is known.
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

/* A rank that has given up had come. A rank of another generation is not in this call. */
static enum verdict classify(const struct slu_group *group, uint32_t rank)
{
    struct sluice_node *node = group->node;
    uint64_t word = read_answer(node, rank, STATE);
    uint32_t state = (uint32_t)word % 4;

    if (rank == node->rank)
        return CAME;
    if (node->peers[rank].query_ids[STATE] == 0)
        return slu_node_connected(node, rank) || slu_node_is_absent(node, rank) ? UNKNOWN : SILENT;
    if (word == NO_ANSWER)
        return SILENT;
    if (word >> 32 != node->generation)
        return MISSING;
    if (state == SLU_NODE_INSIDE || state == SLU_NODE_GAVE_UP)
        return CAME;
    return judge_outside(group, (uint32_t)word);
}

static bool all_answered(void *argument)
{
    const struct slu_group *group = argument;
    bool all = true;

    for (uint32_t i = 0; i < group->count; i++)
        all &= has_answered(group->node, slu_group_rank(group, i), STATE);
    return all;
}

/* Tells whether no rank that is silent can be blamed: all have answered, or one has not come. */
static bool is_decided(void *argument)
{
    const struct slu_group *group = argument;
    bool decided = all_answered(argument);

    for (uint32_t i = 0; i < group->count && !decided; i++) {
        enum verdict verdict = classify(group, slu_group_rank(group, i));

        decided = verdict == LEFT || verdict == MISSING;
    }
    return decided;
}

/*
 * A rank that does not answer is blamed only if no other one is known to be missing. On a busy host
 * a rank may take long to answer, so all have more time unless that decides nothing.
 */
static void query_all(struct slu_group *group)
{
    struct slu_engine *engine = slu_node_engine(group->node);
    int64_t began = slu_now();

    for (uint32_t i = 0; i < group->count; i++)
        discard_answer(group->node, slu_group_rank(group, i), STATE);
    slu_wait(engine, all_answered, group, began + SLU_ABORT_TIMEOUT);
    slu_wait(engine, is_decided, group, began + SLU_ABORT_TIMEOUT + SILENT_TIME);
}

/* Queries what the rank says it has sent to this one. Returns LEFT, MISSING or UNKNOWN. */
static enum verdict query_awaited(struct slu_group *group, uint32_t rank)
{
    struct sluice_node *node = group->node;
    struct late late = {group, rank};
    uint64_t word;
    uint16_t ahead;

    discard_answer(node, rank, PUBLISHED);
    slu_wait(slu_node_engine(node), late_has_answered, &late, slu_now() + SLU_ABORT_TIMEOUT);
    word = read_answer(node, rank, PUBLISHED);
    ahead = group->gathering
                ? (uint16_t)((uint16_t)word - (uint16_t)slu_node_next_piece(node, rank))
                : (uint16_t)((uint16_t)(word >> 16) - node->peers[rank].expected);
    if (word == NO_ANSWER)
        return UNKNOWN;
    return word >> 32 == node->generation && ahead <= 1 ? LEFT : MISSING;
}

/* A rank that is inside, or was in a call of others, may have sent what has not arrived yet. */
static enum verdict judge_awaited(struct slu_group *group, uint32_t rank)
{
    enum verdict verdict = classify(group, rank), sent;

    if (verdict != CAME && verdict != UNKNOWN)
        return verdict;
    sent = query_awaited(group, rank);
    return sent == LEFT || verdict == UNKNOWN ? sent : verdict;
}

/* Finds the first rank with the worst verdict. If one has left, none is missing. */
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

/*
 * The rank came, but its word has not arrived: an earlier message of it holds it up, or the
 * network.
 */
static enum slu_abort_reason fail_held_up(const struct slu_group *group, uint32_t rank)
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

/* Fails without blame for a certain rank. */
static enum slu_abort_reason fail_not_notified(const struct slu_group *group, uint32_t rank)
{
    slu_fail(ETIMEDOUT,
             "rank %u sent nothing in time for the %s of %u ranks; it may itself have waited for "
             "another rank%s",
             rank, slu_group_name(group), group->count, slu_abort_reason_own(group->node, rank));
    return SLU_ABORT_NOT_NOTIFIED;
}

static enum slu_abort_reason fail_missing(const struct slu_group *group, uint32_t rank,
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

static bool never(void *argument)
{
    (void)argument;
    return false;
}

int slu_missing_rank_find(struct slu_group *group)
{
    int64_t until = slu_now() + BLAME_TIME;
    enum verdict worst = CAME;
    uint32_t culprit = 0;
    int result;

    query_all(group);
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t rank = slu_group_rank(group, i);
        enum verdict verdict = classify(group, rank);

        if (verdict > worst) {
            worst = verdict;
            culprit = rank;
        }
    }
    if (worst >= SILENT)
        return slu_abort_blame_rank(group, culprit, fail_missing(group, culprit, worst),
                                    -ETIMEDOUT);
    group->until = slu_earlier(slu_now() + MARK_TIME, until);
    result = slu_notify_wait(group, never, NULL);
    return result < 0 ? result : 0;
}

/* The word may have arrived by now: a rank that came during the queries has let others leave. */
static bool has_arrived(void *argument)
{
    const struct late *late = argument;

    return slu_node_poll(late->group, late->rank) != 0;
}

/* A wait for the mark of a rank. */
struct grace {
    struct slu_waiting waiting; /* first */
    uint32_t rank;
};

static uint32_t rank_of(const struct slu_waiting *waiting)
{
    const struct grace *grace = slu_container_of(waiting, const struct grace, waiting);

    return grace->rank;
}

static int poll_rank(struct slu_waiting *waiting)
{
    return slu_node_poll(waiting->group, rank_of(waiting));
}

static int check_rank(struct slu_waiting *waiting)
{
    return slu_notify_check(waiting->group, rank_of(waiting));
}

static int end_grace(struct slu_waiting *waiting)
{
    (void)waiting;
    return 1;
}

/*
 * In a lazy node, a rank is connected to few others, and the one that it waited for may itself wait
 * for another. The rank that waited for the missing one tells its neighbours, which tell theirs, at
 * about the time when the deadlines of all have passed. Returns 0 if no mark comes.
 */
static int await_mark(struct slu_group *group, uint32_t rank, int64_t until)
{
    struct grace grace = {
        .waiting = {.group = group, .poll = poll_rank, .check = check_rank, .late = end_grace},
        .rank = rank};

    group->until = slu_earlier(slu_now() + MARK_TIME, until);
    return slu_notify_wait_for(&grace.waiting);
}

int slu_missing_rank_blame(struct slu_group *group, uint32_t rank)
{
    struct late late = {group, rank};
    int64_t until = slu_now() + BLAME_TIME;
    uint32_t culprit;
    enum slu_abort_reason reason;
    enum verdict verdict;

    query_all(group);
    verdict = find_culprit(group, rank, &culprit);
    if (group->node->connector != NULL && (verdict == CAME || verdict == UNKNOWN)) {
        int error = await_mark(group, rank, until);

        if (error < 0)
            return error;
    }
    /* The last message of a rank may still be on its way. */
    if (verdict == LEFT && culprit == rank)
        slu_wait(slu_node_engine(group->node), has_arrived, &late, slu_now() + SLU_ABORT_TIMEOUT);
    if (verdict == LEFT && culprit == rank && !has_arrived(&late)) {
        reason = fail_held_up(group, rank);
    } else if (verdict < SILENT || has_arrived(&late)) {
        culprit = rank;
        reason = fail_not_notified(group, rank);
    } else {
        reason = fail_missing(group, culprit, verdict);
    }
    return slu_abort_blame_rank(group, culprit, reason, -ETIMEDOUT);
}
