/* SPDX-License-Identifier: MIT */
/*
 * The cards of all ranks of a lazy node: making that of this rank, and taking those of others. The
 * place of a rank that is absent has zeros. Jobs of the connector read the cards, so they change
 * only while the engine is entered.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "node/connector.h"
#include "node/node.h"

static uint8_t *place_of(const struct sluice_node *node, uint32_t rank)
{
    return node->cards + (size_t)rank * SLU_CARD_BYTES;
}

int slu_cards_make(const struct sluice_node *node, uint8_t *wire)
{
    struct slu_card card = {.rank = node->rank,
                            .ranks = node->ranks,
                            .algorithm = node->algorithm,
                            .access = slu_node_engine(node)->attr.access,
                            .generation = node->magic == SLU_MAGIC_NODE ? node->generation : 0,
                            .block_bytes = slu_block_bytes(node)};
    struct sluice_remote_mr blocks;
    int error = sluice_mr_remote(node->blocks, &blocks);

    if (error < 0)
        return error;
    card.host = node->connector->host;
    card.addr = blocks.addr;
    card.rkey = blocks.rkey;
    slu_connector_describe(node->connector, &card);
    slu_card_encode(&card, wire);
    return 0;
}

int slu_cards_read(const struct sluice_node *node, uint32_t rank, const uint8_t *wire,
                   struct slu_node_endpoint *endpoint)
{
    struct slu_card card = {0};
    int error = slu_card_decode(wire, rank, &card);

    if (error < 0)
        return error;
    *endpoint =
        (struct slu_node_endpoint){.from = rank,
                                   .to = node->rank,
                                   .ranks = card.ranks,
                                   .algorithm = card.algorithm,
                                   .generation = card.generation,
                                   .addr = card.addr + (uint64_t)node->rank * card.block_bytes,
                                   .rkey = card.rkey,
                                   .block_bytes = card.block_bytes};
    return 0;
}

void slu_cards_put(struct sluice_node *node, uint32_t rank, const uint8_t *wire,
                   const struct slu_node_endpoint *endpoint)
{
    memcpy(place_of(node, rank), wire, SLU_CARD_BYTES);
    slu_node_set_endpoint(node, rank, endpoint);
}

bool slu_cards_has(const struct sluice_node *node, uint32_t rank)
{
    return slu_card_is_there(place_of(node, rank));
}

void slu_cards_count(struct sluice_node *node)
{
    if (node->members == NULL)
        return;
    node->member_count = 0;
    for (uint32_t i = 0; i < node->ranks; i++)
        if (i == node->rank || slu_cards_has(node, i))
            node->members[node->member_count++] = i;
}

void slu_cards_open(struct sluice_node *node)
{
    node->connector->open = true;
    slu_cards_count(node);
}

/* The card is dropped first, so that the process cannot connect once more meanwhile. */
void slu_cards_drop(struct sluice_node *node, uint32_t rank)
{
    struct slu_engine *engine = slu_node_engine(node);

    memset(place_of(node, rank), 0, SLU_CARD_BYTES);
    if (!slu_node_is_absent(node, rank))
        slu_peer_vanish(engine, &engine->peers[rank]);
    slu_deferred_expel(engine->cq->deferred, rank);
}

static int read_remote(struct sluice_node *node, uint32_t rank, const uint8_t *wire)
{
    struct slu_node_endpoint endpoint;
    int error;

    /* Zeros stand for a rank that is absent. */
    if (!slu_card_is_there(wire))
        return 0;
    if (slu_cards_read(node, rank, wire, &endpoint) < 0) {
        slu_log(SLUICE_LOG_WARN, "rank %u: %s", rank, sluice_last_error());
        return 0;
    }
    error = slu_node_check_place(node, rank, &endpoint);
    if (error == 0)
        slu_cards_put(node, rank, wire, &endpoint);
    return error;
}

int slu_cards_handshake(struct sluice_node *node, const struct sluice_node_endpoint *remotes)
{
    int error = 0;

    slu_engine_enter(slu_node_engine(node));
    for (uint32_t i = 0; i < node->ranks && error == 0; i++)
        error = read_remote(node, i, remotes[i].bytes);
    if (error == 0)
        slu_cards_open(node);
    slu_engine_leave(slu_node_engine(node));
    return error;
}

/* A new member need not have its own card. */
static uint32_t host_of(const struct sluice_node *node, uint32_t rank)
{
    return rank == node->rank ? node->connector->host : slu_card_host(place_of(node, rank));
}

static int make_tree(struct sluice_node *node, uint32_t *hosts)
{
    struct slu_group group = {.node = node};
    int error;

    slu_group_all(&group);
    for (uint32_t i = 0; i < group.count; i++)
        hosts[i] = host_of(node, slu_group_rank(&group, i));
    error = slu_tree_make(&node->tree, group.self, group.count, hosts);
    if (error == 0 && group.ranks != NULL)
        error = slu_tree_rename(&node->tree, group.ranks);
    if (error < 0)
        slu_tree_free(&node->tree);
    return error;
}

/* All ranks have all cards when they come to a call of all, and so make the same tree. */
int slu_node_make_tree(struct sluice_node *node)
{
    uint32_t *hosts;
    int error;

    if (!node->by_tree || node->tree_made)
        return 0;
    hosts = malloc(node->ranks * sizeof *hosts);
    if (hosts == NULL)
        return slu_fail(ENOMEM, "no memory for a tree of all ranks");
    error = make_tree(node, hosts);
    free(hosts);
    node->tree_made = error == 0;
    return error;
}
