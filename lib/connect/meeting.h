/* SPDX-License-Identifier: MIT */
/*
 * Lets two sides that know each other's endpoint end up with exactly one connection. One of them
 * leads and dials at once; the other one dials FOLLOW_TIME later, in case the first cannot dial it.
 * The leading side takes the first connection over which both sides have proven themselves, and
 * closes all others. greeting.h describes the messages. If the sides are near, and
 * the one that follows knows its peer when the hello comes, they are three: hello; challenge and
 * proof; proof and choice.
 *
 * Near processes connect only over a Unix socket, and each checks what the kernel says about the
 * other. A peer of another network is never accepted at an address of this one. If the network of
 * either side is not known, the peer may be at any address, and its proof is the only check.
 *
 * A peer is lost if it is certain that it is not there: it is near, or was reached before, and now
 * all addresses refuse or deny; or all addresses have refused, denied or hung up for ABSENT_TIME,
 * but for those that this host has no route to; or none could be reached for AWAY_TIME. Silence
 * proves nothing.
 *
 * A meeting belongs to one thread at a time, which has an epoll set for it.
 */
#ifndef SLU_CONNECT_MEETING_H
#define SLU_CONNECT_MEETING_H

#include "connect/acceptor.h"
#include "connect/greeting.h"
#include "connect/identity.h"

/* Addresses of an endpoint, and the loopback of two families. */
#define SLU_MEETING_ADDRESSES (SLU_ENDPOINT_ADDRESSES + 2)
#define SLU_MEETING_GUESTS 4
/* Events have the number of an attempt or a guest in this many bits. */
#define SLU_MEETING_BITS 4

enum slu_attempt_state {
    SLU_ATTEMPT_NONE,       /* no socket */
    SLU_ATTEMPT_CONNECTING, /* connect(2) is in progress */
    SLU_ATTEMPT_ASKING,     /* the hello is sent, and the answer not here yet */
    SLU_ATTEMPT_STANDING    /* the proof is sent: the peer is there, and may take its time */
};

enum slu_outcome {
    SLU_OUTCOME_NONE,
    SLU_OUTCOME_REFUSED,  /* no listener is there, or it denies that the peer is */
    SLU_OUTCOME_HUNG_UP,  /* ended without a valid answer */
    SLU_OUTCOME_AWAY,     /* it cannot be reached */
    SLU_OUTCOME_NO_ROUTE, /* the same, because this host has no route to it */
    SLU_OUTCOME_UNSURE    /* it is silent, or dialing was not possible */
};

struct slu_attempt {
    struct slu_address address; /* family 0: the Unix socket of the peer */
    struct slu_talk talk;
    enum slu_attempt_state state;
    enum slu_outcome outcome; /* of the last attempt */
    bool chosen;              /* both proofs are exchanged, and the choice of a leader is sent */
    uint32_t failures;
    uint32_t hang_ups; /* one after the other, each soon after it stood */
    int64_t since, next;
};

/*
 * A connection that the peer dialed, and over which it has shown that it knows the key of this
 * side.
 */
struct slu_guest {
    struct slu_talk talk; /* hello, challenge, the peer's proof, and then its choice */
    int64_t since;
    bool is_unix;
    bool answered; /* the own proof is sent, before the peer's has come */
    bool proven;   /* with both keys; the own proof is sent, the peer's choice is due */
};

struct slu_meeting_peer {
    struct slu_side side;
    struct slu_identity identity;
    uint64_t listener; /* names its Unix socket */
    uint32_t number;
    bool everywhere; /* it listens at all addresses of its host */
    struct slu_address addresses[SLU_ENDPOINT_ADDRESSES];
};

struct slu_meeting {
    int epoll;
    uint64_t tag; /* events have this as data, plus a number below 16 */
    struct slu_side own;
    uint32_t number;
    bool known; /* peer and what follows are set */
    bool leads, near, same_network;
    bool anywhere; /* it is not known whether the peer is on this host */
    bool fresh;    /* the peer became known after the last tick */
    bool reached;  /* the peer has answered once */
    int starved;   /* errno value of a lack of descriptors or memory, which was logged; 0: none */
    struct slu_meeting_peer peer;
    int64_t absent_since, away_since; /* 0: it is not */
    uint32_t attempt_count;
    struct slu_attempt attempts[SLU_MEETING_ADDRESSES];
    struct slu_guest guests[SLU_MEETING_GUESTS];
};

enum slu_meeting_state {
    SLU_MEETING_ON,
    SLU_MEETING_MET, /* the caller owns *fd, and the meeting is over */
    SLU_MEETING_LOST
};

void slu_meeting_init(struct slu_meeting *meeting, int epoll, uint64_t tag,
                      const struct slu_side *own, uint32_t number);
/* Sets the peer. The first slu_meeting_tick(), which dials, is due at once. */
void slu_meeting_begin(struct slu_meeting *meeting, const struct slu_identity *own,
                       const struct slu_meeting_peer *peer);
/* Closes all sockets of the meeting. */
void slu_meeting_end(struct slu_meeting *meeting);
/* Tells whether the peer is lost (absence.c). Lowers *next to when it may be. */
bool slu_meeting_is_lost(struct slu_meeting *meeting, int64_t now, int64_t *next);
/* Returns why no address of the peer can be reached, as a static text; NULL: that is not known. */
const char *slu_meeting_obstacle(const struct slu_meeting *meeting);
/* Returns a text, static, on what this side lacked for a connection. */
const char *slu_shortage_text(int error);
/* Dials and judges. Lowers *next to when it is due again. */
enum slu_meeting_state slu_meeting_tick(struct slu_meeting *meeting, int64_t now, int64_t *next,
                                        int *fd);
enum slu_meeting_state slu_meeting_event(struct slu_meeting *meeting, uint32_t slot, int *fd);
/*
 * Makes the acceptor's proof for a connection whose hello is answered now, if it may go with the
 * answer: the peer is known, near, leads, and is at the other end. The peer may then choose this
 * connection before its proof has come, so the connection must not be evicted meanwhile: others
 * over a network may be so slow that it is. The caller sets conn->answered.
 */
bool slu_meeting_prove_early(const struct slu_meeting *meeting, const struct slu_pending_conn *conn,
                             uint8_t proof[SLU_PROOF_BYTES]);
/* Takes a socket over which hello, challenge and the peer's proof have been exchanged. */
enum slu_meeting_state slu_meeting_welcome(struct slu_meeting *meeting,
                                           const struct slu_pending_conn *conn, int *fd);

#endif
