/* SPDX-License-Identifier: MIT */
/* The interface of the pretend device for tests: faults to order and values to read. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "fake_device.h"

#define ENDS 8

/* An order for the n-th event of a kind, on one queue pair or on any. */
struct order {
    uint32_t qpn;
    uint32_t n; /* 0: nothing */
    uint32_t at;
    int err;
    enum fake_queue queue;
    enum ibv_wc_status status;
    uint32_t vendor;
};

struct fake_verbs fake_verbs;
pthread_mutex_t fake_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t fail_n;
static uint64_t fail_kinds;
static int fail_errno;
static const char *failed;
static struct order refusal;
static struct order ends[ENDS];
static bool hold_all;

static const char *const call_names[FAKE_CALLS] = {
    [FAKE_GET_DEVICE_LIST] = "ibv_get_device_list",
    [FAKE_OPEN_DEVICE] = "ibv_open_device",
    [FAKE_QUERY_DEVICE] = "ibv_query_device",
    [FAKE_QUERY_PORT] = "ibv_query_port",
    [FAKE_QUERY_GID] = "ibv_query_gid",
    [FAKE_QUERY_GID_TABLE] = "ibv_query_gid_table",
    [FAKE_QUERY_PKEY] = "ibv_query_pkey",
    [FAKE_GET_PKEY_INDEX] = "ibv_get_pkey_index",
    [FAKE_FORK_INIT] = "ibv_fork_init",
    [FAKE_ALLOC_PD] = "ibv_alloc_pd",
    [FAKE_REG_MR] = "ibv_reg_mr",
    [FAKE_REG_DMABUF_MR] = "ibv_reg_dmabuf_mr",
    [FAKE_CREATE_COMP_CHANNEL] = "ibv_create_comp_channel",
    [FAKE_CREATE_CQ] = "ibv_create_cq",
    [FAKE_CREATE_QP] = "ibv_create_qp",
    [FAKE_CREATE_SRQ] = "ibv_create_srq",
    [FAKE_MODIFY_SRQ] = "ibv_modify_srq",
    [FAKE_MODIFY_QP] = "ibv_modify_qp",
    [FAKE_QUERY_QP] = "ibv_query_qp",
    [FAKE_POST_SEND] = "ibv_post_send",
    [FAKE_POST_RECV] = "ibv_post_recv",
    [FAKE_POST_SRQ_RECV] = "ibv_post_srq_recv",
    [FAKE_REQ_NOTIFY_CQ] = "ibv_req_notify_cq",
    [FAKE_POLL_CQ] = "ibv_poll_cq",
    [FAKE_GET_CQ_EVENT] = "ibv_get_cq_event",
    [FAKE_GET_ASYNC_EVENT] = "ibv_get_async_event",
    [FAKE_MEMORY] = "calloc",
    [FAKE_CLOSE_DEVICE] = "ibv_close_device",
    [FAKE_DEALLOC_PD] = "ibv_dealloc_pd",
    [FAKE_DEREG_MR] = "ibv_dereg_mr",
    [FAKE_DESTROY_COMP_CHANNEL] = "ibv_destroy_comp_channel",
    [FAKE_DESTROY_CQ] = "ibv_destroy_cq",
    [FAKE_DESTROY_QP] = "ibv_destroy_qp",
    [FAKE_DESTROY_SRQ] = "ibv_destroy_srq",
};

void fake_lock(void)
{
    pthread_mutex_lock(&fake_mutex);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&fake_mutex);
}

void fake_verbs_lock(void)
{
    fake_lock();
}

void fake_verbs_unlock(void)
{
    fake_unlock();
}

/* The compiler turns malloc(3) and memset(3) into calloc(3), which a test makes fail. */
void *fake_alloc(size_t bytes)
{
    void *memory;

    if (posix_memalign(&memory, 16, bytes)) {
        fprintf(stderr, "pretend RDMA device: no memory\n");
        abort();
    }
    return memset(memory, 0, bytes);
}

void fake_complain(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(fake_verbs.complaint, sizeof(fake_verbs.complaint), format, arguments);
    va_end(arguments);
    fake_verbs.complaints++;
    if (fake_verbs.tolerate_misuse)
        return;
    fprintf(stderr, "pretend RDMA device: %s\n", fake_verbs.complaint);
    abort();
}

bool fake_fails(enum fake_call call)
{
    fake_verbs.calls[call]++;
    if (fail_n == 0 || !(fail_kinds & FAKE_CALL(call)) || --fail_n > 0)
        return false;
    failed = call_names[call];
    errno = fail_errno;
    return true;
}

bool fake_verbs_fails(enum fake_call call)
{
    bool fails;

    fake_lock();
    fails = fake_fails(call);
    fake_unlock();
    return fails;
}

void fake_verbs_fail(uint32_t n, uint64_t kinds, int err)
{
    fake_lock();
    fail_n = n;
    fail_kinds = kinds;
    fail_errno = err;
    failed = NULL;
    fake_unlock();
}

const char *fake_verbs_failed(void)
{
    return failed;
}

/* Counts an event. Returns whether it is the ordered one. */
static bool matches(struct order *order, uint32_t qpn, enum fake_queue queue)
{
    return order->n > 0 && order->queue == queue && (order->qpn == 0 || order->qpn == qpn) &&
           --order->n == 0;
}

void fake_verbs_refuse(uint32_t qpn, enum fake_queue queue, uint32_t n, uint32_t k, int err)
{
    fake_lock();
    refusal = (struct order){.qpn = qpn, .queue = queue, .n = n, .at = k, .err = err};
    fake_unlock();
}

bool fake_refuses(uint32_t qpn, enum fake_queue queue, uint32_t *at)
{
    if (!matches(&refusal, qpn, queue))
        return false;
    *at = refusal.at;
    errno = refusal.err;
    return true;
}

void fake_verbs_end(uint32_t qpn, enum fake_queue queue, uint32_t n, enum ibv_wc_status status,
                    uint32_t vendor)
{
    uint32_t i = 0;

    fake_lock();
    while (i < ENDS && ends[i].n > 0)
        i++;
    if (i == ENDS)
        fake_complain("more than %d requests are to end by order", ENDS);
    else
        ends[i] =
            (struct order){.qpn = qpn, .queue = queue, .n = n, .status = status, .vendor = vendor};
    fake_unlock();
}

bool fake_ends(uint32_t qpn, enum fake_queue queue, enum ibv_wc_status *status, uint32_t *vendor)
{
    bool found = false;

    for (uint32_t i = 0; i < ENDS; i++) {
        if (matches(&ends[i], qpn, queue)) {
            *status = ends[i].status;
            *vendor = ends[i].vendor;
            found = true;
        }
    }
    return found;
}

bool fake_holds_all(void)
{
    return hold_all;
}

void fake_verbs_hold(uint32_t qpn)
{
    fake_lock();
    if (qpn == 0)
        hold_all = true;
    for (struct fake_link *link = fake_qps.next; link != &fake_qps; link = link->next) {
        struct fake_qp *qp = fake_container_of(link, struct fake_qp, link);

        if (qpn == 0 || qp->ibv.qp_num == qpn)
            qp->holding = true;
    }
    fake_unlock();
}

void fake_release(uint32_t qpn)
{
    if (qpn == 0)
        hold_all = false;
    for (struct fake_link *link = fake_qps.next; link != &fake_qps; link = link->next) {
        struct fake_qp *qp = fake_container_of(link, struct fake_qp, link);

        if (qpn != 0 && qp->ibv.qp_num != qpn)
            continue;
        qp->holding = false;
        fake_cq_release(qp, FAKE_SEND, UINT32_MAX);
        fake_cq_release(qp, FAKE_RECEIVE, UINT32_MAX);
    }
    fake_cq_release_orphans(qpn);
}

void fake_verbs_release(uint32_t qpn)
{
    fake_lock();
    fake_release(qpn);
    fake_unlock();
}

void fake_verbs_release_some(uint32_t qpn, enum fake_queue queue, uint32_t count)
{
    struct fake_qp *qp;

    fake_lock();
    qp = fake_qp_find(qpn);
    if (qp)
        fake_cq_release(qp, queue, count);
    fake_unlock();
}

uint32_t fake_verbs_held(uint32_t qpn, enum fake_queue queue)
{
    struct fake_qp *qp;
    uint32_t count = 0;

    fake_lock();
    qp = fake_qp_find(qpn);
    for (struct fake_link *link = qp ? qp->held[queue].next : NULL; qp && link != &qp->held[queue];
         link = link->next)
        count++;
    fake_unlock();
    return count;
}

void fake_verbs_cut(uint32_t qpn, bool cut)
{
    struct fake_qp *qp;

    fake_lock();
    qp = fake_qp_find(qpn);
    if (qp)
        qp->cut = cut;
    fake_unlock();
}

uint32_t fake_verbs_alive(void)
{
    struct fake_live live;

    fake_lock();
    live = fake_verbs.live;
    fake_unlock();
    return live.device_lists + live.contexts + live.pds + live.mrs + live.channels + live.cqs +
           live.qps + live.srqs;
}

int fake_verbs_count(const char *kind)
{
    uint32_t count;

    fake_lock();
    count = strcmp(kind, "qp") == 0   ? fake_verbs.live.qps
            : strcmp(kind, "mr") == 0 ? fake_verbs.live.mrs
                                      : 0;
    fake_unlock();
    return (int)count;
}

bool fake_verbs_qp(uint32_t i, struct fake_qp_info *info)
{
    struct fake_link *link;
    struct fake_qp *qp;

    fake_lock();
    for (link = fake_qps.next; link != &fake_qps && i > 0; link = link->next)
        i--;
    if (link == &fake_qps) {
        fake_unlock();
        return false;
    }
    qp = fake_container_of(link, struct fake_qp, link);
    *info = (struct fake_qp_info){
        .qpn = qp->ibv.qp_num,
        .state = qp->state,
        .context = qp->ibv.context,
        .send_cq = qp->ibv.send_cq,
        .recv_cq = qp->ibv.recv_cq,
        .init = qp->init,
        .modifies = qp->modifies,
        .posted = {qp->work[FAKE_SEND].posted, qp->work[FAKE_RECEIVE].posted},
        .signaled = qp->signaled,
        .doorbells = qp->doorbells,
        .waiting = {qp->work[FAKE_SEND].count, qp->work[FAKE_RECEIVE].count},
        .inline_data = qp->inline_data,
    };
    memcpy(info->attr, qp->changes, sizeof(info->attr));
    memcpy(info->mask, qp->masks, sizeof(info->mask));
    fake_unlock();
    return true;
}

const struct ibv_qp_attr *fake_verbs_change(const struct fake_qp_info *info,
                                            enum ibv_qp_state state)
{
    for (uint32_t i = 0; i < info->modifies && i < FAKE_MODIFIES; i++) {
        if (info->mask[i] & IBV_QP_STATE && info->attr[i].qp_state == state)
            return &info->attr[i];
    }
    fprintf(stderr, "pretend RDMA device: queue pair %u was not moved to state %d\n", info->qpn,
            state);
    abort();
}

bool fake_verbs_cq(uint32_t i, struct fake_cq_info *info)
{
    struct fake_cq *found = NULL;

    fake_lock();
    for (struct fake_link *link = fake_cqs.next; link != &fake_cqs && !found; link = link->next) {
        struct fake_cq *cq = fake_container_of(link, struct fake_cq, link);

        if (cq->ibv.channel && i-- == 0)
            found = cq;
    }
    if (found)
        *info = (struct fake_cq_info){
            .context = found->ibv.context,
            .depth = found->depth,
            .count = found->count,
            .most = found->most,
            .qps = found->qps,
            .events = found->events,
        };
    fake_unlock();
    return found != NULL;
}

__attribute__((destructor)) static void look_at_the_end(void)
{
    const struct fake_live *live = &fake_verbs.live;

    if (!fake_verbs.tidy || !fake_verbs_alive())
        return;
    fprintf(stderr,
            "pretend RDMA device: left are %u lists, %u contexts, %u domains, %u regions, %u "
            "channels, %u completion queues, %u queue pairs\n",
            live->device_lists, live->contexts, live->pds, live->mrs, live->channels, live->cqs,
            live->qps);
    _exit(EXIT_FAILURE);
}

__attribute__((constructor)) void fake_verbs_reset(void)
{
    struct fake_device *device = &fake_verbs.device[0];

    if (fake_verbs_alive())
        fake_complain("reset while objects are alive");
    fail_n = 0;
    failed = NULL;
    refusal.n = 0;
    memset(ends, 0, sizeof(ends));
    hold_all = false;
    memset(&fake_verbs, 0, sizeof(fake_verbs));
    fake_verbs.devices = 1;
    fake_verbs.hurry = 1;
    fake_verbs.fork_status = IBV_FORK_UNNEEDED;
    *device = (struct fake_device){
        .name = "fake0",
        .transport_type = IBV_TRANSPORT_IB,
        .ports = 1,
        .max_qp = 65536,
        .max_qp_wr = 16384,
        .max_sge = 32,
        .max_sge_rd = 32,
        .max_cq = 65536,
        .max_cqe = 32767,
        .max_mr = 65536,
        .max_mr_size = UINT64_MAX,
        .max_qp_rd_atom = 128,
        .max_qp_init_rd_atom = 128,
        .max_srq = 64,
        .max_srq_wr = 4096,
        .max_srq_sge = 16,
        .atomic_cap = IBV_ATOMIC_HCA,
        .max_inline = 512,
    };
    for (uint32_t i = 0; i < FAKE_PORTS; i++)
        fake_port_reset(&device->port[i]);
    for (uint32_t i = 1; i < FAKE_DEVICES; i++) {
        fake_verbs.device[i] = *device;
        snprintf(fake_verbs.device[i].name, sizeof(fake_verbs.device[i].name), "fake%u", i);
        fake_verbs.device[i].port[0].gid[2].raw[15] += i;
        fake_verbs.device[i].port[0].gid[3].raw[15] += i;
    }
    fake_words_apply();
}
