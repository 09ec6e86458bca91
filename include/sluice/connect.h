/* SPDX-License-Identifier: MIT */
/*
 * Connecting by address: one side listens at a port, the other side names host and port, and each
 * gets a connected channel in one call. On every device the endpoints of the channels go over a TCP
 * connection to the listener's port, which ends when the call returns.
 *
 * With a secret, which both sides read from a file, each side proves to the other that it knows the
 * secret, and no other process can read or change the endpoints. Without a secret neither side
 * proves anything. sluice_security(7) has the details.
 *
 * An address that begins with "rdmacm:", such as "rdmacm:192.0.2.1:7471", is reached over rdma_cm
 * instead, which other programs may speak as well: one channel for each connection, private data of
 * 56 bytes from the connecting side and of 196 from the accepting side, and no secret. EOPNOTSUPP:
 * there is no rdma_cm, or there is a secret; EADDRNOTAVAIL: the address is reached through another
 * device. sluice_connect(3) has the rest.
 *
 * One thread can admit any number of peers: sluice_incoming_admit() returns at once, and
 * sluice_listener_admitted() reports each peer that is connected. sluice_incoming_accept() and
 * _accept_into() wait for their one peer, and hold up all others meanwhile.
 *
 * Threads: one thread at a time uses a listener and its incoming connections. Deadlines and
 * timeouts: see time.h.
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

/* Largest size of private data in bytes. Later versions have the same. */
#define SLUICE_PRIVATE_DATA_BYTES 1024
/* Largest number of connections made in one call. A later version may allow more. */
#define SLUICE_MAX_CONNECT_CHANNELS 64

/*
 * Data that a program passes to the other side beside its endpoints; the library does not interpret
 * it.
 */
struct sluice_private_data {
    uint32_t bytes; /* bytes of data that are used */
    uint8_t data[SLUICE_PRIVATE_DATA_BYTES];
};

/* Flags of a listener. */
#define SLUICE_LISTEN_FD (UINT32_C(1) << 0) /* fd is given */

struct sluice_listen_attr {
    uint32_t size;           /* set to sizeof(struct sluice_listen_attr) */
    uint32_t flags;          /* SLUICE_LISTEN_* */
    uint32_t backlog;        /* connections that may wait for sluice_listener_next(); 1..4096,
                                default 128, and never more than a quarter of the files that the
                                process may open. Further peers are asked to retry, and do so until
                                their deadline */
    int32_t fd;              /* a TCP socket that already listens, such as one of a launcher. It is
                                the library's from success on; if the call fails, it stays the
                                program's, as it was. The address is not used. Without the flag: 0
                                or -1 */
    const char *secret_file; /* file with the secret of both sides; mode 0600, 16 to 4096 bytes.
                                NULL: that of SLUICE_SECRET_FILE; empty: none */
};

/* Flags of a connect. */
#define SLUICE_CONNECT_WAIT (UINT32_C(1) << 0) /* wait for a listener that is not there yet */

struct sluice_connect_attr {
    uint32_t size;                         /* set to sizeof(struct sluice_connect_attr) */
    uint32_t flags;                        /* SLUICE_CONNECT_* */
    const char *secret_file;               /* as that of a listener */
    const struct sluice_private_data *own; /* for the listener's program; NULL: none */
    struct sluice_private_data *peer;      /* receives that of the other side, on success; NULL: it
                                              is dropped */
};

struct sluice_accept_attr {
    uint32_t size;                         /* set to sizeof(struct sluice_accept_attr) */
    uint32_t flags;                        /* must be 0 */
    const struct sluice_private_data *own; /* for the program that connects; NULL: none */
};

/* A peer that wants to connect. */
struct sluice_incoming_info {
    uint32_t size;                           /* set to sizeof(struct sluice_incoming_info) */
    uint32_t version;                        /* version of its library: SLUICE_VERSION_CODE */
    uint32_t channels;                       /* wanted: 1 to SLUICE_MAX_CONNECT_CHANNELS */
    uint32_t proven;                         /* 1: it has proven that it knows the secret; 0: there
                                                is no secret, and nothing is proven */
    char address[64];                        /* from where it came, such as "192.0.2.7:40112" */
    struct sluice_private_data private_data; /* from the program of the peer */
};

/* Result of an admission that sluice_incoming_admit() or _admit_into() began. */
struct sluice_admitted {
    uint32_t size;                            /* set to sizeof(struct sluice_admitted) */
    int32_t error;                            /* 0: it is connected; or a negative errno value */
    uint64_t user_data;                       /* as given by the program */
    struct sluice_channel *channel;           /* the channel, the caller's from now on; or NULL */
    struct sluice_multichannel *multichannel; /* the multichannel that has the peers; or NULL */
    char address[64];                         /* from where it came */
    uint32_t *peers;                          /* set to room for the indices of the peers, or NULL.
                                                 Indices beyond peer_capacity are not written */
    uint32_t peer_capacity;                   /* set to the number of indices in this room */
    uint32_t peer_count;                      /* peers of the multichannel */
    uint32_t peer;                            /* index of the first of them */
    uint32_t reserved;                        /* written as 0 */
};

/*
 * Closes a listener: connections that wait, are being admitted or come later are refused, and those
 * that are connected but were not taken with sluice_listener_admitted() are closed. NULL is
 * allowed.
 */
SLUICE_EXPORT void sluice_listener_close(struct sluice_listener *listener);

/*
 * Listens at "host:port", "[::1]:port" or ":port" for all addresses of this host; port 0: any that
 * is free. A name is looked up, and the listener listens at all of its addresses that belong to
 * this host; localhost is the loopback of both families. attr NULL: all defaults. The result goes
 * to sluice_listener_close().
 *
 * NULL and errno on failure: EINVAL (address or attr, or the secret is not valid), E2BIG (attr of a
 * newer version with fields set that this library does not know), EACCES (others may read the
 * secret, or this user may not use the port), EADDRINUSE, EADDRNOTAVAIL (no address of the name
 * belongs to this host), ENOENT (the name is not known), ETIMEDOUT (no name server answers within
 * 5 s), EMFILE, ENOMEM, ENOSPC (no more watches of epoll(7)), EOPNOTSUPP (libsodium cannot be
 * used).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_listener_close)
struct sluice_listener *sluice_listen(const char *address, const struct sluice_listen_attr *attr);

/*
 * Returns the port of a listener, and writes its address as text, unless text is NULL: the first
 * address that it listens at, "[::]:7471" for example; 64 bytes are enough. -EINVAL: not a
 * listener; -ERANGE: no room.
 */
SLUICE_EXPORT int sluice_listener_address(const struct sluice_listener *listener, char *text,
                                          size_t size);

/*
 * Returns the fd for event loops. It is readable when sluice_listener_next() or
 * sluice_listener_admitted() has something to do, which need not lead to a result. Watch it
 * level-triggered, call both until ETIMEDOUT, and never read or close it. It stays readable while a
 * connection or a result waits to be taken. No deadline needs a timer of the program: the
 * descriptor becomes readable when one passes. -EINVAL: not a listener.
 */
SLUICE_EXPORT int sluice_listener_fd(const struct sluice_listener *listener);

/*
 * Wakes a listener: a wait of another thread for it, or in an accept of it, ends with EINTR. If no
 * thread waits, the next wait ends so at once. Any thread and any signal handler may call it.
 * -EINVAL: not a listener.
 */
SLUICE_EXPORT int sluice_listener_wake(struct sluice_listener *listener);

/*
 * Refuses an incoming connection. The text of the peer's error has the reason; reason may be NULL.
 */
SLUICE_EXPORT void sluice_incoming_refuse(struct sluice_incoming *incoming, const char *reason);

/*
 * Accepts an incoming connection, with one channel on each side. Prepares the channel, exchanges
 * endpoints, does the handshake, and returns when each side has received from the other. The call
 * always consumes the incoming connection, and waits for its peer no longer than until deadline.
 * attr is that of the channel; it and options may be NULL.
 *
 * NULL and errno on failure: EINVAL (NULL, no such object, options, or the peer wants more channels
 * than one), E2BIG, ETIMEDOUT, EINTR (sluice_listener_wake()), ECONNRESET (the peer has left),
 * ECONNABORTED (the other side failed: the text has the reason), EPROTO (the peer sent an invalid
 * message), and those of sluice_channel_prepare(), sluice_prepared_channel_handshake() and
 * sluice_channel_wait_connected(). The other side is notified of a failure, with the reason unless
 * it is a mistake of this program.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_channel_close)
SLUICE_CONSUMED_BY(sluice_channel_reset)
struct sluice_channel *sluice_incoming_accept(struct sluice_incoming *incoming,
                                              struct sluice_pd *pd,
                                              const struct sluice_channel_attr *attr,
                                              const struct sluice_accept_attr *options,
                                              int64_t deadline);

/*
 * Accepts an incoming connection as sluice_incoming_accept() does, with one new peer of a
 * multichannel for each channel that is wanted. The indices of the peers are written to peers,
 * which has room for count, exactly that number. 0; or the errors above, negative, and those of
 * sluice_multichannel_peer_add(): then all of these peers were removed.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_incoming_accept_into(
    struct sluice_incoming *incoming, struct sluice_multichannel *multichannel,
    const struct sluice_accept_attr *options, int64_t deadline, uint32_t *peers, uint32_t count);

/*
 * Begins to admit an incoming connection, and returns at once. Any number of admissions may be in
 * progress, each with its own deadline, and none waits for another. The call always consumes the
 * incoming connection. Every call on the listener drives all admissions, and
 * sluice_listener_admitted() returns the result, with this user_data. pd, attr and options are as
 * for sluice_incoming_accept(). Until it ends, each admission has a descriptor beside those of its
 * channel.
 *
 * 0; or negative errors, after which no result follows: EINVAL (NULL, no such object, options, its
 * listener was closed, or the peer wants more channels than one), ETIMEDOUT (deadline is 0),
 * ECONNRESET (the peer has left), ENOSPC (no more watches of epoll(7)), and those of
 * sluice_channel_prepare().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_incoming_admit(struct sluice_incoming *incoming,
                                                         struct sluice_pd *pd,
                                                         const struct sluice_channel_attr *attr,
                                                         const struct sluice_accept_attr *options,
                                                         int64_t deadline, uint64_t user_data);

/*
 * Begins to admit an incoming connection as sluice_incoming_admit() does, with one new peer of a
 * multichannel for each channel that is wanted. Until the peers are connected, calls on the
 * listener use the multichannel: the same thread must use both. If the multichannel is closed
 * before, the result is ECANCELED. While a scope of it is open, the admission does not go on.
 * Errors: those above, and of sluice_multichannel_peer_add().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_incoming_admit_into(
    struct sluice_incoming *incoming, struct sluice_multichannel *multichannel,
    const struct sluice_accept_attr *options, int64_t deadline, uint64_t user_data);

/*
 * Takes the result of the next admission that has ended, of those that sluice_incoming_admit() or
 * _admit_into() began. Waits until timeout; with 0 it does not wait. Set admitted->size first (see
 * sluice(7)), peers and peer_capacity. 0: admitted->error is 0 if the peer is connected, else one
 * of the errors of sluice_incoming_accept(), whose text sluice_last_error() has, or ECANCELED. On
 * failure nothing is written: -ETIMEDOUT (none has ended yet), -EINTR (sluice_listener_wake()),
 * -EINVAL (not a listener, NULL, peers NULL with a capacity, a negative timeout, or too small a
 * size), -E2BIG (a size above 4096).
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_listener_admitted(struct sluice_listener *listener,
                                                            int64_t timeout,
                                                            struct sluice_admitted *admitted);

/*
 * Cancels the admissions with this user_data that are in progress; each has the result ECANCELED.
 * Returns how many; those that have already ended are not affected. -EINVAL: not a listener.
 */
SLUICE_EXPORT int sluice_listener_cancel(struct sluice_listener *listener, uint64_t user_data);

/*
 * Describes the peer that wants to connect. Set info->size first (see sluice(7)). -EINVAL: no such
 * object, NULL, or too small a size. -E2BIG: a size above 4096.
 */
SLUICE_EXPORT int sluice_incoming_query(const struct sluice_incoming *incoming,
                                        struct sluice_incoming_info *info);

/*
 * Returns the next connection of a peer that wants to connect, and has proven that it knows the
 * secret if there is one. Waits until timeout; with 0 it does not wait. The result goes to one of
 * sluice_incoming_admit(), _admit_into(), _accept(), _accept_into() and _refuse(), before the
 * listener ends. NULL and errno: ETIMEDOUT (no peer yet), EINTR (sluice_listener_wake()), EINVAL
 * (not a listener), ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_incoming_refuse)
SLUICE_CONSUMED_BY(sluice_incoming_accept)
SLUICE_CONSUMED_BY(sluice_incoming_accept_into)
SLUICE_CONSUMED_BY(sluice_incoming_admit)
SLUICE_CONSUMED_BY(sluice_incoming_admit_into)
struct sluice_incoming *sluice_listener_next(struct sluice_listener *listener, int64_t timeout);

/*
 * Waits for peers and admits them, many at a time, and returns the channel of the first that is
 * connected. The next call with this pd and attr goes on with the others. A peer that leaves,
 * breaks the protocol or stops while it connects is refused without holding up the others, and is
 * not reported. NULL and errno: ETIMEDOUT (no peer is connected yet), EINTR
 * (sluice_listener_wake()), EINVAL, and those of sluice_channel_prepare().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_channel_close)
SLUICE_CONSUMED_BY(sluice_channel_reset)
struct sluice_channel *sluice_accept(struct sluice_listener *listener, struct sluice_pd *pd,
                                     const struct sluice_channel_attr *attr, int64_t timeout);

/*
 * Connects to the listener at "host:port" or "[::1]:port": the other side of
 * sluice_incoming_accept(). All addresses of a name are tried, in parallel if one does not answer.
 * attr is that of the channel; it and options may be NULL.
 *
 * NULL and errno on failure: EINVAL (address, options, or the secret is not valid), E2BIG, EACCES
 * (the other side does not have this secret, or the text says what is wrong with its file), EPROTO
 * (the process that answers is no listener of sluice, or of another version), ENOENT (the name is
 * not known), EHOSTUNREACH (over rdma_cm: there is no route), ECONNREFUSED (no process listens
 * there, or the connection was refused: the text has the reason), ETIMEDOUT (the text has the
 * result of each address, or says that the channel itself could not connect), ECONNRESET (the peer
 * has left), ECONNABORTED (the other side failed: the text has the reason), EOPNOTSUPP (libsodium
 * cannot be used), and those of sluice_channel_prepare(), sluice_prepared_channel_handshake() and
 * sluice_channel_wait_connected().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_channel_close)
SLUICE_CONSUMED_BY(sluice_channel_reset)
struct sluice_channel *sluice_connect(const char *address, struct sluice_pd *pd,
                                      const struct sluice_channel_attr *attr,
                                      const struct sluice_connect_attr *options, int64_t deadline);

/*
 * Connects as sluice_connect() does, with count new peers of a multichannel, 1 to
 * SLUICE_MAX_CONNECT_CHANNELS, all of them connected to this listener. Their indices are written to
 * peers. 0; or the errors above, negative, and those of sluice_multichannel_peer_add(): then all of
 * these peers were removed.
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
