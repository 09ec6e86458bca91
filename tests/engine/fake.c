/* SPDX-License-Identifier: MIT */
/* The objects of the pretend device, its clock and its random numbers. */
#include "config.h"

#include "fake_queues.h"

#include "../support/iwarp.h"
#include "device/device.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct fake fake;

/* These devices are no iWARP, whose support would bring listeners and with them the real clock. */
bool device_is_iwarp(void)
{
    return false;
}

void iwarp_connect_pair(struct pair *pair, const struct sluice_channel_attr *attr)
{
    (void)pair;
    (void)attr;
    fail_at(__FILE__, __LINE__, "no iWARP device is here");
}

void iwarp_connect_star(struct star *star, const struct sluice_channel_attr *attr)
{
    (void)star;
    (void)attr;
    fail_at(__FILE__, __LINE__, "no iWARP device is here");
}

/* Replaces the clock of the library. */
int64_t slu_now(void)
{
    return fake.now;
}

/* The last tick is so long ago that no deadline is later than it should be. */
int64_t slu_tick(void)
{
    return fake.now - SLU_LATE_MOST;
}

void fake_reset(uint64_t seed)
{
    memset(&fake, 0, sizeof(fake));
    fake.seed = seed;
    fake.now = SLUICE_S(1000);
    fake.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

uint32_t fake_random(uint32_t below)
{
    fake.random ^= fake.random << 13;
    fake.random ^= fake.random >> 7;
    fake.random ^= fake.random << 17;
    return below > 0 ? (uint32_t)((fake.random >> 11) % below) : 0;
}

bool fake_chance(uint32_t chance)
{
    return chance > 0 && fake_random(1000) < chance;
}

/* Returns whether this call fails, of those that can. */
static bool call_fails(void)
{
    return (fake.fail_call > 0 && --fake.fail_call == 0) || fake_chance(fake.chances.create);
}

static void *new_object(size_t size)
{
    void *object = calloc(1, size);
    if (object) {
        fake.objects++;
    }
    return object;
}

static void free_object(void *object)
{
    fake.objects--;
    free(object);
}

static int no_memory(const char *what)
{
    return slu_fail(ENOMEM, "the pretend device has no memory for %s", what);
}

static int list_devices(struct sluice_device_list *list)
{
    struct slu_device *device = call_fails() ? NULL : slu_device_add(list, "soft", "soft");
    if (!device) {
        return no_memory("a list");
    }
    device->info.active = 1;
    device->info.level = SLUICE_LEVEL_NIC;
    return slu_device_add_ports(device, 1);
}

static int open_device(const char *device, const struct sluice_context_attr *attr,
                       struct slu_tcontext **context)
{
    (void)device;
    (void)attr;
    struct slu_tcontext *opened = call_fails() ? NULL : new_object(sizeof(*opened));
    if (!opened) {
        return no_memory("a context");
    }
    *opened = (struct slu_tcontext){
        .transport = &slu_transport_soft,
        .device = "soft",
        .level = SLUICE_LEVEL_NIC,
        .max_send_depth = 16384,
        .max_receive_depth = 16384,
        .max_sge = 32,
        .max_read_sge = 32,
        .max_inline = 1024,
        .max_read_depth = 128,
        .max_cq_depth = fake.max_cq_depth > 0 ? fake.max_cq_depth : UINT32_C(1) << 22,
        .max_cq_entries = fake.max_cq_depth > 0 ? fake.max_cq_depth : UINT32_C(1) << 22,
        .atomics = SLUICE_ATOMICS_DEVICE,
        .max_message = UINT64_C(1) << 31,
    };
    *context = opened;
    return 0;
}

static void close_device(struct slu_tcontext *context)
{
    free_object(context);
}

static int alloc_pd(struct slu_tcontext *context, struct slu_tpd **pd)
{
    struct slu_tpd *made = call_fails() ? NULL : new_object(sizeof(*made));
    if (!made) {
        return no_memory("a protection domain");
    }
    made->context = context;
    *pd = made;
    return 0;
}

static void free_pd(struct slu_tpd *pd)
{
    free_object(pd);
}

/* Of memory that is there, or behind the region itself. */
static int make_mr(struct slu_tpd *pd, void *addr, size_t length, struct slu_tmr **mr)
{
    size_t own = addr ? 0 : length;
    struct slu_tmr *made = call_fails() ? NULL : new_object(sizeof(*made) + own);
    if (!made) {
        return no_memory("a region");
    }
    addr = addr ? addr : made + 1;
    *made = (struct slu_tmr){
        .pd = pd, .addr = addr, .length = length, .iova = (uint64_t)(uintptr_t)addr};
    made->lkey = made->rkey = FAKE_KEYS - 1;
    *mr = made;
    return 0;
}

static int register_mr(struct slu_tpd *pd, void *addr, size_t length,
                       uint32_t access __attribute__((unused)), struct slu_tmr **mr)
{
    return make_mr(pd, addr, length, mr);
}

/* The device moves no bytes, it counts them; but the engine stages blocks in it. */
static int alloc_mr(struct slu_tpd *pd, size_t length, uint32_t access __attribute__((unused)),
                    int32_t node __attribute__((unused)), struct slu_tmr **mr)
{
    return make_mr(pd, NULL, length, mr);
}

static void deregister_mr(struct slu_tmr *mr)
{
    free_object(mr);
}

static int create_cq(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq)
{
    struct fake_cq *made = call_fails() ? NULL : new_object(sizeof(*made));
    if (!made) {
        return no_memory("a completion queue");
    }
    made->ring = calloc(depth > 0 ? depth : 1, sizeof(*made->ring));
    if (!made->ring) {
        free_object(made);
        return no_memory("completions");
    }
    made->base = (struct slu_cq){.context = context, .depth = depth};
    made->fd = eventfd(1, EFD_CLOEXEC);
    made->tick = FAKE_TICK;
    *cq = &made->base;
    return 0;
}

/*
 * The ring is exactly as deep as asked for, so that an overrun is noticed. Completions of destroyed
 * queue pairs have no entries of their own: without room they are dropped, as a device does not
 * report them either.
 */
static bool resize_ring(struct fake_cq *cq, uint32_t depth)
{
    /* Plain malloc(), as this allocation is not one that a test makes fail. */
    struct fake_wc *ring = malloc((depth > 0 ? depth : 1) * sizeof(*ring));
    bool full = cq->count > depth;
    uint32_t kept = 0;
    fake_require(cq->entered, "resized from outside");
    if (!ring) {
        return false;
    }
    for (uint32_t i = 0; i < cq->count; i++) {
        const struct fake_wc *wc = &cq->ring[(cq->first + i) % cq->base.depth];
        if (full && !wc->qp) {
            continue;
        }
        fake_require(kept < depth, "%u completions, room for %u", cq->count, depth);
        ring[kept++] = *wc;
    }
    free(cq->ring);
    cq->ring = ring;
    cq->first = 0;
    cq->count = kept;
    cq->base.depth = depth;
    return true;
}

static int extend_cq(struct slu_cq *cq, uint32_t entries)
{
    if (call_fails() || !resize_ring(fake_cq_of(cq), cq->depth + entries)) {
        return no_memory("more completions");
    }
    return 0;
}

static void reduce_cq(struct slu_cq *cq, uint32_t entries)
{
    fake_require(entries <= cq->depth, "%u entries of %u", entries, cq->depth);
    fake_require(resize_ring(fake_cq_of(cq), cq->depth - entries), "no memory");
}

static void destroy_cq(struct slu_cq *base)
{
    struct fake_cq *cq = fake_cq_of(base);
    fake_require(!cq->qps && !cq->entered, "its queue pairs live, or it is in use");
    close(cq->fd);
    free(cq->ring);
    free_object(cq);
}

static void enter_cq(struct slu_cq *cq)
{
    fake_require(!fake_cq_of(cq)->entered, "entered twice");
    fake_cq_of(cq)->entered = true;
}

static void leave_cq(struct slu_cq *cq)
{
    fake_require(fake_cq_of(cq)->entered, "left twice");
    fake_cq_of(cq)->entered = false;
}

static int arm_cq(struct slu_cq *cq)
{
    fake_require(fake_cq_of(cq)->entered, "armed from outside");
    return fake_cq_of(cq)->count > 0;
}

static int fd_of_cq(struct slu_cq *cq)
{
    return fake_cq_of(cq)->fd;
}

/* The fd is always readable. */
static void wake_cq(struct slu_cq *cq)
{
    (void)cq;
}

static int create_qp(struct slu_tpd *pd, struct slu_cq *base, const struct slu_qp_attr *attr,
                     struct slu_qp **qp)
{
    struct fake_cq *cq = fake_cq_of(base);
    struct fake_qp *made = call_fails() ? NULL : new_object(sizeof(*made));
    fake_require(cq->entered, "queue pair made from outside");
    if (!made) {
        return no_memory("a queue pair");
    }
    made->base = (struct slu_qp){.pd = pd, .cq = base};
    made->attr = *attr;
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        made->lists[queue].end = &made->lists[queue].first;
    }
    made->number = ++fake.qp_number;
    made->next = cq->qps;
    cq->qps = made;
    *qp = &made->base;
    return 0;
}

static void fill_endpoint(const struct slu_qp *qp, struct slu_endpoint *endpoint)
{
    endpoint->qpn = fake_qp_of(qp)->number;
    endpoint->max_message = qp->pd->context->max_message;
}

static int connect_qp(struct slu_qp *qp, const struct slu_endpoint *remote)
{
    (void)remote;
    fake_require(fake_qp_of(qp)->state == SLU_QP_PREPARED, "connected twice");
    if (call_fails()) {
        return no_memory("a connection");
    }
    fake_qp_of(qp)->state = SLU_QP_CONNECTED;
    return 0;
}

static int state_of_qp(const struct slu_qp *qp)
{
    return (int)fake_qp_of(qp)->state;
}

static void destroy_qp(struct slu_qp *base)
{
    struct fake_qp *qp = fake_qp_of(base);
    struct fake_cq *cq = fake_cq_of(base->cq);
    struct fake_qp **at = &cq->qps;
    fake_require(cq->entered, "destroyed from outside");
    while (*at != qp) {
        at = &(*at)->next;
    }
    *at = qp->next;
    fake_forget(qp);
    free_object(qp);
}

/* The table has the name of the software transport, which is not linked: see tests/local.mk. */
const struct slu_transport slu_transport_soft = {
    .name = "soft",
    .id = SLU_TRANSPORT_SOFT,
    .probe_is_request = true,
    .device_list = list_devices,
    .open = open_device,
    .close = close_device,
    .pd_alloc = alloc_pd,
    .pd_free = free_pd,
    .mr_register = register_mr,
    .mr_alloc = alloc_mr,
    .mr_deregister = deregister_mr,
    .cq_create = create_cq,
    .cq_extend = extend_cq,
    .cq_reduce = reduce_cq,
    .cq_destroy = destroy_cq,
    .cq_enter = enter_cq,
    .cq_leave = leave_cq,
    .cq_poll = fake_poll,
    .cq_arm = arm_cq,
    .cq_fd = fd_of_cq,
    .cq_wake = wake_cq,
    .qp_create = create_qp,
    .qp_endpoint = fill_endpoint,
    .qp_connect = connect_qp,
    .qp_state = state_of_qp,
    .qp_probe = fake_probe,
    .qp_error = fake_error,
    .qp_destroy = destroy_qp,
    .post_send = fake_post_send,
    .post_receive = fake_post_receive,
};

const struct slu_transport *const slu_transports[] = {&slu_transport_soft};
const uint32_t slu_transport_count = 1;
