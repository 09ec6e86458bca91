/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes objects of libibverbs. Their descriptors follow the rules of descriptor.h: none
 * is 0, 1 or 2, and a child of fork(2) closes them. No thread forks while libibverbs opens or
 * closes one, so the child always knows all of them. Whether the child inherits memory of the
 * device depends on the provider.
 */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include "transport/verbs/device/device.h"
#include "transport/verbs/device/fork.h"

/*
 * Forks are held off meanwhile: otherwise a child could inherit a lock of libibverbs held by a
 * thread that does not exist there.
 */
static void begin(void)
{
    slu_verbs_lock();
    slu_fd_guard();
}

static void end(void)
{
    slu_fd_unguard();
    slu_verbs_unlock();
}

struct ibv_device **slu_verbs_devices(int *count)
{
    struct ibv_device **devices;

    begin();
    devices = ibv_get_device_list(count);
    end();
    return devices;
}

static int adopt_both(const struct ibv_context *ibv)
{
    if (slu_fd_adopt(ibv->cmd_fd) != 0)
        return -1;
    if (slu_fd_adopt(ibv->async_fd) == 0)
        return 0;
    slu_fd_disown(ibv->cmd_fd);
    return -1;
}

struct ibv_context *slu_verbs_device_open(struct ibv_device *device)
{
    struct ibv_context *ibv;

    begin();
    ibv = ibv_open_device(device);
    if (ibv && adopt_both(ibv) != 0) {
        ibv_close_device(ibv);
        ibv = NULL;
        errno = ENOMEM;
    }
    end();
    return ibv;
}

/* libibverbs also returns ENOENT if the device node exists but may not be opened. */
int slu_verbs_open_errno(const struct ibv_device *device)
{
    int code = slu_verbs_errno(-1);
    char node[sizeof "/dev/infiniband/" + IBV_SYSFS_NAME_MAX];

    snprintf(node, sizeof node, "/dev/infiniband/%s", device->dev_name);
    return access(node, R_OK | W_OK) && errno == EACCES ? EACCES : code;
}

int slu_verbs_device_close(struct ibv_context *ibv)
{
    int err;

    slu_verbs_lock();
    slu_fd_disown(ibv->async_fd);
    slu_fd_disown(ibv->cmd_fd);
    err = ibv_close_device(ibv);
    slu_verbs_unlock();
    return err;
}

struct ibv_comp_channel *slu_verbs_comp_channel(struct ibv_context *ibv)
{
    struct ibv_comp_channel *channel;

    begin();
    channel = ibv_create_comp_channel(ibv);
    if (channel && slu_fd_adopt(channel->fd) != 0) {
        ibv_destroy_comp_channel(channel);
        channel = NULL;
        errno = ENOMEM;
    }
    end();
    return channel;
}

void slu_verbs_comp_channel_end(struct ibv_comp_channel *channel)
{
    slu_verbs_lock();
    slu_fd_disown(channel->fd);
    ibv_destroy_comp_channel(channel);
    slu_verbs_unlock();
}
