/* SPDX-License-Identifier: MIT */
/* Strangers and liars: plain sockets, and an encoder of their own for what ranks say. */
#ifndef EXCHANGE_LIAR_H
#define EXCHANGE_LIAR_H

#include <sys/types.h>

#include "parties.h"

#define LONG SLUICE_S(30)
#define SOON SLUICE_S(10)
#define HELLO 128
#define PROOF 40
#define FRAME 24

/* Offsets of the fields of a hello. */
enum { VERSION = 8, ROLE = 10, SECRET = 11, REFUSAL = 12, ZERO = 13, RANKS = 16, RANK = 20 };
enum { NONCE = 24, JOB = 56, END = 120 };
enum { ALLGATHER = 2, ALLTOALL = 3, BARRIER = 4, GAVE_UP = 5, VERDICT = 6 };

void put(uint8_t *at, uint64_t value, int bytes);
void make_hello(uint8_t hello[HELLO], uint8_t role, uint32_t ranks, uint32_t rank);
void make_frame(uint8_t frame[FRAME], uint8_t type, uint64_t sequence, uint64_t bytes);
/* Connects to rank 0, which may not listen yet. */
int dial(uint16_t port);
/* Once, with a socket that is there already. */
void dial_with(int fd, uint16_t port);
/* A rank 0 of the test's own. */
int listen_at(uint16_t port);
void say(int fd, const void *bytes, size_t count);
/* So many bytes, or fewer if the stream ends before. */
size_t hear(int fd, void *bytes, size_t count);
void require_dropped(int fd, const char *what);
void require_refused(int fd, uint8_t refusal, const char *what);
/* Says hello as this rank, and is let in, for now. */
int join(const struct parties *parties, uint32_t ranks, uint32_t rank);
/* Hears a verdict with these words, and closes. */
void require_verdict(int fd, const char *words);

#endif
