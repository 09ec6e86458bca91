/* SPDX-License-Identifier: MIT */
/* The seam: all that the engine calls of the layers above it. */
#ifndef SLU_ENGINE_SEAM_H
#define SLU_ENGINE_SEAM_H

struct slu_engine;

/* lib/scope/scope.c: the object of an engine's scopes is made and goes with the engine. */
int slu_scope_create(struct slu_engine *engine);
/* All work is drained. The object of an open scope stays until its end. */
void slu_scope_destroy(struct slu_engine *engine);
/* Says that a scope is open: -EBUSY, and its text. */
int slu_scope_in_use(void);

#endif
