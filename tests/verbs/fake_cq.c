/* SPDX-License-Identifier: MIT */
/* Completion channels and completion queues. */
#include "fake_device.h"

struct fake_link fake_cqs = {&fake_cqs, &fake_cqs};
static struct fake_link channels = {&channels, &channels};

static struct fake_channel *channel_of(struct ibv_comp_channel *channel)
{
    return fake_container_of(channel, struct fake_channel, ibv);
}

static struct fake_completion *completion_of(struct fake_link *link)
{
    return fake_container_of(link, struct fake_completion, link);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ibv)
{
    struct fake_channel *channel = NULL;

    fake_lock();
    if (!fake_fails(FAKE_CREATE_COMP_CHANNEL)) {
        channel = fake_alloc(sizeof(*channel));
        if (fake_events_open(&channel->events)) {
            channel->ibv.context = ibv;
            channel->ibv.fd = channel->events.fd;
            fake_list_add(&channels, &channel->link);
            fake_context_of(ibv)->children++;
            fake_verbs.live.channels++;
        } else {
            free(channel);
            channel = NULL;
        }
    }
    fake_unlock();
    return channel ? &channel->ibv : NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    struct fake_channel *channel = channel_of(ibv);
    int err = 0;

    fake_lock();
    if (fake_fails(FAKE_DESTROY_COMP_CHANNEL))
        err = errno;
    else if (ibv->refcnt)
        err = EBUSY;
    if (!err) {
        fake_events_close(&channel->events);
        fake_context_of(ibv->context)->children--;
        fake_verbs.live.channels--;
        fake_list_remove(&channel->link);
        free(channel);
    }
    fake_unlock();
    return err;
}

static int check_cq(const struct fake_device *device, int cqe, int vector)
{
    if (cqe < 1 || cqe > device->max_cqe || vector < 0 || vector > 3)
        return EINVAL;
    return fake_verbs.live.cqs >= (uint32_t)device->max_cq ? ENOMEM : 0;
}

/* Devices grant a few more entries than asked for; callers must not rely on them. */
static int granted(int cqe, const struct fake_device *device)
{
    int entries = 2;

    while (entries <= cqe)
        entries *= 2;
    return entries - 1 < device->max_cqe ? entries - 1 : device->max_cqe;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ibv, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    struct fake_cq *cq = NULL;

    fake_lock();
    if (!fake_fails(FAKE_CREATE_CQ)) {
        errno = check_cq(fake_device_of(ibv), cqe, vector);
        if (!errno) {
            cq = fake_alloc(sizeof(*cq));
            cq->ibv.context = ibv;
            cq->ibv.channel = channel;
            cq->ibv.cq_context = cq_context;
            cq->ibv.cqe = granted(cqe, fake_device_of(ibv));
            cq->depth = (uint32_t)cqe;
            fake_list_init(&cq->completions);
            fake_list_init(&cq->orphans);
            fake_list_add(&fake_cqs, &cq->link);
            if (channel)
                channel->refcnt++;
            fake_context_of(ibv)->children++;
            fake_verbs.live.cqs++;
        }
    }
    fake_unlock();
    return cq ? &cq->ibv : NULL;
}

static void free_completions(struct fake_link *list)
{
    while (!fake_list_empty(list)) {
        struct fake_completion *completion = completion_of(list->next);

        fake_list_remove(&completion->link);
        free(completion);
    }
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
    struct fake_cq *cq = fake_cq_of(ibv);
    int err = 0;

    fake_lock();
    if (fake_fails(FAKE_DESTROY_CQ))
        err = errno;
    else if (cq->qps)
        err = EBUSY;
    if (!err) {
        if (cq->unacked || cq->unacked_async)
            fake_complain("a completion queue is destroyed with %u completion events and %u "
                          "asynchronous ones read and not acknowledged: that waits for ever",
                          cq->unacked, cq->unacked_async);
        if (ibv->channel) {
            fake_events_drop(&channel_of(ibv->channel)->events, ibv);
            ibv->channel->refcnt--;
        }
        fake_events_drop(&fake_context_of(ibv->context)->async, ibv);
        free_completions(&cq->completions);
        free_completions(&cq->orphans);
        fake_list_remove(&cq->link);
        fake_context_of(ibv->context)->children--;
        fake_verbs.live.cqs--;
        free(cq);
    }
    fake_unlock();
    return err;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct ibv_async_event event;
    int result = -1;

    fake_lock();
    if (!fake_fails(FAKE_GET_CQ_EVENT) && fake_events_take(&channel_of(channel)->events, &event)) {
        *cq = event.element.cq;
        *cq_context = event.element.cq->cq_context;
        fake_cq_of(event.element.cq)->unacked++;
        result = 0;
    }
    fake_unlock();
    return result;
}

void ibv_ack_cq_events(struct ibv_cq *ibv, unsigned int count)
{
    struct fake_cq *cq = fake_cq_of(ibv);

    fake_lock();
    if (count > cq->unacked)
        fake_complain("%u completion events are acknowledged, %u were read", count, cq->unacked);
    cq->unacked -= count;
    fake_unlock();
}

/* Arming for all wins over arming for solicited ones. */
int fake_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
    struct fake_cq *cq = fake_cq_of(ibv);
    enum fake_arm arm = solicited_only ? FAKE_ARMED_SOLICITED : FAKE_ARMED;
    int err;

    fake_lock();
    if (fake_verbs.release_at_arm) {
        fake_verbs.release_at_arm = false;
        fake_release(0);
    }
    err = fake_fails(FAKE_REQ_NOTIFY_CQ) ? errno : 0;
    if (!err && !ibv->channel)
        err = EINVAL;
    if (!err && arm > cq->armed)
        cq->armed = arm;
    fake_unlock();
    return err;
}

/* A device fills in only four fields of a failed completion. */
static void copy_completion(struct ibv_wc *to, const struct ibv_wc *from)
{
    if (from->status == IBV_WC_SUCCESS) {
        *to = *from;
        return;
    }
    memset(to, 0xa5, sizeof(*to));
    to->wr_id = from->wr_id;
    to->status = from->status;
    to->vendor_err = from->vendor_err;
    to->qp_num = from->qp_num;
}

int fake_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wcs)
{
    struct fake_cq *cq = fake_cq_of(ibv);
    int taken = 0;

    fake_lock();
    if (!cq->dead && fake_fails(FAKE_POLL_CQ))
        cq->dead = errno;
    while (!cq->dead && taken < count && !fake_list_empty(&cq->completions)) {
        struct fake_completion *completion = completion_of(cq->completions.next);

        copy_completion(&wcs[taken++], &completion->wc);
        if (completion->qp)
            completion->qp->work[completion->queue].used -= completion->slots;
        fake_list_remove(&completion->link);
        free(completion);
        cq->count--;
    }
    if (taken == 0)
        fake_verbs.polls_empty++;
    if (cq->dead)
        taken = -1;
    fake_unlock();
    return taken;
}

static void notify(struct fake_cq *cq, const struct fake_completion *completion)
{
    struct ibv_async_event event = {.element.cq = &cq->ibv};

    if (cq->armed == FAKE_UNARMED) {
        fake_verbs.unarmed_writes++;
        return;
    }
    if (cq->armed == FAKE_ARMED_SOLICITED && !completion->solicited &&
        completion->wc.status == IBV_WC_SUCCESS)
        return;
    cq->armed = FAKE_UNARMED;
    cq->events++;
    fake_events_add(&channel_of(cq->ibv.channel)->events, &event);
}

void fake_cq_add(struct fake_cq *cq, struct fake_completion *completion)
{
    if (cq->count >= cq->depth) {
        fake_verbs.overruns++;
        if (!fake_verbs.tolerate_overrun)
            fake_complain("a completion queue of %u entries overruns", cq->depth);
        else if (!cq->overrun)
            fake_async(fake_context_of(cq->ibv.context), IBV_EVENT_CQ_ERR, &cq->ibv, 0);
        cq->overrun = true;
        free(completion);
        return;
    }
    fake_list_add(&cq->completions, &completion->link);
    if (++cq->count > cq->most)
        cq->most = cq->count;
    notify(cq, completion);
}

/* Held completions go to the queue in their order. */
void fake_cq_release(struct fake_qp *qp, enum fake_queue queue, uint32_t count)
{
    struct ibv_cq *cq = queue == FAKE_SEND ? qp->ibv.send_cq : qp->ibv.recv_cq;

    for (; count > 0 && !fake_list_empty(&qp->held[queue]); count--) {
        struct fake_completion *completion = completion_of(qp->held[queue].next);

        fake_list_remove(&completion->link);
        if (fake_verbs.late_acks && queue == FAKE_SEND && qp->state == IBV_QPS_ERR)
            completion->wc.status = IBV_WC_WR_FLUSH_ERR;
        fake_cq_add(fake_cq_of(cq), completion);
    }
}

void fake_cq_release_orphans(uint32_t qpn)
{
    for (struct fake_link *at = fake_cqs.next; at != &fake_cqs; at = at->next) {
        struct fake_cq *cq = fake_container_of(at, struct fake_cq, link);

        for (struct fake_link *link = cq->orphans.next; link != &cq->orphans;) {
            struct fake_completion *completion = completion_of(link);

            link = link->next;
            if (qpn != 0 && completion->wc.qp_num != qpn)
                continue;
            fake_list_remove(&completion->link);
            fake_cq_add(cq, completion);
        }
    }
}

void fake_cq_forget(struct fake_cq *cq, struct fake_qp *qp)
{
    for (struct fake_link *link = cq->completions.next; link != &cq->completions;) {
        struct fake_completion *completion = completion_of(link);

        link = link->next;
        if (completion->qp != qp)
            continue;
        completion->qp = NULL;
        if (fake_verbs.orphans == FAKE_PURGE) {
            fake_list_remove(&completion->link);
            free(completion);
            cq->count--;
        }
    }
    for (int queue = 0; queue < 2; queue++) {
        if (cq != fake_cq_of(queue == FAKE_SEND ? qp->ibv.send_cq : qp->ibv.recv_cq))
            continue;
        while (!fake_list_empty(&qp->held[queue])) {
            struct fake_completion *completion = completion_of(qp->held[queue].next);

            fake_list_remove(&completion->link);
            completion->qp = NULL;
            if (fake_verbs.orphans == FAKE_LATE)
                fake_list_add(&cq->orphans, &completion->link);
            else if (fake_verbs.orphans == FAKE_LEAVE)
                fake_cq_add(cq, completion);
            else
                free(completion);
        }
    }
}
