/* SPDX-License-Identifier: MIT */
/*
 * Records in a ring of slots. The word of a record contains its position and is written last, with
 * release: a reader that finds it finds all of its record. The next slot contains the word of a
 * record one lap before, or is cleared first, so bytes of a record are never mistaken for a word.
 */
#include "transport/soft/shm/record.h"

_Static_assert(SHM_SLOTS <= 64, "a bit for each");

#ifdef __SANITIZE_THREAD__
char slu_soft_shm_told;
#endif

int slu_soft_shm_room(struct shm_writer *writer)
{
    int slots = slu_soft_shm_free_slots(writer);
    if (slots < SHM_SLOTS / 2) {
        uint32_t taken = atomic_load_explicit(&writer->segment->taken, memory_order_acquire);
        slu_soft_shm_acquired();
        if (writer->written - taken > writer->written - writer->taken)
            return -1;
        writer->taken = taken;
        slots = slu_soft_shm_free_slots(writer);
    }
    if (slots == 0)
        return 0;
    int room = slots * SHM_LINE - SHM_HEAD;
    return room < SHM_MOST ? room : SHM_MOST;
}

int slu_soft_shm_bulk_room(struct shm_writer *writer)
{
    if (writer->bulk == NULL ||
        atomic_load_explicit(&writer->segment->bulk_ready, memory_order_acquire) !=
            writer->bulk_generation)
        return 0;
    uint32_t taken = atomic_load_explicit(&writer->segment->bulk_taken, memory_order_acquire);
    slu_soft_shm_acquired();
    if (writer->bulk_written - taken > writer->bulk_written - writer->bulk_taken)
        return -1;
    writer->bulk_taken = taken;
    return (int)(SHM_BULK_BYTES - (writer->bulk_written - taken));
}

void slu_soft_shm_put(struct shm_writer *writer, uint32_t offset, const void *bytes,
                      uint32_t length)
{
    uint8_t *ring = writer->segment->slots[0];
    uint32_t at = writer->index * SHM_LINE + SHM_HEAD + offset;
    at = at < SHM_RING_BYTES ? at : at - SHM_RING_BYTES;
    uint32_t first = SHM_RING_BYTES - at;
    first = length < first ? length : first;
    memcpy(ring + at, bytes, first);
    if (first < length)
        memcpy(ring, (const uint8_t *)bytes + first, length - first);
}

void slu_soft_shm_prepare(const struct shm_writer *writer)
{
#if defined(__x86_64__)
    const uint8_t *slot = writer->segment->slots[slu_soft_shm_next_index(writer->index, 1)];
    __asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
    (void)writer;
#endif
}

void slu_soft_shm_put_bulk(struct shm_writer *writer, uint32_t offset, const void *bytes,
                           uint32_t length)
{
    uint32_t at = (writer->bulk_written + offset) % SHM_BULK_BYTES;
    uint32_t first = SHM_BULK_BYTES - at;
    first = length < first ? length : first;
    memcpy(writer->bulk + at, bytes, first);
    if (first < length)
        memcpy(writer->bulk, (const uint8_t *)bytes + first, length - first);
}

void slu_soft_shm_publish_bulk(struct shm_writer *writer, uint32_t length)
{
    writer->bulk_written += length;
    slu_soft_shm_publish_word(writer, 1,
                              (uint32_t)SHM_WORD_IS_BULK |
                                  writer->bulk_generation << SHM_GENERATION_SHIFT | length);
}

void slu_soft_shm_fence(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

bool slu_soft_shm_wakes_peer(struct shm_writer *writer, unsigned published)
{
    unsigned armed = atomic_load_explicit(&writer->segment->armed, memory_order_relaxed);
    return (armed & published) != 0 &&
           atomic_exchange_explicit(&writer->segment->armed, 0, memory_order_relaxed) != 0;
}

bool slu_soft_shm_hear_words(struct shm_writer *writer)
{
    uint64_t words = atomic_load_explicit(&writer->segment->words, memory_order_acquire);
    if (words == writer->words)
        return false;
    slu_soft_shm_acquired();
    writer->words = words;
    return true;
}

bool slu_soft_shm_has_room(struct shm_writer *writer, uint32_t bulk)
{
    if (slu_soft_shm_room(writer) == 0)
        return false;
    int room = bulk > 0 ? slu_soft_shm_bulk_room(writer) : 0;
    return room < 0 || (uint32_t)room >= bulk;
}

const uint8_t *slu_soft_shm_piece(const struct shm_reader *reader, const struct shm_record *record,
                                  uint32_t offset, uint32_t *length)
{
    uint32_t size = record->bulk ? SHM_BULK_BYTES : SHM_RING_BYTES;
    uint32_t at = record->bulk ? (reader->bulk_taken + offset) % SHM_BULK_BYTES
                               : reader->index * SHM_LINE + SHM_HEAD + offset;
    at = at < size ? at : at - size;
    *length = record->length - offset;
    if (*length > size - at)
        *length = size - at;
    return (record->bulk ? reader->bulk : reader->segment->slots[0]) + at;
}

bool slu_soft_shm_wakes_writer(struct shm_reader *reader)
{
    if (slu_soft_shm_is_fed(reader))
        return false;
    slu_soft_shm_give(reader);
    return atomic_exchange_explicit(&reader->segment->hungry, 0, memory_order_relaxed) != 0;
}

bool slu_soft_shm_tell_words(struct shm_reader *reader, uint64_t words)
{
    if (words == reader->words)
        return false;
    slu_soft_shm_released();
    reader->words = words;
    atomic_store_explicit(&reader->segment->words, words, memory_order_release);
    return true;
}

/*
 * Writes touching and reads closed; slu_soft_shm_close() does the reverse, so one side sees the
 * other.
 */
bool slu_soft_shm_touch(struct shm_writer *writer)
{
    atomic_store_explicit(&writer->segment->touching, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (!slu_soft_shm_is_closed(writer))
        return true;
    slu_soft_shm_let_go(writer);
    return false;
}

bool slu_soft_shm_is_closed(const struct shm_writer *writer)
{
    return atomic_load_explicit(&writer->segment->closed, memory_order_relaxed) != 0;
}

void slu_soft_shm_let_go(struct shm_writer *writer)
{
    atomic_store_explicit(&writer->segment->touching, 0, memory_order_release);
}

void slu_soft_shm_close(struct shm_reader *reader)
{
    atomic_store_explicit(&reader->segment->closed, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

bool slu_soft_shm_is_touched(const struct shm_reader *reader)
{
    return atomic_load_explicit(&reader->segment->touching, memory_order_acquire) != 0;
}

static bool has_what_it_wants(const struct shm_reader *reader, struct shm_writer *writer,
                              const struct shm_wants *wants)
{
    struct shm_record record;
    if (slu_soft_shm_peek(reader, &record) != 0 ||
        (wants->room && slu_soft_shm_has_room(writer, wants->bulk)))
        return true;
    return wants->words &&
           atomic_load_explicit(&writer->segment->words, memory_order_relaxed) != writer->words;
}

/*
 * Writes its flags and then reads the records; the peer publishes and then reads the flags. With a
 * fence between the two steps on both sides, at least one sees the other's write.
 */
bool slu_soft_shm_doze(struct shm_reader *reader, struct shm_writer *writer,
                       const struct shm_wants *wants, bool *bell)
{
    unsigned armed = SHM_ARMED_RECORDS | (wants->words ? SHM_ARMED_WORDS : 0);
    atomic_store_explicit(&reader->segment->armed, armed, memory_order_relaxed);
    if (wants->room)
        atomic_store_explicit(&writer->segment->hungry, 1, memory_order_relaxed);
    slu_soft_shm_give(reader);
    atomic_thread_fence(memory_order_seq_cst);
    *bell = slu_soft_shm_wakes_writer(reader);
    if (!has_what_it_wants(reader, writer, wants))
        return true;
    slu_soft_shm_rouse(reader);
    return false;
}

void slu_soft_shm_rouse(struct shm_reader *reader)
{
    atomic_store_explicit(&reader->segment->armed, 0, memory_order_relaxed);
}
