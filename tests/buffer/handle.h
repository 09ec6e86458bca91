/* SPDX-License-Identifier: MIT */
/* Forges handles of buffers: changes fields and corrects the checksum. */
#ifndef TEST_BUFFER_HANDLE_H
#define TEST_BUFFER_HANDLE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice.h>

/* Offsets of the fields of a handle. The key is that of the first transport. */
#define HANDLE_ADDR 64
#define HANDLE_LENGTH 72
#define HANDLE_ACCESS 80
#define HANDLE_RKEY 92
#define HANDLE_CHECKSUM (SLUICE_BUFFER_HANDLE_BYTES - 4)

/* Writes a number of this many bytes, in network byte order. */
static inline void handle_set(struct sluice_buffer_handle *handle, size_t at, uint64_t value,
                              size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        handle->bytes[at + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    }
}

static inline void handle_seal(struct sluice_buffer_handle *handle)
{
    uint32_t sum = UINT32_C(2166136261);
    for (size_t i = 0; i < HANDLE_CHECKSUM; i++) {
        sum = (sum ^ handle->bytes[i]) * UINT32_C(16777619);
    }
    handle_set(handle, HANDLE_CHECKSUM, sum, 4);
}

#endif
