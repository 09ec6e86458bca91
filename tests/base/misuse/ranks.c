/* SPDX-License-Identifier: MIT */
/* Mistakes with exchanges and nodes. */
#include <stdlib.h>

#include "mistakes.h"

static struct sluice_exchange *open_exchange(void)
{
    const struct sluice_exchange_attr attr = {
        .size = sizeof(attr), .kind = SLUICE_EXCHANGE_TCP, .rank = 0, .ranks = 1};
    struct sluice_exchange *exchange = sluice_exchange_open(&attr, DEADLINE);
    require(exchange, "%s", sluice_last_error());
    return exchange;
}

static struct sluice_prepared_node *prepare_node(const struct world *world)
{
    struct sluice_prepared_node *prepared = sluice_node_prepare(world->sides.pds[0], 0, 1, NULL);
    require(prepared, "%s", sluice_last_error());
    return prepared;
}

static struct sluice_node *open_node(const struct world *world)
{
    struct sluice_node_endpoint endpoint;
    struct sluice_prepared_node *prepared = prepare_node(world);
    require_ok(sluice_prepared_node_endpoints(prepared, &endpoint, 1));
    struct sluice_node *node = sluice_prepared_node_handshake(prepared, &endpoint, 1);
    require(node, "%s", sluice_last_error());
    return node;
}

static void *something_else(const struct world *world)
{
    return world->pair.channels[0];
}

int null_exchange(struct world *world)
{
    (void)world;
    return CALL(sluice_exchange_barrier)(NULL, DEADLINE);
}

int null_buffers(struct world *world)
{
    (void)world;
    return CALL(sluice_exchange_allgather)(open_exchange(), NULL, NULL, 8, DEADLINE);
}

int null_missing(struct world *world)
{
    (void)world;
    return CALL(sluice_exchange_missing)(open_exchange(), NULL, 1);
}

int null_provider(struct world *world)
{
    (void)world;
    return result_of(CALL(sluice_exchange_wrap)(NULL, NULL, 0, 1));
}

int null_node(struct world *world)
{
    (void)world;
    return CALL(sluice_node_barrier)(NULL, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE);
}

int null_node_endpoints(struct world *world)
{
    return CALL(sluice_prepared_node_endpoints)(prepare_node(world), NULL, 1);
}

int null_node_handshake(struct world *world)
{
    return result_of(CALL(sluice_prepared_node_handshake)(prepare_node(world), NULL, 1));
}

int other_exchange(struct world *world)
{
    return CALL(sluice_exchange_barrier)(something_else(world), DEADLINE);
}

int other_exchange_to_open_a_node(struct world *world)
{
    return result_of(
        CALL(sluice_node_open)(world->sides.pds[0], something_else(world), NULL, DEADLINE));
}

int other_node(struct world *world)
{
    return CALL(sluice_node_barrier_reset)(something_else(world));
}

int multichannel_of_other_node(struct world *world)
{
    return result_of(CALL(sluice_node_multichannel)(something_else(world)));
}

int other_prepared_node(struct world *world)
{
    struct sluice_node_endpoint endpoint;
    return CALL(sluice_prepared_node_endpoints)(something_else(world), &endpoint, 1);
}

/* A closed node may be any memory by now: here it is bytes that are no live object. */
int ended_node(struct world *world)
{
    return CALL(sluice_node_shutdown)((struct sluice_node *)(void *)world->memory.bytes, DEADLINE);
}

int close_other_exchange(struct world *world)
{
    CALL(sluice_exchange_close)(something_else(world));
    return 0;
}

int close_other_node(struct world *world)
{
    CALL(sluice_node_close)(something_else(world));
    return 0;
}

int close_multichannel_of_node(struct world *world)
{
    CALL(sluice_multichannel_close)(sluice_node_multichannel(open_node(world)));
    return 0;
}

/* A node over an exchange that was given, on a device of its own. */
static struct sluice_node *open_node_on_device(void)
{
    setenv("SLUICE_DEVICE", test_device(), 1);
    struct sluice_node *node = sluice_node_open(NULL, open_exchange(), NULL, DEADLINE);
    require(node, "%s", sluice_last_error());
    return node;
}

int free_domain_of_node(struct world *world)
{
    (void)world;
    CALL(sluice_pd_free)(sluice_node_pd(open_node_on_device()));
    return 0;
}

int close_context_of_node(struct world *world)
{
    (void)world;
    CALL(sluice_context_close)(sluice_node_context(open_node_on_device()));
    return 0;
}

int exchange_of_node_without(struct world *world)
{
    return CALL(sluice_node_exchange)(open_node(world)) == NULL ? -errno : 0;
}

int shut_down_multichannel_of_node(struct world *world)
{
    return CALL(sluice_multichannel_shutdown)(sluice_node_multichannel(open_node(world)), 0);
}

int add_to_multichannel_of_node(struct world *world)
{
    struct sluice_endpoint endpoint;
    return CALL(sluice_multichannel_peer_add)(sluice_node_multichannel(open_node(world)),
                                              &endpoint);
}

int remove_from_multichannel_of_node(struct world *world)
{
    return CALL(sluice_multichannel_peer_remove)(sluice_node_multichannel(open_node(world)), 0);
}

int free_other_prepared_node(struct world *world)
{
    CALL(sluice_prepared_node_free)(something_else(world));
    return 0;
}

int no_size_of_exchange(struct world *world)
{
    const struct sluice_exchange_attr attr = {.rank = 0, .ranks = 1};
    (void)world;
    return result_of(CALL(sluice_exchange_open)(&attr, DEADLINE));
}

int wild_size_of_node(struct world *world)
{
    const struct sluice_node_attr attr = {.size = 5000};
    return result_of(CALL(sluice_node_prepare)(world->sides.pds[0], 0, 1, &attr));
}

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

int barrier_out_of_range(struct world *world)
{
    const struct sluice_node_attr attr = {.size = sizeof(attr), .barrier = 4};
    return result_of(CALL(sluice_node_prepare)(world->sides.pds[0], 0, 1, &attr));
}

int reserved_field_of_provider(struct world *world)
{
    const struct sluice_exchange_provider provider = {.size = sizeof(provider), .reserved = 1};
    (void)world;
    return result_of(CALL(sluice_exchange_wrap)(&provider, NULL, 0, 1));
}

int negative_deadline_of_exchange(struct world *world)
{
    (void)world;
    return CALL(sluice_exchange_barrier)(open_exchange(), -1);
}

int negative_deadline_of_barrier(struct world *world)
{
    return CALL(sluice_node_barrier)(open_node(world), NULL, 0, SLUICE_BARRIER_DEFAULT, -1);
}

int too_many_bytes_to_exchange(struct world *world)
{
    (void)world;
    return CALL(sluice_exchange_allgather)(open_exchange(), NULL, NULL,
                                           SLUICE_EXCHANGE_MAX_BYTES + 1, DEADLINE);
}

int no_ranks(struct world *world)
{
    return result_of(CALL(sluice_node_prepare)(world->sides.pds[0], 0, 0, NULL));
}

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
