/* SPDX-License-Identifier: MIT */
/* Where rank 0 is: its root in words, and the socket it listens at. */
#include "config.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/awaited.h"
#include "exchange/tcp.h"

#define BACKLOG 4096
/* For what is only to make a text better. */
#define NAME_TIME SLUICE_S(1)

/* What a host knows of a name. */
struct question {
    struct slu_awaited awaited;
    struct tcp_place place;
    int result; /* as of getaddrinfo(3) */
    struct addrinfo *list;
};

static bool is_port(const char *text)
{
    size_t length = strspn(text, "0123456789");
    long port = length > 0 && length <= 5 && text[length] == '\0' ? strtol(text, NULL, 10) : 0;

    return port >= 1 && port <= 65535;
}

int slu_tcp_place_parse(const char *root, struct tcp_place *place)
{
    const char *host = root;
    const char *colon = strrchr(root, ':');
    size_t length = colon != NULL ? (size_t)(colon - root) : 0;

    if (length > 2 && root[0] == '[' && colon[-1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(root, ':', length) != NULL) {
        length = 0;
    }
    if (length == 0 || length >= sizeof place->host || !is_port(colon + 1))
        return slu_fail(EINVAL, "root \"%s\" is not host:port, or [1:2::3]:port for IPv6", root);
    memcpy(place->host, host, length);
    place->host[length] = '\0';
    snprintf(place->port, sizeof place->port, "%.5s", colon + 1);
    return 0;
}

static int bind_one(const struct addrinfo *info)
{
    int one = 1, zero = 0;
    int fd = slu_fd_stream(info->ai_family);
    int error;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    error = -errno;
    slu_fd_close(fd);
    return error;
}

/*
 * A name is for the others to find us by; on this host it often means a loopback
 * address, at which they would not. So it stands for all addresses.
 */
static bool is_for_all(const char *host)
{
    uint8_t address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, address) != 1 && inet_pton(AF_INET6, host, address) != 1 &&
           strchr(host, '%') == NULL && strcmp(host, "localhost") != 0;
}

/* The first address of the list that can be bound. */
static int bind_any(const char *host, const char *port, int family)
{
    struct addrinfo hints = {
        .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list;
    int fd = -EADDRNOTAVAIL;
    int error = slu_fd_find_addresses(host, port, &hints, &list);

    if (error != 0)
        return error == EAI_MEMORY ? -ENOMEM : -EADDRNOTAVAIL;
    for (const struct addrinfo *info = list; info != NULL && fd < 0; info = info->ai_next) {
        fd = bind_one(info);
        if (fd == -EADDRINUSE)
            break;
    }
    freeaddrinfo(list);
    return fd;
}

/* What is left is a root that is not on this host, or a port that is not ours to have. */
static int fail_listen(const struct tcp_place *place, int error, const char *source)
{
    if (error == EADDRINUSE && source != NULL)
        return slu_fail(EADDRINUSE,
                        "port %s is in use: rank 0 cannot listen at %.128s; give all ranks another "
                        "port in %s",
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

static int look_up(const struct tcp_place *place, int flags, struct addrinfo **list)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};

    *list = NULL;
    return slu_fd_find_addresses(place->host, place->port, &hints, list);
}

/* In a thread of its own: a name server may not answer for long. */
static int answer(struct slu_awaited *awaited)
{
    struct question *question = slu_container_of(awaited, struct question, awaited);

    question->result = look_up(&question->place, 0, &question->list);
    return 0;
}

/* An answer that came too late, or that nobody could hear. */
static void forget_answer(struct slu_awaited *awaited)
{
    struct question *question = slu_container_of(awaited, struct question, awaited);

    if (question->list != NULL)
        freeaddrinfo(question->list);
}

int slu_tcp_find(const struct tcp_place *place, int64_t until, struct addrinfo **list,
                 const char **why)
{
    static const char silent[] = "no name server answers";
    struct question *question;
    int error;

    *why = NULL;
    /* An address asks nobody. */
    if (look_up(place, AI_NUMERICHOST, list) == 0)
        return 0;
    question = malloc(sizeof *question);
    if (question == NULL)
        return slu_fail(ENOMEM, "no memory to look for %.128s", place->host);
    question->place = *place;
    question->list = NULL;
    slu_awaited_init(&question->awaited);
    question->awaited.wipe = forget_answer;
    error = slu_awaited_start(&question->awaited, answer);
    if (error == 0)
        error = slu_awaited_wait(&question->awaited, until, silent);
    if (error == -ETIMEDOUT) {
        *why = silent;
    } else if (error == 0 && question->result != 0) {
        *why = gai_strerror(question->result);
        error = -ENOENT;
    } else if (error == 0) {
        *list = question->list;
        question->list = NULL;
    }
    slu_awaited_drop(&question->awaited);
    return error;
}

const char *slu_tcp_name_error(const struct tcp_place *place)
{
    struct addrinfo *list;
    const char *why;
    int error;

    if (!is_for_all(place->host))
        return NULL;
    error = slu_tcp_find(place, slu_after(NAME_TIME), &list, &why);
    if (error == 0)
        freeaddrinfo(list);
    return error == -ENOENT ? why : NULL;
}

const char *slu_tcp_root_text(const struct tcp *tcp, char text[TCP_ROOT_TEXT])
{
    snprintf(text, TCP_ROOT_TEXT, "%.100s%s%s", tcp->root, tcp->root_source != NULL ? ", of " : "",
             tcp->root_source != NULL ? tcp->root_source : "");
    return text;
}

int slu_tcp_listen(const struct tcp_place *place, const char *source)
{
    int fd;

    if (is_for_all(place->host)) {
        fd = bind_any(NULL, place->port, AF_INET6);
        if (fd < 0 && fd != -EADDRINUSE)
            fd = bind_any(NULL, place->port, AF_INET);
    } else {
        fd = bind_any(place->host, place->port, AF_UNSPEC);
    }
    return fd < 0 ? fail_listen(place, -fd, source) : fd;
}

struct slu_address slu_tcp_address(const struct sockaddr *sockaddr)
{
    struct slu_address address = {0};
    struct sockaddr_in6 in6;
    struct sockaddr_in in4;

    if (sockaddr->sa_family == AF_INET) {
        memcpy(&in4, sockaddr, sizeof in4);
        address.family = 4;
        address.port = ntohs(in4.sin_port);
        memcpy(address.ip, &in4.sin_addr, 4);
    } else if (sockaddr->sa_family == AF_INET6) {
        memcpy(&in6, sockaddr, sizeof in6);
        address.family = IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr) ? 4 : 6;
        address.port = ntohs(in6.sin6_port);
        memcpy(address.ip, in6.sin6_addr.s6_addr + (address.family == 4 ? 12 : 0),
               address.family == 4 ? 4 : 16);
    }
    return address;
}

const char *slu_tcp_address_text(const struct slu_address *address, char text[TCP_ADDRESS_TEXT])
{
    char ip[INET6_ADDRSTRLEN] = "an unknown address";

    if (address->family != 0)
        inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->ip, ip, sizeof ip);
    snprintf(text, TCP_ADDRESS_TEXT, address->family == 6 ? "[%s]:%u" : "%s:%u", ip,
             (unsigned)address->port);
    return text;
}

/* Small frames go at once; a host that is gone is noticed though nobody sends. */
void slu_tcp_set_options(int fd)
{
    int one = 1, idle = 10, interval = 5, count = 3;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}
