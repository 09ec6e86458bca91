/* SPDX-License-Identifier: MIT */
/*
 * The node itself, without connections: its attributes, its memory, and what it knows of each rank.
 */
#include "config.h"

#include <stdlib.h>

#include "node/flow.h"

#define WORD_BYTES 8

int slu_node_read_attr(const struct sluice_node_attr *given, struct sluice_node_attr *attr)
{
    int error = SLU_ATTR_COPY(sluice_node_attr, attr, given);

    if (error < 0)
        return error;
    if (attr->barrier > SLUICE_BARRIER_DISSEMINATION)
        return slu_misuse(EINVAL, "sluice_node_attr.barrier is %u, must be in 0..%d", attr->barrier,
                          SLUICE_BARRIER_DISSEMINATION);
    if (attr->connect > SLUICE_NODE_CONNECT_LAZY)
        return slu_misuse(EINVAL, "sluice_node_attr.connect is %u, must be in 0..%d", attr->connect,
                          SLUICE_NODE_CONNECT_LAZY);
    if (attr->peers == NULL && attr->peer_count != 0)
        return slu_misuse(EINVAL, "sluice_node_attr.peer_count is %u, and peers is NULL",
                          attr->peer_count);
    if (attr->peers != NULL && attr->connect != SLUICE_NODE_CONNECT_LAZY)
        return slu_misuse(EINVAL, "sluice_node_attr.peers is for a lazy node: this one connects "
                                  "all ranks");
    if (attr->max_connections != 0 && attr->connect != SLUICE_NODE_CONNECT_LAZY)
        return slu_misuse(EINVAL, "sluice_node_attr.max_connections is for a lazy node: this one "
                                  "connects all ranks");
    if (attr->max_ranks != 0 && attr->connect != SLUICE_NODE_CONNECT_LAZY)
        return slu_misuse(EINVAL, "sluice_node_attr.max_ranks is for a lazy node: this one "
                                  "connects all ranks");
    if (attr->max_ranks > SLUICE_MAX_PEERS)
        return slu_misuse(EINVAL, "sluice_node_attr.max_ranks is %u, must be in 0..%d",
                          attr->max_ranks, SLUICE_MAX_PEERS);
    return 0;
}

static uint32_t lost_by(const struct slu_farewells *farewells, uint32_t rank)
{
    return slu_node_lost_by(slu_container_of(farewells, struct sluice_node, farewells), rank);
}

/* Barriers are remote writes: peers need the right to write, and the words a place. */
int slu_node_create_memory(struct sluice_node *node, struct sluice_pd *pd,
                           struct slu_engine *engine)
{
    size_t windows = 0;

    node->by_tree = node->connector != NULL && node->ranks > SLU_FEW_RANKS;
    if (node->by_tree)
        windows = slu_windows_bytes(node->ranks);
    if ((engine->attr.access & SLUICE_ACCESS_REMOTE_WRITE) == 0)
        return slu_misuse(EINVAL, "sluice_channel_attr.access of a node has no REMOTE_WRITE, which "
                                  "its barriers need");
    node->blocks = sluice_mr_alloc(pd, slu_windows_at(node) + windows,
                                   SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE |
                                       SLUICE_ACCESS_REMOTE_READ);
    if (node->blocks == NULL)
        return slu_listed(-errno);
    node->farewells.lost = lost_by;
    engine->farewells = &node->farewells;
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
    node->places = calloc(ranks, sizeof *node->places);
    if (attr->max_ranks > 0)
        node->members = calloc(ranks, sizeof *node->members);
    if (node->peers != NULL && node->places != NULL &&
        (attr->max_ranks == 0 || node->members != NULL))
        return node;
    free(node->members);
    free(node->places);
    free(node->peers);
    free(node);
    return slu_fail_null(ENOMEM, "no memory for %u rank%s", ranks, SLU_S(ranks));
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
    node->places[rank].addr = endpoint->addr;
    node->places[rank].rkey = endpoint->rkey;
    node->places[rank].block_bytes = endpoint->block_bytes;
    if (endpoint->generation == 0)
        return;
    if (endpoint->generation > node->generation)
        node->generation = endpoint->generation;
    node->broken = true;
    slu_node_publish_state(node, SLU_NODE_GAVE_UP);
}
