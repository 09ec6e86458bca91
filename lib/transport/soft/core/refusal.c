/* SPDX-License-Identifier: MIT */
/*
 * The log of refused accesses. A refusal tells the peer neither whether its key exists nor which
 * range and rights the region has; the program whose memory it is finds that in its own log.
 */
#include "transport/soft/core/regions.h"

#include "base/log.h"

static const char *name_access(uint32_t access)
{
    return access == SLUICE_ACCESS_REMOTE_WRITE  ? "write"
           : access == SLUICE_ACCESS_REMOTE_READ ? "read"
                                                 : "atomic operation";
}

/* Called inside a key reader section. */
static const char *find_reason(const struct soft_qp *qp, uint32_t rkey, uint64_t addr,
                               uint64_t length, uint32_t access)
{
    const struct soft_mr *mr = slu_soft_keys_find(&slu_soft_context(qp)->keys, rkey);

    if ((qp->attr.access & access) == 0)
        return "the channel does not grant it to its peer";
    if (mr == NULL)
        return "no memory region has its key; perhaps it was deregistered";
    if (mr->base.pd != qp->base.pd)
        return "its key is of another protection domain than the channel";
    if ((mr->access & access) == 0)
        return "the memory region was registered without this right";
    if (!slu_soft_contains(mr, mr->base.iova, addr, length))
        return "its range is not within the memory region";
    return access == SLUICE_ACCESS_REMOTE_ATOMIC && addr % sizeof(uint64_t) != 0
               ? "its address is not a multiple of 8"
               : "the memory cannot be accessed";
}

/* The program's log function may take long, so it is called outside of the key reader section. */
void slu_soft_log_refusal(const struct soft_qp *qp, uint32_t rkey, uint64_t addr, uint64_t length,
                          uint32_t access)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    const char *reason;

    slu_soft_keys_enter(reader);
    reason = find_reason(qp, rkey, addr, length, access);
    slu_soft_keys_leave(reader);
    slu_log(SLUICE_LOG_INFO, "queue pair %u: refused a remote %s of %llu bytes at 0x%llx: %s",
            qp->qpn, name_access(access), (unsigned long long)length, (unsigned long long)addr,
            reason);
}
