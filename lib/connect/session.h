/* SPDX-License-Identifier: MIT */
/*
 * What is said between who dials an address and who listens there, before either believes
 * anything, and until the one is let in or not. The dialer begins:
 *
 *   hello    head (64): magic, version; purpose, bytes of the body, means (4 each), zeros
 *            (8); challenge (32). And the body, which is the user's
 *   answer   the same, with a word in place of the purpose: to go on, or not
 *   proof    of the dialer (32)
 *   reply    head (48): word, bytes of the body (4 each), zeros (8); proof (32). And the
 *            body. It tells the verdict; or that the dialer stands, and the verdict follows
 *
 * All proofs are made with a key of the session, which is made of the secret and of all
 * of hello and answer: both challenges, and both bodies. The proof of a reply covers its
 * word and body. So nothing of it can be changed, said again or said back by who does not
 * know the secret. With no secret the words are the same and prove nothing: the proof of the
 * dialer is zeros, and tells the listener that it is chosen. It may come behind the hello, if
 * there is nobody else to choose.
 *
 * The addresses are not in it: with address translation the two sides see different
 * ones, and whoever only passes on what is said is not told from a router. What must not
 * become his is therefore sealed with a key of the session (slu_session_seal()).
 *
 * No reply but a denial goes to who has not proven itself, and a denial is the same
 * whatever the reason is; it tells no more than by what means one proves oneself here.
 */
#ifndef SLU_CONNECT_SESSION_H
#define SLU_CONNECT_SESSION_H

#include "connect/proof.h"

#define SLU_SESSION_VERSION 1
/* The most that a body has: of a hello, answer or reply. */
#define SLU_BODY_BYTES 1280
#define SLU_HEAD_BYTES 64
/* Magic, version and the word, which are the same in all versions. */
#define SLU_HEAD_FIRST 16
#define SLU_REPLY_BYTES 48
/* Hello and answer. */
#define SLU_SAID_BYTES (2 * (SLU_HEAD_BYTES + SLU_BODY_BYTES))

enum slu_purpose { SLU_PURPOSE_CONNECT = 1, SLU_PURPOSE_EXCHANGE = 2 };

/* How one proves oneself; what is above is the user's. Means differ: denied. */
enum slu_means { SLU_MEANS_NONE = 0, SLU_MEANS_SECRET = 1 };

enum slu_reply_code {
    SLU_REPLY_GO_ON = 0,    /* an answer: prove yourself */
    SLU_REPLY_DENIED = 1,   /* an answer or a reply, without a proof */
    SLU_REPLY_VERSION = 2,  /* an answer: we speak the version of its head */
    SLU_REPLY_PURPOSE = 3,  /* an answer: this is no listener of that kind */
    SLU_REPLY_PENDING = 4,  /* a reply: proven, and the verdict follows later */
    SLU_REPLY_ADMITTED = 5, /* a verdict; the body is the user's */
    SLU_REPLY_REFUSED = 6,  /* a verdict; the body is the user's: why */
    SLU_REPLY_BUSY = 7      /* a verdict: try again */
};

struct slu_head {
    uint16_t version;
    uint32_t word; /* of a hello: the purpose */
    uint32_t bytes;
    uint32_t means;
};

#define SLU_SESSION_MAGIC_BYTES 8
extern const uint8_t slu_session_hello_magic[SLU_SESSION_MAGIC_BYTES];
extern const uint8_t slu_session_answer_magic[SLU_SESSION_MAGIC_BYTES];

/* With a fresh challenge: 0, or an error with a text. */
int slu_head_make(const uint8_t magic[SLU_SESSION_MAGIC_BYTES], const struct slu_head *head,
                  uint8_t bytes[SLU_HEAD_BYTES]);
/* Of at least SLU_HEAD_FIRST bytes of such a magic: version and word; false: of another. */
bool slu_head_first(const uint8_t magic[SLU_SESSION_MAGIC_BYTES], const uint8_t *bytes,
                    struct slu_head *head);
/* All of it, of our version: false if it cannot be, as one whose body would be too long. */
bool slu_head_read(const uint8_t bytes[SLU_HEAD_BYTES], struct slu_head *head);

/* What two sides share once hello and answer are said. */
struct slu_session {
    uint8_t key[SLU_PROOF_BYTES];
};
void slu_session_make(const uint8_t *secret, size_t secret_bytes, const uint8_t *said, size_t count,
                      struct slu_session *session);
/* The dialer's. */
void slu_session_prove(const struct slu_session *session, uint8_t proof[SLU_PROOF_BYTES]);
bool slu_session_proves(const struct slu_session *session, const uint8_t proof[SLU_PROOF_BYTES]);
/* The acceptor's: a whole reply, of SLU_REPLY_BYTES and the body; how many bytes. */
uint32_t slu_reply_make(const struct slu_session *session, enum slu_reply_code word,
                        const void *body, uint32_t count,
                        uint8_t reply[SLU_REPLY_BYTES + SLU_BODY_BYTES]);
/* Of a head: the word, and how long the body is, never more than SLU_BODY_BYTES; -1: none. */
int slu_reply_read(const uint8_t head[SLU_REPLY_BYTES], uint32_t *count);
bool slu_reply_proves(const struct slu_session *session, const uint8_t *reply, uint32_t count);

/*
 * What follows, so that only the other side can read it and nobody can change it. A label
 * is used once in a session, and has 15 characters at most. Sealed it is SLU_SEAL_BYTES longer.
 */
#define SLU_SEAL_BYTES 16
void slu_session_seal(const struct slu_session *session, const char *label, const void *bytes,
                      size_t count, uint8_t *sealed);
/* count is of what was sealed; false: it is not of the other side. */
bool slu_session_open(const struct slu_session *session, const char *label, const uint8_t *sealed,
                      size_t count, void *bytes);

#endif
