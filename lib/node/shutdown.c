/* SPDX-License-Identifier: MIT */
/*
 * The end of a node that all ranks agree on: all finish their sends, meet in a barrier, and
 * only then disconnect.
 */
#include "config.h"

#include "node/node.h"

/* Tells whether sends, writes and reads are complete. */
static bool is_flushed(void *argument)
{
    const struct slu_engine *engine = argument;

    return slu_count_pending(engine, SLU_SEND_QUEUE) == 0;
}

/* Returns the first rank from this one on whose work is still pending, or the number of ranks. */
static uint32_t find_busy(const struct slu_engine *engine, uint32_t from)
{
    uint32_t i = from;

    while (i < engine->peer_count && !slu_peer_has_posted(&engine->peers[i], SLU_SEND_QUEUE))
        i++;
    return i;
}

static int flush_sends(struct slu_group *group)
{
    struct slu_engine *engine = slu_node_engine(group->node);
    int result = slu_notify_wait(group, is_flushed, engine);
    char pending[SLU_PENDING_BYTES];
    char name[SLU_RANK_BYTES];
    uint32_t busy;

    if (result <= 0)
        return result;
    busy = find_busy(engine, 0);
    slu_fail(ETIMEDOUT, "still pending: %s, to %s%s",
             slu_say_pending(slu_count_pending(engine, SLU_SEND_QUEUE), 0, pending),
             slu_node_rank_name(group->node, busy, name),
             find_busy(engine, busy + 1) < engine->peer_count ? " and others" : "");
    return slu_abort_blame_rank(group, busy, SLU_ABORT_QUEUE_FULL, -ETIMEDOUT);
}

/*
 * Requests in flight must complete before the barrier, because other ranks may close after it. The
 * notifications of the barrier must complete before this rank may close.
 */
static int await_all(struct slu_group *group)
{
    int error = flush_sends(group);

    if (error == 0)
        error = slu_barrier_run(group, SLUICE_BARRIER_DEFAULT);
    if (error == 0)
        error = flush_sends(group);
    return error;
}

int sluice_node_shutdown(struct sluice_node *node, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_group group = {.node = node, .ending = true};
    struct slu_engine *engine;
    int error = slu_node_check_call(node, deadline);

    /* A shutdown would wait for the work of an open scope, and end the queues it is posted to. */
    if (error == 0)
        error = slu_scope_check(slu_node_engine(node));
    if (error == 0)
        error = slu_node_check_usable(node, node->ranks, deadline);
    if (error < 0)
        return error;
    slu_group_all(&group);
    group.until = slu_after(deadline);
    engine = slu_node_engine(node);
    slu_engine_enter(engine);
    slu_node_publish_state(node, SLU_NODE_INSIDE);
    error = await_all(&group);
    if (error < 0)
        slu_abort_announce(&group);
    else
        slu_node_publish_state(node, SLU_NODE_OUTSIDE);
    slu_engine_leave(engine);
    if (error < 0)
        return error;
    node->ended = true;
    /* Only receives that no peer will fill are left. All of these are cancelled. */
    slu_engine_shutdown(engine, 0);
    return 0;
}
