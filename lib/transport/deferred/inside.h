/* SPDX-License-Identifier: MIT */
/* Internals of deferred queue pairs, shared by the files of this folder. */
#ifndef SLU_DEFERRED_INSIDE_H
#define SLU_DEFERRED_INSIDE_H

#include "base/base.h"
#include "transport/deferred/deferred.h"

/* A copy of a request that was posted before its queue pair was ready. */
struct deferred_work {
    struct deferred_work *next;
    bool receives;
    struct slu_send_wr send;
    struct slu_receive_wr receive;
    uint64_t operand[2];
    struct sluice_sge sges[]; /* inline: one, and the bytes behind it */
};

/* The queue pair that the engine has. */
struct deferred_qp {
    struct slu_qp base; /* first */
    struct slu_deferred *owner;
    struct slu_qp *real; /* once it is ready; else NULL */
    bool attached, failed;
    bool flushing; /* in the list of the owner */
    bool alerts;   /* its alert is raised */
    bool probing;
    /* When it was last posted to, as slu_deferred.uses, and what is in flight. */
    uint64_t used;
    uint64_t last_send, last_receive, last_probe; /* ids; 0: it and all before it completed */
    uint64_t probe_id;                            /* kept, as the works are */
    struct deferred_work *first, **last;
    struct deferred_qp *next; /* of those that are flushing */
    struct slu_alert alert;
};

/* The connection to a peer. It may be made by that peer, before the engine has a queue pair. */
struct deferred_slot {
    struct deferred_qp *qp; /* NULL: the engine has none */
    struct slu_qp *real;
    uint64_t used;          /* when it began, or began to wait for room: slu_deferred.uses */
    uint64_t taken;         /* messages that were received over real */
    uint32_t local;         /* checksum of the endpoint that the peer was given for real */
    uint32_t remote;        /* checksum of the endpoint that real is connected to */
    uint16_t serial;        /* of real */
    uint16_t remote_serial; /* the latest that the peer has told */
    uint8_t state;          /* enum slu_deferred_state */
    uint8_t promises;       /* RETIRING: how often the peer was told so, and may close it */
    uint8_t flags;
};
#define DEFERRED_EXTENDED 1U /* the completion queue has entries for the real queue pair */
#define DEFERRED_ASKED 2U    /* wanted() was called, and no attempt has begun since */
#define DEFERRED_STALLED 4U  /* RETIRING, and not counted as such */
#define DEFERRED_NO_ROOM 8U  /* it has waited for room under the limit, since used */
#define DEFERRED_BUSY 16U    /* the other end said that it is busy */
#define DEFERRED_TOLD 32U    /* the peer has told a serial */

struct slu_deferred {
    const struct slu_transport *inner;
    struct slu_tpd *pd;
    struct slu_cq *cq;
    const struct slu_qp_attr *attr;
    struct slu_deferred_user *user;
    uint64_t identity; /* in endpoints */
    uint32_t count;
    uint32_t alerts;      /* queue pairs whose alert is raised */
    uint32_t most;        /* limit of connections; 0: none */
    uint32_t reals, made; /* real queue pairs; and those that are not connected yet */
    uint32_t retiring, waiting;
    uint64_t uses; /* posts so far, to find the connection that was not used for longest */
    struct deferred_qp *flushing;
    struct slu_wc *set_aside; /* completions that were polled to find out what is in flight */
    uint32_t aside_first, aside_count, aside_room;
    uint16_t *live; /* peers whose connection has another state than NONE */
    uint32_t live_count;
    pthread_mutex_t lock; /* of the completion queue */
    atomic_bool asked;    /* work() is to be called */
    bool working;         /* within work() */
    struct deferred_slot slots[];
};

static inline struct deferred_qp *deferred_qp_of(struct slu_qp *qp)
{
    return slu_container_of(qp, struct deferred_qp, base);
}

static inline const struct deferred_qp *deferred_const_qp_of(const struct slu_qp *qp)
{
    return slu_container_of(qp, const struct deferred_qp, base);
}

static inline struct deferred_slot *deferred_slot_of(const struct deferred_qp *qp)
{
    return &qp->owner->slots[qp->base.peer];
}

/* deferred.c */
int slu_deferred_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                           struct slu_qp **qp);
void slu_deferred_qp_destroy(struct slu_qp *qp);
int slu_deferred_post_send(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad);
int slu_deferred_post_receive(struct slu_qp *qp, struct slu_receive_wr *chain,
                              struct slu_receive_wr **bad);
int slu_deferred_qp_probe(struct slu_qp *qp, uint64_t id);
void slu_deferred_qp_error(struct slu_qp *qp);
/* Completes kept requests of failed queue pairs. Returns how many completions there are. */
uint32_t slu_deferred_flush(struct slu_deferred *deferred, struct slu_wc *wcs, uint32_t count);
/* Gives a queue pair its connection, which is ready, and posts what was kept. */
void slu_deferred_open(struct deferred_qp *qp, struct slu_qp *real);
/* Fails a queue pair for a reason that no request reports. */
void slu_deferred_raise(struct deferred_qp *qp, uint32_t status, const char *reason);
/* Returns how many entries of the completion queue a peer needs. */
uint32_t slu_deferred_entries(const struct slu_deferred *deferred);
/* Begins a connection that there was none of: the peer is live from then on. */
void slu_deferred_enliven(struct slu_deferred *deferred, struct deferred_slot *slot);
/* Asks the user once more, if something is kept for the peer. */
void slu_deferred_want_kept(struct deferred_slot *slot);
/* idle.c: notes what completes. */
void slu_deferred_note_ends(struct slu_deferred *deferred, const struct slu_wc *wcs,
                            uint32_t count);
/* Takes completions that were set aside. Returns how many. */
uint32_t slu_deferred_take_aside(struct slu_deferred *deferred, struct slu_wc *wcs, uint32_t count);
/* For the program's thread: closes connections that have failed and are drained. */
void slu_deferred_close_failed(struct slu_deferred *deferred);
/* Destroys the queue pair of the transport. */
void slu_deferred_end(struct slu_deferred *deferred, struct deferred_slot *slot);

#endif
