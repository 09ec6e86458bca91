/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations, executed by the thread that serves the target's CQ. These are the processor's
 * atomic instructions, so they are also atomic against the program, and against accesses through
 * other contexts and processes.
 */
#include "transport/soft/core/soft.h"

#include <endian.h>
#include <string.h>

uint32_t slu_soft_check_atomic(const struct soft_qp *target, uint32_t rkey, uint64_t addr,
                               struct soft_mr **pin)
{
    uint32_t status = slu_soft_check_right(target, SLUICE_ACCESS_REMOTE_ATOMIC);
    *pin = NULL;
    if (status == SLUICE_STATUS_SUCCESS && addr % sizeof(uint64_t) != 0)
        status = SLUICE_STATUS_REM_INV_REQ_ERR;
    if (status == SLUICE_STATUS_SUCCESS)
        status = slu_soft_check_remote(target, rkey, addr, sizeof(uint64_t),
                                       SLUICE_ACCESS_REMOTE_ATOMIC, pin);
    return status;
}

uint64_t slu_soft_atomic(uint32_t opcode, uint64_t addr, const uint64_t operand[2])
{
    uint64_t first = be64toh(operand[0]);
    uint64_t *word = (uint64_t *)(uintptr_t)addr;
    if (opcode == SLUICE_OP_FETCH_ADD)
        return __atomic_fetch_add(word, first, __ATOMIC_SEQ_CST);
    /* first is unchanged or replaced by the value found: the old value in both cases. */
    __atomic_compare_exchange_n(word, &first, be64toh(operand[1]), false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return first;
}

void slu_soft_atomic_result(const struct soft_wqe *wqe, uint64_t before)
{
    memcpy((void *)(uintptr_t)wqe->sges[0].addr, &before, sizeof(before));
}
