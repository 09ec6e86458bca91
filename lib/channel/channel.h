/* SPDX-License-Identifier: MIT */
/* Channels: an engine with one peer. */
#ifndef SLU_CHANNEL_H
#define SLU_CHANNEL_H

#include "channel/object.h"

struct sluice_prepared_channel {
    struct slu_channel base;
};

struct sluice_channel {
    struct slu_channel base;
};

/* Does what sluice_channel_prepare() does, also for a channel that rdma_cm is to connect. */
struct sluice_prepared_channel *slu_channel_prepare(struct sluice_pd *pd,
                                                    const struct sluice_channel_attr *attr);

static inline bool slu_is_channel(const struct sluice_channel *channel)
{
    return SLU_LIKELY(channel != NULL && channel->base.magic == SLU_MAGIC_CHANNEL);
}

static inline int slu_not_a_channel(const struct sluice_channel *channel)
{
    return slu_misuse(EINVAL, "not a channel%s", slu_none_hint(channel));
}

/* Returns the engine; NULL with a text if this is not a channel. */
static inline struct slu_engine *slu_engine_of(const struct sluice_channel *channel)
{
    if (slu_is_channel(channel)) {
        if (channel->base.engine == NULL)
            __builtin_unreachable();
        return channel->base.engine;
    }
    slu_not_a_channel(channel);
    return NULL;
}

#endif
