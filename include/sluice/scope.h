/* SPDX-License-Identifier: MIT */
/*
 * A scope: work is posted in it without waiting, and its end waits for all of
 * it, so that no buffer outlives the block it belongs to. A scope borrows its
 * channel or multichannel, which has at most one open scope at a time and must
 * not be closed or reset meanwhile. Threads as the channel.
 */
#ifndef SLUICE_SCOPE_H
#define SLUICE_SCOPE_H

#include <stdint.h>

#include <sluice/channel.h>
#include <sluice/multichannel.h>
#include <sluice/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What happened in a scope. */
struct sluice_scope_report {
    uint32_t size;                      /* set to sizeof(struct sluice_scope_report) */
    uint32_t posted;                    /* requests accepted in the scope */
    uint32_t failed;                    /* of these, how many failed and were not seen
                                              by sluice_scope_wait() */
    uint32_t unseen;                    /* of these, how many nobody had waited for */
    struct sluice_completion *failures; /* in: room for failures, or NULL */
    uint32_t capacity;                  /* in: entries of failures */
    uint32_t count;                     /* out: entries written, the oldest first */
};

/*
 * Ends the scope: waits for everything posted in it, until the scope's
 * deadline, and frees the scope in any case; NULL is allowed. report is NULL or
 * has its size set. 0: nothing failed unseen. Else the errno value of the first
 * failure that nobody had seen. -EINVAL: not an open scope, or the report has
 * no size; in the latter case the scope has ended all the same.
 */
SLUICE_EXPORT int sluice_scope_end(struct sluice_scope *scope, struct sluice_scope_report *report);

/*
 * Opens a scope. The deadline, from now, holds for all work of the scope and
 * for its end. NULL and errno on failure: EBUSY (a scope is open), EINVAL.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_scope_end)
struct sluice_scope *sluice_channel_scope_begin(struct sluice_channel *channel, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_scope_end)
struct sluice_scope *sluice_multichannel_scope_begin(struct sluice_multichannel *multichannel,
                                                     int64_t deadline);

/*
 * Posts all requests. A full queue is no error: it waits for room, until the
 * scope's deadline. handles is NULL or has count entries. 0: all were accepted.
 * On an argument error nothing was posted; -E2BIG: one request needs more parts
 * than the send queue is deep. A request to a failed peer is accepted and
 * completes as refused (-ENOTCONN).
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_scope_post(struct sluice_scope *scope,
                                                     const struct sluice_request *requests,
                                                     uint32_t count, struct sluice_handle *handles);

/* Waits for one request of the scope; as sluice_channel_wait(). */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_scope_wait(struct sluice_scope *scope,
                                                     const struct sluice_handle *handle,
                                                     int64_t timeout,
                                                     struct sluice_completion *completion);

#ifdef __cplusplus
}
#endif

#endif
