/* SPDX-License-Identifier: MIT */
/*
 * Why a peer was lost, as static texts. The first reason found is kept; the engine reads it when it
 * reports the failure.
 */
#include "transport/soft/core/soft.h"

void slu_soft_note_loss(struct soft_qp *qp, const char *loss)
{
    if (qp->loss == NULL && !slu_soft_in_error(qp))
        qp->loss = loss;
}

void slu_soft_note_farewell(struct soft_qp *qp, uint32_t why)
{
    if (qp->loss != NULL || slu_soft_in_error(qp))
        return;
    qp->peer_closed = why == SLU_FAREWELL_CLOSED;
    if (why == SLU_FAREWELL_CLOSED)
        qp->loss = "the peer closed the connection";
    else if (why == SLU_FAREWELL_GAVE_UP)
        qp->loss = "the peer ended the connection: a deadline of its own passed, or it cancelled a "
                   "request";
    else if (why != SLU_FAREWELL_NONE)
        qp->loss = "the peer ended the connection: one of its requests failed, or ours, or the "
                   "connection did";
}

/*
 * Notes why our end is about to fail, for the farewell to the peer. The first reason counts. Other
 * threads read it only once the peer is notified, at the end of the connection.
 */
void slu_soft_qp_farewell(struct slu_qp *base, enum slu_farewell why)
{
    struct soft_qp *qp = (struct soft_qp *)base;

    if (qp->farewell == SLU_FAREWELL_NONE && !slu_soft_in_error(qp))
        qp->farewell = (uint8_t)why;
}

const char *slu_soft_qp_loss(const struct slu_qp *base, bool *closed)
{
    const struct soft_qp *qp = (const struct soft_qp *)base;

    *closed = qp->peer_closed;
    return qp->loss != NULL ? qp->loss
                            : "the peer closed or refused the connection: its process is gone, or "
                              "an endpoint was swapped, used before or is stale";
}
