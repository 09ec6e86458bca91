/* SPDX-License-Identifier: MIT */
/* Mistakes with prepared lists. */
#include "mistakes.h"

/* One request to the peer of the first channel. */
static struct sluice_list *prepare(struct world *world, uint32_t opcode)
{
    world->request.opcode = opcode;
    struct sluice_list *list =
        made(sluice_channel_list_prepare(world->pair.channels[0], &world->request, 1));
    return list;
}

static struct sluice_list *posted(struct world *world)
{
    struct sluice_list *list = prepare(world, SLUICE_OP_RECEIVE);
    require_ok(sluice_list_post(list, DEADLINE, NULL));
    return list;
}

int aimed_at_another_length(struct world *world)
{
    struct sluice_list *list = prepare(world, SLUICE_OP_SEND);
    struct sluice_sge sge = world->sge;
    sge.length--;
    return CALL(sluice_list_aim)(list, 0, &sge, 0);
}

int too_deep_a_list(struct world *world)
{
    struct sluice_request requests[3];
    for (uint32_t i = 0; i < COUNT(requests); i++) {
        requests[i] = world->request;
    }
    world->attr.send_depth = 2;
    struct sluice_multichannel *loop = loop_open(world->sides.pds[0], 2, &world->attr);
    return sluice_multichannel_list_prepare(loop, requests, COUNT(requests)) ? 0 : -errno;
}

RETURNS(busy_list, sluice_list_submit, posted(world), DEADLINE, NULL);
RETURNS(list_in_flight, sluice_list_wait, posted(world), 0);
RETURNS(result_in_flight, sluice_list_result, posted(world));

int list_of_no_channel(struct world *world)
{
    struct sluice_list *list = prepare(world, SLUICE_OP_SEND);
    sluice_channel_close(world->pair.channels[0]);
    return sluice_list_submit(list, DEADLINE, NULL);
}
