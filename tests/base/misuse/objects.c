/* SPDX-License-Identifier: MIT */
/* Mistakes with objects: NULL, or an object of another kind. */
#include "mistakes.h"

static struct sluice_channel *not_a_channel(const struct world *world)
{
    return (struct sluice_channel *)(void *)world->pair.sides.pds[0];
}

int null_context(struct world *world)
{
    (void)world;
    return result_of(CALL(sluice_pd_alloc)(NULL));
}

int null_pd(struct world *world)
{
    return result_of(CALL(sluice_channel_prepare)(NULL, &world->attr));
}

int null_endpoint(struct world *world)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(world->sides.pds[0], NULL);
    return result_of(CALL(sluice_prepared_channel_handshake)(prepared, NULL));
}

int null_result(struct world *world)
{
    return CALL(sluice_multichannel_peer_reset)(world->loop, 0, NULL);
}

int null_list(struct world *world)
{
    return CALL(sluice_channel_submit)(world->pair.channels[0], NULL, 1, DEADLINE, NULL);
}

int null_remote(struct world *world)
{
    return CALL(sluice_channel_write)(world->pair.channels[0], &world->sge, 1, NULL, DEADLINE);
}

int null_handle(struct world *world)
{
    return CALL(sluice_channel_wait)(world->pair.channels[0], NULL, 0, &world->completion);
}

int null_memory(struct world *world)
{
    return result_of(CALL(sluice_mr_register)(world->sides.pds[0], NULL, 8, 0));
}

int null_device_list(struct world *world)
{
    struct sluice_device_info info = {.size = sizeof(info)};
    (void)world;
    return CALL(sluice_device_list_info)(NULL, 0, &info);
}

int null_info(struct world *world)
{
    return CALL(sluice_context_query)(world->sides.contexts[0], NULL);
}

int null_slice(struct world *world)
{
    return CALL(sluice_remote_mr_slice)(&world->remote, 0, 1, NULL);
}

int null_unpack(struct world *world)
{
    return CALL(sluice_remote_mr_unpack)(NULL, &world->remote);
}

/* The call returns nothing. */
int null_pack(struct world *world)
{
    CALL(sluice_remote_mr_pack)(&world->remote, NULL);
    return 0;
}

int null_to_pack(struct world *world)
{
    uint8_t bytes[SLUICE_REMOTE_MR_BYTES];
    (void)world;
    CALL(sluice_remote_mr_pack)(NULL, bytes);
    return 0;
}

int null_completions(struct world *world)
{
    return CALL(sluice_channel_poll)(world->pair.channels[0], NULL, 1);
}

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
    return CALL(sluice_mr_length)((struct sluice_mr *)(void *)world->sides.pds[0]) == 0 ? -EINVAL
                                                                                        : 0;
}

int send_on_other(struct world *world)
{
    return CALL(sluice_channel_send)(not_a_channel(world), &world->sge, 1, DEADLINE);
}

int state_of_other(struct world *world)
{
    return CALL(sluice_multichannel_peer_state)(
        (struct sluice_multichannel *)(void *)world->pair.channels[0], 0);
}

int counters_of_other(struct world *world)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    return CALL(sluice_channel_counters)(not_a_channel(world), &counters);
}

int sge_of_other(struct world *world)
{
    return CALL(sluice_mr_sge)((struct sluice_mr *)(void *)world->sides.pds[0], 0, 1, &world->sge);
}

int close_other(struct world *world)
{
    CALL(sluice_channel_close)(not_a_channel(world));
    return 0;
}

int free_other(struct world *world)
{
    CALL(sluice_pd_free)((struct sluice_pd *)(void *)world->pair.channels[0]);
    return 0;
}

int close_other_context(struct world *world)
{
    CALL(sluice_context_close)((struct sluice_context *)(void *)world->pair.channels[0]);
    return 0;
}

int close_other_multichannel(struct world *world)
{
    CALL(sluice_multichannel_close)((struct sluice_multichannel *)(void *)world->pair.channels[0]);
    return 0;
}

int free_other_prepared(struct world *world)
{
    CALL(sluice_prepared_channel_free)((struct sluice_prepared_channel *)(void *)world->loop);
    return 0;
}
