/* SPDX-License-Identifier: MIT */
/*
 * What two sides say to each other before either believes anything: who dials says
 * hello, the acceptor answers with a challenge or a denial, and then each gives its proof.
 *
 *   hello      magic, version; target and own number (4 each); challenge; proof
 *   challenge  magic, version; verdict (4), zero (4); challenge; proof
 *   denial     the first 16 bytes of a challenge, with another verdict
 *   proofs     of the dialer, then of the acceptor, then of the dialer that it is this one
 *
 * The proof in hello and challenge is of the key of the target, which the acceptor has
 * before it knows who will come; an acceptor answers nobody who lacks it but with a denial,
 * which is the same whether there is such a target or not. The other proofs are of the
 * keys of both, and of all that identifies them.
 *
 * Both may dial, and several connections may get so far: the side that leads, of which
 * there is one, takes the first and says so. An acceptor that leads does so with its
 * proof; a dialer that leads says it in a third proof; the other follows.
 */
#ifndef SLU_CONNECT_GREETING_H
#define SLU_CONNECT_GREETING_H

#include "connect/proof.h"
#include "connect/stream.h"

#define SLU_GREETING_VERSION 2
#define SLU_HELLO_BYTES 96
#define SLU_ANSWER_BYTES 80
#define SLU_DENIAL_BYTES 16

enum slu_verdict { SLU_VERDICT_GO_ON = 0, SLU_VERDICT_DENIED = 1 };

struct slu_hello {
    uint32_t target, own;
};

/* What is proven beside what was said: of a side its key and its name, each as it must be. */
#define SLU_SIDE_KEY 16
#define SLU_SIDE_NAME 64
struct slu_side {
    uint8_t key[SLU_SIDE_KEY];
    uint8_t name[SLU_SIDE_NAME];
};

/* The dialer's words: a hello with a fresh challenge; 0, or an error with a text. */
int slu_hello_make(const struct slu_hello *hello, const uint8_t target_key[SLU_SIDE_KEY],
                   uint8_t bytes[SLU_HELLO_BYTES]);
/* How it begins. */
#define SLU_HELLO_MAGIC_BYTES 8
extern const uint8_t slu_hello_magic[SLU_HELLO_MAGIC_BYTES];
void slu_hello_read(const uint8_t bytes[SLU_HELLO_BYTES], struct slu_hello *hello);
/* Whether whoever said it knows the key. */
bool slu_hello_proves(const uint8_t bytes[SLU_HELLO_BYTES], const uint8_t key[SLU_SIDE_KEY]);

/* The acceptor's: a challenge behind the hello, or a denial of 16 bytes. */
int slu_answer_make(uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                    const uint8_t key[SLU_SIDE_KEY]);
void slu_denial_make(uint8_t bytes[SLU_DENIAL_BYTES]);
/* What these 16 bytes begin: an enum slu_verdict, or -1 for anything else. */
int slu_answer_verdict(const uint8_t bytes[SLU_DENIAL_BYTES]);
bool slu_answer_proves(const uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                       const uint8_t key[SLU_SIDE_KEY]);

/* Over what was said, hello and challenge. */
enum slu_proof_part { SLU_PROOF_DIALER, SLU_PROOF_ACCEPTOR, SLU_PROOF_CHOICE };
void slu_greeting_prove(const uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                        enum slu_proof_part part, const struct slu_side *dialer,
                        const struct slu_side *acceptor, uint8_t proof[SLU_PROOF_BYTES]);
bool slu_greeting_proves(const uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                         enum slu_proof_part part, const struct slu_side *dialer,
                         const struct slu_side *acceptor, const uint8_t given[SLU_PROOF_BYTES]);

#endif
