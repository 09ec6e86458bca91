/* SPDX-License-Identifier: MIT */
/*
 * A rank that was lost and comes again, as a new process perhaps: its connection is
 * made new, and nothing of it stays behind: what it wrote to us, and where we wrote
 * to it. A write of its old connection can come no more, for that is gone with its
 * queue pair, nor can one of the new connection before the handshake.
 *
 * How often a pair of ranks notified each other, and the rounds of gathers, begin
 * from zero with each generation of barriers. So the barriers of all end with the
 * generation they are in, and all go on with the next one, by a reset; a rank that is
 * new learns from the endpoints of the others which generation they are in, and then
 * resets its barriers as they do.
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

/* It has no connection. */
static void forget(struct sluice_node *node, uint32_t rank)
{
    char *blocks = sluice_mr_addr(node->blocks);

    memset(blocks + (size_t)rank * SLU_BLOCK_BYTES, 0, SLU_BLOCK_BYTES);
    node->peers[rank] = (struct slu_rank){0};
}

/* A barrier that others are in with us will not be. */
static void break_barriers(struct sluice_node *node, uint32_t rank)
{
    const struct slu_group group = {
        .node = node, .quitter = node->rank, .culprit = rank, .reason = SLU_ABORT_RECONNECTED};

    if (!node->broken)
        slu_abort_announce(&group);
}

/* Whatever becomes of the new connection, the old one is gone. */
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
    error = reset(node, rank, &blocks, endpoint);
    slu_engine_leave(slu_node_engine(node));
    return error;
}

/* What is told of broken barriers does not go to the rank: it may not be ready to hear. */
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

static int check_state(const struct sluice_node *node, uint32_t rank)
{
    uint32_t state = slu_node_engine(node)->peers[rank].state;

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
        error = slu_node_endpoint_decode(remote, &endpoint);
    if (error == 0)
        error = slu_node_check_place(node, rank, &endpoint);
    if (error < 0)
        return error;
    slu_engine_enter(slu_node_engine(node));
    error = connect_rank(node, rank, &endpoint);
    slu_engine_leave(slu_node_engine(node));
    return error;
}
