/* SPDX-License-Identifier: MIT */
/* A protection domain: the public object, and the channels and buffers that use its memory. */
#ifndef SLU_PD_H
#define SLU_PD_H

#include <sluice/pd.h>

#include "device/context.h"

/*
 * Memory that is about to be deregistered or reused: a region, or a block of one. An element uses
 * it if it has its key and begins in it.
 */
struct slu_memory {
    uint32_t lkey;
    uint32_t start;  /* low half of its address: no region with blocks is longer than 4 GiB */
    uint64_t length; /* SLU_WHOLE: all memory with that key */
};
#define SLU_WHOLE UINT64_MAX

static inline bool slu_memory_has(const struct slu_memory *memory, uint32_t lkey, uint32_t addr)
{
    return lkey == memory->lkey && (uint32_t)(addr - memory->start) < memory->length;
}

/* Whether two pieces of memory of one domain have a byte in common. */
static inline bool slu_memory_meets(const struct slu_memory *a, const struct slu_memory *b)
{
    return a->lkey == b->lkey && ((uint32_t)(b->start - a->start) < a->length ||
                                  (uint32_t)(a->start - b->start) < b->length);
}

/*
 * A channel, or a batch of actions on buffers, whose work names memory by keys of the domain; or a
 * buffer that publishes some.
 */
struct slu_memory_user {
    struct slu_memory_user *next;
    uint64_t buffer; /* its id; 0: a channel */
    /* Returns whether requests in flight use the memory. Called by any thread. */
    bool (*uses)(const struct slu_memory_user *user, const struct slu_memory *memory);
    /* Returns whether a prepared list names the memory, posted or not. NULL: it has no lists. */
    bool (*lists)(const struct slu_memory_user *user, const struct slu_memory *memory);
};

struct sluice_pd {
    uint32_t magic;
    bool owned; /* by a node, like that of a context */
    atomic_uint references;
    struct sluice_context *context;
    struct slu_tpd *transport;
    pthread_mutex_t lock; /* protects users */
    struct slu_memory_user *users;
    struct sluice_pd *next;                        /* in the list of all domains */
    _Atomic(struct slu_unreachable *) unreachable; /* see slu_pd_reaches() */
};

/* Takes over the transport's domain; on failure frees it. */
struct sluice_pd *slu_pd_create(struct sluice_context *context, struct slu_tpd *transport);
void slu_pd_hold(struct sluice_pd *pd);
void slu_pd_release(struct sluice_pd *pd);
/* Add and remove a user; its uses() is called between these two. */
void slu_pd_enter(struct sluice_pd *pd, struct slu_memory_user *user);
void slu_pd_leave(struct sluice_pd *pd, struct slu_memory_user *user);
/*
 * Returns whether requests in flight use the memory, in any domain that shares its keys, or a
 * buffer publishes it.
 */
bool slu_pd_uses(const struct sluice_pd *pd, const struct slu_memory *memory);
/*
 * Fails a call that would end memory in use: "what at ADDRESS is used by posted work", or published
 * as a buffer, or named by a prepared list; -EBUSY with what to do, or if a wait for its end was
 * too long, -ETIMEDOUT.
 */
int slu_pd_fail_used(struct sluice_pd *pd, const struct slu_memory *memory, const char *what,
                     uint64_t address, bool late);
/* A region of the domain begins that no processor reaches: 0, or -ENOMEM; and it ends. */
int slu_pd_add_unreachable(struct sluice_pd *pd, uint32_t lkey);
void slu_pd_remove_unreachable(struct sluice_pd *pd, uint32_t lkey);
/* Returns whether the processor reaches the memory of a key, as far as is known. */
bool slu_pd_reaches(const struct sluice_pd *pd, uint32_t lkey);
/* Returns whether any memory with that key is used. */
static inline bool slu_pd_uses_key(const struct sluice_pd *pd, uint32_t lkey)
{
    const struct slu_memory memory = {.lkey = lkey, .length = SLU_WHOLE};

    return slu_pd_uses(pd, &memory);
}

#endif
