/* SPDX-License-Identifier: MIT */
/* Mistakes with objects: NULL, or an object of another kind. */
#include "mistakes.h"

static struct sluice_channel *not_a_channel(const struct world *world)
{
    return (struct sluice_channel *)(void *)world->pair.sides.pds[0];
}

MAKES(null_context, sluice_pd_alloc, NULL);
MAKES(null_pd, sluice_channel_prepare, NULL, &world->attr);

int null_endpoint(struct world *world)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(world->sides.pds[0], NULL);
    return result_of(CALL(sluice_prepared_channel_handshake)(prepared, NULL));
}

RETURNS(null_result, sluice_multichannel_peer_reset, world->loop, 0, NULL);
RETURNS(null_list, sluice_channel_submit, world->pair.channels[0], NULL, 1, DEADLINE, NULL);
RETURNS(null_remote, sluice_channel_write, world->pair.channels[0], &world->sge, 1, NULL, DEADLINE);
RETURNS(null_handle, sluice_channel_wait, world->pair.channels[0], NULL, 0, &world->completion);
MAKES(null_memory, sluice_mr_register, world->sides.pds[0], NULL, 8, 0);
RETURNS(null_device_list, sluice_device_list_info, NULL, 0,
        &(struct sluice_device_info){.size = sizeof(struct sluice_device_info)});
RETURNS(null_info, sluice_context_query, world->sides.contexts[0], NULL);
RETURNS(null_slice, sluice_remote_mr_slice, &world->remote, 0, 1, NULL);
RETURNS(null_unpack, sluice_remote_mr_unpack, NULL, &world->remote);

RETURNS(null_pack, sluice_remote_mr_pack, &world->remote, NULL);
RETURNS(null_to_pack, sluice_remote_mr_pack, NULL, (uint8_t[SLUICE_REMOTE_MR_BYTES]){0});
RETURNS(pack_of_a_reserved_field, sluice_remote_mr_pack,
        &(struct sluice_remote_mr){.length = 8, .reserved = {0, 7}},
        (uint8_t[SLUICE_REMOTE_MR_BYTES]){0});
RETURNS(slice_of_a_reserved_field, sluice_remote_mr_slice,
        &(struct sluice_remote_mr){.length = 8, .reserved = {0, 7}}, 0, 1, &world->remote);

RETURNS(null_completions, sluice_channel_poll, world->pair.channels[0], NULL, 1);

/* These return a number or an address of NULL, and no error. */

int null_address(struct world *world)
{
    (void)world;
    return CALL(sluice_mr_addr)(NULL) == NULL ? -EINVAL : 0;
}

int null_length(struct world *world)
{
    (void)world;
    return CALL(sluice_mr_length)(NULL) == 0 ? -EINVAL : 0;
}

int null_key(struct world *world)
{
    (void)world;
    return CALL(sluice_mr_lkey)(NULL) == 0 ? -EINVAL : 0;
}

int null_page_size(struct world *world)
{
    (void)world;
    return CALL(sluice_mr_page_size)(NULL) == 0 ? -EINVAL : 0;
}

int null_peers(struct world *world)
{
    (void)world;
    return CALL(sluice_multichannel_peers)(NULL) == 0 ? -EINVAL : 0;
}

int peers_of_other(struct world *world)
{
    return CALL(sluice_multichannel_peers)(
               (struct sluice_multichannel *)(void *)world->pair.channels[0]) == 0
               ? -EINVAL
               : 0;
}

int null_count_of_devices(struct world *world)
{
    (void)world;
    return CALL(sluice_device_list_count)(NULL) == 0 ? -EINVAL : 0;
}

int length_of_other(struct world *world)
{
    return CALL(sluice_mr_length)(OTHER(sluice_mr)) == 0 ? -EINVAL : 0;
}

RETURNS(send_on_other, sluice_channel_send, not_a_channel(world), &world->sge, 1, DEADLINE);
RETURNS(state_of_other, sluice_multichannel_peer_state,
        (struct sluice_multichannel *)(void *)world->pair.channels[0], 0);
RETURNS(counters_of_other, sluice_channel_counters, not_a_channel(world),
        &(struct sluice_counters){.size = sizeof(struct sluice_counters)});
RETURNS(sge_of_other, sluice_mr_sge, OTHER(sluice_mr), 0, 1, &world->sge);
ENDS(close_other, sluice_channel_close, not_a_channel(world));
ENDS(free_other, sluice_pd_free, (struct sluice_pd *)(void *)world->pair.channels[0]);
ENDS(close_other_context, sluice_context_close,
     (struct sluice_context *)(void *)world->pair.channels[0]);
ENDS(close_other_multichannel, sluice_multichannel_close,
     (struct sluice_multichannel *)(void *)world->pair.channels[0]);
ENDS(free_other_prepared, sluice_prepared_channel_free,
     (struct sluice_prepared_channel *)(void *)world->loop);
