/* SPDX-License-Identifier: MIT */
/* Asynchronous events of devices and of rdma_cm. */
#ifndef SLU_VERBS_EVENTS_H
#define SLU_VERBS_EVENTS_H

#include "transport/verbs/verbs.h"

/* events.c */
int slu_verbs_events_open(struct slu_verbs_context *context);
void slu_verbs_events_close(struct slu_verbs_context *context);
/* Reads all pending events and notes them in the objects concerned. Any thread. */
void slu_verbs_events_read(struct slu_verbs_context *context);
/* Wakes threads that sleep on queues concerned by an event. Called under events_lock. */
void slu_verbs_events_wake(struct slu_verbs_context *context);
/* Notes that the device has failed and will report no more events. */
void slu_verbs_events_gone(struct slu_verbs_context *context, int err);
/*
 * Adds a queue pair to those that get events. False: it was not added, because the port has changed
 * since its path was read.
 */
bool slu_verbs_events_add_qp(struct slu_verbs_context *context, struct slu_verbs_qp *qp);
void slu_verbs_events_remove_qp(struct slu_verbs_context *context, struct slu_verbs_qp *qp);
/* Sets the pool of a queue, or that it has none any more. */
void slu_verbs_events_set_pool(struct slu_verbs_cq *cq, struct slu_verbs_pool *pool);
void slu_verbs_events_add_cq(struct slu_verbs_context *context, struct slu_verbs_cq *cq);
void slu_verbs_events_remove_cq(struct slu_verbs_context *context, struct slu_verbs_cq *cq);
void slu_verbs_cq_wake(struct slu_cq *cq);
/* Returns an error if the device, or this queue of it, has failed. */
int slu_verbs_events_prepare(struct slu_verbs_context *context, const struct slu_verbs_cq *cq);
/*
 * Returns an error if an event since the creation of the queue pair prevents a connection, with
 * GIDs (global) or without.
 */
int slu_verbs_events_check(struct slu_verbs_qp *qp, bool global);
/* Notes that the queue pair is connected: from now on its events are failures. */
void slu_verbs_events_connected(struct slu_verbs_qp *qp);
/* Takes the event that ended a connected queue pair, if it was not taken before. */
bool slu_verbs_events_take(struct slu_verbs_qp *qp, struct slu_alert *alert);

/* watch.c: starts the thread, if it does not run yet. */
int slu_verbs_watch_start(struct slu_verbs_context *context);
void slu_verbs_watch_stop(struct slu_verbs_context *context);
/*
 * Makes the thread wait for events of rdma_cm, too, for which it calls read. Called under
 * watch.lock.
 */
int slu_verbs_watch_cm(struct slu_verbs_context *context, int fd,
                       void (*read)(struct slu_verbs_context *context));

/* cm.c: the rdma_cm connections of queue pairs. For other queue pairs these calls do nothing. */
#ifdef HAVE_RDMACM
/* Opens the events of rdma_cm, if they are not open yet. */
int slu_verbs_cm_open(struct slu_verbs_context *context);
void slu_verbs_cm_close(struct slu_verbs_context *context);
/*
 * Binds an established connection to the queue pair, which owns it from now on: the end of one is
 * the end of the other. On failure the caller keeps the connection.
 */
int slu_verbs_qp_bind(struct slu_qp *qp, struct slu_cm *cm);
/* Notifies the peer over rdma_cm that the connection ends. */
void slu_verbs_qp_part(struct slu_verbs_qp *qp);
void slu_verbs_qp_unbind(struct slu_verbs_qp *qp);
/* Write the addresses of this side and of the peer, with ports. */
void slu_verbs_cm_addresses(const struct slu_verbs_qp *qp, struct sluice_channel_info *info);
#else
static inline void slu_verbs_cm_addresses(const struct slu_verbs_qp *qp,
                                          struct sluice_channel_info *info)
{
    (void)qp;
    (void)info;
}

static inline void slu_verbs_cm_close(struct slu_verbs_context *context)
{
    (void)context;
}

static inline void slu_verbs_qp_part(struct slu_verbs_qp *qp)
{
    (void)qp;
}

static inline void slu_verbs_qp_unbind(struct slu_verbs_qp *qp)
{
    (void)qp;
}
#endif

#endif
