/* SPDX-License-Identifier: MIT */
/*
 * Memory that is not there any more: of a key, and which frame of a batch has it, when not all of
 * the batch could be read.
 */
#include "transport/soft/tcp.h"

bool slu_soft_tcp_is_gone(const struct soft_mr *pin, uint64_t addr, uint64_t length)
{
    return pin != NULL && !slu_soft_lasts(pin) &&
           !slu_is_mapped((const void *)(uintptr_t)addr, length);
}

bool slu_soft_tcp_blame_reply(struct soft_tcp *tcp, const struct tcp_out *out)
{
    for (uint32_t i = tcp->reply_head; i != tcp->reply_tail; i++) {
        struct tcp_reply *reply = &tcp->replies[i % tcp->qp->attr.read_depth];
        if (reply->seq != out->position || reply->type != TCP_READ_REPLY || reply->gone)
            continue;
        reply->gone = !slu_soft_is_there(tcp->qp, reply->rkey, reply->addr, reply->length);
        return reply->gone;
    }
    return false;
}

bool slu_soft_tcp_blame_request(struct soft_tcp *tcp, const struct tcp_out *out)
{
    struct soft_wqe *wqe = slu_soft_wqe(tcp->qp, out->position);
    bool mapped = true;
    for (uint32_t i = 0; i < wqe->sge_count && !slu_soft_is_fetch(wqe) && mapped; i++)
        mapped =
            slu_soft_is_there(tcp->qp, wqe->sges[i].lkey, wqe->sges[i].addr, wqe->sges[i].length);
    if (mapped)
        return false;
    wqe->status = SLUICE_STATUS_LOC_PROT_ERR;
    wqe->state = SOFT_WQE_DONE;
    return true;
}
