/* SPDX-License-Identifier: MIT */
/*
 * Scopes: requests that are posted separately and waited for together. Guarantee: however a
 * scope ends, none of its requests is in flight afterwards.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "scope/scope.h"

int slu_scope_create(struct slu_engine *engine)
{
    struct slu_scope_object *object = calloc(1, sizeof *object);
    int error;

    if (object == NULL)
        return slu_fail(ENOMEM, "no memory for the scopes of a channel");
    error = slu_name_reserve(object);
    if (error < 0) {
        free(object);
        return error;
    }
    object->engine = engine;
    engine->scope_object = object;
    return 0;
}

static void free_object(struct slu_scope_object *object)
{
    slu_name_release(object);
    free(object);
}

void slu_scope_destroy(struct slu_engine *engine)
{
    struct slu_scope_object *object = engine->scope_object;

    engine->scope_object = NULL;
    if (object == NULL)
        return;
    if (!engine->scope.open) {
        free_object(object);
        return;
    }
    slu_scope_collect(engine, NULL, 0, &object->outcome);
    object->engine = NULL;
}

int slu_scope_in_use(void)
{
    return slu_misuse(EBUSY,
                      "a scope of this channel or multichannel is open: post in the scope, or "
                      "end it first");
}

struct sluice_scope *slu_scope_begin(struct slu_engine *engine, int64_t deadline)
{
    if (deadline < 0)
        return slu_misuse_null(EINVAL, "deadline %lld is negative", (long long)deadline);
    if (engine->scope.open)
        return slu_misuse_null(EBUSY,
                               "a scope of this channel or multichannel is open: end it first");
    engine->scope = (struct slu_scope){.open = true,
                                       .expired = deadline == 0,
                                       .tag = slu_next_tag(),
                                       .time = deadline,
                                       .deadline = slu_after(deadline)};
    engine->scope_object->report = NULL;
    slu_made();
    return slu_name_open(engine->scope_object);
}

int slu_scope_unusable(const struct sluice_scope *scope)
{
    if (slu_name_find(scope) == NULL)
        return slu_name_unknown(scope);
    return slu_misuse(EINVAL, "the channel of this scope was closed: the scope can only be ended");
}

int sluice_scope_poll(struct sluice_scope *scope, struct sluice_completion *completions,
                      uint32_t count)
{
    struct slu_engine *engine = slu_scope_engine(scope);

    if (engine == NULL)
        return slu_scope_unusable(scope);
    return slu_poll_owner(engine, SLU_OWNER_SCOPE, completions, count);
}

int sluice_scope_wait(struct sluice_scope *scope, const struct sluice_handle *handle,
                      int64_t timeout, struct sluice_completion *completion)
{
    struct slu_engine *engine = slu_scope_engine(scope);

    if (engine == NULL)
        return slu_scope_unusable(scope);
    return slu_wait_tagged(engine, engine->scope.tag, handle, timeout, completion);
}

/* Copies the program's report as far as this version knows it; all zero if it is NULL or wrong. */
static int read_report(const struct sluice_scope_report *report, struct sluice_scope_report *known)
{
    int error = SLU_ATTR_COPY(sluice_scope_report, known, report);
    uint32_t flags = known->flags;

    if (error == 0 && (flags & ~SLUICE_SCOPE_STRICT) == 0)
        return 0;
    memset(known, 0, sizeof *known);
    return error < 0
               ? error
               : slu_misuse(EINVAL, "sluice_scope_report.flags is %#x, must be of STRICT (%#x)",
                            flags, SLUICE_SCOPE_STRICT);
}

/* Writes the results to the program's report; known is the copy that was read from it. */
static void write_report(struct sluice_scope_report *report, struct sluice_scope_report *known,
                         const struct outcome *outcome, int error)
{
    known->error = error;
    known->posted = outcome->posted;
    known->failed = outcome->failed;
    known->unseen = outcome->unseen;
    known->lost = outcome->lost;
    known->count = outcome->count;
    slu_info_copy(report, known, sizeof *known);
}

/* Reports why a scope did not begin, so that its block does not run. */
static void report_no_scope(struct sluice_scope_report *report, int error)
{
    static const struct outcome nothing;
    struct sluice_scope_report known;
    struct slu_text text;

    /* The error of the scope matters more than one of the report. */
    slu_text_save(&text);
    if (report == NULL)
        slu_log(SLUICE_LOG_WARN, "a scope without a report did not begin: %s", text.bytes);
    else if (read_report(report, &known) == 0)
        write_report(report, &known, &nothing, error);
    else
        report->error = error;
    slu_text_restore(&text);
}

struct sluice_scope *sluice_scope_attach(struct sluice_scope *scope,
                                         struct sluice_scope_report *report)
{
    struct slu_scope_object *object;
    struct sluice_scope_report known;
    struct slu_text text;
    int error = errno != 0 ? -errno : -EINVAL;

    if (scope == NULL) {
        report_no_scope(report, error);
        return NULL;
    }
    object = slu_name_find(scope);
    if (object == NULL) {
        error = slu_name_unknown(scope);
        report_no_scope(report, error);
        return slu_none(error);
    }
    error = read_report(report, &known);
    if (error < 0) {
        /* Report the error even here: in every version the struct has the field error. */
        report->error = error;
        slu_text_save(&text);
        sluice_scope_end(scope, NULL);
        slu_text_restore(&text);
        return slu_none(error);
    }
    object->report = report;
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
    slu_scope_collect(engine, report->failures, report->capacity, outcome);
    slu_engine_leave(engine);
    engine->scope.open = false;
}

/* Returns the error of the requests alone. */
static int work_error(const struct slu_engine *engine, const struct outcome *outcome, bool strict)
{
    if (outcome->error != 0 && engine == NULL)
        return slu_fail(-outcome->error,
                        "the channel was closed or reset before the end of its scope: %u of %u "
                        "request%s failed unseen, first error: %s",
                        outcome->failed, outcome->posted, SLU_S(outcome->posted),
                        strerror(-outcome->error));
    if (outcome->error != 0)
        return slu_fail_completion(engine, &outcome->first, engine->scope.time);
    if (strict && outcome->unseen > 0)
        return slu_fail(EBUSY, "the results of %u of the %u request%s of the scope were not taken",
                        outcome->unseen, outcome->posted, SLU_S(outcome->posted));
    return 0;
}

/* Returns the error of the block if it set one, with its own text, or else of the requests. */
static int end_error(const struct slu_engine *engine, const struct outcome *outcome,
                     const struct sluice_scope_report *report, const struct slu_text *text)
{
    if (report->said >= 0)
        return work_error(engine, outcome, (report->flags & SLUICE_SCOPE_STRICT) != 0);
    slu_text_restore(text);
    return report->said;
}

/* Logs failures that no report receives; the thread's last error is that of the first. */
static void log_dropped(const struct outcome *outcome)
{
    struct slu_text text;

    if (outcome->failed == 0)
        return;
    slu_text_save(&text);
    slu_log(
        SLUICE_LOG_WARN,
        "a scope without a report has ended: %u of its %u request%s failed unseen, the first: %s",
        outcome->failed, outcome->posted, SLU_S(outcome->posted), text.bytes);
    slu_text_restore(&text);
}

int sluice_scope_end(struct sluice_scope *scope, struct sluice_scope_report *report)
{
    struct sluice_scope_report known;
    struct slu_scope_object *object = slu_name_find(scope);
    struct slu_engine *engine;
    struct outcome outcome;
    struct slu_text text;
    int wrong;
    int error;

    if (scope == NULL)
        return 0;
    if (object == NULL)
        return slu_name_unknown(scope);
    if (report == NULL)
        report = object->report;
    wrong = read_report(report, &known);
    if (wrong < 0 || known.said < 0)
        slu_text_save(&text);
    engine = object->engine;
    if (engine != NULL)
        end_work(engine, &known, &outcome);
    else
        outcome = object->outcome;
    slu_name_close(object);
    if (engine == NULL)
        free_object(object);
    if (wrong < 0) {
        slu_text_restore(&text);
        return wrong;
    }
    error = end_error(engine, &outcome, &known, &text);
    if (report != NULL)
        write_report(report, &known, &outcome, error);
    else
        log_dropped(&outcome);
    return error;
}
