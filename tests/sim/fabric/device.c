/* SPDX-License-Identifier: MIT */
/*
 * The transport of the simulated fabric, in the place of that for verbs: the objects of the table
 * are in the process, and the device does the rest.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "device/device.h"
#include "fabric.h"

struct region {
    struct slu_tmr base; /* the first field, as in all of these */
    struct sim_region *region;
    void *pages;
};

struct queue {
    struct slu_cq base;
    struct sim_queue *queue;
    int fd;
};

struct pair {
    struct slu_qp base;
    struct sim_pair *pair;
    struct slu_qp_attr attr;
    uint32_t psn;
    struct slu_endpoint remote;
};

static struct sim_queue *queue_of(const struct slu_cq *base)
{
    return ((const struct queue *)base)->queue;
}

static struct sim_pair *pair_of(const struct slu_qp *base)
{
    return ((const struct pair *)base)->pair;
}

static int list_devices(struct sluice_device_list *list)
{
    struct slu_tcontext context = {.port = 0};
    struct slu_device *device;
    int error;
    if (sim_fabric_limits(&context) < 0) {
        return 0;
    }
    device = slu_device_add(list, "sim0", slu_transport_verbs.name);
    error = device == NULL ? -ENOMEM : slu_device_add_ports(device, 1);
    if (error == 0) {
        device->info.active = 1;
        device->info.level = SLUICE_LEVEL_NIC;
        device->ports[0].state = SLUICE_PORT_ACTIVE;
        device->ports[0].link_layer = context.link_layer;
    }
    return error;
}

static int open_device(const char *device, const struct sluice_context_attr *attr,
                       struct slu_tcontext **context)
{
    struct slu_tcontext *made;
    int error;
    (void)attr;
    if (strcmp(device, "sim0") != 0) {
        return slu_fail(ENODEV, "there is no RDMA device %s", device);
    }
    made = calloc(1, sizeof *made);
    if (made == NULL) {
        return slu_fail(ENOMEM, "no memory for a context");
    }
    *made = (struct slu_tcontext){.transport = &slu_transport_verbs,
                                  .device = "sim0",
                                  .level = SLUICE_LEVEL_NIC,
                                  .port = 1,
                                  .numa_node = -1};
    error = sim_fabric_limits(made);
    if (error < 0) {
        free(made);
        return slu_fail(-error, "cannot open device sim0: %s", strerrordesc_np(-error));
    }
    *context = made;
    return 0;
}

static void close_device(struct slu_tcontext *context)
{
    free(context);
}

static int alloc_domain(struct slu_tcontext *context, struct slu_tpd **pd)
{
    *pd = calloc(1, sizeof **pd);
    if (*pd == NULL) {
        return slu_fail(ENOMEM, "no memory for a protection domain");
    }
    (*pd)->context = context;
    return 0;
}

static void free_domain(struct slu_tpd *pd)
{
    free(pd);
}

static bool share_keys(const struct slu_tpd *a, const struct slu_tpd *b)
{
    return strcmp(a->context->device, b->context->device) == 0;
}

static int register_memory(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                           struct slu_tmr **mr)
{
    struct region *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return slu_fail(ENOMEM, "no memory for a region");
    }
    made->base = (struct slu_tmr){
        .pd = pd, .addr = addr, .length = length, .iova = (uintptr_t)addr, .dmabuf = -1};
    made->region = sim_fabric_register(&made->base, access);
    if (made->region == NULL) {
        free(made);
        return slu_fail(ENOMEM, "sim0 cannot register %zu bytes", length);
    }
    *mr = &made->base;
    return 0;
}

static int register_dmabuf(struct slu_tpd *pd, const struct slu_dmabuf *dmabuf, uint32_t access,
                           struct slu_tmr **mr)
{
    (void)pd;
    (void)dmabuf;
    (void)access;
    (void)mr;
    return slu_fail(EOPNOTSUPP, "sim0 registers no dmabuf");
}

static int alloc_memory(struct slu_tpd *pd, size_t length, uint32_t access, int32_t node,
                        struct slu_tmr **mr)
{
    size_t bytes = (length + 4095) & ~(size_t)4095;
    void *pages = aligned_alloc(4096, bytes);
    int error;
    (void)node;
    if (pages == NULL) {
        return slu_fail(ENOMEM, "no memory for %zu bytes", length);
    }
    memset(pages, 0, bytes);
    error = register_memory(pd, pages, length, access & ~SLUICE_MR_HUGE_PAGES, mr);
    if (error < 0) {
        free(pages);
        return error;
    }
    ((struct region *)*mr)->pages = pages;
    return 0;
}

static void deregister(struct slu_tmr *base)
{
    struct region *region = (struct region *)base;
    sim_fabric_deregister(region->region);
    free(region->pages);
    free(region);
}

static int create_queue(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq)
{
    struct queue *made;
    if (depth > context->max_cq_entries) {
        return slu_fail(EINVAL, "a completion queue of %u entries is out of range", depth);
    }
    made = calloc(1, sizeof *made);
    if (made == NULL) {
        return slu_fail(ENOMEM, "no memory for a completion queue");
    }
    made->base.context = context;
    made->base.depth = depth;
    made->queue = sim_fabric_queue(&made->base, &made->fd);
    if (made->queue == NULL) {
        free(made);
        return slu_fail(EMFILE, "sim0 cannot make a completion queue");
    }
    *cq = &made->base;
    return 0;
}

static int extend_queue(struct slu_cq *cq, uint32_t entries)
{
    cq->depth += entries;
    return 0;
}

static void reduce_queue(struct slu_cq *cq, uint32_t entries)
{
    cq->depth -= entries;
}

static void destroy_queue(struct slu_cq *base)
{
    struct queue *queue = (struct queue *)base;
    close(queue->fd); /* the last reference */
    free(queue);
}

static int poll_queue(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    int got = sim_fabric_poll(queue_of(cq), wcs, count);
    return got < 0 ? slu_fail(EIO, "the device has failed (%s)", cq->context->device) : got;
}

static bool take_alert(struct slu_cq *cq, struct slu_alert *alert)
{
    return sim_fabric_alert(queue_of(cq), alert);
}

static int arm_queue(struct slu_cq *cq)
{
    return sim_fabric_arm(queue_of(cq)) != 0 || atomic_load(&cq->alerted) ? 1 : 0;
}

static int queue_fd(struct slu_cq *cq)
{
    return ((const struct queue *)cq)->fd;
}

static void wake_queue(struct slu_cq *cq)
{
    sim_fabric_wake(queue_of(cq));
}

static int create_pair(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                       struct slu_qp **qp)
{
    struct pair *made = calloc(1, sizeof *made);
    int error = 0;
    if (made == NULL) {
        return slu_fail(ENOMEM, "no memory for a queue pair");
    }
    made->base = (struct slu_qp){.pd = pd, .cq = cq};
    made->attr = *attr;
    made->psn = attr->psn;
    if ((attr->flags & SLUICE_CHANNEL_PSN) == 0) {
        error = slu_random(&made->psn, sizeof made->psn);
    }
    made->attr.psn = made->psn &= 0xffffff;
    if (error == 0) {
        made->pair = sim_fabric_pair(&made->base, queue_of(cq), &made->attr);
    }
    if (made->pair == NULL) {
        free(made);
        return slu_fail(ENOMEM, "cannot create a queue pair on sim0");
    }
    *qp = &made->base;
    return 0;
}

static void fill_endpoint(const struct slu_qp *base, struct slu_endpoint *endpoint)
{
    const struct pair *pair = (const struct pair *)base;
    memset(&endpoint->verbs, 0, sizeof endpoint->verbs);
    endpoint->psn = pair->psn;
    endpoint->initiator_depth = endpoint->responder_depth = pair->attr.read_depth;
    endpoint->max_message = pair->attr.max_message;
    sim_fabric_endpoint(pair->pair, endpoint);
}

static int connect_pair(struct slu_qp *base, const struct slu_endpoint *remote)
{
    struct pair *pair = (struct pair *)base;
    if (remote->qpn <= 1 || remote->qpn >= 0xffffff || remote->mtu < 256 || remote->mtu > 4096 ||
        (remote->mtu & (remote->mtu - 1)) != 0) {
        return slu_fail(EPROTO, "the endpoint names queue pair %u and an MTU of %u bytes",
                        remote->qpn, remote->mtu);
    }
    if (remote->initiator_depth == 0 || remote->responder_depth == 0) {
        return slu_fail(EPROTO, "the endpoint allows no reads");
    }
    if (remote->verbs.link_layer != base->pd->context->link_layer) {
        return slu_fail(EPROTO, "the endpoint is on another link layer");
    }
    pair->remote = *remote;
    sim_fabric_connect(pair->pair, remote);
    return 0;
}

static int pair_state(const struct slu_qp *qp)
{
    return sim_fabric_state(pair_of(qp));
}

static void query_pair(const struct slu_qp *base, struct sluice_channel_info *info)
{
    const struct pair *pair = (const struct pair *)base;
    struct slu_endpoint own = {.qpn = 0};
    sim_fabric_endpoint(pair->pair, &own);
    info->level = SLUICE_LEVEL_NIC;
    info->port = 1;
    info->qpn = own.qpn;
    info->psn = pair->psn;
    info->ack_timeout = pair->attr.ack_timeout;
    info->retry_count = pair->attr.retry_count;
    info->rnr_timer = pair->attr.rnr_timer;
    info->rnr_retry = pair->attr.rnr_retry;
    info->remote_qpn = pair->remote.qpn;
    info->remote_psn = pair->remote.psn;
    info->path_mtu = pair->remote.mtu < own.mtu ? pair->remote.mtu : own.mtu;
    info->read_depth = (uint32_t)slu_least(pair->attr.read_depth, pair->remote.responder_depth);
    info->remote_read_depth =
        (uint32_t)slu_least(pair->attr.read_depth, pair->remote.initiator_depth);
    snprintf(info->address, sizeof info->address, "LID %u", own.verbs.lid);
    snprintf(info->remote_address, sizeof info->remote_address, "LID %u", pair->remote.verbs.lid);
}

/* An empty write waits for all requests before it, and ends when the peer has answered. */
static int probe_pair(struct slu_qp *qp, uint64_t id)
{
    const struct slu_send_wr wr = {.id = id, .opcode = SLUICE_OP_WRITE, .flags = SLU_SIGNALED};
    return sim_fabric_send(pair_of(qp), &wr, true) == 0 ? 0
                                                        : slu_fail(ENOMEM, "sim0 refused a probe");
}

static void fail_pair(struct slu_qp *qp)
{
    sim_fabric_fail(pair_of(qp));
}

static void destroy_pair(struct slu_qp *base)
{
    sim_fabric_destroy(pair_of(base));
    free(base);
}

static int post_sends(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad)
{
    for (; chain != NULL; chain = chain->next) {
        if (sim_fabric_send(pair_of(qp), chain, false) != 0) {
            *bad = chain;
            return slu_fail(ENOMEM, "sim0 refused a send-queue request");
        }
    }
    return 0;
}

static int post_receives(struct slu_qp *qp, struct slu_receive_wr *chain,
                         struct slu_receive_wr **bad)
{
    for (; chain != NULL; chain = chain->next) {
        if (sim_fabric_receive(pair_of(qp), chain) != 0) {
            *bad = chain;
            return slu_fail(ENOMEM, "sim0 refused a receive");
        }
    }
    return 0;
}

const struct slu_transport slu_transport_verbs = {
    .name = "verbs",
    .id = SLU_TRANSPORT_VERBS,
    .probe_is_request = true,
    .hot_spin = SLUICE_US(20),
    .device_list = list_devices,
    .open = open_device,
    .close = close_device,
    .pd_alloc = alloc_domain,
    .pd_free = free_domain,
    .pds_share_keys = share_keys,
    .mr_register = register_memory,
    .mr_register_dmabuf = register_dmabuf,
    .mr_alloc = alloc_memory,
    .mr_deregister = deregister,
    .cq_create = create_queue,
    .cq_extend = extend_queue,
    .cq_reduce = reduce_queue,
    .cq_destroy = destroy_queue,
    .cq_poll = poll_queue,
    .cq_alert = take_alert,
    .cq_arm = arm_queue,
    .cq_fd = queue_fd,
    .cq_wake = wake_queue,
    .qp_create = create_pair,
    .qp_endpoint = fill_endpoint,
    .qp_connect = connect_pair,
    .qp_state = pair_state,
    .qp_query = query_pair,
    .qp_probe = probe_pair,
    .qp_error = fail_pair,
    .qp_destroy = destroy_pair,
    .post_send = post_sends,
    .post_receive = post_receives,
};
