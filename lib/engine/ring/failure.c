/* SPDX-License-Identifier: MIT */
/*
 * Unseen failures whose places were needed, and failures of requests that never had an entry. The
 * number is bounded: the oldest of an owner is dropped first, and counted.
 */
#include "config.h"

#include "engine/ring/result.h"

/* Returns the oldest failure of an owner, or NULL. */
static struct slu_failure *find_oldest(struct slu_engine *engine, enum slu_owner owner)
{
    struct slu_failure *oldest = NULL;

    for (uint32_t i = 0; i < SLU_FAILURES; i++) {
        struct slu_failure *failure = &engine->failures[i];

        if (failure->id != 0 && failure->owner == owner &&
            (oldest == NULL || failure->number < oldest->number))
            oldest = failure;
    }
    return oldest;
}

static void lose(struct slu_engine *engine, const struct slu_failure *failure)
{
    engine->failure_count--;
    if (failure->owner == SLU_OWNER_SCOPE) {
        if (engine->scope.lost++ == 0 || (slu_is_mere_cancellation(engine->scope_lost.error) &&
                                          !slu_is_mere_cancellation(failure->completion.error)))
            engine->scope_lost = failure->completion;
        return;
    }
    slu_counts_of(engine, failure->completion.peer, failure->completion.flags)->forgotten++;
    if (engine->failures_lost++ == 0)
        slu_log(SLUICE_LOG_WARN,
                "channel %llu: more than %d failures that nobody looked at: the oldest are "
                "forgotten, first one of %s %u (%s)",
                (unsigned long long)engine->tag, SLU_FAILURES, engine->peer_word,
                failure->completion.peer, sluice_status_name(failure->completion.status));
}

static struct slu_failure *find(struct slu_engine *engine, uint64_t id)
{
    for (uint32_t i = 0; i < SLU_FAILURES; i++)
        if (engine->failures[i].id == id)
            return &engine->failures[i];
    return NULL;
}

/*
 * Returns a free place, else one that was seen, else the owner's oldest, else the other owner's
 * oldest.
 */
static struct slu_failure *find_place(struct slu_engine *engine, enum slu_owner owner)
{
    struct slu_failure *place = find(engine, 0);

    if (place == NULL)
        place = find_oldest(engine, SLU_OWNER_CALL);
    if (place != NULL)
        return place;
    place = find_oldest(engine, owner);
    if (place == NULL)
        place = find_oldest(engine, owner == SLU_OWNER_SCOPE ? SLU_OWNER_PROGRAM : SLU_OWNER_SCOPE);
    lose(engine, place);
    return place;
}

static void keep(struct slu_engine *engine, uint64_t id, uint64_t number, enum slu_owner owner,
                 uint32_t index, const struct sluice_completion *completion)
{
    struct slu_failure *place = find_place(engine, owner);

    place->id = id;
    place->number = number;
    place->owner = (uint8_t)owner;
    place->index = index;
    place->completion = *completion;
    engine->failure_count++;
}

void slu_failure_keep_entry(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry)
{
    struct sluice_completion completion;

    slu_entry_result(entry, slu_entry_peer(id, entry), entry->marks.failed, &completion);
    keep(engine, id, entry->number, (enum slu_owner)entry->owner, entry->index, &completion);
}

uint64_t slu_failure_keep_refused(struct slu_engine *engine, enum slu_owner owner, uint32_t index,
                                  const struct sluice_completion *completion)
{
    uint64_t id = ++engine->refused_number * SLU_ID_STEP | SLU_ID_REFUSED;

    keep(engine, id, ++engine->done_number, owner, index, completion);
    return id;
}

void slu_failure_see(struct slu_engine *engine, struct slu_failure *failure)
{
    engine->failure_count -= failure->owner != SLU_OWNER_CALL;
    failure->owner = SLU_OWNER_CALL;
}

bool slu_failure_take(struct slu_engine *engine, enum slu_owner owner, uint64_t before,
                      struct sluice_completion *completion)
{
    struct slu_failure *failure = find_oldest(engine, owner);

    if (failure == NULL || failure->number > before)
        return false;
    *completion = failure->completion;
    slu_failure_see(engine, failure);
    return true;
}

bool slu_failure_find(struct slu_engine *engine, uint64_t id, bool drop,
                      struct sluice_completion *completion)
{
    struct slu_failure *failure = id != 0 ? find(engine, id) : NULL;

    if (failure == NULL)
        return false;
    *completion = failure->completion;
    slu_failure_see(engine, failure);
    if (drop)
        failure->id = 0;
    return true;
}
