/* SPDX-License-Identifier: MIT */
/*
 * Failures that end a connection: a peer that breaks the protocol, a refused request, a farewell,
 * and memory that is no longer mapped. If the kernel could not read a batch, the calls here find
 * the frame whose memory is gone.
 */
#include "transport/soft/tcp/tcp.h"

bool slu_soft_tcp_reject(struct soft_tcp *tcp, const char *what)
{
    slu_log(SLUICE_LOG_WARN, "queue pair %u: the peer broke the protocol: %s", tcp->qp->qpn, what);
    slu_soft_tcp_lose(tcp, SLUICE_STATUS_BAD_RESP_ERR);
    return false;
}

void slu_soft_tcp_refuse(struct soft_tcp *tcp, uint32_t seq, uint32_t status)
{
    tcp->nak = true;
    tcp->nak_seq = seq;
    tcp->nak_status = status;
    slu_soft_qp_refuse(tcp->qp);
}

bool slu_soft_tcp_take_farewell(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    tcp->ended = true;
    slu_soft_note_farewell(tcp->qp, frame->status);
    slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
    return false;
}

bool slu_soft_tcp_is_gone(const struct soft_mr *pin, uint64_t addr, uint64_t length)
{
    return pin != NULL && !pin->lasts && !slu_is_mapped((const void *)(uintptr_t)addr, length);
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
