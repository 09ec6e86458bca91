/* SPDX-License-Identifier: MIT */
/* An object that a thread sleeps on and others wake. The service keeps unused ones for reuse. */
#ifndef SLU_BUFFER_WAITER_H
#define SLU_BUFFER_WAITER_H

#include "buffer/service.h"

struct slu_waiter {
    struct slu_waiter *next;
    int event;
    int set;            /* an epoll descriptor, for event loops; -1: not needed so far */
    atomic_bool sleeps; /* set before the last poll that precedes a sleep */
};

/* Returns an unused waiter; or NULL with a text: EMFILE, ENOMEM. */
struct slu_waiter *slu_waiter_get(struct sluice_buffer_service *service);
/* Returns a waiter to its service, or frees it if service is NULL. */
void slu_waiter_put(struct sluice_buffer_service *service, struct slu_waiter *waiter);
/* Wakes the waiter if it sleeps. Any thread may call this. */
void slu_waiter_wake(struct slu_waiter *waiter);
/* Ends a sleep: clears the wake. */
void slu_waiter_awoke(struct slu_waiter *waiter);
/*
 * Returns a descriptor that is readable when the waiter is woken or a watched descriptor is
 * readable; or -EMFILE or -ENOMEM.
 */
int slu_waiter_fd(struct slu_waiter *waiter);
/*
 * Watches fd until it is readable, once. Does nothing if slu_waiter_fd() was never called. Returns
 * 0, or a negative errno value.
 */
int slu_waiter_watch(const struct slu_waiter *waiter, int fd);
/* Stops watching fd. Call it before fd is closed: a child of fork(2) may share the descriptor. */
void slu_waiter_unwatch(const struct slu_waiter *waiter, int fd);
void slu_waiters_end(struct sluice_buffer_service *service);

#endif
