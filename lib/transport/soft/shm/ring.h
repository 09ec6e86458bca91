/* SPDX-License-Identifier: MIT */
/*
 * A stream of bytes in shared memory, from one writer to one reader; README.md shows its layout.
 * Neither end trusts the other: each checks what it reads from shared words, and keeps its
 * positions in private memory.
 */
#ifndef SLU_SOFT_SHM_RING_H
#define SLU_SOFT_SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SHM_LINE 64
#ifndef SHM_SLOTS /* the test of all interleavings has fewer */
#define SHM_SLOTS 61
#endif
#define SHM_SEGMENT_BYTES ((3 + SHM_SLOTS) * SHM_LINE)
/* Size of the word before the bytes of a record. */
#define SHM_HEAD 8
/* Maximum bytes of a record in slots, so that others have room beside it. */
#define SHM_MOST (32 * SHM_LINE - SHM_HEAD)
#define SHM_BULK_BYTES (UINT32_C(1) << 18)
/* Maximum bytes of bulk in one record, so that the reader can begin early. */
#define SHM_CHUNK (UINT32_C(1) << 15)
#define SHM_GENERATIONS 2048

/* Events that wake a side that sleeps: records alone, or words as well. */
#define SHM_ARMED_RECORDS 1U
#define SHM_ARMED_WORDS 2U

/* All words of a line have one writer, except flags, which one side sets and the other clears. */
struct shm_segment {
    _Alignas(SHM_LINE) atomic_uint taken;  /* slots, ever; by the reader */
    atomic_uint bulk_taken;                /* bytes, ever; likewise */
    atomic_uint bulk_ready;                /* the generation that is mapped; likewise; 0: none */
    _Atomic uint64_t words;                /* progress of the writer's requests; likewise */
    atomic_uint wanted;                    /* sizes to be lent: see shm/copy.c; likewise */
    atomic_uint closed;                    /* the writer must not touch memory any more; likewise */
    _Alignas(SHM_LINE) atomic_uint armed;  /* SHM_ARMED_*: set by the reader before it sleeps */
    _Alignas(SHM_LINE) atomic_uint hungry; /* set by the writer, which waits for room */
    atomic_uint withdrawn;                 /* set by the writer: all loans are withdrawn */
    atomic_uint touching;                  /* by the writer: it is touching the reader's memory */
    _Alignas(SHM_LINE) uint8_t slots[SHM_SLOTS][SHM_LINE];
};

_Static_assert(sizeof(struct shm_segment) == SHM_SEGMENT_BYTES, "no padding");

struct shm_writer {
    struct shm_segment *segment; /* that in which the peer receives */
    uint64_t covered;            /* slots last used for bytes of a record, not for its word */
    uint32_t written;            /* slots, ever */
    uint32_t index;              /* of the next slot */
    uint32_t taken;              /* last value read */
    uint8_t *bulk;               /* made here; NULL: none */
    uint32_t bulk_generation;    /* of the current bulk or the last one; from 1 */
    uint32_t bulk_written;       /* bytes, ever, of this bulk */
    uint32_t bulk_taken;
    uint64_t words; /* last value read */
};

struct shm_reader {
    struct shm_segment *segment; /* ours */
    uint32_t taken;
    uint32_t given; /* part of taken that was published to the writer */
    uint32_t index;
    const uint8_t *bulk; /* made by the peer; NULL: none */
    uint32_t bulk_generation;
    uint32_t bulk_taken;
    uint64_t words; /* last value published */
};

/* Kinds of records in slots. */
enum shm_kind {
    SHM_STREAM,    /* bytes of the stream of frames */
    SHM_SEND,      /* a whole small message: see shm/small.c */
    SHM_IMMEDIATE, /* the same, with immediate data */
    SHM_KINDS
};

/* A record as the reader finds it. */
struct shm_record {
    uint32_t length; /* of its bytes; at least 1 */
    bool bulk;
    uint32_t generation; /* of the bulk; or else enum shm_kind */
};

/*
 * Returns how many bytes a record of slots may have now. -1: the peer has written invalid values.
 */
int slu_soft_shm_room(struct shm_writer *writer);
/* Works like slu_soft_shm_room() for bulk. Also returns 0 if the reader has not mapped the bulk. */
int slu_soft_shm_bulk_room(struct shm_writer *writer);
/* Writes a word of the next record, within its first slot. The caller has checked the room. */
static inline void slu_soft_shm_put_word(struct shm_writer *writer, uint32_t offset, uint64_t word)
{
    memcpy(writer->segment->slots[writer->index] + SHM_HEAD + offset, &word, sizeof word);
}
/* Writes bytes of the next record, which the end of the ring does not split. */
static inline void slu_soft_shm_put_near(const struct shm_writer *writer, uint32_t offset,
                                         const void *bytes, uint32_t length)
{
    if (length > 0)
        memcpy(writer->segment->slots[writer->index] + SHM_HEAD + offset, bytes, length);
}
/* Writes bytes of the next record. */
void slu_soft_shm_put(struct shm_writer *writer, uint32_t offset, const void *bytes,
                      uint32_t length);
/*
 * Prefetches the line of the next slot but one for writing, when records follow faster than they
 * are read.
 */
void slu_soft_shm_prepare(const struct shm_writer *writer);
/* The same for bulk. The caller has checked the room for the record and its bulk. */
void slu_soft_shm_put_bulk(struct shm_writer *writer, uint32_t offset, const void *bytes,
                           uint32_t length);
void slu_soft_shm_publish_bulk(struct shm_writer *writer, uint32_t length);
/* Separates publishing records or words from checking whether the peer must be woken. */
void slu_soft_shm_fence(void);
/* Returns whether the peer must be woken for any of SHM_ARMED_*. Returns true once per sleep. */
bool slu_soft_shm_wakes_peer(struct shm_writer *writer, unsigned published);
/*
 * Returns whether there is room for a record and for these bytes of bulk. Also true if the peer has
 * written invalid values.
 */
bool slu_soft_shm_has_room(struct shm_writer *writer, uint32_t bulk);

/* Returns whether the word in the next slot is none, or that of a record one lap before. */
static inline bool slu_soft_shm_is_old(const struct shm_reader *reader, uint64_t word)
{
    return word == 0 || (uint32_t)(word >> 32) == reader->taken + 1 - SHM_SLOTS;
}

/* Returns whether there is no record. Inline, as most polls find none. */
static inline bool slu_soft_shm_is_empty(const struct shm_reader *reader)
{
    const void *slot = reader->segment->slots[reader->index];
    const _Atomic uint64_t *word = (const _Atomic uint64_t *)slot;

    return slu_soft_shm_is_old(reader, atomic_load_explicit(word, memory_order_acquire));
}

/* Returns a word of the record, within its first slot. Not for bulk. */
static inline uint64_t slu_soft_shm_word(const struct shm_reader *reader, uint32_t offset)
{
    uint64_t word;

    memcpy(&word, reader->segment->slots[reader->index] + SHM_HEAD + offset, sizeof word);
    return word;
}
/* Returns the longest contiguous piece of a record's bytes from an offset on. */
const uint8_t *slu_soft_shm_piece(const struct shm_reader *reader, const struct shm_record *record,
                                  uint32_t offset, uint32_t *length);
/* Returns whether the writer must be woken, once per sleep. Call it at each poll. */
bool slu_soft_shm_wakes_writer(struct shm_reader *reader);
/* Returns whether the writer does not wait for room. */
static inline bool slu_soft_shm_is_fed(const struct shm_reader *reader)
{
    return atomic_load_explicit(&reader->segment->hungry, memory_order_relaxed) == 0;
}

/*
 * Words go from the reader to the writer: how many requests of the writer are done, and how many
 * receives are posted for it. A side that reads them also sees all records published before.
 */
static inline uint64_t slu_soft_shm_words(uint32_t done, uint32_t credit)
{
    return (uint64_t)credit << 32 | done;
}
/* Publishes words to the writer. False: they have not changed. */
bool slu_soft_shm_tell_words(struct shm_reader *reader, uint64_t words);
/* Reads the reader's words, which are not validated here. True: they have changed. */
bool slu_soft_shm_hear_words(struct shm_writer *writer);
/* Returns whether the words have not changed, as most polls find. */
static inline bool slu_soft_shm_has_said_nothing(const struct shm_writer *writer)
{
    return atomic_load_explicit(&writer->segment->words, memory_order_acquire) == writer->words;
}

/*
 * Marks that the writer touches the reader's memory. False: it must not, because the reader has
 * closed its memory.
 */
bool slu_soft_shm_touch(struct shm_writer *writer);
void slu_soft_shm_let_go(struct shm_writer *writer);
/* Returns whether the reader has closed its memory. */
bool slu_soft_shm_is_closed(const struct shm_writer *writer);
/*
 * Closes the reader's memory for ever. A writer that touches it now is still marked; none begins
 * later.
 */
void slu_soft_shm_close(struct shm_reader *reader);
bool slu_soft_shm_is_touched(const struct shm_reader *reader);

/* Conditions that a side waits for, besides a record. */
struct shm_wants {
    bool words;
    bool room;     /* for a record */
    uint32_t bulk; /* and for this many bytes of bulk */
};

/*
 * Prepares one side, with both its ends, to sleep: from now on the peer wakes it when something it
 * waits for is there. False: something is there already, so do not sleep. *bell: wake the peer at
 * once.
 */
bool slu_soft_shm_doze(struct shm_reader *reader, struct shm_writer *writer,
                       const struct shm_wants *wants, bool *bell);
/* Notes that the side is awake. The peer may have rung its bell all the same. */
void slu_soft_shm_rouse(struct shm_reader *reader);

#endif
