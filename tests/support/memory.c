/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define GUARD_BYTES 128
#define GUARD_VALUE 0xa5

/*
 * Over shared memory, a region that the library has allocated takes other paths than one of the
 * program's: every second one is allocated. Its guard is the rest of its last page.
 */
static bool is_to_be_allocated(size_t shift)
{
    static atomic_uint opened;
    return current_wire() == WIRE_SHM && device_is_soft() && shift == 0 &&
           atomic_fetch_add(&opened, 1) % 2 == 0;
}

static size_t rest_of_page(size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (page - length % page) % page;
}

static void allocate(struct memory *memory, struct sluice_pd *pd, size_t length, uint32_t access)
{
    memory->mr = made(sluice_mr_alloc(pd, length, access));
    memory->bytes = sluice_mr_addr(memory->mr);
    memory->length = length;
    memory->whole = NULL;
    memset(memory->bytes + length, GUARD_VALUE, rest_of_page(length));
}

void memory_open_at(struct memory *memory, struct sluice_pd *pd, size_t length, uint32_t access,
                    size_t shift)
{
    if (is_to_be_allocated(shift)) {
        allocate(memory, pd, length, access);
        return;
    }
    size_t all = length + 2 * GUARD_BYTES + shift;
    memory->whole = malloc(all);
    require(memory->whole, "%zu bytes", all);
    memset(memory->whole, GUARD_VALUE, all);
    memory->bytes = memory->whole + GUARD_BYTES + shift;
    memory->length = length;
    memset(memory->bytes, 0, length);
    memory->mr = made(sluice_mr_register(pd, memory->bytes, length, access));
}

void memory_open(struct memory *memory, struct sluice_pd *pd, size_t length)
{
    memory_open_at(memory, pd, length, ACCESS_ALL, 0);
}

void memory_check_guards(const struct memory *memory)
{
    const uint8_t *end = memory->bytes + memory->length;
    if (memory->whole == NULL) {
        value_check(end, rest_of_page(memory->length), GUARD_VALUE);
        return;
    }
    value_check(memory->whole, (size_t)(memory->bytes - memory->whole), GUARD_VALUE);
    value_check(end, GUARD_BYTES, GUARD_VALUE);
}

void memory_close(struct memory *memory)
{
    memory_check_guards(memory);
    require_ok(sluice_mr_deregister(memory->mr));
    free(memory->whole);
    memset(memory, 0, sizeof(*memory));
}

struct sluice_sge memory_sge(const struct memory *memory, size_t offset, size_t length)
{
    struct sluice_sge sge = {0};
    require_ok(sluice_mr_sge(memory->mr, offset, length, &sge));
    return sge;
}

/* One piece is empty; the last one takes the rest. */
void memory_split(const struct memory *memory, size_t offset, size_t length,
                  struct sluice_sge *sges, uint32_t count)
{
    static const size_t lengths[] = {1, 3, 0, 7, 4097, 13};
    for (uint32_t i = 0; i < count; i++) {
        size_t piece = lengths[i % COUNT(lengths)];
        if (piece > length || i == count - 1) {
            piece = length;
        }
        sges[i] = memory_sge(memory, offset, piece);
        offset += piece;
        length -= piece;
    }
}

struct sluice_remote_mr memory_remote(const struct memory *memory, size_t offset, size_t length)
{
    struct sluice_remote_mr remote = {0};
    require_ok(sluice_mr_remote(memory->mr, &remote));
    require_ok(sluice_remote_mr_slice(&remote, offset, length, &remote));
    return remote;
}

uint64_t pattern_key(uint32_t from, uint32_t to, uint32_t operation)
{
    return ((uint64_t)from << 40 | (uint64_t)to << 16 | operation) * UINT64_C(0x9e3779b97f4a7c15) +
           1;
}

static uint64_t word_at(uint64_t key, size_t index)
{
    uint64_t word = key + index * UINT64_C(0xbf58476d1ce4e5b9);
    word ^= word >> 29;
    return word * UINT64_C(0x94d049bb133111eb);
}

/* Bytes are handled in blocks: copying and comparing are calls, which are slow under sanitizers. */
#define BLOCK ((size_t)512)

/*
 * Makes the pattern from a multiple of BLOCK on. Returns how much of the block is before the end.
 */
static size_t make_block(uint8_t block[BLOCK], size_t at, size_t length, uint64_t key)
{
    size_t part = length - at < BLOCK ? length - at : BLOCK;
    for (size_t i = 0; i < part; i += 8) {
        uint64_t word = word_at(key, (at + i) / 8);
        memcpy(block + i, &word, 8);
    }
    return part;
}

void pattern_fill(void *bytes, size_t length, uint64_t key)
{
    uint8_t block[BLOCK];
    for (size_t at = 0; at < length; at += BLOCK) {
        size_t part = make_block(block, at, length, key);
        memcpy((uint8_t *)bytes + at, block, part);
    }
}

void pattern_check(const void *bytes, size_t length, uint64_t key)
{
    const uint8_t *from = bytes;
    uint8_t block[BLOCK];
    for (size_t at = 0; at < length; at += BLOCK) {
        size_t part = make_block(block, at, length, key);
        size_t bad = 0;
        if (memcmp(from + at, block, part) == 0) {
            continue;
        }
        while (bad + 1 < part && from[at + bad] == block[bad]) {
            bad++;
        }
        fail_at(__FILE__, __LINE__, "byte %zu of %zu is 0x%02x, not 0x%02x", at + bad, length,
                from[at + bad], block[bad]);
    }
}

void value_check(const void *bytes, size_t length, uint8_t value)
{
    const uint8_t *from = bytes;
    size_t bad = 0;
    /* All bytes are equal if each equals the next one. */
    if (length == 0 || (from[0] == value && memcmp(from, from + 1, length - 1) == 0)) {
        return;
    }
    while (bad + 1 < length && from[bad] == value) {
        bad++;
    }
    fail_at(__FILE__, __LINE__, "byte %zu of %zu was touched: 0x%02x, not 0x%02x", bad, length,
            from[bad], value);
}
