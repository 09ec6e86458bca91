/* SPDX-License-Identifier: MIT */
/* Texts for failures of requests and peers. */
#ifndef SLU_ENGINE_PEER_WORDS_H
#define SLU_ENGINE_PEER_WORDS_H

#include "base/clock.h"
#include "engine/request/opcode.h"

/* Returns whether the peer has failed, and why. The caller has entered the engine. */
bool slu_peer_error(const struct slu_engine *engine, const struct slu_peer *peer,
                    struct sluice_error *error);
/* Returns the part of its text that follows the operation and the peer, which is the reason. */
const char *slu_error_reason(const struct sluice_error *error);
/*
 * Returns the error of a failed request that had this deadline, with a text that gives the reason.
 */
int slu_fail_completion(const struct slu_engine *engine, const struct sluice_completion *completion,
                        int64_t time);
/*
 * Returns -ETIMEDOUT for a request that was posted and late, whose peer's error is not known any
 * more.
 */
int slu_fail_late(const struct slu_engine *engine, const struct sluice_completion *completion,
                  int64_t time);

/*
 * Writes "1 send, write or read, and 2 receives" to text and returns text. sends counts all that
 * are not receives.
 */
#define SLU_PENDING_BYTES 64
const char *slu_say_pending(uint32_t sends, uint32_t receives, char text[SLU_PENDING_BYTES]);

#endif
