/* SPDX-License-Identifier: MIT */
/*
 * Internals of the pretend RDMA device. Everything is under one lock, except for waiting for
 * events. Memory does not come from calloc(3) and realloc(3), so that a test can make those of the
 * library fail and not the device's.
 */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fake_verbs.h"

#define fake_container_of(pointer, type, member) \
    ((type *)((char *)(pointer)-offsetof(type, member)))

/* A doubly linked list; the anchor is a link as well. */
struct fake_link {
    struct fake_link *next, *previous;
};

/* Events of one fd, which is readable while there are any. */
struct fake_events {
    int fd;
    struct fake_link list; /* struct fake_event */
};

struct fake_event {
    struct fake_link link;
    struct ibv_async_event async; /* or, of a completion channel, only element.cq */
};

struct fake_context {
    struct fake_link link;
    uint32_t device; /* index */
    uint32_t children;
    struct ibv_device *handle;
    struct fake_events async;
    struct verbs_context verbs;
};

struct fake_pd {
    struct ibv_pd ibv;
    struct fake_link link; /* of all: what a program leaves behind is still known */
    uint32_t children;
};

struct fake_mr {
    struct ibv_mr ibv;
    struct fake_mr *next; /* in its bucket */
    uint8_t *memory;
    uint64_t iova;
    uint64_t length;
    int access;
    bool mapped; /* of a dmabuf */
};

struct fake_channel {
    struct ibv_comp_channel ibv;
    struct fake_link link;
    struct fake_events events;
};

/* A completion, on a queue or held back. */
struct fake_completion {
    struct fake_link link;
    struct ibv_wc wc;
    struct fake_qp *qp;    /* NULL if it was destroyed */
    enum fake_queue queue; /* of the queue pair */
    uint32_t slots;        /* places of that queue that are free once it was polled */
    bool solicited;
};

enum fake_arm { FAKE_UNARMED, FAKE_ARMED_SOLICITED, FAKE_ARMED };

struct fake_cq {
    struct ibv_cq ibv;
    struct fake_link link;
    struct fake_link completions;
    struct fake_link orphans; /* held ones of queue pairs that were destroyed */
    uint32_t count;
    uint32_t most;
    uint32_t depth; /* asked for */
    uint32_t qps;
    uint32_t unacked; /* completion events read */
    uint32_t unacked_async;
    uint64_t events;
    int dead; /* errno of every further poll */
    enum fake_arm armed;
    bool overrun;
};

/* A request, followed by its data if they were given inline. */
struct fake_wqe {
    struct fake_link link;
    struct ibv_send_wr wr; /* of a receive only id and list */
    struct ibv_sge *sges;
    uint8_t *data;
    uint32_t inline_bytes;
    bool begun;
};

struct fake_work {
    struct fake_link list;
    uint32_t count;
    uint32_t used; /* places, also those of done and posted requests */
    uint32_t done; /* places of requests done without a completion */
    uint32_t posted;
};

struct fake_srq {
    struct ibv_srq ibv;
    struct ibv_srq_attr attr; /* srq_limit: 0 once its event was raised */
    struct fake_link list;    /* of requests */
    uint32_t count;
    uint32_t qps;
};

struct fake_qp {
    struct ibv_qp ibv;
    struct fake_link link;  /* of all, in the order of their making */
    struct fake_link ready; /* of queue pairs with work to do; next is NULL if it is not in there */
    struct fake_qp *next;   /* in its bucket */
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr; /* as of now */
    struct ibv_qp_attr changes[FAKE_MODIFIES];
    int masks[FAKE_MODIFIES];
    uint32_t modifies;
    enum ibv_qp_state state;
    struct fake_work work[2];
    struct fake_link held[2];
    bool holding;
    bool cut;
    uint32_t send_psn, receive_psn;
    int64_t wake_at; /* nothing is due before this time; 0: no timer runs */
    int64_t lost_at; /* the first request gets no answer; this is when it fails. 0: it does */
    bool last;       /* the event for its last shared receive was raised */
    bool rnr_waits;  /* for a receive of the peer */
    uint32_t rnr_left;
    uint8_t rnr_timer; /* the peer's */
    uint32_t unacked;  /* events read */
    uint32_t signaled;
    uint32_t doorbells;
    uint64_t inline_data;
};

/* fake_control.c */
extern pthread_mutex_t fake_mutex;
void fake_lock(void);
void fake_unlock(void);
void *fake_alloc(size_t bytes); /* zeroed; never fails */
/* Stops a program that does something forbidden, unless misuse is tolerated. */
void fake_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Counts the call. Returns true, with errno set, if it must fail. */
bool fake_fails(enum fake_call call);
/* Returns true, with errno set, if this post must be refused, and at which request. */
bool fake_refuses(uint32_t qpn, enum fake_queue queue, uint32_t *at);
/* Returns true if this request must end with the status. */
bool fake_ends(uint32_t qpn, enum fake_queue queue, enum ibv_wc_status *status, uint32_t *vendor);
bool fake_holds_all(void);
/* As fake_verbs_release(), with the lock held. */
void fake_release(uint32_t qpn);

/* fake_words.c */
void fake_port_reset(struct fake_port *port);
void fake_words_apply(void);

static inline void fake_list_init(struct fake_link *list)
{
    list->next = list->previous = list;
}

static inline bool fake_list_empty(const struct fake_link *list)
{
    return list->next == list;
}

static inline void fake_list_add(struct fake_link *list, struct fake_link *link)
{
    link->next = list;
    link->previous = list->previous;
    list->previous->next = link;
    list->previous = link;
}

static inline void fake_list_remove(struct fake_link *link)
{
    link->next->previous = link->previous;
    link->previous->next = link->next;
    link->next = link->previous = NULL;
}

/* fake_events.c */
bool fake_events_open(struct fake_events *events);
void fake_events_close(struct fake_events *events);
void fake_events_add(struct fake_events *events, const struct ibv_async_event *event);
/*
 * Takes the next event, waiting for it unless the fd does not block. Returns false with errno set.
 */
bool fake_events_take(struct fake_events *events, struct ibv_async_event *event);
/* Drops the events of an object. */
void fake_events_drop(struct fake_events *events, const void *element);
uint32_t fake_events_count(const struct fake_events *events);
struct fake_context *fake_context_of(struct ibv_context *context);
bool fake_async(struct fake_context *context, enum ibv_event_type type, void *element, int port);

/* fake_device.c */
extern struct fake_link fake_contexts;
struct fake_device *fake_device_of(struct ibv_context *context);
/* Returns NULL if there is no such port. */
struct fake_port *fake_port_of(struct ibv_context *context, uint32_t number);

/* fake_memory.c */
/* Returns memory that the key opens to the domain with these rights, or NULL. */
uint8_t *fake_local(const struct ibv_pd *pd, const struct ibv_sge *sge, int access);
uint8_t *fake_remote(const struct ibv_pd *pd, uint64_t addr, uint64_t length, uint32_t rkey,
                     int access);

/* fake_cq.c */
static inline struct fake_cq *fake_cq_of(struct ibv_cq *cq)
{
    return fake_container_of(cq, struct fake_cq, ibv);
}
extern struct fake_link fake_cqs;
int fake_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wcs);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Takes ownership of the completion. */
void fake_cq_add(struct fake_cq *cq, struct fake_completion *completion);
/* Drops the completions of a destroyed queue pair, or keeps them without it. */
void fake_cq_forget(struct fake_cq *cq, struct fake_qp *qp);
/* Puts held completions of the queue pair on their queues. */
void fake_cq_release(struct fake_qp *qp, enum fake_queue queue, uint32_t count);
void fake_cq_release_orphans(uint32_t qpn);

/* fake_qp.c */
static inline struct fake_qp *fake_qp_of(struct ibv_qp *qp)
{
    return fake_container_of(qp, struct fake_qp, ibv);
}
extern struct fake_link fake_qps;
struct fake_qp *fake_qp_find(uint32_t qpn);
/* Returns why the change is invalid, or NULL. */
const char *fake_qp_check(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask);

/* fake_post.c */
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* A receive on the heap. */
struct fake_wqe *fake_wqe_of_receive(const struct ibv_recv_wr *wr);

/* fake_srq.c */
static inline struct fake_srq *fake_srq_of(struct ibv_srq *srq)
{
    return fake_container_of(srq, struct fake_srq, ibv);
}
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Gives a queue pair that shares receives the next one, for a message that has come. */
void fake_srq_take(struct fake_qp *qp);

/* fake_wire.c */
/* Starts the device's thread, for the first context; ends it, with the last one. */
int fake_wire_start(void);
void fake_wire_stop(void);
/* Notes that the queue pair has work to do. */
void fake_wire_wake(struct fake_qp *qp);
/* Does at once what can be done, if the device is eager. */
void fake_wire_hasten(struct fake_qp *qp);
/* Drops the queue pair from the wire; called while it is destroyed. */
void fake_wire_forget(struct fake_qp *qp);
/* Moves it to the error state: its requests are flushed. */
void fake_wire_error(struct fake_qp *qp);
/*
 * Ends the first request of a queue: with success, or with a failure that also fails the queue
 * pair.
 */
void fake_wire_complete(struct fake_qp *qp, enum fake_queue queue, struct ibv_wc wc,
                        bool solicited);
void fake_wire_fail(struct fake_qp *qp, enum fake_queue queue, enum ibv_wc_status status,
                    uint32_t vendor);

static inline struct fake_wqe *fake_first(const struct fake_qp *qp, enum fake_queue queue)
{
    const struct fake_link *list = &qp->work[queue].list;

    return fake_list_empty(list) ? NULL : fake_container_of(list->next, struct fake_wqe, link);
}

/* fake_execute.c */
/* The outcome of the first request of the send queue. */
enum fake_outcome { FAKE_DONE, FAKE_NO_ANSWER, FAKE_NOT_READY };
enum fake_outcome fake_execute(struct fake_qp *qp);

#endif
