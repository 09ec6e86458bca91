/* SPDX-License-Identifier: MIT */
/* Where somebody listens, in words: "host:port", "[::1]:port" or ":port"; and its addresses. */
#ifndef SLU_CONNECT_ADDRESS_H
#define SLU_CONNECT_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "endpoint/endpoint.h"

struct slu_host_port {
    char host[256]; /* empty: all addresses of this host */
    char port[6];
};

/* What it may leave out: a port may be 0, the host be empty. */
#define SLU_HOST_PORT_LISTEN 1U
/* 0, or without a text -EINVAL, or -ERANGE: its port is a number that cannot be. */
int slu_host_port_parse(const char *text, uint32_t may, struct slu_host_port *where);

/*
 * The addresses of its host, for freeaddrinfo(3): 0; -ENOENT: it has none, and *why is the
 * reason, static; -ETIMEDOUT: nobody has answered until then, as *why says; -ENOMEM, with
 * a text. An address asks nobody; a name is asked for in a thread of its own.
 */
int slu_host_port_resolve(const struct slu_host_port *where, int64_t until, struct addrinfo **list,
                          const char **why);
/* The first so many of the list: how many. */
uint32_t slu_addresses_of(const struct addrinfo *list, struct slu_address *addresses,
                          uint32_t most);

/* A numeric address and nothing else: 0, or -EINVAL with a text that says whose it is. */
int slu_address_parse(const char *text, const char *source, struct slu_address *address);
/* It is of one link: what it leads to depends on the interface. */
bool slu_address_is_of_link(const struct slu_address *address);
/* It is link-local and names no interface, without which it leads nowhere: -EINVAL with a text. */
int slu_address_check_scope(const struct slu_address *address, const char *name);
/* An IPv4 address that is mapped into IPv6 is one of IPv4. */
struct slu_address slu_address_of(const struct sockaddr *sockaddr);
bool slu_address_equal(const struct slu_address *a, const struct slu_address *b);
/* "192.0.2.1:7471", "[fe80::1%2]:7471" with the index of an interface; returns text. */
#define SLU_ADDRESS_TEXT 64
const char *slu_address_text(const struct slu_address *address, char text[SLU_ADDRESS_TEXT]);
/* The other end of a socket; family 0: it is none of IP. */
struct slu_address slu_address_of_peer(int fd);

#endif
