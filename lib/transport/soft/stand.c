/* SPDX-License-Identifier: MIT */
/*
 * How a queue pair stands with its peer, for the words of a failure: what waits
 * for what, when the peer was heard last, and why it was lost. The kernel knows
 * when a TCP socket received last, and nothing is noted in the data path for it.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/soft/shm.h"

/* The oldest send that is not complete; NULL if there is none. */
static const struct soft_wqe *oldest_send(const struct soft_qp *qp)
{
    return qp->sends.done != qp->sends.posted ? slu_soft_wqe(qp, qp->sends.done) : NULL;
}

/* What is out at a peer that is connected waits there for a receive, or for nothing. */
static void stand_self(const struct soft_qp *qp, struct slu_stand *stand)
{
    const struct soft_wqe *wqe = oldest_send(qp);

    stand->connected = qp->greeted;
    stand->unready = qp->greeted && wqe != NULL && slu_soft_takes_receive(wqe);
    stand->sending =
        !slu_soft_has_receive(qp) && qp->parked != NULL && qp->parked->kind == SOFT_REQUEST;
}

static int64_t last_heard(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return -1;
    return SLUICE_MS(info.tcpi_last_data_recv);
}

static void stand_tcp(const struct soft_qp *qp, struct slu_stand *stand)
{
    const struct soft_tcp *tcp = qp->tcp;
    const struct soft_wqe *wqe = oldest_send(qp);
    int saved = errno;

    stand->connected = tcp->phase == PHASE_OPEN;
    if (!stand->connected)
        return;
    /* What was sent without credit is the last of what was sent. */
    stand->unready =
        wqe != NULL && slu_soft_takes_receive(wqe) &&
        (int32_t)(tcp->consumed - tcp->credits) >= (int32_t)(qp->sent - qp->sends.done);
    stand->sending = tcp->early_count > 0;
    if (tcp->shared && tcp->shm->fresh)
        stand->heard = 0;
    else
        stand->heard = tcp->is_unix ? slu_now() - tcp->heard : last_heard(tcp->fd);
    errno = saved;
}

void slu_soft_qp_stand(const struct slu_qp *base, struct slu_stand *stand)
{
    const struct soft_qp *qp = (const struct soft_qp *)base;

    if (qp->wire == NULL || slu_soft_in_error(qp))
        return;
    stand->known = true;
    if (qp->tcp != NULL)
        stand_tcp(qp, stand);
    else
        stand_self(qp, stand);
}

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

/* The end of its stream follows. */
bool slu_soft_tcp_take_farewell(struct soft_tcp *tcp, const struct tcp_frame *frame)
{
    tcp->ended = true;
    slu_soft_note_farewell(tcp->qp, frame->status);
    slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
    return false;
}

/* Others may read the reason once it is told, which is after the end of the connection. */
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
