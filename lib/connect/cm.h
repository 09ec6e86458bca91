/* SPDX-License-Identifier: MIT */
/*
 * Connections over rdma_cm, for peers that know only that; README.md has what follows from it. A
 * request carries some bytes, and so do its answer or rejection. Neither side proves anything.
 *
 * A connection belongs to one thread at a time until it has a queue pair, and then to the thread
 * that reads the events of its context. slu_cm_read() applies events, and never waits.
 *
 *   outgoing  MADE -> FOUND -> ROUTED -> ANSWERED -> CONNECTED
 *   incoming  ASKED -> ANSWERED -> CONNECTED
 *   both      -> ENDED, with a reason
 */
#ifndef SLU_CONNECT_CM_H
#define SLU_CONNECT_CM_H

#include "connect/address.h"
#include "connect/cm_library.h"

/* Bytes that a request, an answer and a rejection can carry. */
#define SLU_CM_ASK_BYTES 56
#define SLU_CM_ANSWER_BYTES 196
#define SLU_CM_REJECT_BYTES 148

enum slu_cm_state {
    SLU_CM_MADE,
    SLU_CM_FOUND,
    SLU_CM_ROUTED,
    SLU_CM_ASKED, /* a peer wants to connect, and waits for an answer */
    SLU_CM_ANSWERED,
    SLU_CM_CONNECTED,
    SLU_CM_ENDED
};

/* Why a connection ended, as far as the caller can do something about it. */
enum slu_cm_reason {
    SLU_CM_REASON_OTHER,
    SLU_CM_REASON_REJECTED, /* by a program; said has the bytes of the rejection */
    SLU_CM_REASON_NOBODY,   /* no listener is there */
    SLU_CM_REASON_STALE     /* the peer still has an older connection of this number */
};

struct slu_cm {
    struct rdma_cm_id *id;
    enum slu_cm_state state;
    enum slu_cm_reason reason;
    int error;     /* errno value, once the connection has ended */
    char why[120]; /* the reason as text */
    void *owner;   /* of the user */
    /*
     * Reads of this side that the peer answers at a time, and reads that the peer may have in
     * flight.
     */
    uint32_t reads, remote_reads;
    uint32_t said_bytes;
    uint8_t said[SLU_CM_ANSWER_BYTES];
};

/* Callbacks of slu_cm_read(). They must not end a connection. */
struct slu_cm_reader {
    /* A request came, in state ASKED. The callee owns it. NULL: requests are rejected. */
    void (*came)(struct slu_cm_reader *reader, struct slu_cm *cm);
    /* The state of a connection may have changed. May be NULL. */
    void (*happened)(struct slu_cm_reader *reader, struct slu_cm *cm);
    /* The device of a listening id is being removed, so no more requests will come. May be NULL. */
    void (*lost)(struct slu_cm_reader *reader);
};

/*
 * Opens a channel for the events of connections: a kept descriptor that does not block. Returns
 * NULL with a text and errno: EOPNOTSUPP (no rdma_cm here; the text says what to do), EACCES,
 * EMFILE, ENOMEM.
 */
struct rdma_event_channel *slu_cm_events_open(void);
void slu_cm_events_close(struct rdma_event_channel *events);
/* Reads and applies all events that are there. */
void slu_cm_read(struct rdma_event_channel *events, struct slu_cm_reader *reader);

/* These functions return 0, or a negative errno value with a text. */
/* Makes a connection to be dialed. Returns NULL with a text on failure. */
struct slu_cm *slu_cm_make(struct rdma_event_channel *events);
/* Start the steps of a dialer. The state says when each is done. until: an absolute time. */
int slu_cm_find(struct slu_cm *cm, const struct slu_address *address, int64_t until);
int slu_cm_route(struct slu_cm *cm, int64_t until);
int slu_cm_ask(struct slu_cm *cm, struct rdma_conn_param *param, int64_t until);
/* Completes a dialed connection whose queue pair is ready: it is then connected. */
int slu_cm_confirm(struct slu_cm *cm);
/* Answers a request whose queue pair is ready. CONNECTED comes later, by an event. */
int slu_cm_answer(struct slu_cm *cm, struct rdma_conn_param *param);
void slu_cm_reject(struct slu_cm *cm, const char *reason);
/*
 * Tells whether a connection has ended. Before a request is answered, no event reports that the
 * peer left, so this asks rdma_cm.
 */
bool slu_cm_has_ended(struct slu_cm *cm);
/* Moves a connection to another event channel. */
int slu_cm_move(struct slu_cm *cm, struct rdma_event_channel *events);
/* Notifies the peer, if the connection is connected. */
void slu_cm_disconnect(struct slu_cm *cm);
/*
 * Ends and frees a connection. NULL is allowed. Waits for a thread that is reading an event of it.
 */
void slu_cm_end(struct slu_cm *cm);

struct slu_address slu_cm_peer_address(const struct slu_cm *cm);

/*
 * Listens at an address, whose port may be 0. Returns NULL and sets *error to an errno value on
 * failure.
 */
struct rdma_cm_id *slu_cm_listen(struct rdma_event_channel *events,
                                 const struct slu_address *address, int backlog, int *error);
struct slu_address slu_cm_own_address(const struct rdma_cm_id *id);

#endif
