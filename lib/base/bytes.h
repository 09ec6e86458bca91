/* SPDX-License-Identifier: MIT */
/* Numbers of 1 to 8 bytes in network byte order, and checksums. */
#ifndef SLU_BYTES_H
#define SLU_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Both return the place of the next number. bytes is mostly a constant. */
static inline uint8_t *slu_put(uint8_t *at, uint64_t value, int bytes)
{
    uint64_t eight = htobe64(value);
    uint32_t four = htobe32((uint32_t)value);

    if (bytes == 8)
        return (uint8_t *)memcpy(at, &eight, sizeof eight) + sizeof eight;
    if (bytes == 4)
        return (uint8_t *)memcpy(at, &four, sizeof four) + sizeof four;
    for (int i = bytes - 1; i >= 0; i--)
        *at++ = (uint8_t)(value >> (8 * i));
    return at;
}

static inline const uint8_t *slu_get(const uint8_t *at, uint64_t *value, int bytes)
{
    uint64_t eight;
    uint32_t four;

    if (bytes == 8) {
        memcpy(&eight, at, sizeof eight);
        *value = be64toh(eight);
        return at + sizeof eight;
    }
    if (bytes == 4) {
        memcpy(&four, at, sizeof four);
        *value = be32toh(four);
        return at + sizeof four;
    }
    *value = 0;
    while (bytes-- > 0)
        *value = *value << 8 | *at++;
    return at;
}

/* FNV-1a, against accidents and not against attackers. Starts with the basis. */
#define SLU_HASH_BASIS UINT32_C(2166136261)

static inline uint32_t slu_hash(uint32_t hash, uint32_t value)
{
    return (hash ^ value) * UINT32_C(16777619);
}

static inline uint32_t slu_checksum(const uint8_t *bytes, size_t count)
{
    uint32_t hash = SLU_HASH_BASIS;

    for (size_t i = 0; i < count; i++)
        hash = slu_hash(hash, bytes[i]);
    return hash;
}

#endif
