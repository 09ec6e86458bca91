/* SPDX-License-Identifier: MIT */
/* Internals of the helper thread: what helper.c, listener.c and probe.c share. */
#ifndef SLU_SOFT_HELPER_H
#define SLU_SOFT_HELPER_H

#include "tcp.h"

#define HELPER_HALF_OPEN 128

/* What an event of the helper's epoll set is about: kind << 32 | index. */
enum helper_event { HELPER_WAKE, HELPER_LISTENER, HELPER_HALF_OPEN_SLOT, HELPER_CQ };

/* A connection that has not said a whole hello. */
struct half_open {
    int fd; /* -1: free */
    uint32_t received;
    int64_t since;
    uint8_t bytes[TCP_HELLO_BYTES];
};

/* A socket whose last bytes are on their way. */
struct lingering {
    struct lingering *next;
    int fd;
    int64_t deadline;
};

struct soft_helper {
    struct soft_context *context;
    pthread_t thread;
    atomic_bool stop;
    int epoll;
    int event;
    int listener;
    pthread_mutex_t lock;  /* of the next two */
    struct soft_cq *kicks; /* held */
    struct lingering *lingering;
    /* The thread's own. */
    struct soft_cq *ticks; /* held */
    int64_t last_tick;
    long look_after; /* so many ns at some that have fired; 0: at none */
    bool lingers;
    int64_t last_linger;
    bool paused;  /* the listener is not watched */
    bool starved; /* for want of descriptors or memory, and that was said */
    int64_t pause_since;
    bool probes;
    int64_t last_probe;
    uint32_t probe_from; /* the slot whose turn it is */
    uint32_t half_open_count;
    struct half_open half_open[HELPER_HALF_OPEN];
};

int slu_soft_helper_add(struct soft_helper *helper, int op, int fd, uint32_t events,
                        enum helper_event kind, uint32_t index);

/* listener.c */
int slu_soft_listener_open(struct soft_context *context, int *fd);
void slu_soft_listener_event(struct soft_helper *helper);
void slu_soft_listener_tick(struct soft_helper *helper);
void slu_soft_half_open_event(struct soft_helper *helper, uint32_t index);
void slu_soft_half_open_close(struct soft_helper *helper, uint32_t index);

/* addresses.c: up to four of this host */
void slu_soft_addresses_find(struct slu_address *addresses, bool with_ipv6, uint16_t port);

/* probe.c */
void slu_soft_probe_all(struct soft_helper *helper);

#endif
