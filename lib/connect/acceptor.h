/* SPDX-License-Identifier: MIT */
/*
 * Admission of connections. Each that has not proven anything yet takes one of a few places, since
 * it costs a descriptor; README.md says which is evicted for another. Silent ones, and those that
 * may replay a recorded hello, cannot take the places of each other, and a peer that sends at once
 * what is expected has its chance, however many come.
 *
 * An acceptor belongs to one thread at a time, which has an epoll set for it.
 */
#ifndef SLU_CONNECT_ACCEPTOR_H
#define SLU_CONNECT_ACCEPTOR_H

#include <stdatomic.h>

#include "connect/stream.h"

#define SLU_PLACES 128
#define SLU_LISTENERS 8

struct slu_pending_conn {
    struct slu_talk talk;
    int64_t since;
    bool known;    /* it has shown that it knows the key of the listener */
    bool spoke;    /* it has sent all that can be sent without a proof */
    bool begun;    /* it began with the magic, which later bytes may overwrite in talk */
    bool is_unix;  /* it came over a Unix socket */
    bool answered; /* of the user */
    uint8_t stage; /* of the user; 0 at first */
};

enum slu_received {
    SLU_RECEIVED_MORE,  /* talk.want says how much is to come */
    SLU_RECEIVED_TAKEN, /* the callee owns the socket, which is still in the epoll set */
    SLU_RECEIVED_DROP   /* close it */
};

struct slu_acceptor {
    /* Called when all wanted bytes have come. */
    enum slu_received (*receive)(struct slu_acceptor *acceptor, struct slu_pending_conn *conn);
    uint32_t places; /* in use: fewer than SLU_PLACES if the process may open few files */
    /* How many bytes a connection must send first, and how they must begin. */
    uint32_t hello, magic_bytes;
    const uint8_t *magic;
    int epoll;
    uint64_t tag; /* events have this as data, plus a number below 2^32 */
    int listeners[SLU_LISTENERS];
    bool is_unix[SLU_LISTENERS];
    uint32_t count;
    bool paused; /* the listeners are not watched */
    /* errno value of a failed accept that was logged; 0: none. Any thread may read it. */
    atomic_int starved;
    uint32_t ended; /* connections in a row that ended before they were accepted */
    int64_t pause_since;
    uint32_t drawn; /* the last pseudo-random number */
    struct slu_pending_conn conns[SLU_PLACES];
};

/* Strangers get no more than a quarter of the files that the process may open. */
void slu_acceptor_init(struct slu_acceptor *acceptor, int epoll, uint64_t tag);
/*
 * Takes a listening socket, even if it fails. Returns 0, or a negative errno value without a text.
 */
int slu_acceptor_add(struct slu_acceptor *acceptor, int listener);
void slu_acceptor_close(struct slu_acceptor *acceptor);
/* Drops all connections that have a place. */
void slu_acceptor_clear(struct slu_acceptor *acceptor);
/* Handles an event. data is that of the event, without the tag. */
void slu_acceptor_event(struct slu_acceptor *acceptor, uint32_t data);
/* Drops connections that have taken too long. Returns false if no further tick is needed. */
bool slu_acceptor_tick(struct slu_acceptor *acceptor, int64_t now);
bool slu_acceptor_is_busy(const struct slu_acceptor *acceptor);

#endif
