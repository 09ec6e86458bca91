/* SPDX-License-Identifier: MIT */
/*
 * What goes over the admitted socket, in turn from one side and from the other: steps,
 * each sealed. A step has either so many bytes, which both sides know beforehand, or an
 * error in words, after which nothing follows.
 *
 * A dialer waits for a step until its deadline. A listener waits for none: it reads a step once
 * all of it has arrived, and sends what fits the socket, which is made large enough for that.
 */
#ifndef SLU_PASSAGE_H
#define SLU_PASSAGE_H

#include "connect/address.h"
#include "connect/session.h"
#include "listener/listener.h"

#define SLU_PASSAGE_TEXT 320
/* What a step of so many bytes has on the wire: a head with its seal, and they with theirs. */
#define SLU_PASSAGE_HEAD 8
#define SLU_PASSAGE_STEP(count) (SLU_PASSAGE_HEAD + 2 * SLU_SEAL_BYTES + (count))

struct slu_passage {
    int fd;
    char who[SLU_ADDRESS_TEXT]; /* is at the other end: its address, or as it was dialed */
    bool dialed;                /* by this side */
    uint32_t sent, heard;       /* steps */
    int64_t until;              /* 0: no step is waited for */
    struct slu_session session;
};

/* Each of these returns 0, or a negative errno with a text. */
int slu_passage_send(struct slu_passage *passage, const void *bytes, uint32_t count);
/* The other side gave an error: -ECONNABORTED, with its words. */
int slu_passage_hear(struct slu_passage *passage, void *bytes, uint32_t count);
/*
 * The thread's text, of an error: to the other side, whose reason it is, and which reads "we"
 * where it is named. It stays the thread's.
 */
void slu_passage_fail(struct slu_passage *passage, int error);
/* Makes the socket large enough for a step of so many bytes that nobody reads yet. */
void slu_passage_make_room(const struct slu_passage *passage, uint32_t count);
/* From now on the socket is readable once a step of so many bytes is there, or the end. */
void slu_passage_await(const struct slu_passage *passage, uint32_t count);
/* Whether all of a step of so many bytes is there, or the other side has left. */
bool slu_passage_has_step(const struct slu_passage *passage, uint32_t count);
/* Whether something is to be heard, or the other side has left. */
bool slu_passage_has_news(const struct slu_passage *passage);
/* Makes words of somebody else fit for a terminal; count is without a terminator. */
void slu_passage_clean(char text[SLU_PASSAGE_TEXT], const uint8_t *bytes, uint32_t count);

#endif
