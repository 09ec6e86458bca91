/* SPDX-License-Identifier: MIT */
/*
 * What the end of a scope finds: results lie in the order of completion, each
 * queue's in a list of its own, and are told in the order of posting.
 */
#include "config.h"

#include "engine/inside.h"
#include "scope/scope.h"

/* In the order of posting; a scope may post more than 2^32 requests. */
static bool is_earlier(uint32_t one, uint32_t other)
{
    return (int32_t)(one - other) < 0;
}

/* Ids of failures of one queue, in an array of the engine that is a ring. */
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

/* The one at root goes down to where it belongs, in a heap whose last comes first. */
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

/* What is left of an order are the failures, in the order of posting. Returns their number. */
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

/* Successes are only counted. */
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

/* Of those that were kept aside. */
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

/* The failure that was posted first, of those that are left, which are sorted. */
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

/* The first that is no mere cancellation is the first failure, or else the first. */
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
    /* Its words are needed though it is in no list. */
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
