/* SPDX-License-Identifier: MIT */
/*
 * A multichannel: reliable connections to many peers that share a protection domain and a
 * completion queue. A peer is named by its index, 0 to peers - 1. Peers can be added later, and
 * removed: a removed peer leaves its index free, and a request to such an index fails alone,
 * -ENOTCONN.
 *
 * Threads, blocking, deadlines and argument errors are as in channel.h. A peer that fails does not
 * affect the others: only its own requests fail.
 */
#ifndef SLUICE_MULTICHANNEL_H
#define SLUICE_MULTICHANNEL_H

#include <stdint.h>

#include <sluice/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_prepared_multichannel;
struct sluice_multichannel;

/* The largest number of peers of a multichannel. */
#define SLUICE_MAX_PEERS 65536

SLUICE_EXPORT void sluice_prepared_multichannel_free(struct sluice_prepared_multichannel *prepared);

/*
 * Ends all connections at once, as sluice_channel_close(). NULL is allowed. A multichannel that
 * belongs to a node is left unchanged.
 */
SLUICE_EXPORT void sluice_multichannel_close(struct sluice_multichannel *multichannel);

/* Declared here for the compiler's sake; described below. */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_multichannel_close)
struct sluice_multichannel *
sluice_prepared_multichannel_handshake(struct sluice_prepared_multichannel *prepared,
                                       const struct sluice_endpoint *remotes, uint32_t count);

/*
 * Prepares connections to a number of peers, 0 to SLUICE_MAX_PEERS. attr applies to each peer,
 * including those that are added later; NULL means all defaults. The result goes to exactly one of
 * sluice_prepared_multichannel_handshake() and _free(). Errors as sluice_channel_prepare().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_prepared_multichannel_free)
SLUICE_CONSUMED_BY(sluice_prepared_multichannel_handshake)
struct sluice_prepared_multichannel *
sluice_multichannel_prepare(struct sluice_pd *pd, uint32_t peers,
                            const struct sluice_channel_attr *attr);

/*
 * Writes the endpoints, one per peer: endpoints[i] is for peer i. -EINVAL: NULL, if there are
 * peers, or count is not the number of peers.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_prepared_multichannel_endpoints(const struct sluice_prepared_multichannel *prepared,
                                       struct sluice_endpoint *endpoints, uint32_t count);

/*
 * sluice_prepared_multichannel_handshake(), declared above: connects to all peers; remotes[i] is
 * the endpoint that peer i made for this side. The call always consumes the prepared multichannel
 * and never waits. A peer whose endpoint is unusable is in state failed afterwards, with the reason
 * as its error, and the others work. An endpoint of zeros stands for a peer that does not exist
 * yet: it stays prepared, refuses work, and is connected by
 * sluice_multichannel_peer_handshake(). NULL and errno: EINVAL (NULL, except remotes if there are
 * no peers, or count is not the number of peers).
 */

/*
 * Returns the number of indices: one more than the highest that a peer has or had. The number never
 * decreases. 0: there was no peer yet, or it is not a multichannel, which is misuse.
 */
SLUICE_EXPORT uint32_t sluice_multichannel_peers(const struct sluice_multichannel *multichannel);

/*
 * Adds a peer: makes room for it, prepares the connection, and writes its endpoint;
 * sluice_multichannel_peer_handshake() connects it. Returns its index: the lowest that is free,
 * else the next. -EINVAL: NULL, or it belongs to a node; -EBUSY: a scope is open. -ENOMEM: also,
 * there are SLUICE_MAX_PEERS, or the completion queues of the device are full. Else errors of
 * sluice_channel_prepare(). After an error nothing has changed, and *endpoint is untouched.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_add(struct sluice_multichannel *multichannel,
                             struct sluice_endpoint *endpoint);

/*
 * Removes a peer: ends the connection to it, in whatever state it is, and frees its index. Work in
 * flight to the peer is drained for at most 1 s, and the rest ends cancelled. Results that were not
 * taken can still be polled, with SLUICE_PEER_REMOVED. Handles stay valid until the index is used
 * again, and are stale then. -EINVAL: no such peer, or it belongs to a node; -ENOTCONN: it was
 * removed; -EBUSY: a scope is open.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_remove(struct sluice_multichannel *multichannel, uint32_t peer);

/*
 * Tags a remote region with the peer that it belongs to, which has the index now. Once another peer
 * has the index, calls refuse the tagged region, -ESTALE. -EINVAL: no such peer, or NULL;
 * -ENOTCONN: it was removed.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_remote(const struct sluice_multichannel *multichannel, uint32_t peer,
                                const struct sluice_remote_mr *remote,
                                struct sluice_peer_remote_mr *tagged);

/*
 * Looks for events and leaves an armed multichannel armed. Returns the enum sluice_peer_state of a
 * peer, including SLUICE_STATE_REMOVED; -EINVAL: no such peer. All other calls for one peer, except
 * that for its counters, return -ENOTCONN if it was removed.
 */
SLUICE_EXPORT int sluice_multichannel_peer_state(const struct sluice_multichannel *multichannel,
                                                 uint32_t peer);

/* Writes the first error of a peer, as sluice_channel_error(). */
SLUICE_EXPORT int sluice_multichannel_peer_error(const struct sluice_multichannel *multichannel,
                                                 uint32_t peer, struct sluice_error *error);

/*
 * Waits as sluice_channel_wait_connected() does, for one peer, or for all that are not in state
 * prepared, until each has answered or has failed. Returns the error of the first peer that has
 * failed; else -ETIMEDOUT, and the text names the first that has not answered yet. -ENOTCONN also:
 * the one peer is prepared, and its handshake was not done.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_wait_connected(struct sluice_multichannel *multichannel, int64_t timeout);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_wait_connected(struct sluice_multichannel *multichannel, uint32_t peer,
                                        int64_t timeout);

/* Describes the connection to a peer, as sluice_channel_query(). */
SLUICE_EXPORT int sluice_multichannel_peer_query(const struct sluice_multichannel *multichannel,
                                                 uint32_t peer, struct sluice_channel_info *info);

/*
 * Resets a peer: ends the connection to it, in whatever state it is, prepares a new one, and writes
 * its endpoint. Work in flight to the peer is drained for at most 1 s, and ends cancelled. -EINVAL:
 * no such peer, or NULL; -EBUSY: a scope is open: nothing happened. Errors of
 * sluice_channel_prepare(): the peer has failed, and *endpoint is untouched.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_reset(struct sluice_multichannel *multichannel, uint32_t peer,
                               struct sluice_endpoint *endpoint);

/*
 * Connects a peer that was added or reset, or left out of the handshake. -EINVAL: no such peer,
 * NULL, or it is not prepared. -EPROTO, -EPROTOTYPE: the endpoint is unusable; the peer has failed.
 * -EHOSTUNREACH, -ENETUNREACH, -ETIMEDOUT: RoCE has no route to it; the peer has failed. -ESTALE:
 * the endpoint is from before the other side's last reset, or has connected this peer before its
 * last reset here; the peer stays prepared.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_handshake(struct sluice_multichannel *multichannel, uint32_t peer,
                                   const struct sluice_endpoint *remote);

/*
 * Ends all peers together in order, as sluice_channel_shutdown(). -EINVAL: the multichannel belongs
 * to a node.
 */
SLUICE_EXPORT int sluice_multichannel_shutdown(struct sluice_multichannel *multichannel,
                                               int64_t deadline);

/* Blocking calls with one peer, as those of channel.h. */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_send(struct sluice_multichannel *multichannel, uint32_t peer,
                         const struct sluice_sge *sges, uint32_t sge_count, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_send_immediate(struct sluice_multichannel *multichannel, uint32_t peer,
                                   const struct sluice_sge *sges, uint32_t sge_count,
                                   uint32_t immediate, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_receive(struct sluice_multichannel *multichannel, uint32_t peer,
                            const struct sluice_sge *sges, uint32_t sge_count, int64_t deadline,
                            struct sluice_completion *completion);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_write(struct sluice_multichannel *multichannel, uint32_t peer,
                          const struct sluice_sge *sges, uint32_t sge_count,
                          const struct sluice_remote_mr *remote, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_write_immediate(struct sluice_multichannel *multichannel, uint32_t peer,
                                    const struct sluice_sge *sges, uint32_t sge_count,
                                    const struct sluice_remote_mr *remote, uint32_t immediate,
                                    int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_read(struct sluice_multichannel *multichannel, uint32_t peer,
                         const struct sluice_sge *sges, uint32_t sge_count,
                         const struct sluice_remote_mr *remote, int64_t deadline);

/* Atomic operations on 8 bytes of a peer's memory, as sluice_channel_compare_swap(). */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_compare_swap(
    struct sluice_multichannel *multichannel, uint32_t peer, const struct sluice_sge *result,
    const struct sluice_remote_mr *remote, uint64_t expected, uint64_t desired, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_fetch_add(
    struct sluice_multichannel *multichannel, uint32_t peer, const struct sluice_sge *result,
    const struct sluice_remote_mr *remote, uint64_t addend, int64_t deadline);

/*
 * Does a list of requests, as sluice_channel_submit(), to any peers; a peer may occur several
 * times.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_submit(struct sluice_multichannel *multichannel,
                           const struct sluice_request *requests, uint32_t count, int64_t deadline,
                           struct sluice_completion *completions);

/*
 * Does a list of one operation, otherwise as submit: the opcode of each request is SLUICE_OP_NONE
 * or that of the call.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_scatter_send(struct sluice_multichannel *multichannel,
                                 const struct sluice_request *requests, uint32_t count,
                                 int64_t deadline, struct sluice_completion *completions);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_scatter_write(struct sluice_multichannel *multichannel,
                                  const struct sluice_request *requests, uint32_t count,
                                  int64_t deadline, struct sluice_completion *completions);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_gather_receive(struct sluice_multichannel *multichannel,
                                   const struct sluice_request *requests, uint32_t count,
                                   int64_t deadline, struct sluice_completion *completions);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_gather_read(struct sluice_multichannel *multichannel,
                                const struct sluice_request *requests, uint32_t count,
                                int64_t deadline, struct sluice_completion *completions);

/*
 * Posts the receives, sends, and waits for both. Most programs want this call: a blocking send ends
 * only when the peer has a receive for it, so two ranks that both block in scatter_send wait for
 * each other. Opcodes are NONE, or SEND and RECEIVE. completions is NULL or has send_count +
 * receive_count entries, those of the sends first.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_scatter_gather(struct sluice_multichannel *multichannel,
                                   const struct sluice_request *sends, uint32_t send_count,
                                   const struct sluice_request *receives, uint32_t receive_count,
                                   int64_t deadline, struct sluice_completion *completions);

/*
 * Sends the same message to count peers. The request's peer is ignored, its opcode NONE or SEND.
 * completions is NULL or has count entries, in the order of peers.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_multicast_send(
    struct sluice_multichannel *multichannel, const struct sluice_request *request,
    const uint32_t *peers, uint32_t count, int64_t deadline, struct sluice_completion *completions);

/*
 * Writes the same bytes to memory of count peers. The request's peer and remote are ignored, its
 * opcode NONE or WRITE. completions as above. -ESTALE: a region is of another generation than its
 * peer, see sluice_multichannel_peer_remote(); nothing was posted.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_multicast_write(struct sluice_multichannel *multichannel,
                                    const struct sluice_request *request,
                                    const struct sluice_peer_remote_mr *remotes, uint32_t count,
                                    int64_t deadline, struct sluice_completion *completions);

/*
 * Posts work, as sluice_channel_post(): the longest prefix of the list, to any peers.
 * Returns its length. The prefix ends before the first request whose peer has no room or has
 * failed; if that is the first request of the list: -EAGAIN, -E2BIG or -ENOTCONN.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post(struct sluice_multichannel *multichannel,
                         const struct sluice_request *requests, uint32_t count, int64_t deadline,
                         struct sluice_handle *handles);

/* Posts one request, as sluice_channel_post_send() and the others. */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_send(struct sluice_multichannel *multichannel, uint32_t peer,
                              const struct sluice_sge *sges, uint32_t sge_count, int64_t deadline,
                              struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_receive(struct sluice_multichannel *multichannel, uint32_t peer,
                                 const struct sluice_sge *sges, uint32_t sge_count,
                                 int64_t deadline, struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_write(struct sluice_multichannel *multichannel, uint32_t peer,
                               const struct sluice_sge *sges, uint32_t sge_count,
                               const struct sluice_remote_mr *remote, int64_t deadline,
                               struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_read(struct sluice_multichannel *multichannel, uint32_t peer,
                              const struct sluice_sge *sges, uint32_t sge_count,
                              const struct sluice_remote_mr *remote, int64_t deadline,
                              struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_post_compare_swap(
    struct sluice_multichannel *multichannel, uint32_t peer, const struct sluice_sge *result,
    const struct sluice_remote_mr *remote, uint64_t expected, uint64_t desired, int64_t deadline,
    struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_fetch_add(struct sluice_multichannel *multichannel, uint32_t peer,
                                   const struct sluice_sge *result,
                                   const struct sluice_remote_mr *remote, uint64_t addend,
                                   int64_t deadline, struct sluice_handle *handle);

/*
 * Posts a list of one operation, and returns as sluice_multichannel_post() does. The requests are
 * those of the blocking calls, and handles those of post.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_scatter_send(struct sluice_multichannel *multichannel,
                                      const struct sluice_request *requests, uint32_t count,
                                      int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_scatter_write(struct sluice_multichannel *multichannel,
                                       const struct sluice_request *requests, uint32_t count,
                                       int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_gather_receive(struct sluice_multichannel *multichannel,
                                        const struct sluice_request *requests, uint32_t count,
                                        int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_gather_read(struct sluice_multichannel *multichannel,
                                     const struct sluice_request *requests, uint32_t count,
                                     int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_post_multicast_send(
    struct sluice_multichannel *multichannel, const struct sluice_request *request,
    const uint32_t *peers, uint32_t count, int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_post_multicast_write(
    struct sluice_multichannel *multichannel, const struct sluice_request *request,
    const struct sluice_peer_remote_mr *remotes, uint32_t count, int64_t deadline,
    struct sluice_handle *handles);

/*
 * Takes results of posted work of any peer, as the calls of channel.h. sluice_multichannel_next()
 * serves as a receive from any peer.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_poll(struct sluice_multichannel *multichannel,
                         struct sluice_completion *completions, uint32_t count);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_next(struct sluice_multichannel *multichannel, int64_t timeout,
                         struct sluice_completion *completion);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_wait(struct sluice_multichannel *multichannel,
                         const struct sluice_handle *handle, int64_t timeout,
                         struct sluice_completion *completion);

/* Cancels a request as sluice_channel_cancel() does: only the peer of the request fails. */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_cancel(struct sluice_multichannel *multichannel,
                           const struct sluice_handle *handle,
                           struct sluice_completion *completion);
SLUICE_EXPORT int sluice_multichannel_detach(struct sluice_multichannel *multichannel,
                                             const struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_flush(struct sluice_multichannel *multichannel, int64_t timeout);

/*
 * Calls for event loops, with one fd for all peers, as sluice_channel_fd(), _arm() and _wake().
 * -EINVAL: not a multichannel.
 */
SLUICE_EXPORT int sluice_multichannel_fd(const struct sluice_multichannel *multichannel);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_arm(struct sluice_multichannel *multichannel,
                                                           int64_t *due);
SLUICE_EXPORT int sluice_multichannel_wake(struct sluice_multichannel *multichannel);

/*
 * Writes how many immediates of a tag have arrived from all peers together since the multichannel
 * was made, in any order. The multichannel needs arrival_tags in its attributes. An arrival is a
 * write with an immediate, whose bytes are then in memory, or a send of no bytes; a send of more
 * fails the connection. The library posts the receives: each peer may have receive_depth arrivals
 * in flight until the next call of this side on the multichannel, and with receive_pool all peers
 * together may have that many. Counts continue across resets. The call does not wait. -EINVAL: they
 * are not counted here, no such tag, NULL.
 */
SLUICE_EXPORT int sluice_multichannel_arrivals(struct sluice_multichannel *multichannel,
                                               uint32_t tag, uint64_t *count);
/*
 * Waits until at least count immediates of a tag have arrived since the multichannel was made.
 * timeout is in nanoseconds and harms nothing. -ETIMEDOUT: fewer have arrived. -EINTR: woken.
 * -ENOTCONN: fewer have arrived, and no peer is connected. A peer that fails meanwhile ends the
 * wait with its error, once. -EINVAL: as above, or a negative timeout.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_wait_arrivals(struct sluice_multichannel *multichannel, uint32_t tag,
                                  uint64_t count, int64_t timeout);

/*
 * Posts receives that all peers share, if the multichannel has a pool of them (receive_pool in its
 * attributes). A message of any peer takes one of them; the completion names the peer. Peers then
 * have no receives of their own, and requests to receive from one peer are refused, -EINVAL.
 *
 * The requests' peers are ignored; the opcodes are NONE or RECEIVE, and they have no blocks. Posts
 * the longest prefix of the list for which the pool has room, and returns its length. A receive in
 * the pool has no deadline: it waits until a message takes it, while peers come, fail and are
 * reset, and is dropped without a result when the multichannel is closed. Flush and shutdown do not
 * wait for it. Messages take receives in any order, those of one peer in the order of sending.
 *
 * The failure of a peer without sends in flight completes nothing: look for it with
 * sluice_multichannel_peer_state() when a poll after a sleep has found nothing.
 *
 * -EINVAL: there is no pool, or a request is wrong; -EAGAIN: the pool is full; -EBUSY: a scope is
 * open; -EIO, -ENOMEM: the device refused it. Handles as of sluice_multichannel_post(): a wait for
 * one returns -ENOTCONN if no peer is connected; cancelling one harms no peer on soft, unless a
 * message is on its way to it for a second, and is -EOPNOTSUPP on a device.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post_receive_any(struct sluice_multichannel *multichannel,
                                     const struct sluice_request *requests, uint32_t count,
                                     struct sluice_handle *handles);

/*
 * Posts one receive to the pool, behind those that are there, and waits until a message has taken
 * it. A failure names the peer in the completion, if that is not NULL. -ETIMEDOUT: no message came
 * by the deadline, and no peer has failed by that; the receive was taken back. -ENOTCONN: no peer
 * is connected, or none any more. -EOPNOTSUPP: a device cannot take a receive back: nothing was
 * posted. Else as sluice_multichannel_receive() and sluice_multichannel_post_receive_any().
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_receive_any(struct sluice_multichannel *multichannel,
                                const struct sluice_sge *sges, uint32_t sge_count, int64_t deadline,
                                struct sluice_completion *completion);

/*
 * Returns how many receives the pool has room for, or 0 while more than receive_pool_low of them
 * are posted: a program that posts so many after each poll refills the pool in batches. -EINVAL:
 * not a multichannel, or there is no pool.
 */
SLUICE_EXPORT int
sluice_multichannel_receive_any_room(const struct sluice_multichannel *multichannel);

#ifdef __cplusplus
}
#endif

#endif
