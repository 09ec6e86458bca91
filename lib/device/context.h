/* SPDX-License-Identifier: MIT */
/* A context: the public object, around the context of a transport. */
#ifndef SLU_CONTEXT_H
#define SLU_CONTEXT_H

#include <sluice/context.h>

#include "base/base.h"
#include "transport/transport.h"

struct sluice_context {
    uint32_t magic;
    bool owned; /* by a node; only sluice_node_close() closes it */
    atomic_uint references;
    struct slu_tcontext *transport;
};

/* Takes over the transport's context; on failure closes it. */
struct sluice_context *slu_context_create(struct slu_tcontext *transport);
/* Checks attributes; fills in defaults for fields that an older program does not know. */
int slu_context_attr_apply(const struct sluice_context_attr *given,
                           struct sluice_context_attr *attr);
void slu_context_hold(struct sluice_context *context);
void slu_context_release(struct sluice_context *context);

#endif
