/* SPDX-License-Identifier: MIT */
/*
 * The connecting side, until the peer has welcomed us. An address at which
 * somebody else answers is no better than one at which nobody does (hosts
 * share addresses such as 172.17.0.1): the next one is tried.
 */
#include "transport/soft/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void add_address(struct soft_tcp *tcp, const struct slu_address *address)
{
    if ((address->family == 4 || address->family == 6) && address->port != 0)
        tcp->addresses[tcp->address_count++] = *address;
}

void slu_soft_tcp_list_addresses(struct soft_tcp *tcp, const struct slu_endpoint *remote)
{
    const struct soft_context *context = slu_soft_context(tcp->qp);
    const struct slu_address *given = remote->soft.addresses;
    /* On one host the loopback works whatever becomes of the interfaces. */
    if (remote->soft.network == context->network &&
        memcmp(remote->soft.host, context->host, sizeof(context->host)) == 0) {
        struct slu_address loopback4 = {4, given[0].port, {127, 0, 0, 1}};
        struct slu_address loopback6 = {6, given[0].port, {[15] = 1}};
        add_address(tcp, given[0].family == 6 ? &loopback6 : &loopback4);
        add_address(tcp, given[0].family == 6 ? &loopback4 : &loopback6);
    }
    for (int i = 0; i < SLU_ENDPOINT_ADDRESSES; i++)
        add_address(tcp, &given[i]);
}

static socklen_t make_sockaddr(const struct slu_address *address, struct sockaddr_storage *storage)
{
    memset(storage, 0, sizeof(*storage));
    if (address->family == 6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)storage;
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(address->port);
        memcpy(&in6->sin6_addr, address->ip, 16);
        return sizeof(*in6);
    }
    struct sockaddr_in *in4 = (struct sockaddr_in *)storage;
    in4->sin_family = AF_INET;
    in4->sin_port = htons(address->port);
    memcpy(&in4->sin_addr, address->ip, 4);
    return sizeof(*in4);
}

void slu_soft_tcp_no_delay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int slu_soft_tcp_socket_error(int fd)
{
    int err = 0;
    socklen_t length = sizeof(err);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &length) != 0)
        return errno;
    return err;
}

bool slu_soft_tcp_discard(int fd)
{
    uint8_t trash[16384];
    ssize_t got;
    int budget = 64;
    do
        got = recv(fd, trash, sizeof(trash), MSG_DONTWAIT);
    while ((got > 0 || (got < 0 && errno == EINTR)) && --budget > 0);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

int slu_soft_tcp_dial(const struct slu_address *address)
{
    struct sockaddr_storage storage;
    socklen_t length = make_sockaddr(address, &storage);
    /* An address that swallows everything costs 7 s, not the system's 2 minutes. */
    int attempts = 2;
    int fd = slu_fd_stream(storage.ss_family);
    if (fd < 0)
        return -errno;
    slu_soft_tcp_no_delay(fd);
    setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &attempts, sizeof(attempts));
    if (connect(fd, (struct sockaddr *)&storage, length) == 0 || errno == EINPROGRESS ||
        errno == EINTR)
        return fd;
    int err = -errno;
    slu_fd_close(fd);
    return err;
}

static bool out_of_resources(int err)
{
    return err == -EMFILE || err == -ENFILE || err == -ENOBUFS || err == -ENOMEM;
}

/* Tries one address after the other; 0 once one is under way. */
int slu_soft_tcp_connect(struct soft_tcp *tcp)
{
    int saved = errno;
    while (tcp->address < tcp->address_count) {
        int fd = slu_soft_tcp_dial(&tcp->addresses[tcp->address++]);
        if (out_of_resources(fd)) {
            errno = saved;
            return slu_fail(-fd, "a connection to the peer needs a file descriptor and memory");
        }
        if (fd < 0)
            continue;
        int err = slu_soft_tcp_add_socket(tcp, fd, EPOLLOUT);
        if (err != 0) {
            slu_fd_close(fd);
            errno = saved;
            return err;
        }
        tcp->phase = PHASE_CONNECTING;
        errno = saved;
        return 0;
    }
    errno = saved;
    tcp->phase = PHASE_CLOSED;
    slu_log(SLUICE_LOG_INFO, "queue pair %u: the peer answers at none of its %u addresses",
            tcp->qp->qpn, tcp->address_count);
    slu_soft_note_loss(tcp->qp, SOFT_LOSS_ABSENT);
    slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
    return 0;
}

static void try_next(struct soft_tcp *tcp)
{
    int fd = tcp->fd;
    slu_soft_tcp_remove_socket(tcp);
    slu_fd_close(fd);
    tcp->carry_length = 0;
    tcp->phase = PHASE_CLOSED;
    int err = slu_soft_tcp_connect(tcp);
    if (err == 0)
        return;
    slu_log(SLUICE_LOG_ERROR, "queue pair %u cannot connect: %s", tcp->qp->qpn,
            strerrordesc_np(-err));
    slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
}

void slu_soft_tcp_connect_event(struct soft_tcp *tcp, uint32_t events)
{
    uint8_t bytes[TCP_HELLO_BYTES];
    struct tcp_hello hello = {.target_qpn = tcp->remote_qpn, .own_qpn = tcp->qp->qpn};
    (void)events;
    memcpy(hello.target_nonce, tcp->remote_nonce, SLU_NONCE_BYTES);
    memcpy(hello.own_nonce, tcp->qp->nonce, SLU_NONCE_BYTES);
    slu_soft_hello_encode(&hello, bytes);
    /* The buffer of a fresh socket takes it whole. */
    if (slu_soft_tcp_socket_error(tcp->fd) != 0 ||
        send(tcp->fd, bytes, sizeof(bytes), MSG_NOSIGNAL) != (ssize_t)sizeof(bytes)) {
        try_next(tcp);
        return;
    }
    tcp->phase = PHASE_GREETING;
    slu_soft_tcp_watch(tcp, EPOLLIN);
}

void slu_soft_tcp_greeting_event(struct soft_tcp *tcp)
{
    ssize_t got =
        recv(tcp->fd, tcp->carry + tcp->carry_length, TCP_WELCOME_BYTES - tcp->carry_length, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        try_next(tcp);
        return;
    }
    tcp->carry_length += (uint32_t)got;
    if (tcp->carry_length < TCP_WELCOME_BYTES)
        return;
    tcp->carry_length = 0;
    if (slu_soft_welcome_decode(tcp->carry, tcp->remote_qpn))
        slu_soft_tcp_opened(tcp);
    else
        try_next(tcp);
}
