/* SPDX-License-Identifier: MIT */
/*
 * What the end of a scope finds: results lie in the order of completion, each
 * queue's in a list of its own, and are told in the order of posting.
 */
#include "config.h"

#include "scope/scope.h"

/* In the order of posting; a scope may post more than 2^32 requests. */
static bool is_earlier(uint32_t one, uint32_t other)
{
    return (int32_t)(one - other) < 0;
}

/* Successes are only counted. Returns how many failures are left in the list. */
static uint32_t forget_successes(struct slu_engine *engine, struct slu_pool *pool,
                                 struct outcome *outcome)
{
    uint32_t next = pool->done[SLU_OWNER_SCOPE].head;
    uint32_t left = 0;

    while (next != SLU_NONE) {
        struct slu_slot *slot = &pool->slots[next];

        next = slot->next;
        if (slot->result.error != 0) {
            left++;
            continue;
        }
        outcome->unseen++;
        slu_slot_seen(engine, slot);
    }
    return left;
}

/* Two lists, linked by next alone, become one. */
static uint32_t merge(struct slu_slot *slots, uint32_t one, uint32_t other)
{
    uint32_t head = SLU_NONE;
    uint32_t *tail = &head;

    while (one != SLU_NONE && other != SLU_NONE) {
        uint32_t *from = is_earlier(slots[other].index, slots[one].index) ? &other : &one;

        *tail = *from;
        tail = &slots[*from].next;
        *from = *tail;
    }
    *tail = one != SLU_NONE ? one : other;
    return head;
}

/* The first count of a chain, at least 1, as one of their own; the chain goes on behind them. */
static uint32_t sort_chain(struct slu_slot *slots, uint32_t *chain, uint32_t count)
{
    uint32_t one = *chain;
    uint32_t other;

    if (count == 1) {
        *chain = slots[one].next;
        slots[one].next = SLU_NONE;
        return one;
    }
    one = sort_chain(slots, chain, count / 2);
    other = sort_chain(slots, chain, count - count / 2);
    return merge(slots, one, other);
}

/* From here on, the list is only taken from at its head, which needs no more links than these. */
static void sort_by_posting(struct slu_pool *pool, uint32_t count)
{
    struct slu_list *list = &pool->done[SLU_OWNER_SCOPE];

    if (count == 0)
        return;
    list->head = sort_chain(pool->slots, &list->head, count);
    pool->slots[list->head].prev = SLU_NONE;
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

/* The failure that was posted first, of those that are left; the lists are sorted. */
static bool take_failure(struct slu_engine *engine, struct sluice_completion *completion)
{
    struct slu_failure *kept = earliest_kept(engine);
    struct slu_slot *slot = NULL;

    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        struct slu_pool *pool = &engine->pools[queue];
        uint32_t head = pool->done[SLU_OWNER_SCOPE].head;

        if (head != SLU_NONE && (slot == NULL || is_earlier(pool->slots[head].index, slot->index)))
            slot = &pool->slots[head];
    }
    if (kept != NULL && (slot == NULL || is_earlier(kept->index, slot->index))) {
        *completion = kept->completion;
        slu_failure_see(engine, kept);
        return true;
    }
    if (slot == NULL)
        return false;
    *completion = slot->result;
    slu_slot_seen(engine, slot);
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
    outcome->known = true;
}

void slu_scope_collect(struct slu_engine *engine, struct sluice_completion *failures,
                       uint32_t capacity, struct outcome *outcome)
{
    const struct slu_scope *scope = &engine->scope;
    struct sluice_completion completion;

    *outcome = (struct outcome){.posted = scope->posted,
                                .failed = scope->lost,
                                .unseen = scope->recycled + scope->lost,
                                .lost = scope->lost,
                                .error = scope->lost_error};
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        struct slu_pool *pool = &engine->pools[queue];

        sort_by_posting(pool, forget_successes(engine, pool, outcome));
    }
    while (take_failure(engine, &completion)) {
        outcome->unseen++;
        outcome->failed++;
        judge(outcome, &completion);
        if (failures != NULL && outcome->count < capacity)
            failures[outcome->count++] = completion;
    }
}
