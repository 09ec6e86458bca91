/* SPDX-License-Identifier: MIT */
/*
 * The report at the end of a scope. Results are stored in the order of completion, in one list
 * for each queue, and reported in the order of posting.
 */
#include "config.h"

#include "engine/ring/result.h"
#include "scope/scope.h"

/* Compares indexes modulo 2^32: a scope may post more than 2^32 requests. */
static bool is_earlier(uint32_t one, uint32_t other)
{
    return (int32_t)(one - other) < 0;
}

/* The ids of the failures of one queue, in a ring of the engine. */
struct failures {
    const struct slu_engine *engine;
    struct slu_order *order;
};

static uint64_t *id_at(const struct failures *failures, uint32_t at)
{
    return &failures->order->ids[(failures->order->tail + at) & failures->order->mask];
}

static uint32_t index_at(const struct failures *failures, uint32_t at)
{
    return slu_entry_find(failures->engine, *id_at(failures, at))->index;
}

/* Restores the heap below root; the latest failure is on top. */
static void sink(const struct failures *failures, uint32_t root, uint32_t count)
{
    uint32_t child;

    for (; (child = 2 * root + 1) < count; root = child) {
        uint64_t id = *id_at(failures, root);

        if (child + 1 < count &&
            is_earlier(index_at(failures, child), index_at(failures, child + 1)))
            child++;
        if (!is_earlier(index_at(failures, root), index_at(failures, child)))
            return;
        *id_at(failures, root) = *id_at(failures, child);
        *id_at(failures, child) = id;
    }
}

static void sort_by_posting(const struct failures *failures, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sink(failures, i, count);
    for (uint32_t last = count; last-- > 1;) {
        uint64_t id = *id_at(failures, 0);

        *id_at(failures, 0) = *id_at(failures, last);
        *id_at(failures, last) = id;
        sink(failures, 0, last);
    }
}

/* Keeps only the failures of an order, sorted by posting. Returns their number. */
static uint32_t keep_failures(struct slu_engine *engine, struct slu_order *order)
{
    struct failures failures = {.engine = engine, .order = order};
    uint32_t count = 0;

    if (SLU_LIKELY(engine->scope.failures == 0)) {
        order->tail = order->head;
        return 0;
    }
    slu_order_tidy(engine, SLU_OWNER_SCOPE, order);
    for (uint32_t i = 0; i < order->unseen; i++)
        if (slu_entry_find(engine, *id_at(&failures, i))->marks.failed)
            *id_at(&failures, count++) = *id_at(&failures, i);
    order->head = order->tail + count;
    sort_by_posting(&failures, count);
    return count;
}

/* Counts the successes that were not seen, and drops them. */
static void forget_successes(struct slu_engine *engine, struct outcome *outcome)
{
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        struct slu_order *order = &engine->orders[SLU_OWNER_SCOPE][queue];
        uint32_t failures = keep_failures(engine, order);

        outcome->unseen += order->unseen - failures;
        engine->held[queue] -= order->unseen - failures;
        order->unseen = failures;
    }
}

/* Returns the failure that was posted first among those stored outside of the rings; or NULL. */
static struct slu_failure *earliest_kept(struct slu_engine *engine)
{
    struct slu_failure *earliest = NULL;

    for (uint32_t i = 0; engine->failure_count > 0 && i < SLU_FAILURES; i++) {
        struct slu_failure *failure = &engine->failures[i];

        if (failure->id != 0 && failure->owner == SLU_OWNER_SCOPE &&
            (earliest == NULL || is_earlier(failure->index, earliest->index)))
            earliest = failure;
    }
    return earliest;
}

static bool was_posted_earlier(const struct slu_entry *one, const struct slu_entry *other)
{
    return is_earlier(one->index, other->index);
}

/* Takes the earliest failure of all lists. Returns false if there is none. */
static bool take_failure(struct slu_engine *engine, struct sluice_completion *completion)
{
    struct slu_failure *kept = earliest_kept(engine);
    struct slu_first first = slu_order_find(engine, SLU_OWNER_SCOPE, was_posted_earlier);

    if (kept != NULL && (first.entry == NULL || is_earlier(kept->index, first.entry->index))) {
        *completion = kept->completion;
        slu_failure_see(engine, kept);
        return true;
    }
    if (first.entry == NULL)
        return false;
    slu_order_take(engine, &first, completion);
    return true;
}

/* Records the first failure that is not a mere cancellation, or else the first of all. */
static void judge(struct outcome *outcome, const struct sluice_completion *completion)
{
    bool better = outcome->error == 0 || (slu_is_mere_cancellation(outcome->error) &&
                                          !slu_is_mere_cancellation(completion->error));

    if (!better)
        return;
    outcome->error = completion->error;
    outcome->first = *completion;
}

void slu_scope_collect(struct slu_engine *engine, struct sluice_completion *failures,
                       uint32_t capacity, struct outcome *outcome)
{
    const struct slu_scope *scope = &engine->scope;
    struct sluice_completion completion;

    *outcome = (struct outcome){.posted = scope->posted,
                                .failed = scope->lost,
                                .unseen = scope->forgotten + scope->lost,
                                .lost = scope->lost};
    /* Failures that were lost are in no list, but one may be the reason to report. */
    if (scope->lost > 0)
        judge(outcome, &engine->scope_lost);
    forget_successes(engine, outcome);
    while (take_failure(engine, &completion)) {
        outcome->unseen++;
        outcome->failed++;
        judge(outcome, &completion);
        if (failures != NULL && outcome->count < capacity)
            failures[outcome->count++] = completion;
    }
}
