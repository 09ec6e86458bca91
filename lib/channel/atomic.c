/* SPDX-License-Identifier: MIT */
/* Blocking atomic operations of a channel. */
#include "config.h"

#include "channel/channel.h"

int sluice_channel_compare_swap(struct sluice_channel *channel, const struct sluice_sge *result,
                                const struct sluice_remote_mr *remote, uint64_t expected,
                                uint64_t desired, int64_t deadline)
{
    return slu_channel_atomic(slu_engine_of(channel), SLUICE_OP_COMPARE_SWAP, 0, result, remote,
                              expected, desired, deadline);
}

int sluice_channel_fetch_add(struct sluice_channel *channel, const struct sluice_sge *result,
                             const struct sluice_remote_mr *remote, uint64_t addend,
                             int64_t deadline)
{
    return slu_channel_atomic(slu_engine_of(channel), SLUICE_OP_FETCH_ADD, 0, result, remote,
                              addend, 0, deadline);
}
