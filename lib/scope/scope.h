/* SPDX-License-Identifier: MIT */
/*
 * The scopes of an engine, of which one at a time is open. The engine counts the work of
 * the open scope. The object is made with the engine, so that opening a scope allocates
 * nothing. It lives as long as the engine or, if that is closed while a scope is open,
 * until the end of that scope.
 */
#ifndef SLU_SCOPE_H
#define SLU_SCOPE_H

#include "engine/engine.h"

/* The results of a scope: how its requests ended. */
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
 * name.c: a scope's handle is a name, which is no address and is never reused. Returns the
 * object of an open scope; NULL if it is not open.
 */
struct slu_scope_object *slu_name_find(const struct sluice_scope *scope);
/* Fails, for a scope that is not open: -ESTALE if it has ended, -EINVAL if it is no scope. */
int slu_name_unknown(const struct sluice_scope *scope);
/* Reserve a place for the names of an object, and release it. */
int slu_name_reserve(struct slu_scope_object *object);
void slu_name_release(const struct slu_scope_object *object);
/* Give the next scope of the object its name, and end that name. */
struct sluice_scope *slu_name_open(struct slu_scope_object *object);
void slu_name_close(struct slu_scope_object *object);

/* Returns the engine of a scope; NULL if it is not open, or its channel was closed. */
static inline struct slu_engine *slu_scope_engine(const struct sluice_scope *scope)
{
    const struct slu_scope_object *object = slu_name_find(scope);

    return SLU_LIKELY(object != NULL) ? object->engine : NULL;
}
/* Opens the scope of an engine; returns NULL and sets a text on an error. */
struct sluice_scope *slu_scope_begin(struct slu_engine *engine, int64_t deadline);
/* Fails, for a scope without an engine: -ESTALE or -EINVAL. */
int slu_scope_unusable(const struct sluice_scope *scope);

/* post.c: posts the requests of a prepared list, which then belong to the scope. */
struct slu_list;
int slu_scope_post_prepared(struct sluice_scope *scope, struct slu_list *list,
                            struct sluice_handle *handles);

/*
 * report.c: takes all results that the program has not seen, and writes up to capacity
 * failures, in the order of posting.
 */
void slu_scope_collect(struct slu_engine *engine, struct sluice_completion *failures,
                       uint32_t capacity, struct outcome *outcome);

#endif
