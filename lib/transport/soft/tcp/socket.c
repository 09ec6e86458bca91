/* SPDX-License-Identifier: MIT */
/*
 * The socket of a connection in the epoll set of its completion queue, from its attachment until it
 * is handed to the helper with its last bytes.
 */
#include "transport/soft/helper/helper.h"
#include "transport/soft/tcp/seam.h"

#include <sys/epoll.h>
#include <sys/socket.h>

/* Wait awake this long for the next piece of a large message; after that, its time is unknown. */
#define PIECE_TIME SLUICE_US(100)

int slu_soft_tcp_add_socket(struct soft_tcp *tcp, int fd, uint32_t events)
{
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    struct epoll_event event = {.events = events, .data.ptr = tcp};
    if (epoll_ctl(cq->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return slu_fail(errno, "cannot watch a socket: %s", strerrordesc_np(errno));
    tcp->fd = fd;
    SOFT_INSERT(&cq->connections, tcp, all);
    cq->sockets++;
    return 0;
}

void slu_soft_tcp_remove_socket(struct soft_tcp *tcp)
{
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    slu_soft_tcp_leave_owing(tcp);
    epoll_ctl(cq->epoll, EPOLL_CTL_DEL, tcp->fd, NULL);
    SOFT_REMOVE(tcp, all);
    cq->sockets--;
    tcp->fd = -1;
    tcp->blocked = tcp->starved = false;
}

void slu_soft_tcp_watch(struct soft_tcp *tcp, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = tcp};
    epoll_ctl(slu_soft_cq_of(tcp->qp)->epoll, EPOLL_CTL_MOD, tcp->fd, &event);
}

ssize_t slu_soft_tcp_transmit(struct soft_tcp *tcp, struct iovec *iovecs, uint32_t count)
{
    struct msghdr message = {.msg_iov = iovecs, .msg_iovlen = count};
    ssize_t sent;
    SLU_KEEP_ERRNO;
    if (tcp->shared)
        return slu_soft_shm_transmit(tcp, iovecs, count);
    do
        sent = SLU_UNCANCELLED(sendmsg(tcp->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
    while (sent < 0 && errno == EINTR);
    return sent >= 0 ? sent : errno == EAGAIN ? 0 : -errno;
}

void slu_soft_tcp_close(struct soft_tcp *tcp)
{
    int fd = tcp->fd;
    slu_soft_shm_part(tcp);
    slu_soft_tcp_remove_socket(tcp);
    tcp->phase = PHASE_CLOSED;
    slu_soft_qp_told(tcp->qp);
    if (tcp->out.part == TCP_PART_REQUEST &&
        slu_soft_wqe(tcp->qp, tcp->out.position)->state == SOFT_WQE_OUT)
        slu_soft_wqe(tcp->qp, tcp->out.position)->state = SOFT_WQE_QUEUED;
    tcp->out.part = TCP_PART_NONE;
    if (tcp->broken || tcp->ended) {
        slu_fd_close(fd);
        return;
    }
    shutdown(fd, SHUT_WR);
    slu_soft_helper_linger(slu_soft_context(tcp->qp), fd);
}

/*
 * A side that sleeps in the middle of a large message makes the other one wait, for room or for
 * bytes, until it is woken.
 */
void slu_soft_tcp_expect_piece(struct soft_tcp *tcp, bool more)
{
    if (more)
        slu_soft_cq_of(tcp->qp)->more_until = slu_now() + PIECE_TIME;
    else if (tcp->out.part == TCP_PART_NONE)
        slu_soft_cq_of(tcp->qp)->more_until = 0;
}
