/* SPDX-License-Identifier: MIT */
/* Rings of entries: making them, and finding entries by their ids. */
#ifndef SLU_ENGINE_RING_RING_H
#define SLU_ENGINE_RING_RING_H

#include "engine/ring/id.h"

/*
 * Returns the bytes of an allocation for so many entries: each with its further elements, and a
 * spare line for aligning the first one, which slu_entries_in() returns.
 */
size_t slu_entries_bytes(const struct slu_engine *engine, size_t entries);
struct slu_entry *slu_entries_in(void *memory);
/* Makes and ends the rings of an index. */
int slu_rings_create(struct slu_engine *engine, struct slu_ring *rings, uint32_t index);
void slu_rings_destroy(const struct slu_engine *engine, struct slu_ring *rings);
bool slu_ring_uses(const struct slu_ring *ring, uint32_t max_sge, const struct slu_memory *memory);
/* Returns the entry of a receive of the pool, or NULL if the id is of no such receive. */
struct slu_entry *slu_pool_find(const struct slu_engine *engine, uint64_t id);
/* Returns the entry of a displaced success, or NULL if there is none with that id. */
struct slu_entry *slu_aside_find(const struct slu_engine *engine, uint64_t id);

/*
 * Returns how many requests ago an id was posted: 1 if it was the last; 0 or huge if it was not
 * yet.
 */
static inline uint64_t slu_ring_age(const struct slu_ring *ring, uint64_t id)
{
    return (ring->next - id) / SLU_ID_STEP;
}

/* Returns whether the peer that has the index now had that id, or could have had it. */
static inline bool slu_ring_is_of_today(const struct slu_ring *ring, uint64_t id)
{
    return ring->next - id <= ring->next - ring->since;
}

static inline struct slu_entry *slu_ring_entry(const struct slu_ring *ring, uint64_t id)
{
    return &ring->entries[(uint32_t)(id / SLU_ID_STEP) & ring->mask];
}

/* Returns where the id is noted of the request that has an entry of the pool. */
static inline uint64_t *slu_pool_id_at(const struct slu_pool *pool, uint64_t id)
{
    return &pool->ids[(uint32_t)(id / SLU_ID_STEP) & pool->ring.mask];
}

/* Returns how many places of a ring are free. */
static inline uint32_t slu_ring_room(const struct slu_ring *ring)
{
    return ring->size - (uint32_t)((ring->next - ring->oldest) / SLU_ID_STEP);
}

/* Returns the ring of an id, which may be any number; NULL: none, or that of the pool. */
static inline struct slu_ring *slu_ring_of(const struct slu_engine *engine, uint64_t id)
{
    uint32_t ring = slu_id_ring(id);
    uint32_t peer = slu_id_peer(id);

    if (SLU_UNLIKELY(ring >= SLU_RINGS || peer >= engine->peer_count))
        return NULL;
    return &engine->peers[peer].rings[ring];
}

/* Returns the entry taken with that id, if it still has the request or its result; else NULL. */
static inline struct slu_entry *slu_ring_find(const struct slu_engine *engine,
                                              const struct slu_ring *ring, uint64_t id)
{
    if (SLU_UNLIKELY(ring == NULL))
        return slu_pool_find(engine, id);
    if (SLU_UNLIKELY(slu_ring_age(ring, id) - 1 >= ring->size))
        return engine->aside.used > 0 ? slu_aside_find(engine, id) : NULL;
    return slu_ring_entry(ring, id);
}

static inline struct slu_entry *slu_entry_find(const struct slu_engine *engine, uint64_t id)
{
    return slu_ring_find(engine, slu_ring_of(engine, id), id);
}

/*
 * Returns the peer of a request that has ended. The entry of a receive of the pool has its peer in
 * index.
 */
static inline uint32_t slu_entry_peer(uint64_t id, const struct slu_entry *entry)
{
    return SLU_UNLIKELY(slu_id_is_pool(id)) ? entry->index : slu_id_peer(id);
}

/* Returns whether an entry has an unseen result. Results of past scopes do not count. */
static inline bool slu_entry_is_unseen(const struct slu_engine *engine,
                                       const struct slu_entry *entry)
{
    return entry->state == SLU_ENTRY_DONE &&
           (entry->owner != SLU_OWNER_SCOPE ||
            (engine->scope.open && entry->tag == engine->scope.tag));
}

#endif
