/* SPDX-License-Identifier: MIT */
/*
 * What becomes of the scopes of an engine, one after the other. The work of the
 * one that is open is counted in the engine; the object is made with the engine,
 * so that opening a scope allocates nothing, and lives as long as the engine or,
 * if that goes while a scope is open, until the end of that scope.
 */
#ifndef SLU_SCOPE_H
#define SLU_SCOPE_H

#include "engine/engine.h"

/* What became of the work of a scope. */
struct outcome {
    uint32_t posted, failed, unseen, lost;
    uint32_t count; /* of failures written */
    int error;      /* of the first failure, or 0 */
    struct sluice_completion first;
};

struct slu_scope_object {
    uintptr_t name;                     /* of the last scope; see name.c */
    struct slu_engine *engine;          /* NULL: closed while the scope was open */
    struct sluice_scope_report *report; /* attached, or NULL */
    struct outcome outcome;             /* if the engine is closed */
};

/*
 * name.c: what a program has of a scope is a name, which is never an address
 * and of no other scope. The object of an open scope; NULL if it is not open.
 */
struct slu_scope_object *slu_name_find(const struct sluice_scope *scope);
/* Then it has ended, -ESTALE, or is something else, -EINVAL; with a text. */
int slu_name_unknown(const struct sluice_scope *scope);
/* A place for names is the object's until it is given back. */
int slu_name_reserve(struct slu_scope_object *object);
void slu_name_release(const struct slu_scope_object *object);
/* Names the next scope of the object; ends that name. */
struct sluice_scope *slu_name_open(struct slu_scope_object *object);
void slu_name_close(struct slu_scope_object *object);

/* Where the work of a scope goes: NULL if it is not open, or its channel was closed. */
static inline struct slu_engine *slu_scope_engine(const struct sluice_scope *scope)
{
    const struct slu_scope_object *object = slu_name_find(scope);

    return SLU_LIKELY(object != NULL) ? object->engine : NULL;
}
/* Opens the scope of an engine; NULL: an error with a text. */
struct sluice_scope *slu_scope_begin(struct slu_engine *engine, int64_t deadline);
/* Then it is -ESTALE or -EINVAL, with a text. */
int slu_scope_unusable(const struct sluice_scope *scope);

/* post.c: the requests of a prepared list, which are then the scope's; see sluice/list.h. */
struct slu_list;
int slu_scope_post_prepared(struct sluice_scope *scope, struct slu_list *list,
                            struct sluice_handle *handles);

/*
 * report.c: takes all results that nobody saw, in the order of posting. At most
 * capacity failures are written.
 */
void slu_scope_collect(struct slu_engine *engine, struct sluice_completion *failures,
                       uint32_t capacity, struct outcome *outcome);

#endif
