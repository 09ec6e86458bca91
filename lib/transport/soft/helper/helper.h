/* SPDX-License-Identifier: MIT */
/* Internals of the helper, shared by the files of this folder. */
#ifndef SLU_SOFT_HELPER_H
#define SLU_SOFT_HELPER_H

#include <sys/epoll.h>

#include "transport/soft/helper/meet.h"

#define HELPER_EVENTS 64
/* Interval of checks whether lingering sockets have ended. */
#define LINGER_MS 5

/* Kinds of events in the helper's epoll set. Their data are kind << 32 | index. */
enum helper_event { HELPER_WAKE, HELPER_DOOR, HELPER_MEETING, HELPER_CQ };

/* A socket whose last bytes are still being delivered. */
struct lingering {
    struct lingering *next;
    int fd;
    int64_t deadline;
};

struct soft_helper {
    struct soft_context *context;
    pthread_t thread;
    pthread_t watcher;                    /* the second thread; either of the two may lead */
    void *(*watch_routine)(void *helper); /* main function of the watcher */
    bool watcher_tried;
    bool has_watcher;
    atomic_bool watched;   /* the watcher is awake, or could not be started */
    _Atomic uint64_t turn; /* odd: the leader may touch the program's memory now */
    pthread_cond_t watch;  /* with lock: turns have begun */
    atomic_bool stop;
    int epoll;
    int event;
    pthread_mutex_t lock;  /* protects the next two */
    struct soft_cq *kicks; /* held */
    struct lingering *lingering;
    /* Used by the leader alone; consistent between any two turns. */
    uint32_t event_count;
    uint32_t event_next; /* not dispatched yet */
    struct epoll_event events[HELPER_EVENTS];
    struct soft_cq *kicked;  /* held: taken from kicks, not served yet */
    struct soft_cq *looking; /* held: taken from ticks, not served yet */
    struct soft_cq *ticks;   /* held */
    int64_t last_tick;
    long look_after;     /* ns until the next early poll of CQs that have fired; 0: none */
    atomic_bool lingers; /* there are sockets to close; set by any thread */
    int64_t last_linger;
    _Atomic int64_t wakes_at; /* when it wakes without an event; read by other threads */
    int64_t meet_next;        /* when meetings are due; INT64_MAX: none is */
    int64_t last_door;
    int64_t last_tidy;
    struct slu_acceptor acceptor;
};

/* events.c */
int slu_soft_helper_add(struct soft_helper *helper, int op, int fd, uint32_t events,
                        enum helper_event kind, uint32_t index);

/* watch.c: calls of the leader */
void slu_soft_watch_fired(struct soft_helper *helper, uint32_t slot); /* an fd of a CQ has fired */
void slu_soft_watch_kicked(struct soft_helper *helper, struct soft_cq *cq);
void slu_soft_watch_tick(struct soft_helper *helper); /* checks all CQs that tick */
/*
 * Waits for less than the millisecond of epoll_wait(2) and checks the CQs that have fired. The next
 * wait is twice as long.
 */
void slu_soft_watch_look(struct soft_helper *helper);
int64_t slu_soft_watch_time(const struct soft_helper *helper); /* between two ticks */
static inline bool slu_soft_watch_ticks(const struct soft_helper *helper)
{
    return helper->ticks != NULL || helper->looking != NULL;
}

/* watchdog.c */
void slu_soft_lead(void);                         /* called by the first thread: it leads */
bool slu_soft_leading(void);                      /* whether this thread leads */
bool slu_soft_follow(struct soft_helper *helper); /* false: the helper stops. true: it leads now */
uint64_t slu_soft_turn_begin(struct soft_helper *helper);
/* Ends a turn. The caller may have lost the lead meanwhile. */
void slu_soft_turn_end(struct soft_helper *helper, uint64_t turn);

/* Calls of the rooms above, with the context. */
void slu_soft_helper_stop(struct soft_context *context);
void slu_soft_helper_wake(struct soft_context *context);

/* closing.c */
/* Takes over a socket whose last bytes are still being delivered, and closes it later. */
void slu_soft_helper_linger(struct soft_context *context, int fd);
/*
 * Reads and discards 1 MiB at most, so that others get their turn. Returns true at the end of the
 * stream or on an error.
 */
bool slu_soft_tcp_discard(int fd);
void slu_soft_linger_tick(struct soft_helper *helper);
/* Wakes the helper, unless it wakes by itself before that time. */
void slu_soft_helper_wake_before(struct soft_helper *helper, int64_t time);
void slu_soft_linger_end(struct soft_helper *helper);

/* idle.c; core/seam.h has the calls for those who hold something idle */
void slu_soft_tidy_tick(struct soft_helper *helper);
/* Returns when the next tick is due, or INT64_MAX if none is needed. */
int64_t slu_soft_tidy_next(const struct soft_helper *helper);

#endif
