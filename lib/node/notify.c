/* SPDX-License-Identifier: MIT */
/*
 * Notification words: a rank notifies another one by writing its word there, and waits
 * for the other's word in its own memory. Nothing that a peer writes is believed.
 *
 * In every algorithm a rank notifies another one at most once in a barrier, and
 * it leaves no barrier that the other has not entered. So it is ahead of what is
 * waited for by one notification at most: that of the next barrier of both.
 *
 * A notification has no deadline of its own: one that passed would end the
 * connection, with all that the program has in flight there, because a rank was
 * late. Only the wait has one.
 */
#include "config.h"

#include <endian.h>

#include "node/node.h"

#define WORD_BYTES 8

/* We may have missed so many resets of a rank; one that is further ahead writes invalid words. */
#define GENERATIONS_AHEAD 1024

/* Of a mark; no generation is so high. */
#define DISAGREED (UINT64_C(1) << 63)

/*
 * While a wait spins, the clock is looked at once in so many polls, and then others have
 * their turn; and the marks of all once in so many, which is a multiple of it.
 */
#define SPIN_POLLS 4
#define MARK_POLLS 16

/*
 * A passive write makes no event, so who sleeps hears of it late. A wait that may
 * spin therefore does so for so many times longer before it sleeps; and then gets up by
 * itself, less and less often.
 */
#define YIELD_FACTOR 25
#define FIRST_NAP INT64_C(20000)
#define LONGEST_NAP SLUICE_MS(1)

uint64_t slu_notify_read(const struct sluice_node *node, uint32_t rank, uint32_t at)
{
    const char *blocks = sluice_mr_addr(node->blocks);
    const void *word = blocks + (size_t)rank * SLU_BLOCK_BYTES + at;

    return be64toh(sluice_load_acquire64(word));
}

/* For others to read, in the block of a rank. */
static void show(const struct sluice_node *node, uint32_t rank, uint32_t at, uint32_t low)
{
    char *blocks = sluice_mr_addr(node->blocks);
    void *word = blocks + (size_t)rank * SLU_BLOCK_BYTES + at;

    __atomic_store_n((uint64_t *)word, htobe64(slu_notify_word(node, low)), __ATOMIC_RELEASE);
}

void slu_notify_set_state(struct sluice_node *node, enum slu_node_state state)
{
    show(node, node->rank, SLU_STATE_AT,
         (uint32_t)node->last.tag << 16 | (uint32_t)node->last.count << 2 | state);
}

/* Of the first few tags it is known how many there were: most programs have one or two. */
static uint16_t count_barrier(struct sluice_node *node, uint16_t tag)
{
    for (uint32_t i = 0; i < SLU_TALLIES; i++) {
        struct slu_tally *tally = &node->tallies[i];

        if (tally->count == 0 || tally->tag == tag) {
            tally->tag = tag;
            return tally->count = (uint16_t)(tally->count % SLU_TALLY_MOST + 1);
        }
    }
    return 0;
}

void slu_notify_enter(const struct slu_group *group)
{
    struct sluice_node *node = group->node;
    uint16_t round = (uint16_t)(node->round % SLU_TALLY_MOST + 1);

    node->last = (struct slu_tally){
        .tag = group->tag, .count = group->gathering ? round : count_barrier(node, group->tag)};
    slu_notify_set_state(node, SLU_NODE_INSIDE);
}

void slu_notify_publish(const struct sluice_node *node, uint32_t rank)
{
    show(node, rank, SLU_PUBLISHED_AT,
         (uint32_t)node->peers[rank].notified << 16 | (uint16_t)node->round);
}

/* Which of the words that ranks write to others it is. */
static size_t index_word(uint32_t at)
{
    return at < SLU_SLOTS_AT ? at / WORD_BYTES
                             : SLU_BLOCK_WORDS - 2 + (at - SLU_SLOTS_AT) / SLU_SLOT_BYTES;
}

/*
 * There is room, and the rank is ready. Where a word cannot be written inline it is
 * read from memory, perhaps when it is already that of the next barrier: then we
 * have entered that one, and what we wrote before has arrived.
 */
uint64_t slu_notify_write(struct sluice_node *node, uint32_t rank, uint32_t at, uint64_t word)
{
    const struct slu_rank *peer = &node->peers[rank];
    uint64_t value = htobe64(word);
    struct sluice_request request = {
        .opcode = SLUICE_OP_WRITE,
        .peer = rank,
        .flags = SLUICE_INLINE,
        .sge = {.addr = (uintptr_t)&value, .length = WORD_BYTES},
        .sge_count = 1,
        .remote = {.addr = peer->addr + at, .length = WORD_BYTES, .rkey = peer->rkey}};

    if (node->words != NULL) {
        uint64_t *words = sluice_mr_addr(node->words);
        uint64_t *from = &words[index_word(at) * node->ranks + rank];

        __atomic_store_n(from, value, __ATOMIC_RELEASE);
        request.flags = 0;
        request.sge.addr = (uintptr_t)from;
        request.sge.lkey = sluice_mr_lkey(node->words);
    }
    return slu_post_detached(slu_node_engine(node), &request);
}

/* Telling all ranks that our barriers are broken, or why we leave. */
struct tell {
    struct sluice_node *node;
    uint32_t at;
    uint64_t word;
    uint64_t reason; /* goes before it, if there is room for both; 0: nothing does */
};

/*
 * There is room for one. A peer that is stopped may take nothing for long: the mark
 * is not to wait for the reason.
 */
static void tell_rank(const struct tell *tell, uint32_t rank)
{
    struct sluice_node *node = tell->node;
    struct slu_engine *engine = slu_node_engine(node);

    if (tell->reason != 0 && slu_has_room(engine, rank, 2))
        slu_notify_write(node, rank, SLU_FAREWELL_AT, tell->reason);
    if (slu_node_connected(node, rank) && slu_has_room(engine, rank, 1))
        node->peers[rank].abort_id = slu_notify_write(node, rank, tell->at, tell->word);
}

static bool is_told(const struct tell *tell, uint32_t rank)
{
    struct sluice_node *node = tell->node;
    struct slu_engine *engine = slu_node_engine(node);
    struct slu_rank *peer = &node->peers[rank];

    if (rank == node->rank || !slu_node_connected(node, rank))
        return true;
    if (peer->abort_id == 0 && slu_has_room(engine, rank, 1))
        tell_rank(tell, rank);
    return peer->abort_id != 0 && !slu_is_pending(engine, peer->abort_id);
}

static bool all_told(void *argument)
{
    const struct tell *tell = argument;
    bool all = true;

    for (uint32_t i = 0; i < tell->node->ranks; i++)
        all &= is_told(tell, i);
    return all;
}

/* Best effort, for a rank may be stopped, or lost. The text stays. */
static void tell_all(struct tell *tell)
{
    struct slu_text text;

    slu_text_save(&text);
    slu_wait(slu_node_engine(tell->node), all_told, tell, slu_now() + SLU_ABORT_TIMEOUT);
    slu_text_restore(&text);
}

void slu_notify_abort(const struct slu_group *group)
{
    uint64_t word = slu_notify_word(group->node, group->quitter << 16 | group->culprit);
    struct tell tell = {.node = group->node,
                        .at = SLU_MARK_AT,
                        .word = group->disagreed ? word | DISAGREED : word,
                        .reason =
                            slu_notify_word(group->node, slu_abort_reason_encode(group->reason))};

    group->node->broken = true;
    slu_notify_set_state(group->node, SLU_NODE_GAVE_UP);
    tell_all(&tell);
}

/*
 * Who was told that our barriers are broken knows more than this says; and a loss
 * of before a reset is known to all that go on.
 */
void slu_notify_farewell(struct sluice_node *node)
{
    const struct slu_engine *engine = slu_node_engine(node);
    struct tell tell = {.node = node, .at = SLU_FAREWELL_AT};
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
    tell.word = slu_notify_word(node, lost);
    tell_all(&tell);
}

int slu_notify_blame(struct slu_group *group, uint32_t quitter, uint32_t culprit,
                     enum slu_abort_reason reason, int error)
{
    group->quitter = quitter;
    group->culprit = culprit;
    group->reason = reason;
    return error;
}

/* We are the first to give up, because of that rank. */
static int blame(struct slu_group *group, uint32_t rank, enum slu_abort_reason reason, int error)
{
    return slu_notify_blame(group, group->node->rank, rank, reason, error);
}

int slu_notify_fail_invalid(struct slu_group *group, uint32_t rank, const char *what, uint64_t word)
{
    return blame(group, rank, SLU_ABORT_INVALID,
                 slu_fail(EPROTO, "rank %u wrote %#llx as its %s, which no rank writes", rank,
                          (unsigned long long)word, what));
}

/* It goes on with barriers of which we know nothing. */
int slu_notify_fail_reset(struct slu_group *group, uint32_t rank)
{
    slu_fail(ECANCELED, "rank %u has reset its barriers, this rank has not", rank);
    return slu_notify_blame(group, rank, group->node->rank, SLU_ABORT_NO_RESET, -ECANCELED);
}

bool slu_notify_is_valid(const struct sluice_node *node, uint64_t word)
{
    uint64_t generation = word >> 32;

    return word == 0 ||
           (generation > 0 && generation <= (uint64_t)node->generation + GENERATIONS_AHEAD);
}

/* If ranks do not agree on a call, all ranks of the node are told, whichever found it out. */
static int fail_disagreed(struct slu_group *group, uint32_t quitter, uint32_t culprit)
{
    char names[2][SLU_RANK_BYTES];

    slu_fail(EPROTO, "%s and %s are in different calls, or do not agree on the bytes of a value",
             slu_node_rank_name(group->node, quitter, names[0]),
             slu_node_rank_name(group->node, culprit, names[1]));
    group->disagreed = true;
    return slu_notify_blame(group, quitter, culprit, SLU_ABORT_OTHER_CALL, -EPROTO);
}

static int fail_told(struct slu_group *group, uint32_t quitter, uint32_t culprit,
                     enum slu_abort_reason reason)
{
    char names[2][SLU_RANK_BYTES];

    slu_node_rank_name(group->node, quitter, names[0]);
    slu_node_rank_name(group->node, culprit, names[1]);
    if (culprit == quitter)
        slu_fail(ECANCELED, "%s gave up its barriers", names[0]);
    else
        slu_fail(ECANCELED, "%s gave up its barriers, because of %s%s", names[0], names[1],
                 slu_abort_reason_text(reason));
    return slu_notify_blame(group, quitter, culprit, reason, -ECANCELED);
}

/* 0: the rank has not given up, as far as we know. */
static int look_at_mark(struct slu_group *group, uint32_t rank)
{
    const struct sluice_node *node = group->node;
    uint64_t read = slu_notify_read(node, rank, SLU_MARK_AT), word = read & ~DISAGREED;
    uint32_t quitter = (uint32_t)word >> 16;
    uint32_t culprit = (uint32_t)word & 0xffff;

    if (SLU_LIKELY(word >> 32 < node->generation && slu_notify_is_valid(node, word)))
        return 0;
    if (!slu_notify_is_valid(node, word) || quitter >= node->ranks || culprit >= node->ranks)
        return slu_notify_fail_invalid(group, rank, "mark", read);
    if (word >> 32 > node->generation)
        return slu_notify_fail_reset(group, rank);
    if (read != word)
        return fail_disagreed(group, quitter, culprit);
    return fail_told(group, quitter, culprit, slu_abort_reason_read(node, rank));
}

int slu_notify_check_marks(struct slu_group *group)
{
    int error = 0;

    for (uint32_t i = 0; i < group->count && error == 0; i++)
        if (i != group->self)
            error = look_at_mark(group, slu_group_rank(group, i));
    return error;
}

static int fail_other(struct slu_group *group, uint32_t rank)
{
    return blame(group, rank, SLU_ABORT_OTHER_CALL,
                 slu_fail(EPROTO,
                          "rank %u is in another barrier than this rank: of other ranks, by "
                          "another algorithm, or at the end of its node",
                          rank));
}

/*
 * Whether a rank has notified us as often as we have waited for it: 1, 0, or an error.
 * One that is ahead has left our barrier, so it was in it.
 */
static int look_at_count(struct slu_group *group, uint32_t rank)
{
    const struct sluice_node *node = group->node;
    struct slu_rank *peer = &node->peers[rank];
    uint64_t word = slu_notify_read(node, rank, SLU_COUNT_AT);
    uint16_t ahead = slu_notify_ahead(peer, word);

    if (word >> 32 < node->generation && slu_notify_is_valid(node, word) && !peer->seen)
        return 0;
    if (word >> 32 > node->generation && slu_notify_is_valid(node, word))
        return slu_notify_fail_reset(group, rank);
    /* One is missing, none is, or it is in the next barrier already. */
    if (word >> 32 != node->generation || (uint16_t)(ahead + 1) > 2)
        return slu_notify_fail_invalid(group, rank, "count", word);
    peer->seen = true;
    if (ahead == 0 && (uint16_t)(word >> 16) != group->tag)
        return fail_other(group, rank);
    return ahead != UINT16_MAX;
}

int slu_notify_poll(struct slu_group *group, uint32_t rank)
{
    return SLU_UNLIKELY(group->gathering) ? slu_gather_poll(group, rank)
                                          : look_at_count(group, rank);
}

/*
 * Whether a rank is in a barrier while we are in a gather, or the other way round.
 * One that has come to the next call has left this one, but then what we wait for is here.
 */
static bool is_elsewhere(const struct slu_group *group, uint32_t rank)
{
    const struct sluice_node *node = group->node;
    uint64_t word;

    if (!group->gathering)
        return slu_gather_has_piece(node, rank, node->round + 1);
    word = slu_notify_read(node, rank, SLU_COUNT_AT);
    return word >> 32 == node->generation && slu_notify_ahead(&node->peers[rank], word) == 1;
}

static int fail_elsewhere(struct slu_group *group, uint32_t rank)
{
    group->disagreed = true;
    return blame(group, rank, SLU_ABORT_OTHER_CALL,
                 group->gathering
                     ? slu_fail(EPROTO,
                                "rank %u is in a barrier, or ends its node, this rank in "
                                "an %s",
                                rank, slu_group_name(group))
                     : slu_fail(EPROTO,
                                "rank %u is in an allgather or an alltoall, this rank in a "
                                "barrier, or ends its node",
                                rank));
}

/* A rank that has closed its node may have said that it had lost another one: which, or itself. */
static uint32_t find_lost(const struct sluice_node *node, uint32_t rank)
{
    uint64_t word = slu_notify_read(node, rank, SLU_FAREWELL_AT);
    uint32_t lost = (uint32_t)word;

    return word >> 32 == node->generation && lost < node->ranks ? lost : rank;
}

/* A deadline of ours, or a call of the program, ends a connection to a rank that is well. */
static void say_end(uint32_t rank, int error, const struct sluice_error *cause)
{
    if (cause->status == SLUICE_STATUS_DEADLINE)
        slu_fail(error, "a deadline that passed on this side ended the connection to rank %u: %s",
                 rank, cause->text);
    else if (cause->status == SLUICE_STATUS_WR_FLUSH_ERR)
        slu_fail(error, "this side ended the connection to rank %u", rank);
    else
        slu_fail(error, "rank %u is lost: %s", rank, cause->text);
}

static int fail_lost(struct slu_group *group, uint32_t rank)
{
    uint32_t lost = find_lost(group->node, rank);
    const struct slu_engine *engine = slu_node_engine(group->node);
    struct sluice_error cause;
    char name[SLU_RANK_BYTES];
    int error = ECONNRESET;

    if (lost != rank) {
        slu_fail(error, "rank %u has left, because it had lost %s", rank,
                 slu_node_rank_name(group->node, lost, name));
    } else if (slu_peer_error(engine, &engine->peers[rank], &cause)) {
        if (cause.error_class == SLUICE_CLASS_DEVICE)
            error = EIO;
        say_end(rank, error, &cause);
    } else if (engine->peers[rank].state == SLUICE_STATE_READY) {
        slu_fail(error, "rank %u cannot take part in barriers: its endpoint was unusable", rank);
    } else {
        slu_fail(error, "rank %u is not connected", rank);
    }
    return blame(group, lost, SLU_ABORT_LOST, -error);
}

/* Only a rank whose part is still to come is missed: others may have left when they had all. */
static bool is_lost(const struct sluice_node *node, uint32_t rank)
{
    struct slu_engine *engine = slu_node_engine(node);

    slu_peer_notice_loss(engine, &engine->peers[rank]);
    return !slu_node_connected(node, rank);
}

/* What a wait looks at now and then. 0: it goes on; 1: what it waits for has come. */
static int look_around(struct slu_group *group, uint32_t rank)
{
    bool lost = is_lost(group->node, rank);
    bool elsewhere = is_elsewhere(group, rank);
    int error = slu_notify_check_marks(group);
    int arrived;

    if (SLU_LIKELY(error == 0 && !lost && !elsewhere))
        return 0;
    /* What was written before any of these, or before the end of a connection, is there by now. */
    arrived = slu_notify_poll(group, rank);
    if (arrived != 0)
        return arrived;
    if (error == 0)
        error = elsewhere ? fail_elsewhere(group, rank) : fail_lost(group, rank);
    return error;
}

static int64_t next_nap(int64_t nap)
{
    return nap + nap / 4 < LONGEST_NAP ? nap + nap / 4 : LONGEST_NAP;
}

/* The time is up. */
static int await_no_longer(struct slu_group *group, uint32_t rank)
{
    int result = look_around(group, rank);

    if (result == 0)
        return slu_missing_rank_blame(group, rank);
    return result > 0 ? 0 : result;
}

int slu_notify_await_rank(struct slu_group *group, uint32_t rank)
{
    struct slu_engine *engine = slu_node_engine(group->node);
    struct slu_spin spin = {.patience = YIELD_FACTOR};
    int64_t nap = FIRST_NAP;
    int64_t now;
    int result;

    for (uint32_t polls = 1;; polls++) {
        result = slu_notify_poll(group, rank);
        if (result == 0) {
            slu_progress(engine);
            if (polls % SPIN_POLLS != 0)
                continue;
            if (polls % MARK_POLLS == 0)
                result = look_around(group, rank);
        }
        if (result != 0)
            return result > 0 ? 0 : result;
        now = slu_now();
        if (slu_is_late_at(now, group->until))
            return await_no_longer(group, rank);
        if (slu_spin(engine, &spin, now))
            continue;
        slu_nap(engine, now + nap < group->until ? now + nap : group->until);
        nap = next_nap(nap);
        polls = MARK_POLLS - 1;
    }
}

int slu_notify_await(struct slu_group *group, uint32_t position)
{
    uint32_t rank = slu_group_rank(group, position);

    group->node->peers[rank].expected++;
    return slu_notify_await_rank(group, rank);
}

bool slu_notify_wait(const struct slu_group *group, bool (*ready)(void *argument), void *argument)
{
    struct slu_engine *engine = slu_node_engine(group->node);
    struct slu_spin spin = {0};
    int64_t nap = FIRST_NAP;
    int64_t now;

    for (;;) {
        slu_progress(engine);
        if (ready(argument))
            return true;
        now = slu_now();
        if (slu_is_late_at(now, group->until))
            return false;
        if (slu_spin(engine, &spin, now))
            continue;
        slu_nap(engine, now + nap < group->until ? now + nap : group->until);
        nap = next_nap(nap);
    }
}

/* A notification that waits for room in a queue. */
struct posting {
    struct slu_group *group;
    uint32_t rank;
    int error;
};

static bool may_post(void *argument)
{
    struct posting *posting = argument;
    struct slu_engine *engine = slu_node_engine(posting->group->node);

    if (!slu_node_connected(posting->group->node, posting->rank) ||
        slu_has_room(engine, posting->rank, 1))
        return true;
    posting->error = slu_notify_check_marks(posting->group);
    return posting->error < 0;
}

static int await_room(struct slu_group *group, uint32_t rank)
{
    struct posting posting = {.group = group, .rank = rank};

    if (slu_notify_wait(group, may_post, &posting))
        return posting.error;
    slu_fail(ETIMEDOUT, "no room came in the send queue of rank %u for the %s of %u ranks%s", rank,
             slu_group_name(group), group->count, slu_abort_reason_own(group->node, rank));
    return blame(group, rank, SLU_ABORT_QUEUE_FULL, -ETIMEDOUT);
}

int slu_notify_await_room(struct slu_group *group, uint32_t rank)
{
    struct sluice_node *node = group->node;
    int error = 0;

    if (SLU_UNLIKELY(!slu_has_room(slu_node_engine(node), rank, 1)))
        error = await_room(group, rank);
    if (error == 0 && slu_node_connected(node, rank))
        return 0;
    if (error == 0)
        error = slu_notify_check_marks(group);
    return error < 0 ? error : fail_lost(group, rank);
}

int slu_notify(struct slu_group *group, uint32_t position)
{
    struct sluice_node *node = group->node;
    uint32_t rank = slu_group_rank(group, position);
    struct slu_rank *peer = &node->peers[rank];
    int error = slu_notify_await_room(group, rank);

    if (error < 0)
        return error;
    peer->notified++;
    slu_notify_publish(node, rank);
    slu_notify_write(node, rank, SLU_COUNT_AT,
                     slu_notify_word(node, (uint32_t)group->tag << 16 | peer->notified));
    return 0;
}
