/* SPDX-License-Identifier: MIT */
/*
 * The transport table: all that channel and multichannel code knows about transports. It is
 * modelled on verbs. Objects are base structs that a transport embeds as the first member of its
 * own.
 *
 * Threads: context, PD and MR functions are called from any thread. The
 * functions of a CQ and of the queue pairs on it are called by one thread at a
 * time, between cq_enter and cq_leave if the transport has them; other CQs of
 * the context are used by other threads meanwhile.
 *
 * Failing: int functions return 0 or a negative errno and set the text with
 * slu_fail(). Outputs are set on success only.
 *
 * Credits: the engine never posts more than the depths it asked for at creation, and never has more
 * requests in flight on a CQ than its depth. It posts only to queue pairs that are connected and
 * that it has not put in error.
 */
#ifndef SLU_TRANSPORT_H
#define SLU_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/channel.h>
#include <sluice/context.h>
#include <sluice/device.h>

#include "endpoint/endpoint.h"

struct slu_transport;

/* Base of an open device. */
struct slu_tcontext {
    const struct slu_transport *transport;
    char device[64];
    enum sluice_transport_level level;
    uint32_t port; /* this and the next four as in sluice_context_info */
    uint32_t link_layer;
    uint32_t active_mtu;
    int32_t gid_index;
    int32_t numa_node;
    uint32_t max_send_depth; /* not counting the one that qp_probe() takes */
    uint32_t max_receive_depth;
    uint32_t max_pool_depth; /* receives of a pool; 0: it has no pools */
    uint32_t max_pool_sge;   /* of a receive of a pool */
    uint32_t max_sge;
    uint32_t max_read_sge; /* of a read, if that is less */
    uint32_t max_inline;
    uint32_t max_read_depth;
    uint32_t max_cq_depth;   /* of one queue of the device */
    uint32_t max_cq_entries; /* of a slu_cq, which may be several queues of the device */
    enum sluice_atomics atomics;
    bool no_immediates; /* no request carries an immediate */
    bool by_rdmacm;     /* rdma_cm makes the connections: an endpoint connects nothing */
    uint64_t max_message;
    uint64_t max_region; /* this and the next two: 0 if the device sets no limit */
    uint32_t max_channels;
    uint32_t max_regions;
};

/* Base of a protection domain. */
struct slu_tpd {
    struct slu_tcontext *context;
};

/*
 * Base of a memory region. iova is the address of its first byte in elements
 * and in what peers post; addr is the program's own, NULL if it has none.
 */
struct slu_tmr {
    struct slu_tpd *pd;
    void *addr;
    size_t length;
    uint64_t iova;
    uint32_t lkey;
    uint32_t rkey;
    int dmabuf;             /* of a region without addr: the transport's own descriptor, */
    uint64_t dmabuf_offset; /* and where the first byte is in that dmabuf */
};

/* A piece of a dmabuf to register. No range wraps; iova is offset modulo the page size. */
struct slu_dmabuf {
    int fd; /* open; stays the caller's */
    uint64_t offset;
    size_t length;
    uint64_t iova;
};

/*
 * Base of a completion queue. alerted: cq_alert() has something to report; without cq_alert(), a
 * queue pair has failed, and no request may say so. The transport sets it, from any thread, and
 * wakes the thread that sleeps on the queue. turn: for how long the last yield of a thread that
 * waits let others run, 0 if none could; set by the engine, and cleared by whoever sees it age.
 * patient: set by the program while nothing waits for the completion of a send. The transport may
 * then let completions of sends wake no thread; a poll that finds patient cleared takes them again.
 * messages_only: set once, before there are queue pairs. No peer accesses memory, so only a poll
 * shows the program what has come. A thread that serves the queue meanwhile may be late.
 */
struct slu_cq {
    struct slu_tcontext *context;
    uint32_t depth;
    atomic_bool alerted;
    _Atomic int64_t turn;
    atomic_bool patient;
    bool messages_only;
    struct stripes *stripes; /* state of combined queue pairs, or NULL; see stripes/ */
    struct slu_deferred
        *deferred;             /* of queue pairs connected at first use, or NULL; see deferred/ */
    struct slu_timing *timing; /* the engine's, or NULL: see engine/statistics/timing.h */
};

/*
 * Base of a pool: receives that the queue pairs of a completion queue share. A message takes a
 * receive when it comes, so an idle peer uses none.
 */
struct slu_tpool {
    struct slu_tpd *pd;
    struct slu_cq *cq;
};

struct slu_pool_attr {
    uint32_t depth;
    uint32_t low; /* wake a thread that sleeps on the queue when no more are left */
    uint32_t max_sge;
};

/* Base of a queue pair. peer is the engine's: the index of its peer. */
struct slu_qp {
    struct slu_tpd *pd;
    struct slu_cq *cq;
    uint32_t peer;
    uint64_t taken; /* messages that the engine has received, set before a farewell */
};

/*
 * As in sluice_channel_attr. All fields are final: defaults are applied and limits checked. Only
 * path_mtu and pkey may be 0, for the port's own values.
 */
struct slu_qp_attr {
    uint32_t flags;
    uint32_t send_depth;
    uint32_t receive_depth;
    uint32_t max_sge;
    uint32_t max_read_sge; /* of a read; at most max_sge */
    uint32_t max_inline;
    uint32_t access; /* SLUICE_ACCESS_REMOTE_*, possibly none */
    uint32_t read_depth;
    uint64_t max_message;
    uint32_t path_mtu;
    uint32_t pkey;
    uint32_t service_level;
    uint32_t traffic_class;
    uint32_t flow_label;
    uint32_t hop_limit;
    uint32_t path_bits;
    uint32_t psn; /* if flags have SLUICE_CHANNEL_PSN */
    uint32_t ack_timeout;
    uint32_t retry_count;
    uint32_t rnr_timer;
    uint32_t rnr_retry;
    uint32_t queue_pairs; /* of the transport, combined into one, as is the next: see stripes/ */
    uint32_t stripe_least;
    /* For a further queue pair of a peer, the first one: their endpoints differ only in qpn and
       psn. Otherwise NULL. */
    const struct slu_qp *first;
    /* The pool that receives come from, or NULL. With a pool receive_depth is 0. */
    struct slu_tpool *pool;
    uint32_t pool_share; /* receives of the pool that the peer may use while the program is away */
    bool scarce;         /* few completion entries: none for requests of the transport's own */
};

/* Flags of a send work request, beside SLUICE_IMMEDIATE, _FENCE, _SOLICITED, _INLINE. */
#define SLU_SIGNALED (UINT32_C(1) << 16) /* without it, success makes no completion */
#define SLU_WAITED (UINT32_C(1) << 17)   /* its caller waits for it, not for a peer's message */
#define SLU_MORE (UINT32_C(1) << 18)     /* others of a list follow, so it need not wake the peer */
#define SLU_BLOCKING (UINT32_C(1) << 19) /* of the first: its caller waits for the chain */
#define SLU_BLOCKING_LEAST SLUICE_MS(10) /* for at least this long if necessary */

/*
 * Ids with these bits are reserved for requests of a transport's own. The engine, with ring and
 * peer in the lowest bits, never makes such ids, nor do stripes, with a kind in the highest bits of
 * the lower half.
 */
#define SLU_ID_OWN_MASK UINT64_C(0xe003ffff)
#define SLU_ID_OWN UINT64_C(0xe003fffc)
#define SLU_ID_OWN_SHIFT 32 /* bits above are the transport's */

static inline bool slu_id_is_own(uint64_t id)
{
    return (id & SLU_ID_OWN_MASK) == SLU_ID_OWN;
}

/*
 * Ids of receives of a pool have these lowest bits, and no other ids of the engine or of stripes
 * have.
 */
#define SLU_ID_POOL_MASK UINT64_C(0x3ffff)
#define SLU_ID_POOL UINT64_C(0x14)

static inline bool slu_id_is_pool(uint64_t id)
{
    return (id & SLU_ID_POOL_MASK) == SLU_ID_POOL;
}

/* The number of values of enum sluice_opcode, of which the last ones are atomic operations. */
#define SLU_OPCODES (SLUICE_OP_FETCH_ADD + 1)

static inline bool slu_opcode_is_atomic(uint32_t opcode)
{
    return opcode >= SLUICE_OP_COMPARE_SWAP;
}

/* SGE lists are read during the post only. The completion has the same id. */
struct slu_send_wr {
    struct slu_send_wr *next;
    uint64_t id;
    uint32_t opcode; /* SLUICE_OP_SEND, _WRITE, _READ, _COMPARE_SWAP, _FETCH_ADD */
    uint32_t flags;
    uint32_t immediate; /* host byte order */
    uint32_t sge_count;
    const struct sluice_sge *sges;
    const uint64_t *operand; /* of an atomic operation: two, read during the post only */
    uint64_t remote_addr;
    uint32_t rkey;
};

struct slu_receive_wr {
    struct slu_receive_wr *next;
    uint64_t id;
    uint32_t sge_count;
    const struct sluice_sge *sges;
};

/*
 * Status of a receive whose message was longer and was dropped: bytes is the length of the message,
 * and the queue pair continues. Only with SLUICE_CHANNEL_DROP_LONG, and on no device.
 */
#define SLU_STATUS_DROPPED UINT32_C(255)

/*
 * A completion. On an error only id, status and vendor are valid. Completions
 * of the send queue of a queue pair come in the order of posting, and so do
 * those of its receive queue.
 *
 * Receives of a pool come in any order. The upper bits of their flags are the peer of the queue
 * pair that took the receive, on an error as well; SLU_WC_NO_PEER: it is not known any more.
 *
 * SLU_WC_LENGTHS: a receive has failed because of a message of so many bytes, and immediate is the
 * length of the receive.
 */
#define SLU_WC_PEER_SHIFT 16
#define SLU_WC_NO_PEER (UINT32_C(1) << 15)
#define SLU_WC_LENGTHS (UINT32_C(1) << 14)
struct slu_wc {
    uint64_t id;
    uint64_t bytes; /* of a receive */
    uint32_t status;
    uint32_t vendor;
    uint32_t flags; /* SLUICE_IMMEDIATE, SLUICE_WRITTEN; above */
    uint32_t immediate;
};

/* A failure of a queue pair that an event of the device reported, and no request. */
struct slu_alert {
    struct slu_qp *qp;
    uint32_t status; /* as in a completion */
    uint32_t vendor; /* number of the event */
    bool inferred;   /* the cause is unknown: a request may have a more precise status */
    char reason[160];
};

/* States of a queue pair. */
enum slu_qp_state {
    SLU_QP_PREPARED,
    SLU_QP_CONNECTED, /* our end is ready; the state of the peer's end is unknown */
    SLU_QP_ERROR      /* by qp_error(), by a failed request, or because the peer is lost */
};

/*
 * Reasons of a side to end a connection, as sent to its peer. Part of the protocol: never change
 * one.
 */
enum slu_farewell {
    SLU_FAREWELL_NONE,    /* no reason was given */
    SLU_FAREWELL_CLOSED,  /* the program closed the connection, or reset it */
    SLU_FAREWELL_GAVE_UP, /* a deadline passed, or the program cancelled a request */
    SLU_FAREWELL_FAILED   /* a request failed */
};

/* Bytes were received from the peer; bytes were sent to it. */
#define SLU_MOVED_IN (UINT32_C(1) << 0)
#define SLU_MOVED_OUT (UINT32_C(1) << 1)

/* State of a peer, to explain why posted requests do not complete. */
struct slu_stand {
    bool known;        /* the next three are known */
    bool connected;    /* the peer's end is connected to ours */
    bool unready;      /* our oldest send waits for a receive that the peer has not posted */
    bool sending;      /* a send of the peer waits for a receive that we have not posted */
    int64_t heard;     /* nanoseconds since the peer was last active; negative: not known */
    const char *waits; /* why our end is not connected yet, static; NULL: it is, or not known */
};

struct slu_transport {
    const char *name; /* "verbs", "soft" */
    uint32_t id;      /* SLU_TRANSPORT_*; in the endpoint */
    /* A probe waits for earlier requests, and fails if the peer is not there. */
    bool probe_is_request;
    bool drops_long;  /* it supports SLUICE_CHANNEL_DROP_LONG */
    int64_t hot_spin; /* ns that a wait polls before it yields: see engine/progress/wait.c */

    /* Adds the transport's devices to the list, see device.h. Having none is not an error. */
    int (*device_list)(struct sluice_device_list *list);

    /*
     * Opens a device. attr has been checked and is never NULL. -ENODEV: this transport has no such
     * device.
     */
    int (*open)(const char *device, const struct sluice_context_attr *attr,
                struct slu_tcontext **context);
    void (*close)(struct slu_tcontext *context);

    int (*pd_alloc)(struct slu_tcontext *context, struct slu_tpd **pd);
    void (*pd_free)(struct slu_tpd *pd);
    /* Returns whether a key of one domain can name memory of the other. NULL: never. Any thread. */
    bool (*pds_share_keys)(const struct slu_tpd *a, const struct slu_tpd *b);

    /* Register memory; access has been checked. */
    int (*mr_register)(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                       struct slu_tmr **mr);
    int (*mr_register_dmabuf)(struct slu_tpd *pd, const struct slu_dmabuf *dmabuf, uint32_t access,
                              struct slu_tmr **mr);
    /*
     * Allocates page-aligned, zeroed memory; mr_deregister frees it. access may have
     * SLUICE_MR_HUGE_PAGES, see pages.h. node is the NUMA node of the pages, or SLU_ANY_NODE.
     */
    int (*mr_alloc)(struct slu_tpd *pd, size_t length, uint32_t access, int32_t node,
                    struct slu_tmr **mr);
    /*
     * Makes a region of a part of another one of the context, which outlasts it, with a key and
     * rights of its own; access is at most that of the other. NULL: register the memory again
     * instead.
     */
    int (*mr_part)(struct slu_tpd *pd, struct slu_tmr *of, uint64_t offset, size_t length,
                   uint32_t access, struct slu_tmr **mr);
    /*
     * Makes a region of all memory of this process, for elements of requests of this side alone.
     * NULL: memory must be registered to be used.
     */
    int (*mr_everything)(struct slu_tpd *pd, struct slu_tmr **mr);
    /* Ends a region. On return no peer touches its memory any more. */
    void (*mr_deregister)(struct slu_tmr *mr);

    /*
     * Creates a queue. With a depth above max_cq_depth it grows with its queue pairs, whose depths,
     * plus one for each, must not exceed it in total. With a depth of 0 it gets its entries from
     * cq_extend().
     */
    int (*cq_create)(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq);
    /*
     * Add entries to the depth of a queue, up to max_cq_entries, and take them away. On a device,
     * cq_extend() adds room by a further queue of the device, made when a queue pair needs it;
     * cq_reduce() gives that back when none does. Called between cq_enter and cq_leave.
     */
    int (*cq_extend)(struct slu_cq *cq, uint32_t entries);
    void (*cq_reduce)(struct slu_cq *cq, uint32_t entries);
    /* Destroys a queue, whose queue pairs have all been destroyed. */
    void (*cq_destroy)(struct slu_cq *cq);

    /*
     * Enter and leave a queue; NULL if not needed. In between, the program serves the queue;
     * outside, the transport's helper thread may. Calls do not nest.
     */
    void (*cq_enter)(struct slu_cq *cq);
    void (*cq_leave)(struct slu_cq *cq);

    /*
     * Makes progress and takes up to count completions. Returns their number, or a negative errno
     * if the queue is dead, as are its queue pairs then.
     */
    int (*cq_poll)(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count);
    /*
     * Returns whether a poll would find nothing that the peers have written so far; this takes less
     * than a poll, and nothing is served. False: it may find something. NULL: poll. Called outside
     * cq_enter and cq_leave.
     */
    bool (*cq_is_quiet)(struct slu_cq *cq);

    /*
     * Reads events and takes the next failure of a connected queue pair that they report; each is
     * reported once. NULL if the device has no events. False: there is none, or the whole queue is
     * dead, which cq_poll then reports.
     */
    bool (*cq_alert)(struct slu_cq *cq, struct slu_alert *alert);

    /*
     * Makes cq_fd() readable as soon as there is something to poll. Returns 0 if the queue is armed
     * and was empty afterwards, or 1 if it has to be polled, because it is not empty or is dead. It
     * stays armed until the next cq_poll; wake-ups may be spurious. The queue owns the fd: never
     * read it, never close it.
     */
    int (*cq_arm)(struct slu_cq *cq);
    int (*cq_fd)(struct slu_cq *cq);
    /*
     * Makes cq_fd() readable once, until cq_arm() and cq_poll() have been called. Any thread and
     * signal handlers may call it while the queue exists; keeps errno.
     */
    void (*cq_wake)(struct slu_cq *cq);

    /*
     * Makes a pool for the queue pairs of a queue, which has none yet; NULL if there are no pools.
     * The pool is destroyed after its queue pairs, and before the queue. The receives that it still
     * has then do not complete.
     */
    int (*pool_create)(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_pool_attr *attr,
                       struct slu_tpool **pool);
    void (*pool_destroy)(struct slu_tpool *pool);
    /* Posts a chain, as post_receive() does. No queue pair fails if this fails. */
    int (*pool_post)(struct slu_tpool *pool, struct slu_receive_wr *chain,
                     struct slu_receive_wr **bad);
    /*
     * Takes back a receive that no message has used: true, and it does not complete. False: a
     * message of a peer uses it, or a peer was promised the last receives; force: ends that
     * connection and returns true, unless the receive has completed. NULL if the device cannot do
     * it.
     */
    bool (*pool_take_back)(struct slu_tpool *pool, uint64_t id, bool force);

    int (*qp_create)(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                     struct slu_qp **qp);
    /* Fills in the transport's part of the endpoint: everything but version and transport. */
    void (*qp_endpoint)(const struct slu_qp *qp, struct slu_endpoint *endpoint);
    /*
     * Makes our end ready, without waiting for the peer. remote has been decoded and is of this
     * transport, but its fields must not be trusted. Called once per queue pair.
     */
    int (*qp_connect)(struct slu_qp *qp, const struct slu_endpoint *remote);
    /* Returns enum slu_qp_state from recorded state, so it is cheap. */
    int (*qp_state)(const struct slu_qp *qp);
    /*
     * Adds information on the connection; NULL if not needed. On entry, fields that follow from the
     * attributes are set; all others are 0 or empty, and gid_index is -1.
     */
    void (*qp_query)(const struct slu_qp *qp, struct sluice_channel_info *info);
    /*
     * Asks the peer for a sign of life, which takes no credit. It completes through the CQ with
     * this id: with success once the peer's end is known to be connected and alive, otherwise with
     * an error. At most one at a time.
     */
    int (*qp_probe)(struct slu_qp *qp, uint64_t id);
    /*
     * Reports that a wait takes long while sends to the peer are in flight, so that the transport
     * can prepare to make the next one faster. NULL if not needed.
     */
    void (*qp_slow)(struct slu_qp *qp);
    /* Returns what moved since the last call: SLU_MOVED_*. NULL if not needed. */
    uint32_t (*qp_moved)(struct slu_qp *qp);
    /* Fills in the fields it knows; on entry all are 0, and heard is -1. NULL if it knows none. */
    void (*qp_stand)(const struct slu_qp *qp, struct slu_stand *stand);
    /*
     * Returns a text on why the peer was lost, or NULL if the status has all that is known.
     * *closed: the peer reported that it closed the connection. NULL if it never knows.
     */
    const char *(*qp_loss)(const struct slu_qp *qp, bool *closed);
    /*
     * Sets the reason that the peer gets when the following qp_error() ends the connection; the
     * first reason counts. NULL if not needed. A qp_error() may wait a bounded time until the peer
     * is notified. Several queue pairs of a CQ share that time, if each gets its farewell before
     * the first qp_error().
     */
    void (*qp_farewell)(struct slu_qp *qp, enum slu_farewell why);
    /*
     * Returns whether the peer has closed and said how many messages it has received. *untaken: how
     * many of those posted here are not among them; the flush of an earlier one is a success whose
     * acknowledgement came too late. NULL: it never knows.
     */
    bool (*qp_untaken)(const struct slu_qp *qp, uint64_t *untaken);
    /* Enters the error state. All posted requests complete through the CQ soon. */
    void (*qp_error)(struct slu_qp *qp);
    /*
     * Destroys a queue pair. On return no buffer is touched any more. Completions delivered
     * afterwards have ids that the engine does not know, and it discards them.
     */
    void (*qp_destroy)(struct slu_qp *qp);

    /*
     * Posts a chain. On failure *bad is the first request that was not taken;
     * the engine then calls qp_error and completes those by hand.
     */
    int (*post_send)(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad);
    int (*post_receive)(struct slu_qp *qp, struct slu_receive_wr *chain,
                        struct slu_receive_wr **bad);
};

extern const struct slu_transport slu_transport_soft;
#ifdef HAVE_VERBS
extern const struct slu_transport slu_transport_verbs;
#endif

/* The transports that were built in, in order of preference. */
extern const struct slu_transport *const slu_transports[];
extern const uint32_t slu_transport_count;

#endif
