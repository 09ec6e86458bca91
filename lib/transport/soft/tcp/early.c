/* SPDX-License-Identifier: MIT */
/* Messages that come before their receive, in a ring of the connection; README.md has the rules. */
#include "transport/soft/tcp/seam.h"

#include <stdlib.h>
#include <sys/mman.h>

/*
 * Room for all long messages. Only pages that are touched use memory, until the end of the
 * connection or, with a pool, until the last early message is taken.
 */
#define LONG_BYTES ((size_t)SLU_EARLY_MOST * SLU_EARLY_BYTES)

bool slu_soft_tcp_may_send(const struct soft_tcp *tcp, const struct soft_wqe *wqe,
                           uint32_t consumed)
{
    int32_t early = (int32_t)(consumed - tcp->credits);
    if (early < 0 || (early == 0 && !slu_soft_takes_receive(wqe)))
        return true;
    return wqe->opcode == SLUICE_OP_SEND && wqe->length <= SLU_EARLY_BYTES &&
           (uint32_t)early < tcp->early_most;
}

/* A peer is asked for so many receives at a time. */
#define WANT_MOST 8

void slu_soft_tcp_announce_want(struct soft_tcp *tcp, uint32_t consumed, uint32_t position)
{
    const struct soft_qp *qp = tcp->qp;
    uint32_t want = consumed;
    for (; position != qp->sends.posted && (int32_t)(want - tcp->credits) < WANT_MOST; position++)
        want += slu_soft_takes_receive(slu_soft_wqe(qp, position));
    if ((int32_t)(want - tcp->credits) <= 0 || (int32_t)(want - tcp->want_seq) <= 0)
        return;
    tcp->want_seq = want;
    tcp->want = true;
}

void slu_soft_tcp_satisfy(struct soft_tcp *tcp)
{
    struct soft_qp *qp = tcp->qp;
    while ((int32_t)(tcp->wanted - qp->receives.posted) > 0 && slu_soft_pool_take(qp))
        slu_soft_tcp_hurry(tcp);
}

bool slu_soft_tcp_is_next(const struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    return frame->seq == tcp->executed + tcp->early_count &&
           (tcp->early_count == 0 || frame->type == TCP_SEND);
}

static bool make_long_room(struct soft_tcp *tcp)
{
    void *map = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map != MAP_FAILED)
        tcp->early_long = map;
    return map != MAP_FAILED;
}

static bool make_room(struct soft_tcp *tcp, uint64_t length)
{
    if (tcp->early == NULL)
        tcp->early = calloc(SLU_EARLY_MOST, sizeof(*tcp->early));
    return tcp->early != NULL &&
           (length <= SOFT_WHOLE_BYTES || tcp->early_long != NULL || make_long_room(tcp));
}

void slu_soft_tcp_drop_early(struct soft_tcp *tcp)
{
    free(tcp->early);
    if (tcp->early_long != NULL)
        munmap(tcp->early_long, LONG_BYTES);
    tcp->early = NULL;
    tcp->early_long = NULL;
}

uint8_t *slu_soft_tcp_early_bytes(const struct soft_tcp *tcp, uint32_t index)
{
    struct tcp_early *early = &tcp->early[index];

    return early->frame.length <= SOFT_WHOLE_BYTES
               ? early->bytes
               : tcp->early_long + (size_t)index * SLU_EARLY_BYTES;
}

uint8_t *slu_soft_tcp_set_aside(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    if (frame->length > SLU_EARLY_BYTES || (frame->flags & TCP_FLAG_LENT) != 0 ||
        tcp->early_count == SLU_EARLY_MOST) {
        slu_soft_tcp_reject(tcp, "a send without a receive");
        return NULL;
    }
    if (!make_room(tcp, frame->length)) {
        slu_log(SLUICE_LOG_ERROR, "queue pair %u: no memory for a message without a receive",
                tcp->qp->qpn);
        slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
        return NULL;
    }
    uint32_t index = (tcp->early_first + tcp->early_count) % SLU_EARLY_MOST;
    tcp->early_count++;
    tcp->early[index].frame = *frame;
    return slu_soft_tcp_early_bytes(tcp, index);
}
