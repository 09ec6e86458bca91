/* SPDX-License-Identifier: MIT */
/*
 * Letting connections in: those that have not proven anything yet have a place each, of
 * which there are few, for they cost a descriptor. If all places are taken when somebody
 * comes, another one makes room: of those that are silent, or of those that said all that can
 * be said without a proof, which may be what was recorded; neither can take the places of the
 * others. Of a kind the oldest goes, and before it is 10 ms old any of them, so that whoever
 * says at once what is expected of it has its chance however many come. A stranger that keeps
 * thousands of connections gets as many closed. Who has shown that it knows the key of a
 * listener has a second before it makes room.
 *
 * An acceptor belongs to one thread at a time, which has an epoll set for it.
 */
#ifndef SLU_CONNECT_ACCEPTOR_H
#define SLU_CONNECT_ACCEPTOR_H

#include "connect/stream.h"

#define SLU_PLACES 128
#define SLU_LISTENERS 8

struct slu_pending_conn {
    struct slu_talk talk;
    int64_t since;
    bool known;    /* it has shown that it knows the key of the listener, as few others have */
    bool spoke;    /* it has said all that can be said without a proof */
    bool begun;    /* as it must: what it says next may replace that in the talk */
    bool is_unix;  /* came over a Unix socket */
    uint8_t stage; /* the user's; 0 at first */
};

enum slu_heard {
    SLU_HEARD_MORE,  /* talk.want says how much is to come */
    SLU_HEARD_TAKEN, /* its socket is the callee's now, and still in the epoll set */
    SLU_HEARD_DROP   /* close it */
};

struct slu_acceptor {
    /* All that was wanted of it is there. */
    enum slu_heard (*hear)(struct slu_acceptor *acceptor, struct slu_pending_conn *conn);
    uint32_t places; /* that are used: fewer than there are if the process may open few files */
    /* How much a connection is to say first, and how that must begin. */
    uint32_t hello, magic_bytes;
    const uint8_t *magic;
    int epoll;
    uint64_t tag; /* of the data of events: this, and below 2^32 what is its own */
    int listeners[SLU_LISTENERS];
    bool is_unix[SLU_LISTENERS];
    uint32_t count;
    bool paused;    /* no listener is watched */
    int starved;    /* nothing can be accepted, and that was said: a positive errno */
    uint32_t ended; /* connections before they were accepted, since the last that was */
    int64_t pause_since;
    uint32_t drawn; /* the last of numbers that are as good as random here */
    struct slu_pending_conn conns[SLU_PLACES];
};

/* Of the files that the process may have open, strangers get no more than a quarter. */
void slu_acceptor_init(struct slu_acceptor *acceptor, int epoll, uint64_t tag);
/* Takes a listening socket: 0, or a negative errno without a text; the socket is taken anyway. */
int slu_acceptor_add(struct slu_acceptor *acceptor, int listener);
void slu_acceptor_close(struct slu_acceptor *acceptor);
/* All that have a place lose it. */
void slu_acceptor_clear(struct slu_acceptor *acceptor);
/* Something happened: data is that of the event, without the tag. */
void slu_acceptor_event(struct slu_acceptor *acceptor, uint32_t data);
/* Drops those who have taken too long; false: it needs no further look. */
bool slu_acceptor_tick(struct slu_acceptor *acceptor, int64_t now);
bool slu_acceptor_is_busy(const struct slu_acceptor *acceptor);

#endif
