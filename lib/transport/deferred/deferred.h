/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs that are connected when they are first used. For an engine whose peers connect on
 * their own, a table of this folder stands between the engine and the transport's table; other
 * engines are not affected. README.md has the design.
 *
 * The user, which is the node, makes the connections, mostly in a thread of its own. A lock decides
 * who has the completion queue: the program from cq_enter to cq_leave, or the user's thread.
 */
#ifndef SLU_DEFERRED_H
#define SLU_DEFERRED_H

#include "transport/transport.h"

struct slu_deferred;

/*
 * The user. All functions are called with the completion queue entered, so they do not wait, and
 * must not call the engine.
 */
struct slu_deferred_user {
    /* A queue pair is used for the first time: connect it. Called once for each attempt. */
    void (*wanted)(struct slu_deferred_user *user, uint32_t peer);
    /* Does the work for which slu_deferred_ask() was called. */
    void (*work)(struct slu_deferred_user *user);
    /* Returns the peer of a request by its id, and whether it is a receive. */
    uint32_t (*peer_of)(struct slu_deferred_user *user, uint64_t id, bool *receives);
    /*
     * Returns whether the engine waits for nothing of a peer. Called under a limit, and only in the
     * program's calls, in which the engine may be looked at.
     */
    bool (*idle)(struct slu_deferred_user *user, uint32_t peer);
};

/* States of the connection to a peer. */
enum slu_deferred_state {
    SLU_DEFERRED_NONE,      /* there is none */
    SLU_DEFERRED_WANTED,    /* the user was asked for one */
    SLU_DEFERRED_MADE,      /* a queue pair of the transport exists */
    SLU_DEFERRED_CONNECTED, /* this end is connected; the other may not be yet */
    SLU_DEFERRED_READY,     /* both ends are: requests are posted at once */
    SLU_DEFERRED_RETIRING   /* both ends are, and the user closes it: requests are kept */
};

/*
 * Makes the state of an engine of count peers. Returns NULL with a text. attr is the engine's, and
 * outlives the state.
 */
struct slu_deferred *slu_deferred_create(struct slu_tpd *pd, const struct slu_qp_attr *attr,
                                         uint32_t count, struct slu_deferred_user *user);
/* Frees a state that no completion queue has taken. NULL is allowed. */
void slu_deferred_free(struct slu_deferred *deferred);
/* Makes the table from inner, the table of a transport. */
void slu_deferred_over(const struct slu_transport *inner, struct slu_transport *table);
/* Gives the state to a queue, which was made by that table, and frees it at its end. */
void slu_deferred_take(struct slu_cq *cq, struct slu_deferred *deferred);

/* For the engine. Gives a queue pair, whose peer is set, the connection that its peer has. */
void slu_deferred_attach(struct slu_qp *qp);
/* Connects a queue pair before it is used. */
void slu_deferred_want(struct slu_qp *qp);
/* Returns the queue pair of the transport, or NULL before it is ready. */
struct slu_qp *slu_deferred_real(struct slu_qp *qp);

/*
 * Has work() called soon: at once by this thread if the program is not in a call, else by the
 * program's thread. For the user, from a thread that has not entered the queue.
 */
void slu_deferred_ask(struct slu_deferred *deferred);

/*
 * The steps of a connection, for the user, within work(). A serial names one queue pair of the
 * transport: steps with an older one fail with -ECANCELED.
 */
enum slu_deferred_state slu_deferred_state(const struct slu_deferred *deferred, uint32_t peer);
/*
 * Returns the peers whose state is not NONE, in no order, until the next call of this folder. Most
 * peers of a large job have none, and so are not looked at.
 */
const uint16_t *slu_deferred_live(const struct slu_deferred *deferred, uint32_t *count);
/* Returns whether the queue pair of a serial exists, and is not ready. */
bool slu_deferred_is_made(const struct slu_deferred *deferred, uint32_t peer, uint32_t serial);
/* Returns whether the program has requests for the peer, or has asked for the connection. */
bool slu_deferred_is_wanted(const struct slu_deferred *deferred, uint32_t peer);
/* Returns whether the engine's queue pair has failed: the peer needs a reset. */
bool slu_deferred_has_failed(const struct slu_deferred *deferred, uint32_t peer);
/* Makes a queue pair of the transport, unless there is one, and writes its endpoint. */
int slu_deferred_make(struct slu_deferred *deferred, uint32_t peer, uint32_t *serial,
                      struct sluice_endpoint *endpoint);
/*
 * Tells whether the queue pair of the peer with this serial is older than one that this side was
 * connected to: a message that came late.
 */
bool slu_deferred_is_stale(const struct slu_deferred *deferred, uint32_t peer,
                           uint32_t remote_serial);
/*
 * Connects it, unless it is connected to this endpoint already. remote_serial is the peer's for it.
 * If it is connected to another one, which the peer has given up, it is ended with -ECANCELED, and
 * asked for once more if it is still wanted.
 */
int slu_deferred_connect(struct slu_deferred *deferred, uint32_t peer, uint32_t serial,
                         uint32_t remote_serial, const struct sluice_endpoint *remote);
/* Both ends are connected: posts what was kept. May be called again. */
int slu_deferred_begin(struct slu_deferred *deferred, uint32_t peer, uint32_t serial);
/*
 * Gives up an attempt. A queue pair that is connected stays, for the next one. If the connection is
 * still wanted, it is asked for once more.
 */
void slu_deferred_drop(struct slu_deferred *deferred, uint32_t peer, uint32_t serial);
/* Gives up a connection that was asked for, and that is not wanted any more. */
void slu_deferred_quit(struct slu_deferred *deferred, uint32_t peer);
/*
 * Ends the connection to a peer that the engine does not use, in whatever state it is. The next one
 * may be to another process.
 */
void slu_deferred_expel(struct slu_deferred *deferred, uint32_t peer);
/* Drops a ready connection that has failed and that the engine has not used. Else false. */
bool slu_deferred_forget(struct slu_deferred *deferred, uint32_t peer);
/*
 * Ends a connection to another endpoint than this, because the peer has that one no more. If it was
 * ready, the engine's queue pair fails.
 */
void slu_deferred_lose(struct slu_deferred *deferred, uint32_t peer,
                       const struct sluice_endpoint *remote, const char *reason);
/*
 * idle.c: a limit of connections, above which idle ones are closed. Both ends have to agree: this
 * end retires a connection, so that requests are kept, and the user asks the other one to yield.
 */
/* Sets the limit, once; 0: none. */
void slu_deferred_limit(struct slu_deferred *deferred, uint32_t most);
bool slu_deferred_is_limited(const struct slu_deferred *deferred);
/*
 * Tells whether there is room for one more connection, which that peer begins or this side does. A
 * peer that begins is let in even if a connection that this side begins is then one too many:
 * otherwise two could wait for each other.
 */
bool slu_deferred_has_room(const struct slu_deferred *deferred, uint32_t peer, bool begun_by_peer);
/*
 * Counts a connection that waits for room. Returns its place in the line of all that wait: the
 * lowest is the first. The connection keeps the place until it is made or given up, also while it
 * is not counted.
 */
uint64_t slu_deferred_wait(struct slu_deferred *deferred, uint32_t peer);
/* Counts one connection less that waits for room. */
void slu_deferred_wait_no_more(struct slu_deferred *deferred);
/*
 * Retires the connection that was not used for longest, if one is needed for more connections
 * besides those that wait, and one is idle. Else returns false. *endpoint: the checksum of the
 * endpoint that the peer has of it.
 */
bool slu_deferred_retire(struct slu_deferred *deferred, uint32_t more, uint32_t *peer,
                         uint32_t *serial, uint32_t *endpoint);
/* The other end has yielded: closes it. What was posted meanwhile asks for a new one. */
void slu_deferred_close(struct slu_deferred *deferred, uint32_t peer, uint32_t serial);
/* The other end has not: goes on with it. */
void slu_deferred_revive(struct slu_deferred *deferred, uint32_t peer, uint32_t serial);
/*
 * The other end does not answer: another connection may be closed in place of this one. Fails if
 * this one has ended, or is not retired any more.
 */
int slu_deferred_stall(struct slu_deferred *deferred, uint32_t peer, uint32_t serial);
/*
 * The peer has retired the connection to its endpoint of that checksum. Retires it here as well and
 * returns 1, or -EBUSY if it is in use here, or 0 if it is gone. The user closes it once the peer
 * has confirmed that it did, or asks the peer to yield: the request may be an old one.
 */
int slu_deferred_yield(struct slu_deferred *deferred, uint32_t peer, uint32_t remote,
                       uint32_t *serial, uint32_t *endpoint);
/*
 * The peer did not confirm: the user asks it. Before this, a refusal of an earlier question does
 * not revive the connection, because the peer may have closed it since.
 */
void slu_deferred_doubt(struct slu_deferred *deferred, uint32_t peer, uint32_t serial);
/* Notes why a connection is not made: the other end is busy. */
void slu_deferred_note_busy(struct slu_deferred *deferred, uint32_t peer);

/* Gives up, and fails the engine's queue pair with this reason. */
void slu_deferred_fail(struct slu_deferred *deferred, uint32_t peer, uint32_t serial,
                       const char *reason);

#endif
