/* SPDX-License-Identifier: MIT */
/* The checks of requests, before anything is posted. */
#ifndef SLU_ENGINE_REQUEST_CHECK_H
#define SLU_ENGINE_REQUEST_CHECK_H

#include "engine/request/source.h"

/*
 * Checks all requests of a source. Returns the queues that it has requests for, one bit each, with
 * SLU_ALIKE if all requests of each list are of one operation and take the fast path, and
 * SLU_BLOCKY if any has blocks; 0 if there are no requests. Returns the error if a request is
 * wrong, or SLU_NAMES_PLAIN, which is negative so that only the slow path tests for it.
 */
#define SLU_ALIKE 4
#define SLU_BLOCKY 8
_Static_assert(SLU_ALIKE == 1 << SLU_QUEUES, "a bit of its own");

/*
 * Nothing is wrong, but requests name plain memory, so slu_borrow() must be called before they are
 * posted.
 */
#define SLU_NAMES_PLAIN INT32_MIN
int slu_source_check(const struct slu_engine *engine, const struct slu_source *source,
                     int64_t deadline);
/* Checks a list of receives for the pool: 0, the error, or SLU_NAMES_PLAIN. */
int slu_shared_check(const struct slu_engine *engine, const struct slu_source *source);
/* Checks the blocks of an item: 0, or the error. */
int slu_blocks_check(const struct slu_item *item, uint32_t index);
/*
 * Checks blocks that do not belong to a channel's request, within memory of the given lengths on
 * each side. Returns 0 and the bytes that they move, or an error whose text calls them request 0.
 */
int slu_blocks_check_action(const struct sluice_blocks *blocks, uint64_t addr,
                            uint64_t local_length, uint64_t remote_length, uint64_t *bytes);
/* Checks whether regions can be obtained for an item of plain memory: 0, or the error. */
int slu_borrow_check(const struct slu_engine *engine, const struct slu_item *item, uint32_t index);

static inline int slu_no_remote(uint32_t opcode)
{
    return slu_misuse(EINVAL, "a %s needs a remote region, not NULL", slu_opcode_name(opcode));
}

#endif
