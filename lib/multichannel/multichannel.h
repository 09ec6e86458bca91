/* SPDX-License-Identifier: MIT */
/* Multichannels: an engine with many peers. */
#ifndef SLU_MULTICHANNEL_H
#define SLU_MULTICHANNEL_H

#include "channel/object.h"

struct sluice_prepared_multichannel {
    struct slu_channel base;
};

struct sluice_multichannel {
    struct slu_channel base;
};

/* prepared.c: as sluice_multichannel_prepare(); own: see slu_engine_create(). */
struct sluice_prepared_multichannel *
slu_multichannel_prepare(struct sluice_pd *pd, uint32_t peers, uint32_t own,
                         const struct sluice_channel_attr *attr);
/* Does what sluice_multichannel_peer_add() does, also for a peer that rdma_cm is to connect. */
int slu_multichannel_peer_add(struct sluice_multichannel *multichannel,
                              struct sluice_endpoint *endpoint);

/* Find a peer: 0, or an error with a text. The second fails for a removed peer. */
int slu_multichannel_find(const struct sluice_multichannel *multichannel, uint32_t peer,
                          struct slu_peer **found);
int slu_multichannel_find_present(const struct sluice_multichannel *multichannel, uint32_t peer,
                                  struct slu_peer **found);

static inline bool slu_is_multichannel(const struct sluice_multichannel *multichannel)
{
    return SLU_LIKELY(multichannel != NULL && multichannel->base.magic == SLU_MAGIC_MULTICHANNEL);
}

static inline int slu_not_a_multichannel(const struct sluice_multichannel *multichannel)
{
    return slu_misuse(EINVAL, "not a multichannel%s", slu_none_hint(multichannel));
}

/* Returns the engine; NULL with a text if this is not a multichannel. */
static inline struct slu_engine *slu_engine_of_many(const struct sluice_multichannel *multichannel)
{
    if (slu_is_multichannel(multichannel)) {
        if (multichannel->base.engine == NULL)
            __builtin_unreachable();
        return multichannel->base.engine;
    }
    slu_not_a_multichannel(multichannel);
    return NULL;
}

#endif
