/* SPDX-License-Identifier: MIT */
/* Internals of stripes, shared by its files. */
#ifndef SLU_STRIPES_INSIDE_H
#define SLU_STRIPES_INSIDE_H

#include "base/base.h"
#include "transport/stripes/stripes.h"

/*
 * Kinds of requests given to the transport. Fields of an id, from the highest bit down: 32 bits for
 * the combined queue pair (see struct stripes_place); 3 bits for the kind; 3 bits for the index of
 * the transport's queue pair; 25 bits of a running number; and a 1, which ids of a pool do not
 * have.
 */
enum stripes_kind {
    STRIPES_WORK,    /* a request of the send queue, or a stripe of one */
    STRIPES_RECEIVE, /* on the first queue pair */
    STRIPES_WATCH,   /* the one receive of a further queue pair, which no message should use */
    STRIPES_PROBE,
    STRIPES_KINDS
};
#define STRIPES_NUMBER_BITS 25
#define STRIPES_MARK UINT32_C(1)
#define STRIPES_INDEX_BITS 3
#define STRIPES_KIND_BITS 3
_Static_assert(STRIPES_KINDS <= SLU_ID_OWN >> (1 + STRIPES_NUMBER_BITS + STRIPES_INDEX_BITS),
               "the last kind is that of the transport's own");
#define STRIPES_NUMBER_MASK ((UINT32_C(1) << STRIPES_NUMBER_BITS) - 1)
_Static_assert(1 + STRIPES_NUMBER_BITS + STRIPES_INDEX_BITS + STRIPES_KIND_BITS == 32,
               "half an id");
_Static_assert((SLU_ID_POOL & STRIPES_MARK) == 0, "no id of stripes is one of a pool");
_Static_assert(SLU_QUEUE_PAIRS <= 1 << STRIPES_INDEX_BITS, "an id names the queue pair");

/* A request of the send queue, with copies of its lists and operands, but not of its memory. */
struct stripes_slot {
    struct slu_send_wr wr; /* as given to the transport */
    uint64_t id;           /* the engine's */
    uint64_t bytes;
    uint64_t operand[2];
    uint32_t stripes; /* 0: the first queue pair takes it whole */
    uint32_t out;     /* a bit for each queue pair that has a part of it in flight */
    uint32_t status;
    uint32_t vendor;
    bool signaled;
    struct sluice_sge sges[]; /* inline: one, and the bytes behind it */
};

/* Positions count up for ever. The transport has the requests from done to started. */
struct stripes_ring {
    uint8_t *slots;
    uint32_t stride;
    uint32_t mask;
    uint32_t posted, started, done;
};

/* Ids of posted receives. The transport has those from back to started. */
struct stripes_receives {
    uint64_t *ids;
    uint32_t mask;
    uint32_t posted, started, back, done;
};

/* A probe that was posted to all queue pairs. */
struct stripes_probe {
    uint64_t id;
    uint32_t number; /* of the last probe */
    uint32_t out;    /* a bit for each queue pair without an answer */
    uint32_t status;
    uint32_t vendor;
    bool flushed; /* it was posted after the failure, and is to be flushed */
};

/* Lists of a completion queue in which a queue pair can be. */
enum stripes_list { STRIPES_FAILING, STRIPES_FLUSHING, STRIPES_LISTS };

struct stripes_qp {
    struct slu_qp base; /* first */
    const struct slu_transport *inner;
    struct stripes *owner;
    uint32_t key;   /* upper half of its ids */
    uint32_t count; /* number of queue pairs; once connected, of those that are used */
    uint32_t least; /* fewest bytes that are striped */
    bool connected;
    bool failed;   /* no more requests are started */
    bool stopped;  /* all of its queue pairs are in the error state */
    bool striping; /* a striped request is in flight, alone */
    bool pooled;   /* its receives come from a pool, so none of its own is flushed */
    bool listed[STRIPES_LISTS];
    struct stripes_qp *next[STRIPES_LISTS];
    uint32_t culprit; /* index of the queue pair that failed first */
    uint32_t watched; /* a bit for each further one whose receive is posted */
    uint32_t max_inline;
    struct stripes_ring ring;
    struct stripes_receives receives;
    struct stripes_probe probe;
    struct slu_alert alert; /* for the engine; unset if qp is NULL */
    uint32_t alert_at;      /* raised when all requests before this position are complete */
    bool alerts;            /* it is raised */
    uint32_t refused;       /* position of the request that the transport refused */
    struct slu_qp *qps[SLU_QUEUE_PAIRS];
};

/*
 * The place of a queue pair, named by the lower 16 bits of its key. The upper 16 bits are the
 * generation of the place.
 */
struct stripes_place {
    struct stripes_qp *qp;
    uint32_t generation;
};

/* State of a completion queue. */
struct stripes {
    const struct slu_transport *inner;
    struct slu_cq *cq;
    struct stripes_place *places;
    uint32_t size;
    uint32_t alerts;
    struct stripes_qp *lists[STRIPES_LISTS];
};

static inline struct stripes_qp *stripes_qp_of(struct slu_qp *qp)
{
    return slu_container_of(qp, struct stripes_qp, base);
}

static inline const struct stripes_qp *stripes_const_qp_of(const struct slu_qp *qp)
{
    return slu_container_of(qp, const struct stripes_qp, base);
}

static inline struct stripes_slot *stripes_slot(const struct stripes_qp *qp, uint32_t position)
{
    const struct stripes_ring *ring = &qp->ring;

    return (struct stripes_slot *)(void *)(ring->slots +
                                           (size_t)(position & ring->mask) * ring->stride);
}

static inline uint64_t stripes_id(const struct stripes_qp *qp, enum stripes_kind kind,
                                  uint32_t index, uint32_t number)
{
    uint32_t low = (uint32_t)kind << (STRIPES_NUMBER_BITS + STRIPES_INDEX_BITS) |
                   index << STRIPES_NUMBER_BITS | (number & STRIPES_NUMBER_MASK);

    return (uint64_t)qp->key << 32 | low << 1 | STRIPES_MARK;
}

/* create.c */
int slu_stripes_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                          struct slu_qp **qp);
void slu_stripes_qp_destroy(struct slu_qp *qp);

/* meet.c */
void slu_stripes_qp_endpoint(const struct slu_qp *qp, struct slu_endpoint *endpoint);
/* Returns whether the endpoints of all queue pairs differ only in qpn and psn. */
bool slu_stripes_agree(const struct stripes_qp *qp);
int slu_stripes_qp_connect(struct slu_qp *qp, const struct slu_endpoint *remote);
int slu_stripes_qp_state(const struct slu_qp *qp);
void slu_stripes_qp_query(const struct slu_qp *qp, struct sluice_channel_info *info);
int slu_stripes_qp_probe(struct slu_qp *qp, uint64_t id);
uint32_t slu_stripes_qp_moved(struct slu_qp *qp);
void slu_stripes_qp_stand(const struct slu_qp *qp, struct slu_stand *stand);
const char *slu_stripes_qp_loss(const struct slu_qp *qp, bool *closed);
void slu_stripes_qp_farewell(struct slu_qp *qp, enum slu_farewell why);

/* post.c */
int slu_stripes_post_send(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad);
int slu_stripes_post_receive(struct slu_qp *qp, struct slu_receive_wr *chain,
                             struct slu_receive_wr **bad);
/* Starts held requests, as far as their order permits. */
void slu_stripes_go_on(struct stripes_qp *qp);

/* poll.c */
int slu_stripes_cq_poll(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count);
int slu_stripes_cq_arm(struct slu_cq *cq);

/* fail.c */
bool slu_stripes_cq_alert(struct slu_cq *cq, struct slu_alert *alert);
/* Puts all queue pairs of a peer into the error state. */
void slu_stripes_qp_error(struct slu_qp *qp);
/*
 * Starts the failure of a queue pair. It enters the error state once all completions that may show
 * the cause were polled.
 */
void slu_stripes_fail(struct stripes_qp *qp, uint32_t index);
/*
 * If the queue pair has failed, schedules held requests to be flushed, unless earlier ones are in
 * flight.
 */
void slu_stripes_flush(struct stripes_qp *qp);
/* Flushes held requests of failed queue pairs, in order. Returns the number of completions. */
uint32_t slu_stripes_flush_held(struct stripes *stripes, struct slu_wc *wcs, uint32_t count);
/*
 * Reports a failure that belongs to no request to the engine, once all sends before position are
 * complete.
 */
void slu_stripes_alert(struct stripes_qp *qp, uint32_t position, uint32_t status, uint32_t vendor,
                       const char *reason);
/*
 * Enters the error state after a failure. The engine gets an alert if no receive of its own may
 * have told it.
 */
void slu_stripes_end(struct stripes_qp *qp);
/* Returns the combined queue pair of that peer of the engine, or NULL. */
struct stripes_qp *slu_stripes_of_peer(const struct stripes *stripes, uint32_t peer);
/* Takes the queue pair out of all lists and drops its alert. */
void slu_stripes_forget(struct stripes_qp *qp);

#endif
