/* SPDX-License-Identifier: MIT */
/* A protection domain as a program has it, and who uses memory of it. */
#ifndef SLU_PD_H
#define SLU_PD_H

#include <sluice/pd.h>

#include "device/context.h"

/*
 * Memory that is to end or to be used again: a region, or a block of one. Elements name it that
 * have its key and begin in it.
 */
struct slu_memory {
    uint32_t lkey;
    uint32_t start;  /* low half of its address: no region that has blocks is above 4 GiB */
    uint64_t length; /* SLU_WHOLE: all that has the key */
};
#define SLU_WHOLE UINT64_MAX

static inline bool slu_memory_has(const struct slu_memory *memory, uint32_t lkey, uint32_t addr)
{
    return lkey == memory->lkey && (uint32_t)(addr - memory->start) < memory->length;
}

/* A channel, whose work names memory by keys of the domain; or a buffer that publishes some. */
struct slu_memory_user {
    struct slu_memory_user *next;
    uint64_t buffer; /* its id; 0 of a channel */
    /* Whether work in flight names it; any thread asks. */
    bool (*uses)(const struct slu_memory_user *user, const struct slu_memory *memory);
};

struct sluice_pd {
    uint32_t magic;
    bool owned; /* as that of a context */
    atomic_uint references;
    struct sluice_context *context;
    struct slu_tpd *transport;
    pthread_mutex_t lock; /* of the next */
    struct slu_memory_user *users;
    struct sluice_pd *next; /* in the list of all */
};

/* On failure the transport's is freed. */
struct sluice_pd *slu_pd_create(struct sluice_context *context, struct slu_tpd *transport);
void slu_pd_hold(struct sluice_pd *pd);
void slu_pd_release(struct sluice_pd *pd);
/* A user joins, and leaves; its uses() is called between these two. */
void slu_pd_enter(struct sluice_pd *pd, struct slu_memory_user *user);
void slu_pd_leave(struct sluice_pd *pd, struct slu_memory_user *user);
/*
 * Whether posted work names memory of the domain, through whichever object, or a buffer publishes
 * it.
 */
bool slu_pd_uses(const struct sluice_pd *pd, const struct slu_memory *memory);
/* The id of a buffer that does; 0: there is none. */
uint64_t slu_pd_publisher(struct sluice_pd *pd, const struct slu_memory *memory);
/* Whether it is used at all, of all that has that key. */
static inline bool slu_pd_uses_key(const struct sluice_pd *pd, uint32_t lkey)
{
    const struct slu_memory memory = {.lkey = lkey, .length = SLU_WHOLE};

    return slu_pd_uses(pd, &memory);
}

#endif
