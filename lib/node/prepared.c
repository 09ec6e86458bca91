/* SPDX-License-Identifier: MIT */
/* Prepared nodes: connections and memory with an endpoint for each rank. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "node/node.h"

static bool is_prepared(const struct sluice_prepared_node *prepared)
{
    return prepared != NULL && prepared->magic == SLU_MAGIC_PREPARED_NODE;
}

static int create(struct sluice_prepared_node *prepared, struct sluice_pd *pd, uint32_t rank,
                  uint32_t ranks, const struct sluice_node_attr *attr)
{
    prepared->node = slu_node_create(rank, ranks, attr);
    if (prepared->node == NULL)
        return -errno;
    if (attr->connect == SLUICE_NODE_CONNECT_LAZY)
        return slu_node_create_lazy(prepared->node, pd, attr);
    /* Barriers and gathers have one write in flight to each rank, see notify.c. */
    prepared->connections =
        slu_multichannel_prepare(pd, ranks, SLU_NODE_OWN_REQUESTS, attr->channel);
    if (prepared->connections == NULL)
        return -errno;
    prepared->connections->base.engine->peer_word = "rank";
    prepared->files = slu_files_left();
    return slu_node_create_memory(prepared->node, pd, prepared->connections->base.engine);
}

/* Keeps the thread's text, since the reason may be a failure. */
static void destroy(struct sluice_prepared_node *prepared)
{
    struct slu_text text;

    slu_text_save(&text);
    prepared->magic = SLU_MAGIC_DEAD;
    sluice_prepared_multichannel_free(prepared->connections);
    if (prepared->node != NULL) {
        slu_node_end_lazy(prepared->node);
        slu_node_free(prepared->node);
    }
    free(prepared);
    slu_text_restore(&text);
}

static void *fail_prepared(struct sluice_prepared_node *prepared, int error)
{
    destroy(prepared);
    return slu_none(error);
}

struct sluice_prepared_node *sluice_node_prepare(struct sluice_pd *pd, uint32_t rank,
                                                 uint32_t ranks,
                                                 const struct sluice_node_attr *attr)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_prepared_node *prepared;
    struct sluice_node_attr known;
    int error = slu_node_read_attr(attr, &known);

    if (error == 0 && known.peers != NULL)
        error = slu_misuse(EINVAL, "sluice_node_attr.peers is for sluice_node_open(): a handshake "
                                   "waits for no rank, sluice_node_reach() does");
    if (error < 0)
        return slu_none(error);
    if (ranks == 0 || ranks > SLUICE_MAX_PEERS)
        return slu_misuse_null(EINVAL, "a node of %u ranks: must be in 1..%d", ranks,
                               SLUICE_MAX_PEERS);
    if (rank >= ranks)
        return slu_misuse_null(EINVAL, "rank %u: there are ranks 0..%u", rank, ranks - 1);
    if (known.max_ranks != 0 && known.max_ranks != ranks)
        return slu_misuse_null(EINVAL, "a node of %u rank%s: sluice_node_attr.max_ranks is %u",
                               ranks, SLU_S(ranks), known.max_ranks);
    prepared = calloc(1, sizeof *prepared);
    if (prepared == NULL)
        return slu_fail_null(ENOMEM, "no memory for a node");
    error = create(prepared, pd, rank, ranks, &known);
    if (error < 0)
        return fail_prepared(prepared, error);
    prepared->magic = SLU_MAGIC_PREPARED_NODE;
    slu_log_set_rank(rank);
    return prepared;
}

void sluice_prepared_node_free(struct sluice_prepared_node *prepared)
{
    SLU_UNCANCELLED_BLOCK;
    if (slu_may_end(prepared, SLU_MAGIC_PREPARED_NODE, "prepared node"))
        destroy(prepared);
}

static int make_cards(const struct sluice_node *node, struct sluice_node_endpoint *endpoints,
                      uint32_t ranks)
{
    int error;

    memset(endpoints, 0, ranks * sizeof *endpoints);
    error = slu_cards_make(node, endpoints[0].bytes);
    for (uint32_t i = 1; i < ranks; i++)
        endpoints[i] = endpoints[0];
    return error;
}

/*
 * If barriers have begun, they are broken now, and only a reader that knows generations can join.
 */
void slu_node_make_endpoint(const struct sluice_node *node, const struct slu_engine *engine,
                            const struct sluice_remote_mr *blocks, uint32_t rank,
                            struct sluice_node_endpoint *wire)
{
    struct slu_node_endpoint endpoint = {
        .from = node->rank,
        .to = rank,
        .ranks = node->ranks,
        .algorithm = node->algorithm,
        .addr = blocks->addr + (uint64_t)rank * slu_block_bytes(node),
        .rkey = blocks->rkey,
        .block_bytes = slu_block_bytes(node),
        .generation = node->multichannel != NULL ? node->generation : 0};

    slu_peer_endpoint(engine, &engine->peers[rank], &endpoint.connection);
    slu_node_endpoint_encode(&endpoint, wire);
}

int sluice_prepared_node_endpoints(const struct sluice_prepared_node *prepared,
                                   struct sluice_node_endpoint *endpoints, uint32_t ranks)
{
    struct sluice_remote_mr blocks;
    struct slu_engine *engine;
    int error;

    if (!is_prepared(prepared))
        return slu_misuse(EINVAL, "not a prepared node%s", slu_none_hint(prepared));
    if (endpoints == NULL)
        return slu_misuse(EINVAL, "endpoints must not be NULL");
    if (ranks != prepared->node->ranks)
        return slu_misuse(EINVAL, "room for %u endpoint%s, but there are %u rank%s", ranks,
                          SLU_S(ranks), prepared->node->ranks, SLU_S(prepared->node->ranks));
    if (prepared->node->connector != NULL)
        return make_cards(prepared->node, endpoints, ranks);
    error = sluice_mr_remote(prepared->node->blocks, &blocks);
    if (error < 0)
        return error;
    engine = prepared->connections->base.engine;
    slu_engine_enter(engine);
    for (uint32_t i = 0; i < ranks; i++)
        slu_node_make_endpoint(prepared->node, engine, &blocks, i, &endpoints[i]);
    slu_engine_leave(engine);
    return 0;
}

/* For an unusable endpoint, makes an unusable one of a connection: that peer then has failed. */
static int read_remotes(struct sluice_node *node, const struct sluice_node_endpoint *remotes,
                        struct sluice_endpoint *connections)
{
    struct slu_node_endpoint endpoint;
    int error = 0;

    for (uint32_t i = 0; i < node->ranks && error == 0; i++) {
        if (slu_node_endpoint_decode(&remotes[i], &endpoint) < 0) {
            slu_log(SLUICE_LOG_WARN, "rank %u: %s", i, sluice_last_error());
            memset(&connections[i], 0xff, sizeof connections[i]);
            continue;
        }
        error = slu_node_check_place(node, i, &endpoint);
        slu_node_set_endpoint(node, i, &endpoint);
        connections[i] = endpoint.connection;
    }
    return error;
}

/* On success the node owns the connections. */
static int connect_ranks(struct sluice_prepared_node *prepared,
                         const struct sluice_node_endpoint *remotes)
{
    struct sluice_node *node = prepared->node;
    struct sluice_endpoint *connections;
    int error;

    if (node->connector != NULL)
        return slu_cards_handshake(node, remotes);
    connections = calloc(node->ranks, sizeof *connections);
    if (connections == NULL)
        return slu_fail(ENOMEM, "no memory for the endpoints of %u rank%s", node->ranks,
                        SLU_S(node->ranks));
    error = read_remotes(node, remotes, connections);
    if (error == 0)
        error = slu_files_check(prepared->files, node->rank, prepared->connections->base.engine,
                                connections, node->ranks);
    if (error == 0) {
        node->multichannel =
            sluice_prepared_multichannel_handshake(prepared->connections, connections, node->ranks);
        error = node->multichannel != NULL ? 0 : -errno;
        prepared->connections = NULL;
    }
    free(connections);
    return error;
}

struct sluice_node *sluice_prepared_node_handshake(struct sluice_prepared_node *prepared,
                                                   const struct sluice_node_endpoint *remotes,
                                                   uint32_t ranks)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_node *node;
    int error;

    if (!is_prepared(prepared))
        return slu_misuse_null(EINVAL, "not a prepared node (or its handshake was done before)%s",
                               slu_none_hint(prepared));
    if (remotes == NULL)
        error = slu_misuse(EINVAL, "a handshake needs the endpoints of all ranks");
    else if (ranks != prepared->node->ranks)
        error = slu_misuse(EINVAL, "%u endpoint%s for %u rank%s", ranks, SLU_S(ranks),
                           prepared->node->ranks, SLU_S(prepared->node->ranks));
    else
        error = connect_ranks(prepared, remotes);
    if (error < 0)
        return fail_prepared(prepared, error);
    node = prepared->node;
    node->magic = SLU_MAGIC_NODE;
    node->multichannel->base.owned = true;
    prepared->node = NULL;
    destroy(prepared);
    slu_made();
    return node;
}
