/* SPDX-License-Identifier: MIT */
/* Nodes: closing, and what can be asked of them. */
#include "config.h"

#include <stdlib.h>

#include "exchange/exchange.h"
#include "node/connector.h"
#include "node/node.h"

int slu_not_a_node(const struct sluice_node *node)
{
    return slu_misuse(EINVAL, "not a node%s", slu_none_hint(node));
}

int slu_node_check_call(const struct sluice_node *node, int64_t deadline)
{
    if (!slu_is_node(node))
        return slu_not_a_node(node);
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    return 0;
}

int slu_node_check_usable(const struct sluice_node *node, uint32_t count, int64_t deadline)
{
    if (node->ended)
        return slu_fail(ENOTCONN, "the node was shut down");
    if (node->broken)
        return slu_fail(ENOTCONN, "the barriers of the node were broken before: all ranks that go "
                                  "on must call sluice_node_barrier_reset(); those that end, "
                                  "sluice_node_close()");
    if (deadline == 0 && count > 1)
        return slu_fail(ETIMEDOUT, "the deadline is 0: nothing was sent to other ranks");
    return 0;
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

/* No posted request refers to the memory any more. */
void slu_node_free(struct sluice_node *node)
{
    node->magic = SLU_MAGIC_DEAD;
    slu_tree_free(&node->tree);
    sluice_mr_deregister(node->stages);
    sluice_mr_deregister(node->pieces);
    sluice_mr_deregister(node->words);
    sluice_mr_deregister(node->blocks);
    free(node->places);
    free(node->members);
    free(node->peers);
    free(node);
}

void slu_node_end_lazy(struct sluice_node *node)
{
    if (node->connector == NULL && node->cards == NULL)
        return;
    if (node->connector != NULL)
        slu_connector_stop(node->connector);
    if (node->multichannel != NULL)
        slu_channel_destroy(&node->multichannel->base);
    slu_connector_free(node->connector);
    free(node->cards);
}

void sluice_node_close(struct sluice_node *node)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_belongings own;

    if (!slu_may_end(node, SLU_MAGIC_NODE, "node"))
        return;
    if (!node->ended && !slu_node_engine(node)->scope.open) {
        slu_engine_enter(slu_node_engine(node));
        slu_abort_farewell(node);
        slu_engine_leave(slu_node_engine(node));
    }
    own = node->own;
    if (node->connector != NULL)
        slu_node_end_lazy(node);
    else
        slu_channel_destroy(&node->multichannel->base);
    slu_node_free(node);
    slu_belongings_own(&own, false);
    slu_belongings_close(&own);
}

int sluice_node_rank(const struct sluice_node *node)
{
    return slu_is_node(node) ? (int)node->rank : slu_not_a_node(node);
}

int sluice_node_ranks(const struct sluice_node *node)
{
    return slu_is_node(node) ? (int)node->ranks : slu_not_a_node(node);
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
