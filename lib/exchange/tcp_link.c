/* SPDX-License-Identifier: MIT */
/* Connections that send and receive what the socket allows, and never block. */
#include "config.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connect/stream.h"
#include "exchange/tcp.h"

void slu_tcp_link_open(struct tcp_link *link, int fd, const struct slu_address *peer)
{
    memset(link, 0, sizeof *link);
    link->fd = fd;
    link->peer = *peer;
}

void slu_tcp_link_close(struct tcp_link *link)
{
    if (link->fd < 0)
        return;
    slu_fd_close(link->fd);
    link->fd = -1;
    link->events = 0;
    link->out_count = 0;
    link->want = 0;
}

void slu_tcp_link_queue(struct tcp_link *link, const void *bytes, size_t count)
{
    if (count > 0)
        link->out[link->out_count++] = (struct iovec){(void *)bytes, count};
}

static void drop_sent(struct tcp_link *link, size_t sent)
{
    uint32_t whole = 0;

    while (whole < link->out_count && sent >= link->out[whole].iov_len)
        sent -= link->out[whole++].iov_len;
    link->out_count -= whole;
    memmove(link->out, link->out + whole, link->out_count * sizeof link->out[0]);
    if (link->out_count == 0)
        return;
    link->out[0].iov_base = (uint8_t *)link->out[0].iov_base + sent;
    link->out[0].iov_len -= sent;
}

int slu_tcp_link_send(struct tcp_link *link)
{
    while (link->out_count > 0) {
        struct msghdr message = {.msg_iov = link->out, .msg_iovlen = link->out_count};
        ssize_t sent = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR)
            continue;
        /* Where the system has no memory, the socket stays writable, and the caller comes again. */
        if (sent < 0)
            return errno == EAGAIN || slu_is_shortage(errno) ? 0
                   : errno == EPIPE                          ? -ECONNRESET
                                                             : -errno;
        drop_sent(link, (size_t)sent);
    }
    return 0;
}

int slu_tcp_link_receive(struct tcp_link *link)
{
    return slu_stream_receive(link->fd, &link->in, &link->want);
}

int slu_tcp_link_watch(struct tcp_link *link, int epoll, uint64_t data)
{
    uint32_t events = (link->want > 0 ? EPOLLIN : 0) | (link->out_count > 0 ? EPOLLOUT : 0);
    struct epoll_event event = {.events = events, .data.u64 = data};
    int what = events == 0 ? EPOLL_CTL_DEL : link->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

    /* Without events the socket is removed, since epoll would report a lost one again and again. */
    if (events == link->events)
        return 0;
    if (epoll_ctl(epoll, what, link->fd, &event) != 0)
        return slu_fail(errno, "rank 0 cannot watch a connection: epoll_ctl(2): %s",
                        strerrordesc_np(errno));
    link->events = events;
    return 0;
}

int slu_tcp_link_step(struct tcp_link *link, int64_t until)
{
    struct pollfd pollfd = {.fd = link->fd};
    int wait = slu_milliseconds(until);
    int ready, error;

    pollfd.events = (short)((link->want > 0 ? POLLIN : 0) | (link->out_count > 0 ? POLLOUT : 0));
    ready = poll(&pollfd, 1, wait);
    if (ready < 0)
        return errno == EINTR ? 0 : -errno;
    if (ready == 0)
        return wait == 0 ? -ETIMEDOUT : 0;
    /* Rank 0 may have sent a verdict before it closed: receive that, even if sending fails. */
    if (link->out_count > 0 && slu_tcp_link_send(link) < 0)
        link->out_count = 0;
    error = slu_tcp_link_receive(link);
    /* Bytes that keep coming do not extend the deadline. */
    if (error == 0 && wait == 0 && (link->want > 0 || link->out_count > 0))
        return -ETIMEDOUT;
    return error;
}

int slu_tcp_transfer(struct tcp_link *link, int64_t until)
{
    int error = 0;

    while (error == 0 && (link->want > 0 || link->out_count > 0))
        error = slu_tcp_link_step(link, until);
    return error;
}

void slu_tcp_peer_between(struct tcp_peer *peer)
{
    peer->stage = TCP_BETWEEN;
    peer->link.in = peer->header;
    peer->link.want = TCP_FRAME_BYTES;
}
