/* SPDX-License-Identifier: MIT */
/* Internals of the helper: what helper.c, lead.c, linger.c and meet.c share. */
#ifndef SLU_SOFT_HELPER_H
#define SLU_SOFT_HELPER_H

#include <sys/epoll.h>

#include "transport/soft/meet.h"
#include "transport/soft/tcp.h"

#define HELPER_EVENTS 64

/* What an event of the helper's epoll set is about: kind << 32 | index. */
enum helper_event { HELPER_WAKE, HELPER_DOOR, HELPER_MEETING, HELPER_CQ };

/* A socket whose last bytes are on their way. */
struct lingering {
    struct lingering *next;
    int fd;
    int64_t deadline;
};

struct soft_helper {
    struct soft_context *context;
    pthread_t thread;
    pthread_t watcher; /* whoever of the two leads */
    bool watcher_tried;
    bool has_watcher;
    atomic_bool watched;   /* the watcher looks, or cannot be had */
    _Atomic uint64_t turn; /* odd: the leader may touch memory of the program's now */
    pthread_cond_t watch;  /* of lock: there have been turns */
    atomic_bool stop;
    int epoll;
    int event;
    pthread_mutex_t lock;  /* of the next two */
    struct soft_cq *kicks; /* held */
    struct lingering *lingering;
    /* The leader's own; between any two turns it is whole. */
    uint32_t event_count;
    uint32_t event_next; /* not looked at yet */
    struct epoll_event events[HELPER_EVENTS];
    struct soft_cq *kicked;  /* held: taken from the kicks, not looked at yet */
    struct soft_cq *looking; /* held: of the ticks, not looked at yet */
    struct soft_cq *ticks;   /* held */
    int64_t last_tick;
    long look_after; /* so many ns at some that have fired; 0: at none */
    bool lingers;
    int64_t last_linger;
    int64_t meet_next; /* when meetings are to be looked at; INT64_MAX: there is nothing to do */
    int64_t last_door;
    int64_t last_tidy;
    struct slu_acceptor acceptor;
};

int slu_soft_helper_add(struct soft_helper *helper, int op, int fd, uint32_t events,
                        enum helper_event kind, uint32_t index);

/* lead.c */
void slu_soft_lead(void);                         /* the first thread leads */
bool slu_soft_leading(void);                      /* this thread */
bool slu_soft_follow(struct soft_helper *helper); /* false: the helper stops. true: it leads now */
uint64_t slu_soft_turn_begin(struct soft_helper *helper);
void slu_soft_turn_end(struct soft_helper *helper, uint64_t turn); /* perhaps it leads no more */

/* helper.c */
void *slu_soft_helper_run_watcher(void *helper);

/* linger.c */
bool slu_soft_linger_tick(struct soft_helper *helper); /* whether there are more */
void slu_soft_linger_end(struct soft_helper *helper);

/* tidy.c */
void slu_soft_tidy_tick(struct soft_helper *helper);
/* Of the milliseconds to wait, -1 for ever, no more than until it is to be called again. */
int slu_soft_tidy_timeout(const struct soft_helper *helper, int timeout);

#endif
