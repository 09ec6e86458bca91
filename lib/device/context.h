/* SPDX-License-Identifier: MIT */
/* A context as a program has it, around that of a transport. */
#ifndef SLU_CONTEXT_H
#define SLU_CONTEXT_H

#include <sluice/context.h>

#include "base/base.h"
#include "transport/transport.h"

struct sluice_context {
    uint32_t magic;
    bool owned; /* by a node, which alone ends it */
    atomic_uint references;
    struct slu_tcontext *transport;
};

/* On failure the transport's is closed. */
struct sluice_context *slu_context_create(struct slu_tcontext *transport);
/* 0, or -EINVAL or -E2BIG: the attributes with defaults for what an older program does not give. */
int slu_context_attr_apply(const struct sluice_context_attr *given,
                           struct sluice_context_attr *attr);
void slu_context_hold(struct sluice_context *context);
void slu_context_release(struct sluice_context *context);

#endif
