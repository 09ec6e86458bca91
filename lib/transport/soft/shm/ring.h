/* SPDX-License-Identifier: MIT */
/*
 * A stream of bytes in shared memory, from one writer to one reader; README.md has the
 * shape. Neither end trusts the other: what is read of the shared words is checked, and
 * positions are kept in memory of one's own.
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
/* Of the word before the bytes of a record. */
#define SHM_HEAD 8
/* The most that one record carries in slots: others shall have room beside it. */
#define SHM_MOST (32 * SHM_LINE - SHM_HEAD)
#define SHM_BULK_BYTES (UINT32_C(1) << 18)
/* Of bulk, between two looks of the reader. */
#define SHM_CHUNK (UINT32_C(1) << 15)
#define SHM_GENERATIONS 2048

/* What wakes who sleeps: records, and words as well. */
#define SHM_ARMED_RECORDS 1U
#define SHM_ARMED_WORDS 2U

/* All words of a line have one writer, but for the flags, which say who sets and who clears. */
struct shm_segment {
    _Alignas(SHM_LINE) atomic_uint taken;  /* slots, ever; by the reader */
    atomic_uint bulk_taken;                /* bytes, ever; likewise */
    atomic_uint bulk_ready;                /* the generation that is mapped; likewise; 0: none */
    _Atomic uint64_t words;                /* what has become of the writer's requests; likewise */
    atomic_uint wanted;                    /* sizes to be lent: see shm/copy.c; likewise */
    atomic_uint closed;                    /* the writer is to touch nothing more; likewise */
    _Alignas(SHM_LINE) atomic_uint armed;  /* SHM_ARMED_*: set by the reader, which sleeps then */
    _Alignas(SHM_LINE) atomic_uint hungry; /* set by the writer, which waits for room */
    atomic_uint withdrawn;                 /* set by the writer: nothing is lent any more */
    atomic_uint touching;                  /* by the writer: it is in memory of the reader's */
    _Alignas(SHM_LINE) uint8_t slots[SHM_SLOTS][SHM_LINE];
};

_Static_assert(sizeof(struct shm_segment) == SHM_SEGMENT_BYTES, "no padding");

struct shm_writer {
    struct shm_segment *segment; /* the peer made it */
    uint64_t covered;            /* slots that had bytes of a record last, and not its word */
    uint32_t written;            /* slots, ever */
    uint32_t index;              /* of the next of them */
    uint32_t taken;              /* as far as we have looked */
    uint8_t *bulk;               /* ours; NULL: there is none */
    uint32_t bulk_generation;    /* of this one, or the last; from 1 */
    uint32_t bulk_written;       /* bytes, ever, of this one */
    uint32_t bulk_taken;
    uint64_t words; /* as far as we have looked */
};

struct shm_reader {
    struct shm_segment *segment; /* ours */
    uint32_t taken;
    uint32_t given; /* of these, as the writer has been told */
    uint32_t index;
    const uint8_t *bulk; /* the peer made it; NULL: there is none */
    uint32_t bulk_generation;
    uint32_t bulk_taken;
    uint64_t words; /* as we have told them */
};

/* What a record of slots has. */
enum shm_kind {
    SHM_STREAM,    /* bytes of the stream of frames */
    SHM_SEND,      /* a whole small message: see shm/small.c */
    SHM_IMMEDIATE, /* and immediate data */
    SHM_KINDS
};

/* A record as the reader finds it. */
struct shm_record {
    uint32_t length; /* of its bytes; at least 1 */
    bool bulk;
    uint32_t generation; /* of the bulk; or else enum shm_kind */
};

/* Bytes that a record of slots may have now. -1: the peer has written nonsense. */
int slu_soft_shm_room(struct shm_writer *writer);
/* Is there room for so many, at most SHM_MOST? Looks at what the reader says only if need be. */
bool slu_soft_shm_fits(struct shm_writer *writer, uint32_t length);
/* As the first, of bulk; 0 as well if there is none that the reader has. */
int slu_soft_shm_bulk_room(struct shm_writer *writer);
/* A word of the record to come, in its first place; there is room. */
static inline void slu_soft_shm_put_word(struct shm_writer *writer, uint32_t offset, uint64_t word)
{
    memcpy(writer->segment->slots[writer->index] + SHM_HEAD + offset, &word, sizeof word);
}
/* Its bytes. */
void slu_soft_shm_put(struct shm_writer *writer, uint32_t offset, const void *bytes,
                      uint32_t length);
void slu_soft_shm_publish(struct shm_writer *writer, enum shm_kind kind, uint32_t length);
/* More are about to follow, faster than they are read: takes the line of the next but one. */
void slu_soft_shm_prepare(const struct shm_writer *writer);
/* The same of bulk; there is room for both. */
void slu_soft_shm_put_bulk(struct shm_writer *writer, uint32_t offset, const void *bytes,
                           uint32_t length);
void slu_soft_shm_publish_bulk(struct shm_writer *writer, uint32_t length);
/* Between publishing, of records or words, and asking whether the peer must be woken for it. */
void slu_soft_shm_fence(void);
/* Must it, for any of these: SHM_ARMED_*? It is told once. */
bool slu_soft_shm_wakes_peer(struct shm_writer *writer, unsigned published);
/* For a record, and for so many bytes of bulk; or the peer has written nonsense. */
bool slu_soft_shm_has_room(struct shm_writer *writer, uint32_t bulk);

/* The word at the next place: it is that of a record one lap before, or there is none. */
static inline bool slu_soft_shm_is_old(const struct shm_reader *reader, uint64_t word)
{
    return word == 0 || (uint32_t)(word >> 32) == reader->taken + 1 - SHM_SLOTS;
}

/* There is no record, which is what most looks find. */
static inline bool slu_soft_shm_is_empty(const struct shm_reader *reader)
{
    const void *slot = reader->segment->slots[reader->index];
    const _Atomic uint64_t *word = (const _Atomic uint64_t *)slot;

    return slu_soft_shm_is_old(reader, atomic_load_explicit(word, memory_order_acquire));
}

/* 1: there is a record, 0: there is none, -1: the peer has written nonsense. */
int slu_soft_shm_peek(const struct shm_reader *reader, struct shm_record *record);
/* A word of it, which is in its first place; not of bulk. */
static inline uint64_t slu_soft_shm_word(const struct shm_reader *reader, uint32_t offset)
{
    uint64_t word;

    memcpy(&word, reader->segment->slots[reader->index] + SHM_HEAD + offset, sizeof word);
    return word;
}
/* The longest piece in one place of a record's bytes from an offset on. */
const uint8_t *slu_soft_shm_piece(const struct shm_reader *reader, const struct shm_record *record,
                                  uint32_t offset, uint32_t *length);
/* The writer may use its place again, which it is told if it waits for room, and else later. */
void slu_soft_shm_take(struct shm_reader *reader, const struct shm_record *record);
/* Must the writer be woken? It is told once. To be called at each look, in vain or not. */
bool slu_soft_shm_wakes_writer(struct shm_reader *reader);
/* It need not: likewise. */
static inline bool slu_soft_shm_is_fed(const struct shm_reader *reader)
{
    return atomic_load_explicit(&reader->segment->hungry, memory_order_relaxed) == 0;
}

/*
 * Words go the other way: how many requests of the writer are done, and how many receives
 * there are for it. Whoever reads them has seen all records that were published before.
 */
static inline uint64_t slu_soft_shm_words(uint32_t done, uint32_t credit)
{
    return (uint64_t)credit << 32 | done;
}
/* To the writer. False: it has been told already. */
bool slu_soft_shm_tell_words(struct shm_reader *reader, uint64_t words);
/* Of the reader; nothing is known of them. True: they are others than last time. */
bool slu_soft_shm_hear_words(struct shm_writer *writer);
/* They are not: what most looks find. */
static inline bool slu_soft_shm_has_said_nothing(const struct shm_writer *writer)
{
    return atomic_load_explicit(&writer->segment->words, memory_order_acquire) == writer->words;
}

/*
 * While the writer touches memory of the reader's, it says so. False: it may not, and the
 * reader has closed it or is about to.
 */
bool slu_soft_shm_touch(struct shm_writer *writer);
void slu_soft_shm_let_go(struct shm_writer *writer);
/* Has it been closed meanwhile? */
bool slu_soft_shm_is_closed(const struct shm_writer *writer);
/* The reader closes it, for ever; who touches it then still says so, and nobody does later. */
void slu_soft_shm_close(struct shm_reader *reader);
bool slu_soft_shm_is_touched(const struct shm_reader *reader);

/* What one waits for, beside a record. */
struct shm_wants {
    bool words;
    bool room;     /* as above */
    uint32_t bulk; /* of which so much */
};

/*
 * Both ends of one side go to sleep: from now on the peer wakes it when there is what it
 * waits for. False: there is already, and it must not sleep. *bell: the peer is to be
 * woken at once.
 */
bool slu_soft_shm_doze(struct shm_reader *reader, struct shm_writer *writer,
                       const struct shm_wants *wants, bool *bell);
/* It is awake; the peer may have woken it all the same. */
void slu_soft_shm_rouse(struct shm_reader *reader);

#endif
