/* SPDX-License-Identifier: MIT */
/*
 * The core of the soft transport: reliable-connection semantics in software. A struct soft_wire
 * carries the requests of a queue pair: one within a context, one between contexts.
 *
 * The holder of a CQ's owner word (cq.c) owns the CQ and its queue pairs. Exceptions are the fields
 * marked atomic and the inbox. The tables of the context are under its lock; the table of keys has
 * its own, which is taken last: see keys.h.
 *
 * The library, or the kernel on its behalf, touches the program's memory while holding no lock but
 * the owner word: a page fault can last for ever, and then stops the thread that faults and the CQ
 * that it serves, and nothing else. Senders can take back requests that wait behind it.
 */
#ifndef SLU_SOFT_H
#define SLU_SOFT_H

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "base/base.h"
#include "base/descriptor.h"
#include "connect/identity.h"
#include "transport/soft/core/keys.h"
#include "transport/soft/core/spares.h"
#include "transport/transport.h"

#define SOFT_MAX_DEPTH 16384
#define SOFT_MAX_POOL_DEPTH 65536
#define SOFT_MAX_SGE 32
#define SOFT_MAX_INLINE 1024
#define SOFT_MAX_READ_DEPTH 128
#define SOFT_MAX_CQ_DEPTH (UINT32_C(1) << 30)
#define SOFT_MAX_MESSAGE (UINT64_C(1) << 31)
/* Bytes copied in one turn, which takes some milliseconds in which no other peer is served; and
   the cost of a short message, in bytes of a long one. */
#define SOFT_TURN_BYTES (UINT64_C(16) << 20)
#define SOFT_SHORT_BYTES 512
/* With one of these rights a peer may change a region. */
#define SOFT_ACCESS_CHANGES (SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC)

struct soft_context;
struct soft_cq;
struct soft_pool;
struct soft_qp;
struct soft_tcp;
struct soft_helper;
struct soft_exports;
struct shm_export;
struct slu_meeting;

struct soft_mr {
    struct slu_tmr base;
    uint32_t access;
    atomic_uint pins;       /* threads that touch it for a peer now */
    uint64_t at;            /* address of its first byte here: its iova, except for a dmabuf */
    int memfd;              /* -1: memory of the caller's, or of a dmabuf */
    int dmabuf;             /* -1, or the fd by which its exporter is notified of each access */
    uint64_t memfd_offset;  /* of its first byte */
    bool sealed;            /* as needed by a peer that maps it, and by us if one does */
    bool lent_for_reading;  /* peers get a descriptor of the memfd by which they cannot write */
    bool file;              /* pages of a file, which may not be accessible */
    bool part;              /* of another region, which outlasts it and owns the descriptors */
    bool lasts;             /* mapped by the library, so the program does not unmap it */
    atomic_bool unseen;     /* small, and neither it nor a part of it was given to a peer */
    atomic_bool withheld;   /* the last access was refused, by its exporter or the kernel */
    struct slu_pages pages; /* of the memfd, or of the dmabuf */
    /* Protected by the lock of the exports. */
    struct shm_export *exports; /* to the peers that may map it */
    uint32_t place;             /* of its word, while there are any */
    bool revoked;               /* its place is free already: it is being deregistered */
};

/*
 * Facts that are logged at level info once for a context, whatever the number of peers concerned.
 */
enum soft_notice {
    SOFT_NOTICE_LENT = 1,   /* large messages can be read from a peer's memory */
    SOFT_NOTICE_COPIED = 2, /* they cannot be read like that */
    SOFT_NOTICE_APART = 4   /* a peer is on this host, but in other namespaces */
};

struct soft_context {
    struct slu_tcontext base;
    struct soft_context *next; /* of the process */
    uint32_t process;          /* as slu_fork_generation() counts them */
    struct soft_keys keys;
    int maps;            /* fd of probe_range.c, or -1 */
    atomic_uint guarded; /* number of guarded regions; 0 skips all checks for them */
    struct soft_exports *exports;
    struct soft_spares spares;
    pthread_mutex_t lock; /* of the slots, the listener and the start of the helper */
    struct soft_slots qps;
    struct soft_slots cqs;
    struct soft_helper *helper;
    atomic_bool helped;        /* the helper was started */
    struct slu_address listen; /* asked for; family 0: any */
    struct slu_address addresses[SLU_ENDPOINT_ADDRESSES];
    struct slu_identity who;
    uint64_t identity; /* random; its Unix socket is named after it */
    atomic_ullong generation;
    bool shares;             /* near peers may have shared memory with us */
    atomic_uint rings;       /* number of own rings for large messages: see helper/idle.c */
    struct soft_qp *meeting; /* queue pairs that look for a known peer */
    atomic_bool meet_due;    /* the helper is to check them now */
    atomic_uint noticed;     /* enum soft_notice: already logged */
};

/* Kinds of messages in an inbox. The table of handlers is in inbox.c. */
enum soft_message_kind {
    SOFT_REQUEST,  /* self: execute this request */
    SOFT_RESPONSE, /* self: it was executed */
    SOFT_HELLO,    /* self: our end is connected to you */
    SOFT_CLOSE,    /* self: our end has failed, give back our requests */
    SOFT_ATTACH,   /* tcp: here is the connection to your peer */
    SOFT_LOST,     /* tcp: there will never be one */
    SOFT_MESSAGE_KINDS
};

/* Embedded in the object that is sent. While it is in an inbox it belongs to the inbox alone. */
struct soft_message {
    struct soft_message *next;
    struct soft_qp *from; /* NULL: from the helper */
    struct soft_qp *to;
    uint32_t kind;
};

/* State of a request of the send queue. */
enum soft_wqe_state {
    SOFT_WQE_QUEUED, /* not started, or sent and not acknowledged */
    SOFT_WQE_OUT,    /* the wire may touch its buffers even in the error state */
    SOFT_WQE_DONE    /* status is valid */
};

/*
 * Which side may touch the memory named by a request on its way through inboxes. The sender can
 * take back a request that the target has not begun; the request then holds both queue pairs until
 * it is dropped.
 */
enum soft_claim { SOFT_CLAIM_NONE, SOFT_CLAIM_TARGET, SOFT_CLAIM_SENDER };

struct soft_wqe {
    struct soft_message message; /* first */
    atomic_uint claim;           /* self: enum soft_claim */
    uint64_t id;
    uint64_t length; /* of all SGEs */
    uint64_t remote_addr;
    uint32_t rkey;
    uint32_t immediate;
    uint32_t flags;
    uint32_t opcode;
    uint32_t status;
    uint32_t sge_count;
    uint8_t state;
    bool guarded;             /* its SGEs name guarded regions, by their mapped addresses */
    bool checked;             /* its SGEs were found in the memory table */
    bool replied;             /* read, atomic: all of the reply has arrived */
    uint64_t operand[2];      /* atomic: in network byte order, as they go over TCP */
    struct sluice_sge sges[]; /* inline: one, and the bytes behind it */
};

struct soft_receive {
    uint64_t id;
    uint64_t length;
    uint32_t sge_count;
    bool guarded; /* as of a soft_wqe */
    struct sluice_sge sges[];
};

/* Ring of requests. Positions count up for ever; posted - done are in it. */
struct soft_ring {
    uint8_t *entries;
    uint32_t stride;
    uint32_t depth;
    uint32_t mask;
    uint32_t posted;
    uint32_t done;
};

/* A region that was found in the table of keys. It is valid while no region was removed since. */
struct soft_seen {
    uint32_t key; /* 0: none */
    unsigned removals;
    uint64_t at;
    uint64_t length;
};

/* The calls of a carrier of requests. The owner of the queue pair's CQ makes all of them. */
struct soft_wire {
    /*
     * Connects the wire; the state of the queue pair is CONNECTED already. Negative errno: it
     * failed.
     */
    int (*start)(struct soft_qp *qp, const struct slu_endpoint *remote);
    /* Called after requests were posted. */
    void (*push)(struct soft_qp *qp);
    /* Asks the peer for a sign of life: see queue.c. */
    void (*ask)(struct soft_qp *qp);
    /* Called after receives were posted. */
    void (*receives)(struct soft_qp *qp);
    /* Returns whether the peer waits for a receive that the queue pair does not have. */
    bool (*wants)(const struct soft_qp *qp);
    /*
     * The queue pair has failed: notifies the peer and gives the requests back, later those that
     * are out. hard: do not wait until the remaining bytes are sent.
     */
    void (*stop)(struct soft_qp *qp, bool hard);
    /* Waits until no request is out, and frees the wire's own memory. */
    void (*destroy)(struct soft_qp *qp);
};

/*
 * In error, but a refusal is not yet sent; the error stays hidden from the program until then. See
 * tcp/README.md.
 */
#define SOFT_QP_TELLING (SLU_QP_ERROR + 1U)

struct soft_qp {
    struct slu_qp base;
    atomic_uint references;
    atomic_uint state; /* enum slu_qp_state, or SOFT_QP_TELLING; written by the owner */
    struct slu_qp_attr attr;
    struct soft_ring sends;
    struct soft_ring receives;
    const struct soft_wire *wire; /* NULL until connected */
    uint32_t level;               /* enum sluice_transport_level: what carries the frames */
    uint32_t cause;               /* in error: status for the oldest unfinished send */
    bool caused;                  /* a completion with the cause was delivered */
    bool recv_closed;             /* self: the peer has failed, its requests are returned */
    bool asking;                  /* a probe of the engine waits for the peer */
    bool greeted;                 /* self: the peer is connected to us */
    bool direct;                  /* the peer's memory may be mapped: see shm/direct.c */
    bool swift;                   /* small messages may be sent by shm/small.c */
    struct soft_seen read;        /* the region that a send has last named */
    struct soft_seen written;     /* the region of a receive, which may be written */
    const char *loss;             /* why the peer was lost, or NULL */
    bool peer_closed;             /* because it closed, by its own farewell */
    atomic_uchar farewell;        /* enum slu_farewell: why our end failed or is about to */
    uint64_t probe_id;            /* of that probe */
    uint32_t posted;              /* its completions in the CQ's ring */
    struct soft_pool *pool;       /* its receives come from there, or NULL */
    bool pooled;                  /* it waits in the pool's list */
    bool told;                    /* the engine was told that it has failed */
    struct soft_qp *pool_next;    /* in that list */
    SOFT_PLACE(struct soft_qp) pool_member; /* among all of the pool */
    uint32_t sent;                          /* position of the next send that the wire takes */
    uint32_t max_reads;                     /* in flight, negotiated */
    uint32_t peer_max_reads;                /* likewise of the peer */
    uint32_t peer_qpn;
    uint32_t qpn;
    uint64_t generation;
    uint8_t nonce[SLU_NONCE_BYTES];
    uint8_t peer_nonce[SLU_NONCE_BYTES]; /* immutable once the state is CONNECTED */
    /* Messages that wait: requests for a receive, anything for the handshake. */
    struct soft_message *parked;
    struct soft_message **parked_end;
    /* self */
    struct soft_qp *peer;
    uint32_t out; /* requests at the peer */
    struct soft_message hello;
    struct soft_message close;
    /* tcp */
    struct soft_tcp *tcp;
    struct soft_message lost; /* in use from when lost_sent is set */
    atomic_bool lost_sent;
    /* meet.c; under the lock of the context */
    struct slu_meeting *meeting;
    const char *obstacle;             /* why its peer was not met, static; or NULL */
    bool met;                         /* it has met its peer, or has none to meet */
    SOFT_PLACE(struct soft_qp) meets; /* among those of the context */
};

/* A completion and its queue pair. */
struct soft_completion {
    struct slu_wc wc;
    struct soft_qp *qp;
};

enum soft_owner {
    SOFT_FREE,
    SOFT_PROGRAM,
    SOFT_HELPER /* or another thread that brought a message */
};

/* How the helper watches a CQ; see watch.c. */
enum soft_watch {
    SOFT_WATCH_ARMED, /* its epoll fd wakes the helper */
    SOFT_WATCH_TICK,  /* the helper polls it every 1 to 8 milliseconds */
    SOFT_WATCH_OFF    /* the helper does not poll: a thread that leaves the CQ kicks it */
};

struct soft_cq {
    struct slu_cq base;
    atomic_uint references;
    atomic_uint owner;
    atomic_uint waiting; /* threads of the program that wait for the end of a turn */
    struct soft_key_reader reader;
    atomic_uint entries;  /* of the program */
    atomic_uint activity; /* polls of the program */
    atomic_uint armed;    /* a wake has to write to event */
    atomic_uint watch;    /* enum soft_watch */
    atomic_bool dead;     /* destroyed; its queue pairs may still get messages */
    atomic_bool opened;   /* by a connection of it a peer may access memory */
    _Atomic(struct soft_message *) inbox;
    struct soft_message *rest; /* messages that a turn left over, the oldest first */
    struct soft_pool *pool;    /* of its queue pairs, or NULL */
    struct soft_completion *ring;
    uint32_t mask;
    uint32_t head;
    uint32_t tail;
    bool overrun, patient; /* patient: acknowledgements of cold connections wake no thread */
    int epoll;             /* the sockets: the program and the helper serve it */
    int event;             /* written to wake the program, which alone reads it */
    int fd;                /* contains epoll and event; the program sleeps on it */
    atomic_bool signaled;  /* event was written */
    atomic_bool tidies;    /* its owner is to release memory that is idle */
    uint32_t sockets;      /* connections in epoll */
    uint32_t shared;       /* of these, with shared memory: the socket only wakes */
    uint32_t hot_count;
    struct soft_tcp *hot; /* of the shared ones, those that are polled */
    atomic_bool restless; /* it was left while a connection was hot: the helper is to poll */
    atomic_bool starved;  /* the system had no memory for a send: see tcp/starved.c */
    uint32_t polls;
    int64_t served;   /* when the sockets of cold connections were last polled */
    uint32_t directs; /* requests executed at once since the connections were polled */
    uint64_t copied;  /* and their bytes */
    uint64_t drained; /* bytes of the inbox in this turn, with a charge for each message */
    int64_t overdue;  /* when a peer was last found stopped in the middle of a copy */
    struct soft_tcp *connections;
    struct soft_tcp *urgent;    /* these have an acknowledgement pending */
    struct soft_tcp *held;      /* these too, until the program sends something */
    struct soft_tcp *unsettled; /* shared: something was published, or has to be */
    int64_t held_until;
    int64_t more_until; /* the rest of a large message is expected until then; 0: none is */
    uint8_t *staging;
    uint32_t slot;
    struct soft_cq *kick_next; /* under the helper's lock */
    bool kicked;
    struct soft_cq *tick_next; /* the helper's */
    bool ticks;                /* it is in a list of the helper */
    uint32_t tick_activity, tick_entries;
    uint32_t active_ticks, inside_ticks; /* in a row: with activity; with a program that stays */
    int64_t tick_turn;                   /* base.turn at the last tick */
    bool looks_early;
    bool fired; /* since it has opened, while the program polled */
};

/* Returns the entries of a ring for this many requests: a power of two. */
static inline uint32_t slu_soft_ring_size(uint32_t depth)
{
    uint32_t size = 1;
    while (size < depth)
        size *= 2;
    return size;
}

static inline struct soft_context *slu_soft_context(const struct soft_qp *qp)
{
    return (struct soft_context *)qp->base.pd->context;
}

static inline bool slu_soft_is_starved(struct soft_cq *cq)
{
    return atomic_load_explicit(&cq->starved, memory_order_relaxed);
}

static inline struct soft_context *slu_soft_cq_context(const struct soft_cq *cq)
{
    return (struct soft_context *)cq->base.context;
}

static inline struct soft_cq *slu_soft_cq_of(const struct soft_qp *qp)
{
    return (struct soft_cq *)qp->base.cq;
}

static inline struct soft_wqe *slu_soft_wqe(const struct soft_qp *qp, uint32_t position)
{
    const struct soft_ring *ring = &qp->sends;
    return (struct soft_wqe *)(void *)(ring->entries +
                                       (size_t)(position & ring->mask) * ring->stride);
}

static inline struct soft_receive *slu_soft_receive_at(const struct soft_ring *ring,
                                                       uint32_t position)
{
    return (struct soft_receive *)(void *)(ring->entries +
                                           (size_t)(position & ring->mask) * ring->stride);
}

static inline struct soft_receive *slu_soft_receive(const struct soft_qp *qp, uint32_t position)
{
    return slu_soft_receive_at(&qp->receives, position);
}

static inline uint64_t slu_soft_sum_lengths(const struct sluice_sge *sges, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += sges[i].length;
    return sum;
}

static inline bool slu_soft_in_error(const struct soft_qp *qp)
{
    return atomic_load_explicit(&qp->state, memory_order_relaxed) >= SLU_QP_ERROR;
}

/* Returns whether the request writes to local memory, which must then be writable. */
static inline bool slu_soft_is_fetch(const struct soft_wqe *wqe)
{
    return wqe->opcode == SLUICE_OP_READ || slu_opcode_is_atomic(wqe->opcode);
}

/* Returns the level for a notice: info the first time in a context, then debug for each peer. */
static inline enum sluice_log_level slu_soft_notice_level(struct soft_context *context,
                                                          enum soft_notice notice)
{
    return (atomic_fetch_or(&context->noticed, notice) & notice) == 0 ? SLUICE_LOG_INFO
                                                                      : SLUICE_LOG_DEBUG;
}

/* memory.c */
/* Checks RLIMIT_FSIZE: extending a memfd beyond it raises SIGXFSZ, which kills the program. */
bool slu_soft_may_be_so_long(size_t length);
/* Checks return a status. The owner of the CQ calls them inside a key reader section. */
uint32_t slu_soft_check_local(const struct soft_qp *qp, const struct sluice_sge *sges,
                              uint32_t count, uint32_t access);
/* Returns whether the library mapped all of the list: then it stays mapped while it is posted. */
bool slu_soft_all_lasts(const struct soft_qp *qp, const struct sluice_sge *sges, uint32_t count);
/* On success the caller unpins *pin, unless pin is NULL, once the memory has been touched. */
uint32_t slu_soft_check_remote(const struct soft_qp *qp, uint32_t rkey, uint64_t addr,
                               uint64_t length, uint32_t access, struct soft_mr **pin);
/* Accepts NULL. */
void slu_soft_unpin(struct soft_mr *pin);
/* Checks that the queue pair grants a right to its peer. access: one SLUICE_ACCESS_REMOTE_*. */
uint32_t slu_soft_check_right(const struct soft_qp *qp, uint32_t access);
/* refusal.c: logs why the peer was refused. The caller is not inside a key reader section. */
void slu_soft_log_refusal(const struct soft_qp *qp, uint32_t rkey, uint64_t addr, uint64_t length,
                          uint32_t access);
/* Returns a descriptor for queries about single mappings, or -1 if the kernel has none. */
int slu_soft_probe_open(void);
/*
 * Works like access(2) for memory: returns 0, or -EFAULT if a byte is not mapped, or is read-only
 * and write is set. Unless file is NULL, sets *file if some of it belongs to a file, which may be
 * truncated.
 */
int slu_soft_probe_range(const struct soft_context *context, const void *addr, size_t length,
                         bool write, bool *file);

/* atomic.c: operands are in network byte order */
uint32_t slu_soft_check_atomic(const struct soft_qp *target, uint32_t rkey, uint64_t addr,
                               struct soft_mr **pin);                                /* likewise */
uint64_t slu_soft_atomic(uint32_t opcode, uint64_t addr, const uint64_t operand[2]); /* old value */
void slu_soft_atomic_result(const struct soft_wqe *wqe, uint64_t before);

/* cq.c */
int slu_soft_cq_create(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq);
void slu_soft_cq_destroy(struct slu_cq *cq);
void slu_soft_cq_enter(struct slu_cq *cq);
void slu_soft_cq_leave(struct slu_cq *cq);
bool slu_soft_cq_is_quiet(struct slu_cq *cq);
int slu_soft_cq_fd(struct slu_cq *cq);
void slu_soft_cq_interrupt(struct slu_cq *cq); /* wakes it, armed or not */
void slu_soft_cq_hold(struct soft_cq *cq);
void slu_soft_cq_release(struct soft_cq *cq);
struct soft_cq *slu_soft_cq_find(struct soft_context *context, uint32_t slot); /* held, or NULL */
/* Takes a CQ for the helper. False: it is owned, or the program waits for it. */
bool slu_soft_cq_take(struct soft_cq *cq);
void slu_soft_cq_give_back(struct soft_cq *cq);
void slu_soft_cq_wake(struct soft_cq *cq); /* if it is armed */
/* Makes this thread leave CQs that it does not own to the helper. */
void slu_soft_inbox_never_visit(void);
/*
 * Called after a push: serves the CQ if it is free, or else wakes the program or kicks the helper.
 */
void slu_soft_inbox_notify(struct soft_cq *cq);
/* Pushes and notifies. current is the CQ that the caller owns, or NULL. */
void slu_soft_send(struct soft_cq *cq, struct soft_message *message, const struct soft_cq *current);
static inline bool slu_soft_has_messages(struct soft_cq *cq)
{
    return cq->rest != NULL || atomic_load(&cq->inbox) != NULL;
}
/* Counts up a counter that the program alone writes and the helper reads. */
static inline void slu_soft_count_up(atomic_uint *counter)
{
    unsigned count = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, count + 1, memory_order_relaxed);
}
static inline void slu_soft_cq_complete(struct soft_qp *qp, const struct slu_wc *wc)
{
    struct soft_cq *cq = slu_soft_cq_of(qp);
    if (SLU_UNLIKELY(cq->tail - cq->head > cq->mask)) {
        cq->overrun = true;
        return;
    }
    cq->ring[cq->tail++ & cq->mask] = (struct soft_completion){*wc, qp};
    qp->posted++;
}

/* poll.c: by its owner */
int slu_soft_cq_poll(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count);
int slu_soft_cq_arm(struct slu_cq *cq);
void slu_soft_cq_serve(struct soft_cq *cq);
void slu_soft_cq_forget(struct soft_qp *qp); /* drops its completions */

/* cq_room.c: by its owner; set: gives it a ring of that size, a power of two, for its old one */
int slu_soft_cq_set_ring(struct soft_cq *cq, uint32_t size);
void slu_soft_cq_free_ring(const struct soft_cq *cq);
int slu_soft_cq_extend(struct slu_cq *cq, uint32_t entries);
void slu_soft_cq_reduce(struct slu_cq *cq, uint32_t entries);

/* pause.c: spins, then yields, then sleeps; time counts calls from 0 */
void slu_soft_pause(unsigned time);
/* inbox.c */
void slu_soft_inbox_push(struct soft_cq *cq, struct soft_message *message);
/* Executes messages. False: there may be more, left for the next turn. */
bool slu_soft_inbox_drain(struct soft_cq *cq);
static inline bool slu_soft_inbox_empty(struct soft_cq *cq)
{
    return atomic_load(&cq->inbox) == NULL;
}

/* qp.c */
int slu_soft_ring_make(struct soft_ring *ring, uint32_t depth, size_t stride);
void slu_soft_ring_free(const struct soft_ring *ring);
size_t slu_soft_receive_bytes(uint32_t max_sge); /* of an entry in a ring of receives */
int slu_soft_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                       struct slu_qp **qp);
void slu_soft_qp_endpoint(const struct slu_qp *qp, struct slu_endpoint *endpoint);
int slu_soft_qp_connect(struct slu_qp *qp, const struct slu_endpoint *remote);
int slu_soft_qp_state(const struct slu_qp *qp);
void slu_soft_qp_error(struct slu_qp *qp);
void slu_soft_qp_destroy(struct slu_qp *qp);
struct soft_qp *slu_soft_qp_find(struct soft_context *context, uint32_t qpn); /* held, or NULL */
void slu_soft_qp_hold(struct soft_qp *qp);
void slu_soft_qp_release(struct soft_qp *qp);

/* loss.c */
const char *slu_soft_qp_loss(const struct slu_qp *qp, bool *closed);
void slu_soft_qp_farewell(struct slu_qp *qp, enum slu_farewell why);
#define SOFT_LOSS_ABSENT                                                                     \
    "the peer is at none of its addresses: its process ended, or its endpoint is stale, was" \
    " used before or swapped"
#define SOFT_LOSS_REFUSED                                                                  \
    "the peer asked for what this side refused: a remote key, a range, a right, or a send" \
    " longer than the receive"
/* Notes why the peer is about to be lost. The text must be static; the first reason counts. */
void slu_soft_note_loss(struct soft_qp *qp, const char *loss);
/* Notes that the peer ended the connection; why: enum slu_farewell, or an unknown value. */
void slu_soft_note_farewell(struct soft_qp *qp, uint32_t why);

/* queue.c */
int slu_soft_post_send(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad);
int slu_soft_post_receive(struct slu_qp *qp, struct slu_receive_wr *chain,
                          struct slu_receive_wr **bad);
/* Completes finished requests in order; in the error state, all that are not out. */
void slu_soft_retire(struct soft_qp *qp);
/* Enters the error state, once. The oldest unfinished send gets cause as its status. */
void slu_soft_qp_fail(struct soft_qp *qp, uint32_t cause, bool hard);
/*
 * Enters the error state once the refusal is sent to the peer. slu_soft_qp_told: it was sent, or
 * never will be.
 */
void slu_soft_qp_refuse(struct soft_qp *qp);
void slu_soft_qp_told(struct soft_qp *qp);
int slu_soft_qp_probe(struct slu_qp *qp, uint64_t id);
/* Completes the probe that waits, if there is one. */
void slu_soft_answered(struct soft_qp *qp, uint32_t status);

#include "transport/soft/core/copy.h"
#include "transport/soft/core/seam.h"

#endif
