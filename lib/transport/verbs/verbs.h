/* SPDX-License-Identifier: MIT */
/*
 * The verbs transport: what its files share. Each object is the base of the
 * transport table with the one of libibverbs beside it; nothing that
 * libibverbs does well is wrapped twice.
 *
 * A context is not written after it was opened, but for its path, which has a
 * lock. Memory and protection domains are only handed to libibverbs. A
 * completion queue and its queue pairs belong to one thread at a time, as the
 * table says.
 */
#ifndef SLU_VERBS_H
#define SLU_VERBS_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "base/descriptor.h"
#include "memory/pages.h"
#include "transport/transport.h"

/* Buckets of a queue's table of queue pairs, a power of two: qp numbers are nearly consecutive. */
#define SLU_VERBS_BUCKETS 64

struct rdma_event_channel;
struct slu_cm;

/*
 * How peers reach a port now. Addresses, MTU and LID change while a device is
 * open, so every queue pair takes what is true when it is made: that is what
 * lets a reset recover from such a change.
 */
struct slu_verbs_path {
    enum ibv_mtu mtu;
    uint16_t lid;
    uint8_t link_layer; /* IBV_LINK_LAYER_INFINIBAND or _ETHERNET */
    uint8_t lmc;        /* InfiniBand: the port has 2^lmc LIDs, from lid on */
    bool grh_required;  /* InfiniBand: the subnet insists on GIDs */
    bool has_gid;
    struct ibv_gid_entry gid; /* valid if has_gid, which Ethernet always has */
    uint16_t pkey;            /* the first of the table; 0: it cannot be read */
    uint16_t pkey_entries;
    uint32_t changes; /* of the port that were known when this was read */
};

/* What the handshake came to: the peer, and what was negotiated. */
struct slu_verbs_link {
    uint32_t qpn; /* 0: not connected yet */
    uint32_t psn;
    uint32_t gid_type;
    uint16_t lid;
    bool global; /* packets have a GRH */
    uint8_t gid[16];
    uint32_t mtu;          /* bytes */
    uint32_t reads;        /* that we may have in flight */
    uint32_t remote_reads; /* that we answer at a time */
    uint32_t access;       /* rights that the peer gives us: SLUICE_ACCESS_REMOTE_* */
    uint64_t hint_addr;    /* of the peer's place for hints; 0: it has none */
    uint32_t hint_rkey;
    uint64_t farewell; /* what it is told there of a close; 0: it looks for nothing */
};

/* Requests of our own, beside the program's: probes and hints of receives; see hint.c. */
struct slu_verbs_place;
struct slu_verbs_places;
struct slu_verbs_own {
    struct slu_verbs_places *places;
    struct slu_verbs_place *place; /* NULL: the peer can tell us nothing */
    uint64_t receives;             /* posted */
    uint64_t sends;                /* posted that need a receive of the peer's */
    uint64_t in_vain;              /* what the peer has told us that is not worth a wait for more */
    uint32_t needless;             /* sends in a row for which there was no wait */
    uint32_t useless;              /* waits in a row that were in vain */
    uint32_t useful;               /* waits that were not, since the peer was asked */
    uint32_t pause;                /* how long the peer was left alone last */
    uint32_t pause_left;           /* calls that are slow until it is asked again */
    uint64_t in_flight;            /* id of a request; 0: none */
    uint64_t probe;                /* id of the one that is to end with it; 0: none */
    uint32_t failed, vendor;       /* status of a hint that failed, and is to be told; 0: none */
    bool wants;                    /* the peer was asked to tell us its receives */
    bool hints;                    /* what is in flight is a hint, and no probe */
    bool more;                     /* a hint is to follow what is in flight */
    uint8_t farewell;              /* enum slu_verbs_farewell */
    uint64_t farewell_word;        /* what the peer says if it closes; not 0 if there is a place */
    int64_t farewell_by;           /* it is awaited until farewell_left of the queue is that */
};

/* How far a farewell has come; see farewell.c. */
enum slu_verbs_farewell {
    SLU_VERBS_STAYS,  /* there is none */
    SLU_VERBS_LEAVES, /* there is one, and the end of what is in flight is awaited */
    SLU_VERBS_SAYS,   /* its word is in flight */
    SLU_VERBS_PARTS,  /* the request that ends the connection for the peer is in flight */
    SLU_VERBS_OVER    /* nothing is to follow */
};

/* The thread that waits for events. */
struct slu_verbs_watch {
    pthread_mutex_t lock; /* of starting it */
    bool runs;            /* until the context is closed */
    atomic_bool ends;
    atomic_int cm_fd; /* of the events of rdma_cm; -1: there are none */
    int nudge_fd;     /* eventfd: written when the thread is to look at the two above */
    pthread_t thread;
};

struct slu_verbs_context {
    struct slu_tcontext base;
    struct ibv_context *ibv;
    uint8_t port;
    int32_t gid_index;       /* that was asked for; -1: the best one */
    uint32_t gid_entries;    /* most entries the GID tables of all ports can have together */
    atomic_bool fatal;       /* the device has failed for good */
    bool wrapped;            /* the program opened it, so closing and events are its own */
    atomic_uint next_vector; /* completion vector of the next queue */
    pthread_mutex_t events_lock;
    struct slu_verbs_qp *qps; /* under events_lock */
    struct slu_verbs_cq *cqs; /* under events_lock */
    struct slu_verbs_watch watch;
    struct rdma_event_channel *cm_events; /* under watch.lock; NULL: none was needed yet */
    pthread_mutex_t path_lock;
    struct slu_verbs_path path;
    int64_t path_expires;  /* time from which on path is read anew; 0: never read */
    uint32_t path_changes; /* events of the port so far; under events_lock, too */
};

struct slu_verbs_pd {
    struct slu_tpd base;
    struct ibv_pd *ibv;
    bool wrapped; /* the program's: not freed */
    pthread_mutex_t places_lock;
    struct slu_verbs_places *places; /* under places_lock */
};

struct slu_verbs_mr {
    struct slu_tmr base;
    struct ibv_mr *ibv;
    struct slu_pages pages; /* of mr_alloc: unmapped at the end */
};

struct slu_verbs_qp {
    struct slu_qp base;
    struct ibv_qp *ibv;
    struct slu_verbs_qp *next;          /* in the bucket of the completion queue */
    struct slu_verbs_qp *context_next;  /* in the list of the context */
    struct slu_verbs_qp **context_prev; /* what points to it there */
    enum slu_qp_state state;
    _Atomic uint32_t event; /* that ended it: 0, or one more than the event's number */
    bool event_told;
    atomic_bool uses_gid; /* its packets name it; before it is connected: they may */
    bool agreed;          /* what it is connected with was agreed on by rdma_cm */
    struct slu_cm *cm;    /* its connection over rdma_cm, if it is connected so */
    atomic_bool parted;   /* that has ended, for parted_why */
    bool parted_told;
    char parted_why[120]; /* under events_lock until parted is true, and then fixed */
    uint32_t part;        /* of the completion queue */
    uint32_t psn;
    enum ibv_mtu mtu; /* the most that we can do */
    uint16_t pkey;    /* 0: not known */
    uint16_t pkey_index;
    struct slu_qp_attr attr;
    struct slu_verbs_path path;
    struct slu_verbs_link link;
    struct slu_verbs_own own;
};

/* A wait of our own, in steps. */
struct slu_verbs_wait {
    int64_t begun;  /* the step */
    int64_t own;    /* so long in all steps, without what others had the processor for */
    int64_t in_all; /* and with it */
};

/* A queue of the device. */
struct slu_verbs_part {
    struct ibv_cq *ibv; /* NULL: given back, and its place is free */
    uint32_t entries;
    uint32_t reserved; /* for queue pairs, where there can be several parts */
    uint32_t unacked;  /* events read and not acknowledged */
    bool armed;        /* an event is promised and was not read yet */
};

/* What can make the fd of a completion queue readable. */
enum { SLU_VERBS_COMPLETION, SLU_VERBS_WAKE, SLU_VERBS_WATCHED };

struct slu_verbs_cq {
    struct slu_cq base;
    struct slu_verbs_cq *context_next; /* in the list of the context */
    struct slu_verbs_part *parts;
    uint32_t part_count;
    uint32_t next_part; /* the last one polled */
    uint32_t entries;   /* of all parts */
    bool grows;         /* has as many parts as it needs */
    bool extended;      /* it was; nobody knows how much more will be needed */
    struct ibv_comp_channel *channel;
    int wake_fd; /* eventfd, written to wake who sleeps on fd, and never read */
    int fd;      /* epoll: of the channel and wake_fd */
    struct slu_verbs_qp *qps[SLU_VERBS_BUCKETS];
    struct ibv_wc
        *held; /* taken from the device, not yet by the engine; the oldest at held_first */
    uint32_t held_first;
    uint32_t held_count;
    uint32_t held_capacity;
    atomic_bool overrun;        /* the device says that it lost completions */
    uint64_t own_number;        /* of the last request of our own */
    uint64_t own_awaited;       /* that when somebody who was about to sleep waited for them */
    uint32_t own_busy;          /* queue pairs that have a hint in flight */
    int64_t farewell_left;      /* time to wait for farewells, of all queue pairs */
    int64_t farewell_until;     /* and when the wait ends on a busy machine */
    struct slu_verbs_wait wait; /* for receives of peers, since it was polled: see hint.c */
    bool dead;
    const char *reason; /* why, if it is dead */
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

static inline struct slu_verbs_qp *slu_verbs_qp_of(struct slu_qp *qp)
{
    return slu_container_of(qp, struct slu_verbs_qp, base);
}

static inline const struct slu_verbs_qp *slu_verbs_const_qp_of(const struct slu_qp *qp)
{
    return slu_container_of(qp, const struct slu_verbs_qp, base);
}

/*
 * Verbs fail with a positive errno value, with a negative one, or with -1 or
 * NULL and errno, by call and by provider. This is the positive value of all;
 * for NULL pass -1.
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

/* Rights of a region or of a queue pair, as libibverbs has them. */
static inline int slu_verbs_access(uint32_t access)
{
    return ((access & SLUICE_ACCESS_LOCAL_WRITE) != 0 ? IBV_ACCESS_LOCAL_WRITE : 0) |
           ((access & SLUICE_ACCESS_REMOTE_WRITE) != 0 ? IBV_ACCESS_REMOTE_WRITE : 0) |
           ((access & SLUICE_ACCESS_REMOTE_READ) != 0 ? IBV_ACCESS_REMOTE_READ : 0) |
           ((access & SLUICE_ACCESS_REMOTE_ATOMIC) != 0 ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* device.c */
int slu_verbs_device_list(struct sluice_device_list *list);
/* NUMA node it is attached to; -1: none, or not known. */
int32_t slu_verbs_numa_node(const struct ibv_device *device);

/*
 * open.c: as the functions of libibverbs, with errno; what they open is kept
 * as descriptor.h says.
 */
struct ibv_device **slu_verbs_devices(int *count);
struct ibv_context *slu_verbs_device_open(struct ibv_device *device);
int slu_verbs_device_close(struct ibv_context *ibv);
struct ibv_comp_channel *slu_verbs_comp_channel(struct ibv_context *ibv);
void slu_verbs_comp_channel_end(struct ibv_comp_channel *channel);

/* fork.c: makes fork(2) safe for memory that is registered later. */
int slu_verbs_fork_init(void);
/* While this is held, no other thread forks, nor has libibverbs open or look for anything. */
void slu_verbs_lock(void);
void slu_verbs_unlock(void);

/* context.c */
int slu_verbs_open(const char *device, const struct sluice_context_attr *attr,
                   struct slu_tcontext **context);
/* Why slu_verbs_device_open() gave nothing. */
int slu_verbs_open_errno(const struct ibv_device *device);
int slu_verbs_wrap(struct ibv_context *ibv, const struct sluice_context_attr *attr,
                   struct slu_tcontext **context);
void slu_verbs_close(struct slu_tcontext *context);

/* limits.c: what the device can do, and its port. */
void slu_verbs_limits_set(struct slu_verbs_context *context, const struct ibv_device_attr *attr,
                          const struct ibv_port_attr *port);

/* path.c */
#define SLU_VERBS_MTU_UNKNOWN IBV_MTU_256 /* of a port that names none: what all have */
#define SLU_VERBS_PKEY_FULL 0x8000        /* the rest of a partition key says which partition */
#define SLU_VERBS_ADDRESS_CHARS 64
/* "RoCE v2 192.0.2.1" or "RoCE v1 fe80::1" or "GID fe80::1". */
void slu_verbs_gid_text(const uint8_t gid[16], uint32_t type, char text[SLU_VERBS_ADDRESS_CHARS]);
/* Upper bound of the entries of the GID tables of all ports. */
uint32_t slu_verbs_gid_entries(struct ibv_context *ibv, uint32_t ports);
/* -ENETDOWN: the port is not active. -EADDRNOTAVAIL: it has no address. */
int slu_verbs_path_read(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries,
                        struct slu_verbs_path *path);
/* The path of the context's port, at most some milliseconds old. Errors likewise. */
int slu_verbs_path_of(struct slu_verbs_context *context, struct slu_verbs_path *path);
/*
 * What a queue pair takes of its path: the MTU, the partition key and the rest
 * of what qp->attr asks for, held against qp->path. -EINVAL: the port has not
 * what was asked for.
 */
int slu_verbs_path_choose(struct slu_verbs_qp *qp);
/* It has changed: the next queue pair reads it anew. Under events_lock. */
void slu_verbs_path_forget(struct slu_verbs_context *context);

/* memory.c */
int slu_verbs_pd_alloc(struct slu_tcontext *context, struct slu_tpd **pd);
int slu_verbs_pd_wrap(struct slu_tcontext *context, struct ibv_pd *ibv, struct slu_tpd **pd);
void slu_verbs_pd_free(struct slu_tpd *pd);
bool slu_verbs_pds_share_keys(const struct slu_tpd *a, const struct slu_tpd *b);
int slu_verbs_mr_register(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                          struct slu_tmr **mr);
int slu_verbs_mr_register_dmabuf(struct slu_tpd *pd, const struct slu_dmabuf *dmabuf,
                                 uint32_t access, struct slu_tmr **mr);
int slu_verbs_mr_alloc(struct slu_tpd *pd, size_t length, uint32_t access, int32_t node,
                       struct slu_tmr **mr);
void slu_verbs_mr_deregister(struct slu_tmr *mr);

/* cq.c */
int slu_verbs_cq_create(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq);
void slu_verbs_cq_destroy(struct slu_cq *cq);
/* cq_parts.c */
int slu_verbs_cq_extend(struct slu_cq *cq, uint32_t entries);
void slu_verbs_cq_reduce(struct slu_cq *cq, uint32_t entries);
/* Adds a queue of the device. */
int slu_verbs_cq_add_part(struct slu_verbs_cq *cq, uint32_t entries);
/* False: the device has it still. */
bool slu_verbs_cq_destroy_part(struct slu_verbs_cq *cq, struct slu_verbs_part *part);
/* Room for the completions of a queue pair; part is where. */
int slu_verbs_cq_reserve(struct slu_verbs_cq *cq, uint32_t entries, uint32_t *part);
void slu_verbs_cq_release(struct slu_verbs_cq *cq, uint32_t entries, uint32_t part);
/* cq.c again */
/* Makes a queue pair known to its queue, so that its failures mark it. */
void slu_verbs_cq_add(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp);
/* Forgets it again. */
void slu_verbs_cq_remove(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp);
/* NULL if it is not known any more. */
struct slu_verbs_qp *slu_verbs_cq_find(struct slu_verbs_cq *cq, uint32_t qpn);
/* Nothing can be had of it any more; reason is static. */
void slu_verbs_cq_fail(struct slu_verbs_cq *cq, const char *reason);

/* cq_poll.c */
int slu_verbs_cq_poll(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count);
int slu_verbs_cq_arm(struct slu_cq *cq);
int slu_verbs_cq_fd(struct slu_cq *cq);
void slu_verbs_cq_wake(struct slu_cq *cq);
bool slu_verbs_cq_reserve_held(struct slu_verbs_cq *cq, uint32_t count);
/* Ends the requests of our own that have completed in the part, and keeps all else for a poll. */
void slu_verbs_cq_end_own(struct slu_verbs_cq *cq, uint32_t part);
/* Drops the completions of a destroyed queue pair and keeps all others, in order. */
void slu_verbs_cq_purge(struct slu_verbs_cq *cq, uint32_t qpn, uint32_t part);

/* events.c */
int slu_verbs_events_open(struct slu_verbs_context *context);
void slu_verbs_events_close(struct slu_verbs_context *context);
/* Reads all that there are and tells whom they concern. Any thread. */
void slu_verbs_events_read(struct slu_verbs_context *context);
/* Wakes whoever sleeps on a queue that is concerned. Under events_lock. */
void slu_verbs_events_wake(struct slu_verbs_context *context);
/* There will be none any more: the device has failed. */
void slu_verbs_events_gone(struct slu_verbs_context *context, int err);
/*
 * From now on it is told of events. False: the port has changed since its path was
 * read, which it was not told of; it has not been added.
 */
bool slu_verbs_events_add_qp(struct slu_verbs_context *context, struct slu_verbs_qp *qp);
void slu_verbs_events_remove_qp(struct slu_verbs_context *context, struct slu_verbs_qp *qp);
void slu_verbs_events_add_cq(struct slu_verbs_context *context, struct slu_verbs_cq *cq);
void slu_verbs_events_remove_cq(struct slu_verbs_context *context, struct slu_verbs_cq *cq);
bool slu_verbs_cq_alert(struct slu_cq *cq, struct slu_alert *alert);
/* An error if the device, or this queue of it, has failed. */
int slu_verbs_events_prepare(struct slu_verbs_context *context, const struct slu_verbs_cq *cq);
/*
 * An error if an event came since the queue pair was made that makes it useless
 * for a connection, with GIDs (global) or without.
 */
int slu_verbs_events_check(struct slu_verbs_qp *qp, bool global);
/* It is connected: from now on its events are failures. */
void slu_verbs_events_connected(struct slu_verbs_qp *qp);

/* watch.c: starts the thread, if it does not run yet. */
int slu_verbs_watch_start(struct slu_verbs_context *context);
void slu_verbs_watch_stop(struct slu_verbs_context *context);
/* It waits for the events of rdma_cm as well from now on. Under watch.lock. */
int slu_verbs_watch_cm(struct slu_verbs_context *context, int fd);

/* agreed.c: connections over rdma_cm; nothing happens in those of other ways to connect. */
#ifdef HAVE_RDMACM
/* What a connection takes, whoever the peer is: 0, or an error of attributes or for want of it. */
int slu_verbs_qp_expect(struct slu_qp *qp);
/*
 * The queue pair is to be connected as rdma_cm has agreed on with its peer: what it has
 * chosen for our side becomes the queue pair's, and what it knows of the peer an endpoint,
 * which goes to a handshake. -EINVAL: an attribute of the channel asks for something else.
 */
int slu_verbs_qp_agree(struct slu_qp *qp, struct slu_cm *cm, struct slu_endpoint *remote);
/* 0; or -EADDRNOTAVAIL: it leads to another device or port than the context's. */
int slu_verbs_cm_check(const struct slu_tcontext *context, const struct slu_cm *cm,
                       const char *who);
/*
 * It is connected, and the queue pair's from now on: when it ends, that fails the queue
 * pair, and it ends with that. On failure it stays the caller's.
 */
int slu_verbs_qp_bind(struct slu_qp *qp, struct slu_cm *cm);
/* Tells the other side that nothing follows. */
void slu_verbs_qp_part(struct slu_verbs_qp *qp);
void slu_verbs_qp_unbind(struct slu_verbs_qp *qp);
/* All events of rdma_cm that there are. Of the thread of the context. */
void slu_verbs_cm_read(struct slu_verbs_context *context);
void slu_verbs_cm_close(struct slu_verbs_context *context);
#else
static inline void slu_verbs_qp_part(struct slu_verbs_qp *qp)
{
    (void)qp;
}

static inline void slu_verbs_qp_unbind(struct slu_verbs_qp *qp)
{
    (void)qp;
}

static inline void slu_verbs_cm_read(struct slu_verbs_context *context)
{
    (void)context;
}

static inline void slu_verbs_cm_close(struct slu_verbs_context *context)
{
    (void)context;
}
#endif

/* qp.c */
/* Entries of the completion queue that it can use. */
uint32_t slu_verbs_qp_entries(const struct slu_verbs_qp *qp);
int slu_verbs_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                        struct slu_qp **qp);
void slu_verbs_qp_endpoint(const struct slu_qp *qp, struct slu_endpoint *endpoint);
int slu_verbs_qp_state(const struct slu_qp *qp);
void slu_verbs_qp_query(const struct slu_qp *qp, struct sluice_channel_info *info);
void slu_verbs_qp_error(struct slu_qp *qp);
void slu_verbs_qp_destroy(struct slu_qp *qp);

/* connect.c */
/* Whether our packets are to have a GRH even where the peer and its LID need none. */
bool slu_verbs_wants_grh(const struct slu_verbs_qp *qp);
int slu_verbs_qp_connect(struct slu_qp *qp, const struct slu_endpoint *remote);

/* hint.c: a place for what the peer tells of its receives. */
int slu_verbs_hint_open(struct slu_verbs_qp *qp);
void slu_verbs_hint_close(struct slu_verbs_qp *qp);
void slu_verbs_hint_endpoint(const struct slu_verbs_qp *qp, struct slu_endpoint *endpoint);
/* All places of a protection domain, which has no queue pairs any more. */
void slu_verbs_hints_end(struct slu_verbs_pd *pd);
/* So many receives were posted. */
void slu_verbs_hint_received(struct slu_verbs_qp *qp, uint32_t count);
/* The peer was asked for hints: a call that blocks waits a while for a receive of the message. */
void slu_verbs_hint_await(struct slu_verbs_qp *qp, bool blocking);
void slu_verbs_qp_slow(struct slu_qp *qp);
/*
 * The end of a step of a wait, which gives way to others once it has lasted for hot. False: it has
 * lasted as long as it may.
 */
bool slu_verbs_wait_on(struct slu_verbs_wait *wait, int64_t hot, int64_t most, int64_t most_in_all);
int slu_verbs_qp_probe(struct slu_qp *qp, uint64_t id);
/* Posts a request of our own, when none is in flight: 0, or what libibverbs returned. */
int slu_verbs_own_post(struct slu_verbs_qp *qp, struct ibv_send_wr *wr);
/* One of our own has ended: whether that is to be delivered. */
bool slu_verbs_own_ended(struct slu_verbs_cq *cq, const struct ibv_wc *from, struct slu_wc *to);
/* Whether one that nobody waits for has failed, and was not told yet. */
bool slu_verbs_own_failure(struct slu_verbs_qp *qp, struct slu_alert *alert);

/* farewell.c: chooses what the peer is to say if it closes the connection. */
int slu_verbs_farewell_open(struct slu_verbs_qp *qp);
/* Tells the peer that this side closes the connection, if the peer can be told. */
void slu_verbs_qp_farewell(struct slu_qp *qp, enum slu_farewell why);
/* Goes on with one: nothing of our own is in flight. */
void slu_verbs_farewell_step(struct slu_verbs_qp *qp);
/* Waits until the peer has been told, for a bounded time. */
void slu_verbs_farewell_await(struct slu_verbs_qp *qp);
/* Whether the peer has told that it closes the connection. */
bool slu_verbs_has_left(const struct slu_verbs_qp *qp);
const char *slu_verbs_qp_loss(const struct slu_qp *qp, bool *closed);

/* post.c: a positive errno value of libibverbs; the error of a call, with its text. */
int slu_verbs_fail_post(const struct slu_qp *qp, const char *what, int err);
int slu_verbs_fail_read(const struct slu_qp *qp);
int slu_verbs_post_send(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad);
int slu_verbs_post_receive(struct slu_qp *qp, struct slu_receive_wr *chain,
                           struct slu_receive_wr **bad);

#endif
