/* SPDX-License-Identifier: MIT */
#include "random.h"

#include <string.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

uint64_t mix(uint64_t value)
{
    value += GOLDEN;
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

uint64_t mix_with(uint64_t value, uint64_t other)
{
    return mix(value ^ mix(other));
}

uint64_t next_random(struct rng *rng)
{
    rng->state += GOLDEN;
    return mix(rng->state);
}

uint64_t random_below(struct rng *rng, uint64_t bound)
{
    return next_random(rng) % bound;
}

bool one_in(struct rng *rng, uint32_t n)
{
    return random_below(rng, n) == 0;
}

uint64_t random_size(struct rng *rng, uint64_t most)
{
    unsigned bits = 0;

    if (one_in(rng, 16)) {
        return most;
    }
    while (most >> bits > 0) {
        bits++;
    }
    uint64_t size = random_below(rng, UINT64_C(1) << random_below(rng, bits + 1));
    return size <= most ? size : most;
}

static uint64_t word_of(uint64_t key, uint64_t index)
{
    uint64_t word = (key + index) * GOLDEN;
    return word ^ word >> 29;
}

void fill_pattern(void *bytes, uint64_t offset, uint64_t length, uint64_t key)
{
    uint8_t *at = bytes;
    while (length > 0) {
        uint64_t word = word_of(key, offset / 8);
        uint64_t skip = offset % 8;
        uint64_t piece = 8 - skip < length ? 8 - skip : length;
        memcpy(at, (const uint8_t *)&word + skip, piece);
        at += piece;
        offset += piece;
        length -= piece;
    }
}

uint64_t check_pattern(const void *bytes, uint64_t offset, uint64_t length, uint64_t key)
{
    const uint8_t *at = bytes;
    uint64_t left = length;
    while (left > 0) {
        uint64_t word = word_of(key, offset / 8);
        uint64_t skip = offset % 8;
        uint64_t piece = 8 - skip < left ? 8 - skip : left;
        if (memcmp(at, (const uint8_t *)&word + skip, piece) != 0) {
            while (*at == ((const uint8_t *)&word)[skip]) {
                at++;
                skip++;
            }
            return (uint64_t)(at - (const uint8_t *)bytes);
        }
        at += piece;
        offset += piece;
        left -= piece;
    }
    return length;
}
