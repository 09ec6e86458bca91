/* SPDX-License-Identifier: MIT */
/*
 * Remote buffers by name. An owner publishes memory and gets a handle of fixed size, which
 * travels by any means; whoever has it reads and writes the buffer by one call, over whatever
 * transport both have, and the connection is made when it is first needed.
 *
 * A service is what a process has of this: it listens, and a thread of the library's lets in
 * who comes with a handle; reads and writes need nothing more of the owner. It keeps one
 * connection to each owner, as long as it works, and makes a new one when it does not.
 *
 * A handle is a capability: who has it may do with the buffer what it was published for, until
 * the owner releases it. sluice_security(7) tells what is proven.
 *
 * Threads: any thread may call these, several at once, but for the end of a service or a
 * buffer that others use. Deadlines: see time.h.
 */
#ifndef SLUICE_BUFFER_H
#define SLUICE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/blocks.h>
#include <sluice/channel.h>
#include <sluice/macros.h>
#include <sluice/mr.h>
#include <sluice/pd.h>
#include <sluice/request.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_buffer_service;
struct sluice_buffer;
struct sluice_buffer_batch;

#define SLUICE_BUFFER_HANDLE_BYTES 256
/* The most protection domains of a service, each of a device of its own. */
#define SLUICE_BUFFER_PDS 4

/*
 * Names a published buffer, and its owner. Network byte order, no pointers, versioned and
 * with a checksum: it needs no more serialisation than a write(2). Decoding never trusts it.
 */
struct sluice_buffer_handle {
    uint8_t bytes[SLUICE_BUFFER_HANDLE_BYTES];
};

/* Zero, or NULL, means the default. */
struct sluice_buffer_service_attr {
    uint32_t size;       /* sizeof(struct sluice_buffer_service_attr) */
    uint32_t max_peers;  /* that use our buffers at a time, on each domain; 1..65536,
                           default 4096. More are refused */
    const char *address; /* to listen at, as of sluice_listen(); NULL: ":0", all addresses of
                            the host, and any port. Handles name it, or up to four of them */
    const struct sluice_channel_attr *channel; /* of connections to owners; NULL: all defaults.
                                                  access and arrival_tags must be 0 */
};

/* What a handle says. */
struct sluice_buffer_info {
    uint32_t size;       /* set to sizeof(struct sluice_buffer_info) by the caller */
    uint32_t access;     /* SLUICE_ACCESS_REMOTE_READ, SLUICE_ACCESS_REMOTE_WRITE */
    uint64_t id;         /* of the buffer; no other one of its owner ever has it */
    uint64_t length;     /* bytes */
    uint8_t owner[16];   /* random, of its service */
    char address[64];    /* where the owner is reached first, such as "192.0.2.1:7471" */
    char transports[32]; /* over which, such as "verbs, soft" */
};

/*
 * One read or write. A zeroed struct is a valid start. The struct, the handle, the blocks and
 * their indices are read before the call returns; the memory is in use until then, or until its
 * batch has ended.
 *
 * With blocks, length is that of the memory at addr that the local ones are in, and may be more
 * than what moves; the remote ones are in the buffer, from offset to its end. Their local_length
 * must be 0. Errors of blocks are those that sluice/blocks.h tells, and name the block.
 */
struct sluice_buffer_action {
    uint32_t opcode;                           /* SLUICE_OP_READ or SLUICE_OP_WRITE */
    uint32_t reserved;                         /* must be 0 */
    const struct sluice_buffer_handle *handle; /* which buffer */
    uint64_t offset;                           /* of its first byte that is meant */
    uint64_t length;                           /* bytes, as many as one likes; 0: none is moved,
                                                  and nobody asked */
    void *addr;                                /* of the local memory, in mr */
    struct sluice_mr *mr;                      /* of a domain of the service; NULL: the memory is
                                                  registered for the time of the call */
    uint64_t user_data;                        /* given back in the completion */
    const struct sluice_blocks *blocks;        /* many blocks, see sluice/blocks.h; NULL: one */
};

SLUICE_REDECLARE_BEGIN
/*
 * Ends a service and its connections; who uses its buffers then finds that they are gone. It
 * ends what it has published, whose objects stay to be released, and cancels its batches, which
 * stay to be freed. It takes at most a second,
 * and what is left of the deadline of a call that gave up connecting. NULL is allowed.
 */
SLUICE_EXPORT void sluice_buffer_service_close(struct sluice_buffer_service *service);

/*
 * Ends a buffer: on return no peer touches memory by its handle any more, and what
 * sluice_buffer_publish() allocated is gone. Later use of its handle ends with
 * SLUICE_CLASS_ACCESS. NULL is allowed.
 */
SLUICE_EXPORT void sluice_buffer_release(struct sluice_buffer *buffer);

/*
 * Opens a service with 1 to SLUICE_BUFFER_PDS domains, each on a transport of its own, the one
 * preferred first: buffers are published on all of them, and a user takes the first that it
 * has, too. Buffers are registered in domains of the service's, so that its peers reach them
 * and nothing else of the program's. It holds the domains, and serves on if they are freed
 * first; calls that are to register memory of the program in them then fail with EINVAL. The
 * result goes to sluice_buffer_service_close().
 *
 * NULL and errno on failure: EINVAL (no domain, two of a transport, attr out of range: the
 * text names the field), E2BIG (attr of a newer version), ENOMEM, EAGAIN (no thread can be
 * had), and those of sluice_listen(), sluice_pd_alloc() and sluice_channel_prepare().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_service_close)
struct sluice_buffer_service *
sluice_buffer_service_open(struct sluice_pd *const *pds, uint32_t count,
                           const struct sluice_buffer_service_attr *attr);

/*
 * Publishes length bytes at addr, which must stay mapped until the buffer is released; access
 * is SLUICE_ACCESS_REMOTE_READ, SLUICE_ACCESS_REMOTE_WRITE or both. addr NULL: the memory is
 * allocated as by sluice_mr_alloc(), on services of one domain. The result goes to
 * sluice_buffer_release(). NULL and errno on failure: EINVAL (not a service, access, length 0,
 * a range that wraps; NULL and several domains), and those of sluice_mr_register().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_release)
struct sluice_buffer *sluice_buffer_publish(struct sluice_buffer_service *service, void *addr,
                                            size_t length, uint32_t access);

/*
 * Publishes length bytes at offset of a region, which is of a domain of the service, and has
 * these rights: as it is, so that peers on one host map memory of sluice_mr_alloc() as they map a
 * region. Its key is its own, and opens no other bytes of the region; on the other domains of the
 * service the same bytes are registered again. Until the buffer is released the region cannot end:
 * sluice_mr_deregister() is -EBUSY, sluice_mr_release() waits. See sluice_security(7) of what
 * other processes of the user may do. The result goes to sluice_buffer_release().
 *
 * NULL and errno on failure: EINVAL (not a service or a region, a region of no domain of the
 * service, access, length 0), ERANGE (not within the region), EACCES (a right that the region has
 * not), and those of sluice_mr_register() and sluice_mr_register_dmabuf().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_release)
struct sluice_buffer *sluice_buffer_publish_mr(struct sluice_buffer_service *service,
                                               struct sluice_mr *mr, size_t offset, size_t length,
                                               uint32_t access);
SLUICE_REDECLARE_END

/* Address of the first byte; NULL of memory of a dmabuf, and of no buffer, which is misuse. */
SLUICE_EXPORT void *sluice_buffer_addr(const struct sluice_buffer *buffer);

/* Writes the handle. -EINVAL: not a buffer, NULL; -ESTALE: its service was closed. */
SLUICE_EXPORT int sluice_buffer_handle(const struct sluice_buffer *buffer,
                                       struct sluice_buffer_handle *handle);

/*
 * What a handle says; set info->size first (see sluice(7)). It asks nobody. -EPROTO: not a
 * handle, a damaged one, or of another version; -EINVAL: NULL, or too small a size; -E2BIG: a
 * size above 4096.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_buffer_handle_query(const struct sluice_buffer_handle *handle,
                           struct sluice_buffer_info *info);

/*
 * Reads length bytes from offset on into addr; or writes them. mr is the region of the local
 * memory, or NULL. It connects if it must, and waits for all of it. A deadline that passes
 * ends the connection, which the next call makes anew; nobody else's work is lost by that, nor
 * by any other failure: it goes on over the new connection. 0, or an error as of
 * sluice_buffer_submit(). How much was moved is not known then.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_buffer_read_into(struct sluice_buffer_service *service,
                        const struct sluice_buffer_handle *handle, uint64_t offset,
                        struct sluice_mr *mr, void *addr, uint64_t length, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_buffer_write_from(struct sluice_buffer_service *service,
                         const struct sluice_buffer_handle *handle, uint64_t offset,
                         struct sluice_mr *mr, const void *addr, uint64_t length, int64_t deadline);

/*
 * A batch: actions on buffers of any owners, which go on side by side, in no order, under one
 * deadline. One owner that is not there, or is slow, holds up none of the others. An action of
 * more than a message of the device is split, and has one result. completions is NULL or has
 * count entries, in the order of actions; their peer is 0.
 *
 * An error of arguments is found before anything begins, and then nothing is written: -EINVAL
 * (not a service, NULL, opcode, a region that is none or of no domain of the service, blocks, a
 * negative deadline), -EPROTO (as sluice_buffer_handle_query()), -ERANGE (not within the buffer,
 * or not within the region, or a block is not), -E2BIG (blocks of a later version), -ENOMEM. Else
 * all completions are written, and it returns 0, or the first failure that is no -ECANCELED. A
 * completion has the errno value and class of its failure:
 *
 *   ACCESS      -EACCES: the buffer was released, or never was for this; -ESTALE: its owner is
 *               gone, and another one listens at its address
 *   TIMEOUT     -ETIMEDOUT: the deadline passed
 *   PEER_LOST   -ECONNREFUSED: nobody listens at its address, or it lets nobody in;
 *               -ECONNRESET: it was lost twice; others of sluice_connect()
 *   PROTOCOL    -EPROTOTYPE: no transport in common, or not that of the region; -EPROTO
 *   others      as of requests, and the errno of sluice_mr_register() with SLUICE_CLASS_LOCAL
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_submit(struct sluice_buffer_service *service,
                                                        const struct sluice_buffer_action *actions,
                                                        uint32_t count, int64_t deadline,
                                                        struct sluice_completion *completions);

/*
 * Batches in flight: the same without waiting, so that a program computes while its pages come.
 * A batch is posted, which begins what can be begun at once. It goes on in each later call with
 * it, in the device, and in calls of other threads for the same owners; what each transport does
 * meanwhile by itself, sluice_buffer_post(3) tells.
 *
 * Threads: a batch is used by one thread at a time, but sluice_buffer_batch_cancel() may be
 * called by any thread meanwhile. Different batches are used by different threads freely.
 *
 * Memory: that of its actions is in use until the batch has ended, as wait, results or cancel
 * tell, or the completion of the action was taken. Until then sluice_mr_deregister() of a region
 * that the action names is -EBUSY, and sluice_mr_release() waits. Memory without a region is
 * registered from the time the batch is made until it is freed.
 */

/* Cancels what is in flight, and frees the batch. NULL is allowed. */
SLUICE_EXPORT void sluice_buffer_batch_free(struct sluice_buffer_batch *batch);

/*
 * Prepares a batch, which is posted later, and as often as one likes. Actions and handles are
 * read now. The result goes to sluice_buffer_batch_free(). NULL and errno on failure: EINVAL,
 * EPROTO, ERANGE, ENOMEM (as sluice_buffer_submit()), EMFILE (no descriptor to wait with).
 */
SLUICE_REDECLARE_BEGIN
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_batch_free)
struct sluice_buffer_batch *sluice_buffer_batch_prepare(struct sluice_buffer_service *service,
                                                        const struct sluice_buffer_action *actions,
                                                        uint32_t count);

/* Prepares a batch and posts it: as the call before and the one after this. */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_batch_free)
struct sluice_buffer_batch *sluice_buffer_post(struct sluice_buffer_service *service,
                                               const struct sluice_buffer_action *actions,
                                               uint32_t count, int64_t deadline);
SLUICE_REDECLARE_END

/*
 * Posts a batch again; what it ended with before is forgotten. It allocates nothing while the
 * connections to the owners last. The deadline, in nanoseconds, acts in calls with the batch.
 * 0, and how actions end is in their completions. -EINVAL: not a batch, a negative deadline;
 * -EBUSY: it is in flight; -ESTALE: its service was closed.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_post(struct sluice_buffer_batch *batch,
                                                            int64_t deadline);

/*
 * Goes on with a batch without waiting, and takes up to count completions of actions that have
 * ended and were not taken. How many, 0 if none. They come as they end, those of one owner in
 * that order; user_data tells which they are. -EINVAL: not a batch, NULL.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_poll(struct sluice_buffer_batch *batch,
                                                            struct sluice_completion *completions,
                                                            uint32_t count);

/*
 * Waits for the next completion, and takes it. 0: there was one. -ETIMEDOUT: none yet, and the
 * batch goes on; -ENOENT: all were taken, or it was never posted; -EINTR: the thread is
 * interrupted (sluice_interrupt_set()), and the batch goes on; -EINVAL: not a batch, NULL, a
 * negative timeout.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_next(struct sluice_buffer_batch *batch,
                                                            int64_t timeout,
                                                            struct sluice_completion *completion);

/*
 * Waits until all of a batch has ended, however it did; timeout 0 only looks. 0: no memory of it
 * is in use any more. -ETIMEDOUT, -ENOENT (never posted), -EINTR and -EINVAL as above.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_wait(struct sluice_buffer_batch *batch,
                                                            int64_t timeout);

/*
 * How a batch has ended: completions is NULL or has count entries, in the order of actions. It
 * takes none of them. 0, or the first failure, as sluice_buffer_submit(). -EBUSY: it is in
 * flight, -ENOENT: it was never posted, -EINVAL: not a batch; then nothing is written.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_buffer_batch_results(const struct sluice_buffer_batch *batch,
                            struct sluice_completion *completions);

/*
 * Ends all of a batch that has not ended, from any thread while it lives. On return nothing
 * touches its memory any more, whatever state owners and connections are in; actions that were
 * done keep their results, the others end with -ECANCELED and SLUICE_CLASS_CANCELLED. A thread
 * that waits for it returns. Work of others on the same connections goes on, over new ones if it
 * must. It takes at most a second. 0, also if it had ended; -EINVAL: not a batch.
 */
SLUICE_EXPORT int sluice_buffer_batch_cancel(struct sluice_buffer_batch *batch);

/*
 * For event loops. The fd becomes readable when an armed batch has something to do; it is the
 * library's: watch it with poll(2) or epoll(7), and never read or close it. It stays the same as
 * long as the batch lives. -EMFILE: there is no descriptor left; -ENOMEM; -EINVAL: not a batch.
 */
SLUICE_EXPORT int sluice_buffer_batch_fd(struct sluice_buffer_batch *batch);

/*
 * To be called before each sleep on the fd. 0: armed, until the next call with the batch: sleep.
 * 1: do not sleep, poll first: there are completions that were not taken, more is to be done, or
 * it has ended. *due, unless due is NULL, is written with 0: in so many nanoseconds poll even if
 * the fd stays quiet; SLUICE_FOREVER if there is no need. -ENOENT: never posted; others as above.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_arm(struct sluice_buffer_batch *batch,
                                                           int64_t *due);

/*
 * enum sluice_transport_level of the connection to the owner, that of the first domain which has
 * one; 0: there is none now. Errors as sluice_buffer_handle_query(), and -EINVAL: not a service.
 */
SLUICE_EXPORT int sluice_buffer_level(struct sluice_buffer_service *service,
                                      const struct sluice_buffer_handle *handle);

/*
 * Describes that connection, as sluice_channel_query(). -ENOTCONN: there is none now. Others as
 * above, and of sluice_channel_query().
 */
SLUICE_EXPORT int sluice_buffer_connection(struct sluice_buffer_service *service,
                                           const struct sluice_buffer_handle *handle,
                                           struct sluice_channel_info *info);

/*
 * The raw names of the buffer on the transport of a domain of the service, or NULL, the first
 * that both have: address, length and key, for who posts work of its own. -EPROTOTYPE: the owner
 * does not have that transport; others as above.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_remote(const struct sluice_buffer_service *service,
                                                        const struct sluice_buffer_handle *handle,
                                                        const struct sluice_pd *pd,
                                                        struct sluice_remote_mr *remote);

#ifdef __cplusplus
}
#endif

#endif
