/* SPDX-License-Identifier: MIT */
/* Addresses as the pretended rdma_cm reads them. */
#ifndef FAKE_ADDRESS_H
#define FAKE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t *port_of(struct sockaddr *address)
{
    return address->sa_family == AF_INET ? &((struct sockaddr_in *)address)->sin_port
                                         : &((struct sockaddr_in6 *)address)->sin6_port;
}

static inline void copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
    memcpy(to, from,
           from->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
}

/* As the kernel requires. */
static inline bool has_no_scope(const struct sockaddr *address)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) &&
           in6->sin6_scope_id == 0;
}

static inline bool is_any(const struct sockaddr *address)
{
    return address->sa_family == AF_INET
               ? ((const struct sockaddr_in *)address)->sin_addr.s_addr == 0
               : IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

#endif
