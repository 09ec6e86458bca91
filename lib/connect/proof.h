/* SPDX-License-Identifier: MIT */
/*
 * Proving that one knows a key without telling it: HMAC-SHA-256 over a label, which
 * names the part that the prover plays, and over all that both sides have said so far.
 * Each side has put a fresh challenge in, so that nothing can be said again later; the
 * labels differ, so that nothing can be said back.
 */
#ifndef SLU_CONNECT_PROOF_H
#define SLU_CONNECT_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLU_PROOF_BYTES 32
#define SLU_CHALLENGE_BYTES 32

/* One of the pieces that are proven, in this order. */
struct slu_part {
    const void *bytes;
    size_t count;
};

/* Before all else, from any thread and as often as one likes: 0, or an error with a text. */
int slu_proof_init(void);

/* The label has 15 characters at most. */
void slu_proof_make(const uint8_t *key, size_t key_bytes, const char *label,
                    const struct slu_part *parts, size_t count, uint8_t proof[SLU_PROOF_BYTES]);

/* These two take the same time whatever the bytes are. */
bool slu_proof_equal(const uint8_t *a, const uint8_t *b, size_t count);
void slu_proof_forget(void *bytes, size_t count);

#endif
