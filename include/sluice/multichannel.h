/* SPDX-License-Identifier: MIT */
/*
 * A multichannel: reliable connections to many peers that share a protection
 * domain and a completion queue. A peer is named by its index, 0 to peers - 1.
 * Peers can come later, and go: those that went leave their index free, and a
 * request to such an index fails alone, -ENOTCONN.
 *
 * Threads, blocking, deadlines and argument errors are as in channel.h. One
 * broken peer breaks no other: its requests fail, the others' do not.
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
 * Ends all connections at once; as sluice_channel_close(). NULL is allowed. Nothing
 * happens to one that belongs to a node.
 */
SLUICE_EXPORT void sluice_multichannel_close(struct sluice_multichannel *multichannel);

/* Declared here for the compiler's sake; described below. */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_multichannel_close)
struct sluice_multichannel *
sluice_prepared_multichannel_handshake(struct sluice_prepared_multichannel *prepared,
                                       const struct sluice_endpoint *remotes, uint32_t count);

/*
 * Prepares connections to so many peers, 0 to SLUICE_MAX_PEERS. attr holds for
 * each peer, also for those that are added later; NULL means all defaults. The
 * result goes to exactly one of sluice_prepared_multichannel_handshake() and
 * _free(). Errors as sluice_channel_prepare().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_prepared_multichannel_free)
SLUICE_CONSUMED_BY(sluice_prepared_multichannel_handshake)
struct sluice_prepared_multichannel *
sluice_multichannel_prepare(struct sluice_pd *pd, uint32_t peers,
                            const struct sluice_channel_attr *attr);

/*
 * Writes the endpoints, one per peer: endpoints[i] is what peer i needs.
 * -EINVAL: NULL, if there are peers, or count is not the number of peers.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_prepared_multichannel_endpoints(const struct sluice_prepared_multichannel *prepared,
                                       struct sluice_endpoint *endpoints, uint32_t count);

/*
 * sluice_prepared_multichannel_handshake(), declared above: connects to all
 * peers; remotes[i] is what peer i gave us. It always consumes the prepared
 * multichannel and never waits. A peer whose endpoint is unusable comes out
 * failed, with its reason, and the others work. An endpoint of zeros stands for
 * a peer that is not there yet: it stays prepared, refuses work, and is
 * connected by sluice_multichannel_peer_handshake(). NULL and errno: EINVAL (NULL,
 * but for a remotes of no peers, or count is not the number of peers).
 */

/*
 * Number of indices: one more than the highest that a peer has or had. It never
 * gets less. 0: there was no peer yet, or it is not a multichannel, which is misuse.
 */
SLUICE_EXPORT uint32_t sluice_multichannel_peers(const struct sluice_multichannel *multichannel);

/*
 * Makes room for one more peer, prepares the connection, and writes its endpoint;
 * sluice_multichannel_peer_handshake() connects it. Returns its index: the lowest
 * one that is free, else the next. -EINVAL: NULL, or it belongs to a node; -EBUSY: a
 * scope is open. -ENOMEM: also, there are SLUICE_MAX_PEERS, or the completion queues
 * of the device are full. Else what sluice_channel_prepare() fails with. All is then
 * as it was, and *endpoint untouched.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_add(struct sluice_multichannel *multichannel,
                             struct sluice_endpoint *endpoint);

/*
 * Ends the connection to a peer, in whatever state it is, and frees its index. Its
 * work in flight is drained, at most 1 s, and what was not done ends cancelled.
 * Results that nobody has seen stay to be polled, with SLUICE_PEER_REMOVED; its
 * handles hold until its index is used again, and are stale then. -EINVAL: no such
 * peer, or it belongs to a node; -ENOTCONN: it was removed; -EBUSY: a scope is open.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_remove(struct sluice_multichannel *multichannel, uint32_t peer);

/*
 * Tags a region with the peer that it belongs to, the one that has the index now.
 * When another peer has it, calls refuse the tagged region, -ESTALE. -EINVAL: no
 * such peer, or NULL; -ENOTCONN: it was removed.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_remote(const struct sluice_multichannel *multichannel, uint32_t peer,
                                const struct sluice_remote_mr *remote,
                                struct sluice_peer_remote_mr *tagged);

/*
 * enum sluice_peer_state of a peer, SLUICE_STATE_REMOVED too; -EINVAL: no such peer.
 * All other calls that ask for one peer, but that for its counters, answer
 * -ENOTCONN if it was removed.
 */
SLUICE_EXPORT int sluice_multichannel_peer_state(const struct sluice_multichannel *multichannel,
                                                 uint32_t peer);

/* The first error of a peer, as sluice_channel_error(). */
SLUICE_EXPORT int sluice_multichannel_peer_error(const struct sluice_multichannel *multichannel,
                                                 uint32_t peer, struct sluice_error *error);

/*
 * As sluice_channel_wait_connected(), for one peer, or for all that are not in state
 * prepared: until each was heard or has failed. Returns the error of the first that
 * has failed; else -ETIMEDOUT, and the text names the first that was not heard yet.
 * -ENOTCONN also: the one peer is prepared, and its handshake still to come.
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
 * Ends the connection to one peer, in whatever state it is, and prepares a new
 * one; writes its endpoint. Its work in flight is drained, at most 1 s, and
 * ends cancelled. -EINVAL: no such peer, or NULL; -EBUSY: a scope is open: nothing
 * happened. Errors of sluice_channel_prepare(): the peer has failed, and *endpoint
 * is untouched.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_reset(struct sluice_multichannel *multichannel, uint32_t peer,
                               struct sluice_endpoint *endpoint);

/*
 * Connects a peer that was reset, or left out of the handshake. -EINVAL: no such
 * peer, NULL, or it is not prepared. -EPROTO, -EPROTOTYPE: the endpoint is
 * unusable; the peer is failed. -EHOSTUNREACH, -ENETUNREACH, -ETIMEDOUT: RoCE has no way
 * to it; likewise. -ESTALE: the endpoint is what the other side gave
 * out before its last reset, or what it was heard with before the last reset of
 * this peer, which stays prepared.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_peer_handshake(struct sluice_multichannel *multichannel, uint32_t peer,
                                   const struct sluice_endpoint *remote);

/*
 * The orderly end, as sluice_channel_shutdown(), of all peers together. -EINVAL: it
 * belongs to a node.
 */
SLUICE_EXPORT int sluice_multichannel_shutdown(struct sluice_multichannel *multichannel,
                                               int64_t timeout);

/* Blocking, with one peer: as the calls of channel.h. */
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

/* Atomic operations on 8 bytes of a peer's, as sluice_channel_compare_swap(). */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_compare_swap(
    struct sluice_multichannel *multichannel, uint32_t peer, const struct sluice_sge *result,
    const struct sluice_remote_mr *remote, uint64_t expected, uint64_t desired, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_fetch_add(
    struct sluice_multichannel *multichannel, uint32_t peer, const struct sluice_sge *result,
    const struct sluice_remote_mr *remote, uint64_t addend, int64_t deadline);

/* The primitive, as sluice_channel_submit(), to any peers, the same one twice too. */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_submit(struct sluice_multichannel *multichannel,
                           const struct sluice_request *requests, uint32_t count, int64_t deadline,
                           struct sluice_completion *completions);

/*
 * Lists of one operation, otherwise as submit: the opcode of each request is
 * SLUICE_OP_NONE or that of the call.
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
 * Posts the receives, sends, and waits for both. This is the one most programs
 * want: a blocking send ends only when the peer took it into a receive, so two
 * ranks that both block in scatter_send wait for each other. Opcodes are NONE,
 * or SEND and RECEIVE. completions is
 * NULL or has send_count + receive_count entries, those of the sends first.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_scatter_gather(struct sluice_multichannel *multichannel,
                                   const struct sluice_request *sends, uint32_t send_count,
                                   const struct sluice_request *receives, uint32_t receive_count,
                                   int64_t deadline, struct sluice_completion *completions);

/*
 * The same message to count peers. The request's peer is ignored, its opcode
 * NONE or SEND. completions is NULL or has count entries, in the order of peers.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_multicast_send(
    struct sluice_multichannel *multichannel, const struct sluice_request *request,
    const uint32_t *peers, uint32_t count, int64_t deadline, struct sluice_completion *completions);

/*
 * The same bytes into memory of count peers. The request's peer and remote are
 * ignored, its opcode NONE or WRITE. completions as above. -ESTALE: a region is of
 * another generation than its peer, see sluice_multichannel_peer_remote(); nothing
 * was posted.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_multicast_write(struct sluice_multichannel *multichannel,
                                    const struct sluice_request *request,
                                    const struct sluice_peer_remote_mr *remotes, uint32_t count,
                                    int64_t deadline, struct sluice_completion *completions);

/*
 * Unpolled work, as sluice_channel_post(): posts the longest prefix of the list,
 * to any peers, and returns its length. It ends before the first request whose
 * peer has no room or has failed; if that is the very first one: -EAGAIN,
 * -E2BIG or -ENOTCONN.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_post(struct sluice_multichannel *multichannel,
                         const struct sluice_request *requests, uint32_t count, int64_t deadline,
                         struct sluice_handle *handles);

/* One request, as sluice_channel_send_unpolled() and the others. */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_send_unpolled(struct sluice_multichannel *multichannel, uint32_t peer,
                                  const struct sluice_sge *sges, uint32_t sge_count,
                                  int64_t deadline, struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_receive_unpolled(struct sluice_multichannel *multichannel, uint32_t peer,
                                     const struct sluice_sge *sges, uint32_t sge_count,
                                     int64_t deadline, struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_write_unpolled(struct sluice_multichannel *multichannel, uint32_t peer,
                                   const struct sluice_sge *sges, uint32_t sge_count,
                                   const struct sluice_remote_mr *remote, int64_t deadline,
                                   struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_read_unpolled(struct sluice_multichannel *multichannel, uint32_t peer,
                                  const struct sluice_sge *sges, uint32_t sge_count,
                                  const struct sluice_remote_mr *remote, int64_t deadline,
                                  struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_compare_swap_unpolled(
    struct sluice_multichannel *multichannel, uint32_t peer, const struct sluice_sge *result,
    const struct sluice_remote_mr *remote, uint64_t expected, uint64_t desired, int64_t deadline,
    struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_fetch_add_unpolled(struct sluice_multichannel *multichannel, uint32_t peer,
                                       const struct sluice_sge *result,
                                       const struct sluice_remote_mr *remote, uint64_t addend,
                                       int64_t deadline, struct sluice_handle *handle);

/*
 * Lists of one operation, which return as sluice_multichannel_post() does: the
 * requests are those of the blocking calls, and handles those of post.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_scatter_send_unpolled(struct sluice_multichannel *multichannel,
                                          const struct sluice_request *requests, uint32_t count,
                                          int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_scatter_write_unpolled(struct sluice_multichannel *multichannel,
                                           const struct sluice_request *requests, uint32_t count,
                                           int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_gather_receive_unpolled(struct sluice_multichannel *multichannel,
                                            const struct sluice_request *requests, uint32_t count,
                                            int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_gather_read_unpolled(struct sluice_multichannel *multichannel,
                                         const struct sluice_request *requests, uint32_t count,
                                         int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_multicast_send_unpolled(
    struct sluice_multichannel *multichannel, const struct sluice_request *request,
    const uint32_t *peers, uint32_t count, int64_t deadline, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_multicast_write_unpolled(
    struct sluice_multichannel *multichannel, const struct sluice_request *request,
    const struct sluice_peer_remote_mr *remotes, uint32_t count, int64_t deadline,
    struct sluice_handle *handles);

/* What became of it, of any peer: as the calls of channel.h. next is a receive from any. */
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

/* As sluice_channel_cancel(): the peer of the request fails, and no other. */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_cancel(struct sluice_multichannel *multichannel,
                           const struct sluice_handle *handle,
                           struct sluice_completion *completion);
SLUICE_EXPORT int sluice_multichannel_detach(struct sluice_multichannel *multichannel,
                                             const struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_flush(struct sluice_multichannel *multichannel, int64_t timeout);

/*
 * For event loops: one fd for all peers. As sluice_channel_fd(), _arm() and
 * _wake(). -EINVAL: not a multichannel.
 */
SLUICE_EXPORT int sluice_multichannel_fd(const struct sluice_multichannel *multichannel);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_multichannel_arm(struct sluice_multichannel *multichannel,
                                                           int64_t *due);
SLUICE_EXPORT int sluice_multichannel_wake(struct sluice_multichannel *multichannel);

/*
 * Arrivals, where arrival_tags of the attributes is set: how many immediates of a tag have
 * come from all peers together since the multichannel was made, in whatever order. One comes
 * with a write, whose bytes are there then, or with a send of no bytes; a send of more fails
 * the connection.
 * Nobody posts receives for them: each peer may have receive_depth of them on their way while
 * no call of this side looks. Counts outlive resets. This looks, and does not wait.
 * -EINVAL: they are not counted here, no such tag, NULL.
 */
SLUICE_EXPORT int sluice_multichannel_arrivals(struct sluice_multichannel *multichannel,
                                               uint32_t tag, uint64_t *count);
/*
 * Waits until at least count have come, as they may have before. timeout is in nanoseconds
 * and harms nothing. -ETIMEDOUT: fewer have. -EINTR: woken. -ENOTCONN: fewer have, and no
 * peer is connected. A peer that fails meanwhile ends the wait with its error, once. -EINVAL:
 * as above, or a negative timeout.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_multichannel_wait_arrivals(struct sluice_multichannel *multichannel, uint32_t tag,
                                  uint64_t count, int64_t timeout);

#ifdef __cplusplus
}
#endif

#endif
