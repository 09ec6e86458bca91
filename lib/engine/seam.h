/* SPDX-License-Identifier: MIT */
/*
 * The seam: all functions of the layers above that the engine calls, and one of the engine that its
 * own lower layers call.
 */
#ifndef SLU_ENGINE_SEAM_H
#define SLU_ENGINE_SEAM_H

#include <stdbool.h>

struct slu_engine;
struct slu_peer;

/*
 * lib/engine/absent.c: makes a peer that is absent, of an entered engine. Returns false, with a
 * text, if that fails; the peer stays absent.
 */
bool slu_peer_appear(struct slu_engine *engine, struct slu_peer *peer);

/* lib/scope/scope.c: creates the object of an engine's scopes. */
int slu_scope_create(struct slu_engine *engine);
/*
 * Frees that object, once all work is drained. If a scope is open, the object lives until the scope
 * ends.
 */
void slu_scope_destroy(struct slu_engine *engine);
/* Returns -EBUSY, with a text that a scope is open. */
int slu_scope_in_use(void);

#endif
