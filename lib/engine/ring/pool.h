/* SPDX-License-Identifier: MIT */
/*
 * The entries of receives that all peers share. Such receives complete in any order, so an entry is
 * found by the id that is noted beside it. There are at least twice as many entries as receives can
 * be pending: the next one that is not pending is near.
 */
#ifndef SLU_ENGINE_RING_POOL_H
#define SLU_ENGINE_RING_POOL_H

#include "engine/ring/order.h"

/* Make and free the entries. The transport's pool is made and ended by the caller. */
int slu_pool_make(struct slu_engine *engine);
void slu_pool_free(struct slu_engine *engine);
/* Returns how many receives can be posted now. */
uint32_t slu_pool_room(const struct slu_engine *engine);
/*
 * Makes an entry pending, for which there must be room, and returns its id. The caller sets the
 * fields of its owner.
 */
uint64_t slu_pool_take(struct slu_engine *engine, enum slu_owner owner,
                       const struct sluice_request *request);
/* Ends the accounting of a pending entry, which no completion will come for any more. */
void slu_pool_untake(struct slu_engine *engine, struct slu_entry *entry);
/* Gives the result of an entry, which is complete, to its owner. */
void slu_pool_give(struct slu_engine *engine, uint64_t id, struct slu_entry *entry, uint32_t peer);
/* Gives an entry to its owner as cancelled: of no peer, or of one that is gone and not known. */
void slu_pool_give_cancelled(struct slu_engine *engine, uint64_t id, struct slu_entry *entry);
/* Marks the unseen results of a removed peer. */
void slu_pool_mark_removed(struct slu_engine *engine, uint32_t peer);

static inline bool slu_pool_uses(const struct slu_engine *engine, const struct slu_memory *memory)
{
    return engine->pool != NULL && slu_ring_uses(&engine->pool->ring, engine->attr.max_sge, memory);
}

#endif
