/* SPDX-License-Identifier: MIT */
/*
 * A listener accepts connections, negotiates with each, and queues those that have proven
 * themselves. The listener has an epoll set of its own, whose descriptor the program watches. Every
 * call of the program drives the listener. A timer in the set makes the descriptor readable when
 * work is due although no event comes.
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

/*
 * Bounds of let_in_most: admissions of sluice_accept() and doors that may be under way at a time.
 */
#define SLU_LET_IN_LEAST 16
#define SLU_LET_IN_MOST 1024
/* Bytes of a hello before its private data: version and number of channels, 4 each. */
#define SLU_CONNECT_HEAD 8

struct slu_cm;
struct slu_gate;
struct slu_admission;
TAILQ_HEAD(slu_admissions, slu_admission);

struct sluice_listener {
    uint32_t magic;
    uint32_t holds; /* one for the program, one for each connection neither let in nor refused */
    int epoll, event, timer;
    int64_t timer_at; /* when the timer expires; SLUICE_FOREVER: it is not set */
    int64_t next_due; /* earliest time at which an admission is due without an event */
    atomic_bool woken;
    uint32_t backlog, waiting;
    uint32_t last_id;
    struct sluice_incoming *first, *last;
    struct slu_admissions under_way, finished, ready; /* oldest first */
    struct slu_admission *fresh;                      /* the last to connect; NULL: none */
    struct slu_admission **slots;                     /* those under way; events name a slot */
    uint32_t slot_count;
    uint32_t let_in_count, let_in_most; /* of sluice_accept() and doors, under way */
    struct slu_address address;
    struct slu_secret secret;
    struct slu_gate *gate; /* over rdma_cm; NULL: over TCP, by the offers */
    struct slu_negotiations offers;
};

static inline bool slu_is_listener(const struct sluice_listener *listener)
{
    return listener != NULL && listener->magic == SLU_MAGIC_LISTENER;
}

/* Returns -EINVAL with a text. */
static inline int slu_not_a_listener(const struct sluice_listener *listener)
{
    return slu_misuse(EINVAL, "not a listener%s", slu_none_hint(listener));
}

/* An incoming connection. It is in the queue of its listener, or belongs to the program. */
struct sluice_incoming {
    uint32_t magic;
    uint32_t id;
    struct sluice_listener *listener;
    struct sluice_incoming *next;
    int fd;            /* -1: over rdma_cm */
    struct slu_cm *cm; /* NULL: over TCP, or a channel has taken it over */
    struct slu_session session;
    struct slu_address address;
    uint32_t version, channels;
    struct sluice_private_data private_data;
};

/*
 * resolve.c: Reads the secret of the file at path or, if path is NULL, of the file that the
 * environment names.
 */
int slu_listener_secret(const char *path, struct slu_secret *secret);
/* Returns 0 if data is NULL or its size is in range, otherwise -EINVAL with a text. */
int slu_private_data_check(const struct sluice_private_data *data);
/*
 * Parses text, the host and port within address; error texts show the whole address. Returns 0, or
 * an error with a text.
 */
int slu_listen_parse(const char *address, const char *text, struct slu_host_port *where);
/*
 * Find the addresses to listen at, at least one; and those to dial for a host and port. Return
 * their number, or an error with a text.
 */
int slu_listen_find(const struct slu_host_port *where, struct slu_address *addresses);
int slu_connect_find(const char *name, const char *text, int64_t until,
                     struct slu_address addresses[SLU_DIAL_MOST]);
int slu_listen_fail(int error, const char *address);
int slu_listen_fail_watch(int error);

/* queue.c: Appends a connection with all its fields filled in but those of the queue. */
void slu_listener_add(struct sluice_listener *listener, struct sluice_incoming *incoming);
/*
 * Takes the first connection of the queue that has not left. The caller owns it. Returns NULL if
 * there is none.
 */
struct sluice_incoming *slu_listener_take(struct sluice_listener *listener);
/*
 * Hangs up on all queued connections, without a verdict: their clients dial again until their
 * deadline, or until nothing listens and they do not wait for it.
 */
void slu_listener_hang_up(struct sluice_listener *listener);
/* Drops the queued connection with this id, which has left. */
void slu_listener_drop_incoming(struct sluice_listener *listener, uint32_t id);
/* Drops the queued connections over rdma_cm that have left. */
void slu_listener_drop_left(struct sluice_listener *listener);
/* Closes what the incoming connection still has of its connection, and frees it. */
void slu_incoming_free(struct sluice_incoming *incoming);
/* Sends the reason to the other side, and frees the incoming connection. */
void slu_incoming_refuse(struct sluice_incoming *incoming, const char *reason);
/*
 * Refuses the incoming connection. The other side receives the reason or, if it is NULL, the
 * thread's text. Keeps the thread's text, and returns the error.
 */
int slu_incoming_give_up(struct sluice_incoming *incoming, int error, const char *reason);
/* Drops a reference of the listener. The last one frees it. */
void slu_listener_drop(struct sluice_listener *listener);
int slu_listener_watch(const struct sluice_listener *listener, int fd, uint32_t events,
                       uint64_t data);
/* Data of an event: a connection came, or left, over rdma_cm. */
#define SLU_GATE_TAG (UINT64_C(5) << 32)
/*
 * Data of an event: an admission has a whole step or its connection ended, or its channel has an
 * event. The low half has the slot.
 */
#define SLU_ADMISSION_TAG (UINT64_C(6) << 32)
/*
 * Sets the timer to the earliest time at which something is due. The timer is never set later: one
 * that expires too early costs one extra pass.
 */
void slu_listener_set_timer(struct sluice_listener *listener);
/*
 * Ends a call of the program. Keeps the descriptor readable while an incoming connection waits or
 * an admission is finished, because a different call may have driven the listener that far.
 */
void slu_listener_leave(struct sluice_listener *listener);
/* Returns whether the listener was woken, and clears the wake. */
bool slu_listener_was_woken(struct sluice_listener *listener);

/* listener.c: Starts to negotiate. From then on, proven connections go to the listener's queue. */
int slu_listener_start(struct sluice_listener *listener);
/* Waits for an event, at most until then, and does all work that is due. */
void slu_listener_progress(struct sluice_listener *listener, int64_t until);

/* incoming.c: Returns 0 if the other side wants one channel, otherwise -EINVAL with a text. */
int slu_incoming_check(const struct sluice_incoming *incoming);

/* listen.c: Does what sluice_listen() does, with a secret from memory, which is copied. */
struct sluice_listener *slu_listen_secretly(const char *address, const struct slu_secret *secret);

/*
 * connect.c: Replaces the name and the secret file of sluice_connect() if the caller already knows
 * the addresses and the secret.
 */
struct slu_dialed {
    const char *name; /* for texts */
    const struct slu_address *addresses;
    uint32_t count;
    struct slu_secret secret; /* the caller's */
};
struct sluice_channel *slu_connect_dialed(const struct slu_dialed *dialed, struct sluice_pd *pd,
                                          const struct sluice_channel_attr *attr,
                                          const struct sluice_connect_attr *options,
                                          int64_t deadline);
/* Does what sluice_connect() does, and serves a duty while it waits; NULL: none. */
struct sluice_channel *slu_connect_serving(const char *address, struct sluice_pd *pd,
                                           const struct sluice_channel_attr *attr,
                                           const struct sluice_connect_attr *options,
                                           int64_t deadline, struct slu_duty *duty);
struct slu_guard;
/*
 * Does what sluice_connect_into() does for one peer of a multichannel that other threads use
 * meanwhile, under the guard.
 */
int slu_connect_guarded(const char *address, struct sluice_multichannel *multichannel,
                        struct slu_guard *guard, const struct sluice_connect_attr *options,
                        int64_t deadline, struct slu_duty *duty, uint32_t *peer);

#endif
