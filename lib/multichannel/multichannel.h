/* SPDX-License-Identifier: MIT */
/* The objects of a multichannel: a magic word and an engine with many peers. */
#ifndef SLU_MULTICHANNEL_H
#define SLU_MULTICHANNEL_H

#include "../engine/engine.h"

struct sluice_prepared_multichannel {
    uint32_t magic;
    struct slu_engine *engine;
};

struct sluice_multichannel {
    uint32_t magic;
    struct slu_engine *engine;
};

static inline bool slu_is_multichannel(const struct sluice_multichannel *multichannel)
{
    return multichannel != NULL && multichannel->magic == SLU_MAGIC_MULTICHANNEL;
}

static inline int slu_not_a_multichannel(void)
{
    return slu_misuse(EINVAL, "not a multichannel");
}

#endif
