/* SPDX-License-Identifier: MIT */
/*
 * Remote buffers by name. An owner publishes memory and gets a handle of fixed size, which may be
 * passed on by any means. A process that has the handle reads or writes the buffer by one call,
 * over any transport that both sides have. The connection is made when it is first needed.
 *
 * Each process opens a service. The service listens, and a thread of the library admits peers that
 * come with a handle; reads and writes need nothing more of the owner. The service keeps one
 * connection to each owner as long as the connection works, and makes a new one if it fails.
 *
 * A handle is a capability: a process that has it may use the buffer with the rights it was
 * published with, until the owner releases it. sluice_security(7) describes what is proven.
 *
 * Threads: any thread may call these, several at once, but no call may end a service or a buffer
 * that other threads use. Deadlines: see time.h.
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
/* The largest number of protection domains of a service, each on a device of its own. */
#define SLUICE_MAX_BUFFER_PDS 4

/*
 * Names a published buffer, and its owner. A handle is in network byte order, has no pointers, and
 * has a version and a checksum: a write(2) is all the serialisation that it needs. Decoding never
 * trusts its content.
 */
struct sluice_buffer_handle {
    uint8_t bytes[SLUICE_BUFFER_HANDLE_BYTES];
};

/* Zero, or NULL, means the default. */
struct sluice_buffer_service_attr {
    uint32_t size;       /* set to sizeof(struct sluice_buffer_service_attr) */
    uint32_t max_peers;  /* peers that use our buffers at a time, on each domain; 1..65536,
                            default 4096. Further ones are refused */
    const char *address; /* to listen at, as for sluice_listen(); NULL: ":0", all addresses of the
                            host, and any port. Handles have up to four addresses */
    const struct sluice_channel_attr *channel; /* of connections to owners; NULL: all defaults.
                                                  access and arrival_tags must be 0 */
};

/* Contents of a handle. */
struct sluice_buffer_info {
    uint32_t size;       /* set to sizeof(struct sluice_buffer_info) by the caller */
    uint32_t access;     /* SLUICE_ACCESS_REMOTE_READ, SLUICE_ACCESS_REMOTE_WRITE */
    uint64_t id;         /* of the buffer; its owner never uses it for another one */
    uint64_t length;     /* bytes */
    uint8_t owner[16];   /* random id of the owner's service */
    char address[64];    /* first address to reach the owner at, such as "192.0.2.1:7471" */
    char transports[32]; /* that the owner has, such as "verbs, soft" */
};

/*
 * One read or write. A zeroed struct is a valid start. The struct, the handle, the blocks and their
 * indices are read before the call returns; the memory is in use until the call returns, or until
 * its batch has ended.
 *
 * With blocks, length is the length of the memory at addr that the local blocks are in, and may be
 * more than the bytes that move; the remote blocks are in the buffer, from offset to its end.
 * local_length of the blocks must be 0. Errors of blocks are those of sluice/blocks.h, and their
 * text names the block.
 */
struct sluice_buffer_action {
    uint32_t opcode;                           /* SLUICE_OP_READ or SLUICE_OP_WRITE */
    uint32_t flags;                            /* must be 0 */
    const struct sluice_buffer_handle *handle; /* which buffer */
    uint64_t offset;                           /* in the buffer, of the first byte */
    uint64_t length;                           /* bytes, without a limit; 0: nothing is moved, and
                                                  the owner is not contacted */
    void *addr;                                /* local memory, in mr */
    struct sluice_mr *mr;                      /* region of a domain of the service; NULL: the
                                                  memory is registered for the time of the call */
    uint64_t user_data;                        /* given back in the completion */
    const struct sluice_blocks *blocks;        /* many blocks, see sluice/blocks.h; NULL: one */
    uint64_t reserved[4];                      /* must be 0 */
};

SLUICE_REDECLARE_BEGIN
/*
 * Closes a service and its connections; later use of its buffers fails. The call ends all published
 * buffers and cancels all batches; the program still releases the buffers and frees the batches. It
 * takes at most a second, and the rest of the deadline of a call that gave up connecting. NULL is
 * allowed.
 */
SLUICE_EXPORT void sluice_buffer_service_close(struct sluice_buffer_service *service);

/*
 * Ends a buffer: when the call returns, no peer touches memory by its handle any more, and memory
 * that sluice_buffer_publish() allocated is freed. Later use of its handle ends with
 * SLUICE_CLASS_ACCESS. NULL is allowed.
 */
SLUICE_EXPORT void sluice_buffer_release(struct sluice_buffer *buffer);

/*
 * Opens a service with 1 to SLUICE_MAX_BUFFER_PDS domains, each on a transport of its own, in order
 * of preference. Buffers are published on all of them, and a user takes the first transport that it
 * has, too. Buffers are registered in domains of the service, so that its peers can reach them and
 * no other memory of the program. The service holds the domains, and goes on serving if the program
 * frees them first; calls that have to register memory of the program in them then fail with
 * EINVAL. The result goes to sluice_buffer_service_close().
 *
 * NULL and errno on failure: EINVAL (no domain, two of a transport, attr out of range: the text
 * names the field), E2BIG (attr of a newer version), ENOMEM, EAGAIN (no thread can be started), and
 * those of sluice_listen(), sluice_pd_alloc() and sluice_channel_prepare().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_service_close)
struct sluice_buffer_service *
sluice_buffer_service_open(struct sluice_pd *const *pds, uint32_t count,
                           const struct sluice_buffer_service_attr *attr);

/*
 * Publishes length bytes at addr, which must stay mapped until the buffer is released; access is
 * SLUICE_ACCESS_REMOTE_READ, SLUICE_ACCESS_REMOTE_WRITE or both. If addr is NULL, the memory is
 * allocated as by sluice_mr_alloc(); the service must have one domain only. The result goes to
 * sluice_buffer_release(). NULL and errno on failure: EINVAL (not a service, access, length 0, a
 * range that wraps; NULL and several domains), and those of sluice_mr_register().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_release)
struct sluice_buffer *sluice_buffer_publish(struct sluice_buffer_service *service, void *addr,
                                            size_t length, uint32_t access);

/*
 * Publishes length bytes at offset of a region, which must be of a domain of the service, and have
 * these rights. The region is used as it is, so that peers on one host map memory of
 * sluice_mr_alloc() as they map a region. The buffer has a key of its own, which opens no other
 * bytes of the region. On the other domains of the service the same bytes are registered again.
 * Until the buffer is released the region cannot end: sluice_mr_deregister() returns -EBUSY, and
 * sluice_mr_release() waits. See sluice_security(7) for what other processes of the user may do.
 * The result goes to sluice_buffer_release().
 *
 * NULL and errno on failure: EINVAL (not a service or a region, a region of no domain of the
 * service, access, length 0), ERANGE (not within the region), EACCES (a right that the region does
 * not have), and those of sluice_mr_register() and sluice_mr_register_dmabuf().
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_release)
struct sluice_buffer *sluice_buffer_publish_mr(struct sluice_buffer_service *service,
                                               struct sluice_mr *mr, size_t offset, size_t length,
                                               uint32_t access);
SLUICE_REDECLARE_END

/*
 * Returns the address of the first byte; NULL for memory of a dmabuf, and if it is not a buffer,
 * which is misuse.
 */
SLUICE_EXPORT void *sluice_buffer_addr(const struct sluice_buffer *buffer);

/* Writes the handle of a buffer. -EINVAL: not a buffer, NULL; -ESTALE: its service was closed. */
SLUICE_EXPORT int sluice_buffer_export(const struct sluice_buffer *buffer,
                                       struct sluice_buffer_handle *handle);

/*
 * Describes a handle; set info->size first (see sluice(7)). The owner is not contacted. -EPROTO:
 * not a handle, a damaged one, or of another version; -EINVAL: NULL, or too small a size; -E2BIG: a
 * size above 4096.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_buffer_handle_query(const struct sluice_buffer_handle *handle,
                           struct sluice_buffer_info *info);

/*
 * Reads length bytes from offset on into addr; or writes them. mr is the region of the local
 * memory, or NULL. The call connects if there is no connection, and waits until all bytes were
 * moved. If its deadline passes, the connection ends, and the next call makes a new one. The work
 * of other calls is not lost by that or any other failure: it goes on over the new connection. 0,
 * or an error as of sluice_buffer_submit(); it is then unknown how many bytes were moved.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_read(struct sluice_buffer_service *service,
                                                      const struct sluice_buffer_handle *handle,
                                                      uint64_t offset, struct sluice_mr *mr,
                                                      void *addr, uint64_t length,
                                                      int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_write(struct sluice_buffer_service *service,
                                                       const struct sluice_buffer_handle *handle,
                                                       uint64_t offset, struct sluice_mr *mr,
                                                       const void *addr, uint64_t length,
                                                       int64_t deadline);

/*
 * Does a batch of actions on buffers of any owners, concurrently, in no order, under one deadline.
 * An owner that is absent or slow does not hold up the others. An action longer than a message of
 * the device is split, and has one result. completions is NULL or has count entries, in the order
 * of actions; their peer is 0.
 *
 * An error of arguments is found before anything begins, and then nothing is written: -EINVAL (not
 * a service, NULL, opcode, not a region or one of no domain of the service, blocks, a negative
 * deadline), -EPROTO (as sluice_buffer_handle_query()), -ERANGE (not within the buffer, or not
 * within the region, or a block is not), -E2BIG (blocks of a later version), -ENOMEM. Otherwise all
 * completions are written, and the call returns 0, or the first failure other than -ECANCELED. A
 * completion has the errno value and class of its failure:
 *
 *   ACCESS      -EACCES: the buffer was released, or never was for this; -ESTALE: its owner is
 *               gone, and another one listens at its address
 *   TIMEOUT     -ETIMEDOUT: the deadline passed
 *   PEER_LOST   -ECONNREFUSED: no process listens at its address, or it refuses peers;
 *               -ECONNRESET: it was lost twice; others of sluice_connect()
 *   PROTOCOL    -EPROTOTYPE: no transport in common, or not that of the region; -EPROTO
 *   others      as of requests, and the errno of sluice_mr_register() with SLUICE_CLASS_LOCAL
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_submit(struct sluice_buffer_service *service,
                                                        const struct sluice_buffer_action *actions,
                                                        uint32_t count, int64_t deadline,
                                                        struct sluice_completion *completions);

/*
 * Batches in flight do the same without waiting, so that a program computes while its pages are on
 * the way. Posting a batch begins all that can begin at once. The batch goes on in each later call
 * with it, in the device, and in calls of other threads for the same owners. sluice_buffer_post(3)
 * describes what each transport does meanwhile by itself.
 *
 * Threads: one thread at a time uses a batch, but any thread may call sluice_buffer_batch_cancel()
 * meanwhile. Different threads may use different batches at the same time.
 *
 * Memory: that of an action is in use until its completion was taken or the batch has ended, as
 * wait, results or cancel report. Until then sluice_mr_deregister() of a region that the action
 * names returns -EBUSY, and sluice_mr_release() waits. Memory without a region is registered from
 * the time the batch is made until it is freed.
 */

/* Cancels the actions that are in flight, and frees the batch. NULL is allowed. */
SLUICE_EXPORT void sluice_buffer_batch_free(struct sluice_buffer_batch *batch);

/*
 * Prepares a batch, which may be posted later, any number of times. Actions and handles are read
 * now. The result goes to sluice_buffer_batch_free(). NULL and errno on failure: EINVAL, EPROTO,
 * ERANGE, ENOMEM (as sluice_buffer_submit()), EMFILE (no descriptor to wait with).
 */
SLUICE_REDECLARE_BEGIN
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_batch_free)
struct sluice_buffer_batch *sluice_buffer_batch_prepare(struct sluice_buffer_service *service,
                                                        const struct sluice_buffer_action *actions,
                                                        uint32_t count);

/* Prepares a batch as sluice_buffer_batch_prepare(), and posts it as sluice_buffer_batch_post(). */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_buffer_batch_free)
struct sluice_buffer_batch *sluice_buffer_post(struct sluice_buffer_service *service,
                                               const struct sluice_buffer_action *actions,
                                               uint32_t count, int64_t deadline);
SLUICE_REDECLARE_END

/*
 * Posts a batch, for the first time or again; earlier results are dropped. The call allocates
 * nothing while the connections to the owners last. The deadline, in nanoseconds, acts in calls
 * with the batch. 0; the completions report how the actions ended. -EINVAL: not a batch, a negative
 * deadline; -EBUSY: it is in flight; -ESTALE: its service was closed.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_post(struct sluice_buffer_batch *batch,
                                                            int64_t deadline);

/*
 * Drives a batch without waiting, and takes up to count completions of actions that have ended and
 * were not taken. Returns how many, 0 if none. Completions come as the actions end, those of one
 * owner in that order; user_data identifies the action. -EINVAL: not a batch, NULL.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_poll(struct sluice_buffer_batch *batch,
                                                            struct sluice_completion *completions,
                                                            uint32_t count);

/*
 * Waits for the next completion, and takes it. 0: there is one. -ETIMEDOUT: none yet, and the batch
 * goes on; -ENOENT: all were taken, or it was never posted; -EINTR: the thread is interrupted
 * (sluice_interrupt_set()), and the batch goes on; -EINVAL: not a batch, NULL, a negative timeout.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_next(struct sluice_buffer_batch *batch,
                                                            int64_t timeout,
                                                            struct sluice_completion *completion);

/*
 * Waits until all actions of a batch have ended, successfully or not; with timeout 0 it does not
 * wait. 0: none of its memory is in use any more. -ETIMEDOUT, -ENOENT (never posted), -EINTR and
 * -EINVAL as above.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_wait(struct sluice_buffer_batch *batch,
                                                            int64_t timeout);

/*
 * Writes how a batch has ended. completions is NULL or has count entries, in the order of actions.
 * The call takes no completion. 0, or the first failure, as sluice_buffer_submit(). -EBUSY: it is
 * in flight, -ENOENT: it was never posted, -EINVAL: not a batch; then nothing is written.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_buffer_batch_results(const struct sluice_buffer_batch *batch,
                            struct sluice_completion *completions);

/*
 * Cancels all actions of a batch that have not ended. Any thread may call it while the batch lives.
 * When the call returns, nothing touches the memory of the batch any more, whatever state owners
 * and connections are in. Actions that were done keep their results; the others end with -ECANCELED
 * and SLUICE_CLASS_CANCELLED. A thread that waits for the batch returns. Work of other calls on the
 * same connections goes on, over new ones if necessary. The call takes at most a second. 0, also if
 * the batch had ended; -EINVAL: not a batch.
 */
SLUICE_EXPORT int sluice_buffer_batch_cancel(struct sluice_buffer_batch *batch);

/*
 * Returns the fd for event loops. It becomes readable when an armed batch has something to do. The
 * fd belongs to the library: watch it with poll(2) or epoll(7), and never read or close it. It
 * stays the same as long as the batch lives. -EMFILE: there is no descriptor left; -ENOMEM;
 * -EINVAL: not a batch.
 */
SLUICE_EXPORT int sluice_buffer_batch_fd(struct sluice_buffer_batch *batch);

/*
 * Arms the fd; call it before each sleep. 0: armed, until the next call with the batch: sleep. 1:
 * do not sleep, poll first: there are completions that were not taken, more is to be done, or the
 * batch has ended. With the result 0, *due is written unless due is NULL: after that many
 * nanoseconds poll even if the fd is not readable; SLUICE_FOREVER if there is no need. -ENOENT:
 * never posted; others as above.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_batch_arm(struct sluice_buffer_batch *batch,
                                                           int64_t *due);

/*
 * Describes the connection to the owner, on the first domain that has one, as
 * sluice_channel_query(). -ENOTCONN: there is none now; -EINVAL: not a service, or NULL. Others as
 * sluice_buffer_handle_query(), and of sluice_channel_query().
 */
SLUICE_EXPORT int sluice_buffer_connection_query(struct sluice_buffer_service *service,
                                                 const struct sluice_buffer_handle *handle,
                                                 struct sluice_channel_info *info);

/*
 * Writes the address, length and key of the buffer, for programs that post work of their own: on
 * the transport of pd, a domain of the service, or, if pd is NULL, on the first transport that both
 * sides have. -EPROTOTYPE: the owner does not have that transport; others as above.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_buffer_remote(const struct sluice_buffer_service *service,
                                                        const struct sluice_buffer_handle *handle,
                                                        const struct sluice_pd *pd,
                                                        struct sluice_remote_mr *remote);

#ifdef __cplusplus
}
#endif

#endif
