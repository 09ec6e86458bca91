/* SPDX-License-Identifier: MIT */
/*
 * What a program has of a scope. Its work is counted in the engine; the object
 * is made with the engine, so that opening a scope allocates nothing, and lives
 * as long as the engine or, if that goes while the scope is open, until the end
 * of the scope.
 */
#ifndef SLU_SCOPE_H
#define SLU_SCOPE_H

#include "../engine/engine.h"

/* What became of the work of a scope. */
struct outcome {
    uint32_t posted, failed, unseen, lost;
    uint32_t count; /* of failures written */
    int error;      /* of the first failure, or 0 */
    bool known;     /* and that is this one */
    struct sluice_completion first;
};

struct sluice_scope {
    uint32_t magic;
    struct slu_engine *engine;          /* NULL: closed while the scope was open */
    struct sluice_scope_report *report; /* attached, or NULL */
    struct outcome outcome;             /* if the engine is closed */
};

static inline bool slu_is_scope(const struct sluice_scope *scope)
{
    return scope != NULL && scope->magic == SLU_MAGIC_SCOPE;
}

/* Open, and its channel is as well: 0, or -EINVAL with a text. */
int slu_scope_usable(const struct sluice_scope *scope);

/*
 * report.c: takes all results that nobody saw, in the order of posting. At most
 * capacity failures are written.
 */
void slu_scope_collect(struct slu_engine *engine, struct sluice_completion *failures,
                       uint32_t capacity, struct outcome *outcome);

#endif
