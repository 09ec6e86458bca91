/* SPDX-License-Identifier: MIT */
/*
 * Where a peer listens, as text: "host:port", "[::1]:port" or ":port"; or a Unix socket without a
 * file, "@0123456789abcdef". And its addresses.
 */
#ifndef SLU_CONNECT_ADDRESS_H
#define SLU_CONNECT_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "endpoint/endpoint.h"

struct slu_host_port {
    char host[256]; /* empty: all addresses of this host */
    char port[6];   /* empty: host is a Unix socket */
};

/* Allows an empty host, and port 0. */
#define SLU_HOST_PORT_LISTEN 1U
/* Allows a Unix socket. */
#define SLU_HOST_PORT_UNIX 2U
/*
 * Parses "host:port". Returns 0; or without a text -EINVAL, or -ERANGE for a number that is no
 * port.
 */
int slu_host_port_parse(const char *text, uint32_t may, struct slu_host_port *place);

/* Tells whether this is a Unix socket, and sets its address. */
bool slu_host_port_is_unix(const struct slu_host_port *place, struct slu_address *address);

/*
 * Resolves the host, for freeaddrinfo(3). Returns 0; -ENOENT if it has no address, or -ETIMEDOUT if
 * no name server answered in time, both with *why set to a static text; or -ENOMEM, with a text and
 * *why NULL. A numeric address needs no query; a name is resolved in a thread of its own.
 */
int slu_host_port_resolve(const struct slu_host_port *place, int64_t until, struct addrinfo **list,
                          const char **why);
/* Copies at most `most` different addresses of the list. Returns how many. */
uint32_t slu_addresses_of(const struct addrinfo *list, struct slu_address *addresses,
                          uint32_t most);

/* Parses a numeric address. Returns 0, or -EINVAL with a text that names the source. */
int slu_address_parse(const char *text, const char *source, struct slu_address *address);
/* Tells whether the address is link-local: then it depends on the interface where it leads. */
bool slu_address_is_of_link(const struct slu_address *address);
/*
 * Fails with -EINVAL and a text if a link-local address names no interface, without which it leads
 * nowhere.
 */
int slu_address_check_scope(const struct slu_address *address, const char *name);
/* Converts an address. An IPv4 address mapped into IPv6 becomes an IPv4 address. */
struct slu_address slu_address_of(const struct sockaddr *sockaddr);
bool slu_address_equal(const struct slu_address *a, const struct slu_address *b);
/*
 * Writes "192.0.2.1:7471", "[fe80::1%2]:7471" with the index of an interface, or a Unix socket;
 * returns text.
 */
#define SLU_ADDRESS_TEXT 64
const char *slu_address_text(const struct slu_address *address, char text[SLU_ADDRESS_TEXT]);
/* Writes the IP address alone, or the Unix socket; returns text. */
#define SLU_ADDRESS_IP 46
const char *slu_address_ip(const struct slu_address *address, char text[SLU_ADDRESS_IP]);
/* Return the address of a socket, and of its peer; family 0 if it has no IP address. */
struct slu_address slu_address_of_own(int fd);
struct slu_address slu_address_of_peer(int fd);
/* Converts an address for system calls. Returns its length. */
socklen_t slu_address_to(const struct slu_address *address, struct sockaddr_storage *storage);

#endif
