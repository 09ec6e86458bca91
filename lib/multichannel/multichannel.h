/* SPDX-License-Identifier: MIT */
/* The objects of a multichannel: a magic word and an engine with many peers. */
#ifndef SLU_MULTICHANNEL_H
#define SLU_MULTICHANNEL_H

#include "engine/engine.h"

struct sluice_prepared_multichannel {
    uint32_t magic;
    struct slu_engine *engine;
};

struct sluice_multichannel {
    uint32_t magic;
    bool owned; /* by a node, which alone ends it */
    struct slu_engine *engine;
};

/* prepared.c: as sluice_multichannel_prepare(), with slots to spare as slu_engine_create() has. */
struct sluice_prepared_multichannel *
slu_multichannel_prepare(struct sluice_pd *pd, uint32_t peers, uint32_t spare,
                         const struct sluice_channel_attr *attr);

/* peers.c: as sluice_multichannel_close(), whoever owns it. */
void slu_multichannel_destroy(struct sluice_multichannel *multichannel);

static inline bool slu_is_multichannel(const struct sluice_multichannel *multichannel)
{
    return multichannel != NULL && multichannel->magic == SLU_MAGIC_MULTICHANNEL;
}

static inline int slu_not_a_multichannel(const struct sluice_multichannel *multichannel)
{
    return slu_misuse(EINVAL, "not a multichannel%s", slu_none_hint(multichannel));
}

#endif
