/* SPDX-License-Identifier: MIT */
/* Numbers from a seed, and patterns that identify the origin of a byte. */
#ifndef SOAK_RANDOM_H
#define SOAK_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

uint64_t mix(uint64_t value);
uint64_t mix_with(uint64_t value, uint64_t other);
uint64_t next_random(struct rng *rng);
/* 0 to bound - 1 */
uint64_t random_below(struct rng *rng, uint64_t bound);
bool one_in(struct rng *rng, uint32_t n);
/* 0 to most, small ones as often as large ones. */
uint64_t random_size(struct rng *rng, uint64_t most);

/* Bytes offset to offset + length - 1 of the pattern of a key. */
void fill_pattern(void *bytes, uint64_t offset, uint64_t length, uint64_t key);
/* Index of the first byte that differs, or length. */
uint64_t check_pattern(const void *bytes, uint64_t offset, uint64_t length, uint64_t key);

#endif
