/* SPDX-License-Identifier: MIT */
/*
 * Two sides that know each other's endpoint come to have one connection, and each
 * nothing but that. One of them leads: it dials at once. The other one does so a moment
 * later, for the first may be where nobody can be dialed from, or dialed to. Addresses
 * are dialed one after the other, each while those before it have not answered yet, so
 * that no silent one holds up another. The side that leads takes the first connection
 * over which both have proven themselves, and all others are closed. greeting.h has the words.
 *
 * Near processes meet over a Unix socket alone, and each looks at what the kernel says of
 * the other. Whoever is of another network is never met at an address of one's own.
 *
 * A peer is lost if it is certain that it is not there: it is near, or was reached
 * before, and now all refuse or deny it; or all addresses have refused, denied or hung up
 * for some time; or none of them could be reached for a long time. Silence proves nothing.
 *
 * A meeting belongs to one thread at a time, which has an epoll set for it.
 */
#ifndef SLU_CONNECT_MEETING_H
#define SLU_CONNECT_MEETING_H

#include "connect/acceptor.h"
#include "connect/greeting.h"
#include "connect/identity.h"

/* Those of an endpoint, and the loopback of two families. */
#define SLU_MEETING_ADDRESSES (SLU_ENDPOINT_ADDRESSES + 2)
#define SLU_MEETING_GUESTS 4
/* Events have the number of an attempt or guest in so many bits. */
#define SLU_MEETING_BITS 4

enum slu_attempt_state {
    SLU_ATTEMPT_NONE,       /* no socket */
    SLU_ATTEMPT_CONNECTING, /* connect(2) is under way */
    SLU_ATTEMPT_ASKING,     /* our hello is said, the answer is not here */
    SLU_ATTEMPT_STANDING    /* our proof is given: the peer was there, and may take its time */
};

enum slu_outcome {
    SLU_OUTCOME_NONE,
    SLU_OUTCOME_REFUSED, /* nobody listens, or denies that it is there */
    SLU_OUTCOME_HUNG_UP, /* ended without an answer, or with another one */
    SLU_OUTCOME_AWAY,    /* there is no way to it */
    SLU_OUTCOME_UNSURE   /* silent, or we could not try */
};

struct slu_attempt {
    struct slu_address address; /* family 0: the Unix socket of the peer */
    struct slu_talk talk;
    enum slu_attempt_state state;
    enum slu_outcome outcome; /* of the last time */
    uint32_t failures;
    int64_t since, next;
};

/* Who came to us, and has shown that it knows our key. */
struct slu_guest {
    struct slu_talk talk; /* hello, challenge, its proof, and then its choice */
    int64_t since;
    bool is_unix;
    bool proven; /* and both keys; our proof is given, its choice is due */
};

struct slu_meeting_peer {
    struct slu_side side;
    struct slu_identity identity;
    uint64_t listener; /* the name of its Unix socket */
    uint32_t number;
    bool everywhere; /* it listens at all addresses of its host */
    struct slu_address addresses[SLU_ENDPOINT_ADDRESSES];
};

struct slu_meeting {
    int epoll;
    uint64_t tag; /* of the data of events: this, and below 16 what is its own */
    struct slu_side own;
    uint32_t number;
    bool known; /* from here on the peer is known */
    bool leads, near, same_network;
    bool fresh;   /* it became known, and nothing was done since */
    bool reached; /* the peer has answered once */
    bool starved; /* there were no descriptors, and that was said */
    struct slu_meeting_peer peer;
    int64_t absent_since, away_since; /* 0: not */
    uint32_t attempt_count;
    struct slu_attempt attempts[SLU_MEETING_ADDRESSES];
    struct slu_guest guests[SLU_MEETING_GUESTS];
};

enum slu_meeting_state {
    SLU_MEETING_ON,
    SLU_MEETING_MET, /* *fd is the caller's, and the meeting is over */
    SLU_MEETING_LOST
};

void slu_meeting_init(struct slu_meeting *meeting, int epoll, uint64_t tag,
                      const struct slu_side *own, uint32_t number);
/* Dials nobody itself: slu_meeting_tick() does, which is due at once. */
void slu_meeting_begin(struct slu_meeting *meeting, const struct slu_identity *own,
                       const struct slu_meeting_peer *peer);
/* Closes all that it has. */
void slu_meeting_end(struct slu_meeting *meeting);
/* *next: when it is due again; it is not raised. */
enum slu_meeting_state slu_meeting_tick(struct slu_meeting *meeting, int64_t now, int64_t *next,
                                        int *fd);
enum slu_meeting_state slu_meeting_event(struct slu_meeting *meeting, uint32_t slot, int *fd);
/* Takes the socket of one that has said hello, heard our challenge, and given a proof. */
enum slu_meeting_state slu_meeting_welcome(struct slu_meeting *meeting,
                                           const struct slu_pending_conn *conn, int *fd);

#endif
