/* SPDX-License-Identifier: MIT */
/* The seam: all functions of the layers above that the engine calls. */
#ifndef SLU_ENGINE_SEAM_H
#define SLU_ENGINE_SEAM_H

struct slu_engine;

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
