/* SPDX-License-Identifier: MIT */
/*
 * Writing and reading a record: the parts of ring.c that are on the path of each small message, and
 * therefore inline.
 */
#ifndef SLU_SOFT_SHM_RECORD_H
#define SLU_SOFT_SHM_RECORD_H

#include "transport/soft/shm/ring.h"

/* Fields of a word: position + 1, bulk, generation or kind, length. */
#define SHM_WORD_IS_BULK (UINT64_C(1) << 31)
#define SHM_GENERATION_SHIFT 20
#define SHM_LENGTH_MASK ((UINT32_C(1) << SHM_GENERATION_SHIFT) - 1)

#define SHM_RING_BYTES (SHM_SLOTS * SHM_LINE)
/* Publish freed slots in groups, as each time costs a cache line; at once if the writer waits. */
#ifndef GIVEN_TOGETHER /* the test of all interleavings has fewer of these, too */
#define GIVEN_TOGETHER (SHM_SLOTS / 4)
#endif

/*
 * Two ends in one process map the same memory twice, which ThreadSanitizer takes for different
 * memory. These calls tell it about the ordering by the shared words.
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
extern char slu_soft_shm_told;
static inline void slu_soft_shm_released(void)
{
    __tsan_release(&slu_soft_shm_told);
}
static inline void slu_soft_shm_acquired(void)
{
    __tsan_acquire(&slu_soft_shm_told);
}
#else
static inline void slu_soft_shm_released(void)
{
}
static inline void slu_soft_shm_acquired(void)
{
}
#endif

static inline uint32_t slu_soft_shm_slots_for(uint32_t length)
{
    return (SHM_HEAD + length + SHM_LINE - 1) / SHM_LINE;
}

static inline uint32_t slu_soft_shm_next_index(uint32_t index, uint32_t slots)
{
    index += slots;
    return index < SHM_SLOTS ? index : index - SHM_SLOTS;
}

static inline _Atomic uint64_t *slu_soft_shm_head_at(struct shm_segment *segment, uint32_t index)
{
    return (_Atomic uint64_t *)(void *)segment->slots[index];
}

/* One slot stays free: its word marks the end of the records. */
static inline int slu_soft_shm_free_slots(const struct shm_writer *writer)
{
    uint32_t used = writer->written - writer->taken;
    return used < SHM_SLOTS ? (int)(SHM_SLOTS - 1 - used) : 0;
}

/*
 * Returns whether there is room for length bytes, at most SHM_MOST. Reads the reader's position
 * only if needed.
 */
static inline bool slu_soft_shm_fits(struct shm_writer *writer, uint32_t length)
{
    return (int)slu_soft_shm_slots_for(length) <= slu_soft_shm_free_slots(writer) ||
           slu_soft_shm_room(writer) >= (int)length;
}

/*
 * Notes which slots have bytes of a record. The first has a word, whose position differs in the
 * next lap.
 */
static inline void slu_soft_shm_note_covered(struct shm_writer *writer, uint32_t index,
                                             uint32_t slots)
{
    writer->covered &= ~(UINT64_C(1) << index);
    for (; slots > 1; slots--) {
        index = slu_soft_shm_next_index(index, 1);
        writer->covered |= UINT64_C(1) << index;
    }
}

static inline void slu_soft_shm_publish_word(struct shm_writer *writer, uint32_t slots,
                                             uint32_t low)
{
    uint64_t word = (uint64_t)(writer->written + 1) << 32 | low;
    uint32_t index = writer->index;
    slu_soft_shm_note_covered(writer, index, slots);
    writer->index = slu_soft_shm_next_index(index, slots);
    writer->written += slots;
    slu_soft_shm_released();
    if ((writer->covered >> writer->index & 1) != 0)
        atomic_store_explicit(slu_soft_shm_head_at(writer->segment, writer->index), 0,
                              memory_order_relaxed);
    atomic_store_explicit(slu_soft_shm_head_at(writer->segment, index), word, memory_order_release);
}

static inline void slu_soft_shm_publish(struct shm_writer *writer, enum shm_kind kind,
                                        uint32_t length)
{
    slu_soft_shm_publish_word(writer, slu_soft_shm_slots_for(length),
                              (uint32_t)kind << SHM_GENERATION_SHIFT | length);
}

/* Returns 1 if there is a record, 0 if not, -1 if the peer has written an invalid one. */
static inline int slu_soft_shm_peek(const struct shm_reader *reader, struct shm_record *record)
{
    uint64_t word = atomic_load_explicit(slu_soft_shm_head_at(reader->segment, reader->index),
                                         memory_order_acquire);
    uint32_t position = (uint32_t)(word >> 32);
    if (slu_soft_shm_is_old(reader, word))
        return 0;
    slu_soft_shm_acquired();
    record->length = (uint32_t)word & SHM_LENGTH_MASK;
    record->bulk = (word & SHM_WORD_IS_BULK) != 0;
    record->generation = (uint32_t)(word >> SHM_GENERATION_SHIFT) % SHM_GENERATIONS;
    if (position != reader->taken + 1 || record->length == 0 ||
        record->length > (record->bulk ? SHM_BULK_BYTES : SHM_MOST) ||
        (record->bulk ? reader->bulk == NULL || record->generation != reader->bulk_generation
                      : record->generation >= SHM_KINDS))
        return -1;
    return 1;
}

/* Publishes all slots that were taken, so that the writer can use them again. */
static inline void slu_soft_shm_give(struct shm_reader *reader)
{
    if (reader->given == reader->taken)
        return;
    slu_soft_shm_released();
    reader->given = reader->taken;
    atomic_store_explicit(&reader->segment->taken, reader->taken, memory_order_release);
}

/*
 * Frees the place of a record. This is published at once if the writer waits for room, otherwise
 * later.
 */
static inline void slu_soft_shm_take(struct shm_reader *reader, const struct shm_record *record)
{
    uint32_t slots = record->bulk ? 1 : slu_soft_shm_slots_for(record->length);
    reader->index = slu_soft_shm_next_index(reader->index, slots);
    reader->taken += slots;
    if (record->bulk) {
        slu_soft_shm_released();
        reader->bulk_taken += record->length;
        atomic_store_explicit(&reader->segment->bulk_taken, reader->bulk_taken,
                              memory_order_release);
    }
    if (record->bulk || reader->taken - reader->given >= GIVEN_TOGETHER)
        slu_soft_shm_give(reader);
}

#endif
