/* SPDX-License-Identifier: MIT */
/* Prepared nodes: connections and memory with an endpoint for each rank. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "node/node.h"

#define WORD_BYTES 8
/* In version 0.1. */
#define FIRST_ATTR_SIZE 16

static bool is_prepared(const struct sluice_prepared_node *prepared)
{
    return prepared != NULL && prepared->magic == SLU_MAGIC_PREPARED_NODE;
}

int slu_node_read_attr(const struct sluice_node_attr *given, struct sluice_node_attr *attr)
{
    int error = slu_attr_copy(attr, sizeof *attr, FIRST_ATTR_SIZE, given, "sluice_node_attr");

    if (error < 0)
        return error;
    if (attr->barrier > SLUICE_BARRIER_DISSEMINATION)
        return slu_misuse(EINVAL, "sluice_node_attr.barrier is %u, must be in 0..%d", attr->barrier,
                          SLUICE_BARRIER_DISSEMINATION);
    if (attr->connect > SLUICE_NODE_CONNECT_LAZY)
        return slu_misuse(EINVAL, "sluice_node_attr.connect is %u, must be in 0..%d", attr->connect,
                          SLUICE_NODE_CONNECT_LAZY);
    if ((attr->peers == NULL) != (attr->peer_count == 0))
        return slu_misuse(EINVAL, "sluice_node_attr.peer_count is %u, and peers is %s",
                          attr->peer_count, attr->peers == NULL ? "NULL" : "a list");
    if (attr->peers != NULL && attr->connect != SLUICE_NODE_CONNECT_LAZY)
        return slu_misuse(EINVAL, "sluice_node_attr.peers is for a lazy node: this one connects "
                                  "all ranks");
    return 0;
}

/* Barriers are remote writes: peers need the right to write, and the words a place. */
int slu_node_create_memory(struct sluice_node *node, struct sluice_pd *pd,
                           const struct slu_engine *engine)
{
    if ((engine->attr.access & SLUICE_ACCESS_REMOTE_WRITE) == 0)
        return slu_misuse(EINVAL, "sluice_channel_attr.access of a node has no REMOTE_WRITE, which "
                                  "its barriers need");
    node->blocks = sluice_mr_alloc(pd, (size_t)node->ranks * SLU_BLOCK_BYTES,
                                   SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE |
                                       SLUICE_ACCESS_REMOTE_READ);
    if (node->blocks == NULL)
        return slu_listed(-errno);
    if (engine->attr.max_inline >= WORD_BYTES)
        return 0;
    node->words = sluice_mr_alloc(pd, (size_t)node->ranks * SLU_BLOCK_WORDS * WORD_BYTES, 0);
    return node->words != NULL ? 0 : slu_listed(-errno);
}

struct sluice_node *slu_node_create(uint32_t rank, uint32_t ranks,
                                    const struct sluice_node_attr *attr)
{
    struct sluice_node *node = calloc(1, sizeof *node);

    if (node == NULL)
        return slu_fail_null(ENOMEM, "no memory for a node");
    node->rank = rank;
    node->ranks = ranks;
    node->algorithm = attr->barrier;
    node->generation = 1;
    node->peers = calloc(ranks, sizeof *node->peers);
    if (node->peers != NULL)
        return node;
    free(node);
    return slu_fail_null(ENOMEM, "no memory for %u rank%s", ranks, SLU_S(ranks));
}

static int create(struct sluice_prepared_node *prepared, struct sluice_pd *pd, uint32_t rank,
                  uint32_t ranks, const struct sluice_node_attr *attr)
{
    prepared->node = slu_node_create(rank, ranks, attr);
    if (prepared->node == NULL)
        return -errno;
    /* Barriers and gathers have one write in flight to each rank, see notify.c. */
    prepared->connections =
        slu_multichannel_prepare(pd, ranks, SLU_NODE_OWN_REQUESTS, attr->channel);
    if (prepared->connections == NULL)
        return -errno;
    return slu_node_create_memory(prepared->node, pd, prepared->connections->base.engine);
}

/* Keeps the thread's text, since the reason may be a failure. */
static void destroy(struct sluice_prepared_node *prepared)
{
    struct slu_text text;

    slu_text_save(&text);
    prepared->magic = SLU_MAGIC_DEAD;
    sluice_prepared_multichannel_free(prepared->connections);
    if (prepared->node != NULL)
        slu_node_free(prepared->node);
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

    if (error == 0 && known.connect == SLUICE_NODE_CONNECT_LAZY)
        error = slu_misuse(EINVAL, "sluice_node_attr.connect is LAZY, and a lazy node is made by "
                                   "sluice_node_open()");
    if (error < 0)
        return slu_none(error);
    if (ranks == 0 || ranks > SLUICE_MAX_PEERS)
        return slu_misuse_null(EINVAL, "a node of %u ranks: must be in 1..%d", ranks,
                               SLUICE_MAX_PEERS);
    if (rank >= ranks)
        return slu_misuse_null(EINVAL, "rank %u: there are ranks 0..%u", rank, ranks - 1);
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

/*
 * If barriers have begun, they are broken now, and only a reader that knows generations can join.
 */
void slu_node_make_endpoint(const struct sluice_node *node, const struct slu_engine *engine,
                            const struct sluice_remote_mr *blocks, uint32_t rank,
                            struct sluice_node_endpoint *wire)
{
    struct slu_node_endpoint endpoint = {.from = node->rank,
                                         .to = rank,
                                         .ranks = node->ranks,
                                         .algorithm = node->algorithm,
                                         .addr = blocks->addr + (uint64_t)rank * SLU_BLOCK_BYTES,
                                         .rkey = blocks->rkey,
                                         .block_bytes = SLU_BLOCK_BYTES,
                                         .generation =
                                             node->multichannel != NULL ? node->generation : 0};

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

/* The endpoint may be of another program, or not in its place. */
int slu_node_check_place(const struct sluice_node *node, uint32_t rank,
                         const struct slu_node_endpoint *endpoint)
{
    if (endpoint->ranks != node->ranks)
        return slu_fail(EPROTO, "endpoint %u is of a program of %u rank%s, this one has %u", rank,
                        endpoint->ranks, SLU_S(endpoint->ranks), node->ranks);
    if (endpoint->from != rank)
        return slu_fail(EPROTO,
                        "endpoint %u was made by rank %u: they must be in the order of the ranks",
                        rank, endpoint->from);
    if (endpoint->to != node->rank)
        return slu_fail(EPROTO, "endpoint %u is for rank %u, this is rank %u", rank, endpoint->to,
                        node->rank);
    if (endpoint->algorithm != node->algorithm)
        return slu_fail(EPROTO,
                        "sluice_node_attr.barrier of rank %u stands for algorithm %u, here for %u: "
                        "all ranks must agree",
                        rank, endpoint->algorithm, node->algorithm);
    return 0;
}

/* A new rank continues in the generation of the others, after a reset. */
void slu_node_set_endpoint(struct sluice_node *node, uint32_t rank,
                           const struct slu_node_endpoint *endpoint)
{
    node->peers[rank].addr = endpoint->addr;
    node->peers[rank].rkey = endpoint->rkey;
    node->peers[rank].block_bytes = endpoint->block_bytes;
    if (endpoint->generation == 0)
        return;
    if (endpoint->generation > node->generation)
        node->generation = endpoint->generation;
    node->broken = true;
    slu_node_publish_state(node, SLU_NODE_GAVE_UP);
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
    struct sluice_endpoint *connections = calloc(node->ranks, sizeof *connections);
    int error;

    if (connections == NULL)
        return slu_fail(ENOMEM, "no memory for the endpoints of %u rank%s", node->ranks,
                        SLU_S(node->ranks));
    error = read_remotes(node, remotes, connections);
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
