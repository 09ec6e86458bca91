/* SPDX-License-Identifier: MIT */
/* Devices, contexts, and queries. */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fake_device.h"

/*
 * A context with the head of its extension: all fields that the inline functions of the header
 * read.
 */
struct handle {
    struct ibv_device ibv;
    uint32_t references; /* by lists and contexts */
    uint32_t index;
};

struct fake_link fake_contexts = {&fake_contexts, &fake_contexts};
static bool fork_started;

static struct handle *handle_of(struct ibv_device *device)
{
    return fake_container_of(device, struct handle, ibv);
}

struct fake_context *fake_context_of(struct ibv_context *context)
{
    return fake_container_of(context, struct fake_context, verbs.context);
}

struct fake_device *fake_device_of(struct ibv_context *context)
{
    return &fake_verbs.device[fake_context_of(context)->device];
}

struct fake_port *fake_port_of(struct ibv_context *context, uint32_t number)
{
    struct fake_device *device = fake_device_of(context);

    return number >= 1 && number <= device->ports ? &device->port[number - 1] : NULL;
}

static struct ibv_device *make_handle(uint32_t index)
{
    struct handle *handle = fake_alloc(sizeof(*handle));
    const struct fake_device *device = &fake_verbs.device[index];

    handle->references = 1;
    handle->index = index;
    handle->ibv.node_type = IBV_NODE_CA;
    handle->ibv.transport_type = device->transport_type;
    snprintf(handle->ibv.name, sizeof(handle->ibv.name), "%s", device->name);
    snprintf(handle->ibv.dev_name, sizeof(handle->ibv.dev_name), "uverbs%u", index);
    snprintf(handle->ibv.dev_path, sizeof(handle->ibv.dev_path),
             "/nowhere/class/infiniband_verbs/uverbs%u", index);
    snprintf(handle->ibv.ibdev_path, sizeof(handle->ibv.ibdev_path), "%s/%s",
             fake_verbs.sysfs[0] ? fake_verbs.sysfs : "/nowhere/class/infiniband", device->name);
    return &handle->ibv;
}

static void release_handle(struct ibv_device *device)
{
    struct handle *handle = handle_of(device);

    if (--handle->references == 0)
        free(handle);
}

/* The real library reads files for this. */
static bool can_open(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = NULL;

    fake_lock();
    if (!fake_fails(FAKE_GET_DEVICE_LIST) && can_open()) {
        list = fake_alloc((fake_verbs.devices + 1) * sizeof(struct ibv_device *));
        for (uint32_t i = 0; i < fake_verbs.devices; i++)
            list[i] = make_handle(i);
        fake_verbs.live.device_lists++;
    }
    if (count)
        *count = list ? (int)fake_verbs.devices : 0;
    fake_unlock();
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    fake_lock();
    for (struct ibv_device **device = list; *device; device++)
        release_handle(*device);
    free(list);
    fake_verbs.live.device_lists--;
    fake_unlock();
}

#undef ibv_get_device_name
const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
    return (int)handle_of(device)->index;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return htobe64(0x0011223344556600 + handle_of(device)->index);
}

/* Returns a limit as it is reported. */
static int said(enum fake_limit limit, int value)
{
    return fake_verbs.silent & FAKE_SILENT(limit) ? 0 : value;
}

/* The function behind the macro ibv_query_port(). */
static int query_port(struct ibv_context *ibv, uint8_t number, struct ibv_port_attr *attr,
                      size_t length)
{
    const struct fake_port *port;
    struct ibv_port_attr full = {0};
    int err = 0;

    fake_lock();
    port = fake_port_of(ibv, number);
    if (fake_fails(FAKE_QUERY_PORT)) {
        err = errno;
    } else if (!port) {
        err = EINVAL;
    } else {
        full.state = port->state;
        full.max_mtu = port->max_mtu;
        full.active_mtu = (enum ibv_mtu)said(FAKE_ACTIVE_MTU, (int)port->active_mtu);
        full.gid_tbl_len = (int)port->gids;
        full.max_msg_sz = (uint32_t)said(FAKE_MAX_MSG_SZ, (int)port->max_msg_sz);
        full.pkey_tbl_len = (uint16_t)port->pkeys;
        full.lid = port->lid;
        full.lmc = port->lmc;
        full.sm_lid = port->lid ? 1 : 0;
        full.max_vl_num = 1;
        full.active_width = port->active_width;
        full.active_speed = port->active_speed;
        full.phys_state = port->state == IBV_PORT_ACTIVE ? 5 : 3;
        full.link_layer = port->link_layer;
        full.flags = port->flags;
        memcpy(attr, &full, length < sizeof(full) ? length : sizeof(full));
    }
    fake_unlock();
    return err;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *ibv, uint8_t number, struct _compat_ibv_port_attr *attr)
{
    /* In that version, the structure ended with link_layer and flags. */
    return query_port(ibv, number, (struct ibv_port_attr *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

static struct fake_context *make_context(struct ibv_device *device)
{
    struct fake_context *context = fake_alloc(sizeof(*context));
    struct ibv_context *ibv = &context->verbs.context;

    context->device = handle_of(device)->index;
    context->handle = device;
    context->verbs.sz = sizeof(context->verbs);
    context->verbs.query_port = query_port;
    ibv->device = device;
    ibv->ops.poll_cq = fake_poll_cq;
    ibv->ops.req_notify_cq = fake_req_notify_cq;
    ibv->ops.post_send = fake_post_send;
    ibv->ops.post_recv = fake_post_recv;
    ibv->ops.post_srq_recv = fake_post_srq_recv;
    ibv->cmd_fd = -1;
    ibv->num_comp_vectors = 4;
    ibv->abi_compat = __VERBS_ABI_IS_EXTENDED;
    if (!fake_events_open(&context->async)) {
        free(context);
        return NULL;
    }
    ibv->async_fd = context->async.fd;
    return context;
}

/* Before opening: a driver that hangs, or refuses. */
static bool may_open(const struct fake_device *device)
{
    while (device->stuck)
        pause();
    if (device->denied)
        errno = EACCES;
    return !device->denied;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct fake_context *context = NULL;

    fake_lock();
    if (!fake_fails(FAKE_OPEN_DEVICE) && may_open(&fake_verbs.device[handle_of(device)->index]))
        context = make_context(device);
    if (context && fake_verbs.live.contexts == 0) {
        int err = fake_wire_start();

        if (err) {
            fake_events_close(&context->async);
            free(context);
            context = NULL;
            errno = err;
        }
    }
    if (context) {
        handle_of(device)->references++;
        fake_list_add(&fake_contexts, &context->link);
        fake_verbs.live.contexts++;
    }
    fake_unlock();
    return context ? &context->verbs.context : NULL;
}

int ibv_close_device(struct ibv_context *ibv)
{
    struct fake_context *context = fake_context_of(ibv);

    fake_lock();
    if (fake_fails(FAKE_CLOSE_DEVICE)) {
        fake_unlock();
        return -1;
    }
    if (context->children)
        fake_complain("context of %s is closed with %u objects", ibv->device->name,
                      context->children);
    fake_list_remove(&context->link);
    fake_events_close(&context->async);
    release_handle(context->handle);
    free(context);
    if (--fake_verbs.live.contexts == 0)
        fake_wire_stop();
    fake_unlock();
    return 0;
}

int ibv_query_device(struct ibv_context *ibv, struct ibv_device_attr *attr)
{
    const struct fake_device *device = fake_device_of(ibv);
    int err;

    fake_lock();
    err = fake_fails(FAKE_QUERY_DEVICE) ? errno : 0;
    if (!err)
        *attr = (struct ibv_device_attr){
            .fw_ver = "1.0",
            .node_guid = ibv_get_device_guid(ibv->device),
            .max_mr_size = device->max_mr_size,
            .page_size_cap = 0xfffffffffffff000,
            .vendor_id = device->vendor_id,
            .vendor_part_id = device->vendor_part,
            .max_qp = device->max_qp,
            .max_qp_wr = said(FAKE_MAX_QP_WR, device->max_qp_wr),
            .max_sge = said(FAKE_MAX_SGE, device->max_sge),
            .max_sge_rd = said(FAKE_MAX_SGE_RD, device->max_sge_rd),
            .max_cq = said(FAKE_MAX_CQ, device->max_cq),
            .max_cqe = said(FAKE_MAX_CQE, device->max_cqe),
            .max_mr = device->max_mr,
            .max_pd = 65536,
            .max_qp_rd_atom = said(FAKE_MAX_QP_RD_ATOM, device->max_qp_rd_atom),
            .max_res_rd_atom = device->max_qp_rd_atom,
            .max_qp_init_rd_atom = said(FAKE_MAX_QP_INIT_RD_ATOM, device->max_qp_init_rd_atom),
            .atomic_cap = device->atomic_cap,
            .max_srq = device->max_srq,
            .max_srq_wr = device->max_srq_wr,
            .max_srq_sge = device->max_srq_sge,
            .max_pkeys = FAKE_PKEYS,
            .phys_port_cnt = (uint8_t)device->ports,
        };
    fake_unlock();
    return err;
}

/* Returns the entry of a port's table, or NULL. */
static const struct fake_gid *gid_of(struct ibv_context *ibv, uint32_t number, uint32_t index)
{
    const struct fake_port *port = fake_port_of(ibv, number);

    return port && index < port->gids && index < FAKE_GIDS ? &port->gid[index] : NULL;
}

int ibv_query_gid(struct ibv_context *ibv, uint8_t number, int index, union ibv_gid *gid)
{
    const struct fake_gid *found;
    int result = -1;

    fake_lock();
    found = gid_of(ibv, number, (uint32_t)index);
    if (!fake_fails(FAKE_QUERY_GID)) {
        errno = EINVAL;
        if (found) {
            memcpy(gid->raw, found->raw, sizeof(gid->raw)); /* of zeros, if it is empty */
            result = 0;
        }
    }
    fake_unlock();
    return result;
}

static void fill_entry(struct ibv_gid_entry *entry, const struct fake_gid *gid, uint32_t port,
                       uint32_t index)
{
    memset(entry, 0, sizeof(*entry));
    memcpy(entry->gid.raw, gid->raw, sizeof(gid->raw));
    entry->gid_index = index;
    entry->port_num = port;
    entry->gid_type = gid->type - 1;
    entry->ndev_ifindex = gid->interface;
}

int _ibv_query_gid_ex(struct ibv_context *ibv, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
    const struct fake_gid *gid;
    int err = 0;

    fake_lock();
    gid = gid_of(ibv, port, index);
    if (fake_fails(FAKE_QUERY_GID))
        err = errno;
    else if (!gid || flags || entry_size != sizeof(*entry))
        err = EINVAL;
    else if (!gid->type)
        err = ENODATA;
    else
        fill_entry(entry, gid, port, index);
    fake_unlock();
    return err;
}

/* The kernel wants room for one more entry than it finds. */
ssize_t _ibv_query_gid_table(struct ibv_context *ibv, struct ibv_gid_entry *entries, size_t most,
                             uint32_t flags, size_t entry_size)
{
    const struct fake_device *device = fake_device_of(ibv);
    ssize_t count = 0;

    fake_lock();
    if (fake_fails(FAKE_QUERY_GID_TABLE))
        count = -errno;
    else if (flags || entry_size != sizeof(*entries))
        count = -EINVAL;
    for (uint32_t port = 1; port <= device->ports && count >= 0; port++) {
        for (uint32_t i = 0; i < device->port[port - 1].gids && count >= 0; i++) {
            const struct fake_gid *gid = gid_of(ibv, port, i);

            if (!gid || !gid->type)
                continue;
            if ((size_t)count + 1 >= most)
                count = -EINVAL;
            else
                fill_entry(&entries[count++], gid, port, i);
        }
    }
    fake_unlock();
    return count;
}

int ibv_query_pkey(struct ibv_context *ibv, uint8_t number, int index, __be16 *pkey)
{
    const struct fake_port *port;
    int result = -1;

    fake_lock();
    port = fake_port_of(ibv, number);
    if (!fake_fails(FAKE_QUERY_PKEY)) {
        errno = EINVAL;
        if (port && index >= 0 && (uint32_t)index < port->pkeys) {
            *pkey = htobe16(port->pkey[index]);
            result = 0;
        }
    }
    fake_unlock();
    return result;
}

int ibv_get_pkey_index(struct ibv_context *ibv, uint8_t number, __be16 pkey)
{
    const struct fake_port *port;
    int result = -1;

    fake_lock();
    port = fake_port_of(ibv, number);
    if (!fake_fails(FAKE_GET_PKEY_INDEX)) {
        errno = EINVAL;
        for (uint32_t i = 0; port && i < port->pkeys && result < 0; i++) {
            if (port->pkey[i] == be16toh(pkey))
                result = (int)i;
        }
    }
    fake_unlock();
    return result;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return fork_started ? IBV_FORK_ENABLED : fake_verbs.fork_status;
}

int ibv_fork_init(void)
{
    int err = 0;

    fake_lock();
    if (fake_fails(FAKE_FORK_INIT))
        err = errno;
    else if (fake_verbs.live.mrs)
        err = EINVAL; /* too late */
    else
        fork_started = true;
    fake_unlock();
    return err;
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
    return type == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    static const char *const names[] = {"no state change (NOP)", "down", "init", "armed", "active",
                                        "active defer"};

    return state >= 0 && (size_t)state < sizeof(names) / sizeof(*names) ? names[state]
                                                                        : "invalid state";
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
    static const char *const names[] = {
        [IBV_EVENT_CQ_ERR] = "CQ error",
        [IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
        [IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
        [IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
        [IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
        [IBV_EVENT_PORT_ACTIVE] = "port active",
        [IBV_EVENT_PORT_ERR] = "port error",
        [IBV_EVENT_LID_CHANGE] = "LID change",
        [IBV_EVENT_PKEY_CHANGE] = "P_Key change",
        [IBV_EVENT_GID_CHANGE] = "GID table change",
    };

    return type >= 0 && (size_t)type < sizeof(names) / sizeof(*names) && names[type] ? names[type]
                                                                                     : "unknown";
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_SUCCESS ? "success" : "error";
}
