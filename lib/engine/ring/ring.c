/* SPDX-License-Identifier: MIT */
/*
 * Rings: every accepted request has exactly one entry, which its id finds for as long as its result
 * can be retrieved. No id is ever used twice.
 */
#include "config.h"

#include "engine/ring/ring.h"

#include <string.h>

#include "base/zeroed.h"

#define LINE sizeof(struct slu_entry)

static uint32_t ring_size(const struct slu_engine *engine, uint32_t ring)
{
    return ring == SLU_OWN_RING ? engine->own_size > 0 ? slu_power_of_two(engine->own_size) : 0
                                : slu_power_of_two(slu_queue_depth(engine, (enum slu_queue)ring));
}

size_t slu_entries_bytes(const struct slu_engine *engine, size_t entries)
{
    return LINE + entries * (LINE + (engine->attr.max_sge - 1) * sizeof(struct slu_element));
}

struct slu_entry *slu_entries_in(void *memory)
{
    return (void *)(((uintptr_t)memory + LINE - 1) & ~(uintptr_t)(LINE - 1));
}

/* Divides the one allocation of a peer's rings. */
static void share_memory(const struct slu_engine *engine, struct slu_ring *rings, void *memory)
{
    struct slu_entry *entries = slu_entries_in(memory);
    struct slu_element *elements;

    for (uint32_t i = 0; i < SLU_RINGS; i++) {
        rings[i].entries = entries;
        entries += rings[i].size;
    }
    elements = (void *)entries;
    for (uint32_t i = 0; i < SLU_RINGS; i++) {
        rings[i].elements = elements;
        elements += (size_t)rings[i].size * (engine->attr.max_sge - 1);
    }
    rings->memory = memory;
}

int slu_rings_create(struct slu_engine *engine, struct slu_ring *rings, uint32_t index)
{
    uint32_t entries = 0;
    void *memory;

    for (uint32_t i = 0; i < SLU_RINGS; i++) {
        uint32_t size = ring_size(engine, i);

        rings[i] = (struct slu_ring){.size = size, .mask = size > 0 ? size - 1 : 0};
        rings[i].next = SLU_ID_STEP | (uint64_t)index << SLU_RING_BITS | (i + 1);
        rings[i].oldest = rings[i].since = rings[i].next;
        entries += size;
    }
    memory = slu_zeroed_alloc(1, slu_entries_bytes(engine, entries));
    if (memory == NULL)
        return slu_fail(ENOMEM, "no memory for %u requests in flight", entries);
    share_memory(engine, rings, memory);
    return 0;
}

void slu_rings_destroy(const struct slu_engine *engine, struct slu_ring *rings)
{
    uint32_t entries = 0;

    /* The rings of a peer that never was there are memory that is not touched. */
    if (rings->memory == NULL)
        return;
    for (uint32_t i = 0; i < SLU_RINGS; i++)
        entries += rings[i].size;
    slu_zeroed_free(rings->memory, 1, slu_entries_bytes(engine, entries));
    memset(rings, 0, SLU_RINGS * sizeof *rings);
}

struct slu_entry *slu_pool_find(const struct slu_engine *engine, uint64_t id)
{
    const struct slu_pool *pool = engine->pool;

    if (pool == NULL || !slu_id_is_pool(id))
        return NULL;
    if (SLU_LIKELY(*slu_pool_id_at(pool, id) == id))
        return slu_ring_entry(&pool->ring, id);
    return engine->aside.used > 0 ? slu_aside_find(engine, id) : NULL;
}

static bool names_element(const struct slu_memory *memory, const _Atomic uint32_t *key,
                          const _Atomic uint32_t *place)
{
    return slu_memory_has(memory, atomic_load_explicit(key, memory_order_relaxed),
                          atomic_load_explicit(place, memory_order_relaxed));
}

bool slu_ring_uses(const struct slu_ring *ring, uint32_t max_sge, const struct slu_memory *memory)
{
    for (uint32_t i = 0; i < ring->size; i++) {
        const struct slu_entry *entry = &ring->entries[i];
        const struct slu_element *further = ring->elements + (size_t)i * (max_sge - 1);
        uint32_t count;

        if (atomic_load_explicit(&entry->state, memory_order_acquire) != SLU_ENTRY_PENDING)
            continue;
        count = atomic_load_explicit(&entry->key_count, memory_order_relaxed);
        if (count > 0 && names_element(memory, &entry->key, &entry->place))
            return true;
        for (uint32_t k = 1; k < count; k++)
            if (names_element(memory, &further[k - 1].key, &further[k - 1].place))
                return true;
    }
    return false;
}
