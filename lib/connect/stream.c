/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/stream.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/descriptor.h"
#include "connect/address.h"
#include "connect/identity.h"

#define BACKLOG 4096
/*
 * A connect to an address that drops all packets fails after 7 s, and not after the system's 2
 * minutes.
 */
#define SYN_RETRIES 2

int slu_stream_hear(int fd, uint8_t **bytes, size_t *count)
{
    while (*count > 0) {
        ssize_t got = recv(fd, *bytes, *count, MSG_DONTWAIT);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN ? 0 : -errno;
        if (got == 0)
            return -ECONNRESET;
        *bytes += got;
        *count -= (size_t)got;
    }
    return 0;
}

enum slu_talk_state slu_talk_hear(struct slu_talk *talk)
{
    uint8_t *at = talk->bytes + talk->got;
    size_t left = talk->got < talk->want ? talk->want - talk->got : 0;
    int error = slu_stream_hear(talk->fd, &at, &left);

    talk->got = talk->want - (uint32_t)left;
    if (error < 0)
        return SLU_TALK_ENDED;
    return left > 0 ? SLU_TALK_MORE : SLU_TALK_WHOLE;
}

static bool say(int fd, const void *bytes, uint32_t count, int flags)
{
    ssize_t sent;

    do
        sent = send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)count;
}

bool slu_talk_say(const struct slu_talk *talk, const void *bytes, uint32_t count)
{
    return say(talk->fd, bytes, count, 0);
}

bool slu_talk_begin(const struct slu_talk *talk, const void *bytes, uint32_t count)
{
    return say(talk->fd, bytes, count, MSG_MORE);
}

void slu_talk_close(struct slu_talk *talk)
{
    if (talk->fd < 0)
        return;
    slu_fd_close(talk->fd);
    talk->fd = -1;
}

uint16_t slu_stream_port(int fd)
{
    struct sockaddr_storage storage;
    socklen_t length = sizeof storage;

    if (getsockname(fd, (struct sockaddr *)&storage, &length) != 0)
        return 0;
    if (storage.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&storage)->sin6_port);
    return ntohs(((struct sockaddr_in *)&storage)->sin_port);
}

static socklen_t make_sockaddr(const struct slu_address *address, struct sockaddr_storage *storage)
{
    memset(storage, 0, sizeof *storage);
    if (address->family == 6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)storage;

        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(address->port);
        in6->sin6_scope_id = address->scope;
        memcpy(&in6->sin6_addr, address->ip, 16);
        return sizeof *in6;
    } else {
        struct sockaddr_in *in4 = (struct sockaddr_in *)storage;

        in4->sin_family = AF_INET;
        in4->sin_port = htons(address->port);
        memcpy(&in4->sin_addr, address->ip, 4);
        return sizeof *in4;
    }
}

static int listen_at(int fd, const struct sockaddr *address, socklen_t length)
{
    int error;

    if (fd < 0)
        return -errno;
    if (bind(fd, address, length) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    error = -errno;
    slu_fd_close(fd);
    return error;
}

int slu_stream_listen(const struct slu_address *address, bool ipv6)
{
    struct slu_address at = *address;
    struct sockaddr_storage storage;
    socklen_t length;
    int fd, off = 0;

    at.family = ipv6 ? 6 : 4;
    length = make_sockaddr(&at, &storage);
    fd = slu_fd_stream(storage.ss_family);
    if (fd >= 0 && ipv6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    return listen_at(fd, (struct sockaddr *)&storage, length);
}

int slu_stream_listen_again(const struct slu_address *address)
{
    struct sockaddr_storage storage;
    socklen_t length = make_sockaddr(address, &storage);
    int fd = slu_fd_stream(storage.ss_family), off = 0, on = 1;

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (address->family == 6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    return listen_at(fd, (struct sockaddr *)&storage, length);
}

int slu_stream_listen_all(uint16_t port)
{
    int fd = slu_stream_listen_again(&(struct slu_address){.family = 6, .port = port, .ip = {0}});

    if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
        return fd;
    return slu_stream_listen_again(&(struct slu_address){.family = 4, .port = port, .ip = {0}});
}

int slu_stream_listen_here(uint64_t listener)
{
    struct sockaddr_un address;
    socklen_t length = slu_identity_name(listener, &address);

    return listen_at(slu_fd_stream(AF_UNIX), (struct sockaddr *)&address, length);
}

static int dial_at(int fd, const struct sockaddr *address, socklen_t length)
{
    int error;

    if (fd < 0)
        return -errno;
    if (connect(fd, address, length) == 0 || errno == EINPROGRESS || errno == EINTR)
        return fd;
    error = -errno;
    slu_fd_close(fd);
    return error;
}

int slu_stream_dial(const struct slu_address *address)
{
    struct sockaddr_storage storage;
    socklen_t length = make_sockaddr(address, &storage);
    int retries = SYN_RETRIES;
    int fd = slu_fd_stream(storage.ss_family);

    if (fd >= 0) {
        slu_stream_no_delay(fd);
        setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof retries);
    }
    return dial_at(fd, (struct sockaddr *)&storage, length);
}

int slu_stream_dial_here(uint64_t listener)
{
    struct sockaddr_un address;
    socklen_t length = slu_identity_name(listener, &address);

    return dial_at(slu_fd_stream(AF_UNIX), (struct sockaddr *)&address, length);
}

int slu_stream_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void slu_stream_no_delay(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* An IPv4 address is compared by the bytes of its mapped form. */
static bool same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                      &((const struct sockaddr_in6 *)b)->sin6_addr, 16) == 0;
    return memcmp(&((const struct sockaddr_in *)a)->sin_addr,
                  &((const struct sockaddr_in *)b)->sin_addr, 4) == 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

    if (address->ss_family == AF_INET)
        return *(const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr == 127;
    return IN6_IS_ADDR_LOOPBACK(in6) || (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
}

bool slu_stream_is_local(int fd)
{
    struct sockaddr_storage own, other;
    socklen_t own_length = sizeof own, other_length = sizeof other;

    /* A packet to an address of this host has that address as its source. */
    return getsockname(fd, (struct sockaddr *)&own, &own_length) != 0 ||
           getpeername(fd, (struct sockaddr *)&other, &other_length) != 0 ||
           same_ip(&own, &other) || is_loopback(&other);
}

bool slu_stream_ended(int fd)
{
    uint8_t byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* Appends the addresses of a family, 4 or 6, behind the first count. Returns the new count. */
static uint32_t take_family(const struct ifaddrs *list, uint16_t family, uint16_t port,
                            struct slu_address *addresses, uint32_t count, uint32_t most)
{
    for (; list != NULL && count < most; list = list->ifa_next) {
        struct slu_address address;

        if (list->ifa_addr == NULL || (list->ifa_flags & IFF_UP) == 0 ||
            (list->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        address = slu_address_of(list->ifa_addr);
        /* A link-local IPv6 address means nothing to others, without the interface. */
        if (address.family != family ||
            (family == 6 && address.ip[0] == 0xfe && (address.ip[1] & 0xc0) == 0x80))
            continue;
        address.port = port;
        addresses[count++] = address;
    }
    return count;
}

uint32_t slu_stream_addresses(struct slu_address *addresses, uint32_t most, bool with_ipv6,
                              uint16_t port)
{
    struct ifaddrs *list;
    uint32_t count = 0;

    if (slu_fd_list_interfaces(&list) == 0) {
        count = take_family(list, 4, port, addresses, count, most);
        if (with_ipv6)
            count = take_family(list, 6, port, addresses, count, most);
        freeifaddrs(list);
    }
    if (count == 0)
        addresses[count++] = (struct slu_address){.family = 4, .port = port, .ip = {127, 0, 0, 1}};
    return count;
}
