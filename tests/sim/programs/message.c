/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "traffic.h"

uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6))) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 29)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 32);
}

static uint64_t of_round(uint32_t from, uint32_t to)
{
    return mixed(mixed(traffic.truth->number, traffic.round), from * MOST_RANKS + to);
}

uint32_t messages(uint32_t from, uint32_t to)
{
    return (uint32_t)(mixed(of_round(from, to), 99) % (MOST_MESSAGES + 1));
}

struct message message(uint32_t from, uint32_t to, uint32_t number)
{
    uint64_t x = mixed(of_round(from, to), number), kind = x % 16;
    uint32_t most = x >> 4 & 1 ? 64 : traffic.most_bytes;
    struct message made = {.key = x,
                           .bytes = (x >> 8 & 7) == 0 ? 0 : (uint32_t)((x >> 16 & 0xfffff) % most),
                           .pieces = 1 + (uint32_t)(x >> 12 & 3) % MOST_PIECES,
                           .immediate = (uint32_t)(x >> 32)};
    made.writes = kind < 3;
    if (!made.writes && traffic.most_send != 0) {
        made.bytes %= traffic.most_send + 1;
    }
    made.second = kind >= 3 && kind < 6;
    made.flags = made.writes || kind == 6 ? SLUICE_IMMEDIATE : 0;
    made.flags |= made.bytes <= 64 && (x >> 14 & 1) != 0 ? SLUICE_INLINE : 0;
    return made;
}

/* The bytes of a message come again after a period. */
enum { PERIOD = 256 };

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void make_period(uint8_t *memory, uint32_t bytes, uint64_t key)
{
    for (uint32_t i = 0; i < bytes; i++) {
        memory[i] = (uint8_t)((key >> i % 8 * 7) + i);
    }
}

void fill(uint8_t *memory, uint32_t bytes, uint64_t key)
{
    make_period(memory, smaller(bytes, PERIOD), key);
    for (uint32_t at = PERIOD; at < bytes; at += PERIOD) {
        memcpy(memory + at, memory, smaller(bytes - at, PERIOD));
    }
}

bool is_filled(const uint8_t *memory, uint32_t bytes, uint64_t key)
{
    uint8_t expected[PERIOD];
    make_period(expected, smaller(bytes, PERIOD), key);
    for (uint32_t at = 0; at < bytes; at += PERIOD) {
        if (memcmp(memory + at, expected, smaller(bytes - at, PERIOD)) != 0) {
            return false;
        }
    }
    return true;
}

size_t place_of(uint32_t from, uint32_t number)
{
    return (size_t)(from * MOST_MESSAGES + number) * traffic.most_bytes;
}

size_t word_of(uint32_t from)
{
    return place_of(traffic.ranks, 0) + (size_t)8 * from;
}

size_t constant(void)
{
    return word_of(MOST_RANKS + 1);
}

size_t window_bytes(void)
{
    return constant() + traffic.most_bytes;
}
