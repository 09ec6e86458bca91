/* SPDX-License-Identifier: MIT */
/* Liars: an independent encoder of the words of ranks, before and after they are let in. */
#ifndef EXCHANGE_LIAR_H
#define EXCHANGE_LIAR_H

#include <sys/types.h>

#include "../support/stranger.h"
#include "parties.h"

#define LONG SLUICE_S(30)
#define SOON SLUICE_S(10)
#define HEAD 64
#define HELLO (HEAD + 76)
#define ANSWER HEAD
#define REPLY 48
#define FRAME 24

/* Offsets of the fields of hello and answer. */
enum { VERSION = 8, WORD = 12, BYTES = 16, MEANS = 20, ZERO = 24, CHALLENGE = 32 };
enum { OWN_VERSION = HEAD, RANKS = HEAD + 4, RANK = HEAD + 8, JOB = HEAD + 12 };
/* In place of the purpose, an answer has such a word; a reply begins with one. */
enum { GO_ON = 0, DENIED = 1, OTHER_VERSION = 2, OTHER_PURPOSE = 3 };
enum { STANDS = 4, ADMITTED = 5, REFUSED = 6 };
/* The first word of the body of a refusal, if it is not an error code. */
enum { REFUSED_JOB = 100, REFUSED_VERSION = 101 };

enum { STARTED = 1, ALLGATHER = 2, ALLTOALL = 3, BARRIER = 4, GAVE_UP = 5, VERDICT = 6 };

/* The bytes of both sides before any proof, and the key that both sides derive from them. */
struct talk {
    uint8_t said[HELLO + ANSWER];
    uint8_t key[PROOF_BYTES];
};

void make_hello(uint8_t hello[HELLO], uint32_t ranks, uint32_t rank);
void make_answer(uint8_t answer[ANSWER]);
/* A reply without a body. */
void make_reply(const struct talk *talk, uint8_t word, uint8_t reply[REPLY]);
void make_frame(uint8_t frame[FRAME], uint8_t type, uint64_t sequence, uint64_t bytes);

/* Goes on after the hello of a rank, without a secret. Returns false if no answer comes. */
bool prove(int fd, struct talk *talk);
/* Does the same as a rank 0: receives a hello, and lets the rank in. */
void let_in(int fd, struct talk *talk);

void require_dropped(int fd, const char *what);
/* Requires that the peer sends only an answer with this word. */
void require_answered(int fd, uint8_t word, const char *what);
/* Chooses rank 0, and requires the refusal with this code. */
void require_refused(int fd, struct talk *talk, uint32_t code, const char *words, const char *what);
/* Sends the hello of this rank, and is let in. */
int join(const struct parties *parties, uint32_t ranks, uint32_t rank);
/* Makes all calls, with 320 bytes. */
void call_all(struct party *party);
/* Lets rank 0 listen; finish_all() starts the other ranks, and requires success. */
void start_root_of(struct parties *parties, uint32_t count, int64_t deadline);
void finish_all(struct parties *parties);
/* Receives a verdict with these words, and closes. */
void require_verdict(int fd, const char *words);

#endif
