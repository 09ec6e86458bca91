/* SPDX-License-Identifier: MIT */
/*
 * Access to the libibverbs objects behind ours, and wrappers around existing ones. In a
 * build without verbs, all calls fail with EOPNOTSUPP.
 */
#include "config.h"

#include <sluice/verbs.h>

#include "channel/channel.h"
#include "memory/mr.h"
#include "multichannel/multichannel.h"

#ifdef HAVE_VERBS

#include "transport/verbs/verbs.h"

static bool runs_verbs(const struct sluice_context *context)
{
    if (context->transport->transport == &slu_transport_verbs)
        return true;
    slu_fail_null(EOPNOTSUPP, "device %s is of transport %s, which has no verbs objects",
                  context->transport->device, context->transport->transport->name);
    return false;
}

static struct ibv_context *context_of(const struct sluice_context *context)
{
    return runs_verbs(context) ? slu_verbs_context_of(context->transport)->ibv : NULL;
}

static struct ibv_pd *pd_of(const struct sluice_pd *pd)
{
    return runs_verbs(pd->context) ? slu_verbs_pd_of(pd->transport)->ibv : NULL;
}

static struct ibv_mr *mr_of(const struct sluice_mr *mr)
{
    return runs_verbs(mr->pd->context) ? slu_verbs_mr_of(mr->transport)->ibv : NULL;
}

static struct ibv_qp *find_qp(const struct slu_engine *engine, uint32_t peer)
{
    struct slu_qp *qp;

    if (engine->peers[peer].state == SLUICE_STATE_REMOVED)
        return slu_fail_null(ENOTCONN, "peer %u was removed", peer);
    qp = slu_peer_first_qp(engine, peer);
    if (qp != NULL)
        return slu_verbs_qp_of(qp)->ibv;
    return slu_fail_null(ENOTCONN,
                         engine->lazy != NULL ? "peer %u is not connected: reach it first"
                                              : "peer %u has no queue pair any more: reset it",
                         peer);
}

static struct ibv_qp *qp_of(struct slu_engine *engine, uint32_t peer)
{
    struct ibv_qp *qp;
    bool armed;

    if (!runs_verbs(engine->pd->context))
        return NULL;
    if (engine->lazy == NULL)
        return find_qp(engine, peer);
    /* Another thread connects lazy peers, except while the engine is entered. */
    armed = slu_query_enter(engine);
    qp = find_qp(engine, peer);
    slu_query_leave(engine, armed);
    return qp;
}

static struct sluice_context *wrap_context(struct ibv_context *ibv,
                                           const struct sluice_context_attr *attr)
{
    struct sluice_context_attr checked;
    struct slu_tcontext *transport;
    int error = slu_context_attr_apply(attr, &checked);

    if (error == 0)
        error = slu_fork_prepare();
    if (error == 0)
        error = slu_verbs_wrap(ibv, &checked, &transport);
    if (error < 0)
        return slu_none(error);
    return slu_context_create(transport);
}

static struct sluice_pd *wrap_pd(struct sluice_context *context, struct ibv_pd *ibv)
{
    struct slu_tpd *transport;
    int error;

    if (!runs_verbs(context))
        return NULL;
    if (ibv->context != slu_verbs_context_of(context->transport)->ibv)
        return slu_misuse_null(EINVAL, "the ibv_pd is of another ibv_context than the context");
    error = slu_verbs_pd_wrap(context->transport, ibv, &transport);
    if (error < 0)
        return slu_none(error);
    return slu_pd_create(context, transport);
}

#else

#define context_of(context) ((void)(context), refuse())
#define pd_of(pd) ((void)(pd), refuse())
#define mr_of(mr) ((void)(mr), refuse())
#define qp_of(engine, peer) ((void)(engine), (void)(peer), refuse())
#define wrap_context(ibv, attr) ((void)(ibv), (void)(attr), refuse())
#define wrap_pd(context, ibv) ((void)(context), (void)(ibv), refuse())

static void *refuse(void)
{
    return slu_fail_null(EOPNOTSUPP, "this library was built without verbs");
}

#endif

struct ibv_context *sluice_verbs_context(const struct sluice_context *context)
{
    if (context == NULL || context->magic != SLU_MAGIC_CONTEXT)
        return slu_misuse_null(EINVAL, "not a context%s", slu_none_hint(context));
    return context_of(context);
}

struct ibv_pd *sluice_verbs_pd(const struct sluice_pd *pd)
{
    if (pd == NULL || pd->magic != SLU_MAGIC_PD)
        return slu_misuse_null(EINVAL, "not a protection domain%s", slu_none_hint(pd));
    return pd_of(pd);
}

struct ibv_mr *sluice_verbs_mr(const struct sluice_mr *mr)
{
    if (mr == NULL || mr->magic != SLU_MAGIC_MR)
        return slu_misuse_null(EINVAL, "not a memory region%s", slu_none_hint(mr));
    return mr_of(mr);
}

struct ibv_qp *sluice_verbs_channel_qp(const struct sluice_channel *channel)
{
    if (!slu_is_channel(channel))
        return slu_misuse_null(EINVAL, "not a channel%s", slu_none_hint(channel));
    return qp_of(channel->base.engine, 0);
}

struct ibv_qp *sluice_verbs_multichannel_qp(const struct sluice_multichannel *multichannel,
                                            uint32_t peer)
{
    uint32_t count;

    if (!slu_is_multichannel(multichannel))
        return slu_misuse_null(EINVAL, "not a multichannel%s", slu_none_hint(multichannel));
    count = multichannel->base.engine->peer_count;
    if (count == 0)
        return slu_misuse_null(ERANGE, "peer %u: there are none yet", peer);
    if (peer >= count)
        return slu_misuse_null(ERANGE, "peer %u: there are peers 0..%u", peer, count - 1);
    return qp_of(multichannel->base.engine, peer);
}

struct sluice_context *sluice_verbs_context_wrap(struct ibv_context *ibv,
                                                 const struct sluice_context_attr *attr)
{
    if (ibv == NULL)
        return slu_misuse_null(EINVAL, "no ibv_context to wrap");
    return wrap_context(ibv, attr);
}

struct sluice_pd *sluice_verbs_pd_wrap(struct sluice_context *context, struct ibv_pd *ibv)
{
    if (context == NULL || context->magic != SLU_MAGIC_CONTEXT)
        return slu_misuse_null(EINVAL, "a protection domain needs an open context%s",
                               slu_none_hint(context));
    if (ibv == NULL)
        return slu_misuse_null(EINVAL, "no ibv_pd to wrap");
    return wrap_pd(context, ibv);
}
