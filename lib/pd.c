/* SPDX-License-Identifier: MIT */
/* Protection domains: counted holds, and the list of engines that use one. */
#include "config.h"

#include <stdlib.h>

#include <sluice/pd.h>

#include "internal.h"

struct sluice_pd *sluice_pd_alloc(struct sluice_context *context)
{
    struct slu_tpd *transport;
    int error;

    if (context == NULL || context->magic != SLU_MAGIC_CONTEXT)
        return slu_misuse_null(EINVAL, "a protection domain needs an open context");
    error = context->transport->transport->pd_alloc(context->transport, &transport);
    if (error < 0) {
        errno = -error;
        return NULL;
    }
    return slu_pd_create(context, transport);
}

struct sluice_pd *slu_pd_create(struct sluice_context *context, struct slu_tpd *transport)
{
    struct sluice_pd *pd = calloc(1, sizeof *pd);

    if (pd == NULL) {
        context->transport->transport->pd_free(transport);
        return slu_fail_null(ENOMEM, "no memory for a protection domain");
    }
    pd->magic = SLU_MAGIC_PD;
    pd->transport = transport;
    atomic_init(&pd->references, 1);
    pthread_mutex_init(&pd->lock, NULL);
    slu_context_hold(context);
    pd->context = context;
    return pd;
}

void slu_pd_hold(struct sluice_pd *pd)
{
    atomic_fetch_add_explicit(&pd->references, 1, memory_order_relaxed);
}

void slu_pd_release(struct sluice_pd *pd)
{
    struct sluice_context *context = pd->context;

    if (atomic_fetch_sub_explicit(&pd->references, 1, memory_order_acq_rel) > 1)
        return;
    context->transport->transport->pd_free(pd->transport);
    pthread_mutex_destroy(&pd->lock);
    free(pd);
    slu_context_release(context);
}

void sluice_pd_free(struct sluice_pd *pd)
{
    if (!slu_may_end(pd, SLU_MAGIC_PD, "protection domain"))
        return;
    if (pd->owned) {
        slu_refuse_owned("protection domain");
        return;
    }
    /* Children may hold it for long: the program has given it up all the same. */
    pd->magic = SLU_MAGIC_DEAD;
    slu_pd_release(pd);
}
