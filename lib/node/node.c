/* SPDX-License-Identifier: MIT */
/* A node as a whole: what it is, and its end. */
#include "config.h"

#include <stdlib.h>

#include "exchange/exchange.h"
#include "node/node.h"

int slu_not_a_node(const struct sluice_node *node)
{
    return slu_misuse(EINVAL, "not a node%s", slu_none_hint(node));
}

void slu_belongings_own(const struct slu_belongings *own, bool owned)
{
    if (own->exchange != NULL)
        own->exchange->owned = owned;
    if (own->pd != NULL)
        own->pd->owned = own->context->owned = owned;
}

void slu_belongings_close(const struct slu_belongings *own)
{
    sluice_pd_free(own->pd);
    sluice_context_close(own->context);
    sluice_exchange_close(own->exchange);
}

/* Nothing is posted any more that names the memory. */
void slu_node_free(struct sluice_node *node)
{
    node->magic = SLU_MAGIC_DEAD;
    sluice_mr_deregister(node->pieces);
    sluice_mr_deregister(node->words);
    sluice_mr_deregister(node->blocks);
    free(node->peers);
    free(node);
}

void sluice_node_close(struct sluice_node *node)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_belongings own;

    if (!slu_may_end(node, SLU_MAGIC_NODE, "node"))
        return;
    if (!node->ended && !slu_node_engine(node)->scope.open) {
        slu_engine_enter(slu_node_engine(node));
        slu_notify_farewell(node);
        slu_engine_leave(slu_node_engine(node));
    }
    own = node->own;
    slu_channel_destroy(&node->multichannel->base);
    slu_node_free(node);
    slu_belongings_own(&own, false);
    slu_belongings_close(&own);
}

int64_t sluice_node_rank(const struct sluice_node *node)
{
    return slu_is_node(node) ? (int64_t)node->rank : slu_not_a_node(node);
}

int64_t sluice_node_ranks(const struct sluice_node *node)
{
    return slu_is_node(node) ? (int64_t)node->ranks : slu_not_a_node(node);
}

struct sluice_multichannel *sluice_node_multichannel(struct sluice_node *node)
{
    return slu_is_node(node) ? node->multichannel
                             : slu_misuse_null(EINVAL, "not a node%s", slu_none_hint(node));
}

struct sluice_pd *sluice_node_pd(const struct sluice_node *node)
{
    return slu_is_node(node) ? slu_node_engine(node)->pd
                             : slu_misuse_null(EINVAL, "not a node%s", slu_none_hint(node));
}

struct sluice_context *sluice_node_context(const struct sluice_node *node)
{
    return slu_is_node(node) ? slu_node_engine(node)->pd->context
                             : slu_misuse_null(EINVAL, "not a node%s", slu_none_hint(node));
}

struct sluice_exchange *sluice_node_exchange(const struct sluice_node *node)
{
    if (!slu_is_node(node))
        return slu_misuse_null(EINVAL, "not a node%s", slu_none_hint(node));
    if (node->own.exchange == NULL)
        return slu_misuse_null(EINVAL, "the node did not open its exchange: it was given one, or "
                                       "was made without");
    return node->own.exchange;
}

/* Sends, writes and reads are complete, or a rank has given up. */
struct flush {
    struct slu_group *group;
    int error;
};

static bool is_flushed(void *argument)
{
    struct flush *flush = argument;
    const struct slu_engine *engine = slu_node_engine(flush->group->node);

    if (slu_count_pending(engine, SLU_SEND_QUEUE) == 0)
        return true;
    flush->error = slu_notify_check_marks(flush->group);
    return flush->error < 0;
}

/* The first rank, from this one on, whose work is still pending; or the number of all. */
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
    struct flush flush = {.group = group};
    char pending[SLU_PENDING_BYTES];
    char name[SLU_RANK_BYTES];
    uint32_t busy;

    if (slu_notify_wait(group, is_flushed, &flush))
        return flush.error;
    busy = find_busy(engine, 0);
    slu_fail(ETIMEDOUT, "still pending: %s, to %s%s",
             slu_say_pending(slu_count_pending(engine, SLU_SEND_QUEUE), 0, pending),
             slu_node_rank_name(group->node, busy, name),
             find_busy(engine, busy + 1) < engine->peer_count ? " and others" : "");
    return slu_notify_blame(group, group->node->rank, busy, SLU_ABORT_QUEUE_FULL, -ETIMEDOUT);
}

/*
 * What we have in flight must arrive before others may close: it ends before the
 * barrier. And our last notifications must, before we may.
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
    int error;

    if (!slu_is_node(node))
        return slu_not_a_node(node);
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    /* It would wait for the work of a scope, and end what that is posted to. */
    error = slu_scope_check(slu_node_engine(node));
    if (error == 0)
        error = slu_node_check_usable(node, node->ranks, deadline);
    if (error < 0)
        return error;
    group.count = node->ranks;
    group.self = node->rank;
    group.until = slu_after(deadline);
    engine = slu_node_engine(node);
    slu_engine_enter(engine);
    slu_notify_set_state(node, SLU_NODE_INSIDE);
    error = await_all(&group);
    if (error < 0)
        slu_notify_abort(&group);
    else
        slu_notify_set_state(node, SLU_NODE_OUTSIDE);
    slu_engine_leave(engine);
    if (error < 0)
        return error;
    node->ended = true;
    /* What is left are receives that nobody will fill any more: they end cancelled. */
    slu_engine_shutdown(engine, 0);
    return 0;
}
