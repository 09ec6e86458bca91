/* SPDX-License-Identifier: MIT */
/*
 * Probes of the engine. A peer of the same context is there when it is
 * connected, and says so when it is. One at the other end of a TCP connection
 * answers a frame of its own kind, whatever waits for a receive or for memory;
 * if its program is elsewhere, its helper thread does it.
 */
#include "transport/soft/tcp.h"

int slu_soft_qp_probe(struct slu_qp *base, uint64_t id)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    qp->probe_id = id;
    qp->asking = true;
    if (slu_soft_in_error(qp))
        slu_soft_retire(qp);
    else
        qp->wire->ask(qp);
    return 0;
}

void slu_soft_answered(struct soft_qp *qp, uint32_t status)
{
    struct slu_wc wc = {.id = qp->probe_id, .status = status};
    if (!qp->asking)
        return;
    qp->asking = false;
    slu_soft_cq_complete(qp, &wc);
}

uint32_t slu_soft_qp_moved(struct slu_qp *base)
{
    struct soft_tcp *tcp = ((struct soft_qp *)base)->tcp;
    uint32_t moved = tcp != NULL ? tcp->moved : 0;
    if (tcp != NULL)
        tcp->moved = 0;
    return moved;
}
