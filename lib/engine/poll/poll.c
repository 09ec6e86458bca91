/* SPDX-License-Identifier: MIT */
/*
 * Results of posted work: polling them, waiting for the next one, and waiting until all are in.
 */
#include "config.h"

#include "engine/poll/poll.h"

#include "engine/list/list.h"
#include "engine/peer/words.h"
#include "engine/progress/progress.h"
#include "engine/progress/wait.h"

static int check_room(const struct sluice_completion *completions, uint32_t count)
{
    if (count > INT32_MAX)
        return slu_misuse(EINVAL, "count %u is above 2^31 - 1", count);
    if (count > 0 && completions == NULL)
        return slu_misuse(EINVAL, "completions must not be NULL for a count of %u", count);
    return 0;
}

/* Polls directly into the program's array. There must be no older result that is unseen. */
static SLU_INLINE uint32_t poll_into(struct slu_engine *engine,
                                     struct sluice_completion *completions, uint32_t count)
{
    engine->sink.next = completions;
    engine->sink.left = count;
    slu_progress_inline(engine);
    count -= engine->sink.left;
    engine->sink.left = 0;
    return count;
}

/* Polls until the owner has count results, or nothing is left to poll. */
static void progress_for(struct slu_engine *engine, enum slu_owner owner, uint32_t count)
{
    int found;

    do {
        found = slu_poll_queue(engine, SLU_BATCH);
        slu_look_at_clock(engine, found);
    } while (found == SLU_BATCH && slu_unseen(engine, owner) < count);
}

int slu_poll_owner(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completions, uint32_t count)
{
    int error = check_room(completions, count);

    if (error < 0)
        return error;
    slu_engine_enter(engine);
    slu_wake_seen(engine);
    progress_for(engine, owner, count);
    count = slu_take_all_done(engine, owner, completions, count);
    slu_engine_leave(engine);
    return (int)count;
}

/* Handles the slow path of a poll: an error, or results that are there already. */
static __attribute__((noinline)) int
poll_unusual(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count)
{
    return engine->scope.open ? slu_scope_in_use()
                              : slu_poll_owner(engine, SLU_OWNER_PROGRAM, completions, count);
}

int slu_poll(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count)
{
    uint32_t taken;

    if (SLU_UNLIKELY(completions == NULL || count > INT32_MAX ||
                     (engine->scope.open | engine->failure_count |
                      slu_unseen(engine, SLU_OWNER_PROGRAM)) != 0))
        return poll_unusual(engine, completions, count);
    slu_engine_enter(engine);
    slu_wake_seen(engine);
    taken = poll_into(engine, completions, count);
    /* A failure may have been moved to failure.c because its place was needed. */
    if (SLU_UNLIKELY(taken < count && engine->failure_count > 0))
        taken += slu_take_all_done(engine, SLU_OWNER_PROGRAM, completions + taken, count - taken);
    slu_engine_leave(engine);
    return (int)taken;
}

static bool is_quiet(struct slu_engine *engine)
{
    return engine->transport->cq_is_quiet != NULL &&
           !atomic_load_explicit(&engine->cq->alerted, memory_order_relaxed) &&
           engine->transport->cq_is_quiet(engine->cq);
}

bool slu_poll_is_empty(struct slu_engine *engine)
{
    struct slu_wc wc;
    int count;

    if ((engine->scope.open | engine->failure_count | slu_unseen(engine, SLU_OWNER_PROGRAM)) != 0)
        return false;
    if (is_quiet(engine))
        return true;
    slu_engine_enter(engine);
    count = slu_poll_cq(engine, &wc, 1);
    if (SLU_UNLIKELY(count != 0))
        slu_take_batch(engine, &wc, count);
    slu_engine_leave(engine);
    return count == 0;
}

/* Returns whether work of the program is pending whose result can be polled. */
static bool awaits_results(const struct slu_engine *engine)
{
    if (engine->pool != NULL && engine->pool->pending > 0 && engine->ready_count > 0)
        return true;
    return engine->pending[SLU_SEND_QUEUE] + engine->pending[SLU_RECEIVE_QUEUE] >
           engine->scope.pending + engine->detached + slu_lists_pending(engine);
}

static bool next_ready(void *argument)
{
    const struct slu_engine *engine = argument;

    return slu_unseen(engine, SLU_OWNER_PROGRAM) > 0 || engine->failure_count > 0 ||
           !awaits_results(engine);
}

static int fail_without_work(const struct slu_engine *engine)
{
    if (engine->pool != NULL && engine->pool->pending > 0)
        return slu_fail(ENOENT,
                        "no peer is connected: no message would come for the %u receive%s in the "
                        "pool, and nothing else is posted",
                        engine->pool->pending, SLU_S(engine->pool->pending));
    return slu_fail(ENOENT, "nothing is posted, and nothing is unseen: no completion would come");
}

static int await_next(struct slu_engine *engine, int64_t timeout,
                      struct sluice_completion *completion)
{
    int ready = slu_wait_interruptible(engine, next_ready, engine, slu_after(timeout));

    if (ready < 0)
        return ready;
    if (ready == 0)
        return slu_fail(ETIMEDOUT, "no completion came; work is still pending");
    if (slu_take_done(engine, SLU_OWNER_PROGRAM, completion))
        return 0;
    return fail_without_work(engine);
}

int slu_next(struct slu_engine *engine, int64_t timeout, struct sluice_completion *completion)
{
    int result = slu_scope_check(engine);

    if (result < 0)
        return result;
    if (completion == NULL)
        return slu_misuse(EINVAL, "completion must not be NULL");
    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    slu_engine_enter(engine);
    if (!slu_take_done(engine, SLU_OWNER_PROGRAM, completion))
        result = await_next(engine, timeout, completion);
    slu_engine_leave(engine);
    return result;
}

static bool all_complete(void *argument)
{
    const struct slu_engine *engine = argument;

    return slu_nothing_pends(engine);
}

int slu_flush(struct slu_engine *engine, int64_t timeout)
{
    char pending[SLU_PENDING_BYTES];
    int ready = slu_scope_check(engine);

    if (ready < 0)
        return ready;
    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    slu_engine_enter(engine);
    ready = slu_wait_interruptible(engine, all_complete, engine, slu_after(timeout));
    if (ready == 0)
        ready = slu_fail(ETIMEDOUT, "still pending: %s",
                         slu_say_pending(engine->pending[SLU_SEND_QUEUE],
                                         engine->pending[SLU_RECEIVE_QUEUE], pending));
    slu_end_regions(engine);
    slu_engine_leave(engine);
    return ready > 0 ? 0 : ready;
}
