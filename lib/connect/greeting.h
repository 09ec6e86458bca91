/* SPDX-License-Identifier: MIT */
/*
 * The handshake of the soft transport, before either side trusts the other. The dialer sends a
 * hello, the acceptor answers with a challenge or a denial, and then each sends its proof.
 *
 *   hello      magic, version; target and own number (4 each); challenge; proof
 *   challenge  magic, version; verdict (4), zero (4); challenge; proof
 *   denial     the first 16 bytes of a challenge, with another verdict
 *   proofs     of the dialer, then of the acceptor, then the dialer's choice of this connection;
 *              an acceptor that follows, near its peer, sends its proof behind the challenge
 *
 * The proofs in hello and challenge use the key of the target, which the acceptor has before it
 * knows who will come. A dialer that lacks the key gets only a denial, which is the same whether
 * there is such a target or not. The other proofs use the keys of both sides, and cover all that
 * identifies them.
 *
 * Both sides may dial, so several connections may come this far. One of the sides leads: it takes
 * the first connection and tells the other one, which follows. A leading acceptor does so by its
 * proof, a leading dialer by a third proof.
 */
#ifndef SLU_CONNECT_GREETING_H
#define SLU_CONNECT_GREETING_H

#include "connect/proof.h"
#include "connect/stream.h"
#include "endpoint/versions.h"

/*
 * Both are of the bytes of the magic: see slu_versions_join(), with the written one first. A peer
 * whose greeting cannot be read is dropped as a stranger is. So a greeting that older libraries
 * cannot read needs endpoints that they cannot read either: these name both versions.
 */
#define SLU_GREETING_VERSION (2 + SLU_VERSIONS_NEXT)
#define SLU_GREETING_READABLE 2
#define SLU_GREETING_OLDEST 2
#define SLU_HELLO_BYTES 96
#define SLU_ANSWER_BYTES 80
#define SLU_DENIAL_BYTES 16

enum slu_verdict { SLU_VERDICT_GO_ON = 0, SLU_VERDICT_DENIED = 1 };

struct slu_hello {
    uint32_t target, own;
};

/* The key and the name of a side, which the proofs cover beside the messages. */
#define SLU_SIDE_KEY 16
#define SLU_SIDE_NAME 64
struct slu_side {
    uint8_t key[SLU_SIDE_KEY];
    uint8_t name[SLU_SIDE_NAME];
};

/* Makes the dialer's hello with a fresh challenge. Returns 0, or an error with a text. */
int slu_hello_make(const struct slu_hello *hello, const uint8_t target_key[SLU_SIDE_KEY],
                   uint8_t bytes[SLU_HELLO_BYTES]);
/* The first bytes of a hello, and with the versions. */
#define SLU_HELLO_MAGIC_BYTES 6
#define SLU_HELLO_FIRST_BYTES 8
extern const uint8_t slu_hello_magic[SLU_HELLO_MAGIC_BYTES];
/* Tells whether the versions of a hello fit this library. */
bool slu_hello_fits(const uint8_t bytes[SLU_HELLO_FIRST_BYTES]);
void slu_hello_read(const uint8_t bytes[SLU_HELLO_BYTES], struct slu_hello *hello);
/* Tells whether the sender of a hello knows the key. */
bool slu_hello_proves(const uint8_t bytes[SLU_HELLO_BYTES], const uint8_t key[SLU_SIDE_KEY]);

/* Make the acceptor's answer: a challenge behind the hello, or a denial of 16 bytes. */
int slu_answer_make(uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                    const uint8_t key[SLU_SIDE_KEY]);
void slu_denial_make(uint8_t bytes[SLU_DENIAL_BYTES]);
/* Returns the enum slu_verdict in these first 16 bytes, or -1 for anything else. */
int slu_answer_verdict(const uint8_t bytes[SLU_DENIAL_BYTES]);
bool slu_answer_proves(const uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                       const uint8_t key[SLU_SIDE_KEY]);

/* The proofs over hello and challenge. */
enum slu_proof_part { SLU_PROOF_DIALER, SLU_PROOF_ACCEPTOR, SLU_PROOF_CHOICE };
void slu_greeting_prove(const uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                        enum slu_proof_part part, const struct slu_side *dialer,
                        const struct slu_side *acceptor, uint8_t proof[SLU_PROOF_BYTES]);
bool slu_greeting_proves(const uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                         enum slu_proof_part part, const struct slu_side *dialer,
                         const struct slu_side *acceptor, const uint8_t given[SLU_PROOF_BYTES]);

#endif
