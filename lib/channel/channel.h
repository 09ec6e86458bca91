/* SPDX-License-Identifier: MIT */
/* The objects of a channel: a magic word and an engine with one peer. */
#ifndef SLU_CHANNEL_H
#define SLU_CHANNEL_H

#include "engine/engine.h"

struct sluice_prepared_channel {
    uint32_t magic;
    struct slu_engine *engine;
};

struct sluice_channel {
    uint32_t magic;
    struct slu_engine *engine;
};

static inline bool slu_is_channel(const struct sluice_channel *channel)
{
    return channel != NULL && channel->magic == SLU_MAGIC_CHANNEL;
}

static inline int slu_not_a_channel(const struct sluice_channel *channel)
{
    return slu_misuse(EINVAL, "not a channel%s", slu_none_hint(channel));
}

#endif
