/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/async_call.h"
#include "base/bytes.h"
#include "base/descriptor.h"
#include "base/environment.h"
#include "base/macros.h"
#include "connect/identity.h"

/* A Unix socket as text: @ and the digits of its number. */
#define UNIX_DIGITS 16

/* A query for the addresses of a host name. */
struct query {
    struct slu_async_call call;
    struct slu_host_port place;
    int result; /* of getaddrinfo(3) */
    struct addrinfo *list;
};

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool is_unix(const char *text)
{
    return text[0] == '@' && strlen(text) == 1 + UNIX_DIGITS &&
           strspn(text + 1, "0123456789abcdef") == UNIX_DIGITS;
}

bool slu_host_port_is_unix(const struct slu_host_port *place, struct slu_address *address)
{
    if (place->port[0] != '\0')
        return false;
    *address = (struct slu_address){.family = SLU_FAMILY_UNIX};
    slu_put(address->ip, strtoull(place->host + 1, NULL, 16), 8);
    return true;
}

int slu_host_port_parse(const char *text, uint32_t may, struct slu_host_port *place)
{
    const char *host = text;
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    uint32_t port;

    if ((may & SLU_HOST_PORT_UNIX) != 0 && is_unix(text)) {
        *place = (struct slu_host_port){0};
        memcpy(place->host, text, 1 + UNIX_DIGITS);
        return 0;
    }
    if (colon == NULL || length >= sizeof place->host)
        return -EINVAL;
    if (length > 2 && text[0] == '[' && colon[-1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(text, ':', length) != NULL) {
        return -EINVAL;
    }
    if (memchr(host, '[', length) != NULL || memchr(host, ']', length) != NULL)
        return -EINVAL;
    if (length == 0 && (may & SLU_HOST_PORT_LISTEN) == 0)
        return -EINVAL;
    if (strlen(colon + 1) > 5 ||
        slu_parse_number(colon + 1, (may & SLU_HOST_PORT_LISTEN) != 0 ? 0 : 1, 65535, &port) < 0)
        return is_number(colon + 1) ? -ERANGE : -EINVAL;
    memcpy(place->host, host, length);
    place->host[length] = '\0';
    snprintf(place->port, sizeof place->port, "%.5s", colon + 1);
    return 0;
}

static int resolve(const struct slu_host_port *place, int flags, struct addrinfo **list)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};

    *list = NULL;
    return slu_fd_find_addresses(place->host, place->port, &hints, list);
}

/* Runs in a thread of its own, because a name server may take long to answer. */
static int run_query(struct slu_async_call *call)
{
    struct query *query = slu_container_of(call, struct query, call);

    query->result = resolve(&query->place, 0, &query->list);
    return 0;
}

/* Frees an answer that came after the deadline. */
static void free_answer(struct slu_async_call *call)
{
    struct query *query = slu_container_of(call, struct query, call);

    if (query->list != NULL)
        freeaddrinfo(query->list);
}

int slu_host_port_resolve(const struct slu_host_port *place, int64_t until, struct addrinfo **list,
                          const char **why)
{
    static const char silent[] = "no name server has answered in time";
    struct query *query;
    int error;

    *why = NULL;
    if (resolve(place, AI_NUMERICHOST, list) == 0)
        return 0;
    query = malloc(sizeof *query);
    if (query == NULL)
        return slu_fail(ENOMEM, "no memory to look for %.128s", place->host);
    query->place = *place;
    query->list = NULL;
    slu_async_call_init(&query->call);
    query->call.wipe = free_answer;
    error = slu_async_call_start(&query->call, run_query);
    if (error == 0)
        error = slu_async_call_wait(&query->call, until, silent);
    if (error == -ETIMEDOUT) {
        *why = silent;
    } else if (error == 0 && query->result != 0) {
        *why = gai_strerror(query->result);
        error = -ENOENT;
    } else if (error == 0) {
        *list = query->list;
        query->list = NULL;
    }
    slu_async_call_drop(&query->call);
    return error;
}

struct slu_address slu_address_of(const struct sockaddr *sockaddr)
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
        if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
            address.scope = in6.sin6_scope_id;
    }
    return address;
}

int slu_address_parse(const char *text, const char *source, struct slu_address *address)
{
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, text, address->ip) == 1)
        address->family = 4;
    else if (inet_pton(AF_INET6, text, address->ip) == 1)
        address->family = 6;
    else
        return slu_fail(EINVAL, "%s \"%s\" is not a numeric IPv4 or IPv6 address", source, text);
    return 0;
}

bool slu_address_is_of_link(const struct slu_address *address)
{
    return address->family == 6 && address->ip[0] == 0xfe && (address->ip[1] & 0xc0) == 0x80;
}

int slu_address_check_scope(const struct slu_address *address, const char *name)
{
    if (address->scope != 0 || !slu_address_is_of_link(address))
        return 0;
    return slu_fail(EINVAL,
                    "%.128s is a link-local address, which several interfaces may have: name one, "
                    "as in [fe80::1%%eth0]:7471",
                    name);
}

bool slu_address_equal(const struct slu_address *a, const struct slu_address *b)
{
    return a->family == b->family && a->port == b->port && a->scope == b->scope &&
           memcmp(a->ip, b->ip, a->family == 4 ? 4 : 16) == 0;
}

uint32_t slu_addresses_of(const struct addrinfo *list, struct slu_address *addresses, uint32_t most)
{
    uint32_t count = 0;

    for (; list != NULL && count < most; list = list->ai_next) {
        struct slu_address address = slu_address_of(list->ai_addr);
        uint32_t i = 0;

        while (i < count && !slu_address_equal(&addresses[i], &address))
            i++;
        if (address.family != 0 && i == count)
            addresses[count++] = address;
    }
    return count;
}

static uint64_t unix_number(const struct slu_address *address)
{
    uint64_t number;

    slu_get(address->ip, &number, 8);
    return number;
}

const char *slu_address_ip(const struct slu_address *address, char text[SLU_ADDRESS_IP])
{
    if (address->family == 0)
        snprintf(text, SLU_ADDRESS_IP, "an unknown address");
    else if (address->family == SLU_FAMILY_UNIX)
        snprintf(text, SLU_ADDRESS_IP, "@%016" PRIx64, unix_number(address));
    else
        inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->ip, text, SLU_ADDRESS_IP);
    return text;
}

const char *slu_address_text(const struct slu_address *address, char text[SLU_ADDRESS_TEXT])
{
    char ip[SLU_ADDRESS_IP], scope[12] = "";

    slu_address_ip(address, ip);
    if (address->family == SLU_FAMILY_UNIX) {
        snprintf(text, SLU_ADDRESS_TEXT, "%s", ip);
        return text;
    }
    if (address->scope != 0)
        snprintf(scope, sizeof scope, "%%%u", address->scope);
    snprintf(text, SLU_ADDRESS_TEXT, address->family == 6 ? "[%s%s]:%u" : "%s%s:%u", ip, scope,
             (unsigned)address->port);
    return text;
}

struct slu_address slu_address_of_own(int fd)
{
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;

    getsockname(fd, (struct sockaddr *)&storage, &length);
    return slu_address_of((struct sockaddr *)&storage);
}

struct slu_address slu_address_of_peer(int fd)
{
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;

    getpeername(fd, (struct sockaddr *)&storage, &length);
    return slu_address_of((struct sockaddr *)&storage);
}

socklen_t slu_address_to(const struct slu_address *address, struct sockaddr_storage *storage)
{
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)storage;
    struct sockaddr_in *in4 = (struct sockaddr_in *)storage;

    memset(storage, 0, sizeof *storage);
    if (address->family == SLU_FAMILY_UNIX)
        return slu_identity_name(unix_number(address), (struct sockaddr_un *)storage);
    if (address->family == 6) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(address->port);
        in6->sin6_scope_id = address->scope;
        memcpy(&in6->sin6_addr, address->ip, 16);
        return sizeof *in6;
    }
    in4->sin_family = AF_INET;
    in4->sin_port = htons(address->port);
    memcpy(&in4->sin_addr, address->ip, 4);
    return sizeof *in4;
}
