/* SPDX-License-Identifier: MIT */
/*
 * Memory with guard bytes on both sides, and patterns that identify the rank, operation and offset
 * of a byte.
 */
#ifndef SUPPORT_MEMORY_H
#define SUPPORT_MEMORY_H

#include "suite.h"

#define ACCESS_ALL \
    (SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ)

/* Registered memory, or allocated: the guards lie outside of the region. */
struct memory {
    struct sluice_mr *mr;
    uint8_t *bytes;
    size_t length;
    uint8_t *whole;
};

/* Registers memory of ours, aligned to 8 bytes plus shift. */
void memory_open_at(struct memory *memory, struct sluice_pd *pd, size_t length, uint32_t access,
                    size_t shift);
void memory_open(struct memory *memory, struct sluice_pd *pd, size_t length);
/* Deregisters it, which must succeed, and checks the guards. */
void memory_close(struct memory *memory);
/* Fails the test if a guard byte changed. */
void memory_check_guards(const struct memory *memory);

/* One checked element; a list of count pieces of odd lengths that cover the range. */
struct sluice_sge memory_sge(const struct memory *memory, size_t offset, size_t length);
void memory_split(const struct memory *memory, size_t offset, size_t length,
                  struct sluice_sge *sges, uint32_t count);
struct sluice_remote_mr memory_remote(const struct memory *memory, size_t offset, size_t length);

/* Key of a pattern. */
uint64_t pattern_key(uint32_t from, uint32_t to, uint32_t operation);
void pattern_fill(void *bytes, size_t length, uint64_t key);
/* Fails the test if a byte is not that of the pattern. */
void pattern_check(const void *bytes, size_t length, uint64_t key);
/* Fails the test if a byte has another value. */
void value_check(const void *bytes, size_t length, uint8_t value);

#endif
