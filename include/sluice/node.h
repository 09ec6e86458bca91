/* SPDX-License-Identifier: MIT */
/*
 * A node: one rank of a program of many, with a multichannel that connects it to all
 * ranks, itself among them: peer i is rank i. It also has barriers, and allgathers and
 * alltoalls of small values.
 *
 * Threads, blocking, deadlines and argument errors are as in channel.h.
 */
#ifndef SLUICE_NODE_H
#define SLUICE_NODE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/exchange.h>
#include <sluice/mr.h>
#include <sluice/multichannel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_prepared_node;
struct sluice_node;

/* The most that a rank gives in sluice_node_allgather(). */
#define SLUICE_NODE_ALLGATHER_BYTES 65536
/* The most that a rank gives to each other one in sluice_node_alltoall(). */
#define SLUICE_NODE_ALLTOALL_BYTES 65536

/* The algorithm of a barrier of n ranks; all algorithms promise the same. */
enum sluice_barrier {
    SLUICE_BARRIER_DEFAULT = 0,      /* that of the node; by default by the number of ranks */
    SLUICE_BARRIER_TREE = 1,         /* up and down a binary tree: 2 log2 n steps, 2 n writes */
    SLUICE_BARRIER_CENTRAL = 2,      /* through the first rank of the group: 2 steps, 2 n writes */
    SLUICE_BARRIER_DISSEMINATION = 3 /* all at once: log2 n steps, n log2 n writes */
};

struct sluice_node_attr {
    uint32_t size;                             /* set to sizeof(struct sluice_node_attr) */
    uint32_t barrier;                          /* enum sluice_barrier */
    const struct sluice_channel_attr *channel; /* of all connections; NULL: all defaults */
};

/* What rank i needs of us: an endpoint, and where the notification words of barriers are. */
#define SLUICE_NODE_ENDPOINT_BYTES 320
struct sluice_node_endpoint {
    uint8_t bytes[SLUICE_NODE_ENDPOINT_BYTES];
};

SLUICE_EXPORT void sluice_prepared_node_free(struct sluice_prepared_node *prepared);

/*
 * Ends all connections at once. NULL is allowed. sluice_node_shutdown() is the orderly
 * end; without it, a node that had lost a rank tells the others which, best effort.
 */
SLUICE_EXPORT void sluice_node_close(struct sluice_node *node);

/* Declared here for the compiler's sake; described below. */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_node_close)
struct sluice_node *sluice_prepared_node_handshake(struct sluice_prepared_node *prepared,
                                                   const struct sluice_node_endpoint *remotes,
                                                   uint32_t ranks);

/*
 * Prepares the connections of rank, 0 to ranks - 1, to ranks 1 to SLUICE_MAX_PEERS.
 * NULL and errno on failure: as sluice_multichannel_prepare(), and EINVAL (rank).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_prepared_node_free)
SLUICE_CONSUMED_BY(sluice_prepared_node_handshake)
struct sluice_prepared_node *sluice_node_prepare(struct sluice_pd *pd, uint32_t rank,
                                                 uint32_t ranks,
                                                 const struct sluice_node_attr *attr);

/* Writes what each rank needs: endpoints[i] goes to rank i. -EINVAL: NULL, or not that many. */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_prepared_node_endpoints(const struct sluice_prepared_node *prepared,
                               struct sluice_node_endpoint *endpoints, uint32_t ranks);

/*
 * sluice_prepared_node_handshake(), declared above: connects to all ranks;
 * remotes[i] is what rank i made for us. It always consumes the prepared node,
 * and never waits. A rank whose endpoint is unusable comes out failed, as in
 * sluice_prepared_multichannel_handshake(). NULL and errno: EINVAL, EPROTO (of
 * rank i of another program, or in another place).
 */

/*
 * All of it: prepares, gives the endpoints to each other over the exchange,
 * connects, and waits until all ranks are connected. All ranks call it. What is
 * NULL the node opens by itself, and closes when it is closed: the exchange as the
 * environment says, see sluice_exchange_open(); and a protection domain on the
 * device that the host file names for this rank, or else that
 * sluice_context_open() takes without a name. What is given stays the caller's; the
 * node does not need the exchange afterwards. If the last call that makes an object
 * has failed, so that a NULL may be its result, the log says so.
 *
 * NULL and errno: as the calls it is made of; a rank that is missing is named by
 * the text and by sluice_exchange_missing(). ENOENT: nothing says which rank this
 * is; the text says what to do. ECANCELED: another rank could not open its device
 * or its node; the text has its reason. Then an exchange that was given can still
 * be used.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_node_close)
struct sluice_node *sluice_node_open(struct sluice_pd *pd, struct sluice_exchange *exchange,
                                     const struct sluice_node_attr *attr, int64_t deadline);

/* -EINVAL: not a node. */
SLUICE_EXPORT int64_t sluice_node_rank(const struct sluice_node *node);
SLUICE_EXPORT int64_t sluice_node_ranks(const struct sluice_node *node);

/*
 * The connections: peer i is rank i. It belongs to the node: to close it or shut it
 * down is a mistake, which does nothing (-EINVAL); all other calls of multichannel.h
 * and scope.h take it. NULL and errno EINVAL: not a node.
 */
SLUICE_EXPORT struct sluice_multichannel *sluice_node_multichannel(struct sluice_node *node);

/*
 * The protection domain of the connections, and its context; and the exchange that the
 * node opened. What it opened goes with it: to close or free it is a mistake, which does
 * nothing. What was made of them, such as memory, may be ended before the node or after
 * it. NULL and errno EINVAL: not a node, or it was given its exchange, or none.
 */
SLUICE_EXPORT struct sluice_pd *sluice_node_pd(const struct sluice_node *node);
SLUICE_EXPORT struct sluice_context *sluice_node_context(const struct sluice_node *node);
SLUICE_EXPORT struct sluice_exchange *sluice_node_exchange(const struct sluice_node *node);

/*
 * Returns when all ranks of the group have called it: count ranks, strictly
 * ascending, this one among them; ranks NULL: all of the node. Groups may
 * overlap; ranks that are in two of them must enter these in the same order. What a
 * rank wrote to another one is there when the barrier returns if the writer had seen
 * the completion of the write before it came. Unpolled work has completed only when
 * that was asked for, see sluice_multichannel_flush().
 *
 * 0; -EINVAL: a list that is not ascending, names a rank that does not exist, or lacks
 * this one, or no such algorithm, or -ETIMEDOUT for a deadline of 0: then nothing
 * happened. All else breaks the barriers of the node until sluice_node_barrier_reset().
 * -ETIMEDOUT: not all came before the deadline, and the others of the group are told.
 * The text names the first that is missing, for which all are asked within a tenth of a
 * second; where that cannot be found out, the one that was waited for, and says so.
 * -ECANCELED: another rank of the group gave up, or had been told so. -ECONNRESET and
 * the like: a rank of the group is lost. -EPROTO: a rank of the group was in another
 * barrier, or wrote what it must not. -ENOTCONN: the barriers were broken before. An
 * open scope of the multichannel does not matter.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_barrier(struct sluice_node *node,
                                                       const uint32_t *ranks, uint32_t count,
                                                       uint32_t algorithm, int64_t deadline);

/*
 * Each rank gives bytes, 0 to SLUICE_NODE_ALLGATHER_BYTES, at own. all has room for
 * ranks * bytes, and what rank i gave is then at i * bytes; own may be its place there.
 * All ranks call it with the same bytes, and in the same order as barriers of all. It
 * consists of writes into memory of the node: it uses no receive of the program. What a
 * rank had written before it came is there as after a barrier.
 *
 * 0; -EINVAL: a buffer is NULL, or too many bytes, or -ETIMEDOUT for a deadline of 0: then
 * nothing happened. All else is as of sluice_node_barrier(), and breaks the barriers as
 * well; -EPROTO, to all ranks: they do not agree on the bytes, or some are in another
 * call. After a failure it is not known what is in all.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_allgather(struct sluice_node *node, const void *own,
                                                         void *all, size_t bytes, int64_t deadline);

/*
 * The same for the handle of a region of each rank: remotes has room for one a rank, and
 * remotes[i] is then of peer i. mr NULL: an empty handle, which reaches nothing. A region
 * without SLUICE_ACCESS_REMOTE_READ, or _WRITE, can be shared, but peers that read it, or
 * write to it, fail with class access. -EINVAL also: remotes is NULL, or mr is no region.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_share_mr(struct sluice_node *node,
                                                        const struct sluice_mr *mr,
                                                        struct sluice_peer_remote_mr *remotes,
                                                        int64_t deadline);

/*
 * The same with a value for each rank: own and all have room for ranks * bytes, bytes 0 to
 * SLUICE_NODE_ALLTOALL_BYTES. This rank gives rank i what is at own + i * bytes, and what
 * rank i gave it is then at all + i * bytes. own may be all. Programs with messages of
 * varying sizes tell each other the sizes with it. Also -ENOMEM or -EMFILE, which break the
 * barriers: the first call allocates memory to write from, and there is none.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_alltoall(struct sluice_node *node, const void *own,
                                                        void *all, size_t bytes, int64_t deadline);

/*
 * Connects all ranks once more: another multichannel, whose peer i is rank i, with attributes
 * of its own. A node has one whose receives the program posts, for instance, and connects a
 * second one that counts arrivals (arrival_tags). All ranks call it, in the same order as
 * barriers of all, and it returns when all of them are connected. The multichannel is the
 * caller's, and a multichannel in every way; barriers stay those of the node. A shutdown of
 * the node does not wait for its work: flush it first, and close it afterwards.
 *
 * NULL and errno: EINVAL: not a node, or a negative deadline; ENOTCONN: the barriers are
 * broken; ETIMEDOUT for a deadline of 0: then nothing happened. As
 * sluice_multichannel_prepare(), and what its connections fail with: then the other ranks
 * fail as well, ECANCELED, with the reason, and barriers still work. All else is as of
 * sluice_node_alltoall(), and breaks the barriers.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_multichannel_close)
struct sluice_multichannel *sluice_node_connect(struct sluice_node *node,
                                                const struct sluice_channel_attr *attr,
                                                int64_t deadline);

/*
 * Connects the ranks anew that are lost in a multichannel of sluice_node_connect(), after
 * sluice_node_peer_reset() and its like: all ranks call it, but those that are new processes
 * call sluice_node_connect() in its place. Each connection that is not ready on both sides is
 * reset, so that its work in flight ends cancelled, at most 1 s; all others go on untouched.
 *
 * 0; -EINVAL: not a node, not a multichannel, one that belongs to a node or has not one peer
 * for each rank, or a negative deadline; -ENOTCONN and -ETIMEDOUT as above: then nothing
 * happened. -EBUSY: a scope of it is open; or as sluice_multichannel_peer_reset() and what
 * connections fail with: the other ranks fail as well, -ECANCELED. The multichannel stays the
 * caller's, and the call may be made again.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_reconnect(struct sluice_node *node,
                                                         struct sluice_multichannel *multichannel,
                                                         int64_t deadline);

/*
 * Makes barriers work again after a failure. All ranks that are to go on call it, the
 * same number of times, and none uses a barrier before all have returned; an exchange
 * can make sure of that. Notifications from before that come late are ignored.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_barrier_reset(struct sluice_node *node);

/*
 * For a rank that comes again, mostly as a new process. Ends the connection to it, in
 * whatever state it is, forgets what it wrote for barriers, prepares a new connection,
 * and writes the endpoint that goes to that rank. Each rank that goes on calls it; by
 * then all of these have reset their barriers equally often. The barriers of the node
 * break, and all ranks are told, since some may still be in one. The new process prepares
 * its node in steps; zeros in place of an endpoint stand for a rank that is not there.
 *
 * 0; -EINVAL: no such rank, this one, or NULL; -EBUSY: a scope is open; -ENOTCONN: the node
 * was shut down; nothing happened. Else as sluice_multichannel_peer_reset().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_peer_reset(struct sluice_node *node, uint32_t rank,
                                                          struct sluice_node_endpoint *endpoint);

/*
 * Connects a rank that was reset by sluice_node_peer_reset() to what it made for us. When
 * all ranks have done their handshakes, the new one too, all of them call
 * sluice_node_barrier_reset(), and then have barriers and allgathers again: each as often
 * as the others since the endpoints were made. It never waits for the rank.
 *
 * 0; -EINVAL: no such rank, this one, NULL, or it is not prepared; -EBUSY, -ENOTCONN: as
 * above; -EPROTO: not the endpoint of a node, or not made by that rank for this one; the
 * rank stays prepared. -ESTALE, and all else: as sluice_multichannel_peer_handshake().
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_node_peer_handshake(struct sluice_node *node, uint32_t rank,
                           const struct sluice_node_endpoint *remote);

/*
 * The orderly end: a barrier of all ranks, after which no work of ours is in
 * flight, and nobody's fails because another one has closed. 0; -EBUSY: a scope is open;
 * else as sluice_node_barrier(). The node stays until sluice_node_close().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_shutdown(struct sluice_node *node, int64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
