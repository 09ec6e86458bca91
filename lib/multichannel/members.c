/* SPDX-License-Identifier: MIT */
/* Adding peers to a multichannel, and removing them. */
#include "config.h"

#include "multichannel/multichannel.h"

static int check_open(const struct sluice_multichannel *multichannel)
{
    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    if (multichannel->base.owned)
        return slu_misuse(EINVAL, "the multichannel belongs to a node, whose ranks are fixed");
    return 0;
}

int sluice_multichannel_peer_add(struct sluice_multichannel *multichannel,
                                 struct sluice_endpoint *endpoint)
{
    SLU_UNCANCELLED_BLOCK;
    int error = check_open(multichannel);

    if (error == 0 && endpoint == NULL)
        error = slu_misuse(EINVAL, "endpoint must not be NULL");
    if (error == 0)
        error = slu_channel_check_device(multichannel->base.engine->pd);
    return error == 0 ? slu_multichannel_peer_add(multichannel, endpoint) : error;
}

int slu_multichannel_peer_add(struct sluice_multichannel *multichannel,
                              struct sluice_endpoint *endpoint)
{
    int result = check_open(multichannel);

    if (result < 0)
        return result;
    if (multichannel->base.engine->scope.open)
        return slu_scope_in_use();
    slu_engine_enter(multichannel->base.engine);
    result = slu_peer_add(multichannel->base.engine, endpoint);
    slu_engine_leave(multichannel->base.engine);
    return result;
}

int sluice_multichannel_peer_remove(struct sluice_multichannel *multichannel, uint32_t peer)
{
    SLU_UNCANCELLED_BLOCK;
    int error = check_open(multichannel);
    struct slu_peer *found;

    if (error == 0)
        error = slu_multichannel_find_present(multichannel, peer, &found);
    if (error < 0)
        return error;
    if (multichannel->base.engine->scope.open)
        return slu_scope_in_use();
    slu_engine_enter(multichannel->base.engine);
    slu_peer_remove(multichannel->base.engine, found);
    slu_engine_leave(multichannel->base.engine);
    return 0;
}

int sluice_multichannel_peer_remote(const struct sluice_multichannel *multichannel, uint32_t peer,
                                    const struct sluice_remote_mr *remote,
                                    struct sluice_peer_remote_mr *tagged)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_peer *found;
    int error = slu_multichannel_find_present(multichannel, peer, &found);

    if (error < 0)
        return error;
    if (remote == NULL || tagged == NULL)
        return slu_misuse(EINVAL, "%s must not be NULL", remote == NULL ? "remote" : "tagged");
    *tagged = (struct sluice_peer_remote_mr){
        .peer = peer, .generation = found->name.index_generation, .remote = *remote};
    return 0;
}
