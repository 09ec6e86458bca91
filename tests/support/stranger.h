/* SPDX-License-Identifier: MIT */
/* Tools with which strangers talk to a listener: plain sockets, numbers and proofs of their own. */
#ifndef SUPPORT_STRANGER_H
#define SUPPORT_STRANGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROOF_BYTES 32

/* Writes a number in network byte order. Returns where the next one goes. */
uint8_t *put(uint8_t *to, uint64_t value, int bytes);
/* Computes HMAC-SHA-256 over a label and these bytes. */
void sign(const uint8_t *key, size_t key_bytes, const char *label, const uint8_t *bytes,
          size_t count, uint8_t proof[PROOF_BYTES]);

/* Listens at the loopback. Port 0 takes a free one, which is returned. */
int listen_at(uint16_t *port);
/* Connects as soon as something listens; later reads time out after 20 s. */
int dial_port(uint16_t port);
/* Dials once, with an existing socket. */
void dial_with(int fd, uint16_t port);
/* Sends bytes; the other side may hang up at any of them. */
void say(int fd, const void *bytes, size_t count);
/* Reads this many bytes. Returns false if the stream ends before. */
bool hear(int fd, void *bytes, size_t count);
/* Reads up to this many bytes. Returns how many there were. */
size_t hear_some(int fd, void *bytes, size_t count);

#endif
