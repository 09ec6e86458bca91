/* SPDX-License-Identifier: MIT */
/*
 * A prepared list: requests that a program posts repeatedly, to the same peers and with the same
 * memory, and that are checked and laid out once. Posting it costs a fraction of what a list of
 * requests costs, and moves the same bytes with the same results.
 *
 * A list belongs to a channel or multichannel, and is used by the thread that uses that object. A
 * list pins its memory: regions that it names cannot be deregistered (-EBUSY) before it is freed. A
 * list is bound to its connections: once one of its peers was reset or removed, each post fails
 * with -ESTALE; once the channel or multichannel was closed, every call does. While a scope is
 * open, a list can only be posted in the scope; other calls that post or wait fail with -EBUSY.
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
 * Frees a list; NULL is allowed. Requests of the list that are in flight go on, and their results
 * are dropped: the memory that they name is in use until sluice_channel_flush() returns 0, or the
 * channel ends.
 */
SLUICE_EXPORT void sluice_list_free(struct sluice_list *list);

/*
 * Prepares 1 to 2^31 - 1 requests, as sluice_channel_submit() takes them; the requests and their
 * elements and blocks are copied, the memory that they name is not. A request that needs more than
 * one message (max_message) and has no blocks cannot be prepared. Peers need not be connected yet,
 * but a peer that is reset before the first post makes the list stale. The list goes to
 * sluice_list_free(). NULL and errno on failure: EINVAL, ERANGE, ESTALE as sluice_channel_submit();
 * E2BIG (also as there; or a request needs several messages, or the requests of a peer exceed the
 * depth of its queue, or the length of its staging buffer), ENOMEM, and EFAULT or ENOBUFS (there is
 * no region for plain memory).
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
 * Aims request index of a list at other bytes, from the next post on. sge, unless it is NULL,
 * replaces the one element of the request: it must be of the same region, at least as long as the
 * present element, and no longer than the element that was prepared. The number of bytes that move
 * does not change. remote_offset is the offset in bytes, within the remote region that the request
 * was prepared with, at which it writes or reads; 0 for a send and a receive. Blocks keep their
 * layout, from the new address on. -EINVAL: no such request, one without exactly one element,
 * another region or length, or an atomic operation at no multiple of 8; -ERANGE: the bytes, or a
 * block, are not within the remote region; -ESTALE: the channel was closed.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_aim(struct sluice_list *list, uint32_t index,
                                                   const struct sluice_sge *sge,
                                                   uint64_t remote_offset);

/*
 * Sets the number of bytes that request index of a list moves, from the next post on: 0 to the
 * number that it was prepared with. -EINVAL: no such request, more bytes, a request without exactly
 * one element or with blocks, or an atomic operation; -ERANGE: at its present aim the bytes are not
 * within the element or not within the remote region; -ESTALE: the channel was closed.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_set_length(struct sluice_list *list, uint32_t index,
                                                          uint64_t length);

/*
 * Posts a list and waits for all of it, as sluice_channel_submit() does with its requests: the same
 * results, errors and deadline. completions has room for one entry a request, in the order of
 * requests, or is NULL. -EBUSY: the list is in flight.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_submit(struct sluice_list *list, int64_t deadline,
                                                      struct sluice_completion *completions);

/*
 * Posts a list without waiting: all of it, or nothing. sluice_list_wait() returns its end, and
 * sluice_list_result() its result; polls return neither. completions as above; it is written as the
 * requests complete, and must stay valid until the list has ended. -EAGAIN: no room for all of it
 * now; -E2BIG: there will never be room, as the completion queue of the device is smaller;
 * -ENOTCONN: a peer is not connected; -ETIMEDOUT: the deadline is 0; -EBUSY as above; -ESTALE: see
 * the top; -EINVAL.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_post(struct sluice_list *list, int64_t deadline,
                                                    struct sluice_completion *completions);

/*
 * Waits until all requests of a posted list have ended, successfully or not; with timeout 0 it does
 * not wait. 0: they have; completions is written, and the list may be posted again. -ETIMEDOUT: the
 * list is still in flight; -EINTR (sluice_channel_wake()): likewise; -ENOENT: it was not posted, or
 * was submitted since; -EBUSY: a scope is open; -ESTALE, -EINVAL.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_wait(struct sluice_list *list, int64_t timeout);

/*
 * Returns how the last post of a list has ended: 0, or the error of the first request of the list
 * that failed and was not just cancelled, as sluice_channel_submit(). -EBUSY: the list is in
 * flight; -ENOENT: it was not posted, or was submitted since; -ESTALE, -EINVAL: not a list.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_list_result(const struct sluice_list *list);

/*
 * Posts the requests of a list in an open scope of its channel or multichannel, as
 * sluice_scope_post() does: it waits for room, and returns their count. handles is NULL or has room
 * for one entry a request. The requests belong to the scope, which waits for them, and not to the
 * list: the list may be aimed, posted again or freed at once, and sluice_list_wait() does not wait
 * for them. -EINVAL: not a list, not a scope, or one of another channel; -EBUSY: the list is
 * in flight by a post outside of the scope; -ESTALE: the scope has ended, or see the top.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_scope_post_list(struct sluice_scope *scope,
                                                          struct sluice_list *list,
                                                          struct sluice_handle *handles);

#ifdef __cplusplus
}
#endif

#endif
