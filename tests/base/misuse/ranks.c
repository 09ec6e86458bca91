/* SPDX-License-Identifier: MIT */
/* Mistakes with exchanges and nodes. */
#include <stdlib.h>

#include "mistakes.h"

static struct sluice_exchange *open_exchange(void)
{
    const struct sluice_exchange_attr attr = {
        .size = sizeof(attr), .kind = SLUICE_EXCHANGE_TCP, .rank = 0, .ranks = 1};
    struct sluice_exchange *exchange = made(sluice_exchange_open(&attr, DEADLINE));
    return exchange;
}

static struct sluice_prepared_node *prepare_node(const struct world *world)
{
    struct sluice_prepared_node *prepared =
        made(sluice_node_prepare(world->sides.pds[0], 0, 1, NULL));
    return prepared;
}

static struct sluice_node *open_node(const struct world *world)
{
    struct sluice_node_endpoint endpoint;
    struct sluice_prepared_node *prepared = prepare_node(world);
    require_ok(sluice_prepared_node_endpoints(prepared, &endpoint, 1));
    struct sluice_node *node = made(sluice_prepared_node_handshake(prepared, &endpoint, 1));
    return node;
}

static void *something_else(const struct world *world)
{
    return world->pair.channels[0];
}

RETURNS(null_exchange, sluice_exchange_barrier, NULL, DEADLINE);
RETURNS(null_buffers, sluice_exchange_allgather, open_exchange(), NULL, NULL, 8, DEADLINE);
RETURNS(null_missing, sluice_exchange_missing, open_exchange(), NULL, 1);
MAKES(null_provider, sluice_exchange_wrap, NULL, NULL, 0, 1);
RETURNS(null_node, sluice_node_barrier, NULL, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE);
RETURNS(null_node_endpoints, sluice_prepared_node_endpoints, prepare_node(world), NULL, 1);
MAKES(null_node_handshake, sluice_prepared_node_handshake, prepare_node(world), NULL, 1);
RETURNS(other_exchange, sluice_exchange_barrier, something_else(world), DEADLINE);
MAKES(other_exchange_to_open_a_node, sluice_node_open, world->sides.pds[0], something_else(world),
      NULL, DEADLINE);
RETURNS(other_node, sluice_node_barrier_reset, something_else(world));
MAKES(multichannel_of_other_node, sluice_node_multichannel, something_else(world));
RETURNS(other_prepared_node, sluice_prepared_node_endpoints, something_else(world),
        &(struct sluice_node_endpoint){0}, 1);

/* A closed node may be any memory by now: here it is bytes that are no live object. */
RETURNS(ended_node, sluice_node_shutdown, (struct sluice_node *)(void *)world->memory.bytes,
        DEADLINE);
ENDS(close_other_exchange, sluice_exchange_close, something_else(world));
ENDS(close_other_node, sluice_node_close, something_else(world));
ENDS(close_multichannel_of_node, sluice_multichannel_close,
     sluice_node_multichannel(open_node(world)));

/* A node over an exchange that was given, on a device of its own. */
static struct sluice_node *open_node_on_device(void)
{
    setenv("SLUICE_DEVICE", test_device(), 1);
    struct sluice_node *node = made(sluice_node_open(NULL, open_exchange(), NULL, DEADLINE));
    return node;
}

ENDS(free_domain_of_node, sluice_pd_free, sluice_node_pd(open_node_on_device()));
ENDS(close_context_of_node, sluice_context_close, sluice_node_context(open_node_on_device()));

int exchange_of_node_without(struct world *world)
{
    return CALL(sluice_node_exchange)(open_node(world)) == NULL ? -errno : 0;
}

RETURNS(shut_down_multichannel_of_node, sluice_multichannel_shutdown,
        sluice_node_multichannel(open_node(world)), 0);
RETURNS(add_to_multichannel_of_node, sluice_multichannel_peer_add,
        sluice_node_multichannel(open_node(world)), &(struct sluice_endpoint){0});
RETURNS(remove_from_multichannel_of_node, sluice_multichannel_peer_remove,
        sluice_node_multichannel(open_node(world)), 0);
ENDS(free_other_prepared_node, sluice_prepared_node_free, something_else(world));
MAKES(no_size_of_exchange, sluice_exchange_open,
      &(struct sluice_exchange_attr){.rank = 0, .ranks = 1}, DEADLINE);
MAKES(wild_size_of_node, sluice_node_prepare, world->sides.pds[0], 0, 1,
      &(struct sluice_node_attr){.size = 5000});

static int open_with(uint32_t kind, uint32_t rank, uint32_t ranks)
{
    const struct sluice_exchange_attr attr = {
        .size = sizeof(attr), .kind = kind, .rank = rank, .ranks = ranks};
    return result_of(CALL(sluice_exchange_open)(&attr, DEADLINE));
}

int kind_out_of_range(struct world *world)
{
    (void)world;
    return open_with(SLUICE_EXCHANGE_OWN, 0, 1);
}

int rank_out_of_range(struct world *world)
{
    (void)world;
    return open_with(SLUICE_EXCHANGE_TCP, 2, 2);
}

int ranks_over_pmix(struct world *world)
{
    (void)world;
    return open_with(SLUICE_EXCHANGE_PMIX, 0, 1);
}

MAKES(barrier_out_of_range, sluice_node_prepare, world->sides.pds[0], 0, 1,
      &(struct sluice_node_attr){.size = sizeof(struct sluice_node_attr), .barrier = 4});
MAKES(reserved_field_of_provider, sluice_exchange_wrap,
      &(struct sluice_exchange_provider){.size = sizeof(struct sluice_exchange_provider),
                                         .reserved = 1},
      NULL, 0, 1);
RETURNS(negative_deadline_of_exchange, sluice_exchange_barrier, open_exchange(), -1);
RETURNS(negative_deadline_of_barrier, sluice_node_barrier, open_node(world), NULL, 0,
        SLUICE_BARRIER_DEFAULT, -1);
RETURNS(too_many_bytes_to_exchange, sluice_exchange_allgather, open_exchange(), NULL, NULL,
        SLUICE_MAX_EXCHANGE_BYTES + 1, DEADLINE);
MAKES(no_ranks, sluice_node_prepare, world->sides.pds[0], 0, 0, NULL);

int wrong_number_of_ranks(struct world *world)
{
    struct sluice_node_endpoint endpoints[2] = {{{0}}};
    return result_of(CALL(sluice_prepared_node_handshake)(prepare_node(world), endpoints, 2));
}

int group_that_descends(struct world *world)
{
    static const uint32_t ranks[] = {0, 0};
    return CALL(sluice_node_barrier)(open_node(world), ranks, 2, SLUICE_BARRIER_TREE, DEADLINE);
}

int no_such_rank(struct world *world)
{
    static const uint32_t ranks[] = {1};
    return CALL(sluice_node_barrier)(open_node(world), ranks, 1, SLUICE_BARRIER_TREE, DEADLINE);
}

/* Opens a node of one member that grows, and writes the endpoint that it was made with. */
static struct sluice_node *open_growing(const struct world *world,
                                        struct sluice_node_endpoint *endpoints)
{
    const struct sluice_node_attr attr = {
        .size = sizeof(attr), .connect = SLUICE_NODE_CONNECT_LAZY, .max_ranks = 2};
    struct sluice_prepared_node *prepared =
        made(sluice_node_prepare(world->sides.pds[0], 0, 2, &attr));
    require_ok(sluice_prepared_node_endpoints(prepared, endpoints, 2));
    memset(&endpoints[1], 0, sizeof(endpoints[1]));
    struct sluice_node *node = made(sluice_prepared_node_handshake(prepared, endpoints, 2));
    return node;
}

RETURNS(null_node_to_grow, sluice_node_grow, NULL, &(struct sluice_node_endpoint){0}, 1);
RETURNS(null_own_endpoint, sluice_node_own_endpoint,
        open_growing(world, (struct sluice_node_endpoint[2]){{{0}}}), NULL);
RETURNS(other_node_to_shrink, sluice_node_shrink, something_else(world), &(uint32_t){0}, 1);
RETURNS(grow_by_none, sluice_node_grow,
        open_growing(world, (struct sluice_node_endpoint[2]){{{0}}}),
        &(struct sluice_node_endpoint){0}, 0);
RETURNS(grow_a_fixed_node, sluice_node_grow, open_node(world), &(struct sluice_node_endpoint){0},
        1);

int grow_by_a_member(struct world *world)
{
    struct sluice_node_endpoint endpoints[2];
    struct sluice_node *node = open_growing(world, endpoints);
    return CALL(sluice_node_grow)(node, endpoints, 1);
}

int shrink_by_no_member(struct world *world)
{
    struct sluice_node_endpoint endpoints[2];
    return CALL(sluice_node_shrink)(open_growing(world, endpoints), &(uint32_t){1}, 1);
}

int null_members(struct world *world)
{
    return (int)CALL(sluice_node_members)(open_node(world), NULL, 1);
}

int generation_of_other_node(struct world *world)
{
    return (int)CALL(sluice_node_generation)(something_else(world));
}

MAKES(ranks_of_a_node_that_does_not_connect_later, sluice_node_prepare, world->sides.pds[0], 0, 1,
      &(struct sluice_node_attr){.size = sizeof(struct sluice_node_attr), .max_ranks = 1});
