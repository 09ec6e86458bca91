/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous events of the devices that the library opened. Guarantee: each event is read once,
 * by the first thread that polls (watch.c has one), and is acknowledged before that call returns.
 * It is noted in all queue pairs concerned, including those of other threads, which are woken if
 * they sleep.
 *
 * A queue pair or completion queue stays while an event of it is read but not acknowledged, because
 * destroying waits for that. The lists of the context contain the objects of this library. No call
 * that waits for an acknowledgement holds the lock.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transport/verbs/device/device.h"
#include "transport/verbs/events/events.h"

/* Value of an event in a queue pair: 0 is none, so numbers are one higher. */
#define KEPT(event) ((uint32_t)(event) + 1)

static const char *reason_of(enum ibv_event_type event)
{
    switch (event) {
    case IBV_EVENT_PORT_ERR:
        return "the port went down";
    case IBV_EVENT_GID_CHANGE:
        return "the port has lost the address that the connection uses";
    case IBV_EVENT_LID_CHANGE:
        return "the port has got another LID";
    case IBV_EVENT_QP_REQ_ERR:
        return "the device reports an invalid request";
    case IBV_EVENT_QP_ACCESS_ERR:
        return "the device reports an access without the right to it";
    default:
        return "the device reports a fatal error of the queue pair";
    }
}

/* Notes an event in a queue pair. The first one is kept as the cause. */
static void alert_qp(struct slu_verbs_qp *qp, enum ibv_event_type event)
{
    uint32_t none = 0;

    atomic_compare_exchange_strong(&qp->event, &none, KEPT(event));
    atomic_store(&qp->base.cq->alerted, true);
}

static void alert_all(struct slu_verbs_context *context, enum ibv_event_type event)
{
    for (struct slu_verbs_qp *qp = context->qps; qp; qp = qp->context_next)
        alert_qp(qp, event);
}

static void alert_one(struct slu_verbs_context *context, const struct ibv_qp *ibv,
                      enum ibv_event_type event)
{
    for (struct slu_verbs_qp *qp = context->qps; qp; qp = qp->context_next) {
        if (qp->ibv == ibv)
            alert_qp(qp, event);
    }
}

/* Marks the device as failed. Engines notice it at their next poll. */
static void fail_device(struct slu_verbs_context *context)
{
    atomic_store(&context->fatal, true);
    for (struct slu_verbs_cq *cq = context->cqs; cq; cq = cq->context_next)
        atomic_store(&cq->base.alerted, true);
}

static void lose_device(struct slu_verbs_context *context, int err)
{
    slu_log(SLUICE_LOG_ERROR, "device %s has gone: %s", context->base.device, strerror(err));
    fail_device(context);
}

static void fail_cq(struct slu_verbs_context *context, const struct ibv_cq *ibv)
{
    for (struct slu_verbs_cq *cq = context->cqs; cq; cq = cq->context_next) {
        if (ibv->cq_context == cq) {
            atomic_store(&cq->overrun, true);
            atomic_store(&cq->base.alerted, true);
        }
    }
}

/*
 * Returns whether the GID table still has the same entry at its index. An empty entry gives
 * ENODATA; other errors do not mean that the entry is gone.
 */
static bool has_gid(const struct slu_verbs_context *context, const struct ibv_gid_entry *wanted)
{
    struct ibv_gid_entry now;
    int err = ibv_query_gid_ex(context->ibv, context->port, wanted->gid_index, &now, 0);

    if (err)
        return slu_verbs_errno(err) != ENODATA;
    return now.gid_type == wanted->gid_type &&
           memcmp(now.gid.raw, wanted->gid.raw, sizeof now.gid.raw) == 0;
}

/* Alerts queue pairs whose address has gone. Other changes of addresses do not matter. */
static void check_gids(struct slu_verbs_context *context)
{
    const struct ibv_gid_entry *looked_at = NULL;
    bool there = true;

    for (struct slu_verbs_qp *qp = context->qps; qp; qp = qp->context_next) {
        if (!atomic_load(&qp->uses_gid))
            continue;
        if (!looked_at || memcmp(looked_at, &qp->path.gid, sizeof *looked_at) != 0)
            there = has_gid(context, &qp->path.gid);
        looked_at = &qp->path.gid;
        if (!there)
            alert_qp(qp, IBV_EVENT_GID_CHANGE);
    }
}

static void check_lids(struct slu_verbs_context *context)
{
    struct ibv_port_attr port;

    if (ibv_query_port(context->ibv, context->port, &port))
        return;
    for (struct slu_verbs_qp *qp = context->qps; qp; qp = qp->context_next) {
        if (qp->path.lid != port.lid)
            alert_qp(qp, IBV_EVENT_LID_CHANGE);
    }
}

static void handle_port_event(struct slu_verbs_context *context,
                              const struct ibv_async_event *event)
{
    if (event->element.port_num != context->port)
        return;
    slu_verbs_path_forget(context);
    switch (event->event_type) {
    case IBV_EVENT_PORT_ERR:
        alert_all(context, IBV_EVENT_PORT_ERR);
        return;
    case IBV_EVENT_GID_CHANGE:
        check_gids(context);
        return;
    case IBV_EVENT_LID_CHANGE:
        check_lids(context);
        return;
    default:
        return; /* PORT_ACTIVE, PKEY_CHANGE and the subnet manager's are only logged */
    }
}

static enum sluice_log_level level_of(enum ibv_event_type event)
{
    switch (event) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_QP_FATAL:
        return SLUICE_LOG_ERROR;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        return SLUICE_LOG_WARN;
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return SLUICE_LOG_DEBUG;
    default:
        return SLUICE_LOG_INFO;
    }
}

/* Returns whether the event results from a farewell of the peer; see words/farewell.c. */
static bool is_farewell(const struct slu_verbs_context *context,
                        const struct ibv_async_event *event)
{
    const struct slu_verbs_qp *qp = context->qps;

    if (event->event_type != IBV_EVENT_QP_ACCESS_ERR)
        return false;
    while (qp && qp->ibv != event->element.qp)
        qp = qp->context_next;
    return qp && slu_verbs_has_left(qp);
}

static void note_last(struct slu_verbs_context *context, const struct ibv_qp *ibv)
{
    for (struct slu_verbs_qp *qp = context->qps; qp; qp = qp->context_next) {
        if (qp->ibv == ibv)
            atomic_store(&qp->last_taken, true);
    }
}

/* Wakes the thread that is to refill a pool. */
static void note_low(struct slu_verbs_context *context, const struct ibv_srq *ibv)
{
    for (struct slu_verbs_cq *cq = context->cqs; cq; cq = cq->context_next) {
        if (!cq->pool || cq->pool->ibv != ibv)
            continue;
        atomic_store(&cq->pool->armed, false);
        slu_verbs_cq_wake(&cq->base);
    }
}

void slu_verbs_events_set_pool(struct slu_verbs_cq *cq, struct slu_verbs_pool *pool)
{
    struct slu_verbs_context *context = slu_verbs_context_of(cq->base.context);

    slu_verbs_events_read(context);
    pthread_mutex_lock(&context->events_lock);
    cq->pool = pool;
    pthread_mutex_unlock(&context->events_lock);
}

static void handle_event(struct slu_verbs_context *context, const struct ibv_async_event *event)
{
    slu_log(is_farewell(context, event) ? SLUICE_LOG_DEBUG : level_of(event->event_type),
            "device %s: %s", context->base.device, ibv_event_type_str(event->event_type));
    switch (event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
        fail_device(context);
        return;
    case IBV_EVENT_CQ_ERR:
        fail_cq(context, event->element.cq);
        return;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        alert_one(context, event->element.qp, event->event_type);
        return;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        note_last(context, event->element.qp);
        return;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        note_low(context, event->element.srq);
        return;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_GID_CHANGE:
        handle_port_event(context, event);
        return;
    default:
        return;
    }
}

/*
 * Returns 1 if there is an event, 0 if there is none, or a negative errno if there will be no more.
 */
static int next_event(struct slu_verbs_context *context, struct ibv_async_event *event)
{
    for (;;) {
        errno = 0;
        if (ibv_get_async_event(context->ibv, event) == 0)
            return 1;
        if (errno == EAGAIN)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

/* The write cannot fail: the counter would have to be full. */
void slu_verbs_cq_wake(struct slu_cq *base)
{
    const uint64_t one = 1;
    int saved = errno;
    ssize_t written = SLU_UNCANCELLED(write(slu_verbs_cq_of(base)->wake_fd, &one, sizeof one));

    (void)written;
    errno = saved;
}

void slu_verbs_events_wake(struct slu_verbs_context *context)
{
    for (struct slu_verbs_cq *cq = context->cqs; cq; cq = cq->context_next) {
        if (atomic_load(&cq->base.alerted))
            slu_verbs_cq_wake(&cq->base);
    }
}

void slu_verbs_events_read(struct slu_verbs_context *context)
{
    struct ibv_async_event event;
    int saved = errno;
    bool any = false;
    int got = 0;

    if (context->wrapped)
        return;
    pthread_mutex_lock(&context->events_lock);
    while (!atomic_load(&context->fatal) && (got = next_event(context, &event)) > 0) {
        handle_event(context, &event);
        ibv_ack_async_event(&event);
        any = true;
    }
    if (got < 0)
        lose_device(context, -got);
    if (any || got < 0)
        slu_verbs_events_wake(context);
    pthread_mutex_unlock(&context->events_lock);
    errno = saved;
}

void slu_verbs_events_gone(struct slu_verbs_context *context, int err)
{
    pthread_mutex_lock(&context->events_lock);
    if (!atomic_load(&context->fatal)) {
        lose_device(context, err);
        slu_verbs_events_wake(context);
    }
    pthread_mutex_unlock(&context->events_lock);
}

int slu_verbs_events_open(struct slu_verbs_context *context)
{
    int fd = context->ibv->async_fd;
    int err;

    if (!context->wrapped && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)) {
        err = errno;
        return slu_fail(err, "cannot prepare the events of %s: %s", context->base.device,
                        strerror(err));
    }
    pthread_mutex_init(&context->events_lock, NULL);
    pthread_mutex_init(&context->watch.lock, NULL);
    atomic_store(&context->watch.cm_fd, -1);
    return 0;
}

void slu_verbs_events_close(struct slu_verbs_context *context)
{
    slu_verbs_events_read(context);
    pthread_mutex_destroy(&context->watch.lock);
    pthread_mutex_destroy(&context->events_lock);
}

static void link_qp(struct slu_verbs_context *context, struct slu_verbs_qp *qp)
{
    qp->context_prev = &context->qps;
    qp->context_next = context->qps;
    if (qp->context_next)
        qp->context_next->context_prev = &qp->context_next;
    context->qps = qp;
}

bool slu_verbs_events_add_qp(struct slu_verbs_context *context, struct slu_verbs_qp *qp)
{
    bool current;

    pthread_mutex_lock(&context->events_lock);
    current = qp->path.changes == context->path_changes;
    if (current)
        link_qp(context, qp);
    pthread_mutex_unlock(&context->events_lock);
    return current;
}

void slu_verbs_events_remove_qp(struct slu_verbs_context *context, struct slu_verbs_qp *qp)
{
    slu_verbs_events_read(context);
    pthread_mutex_lock(&context->events_lock);
    *qp->context_prev = qp->context_next;
    if (qp->context_next)
        qp->context_next->context_prev = qp->context_prev;
    pthread_mutex_unlock(&context->events_lock);
}

void slu_verbs_events_add_cq(struct slu_verbs_context *context, struct slu_verbs_cq *cq)
{
    pthread_mutex_lock(&context->events_lock);
    cq->context_next = context->cqs;
    context->cqs = cq;
    pthread_mutex_unlock(&context->events_lock);
}

void slu_verbs_events_remove_cq(struct slu_verbs_context *context, struct slu_verbs_cq *cq)
{
    struct slu_verbs_cq **link = &context->cqs;

    slu_verbs_events_read(context);
    pthread_mutex_lock(&context->events_lock);
    while (*link != cq)
        link = &(*link)->context_next;
    *link = cq->context_next;
    pthread_mutex_unlock(&context->events_lock);
}

/*
 * Returns whether an event only reports that the queue pair failed. A failed request has a more
 * precise reason.
 */
static bool is_of_qp(enum ibv_event_type event)
{
    return event == IBV_EVENT_QP_FATAL || event == IBV_EVENT_QP_REQ_ERR ||
           event == IBV_EVENT_QP_ACCESS_ERR;
}

/*
 * Returns the status for an event. A side that received an invalid request gets QP_REQ_ERR or
 * QP_ACCESS_ERR on some devices and nothing on others. On all of them it has lost its peer.
 */
static uint32_t status_of(enum ibv_event_type event)
{
    return event == IBV_EVENT_QP_REQ_ERR || event == IBV_EVENT_QP_ACCESS_ERR
               ? SLUICE_STATUS_RETRY_EXC_ERR
               : SLUICE_STATUS_FATAL_ERR;
}

bool slu_verbs_events_take(struct slu_verbs_qp *qp, struct slu_alert *alert)
{
    const struct slu_verbs_context *context = slu_verbs_context_of(qp->base.pd->context);
    uint32_t kept = atomic_load(&qp->event);
    enum ibv_event_type event = (enum ibv_event_type)(kept - 1);

    if (!kept || qp->event_told || qp->state == SLU_QP_PREPARED)
        return false;
    qp->event_told = true;
    alert->qp = &qp->base;
    alert->vendor = event;
    alert->status = status_of(event);
    alert->inferred = is_of_qp(event);
    snprintf(alert->reason, sizeof alert->reason, "%s (%s, port %u)", reason_of(event),
             context->base.device, context->port);
    return true;
}

static int fail_fatal(const struct slu_verbs_context *context)
{
    return slu_fail(EIO, "device %s has failed: close what was made of it and open it anew",
                    context->base.device);
}

int slu_verbs_events_prepare(struct slu_verbs_context *context, const struct slu_verbs_cq *cq)
{
    slu_verbs_events_read(context);
    if (atomic_load(&context->fatal))
        return fail_fatal(context);
    if (cq->dead || atomic_load(&cq->overrun))
        return slu_fail(EIO, "a completion queue of %s has failed: close the channel, make it anew",
                        context->base.device);
    return 0;
}

int slu_verbs_events_check(struct slu_verbs_qp *qp, bool global)
{
    struct slu_verbs_context *context = slu_verbs_context_of(qp->base.pd->context);
    uint32_t kept;

    slu_verbs_events_read(context);
    kept = atomic_load(&qp->event);
    if (atomic_load(&context->fatal))
        return fail_fatal(context);
    /* The port may be up again, and an address that is not used does not matter. */
    if (kept == KEPT(IBV_EVENT_PORT_ERR) || kept == KEPT(IBV_EVENT_GID_CHANGE)) {
        /* Clear it before the check, so that a later event is kept. */
        atomic_store(&qp->event, 0);
        kept = global && !has_gid(context, &qp->path.gid) ? KEPT(IBV_EVENT_GID_CHANGE) : 0;
    }
    if (!kept)
        return 0;
    return slu_fail(EADDRNOTAVAIL, "%s (%s, port %u) since the channel was prepared",
                    reason_of((enum ibv_event_type)(kept - 1)), context->base.device,
                    context->port);
}

void slu_verbs_events_connected(struct slu_verbs_qp *qp)
{
    uint32_t gid_change = KEPT(IBV_EVENT_GID_CHANGE);

    qp->state = SLU_QP_CONNECTED;
    atomic_store(&qp->uses_gid, qp->link.global);
    if (!qp->link.global)
        atomic_compare_exchange_strong(&qp->event, &gid_change, 0);
    if (atomic_load(&qp->event))
        atomic_store(&qp->base.cq->alerted, true);
}
