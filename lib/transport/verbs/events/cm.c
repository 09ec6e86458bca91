/* SPDX-License-Identifier: MIT */
/*
 * Connections of queue pairs over rdma_cm, and their events. Guarantee: the peer is notified,
 * however the queue pair ends.
 */
#include "config.h"

#include <stdio.h>

#include "connect/cm.h"
#include "transport/verbs/events/events.h"

/*
 * Notes the end of a connection in its queue pair, if there still is one. Called under events_lock.
 */
static void note_end(const struct slu_cm *cm)
{
    struct slu_verbs_qp *qp = cm->owner;

    if (!qp || cm->state != SLU_CM_ENDED || atomic_load(&qp->parted))
        return;
    snprintf(qp->parted_why, sizeof qp->parted_why, "%s", cm->why);
    atomic_store(&qp->parted, true);
    atomic_store(&qp->base.cq->alerted, true);
}

static void happened(struct slu_cm_reader *reader, struct slu_cm *cm)
{
    (void)reader;
    note_end(cm);
}

/* Handles all pending events of rdma_cm. Called by the thread of the context. */
static void read_events(struct slu_verbs_context *context)
{
    struct slu_cm_reader reader = {.happened = happened};

    pthread_mutex_lock(&context->events_lock);
    slu_cm_read(context->cm_events, &reader);
    slu_verbs_events_wake(context);
    pthread_mutex_unlock(&context->events_lock);
}

/* Called under watch.lock. */
static int open_events(struct slu_verbs_context *context)
{
    struct rdma_event_channel *events = slu_cm_events_open();
    int err;

    if (!events)
        return -errno;
    context->cm_events = events;
    err = slu_verbs_watch_cm(context, events->fd, read_events);
    if (err) {
        context->cm_events = NULL;
        slu_cm_events_close(events);
    }
    return err;
}

int slu_verbs_cm_open(struct slu_verbs_context *context)
{
    int err = 0;

    pthread_mutex_lock(&context->watch.lock);
    if (!context->cm_events)
        err = open_events(context);
    pthread_mutex_unlock(&context->watch.lock);
    return err;
}

void slu_verbs_cm_close(struct slu_verbs_context *context)
{
    if (context->cm_events)
        slu_cm_events_close(context->cm_events);
    context->cm_events = NULL;
}

int slu_verbs_qp_bind(struct slu_qp *base, struct slu_cm *cm)
{
    struct slu_verbs_qp *qp = slu_verbs_qp_of(base);
    struct slu_verbs_context *context = slu_verbs_context_of(base->pd->context);
    int err = slu_verbs_cm_open(context);

    if (!err)
        err = slu_cm_move(cm, context->cm_events);
    if (err)
        return err;
    pthread_mutex_lock(&context->events_lock);
    qp->cm = cm;
    cm->owner = qp;
    note_end(cm); /* it may have ended meanwhile */
    slu_verbs_events_wake(context);
    pthread_mutex_unlock(&context->events_lock);
    return 0;
}

void slu_verbs_cm_addresses(const struct slu_verbs_qp *qp, struct sluice_channel_info *info)
{
    struct slu_address own, peer;
    char text[SLU_ADDRESS_TEXT];

    if (!qp->cm)
        return;
    own = slu_cm_own_address(qp->cm->id);
    peer = slu_cm_peer_address(qp->cm);
    snprintf(info->address, sizeof info->address, "%s", slu_address_text(&own, text));
    snprintf(info->remote_address, sizeof info->remote_address, "%s",
             slu_address_text(&peer, text));
}

void slu_verbs_qp_part(struct slu_verbs_qp *qp)
{
    if (qp->cm)
        slu_cm_disconnect(qp->cm);
}

/*
 * Unbinds and ends the connection. owner is cleared under the lock, so that a thread that reads
 * events does not use the queue pair any more.
 */
void slu_verbs_qp_unbind(struct slu_verbs_qp *qp)
{
    struct slu_verbs_context *context = slu_verbs_context_of(qp->base.pd->context);

    if (!qp->cm)
        return;
    pthread_mutex_lock(&context->events_lock);
    qp->cm->owner = NULL;
    pthread_mutex_unlock(&context->events_lock);
    slu_cm_end(qp->cm);
    qp->cm = NULL;
}
