/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "noop.h"

#include "device/device.h"

/* Only one completion queue exists at a time. */
static struct slu_cq the_cq;
static struct slu_wc ring[NOOP_RING];
static uint32_t waiting;
uint32_t noop_empty_polls;
static uint32_t polls;

static int list_devices(struct sluice_device_list *list)
{
    struct slu_device *device = slu_device_add(list, "noop", "noop");

    if (!device)
        return -ENOMEM;
    device->info.active = 1;
    device->info.level = SLUICE_LEVEL_NIC;
    return slu_device_add_ports(device, 1);
}

static int open_device(const char *device, const struct sluice_context_attr *attr,
                       struct slu_tcontext **context);

static void close_device(struct slu_tcontext *context)
{
    free(context);
}

static int alloc_pd(struct slu_tcontext *context, struct slu_tpd **pd)
{
    static struct slu_tpd the_pd;

    the_pd.context = context;
    *pd = &the_pd;
    return 0;
}

static void free_pd(struct slu_tpd *pd)
{
    (void)pd;
}

static int register_mr(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                       struct slu_tmr **mr)
{
    struct slu_tmr *made = malloc(sizeof *made);

    (void)access;
    if (!made)
        return slu_fail(ENOMEM, "no memory for a region");
    *made = (struct slu_tmr){
        .pd = pd, .addr = addr, .length = length, .iova = (uintptr_t)addr, .lkey = 1};
    *mr = made;
    return 0;
}

static void deregister_mr(struct slu_tmr *mr)
{
    free(mr);
}

static int create_cq(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq)
{
    the_cq.context = context;
    the_cq.depth = depth;
    *cq = &the_cq;
    return 0;
}

static void destroy_cq(struct slu_cq *cq)
{
    (void)cq;
}

static int hand_out(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count)
{
    uint32_t taken = waiting < count ? waiting : count;

    (void)cq;
    if (polls++ < noop_empty_polls)
        return 0;
    polls = 0;
    memcpy(wcs, ring, taken * sizeof(*wcs));
    waiting -= taken;
    return (int)taken;
}

static int arm_cq(struct slu_cq *cq)
{
    (void)cq;
    return 1;
}

static int fd_of_cq(struct slu_cq *cq)
{
    (void)cq;
    return -1;
}

static void wake_cq(struct slu_cq *cq)
{
    (void)cq;
}

static int create_qp(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                     struct slu_qp **qp)
{
    (void)attr;
    *qp = calloc(1, sizeof(**qp));
    if (!*qp)
        return slu_fail(ENOMEM, "no memory for a queue pair");
    **qp = (struct slu_qp){.pd = pd, .cq = cq};
    return 0;
}

static void fill_endpoint(const struct slu_qp *qp, struct slu_endpoint *endpoint)
{
    endpoint->qpn = 1;
    endpoint->max_message = qp->pd->context->max_message;
}

static int connect_qp(struct slu_qp *qp, const struct slu_endpoint *remote)
{
    (void)qp;
    (void)remote;
    return 0;
}

static int state_of_qp(const struct slu_qp *qp)
{
    (void)qp;
    return SLU_QP_CONNECTED;
}

static void error_qp(struct slu_qp *qp)
{
    (void)qp;
}

static void destroy_qp(struct slu_qp *qp)
{
    free(qp);
}

static int succeed_sends(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad)
{
    (void)qp;
    (void)bad;
    for (; chain; chain = chain->next) {
        if (chain->flags & SLU_SIGNALED)
            ring[waiting++] = (struct slu_wc){.id = chain->id};
    }
    return 0;
}

static int succeed_receives(struct slu_qp *qp, struct slu_receive_wr *chain,
                            struct slu_receive_wr **bad)
{
    (void)qp;
    (void)bad;
    for (; chain; chain = chain->next)
        ring[waiting++] = (struct slu_wc){.id = chain->id, .bytes = 8, .flags = SLUICE_IMMEDIATE};
    return 0;
}

static const struct slu_transport noop = {
    .name = "noop",
    .id = SLU_TRANSPORT_SOFT,
    .device_list = list_devices,
    .open = open_device,
    .close = close_device,
    .pd_alloc = alloc_pd,
    .pd_free = free_pd,
    .mr_register = register_mr,
    .mr_deregister = deregister_mr,
    .cq_create = create_cq,
    .cq_destroy = destroy_cq,
    .cq_poll = hand_out,
    .cq_arm = arm_cq,
    .cq_fd = fd_of_cq,
    .cq_wake = wake_cq,
    .qp_create = create_qp,
    .qp_endpoint = fill_endpoint,
    .qp_connect = connect_qp,
    .qp_state = state_of_qp,
    .qp_error = error_qp,
    .qp_destroy = destroy_qp,
    .post_send = succeed_sends,
    .post_receive = succeed_receives,
};

/* Replaces the transports of the library. */
const struct slu_transport *const slu_transports[] = {&noop};
const uint32_t slu_transport_count = 1;

static int open_device(const char *device, const struct sluice_context_attr *attr,
                       struct slu_tcontext **context)
{
    static struct slu_tcontext limits = {
        .transport = &noop,
        .device = "noop",
        .level = SLUICE_LEVEL_NIC,
        .max_send_depth = 1024,
        .max_receive_depth = 1024,
        .max_sge = 32,
        .max_read_sge = 32,
        .max_inline = 1024,
        .max_read_depth = 16,
        .max_cq_depth = 1 << 20,
        .max_cq_entries = 1 << 20,
        .max_message = UINT32_C(1) << 30,
    };

    (void)device;
    (void)attr;
    *context = malloc(sizeof(**context));
    if (!*context)
        return slu_fail(ENOMEM, "no memory for a device");
    **context = limits;
    return 0;
}
