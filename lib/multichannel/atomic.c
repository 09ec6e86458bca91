/* SPDX-License-Identifier: MIT */
/* Blocking atomic operations with one peer of a multichannel. */
#include "config.h"

#include "multichannel/multichannel.h"

int sluice_multichannel_compare_swap(struct sluice_multichannel *multichannel, uint32_t peer,
                                     const struct sluice_sge *result,
                                     const struct sluice_remote_mr *remote, uint64_t expected,
                                     uint64_t desired, int64_t deadline)
{
    struct sluice_request request = {.opcode = SLUICE_OP_COMPARE_SWAP,
                                     .peer = peer,
                                     .sges = result,
                                     .sge_count = 1,
                                     .operand = {expected, desired}};

    return slu_is_multichannel(multichannel)
               ? slu_submit_atomic(multichannel->engine, &request, remote, deadline)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_fetch_add(struct sluice_multichannel *multichannel, uint32_t peer,
                                  const struct sluice_sge *result,
                                  const struct sluice_remote_mr *remote, uint64_t addend,
                                  int64_t deadline)
{
    struct sluice_request request = {.opcode = SLUICE_OP_FETCH_ADD,
                                     .peer = peer,
                                     .sges = result,
                                     .sge_count = 1,
                                     .operand = {addend, 0}};

    return slu_is_multichannel(multichannel)
               ? slu_submit_atomic(multichannel->engine, &request, remote, deadline)
               : slu_not_a_multichannel(multichannel);
}
