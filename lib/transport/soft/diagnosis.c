/* SPDX-License-Identifier: MIT */
/*
 * The state of a queue pair and its peer, for the text of a failure: what each side waits for, when
 * the peer was last active, and whether bytes have moved. The kernel records when a TCP socket last
 * received, so the data path does not.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/soft/helper/meet.h"
#include "transport/soft/shm/shm.h"
#include "transport/soft/table.h"

/* Returns the oldest send that is not complete, or NULL. */
static const struct soft_wqe *oldest_send(const struct soft_qp *qp)
{
    return qp->sends.done != qp->sends.posted ? slu_soft_wqe(qp, qp->sends.done) : NULL;
}

/* A request that is out at a connected peer can only be waiting for a receive. */
static void stand_self(const struct soft_qp *qp, struct slu_stand *stand)
{
    const struct soft_wqe *wqe = oldest_send(qp);

    stand->connected = qp->greeted;
    stand->unready = qp->greeted && wqe != NULL && slu_soft_takes_receive(wqe);
    stand->sending =
        !slu_soft_holds_receive(qp) && qp->parked != NULL && qp->parked->kind == SOFT_REQUEST;
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
    SLU_KEEP_ERRNO;

    stand->connected = slu_soft_tcp_is_connected(tcp);
    if (!stand->connected) {
        stand->waits = slu_soft_meet_obstacle(qp);
        return;
    }
    if (tcp->phase != PHASE_OPEN) {
        stand->heard = slu_now() - tcp->heard;
        return;
    }
    /* Requests sent without credit are the last ones that were sent. */
    stand->unready =
        wqe != NULL && slu_soft_takes_receive(wqe) &&
        (int32_t)(tcp->consumed - tcp->credits) >= (int32_t)(qp->sent - qp->sends.done);
    stand->sending = tcp->early_count > 0;
    if (tcp->shared && tcp->shm->fresh)
        stand->heard = 0;
    else
        stand->heard = tcp->is_unix ? slu_now() - tcp->heard : last_heard(tcp->fd);
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

uint32_t slu_soft_qp_moved(struct slu_qp *base)
{
    struct soft_tcp *tcp = ((struct soft_qp *)base)->tcp;
    uint32_t moved = tcp != NULL ? tcp->moved : 0;
    if (tcp != NULL)
        tcp->moved = 0;
    return moved;
}
