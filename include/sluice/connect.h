/* SPDX-License-Identifier: MIT */
/*
 * Connecting by address: one side listens at a port, the other one names host and
 * port, and each gets a connected channel in one call. Whatever device the channels
 * use, their endpoints go over a TCP connection of the listener's port, which ends
 * when the call returns.
 *
 * With a secret, which both sides read from a file, each proves to the other that it
 * knows it, and nobody else can read or change the endpoints. Without one nothing is
 * proven about who connects, or listens. sluice_security(7) has the details.
 *
 * An address that begins with "rdmacm:", such as "rdmacm:192.0.2.1:7471", is met over rdma_cm
 * instead, by any program that speaks it: one channel for each connection, private data of 56
 * bytes from who connects and of 196 from who accepts, and no secret. EOPNOTSUPP: there is no
 * rdma_cm, or there is a secret; EADDRNOTAVAIL: another device leads there. sluice_connect(3)
 * has the rest.
 *
 * One thread can let in any number of peers: sluice_incoming_admit() returns at once, and
 * sluice_listener_admitted() tells who is connected. sluice_incoming_accept() and _accept_into()
 * wait for their one peer, and others wait for them.
 *
 * Threads: a listener and its incoming connections are used by one thread at a time.
 * Deadlines and timeouts: see time.h.
 */
#ifndef SLUICE_CONNECT_H
#define SLUICE_CONNECT_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/channel.h>
#include <sluice/macros.h>
#include <sluice/multichannel.h>
#include <sluice/pd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_listener;
struct sluice_incoming;

/* The most bytes of private data, and connections that are made in one call. */
#define SLUICE_PRIVATE_DATA_BYTES 1024
#define SLUICE_CONNECT_MOST 64

/* What a side tells the other beside its endpoints; the library does not look at it. */
struct sluice_private_data {
    uint32_t bytes; /* that are used */
    uint8_t data[SLUICE_PRIVATE_DATA_BYTES];
};

/* Flags of a listener. */
#define SLUICE_LISTEN_FD (UINT32_C(1) << 0) /* fd is given */

struct sluice_listen_attr {
    uint32_t size;           /* sizeof(struct sluice_listen_attr) */
    uint32_t flags;          /* SLUICE_LISTEN_* */
    uint32_t backlog;        /* who may wait for sluice_listener_next(); 1..4096, default 128, and
                                never more than a quarter of the files that the process may open.
                                More are told to try again, and do so until their deadline */
    int32_t fd;              /* a TCP socket that listens already, of a launcher; the library closes
                                it, unless the call fails with EINVAL. The address is not used.
                                Without the flag: 0 or -1 */
    const char *secret_file; /* what both sides know; mode 0600, 16 to 4096 bytes. NULL: that of
                                SLUICE_SECRET_FILE; empty: none */
};

/* Flags of a connect. */
#define SLUICE_CONNECT_WAIT (UINT32_C(1) << 0) /* wait for a listener that is not there yet */

struct sluice_connect_attr {
    uint32_t size;                         /* sizeof(struct sluice_connect_attr) */
    uint32_t flags;                        /* SLUICE_CONNECT_* */
    const char *secret_file;               /* as that of a listener */
    const struct sluice_private_data *own; /* for the listener's program; NULL: none */
    struct sluice_private_data *peer;      /* where that of the other side goes, on success; NULL:
                                              nowhere */
};

/* Who wants to connect. */
struct sluice_incoming_info {
    uint32_t size;                           /* set to sizeof(struct sluice_incoming_info) */
    uint32_t version;                        /* of its library: SLUICE_VERSION of version.h */
    uint32_t channels;                       /* that it wants: 1 to SLUICE_CONNECT_MOST */
    uint32_t proven;                         /* 1: it has proven that it knows the secret; 0: there
                                                is none, and nothing is known of it */
    char address[64];                        /* from where it came, such as "192.0.2.7:40112" */
    struct sluice_private_data private_data; /* what it said */
};

/* A connection that sluice_incoming_admit() or _admit_into() began to let in, once it has ended. */
struct sluice_admitted {
    uint32_t size;                            /* set to sizeof(struct sluice_admitted) */
    int32_t error;                            /* 0: it is connected; or a negative errno value */
    uint64_t user_data;                       /* as it was given */
    struct sluice_channel *channel;           /* which is the caller's from now on; or NULL */
    struct sluice_multichannel *multichannel; /* whose peers it has; or NULL */
    char address[64];                         /* from where it came */
    uint32_t peer_count;                      /* peers of the multichannel */
    uint32_t peers[SLUICE_CONNECT_MOST];      /* their indices */
    uint32_t reserved;                        /* written as 0 */
};

/*
 * Ends it: a connection that waits, is being let in, or comes later is refused, and what is
 * connected and was not taken with sluice_listener_admitted() is closed. NULL is allowed.
 */
SLUICE_EXPORT void sluice_listener_close(struct sluice_listener *listener);

/*
 * Listens at "host:port", "[::1]:port" or ":port", which is all addresses of this host;
 * port 0: any that is free. A name is looked up, and all of its addresses that are of
 * this host are listened at; localhost is the loopback of both families. attr NULL: all
 * defaults. The result goes to sluice_listener_close().
 *
 * NULL and errno on failure: EINVAL (address or attr, or the secret is no secret), E2BIG
 * (attr of a newer version with fields set that this library does not know), EACCES (others
 * may read the secret, or the port is not for this user), EADDRINUSE, EADDRNOTAVAIL (no
 * address of the host is of this one), ENOENT (the name is not known), ETIMEDOUT (no name
 * server answers within 5 s), EMFILE, ENOMEM, ENOSPC (no more watches of epoll(7)),
 * EOPNOTSUPP (libsodium cannot be used).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_listener_close)
struct sluice_listener *sluice_listen(const char *address, const struct sluice_listen_attr *attr);

/*
 * Its port, and its address as text unless text is NULL: the first one that it listens at,
 * "[::]:7471" for example; 64 bytes are enough. -EINVAL: not a listener; -ERANGE: no room.
 */
SLUICE_EXPORT int sluice_listener_address(const struct sluice_listener *listener, char *text,
                                          size_t size);

/*
 * For event loops: readable when sluice_listener_next() or sluice_listener_admitted() has
 * something to do, which may be less than a result. Watch it level-triggered, call both until
 * ETIMEDOUT, and never read or close it. It stays readable while a connection or a result waits
 * to be taken. No deadline needs a timer of the program: the descriptor becomes readable when one
 * passes. -EINVAL: not a listener.
 */
SLUICE_EXPORT int sluice_listener_fd(const struct sluice_listener *listener);

/*
 * From any thread, and from signal handlers: a wait of another thread for this listener,
 * or in an accept of it, ends with EINTR; if there is none, the next one does so at once.
 * -EINVAL: not a listener.
 */
SLUICE_EXPORT int sluice_listener_wake(struct sluice_listener *listener);

/* Ends who has come, with a reason, which the text of its error has; reason may be NULL. */
SLUICE_EXPORT void sluice_incoming_refuse(struct sluice_incoming *incoming, const char *reason);

/*
 * Lets who has come in, with one channel on each side. Prepares it, exchanges endpoints,
 * does the handshake, and returns when both sides have heard each other. It always
 * consumes the incoming connection, and waits for its peer no longer than until deadline.
 * attr is that of the channel, and own goes to the other side; both may be NULL.
 *
 * NULL and errno on failure: EINVAL (NULL, no such object, or it wants more channels than
 * one), ETIMEDOUT, EINTR (sluice_listener_wake()), ECONNRESET (it has left), ECONNABORTED
 * (the other side could not: the text tells why), EPROTO (what it says cannot be), and those
 * of sluice_channel_prepare(), sluice_prepared_channel_handshake() and
 * sluice_channel_wait_connected(). The other side hears of it, and why unless it is a mistake
 * of this program.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_channel_close)
SLUICE_CONSUMED_BY(sluice_channel_reset)
struct sluice_channel *sluice_incoming_accept(struct sluice_incoming *incoming,
                                              struct sluice_pd *pd,
                                              const struct sluice_channel_attr *attr,
                                              const struct sluice_private_data *own,
                                              int64_t deadline);

/*
 * The same with peers of a multichannel, one for each channel that is wanted: they are
 * added, and their indices go to peers, which has room for count, exactly so many. 0; or
 * the errors above, negative, and those of sluice_multichannel_peer_add(): then none of
 * them is there any more.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_incoming_accept_into(
    struct sluice_incoming *incoming, struct sluice_multichannel *multichannel,
    const struct sluice_private_data *own, int64_t deadline, uint32_t *peers, uint32_t count);

/*
 * Begins to let it in, and returns at once: any number at a time, each with its own deadline, and
 * none waits for another one. The incoming connection is always consumed. Each call of the
 * listener, whichever it is, goes on with all of them, and sluice_listener_admitted() tells the
 * result, with this user_data. pd, attr and own are as those of sluice_incoming_accept(). Until
 * it ends, each has a descriptor beside those of its channel.
 *
 * 0; or negative errors, of which no result follows: EINVAL (NULL, no such object, its listener
 * was closed, or it wants more channels than one), ETIMEDOUT (deadline is 0), ECONNRESET (it has
 * left), ENOSPC (no more watches of epoll(7)), and those of sluice_channel_prepare().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_incoming_admit(struct sluice_incoming *incoming,
                                                         struct sluice_pd *pd,
                                                         const struct sluice_channel_attr *attr,
                                                         const struct sluice_private_data *own,
                                                         int64_t deadline, uint64_t user_data);

/*
 * The same with peers of a multichannel, one for each channel that is wanted. Until they are
 * connected, calls of the listener use the multichannel: both belong to the same thread. If it is
 * closed before, the result is ECANCELED. While a scope of it is open, nothing goes on. Errors:
 * those above, and of sluice_multichannel_peer_add().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_incoming_admit_into(
    struct sluice_incoming *incoming, struct sluice_multichannel *multichannel,
    const struct sluice_private_data *own, int64_t deadline, uint64_t user_data);

/*
 * What became of the next one that sluice_incoming_admit() or _admit_into() began to let in.
 * Waits until timeout; 0 only looks. Set admitted->size first (see sluice(7)). 0, and
 * admitted->error tells whether it is connected: 0; or one of the errors of
 * sluice_incoming_accept(), of which sluice_last_error() has the text, or ECANCELED. On failure
 * nothing is written: -ETIMEDOUT (none has ended yet), -EINTR (sluice_listener_wake()), -EINVAL
 * (not a listener, NULL, a negative timeout, or too small a size), -E2BIG (a size above 4096).
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_listener_admitted(struct sluice_listener *listener,
                                                            int64_t timeout,
                                                            struct sluice_admitted *admitted);

/*
 * Ends those that are being let in with this user_data; each has the result ECANCELED. How many;
 * those that have ended already are not affected. -EINVAL: not a listener.
 */
SLUICE_EXPORT int sluice_listener_cancel(struct sluice_listener *listener, uint64_t user_data);

/*
 * Who is it? Set info->size first (see sluice(7)). -EINVAL: no such object, NULL, or too
 * small a size. -E2BIG: a size above 4096.
 */
SLUICE_EXPORT int sluice_incoming_query(const struct sluice_incoming *incoming,
                                        struct sluice_incoming_info *info);

/*
 * The next one that wants to connect, and has proven that it may if there is a secret.
 * Waits until timeout; 0 only looks. The result goes to one of sluice_incoming_admit(),
 * _admit_into(), _accept(), _accept_into() and _refuse(), before the listener ends.
 * NULL and errno: ETIMEDOUT (nobody yet), EINTR (sluice_listener_wake()), EINVAL (not a
 * listener), ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_incoming_refuse)
SLUICE_CONSUMED_BY(sluice_incoming_accept)
SLUICE_CONSUMED_BY(sluice_incoming_accept_into)
SLUICE_CONSUMED_BY(sluice_incoming_admit)
SLUICE_CONSUMED_BY(sluice_incoming_admit_into)
struct sluice_incoming *sluice_listener_next(struct sluice_listener *listener, int64_t timeout);

/*
 * Both in one, for many at a time: waits for those who come, lets them in, and returns the
 * first that is connected. The next call with this pd and attr goes on with the others. One
 * that leaves, is wrong or falls silent amid it is refused alone, and not told of. NULL and
 * errno: ETIMEDOUT (nobody is connected yet), EINTR (sluice_listener_wake()), EINVAL, and
 * those of sluice_channel_prepare().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_channel_close)
SLUICE_CONSUMED_BY(sluice_channel_reset)
struct sluice_channel *sluice_accept(struct sluice_listener *listener, struct sluice_pd *pd,
                                     const struct sluice_channel_attr *attr, int64_t timeout);

/*
 * Connects to the listener at "host:port" or "[::1]:port": the other side of
 * sluice_incoming_accept(). All addresses of a name are tried, beside each other if one
 * does not answer. attr is that of the channel; it and options may be NULL.
 *
 * NULL and errno on failure: EINVAL (address, options, or the secret is no secret), E2BIG,
 * EACCES (the other side does not have our secret, or the text tells what is wrong with its
 * file), EPROTO (what answers is no listener of sluice, or of another version), ENOENT (the
 * name is not known), EHOSTUNREACH (over rdma_cm: no way leads there), ECONNREFUSED (nobody
 * listens there, or our connection was refused: the text has the reason), ETIMEDOUT (the
 * text tells what became of each address, or that the channel itself could not connect),
 * ECONNRESET (it has left), ECONNABORTED (the other side could not: the text tells why),
 * EOPNOTSUPP (libsodium cannot be used), and those of
 * sluice_channel_prepare(), sluice_prepared_channel_handshake() and
 * sluice_channel_wait_connected().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_channel_close)
SLUICE_CONSUMED_BY(sluice_channel_reset)
struct sluice_channel *sluice_connect(const char *address, struct sluice_pd *pd,
                                      const struct sluice_channel_attr *attr,
                                      const struct sluice_connect_attr *options, int64_t deadline);

/*
 * The same with count new peers of a multichannel, 1 to SLUICE_CONNECT_MOST, all of them
 * connected to this listener; their indices go to peers. 0; or the errors above, negative,
 * and those of sluice_multichannel_peer_add(): then none of them is there any more.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_connect_into(const char *address,
                                                       struct sluice_multichannel *multichannel,
                                                       const struct sluice_connect_attr *options,
                                                       int64_t deadline, uint32_t *peers,
                                                       uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
