/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous events: a descriptor that is readable while any are queued. When an object is
 * destroyed, its unread events are dropped; events that were read must have been acknowledged,
 * which the real library waits for.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_device.h"

static uint32_t others_unacked; /* events of ports and devices that were read */

bool fake_events_open(struct fake_events *events)
{
    fake_list_init(&events->list);
    events->fd = eventfd(0, EFD_CLOEXEC);
    return events->fd >= 0;
}

/* Makes the fd readable, or not. */
static void set_readable(struct fake_events *events, bool readable)
{
    struct pollfd pollfd = {.fd = events->fd, .events = POLLIN};
    uint64_t value = 1;

    if (readable == (poll(&pollfd, 1, 0) == 1))
        return;
    if ((readable ? write(events->fd, &value, sizeof(value))
                  : read(events->fd, &value, sizeof(value))) != sizeof(value))
        fake_complain("the fd %d of events was closed, read or written by somebody else",
                      events->fd);
}

void fake_events_add(struct fake_events *events, const struct ibv_async_event *async)
{
    struct fake_event *event = fake_alloc(sizeof(*event));

    event->async = *async;
    fake_list_add(&events->list, &event->link);
    set_readable(events, true);
}

static void forget(struct fake_event *event)
{
    fake_list_remove(&event->link);
    free(event);
}

bool fake_events_take(struct fake_events *events, struct ibv_async_event *async)
{
    struct fake_event *event;

    while (fake_list_empty(&events->list)) {
        struct pollfd pollfd = {.fd = events->fd, .events = POLLIN};
        int flags = fcntl(events->fd, F_GETFL), ready;

        if (flags < 0 || flags & O_NONBLOCK) {
            errno = flags < 0 ? errno : EAGAIN;
            return false;
        }
        fake_unlock();
        ready = poll(&pollfd, 1, -1);
        fake_lock();
        if (ready < 0)
            return false;
    }
    event = fake_container_of(events->list.next, struct fake_event, link);
    *async = event->async;
    forget(event);
    if (fake_list_empty(&events->list))
        set_readable(events, false);
    return true;
}

void fake_events_drop(struct fake_events *events, const void *element)
{
    struct fake_link *link = events->list.next;

    if (fake_list_empty(&events->list))
        return;
    while (link != &events->list) {
        struct fake_event *event = fake_container_of(link, struct fake_event, link);

        link = link->next;
        if (event->async.element.cq == element)
            forget(event);
    }
    if (fake_list_empty(&events->list))
        set_readable(events, false);
}

void fake_events_close(struct fake_events *events)
{
    while (!fake_list_empty(&events->list))
        forget(fake_container_of(events->list.next, struct fake_event, link));
    close(events->fd);
}

uint32_t fake_events_count(const struct fake_events *events)
{
    uint32_t count = 0;

    for (struct fake_link *link = events->list.next; link != &events->list; link = link->next)
        count++;
    return count;
}

bool fake_async(struct fake_context *context, enum ibv_event_type type, void *element, int port)
{
    struct ibv_async_event event = {.event_type = type};

    if (element)
        event.element.cq = element;
    else
        event.element.port_num = port;
    fake_events_add(&context->async, &event);
    return true;
}

/*
 * Returns the count of unacknowledged events of the object that an event names. Events of ports and
 * devices name none.
 */
static uint32_t *unacked_of(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        return &fake_cq_of(event->element.cq)->unacked_async;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return &fake_qp_of(event->element.qp)->unacked;
    default:
        return &others_unacked;
    }
}

int ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
    struct fake_context *context = fake_context_of(ibv);
    int result = -1;

    fake_lock();
    if (!fake_fails(FAKE_GET_ASYNC_EVENT) && fake_events_take(&context->async, event)) {
        ++*unacked_of(event);
        result = 0;
    }
    fake_unlock();
    return result;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    fake_lock();
    if (--*unacked_of(event) == UINT32_MAX)
        fake_complain("an event of type %d is acknowledged that was not read", event->event_type);
    fake_unlock();
}

bool fake_verbs_qp_event(uint32_t qpn, enum ibv_event_type type, bool fail)
{
    struct fake_qp *qp;

    fake_lock();
    qp = fake_qp_find(qpn);
    if (qp) {
        fake_async(fake_context_of(qp->ibv.context), type, &qp->ibv, 0);
        if (fail)
            fake_wire_error(qp);
    }
    fake_unlock();
    return qp != NULL;
}

bool fake_verbs_cq_event(uint32_t qpn)
{
    struct fake_qp *qp;

    fake_lock();
    qp = fake_qp_find(qpn);
    if (qp)
        fake_async(fake_context_of(qp->ibv.context), IBV_EVENT_CQ_ERR, qp->ibv.send_cq, 0);
    fake_unlock();
    return qp != NULL;
}

bool fake_verbs_port_event(uint32_t device, uint32_t port, enum ibv_event_type type)
{
    bool told = false;

    fake_lock();
    for (struct fake_link *link = fake_contexts.next; link != &fake_contexts; link = link->next) {
        struct fake_context *context = fake_container_of(link, struct fake_context, link);

        if (context->device == device)
            told = fake_async(context, type, NULL, (int)port);
    }
    fake_unlock();
    return told;
}

uint32_t fake_verbs_unread_events(void)
{
    uint32_t count = 0;

    fake_lock();
    for (struct fake_link *link = fake_contexts.next; link != &fake_contexts; link = link->next)
        count += fake_events_count(&fake_container_of(link, struct fake_context, link)->async);
    fake_unlock();
    return count;
}

uint32_t fake_verbs_unacked_events(void)
{
    uint32_t count;

    fake_lock();
    count = others_unacked;
    for (struct fake_link *link = fake_qps.next; link != &fake_qps; link = link->next)
        count += fake_container_of(link, struct fake_qp, link)->unacked;
    for (struct fake_link *link = fake_cqs.next; link != &fake_cqs; link = link->next)
        count += fake_container_of(link, struct fake_cq, link)->unacked_async;
    fake_unlock();
    return count;
}
