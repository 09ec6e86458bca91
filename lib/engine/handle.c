/* SPDX-License-Identifier: MIT */
/*
 * Handles: what they name is waited for, cancelled, or let go. One that names
 * nothing any more is told from one that does, whatever its bits are.
 */
#include "config.h"

#include "engine/engine.h"

/* What the handles of the engine, or of its scope, have as their owner is the tag. */
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

/* The slot that holds the request or its result; NULL if none does. */
static inline struct slu_slot *find_slot(struct slu_engine *engine, uint64_t id)
{
    struct slu_slot *slot = slu_slot_find(engine, id);

    return SLU_LIKELY(slot != NULL && slot->owner > SLU_OWNER_NOBODY) ? slot : NULL;
}

/* It may be the load that needed its place: no mistake of the program, as far as we can tell. */
static int fail_stale(void)
{
    return slu_fail(
        ESTALE, "no request has this handle any more: it was detached, or its place was needed");
}

/* The result of a request that is not pending; it is seen then. */
static inline int see_result(struct slu_engine *engine, struct slu_slot *slot, uint64_t id,
                             struct sluice_completion *completion)
{
    bool done = slot != NULL && slot->state == SLU_SLOT_DONE;

    /* A slot that is free may remember a failure that was kept aside, and is seen now. */
    if (!done && (slot == NULL || engine->failure_count > 0) &&
        slu_failure_find(engine, id, completion))
        return 0;
    if (slot == NULL)
        return fail_stale();
    *completion = slot->result;
    if (done)
        slu_slot_seen(engine, slot);
    return 0;
}

/* 1: it is not pending any more; -ETIMEDOUT, -EINTR. */
static int await_slot(struct slu_engine *engine, struct slu_slot *slot, int64_t timeout)
{
    int ready = slu_wait_slot_interruptible(engine, slot, slu_after(timeout));

    return ready != 0 ? ready : slu_fail(ETIMEDOUT, "the request is still pending");
}

int slu_wait_tagged(struct slu_engine *engine, uint64_t tag, const struct sluice_handle *handle,
                    int64_t timeout, struct sluice_completion *completion)
{
    struct slu_slot *slot;
    int result = 1;

    if (SLU_UNLIKELY(handle == NULL || completion == NULL || timeout < 0 || handle->owner != tag))
        return fail_wait(tag, handle, timeout, completion);
    slu_engine_enter(engine);
    slot = find_slot(engine, handle->id);
    if (slot != NULL && slot->state == SLU_SLOT_PENDING && !slu_look_for_slot(engine, slot))
        result = await_slot(engine, slot, timeout);
    if (SLU_LIKELY(result > 0))
        result = see_result(engine, slot, handle->id, completion);
    slu_engine_leave(engine);
    return result;
}

int slu_wait_handle(struct slu_engine *engine, const struct sluice_handle *handle, int64_t timeout,
                    struct sluice_completion *completion)
{
    int error = slu_scope_check(engine);

    return SLU_UNLIKELY(error < 0)
               ? error
               : slu_wait_tagged(engine, engine->tag, handle, timeout, completion);
}

/* Whether a handle may be cancelled or detached: an error if not. */
static int check_own_handle(const struct slu_engine *engine, const struct sluice_handle *handle)
{
    int error = slu_scope_check(engine);

    return error < 0 ? error : check_handle(engine->tag, handle);
}

/* A connection cannot take one request back: it ends, and all its work with it. */
static void cancel_slot(struct slu_engine *engine, struct slu_slot *slot)
{
    struct slu_peer *peer = &engine->peers[slot->result.peer];

    /* What is complete by now is not cancelled. */
    slu_progress_all(engine);
    if (slot->state != SLU_SLOT_PENDING)
        return;
    slu_peer_fail(engine, peer, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_OP_NONE, 0);
    slu_peer_await_idle(engine, peer);
}

int slu_cancel(struct slu_engine *engine, const struct sluice_handle *handle,
               struct sluice_completion *completion)
{
    int error = check_own_handle(engine, handle);
    struct slu_slot *slot;

    if (error < 0)
        return error;
    if (completion == NULL)
        return no_completion();
    slu_engine_enter(engine);
    slot = find_slot(engine, handle->id);
    if (slot != NULL && slot->state == SLU_SLOT_PENDING)
        cancel_slot(engine, slot);
    error = see_result(engine, slot, handle->id, completion);
    slu_engine_leave(engine);
    return error;
}

/* Nobody will ask for its result. One that is pending goes on, and is free at its end. */
static void detach_slot(struct slu_engine *engine, struct slu_slot *slot)
{
    if (slot->state == SLU_SLOT_DONE)
        slu_slot_seen(engine, slot);
    else if (slot->state == SLU_SLOT_PENDING)
        engine->detached++;
    slot->owner = SLU_OWNER_NOBODY;
}

int slu_detach(struct slu_engine *engine, const struct sluice_handle *handle)
{
    int error = check_own_handle(engine, handle);
    struct slu_slot *slot;
    bool kept;

    if (error < 0)
        return error;
    slu_engine_enter(engine);
    slot = find_slot(engine, handle->id);
    kept = slu_failure_drop(engine, handle->id);
    if (slot != NULL)
        detach_slot(engine, slot);
    else if (!kept)
        error = fail_stale();
    slu_engine_leave(engine);
    return error;
}
