/* SPDX-License-Identifier: MIT */
/*
 * Handles: waiting for the request that a handle names, cancelling it, and detaching it. A handle
 * that names no request any more is recognised, whatever its bits are.
 */
#include "config.h"

#include "engine/poll/poll.h"
#include "engine/post/pool.h"
#include "engine/progress/progress.h"
#include "engine/progress/wait.h"

/* Checks a handle, whose owner must be the tag of the engine or of its scope. */
static int check_handle(uint64_t tag, const struct sluice_handle *handle)
{
    if (handle == NULL)
        return slu_misuse(EINVAL, "handle must not be NULL");
    if (handle->owner == 0)
        return slu_misuse(ESTALE, "the handle is empty: no call wrote it");
    if (handle->owner != tag)
        return slu_misuse(ESTALE, "the handle is not of this channel or scope");
    return 0;
}

static int no_completion(void)
{
    return slu_misuse(EINVAL, "completion must not be NULL");
}

static int fail_wait(uint64_t tag, const struct sluice_handle *handle, int64_t timeout,
                     const struct sluice_completion *completion)
{
    if (completion == NULL)
        return no_completion();
    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    return check_handle(tag, handle);
}

/* Returns the entry that holds the request or its result; NULL if none does. */
static inline struct slu_entry *find_entry(struct slu_engine *engine, uint64_t id)
{
    const struct slu_ring *ring = slu_ring_of(engine, id);
    struct slu_entry *entry = slu_ring_find(engine, ring, id);

    return SLU_LIKELY(entry != NULL && entry->owner < SLU_OWNERS_KEEP &&
                      (ring == NULL || slu_ring_is_of_today(ring, id)))
               ? entry
               : NULL;
}

/* Finds the result of an id in failure.c, with the same check of the peer. */
static bool find_failure(struct slu_engine *engine, uint64_t id, bool drop,
                         struct sluice_completion *completion)
{
    const struct slu_ring *ring = slu_ring_of(engine, id);

    return (ring == NULL || slu_ring_is_of_today(ring, id)) &&
           slu_failure_find(engine, id, drop, completion);
}

/*
 * Reports a stale handle as a failure and not as misuse: the place may have been needed under load,
 * which is no mistake of the program.
 */
static int fail_stale(void)
{
    return slu_fail(
        ESTALE, "no request has this handle any more: it was detached, or its place was needed");
}

/* Fills in the result of a request that is not pending, and marks it as seen. */
static int see_result(struct slu_engine *engine, struct slu_entry *entry, uint64_t id,
                      struct sluice_completion *completion)
{
    if (SLU_UNLIKELY(entry == NULL))
        return find_failure(engine, id, false, completion) ? 0 : fail_stale();
    slu_entry_result(entry, slu_entry_peer(id, entry), entry->marks.failed, completion);
    if (entry->state == SLU_ENTRY_DONE)
        slu_entry_seen(engine, entry);
    return 0;
}

/* Waits until an entry is not pending: 1, or -ETIMEDOUT, -EINTR or -ENOTCONN. */
static int await_entry(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry,
                       int64_t timeout)
{
    int ready = slu_id_is_pool(id) ? slu_pool_await(engine, entry, slu_after(timeout))
                                   : slu_wait_result(engine, entry, id, timeout);

    return ready != 0 ? ready : slu_fail(ETIMEDOUT, "the request is still pending");
}

/*
 * Tries the fast path of a wait: the request is the oldest of its ring, and ends with the next
 * completion.
 */
static SLU_INLINE const struct slu_entry *see_next(struct slu_engine *engine, uint64_t id)
{
    const struct slu_ring *ring = slu_ring_of(engine, id);
    const struct slu_entry *entry;
    int count;

    if (SLU_UNLIKELY(ring == NULL || ring->oldest != id || ring->next == id ||
                     slu_ring_entry(ring, id)->owner != SLU_OWNER_PROGRAM))
        return NULL;
    entry = slu_id_is_of(id, SLU_SEND_QUEUE) ? slu_poll_next(engine, SLU_SEND_QUEUE, id, &count)
                                             : slu_poll_next(engine, SLU_RECEIVE_QUEUE, id, &count);
    if (SLU_UNLIKELY(++engine->busy_polls >= SLU_BUSY_POLLS))
        slu_look_at_clock(engine, count);
    return entry;
}

static __attribute__((noinline)) int wait_long(struct slu_engine *engine, uint64_t id,
                                               int64_t timeout,
                                               struct sluice_completion *completion)
{
    struct slu_entry *entry = find_entry(engine, id);
    int result = 1;

    if (entry != NULL && entry->state == SLU_ENTRY_PENDING)
        result = await_entry(engine, id, entry, timeout);
    return result > 0 ? see_result(engine, entry, id, completion) : result;
}

int slu_wait_tagged(struct slu_engine *engine, uint64_t tag, const struct sluice_handle *handle,
                    int64_t timeout, struct sluice_completion *completion)
{
    const struct slu_entry *entry;
    int result = 0;

    if (SLU_UNLIKELY(handle == NULL || completion == NULL || timeout < 0 || handle->owner != tag))
        return fail_wait(tag, handle, timeout, completion);
    slu_engine_enter(engine);
    entry = see_next(engine, handle->id);
    if (SLU_LIKELY(entry != NULL))
        slu_entry_result(entry, slu_id_peer(handle->id), false, completion);
    else
        result = wait_long(engine, handle->id, timeout, completion);
    slu_engine_leave(engine);
    return result;
}

int slu_wait_handle(struct slu_engine *engine, const struct sluice_handle *handle, int64_t timeout,
                    struct sluice_completion *completion)
{
    return SLU_UNLIKELY(engine->scope.open)
               ? slu_scope_in_use()
               : slu_wait_tagged(engine, engine->tag, handle, timeout, completion);
}

/* Checks whether a handle may be cancelled or detached: 0, or the error. */
static int check_own_handle(const struct slu_engine *engine, const struct sluice_handle *handle)
{
    int error = slu_scope_check(engine);

    return error < 0 ? error : check_handle(engine->tag, handle);
}

/*
 * Cancels a request by ending its connection with all its work: a connection cannot take back one
 * request.
 */
static void cancel_entry(struct slu_engine *engine, struct slu_peer *peer,
                         const struct slu_entry *entry)
{
    /* A request that is complete by now is not cancelled. */
    slu_progress_all(engine);
    if (entry->state != SLU_ENTRY_PENDING)
        return;
    slu_peer_fail(engine, peer, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_OP_NONE, 0);
    slu_peer_await_idle(engine, peer);
}

int slu_cancel(struct slu_engine *engine, const struct sluice_handle *handle,
               struct sluice_completion *completion)
{
    int error = check_own_handle(engine, handle);
    struct slu_entry *entry;

    if (error < 0)
        return error;
    if (completion == NULL)
        return no_completion();
    slu_engine_enter(engine);
    entry = find_entry(engine, handle->id);
    if (entry != NULL && entry->state == SLU_ENTRY_PENDING) {
        if (slu_id_is_pool(handle->id))
            error = slu_pool_cancel(engine, handle->id, entry);
        else
            cancel_entry(engine, &engine->peers[slu_id_peer(handle->id)], entry);
    }
    if (error == 0)
        error = see_result(engine, entry, handle->id, completion);
    slu_engine_leave(engine);
    return error;
}

/*
 * Detaches an entry, whose result is discarded. A pending request goes on, and its entry becomes
 * free at its end.
 */
static void detach_entry(struct slu_engine *engine, uint64_t id, struct slu_entry *entry)
{
    if (entry->state == SLU_ENTRY_DONE)
        slu_entry_seen(engine, entry);
    else if (entry->state == SLU_ENTRY_PENDING) {
        engine->detached += !slu_id_is_pool(id); /* receives of the pool are counted there */
        engine->held[slu_opcode_queue(entry->opcode)]--;
    }
    entry->owner = SLU_OWNER_NOBODY;
}

int slu_detach(struct slu_engine *engine, const struct sluice_handle *handle)
{
    int error = check_own_handle(engine, handle);
    struct sluice_completion unused;
    struct slu_entry *entry;

    if (error < 0)
        return error;
    slu_engine_enter(engine);
    entry = find_entry(engine, handle->id);
    if (entry != NULL)
        detach_entry(engine, handle->id, entry);
    else if (!find_failure(engine, handle->id, true, &unused))
        error = fail_stale();
    slu_engine_leave(engine);
    return error;
}
