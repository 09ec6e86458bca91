/* SPDX-License-Identifier: MIT */
/*
 * The messages between a dialer and a listener of an address, until the dialer is admitted or not.
 * The dialer begins:
 *
 *   hello    head (64): magic; written by version, readable from version (2 each); purpose,
 *            bytes of the body, means (4 each), zeros (8); challenge (32). Then the body, which
 *            is the user's
 *   answer   the same, with a reply code in place of the purpose: to go on, or not
 *   proof    of the dialer (32)
 *   reply    head (48): reply code, bytes of the body (4 each), zeros (8); proof (32). Then
 *            the body. It has the verdict; or says that the proof is right, and the verdict
 *            follows
 *
 * All proofs use a key of the session, which is derived from the secret and from all of hello and
 * answer, with both challenges and bodies. The proof of a reply covers its code and body. So
 * without the secret nothing can be changed, replayed or reflected. Without a secret the messages
 * are the same and prove nothing: the dialer's proof is zeros, and tells the listener that it is
 * chosen. It may follow the hello at once if there is no other address to choose.
 *
 * Addresses are not covered: with address translation the two sides see different ones, and a relay
 * cannot be told from a router. Whatever a relay must not learn is therefore sealed with a key of
 * the session (slu_session_seal()).
 *
 * A peer that has not proven itself gets no reply but a denial. A denial is the same for every
 * reason, and reveals only the means of proof that are required.
 */
#ifndef SLU_CONNECT_SESSION_H
#define SLU_CONNECT_SESSION_H

#include "connect/proof.h"
#include "endpoint/versions.h"

/*
 * These versions cover the head, and all that follows but the bodies of an exchange. Readable from
 * version 0 means the version of the writer.
 */
#define SLU_SESSION_VERSION (1 + SLU_VERSIONS_NEXT)
#define SLU_SESSION_READABLE 1
#define SLU_SESSION_OLDEST 1
/* The most bytes of a body, of a hello, answer or reply. */
#define SLU_BODY_BYTES 1280
#define SLU_HEAD_BYTES 64
/* Magic, versions and reply code, which are the same in all versions. */
#define SLU_HEAD_FIRST 16
#define SLU_REPLY_BYTES 48
/* Hello and answer together. */
#define SLU_SAID_BYTES (2 * (SLU_HEAD_BYTES + SLU_BODY_BYTES))

enum slu_purpose { SLU_PURPOSE_CONNECT = 1, SLU_PURPOSE_EXCHANGE = 2, SLU_PURPOSE_NODE = 3 };

/* Means of a proof; values above are the user's. Peers with other means are denied. */
enum slu_means { SLU_MEANS_NONE = 0, SLU_MEANS_SECRET = 1 };

enum slu_reply_code {
    SLU_REPLY_GO_ON = 0,    /* in an answer: the dialer must send its proof */
    SLU_REPLY_DENIED = 1,   /* in an answer or a reply, without a proof */
    SLU_REPLY_VERSION = 2,  /* in an answer: the listener has the versions of this head */
    SLU_REPLY_PURPOSE = 3,  /* in an answer: the listener is for another purpose */
    SLU_REPLY_PENDING = 4,  /* in a reply: the proof is right, and the verdict follows */
    SLU_REPLY_ADMITTED = 5, /* a verdict; the body is the user's */
    SLU_REPLY_REFUSED = 6,  /* a verdict; the body is the user's, with the reason */
    SLU_REPLY_BUSY = 7      /* a verdict: try again */
};

struct slu_head {
    uint16_t written, readable; /* read, not written */
    uint32_t word;              /* in a hello: the purpose */
    uint32_t bytes;
    uint32_t means;
};

#define SLU_SESSION_MAGIC_BYTES 8
extern const uint8_t slu_session_hello_magic[SLU_SESSION_MAGIC_BYTES];
extern const uint8_t slu_session_answer_magic[SLU_SESSION_MAGIC_BYTES];

/* Makes a head with a fresh challenge. Returns 0, or an error with a text. */
int slu_head_make(const uint8_t magic[SLU_SESSION_MAGIC_BYTES], const struct slu_head *head,
                  uint8_t bytes[SLU_HEAD_BYTES]);
/*
 * Reads versions and reply code from SLU_HEAD_FIRST bytes or more. Returns false if the magic
 * differs.
 */
bool slu_head_first(const uint8_t magic[SLU_SESSION_MAGIC_BYTES], const uint8_t *bytes,
                    struct slu_head *head);
/* Tells whether this library reads a head with these versions. */
bool slu_head_fits(const struct slu_head *head);
/* Writes that it does not, as "it speaks version ..."; returns text. */
#define SLU_HEAD_TEXT 160
const char *slu_head_text(const struct slu_head *head, char text[SLU_HEAD_TEXT]);
/* Reads a whole head that fits. Returns false if it is invalid, such as one with a long body. */
bool slu_head_read(const uint8_t bytes[SLU_HEAD_BYTES], struct slu_head *head);

/* The secrets that the two sides share after hello and answer. */
struct slu_session {
    uint8_t key[SLU_PROOF_BYTES];
};
void slu_session_make(const uint8_t *secret, size_t secret_bytes, const uint8_t *said, size_t count,
                      struct slu_session *session);
/* Make and check the proof of the dialer. */
void slu_session_prove(const struct slu_session *session, uint8_t proof[SLU_PROOF_BYTES]);
bool slu_session_proves(const struct slu_session *session, const uint8_t proof[SLU_PROOF_BYTES]);
/* Makes a whole reply of the listener, of SLU_REPLY_BYTES and the body. Returns its length. */
uint32_t slu_reply_make(const struct slu_session *session, enum slu_reply_code word,
                        const void *body, uint32_t count,
                        uint8_t reply[SLU_REPLY_BYTES + SLU_BODY_BYTES]);
/*
 * Returns the reply code of a head, and sets *count to the length of the body, at most
 * SLU_BODY_BYTES. -1: invalid.
 */
int slu_reply_read(const uint8_t head[SLU_REPLY_BYTES], uint32_t *count);
bool slu_reply_proves(const struct slu_session *session, const uint8_t *reply, uint32_t count);

/*
 * Encrypts what follows, so that only the other side can read it and nothing can change it. Each
 * label is used once in a session, and has at most 15 characters. The sealed bytes are
 * SLU_SEAL_BYTES more.
 */
#define SLU_SEAL_BYTES 16
void slu_session_seal(const struct slu_session *session, const char *label, const void *bytes,
                      size_t count, uint8_t *sealed);
/* count is the length before sealing. Returns false if the bytes are not from the other side. */
bool slu_session_open(const struct slu_session *session, const char *label, const uint8_t *sealed,
                      size_t count, void *bytes);

#endif
