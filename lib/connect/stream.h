/* SPDX-License-Identifier: MIT */
/*
 * Sockets before a connection is trusted: addresses, listening, dialing, and the bytes of the
 * handshake. No function blocks.
 */
#ifndef SLU_CONNECT_STREAM_H
#define SLU_CONNECT_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "endpoint/endpoint.h"

/* The longest handshake before a side is believed: a hello, a challenge and a proof. */
#define SLU_TALK_BYTES 256

/*
 * Bytes from a peer that is not trusted, and how many to receive; never a length that the peer
 * sent.
 */
struct slu_talk {
    int fd; /* -1: none */
    uint32_t got, want;
    uint8_t bytes[SLU_TALK_BYTES];
};

/*
 * Receives what is there, up to *count bytes, and advances both. Returns 0, even if more is to
 * come; or a negative errno value if no more will come.
 */
int slu_stream_receive(int fd, uint8_t **bytes, size_t *count);

/* SLU_TALK_MORE: more is to come. SLU_TALK_ENDED: no more will come. */
enum slu_talk_state { SLU_TALK_MORE, SLU_TALK_WHOLE, SLU_TALK_ENDED };
enum slu_talk_state slu_talk_receive(struct slu_talk *talk);
/*
 * Of a send that failed where the socket has room: it lacks nothing but memory of the system, about
 * which there are no events. Pauses a millisecond, and returns whether to send again, for 20 times.
 */
bool slu_stream_pause(int error, uint32_t *pauses);
/* Sends all, or returns false. Use it only for what fits the buffer of a new socket. */
bool slu_talk_say(const struct slu_talk *talk, const void *bytes, uint32_t count);
/* The same, in one packet with the next bytes, which must follow at once. */
bool slu_talk_begin(const struct slu_talk *talk, const void *bytes, uint32_t count);
/* Closes the socket. */
void slu_talk_close(struct slu_talk *talk);

/*
 * Listen at an ephemeral port. Return a socket, or a negative errno value. Family 0 of the address:
 * all addresses.
 */
int slu_stream_listen(const struct slu_address *address, bool ipv6);
/* Listens at a port that may have been in use until just now. [::] listens for both families. */
int slu_stream_listen_again(const struct slu_address *address);
/* Listens at all addresses, of IPv4 only if there is no IPv6. */
int slu_stream_listen_all(uint16_t port);
int slu_stream_listen_here(uint64_t listener); /* a Unix socket of this name */
uint16_t slu_stream_port(int fd);
/*
 * Begin to connect. Return a socket, or a negative errno value; -EAGAIN: the backlog of the peer is
 * full.
 */
int slu_stream_dial(const struct slu_address *address);
int slu_stream_dial_here(uint64_t listener);
int slu_stream_error(int fd); /* a positive errno value; 0: none */
void slu_stream_no_delay(int fd);
/* Tells whether the other end of a TCP connection is an address of this host. */
bool slu_stream_is_local(int fd);
/* Tells whether the peer has closed, and all its bytes were read. */
bool slu_stream_ended(int fd);

/*
 * Lists the addresses of this host for others, IPv4 first. Returns how many. A host without a
 * network has the loopback address.
 */
uint32_t slu_stream_addresses(struct slu_address *addresses, uint32_t most, bool with_ipv6,
                              uint16_t port);

#endif
