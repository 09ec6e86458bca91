/* SPDX-License-Identifier: MIT */
/*
 * Notifications: a rank notifies another one by writing its word there, and waits for the other's
 * word in its own memory. Every word is checked, since a peer may write anything.
 *
 * In every algorithm a rank notifies another one at most once in a barrier, and it leaves no
 * barrier that the other has not entered. So it is ahead of what is waited for by one notification
 * at most, that of the next barrier of both.
 *
 * A notification has no deadline of its own: one that passed would end the connection, with all
 * that the program has in flight there, because a rank was late. Only the wait has a deadline.
 */
#include "config.h"

#include "node/node.h"

/* A wait for one rank. */
struct awaiting {
    struct slu_waiting waiting; /* first */
    uint32_t rank;
};

static uint32_t rank_of(const struct slu_waiting *waiting)
{
    const struct awaiting *awaiting = slu_container_of(waiting, const struct awaiting, waiting);

    return awaiting->rank;
}

static int poll_rank(struct slu_waiting *waiting)
{
    return slu_node_poll(waiting->group, rank_of(waiting));
}

static int check_rank(struct slu_waiting *waiting)
{
    if (waiting->waited > SLU_CONNECT_TIME)
        slu_notify_connect(waiting->group->node, rank_of(waiting));
    return slu_notify_check(waiting->group, rank_of(waiting));
}

/* Fails after the deadline, unless what the group waits for has come at last. */
static int end_late_wait(struct slu_waiting *waiting)
{
    int result = slu_notify_check(waiting->group, rank_of(waiting));

    slu_notify_connect(waiting->group->node, rank_of(waiting));
    return result == 0 ? slu_missing_rank_blame(waiting->group, rank_of(waiting)) : result;
}

int slu_notify_await_rank(struct slu_group *group, uint32_t rank)
{
    struct awaiting awaiting = {
        .waiting = {.group = group, .poll = poll_rank, .check = check_rank, .late = end_late_wait},
        .rank = rank};

    return slu_notify_wait_for(&awaiting.waiting);
}

int slu_notify_await(struct slu_group *group, uint32_t position)
{
    uint32_t rank = slu_group_rank(group, position);

    group->node->peers[rank].expected++;
    return slu_notify_await_rank(group, rank);
}

/* A notification that waits for room in a send queue. */
struct posting {
    struct sluice_node *node;
    uint32_t rank;
};

static bool may_post(void *argument)
{
    const struct posting *posting = argument;

    return !slu_node_connected(posting->node, posting->rank) ||
           slu_has_room(slu_node_engine(posting->node), posting->rank, 1);
}

static int await_room(struct slu_group *group, uint32_t rank)
{
    struct posting posting = {.node = group->node, .rank = rank};
    int result = slu_notify_wait(group, may_post, &posting);

    if (result <= 0)
        return result;
    slu_fail(ETIMEDOUT, "no room came in the send queue of rank %u for the %s of %u ranks%s", rank,
             slu_group_name(group), group->count, slu_abort_reason_own(group->node, rank));
    return slu_abort_blame_rank(group, rank, SLU_ABORT_QUEUE_FULL, -ETIMEDOUT);
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
        error = slu_abort_check_marks(group);
    return error < 0 ? error : slu_notify_fail_lost(group, rank);
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
    slu_node_publish_sent(node, rank);
    slu_node_word_write(node, rank, SLU_COUNT_AT,
                        slu_node_word(node, (uint32_t)group->tag << 16 | peer->notified));
    return 0;
}
