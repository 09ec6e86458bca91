/* SPDX-License-Identifier: MIT */
/* Internals of the helper: what the files of this folder share. */
#ifndef SLU_SOFT_HELPER_H
#define SLU_SOFT_HELPER_H

#include <sys/epoll.h>

#include "transport/soft/helper/meet.h"

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
    pthread_t watcher;                    /* whoever of the two leads */
    void *(*watch_routine)(void *helper); /* of the watcher: it follows, and may lead */
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

/* events.c */
int slu_soft_helper_add(struct soft_helper *helper, int op, int fd, uint32_t events,
                        enum helper_event kind, uint32_t index);

/* watchdog.c */
void slu_soft_lead(void);                         /* the first thread leads */
bool slu_soft_leading(void);                      /* this thread */
bool slu_soft_follow(struct soft_helper *helper); /* false: the helper stops. true: it leads now */
uint64_t slu_soft_turn_begin(struct soft_helper *helper);
void slu_soft_turn_end(struct soft_helper *helper, uint64_t turn); /* perhaps it leads no more */

/* Of the context, for rooms above. */
void slu_soft_helper_stop(struct soft_context *context);
void slu_soft_helper_wake(struct soft_context *context);

/* closing.c */
/* Takes a socket whose last bytes are on their way. */
void slu_soft_helper_linger(struct soft_context *context, int fd);
/* Reads and forgets 1 MiB at most, for others have their turn; true at the end or an error. */
bool slu_soft_tcp_discard(int fd);
bool slu_soft_linger_tick(struct soft_helper *helper); /* whether there are more */
void slu_soft_linger_end(struct soft_helper *helper);

/* idle.c: a connection has a ring for large messages, and has none any more */
void slu_soft_tidy_begin(struct soft_context *context);
void slu_soft_tidy_end(struct soft_context *context);
void slu_soft_tidy_tick(struct soft_helper *helper);
/* Of the milliseconds to wait, -1 for ever, no more than until it is to be called again. */
int slu_soft_tidy_timeout(const struct soft_helper *helper, int timeout);

#endif
