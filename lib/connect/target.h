/* SPDX-License-Identifier: MIT */
/*
 * Whoever dials somebody that listens with an offer. All addresses are dialed as dial.h
 * says, and whoever answers there is told a hello. The first that answers rightly is told
 * our proof; another one only if that one has not proven itself within a second, so that
 * the listener sees one of us and no stranger at an address holds us up. Who has proven
 * itself gives a verdict when it likes.
 *
 * Without a secret the first that answers is believed; a single address is told so at once.
 */
#ifndef SLU_CONNECT_TARGET_H
#define SLU_CONNECT_TARGET_H

#include "connect/dial.h"
#include "connect/session.h"

struct slu_target_talk {
    uint8_t stage;
    bool told;          /* our proof, which is none, with the hello */
    uint32_t got, want; /* of what is heard next */
    uint32_t said_bytes;
    int64_t since; /* it was told our proof */
    struct slu_head answer;
    struct slu_session session;
    uint8_t bytes[]; /* all of hello and answer; once they are proven, a reply */
};

enum slu_target_state {
    SLU_TARGET_ON,         /* nothing new */
    SLU_TARGET_CHALLENGED, /* of .ask: an answer is there; set the secret, slu_target_prove() */
    SLU_TARGET_PENDING,    /* it has proven itself; its verdict comes later */
    SLU_TARGET_ADMITTED,   /* its verdict: slu_target_take() */
    SLU_TARGET_REFUSED,    /* its verdict: why is in the body */
    SLU_TARGET_HOPELESS    /* each address denies us, or is no listener of ours */
};

/* The user sets what is up to body before the first tick. */
struct slu_target {
    struct slu_dial dial;
    enum slu_purpose purpose;
    uint32_t means;
    const uint8_t *secret; /* the user's; NULL: there is none */
    size_t secret_bytes;
    const void *body; /* the user's body of each hello, SLU_BODY_BYTES at most */
    uint32_t body_bytes;
    bool ask;        /* the secret depends on the answer, as that of munge */
    bool not_there;  /* who refuses at all addresses is not there: HOPELESS; else dialed again */
    uint32_t chosen; /* of what wait() and prove() tell: the attempt; SLU_DIAL_MOST: none */
    bool proven;     /* chosen has proven itself, and nobody else is dialed any more */
    uint32_t other_means; /* of the last that differed; for words */
    uint32_t other_version;
    struct slu_target_talk *talks[SLU_DIAL_MOST]; /* NULL: never up */
};

void slu_target_init(struct slu_target *target);
/* Closes all but what was taken. */
void slu_target_end(struct slu_target *target);
/* *next: when it is due again. */
enum slu_target_state slu_target_tick(struct slu_target *target, int64_t now, int64_t *next);
/* Waits until then at most for the others, and goes on with them as far as the first news. */
enum slu_target_state slu_target_wait(struct slu_target *target, int64_t until);
/* Goes on with who was CHALLENGED. */
enum slu_target_state slu_target_prove(struct slu_target *target);
/* It is not who we look for: dials on. error and why are as of slu_dial_fail(). */
void slu_target_pass(struct slu_target *target, int error, const char *why);

/* Of the chosen: the body of its answer, until that is proven, and of its verdict. */
const uint8_t *slu_target_answer(const struct slu_target *target, uint32_t *count);
const uint8_t *slu_target_verdict(const struct slu_target *target, uint32_t *count);
/* The socket, which is the caller's, and ends the rest. */
int slu_target_take(struct slu_target *target, struct slu_session *session);

/*
 * Why it is HOPELESS, or late: -EACCES, -EPROTO, -ECONNREFUSED or -ETIMEDOUT without a text,
 * and the words of each address.
 */
int slu_target_explain(const struct slu_target *target, char *text, size_t size);

#endif
