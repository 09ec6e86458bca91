/* SPDX-License-Identifier: MIT */
/* Numbers in network byte order, of 1 to 8 bytes: each returns where the next one goes. */
#ifndef SLU_BYTES_H
#define SLU_BYTES_H

#include <stdint.h>

static inline uint8_t *slu_put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        *at++ = (uint8_t)(value >> (8 * i));
    return at;
}

static inline const uint8_t *slu_get(const uint8_t *at, uint64_t *value, int bytes)
{
    *value = 0;
    while (bytes-- > 0)
        *value = *value << 8 | *at++;
    return at;
}

#endif
