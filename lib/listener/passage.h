/* SPDX-License-Identifier: MIT */
/*
 * The protocol on the admitted socket: sealed steps, which the two sides send in turn. A step has
 * either a number of bytes that both sides know beforehand, or the text of an error, after which
 * nothing follows.
 *
 * A dialer waits for a step until its deadline. A listener never waits: it reads a step once all of
 * it has arrived, and makes the send buffer of the socket large enough for the steps it sends.
 */
#ifndef SLU_PASSAGE_H
#define SLU_PASSAGE_H

#include "connect/address.h"
#include "connect/duty.h"
#include "connect/session.h"
#include "listener/listener.h"

#define SLU_PASSAGE_TEXT 320
/* Bytes of a step on the wire: a head with its seal, and count bytes with theirs. */
#define SLU_PASSAGE_HEAD 8
#define SLU_PASSAGE_STEP(count) (SLU_PASSAGE_HEAD + 2 * SLU_SEAL_BYTES + (count))

struct slu_passage {
    int fd;
    char who[SLU_ADDRESS_TEXT]; /* the other side: its address, or its name as dialed */
    bool dialed;                /* by this side */
    uint32_t sent, received;    /* numbers of steps */
    int64_t until;              /* deadline of waits; 0: never wait */
    int64_t time;               /* that the program gave for all of it; 0: not known */
    struct slu_duty *duty;      /* served by waits; NULL: none */
    struct slu_session session;
};

/* These two return 0, or a negative errno value with a text. */
int slu_passage_send(struct slu_passage *passage, const void *bytes, uint32_t count);
/*
 * Receives a step. Returns -ECONNABORTED if the other side sent an error; the text has its words.
 */
int slu_passage_receive(struct slu_passage *passage, void *bytes, uint32_t count);
/* Returns -ETIMEDOUT, with the text that the other side was too late. */
int slu_passage_fail_late(const struct slu_passage *passage);
/*
 * Sends an error and the thread's text to the other side, as the reason for giving up. If the text
 * begins with the name of the other side, which will read it, "we" replaces the name. Keeps the
 * thread's text.
 */
void slu_passage_fail(struct slu_passage *passage, int error);
/*
 * Makes the send buffer of the socket large enough for a step of count bytes that the other side
 * does not read yet.
 */
void slu_passage_make_room(const struct slu_passage *passage, uint32_t count);
/*
 * Makes the socket readable only when a whole step of count bytes is there, or the connection
 * ended.
 */
void slu_passage_await(const struct slu_passage *passage, uint32_t count);
/* Returns whether a whole step of count bytes is there, or the other side has left. */
bool slu_passage_has_step(const struct slu_passage *passage, uint32_t count);
/* Returns whether there is anything to receive, or the other side has left. */
bool slu_passage_has_news(const struct slu_passage *passage);
/* The same, and waits for it, no longer than that and no longer than the passage allows. */
bool slu_passage_await_news(const struct slu_passage *passage, int64_t timeout);
/*
 * Copies text of the other side, without control characters, so that it is safe to print. count
 * includes no terminator.
 */
void slu_passage_clean(char text[SLU_PASSAGE_TEXT], const uint8_t *bytes, uint32_t count);

#endif
