/* SPDX-License-Identifier: MIT */
/*
 * Waits for words of other ranks, which make no event. A wait spins, yields, and then sleeps for
 * times that grow; and it ends if a rank that it depends on is lost, has given up, or is in another
 * call.
 */
#include "config.h"

#include "node/node.h"

/*
 * While a wait spins, it reads the clock and yields every SPIN_POLLS polls, or after each one if
 * processors are short, and checks the marks of all ranks every MARK_POLLS, a multiple of that.
 */
#define SPIN_POLLS 4
#define MARK_POLLS 16

/*
 * A passive write makes no event, so a thread that sleeps notices it late. A wait that may spin
 * therefore spins this many times longer before it sleeps, and then wakes at intervals that grow
 * from FIRST_NAP to LONGEST_NAP. If the last yield of the spin let others run for longer, they
 * begin with a part of that time.
 */
#define YIELD_FACTOR 25
#define FIRST_NAP INT64_C(20000)
#define LONGEST_NAP SLUICE_MS(1)
#define TURN_PART 4
/*
 * Many ranks of a lazy node may share a processor, and naps of all of them would use it up. So a
 * nap there lasts up to this fraction of the time waited so far, and at most LAZY_NAP.
 */
#define LAZY_PART 16
#define LAZY_NAP SLUICE_MS(20)

static int fail_elsewhere(struct slu_group *group, uint32_t rank)
{
    group->disagreed = true;
    return slu_abort_blame_rank(
        group, rank, SLU_ABORT_OTHER_CALL,
        group->gathering ? slu_fail(EPROTO,
                                    "rank %u is in a barrier, or ends its node, this rank in "
                                    "an %s",
                                    rank, slu_group_name(group))
                         : slu_fail(EPROTO,
                                    "rank %u is in an allgather or an alltoall, this rank in a "
                                    "barrier, or ends its node",
                                    rank));
}

/* A deadline of this side, or a call of the program, can end a connection to a healthy rank. */
static void fail_ended(uint32_t rank, int error, const struct sluice_error *cause)
{
    if (cause->status == SLUICE_STATUS_DEADLINE)
        slu_fail(error, "a deadline that passed on this side ended the connection to rank %u: %s",
                 rank, cause->text);
    else if (cause->status == SLUICE_STATUS_WR_FLUSH_ERR)
        slu_fail(error, "this side ended the connection to rank %u", rank);
    else
        slu_fail(error, "rank %u is lost: %s", rank, slu_error_reason(cause));
}

int slu_notify_fail_lost(struct slu_group *group, uint32_t rank)
{
    uint32_t lost = slu_node_lost_by(group->node, rank);
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
        fail_ended(rank, error, &cause);
    } else if (engine->peers[rank].state == SLUICE_STATE_READY) {
        slu_fail(error, "rank %u cannot take part in barriers: its endpoint was unusable", rank);
    } else {
        slu_fail(error, "rank %u is not connected", rank);
    }
    return slu_abort_blame_rank(group, lost, SLU_ABORT_LOST, -error);
}

/*
 * Called for the rank that is waited for only: others may have left after they had all they need.
 */
static bool is_lost(const struct sluice_node *node, uint32_t rank)
{
    struct slu_engine *engine = slu_node_engine(node);

    if (slu_node_is_absent(node, rank))
        return false;
    slu_peer_notice_loss(engine, &engine->peers[rank]);
    return !slu_node_connected(node, rank);
}

int slu_notify_check_loss(struct slu_group *group, uint32_t rank)
{
    return is_lost(group->node, rank) ? slu_notify_fail_lost(group, rank) : 0;
}

int slu_notify_check(struct slu_group *group, uint32_t rank)
{
    bool lost = is_lost(group->node, rank);
    bool elsewhere = slu_node_is_elsewhere(group, rank);
    int error = slu_abort_check_marks(group);
    int arrived;

    if (SLU_LIKELY(error == 0 && !lost && !elsewhere))
        return 0;
    /*
     * Whatever the rank wrote before any of these, or before its connection ended, has arrived by
     * now.
     */
    arrived = slu_node_poll(group, rank);
    if (arrived != 0)
        return arrived;
    if (error == 0)
        error = elsewhere ? fail_elsewhere(group, rank) : slu_notify_fail_lost(group, rank);
    return error;
}

/* waited: the time since the wait began. */
static int64_t next_nap(const struct sluice_node *node, int64_t nap, int64_t waited)
{
    int64_t longest = LONGEST_NAP;

    if (node->connector != NULL && waited / LAZY_PART > longest)
        longest = waited / LAZY_PART < LAZY_NAP ? waited / LAZY_PART : LAZY_NAP;
    return slu_earlier(nap + nap / 4, longest);
}

/* Lengthens the first nap after a yield, up to LONGEST_NAP. */
static int64_t first_nap(int64_t nap, struct slu_spin *spin)
{
    int64_t part = slu_earlier(spin->turn / TURN_PART, LONGEST_NAP);

    spin->turn = 0;
    return part > nap ? part : nap;
}

void slu_notify_connect(const struct sluice_node *node, uint32_t rank)
{
    struct slu_engine *engine = slu_node_engine(node);
    struct slu_peer *peer = &engine->peers[rank];

    if (SLU_UNLIKELY(slu_node_is_absent(node, rank)) && slu_peer_takes(engine, peer))
        slu_deferred_want(peer->qp);
}

int slu_notify_wait_for(struct slu_waiting *waiting)
{
    const struct slu_group *group = waiting->group;
    struct slu_engine *engine = slu_node_engine(group->node);
    struct slu_spin spin = {.patience = YIELD_FACTOR};
    int64_t nap = FIRST_NAP, began = 0;
    uint32_t chunks = group->chunks;
    int64_t now;
    int result;

    for (uint32_t polls = 1;; polls++) {
        result = waiting->poll(waiting);
        if (result == 0) {
            slu_progress(engine);
            if (polls % SPIN_POLLS != 0 && !engine->crowded)
                continue;
            if (polls % MARK_POLLS == 0)
                result = waiting->check(waiting);
        }
        if (result != 0)
            return result > 0 ? 0 : result;
        now = slu_now();
        if (began == 0 || chunks != group->chunks) {
            began = now;
            chunks = group->chunks;
            nap = FIRST_NAP;
        }
        waiting->waited = now - began;
        if (slu_is_late_at(now, group->until)) {
            result = waiting->late(waiting);
            return result > 0 ? 0 : result;
        }
        if (slu_spin(engine, &spin, now))
            continue;
        nap = first_nap(nap, &spin);
        slu_nap(engine, now + nap < group->until ? now + nap : group->until);
        nap = next_nap(group->node, nap, waiting->waited);
        polls = MARK_POLLS - 1;
    }
}

int slu_notify_wait(struct slu_group *group, bool (*ready)(void *argument), void *argument)
{
    struct slu_engine *engine = slu_node_engine(group->node);
    struct slu_spin spin = {0};
    int64_t nap = FIRST_NAP, began = slu_now();
    int64_t now;
    int error;

    for (;;) {
        slu_progress(engine);
        if (ready(argument))
            return 0;
        error = slu_abort_check_marks(group);
        if (error < 0)
            return error;
        now = slu_now();
        if (slu_is_late_at(now, group->until))
            return 1;
        if (slu_spin(engine, &spin, now))
            continue;
        slu_nap(engine, now + nap < group->until ? now + nap : group->until);
        nap = next_nap(group->node, nap, now - began);
    }
}
