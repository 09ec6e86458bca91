/* SPDX-License-Identifier: MIT */
/* Copies between lists of pieces, and to and from memory that others poll. */
#ifndef SLU_SOFT_COPY_H
#define SLU_SOFT_COPY_H

#include "transport/soft/core/soft.h"

struct soft_cursor {
    const struct sluice_sge *sges;
    uint32_t count;
    uint64_t offset; /* in the first of them */
};
struct soft_cursor slu_soft_cursor(const struct sluice_sge *sges, uint32_t count, uint64_t offset);
void slu_soft_scatter(struct soft_cursor *to, const uint8_t *from, uint64_t length);
void slu_soft_copy_sges(struct soft_cursor *to, struct soft_cursor *from, uint64_t length);
/* Fills in up to room pieces of at most length bytes together, and returns their number. */
uint32_t slu_soft_cursor_iovecs(struct soft_cursor cursor, uint64_t length, struct iovec *iovecs,
                                uint32_t room);
/* A write of up to this many bytes is gathered first, so that its words appear whole. */
#define SOFT_WHOLE_BYTES 256
/* Gathers a list to memory that another thread or process may poll. */
void slu_soft_gather_visible(void *to, const struct sluice_sge *sges, uint32_t count,
                             uint64_t length);
/*
 * Scatters from such memory: words of 8 bytes with the same alignment on both sides are copied
 * whole.
 */
void slu_soft_scatter_visible(const struct sluice_sge *sges, uint32_t count, const void *from);
/* Words of 8 bytes appear whole, the last one after all others. */
void slu_soft_copy_visible(void *to, const void *from, size_t length);

#endif
