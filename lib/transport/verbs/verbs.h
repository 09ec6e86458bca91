/* SPDX-License-Identifier: MIT */
/*
 * The verbs transport: the objects that its rooms share; README.md shows the rooms. Each object is
 * a base of the transport table with its libibverbs object beside it; nothing that libibverbs does
 * well is wrapped twice.
 *
 * A context is not modified after it was opened, except its path, which has a lock. Memory and
 * protection domains are only handed to libibverbs. A completion queue and its queue pairs belong
 * to one thread at a time, as the table requires.
 */
#ifndef SLU_VERBS_H
#define SLU_VERBS_H

#include <endian.h>
#include <infiniband/verbs.h>

#include "base/base.h"
#include "base/descriptor.h"
#include "memory/pages.h"
#include "transport/transport.h"

/* Buckets of a queue's table of queue pairs, a power of two: qp numbers are nearly consecutive. */
#define SLU_VERBS_BUCKETS 64

struct rdma_event_channel;
struct slu_cm;
struct slu_verbs_context;

/* A GID that an endpoint offers beside the first one. */
struct slu_verbs_other_gid {
    struct ibv_gid_entry gid;
    uint8_t prefix;
};

/*
 * How peers reach a port now. Addresses, MTU and LID can change while a device is open, so every
 * queue pair takes the values at its creation. That lets a reset recover from such a change.
 */
struct slu_verbs_path {
    enum ibv_mtu mtu;
    uint16_t lid;
    uint8_t link_layer; /* IBV_LINK_LAYER_INFINIBAND or _ETHERNET */
    bool iwarp;         /* no GIDs, and none is needed */
    uint8_t lmc;        /* InfiniBand: the port has 2^lmc LIDs, from lid on */
    bool grh_required;  /* InfiniBand: the subnet requires GIDs */
    bool has_gid;
    struct ibv_gid_entry gid; /* valid if has_gid, which RoCE always has */
    bool gid_is_ours;         /* false: it is not known that its interface is of this namespace */
    uint8_t gid_prefix;       /* bits of the GID that name its subnet; 0: not known */
    uint8_t other_gids;
    struct slu_verbs_other_gid others[SLU_ENDPOINT_GIDS];
    uint16_t pkey; /* the first of the table; 0: it cannot be read */
    uint16_t pkey_entries;
    uint32_t changes; /* of the port, counted when this was read */
};

/* Result of the handshake: the peer, and the negotiated values. */
struct slu_verbs_link {
    bool made;    /* false: not connected yet */
    uint32_t qpn; /* 0 on iWARP, where it is not known */
    uint32_t psn;
    uint32_t gid_type;
    uint16_t lid;
    bool global; /* packets have a GRH */
    uint8_t gid[16];
    uint32_t mtu;          /* bytes */
    uint32_t reads;        /* reads that we may have in flight */
    uint32_t remote_reads; /* reads that we answer at a time */
    uint32_t access;       /* rights that the peer gives us: SLUICE_ACCESS_REMOTE_* */
    uint64_t hint_addr;    /* of the peer's place for hints; 0: it has none */
    uint32_t hint_rkey;
    uint64_t farewell; /* word that reports a close to the peer; 0: it does not use one */
};

/*
 * Words that a side writes to the other beside the data of programs, in little endian: see words/.
 */
struct slu_verbs_words {
    _Atomic uint64_t receives; /* number posted since the connection was made */
    _Atomic uint64_t wanted;   /* not 0: this side wants hints of the other's receives */
    _Atomic uint64_t farewell; /* farewell word from the other's endpoint: this side has closed */
    /* Then: that word, plus the messages that it has received, plus 1; 0: of an old version. */
    _Atomic uint64_t taken;
};

/* The place of a queue pair: two cache lines, of which the peer writes the first. */
struct slu_verbs_place {
    struct slu_verbs_words heard;
    uint64_t unused[4];
    struct slu_verbs_words said; /* source of the write in flight to the peer */
    uint64_t unused2[4];
};
_Static_assert(sizeof(struct slu_verbs_place) == 128, "two lines of the cache");

/* Requests of our own, beside the program's: probes and hints of receives; see words/hint.c. */
struct slu_verbs_places;
struct slu_verbs_own {
    struct slu_verbs_places *places;
    struct slu_verbs_place *place; /* NULL: the peer can write no words to us */
    uint64_t receives;             /* posted */
    uint64_t sends;                /* posted that need a receive of the peer's */
    uint64_t in_vain;              /* hint of the peer that does not justify a wait for more */
    uint32_t needless;             /* consecutive sends without a wait */
    uint32_t useless;              /* consecutive waits without a result */
    uint32_t useful;               /* waits with a result, since the peer was asked */
    uint32_t pause;                /* calls in the last pause of hints */
    uint32_t pause_left;           /* slow calls until the peer is asked again */
    uint64_t in_flight;            /* id of a request; 0: none */
    uint64_t probe;                /* id of the probe that ends with it; 0: none */
    uint32_t failed, vendor;       /* status of a failed hint that is not reported yet; 0: none */
    bool wants;                    /* the peer was asked for hints */
    bool pooled;                   /* the peer knows that it need not wait for receives */
    bool hints;                    /* the request in flight is a hint, not a probe */
    bool more;                     /* a hint follows the request in flight */
    uint8_t farewell;              /* enum slu_verbs_farewell */
    uint64_t farewell_word; /* that the peer writes if it closes; not 0 if there is a place */
    int64_t farewell_by;    /* wait until farewell_left of the queue has fallen to this */
};

/* Stages of a farewell; see words/farewell.c. */
enum slu_verbs_farewell {
    SLU_VERBS_STAYS,  /* there is none */
    SLU_VERBS_LEAVES, /* requested; waits for the request in flight */
    SLU_VERBS_SAYS,   /* its word is in flight */
    SLU_VERBS_PARTS,  /* the request that ends the connection for the peer is in flight */
    SLU_VERBS_OVER    /* done */
};

/* The thread that waits for events. */
struct slu_verbs_watch {
    pthread_mutex_t lock; /* for starting it */
    bool runs;            /* from its start until the context is closed */
    atomic_bool ends;
    atomic_int cm_fd; /* of the events of rdma_cm; -1: there are none */
    void (*cm_read)(struct slu_verbs_context *context); /* set before cm_fd */
    int nudge_fd; /* eventfd: written to make the thread check ends and cm_fd */
    pthread_t thread;
};

struct slu_verbs_context {
    struct slu_tcontext base;
    struct ibv_context *ibv;
    uint8_t port;
    int32_t gid_index;       /* requested index; -1: the best one */
    uint32_t gid_entries;    /* most entries the GID tables of all ports can have together */
    atomic_bool fatal;       /* the device has failed permanently */
    bool wrapped;            /* opened by the program, which closes it and reads its events */
    atomic_uint next_vector; /* completion vector of the next queue */
    pthread_mutex_t events_lock;
    struct slu_verbs_qp *qps; /* under events_lock */
    struct slu_verbs_cq *cqs; /* under events_lock */
    struct slu_verbs_watch watch;
    struct rdma_event_channel *cm_events; /* under watch.lock; NULL: none was needed yet */
    pthread_mutex_t path_lock;
    struct slu_verbs_path path;
    int64_t path_expires;  /* when to read path again; 0: never read */
    uint32_t path_changes; /* events of the port so far; under events_lock, too */
};

struct slu_verbs_pd {
    struct slu_tpd base;
    struct ibv_pd *ibv;
    bool wrapped; /* owned by the program: not freed */
    pthread_mutex_t places_lock;
    struct slu_verbs_places *places; /* under places_lock */
};

struct slu_verbs_mr {
    struct slu_tmr base;
    struct ibv_mr *ibv;
    struct slu_pages pages; /* of mr_alloc: unmapped with the region */
};

/* A pool of receives: a shared receive queue. */
struct slu_verbs_pool {
    struct slu_tpool base;
    struct ibv_srq *ibv;
    uint32_t depth, low;
    uint32_t posted;   /* and not complete */
    atomic_bool armed; /* the device is to report that the pool runs low */
};

struct slu_verbs_qp {
    struct slu_qp base;
    struct ibv_qp *ibv;
    struct slu_verbs_qp *next;          /* in the bucket of the completion queue */
    struct slu_verbs_qp *context_next;  /* in the list of the context */
    struct slu_verbs_qp **context_prev; /* pointer to this one in that list */
    enum slu_qp_state state;
    _Atomic uint32_t event; /* that ended it: 0, or the event's number plus one */
    bool event_told;
    atomic_bool last_taken; /* in error: it takes no more receives of the pool */
    atomic_bool uses_gid;   /* packets have a GID; before the connection: they may */
    bool agreed;            /* rdma_cm negotiated the parameters of the connection */
    struct slu_cm *cm;      /* its connection over rdma_cm, or NULL */
    atomic_bool parted;     /* the rdma_cm connection has ended, for parted_why */
    bool parted_told;
    char parted_why[120]; /* under events_lock until parted is true, and then fixed */
    uint32_t part;        /* of the completion queue */
    uint32_t psn;
    enum ibv_mtu mtu; /* the largest of this side */
    uint16_t pkey;    /* 0: not known */
    uint16_t pkey_index;
    struct slu_qp_attr attr;
    struct slu_verbs_path path;
    struct slu_verbs_link link;
    struct slu_verbs_own own;
};

/* A wait of this transport, in steps. */
struct slu_verbs_wait {
    int64_t begun;  /* of the current step */
    int64_t own;    /* total of all steps, without time for which the processor ran others */
    int64_t in_all; /* total with that time */
};

/* A queue of the device. */
struct slu_verbs_part {
    struct ibv_cq *ibv; /* NULL: destroyed; the place is free */
    uint32_t entries;
    uint32_t reserved; /* for queue pairs, where there can be several parts */
    uint32_t unacked;  /* events read and not acknowledged */
    bool armed;        /* an event was requested and was not read yet */
};

/* Sources in the epoll set of a completion queue. */
enum { SLU_VERBS_COMPLETION, SLU_VERBS_WAKE, SLU_VERBS_WATCHED };

struct slu_verbs_cq {
    struct slu_cq base;
    struct slu_verbs_cq *context_next; /* in the list of the context */
    struct slu_verbs_part *parts;
    uint32_t part_count;
    uint32_t next_part;          /* the last one polled */
    uint32_t entries;            /* of all parts */
    struct slu_verbs_pool *pool; /* or NULL; changed under events_lock */
    int64_t last_left; /* time to wait for queue pairs to have taken their last receives */
    bool grows;        /* has as many parts as it needs */
    bool extended;     /* cq_extend() was called, so the final size is unknown */
    struct ibv_comp_channel *channel;
    int wake_fd; /* eventfd, written to wake a thread that sleeps on fd, never read */
    int fd;      /* epoll: of the channel and wake_fd */
    struct slu_verbs_qp *qps[SLU_VERBS_BUCKETS];
    struct ibv_wc
        *held; /* taken from the device, but not yet by the engine; oldest at held_first */
    uint32_t held_first;
    uint32_t held_count;
    uint32_t held_capacity;
    atomic_bool overrun;        /* the device reported lost completions */
    uint64_t own_number;        /* of the last request of our own */
    uint64_t own_awaited;       /* own_number at the last wait for them before sleeping */
    uint32_t own_busy;          /* queue pairs that have a hint in flight */
    int64_t farewell_left;      /* time to wait for farewells, of all queue pairs */
    int64_t farewell_until;     /* end of that wait on a busy machine */
    struct slu_verbs_wait wait; /* for receives of peers, since the last poll: see words/hint.c */
    bool dead;
    const char *reason; /* why it is dead */
};

static inline struct slu_verbs_context *slu_verbs_context_of(struct slu_tcontext *context)
{
    return slu_container_of(context, struct slu_verbs_context, base);
}

static inline struct slu_verbs_pd *slu_verbs_pd_of(struct slu_tpd *pd)
{
    return slu_container_of(pd, struct slu_verbs_pd, base);
}

static inline struct slu_verbs_mr *slu_verbs_mr_of(struct slu_tmr *mr)
{
    return slu_container_of(mr, struct slu_verbs_mr, base);
}

static inline struct slu_verbs_cq *slu_verbs_cq_of(struct slu_cq *cq)
{
    return slu_container_of(cq, struct slu_verbs_cq, base);
}

static inline struct slu_verbs_pool *slu_verbs_pool_of(struct slu_tpool *pool)
{
    return slu_container_of(pool, struct slu_verbs_pool, base);
}

static inline struct slu_verbs_qp *slu_verbs_qp_of(struct slu_qp *qp)
{
    return slu_container_of(qp, struct slu_verbs_qp, base);
}

static inline const struct slu_verbs_qp *slu_verbs_const_qp_of(const struct slu_qp *qp)
{
    return slu_container_of(qp, const struct slu_verbs_qp, base);
}

/*
 * Returns the positive errno value of a failed verbs call. Depending on call and provider, verbs
 * return a positive value, a negative one, or -1 or NULL with errno set; for NULL pass -1.
 */
static inline int slu_verbs_errno(int returned)
{
    if (returned > 0)
        return returned;
    if (returned < -1)
        return -returned;
    return errno > 0 ? errno : EIO;
}

static inline uint32_t slu_verbs_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* IBV_MTU_256 is 1, and each following one twice the size. */
static inline uint32_t slu_verbs_mtu_bytes(enum ibv_mtu mtu)
{
    return UINT32_C(128) << mtu;
}

/*
 * iWARP: queue pairs are connected by rdma_cm alone, over TCP. There are no GIDs, atomic operations
 * or immediates.
 */
static inline bool slu_verbs_is_iwarp(const struct ibv_device *device)
{
    return device->transport_type == IBV_TRANSPORT_IWARP;
}

/* Translates the rights of a region or a queue pair to those of libibverbs. */
static inline int slu_verbs_access(uint32_t access)
{
    return ((access & SLUICE_ACCESS_LOCAL_WRITE) != 0 ? IBV_ACCESS_LOCAL_WRITE : 0) |
           ((access & SLUICE_ACCESS_REMOTE_WRITE) != 0 ? IBV_ACCESS_REMOTE_WRITE : 0) |
           ((access & SLUICE_ACCESS_REMOTE_READ) != 0 ? IBV_ACCESS_REMOTE_READ : 0) |
           ((access & SLUICE_ACCESS_REMOTE_ATOMIC) != 0 ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* Returns how many entries of the completion queue a queue pair can use. */
static inline uint32_t slu_verbs_qp_entries(const struct slu_verbs_qp *qp)
{
    return qp->attr.send_depth + 1 + qp->attr.receive_depth;
}

/* Returns whether the peer has written its farewell. */
static inline bool slu_verbs_has_left(const struct slu_verbs_qp *qp)
{
    const struct slu_verbs_place *place = qp->own.place;

    return place && le64toh(atomic_load_explicit(&place->heard.farewell, memory_order_acquire)) ==
                        qp->own.farewell_word;
}

/* verbs.c: makes a context for a device that the program has opened. */
int slu_verbs_wrap(struct ibv_context *ibv, const struct sluice_context_attr *attr,
                   struct slu_tcontext **context);
/* memory.c: makes a domain for one that the program has allocated. */
int slu_verbs_pd_wrap(struct slu_tcontext *context, struct ibv_pd *ibv, struct slu_tpd **pd);

#endif
