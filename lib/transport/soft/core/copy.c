/* SPDX-License-Identifier: MIT */
/* Copies between scatter/gather lists, and to memory that other threads may poll meanwhile. */
#include "transport/soft/core/copy.h"

#include <string.h>

/* Above this size the bulk is copied by memmove, which guarantees no order. */
#define WATCHED_BYTES 256

struct soft_cursor slu_soft_cursor(const struct sluice_sge *sges, uint32_t count, uint64_t offset)
{
    struct soft_cursor cursor = {sges, count, offset};
    while (cursor.count > 0 && cursor.offset >= cursor.sges->length) {
        cursor.offset -= cursor.sges->length;
        cursor.sges++;
        cursor.count--;
    }
    return cursor;
}

static uint8_t *cursor_at(const struct soft_cursor *cursor, uint64_t *left)
{
    *left = cursor->sges->length - cursor->offset;
    return (uint8_t *)(uintptr_t)cursor->sges->addr + cursor->offset;
}

static void advance(struct soft_cursor *cursor, uint64_t length)
{
    *cursor = slu_soft_cursor(cursor->sges, cursor->count, cursor->offset + length);
}

void slu_soft_scatter(struct soft_cursor *to, const uint8_t *from, uint64_t length)
{
    while (length > 0 && to->count > 0) {
        uint64_t piece;
        uint8_t *at = cursor_at(to, &piece);
        if (piece > length)
            piece = length;
        memmove(at, from, piece);
        advance(to, piece);
        from += piece;
        length -= piece;
    }
}

void slu_soft_copy_sges(struct soft_cursor *to, struct soft_cursor *from, uint64_t length)
{
    while (length > 0 && from->count > 0) {
        uint64_t piece;
        const uint8_t *at = cursor_at(from, &piece);
        if (piece > length)
            piece = length;
        slu_soft_scatter(to, at, piece);
        advance(from, piece);
        length -= piece;
    }
}

uint32_t slu_soft_cursor_iovecs(struct soft_cursor cursor, uint64_t length, struct iovec *iovecs,
                                uint32_t room)
{
    uint32_t used = 0;
    while (length > 0 && cursor.count > 0 && used < room) {
        uint64_t piece;
        uint8_t *at = cursor_at(&cursor, &piece);
        if (piece > length)
            piece = length;
        iovecs[used].iov_base = at;
        iovecs[used].iov_len = piece;
        used++;
        advance(&cursor, piece);
        length -= piece;
    }
    return used;
}

static void copy_bytes(uint8_t *to, const uint8_t *from, size_t length)
{
    for (size_t i = 0; i < length; i++)
        __atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

/* to is aligned, from need not be. */
static void copy_words(uint8_t *to, const uint8_t *from, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, from + i * 8, 8);
        __atomic_store_n((uint64_t *)(void *)(to + i * 8), word, __ATOMIC_RELEASE);
    }
}

void slu_soft_copy_visible(void *destination, const void *source, size_t length)
{
    uint8_t *to = destination;
    const uint8_t *from = source;
    if (length > WATCHED_BYTES) {
        /*
         * The last words are copied after the bulk, so that a flag at the end of a block becomes
         * visible after the block.
         */
        size_t bulk = length - 64;
        bulk -= ((uintptr_t)to + bulk) % 8;
        memmove(to, from, bulk);
        to += bulk;
        from += bulk;
        length -= bulk;
    }
    size_t lead = (size_t)(-(uintptr_t)to % 8);
    if (lead > length)
        lead = length;
    copy_bytes(to, from, lead);
    copy_words(to + lead, from + lead, (length - lead) / 8);
    size_t tail = (length - lead) % 8;
    copy_bytes(to + length - tail, from + length - tail, tail);
}

void slu_soft_scatter_visible(const struct sluice_sge *sges, uint32_t count, const void *from)
{
    const uint8_t *bytes = from;
    for (uint32_t i = 0; i < count; i++) {
        slu_soft_copy_visible((void *)(uintptr_t)sges[i].addr, bytes, sges[i].length);
        bytes += sges[i].length;
    }
}

void slu_soft_gather_visible(void *to, const struct sluice_sge *sges, uint32_t count,
                             uint64_t length)
{
    uint8_t bytes[SOFT_WHOLE_BYTES];
    struct sluice_sge whole = {(uint64_t)(uintptr_t)bytes, (uint32_t)length, 0};
    uint8_t *into = to;
    /* A word that is gathered from several pieces must appear whole, too. */
    if (count > 1 && length <= SOFT_WHOLE_BYTES) {
        struct soft_cursor gathered = slu_soft_cursor(&whole, 1, 0);
        struct soft_cursor from = slu_soft_cursor(sges, count, 0);
        slu_soft_copy_sges(&gathered, &from, length);
        sges = &whole;
        count = 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        slu_soft_copy_visible(into, (const void *)(uintptr_t)sges[i].addr, sges[i].length);
        into += sges[i].length;
    }
}
