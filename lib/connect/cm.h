/* SPDX-License-Identifier: MIT */
/*
 * The second way to meet: over rdma_cm, with whoever speaks it, where the first one is a
 * TCP connection with words of our own. A connection is asked for with some bytes, and
 * answered with some or rejected with some; what the queue pairs of both sides must know of
 * each other goes along with that, and comes out as attributes for ours. Nobody proves
 * anything.
 *
 * A connection is of one thread at a time until it belongs to a queue pair, and then of
 * whoever reads the events of its context. Its events are applied to it by
 * slu_cm_read(), which never waits.
 *
 *   dialed   MADE -> FOUND -> ROUTED -> ANSWERED -> CONNECTED
 *   came     ASKED -> ANSWERED -> CONNECTED
 *   each     -> ENDED, with a reason
 */
#ifndef SLU_CONNECT_CM_H
#define SLU_CONNECT_CM_H

#include "connect/address.h"
#include "connect/cm_library.h"

/* Bytes that go along with a question, an answer and a rejection. */
#define SLU_CM_ASK_BYTES 56
#define SLU_CM_ANSWER_BYTES 196
#define SLU_CM_REJECT_BYTES 148

enum slu_cm_state {
    SLU_CM_MADE,
    SLU_CM_FOUND,
    SLU_CM_ROUTED,
    SLU_CM_ASKED, /* somebody wants to connect, and waits for an answer */
    SLU_CM_ANSWERED,
    SLU_CM_CONNECTED,
    SLU_CM_ENDED
};

/* Why a connection ended, where somebody else may do better. */
enum slu_cm_reason {
    SLU_CM_REASON_OTHER,
    SLU_CM_REASON_REJECTED, /* by a program; said has what it gave along */
    SLU_CM_REASON_NOBODY,   /* nobody listens there */
    SLU_CM_REASON_STALE     /* the other side has an older connection of this number still */
};

struct slu_cm {
    struct rdma_cm_id *id;
    enum slu_cm_state state;
    enum slu_cm_reason reason;
    int error;     /* once it has ended: a positive errno */
    char why[120]; /* and in words */
    void *owner;   /* the user's */
    /* Of the other side: reads of ours that it answers at a time, and its own. */
    uint32_t reads, remote_reads;
    uint32_t said_bytes;
    uint8_t said[SLU_CM_ANSWER_BYTES];
};

/* What a user does when something has happened to a connection; nothing of it is ended there. */
struct slu_cm_reader {
    /* It is ASKED, and the callee's. NULL: nobody listens. */
    void (*came)(struct slu_cm_reader *reader, struct slu_cm *cm);
    /* Its state may have changed. May be NULL. */
    void (*happened)(struct slu_cm_reader *reader, struct slu_cm *cm);
    /* An id that listens, whose device is being removed: it hears nobody any more. May be NULL. */
    void (*lost)(struct slu_cm_reader *reader);
};

/*
 * Where the events of some connections come to: a descriptor that is kept, and does not
 * block. NULL and a text, with errno: EOPNOTSUPP (there is no rdma_cm here: the text says
 * what to do), EACCES, EMFILE, ENOMEM.
 */
struct rdma_event_channel *slu_cm_events_open(void);
void slu_cm_events_close(struct rdma_event_channel *events);
/* All that there are. */
void slu_cm_read(struct rdma_event_channel *events, struct slu_cm_reader *reader);

/* Each of these returns 0, or a negative errno with a text. */
/* One that is to be dialed: NULL with a text if it cannot be. */
struct slu_cm *slu_cm_make(struct rdma_event_channel *events);
/* Each step of who dials, which is done when the state says so; until: an absolute time. */
int slu_cm_find(struct slu_cm *cm, const struct slu_address *address, int64_t until);
int slu_cm_route(struct slu_cm *cm, int64_t until);
int slu_cm_ask(struct slu_cm *cm, struct rdma_conn_param *param);
/* The last word of who dialed, whose queue pair is ready: it is connected. */
int slu_cm_confirm(struct slu_cm *cm);
/* Of who was asked, whose queue pair is ready: CONNECTED is still to come. */
int slu_cm_answer(struct slu_cm *cm, struct rdma_conn_param *param);
void slu_cm_reject(struct slu_cm *cm, const char *reason);
/*
 * Whether it has ended. Until it is answered no event tells that whoever asked has left: rdma_cm
 * is asked.
 */
bool slu_cm_has_ended(struct slu_cm *cm);
/* It is of other events from now on. */
int slu_cm_move(struct slu_cm *cm, struct rdma_event_channel *events);
/* Tells the other side, if it is connected. */
void slu_cm_disconnect(struct slu_cm *cm);
/* Ends and frees it. NULL is allowed. Waits for who is reading an event of it. */
void slu_cm_end(struct slu_cm *cm);

struct slu_address slu_cm_peer_address(const struct slu_cm *cm);

/* An id that listens at the address, whose port may be 0: NULL, and *error is a positive errno. */
struct rdma_cm_id *slu_cm_listen(struct rdma_event_channel *events,
                                 const struct slu_address *address, int backlog, int *error);
struct slu_address slu_cm_own_address(const struct rdma_cm_id *id);

#endif
