/* SPDX-License-Identifier: MIT */
/*
 * A node: one rank of a program of many processes, with a multichannel that connects it to all
 * ranks, itself included: peer i is rank i. A node also has barriers, and allgathers and alltoalls
 * of small values.
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

/* The most bytes that a rank gives in sluice_node_allgather(). */
#define SLUICE_NODE_ALLGATHER_BYTES 65536
/* The most bytes that a rank gives to each other rank in sluice_node_alltoall(). */
#define SLUICE_NODE_ALLTOALL_BYTES 65536

/* The algorithm of a barrier of n ranks; all algorithms have the same guarantees. */
enum sluice_barrier {
    SLUICE_BARRIER_DEFAULT = 0,      /* that of the node; default: by the number of ranks */
    SLUICE_BARRIER_TREE = 1,         /* up and down a binary tree: 2 log2 n steps, 2 n writes */
    SLUICE_BARRIER_CENTRAL = 2,      /* through the first rank of the group: 2 steps, 2 n writes */
    SLUICE_BARRIER_DISSEMINATION = 3 /* all at once: log2 n steps, n log2 n writes */
};

/* When a node connects its ranks. */
enum sluice_node_connect {
    SLUICE_NODE_CONNECT_ALL = 0, /* all with all, when it is opened */
    SLUICE_NODE_CONNECT_LAZY = 1 /* two ranks when one first uses the other */
};

/*
 * With max_connections, a lazy node that needs one more connection closes the idle one that was not
 * used for longest, if both sides have nothing in flight on it and no receive posted. The next
 * request connects it again. Requests wait while none is idle. A receive alone connects no rank.
 */
struct sluice_node_attr {
    uint32_t size;                             /* set to sizeof(struct sluice_node_attr) */
    uint32_t barrier;                          /* enum sluice_barrier */
    const struct sluice_channel_attr *channel; /* of all connections; NULL: all defaults */
    uint32_t connect;                          /* enum sluice_node_connect */
    uint32_t peer_count;                       /* number of peers */
    const uint32_t *peers;    /* of a lazy node: ranks to connect when it is opened; NULL: none */
    uint32_t max_connections; /* of a lazy node, see above; 0: no limit */
    uint32_t max_ranks;       /* of a lazy node that grows: how many rank numbers; 0: it does not */
};

/*
 * Data that rank i needs to connect to this one: an endpoint, and the address of the notification
 * words of barriers.
 */
#define SLUICE_NODE_ENDPOINT_BYTES 448
struct sluice_node_endpoint {
    uint8_t bytes[SLUICE_NODE_ENDPOINT_BYTES];
};

SLUICE_EXPORT void sluice_prepared_node_free(struct sluice_prepared_node *prepared);

/*
 * Ends all connections at once. NULL is allowed. Call sluice_node_shutdown() first to end in order.
 * Without it, a node that had lost a rank notifies the others which rank that was, best effort.
 */
SLUICE_EXPORT void sluice_node_close(struct sluice_node *node);

/* Declared here for the compiler's sake; described below. */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_node_close)
struct sluice_node *sluice_prepared_node_handshake(struct sluice_prepared_node *prepared,
                                                   const struct sluice_node_endpoint *remotes,
                                                   uint32_t ranks);

/*
 * Prepares the connections of rank, 0 to ranks - 1, to all ranks, of which there are 1 to
 * SLUICE_MAX_PEERS. The endpoints of a lazy node are cards, and its handshake connects no rank.
 * NULL and errno on failure: as sluice_multichannel_prepare(), and EINVAL (rank).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_prepared_node_free)
SLUICE_CONSUMED_BY(sluice_prepared_node_handshake)
struct sluice_prepared_node *sluice_node_prepare(struct sluice_pd *pd, uint32_t rank,
                                                 uint32_t ranks,
                                                 const struct sluice_node_attr *attr);

/*
 * Writes an endpoint for each rank: endpoints[i] goes to rank i. -EINVAL: NULL, or ranks is not
 * their number.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_prepared_node_endpoints(const struct sluice_prepared_node *prepared,
                               struct sluice_node_endpoint *endpoints, uint32_t ranks);

/*
 * sluice_prepared_node_handshake(), declared above: connects to all ranks; remotes[i] is the
 * endpoint that rank i made for this one. The call always consumes the prepared node, and never
 * waits. A rank whose endpoint is unusable is in state failed afterwards, as in
 * sluice_prepared_multichannel_handshake(). NULL and errno: EINVAL, EPROTO (an endpoint is of rank
 * i of another program, or in a wrong place).
 */

/*
 * Opens a node in one call: prepares the connections, passes the endpoints over the exchange,
 * connects, and waits until all ranks are connected. All ranks call it. If exchange or pd is NULL,
 * the node opens one, and closes it when the node is closed: the exchange from the environment, see
 * sluice_exchange_open(); and a protection domain on the device that the host file names for this
 * rank, or else that sluice_context_open() takes without a name. Objects that are given stay the
 * caller's; the node does not need the exchange afterwards. If the last call that makes an object
 * has failed, so that the NULL may be its result, the log says so.
 *
 * NULL and errno: as the calls that it consists of; the text and sluice_exchange_missing() name a
 * rank that is missing. ENOENT: the rank of this process is not given anywhere; the text says what
 * to do. ECANCELED: another rank could not open its device or its node; the text has the reason.
 * Then an exchange that was given can still be used.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_node_close)
struct sluice_node *sluice_node_open(struct sluice_pd *pd, struct sluice_exchange *exchange,
                                     const struct sluice_node_attr *attr, int64_t deadline);

/* Returns the rank of the node, or the number of ranks. -EINVAL: not a node. */
SLUICE_EXPORT int sluice_node_rank(const struct sluice_node *node);
SLUICE_EXPORT int sluice_node_ranks(const struct sluice_node *node);

/*
 * Returns the multichannel of the connections: peer i is rank i. It belongs to the node: closing it
 * or shutting it down is a mistake, which does nothing (-EINVAL); all other calls of multichannel.h
 * and scope.h accept it. NULL and errno EINVAL: not a node.
 */
SLUICE_EXPORT struct sluice_multichannel *sluice_node_multichannel(struct sluice_node *node);

/*
 * Returns the protection domain of the connections, its context, or the exchange that the node
 * opened. Objects that the node opened end with it: closing or freeing them is a mistake, which
 * does nothing. Objects made from them, such as memory, may be ended before the node or after it.
 * NULL and errno EINVAL: not a node, or the node was given its exchange, or has none.
 */
SLUICE_EXPORT struct sluice_pd *sluice_node_pd(const struct sluice_node *node);
SLUICE_EXPORT struct sluice_context *sluice_node_context(const struct sluice_node *node);
SLUICE_EXPORT struct sluice_exchange *sluice_node_exchange(const struct sluice_node *node);

/*
 * Returns when all ranks of the group have called it. The group is count ranks, strictly ascending,
 * including this one; ranks NULL: all ranks of the node. Groups may overlap; ranks that are in two
 * groups must enter their barriers in the same order. Bytes that a rank wrote to another are in
 * memory when the barrier returns if the writer had taken the completion of the write before it
 * entered the barrier. A barrier does not complete posted work, see sluice_multichannel_flush().
 *
 * 0; -EINVAL: a list that is not ascending, names a rank that does not exist, or lacks this one, or
 * no such algorithm, or -ETIMEDOUT for a deadline of 0: then nothing happened. All other errors
 * break the barriers of the node until sluice_node_barrier_reset(). -ETIMEDOUT: not all ranks
 * entered before the deadline; the other ranks of the group are notified. The text names the first
 * rank that is missing, which is found by a query of all ranks within four tenths of a second; if
 * it cannot be found, the text names the rank that was waited for, and says so. -ECANCELED: another
 * rank of the group gave up, or was notified that a rank did. -ECONNRESET and similar: a rank of
 * the group is lost. -EPROTO: a rank of the group was in another barrier, or wrote an invalid
 * notification. -ENOTCONN: the barriers were broken before. The call is allowed while a scope of
 * the multichannel is open.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_barrier(struct sluice_node *node,
                                                       const uint32_t *ranks, uint32_t count,
                                                       uint32_t algorithm, int64_t deadline);

/*
 * Gathers a value of each rank at all ranks. Each rank gives bytes, 0 to
 * SLUICE_NODE_ALLGATHER_BYTES, at own. all has room for ranks * bytes; the value of rank i is at
 * i * bytes, and own may be its place there. All ranks call it with the same bytes, and in the same
 * order as barriers of all ranks. The call consists of writes to memory of the node, and uses no
 * receive of the program. Bytes that a rank had written before the call are in memory as after a
 * barrier.
 *
 * 0; -EINVAL: a buffer is NULL, or too many bytes, or -ETIMEDOUT for a deadline of 0: then nothing
 * happened. All other errors are those of sluice_node_barrier(), and break the barriers as well;
 * -EPROTO, at all ranks: they do not agree on the bytes, or some are in another call. After a
 * failure the content of all is undefined.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_allgather(struct sluice_node *node, const void *own,
                                                         void *all, size_t bytes, int64_t deadline);

/*
 * Gathers the handle of a region of each rank, as sluice_node_allgather(): remotes has room for one
 * handle a rank, and remotes[i] is then that of peer i. mr NULL: an empty handle, which opens no
 * memory. A region without SLUICE_ACCESS_REMOTE_READ, or _WRITE, can be shared, but peers that read
 * it, or write to it, fail with class access. -EINVAL also: remotes is NULL, or mr is no region.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_share_mr(struct sluice_node *node,
                                                        const struct sluice_mr *mr,
                                                        struct sluice_peer_remote_mr *remotes,
                                                        int64_t deadline);

/*
 * Passes a value from each rank to each rank, otherwise as sluice_node_allgather(): own and all
 * have room for ranks * bytes, bytes 0 to SLUICE_NODE_ALLTOALL_BYTES. Rank i receives the value at
 * own + i * bytes, and the value from rank i is then at all + i * bytes. own may be all. Programs
 * with messages of varying sizes exchange the sizes with it. Also -ENOMEM or -EMFILE, which break
 * the barriers: the first call allocates memory to write from, and there is none.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_alltoall(struct sluice_node *node, const void *own,
                                                        void *all, size_t bytes, int64_t deadline);

/*
 * Connects all ranks by another multichannel, whose peer i is rank i, with attributes of its own.
 * For instance, the program posts receives on the multichannel of the node, and connects a second
 * one that counts arrivals (arrival_tags). All ranks call it, in the same order as barriers of all
 * ranks, and it returns when all of them are connected. The multichannel belongs to the caller, and
 * accepts all calls of multichannels; barriers still use the connections of the node. A shutdown of
 * the node does not wait for the work of this multichannel: flush it first, and close it
 * afterwards.
 *
 * NULL and errno: EINVAL: not a node, or a negative deadline; ENOTCONN: the barriers are broken;
 * ETIMEDOUT for a deadline of 0: then nothing happened. Errors of sluice_multichannel_prepare() and
 * of the connections: then the other ranks fail as well, ECANCELED, with the reason, and barriers
 * still work. All other errors are those of sluice_node_alltoall(), and break the barriers.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_multichannel_close)
struct sluice_multichannel *sluice_node_multichannel_open(struct sluice_node *node,
                                                          const struct sluice_channel_attr *attr,
                                                          int64_t deadline);

/*
 * Connects ranks that were lost in a multichannel of sluice_node_multichannel_open() anew, after
 * sluice_node_peer_reset() and the calls that follow it. All ranks call it, but ranks that are new
 * processes call sluice_node_multichannel_open() instead. Each connection that is not ready on
 * both sides is reset, so that its work in flight ends cancelled within at most 1 s; all other
 * connections are not affected.
 *
 * 0; -EINVAL: not a node, not a multichannel, one that belongs to a node or has not one peer for
 * each rank, or a negative deadline; -ENOTCONN and -ETIMEDOUT as above: then nothing happened.
 * -EBUSY: a scope of the multichannel is open; or errors of sluice_multichannel_peer_reset() and of
 * connections: the other ranks fail as well, -ECANCELED. The multichannel stays the caller's, and
 * the call may be repeated.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_node_multichannel_reconnect(struct sluice_node *node,
                                   struct sluice_multichannel *multichannel, int64_t deadline);

/*
 * Connects count ranks of a lazy node ahead of their use, or waits for connections that are being
 * made. ranks NULL: all. A rank whose connection has failed is connected anew, if that rank calls
 * this function as well: then its work in flight has ended, and both begin with a new connection.
 * Other ranks need not call it. In a node that connects all, the call waits until they are
 * connected, as sluice_multichannel_peer_wait_connected().
 *
 * 0; -EINVAL: not a node, a rank that does not exist, or a negative deadline; -EBUSY: a scope is
 * open; -ENOTCONN: the node was shut down; -ETIMEDOUT for a deadline of 0: nothing happened. Else
 * the first failure, while all other ranks are connected: -ETIMEDOUT: a rank has not answered yet,
 * and is still being connected; -ECONNRESET and similar: a rank is gone, or refuses.
 */
SLUICE_EXPORT SLUICE_EXPERIMENTAL SLUICE_NODISCARD int sluice_node_reach(struct sluice_node *node,
                                                                         const uint32_t *ranks,
                                                                         uint32_t count,
                                                                         int64_t deadline);

/*
 * Makes barriers work again after a failure. All ranks that are to go on call it, the same number
 * of times, and none uses a barrier before all have returned; a barrier of an exchange can ensure
 * that. Late notifications from before the reset are ignored.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_barrier_reset(struct sluice_node *node);

/*
 * Resets a rank that is started again, mostly as a new process. Ends the connection to it, in
 * whatever state it is, drops its notifications for barriers, prepares a new connection, and writes
 * the endpoint for that rank. Each rank that goes on calls it; by then all of them must have reset
 * their barriers equally often. The call breaks the barriers of the node and notifies all ranks,
 * since some may still be in one. The new process prepares its node in steps; zeros in place of an
 * endpoint stand for a rank that is absent. In a lazy node the endpoint is the card of this rank,
 * and the rank is connected when it is used after its handshake.
 *
 * 0; -EINVAL: no such rank, this one, or NULL; -EBUSY: a scope is open; -ENOTCONN: the node
 * was shut down; nothing happened. Else as sluice_multichannel_peer_reset().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_peer_reset(struct sluice_node *node, uint32_t rank,
                                                          struct sluice_node_endpoint *endpoint);

/*
 * Connects a rank that was reset by sluice_node_peer_reset(), with the endpoint that it made for
 * this rank. When all ranks have done their handshakes, including the new one, all of them call
 * sluice_node_barrier_reset(), each as often as the others since the endpoints were made; barriers
 * and allgathers then work again. The call never waits for the rank.
 *
 * 0; -EINVAL: no such rank, this one, NULL, or it is not prepared; -EBUSY, -ENOTCONN: as above;
 * -EPROTO: not the endpoint of a node, or not made by that rank for this one; the rank stays
 * prepared. -ESTALE, and all other errors: as sluice_multichannel_peer_handshake().
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_node_peer_handshake(struct sluice_node *node, uint32_t rank,
                           const struct sluice_node_endpoint *remote);

/*
 * Members of a lazy node with max_ranks, which come later and leave for good. Such a node has this
 * many rank numbers, each free or of one member. Barriers and gathers of all ranks are those of the
 * members; gathers leave the places of free numbers alone. The number of resets of its barriers is
 * its generation. Requests to a number that is free fail, and their text says when its rank left.
 *
 * sluice_node_grow() takes count new members, with the endpoints that they made, and
 * sluice_node_shrink() ends the connections to count members, dead or alive, and frees their
 * numbers. Both reset the barriers, so that a new generation begins. All members that go on make
 * the same calls in the same order. A new process prepares its node with a free number, and
 * connects to endpoints that all members have made by sluice_node_own_endpoint() in one generation,
 * with zeros for free numbers; then it resets its barriers once, while the members grow.
 *
 * 0; -EINVAL: not such a node, NULL, a list of none, a number that does not exist, is listed twice,
 * is taken (grow) or free (shrink), or is that of this rank; -EPROTO: not an endpoint of such a
 * node; -ECANCELED: the report of a rank that failed; -ENOMEM; -EBUSY: a scope is open; -ENOTCONN:
 * the node was shut down: nothing happened.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_grow(struct sluice_node *node,
                                                    const struct sluice_node_endpoint *endpoints,
                                                    uint32_t count);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_shrink(struct sluice_node *node,
                                                      const uint32_t *ranks, uint32_t count);

/* Writes the endpoint of this rank, for a new member. -EINVAL: not a node that grows, or NULL. */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_own_endpoint(const struct sluice_node *node,
                                                            struct sluice_node_endpoint *endpoint);

/*
 * Returns the number of members, and writes their numbers, ascending, as far as there is room; or
 * returns the generation, from 1 on. -EINVAL: not a node, or a list with room is NULL. In a node
 * that does not grow all ranks are members.
 */
SLUICE_EXPORT int64_t sluice_node_members(const struct sluice_node *node, uint32_t *ranks,
                                          uint32_t room);
SLUICE_EXPORT int64_t sluice_node_generation(const struct sluice_node *node);

/*
 * Ends a node in order: a barrier of all ranks, after which no work of this rank is in flight, and
 * no rank's work fails because another rank has closed. 0; -EBUSY: a scope is open; else as
 * sluice_node_barrier(). The node stays until sluice_node_close().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_node_shutdown(struct sluice_node *node, int64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
