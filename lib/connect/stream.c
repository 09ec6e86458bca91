/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/stream.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/uncancelled.h"
#include "connect/address.h"
#include "connect/identity.h"

#define BACKLOG 4096
/*
 * A connect to an address that drops all packets fails after 7 s, and not after the system's 2
 * minutes.
 */
#define SYN_RETRIES 2
#define MEMORY_PAUSES 20

int slu_stream_receive(int fd, uint8_t **bytes, size_t *count)
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

enum slu_talk_state slu_talk_receive(struct slu_talk *talk)
{
    uint8_t *at = talk->bytes + talk->got;
    size_t left = talk->got < talk->want ? talk->want - talk->got : 0;
    int error = slu_stream_receive(talk->fd, &at, &left);

    talk->got = talk->want - (uint32_t)left;
    if (error < 0)
        return SLU_TALK_ENDED;
    return left > 0 ? SLU_TALK_MORE : SLU_TALK_WHOLE;
}

bool slu_stream_pause(int error, uint32_t *pauses)
{
    if ((error != EAGAIN && !slu_is_shortage(error)) || ++*pauses > MEMORY_PAUSES)
        return false;
    (void)!SLU_UNCANCELLED(poll(NULL, 0, 1));
    return true;
}

static bool say(int fd, const void *bytes, uint32_t count, int flags)
{
    const uint8_t *at = bytes;
    uint32_t pauses = 0;

    while (count > 0) {
        ssize_t sent = send(fd, at, count, MSG_NOSIGNAL | MSG_DONTWAIT | flags);

        if (sent < 0 && errno != EINTR && !slu_stream_pause(errno, &pauses))
            return false;
        if (sent > 0) {
            at += sent;
            count -= (uint32_t)sent;
        }
    }
    return true;
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
    return slu_address_of_own(fd).port;
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

static int listen_tcp(const struct slu_address *address, bool again)
{
    struct sockaddr_storage storage;
    socklen_t length = slu_address_to(address, &storage);
    int fd = slu_fd_stream(storage.ss_family), off = 0, on = 1;

    if (fd >= 0 && again)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 && address->family == 6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    return listen_at(fd, (struct sockaddr *)&storage, length);
}

int slu_stream_listen(const struct slu_address *address, bool ipv6)
{
    struct slu_address at = *address;

    at.family = ipv6 ? 6 : 4;
    return listen_tcp(&at, false);
}

int slu_stream_listen_again(const struct slu_address *address)
{
    return listen_tcp(address, true);
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
    socklen_t length = slu_address_to(address, &storage);
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

static bool is_loopback(const struct slu_address *address)
{
    static const uint8_t loopback6[16] = {[15] = 1};

    return address->family == 4 ? address->ip[0] == 127
                                : memcmp(address->ip, loopback6, sizeof loopback6) == 0;
}

bool slu_stream_is_local(int fd)
{
    struct slu_address own = slu_address_of_own(fd), other = slu_address_of_peer(fd);

    /* A packet to an address of this host has that address as its source. */
    own.port = other.port;
    return own.family == 0 || other.family == 0 || slu_address_equal(&own, &other) ||
           is_loopback(&other);
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
        if (address.family != family || slu_address_is_of_link(&address))
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
