/* SPDX-License-Identifier: MIT */
/*
 * Several connections that a device never finishes with end within one drain bound, a second, and
 * not within one each: those of a batch that is cancelled, of a service that is closed, and those
 * that a rank makes anew.
 */
#include <stdlib.h>

#include <sluice/verbs.h>

#include "../support/fair.h"
#include "../support/ranks.h"
#include "check.h"

#define OWNERS 6
#define RANKS 7
/* Of one drain bound, and less than of as many as there are connections. */
#define MOST SLUICE_MS(3500)

struct world {
    struct sides sides;
    struct sluice_buffer_service *owners[OWNERS], *user;
    struct sluice_buffer *buffers[OWNERS];
    struct sluice_buffer_handle handles[OWNERS];
    struct sluice_buffer_action actions[OWNERS];
    uint64_t values[OWNERS], targets[OWNERS];
};

static struct sluice_buffer_service *open_service(struct sluice_pd *pd)
{
    const struct sluice_buffer_service_attr attr = {.size = sizeof(attr), .address = "127.0.0.1:0"};
    return made(sluice_buffer_service_open(&pd, 1, &attr));
}

static void world_open(struct world *world)
{
    fake_verbs.orphans = FAKE_PURGE;
    sides_open(&world->sides);
    world->user = open_service(world->sides.pds[1]);
    for (int i = 0; i < OWNERS; i++) {
        world->owners[i] = open_service(world->sides.pds[0]);
        world->buffers[i] = made(sluice_buffer_publish(world->owners[i], &world->values[i], 8,
                                                       SLUICE_ACCESS_REMOTE_READ));
        require_ok(sluice_buffer_export(world->buffers[i], &world->handles[i]));
        world->actions[i] = (struct sluice_buffer_action){.opcode = SLUICE_OP_READ,
                                                          .handle = &world->handles[i],
                                                          .length = 8,
                                                          .addr = &world->targets[i]};
    }
    require_ok(sluice_buffer_submit(world->user, world->actions, OWNERS, DEADLINE, NULL));
}

static void world_close(struct world *world)
{
    fake_verbs_release(0);
    sluice_buffer_service_close(world->user);
    for (int i = 0; i < OWNERS; i++) {
        sluice_buffer_release(world->buffers[i]);
        sluice_buffer_service_close(world->owners[i]);
    }
    sides_close(&world->sides);
}

static struct sluice_buffer_batch *post_actions(struct world *world, int first, uint32_t count)
{
    return made(sluice_buffer_post(world->user, &world->actions[first], count, SLUICE_S(1000)));
}

/* A read of each owner is in flight, and the device says nothing of any. */
TEST_WITH(world, a_cancelled_batch, (), .times = 2)
{
    struct sluice_completion completions[OWNERS];
    fake_verbs_hold(0);
    struct sluice_buffer_batch *batch = post_actions(world, 0, OWNERS);
    struct span begun = span_begin();
    if (_i == 0) {
        require_ok(sluice_buffer_batch_cancel(batch));
        require_took(span_since(begun), 0, MOST);
        require_error(sluice_buffer_batch_results(batch, completions), -ECANCELED, "cancelled");
        for (int i = 0; i < OWNERS; i++) {
            require_class(&completions[i], SLUICE_CLASS_CANCELLED);
        }
        begun = span_begin();
    }
    sluice_buffer_batch_free(batch);
    require_took(span_since(begun), 0, MOST);
    fake_verbs_release(0);
    require_ok(sluice_buffer_submit(world->user, world->actions, OWNERS, DEADLINE, completions));
}

/* The same, each in a batch of its own; and without a batch there are the goodbyes. */
TEST_WITH(world, a_closed_service, (), .times = 2)
{
    struct sluice_buffer_batch *batches[OWNERS];
    fake_verbs_hold(0);
    for (int i = 0; i < OWNERS && _i == 0; i++) {
        batches[i] = post_actions(world, i, 1);
    }
    struct span begun = span_begin();
    sluice_buffer_service_close(world->user);
    require_took(span_since(begun), 0, MOST);
    world->user = NULL;
    for (int i = 0; i < OWNERS && _i == 0; i++) {
        sluice_buffer_batch_free(batches[i]);
    }
}

/* Rank 0 has a receive from each other rank, whose end its device withholds. */
static void hold_receives(struct sluice_multichannel *second, struct memory *memory)
{
    for (uint32_t i = 1; i < RANKS; i++) {
        struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE,
                                         .peer = i,
                                         .sge_count = 1,
                                         .sge = memory_sge(memory, (size_t)8 * i, 8)};
        require_result(sluice_multichannel_post(second, &receive, 1, SLUICE_FOREVER, NULL), 1);
        fake_verbs_hold(sluice_verbs_multichannel_qp(second, i)->qp_num);
    }
}

static void reconnect(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *second =
        sluice_node_multichannel_open(ranks->nodes[rank], NULL, DEADLINE);
    struct sluice_endpoint endpoint;
    struct memory memory;
    require(second, "%s", sluice_last_error());
    memory_open(&memory, ranks->pds[rank], 8 * RANKS);
    if (rank == 0) {
        hold_receives(second, &memory);
    }
    ranks_meet(ranks);
    if (rank > 0) {
        require_ok(sluice_multichannel_peer_reset(second, 0, &endpoint));
    }
    ranks_meet(ranks);
    struct span begun = span_begin();
    require_ok(sluice_node_multichannel_reconnect(ranks->nodes[rank], second, DEADLINE));
    require_took(span_since(begun), 0, MOST);
    require_ok(sluice_multichannel_wait_connected(second, DEADLINE));
    /* A rank that closes at once would end connections that others still wait for. */
    ranks_meet(ranks);
    sluice_multichannel_close(second);
    memory_close(&memory);
}

/* The other ranks have reset their side, so all of its connections are made anew. */
TEST(a_rank_whose_connections_are_made_anew)
{
    fake_verbs.orphans = FAKE_PURGE;
    ranks_try(RANKS, NULL, reconnect);
}

int main(void)
{
    return run_verbs("verbs_drains", WIRE_SELF, 60);
}
