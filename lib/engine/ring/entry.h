/* SPDX-License-Identifier: MIT */
/* Beginning the entry of a request that is posted. */
#ifndef SLU_ENGINE_RING_ENTRY_H
#define SLU_ENGINE_RING_ENTRY_H

#include "engine/request/source.h"
#include "engine/ring/order.h"

/* Counts the elements whose memory a request uses. Inline data is copied, so it uses none. */
static inline uint32_t slu_key_count(const struct sluice_request *request)
{
    return SLU_UNLIKELY((request->flags & SLUICE_INLINE) != 0) ? 0 : request->sge_count;
}

/* Returns the first word of a pending entry. */
static SLU_INLINE uint32_t slu_pending_head(enum slu_owner owner, uint32_t opcode, uint32_t keys)
{
    const union slu_entry_head head = {.state = SLU_ENTRY_PENDING,
                                       .key_count = (uint8_t)keys,
                                       .owner = (uint8_t)owner,
                                       .opcode = (uint8_t)opcode};

    return head.whole;
}

/*
 * Makes an entry pending, with the memory that its request uses, for the scan that deregistering
 * memory makes. The release store publishes the keys and places before the state.
 */
static SLU_INLINE void slu_entry_pend(const struct slu_engine *engine, const struct slu_ring *ring,
                                      struct slu_entry *entry, uint32_t head,
                                      const struct sluice_sge *sges, uint32_t count)
{
    if (SLU_LIKELY(count > 0)) {
        atomic_store_explicit(&entry->key, sges[0].lkey, memory_order_relaxed);
        atomic_store_explicit(&entry->place, (uint32_t)sges[0].addr, memory_order_relaxed);
    }
    if (SLU_UNLIKELY(count > 1)) {
        struct slu_element *elements =
            ring->elements + (size_t)(entry - ring->entries) * (engine->attr.max_sge - 1);

        for (uint32_t i = 1; i < count; i++) {
            atomic_store_explicit(&elements[i - 1].key, sges[i].lkey, memory_order_relaxed);
            atomic_store_explicit(&elements[i - 1].place, (uint32_t)sges[i].addr,
                                  memory_order_relaxed);
        }
    }
    atomic_store_explicit(&entry->head, head, memory_order_release);
}

/*
 * Turns the next entry of a ring into that of a request that is being posted as one work request.
 * The id is the previous ring->next. The caller sets the owner's fields, and counts it.
 */
static SLU_INLINE struct slu_entry *slu_entry_begin(struct slu_engine *engine,
                                                    struct slu_ring *ring, uint32_t head,
                                                    const struct sluice_sge *sges,
                                                    uint32_t key_count, uint64_t bytes)
{
    struct slu_entry *entry = slu_ring_entry(ring, ring->next);

    if (SLU_UNLIKELY(slu_entry_is_unseen(engine, entry)))
        slu_entry_displace(engine, ring, entry);
    ring->next += SLU_ID_STEP;
    entry->bytes = bytes;
    entry->course = SLU_PLAIN_COURSE;
    slu_entry_pend(engine, ring, entry, head, sges, key_count);
    return entry;
}

/* Does the same for any request. */
static SLU_INLINE struct slu_entry *slu_entry_take(struct slu_engine *engine, struct slu_ring *ring,
                                                   enum slu_owner owner, uint32_t opcode,
                                                   const struct sluice_request *request,
                                                   uint64_t bytes)
{
    uint32_t keys = slu_key_count(request);

    return slu_entry_begin(engine, ring, slu_pending_head(owner, opcode, keys),
                           slu_request_sges(request), keys, bytes);
}

/* Counts requests that have become pending; owner is a constant. */
static SLU_INLINE void slu_count_taken(struct slu_engine *engine, enum slu_queue queue,
                                       enum slu_owner owner, uint32_t count)
{
    engine->pending[queue] += count;
    if (owner < SLU_OWNERS_KEEP)
        engine->held[queue] += count;
    if (owner == SLU_OWNER_SCOPE)
        engine->scope.pending += count;
}

#endif
