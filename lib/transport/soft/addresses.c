/* SPDX-License-Identifier: MIT */
/* The addresses of this host that peers are told of. */
#include "transport/soft/helper.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

/* A usable address of the family, 4 or 6? */
static bool take_address(const struct ifaddrs *entry, uint16_t family, struct slu_address *address)
{
    if (entry->ifa_addr == NULL || (entry->ifa_flags & IFF_UP) == 0 ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0)
        return false;
    if (family == 4 && entry->ifa_addr->sa_family == AF_INET) {
        memcpy(address->ip, &((struct sockaddr_in *)(void *)entry->ifa_addr)->sin_addr, 4);
        return true;
    }
    if (family == 6 && entry->ifa_addr->sa_family == AF_INET6) {
        const struct in6_addr *in6 = &((struct sockaddr_in6 *)(void *)entry->ifa_addr)->sin6_addr;
        memcpy(address->ip, in6, 16);
        return !IN6_IS_ADDR_LINKLOCAL(in6) && !IN6_IS_ADDR_LOOPBACK(in6);
    }
    return false;
}

static uint32_t take_family(const struct ifaddrs *list, uint16_t family, uint16_t port,
                            struct slu_address *addresses, uint32_t count)
{
    for (; list != NULL && count < SLU_ENDPOINT_ADDRESSES; list = list->ifa_next) {
        struct slu_address address = {.family = family, .port = port};
        if (take_address(list, family, &address))
            addresses[count++] = address;
    }
    return count;
}

void slu_soft_addresses_find(struct slu_address *addresses, bool with_ipv6, uint16_t port)
{
    struct ifaddrs *list;
    uint32_t count = 0;
    if (slu_fd_list_interfaces(&list) == 0) {
        count = take_family(list, 4, port, addresses, count);
        if (with_ipv6)
            count = take_family(list, 6, port, addresses, count);
        freeifaddrs(list);
    }
    if (count == 0)
        addresses[0] = (struct slu_address){4, port, {127, 0, 0, 1}};
}
