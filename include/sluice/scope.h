/* SPDX-License-Identifier: MIT */
/*
 * A scope: a program posts work in it without waiting, and its end waits for all of the work, so
 * that no buffer is in use after the block that it belongs to. A scope borrows its channel or
 * multichannel, which has at most one open scope at a time. While a scope is open, all work goes
 * through it: calls on the channel or multichannel itself that post, wait or reset fail with
 * -EBUSY. A scope is used by the thread that uses its channel.
 *
 * A pointer to a scope is a name, and not the address of an object. The library recognises the name
 * of an ended scope, even if its channel was closed or other scopes are open: each call with it,
 * including a second end, returns -ESTALE and does nothing. A name is not used again before 2^43
 * more scopes have begun.
 */
#ifndef SLUICE_SCOPE_H
#define SLUICE_SCOPE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/channel.h>
#include <sluice/multichannel.h>
#include <sluice/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flag of a report: the end returns -EBUSY if the program has left any result untaken. */
#define SLUICE_SCOPE_STRICT (UINT32_C(1) << 0)

/* Report of a scope. A zeroed struct with its size set is a valid start. */
struct sluice_scope_report {
    uint32_t size;   /* set to sizeof(struct sluice_scope_report) */
    uint32_t flags;  /* in: SLUICE_SCOPE_STRICT, or 0 */
    int32_t said;    /* in: result of the block itself: a negative errno value, which the end then
                        returns, or 0 or a count for success; not changed */
    int32_t error;   /* out: the result of the end; or why the scope did not begin */
    uint32_t posted; /* requests accepted in the scope */
    uint32_t failed; /* of these, how many failed and were not taken by sluice_scope_wait() or
                        sluice_scope_poll() */
    uint32_t unseen; /* of posted, how many results were not taken, successful or not */
    uint32_t lost;   /* of failed, how many were forgotten, because more than 64 of them waited to
                        be taken while their places were needed */
    struct sluice_completion *failures; /* in: room for the failed requests, or NULL */
    uint32_t capacity;                  /* in: entries of failures */
    uint32_t count;                     /* out: entries written, in the order of posting */
};

/*
 * Ends the scope: waits for everything posted in it, until the scope's deadline, and frees the
 * scope in any case; NULL is allowed. report is NULL or has its size set. Returns report->said if
 * that is negative; else the errno value of the first failure that was not taken (the first that is
 * neither -ECANCELED nor -ENOTCONN, or else the first); else, if the end is strict, -EBUSY if any
 * result was not taken; else 0. -ESTALE: the scope had ended before. -EINVAL: not a scope, or the
 * report has too small a size or wrong flags, -E2BIG: its size is above 4096, see sluice(7); with a
 * wrong report the scope has ended nevertheless.
 */
SLUICE_EXPORT int sluice_scope_end(struct sluice_scope *scope, struct sluice_scope_report *report);

/*
 * Opens a scope. The deadline, from now, applies to all work of the scope and to its end; with 0
 * nothing is posted, and each request completes with status DEADLINE. NULL and errno on failure:
 * EBUSY (a scope is open), EINVAL.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_scope_end)
struct sluice_scope *sluice_channel_scope_begin(struct sluice_channel *channel, int64_t deadline);
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_scope_end)
struct sluice_scope *sluice_multichannel_scope_begin(struct sluice_multichannel *multichannel,
                                                     int64_t deadline);

/*
 * Attaches a report to a scope, which is filled if the end is given none; the report must stay
 * valid until then. Returns the scope. If scope is NULL, because it could not begin, report->error
 * is -errno. If the report has a wrong size or flags, the scope has ended, report->error says so,
 * and NULL is returned. NULL is also returned for a scope that had ended before (ESTALE) and if it
 * is not a scope (EINVAL).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_scope_end)
struct sluice_scope *sluice_scope_attach(struct sluice_scope *scope,
                                         struct sluice_scope_report *report);

#if defined(__GNUC__)
/* Ends *scope; SLUICE_SCOPE() calls it when its block is left. */
static inline void sluice_scope_leave(struct sluice_scope **scope)
{
    sluice_scope_end(*scope, NULL);
}

/*
 * A block with a scope: SLUICE_SCOPE(name, begin, report) { ... } declares the scope name, which
 * begin returns, for the block that follows. The block runs once. However it is left, by its end,
 * break, continue, return or goto, the scope ends, which fills report (or NULL); break and continue
 * leave the scope, not a loop around it. If the scope does not begin, the block does not run, and
 * report->error says why. Leaving the block ends its own scope and no other: if the block has ended
 * that scope already, leaving it is a misuse that does nothing.
 */
#define SLUICE_SCOPE(name, begin, report)                                          \
    for (struct sluice_scope * name __attribute__((cleanup(sluice_scope_leave))) = \
             sluice_scope_attach((begin), (report)),                               \
                                    *sluice_once_##name = name;                    \
         sluice_once_##name; sluice_once_##name = NULL)
#endif

/*
 * Posts all requests, receives before sends. A full queue is no error: the call waits for room,
 * until the scope's deadline. handles is NULL or has count entries, which are not valid outside of
 * the scope. Returns count: all requests were accepted, and each completes exactly once. On an
 * argument error (-EINVAL, -ERANGE, -E2BIG, -EOPNOTSUPP), without a region for plain memory
 * (-EFAULT, -ENOBUFS, -ENOMEM), and if the scope has ended (-ESTALE), nothing was posted. A request
 * to a failed peer is accepted and completes as refused (-ENOTCONN); a request for which there was
 * no room until the deadline completes with status DEADLINE.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_scope_post(struct sluice_scope *scope,
                                                     const struct sluice_request *requests,
                                                     uint32_t count, struct sluice_handle *handles);

/*
 * Posts one request; peer is 0 in a channel's scope, and handle may be NULL. 0: it was accepted.
 * Otherwise as sluice_scope_post(). Post requests with flags or user data by that call.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_scope_post_send(struct sluice_scope *scope, uint32_t peer,
                                                          const struct sluice_sge *sges,
                                                          uint32_t sge_count,
                                                          struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_receive(struct sluice_scope *scope, uint32_t peer, const struct sluice_sge *sges,
                          uint32_t sge_count, struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_write(struct sluice_scope *scope, uint32_t peer, const struct sluice_sge *sges,
                        uint32_t sge_count, const struct sluice_remote_mr *remote,
                        struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int sluice_scope_post_read(struct sluice_scope *scope, uint32_t peer,
                                                          const struct sluice_sge *sges,
                                                          uint32_t sge_count,
                                                          const struct sluice_remote_mr *remote,
                                                          struct sluice_handle *handle);

/* Posts an atomic operation as those of channel.h, on 8 bytes, whose old value goes to result. */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_compare_swap(struct sluice_scope *scope, uint32_t peer,
                               const struct sluice_sge *result,
                               const struct sluice_remote_mr *remote, uint64_t expected,
                               uint64_t desired, struct sluice_handle *handle);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_fetch_add(struct sluice_scope *scope, uint32_t peer,
                            const struct sluice_sge *result, const struct sluice_remote_mr *remote,
                            uint64_t addend, struct sluice_handle *handle);

/*
 * Posts a list of one operation, otherwise as sluice_scope_post(), and returns count as well: the
 * opcode of each request is SLUICE_OP_NONE or that of the call.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_scatter_send(struct sluice_scope *scope, const struct sluice_request *requests,
                               uint32_t count, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_scatter_write(struct sluice_scope *scope, const struct sluice_request *requests,
                                uint32_t count, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_gather_receive(struct sluice_scope *scope, const struct sluice_request *requests,
                                 uint32_t count, struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_gather_read(struct sluice_scope *scope, const struct sluice_request *requests,
                              uint32_t count, struct sluice_handle *handles);

/* Posts one message, or the same bytes, to count peers, as the multicasts of multichannel.h. */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_multicast_send(struct sluice_scope *scope, const struct sluice_request *request,
                                 const uint32_t *peers, uint32_t count,
                                 struct sluice_handle *handles);
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_scope_post_multicast_write(struct sluice_scope *scope, const struct sluice_request *request,
                                  const struct sluice_peer_remote_mr *remotes, uint32_t count,
                                  struct sluice_handle *handles);

/*
 * Takes up to count completions of the scope that were not taken yet, oldest first, without
 * waiting. Returns how many, 0 if none. -EINVAL, -ESTALE.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_scope_poll(struct sluice_scope *scope,
                                                     struct sluice_completion *completions,
                                                     uint32_t count);

/*
 * Waits for one request of the scope, as sluice_channel_wait(). -ESTALE: a handle that is too old,
 * or not of this scope; or the scope has ended.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_scope_wait(struct sluice_scope *scope,
                                                     const struct sluice_handle *handle,
                                                     int64_t timeout,
                                                     struct sluice_completion *completion);

#ifdef __cplusplus
}
#endif

#endif
