/* SPDX-License-Identifier: MIT */
/*
 * The objects of libibverbs behind ours, and ours around existing ones, for
 * programs that go on where sluice ends: vendor extensions, work that a GPU
 * posts, memory that another library registered. To use them, include
 * <infiniband/verbs.h> and link with libibverbs.
 *
 * What the first group of functions gives stays the property of our object and
 * lives as long: it must not be destroyed. NULL and errno on failure: EINVAL
 * (NULL, or not such an object), EOPNOTSUPP (the object is of transport "soft",
 * or the library was built without verbs). Any thread may call these.
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

/* Of <infiniband/verbs.h>. */
struct ibv_context;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;

/* Its asynchronous events are read by sluice, unless it was wrapped. */
SLUICE_EXPORT struct ibv_context *sluice_verbs_context(const struct sluice_context *context);
SLUICE_EXPORT struct ibv_pd *sluice_verbs_pd(const struct sluice_pd *pd);
SLUICE_EXPORT struct ibv_mr *sluice_verbs_mr(const struct sluice_mr *mr);

/*
 * The queue pair; its completion queues are qp->send_cq and qp->recv_cq, which
 * are shared with others and which sluice polls. It lives until the channel (or
 * that peer) is reset or closed, or until a failed peer had to be given up,
 * which is errno ENOTCONN here. A request that the program posts to it itself
 * is not counted by sluice: keep room for it in the depths, post it without a
 * completion, or take care that its wr_id is 0, which sluice discards.
 *
 * Where a peer has several (queue_pairs) it is the first, which has all but
 * parts of large reads and writes.
 *
 * Like other calls of a channel: one thread at a time.
 */
SLUICE_EXPORT struct ibv_qp *sluice_verbs_channel_qp(const struct sluice_channel *channel);

/* That of one peer. ERANGE: no such peer. */
SLUICE_EXPORT struct ibv_qp *
sluice_verbs_multichannel_qp(const struct sluice_multichannel *multichannel, uint32_t peer);

/*
 * A context around a device that the program has opened. It is used and closed
 * like any other; the device stays open and must outlive all that was made of
 * it. Its asynchronous events are the program's own: sluice never reads them,
 * so a port that goes down shows in the requests only. attr and errors as
 * sluice_context_open(), and EINVAL (NULL), EOPNOTSUPP (built without verbs).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_context_close)
struct sluice_context *sluice_verbs_context_wrap(struct ibv_context *ibv,
                                                 const struct sluice_context_attr *attr);

/*
 * A protection domain around one that the program has allocated on the device
 * of this context (wrapped, or opened by sluice). Memory registered with either
 * can be used with both. It is freed like any other; the program's stays, and
 * must outlive all that was made of it. NULL and errno: EINVAL (NULL, or it is
 * of another ibv_context), EOPNOTSUPP, ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_pd_free)
struct sluice_pd *sluice_verbs_pd_wrap(struct sluice_context *context, struct ibv_pd *ibv);

#ifdef __cplusplus
}
#endif

#endif
