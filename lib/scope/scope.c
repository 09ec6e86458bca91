/* SPDX-License-Identifier: MIT */
/*
 * Scopes: work that is posted freely and waited for together. Whatever way a
 * scope ends, nothing of its work is in flight afterwards.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "scope.h"

int slu_scope_create(struct slu_engine *engine)
{
    engine->scope_object = calloc(1, sizeof *engine->scope_object);
    if (engine->scope_object == NULL)
        return slu_fail(ENOMEM, "no memory for the scopes of a channel");
    return 0;
}

void slu_scope_destroy(struct slu_engine *engine)
{
    struct sluice_scope *scope = engine->scope_object;

    engine->scope_object = NULL;
    if (!engine->scope.open) {
        free(scope);
        return;
    }
    slu_scope_collect(engine, NULL, 0, &scope->outcome);
    scope->engine = NULL;
}

int slu_scope_in_use(void)
{
    return slu_misuse(EBUSY, "a scope of this channel is open: post in the scope, or end it first");
}

struct sluice_scope *slu_scope_begin(struct slu_engine *engine, int64_t deadline)
{
    struct sluice_scope *scope = engine->scope_object;

    if (deadline < 0)
        return slu_misuse_null(EINVAL, "deadline %lld is negative", (long long)deadline);
    if (engine->scope.open)
        return slu_misuse_null(EBUSY, "a scope of this channel is open: end it first");
    engine->scope =
        (struct slu_scope){.open = true, .tag = slu_next_tag(), .deadline = slu_after(deadline)};
    scope->magic = SLU_MAGIC_SCOPE;
    scope->engine = engine;
    scope->report = NULL;
    return scope;
}

static int not_a_scope(void)
{
    return slu_misuse(EINVAL, "not an open scope");
}

int slu_scope_usable(const struct sluice_scope *scope)
{
    if (!slu_is_scope(scope))
        return not_a_scope();
    if (scope->engine == NULL)
        return slu_misuse(EINVAL,
                          "the channel of this scope was closed: nothing is left but to end it");
    return 0;
}

int sluice_scope_poll(struct sluice_scope *scope, struct sluice_completion *completions,
                      uint32_t count)
{
    int error = slu_scope_usable(scope);

    return error < 0 ? error : slu_poll_owner(scope->engine, SLU_OWNER_SCOPE, completions, count);
}

int sluice_scope_wait(struct sluice_scope *scope, const struct sluice_handle *handle,
                      int64_t timeout, struct sluice_completion *completion)
{
    int error = slu_scope_usable(scope);

    return error < 0 ? error
                     : slu_wait_tagged(scope->engine, scope->engine->scope.tag, handle, timeout,
                                       completion);
}

static int check_report(const struct sluice_scope_report *report)
{
    if (report == NULL)
        return 0;
    if (report->size != sizeof *report)
        return slu_misuse(EINVAL, "sluice_scope_report.size is %u, must be %zu", report->size,
                          sizeof *report);
    if ((report->flags & ~SLUICE_SCOPE_STRICT) != 0)
        return slu_misuse(EINVAL, "sluice_scope_report.flags is %#x, must be of STRICT (%#x)",
                          report->flags, SLUICE_SCOPE_STRICT);
    return 0;
}

static void fill_report(struct sluice_scope_report *report, const struct outcome *outcome,
                        int error)
{
    report->error = error;
    report->posted = outcome->posted;
    report->failed = outcome->failed;
    report->unseen = outcome->unseen;
    report->lost = outcome->lost;
    report->count = outcome->count;
}

struct sluice_scope *sluice_scope_attach(struct sluice_scope *scope,
                                         struct sluice_scope_report *report)
{
    static const struct outcome nothing;
    int error = errno != 0 ? -errno : -EINVAL;

    if (scope == NULL) {
        if (report != NULL && report->size == sizeof *report)
            fill_report(report, &nothing, error);
        else if (report != NULL)
            report->error = error;
        return NULL;
    }
    if (!slu_is_scope(scope)) {
        not_a_scope();
        return NULL;
    }
    if (check_report(report) < 0) {
        /* The program learns it here or never: no struct of any version ends before error. */
        report->error = -EINVAL;
        sluice_scope_end(scope, NULL);
        check_report(report);
        return NULL;
    }
    scope->report = report;
    return scope;
}

static bool is_drained(void *argument)
{
    const struct slu_engine *engine = argument;

    return engine->scope.pending == 0;
}

/* Waits for all work of the scope, and closes it. */
static void end_work(struct slu_engine *engine, const struct sluice_scope_report *report,
                     struct outcome *outcome)
{
    slu_engine_enter(engine);
    slu_wait(engine, is_drained, engine, SLUICE_FOREVER);
    slu_scope_collect(engine, report != NULL ? report->failures : NULL,
                      report != NULL ? report->capacity : 0, outcome);
    slu_engine_leave(engine);
    engine->scope.open = false;
}

/* What the work alone makes of the end. */
static int work_error(const struct slu_engine *engine, const struct outcome *outcome, bool strict)
{
    if (outcome->error != 0 && engine == NULL)
        return slu_fail(-outcome->error,
                        "the channel was closed before the end of its scope: %u of %u requests "
                        "failed unseen, first error: %s",
                        outcome->failed, outcome->posted, strerror(-outcome->error));
    if (outcome->error != 0 && outcome->known)
        return slu_fail_completion(engine, &outcome->first);
    if (outcome->error != 0)
        return slu_fail(-outcome->error, "%u requests of the scope failed unseen, the first: %s",
                        outcome->lost, strerror(-outcome->error));
    if (strict && outcome->unseen > 0)
        return slu_fail(EBUSY, "%u of %u requests of the scope were left that nobody had looked at",
                        outcome->unseen, outcome->posted);
    return 0;
}

/* The words of what the block says of itself stay. */
static int end_error(const struct slu_engine *engine, const struct outcome *outcome,
                     const struct sluice_scope_report *report, const struct slu_text *text)
{
    if (report == NULL)
        return work_error(engine, outcome, false);
    if (report->said == 0)
        return work_error(engine, outcome, (report->flags & SLUICE_SCOPE_STRICT) != 0);
    slu_text_restore(text);
    return report->said;
}

int sluice_scope_end(struct sluice_scope *scope, struct sluice_scope_report *report)
{
    struct sluice_scope_report *filled;
    struct slu_engine *engine;
    struct outcome outcome;
    struct slu_text text;
    int error;

    if (scope == NULL)
        return 0;
    if (!slu_is_scope(scope))
        return not_a_scope();
    if (report == NULL)
        report = scope->report;
    filled = check_report(report) == 0 ? report : NULL;
    if (filled != NULL && filled->said != 0)
        slu_text_save(&text);
    engine = scope->engine;
    if (engine != NULL)
        end_work(engine, filled, &outcome);
    else
        outcome = scope->outcome;
    scope->magic = SLU_MAGIC_DEAD;
    if (engine == NULL)
        free(scope);
    if (report != filled)
        return check_report(report);
    error = end_error(engine, &outcome, report, &text);
    if (report != NULL)
        fill_report(report, &outcome, error);
    return error;
}
