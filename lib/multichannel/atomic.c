/* SPDX-License-Identifier: MIT */
/* Blocking atomic operations with one peer of a multichannel. */
#include "config.h"

#include "multichannel/multichannel.h"

int sluice_multichannel_compare_swap(struct sluice_multichannel *multichannel, uint32_t peer,
                                     const struct sluice_sge *result,
                                     const struct sluice_remote_mr *remote, uint64_t expected,
                                     uint64_t desired, int64_t deadline)
{
    return slu_channel_atomic(slu_engine_of_many(multichannel), SLUICE_OP_COMPARE_SWAP, peer,
                              result, remote, expected, desired, deadline);
}

int sluice_multichannel_fetch_add(struct sluice_multichannel *multichannel, uint32_t peer,
                                  const struct sluice_sge *result,
                                  const struct sluice_remote_mr *remote, uint64_t addend,
                                  int64_t deadline)
{
    return slu_channel_atomic(slu_engine_of_many(multichannel), SLUICE_OP_FETCH_ADD, peer, result,
                              remote, addend, 0, deadline);
}
