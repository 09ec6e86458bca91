/* SPDX-License-Identifier: MIT */
/*
 * The dialer's side of a connect by address. All addresses are dialed as dial.h says, and each
 * listener that accepts gets a hello. The first listener with a right answer gets the proof.
 * Another one gets it only if that one has not proven itself within PROOF_TIME, so that the
 * listener sees this dialer once, and a stranger at one address does not hold up the rest. A
 * listener that has proven itself may take its time for the verdict.
 *
 * Without a secret the first answer is believed. If there is a single address, the proof goes with
 * the hello.
 */
#ifndef SLU_CONNECT_TARGET_H
#define SLU_CONNECT_TARGET_H

#include "connect/dial.h"
#include "connect/session.h"

struct slu_target_talk {
    uint8_t stage;
    bool proof_sent;    /* the proof, of zeros, went with the hello */
    uint32_t got, want; /* of what is received next */
    uint32_t said_bytes;
    int64_t since; /* when the proof was sent */
    struct slu_head answer;
    struct slu_session session;
    uint8_t bytes[]; /* hello and answer; once they are proven, a reply */
};

enum slu_target_state {
    SLU_TARGET_ON,         /* nothing new */
    SLU_TARGET_CHALLENGED, /* with .ask: set the secret for the answer, slu_target_prove() */
    SLU_TARGET_PENDING,    /* the listener has proven itself; its verdict comes later */
    SLU_TARGET_ADMITTED,   /* verdict: call slu_target_take() */
    SLU_TARGET_REFUSED,    /* verdict: the reason is in the body */
    SLU_TARGET_HOPELESS    /* each address denied this dialer, or is no suitable listener */
};

/* The user sets all up to body_bytes before the first tick. */
struct slu_target {
    struct slu_dial dial;
    enum slu_purpose purpose;
    uint32_t means;
    const uint8_t *secret; /* of the user; NULL: none */
    size_t secret_bytes;
    const void *body; /* body of each hello, of the user, SLU_BODY_BYTES at most */
    uint32_t body_bytes;
    bool ask;             /* the secret depends on the answer, as with munge */
    bool not_there;       /* if all addresses refuse: HOPELESS; otherwise they are dialed again */
    uint32_t chosen;      /* attempt that the state is about; SLU_DIAL_MOST: none */
    bool proven;          /* chosen has proven itself, and no other is dialed */
    uint32_t other_means; /* of the last that differed, for texts */
    bool foreign;         /* an address speaks other versions: text */
    char text[SLU_HEAD_TEXT];
    struct slu_target_talk *talks[SLU_DIAL_MOST]; /* NULL: never connected */
};

void slu_target_init(struct slu_target *target);
/* Closes all sockets that were not taken. */
void slu_target_end(struct slu_target *target);
/* Lowers *next to when it is due again. */
enum slu_target_state slu_target_tick(struct slu_target *target, int64_t now, int64_t *next);
/* Waits for the peers until then at most, and handles events up to the first new state. */
enum slu_target_state slu_target_wait(struct slu_target *target, int64_t until);
/* Continues with the attempt that was CHALLENGED. */
enum slu_target_state slu_target_prove(struct slu_target *target);
/*
 * Gives up the chosen listener, which is the wrong one, and continues. error and why as for
 * slu_dial_fail().
 */
void slu_target_pass(struct slu_target *target, int error, const char *why);

/* Return the body of the chosen listener's answer, valid until it is proven, and of its verdict. */
const uint8_t *slu_target_answer(const struct slu_target *target, uint32_t *count);
const uint8_t *slu_target_verdict(const struct slu_target *target, uint32_t *count);
/* Returns the socket, which the caller then owns, and ends the rest. */
int slu_target_take(struct slu_target *target, struct slu_session *session);

/*
 * Returns why it is HOPELESS or late: -EACCES, -EPROTO, -ECONNREFUSED or -ETIMEDOUT, without
 * setting the thread's text. Writes the reason of each address.
 */
int slu_target_explain(const struct slu_target *target, char *text, size_t size);

#endif
