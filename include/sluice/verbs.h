/* SPDX-License-Identifier: MIT */
/*
 * Access to the libibverbs objects behind those of sluice, and sluice objects
 * around existing ones, for programs that need what sluice does not offer:
 * vendor extensions, work that a GPU posts, memory that another library
 * registered. To use them, include <infiniband/verbs.h> and link with
 * libibverbs.
 *
 * An object that the first group of functions returns belongs to the sluice
 * object and lives as long: the program must not destroy it. NULL and errno on
 * failure: EINVAL (NULL, or not such an object), EOPNOTSUPP (the object is of
 * transport "soft", or the library was built without verbs). Any thread may
 * call these.
 */
#ifndef SLUICE_VERBS_H
#define SLUICE_VERBS_H

#include <stdint.h>

#include <sluice/channel.h>
#include <sluice/context.h>
#include <sluice/macros.h>
#include <sluice/mr.h>
#include <sluice/multichannel.h>
#include <sluice/pd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of <infiniband/verbs.h>. */
struct ibv_context;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;

/*
 * Returns the object of libibverbs. sluice reads the asynchronous events of a
 * context, unless it was wrapped.
 */
SLUICE_EXPORT struct ibv_context *sluice_verbs_context(const struct sluice_context *context);
SLUICE_EXPORT struct ibv_pd *sluice_verbs_pd(const struct sluice_pd *pd);
SLUICE_EXPORT struct ibv_mr *sluice_verbs_mr(const struct sluice_mr *mr);

/*
 * Returns the queue pair. The completion queues are qp->send_cq and
 * qp->recv_cq, which are shared with other queue pairs and which sluice polls.
 * The queue pair lives until the channel (or that peer) is reset or closed, or
 * until a failed peer had to be given up, which is errno ENOTCONN here. sluice
 * does not count requests that the program posts to the queue pair itself: keep
 * room for them in the depths, and post them without a completion, or with
 * wr_id 0, whose completions sluice discards.
 *
 * If a peer has several queue pairs (queue_pairs) it is the first, which
 * carries everything except parts of large reads and writes.
 *
 * Like other calls of a channel: one thread at a time.
 */
SLUICE_EXPORT struct ibv_qp *sluice_verbs_channel_qp(const struct sluice_channel *channel);

/* Returns the queue pair of one peer. ERANGE: no such peer. */
SLUICE_EXPORT struct ibv_qp *
sluice_verbs_multichannel_qp(const struct sluice_multichannel *multichannel, uint32_t peer);

/*
 * Makes a context around a device that the program has opened. The context is
 * used and closed like any other; the device stays open and must outlive all
 * objects made from it. The program reads the asynchronous events of the
 * device, and sluice never does, so that a port that goes down only shows in
 * failed requests. attr and errors as sluice_context_open(), and EINVAL (NULL),
 * EOPNOTSUPP (built without verbs).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_context_close)
struct sluice_context *sluice_verbs_context_wrap(struct ibv_context *ibv,
                                                 const struct sluice_context_attr *attr);

/*
 * Makes a protection domain around one that the program has allocated on the
 * device of this context (wrapped, or opened by sluice). Memory registered with
 * either can be used with both. The domain is freed like any other; that of the
 * program stays allocated, and must outlive all objects made from it. NULL and
 * errno: EINVAL (NULL, or it is of another ibv_context), EOPNOTSUPP, ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_pd_free)
struct sluice_pd *sluice_verbs_pd_wrap(struct sluice_context *context, struct ibv_pd *ibv);

#ifdef __cplusplus
}
#endif

#endif
