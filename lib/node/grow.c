/* SPDX-License-Identifier: MIT */
/*
 * Nodes whose members come later, and leave for good. Such a node has all its rank numbers from the
 * beginning, so nothing that peers know of it moves. A change resets the barriers, whose generation
 * is that of the members. The words of a rank that left are cleared when it is removed, and not
 * when its number is taken again: a new member may write before this rank takes it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "node/connector.h"
#include "node/node.h"

static int check_use(const struct sluice_node *node)
{
    if (!slu_is_node(node))
        return slu_not_a_node(node);
    if (node->members == NULL)
        return slu_misuse(EINVAL, "a node without max_ranks of its attributes keeps its ranks");
    if (node->ended)
        return slu_fail(ENOTCONN, "the node was shut down");
    return slu_scope_check(slu_node_engine(node));
}

static bool is_member(const struct sluice_node *node, uint32_t rank)
{
    return rank == node->rank || slu_cards_has(node, rank);
}

/* The maker says which rank it is. */
static uint32_t rank_of(const struct sluice_node_endpoint *endpoint)
{
    const uint8_t *at = endpoint->bytes + SLU_CARD_RANK_AT;

    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int check_comer(const struct sluice_node *node, const struct sluice_node_endpoint *wire,
                       uint32_t at)
{
    struct slu_node_endpoint endpoint;
    uint32_t rank = rank_of(&wire[at]);
    int error = slu_cards_read(node, rank, wire[at].bytes, &endpoint);

    if (error == 0)
        error = slu_node_check_place(node, rank, &endpoint);
    if (error == 0 && rank >= node->ranks)
        error = slu_fail(EPROTO, "endpoints[%u] is of rank %u: there are numbers 0..%u", at, rank,
                         node->ranks - 1);
    if (error < 0)
        return error;
    if (is_member(node, rank))
        return slu_misuse(EINVAL, "endpoints[%u] is of rank %u, which is a member", at, rank);
    for (uint32_t i = 0; i < at; i++)
        if (rank_of(&wire[i]) == rank)
            return slu_misuse(EINVAL, "endpoints %u and %u are of rank %u", i, at, rank);
    return 0;
}

/*
 * A number that was used while it was free has a failed peer. If the process is the one that was
 * removed last, it is not refused any more.
 */
static void take(struct sluice_node *node, const struct sluice_node_endpoint *wire)
{
    struct slu_node_endpoint endpoint;
    uint32_t rank = rank_of(wire);
    struct slu_gone *gone = &node->connector->gone[rank];

    slu_cards_drop(node, rank);
    slu_cards_read(node, rank, wire->bytes, &endpoint);
    slu_cards_put(node, rank, wire->bytes, &endpoint);
    if (gone->id == slu_card_id(wire->bytes))
        *gone = (struct slu_gone){.generation = 0};
}

/* The engine is entered. Ends with the members of the next generation. */
static int begin_generation(struct sluice_node *node)
{
    slu_cards_count(node);
    slu_engine_leave(slu_node_engine(node));
    return sluice_node_barrier_reset(node);
}

int sluice_node_grow(struct sluice_node *node, const struct sluice_node_endpoint *endpoints,
                     uint32_t count)
{
    SLU_UNCANCELLED_BLOCK;
    int error = check_use(node);

    if (error == 0 && (endpoints == NULL || count == 0))
        error = slu_misuse(EINVAL, "a node grows by at least one endpoint");
    for (uint32_t i = 0; error == 0 && i < count; i++)
        error = check_comer(node, endpoints, i);
    if (error < 0)
        return error;
    slu_engine_enter(slu_node_engine(node));
    for (uint32_t i = 0; i < count; i++)
        take(node, &endpoints[i]);
    return begin_generation(node);
}

static int check_leaver(const struct sluice_node *node, const uint32_t *ranks, uint32_t at)
{
    uint32_t rank = ranks[at];

    if (rank >= node->ranks)
        return slu_misuse(EINVAL, "ranks[%u] is %u: there are numbers 0..%u", at, rank,
                          node->ranks - 1);
    if (rank == node->rank)
        return slu_misuse(EINVAL, "ranks[%u] is this rank, which leaves by sluice_node_close()",
                          at);
    if (!is_member(node, rank))
        return slu_misuse(EINVAL, "ranks[%u] is %u, which is no member", at, rank);
    for (uint32_t i = 0; i < at; i++)
        if (ranks[i] == rank)
            return slu_misuse(EINVAL, "ranks %u and %u are both %u", i, at, rank);
    return 0;
}

static void drop(struct sluice_node *node, uint32_t rank)
{
    char *blocks = sluice_mr_addr(node->blocks);

    node->connector->gone[rank] =
        (struct slu_gone){.id = slu_card_id(node->cards + (size_t)rank * SLU_CARD_BYTES),
                          .generation = node->generation + 1};
    slu_cards_drop(node, rank);
    memset(blocks + (size_t)rank * slu_block_bytes(node), 0, slu_block_bytes(node));
    node->places[rank] = (struct slu_place){0};
    node->peers[rank] = (struct slu_rank){0};
}

/* All connections are failed first, so that their drains take the time of one. */
static int begin_drains(struct sluice_node *node, const uint32_t *ranks, uint32_t count)
{
    uint8_t *which = calloc(node->ranks, 1);

    if (which == NULL)
        return slu_fail(ENOMEM, "no memory for %u ranks", node->ranks);
    for (uint32_t i = 0; i < count; i++)
        which[ranks[i]] = !slu_node_is_absent(node, ranks[i]);
    slu_engine_begin_drain(slu_node_engine(node), which);
    free(which);
    return 0;
}

int sluice_node_shrink(struct sluice_node *node, const uint32_t *ranks, uint32_t count)
{
    SLU_UNCANCELLED_BLOCK;
    int error = check_use(node);

    if (error == 0 && (ranks == NULL || count == 0))
        error = slu_misuse(EINVAL, "a node shrinks by at least one rank");
    for (uint32_t i = 0; error == 0 && i < count; i++)
        error = check_leaver(node, ranks, i);
    if (error == 0)
        error = begin_drains(node, ranks, count);
    if (error < 0)
        return error;
    slu_engine_enter(slu_node_engine(node));
    for (uint32_t i = 0; i < count; i++)
        drop(node, ranks[i]);
    return begin_generation(node);
}

int sluice_node_own_endpoint(const struct sluice_node *node, struct sluice_node_endpoint *endpoint)
{
    struct sluice_node_endpoint made = {{0}};
    int error;

    if (!slu_is_node(node))
        return slu_not_a_node(node);
    if (node->members == NULL)
        return slu_misuse(EINVAL, "a node without max_ranks of its attributes takes no new ranks");
    if (endpoint == NULL)
        return slu_misuse(EINVAL, "endpoint must not be NULL");
    error = slu_cards_make(node, made.bytes);
    if (error == 0)
        *endpoint = made;
    return error;
}

int64_t sluice_node_members(const struct sluice_node *node, uint32_t *ranks, uint32_t room)
{
    uint32_t count;

    if (!slu_is_node(node))
        return slu_not_a_node(node);
    if (ranks == NULL && room > 0)
        return slu_misuse(EINVAL, "a list with room for %u rank%s is NULL", room, SLU_S(room));
    count = slu_node_count(node);
    for (uint32_t i = 0; i < count && i < room; i++)
        ranks[i] = node->members != NULL ? node->members[i] : i;
    return count;
}

int64_t sluice_node_generation(const struct sluice_node *node)
{
    return slu_is_node(node) ? (int64_t)node->generation : slu_not_a_node(node);
}
