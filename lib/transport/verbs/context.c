/* SPDX-License-Identifier: MIT */
/*
 * Opens a device and a port. Guarantee: when the context was opened, its port was active and could
 * be used for queue pairs. limits.c determines its limits, events.c reads its asynchronous events.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

static struct ibv_device *find_device(struct ibv_device **devices, const char *name)
{
    for (; *devices; devices++) {
        if (strcmp(ibv_get_device_name(*devices), name) == 0)
            return *devices;
    }
    return NULL;
}

/* libibverbs also returns ENOENT if the device node exists but may not be opened. */
int slu_verbs_open_errno(const struct ibv_device *device)
{
    int code = slu_verbs_errno(-1);
    char node[sizeof "/dev/infiniband/" + IBV_SYSFS_NAME_MAX];

    snprintf(node, sizeof node, "/dev/infiniband/%s", device->dev_name);
    return access(node, R_OK | W_OK) && errno == EACCES ? EACCES : code;
}

static int open_device(const char *name, struct ibv_context **ibv)
{
    struct ibv_device **devices = slu_verbs_devices(NULL);
    struct ibv_device *device = devices ? find_device(devices, name) : NULL;
    int err = 0;

    if (!device) {
        err = slu_fail(ENODEV, "there is no RDMA device %s", name);
    } else if (device->transport_type != IBV_TRANSPORT_IB) {
        err = slu_fail(ENODEV, "device %s is neither InfiniBand nor RoCE", name);
    } else {
        *ibv = slu_verbs_device_open(device);
        if (!*ibv) {
            int code = slu_verbs_open_errno(device);

            err = slu_fail(code, "cannot open device %s (/dev/infiniband/%s): %s", name,
                           device->dev_name, strerror(code));
        }
    }
    if (devices)
        ibv_free_device_list(devices);
    return err;
}

/* Chooses the port; 0 stands for the first active one. */
static int choose_port(struct ibv_context *ibv, uint32_t ports, uint32_t wanted, uint8_t *port)
{
    const char *device = ibv_get_device_name(ibv->device);
    struct ibv_port_attr attr;

    if (wanted > ports)
        return slu_fail(EINVAL, "port %u is out of range: %s has ports 1 to %u", wanted, device,
                        ports);
    *port = (uint8_t)wanted;
    if (wanted)
        return 0; /* reading its path checks its state */
    for (uint32_t i = 1; i <= ports; i++) {
        *port = (uint8_t)i;
        if (ibv_query_port(ibv, *port, &attr) == 0 && attr.state == IBV_PORT_ACTIVE)
            return 0;
    }
    if (ports == 1)
        return 0; /* reading its path gives the reason */
    if (ports == 0 || ibv_query_port(ibv, 1, &attr))
        return slu_fail(ENETDOWN, "%s has no port that can be queried", device);
    return slu_fail(ENETDOWN, "none of the %u ports of %s is active; port 1 is %s", ports, device,
                    ibv_port_state_str(attr.state));
}

/* Fills in the description of port and device, as they are now. */
static void describe_place(struct slu_verbs_context *context, const struct slu_verbs_path *path)
{
    struct slu_tcontext *base = &context->base;

    base->port = context->port;
    base->link_layer = path->link_layer;
    base->active_mtu = slu_verbs_mtu_bytes(path->mtu);
    base->gid_index = path->has_gid ? (int32_t)path->gid.gid_index : -1;
    base->numa_node = slu_verbs_numa_node(context->ibv->device);
}

static int prepare_context(struct slu_verbs_context *context,
                           const struct sluice_context_attr *wanted)
{
    const char *device = ibv_get_device_name(context->ibv->device);
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct slu_verbs_path path;
    int err = ibv_query_device(context->ibv, &attr);

    if (err) {
        err = slu_verbs_errno(err);
        return slu_fail(err, "cannot query device %s: %s", device, strerror(err));
    }
    err = choose_port(context->ibv, attr.phys_port_cnt, wanted->port, &context->port);
    if (err)
        return err;
    context->gid_entries = slu_verbs_gid_entries(context->ibv, attr.phys_port_cnt);
    context->gid_index = -1;
    if (wanted->flags & SLUICE_CONTEXT_GID_INDEX)
        context->gid_index = (int32_t)wanted->gid_index;
    err = slu_verbs_path_of(context, &path);
    if (err)
        return err;
    err = ibv_query_port(context->ibv, context->port, &port);
    if (err) {
        err = slu_verbs_errno(err);
        return slu_fail(err, "cannot query port %u of %s: %s", context->port, device,
                        strerror(err));
    }
    describe_place(context, &path);
    slu_verbs_limits_set(context, &attr, &port);
    return 0;
}

/*
 * Makes a context. A wrapped device is not closed, and the program that opened it reads its events.
 */
static int make_context(struct ibv_context *ibv, bool wrapped,
                        const struct sluice_context_attr *attr, struct slu_tcontext **context)
{
    const char *device = ibv_get_device_name(ibv->device);
    struct slu_verbs_context *made = calloc(1, sizeof *made);
    int err;

    if (!made)
        return slu_fail(ENOMEM, "no memory for the context of %s", device);
    pthread_mutex_init(&made->path_lock, NULL);
    made->ibv = ibv;
    made->wrapped = wrapped;
    made->base.transport = &slu_transport_verbs;
    made->base.level = SLUICE_LEVEL_NIC;
    snprintf(made->base.device, sizeof made->base.device, "%s", device);
    err = prepare_context(made, attr);
    if (!err)
        err = slu_verbs_events_open(made);
    if (err) {
        pthread_mutex_destroy(&made->path_lock);
        free(made);
        return err;
    }
    *context = &made->base;
    return 0;
}

int slu_verbs_open(const char *device, const struct sluice_context_attr *attr,
                   struct slu_tcontext **context)
{
    struct ibv_context *ibv = NULL;
    int err = (attr->flags & SLUICE_CONTEXT_FORK) != 0 ? slu_verbs_fork_init() : 0;

    if (!err)
        err = open_device(device, &ibv);
    if (err)
        return err;
    err = make_context(ibv, false, attr, context);
    if (err)
        slu_verbs_device_close(ibv);
    return err;
}

int slu_verbs_wrap(struct ibv_context *ibv, const struct sluice_context_attr *attr,
                   struct slu_tcontext **context)
{
    if (ibv->device->transport_type != IBV_TRANSPORT_IB)
        return slu_fail(ENODEV, "device %s is neither InfiniBand nor RoCE",
                        ibv_get_device_name(ibv->device));
    if (attr->flags & SLUICE_CONTEXT_FORK) {
        int err = slu_verbs_fork_init();

        if (err)
            return err;
    }
    return make_context(ibv, true, attr, context);
}

void slu_verbs_close(struct slu_tcontext *base)
{
    struct slu_verbs_context *context = slu_verbs_context_of(base);

    slu_verbs_events_close(context);
    if (!context->wrapped && slu_verbs_device_close(context->ibv))
        slu_log(SLUICE_LOG_WARN, "closing device %s failed", base->device);
    pthread_mutex_destroy(&context->path_lock);
    free(context);
}
