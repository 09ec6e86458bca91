/* SPDX-License-Identifier: MIT */
/*
 * The table of the transport, and contexts: opens a device and a port. Guarantee: when the context
 * was opened, its port was active and could be used for queue pairs.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/near.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/fork.h"
#include "transport/verbs/events/events.h"
#include "transport/verbs/pairs/pairs.h"
#include "transport/verbs/queues/queues.h"
#include "transport/verbs/table.h"
#include "transport/verbs/words/words.h"

static struct ibv_device *find_device(struct ibv_device **devices, const char *name)
{
    for (; *devices; devices++) {
        if (strcmp(ibv_get_device_name(*devices), name) == 0)
            return *devices;
    }
    return NULL;
}

static int fail_unknown(struct ibv_device *device)
{
    return slu_fail(ENODEV, "device %s is neither InfiniBand nor RoCE nor iWARP",
                    ibv_get_device_name(device));
}

static int open_device(const char *name, struct ibv_context **ibv)
{
    struct ibv_device **devices = slu_verbs_devices(NULL);
    struct ibv_device *device = devices ? find_device(devices, name) : NULL;
    int err = 0;

    if (!device) {
        err = slu_fail(ENODEV, "there is no RDMA device %s", name);
    } else if (!slu_verbs_is_known(device)) {
        err = fail_unknown(device);
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

/* Returns whether the port is active. */
static bool is_active(struct ibv_context *ibv, uint8_t port)
{
    struct ibv_port_attr attr;

    return ibv_query_port(ibv, port, &attr) == 0 && attr.state == IBV_PORT_ACTIVE;
}

/*
 * Chooses the port; 0 stands for the first active one that has an address, or else for the first
 * active one. Reading its path gives the reason why it cannot be used.
 */
static int choose_port(struct slu_verbs_context *context, uint32_t ports, uint32_t wanted)
{
    const char *device = ibv_get_device_name(context->ibv->device);
    struct slu_verbs_path path;
    struct ibv_port_attr attr;
    uint8_t active = 0;

    if (wanted > ports)
        return slu_fail(EINVAL, "port %u is out of range: %s has ports 1 to %u", wanted, device,
                        ports);
    context->port = (uint8_t)(wanted ? wanted : 1);
    if (wanted || ports == 1)
        return 0;
    for (uint32_t i = 1; i <= ports; i++) {
        context->port = (uint8_t)i;
        if (!is_active(context->ibv, context->port))
            continue;
        if (slu_verbs_path_of(context, &path) == 0)
            return 0;
        active = active ? active : context->port;
    }
    context->port = active;
    if (active)
        return 0;
    if (ports == 0 || ibv_query_port(context->ibv, 1, &attr))
        return slu_fail(ENETDOWN, "%s has no port that can be queried", device);
    return slu_fail(ENETDOWN, "none of the %u ports of %s is active; port 1 is %s", ports, device,
                    ibv_port_state_str(attr.state));
}

/* Fills in the description of port and device, as they are now. */
static void describe_place(struct slu_verbs_context *context, const struct slu_verbs_path *path)
{
    struct slu_tcontext *base = &context->base;

    base->port = context->port;
    base->link_layer = path->iwarp ? SLUICE_LINK_IWARP : path->link_layer;
    base->no_immediates = path->iwarp;
    base->by_rdmacm = path->iwarp;
    base->active_mtu = slu_verbs_mtu_bytes(path->mtu);
    base->gid_index = path->has_gid ? (int32_t)path->gid.gid_index : -1;
    base->numa_node = slu_near_node(context->ibv->device->ibdev_path);
}

/* Logs a choice that may be wrong. */
static void log_gid(const struct slu_verbs_context *context, const struct slu_verbs_path *path)
{
    char address[SLU_VERBS_ADDRESS_CHARS];

    if (!path->has_gid || path->gid_is_ours || path->link_layer != IBV_LINK_LAYER_ETHERNET)
        return;
    slu_verbs_gid_text(path->gid.gid.raw, path->gid.gid_type, address);
    slu_log(SLUICE_LOG_INFO,
            "port %u of %s: channels use GID %u, %s, although it is not known whether an interface "
            "of this network namespace has this address",
            context->port, context->base.device, path->gid.gid_index, address);
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
    context->gid_entries = slu_verbs_gid_entries(context->ibv, attr.phys_port_cnt);
    context->gid_index = -1;
    if (wanted->flags & SLUICE_CONTEXT_GID_INDEX)
        context->gid_index = (int32_t)wanted->gid_index;
    err = choose_port(context, attr.phys_port_cnt, wanted->port);
    if (!err)
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
    log_gid(context, &path);
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

static int open_context(const char *device, const struct sluice_context_attr *attr,
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
    if (!slu_verbs_is_known(ibv->device))
        return fail_unknown(ibv->device);
    if (attr->flags & SLUICE_CONTEXT_FORK) {
        int err = slu_verbs_fork_init();

        if (err)
            return err;
    }
    return make_context(ibv, true, attr, context);
}

static void close_context(struct slu_tcontext *base)
{
    struct slu_verbs_context *context = slu_verbs_context_of(base);

    slu_verbs_watch_stop(context);
    slu_verbs_cm_close(context);
    slu_verbs_events_close(context);
    if (!context->wrapped && slu_verbs_device_close(context->ibv))
        slu_log(SLUICE_LOG_WARN, "closing device %s failed", base->device);
    pthread_mutex_destroy(&context->path_lock);
    free(context);
}

const struct slu_transport slu_transport_verbs = {
    .name = "verbs",
    /* About a round trip of a device, with one or two switches. */
    .hot_spin = SLUICE_US(20),
    .id = SLU_TRANSPORT_VERBS,
    .probe_is_request = true,
    .device_list = slu_verbs_device_list,
    .open = open_context,
    .close = close_context,
    .pd_alloc = slu_verbs_pd_alloc,
    .pd_free = slu_verbs_pd_free,
    .pds_share_keys = slu_verbs_pds_share_keys,
    .mr_register = slu_verbs_mr_register,
    .mr_register_dmabuf = slu_verbs_mr_register_dmabuf,
    .mr_alloc = slu_verbs_mr_alloc,
    .mr_deregister = slu_verbs_mr_deregister,
    .cq_create = slu_verbs_cq_create,
    .cq_extend = slu_verbs_cq_extend,
    .cq_reduce = slu_verbs_cq_reduce,
    .cq_destroy = slu_verbs_cq_destroy,
    .cq_poll = slu_verbs_cq_poll,
    .cq_alert = slu_verbs_cq_alert,
    .cq_arm = slu_verbs_cq_arm,
    .cq_fd = slu_verbs_cq_fd,
    .cq_wake = slu_verbs_cq_wake,
    .pool_create = slu_verbs_pool_create,
    .pool_destroy = slu_verbs_pool_destroy,
    .pool_post = slu_verbs_pool_post,
    .qp_create = slu_verbs_qp_create,
    .qp_endpoint = slu_verbs_qp_endpoint,
    .qp_connect = slu_verbs_qp_connect,
    .qp_state = slu_verbs_qp_state,
    .qp_query = slu_verbs_qp_query,
    .qp_probe = slu_verbs_qp_probe,
    .qp_slow = slu_verbs_qp_slow,
    .qp_loss = slu_verbs_qp_loss,
    .qp_farewell = slu_verbs_qp_farewell,
    .qp_untaken = slu_verbs_qp_untaken,
    .qp_error = slu_verbs_qp_error,
    .qp_destroy = slu_verbs_qp_destroy,
    .post_send = slu_verbs_post_send,
    .post_receive = slu_verbs_post_receive,
};
