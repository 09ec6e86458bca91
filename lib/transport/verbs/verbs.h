/* SPDX-License-Identifier: MIT */
/*
 * The verbs transport: declarations that its files share. Each object is a base of the transport
 * table with its libibverbs object beside it; nothing that libibverbs does well is wrapped twice.
 *
 * A context is not modified after it was opened, except its path, which has a lock. Memory and
 * protection domains are only handed to libibverbs. A completion queue and its queue pairs belong
 * to one thread at a time, as the table requires.
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
 * How peers reach a port now. Addresses, MTU and LID can change while a device is open, so every
 * queue pair takes the values at its creation. That lets a reset recover from such a change.
 */
struct slu_verbs_path {
    enum ibv_mtu mtu;
    uint16_t lid;
    uint8_t link_layer; /* IBV_LINK_LAYER_INFINIBAND or _ETHERNET */
    uint8_t lmc;        /* InfiniBand: the port has 2^lmc LIDs, from lid on */
    bool grh_required;  /* InfiniBand: the subnet requires GIDs */
    bool has_gid;
    struct ibv_gid_entry gid; /* valid if has_gid, which Ethernet always has */
    uint16_t pkey;            /* the first of the table; 0: it cannot be read */
    uint16_t pkey_entries;
    uint32_t changes; /* of the port, counted when this was read */
};

/* Result of the handshake: the peer, and the negotiated values. */
struct slu_verbs_link {
    uint32_t qpn; /* 0: not connected yet */
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

/* Requests of our own, beside the program's: probes and hints of receives; see hint.c. */
struct slu_verbs_place;
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
    bool hints;                    /* the request in flight is a hint, not a probe */
    bool more;                     /* a hint follows the request in flight */
    uint8_t farewell;              /* enum slu_verbs_farewell */
    uint64_t farewell_word; /* that the peer writes if it closes; not 0 if there is a place */
    int64_t farewell_by;    /* wait until farewell_left of the queue has fallen to this */
};

/* Stages of a farewell; see farewell.c. */
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
    int nudge_fd;     /* eventfd: written to make the thread check the two above */
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

struct slu_verbs_qp {
    struct slu_qp base;
    struct ibv_qp *ibv;
    struct slu_verbs_qp *next;          /* in the bucket of the completion queue */
    struct slu_verbs_qp *context_next;  /* in the list of the context */
    struct slu_verbs_qp **context_prev; /* pointer to this one in that list */
    enum slu_qp_state state;
    _Atomic uint32_t event; /* that ended it: 0, or the event's number plus one */
    bool event_told;
    atomic_bool uses_gid; /* packets have a GID; before the connection: they may */
    bool agreed;          /* rdma_cm negotiated the parameters of the connection */
    struct slu_cm *cm;    /* its connection over rdma_cm, or NULL */
    atomic_bool parted;   /* the rdma_cm connection has ended, for parted_why */
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
    uint32_t next_part; /* the last one polled */
    uint32_t entries;   /* of all parts */
    bool grows;         /* has as many parts as it needs */
    bool extended;      /* cq_extend() was called, so the final size is unknown */
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
    struct slu_verbs_wait wait; /* for receives of peers, since the last poll: see hint.c */
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

/* Translates the rights of a region or a queue pair to those of libibverbs. */
static inline int slu_verbs_access(uint32_t access)
{
    return ((access & SLUICE_ACCESS_LOCAL_WRITE) != 0 ? IBV_ACCESS_LOCAL_WRITE : 0) |
           ((access & SLUICE_ACCESS_REMOTE_WRITE) != 0 ? IBV_ACCESS_REMOTE_WRITE : 0) |
           ((access & SLUICE_ACCESS_REMOTE_READ) != 0 ? IBV_ACCESS_REMOTE_READ : 0) |
           ((access & SLUICE_ACCESS_REMOTE_ATOMIC) != 0 ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* device.c */
int slu_verbs_device_list(struct sluice_device_list *list);
/* Returns the NUMA node of a device; -1: none, or not known. */
int32_t slu_verbs_numa_node(const struct ibv_device *device);

/*
 * open.c: work like the functions of libibverbs, with errno. Descriptors that they open follow the
 * rules of descriptor.h.
 */
struct ibv_device **slu_verbs_devices(int *count);
struct ibv_context *slu_verbs_device_open(struct ibv_device *device);
int slu_verbs_device_close(struct ibv_context *ibv);
struct ibv_comp_channel *slu_verbs_comp_channel(struct ibv_context *ibv);
void slu_verbs_comp_channel_end(struct ibv_comp_channel *channel);

/* fork.c: makes fork(2) safe for memory that is registered later. */
int slu_verbs_fork_init(void);
/* While this lock is held, no other thread forks, or makes libibverbs open or list anything. */
void slu_verbs_lock(void);
void slu_verbs_unlock(void);

/* context.c */
int slu_verbs_open(const char *device, const struct sluice_context_attr *attr,
                   struct slu_tcontext **context);
/* Returns the errno value for a failure of slu_verbs_device_open(). */
int slu_verbs_open_errno(const struct ibv_device *device);
int slu_verbs_wrap(struct ibv_context *ibv, const struct sluice_context_attr *attr,
                   struct slu_tcontext **context);
void slu_verbs_close(struct slu_tcontext *context);

/* limits.c: sets the limits of the device and its port. */
void slu_verbs_limits_set(struct slu_verbs_context *context, const struct ibv_device_attr *attr,
                          const struct ibv_port_attr *port);

/* path.c */
#define SLU_VERBS_MTU_UNKNOWN IBV_MTU_256 /* for a port that reports none: every port has it */
#define SLU_VERBS_PKEY_FULL 0x8000        /* the other bits name the partition */
#define SLU_VERBS_ADDRESS_CHARS 64
/* Writes "RoCE v2 192.0.2.1", "RoCE v1 fe80::1" or "GID fe80::1". */
void slu_verbs_gid_text(const uint8_t gid[16], uint32_t type, char text[SLU_VERBS_ADDRESS_CHARS]);
/* Returns an upper bound of the entries in the GID tables of all ports. */
uint32_t slu_verbs_gid_entries(struct ibv_context *ibv, uint32_t ports);
/*
 * Reads the path of a port. -ENETDOWN: the port is not active. -EADDRNOTAVAIL: it has no address.
 */
int slu_verbs_path_read(struct ibv_context *ibv, uint8_t port, uint32_t gid_entries,
                        struct slu_verbs_path *path);
/* Returns the path of the context's port, at most PATH_LIFE (10 ms) old. Errors likewise. */
int slu_verbs_path_of(struct slu_verbs_context *context, struct slu_verbs_path *path);
/*
 * Chooses MTU, partition key and other parameters of a queue pair from qp->attr and qp->path.
 * -EINVAL: the port does not have what was asked for.
 */
int slu_verbs_path_choose(struct slu_verbs_qp *qp);
/* Invalidates the path, so that the next queue pair reads it again. Called under events_lock. */
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
/* Destroys a queue of the device. False: the device still has it. */
bool slu_verbs_cq_destroy_part(struct slu_verbs_cq *cq, struct slu_verbs_part *part);
/* Reserves room for the completions of a queue pair; *part is the queue of the device. */
int slu_verbs_cq_reserve(struct slu_verbs_cq *cq, uint32_t entries, uint32_t *part);
void slu_verbs_cq_release(struct slu_verbs_cq *cq, uint32_t entries, uint32_t part);
/* cq.c again */
/* Adds a queue pair to the table of its queue, so that failed completions mark it. */
void slu_verbs_cq_add(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp);
/* Undoes slu_verbs_cq_add(). */
void slu_verbs_cq_remove(struct slu_verbs_cq *cq, struct slu_verbs_qp *qp);
/* Returns a queue pair by its number, or NULL if it was removed. */
struct slu_verbs_qp *slu_verbs_cq_find(struct slu_verbs_cq *cq, uint32_t qpn);
/* Marks a queue as dead. reason is static. */
void slu_verbs_cq_fail(struct slu_verbs_cq *cq, const char *reason);

/* cq_poll.c */
int slu_verbs_cq_poll(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count);
int slu_verbs_cq_arm(struct slu_cq *cq);
int slu_verbs_cq_fd(struct slu_cq *cq);
void slu_verbs_cq_wake(struct slu_cq *cq);
bool slu_verbs_cq_reserve_held(struct slu_verbs_cq *cq, uint32_t count);
/*
 * Ends requests of our own that have completed in a part, and keeps other completions for a poll.
 */
void slu_verbs_cq_end_own(struct slu_verbs_cq *cq, uint32_t part);
/* Drops the completions of a destroyed queue pair and keeps all others, in order. */
void slu_verbs_cq_purge(struct slu_verbs_cq *cq, uint32_t qpn, uint32_t part);

/* events.c */
int slu_verbs_events_open(struct slu_verbs_context *context);
void slu_verbs_events_close(struct slu_verbs_context *context);
/* Reads all pending events and notes them in the objects concerned. Any thread. */
void slu_verbs_events_read(struct slu_verbs_context *context);
/* Wakes threads that sleep on queues concerned by an event. Called under events_lock. */
void slu_verbs_events_wake(struct slu_verbs_context *context);
/* Notes that the device has failed and will report no more events. */
void slu_verbs_events_gone(struct slu_verbs_context *context, int err);
/*
 * Adds a queue pair to those that get events. False: it was not added, because the port has changed
 * since its path was read.
 */
bool slu_verbs_events_add_qp(struct slu_verbs_context *context, struct slu_verbs_qp *qp);
void slu_verbs_events_remove_qp(struct slu_verbs_context *context, struct slu_verbs_qp *qp);
void slu_verbs_events_add_cq(struct slu_verbs_context *context, struct slu_verbs_cq *cq);
void slu_verbs_events_remove_cq(struct slu_verbs_context *context, struct slu_verbs_cq *cq);
bool slu_verbs_cq_alert(struct slu_cq *cq, struct slu_alert *alert);
/* Returns an error if the device, or this queue of it, has failed. */
int slu_verbs_events_prepare(struct slu_verbs_context *context, const struct slu_verbs_cq *cq);
/*
 * Returns an error if an event since the creation of the queue pair prevents a connection, with
 * GIDs (global) or without.
 */
int slu_verbs_events_check(struct slu_verbs_qp *qp, bool global);
/* Notes that the queue pair is connected: from now on its events are failures. */
void slu_verbs_events_connected(struct slu_verbs_qp *qp);

/* watch.c: starts the thread, if it does not run yet. */
int slu_verbs_watch_start(struct slu_verbs_context *context);
void slu_verbs_watch_stop(struct slu_verbs_context *context);
/* Makes the thread wait for events of rdma_cm, too. Called under watch.lock. */
int slu_verbs_watch_cm(struct slu_verbs_context *context, int fd);

/* agreed.c: connections over rdma_cm. For other connections these calls do nothing. */
#ifdef HAVE_RDMACM
/* Prepares a queue pair for rdma_cm. Returns 0, or an error if attributes conflict with it. */
int slu_verbs_qp_expect(struct slu_qp *qp);
/*
 * Applies the parameters that rdma_cm negotiated: those of our side to the queue pair, and those of
 * the peer to an endpoint for a handshake. -EINVAL: an attribute of the channel asks for something
 * else.
 */
int slu_verbs_qp_agree(struct slu_qp *qp, struct slu_cm *cm, struct slu_endpoint *remote);
/* Checks that a connection uses the context's device and port; otherwise -EADDRNOTAVAIL. */
int slu_verbs_cm_check(const struct slu_tcontext *context, const struct slu_cm *cm,
                       const char *who);
/*
 * Binds an established connection to the queue pair, which owns it from now on: the end of one is
 * the end of the other. On failure the caller keeps the connection.
 */
int slu_verbs_qp_bind(struct slu_qp *qp, struct slu_cm *cm);
/* Notifies the peer over rdma_cm that the connection ends. */
void slu_verbs_qp_part(struct slu_verbs_qp *qp);
void slu_verbs_qp_unbind(struct slu_verbs_qp *qp);
/* Handles all pending events of rdma_cm. Called by the thread of the context. */
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
/* Returns how many entries of the completion queue a queue pair can use. */
uint32_t slu_verbs_qp_entries(const struct slu_verbs_qp *qp);
int slu_verbs_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                        struct slu_qp **qp);
void slu_verbs_qp_endpoint(const struct slu_qp *qp, struct slu_endpoint *endpoint);
int slu_verbs_qp_state(const struct slu_qp *qp);
void slu_verbs_qp_query(const struct slu_qp *qp, struct sluice_channel_info *info);
void slu_verbs_qp_error(struct slu_qp *qp);
void slu_verbs_qp_destroy(struct slu_qp *qp);

/* connect.c */
/* Returns whether our packets must have a GRH even if the peer and its LID need none. */
bool slu_verbs_wants_grh(const struct slu_verbs_qp *qp);
int slu_verbs_qp_connect(struct slu_qp *qp, const struct slu_endpoint *remote);

/* hint.c: takes a place to which the peer writes hints of its receives. */
int slu_verbs_hint_open(struct slu_verbs_qp *qp);
void slu_verbs_hint_close(struct slu_verbs_qp *qp);
void slu_verbs_hint_endpoint(const struct slu_verbs_qp *qp, struct slu_endpoint *endpoint);
/* Frees all places of a protection domain, which has no more queue pairs. */
void slu_verbs_hints_end(struct slu_verbs_pd *pd);
/* Counts receives that were posted. */
void slu_verbs_hint_received(struct slu_verbs_qp *qp, uint32_t count);
/*
 * If the peer was asked for hints, waits a bounded time for a receive for the message, if the call
 * blocks.
 */
void slu_verbs_hint_await(struct slu_verbs_qp *qp, bool blocking);
void slu_verbs_qp_slow(struct slu_qp *qp);
/*
 * Ends a step of a wait and yields the processor once the wait has lasted for hot. False: it has
 * reached its maximum.
 */
bool slu_verbs_wait_on(struct slu_verbs_wait *wait, int64_t hot, int64_t most, int64_t most_in_all);
int slu_verbs_qp_probe(struct slu_qp *qp, uint64_t id);
/* Posts a request of our own, when none is in flight. Returns 0, or the result of libibverbs. */
int slu_verbs_own_post(struct slu_verbs_qp *qp, struct ibv_send_wr *wr);
/* Handles the end of a request of our own. Returns whether *to has to be delivered. */
bool slu_verbs_own_ended(struct slu_verbs_cq *cq, const struct ibv_wc *from, struct slu_wc *to);
/*
 * Returns whether a request of our own, which no probe waits for, has failed and was not reported
 * yet.
 */
bool slu_verbs_own_failure(struct slu_verbs_qp *qp, struct slu_alert *alert);

/* farewell.c: chooses the word that the peer writes if it closes the connection. */
int slu_verbs_farewell_open(struct slu_verbs_qp *qp);
/* Begins to notify the peer that this side closes the connection, if the peer supports it. */
void slu_verbs_qp_farewell(struct slu_qp *qp, enum slu_farewell why);
/* Continues a farewell, when no request of our own is in flight. */
void slu_verbs_farewell_step(struct slu_verbs_qp *qp);
/* Waits until the peer was notified, for a bounded time. */
void slu_verbs_farewell_await(struct slu_verbs_qp *qp);
/* Returns whether the peer has written its farewell. */
bool slu_verbs_has_left(const struct slu_verbs_qp *qp);
const char *slu_verbs_qp_loss(const struct slu_qp *qp, bool *closed);

/* post.c: turns a positive errno value of libibverbs into the error of a call, with its text. */
int slu_verbs_fail_post(const struct slu_qp *qp, const char *what, int err);
int slu_verbs_fail_read(const struct slu_qp *qp);
int slu_verbs_post_send(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad);
int slu_verbs_post_receive(struct slu_qp *qp, struct slu_receive_wr *chain,
                           struct slu_receive_wr **bad);

#endif
