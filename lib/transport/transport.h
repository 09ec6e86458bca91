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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/channel.h>
#include <sluice/context.h>
#include <sluice/device.h>

#include "endpoint.h"

struct slu_transport;

/* Base of an open device. */
struct slu_tcontext {
    const struct slu_transport *transport;
    char device[64];
    enum sluice_transport_level level;
    uint32_t max_send_depth;
    uint32_t max_receive_depth;
    uint32_t max_sge;
    uint32_t max_inline;
    uint32_t max_read_depth;
    uint32_t max_cq_depth;
    uint64_t max_message;
};

/* Base of a protection domain. */
struct slu_tpd {
    struct slu_tcontext *context;
};

/* Base of a memory region. remote_addr is what peers name its first byte by. */
struct slu_tmr {
    struct slu_tpd *pd;
    void *addr;
    size_t length;
    uint64_t remote_addr;
    uint32_t lkey;
    uint32_t rkey;
};

/* Base of a completion queue. */
struct slu_cq {
    struct slu_tcontext *context;
    uint32_t depth;
};

/* Base of a queue pair. */
struct slu_qp {
    struct slu_tpd *pd;
    struct slu_cq *cq;
};

/* All fields are final: defaults applied, limits checked. */
struct slu_qp_attr {
    uint32_t send_depth;
    uint32_t receive_depth;
    uint32_t max_sge;
    uint32_t max_inline;
    uint32_t access; /* SLUICE_ACCESS_REMOTE_*, possibly none */
    uint32_t read_depth;
    uint32_t ack_timeout;
    uint32_t retry_count;
    uint64_t max_message;
};

/* Flags of a send work request, beside SLUICE_IMMEDIATE, _FENCE, _SOLICITED, _INLINE. */
#define SLU_SIGNALED (UINT32_C(1) << 16) /* without it, success makes no completion */

/* SGE lists are read during the post only. id comes back in the completion. */
struct slu_send_wr {
    struct slu_send_wr *next;
    uint64_t id;
    uint32_t opcode; /* SLUICE_OP_SEND, _WRITE, _READ */
    uint32_t flags;
    uint32_t immediate; /* host byte order */
    uint32_t sge_count;
    const struct sluice_sge *sges;
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
 * A completion. On an error only id, status and vendor are valid. Completions
 * of the send queue of a queue pair come in the order of posting, and so do
 * those of its receive queue.
 */
struct slu_wc {
    uint64_t id;
    uint64_t bytes; /* of a receive */
    uint32_t status;
    uint32_t vendor;
    uint32_t flags; /* SLUICE_IMMEDIATE */
    uint32_t immediate;
};

/* What a queue pair can say of its connection. */
enum slu_qp_state {
    SLU_QP_PREPARED,
    SLU_QP_CONNECTED, /* our end is ready; nothing is known of the peer's */
    SLU_QP_ERROR      /* by qp_error(), by a failed request, or because the peer is lost */
};

struct slu_transport {
    const char *name; /* "verbs", "soft" */
    uint32_t id;      /* SLU_TRANSPORT_*; in the endpoint */

    /*
     * Appends descriptions of the devices to an array grown with realloc(3).
     * No device is no error.
     */
    int (*device_list)(struct sluice_device_info **infos, uint32_t *count);

    /* attr has been checked and is never NULL. -ENODEV: no such device of this transport. */
    int (*open)(const char *device, const struct sluice_context_attr *attr,
                struct slu_tcontext **context);
    void (*close)(struct slu_tcontext *context);

    int (*pd_alloc)(struct slu_tcontext *context, struct slu_tpd **pd);
    void (*pd_free)(struct slu_tpd *pd);

    /* access has been checked. mr_alloc: page-aligned and zeroed; freed by mr_deregister. */
    int (*mr_register)(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                       struct slu_tmr **mr);
    int (*mr_alloc)(struct slu_tpd *pd, size_t length, uint32_t access, struct slu_tmr **mr);
    /* On return no peer touches the memory any more. */
    void (*mr_deregister)(struct slu_tmr *mr);

    int (*cq_create)(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq);
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
     * Asks that cq_fd() becomes readable when there is something to poll. 0:
     * armed, and nothing was there afterwards; 1: there is something, or the
     * queue is dead: poll. It stays armed until the next cq_poll; wake-ups may
     * be spurious. The fd is the queue's own: never read it, never close it.
     */
    int (*cq_arm)(struct slu_cq *cq);
    int (*cq_fd)(struct slu_cq *cq);

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
