/* SPDX-License-Identifier: MIT */
/* Something that a thread sleeps on and others wake: kept by the service for the next. */
#ifndef SLU_BUFFER_WAITER_H
#define SLU_BUFFER_WAITER_H

#include "buffer/service.h"

struct slu_waiter {
    struct slu_waiter *next;
    int event;
    int set;            /* an epoll descriptor, for event loops; -1: none was asked for */
    atomic_bool sleeps; /* said before it looks a last time */
};

/* NULL with a text: EMFILE, ENOMEM. */
struct slu_waiter *slu_waiter_get(struct sluice_buffer_service *service);
/* For the next, or without a service, of no use any more. */
void slu_waiter_put(struct sluice_buffer_service *service, struct slu_waiter *waiter);
/* From any thread that has something for it. */
void slu_waiter_wake(struct slu_waiter *waiter);
/* After its sleep. */
void slu_waiter_awoke(struct slu_waiter *waiter);
/* A descriptor that is readable when it is woken, or by what is watched; -EMFILE or -ENOMEM. */
int slu_waiter_fd(struct slu_waiter *waiter);
/* Until it is readable, once. 0, or a negative errno value. If there is no fd, nothing happens. */
int slu_waiter_watch(const struct slu_waiter *waiter, int fd);
/* Not any more; before it is closed, since a child of fork(2) may share it. */
void slu_waiter_unwatch(const struct slu_waiter *waiter, int fd);
void slu_waiters_end(struct sluice_buffer_service *service);

#endif
