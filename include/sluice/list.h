/* SPDX-License-Identifier: MIT */
/*
 * A prepared list: requests that a program posts again and again, to the same peers and
 * with the same memory, checked and laid out once. Posting it costs a fraction of what a
 * list of requests costs, and moves the same bytes with the same results.
 *
 * A list belongs to a channel or multichannel, and is used by the thread that uses that
 * one. It pins its memory: regions that it names cannot be deregistered (-EBUSY) before it
 * is freed. It holds the connections as they are: once a peer of it was reset or removed,
 * each post is -ESTALE; once the channel or multichannel was closed, every call is. While
 * a scope is open, a list is posted in the scope alone: all else is -EBUSY.
 */
#ifndef SLUICE_LIST_H
#define SLUICE_LIST_H

#include <stdint.h>

#include <sluice/channel.h>
#include <sluice/macros.h>
#include <sluice/multichannel.h>
#include <sluice/request.h>
#include <sluice/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_list;

SLUICE_REDECLARE_BEGIN
/*
 * Frees a list; NULL is allowed. What is in flight of it goes on, and nobody sees how it
 * ends: the memory is the transport's until sluice_channel_flush() returns 0, or the end of
 * the channel.
 */
SLUICE_EXPORT void sluice_list_free(struct sluice_list *list);

/*
 * Prepares 1 to 2^31 - 1 requests, as sluice_channel_submit() takes them; they and their
 * elements and blocks are copied, the memory that they name is not. One that needs more than
 * one message (max_message) and has no blocks cannot be prepared. Peers need not be connected
 * yet, but those that are reset before the first post make the list stale. The list is the
 * caller's, and goes to sluice_list_free(). NULL and errno on failure: EINVAL, EMSGSIZE,
 * ERANGE, ESTALE as sluice_channel_submit(); E2BIG (a request needs several messages, or the
 * requests of a peer are more than its queue is deep, or its staging buffer long), ENOMEM,
 * and EFAULT or ENOBUFS (there is no region for plain memory).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_list_free)
struct sluice_list *sluice_channel_list_prepare(struct sluice_channel *channel,
                                                const struct sluice_request *requests,
                                                uint32_t count);
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_list_free)
struct sluice_list *sluice_multichannel_list_prepare(struct sluice_multichannel *multichannel,
                                                     const struct sluice_request *requests,
                                                     uint32_t count);
SLUICE_REDECLARE_END

/*
 * Aims request index of a list at other bytes, from the next post on. sge, unless it is
 * NULL, takes the place of its one element: of the same region, at least as long as it is
 * now, and no longer than it was prepared; how many bytes move stays as it was.
 * remote_offset is where in the remote region that the request was prepared with it writes or
 * reads, in bytes; 0 for a send and a receive. Blocks lie in the memory from there on as they
 * lay before. -EINVAL: no such request, one that has not one element, another region or
 * length, or an atomic operation at no multiple of 8; -ERANGE: the bytes, or a block, are not
 * within the remote region; -ESTALE: the channel was closed.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_aim(struct sluice_list *list, uint32_t index,
                                                   const struct sluice_sge *sge,
                                                   uint64_t remote_offset);

/*
 * Has request index of a list move so many bytes, from the next post on: 0 to as many as it
 * was prepared with. -EINVAL: no such request, more bytes, one that has not one element or has
 * blocks, or an atomic operation; -ERANGE: aimed as it is, they are not within the element or
 * not within the remote region; -ESTALE: the channel was closed.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_set_length(struct sluice_list *list, uint32_t index,
                                                          uint32_t length);

/*
 * Posts a list and waits for all of it, as sluice_channel_submit() does with its requests:
 * the same results, errors and deadline. completions has room for one a request, in their
 * order, or is NULL. -EBUSY: it is in flight, or its last results were not waited for.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_submit(struct sluice_list *list, int64_t deadline,
                                                      struct sluice_completion *completions);

/*
 * Posts a list without waiting: all of it, or nothing. Each post needs a
 * sluice_list_wait(), which has its results; polls do not. completions as above; it is
 * written as the requests complete, and must be there until the wait has returned their
 * end. -EAGAIN: no room for all of it now; -E2BIG: nor ever, as the completion queue of the
 * device is smaller; -ENOTCONN: a peer is not connected; -ETIMEDOUT: the deadline is 0;
 * -EBUSY as above; -ESTALE: see the top; -EINVAL.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_post(struct sluice_list *list, int64_t deadline,
                                                    struct sluice_completion *completions);

/*
 * Waits until a posted list is complete, at most so long; with a timeout of 0 it looks
 * once. 0: all succeeded. Else the error of the request that failed first in the list and
 * is no mere cancellation, as of sluice_channel_submit(), and the list may be posted again.
 * Or nothing has changed: -ETIMEDOUT (it is still in flight, and a post is -EBUSY, which it
 * is not if the deadline of a request has passed), -EINTR (sluice_channel_wake()), -ENOENT
 * (it was not posted), -EBUSY (a scope is open), -ESTALE, -EINVAL.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_wait(struct sluice_list *list, int64_t timeout);

/*
 * Posts the requests of a list in an open scope of its channel or multichannel, as
 * sluice_scope_post() does: it waits for room, and returns their count. handles is NULL or has
 * room for one a request. They belong to the scope, by which they are waited for, and not to
 * the list: that one may be aimed, posted again or freed at once, and sluice_list_wait() knows
 * nothing of them. -EINVAL: not a list, not a scope, or one of another channel; -EBUSY: the
 * list was posted before, and not waited for; -ESTALE: the scope has ended, or see the top.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_scope_post(struct sluice_list *list,
                                                          struct sluice_scope *scope,
                                                          struct sluice_handle *handles);

#ifdef __cplusplus
}
#endif

#endif
