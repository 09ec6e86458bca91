/* SPDX-License-Identifier: MIT */
/*
 * A listener: an offer with a queue of those who stand, and an epoll set of its own, which
 * is what a program watches. Whoever calls drives it; a timer in the set tells when it is
 * to be looked at though nothing comes.
 */
#ifndef SLU_LISTENER_H
#define SLU_LISTENER_H

#include <sys/queue.h>

#include <sluice/connect.h>

#include "base/base.h"
#include "connect/address.h"
#include "connect/dial.h"
#include "connect/negotiation.h"
#include "connect/secret.h"

/* That sluice_accept() and doors let in at a time: at least, and at most. */
#define SLU_LET_IN_LEAST 16
#define SLU_LET_IN_MOST 1024
/* Of a hello: version and number of channels, and then private data. */
#define SLU_CONNECT_HEAD 8

struct slu_cm;
struct slu_gate;
struct slu_admission;
TAILQ_HEAD(slu_admissions, slu_admission);

struct sluice_listener {
    uint32_t magic;
    uint32_t holds; /* its program, and all who have come and are not let in or refused yet */
    int epoll, event, timer;
    int64_t timer_at; /* when the timer ends; SLUICE_FOREVER: it is not set */
    int64_t next_due; /* no admission has anything to do before, unless something comes */
    atomic_bool woken;
    uint32_t backlog, waiting;
    uint32_t last_id;
    struct sluice_incoming *first, *last;
    struct slu_admissions under_way, finished, ready; /* the oldest first */
    struct slu_admission *fresh;                      /* began to connect last; NULL: none */
    struct slu_admission **slots;                     /* those under way, by the data of events */
    uint32_t slot_count;
    uint32_t let_in_count, let_in_most; /* under way, of sluice_accept() and doors */
    struct slu_address address;
    struct slu_secret secret;
    struct slu_gate *gate; /* over rdma_cm; NULL: over TCP, with the offers */
    struct slu_negotiations offers;
};

static inline bool slu_is_listener(const struct sluice_listener *listener)
{
    return listener != NULL && listener->magic == SLU_MAGIC_LISTENER;
}

/* -EINVAL with a text. */
static inline int slu_not_a_listener(const struct sluice_listener *listener)
{
    return slu_misuse(EINVAL, "not a listener%s", slu_none_hint(listener));
}

/* In the queue of its listener, or the program's. */
struct sluice_incoming {
    uint32_t magic;
    uint32_t id;
    struct sluice_listener *listener;
    struct sluice_incoming *next;
    int fd;            /* -1: it came over rdma_cm */
    struct slu_cm *cm; /* NULL: over TCP, or it is the channel's by now */
    struct slu_session session;
    struct slu_address address;
    uint32_t version, channels;
    struct sluice_private_data private_data;
};

/* The secret of an attribute, or of the environment. */
int slu_listener_secret(const char *path, struct slu_secret *secret);
/* -EINVAL, unless it is NULL or what it says is possible. */
int slu_private_data_check(const struct sluice_private_data *data);

/* listen.c: host and port of an address; of it the whole is said: 0, or an error with a text. */
int slu_listen_parse(const char *address, const char *text, struct slu_host_port *where);
/* Its addresses of this host, of which it has one: how many, or an error with a text. */
int slu_listen_find(const struct slu_host_port *where, struct slu_address *addresses);
int slu_listen_fail(int error, const char *address);
int slu_listen_fail_watch(int error);
/* connect.c: the addresses of host and port that are dialed: how many, or an error with a text. */
int slu_connect_find(const char *name, const char *text, int64_t until,
                     struct slu_address addresses[SLU_DIAL_MOST]);

/* listener.c: those who come go to the queue of the listener from then on. */
int slu_listener_start(struct sluice_listener *listener);
/* Waits until then for something to happen, and does what is to be done. */
void slu_listener_progress(struct sluice_listener *listener, int64_t until);
/* Whether it was woken, which is over then. */
bool slu_listener_was_woken(struct sluice_listener *listener);
/*
 * Ends each call of the program: keeps the descriptor readable while an incoming connection waits
 * or an admission is finished, for another call may have driven the listener that far.
 */
void slu_listener_leave(struct sluice_listener *listener);
/* accept.c: ends all that sluice_accept() has begun and nobody will take: how many. */
uint32_t slu_accept_end(struct sluice_listener *listener, const char *why);
void slu_listener_drop(struct sluice_listener *listener);
/* It waits for its program from now on: its fields are filled but for those of the queue. */
void slu_listener_add(struct sluice_listener *listener, struct sluice_incoming *incoming);
int slu_listener_watch(const struct sluice_listener *listener, int fd, uint32_t events,
                       uint64_t data);
/* Of the data of events: that somebody came over rdma_cm, or left. */
#define SLU_GATE_TAG (UINT64_C(5) << 32)
/* That an admission has a whole step or its end, or its channel has something; below: its slot. */
#define SLU_ADMISSION_TAG (UINT64_C(6) << 32)
/* The first of those who wait and have not left, which is the caller's; NULL: nobody does. */
struct sluice_incoming *slu_listener_take(struct sluice_listener *listener);
/* Over rdma_cm: those who wait no longer. */
void slu_listener_drop_left(struct sluice_listener *listener);
/* Closes what it has of its connection, and frees it. */
void slu_incoming_free(struct sluice_incoming *incoming);

/* incoming.c: its program asks for one channel: 0, or -EINVAL with a text. */
int slu_incoming_check(const struct sluice_incoming *incoming);
/* Ends it; the other side hears the reason, or of NULL the thread's text, which stays. */
int slu_incoming_give_up(struct sluice_incoming *incoming, int error, const char *reason);

/* listen.c: sluice_listen() with a secret that is in no file, which is copied. */
struct sluice_listener *slu_listen_secretly(const char *address, const struct slu_secret *secret);

/* connect.c: for sluice_connect() where all is known that a name and a file would tell. */
struct slu_dialed {
    const char *name; /* in texts */
    const struct slu_address *addresses;
    uint32_t count;
    struct slu_secret secret; /* the caller's */
};
struct sluice_channel *slu_connect_dialed(const struct slu_dialed *dialed, struct sluice_pd *pd,
                                          const struct sluice_channel_attr *attr,
                                          const struct sluice_connect_attr *options,
                                          int64_t deadline);

#endif
