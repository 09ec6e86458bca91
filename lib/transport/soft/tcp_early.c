/* SPDX-License-Identifier: MIT */
/*
 * Small messages that come before their receive. The receiver sets them aside, in a ring of the
 * connection, so that what is behind them on the wire is read. They are done once a receive has
 * taken them, and until then their sender sends no other request: a request is executed when all
 * before it are done, as on a device.
 */
#include "transport/soft/shm.h"

#include <stdlib.h>

bool slu_soft_tcp_may_send(const struct soft_tcp *tcp, const struct soft_wqe *wqe,
                           uint32_t consumed)
{
    int32_t early = (int32_t)(consumed - tcp->credits);
    if (early < 0 || (early == 0 && !slu_soft_takes_receive(wqe)))
        return true;
    return wqe->opcode == SLUICE_OP_SEND && wqe->length <= SOFT_WHOLE_BYTES &&
           (uint32_t)early < tcp->early_most;
}

bool slu_soft_tcp_is_next(const struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    return frame->seq == tcp->executed + tcp->early_count &&
           (tcp->early_count == 0 || frame->type == TCP_SEND);
}

uint8_t *slu_soft_tcp_set_aside(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    if (frame->length > SOFT_WHOLE_BYTES || (frame->flags & TCP_FLAG_LENT) != 0 ||
        tcp->early_count == SLU_EARLY_MOST) {
        slu_soft_tcp_reject(tcp, "a send without a receive");
        return NULL;
    }
    if (tcp->early == NULL)
        tcp->early = calloc(SLU_EARLY_MOST, sizeof(*tcp->early));
    if (tcp->early == NULL) {
        slu_log(SLUICE_LOG_ERROR, "queue pair %u: no memory for a message without a receive",
                tcp->qp->qpn);
        slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
        return NULL;
    }
    struct tcp_early *early = &tcp->early[(tcp->early_first + tcp->early_count) % SLU_EARLY_MOST];
    tcp->early_count++;
    early->frame = *frame;
    return early->bytes;
}

/* As if it came now. */
static bool take_oldest(struct soft_tcp *tcp)
{
    struct tcp_early *early = &tcp->early[tcp->early_first++ % SLU_EARLY_MOST];
    tcp->early_count--;
    early->frame.seq = tcp->executed;
    tcp->in = (struct tcp_in){.frame = early->frame};
    slu_soft_shm_time(tcp, early->frame.length);
    return slu_soft_tcp_match(tcp, tcp->executed, early->frame.length) &&
           slu_soft_tcp_place(tcp, early->bytes, early->frame.length) && slu_soft_tcp_finish(tcp);
}

void slu_soft_tcp_take_early(struct soft_tcp *tcp)
{
    if (tcp->early_count == 0)
        return;
    /* The payload of a reply may be coming in. */
    struct tcp_in before = tcp->in;
    while (tcp->early_count > 0 && slu_soft_has_receive(tcp->qp) && take_oldest(tcp))
        ;
    tcp->in = before;
}
