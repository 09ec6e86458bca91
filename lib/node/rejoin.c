/* SPDX-License-Identifier: MIT */
/*
 * Reconnects a rank that was lost and comes back, perhaps as a new process. Nothing of its old
 * connection is kept: neither what it wrote to this rank, nor where this rank wrote to. A write of
 * the old connection cannot arrive any more, since that is gone with its queue pair, and one of the
 * new connection cannot arrive before the handshake.
 *
 * The counts of notifications of a pair of ranks, and the rounds of gathers, begin at zero in each
 * generation of barriers. So the barriers of all ranks end with the current generation, and
 * continue with the next one after a reset. A new rank learns the generation from the endpoints of
 * the others, and then resets its barriers as they do.
 */
#include "config.h"

#include <string.h>

#include "node/node.h"

static int check_rank(const struct sluice_node *node, uint32_t rank)
{
    if (!slu_is_node(node))
        return slu_not_a_node(node);
    if (rank >= node->ranks)
        return slu_misuse(EINVAL, "rank %u: there are ranks 0..%u", rank, node->ranks - 1);
    if (rank == node->rank)
        return slu_misuse(EINVAL, "rank %u is this one, which cannot come again to itself", rank);
    return 0;
}

static int check_use(const struct sluice_node *node)
{
    if (node->ended)
        return slu_fail(ENOTCONN, "the node was shut down");
    return slu_scope_check(slu_node_engine(node));
}

/* The rank must have no connection. */
static void forget(struct sluice_node *node, uint32_t rank)
{
    char *blocks = sluice_mr_addr(node->blocks);

    memset(blocks + (size_t)rank * slu_block_bytes(node), 0, slu_block_bytes(node));
    node->places[rank] = (struct slu_place){0};
    node->peers[rank] = (struct slu_rank){0};
}

/* A barrier that other ranks are in cannot complete any more. */
static void break_barriers(struct sluice_node *node, uint32_t rank)
{
    const struct slu_group group = {
        .node = node, .quitter = node->rank, .culprit = rank, .reason = SLU_ABORT_RECONNECTED};

    if (!node->broken)
        slu_abort_announce(&group);
}

/* The endpoint of a lazy node is its card. The rank is connected when it is used, once it came. */
static int reset_lazy(struct sluice_node *node, uint32_t rank,
                      struct sluice_node_endpoint *endpoint)
{
    struct sluice_node_endpoint made = {{0}};
    /* The neighbours, which are notified, follow from the cards of all ranks. */
    int error = slu_node_make_tree(node);

    if (error < 0)
        return error;
    slu_cards_drop(node, rank);
    forget(node, rank);
    break_barriers(node, rank);
    error = slu_cards_make(node, made.bytes);
    if (error == 0)
        *endpoint = made;
    return error;
}

/* The old connection is gone, even if the new one fails. */
static int reset(struct sluice_node *node, uint32_t rank, const struct sluice_remote_mr *blocks,
                 struct sluice_node_endpoint *endpoint)
{
    struct slu_engine *engine = slu_node_engine(node);
    int error = slu_peer_reset(engine, &engine->peers[rank]);

    forget(node, rank);
    break_barriers(node, rank);
    if (error == 0)
        slu_node_make_endpoint(node, engine, blocks, rank, endpoint);
    return error;
}

int sluice_node_peer_reset(struct sluice_node *node, uint32_t rank,
                           struct sluice_node_endpoint *endpoint)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_remote_mr blocks;
    int error = check_rank(node, rank);

    if (error == 0 && endpoint == NULL)
        error = slu_misuse(EINVAL, "endpoint must not be NULL");
    if (error == 0)
        error = check_use(node);
    if (error == 0)
        error = sluice_mr_remote(node->blocks, &blocks);
    if (error < 0)
        return error;
    slu_engine_enter(slu_node_engine(node));
    error = node->connector != NULL ? reset_lazy(node, rank, endpoint)
                                    : reset(node, rank, &blocks, endpoint);
    slu_engine_leave(slu_node_engine(node));
    return error;
}

/* The mark does not go to the rank itself, which may not be ready to receive it. */
static int connect_rank(struct sluice_node *node, uint32_t rank,
                        const struct slu_node_endpoint *endpoint)
{
    struct slu_engine *engine = slu_node_engine(node);
    int error;

    forget(node, rank);
    break_barriers(node, rank);
    error = slu_peer_connect(engine, &engine->peers[rank], &endpoint->connection);
    if (error == 0)
        slu_node_set_endpoint(node, rank, endpoint);
    return error;
}

/*
 * The rank may have failed since its reset, because it was used before it came. If members changed
 * meanwhile, it was none of them.
 */
static int connect_lazy(struct sluice_node *node, uint32_t rank, const uint8_t *card,
                        const struct slu_node_endpoint *endpoint)
{
    slu_cards_drop(node, rank);
    forget(node, rank);
    break_barriers(node, rank);
    slu_cards_put(node, rank, card, endpoint);
    slu_cards_count(node);
    return 0;
}

static int check_state(const struct sluice_node *node, uint32_t rank)
{
    uint32_t state = slu_node_engine(node)->peers[rank].state;

    if (node->connector != NULL && !slu_cards_has(node, rank))
        return 0;
    if (state == SLUICE_STATE_FAILED)
        return slu_fail(EINVAL, "rank %u has failed: reset it first", rank);
    if (state != SLUICE_STATE_PREPARED)
        return slu_misuse(EINVAL, "rank %u is connected: reset it first", rank);
    return 0;
}

int sluice_node_peer_handshake(struct sluice_node *node, uint32_t rank,
                               const struct sluice_node_endpoint *remote)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_node_endpoint endpoint;
    int error = check_rank(node, rank);

    if (error == 0 && remote == NULL)
        error = slu_misuse(EINVAL, "a handshake needs the endpoint that rank %u made", rank);
    if (error == 0)
        error = check_use(node);
    if (error == 0)
        error = check_state(node, rank);
    if (error == 0)
        error = node->connector != NULL ? slu_cards_read(node, rank, remote->bytes, &endpoint)
                                        : slu_node_endpoint_decode(remote, &endpoint);
    if (error == 0)
        error = slu_node_check_place(node, rank, &endpoint);
    if (error < 0)
        return error;
    slu_engine_enter(slu_node_engine(node));
    error = node->connector != NULL ? connect_lazy(node, rank, remote->bytes, &endpoint)
                                    : connect_rank(node, rank, &endpoint);
    slu_engine_leave(slu_node_engine(node));
    return error;
}
