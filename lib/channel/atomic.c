/* SPDX-License-Identifier: MIT */
/* Blocking atomic operations of a channel. */
#include "config.h"

#include "channel/channel.h"

int sluice_channel_compare_swap(struct sluice_channel *channel, const struct sluice_sge *result,
                                const struct sluice_remote_mr *remote, uint64_t expected,
                                uint64_t desired, int64_t deadline)
{
    struct sluice_request request = {.opcode = SLUICE_OP_COMPARE_SWAP,
                                     .sges = result,
                                     .sge_count = 1,
                                     .operand = {expected, desired}};

    return slu_is_channel(channel) ? slu_submit_atomic(channel->engine, &request, remote, deadline)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_fetch_add(struct sluice_channel *channel, const struct sluice_sge *result,
                             const struct sluice_remote_mr *remote, uint64_t addend,
                             int64_t deadline)
{
    struct sluice_request request = {
        .opcode = SLUICE_OP_FETCH_ADD, .sges = result, .sge_count = 1, .operand = {addend, 0}};

    return slu_is_channel(channel) ? slu_submit_atomic(channel->engine, &request, remote, deadline)
                                   : slu_not_a_channel(channel);
}
