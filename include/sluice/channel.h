/* SPDX-License-Identifier: MIT */
/*
 * A channel: one reliable connection to one peer. A prepared channel has an endpoint to pass to the
 * peer, and becomes a channel by the handshake with the peer's endpoint.
 *
 * Threads: one thread at a time uses a channel, its scope and its prepared form; different threads
 * may use different channels at the same time. Blocking: only calls with a deadline or timeout
 * wait. Deadlines and timeouts: see time.h. All calls check their arguments before anything is
 * posted; if they return -EINVAL, -ERANGE or -E2BIG, nothing was posted and nothing was written.
 * -E2BIG: a message that is longer than max_message, an inline one than max_inline, or any request
 * than 2^32 - 1 bytes. -EMSGSIZE: a message was longer than its receive (class truncated).
 */
#ifndef SLUICE_CHANNEL_H
#define SLUICE_CHANNEL_H

#include <stdint.h>

#include <sluice/endpoint.h>
#include <sluice/error.h>
#include <sluice/macros.h>
#include <sluice/mr.h>
#include <sluice/pd.h>
#include <sluice/request.h>
#include <sluice/time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_prepared_channel;
struct sluice_channel;
struct sluice_scope;
struct sluice_mr_cache;

/* Way in which a blocking call waits. */
enum sluice_wait_mode {
    SLUICE_WAIT_ADAPTIVE = 0, /* spin for spin_time, then sleep */
    SLUICE_WAIT_SPIN = 1,     /* never sleep */
    SLUICE_WAIT_EVENT = 2     /* sleep at once */
};

enum sluice_peer_state {
    SLUICE_STATE_PREPARED = 1, /* has an endpoint to give; not connected */
    SLUICE_STATE_READY = 2,    /* the local end is ready for work */
    SLUICE_STATE_FAILED = 3,   /* refuses work until it is reset */
    SLUICE_STATE_REMOVED = 4   /* of a multichannel: removed, and its index is free */
};

/* For channel_attr.access: peers may neither read nor write. */
#define SLUICE_ACCESS_NONE (UINT32_C(1) << 31)

/* Flags of a channel. */
#define SLUICE_CHANNEL_GLOBAL (UINT32_C(1) << 0)     /* InfiniBand: route by GID, with a GRH */
#define SLUICE_CHANNEL_PSN (UINT32_C(1) << 1)        /* psn is given */
#define SLUICE_CHANNEL_HISTOGRAMS (UINT32_C(1) << 2) /* measure latencies: histogram.h */
/*
 * A message longer than its receive is dropped: that receive fails, with the length of the message
 * in bytes of its completion, and the connection goes on. For the sender the send succeeds. Only
 * soft can do it, a device is -EOPNOTSUPP; and not with arrival_tags.
 */
#define SLUICE_CHANNEL_DROP_LONG (UINT32_C(1) << 3)

/*
 * Attributes of a channel and of each peer of a multichannel. Zero: the default, or the device's
 * limit if that is lower. The fields from path_mtu to rnr_retry are for RDMA devices; soft only
 * checks their ranges.
 */
struct sluice_channel_attr {
    uint32_t size;          /* set to sizeof(struct sluice_channel_attr) */
    uint32_t flags;         /* SLUICE_CHANNEL_* */
    uint32_t send_depth;    /* sends, writes, reads, atomics in flight; 1..16384, default 128 */
    uint32_t receive_depth; /* receives posted; 1..16384, default 128 */
    uint32_t max_sge;       /* SGEs of a request; 1..32, default 4; a read has at most max_read_sge
                               of sluice_context_info, too */
    uint32_t max_inline;    /* bytes of an inline send or write; 1..1024, default 64,
                               SLUICE_ZERO: none */
    uint32_t access;        /* rights of peers: SLUICE_ACCESS_REMOTE_*, or SLUICE_ACCESS_NONE;
                               default remote read, write and, if the device has them, atomic.
                               keepalive of the other side needs reads or writes */
    uint32_t read_depth;    /* reads and atomics in flight, both ways; 1..128, default 16 */
    uint64_t max_message;   /* bytes; 4096..the device's, default the device's. A longer send is
                               refused, a longer read or write is split; a message from the peer is
                               limited by its receive alone */
    int64_t keepalive;      /* nanoseconds of silence after which a peer is probed, and then of
                               waiting for its answer until it is lost; 1 ms..1 h, default 0:
                               never */
    int64_t spin_time;      /* nanoseconds of spinning before a sleep; 1..1e9, default 20000 */
    uint32_t wait_mode;     /* enum sluice_wait_mode, default adaptive */
    uint32_t arrival_tags;  /* immediates 0..arrival_tags - 1 are counted as they arrive, by
                               receives that the library posts; 1..1048576, default 0: none are
                               counted, and the program posts receives */
    uint32_t queue_pairs;   /* queue pairs of a peer, over which large reads and writes are striped;
                               1..8, default 1. The smaller number of both sides holds */
    uint32_t stripe_least;  /* bytes of the smallest read or write that is striped; 1..2147483647,
                               default 262144 */
    struct sluice_mr_cache *mr_cache; /* cache of the same protection domain that registers the
                                         memory of requests with SLUICE_PLAIN_MEMORY. It cannot end
                                         before the channel or multichannel. Default NULL: such
                                         requests are refused */
    uint64_t staging; /* bytes of each of the two staging buffers of a peer, for messages of blocks
                         in more pieces than max_sge; 0..2^32, default 0: no staging buffers. See
                         blocks.h */
    uint32_t receive_pool;     /* multichannel: receives that all peers share; 1..65536, default 0:
                                  each peer has receive_depth of its own. With a pool receive_depth
                                  is the share of a peer on soft, and a device ignores it: see
                                  sluice_multichannel_post_receive_any(). With arrival_tags the
                                  library posts all of them */
    uint32_t receive_pool_low; /* sluice_multichannel_receive_any_room() is 0 while more of them are
                                  posted; less than receive_pool, default 0: half of it */
    uint32_t path_mtu;      /* bytes: 256, 512, 1024, 2048 or 4096; default the port's. The smaller
                               value of both sides holds */
    uint32_t pkey;          /* partition key, by value; 0: the first of the port's table */
    uint32_t service_level; /* 0..15, default 0; RoCE: priority in a VLAN tag, 0..7 */
    uint32_t traffic_class; /* with a GRH: 0..255, default 0; RoCE v2: DSCP * 4 */
    uint32_t flow_label;    /* with a GRH: 0..1048575, default 0: the device's choice */
    uint32_t hop_limit;     /* with a GRH: 1..255, default 64; on RoCE Linux uses the route's */
    uint32_t path_bits;     /* InfiniBand: low bits of the local LID; 0..127, default 0 */
    uint32_t psn;           /* first packet sequence number, 24 bits, if SLUICE_CHANNEL_PSN is
                               set; else random */
    uint32_t ack_timeout;   /* 4.096 us * 2^n; 1..31, default 18 (1.07 s), SLUICE_ZERO: 0, which
                               is for ever */
    uint32_t retry_count;   /* 1..6, default 6, SLUICE_ZERO: 0; 7 retries for ever on some
                               devices */
    uint32_t rnr_timer;     /* code of InfiniBand; 1..31, default 12 (0.64 ms), SLUICE_ZERO: 0,
                               which is 655.36 ms */
    uint32_t rnr_retry;     /* 1..7, default 7: for ever, the deadline decides; SLUICE_ZERO: 0 */
};

/*
 * Values that a channel uses. The numbers from psn to rnr_retry are those of RDMA devices, and 0
 * on soft, except gid_index. Negotiated values are 0 until the handshake.
 */
struct sluice_channel_info {
    uint32_t size;              /* set to sizeof(struct sluice_channel_info) by the caller */
    uint32_t level;             /* enum sluice_transport_level; 0: not connected */
    uint32_t send_depth;        /* as in the attributes; so are the next three */
    uint32_t receive_depth;     /* */
    uint32_t max_sge;           /* */
    uint32_t max_inline;        /* */
    uint64_t max_message;       /* longest message that we send, bytes */
    uint32_t read_depth;        /* reads and atomics that we may have in flight; negotiated */
    uint32_t remote_read_depth; /* reads and atomics of the peer that we answer at a time;
                                   negotiated */
    uint32_t queue_pairs;       /* of this peer; negotiated. qpn and psn are those of the first */
    uint32_t stripe_least;      /* as in the attributes */
    uint64_t staging;           /* as in the attributes, rounded up to 64 */
    char address[64];           /* the local one, for people, such as "RoCE v2 192.0.2.1" */
    char remote_address[64];    /* the peer's; empty: not known (yet) */
    uint32_t qpn;               /* number of the local queue pair; 0: it was destroyed */
    uint32_t remote_qpn;        /* number of the peer's queue pair */
    uint32_t psn;               /* first packet sequence number that we send */
    uint32_t remote_psn;        /* the same, that the peer sends */
    uint32_t path_mtu;          /* bytes; negotiated */
    uint32_t port;              /* of the device */
    int32_t gid_index;          /* of the local GID; -1: none is used */
    uint32_t pkey;              /* local partition key, with the bit of full membership */
    uint32_t service_level;     /* as in the attributes; so is the rest */
    uint32_t traffic_class;     /* 0 without a GRH */
    uint32_t flow_label;        /* 0 without a GRH */
    uint32_t hop_limit;         /* 0 without a GRH */
    uint32_t ack_timeout;       /* */
    uint32_t retry_count;       /* */
    uint32_t rnr_timer;         /* */
    uint32_t rnr_retry;         /* */
};

SLUICE_EXPORT void sluice_prepared_channel_free(struct sluice_prepared_channel *prepared);
SLUICE_EXPORT void sluice_channel_close(struct sluice_channel *channel);

/* Declared here for the compiler's sake; described below. */
SLUICE_EXPORT struct sluice_prepared_channel *sluice_channel_reset(struct sluice_channel *channel);
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_channel_close)
SLUICE_CONSUMED_BY(sluice_channel_reset)
struct sluice_channel *sluice_prepared_channel_handshake(struct sluice_prepared_channel *prepared,
                                                         const struct sluice_endpoint *remote);

/*
 * Prepares a channel: makes a queue pair and an endpoint, without waiting for the peer. A NULL attr
 * means all defaults. The result goes to exactly one of sluice_prepared_channel_handshake() and
 * sluice_prepared_channel_free().
 *
 * NULL and errno on failure: EINVAL (attr out of range: the text names field and range, or lists
 * what the port has), E2BIG (attr of a newer version with fields set that this library does not
 * know), EOPNOTSUPP (the device, driver or kernel cannot do it), EACCES, EMFILE, ENOMEM, ENETDOWN
 * (the port is down), EADDRNOTAVAIL (the port has no usable address), EIO (the device has failed,
 * or the driver has an error of its own, which is in the text).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_prepared_channel_free)
SLUICE_CONSUMED_BY(sluice_prepared_channel_handshake)
struct sluice_prepared_channel *sluice_channel_prepare(struct sluice_pd *pd,
                                                       const struct sluice_channel_attr *attr);

/* Writes the endpoint that the peer's handshake needs. -EINVAL: NULL. */
SLUICE_EXPORT int sluice_prepared_channel_endpoint(const struct sluice_prepared_channel *prepared,
                                                   struct sluice_endpoint *endpoint);

/*
 * sluice_prepared_channel_handshake(), declared above: connects to the peer's endpoint. The
 * call always consumes the prepared channel, success or not, and never waits for the peer: if the
 * peer is absent, the first operation fails. Synchronise with the peer before the first message: a
 * message that reaches a peer before its handshake is delayed by a retransmission.
 *
 * NULL and errno on failure: EPROTO (not an endpoint, of another version, or of a port that the
 * local one cannot reach: another link layer, address or partition), EPROTOTYPE (of another
 * transport), ESTALE (the endpoint is from before the peer's last reset, or has connected this
 * channel before its own), EOPNOTSUPP (keepalive is set, and the peer's access allows neither reads
 * nor writes), EINVAL (NULL or not a prepared channel), EADDRNOTAVAIL (the port has lost its
 * address), EACCES, EIO, EMFILE, ENETDOWN, ENOMEM (as of sluice_channel_prepare()), EHOSTUNREACH,
 * ENETUNREACH or ETIMEDOUT (on RoCE, where the kernel looks for the peer's host, which takes up to
 * a second if the host is absent). The prepared channel is then freed.
 */

/*
 * Ends the connection and returns a prepared channel with a new endpoint. The call always consumes
 * the channel. Work in flight is drained and ends cancelled, which takes at most 1 s. NULL and
 * errno as sluice_channel_prepare(), and EBUSY: a scope was open.
 */
SLUICE_REDECLARE_BEGIN
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_prepared_channel_free)
SLUICE_CONSUMED_BY(sluice_prepared_channel_handshake)
struct sluice_prepared_channel *sluice_channel_reset(struct sluice_channel *channel);
SLUICE_REDECLARE_END

/*
 * sluice_channel_close(): ends the connection at once. Work in flight is drained for at most 1 s;
 * no buffer is touched afterwards. NULL is allowed.
 */

/*
 * Ends a channel in order: waits until all posted work is complete, then refuses new work and ends
 * the connection. The object stays until sluice_channel_close(). 0: all work had completed;
 * -ETIMEDOUT: the deadline has passed, and the rest was cancelled. In both cases the channel has
 * then failed, with status WR_FLUSH_ERR.
 */
SLUICE_EXPORT int sluice_channel_shutdown(struct sluice_channel *channel, int64_t deadline);

/*
 * Waits until the peer has done its handshake too and has answered: no message that is sent from
 * then on is delayed by a missing handshake. A peer that has answered once counts as connected
 * until its channel fails, and is not probed again. 0; -ETIMEDOUT: the peer has not answered yet,
 * and nothing else happened; -EINTR: woken; -ENOTCONN: the channel had failed before; -EOPNOTSUPP:
 * the peer's attr.access allows neither reads nor writes, or the device is too small; -EBUSY: a
 * scope is open; else the error with which the channel failed meanwhile.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_wait_connected(struct sluice_channel *channel,
                                                                 int64_t timeout);

/* Returns SLUICE_STATE_READY or SLUICE_STATE_FAILED; -EINVAL: not a channel. */
SLUICE_EXPORT int sluice_channel_state(const struct sluice_channel *channel);

/*
 * Writes the first error of the channel; set error->size first (see sluice(7)). 1: there is one. 0:
 * there is none, and *error is filled in accordingly. -EINVAL: not a channel, NULL, or too small a
 * size. -E2BIG: a size above 4096.
 */
SLUICE_EXPORT int sluice_channel_error(const struct sluice_channel *channel,
                                       struct sluice_error *error);

/*
 * Describes the channel: negotiated values, and the values that were used for defaults. Set
 * info->size first (see sluice(7)). -EINVAL: not a channel, NULL, or too small a size. -E2BIG: a
 * size above 4096.
 */
SLUICE_EXPORT int sluice_channel_query(const struct sluice_channel *channel,
                                       struct sluice_channel_info *info);

/*
 * Blocking operations. 0 on success. When they return, for whatever reason, the transport no longer
 * touches the buffers. A deadline that passes fails the channel; a deadline of 0 posts nothing,
 * -ETIMEDOUT. Inline, fenced or solicited requests are posted by submit.
 *
 * Errors, besides those of arguments: the errno value of the error's class (error.h), -ENOTCONN if
 * the channel had failed before the call, and -EBUSY if a scope is open: use the calls of the scope
 * instead (scope.h).
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_send(struct sluice_channel *channel,
                                                       const struct sluice_sge *sges,
                                                       uint32_t sge_count, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_channel_send_immediate(struct sluice_channel *channel, const struct sluice_sge *sges,
                              uint32_t sge_count, uint32_t immediate, int64_t deadline);

/*
 * Receives one message. completion may be NULL; it holds the length of the message and the
 * immediate.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_receive(struct sluice_channel *channel,
                                                          const struct sluice_sge *sges,
                                                          uint32_t sge_count, int64_t deadline,
                                                          struct sluice_completion *completion);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_channel_write(struct sluice_channel *channel, const struct sluice_sge *sges,
                     uint32_t sge_count, const struct sluice_remote_mr *remote, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_channel_write_immediate(struct sluice_channel *channel, const struct sluice_sge *sges,
                               uint32_t sge_count, const struct sluice_remote_mr *remote,
                               uint32_t immediate, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_channel_read(struct sluice_channel *channel, const struct sluice_sge *sges,
                    uint32_t sge_count, const struct sluice_remote_mr *remote, int64_t deadline);

/*
 * Atomic operations on 8 bytes of the peer's memory, which are done once or not at all.
 * sluice_context_info.atomics tells what they are atomic against. The old value goes to result, in
 * host byte order. Compare-swap stores desired if it finds expected; fetch-add adds modulo 2^64.
 * Errors of arguments: -EINVAL (a NULL, an address that is no multiple of 8, a result not of 8
 * bytes), -ERANGE (a remote range of less than 8 bytes), -EOPNOTSUPP (the device has none).
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_channel_compare_swap(struct sluice_channel *channel, const struct sluice_sge *result,
                            const struct sluice_remote_mr *remote, uint64_t expected,
                            uint64_t desired, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_fetch_add(struct sluice_channel *channel,
                                                            const struct sluice_sge *result,
                                                            const struct sluice_remote_mr *remote,
                                                            uint64_t addend, int64_t deadline);

/*
 * The primitive of the blocking calls: does a list of requests of any kind and waits for all of
 * them. Receives are posted before sends; requests that do not fit the queues are posted as they
 * drain. completions is NULL or has count entries, in the order of requests. An argument error is
 * found before anything is posted, and then nothing is written; once anything was posted, all
 * completions are written. completions must not overlap requests. A request that was done is
 * reported as done, whatever failed after it. If the deadline passes before there is room for a
 * request, that request fails alone (-ETIMEDOUT); if it passes after the request was posted, the
 * channel fails.
 *
 * 0: all succeeded, or count is 0. Else the first failure in the order of
 * requests that is neither -ECANCELED nor -ENOTCONN, or else the first failure.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_submit(struct sluice_channel *channel,
                                                         const struct sluice_request *requests,
                                                         uint32_t count, int64_t deadline,
                                                         struct sluice_completion *completions);

/*
 * Posts work: as many of the first requests as there is room for. Returns how many, at
 * least 1; 0 only if count is 0. The deadline acts when the program calls the library. handles is
 * NULL or has count entries; one is written for each request that was posted. sluice_channel_poll()
 * returns requests without handles as well. To post the rest of a list, call again with the
 * remaining requests.
 *
 * Results are kept until they are taken. When their places are needed, the oldest successes are
 * forgotten, and the last 64 failures are kept.
 *
 * Each request that was posted completes exactly once. Errors mean that nothing was posted:
 * -EAGAIN: no room in the queues for the first request now: poll and try again. -ETIMEDOUT: the
 * deadline is 0. -E2BIG: there will never be room for it, it is split into too many parts, or its
 * blocks into too many pieces. -ENOTCONN: the channel has failed. -EFAULT, -ENOBUFS, -ENOMEM: there
 * is no region for plain memory.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_post(struct sluice_channel *channel,
                                                       const struct sluice_request *requests,
                                                       uint32_t count, int64_t deadline,
                                                       struct sluice_handle *handles);

/*
 * Posts one request, without flags, as sluice_channel_post() does; handle may be NULL. 0: it was
 * posted. The arguments are those of the blocking calls.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_post_send(struct sluice_channel *channel,
                                                            const struct sluice_sge *sges,
                                                            uint32_t sge_count, int64_t deadline,
                                                            struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_post_receive(struct sluice_channel *channel,
                                                               const struct sluice_sge *sges,
                                                               uint32_t sge_count, int64_t deadline,
                                                               struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_channel_post_write(struct sluice_channel *channel, const struct sluice_sge *sges,
                          uint32_t sge_count, const struct sluice_remote_mr *remote,
                          int64_t deadline, struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_channel_post_read(struct sluice_channel *channel, const struct sluice_sge *sges,
                         uint32_t sge_count, const struct sluice_remote_mr *remote,
                         int64_t deadline, struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_channel_post_compare_swap(struct sluice_channel *channel, const struct sluice_sge *result,
                                 const struct sluice_remote_mr *remote, uint64_t expected,
                                 uint64_t desired, int64_t deadline, struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_channel_post_fetch_add(struct sluice_channel *channel, const struct sluice_sge *result,
                              const struct sluice_remote_mr *remote, uint64_t addend,
                              int64_t deadline, struct sluice_handle *handle);

/*
 * Takes up to count completions of posted work that were not taken yet, oldest first, without
 * waiting. Returns how many, 0 if none.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_poll(struct sluice_channel *channel,
                                                       struct sluice_completion *completions,
                                                       uint32_t count);

/*
 * Waits for the oldest completion of posted work that was not taken yet, and takes it; with
 * timeout 0 it does not wait. 0: there is one. -ETIMEDOUT: none yet. -ENOENT: no work is posted
 * that could complete. -EINTR: woken.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_next(struct sluice_channel *channel,
                                                       int64_t timeout,
                                                       struct sluice_completion *completion);

/*
 * Waits for one posted request; with timeout 0 it does not wait. 0: it is complete, and
 * completion->error says how it ended; later calls give the same result until its place is needed.
 * -ETIMEDOUT: still pending. -EINTR: woken. -ESTALE: a handle that is too old, detached, or not of
 * this channel. -EINVAL: completion is NULL: a failure could not be reported then.
 * sluice_channel_flush() waits and takes no result, and sluice_channel_detach() drops a result.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_wait(struct sluice_channel *channel,
                                                       const struct sluice_handle *handle,
                                                       int64_t timeout,
                                                       struct sluice_completion *completion);

/*
 * Cancels one posted request. A connection cannot take back one request, so if it is pending the
 * channel fails (status WR_FLUSH_ERR) and all its work ends, mostly cancelled; that takes at most
 * 1 s. If the request is complete, its completion is taken, and nothing else happens. 0: none of
 * its buffers is in use any more, and completion->error says how it ended. -ESTALE as above;
 * -EINVAL: a NULL, and nothing happened.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_cancel(struct sluice_channel *channel,
                                                         const struct sluice_handle *handle,
                                                         struct sluice_completion *completion);

/*
 * Detaches one posted request: it goes on, and its result is dropped, but a failure still fails the
 * channel. The handle is stale from then on. 0, or -ESTALE as above.
 */
SLUICE_EXPORT int sluice_channel_detach(struct sluice_channel *channel,
                                        const struct sluice_handle *handle);

/*
 * Waits until all posted work is complete, including detached requests; results can still be taken
 * afterwards. 0; -ETIMEDOUT: some is still pending; -EINTR: woken.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_flush(struct sluice_channel *channel,
                                                        int64_t timeout);

/*
 * Returns the fd for event loops. It becomes readable when an armed channel has something to do.
 * The fd belongs to the library: watch it with poll(2) or epoll(7), level- or edge-triggered, and
 * never read or close it. It stays the same as long as the channel lives. -EINVAL: not a channel.
 */
SLUICE_EXPORT int sluice_channel_fd(const struct sluice_channel *channel);

/*
 * Arms the fd; call it before each sleep. 0: armed, until the next call that uses the channel:
 * sleep. 1: do not sleep, poll first; there is something to do, a completion that was not taken, or
 * a wake. *due, unless due is NULL: after that many nanoseconds poll even if the fd is not
 * readable, because a deadline passes then; SLUICE_FOREVER if there is no need. -EINVAL: not a
 * channel.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_arm(struct sluice_channel *channel, int64_t *due);

/*
 * Wakes a channel: a wait of another thread returns -EINTR, and the fd becomes readable. Any thread
 * and any signal handler may call it while the channel lives. If no thread waits, the next wait
 * that finds nothing ready returns -EINTR at once; a poll clears the wake. Blocking operations are
 * not interrupted. -EINVAL: not a channel.
 */
SLUICE_EXPORT int sluice_channel_wake(struct sluice_channel *channel);

/*
 * Writes how many immediates of a tag have arrived since the channel was made, in any order. The
 * channel needs arrival_tags in its attributes. An arrival is a write with an immediate, whose
 * bytes are then in memory, or a send of no bytes; a send of more fails the connection. The library
 * posts the receives: each peer may have receive_depth arrivals in flight until the next call of
 * this side on the channel. Counts continue across resets. The call does not wait. -EINVAL: they
 * are not counted here, no such tag, NULL.
 */
SLUICE_EXPORT int sluice_channel_arrivals(struct sluice_channel *channel, uint32_t tag,
                                          uint64_t *count);
/*
 * Waits until at least count immediates of a tag have arrived since the channel was made. timeout
 * is in nanoseconds and harms nothing. -ETIMEDOUT: fewer have arrived. -EINTR: woken. -ENOTCONN:
 * fewer have arrived, and no peer is connected. A peer that fails meanwhile ends the wait with its
 * error, once. -EINVAL: as above, or a negative timeout.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_channel_wait_arrivals(struct sluice_channel *channel,
                                                                uint32_t tag, uint64_t count,
                                                                int64_t timeout);

#ifdef __cplusplus
}
#endif

#endif
