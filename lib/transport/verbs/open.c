/* SPDX-License-Identifier: MIT */
/*
 * What libibverbs opens for us. Its descriptors are as our own are, see
 * descriptor.h: none is 0, 1 or 2, and a child of fork(2) closes them. What
 * the child has of the device's memory, if anything, is its provider's.
 */
#include "config.h"

#include "verbs.h"

struct ibv_device **slu_verbs_devices(int *count)
{
    struct ibv_device **devices;

    /* It has a lock of its own: a child is not to find that taken by a thread that it has not. */
    slu_verbs_lock();
    slu_fd_guard();
    devices = ibv_get_device_list(count);
    slu_fd_unguard();
    slu_verbs_unlock();
    return devices;
}

static struct ibv_context *open_guarded(struct ibv_device *device)
{
    struct ibv_context *ibv;

    slu_fd_guard();
    ibv = ibv_open_device(device);
    slu_fd_unguard();
    return ibv;
}

struct ibv_context *slu_verbs_device_open(struct ibv_device *device)
{
    struct ibv_context *ibv = open_guarded(device);

    if (!ibv)
        return NULL;
    if (slu_fd_adopt(ibv->cmd_fd) == 0) {
        if (slu_fd_adopt(ibv->async_fd) == 0)
            return ibv;
        slu_fd_disown(ibv->cmd_fd);
    }
    ibv_close_device(ibv);
    errno = ENOMEM;
    return NULL;
}

int slu_verbs_device_close(struct ibv_context *ibv)
{
    slu_fd_disown(ibv->async_fd);
    slu_fd_disown(ibv->cmd_fd);
    return ibv_close_device(ibv);
}

struct ibv_comp_channel *slu_verbs_comp_channel(struct ibv_context *ibv)
{
    struct ibv_comp_channel *channel;

    slu_fd_guard();
    channel = ibv_create_comp_channel(ibv);
    slu_fd_unguard();
    if (!channel || slu_fd_adopt(channel->fd) == 0)
        return channel;
    ibv_destroy_comp_channel(channel);
    errno = ENOMEM;
    return NULL;
}

void slu_verbs_comp_channel_end(struct ibv_comp_channel *channel)
{
    slu_fd_disown(channel->fd);
    ibv_destroy_comp_channel(channel);
}
