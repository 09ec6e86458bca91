/* SPDX-License-Identifier: MIT */
/*
 * Sockets on their way to become connections: addresses, and what is heard before
 * there is any trust. Nothing here blocks.
 */
#ifndef SLU_CONNECT_STREAM_H
#define SLU_CONNECT_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "endpoint/endpoint.h"

/* The longest that is said before a side is believed: a hello, a challenge and a proof. */
#define SLU_TALK_BYTES 256

/* What a stranger has said, and how much he is to say; never a length that he told. */
struct slu_talk {
    int fd; /* -1: none */
    uint32_t got, want;
    uint8_t bytes[SLU_TALK_BYTES];
};

/*
 * What is there, up to *count bytes, by which both are moved on: 0, whether or not that was
 * all; or a negative errno, and there will be no more.
 */
int slu_stream_hear(int fd, uint8_t **bytes, size_t *count);

/* SLU_TALK_MORE: not all of it yet. SLU_TALK_ENDED: there will be no more. */
enum slu_talk_state { SLU_TALK_MORE, SLU_TALK_WHOLE, SLU_TALK_ENDED };
enum slu_talk_state slu_talk_hear(struct slu_talk *talk);
/* What fits a fresh socket: all goes, or false. */
bool slu_talk_say(const struct slu_talk *talk, const void *bytes, uint32_t count);
/* The same, in one packet with what is said next, which must be at once. */
bool slu_talk_begin(const struct slu_talk *talk, const void *bytes, uint32_t count);
/* Ends it at once: neither side keeps anything of it. */
void slu_talk_close(struct slu_talk *talk);

/* Listening sockets at an ephemeral port, or a negative errno. Family 0 of the address: all. */
int slu_stream_listen(const struct slu_address *address, bool ipv6);
/* At a port that may have been used a moment ago; [::] is of both families. */
int slu_stream_listen_again(const struct slu_address *address);
/* The same at all addresses, of IPv4 alone where there is no IPv6. */
int slu_stream_listen_all(uint16_t port);
int slu_stream_listen_here(uint64_t listener); /* a Unix socket of that name */
uint16_t slu_stream_port(int fd);
/* Begins to connect: a socket, or a negative errno; -EAGAIN: the other has no room now. */
int slu_stream_dial(const struct slu_address *address);
int slu_stream_dial_here(uint64_t listener);
int slu_stream_error(int fd); /* a positive errno; 0: none */
void slu_stream_no_delay(int fd);
/* Whether the other end of a TCP connection is an address of this network itself. */
bool slu_stream_is_local(int fd);
/* Whether the peer has ended, and all that it said before was read. */
bool slu_stream_ended(int fd);

/*
 * Addresses of this host, for others, those of IPv4 first; how many. That of the loopback stands
 * for a host without a network.
 */
uint32_t slu_stream_addresses(struct slu_address *addresses, uint32_t most, bool with_ipv6,
                              uint16_t port);

#endif
