/* SPDX-License-Identifier: MIT */
/*
 * Letting peers in: one listening socket per context. A connection must say a
 * whole hello with a nonce of ours within 10 s; then it goes to the owner of
 * its queue pair, or, if it was a question (probe.c), it is answered. Everything
 * else is dropped and does not matter.
 */
#include "transport/soft/helper.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELLO_TIME SLUICE_S(10)
#define PAUSE_TIME SLUICE_MS(100)
/* Full, a newcomer takes the place of one that has been silent for so long. */
#define SILENT_TIME SLUICE_S(1)
#define ACCEPTS 64

static int open_socket(int family)
{
    int fd = slu_fd_stream(family);
    int off = 0;
    if (fd >= 0 && family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    return fd;
}

/* Binds to an ephemeral port of the address, or of all, and listens. */
static int listen_at(const struct slu_address *address, int family)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    memcpy(&in6.sin6_addr, address->ip, 16);
    memcpy(&in4.sin_addr, address->ip, 4);
    int fd = open_socket(family);
    if (fd < 0)
        return -errno;
    int bound = family == AF_INET6 ? bind(fd, (struct sockaddr *)&in6, sizeof(in6))
                                   : bind(fd, (struct sockaddr *)&in4, sizeof(in4));
    if (bound == 0 && listen(fd, 4096) == 0)
        return fd;
    int err = -errno;
    slu_fd_close(fd);
    return err;
}

static uint16_t get_port(int fd)
{
    struct sockaddr_storage storage;
    socklen_t length = sizeof(storage);
    if (getsockname(fd, (struct sockaddr *)&storage, &length) != 0)
        return 0;
    if (storage.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&storage)->sin6_port);
    return ntohs(((struct sockaddr_in *)&storage)->sin_port);
}

static int fail_listen(const struct slu_address *listen, int err)
{
    char text[INET6_ADDRSTRLEN] = "any address";
    if (listen->family != 0)
        inet_ntop(listen->family == 6 ? AF_INET6 : AF_INET, listen->ip, text, sizeof(text));
    return slu_fail(err,
                    "cannot listen for peers at %s: %s (sluice_context_attr.address or "
                    "SLUICE_TCP_ADDRESS must be an address of this host)",
                    text, strerrordesc_np(err));
}

int slu_soft_listener_open(struct soft_context *context, int *fd)
{
    const struct slu_address *listen = &context->listen;
    bool ipv6 = listen->family != 4;
    int made = listen_at(listen, ipv6 ? AF_INET6 : AF_INET);
    if (made < 0 && listen->family == 0) {
        ipv6 = false;
        made = listen_at(listen, AF_INET);
    }
    if (made < 0)
        return fail_listen(listen, -made);
    uint16_t port = get_port(made);
    if (listen->family != 0) {
        context->addresses[0] = *listen;
        context->addresses[0].port = port;
    } else {
        slu_soft_addresses_find(context->addresses, ipv6, port);
    }
    *fd = made;
    return 0;
}

void slu_soft_half_open_close(struct soft_helper *helper, uint32_t index)
{
    /* close() alone does not do it while a forked child has the descriptor as well. */
    epoll_ctl(helper->epoll, EPOLL_CTL_DEL, helper->half_open[index].fd, NULL);
    slu_fd_close(helper->half_open[index].fd);
    helper->half_open[index].fd = -1;
    helper->half_open_count--;
}

/* A free place, made free if need be. HELPER_HALF_OPEN: none. */
static uint32_t find_place(struct soft_helper *helper, int64_t now)
{
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < HELPER_HALF_OPEN; i++) {
        if (helper->half_open[i].fd < 0)
            return i;
        if (helper->half_open[i].since < helper->half_open[oldest].since)
            oldest = i;
    }
    if (now - helper->half_open[oldest].since < SILENT_TIME)
        return HELPER_HALF_OPEN;
    slu_soft_half_open_close(helper, oldest);
    return oldest;
}

static void pause_listener(struct soft_helper *helper)
{
    slu_soft_helper_add(helper, EPOLL_CTL_MOD, helper->listener, 0, HELPER_LISTENER, 0);
    helper->paused = true;
    helper->pause_since = slu_now();
}

/* Accepts one. False: there are no more, or no more now. */
static bool accept_one(struct soft_helper *helper, int64_t now)
{
    uint32_t index = find_place(helper, now);
    if (index == HELPER_HALF_OPEN) {
        pause_listener(helper);
        return false;
    }
    int fd = slu_fd_accept(helper->listener, NULL, NULL);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            if (!helper->starved)
                slu_log(SLUICE_LOG_ERROR, "cannot let a peer in, trying again: %m");
            helper->starved = true;
            pause_listener(helper);
        }
        return errno == EINTR || errno == ECONNABORTED;
    }
    helper->starved = false;
    slu_soft_tcp_no_delay(fd);
    struct half_open *half = &helper->half_open[index];
    half->fd = fd;
    half->received = 0;
    half->since = now;
    helper->half_open_count++;
    if (slu_soft_helper_add(helper, EPOLL_CTL_ADD, fd, EPOLLIN, HELPER_HALF_OPEN_SLOT, index) != 0)
        slu_soft_half_open_close(helper, index);
    else
        slu_soft_half_open_event(helper, index); /* the hello is often there already */
    return true;
}

void slu_soft_listener_event(struct soft_helper *helper)
{
    int64_t now = slu_now();
    for (int i = 0; i < ACCEPTS && accept_one(helper, now); i++)
        ;
}

void slu_soft_listener_tick(struct soft_helper *helper)
{
    int64_t now = slu_now();
    for (uint32_t i = 0; i < HELPER_HALF_OPEN && helper->half_open_count > 0; i++) {
        const struct half_open *half = &helper->half_open[i];
        if (half->fd >= 0 && now - half->since >= HELLO_TIME)
            slu_soft_half_open_close(helper, i);
    }
    if (helper->paused && now - helper->pause_since >= PAUSE_TIME) {
        slu_soft_helper_add(helper, EPOLL_CTL_MOD, helper->listener, EPOLLIN, HELPER_LISTENER, 0);
        helper->paused = false;
    }
}

static bool welcome(int fd, uint32_t qpn)
{
    uint8_t bytes[TCP_WELCOME_BYTES];
    slu_soft_welcome_encode(qpn, bytes);
    return send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == (ssize_t)sizeof(bytes);
}

/* May the peer that asks still hope for this queue pair? */
static bool is_there(struct soft_context *context, const struct tcp_hello *hello)
{
    struct soft_qp *qp = slu_soft_qp_find(context, hello->target_qpn);
    if (qp == NULL)
        return false;
    unsigned state = atomic_load_explicit(&qp->state, memory_order_acquire);
    bool there =
        slu_soft_nonce_equal(qp->nonce, hello->target_nonce) &&
        (state == SLU_QP_PREPARED ||
         (state == SLU_QP_CONNECTED && slu_soft_nonce_equal(qp->peer_nonce, hello->own_nonce)));
    slu_soft_qp_release(qp);
    return there;
}

/* Gives the socket to the owner of the queue pair; false: it is not wanted any more. */
static bool hand_over(struct soft_helper *helper, const struct half_open *half)
{
    struct tcp_hello hello;
    if (!slu_soft_hello_decode(half->bytes, &hello))
        return false;
    if (hello.own_qpn == 0) {
        welcome(half->fd, is_there(helper->context, &hello) ? hello.target_qpn : 0);
        return false;
    }
    struct soft_qp *qp = slu_soft_qp_find(helper->context, hello.target_qpn);
    if (qp == NULL)
        return false;
    struct tcp_attach *attach = NULL;
    if (slu_soft_nonce_equal(qp->nonce, hello.target_nonce) && !slu_soft_in_error(qp) &&
        welcome(half->fd, hello.target_qpn))
        attach = malloc(sizeof(*attach));
    if (attach == NULL) {
        slu_soft_qp_release(qp);
        return false;
    }
    /* The message holds the queue pair from here. */
    *attach = (struct tcp_attach){
        .message = {.kind = SOFT_ATTACH, .to = qp}, .fd = half->fd, .hello = hello};
    epoll_ctl(helper->epoll, EPOLL_CTL_DEL, half->fd, NULL);
    slu_soft_send(slu_soft_cq_of(qp), &attach->message, NULL);
    return true;
}

void slu_soft_half_open_event(struct soft_helper *helper, uint32_t index)
{
    struct half_open *half = &helper->half_open[index];
    if (half->fd < 0)
        return;
    ssize_t got = recv(half->fd, half->bytes + half->received, TCP_HELLO_BYTES - half->received, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        half->received += (uint32_t)got;
    if (got > 0 && half->received < TCP_HELLO_BYTES &&
        slu_soft_hello_possible(half->bytes, half->received))
        return;
    if (got > 0 && half->received == TCP_HELLO_BYTES && hand_over(helper, half)) {
        half->fd = -1;
        helper->half_open_count--;
        return;
    }
    slu_soft_half_open_close(helper, index);
}
