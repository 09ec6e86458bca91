/* SPDX-License-Identifier: MIT */
/* Listening of rank 0, and the check that it has enough file descriptors. */
#include "config.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "connect/dial.h"
#include "connect/stream.h"
#include "exchange/tcp.h"

/* To resolve localhost, and names for error texts. */
#define NAME_TIME SLUICE_S(1)

/*
 * A name is meant for the other ranks. On this host it often resolves to a loopback address, where
 * they cannot connect. So a name means all addresses of this host.
 */
static bool is_for_all(const char *host)
{
    uint8_t address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, address) != 1 && inet_pton(AF_INET6, host, address) != 1 &&
           strchr(host, '%') == NULL && strcmp(host, "localhost") != 0;
}

/* The other errors mean a root that is not on this host, or a port that this user may not use. */
static int fail_listen(const struct slu_host_port *place, int error, const char *source)
{
    if (error == EADDRINUSE && source != NULL)
        return slu_fail(EADDRINUSE,
                        "port %s is in use: rank 0 cannot listen at %.128s; give all ranks another "
                        "port in %s, or see whether another process says that it is rank 0",
                        place->port, place->host,
                        strcmp(source, "sluice_exchange_attr.root") == 0 ? source : "SLUICE_ROOT");
    if (error == EADDRINUSE)
        return slu_fail(EADDRINUSE, "port %s is in use: rank 0 cannot listen at %.128s",
                        place->port, place->host);
    return slu_fail(error == EADDRNOTAVAIL || error == EACCES ? EINVAL : error,
                    "rank 0 cannot listen at %.128s, port %s: %s%s%s", place->host, place->port,
                    strerrordesc_np(error), source != NULL ? "; it is named by " : "",
                    source != NULL ? source : "");
}

const char *slu_tcp_name_error(const struct slu_host_port *place)
{
    struct addrinfo *list;
    const char *why;
    int error;

    if (place->port[0] == '\0' || !is_for_all(place->host))
        return NULL;
    error = slu_host_port_resolve(place, slu_after(NAME_TIME), &list, &why);
    if (error == 0)
        freeaddrinfo(list);
    return error == -ENOENT ? why : NULL;
}

/* Listens at the first of its addresses that can be bound. */
static int listen_at(const struct slu_host_port *place)
{
    struct slu_address addresses[SLU_DIAL_MOST];
    struct addrinfo *list;
    const char *why;
    int error = slu_host_port_resolve(place, slu_after(NAME_TIME), &list, &why),
        fd = -EADDRNOTAVAIL;
    uint32_t count;

    if (error < 0)
        return error == -ENOMEM ? error : -EADDRNOTAVAIL;
    count = slu_addresses_of(list, addresses, SLU_DIAL_MOST);
    freeaddrinfo(list);
    for (uint32_t i = 0; i < count && fd < 0 && fd != -EADDRINUSE; i++)
        fd = slu_stream_listen_again(&addresses[i]);
    return fd;
}

/* Ranks of one host can meet without a network. */
static int listen_unix(const struct slu_address *address)
{
    char text[SLU_ADDRESS_TEXT];
    uint64_t number;
    int fd;

    slu_get(address->ip, &number, 8);
    fd = slu_stream_listen_here(number);
    return fd >= 0 ? fd
                   : slu_fail(-fd, "rank 0 cannot listen at the Unix socket %s: %s",
                              slu_address_text(address, text), strerrordesc_np(-fd));
}

int slu_tcp_listen(const struct slu_host_port *place, const char *source)
{
    struct slu_address address;
    int fd;

    if (slu_host_port_is_unix(place, &address))
        return listen_unix(&address);
    fd = is_for_all(place->host) ? slu_stream_listen_all((uint16_t)atoi(place->port))
                                 : listen_at(place);

    return fd < 0 ? fail_listen(place, -fd, source) : fd;
}

/* Each rank takes a file descriptor. Failing now is better than when most ranks have come. */
static int check_limit(const struct tcp *tcp)
{
    uint64_t needed = tcp->ranks - 1 + (tcp->listener < 0);
    uint64_t limit, left = slu_fd_count_left(&limit);

    if (needed <= left)
        return 0;
    return slu_fail(EMFILE,
                    "rank 0 of %u ranks needs %llu file descriptors and has %llu in use, but the "
                    "limit is %llu: set ulimit -n to at least %llu",
                    tcp->ranks, (unsigned long long)needed, (unsigned long long)(limit - left),
                    (unsigned long long)limit, (unsigned long long)(limit - left + needed));
}

int slu_tcp_listen_root(struct tcp *tcp)
{
    int error = check_limit(tcp);

    if (error == 0 && tcp->listener < 0)
        tcp->listener = slu_tcp_listen(&tcp->places[0], tcp->root_source);
    if (error < 0 || tcp->listener < 0)
        return error < 0 ? error : tcp->listener;
    slu_tcp_set_options(tcp->listener);
    return 0;
}

/* Small frames are sent at once. Keep-alive notices a lost host even if no rank sends. */
void slu_tcp_set_options(int fd)
{
    int one = 1, idle = 10, interval = 5, count = 3;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}
