/* SPDX-License-Identifier: MIT */
/*
 * An agent: memory as a service beside channels. Peers that connect to an agent may have
 * memory allocated there, within a quota and for a lease, and read and write it; regions are
 * handed over, back and forth; and messages of any size come whole, without receives that
 * anybody posts. sluice_agent_create(3) begins with the life of a program.
 *
 * Each connection has two queue pairs. What agents say to each other goes over the control
 * one, which gives no rights to memory; reads, writes and atomics over the data one. If that
 * fails, the agents make it anew, and nothing else ends with it; if the control one fails the
 * peer is lost, and the memory that it had here is taken back.
 *
 * Threads: all calls of an agent, of its peers and of what came of these may be made by
 * several threads at a time; what a call ends must not be in use by another one. Who waits
 * drives the agent, and so serves all peers meanwhile; otherwise the agent's own thread does
 * (SLUICE_AGENT_THREAD), or the program's event loop. Without any of them nobody is served.
 *
 * Deadlines are in nanoseconds from now, see time.h. Only those of reads, writes and atomics
 * are destructive, and of the data queue pair alone: what is on it ends, cancelled, and it is
 * made anew. All others end a wait, and the connection is unharmed.
 *
 * Errors of calls that wait for a peer: -ETIMEDOUT, -EINTR (sluice_agent_wake()), -ENOTCONN
 * (the peer is lost, or was before; the text tells why), -ECANCELED (the agent was closed),
 * -EPROTO (the peer answered what cannot be), -ENOMEM. -EINVAL: not such an object, NULL, a
 * negative duration. Others are told with each.
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
struct sluice_agent_peer;    /* a connection, while the program has it: lost or not */
struct sluice_agent_mr;      /* memory of a peer's that we hold, under a lease */
struct sluice_agent_message; /* that has come, whole */

/* Flags of an agent. */
#define SLUICE_AGENT_THREAD (UINT32_C(1) << 0) /* a thread of the library's serves peers */

/*
 * Zero, or a NULL pointer, means the default. What it says of peers holds for each of them.
 * Its memory at this side: quota; registered buffers of about (2 * window + 96) * (eager + 48)
 * bytes, of which those in use are touched; max_waiting_bytes; and up to 256 KiB for long
 * messages, once one is sent to it. For all peers together
 * that have left, max_left_bytes; who was there when that was reached may add its own.
 */
struct sluice_agent_attr {
    uint32_t size;              /* sizeof(struct sluice_agent_attr) */
    uint32_t flags;             /* SLUICE_AGENT_* */
    uint32_t access;            /* rights that peers may get to memory that is allocated for
                                   them here: SLUICE_ACCESS_REMOTE_*; default read, write and, if
                                   the device has them, atomic. SLUICE_ACCESS_NONE: none is
                                   allocated */
    uint32_t max_peers;         /* connections at a time, 1..65536, default 1024; others are
                                   refused */
    uint32_t max_regions;       /* that a peer may have allocated here; 1..65536, default 256 */
    uint32_t eager;             /* bytes of the longest message that is sent at once, and not
                                   read by who receives it; 64..65536, default 4096. The smaller
                                   one of both sides holds */
    uint32_t window;            /* messages and requests of a peer on their way; 4..256,
                                   default 16 */
    uint32_t max_waiting;       /* messages and regions of a peer's that wait to be received
                                   here, 1..65536, default 256. Its program waits beyond it */
    uint64_t max_waiting_bytes; /* in those messages that were sent at once; at least eager, at
                                   most 2^40, default 1 MiB */
    uint64_t quota;             /* bytes, in whole pages, that a peer may have allocated here, or
                                   has sent back and our program has not received yet; at most
                                   2^60, default 64 MiB */
    uint64_t max_message;       /* bytes of the longest message that is received; at most 2^60,
                                   default 1 GiB */
    int64_t max_lease;          /* nanoseconds, 1 ms at least, default 60 s; SLUICE_FOREVER:
                                   leases may be without end */
    int64_t keepalive;          /* of the data queue pair, as that of a channel: a silent host is
                                   lost after it; 1 ms..1 h, default 0: never. A process that
                                   ends is noticed without it */
    const char *secret_file;    /* of those who connect, and of connects, as in connect.h: NULL:
                                   that of SLUICE_SECRET_FILE; empty: none */
    uint64_t max_left_bytes;    /* of memory of messages that wait to be received here, though
                                   their peers have left and the program never took these; at
                                   most 2^40, default 64 MiB. While there is as much, who comes is
                                   refused; nothing is dropped */
};

/* What became of the peers of an agent, and what they have now. */
struct sluice_agent_info {
    uint32_t size;          /* set to sizeof(struct sluice_agent_info) by the caller */
    uint32_t peers;         /* that are connected */
    uint32_t regions;       /* that peers have of us, allocated or handed over */
    uint32_t held;          /* of peers that we have */
    uint64_t bytes;         /* in regions that were allocated for peers, in whole pages, until they
                               end, or were sent back and received */
    uint64_t allocated;     /* regions for peers, so far */
    uint64_t denied;        /* requests for memory: rights, quota or number */
    uint64_t expired;       /* regions of ours that ended with their lease */
    uint64_t reclaimed;     /* that were a peer's when it was lost, or left */
    uint64_t late;          /* uses of our regions after their lease, as peers told */
    uint64_t refused_late;  /* uses of regions of peers that were refused here, for their lease */
    uint64_t malformed;     /* messages of peers that were refused: no such form */
    uint64_t oversized;     /* longer than was allowed */
    uint64_t unasked;       /* answers to nothing, and requests about what is not the peer's */
    uint64_t reconnects;    /* data queue pairs that were made anew */
    uint64_t lost;          /* peers */
    uint64_t messages_sent; /* whole ones; so is the next */
    uint64_t messages_arrived; /* */
    uint64_t left_bytes;  /* now, of messages and their peers, which max_left_bytes bounds; a peer
                            counts, for about 10 KiB and its messages, until all of these were
                            received */
    uint64_t turned_away; /* who came, and was refused: for max_peers or max_left_bytes */
};

/* State of a peer. */
enum sluice_agent_state {
    SLUICE_AGENT_CONNECTED = 1,
    SLUICE_AGENT_LOST = 2 /* it has left, or failed: error and text tell */
};

struct sluice_agent_peer_info {
    uint32_t size;        /* set to sizeof(struct sluice_agent_peer_info) by the caller */
    uint32_t state;       /* enum sluice_agent_state */
    int32_t error;        /* why it is lost: a negative errno value; 0: it is not, or has left in
                             good order */
    uint32_t level;       /* enum sluice_transport_level */
    uint32_t access;      /* rights that it gives to memory that it allocates */
    uint32_t eager;       /* bytes of the longest message that is sent at once */
    uint32_t regions;     /* of ours that it has */
    uint32_t held;        /* of its regions that we have */
    uint64_t bytes;       /* in regions that were allocated for it here, in whole pages */
    uint64_t quota;       /* of ours there, bytes */
    uint64_t max_message; /* bytes of the longest that it takes */
    int64_t max_lease;    /* that it gives, nanoseconds */
    uint64_t refused;     /* messages of its that were malformed, oversized or unasked for */
    uint64_t reconnects;  /* of the data queue pair */
    char address[64];     /* for people */
    char text[256];       /* why it is lost; empty: it is not */
};

/* A region of a peer's, as we hold it. */
struct sluice_agent_mr_info {
    uint32_t size;                  /* set to sizeof(struct sluice_agent_mr_info) by the caller */
    uint32_t access;                /* rights that we have: SLUICE_ACCESS_REMOTE_* */
    uint64_t id;                    /* the owner's name for it, of this connection */
    int64_t lease;                  /* nanoseconds that are left, 0: it is over, or the owner took
                                       the region back; SLUICE_FOREVER: no end */
    struct sluice_remote_mr remote; /* its bytes; not a lease: who uses it otherwise than by this
                                       library's calls of agent regions must look after that */
};

/* A region of ours that has come back from a peer that held it. */
struct sluice_agent_local {
    uint32_t size;        /* set to sizeof(struct sluice_agent_local) by the caller */
    uint32_t reserved;    /* written as 0 */
    uint64_t id;          /* its name: of sluice_agent_send_local_mr(), or of the allocation */
    void *addr;           /* the first byte */
    uint64_t length;      /* bytes */
    struct sluice_mr *mr; /* it was allocated here for the peer: now the program's, with
                             LOCAL_WRITE and no rights of peers, to be deregistered. NULL: it was
                             the program's all the time */
    struct sluice_agent_peer *peer; /* that had it; until the program closes it */
};

/*
 * Ends it: all its peers are lost (and are still to be closed, as what came of them is), and
 * all memory that they had here is taken back. NULL is allowed. Calls of other threads end
 * with -ECANCELED.
 */
SLUICE_EXPORT void sluice_agent_close(struct sluice_agent *agent);

/*
 * Makes an agent of a domain, whose device it uses; attr NULL: all defaults. A remote key of
 * a region opens it to all peers of the domain: give agents domains of their own. The result
 * goes to sluice_agent_close().
 *
 * NULL and errno on failure: EINVAL (attr: the text names the field), E2BIG, EOPNOTSUPP
 * (access REMOTE_ATOMIC, and the device has no atomic operations), EMFILE, ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_close)
struct sluice_agent *sluice_agent_create(struct sluice_pd *pd,
                                         const struct sluice_agent_attr *attr);

/*
 * Lets peers come, at an address as that of sluice_listen(), whose errors it has; attr may be
 * NULL, and its secret_file is NULL: it is the agent's. -EBUSY: it listens already.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_listen(struct sluice_agent *agent,
                                                       const char *address,
                                                       const struct sluice_listen_attr *attr);

/* Its port, and the address as text, as sluice_listener_address(). -ENOENT: it does not listen. */
SLUICE_EXPORT int sluice_agent_address(const struct sluice_agent *agent, char *text, size_t size);

/* How it is; set info->size first (see sluice(7)). -EINVAL; -E2BIG: a size above 4096. */
SLUICE_EXPORT int sluice_agent_query(struct sluice_agent *agent, struct sluice_agent_info *info);

/*
 * Leaves the peer: waits at most 1 s for what was sent to be taken, and then ends the
 * connection. The memory that it had here is taken back, and what we held of it is gone.
 * Who came by itself and was never taken by the program needs no close. NULL is allowed.
 */
SLUICE_EXPORT void sluice_agent_peer_close(struct sluice_agent_peer *peer);

/*
 * Connects to an agent that listens at "host:port"; options may be NULL, and its secret_file
 * and private data are NULL. NULL and errno: those of sluice_connect(), ENOTCONN (it is lost
 * again: what has not greeted within 10 s may be no agent), EINTR, ECANCELED, ENOBUFS (max_peers
 * are connected).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_peer_close)
struct sluice_agent_peer *sluice_agent_connect(struct sluice_agent *agent, const char *address,
                                               const struct sluice_connect_attr *options,
                                               int64_t deadline);

/*
 * The next one that has connected to us, in the order in which they came. They are served
 * whether the program asks for them or not. NULL and errno: ETIMEDOUT (nobody yet), EINTR,
 * EINVAL, ECANCELED.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_peer_close)
struct sluice_agent_peer *sluice_agent_next_peer(struct sluice_agent *agent, int64_t timeout);

/* How it is; set info->size first. -EINVAL; -E2BIG: a size above 4096. */
SLUICE_EXPORT int sluice_agent_peer_query(struct sluice_agent_peer *peer,
                                          struct sluice_agent_peer_info *info);

/*
 * Gives a region back, whether the lease is over or not; the owner ends it. It always consumes
 * the region, and waits for the owner to say that it is done. 0; or that it could not be told,
 * which harms nothing: errors of a wait.
 */
SLUICE_EXPORT int sluice_agent_release_mr(struct sluice_agent_mr *mr, int64_t deadline);

/*
 * Sends a region back to the peer that owns it, whose program receives it as local memory, with
 * what is in it: sluice_agent_receive_local_mr(). All our rights end. A region goes to its owner
 * alone: keys are of one connection. It always consumes the region. -EACCES: the lease is over,
 * or the owner took it back; else errors of a wait: the owner has it or not, and we do not.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_send_remote_mr(struct sluice_agent_mr *mr,
                                                               int64_t deadline);

/*
 * Asks the peer for memory: length bytes, zeroed, with access (SLUICE_ACCESS_REMOTE_*, at least
 * one) for a lease in nanoseconds, or as long as the peer gives, which is 0. What it gives may
 * be shorter: sluice_agent_mr_query(). The result goes to sluice_agent_release_mr() or
 * sluice_agent_send_remote_mr(), also once the peer is lost.
 *
 * The lease is counted here from before the peer was asked, and there until a second after its
 * end: then the key is revoked, and the memory gone.
 *
 * NULL and errno: EACCES (it gives no such rights), EDQUOT (its quota for us, of bytes or of
 * regions: the text tells), EBUSY (it has too much to do for us), ENOMEM (there, or here), EINVAL
 * (also: access has other bits, no bytes), and errors of a wait. After ETIMEDOUT what comes late
 * is given back by itself.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_release_mr)
SLUICE_CONSUMED_BY(sluice_agent_send_remote_mr)
struct sluice_agent_mr *sluice_agent_request_mr(struct sluice_agent_peer *peer, uint64_t length,
                                                uint32_t access, int64_t lease, int64_t deadline);

/*
 * Asks the owner for a new lease of a region that was allocated for us, in nanoseconds from now,
 * or as long as the owner gives, which is 0. It is counted as the first one was, what the owner
 * gives may be shorter than what was asked for, and it never ends before the one that there was.
 * -EACCES: the lease is over, or the owner took the region back, or its program handed it over,
 * and set the lease; -EINVAL: also: it has no end; -EPROTO: also: a longer one than was asked
 * for; else errors of a wait. After any error it is as it was, for all that we may know of it.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_renew_mr(struct sluice_agent_mr *mr, int64_t lease,
                                                         int64_t deadline);

/* The region; set info->size first. -EINVAL; -E2BIG: a size above 4096. */
SLUICE_EXPORT int sluice_agent_mr_query(struct sluice_agent_mr *mr,
                                        struct sluice_agent_mr_info *info);

/*
 * Hands over memory of ours: length bytes at offset of the region, with access
 * (SLUICE_ACCESS_REMOTE_*, at least one), for a lease, or without end: SLUICE_FOREVER. It gets
 * a registration and a key of its own, and access need not be among the rights of mr, but for
 * LOCAL_WRITE if peers may write. The memory must stay until the region is over: its lease and
 * 1 s, or sluice_agent_revoke_mr(), or the peer closed, or it came back. 0, and the peer's
 * library has it: its program receives it by sluice_agent_receive_remote_mr(). id, unless NULL,
 * is its name. -EOPNOTSUPP: it is a dmabuf, or atomics are not to be had; -ERANGE: outside of
 * mr; -ENOMEM; and errors of a wait: the region is then revoked.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_send_local_mr(struct sluice_agent_peer *peer,
                                                              const struct sluice_mr *mr,
                                                              size_t offset, size_t length,
                                                              uint32_t access, int64_t lease,
                                                              int64_t deadline, uint64_t *id);

/*
 * Takes back a region that the peer has of us, by its name: its key is worth nothing any more
 * when this returns, and a use that is under way ends, with the data queue pair. -ENOENT: the
 * peer has no such region, any more. -ENOTCONN: the peer is lost, and has none.
 */
SLUICE_EXPORT int sluice_agent_revoke_mr(struct sluice_agent_peer *peer, uint64_t id);

/*
 * The next region that a peer has handed over, its own memory: of that peer, or, if peer is
 * NULL, of any of the agent, which take turns. NULL and errno: errors of a wait. What came
 * before the peer was lost is received no more.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_release_mr)
SLUICE_CONSUMED_BY(sluice_agent_send_remote_mr)
struct sluice_agent_mr *sluice_agent_receive_remote_mr(struct sluice_agent *agent,
                                                       struct sluice_agent_peer *peer,
                                                       int64_t timeout);

/*
 * Whose region it is: that peer is there until the region is given or sent back, though the
 * program close it. NULL: not a region, which is misuse.
 */
SLUICE_EXPORT struct sluice_agent_peer *sluice_agent_mr_peer(const struct sluice_agent_mr *mr);

/*
 * The next region of ours that a peer has sent back: that peer, or, if peer is NULL, any that the
 * program has, lost or not, which take turns; of one that it never took by
 * sluice_agent_next_peer() it waits until it does. Set local->size first. What was allocated here
 * comes as memory of its own, in pages that no peer ever had. 0; errors of a wait; -E2BIG: a size
 * above 4096. What came before the peer was lost is still there.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_receive_local_mr(struct sluice_agent *agent,
                                                                 struct sluice_agent_peer *peer,
                                                                 int64_t timeout,
                                                                 struct sluice_agent_local *local);

/*
 * Reads, writes and atomics at offset of a region, as those of a channel: of blocks, 0 to 16
 * elements of our domain. -EACCES: the lease is over, the owner took it back, or it does not
 * give the right; nothing was posted, and the connection is unharmed. -ERANGE: outside of the
 * region. -ECANCELED: the data queue pair failed by other work, and is made anew: try again.
 * -ETIMEDOUT, -EMSGSIZE, -EFAULT, -EOPNOTSUPP, -E2BIG, -EIO, -ECONNRESET: as of a channel, but
 * that the pair is made anew. Else errors of a wait.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_read(struct sluice_agent_mr *mr, uint64_t offset,
                                                     const struct sluice_sge *sges,
                                                     uint32_t sge_count, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_write(struct sluice_agent_mr *mr, uint64_t offset,
                                                      const struct sluice_sge *sges,
                                                      uint32_t sge_count, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_compare_swap(struct sluice_agent_mr *mr,
                                                             uint64_t offset,
                                                             const struct sluice_sge *result,
                                                             uint64_t expected, uint64_t desired,
                                                             int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_fetch_add(struct sluice_agent_mr *mr,
                                                          uint64_t offset,
                                                          const struct sluice_sge *result,
                                                          uint64_t addend, int64_t deadline);

/*
 * A list of reads, writes and atomics on the data queue pair, as sluice_channel_submit():
 * remote is what sluice_agent_mr_query() tells, and nobody looks after leases. Each request has
 * peer 0, and no immediate. A remote handle that is not valid there ends its request with class
 * access, and the others that are not done *cancelled*; the pair is made anew.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_submit(struct sluice_agent_peer *peer,
                                                       const struct sluice_request *requests,
                                                       uint32_t count, int64_t deadline,
                                                       struct sluice_completion *completions);

/*
 * Sends a message of 0 bytes to what the peer takes (sluice_agent_peer_info.max_message). One of
 * up to eager bytes is taken over, and this returns once there is room for it there; it is lost
 * only if the connection is, and sluice_agent_flush() tells. A longer one is read by the peer once
 * its program receives, and this returns when all of it is there; it may be in memory of any kind.
 * -EMSGSIZE: too long for the peer; -EFAULT: bytes are not mapped; else errors of a wait: of one
 * that is longer than eager, the peer's program does not get it, unless it was just being read.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_send(struct sluice_agent_peer *peer,
                                                     const void *bytes, size_t length,
                                                     int64_t deadline);

/* Waits until the library of the peer has all that was sent. Errors of a wait. */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_flush(struct sluice_agent_peer *peer,
                                                      int64_t timeout);

/* Ends a message; NULL is allowed. */
SLUICE_EXPORT void sluice_agent_message_free(struct sluice_agent_message *message);

/*
 * The next message of a peer, or, if peer is NULL, of any of the agent; messages of one peer
 * come in the order in which they were sent, and of any, peers take turns. One that is longer
 * than eager is read from when it is the next one; the timeout ends the wait and not that, and
 * who serves the agent goes on with it. Of any, one is read for 5 s and one for each 4 MiB, and
 * then again after those of others. What came from a peer before it was lost is received still,
 * unless the program has closed that peer; see max_left_bytes. NULL and errno: errors of a wait,
 * of one peer after all that came from it; of a long one EMFILE and ENFILE, on "soft"; and, of
 * one peer, EIO (the device failed).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_agent_message_free)
struct sluice_agent_message *sluice_agent_receive(struct sluice_agent *agent,
                                                  struct sluice_agent_peer *peer, int64_t timeout);

/*
 * Its bytes, which the program may change, and how many; and from whom it is: that peer is
 * there until the message is freed, though the program close it. NULL and 0: not a message,
 * which is misuse. A message of 0 bytes has bytes, too.
 */
SLUICE_EXPORT void *sluice_agent_message_bytes(struct sluice_agent_message *message);
SLUICE_EXPORT size_t sluice_agent_message_length(const struct sluice_agent_message *message);
SLUICE_EXPORT struct sluice_agent_peer *
sluice_agent_message_peer(const struct sluice_agent_message *message);

/*
 * For event loops: the fd becomes readable when an armed agent has something to do. Watch it,
 * and never read or close it. -EINVAL: not an agent.
 */
SLUICE_EXPORT int sluice_agent_fd(const struct sluice_agent *agent);

/*
 * To be called before each sleep on the fd; it serves peers. 0: sleep, for at most *due
 * nanoseconds, unless due is NULL; 1: first look for what has come: peers, messages or regions,
 * of which some are new since the last time. -EINVAL: not an agent.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_agent_arm(struct sluice_agent *agent, int64_t *due);

/* Serves peers, without waiting. 0; 1: something is new, as of sluice_agent_arm(). -EINVAL. */
SLUICE_EXPORT int sluice_agent_progress(struct sluice_agent *agent);

/*
 * From any thread, and from signal handlers: waits of other threads for this agent end with
 * -EINTR; if there is none, the next one does so, and the fd becomes readable. Reads, writes
 * and atomics are not interrupted. -EINVAL: not an agent.
 */
SLUICE_EXPORT int sluice_agent_wake(struct sluice_agent *agent);

#ifdef __cplusplus
}
#endif

#endif
