/* SPDX-License-Identifier: MIT */
/* Mistakes with requests of plain memory, and with the cache of their channel. */
#include "mistakes.h"

static uint8_t bytes[2][8192];

static struct sluice_mr_cache *make_cache(struct world *world, uint32_t access)
{
    const struct sluice_mr_cache_attr attr = {.size = sizeof(attr), .max_regions = 1};
    struct sluice_mr_cache *cache =
        made(sluice_mr_cache_create(world->sides.pds[0], access, &attr));
    return cache;
}

/* Connected to itself. */
static struct sluice_multichannel *loop_of_cache(struct world *world, uint32_t access)
{
    world->attr.mr_cache = make_cache(world, access);
    return loop_open(world->sides.pds[0], 2, &world->attr);
}

static struct sluice_request plain_request(uint32_t opcode, uint32_t which)
{
    return (struct sluice_request){
        .opcode = opcode,
        .flags = SLUICE_PLAIN_MEMORY,
        .sge_count = 1,
        .sge = {.addr = (uintptr_t)bytes[which] + 4000, .length = 8},
    };
}

int plain_without_cache(struct world *world)
{
    struct sluice_request request = plain_request(SLUICE_OP_SEND, 0);
    return CALL(sluice_channel_submit)(world->pair.channels[0], &request, 1, DEADLINE, NULL);
}

int plain_without_right(struct world *world)
{
    struct sluice_request request = plain_request(SLUICE_OP_RECEIVE, 0);
    struct sluice_multichannel *loop = loop_of_cache(world, 0);
    return CALL(sluice_multichannel_post)(loop, &request, 1, DEADLINE, NULL);
}

int cache_of_other_domain(struct world *world)
{
    struct sluice_pd *other = sluice_pd_alloc(world->sides.contexts[0]);
    world->attr.mr_cache = make_cache(world, ACCESS_ALL);
    return CALL(sluice_channel_prepare)(other, &world->attr) ? 0 : -errno;
}

int cache_of_a_channel(struct world *world)
{
    loop_of_cache(world, ACCESS_ALL);
    return sluice_mr_cache_destroy(world->attr.mr_cache);
}

int no_room_in_cache(struct world *world)
{
    struct sluice_request requests[2] = {plain_request(SLUICE_OP_RECEIVE, 0),
                                         plain_request(SLUICE_OP_RECEIVE, 1)};
    return sluice_multichannel_post(loop_of_cache(world, ACCESS_ALL), requests, 2, DEADLINE, NULL);
}
