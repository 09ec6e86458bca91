/* SPDX-License-Identifier: MIT */
/*
 * The transport table: the whole of what channel and multichannel code knows
 * about what carries the bytes. It is shaped like verbs. Objects are base
 * structs that a transport embeds as the first member of its own.
 *
 * Threads: context, PD and MR functions are called from any thread. The
 * functions of a CQ and of the queue pairs on it are called by one thread at a
 * time, between cq_enter and cq_leave if the transport has them; other CQs of
 * the context are used by other threads meanwhile.
 *
 * Failing: int functions return 0 or a negative errno and set the text with
 * slu_fail(). Outputs are set on success only.
 *
 * Credits: the engine never posts more than the depths it asked for at
 * creation, never has more requests in flight on a CQ than its depth, and
 * never posts to a queue pair that is not connected or that it put in error.
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
    uint32_t max_send_depth; /* beside the one that qp_probe() takes */
    uint32_t max_receive_depth;
    uint32_t max_sge;
    uint32_t max_read_sge; /* of a read, if that is less */
    uint32_t max_inline;
    uint32_t max_read_depth;
    uint32_t max_cq_depth;   /* of one queue of the device */
    uint32_t max_cq_entries; /* of a slu_cq, which may be several queues of the device */
    enum sluice_atomics atomics;
    uint64_t max_message;
    uint64_t max_region; /* this and the next two: 0 where the device sets none */
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
    int fd; /* it is open */
    uint64_t offset;
    size_t length;
    uint64_t iova;
};

/*
 * Base of a completion queue. alerted: cq_alert() has something to say. The
 * transport sets it, from any thread, and wakes whoever sleeps on the queue.
 */
struct slu_cq {
    struct slu_tcontext *context;
    uint32_t depth;
    atomic_bool alerted;
    struct stripes *stripes;   /* of its queue pairs, if they are of several; see stripes/ */
    struct slu_timing *timing; /* the engine's, if it has some: see engine/timing.h */
};

/* Base of a queue pair. peer is the engine's: which of its peers it belongs to. */
struct slu_qp {
    struct slu_tpd *pd;
    struct slu_cq *cq;
    uint32_t peer;
};

/*
 * As in sluice_channel_attr. All fields are final, defaults applied and limits
 * checked, but where 0 stands for what the port has: path_mtu and pkey.
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
    uint32_t queue_pairs; /* of the transport's that are one; so is the next: see stripes/ */
    uint32_t stripe_least;
    /* Of a further queue pair of a peer: the first one, with whose endpoint it has all in common
       but qpn and psn; else NULL. */
    const struct slu_qp *first;
    bool scarce; /* completion entries are: there are none for requests of the transport's own */
};

/* Flags of a send work request, beside SLUICE_IMMEDIATE, _FENCE, _SOLICITED, _INLINE. */
#define SLU_SIGNALED (UINT32_C(1) << 16) /* without it, success makes no completion */
#define SLU_WAITED (UINT32_C(1) << 17)   /* its caller waits for it, and for nothing of the peer */
#define SLU_MORE (UINT32_C(1) << 18)     /* the rest follows: it alone need not wake the peer */
#define SLU_BLOCKING (UINT32_C(1) << 19) /* of the first: its caller waits, for it and more */
#define SLU_BLOCKING_LEAST SLUICE_MS(10) /* as long as this if need be */

/*
 * Ids that end so are no request's: a transport has them for requests of its own. Neither the
 * engine, which has ring and peer in the lowest bits, nor stripes, which have a kind in the
 * highest of the lower half, makes such ids.
 */
#define SLU_ID_OWN_MASK UINT64_C(0xe003ffff)
#define SLU_ID_OWN UINT64_C(0xe003fffc)
#define SLU_ID_OWN_SHIFT 32 /* what is above is the transport's */

static inline bool slu_id_is_own(uint64_t id)
{
    return (id & SLU_ID_OWN_MASK) == SLU_ID_OWN;
}

/* SGE lists are read during the post only. id comes back in the completion. */
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
 * Status of a receive whose message was longer and was dropped: bytes is the length of the
 * message, and the queue pair goes on. With SLUICE_CHANNEL_DROP_LONG alone; no device has it.
 */
#define SLU_STATUS_DROPPED UINT32_C(255)

/*
 * A completion. On an error only id, status and vendor are valid. Completions
 * of the send queue of a queue pair come in the order of posting, and so do
 * those of its receive queue.
 */
struct slu_wc {
    uint64_t id;
    uint64_t bytes; /* of a receive */
    uint32_t status;
    uint32_t vendor;
    uint32_t flags; /* SLUICE_IMMEDIATE, SLUICE_WRITTEN */
    uint32_t immediate;
};

/* A failure of a queue pair that came by an event of the device and not with a request. */
struct slu_alert {
    struct slu_qp *qp;
    uint32_t status; /* as in a completion */
    uint32_t vendor; /* number of the event */
    bool inferred;   /* it says that the queue pair failed and not why: a request may say more */
    char reason[160];
};

/* What a queue pair can say of its connection. */
enum slu_qp_state {
    SLU_QP_PREPARED,
    SLU_QP_CONNECTED, /* our end is ready; nothing is known of the peer's */
    SLU_QP_ERROR      /* by qp_error(), by a failed request, or because the peer is lost */
};

/* Why a side ends a connection, as it tells its peer: part of the protocol, so none changes. */
enum slu_farewell {
    SLU_FAREWELL_NONE,    /* it has not said why */
    SLU_FAREWELL_CLOSED,  /* the program closed the connection, or reset it */
    SLU_FAREWELL_GAVE_UP, /* a deadline passed, or the program cancelled a request */
    SLU_FAREWELL_FAILED   /* a request failed */
};

/* Bytes of the peer came in; bytes for it left. */
#define SLU_MOVED_IN (UINT32_C(1) << 0)
#define SLU_MOVED_OUT (UINT32_C(1) << 1)

/* Why nothing comes of what was posted: what a queue pair knows of its peer. */
struct slu_stand {
    bool known;     /* the next three are */
    bool connected; /* the peer's end is connected to ours */
    bool unready;   /* our oldest send waits for a receive that the peer has not posted */
    bool sending;   /* a send of the peer waits for a receive that we have not posted */
    int64_t heard;  /* nanoseconds since the peer was heard last; negative: not known */
};

struct slu_transport {
    const char *name;      /* "verbs", "soft" */
    uint32_t id;           /* SLU_TRANSPORT_*; in the endpoint */
    bool probe_is_request; /* it waits for those before it, and fails if the peer is not there */
    bool drops_long;       /* it can do what SLUICE_CHANNEL_DROP_LONG says */
    int64_t hot_spin;      /* ns that a wait polls before it gives way: see engine/wait.c */

    /* Adds its devices to the list, see device.h. No device is no error. */
    int (*device_list)(struct sluice_device_list *list);

    /* attr has been checked and is never NULL. -ENODEV: no such device of this transport. */
    int (*open)(const char *device, const struct sluice_context_attr *attr,
                struct slu_tcontext **context);
    void (*close)(struct slu_tcontext *context);

    int (*pd_alloc)(struct slu_tcontext *context, struct slu_tpd **pd);
    void (*pd_free)(struct slu_tpd *pd);
    /* NULL: no two do. Whether a key of the one can name memory of the other. Any thread. */
    bool (*pds_share_keys)(const struct slu_tpd *a, const struct slu_tpd *b);

    /* access has been checked. */
    int (*mr_register)(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                       struct slu_tmr **mr);
    int (*mr_register_dmabuf)(struct slu_tpd *pd, const struct slu_dmabuf *dmabuf, uint32_t access,
                              struct slu_tmr **mr);
    /*
     * Page-aligned and zeroed; freed by mr_deregister. access may have
     * SLUICE_MR_HUGE_PAGES, see pages.h; node is that of the pages, or SLU_ANY_NODE.
     */
    int (*mr_alloc)(struct slu_tpd *pd, size_t length, uint32_t access, int32_t node,
                    struct slu_tmr **mr);
    /*
     * NULL: its memory is registered again. Makes a region of bytes of another one of the context,
     * which outlasts it, with a key and rights of its own; access is at most that of the other.
     */
    int (*mr_part)(struct slu_tpd *pd, const struct slu_tmr *of, uint64_t offset, size_t length,
                   uint32_t access, struct slu_tmr **mr);
    /* On return no peer touches the memory any more. */
    void (*mr_deregister)(struct slu_tmr *mr);

    /*
     * A depth above max_cq_depth makes a queue that grows with its queue pairs:
     * their depths together, and one for each, must not exceed it. A depth of 0
     * makes one that cq_extend() gives its entries.
     */
    int (*cq_create)(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq);
    /*
     * Room for so many entries more, and for so many less, than cq_create() was asked
     * for or it has by now, which is at most max_cq_entries. Where the device has
     * queues, by one of its own beside those there are, made when a queue pair needs
     * it, and given back by the second when none does. Between cq_enter and cq_leave.
     */
    int (*cq_extend)(struct slu_cq *cq, uint32_t entries);
    void (*cq_reduce)(struct slu_cq *cq, uint32_t entries);
    /* All its queue pairs have been destroyed. */
    void (*cq_destroy)(struct slu_cq *cq);

    /*
     * NULL if not needed. Between them the program serves the queue; outside,
     * the transport's helper thread may. They do not nest.
     */
    void (*cq_enter)(struct slu_cq *cq);
    void (*cq_leave)(struct slu_cq *cq);

    /*
     * Makes progress and takes up to count completions: their number, or a
     * negative errno if the queue is dead (its queue pairs then are as well).
     */
    int (*cq_poll)(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count);

    /*
     * NULL if the device has no events. Looks for them, and takes the next
     * failure of a connected queue pair that they tell of: each is told once.
     * False: there is none, or the whole queue is dead, as cq_poll then says.
     */
    bool (*cq_alert)(struct slu_cq *cq, struct slu_alert *alert);

    /*
     * Asks that cq_fd() becomes readable when there is something to poll. 0:
     * armed, and nothing was there afterwards; 1: there is something, or the
     * queue is dead: poll. It stays armed until the next cq_poll; wake-ups may
     * be spurious. The fd is the queue's own: never read it, never close it.
     */
    int (*cq_arm)(struct slu_cq *cq);
    int (*cq_fd)(struct slu_cq *cq);
    /*
     * Makes cq_fd() readable once, until cq_arm() and cq_poll() have been called.
     * Any thread, and signal handlers, while the queue lives; keeps errno.
     */
    void (*cq_wake)(struct slu_cq *cq);

    int (*qp_create)(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                     struct slu_qp **qp);
    /* Fills its part of the endpoint: everything but version and transport. */
    void (*qp_endpoint)(const struct slu_qp *qp, struct slu_endpoint *endpoint);
    /*
     * Moves our end to ready, without waiting for the peer. remote has been
     * decoded and is of this transport, but its fields are not to be trusted.
     * Called once per queue pair.
     */
    int (*qp_connect)(struct slu_qp *qp, const struct slu_endpoint *remote);
    /* enum slu_qp_state: cheap, from what is known already. */
    int (*qp_state)(const struct slu_qp *qp);
    /*
     * NULL if not needed. Adds what it knows of the connection: what follows
     * from the attributes is there, all else is 0 or empty, and gid_index -1.
     */
    void (*qp_query)(const struct slu_qp *qp, struct sluice_channel_info *info);
    /*
     * Asks the peer for a sign of life, which takes no credit. It completes
     * through the CQ with that id: with success when our end has heard that the
     * peer's is connected and there, or else with why not. At most one at a time.
     */
    int (*qp_probe)(struct slu_qp *qp, uint64_t id);
    /*
     * NULL if not needed. A wait takes long while sends to the peer are out: what can be done so
     * that the next one is quicker is begun.
     */
    void (*qp_slow)(struct slu_qp *qp);
    /* NULL if not needed. What moved since it was asked last: SLU_MOVED_*. */
    uint32_t (*qp_moved)(struct slu_qp *qp);
    /* NULL if it knows nothing. Fills in what it knows; all else is 0, and heard -1. */
    void (*qp_stand)(const struct slu_qp *qp, struct slu_stand *stand);
    /*
     * NULL if it never knows. Why the peer was lost, in words; NULL: the status says it. *closed:
     * whether the peer said that it closed the connection.
     */
    const char *(*qp_loss)(const struct slu_qp *qp, bool *closed);
    /*
     * NULL if not needed. Why the qp_error() that follows ends the connection, for the peer; the
     * first reason counts. A qp_error() may wait a bounded time until the peer is told; for several
     * queue pairs of a CQ that time is one, if each has its farewell before the first qp_error().
     */
    void (*qp_farewell)(struct slu_qp *qp, enum slu_farewell why);
    /* To the error state. Everything posted completes through the CQ, soon. */
    void (*qp_error)(struct slu_qp *qp);
    /*
     * When it returns, no buffer is touched. A completion of it that is still
     * delivered afterwards has an id that the engine does not know, and is
     * discarded there.
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

/* Those built in, in order of preference. */
extern const struct slu_transport *const slu_transports[];
extern const uint32_t slu_transport_count;

#endif
