/* SPDX-License-Identifier: MIT */
/*
 * The wire between contexts: one stream per queue pair, over TCP or, between near processes, a Unix
 * socket; meet.c connects it. A queue pair that fails sends its last frames if it can, and then
 * ends the stream. For the peer, the end of the stream means that its peer is lost.
 */
#include "connect/stream.h"
#include "transport/soft/helper/helper.h"
#include "transport/soft/tcp/seam.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void slu_soft_tcp_opened(struct soft_tcp *tcp)
{
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    tcp->phase = PHASE_OPEN;
    atomic_store_explicit(&cq->opened, !cq->base.messages_only, memory_order_relaxed);
    if (tcp->qp->receives.posted != 0)
        slu_soft_tcp_urgent(tcp);
    slu_soft_tcp_push(tcp);
}

/*
 * Socket buffers for connections within a host. Bytes that wait in the queue of a socket are sent
 * by the processor that takes the next acknowledgement. On one host that is the receiver's, so
 * packets of two processors arrive out of order and are sent again. The send buffer is therefore
 * kept so small that all of it is sent at once: less than the first congestion window, and less
 * than the receiver's window. Setting a low-water mark, even briefly, opens that window; the kernel
 * can open it further.
 */
#define LOOP_SEND (192 * 1024)
#define LOOP_RECEIVE (1024 * 1024)

/* Sets these buffers. Errors are ignored, as they only cost speed. */
static void tune_loop(int fd)
{
    const int send = LOOP_SEND;
    const int marks[] = {LOOP_RECEIVE, 1};
    SLU_KEEP_ERRNO;
    if (slu_stream_is_local(fd)) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send, sizeof(send));
        setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &marks[0], sizeof(marks[0]));
        setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &marks[1], sizeof(marks[1]));
    }
}

static void drop_attach(struct tcp_attach *attach)
{
    struct soft_qp *qp = attach->message.to;
    if (attach->fd >= 0)
        slu_fd_close(attach->fd);
    free(attach);
    slu_soft_qp_release(qp);
}

void slu_soft_tcp_attach(struct soft_message *message)
{
    struct tcp_attach *attach = (struct tcp_attach *)message;
    struct soft_tcp *tcp = message->to->tcp;
    int domain = 0;
    socklen_t size = sizeof(domain);
    if (tcp == NULL || tcp->phase != PHASE_WAITING) {
        drop_attach(attach);
        return;
    }
    if (slu_soft_tcp_add_socket(tcp, attach->fd, EPOLLIN) != 0) {
        slu_log(SLUICE_LOG_ERROR, "queue pair %u cannot connect: %s", tcp->qp->qpn,
                sluice_last_error());
        slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
        drop_attach(attach);
        return;
    }
    getsockopt(attach->fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    tcp->is_unix = domain == AF_UNIX;
    if (!tcp->is_unix) {
        slu_stream_no_delay(attach->fd);
        tune_loop(attach->fd);
    }
    tcp->heard = slu_now();
    attach->fd = -1;
    drop_attach(attach);
    if (tcp->shm != NULL && tcp->is_unix)
        slu_soft_shm_join(tcp);
    else
        slu_soft_tcp_opened(tcp);
}

void slu_soft_tcp_lost(struct soft_message *message)
{
    struct soft_qp *qp = message->to;
    if (qp->tcp != NULL && qp->tcp->phase == PHASE_WAITING) {
        slu_soft_note_loss(qp, qp->obstacle != NULL ? qp->obstacle : SOFT_LOSS_ABSENT);
        slu_soft_tcp_lose(qp->tcp, SLUICE_STATUS_RETRY_EXC_ERR);
    }
    slu_soft_qp_release(qp);
}

/* Returns messages of queue pairs of this context that mistook this one for their peer. */
static void bounce_parked(struct soft_qp *qp)
{
    struct soft_message *message = qp->parked;
    qp->parked = NULL;
    qp->parked_end = &qp->parked;
    while (message != NULL) {
        struct soft_message *next = message->next;
        slu_soft_self_request(message);
        message = next;
    }
}

static int make_tcp(struct soft_qp *qp)
{
    struct soft_cq *cq = slu_soft_cq_of(qp);
    if (cq->staging == NULL)
        cq->staging = malloc(TCP_STAGING_BYTES);
    struct soft_tcp *tcp = calloc(1, sizeof(*tcp));
    struct tcp_reply *replies = calloc(qp->attr.read_depth, sizeof(*replies));
    if (cq->staging == NULL || tcp == NULL || replies == NULL) {
        free(replies);
        free(tcp);
        return slu_fail(ENOMEM, "no memory for a connection");
    }
    tcp->qp = qp;
    tcp->fd = -1;
    tcp->replies = replies;
    qp->tcp = tcp;
    return 0;
}

static int start_tcp(struct soft_qp *qp, const struct slu_endpoint *remote)
{
    int err = make_tcp(qp);
    if (err != 0)
        return err;
    qp->tcp->early_most = remote->soft.early;
    qp->tcp->announces = (remote->soft.knows & SLU_KNOWS_WANT) != 0;
    qp->tcp->knows_farewell = (remote->soft.knows & SLU_KNOWS_FAREWELL) != 0;
    if (slu_soft_context(qp)->shares && (remote->soft.knows & SLU_KNOWS_SHARING) != 0) {
        if (!slu_soft_shm_offer(qp->tcp, remote))
            return slu_fail(ENOMEM, "no memory for a connection");
    }
    bounce_parked(qp);
    return slu_soft_meet_begin(qp, remote);
}

/*
 * Sends posted requests. The connection is made hot even if there is no credit, because the answer
 * has to be polled.
 */
static void push_requests(struct soft_qp *qp)
{
    struct soft_tcp *tcp = qp->tcp;
    if (tcp->shared)
        slu_soft_shm_heat(tcp);
    if (tcp->blocked)
        return;
    if (tcp->shared)
        slu_soft_shm_push(tcp);
    else
        slu_soft_tcp_push(tcp);
}

static void ask_tcp(struct soft_qp *qp)
{
    struct soft_tcp *tcp = qp->tcp;
    tcp->probe = true;
    tcp->probe_seq++;
    if (!tcp->blocked)
        slu_soft_tcp_push(tcp);
}

static void offer_receives(struct soft_qp *qp)
{
    struct soft_tcp *tcp = qp->tcp;
    if (tcp->phase != PHASE_OPEN || (tcp->early_count > 0 && !slu_soft_tcp_take_early(tcp)))
        return;
    if (SLU_LIKELY(qp->pool == NULL))
        slu_soft_tcp_announce(tcp);
    else
        slu_soft_tcp_hurry(tcp);
}

/* Returns whether an early message waits for a receive, or one that the peer has announced. */
static bool wants_receive(const struct soft_qp *qp)
{
    const struct soft_tcp *tcp = qp->tcp;
    return tcp->phase == PHASE_OPEN && ((tcp->early_count > 0 && !slu_soft_holds_receive(qp)) ||
                                        (int32_t)(tcp->wanted - qp->receives.posted) > 0);
}

/* Returns whether a refusal is still to be sent, with no half-sent request before it. */
static bool owes_refusal(const struct soft_tcp *tcp)
{
    return tcp->nak && tcp->out.part != TCP_PART_REQUEST;
}

static void stop_tcp(struct soft_qp *qp, bool hard)
{
    struct soft_tcp *tcp = qp->tcp;
    if (tcp == NULL || tcp->phase == PHASE_CLOSED)
        return;
    if (tcp->phase == PHASE_OPEN) {
        tcp->phase = PHASE_CLOSING;
        tcp->parts = tcp->knows_farewell && !tcp->ended && !tcp->nak;
        slu_soft_shm_withdraw(tcp);
        slu_soft_shm_end_direct(tcp);
        /* A half-sent frame must be finished before any other frame can be sent. */
        if (tcp->out.part == TCP_PART_REQUEST &&
            slu_soft_wqe(qp, tcp->out.position)->state == SOFT_WQE_QUEUED)
            slu_soft_wqe(qp, tcp->out.position)->state = SOFT_WQE_OUT;
        slu_soft_tcp_push(tcp);
        if (tcp->phase == PHASE_CLOSED)
            return;
        if (!hard || owes_refusal(tcp)) {
            if (tcp->shared)
                slu_soft_shm_heat(tcp);
            else
                slu_soft_tcp_watch(tcp, EPOLLIN | EPOLLOUT);
            return;
        }
    } else if (tcp->phase == PHASE_CLOSING && (!hard || (owes_refusal(tcp) && !tcp->broken))) {
        return;
    } else if (tcp->phase == PHASE_WAITING) {
        tcp->phase = PHASE_CLOSED;
        slu_soft_meet_end(qp);
        return;
    } else if (tcp->phase != PHASE_CLOSING) {
        slu_soft_shm_say_farewell(tcp);
    }
    slu_soft_tcp_close(tcp);
}

static void destroy_tcp(struct soft_qp *qp)
{
    stop_tcp(qp, true);
    if (qp->tcp != NULL && qp->tcp->phase == PHASE_CLOSING)
        slu_soft_tcp_close(qp->tcp);
    if (qp->tcp != NULL) {
        slu_soft_tcp_drop_early(qp->tcp);
        free(qp->tcp->replies);
        slu_soft_shm_forget(qp->tcp);
    }
    free(qp->tcp);
    qp->tcp = NULL;
}

/* Handles events of a closing connection, which discards all input and waits for the end. */
static void closing_event(struct soft_tcp *tcp, uint32_t events)
{
    if ((events & (EPOLLERR | EPOLLHUP)) != 0)
        tcp->broken = true;
    if ((events & EPOLLIN) != 0 && slu_soft_tcp_discard(tcp->fd))
        tcp->broken = true;
    slu_soft_tcp_push(tcp);
}

void slu_soft_tcp_event(struct soft_tcp *tcp, uint32_t events)
{
    if (tcp->shared) {
        slu_soft_shm_event(tcp, events);
        return;
    }
    switch (tcp->phase) {
    case PHASE_OPEN:
        if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0)
            slu_soft_tcp_receive(tcp);
        if (tcp->phase == PHASE_OPEN && (events & EPOLLOUT) != 0)
            slu_soft_tcp_push(tcp);
        break;
    case PHASE_CLOSING:
        closing_event(tcp, events);
        break;
    case PHASE_JOINING:
    case PHASE_IDLE:
        slu_soft_shm_join_event(tcp);
        break;
    case PHASE_WAITING:
    case PHASE_CLOSED:
        break;
    }
}

bool slu_soft_tcp_poll(struct soft_tcp *tcp)
{
    if (tcp->phase != PHASE_OPEN || tcp->shared)
        return false;
    if (tcp->blocked) {
        slu_soft_tcp_push(tcp);
        if (tcp->phase != PHASE_OPEN)
            return true;
    }
    slu_soft_tcp_receive(tcp);
    return true;
}

const struct soft_wire slu_soft_wire_tcp = {
    .start = start_tcp,
    .push = push_requests,
    .ask = ask_tcp,
    .receives = offer_receives,
    .wants = wants_receive,
    .stop = stop_tcp,
    .destroy = destroy_tcp,
};
