/* SPDX-License-Identifier: MIT */
/*
 * Proofs that a side knows a key, without sending it: HMAC-SHA-256 over a label, which names the
 * role of the prover, and over all that both sides have sent so far. Each side has sent a fresh
 * challenge, so a proof cannot be replayed; the labels differ, so it cannot be reflected.
 */
#ifndef SLU_CONNECT_PROOF_H
#define SLU_CONNECT_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLU_PROOF_BYTES 32
#define SLU_CHALLENGE_BYTES 32

/* A piece of what is proven, in this order. */
struct slu_proof_span {
    const void *bytes;
    size_t count;
};

/*
 * Must succeed before all else. May be called from any thread and repeatedly. Returns 0, or an
 * error with a text.
 */
int slu_proof_init(void);

/* Makes a proof. The label has at most 15 characters. */
void slu_proof_make(const uint8_t *key, size_t key_bytes, const char *label,
                    const struct slu_proof_span *parts, size_t count,
                    uint8_t proof[SLU_PROOF_BYTES]);

/* These take the same time for all bytes. */
bool slu_proof_equal(const uint8_t *a, const uint8_t *b, size_t count);
void slu_proof_forget(void *bytes, size_t count);

#endif
