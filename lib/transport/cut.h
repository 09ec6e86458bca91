/* SPDX-License-Identifier: MIT */
/* Cuts a part out of a list of elements. */
#ifndef SLU_CUT_H
#define SLU_CUT_H

#include <stdint.h>

#include <sluice/mr.h>

/*
 * Finds the pieces of a list with the bytes offset to offset + length - 1. Returns their number,
 * which is at most that of the list.
 */
static inline uint32_t slu_cut_sges(const struct sluice_sge *sges, uint32_t sge_count,
                                    uint64_t offset, uint64_t length, struct sluice_sge *pieces)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sge_count && length > 0; i++) {
        struct sluice_sge piece = sges[i];

        if (offset >= piece.length) {
            offset -= piece.length;
            continue;
        }
        piece.addr += offset;
        piece.length -= (uint32_t)offset;
        offset = 0;
        if (piece.length > length)
            piece.length = (uint32_t)length;
        length -= piece.length;
        pieces[count++] = piece;
    }
    return count;
}

#endif
