/* SPDX-License-Identifier: MIT */
/*
 * An agent: memory as a service beside channels. A peer that connects to an agent may have memory
 * allocated there, within a quota and for a lease, and read and write it. Either side may hand
 * regions over to the other. Messages of any size arrive whole, and no program posts a receive for
 * them. sluice_agent_open(3) begins with the steps of a program's life.
 *
 * Each connection has two queue pairs. The control queue pair carries the messages of the agents
 * and gives no rights to memory. The data queue pair carries reads, writes and atomics. If the data
 * queue pair fails, the agents make it anew, and nothing else ends with it. If the control queue
 * pair fails, the peer is lost, and the memory that it had here is taken back.
 *
 * Threads: several threads at a time may make all calls of an agent, and of its peers, regions and
 * messages. An object that a call ends must not be in use by another call. Peers are served by the
 * agent's own thread, and by calls of the program that wait, which serve all peers of the agent.
 * With SLUICE_AGENT_NO_THREAD there is no such thread: peers are then served by these calls and by
 * the program's event loop alone, and otherwise not.
 *
 * Deadlines are in nanoseconds from now, see time.h. Only the deadlines of reads, writes and
 * atomics are destructive, and only for the data queue pair: the work on it ends, cancelled, and
 * the pair is made anew. All other deadlines end a wait, and the connection is unharmed.
 *
 * Errors of calls that wait for a peer: -ETIMEDOUT, -EINTR (sluice_agent_wake()), -ENOTCONN (the
 * peer is lost, or was before; the text has the reason), -ECANCELED (the agent was closed), -EPROTO
 * (the peer sent an invalid answer), -ENOMEM. -EINVAL: not such an object, NULL, a negative
 * duration. Each call below lists its other errors.
 */
#ifndef SLUICE_AGENT_H
#define SLUICE_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/connect.h>
#include <sluice/macros.h>
#include <sluice/mr.h>
#include <sluice/pd.h>
#include <sluice/request.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_agent;
struct sluice_agent_peer;    /* a connection, until the program closes it, even if it is lost */
struct sluice_agent_mr;      /* memory of a peer that this side holds under a lease */
struct sluice_agent_message; /* a message that has arrived, whole */

/* Flags of an agent. */
/* The agent has no thread: calls that wait, or the program's event loop, serve its peers. */
#define SLUICE_AGENT_NO_THREAD (UINT32_C(1) << 0)

/*
 * Zero, or a NULL pointer, means the default. Limits of a peer hold for each peer by itself. A peer
 * takes at this side: quota; registered buffers of about (2 * window + 96) * (eager + 48) bytes, of
 * which only those in use are touched; max_waiting_bytes; and up to 256 KiB for long messages, once
 * one is sent to it. All peers that have left take max_left_bytes together; peers that were
 * connected when this limit was reached may still add their messages.
 */
struct sluice_agent_attr {
    uint32_t size;              /* set to sizeof(struct sluice_agent_attr) */
    uint32_t flags;             /* SLUICE_AGENT_* */
    uint32_t access;            /* rights that peers may get to memory that is allocated for
                                   them here: SLUICE_ACCESS_REMOTE_*; default read, write and, if
                                   the device has them, atomic. SLUICE_ACCESS_NONE: none is
                                   allocated */
    uint32_t max_peers;         /* connections at a time, 1..65536, default 1024; further ones are
                                   refused */
    uint32_t max_regions;       /* regions that a peer may have allocated here; 1..65536,
                                   default 256 */
    uint32_t eager;             /* bytes of the longest message that is sent at once; the receiver
                                   reads a longer one; 64..65536, default 4096. The smaller value of
                                   both sides holds */
    uint32_t window;            /* messages and requests of a peer in flight; 4..256, default 16 */
    uint32_t max_waiting;       /* messages and regions of a peer that wait to be received here,
                                   1..65536, default 256. Beyond that the peer's program waits */
    uint64_t max_waiting_bytes; /* bytes of the waiting messages that were sent at once; at least
                                   eager, at most 2^40, default 1 MiB */
    uint64_t quota;             /* bytes, in whole pages, that a peer may have allocated here; a
                                   region that was sent back counts until our program has received
                                   it; at most 2^60, default 0: peers get no memory */
    uint64_t max_message;       /* bytes of the longest message that is received; at most 2^60,
                                   default 1 GiB */
    int64_t max_lease;          /* nanoseconds, 1 ms at least, default 60 s; SLUICE_FOREVER: leases
                                   may have no end */
    int64_t keepalive;          /* of the data queue pair, as that of a channel: a host that is
                                   silent for so long is lost; 1 ms..1 h, default 0: never. The end
                                   of a process is noticed without it */
    const char *secret_file;    /* for connections in both directions, as in connect.h: NULL: that
                                   of SLUICE_SECRET_FILE; empty: none */
    uint64_t max_left_bytes;    /* memory of messages that wait to be received here from peers that
                                   have left and that the program never took; at most 2^40,
                                   default 64 MiB. While the limit is reached, new peers are
                                   refused; nothing is dropped */
    uint32_t receive_pool;      /* receives for messages that all peers share, 16..65536; default 0:
                                   each peer has its own. A device without shared receives, and
                                   peers over rdma_cm, do as with 0 */
    uint32_t receive_share;     /* of those, the most that a peer uses while no thread serves the
                                   agent; at most receive_pool, default a quarter of it. Without
                                   effect on a device */
};

/* Counts of an agent: what its peers have now, and events so far. */
struct sluice_agent_info {
    uint32_t size;          /* set to sizeof(struct sluice_agent_info) by the caller */
    uint32_t peers;         /* connected now */
    uint32_t regions;       /* regions of this side that peers hold, allocated or handed over */
    uint32_t held;          /* regions of peers that this agent holds */
    uint64_t bytes;         /* of regions that were allocated for peers, in whole pages, until a
                               region ends, or was sent back and received */
    uint64_t allocated;     /* regions allocated for peers, so far */
    uint64_t denied;        /* requests for memory that were refused: rights, quota or number */
    uint64_t expired;       /* regions of this side that ended with their lease */
    uint64_t reclaimed;     /* regions that a peer held when it was lost, or left */
    uint64_t late;          /* uses of regions of this side after their lease, as peers reported */
    uint64_t refused_late;  /* uses of regions of peers that this library refused, as the lease was
                               over */
    uint64_t malformed;     /* messages of peers that were refused: malformed */
    uint64_t oversized;     /* the same: longer than allowed */
    uint64_t unasked;       /* the same: answers to no request, and requests about regions that are
                               not the peer's */
    uint64_t reconnects;    /* data queue pairs that were made anew */
    uint64_t lost;          /* peers that were lost, or left */
    uint64_t messages_sent; /* whole messages, as in the next field */
    uint64_t messages_arrived; /* */
    uint64_t left_bytes;  /* bytes that max_left_bytes limits, now. A peer that has left counts as
                             about 10 KiB and its messages, until all of these were received */
    uint64_t turned_away; /* peers refused because of max_peers or max_left_bytes */
};

/* State of a peer. */
enum sluice_agent_state {
    SLUICE_AGENT_PEER_CONNECTED = 1,
    SLUICE_AGENT_PEER_LOST = 2 /* it has left, or failed: see error and text */
};

struct sluice_agent_peer_info {
    uint32_t size;        /* set to sizeof(struct sluice_agent_peer_info) by the caller */
    uint32_t state;       /* enum sluice_agent_state */
    int32_t error;        /* why it is lost: a negative errno value; 0: it is not lost, or has left
                             in good order */
    uint32_t level;       /* enum sluice_transport_level */
    uint32_t access;      /* rights that it gives to memory that it allocates for this side */
    uint32_t eager;       /* bytes of the longest message that is sent at once */
    uint32_t regions;     /* regions of this side that it holds */
    uint32_t held;        /* regions of the peer that this side holds */
    uint64_t bytes;       /* of regions that were allocated for it here, in whole pages */
    uint64_t quota;       /* bytes that this side may have allocated there */
    uint64_t max_message; /* bytes of the longest message that it takes */
    int64_t max_lease;    /* longest lease that it gives, nanoseconds */
    uint64_t refused;     /* messages of the peer that were malformed, oversized or unasked for */
    uint64_t reconnects;  /* times that the data queue pair was made anew */
    char address[64];     /* for people */
    char text[256];       /* why it is lost; empty: it is not lost */
};

/* A region of a peer that this side holds. */
struct sluice_agent_mr_info {
    uint32_t size;                  /* set to sizeof(struct sluice_agent_mr_info) by the caller */
    uint32_t access;                /* rights of this side: SLUICE_ACCESS_REMOTE_* */
    uint64_t id;                    /* the owner's name for the region, valid on this connection */
    int64_t lease;                  /* nanoseconds that are left, 0: the lease is over, or the owner
                                       took the region back; SLUICE_FOREVER: no end */
    struct sluice_remote_mr remote; /* handle of its bytes. A program that uses the handle other
                                       than by the calls on agent regions must keep to the lease by
                                       itself */
};

/* A region of this side that has come back from a peer that held it. */
struct sluice_agent_local {
    uint32_t size;        /* set to sizeof(struct sluice_agent_local) by the caller */
    uint32_t reserved;    /* written as 0 */
    uint64_t id;          /* its name, from sluice_agent_send_local_mr() or from the allocation */
    void *addr;           /* the first byte */
    uint64_t length;      /* bytes */
    struct sluice_mr *mr; /* a region that was allocated here for the peer: it is now the program's,
                             with LOCAL_WRITE and no rights of peers, to be deregistered. NULL: the
                             memory was the program's all the time */
    struct sluice_agent_peer *peer; /* the peer that held it; valid until the program closes that
                                       peer */
};

/*
 * Closes an agent: all its peers are lost, and all memory that they had here is taken back. The
 * program still closes its peers, releases its regions and frees its messages. NULL is allowed.
 * Calls of other threads end with -ECANCELED.
 */
SLUICE_EXPORT void sluice_agent_close(struct sluice_agent *agent);

/*
 * Makes an agent in a protection domain, and uses its device; attr NULL: all defaults. Give each
 * agent a domain of its own: a remote key of a region opens it to all peers of the domain. The
 * result goes to sluice_agent_close().
 *
 * NULL and errno on failure: EINVAL (attr: the text names the field), E2BIG, EOPNOTSUPP
 * (access REMOTE_ATOMIC, and the device has no atomic operations), EAGAIN (no thread can be
 * started, and SLUICE_AGENT_NO_THREAD is not set), EMFILE, ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_close)
struct sluice_agent *sluice_agent_open(struct sluice_pd *pd, const struct sluice_agent_attr *attr);

/*
 * Listens for peers at an address as that of sluice_listen(), whose errors it has. attr may be
 * NULL; its secret_file must be NULL: the agent's secret is used. -EBUSY: it listens already.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_listen(struct sluice_agent *agent,
                                                       const char *address,
                                                       const struct sluice_listen_attr *attr);

/*
 * Returns the agent's port, and writes its address as text, as sluice_listener_address(). -ENOENT:
 * it does not listen.
 */
SLUICE_EXPORT int sluice_agent_address(const struct sluice_agent *agent, char *text, size_t size);

/* Describes an agent; set info->size first (see sluice(7)). -EINVAL; -E2BIG: a size above 4096. */
SLUICE_EXPORT int sluice_agent_query(struct sluice_agent *agent, struct sluice_agent_info *info);

/*
 * Leaves a peer: waits at most 1 s until the peer has taken all that was sent, and then ends the
 * connection. The memory that the peer had here is taken back, and regions of the peer that this
 * side held are gone. A peer that connected and that the program never took needs no close.
 * NULL is allowed.
 */
SLUICE_EXPORT void sluice_agent_peer_close(struct sluice_agent_peer *peer);

/*
 * Connects to an agent that listens at "host:port"; options may be NULL; its secret_file and
 * private data must be NULL. NULL and errno: those of sluice_connect(), ENOTCONN (the peer is lost
 * again; a peer that has not greeted within 10 s may be no agent), EINTR, ECANCELED, ENOBUFS
 * (max_peers are connected).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_peer_close)
struct sluice_agent_peer *sluice_agent_connect(struct sluice_agent *agent, const char *address,
                                               const struct sluice_connect_attr *options,
                                               int64_t deadline);

/*
 * Returns the next peer that has connected here, in the order of their connections. Peers are
 * served whether the program takes them or not. NULL and errno: ETIMEDOUT (no peer yet), EINTR,
 * EINVAL, ECANCELED.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_peer_close)
struct sluice_agent_peer *sluice_agent_next_peer(struct sluice_agent *agent, int64_t timeout);

/* Describes a peer; set info->size first. -EINVAL; -E2BIG: a size above 4096. */
SLUICE_EXPORT int sluice_agent_peer_query(struct sluice_agent_peer *peer,
                                          struct sluice_agent_peer_info *info);

/*
 * Gives a region back to its owner, which ends it, whether the lease is over or not. The call
 * always consumes the region, and waits until the owner has confirmed the end. 0; or errors of a
 * wait, if the owner could not be notified in time, which harms nothing.
 */
SLUICE_EXPORT int sluice_agent_mr_release(struct sluice_agent_mr *mr, int64_t deadline);

/*
 * Sends a region back to the peer that owns it. The peer's program receives it as local memory,
 * with its bytes: sluice_agent_receive_local_mr(). All rights of this side end. A region can go to
 * its owner only, since keys belong to one connection. The call always consumes the region.
 * -EACCES: the lease is over, or the owner took it back. After errors of a wait the owner may have
 * the region or not; this side no longer has it.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_mr_send_back(struct sluice_agent_mr *mr,
                                                             int64_t deadline);

/*
 * Asks the peer for memory: length bytes, zeroed, with access (SLUICE_ACCESS_REMOTE_*, at least
 * one), for a lease in nanoseconds; 0 asks for the longest that the peer gives. The peer may give a
 * shorter lease: see sluice_agent_mr_query(). The result goes to sluice_agent_mr_release() or
 * sluice_agent_mr_send_back(), also once the peer is lost.
 *
 * This side counts the lease from before it asked the peer. The peer revokes the key and frees the
 * memory one second after the end of the lease.
 *
 * NULL and errno: EACCES (it gives no such rights), EDQUOT (its quota, of bytes or of
 * regions: the text says which), EBUSY (it has too many requests of this side), ENOMEM (there,
 * or here), EINVAL (also: access has other bits, no bytes), and errors of a wait. After ETIMEDOUT a
 * region that arrives late is given back automatically.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_mr_release)
SLUICE_CONSUMED_BY(sluice_agent_mr_send_back)
struct sluice_agent_mr *sluice_agent_request_mr(struct sluice_agent_peer *peer, uint64_t length,
                                                uint32_t access, int64_t lease, int64_t deadline);

/*
 * Asks the owner for a new lease of a region that was allocated there, in nanoseconds from now; 0
 * asks for the longest that the owner gives. The new lease is counted as the first one was, may be
 * shorter than requested, and never ends before the old one. -EACCES: the lease is over, or the
 * owner took the region back, or the owner's program handed it over and so has set the lease;
 * -EINVAL: also: the lease has no end; -EPROTO: also: the owner gave a longer one than requested;
 * else errors of a wait. After any error the lease is as it was, as far as this side knows.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_mr_renew(struct sluice_agent_mr *mr, int64_t lease,
                                                         int64_t deadline);

/* Describes a region; set info->size first. -EINVAL; -E2BIG: a size above 4096. */
SLUICE_EXPORT int sluice_agent_mr_query(struct sluice_agent_mr *mr,
                                        struct sluice_agent_mr_info *info);

/*
 * Hands memory of this program to a peer: length bytes at offset of mr, with access
 * (SLUICE_ACCESS_REMOTE_*, at least one), for a lease, or without end: SLUICE_FOREVER. These bytes
 * get a registration and a key of their own. access need not be among the rights of mr, except that
 * mr needs LOCAL_WRITE if peers may write. The memory must stay until the region is over: until its
 * lease and 1 s have passed, sluice_agent_revoke_mr() has returned, the peer is closed, or the
 * region came back. 0: the peer's library has the region, and its program receives it by
 * sluice_agent_receive_remote_mr(). The name of the region is written to id, unless that is NULL.
 * -EOPNOTSUPP: mr is a dmabuf, or the device has no atomic operations; -ERANGE: outside of mr;
 * -ENOMEM; and errors of a wait: the region is then revoked.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_send_local_mr(struct sluice_agent_peer *peer,
                                                              const struct sluice_mr *mr,
                                                              size_t offset, size_t length,
                                                              uint32_t access, int64_t lease,
                                                              int64_t deadline, uint64_t *id);

/*
 * Takes back a region of this side that the peer holds, by its name. When this returns the key is
 * revoked; a use that is in flight ends, with the data queue pair. -ENOENT: the peer holds no such
 * region, or no longer. -ENOTCONN: the peer is lost, and holds none.
 */
SLUICE_EXPORT int sluice_agent_revoke_mr(struct sluice_agent_peer *peer, uint64_t id);

/*
 * Returns the next region of its own memory that a peer has handed over: from that peer or, if peer
 * is NULL, from any peer of the agent; peers take turns. NULL and errno: errors of a wait. Regions
 * of a peer that is lost can no longer be received.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_mr_release)
SLUICE_CONSUMED_BY(sluice_agent_mr_send_back)
struct sluice_agent_mr *sluice_agent_receive_remote_mr(struct sluice_agent *agent,
                                                       struct sluice_agent_peer *peer,
                                                       int64_t timeout);

/*
 * Returns the peer that owns a region. The object stays valid until the region is given or sent
 * back, even if the program closes the peer. NULL: not a region, which is misuse.
 */
SLUICE_EXPORT struct sluice_agent_peer *sluice_agent_mr_peer(const struct sluice_agent_mr *mr);

/*
 * Writes the next own region that a peer has sent back: that peer or, if peer is NULL, any peer
 * that the program has, lost or not; peers take turns. A region from a peer that the program has
 * not taken by sluice_agent_next_peer() yet waits until the program takes that peer. Set
 * local->size first. If the region was allocated here, its bytes are copied to pages that no peer
 * ever had. 0; errors of a wait; -E2BIG: a size above 4096. Regions that arrived before the peer
 * was lost can still be received.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_receive_local_mr(struct sluice_agent *agent,
                                                                 struct sluice_agent_peer *peer,
                                                                 int64_t timeout,
                                                                 struct sluice_agent_local *local);

/*
 * Reads, writes or does an atomic operation at offset of a region, as the blocking calls of a
 * channel do, with 0 to 16 elements of the agent's domain. -EACCES: the lease is over, the owner
 * took the region back, or it does not give the right; nothing was posted, and the connection is
 * unharmed. -ERANGE: outside of the region. -ECANCELED: other work failed the data queue pair,
 * which is made anew: try again. -E2BIG: above 2^32 - 1 bytes, or in more parts than the queue has
 * room for; nothing was posted. -ETIMEDOUT, -EFAULT, -EOPNOTSUPP, -EIO, -ECONNRESET: as of a
 * channel, but the pair is made anew. Else errors of a wait.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_mr_read(struct sluice_agent_mr *mr, uint64_t offset,
                                                        const struct sluice_sge *sges,
                                                        uint32_t sge_count, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_mr_write(struct sluice_agent_mr *mr,
                                                         uint64_t offset,
                                                         const struct sluice_sge *sges,
                                                         uint32_t sge_count, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_mr_compare_swap(struct sluice_agent_mr *mr,
                                                                uint64_t offset,
                                                                const struct sluice_sge *result,
                                                                uint64_t expected, uint64_t desired,
                                                                int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_mr_fetch_add(struct sluice_agent_mr *mr,
                                                             uint64_t offset,
                                                             const struct sluice_sge *result,
                                                             uint64_t addend, int64_t deadline);

/*
 * Does a list of reads, writes and atomics on the data queue pair, as sluice_channel_submit().
 * remote is the handle from sluice_agent_mr_query(); leases are not checked. Each request has peer
 * 0, and no immediate. If a remote handle is not valid at the peer, its request ends with class
 * access, the other requests that are not complete end *cancelled*, and the pair is made anew.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_submit(struct sluice_agent_peer *peer,
                                                       const struct sluice_request *requests,
                                                       uint32_t count, int64_t deadline,
                                                       struct sluice_completion *completions);

/*
 * Sends a message of 0 bytes to the longest that the peer takes
 * (sluice_agent_peer_info.max_message). A message of up to eager bytes is copied, and the call
 * returns once there is room for it at the peer. Such a message is lost only if the connection is;
 * sluice_agent_flush() waits until all messages have arrived. A longer message is read by the peer
 * once its program receives, and the call returns when all of it is there. The memory may be of any
 * kind. -E2BIG: too long for the peer; -EFAULT: bytes are not mapped; else errors of a wait: a
 * message longer than eager is then withdrawn, unless the peer was just reading it.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_send(struct sluice_agent_peer *peer,
                                                     const void *bytes, size_t length,
                                                     int64_t deadline);

/* Waits until the library of the peer has received all that was sent. Errors of a wait. */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_flush(struct sluice_agent_peer *peer,
                                                      int64_t timeout);

/* Frees a message and its bytes; NULL is allowed. */
SLUICE_EXPORT void sluice_agent_message_free(struct sluice_agent_message *message);

/*
 * Returns the next message of a peer or, if peer is NULL, of any peer of the agent. Messages of one
 * peer come in the order in which they were sent; if peer is NULL, peers take turns. A message
 * longer than eager is read from the time when it is the next one. The timeout ends the wait and
 * not the read: whichever thread serves the agent continues it. If peer is NULL, a message is read
 * for 5 s and one second more for each 4 MiB; then it is dropped, and read anew after those of
 * other peers. Messages that arrived before their peer was lost can still be received, unless the
 * program has closed that peer; see max_left_bytes. NULL and errno: errors of a wait, for one peer
 * only after all its messages were received; for a long message on "soft" EMFILE and ENFILE; and,
 * for one peer, EIO (the device failed).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_message_free)
struct sluice_agent_message *sluice_agent_receive(struct sluice_agent *agent,
                                                  struct sluice_agent_peer *peer, int64_t timeout);

/*
 * Returns the bytes of a message, which the program may change; their number; or the sender. The
 * peer object stays valid until the message is freed, even if the program closes the peer. NULL and
 * 0: not a message, which is misuse. A message of 0 bytes has an address, too.
 */
SLUICE_EXPORT void *sluice_agent_message_addr(struct sluice_agent_message *message);
SLUICE_EXPORT size_t sluice_agent_message_length(const struct sluice_agent_message *message);
SLUICE_EXPORT struct sluice_agent_peer *
sluice_agent_message_peer(const struct sluice_agent_message *message);

/*
 * Returns the fd for event loops: it becomes readable when an armed agent has something to do.
 * Watch it, and never read or close it. -EINVAL: not an agent.
 */
SLUICE_EXPORT int sluice_agent_fd(const struct sluice_agent *agent);

/*
 * Arms the fd, and serves peers; call it before each sleep on the fd. 0: sleep, for at most *due
 * nanoseconds, unless due is NULL; 1: first take peers, messages and regions, some of which are new
 * since the last call. -EINVAL: not an agent.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_arm(struct sluice_agent *agent, int64_t *due);

/*
 * Serves peers, without waiting. 0; 1: there is something new, as for sluice_agent_arm(). -EINVAL.
 */
SLUICE_EXPORT int sluice_agent_progress(struct sluice_agent *agent);

/*
 * Ends the waits of other threads for this agent with -EINTR; may be called from any thread and
 * from signal handlers. If no thread waits, the next wait ends so, and the fd becomes readable.
 * Reads, writes and atomics are not interrupted. -EINVAL: not an agent.
 */
SLUICE_EXPORT int sluice_agent_wake(struct sluice_agent *agent);

#ifdef __cplusplus
}
#endif

#endif
