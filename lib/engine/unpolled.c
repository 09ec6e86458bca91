/* SPDX-License-Identifier: MIT */
/*
 * Unpolled work: as much of a list as there is room for is posted, and its
 * results are taken when the program likes.
 */
#include "config.h"

#include "engine/engine.h"

/* What the first requests of a list need of the pools; what they need of peers is in the peers. */
struct need {
    uint32_t parts[SLU_QUEUES];
    uint32_t slots[SLU_QUEUES];
};

/* 0: the request fits after what was counted, and is counted; else why not. */
static int add_need(struct slu_engine *engine, const struct slu_item *item, struct need *need)
{
    enum slu_queue queue = slu_item_queue(item);
    const struct slu_pool *pool = &engine->pools[queue];
    struct slu_peer *peer = &engine->peers[item->peer];
    uint32_t parts = slu_item_parts(engine, item);

    if (peer->state != SLUICE_STATE_READY)
        return -ENOTCONN;
    if (peer->free[queue] - peer->need[queue] < parts ||
        pool->cq_free - need->parts[queue] < parts ||
        pool->size - pool->pending == need->slots[queue])
        return -EAGAIN;
    peer->need[queue] += parts;
    need->parts[queue] += parts;
    need->slots[queue]++;
    return 0;
}

/* How many requests from the first one on can be posted; *why not all, or 0. */
static uint32_t count_prefix(struct slu_engine *engine, const struct slu_source *source, int *why)
{
    struct need need = {0};
    struct slu_item item;
    uint32_t count = 0;

    *why = 0;
    while (*why == 0 && count < source->count) {
        slu_source_item(source, count, &item);
        *why = add_need(engine, &item, &need);
        count += *why == 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t opcode = slu_source_opcode(source, i);

        engine->peers[slu_source_peer(source, i)].need[slu_opcode_queue(opcode)] = 0;
    }
    return count;
}

static int fail_peer(const struct slu_engine *engine, const struct slu_item *item)
{
    struct sluice_error cause;

    engine->peers[item->peer].counts.refused++;
    if (engine->peers[item->peer].state == SLUICE_STATE_REMOVED)
        return slu_fail(ENOTCONN, "request 0: peer %u was removed", item->peer);
    if (slu_peer_error(engine, &engine->peers[item->peer], &cause))
        return slu_fail(ENOTCONN, "request 0: peer %u had failed before: %s", item->peer,
                        cause.text);
    return slu_fail(ENOTCONN, "request 0: peer %u is not connected", item->peer);
}

static int fail_room(const struct slu_engine *engine, const struct slu_item *item)
{
    enum slu_queue queue = slu_item_queue(item);
    const char *name = queue == SLU_SEND_QUEUE ? "send" : "receive";
    uint32_t depth = slu_queue_depth(engine, queue);
    uint32_t parts = slu_item_parts(engine, item);

    if (parts > depth || parts > engine->pools[queue].size)
        return slu_fail(
            E2BIG,
            "%s peer %u: %llu bytes need %u parts, the send queue has room for %u: raise "
            "send_depth, or move less at a time",
            slu_opcode_phrase(item->opcode), item->peer, (unsigned long long)item->bytes, parts,
            depth < engine->pools[queue].size ? depth : engine->pools[queue].size);
    engine->peers[item->peer].counts.queue_full++;
    if (engine->peers[item->peer].free[queue] < parts)
        return slu_fail(EAGAIN,
                        "no room for a %s in the %s queue of peer %u now: poll, then post again",
                        slu_opcode_name(item->opcode), name, item->peer);
    return slu_fail(EAGAIN,
                    "%s peer %u: no room now in the completion queue, which the %ss of all peers "
                    "fill: poll, then post again",
                    slu_opcode_phrase(item->opcode), item->peer, name);
}

/* A request that may take no time is not posted: it could only end its connection. */
static int fail_expired(const struct slu_engine *engine, const struct slu_source *source)
{
    struct slu_item item;

    slu_source_item(source, 0, &item);
    if (engine->peers[item.peer].state != SLUICE_STATE_READY)
        return fail_peer(engine, &item);
    engine->peers[item.peer].counts.refused++;
    return slu_fail(ETIMEDOUT, "request 0: the deadline is 0: nothing was posted");
}

/* Of the first request, when not even that can be posted. */
static int fail_first(struct slu_engine *engine, const struct slu_source *source, int why)
{
    struct slu_item item;

    slu_source_item(source, 0, &item);
    return why == -ENOTCONN ? fail_peer(engine, &item) : fail_room(engine, &item);
}

static int post_prefix(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
                       struct sluice_handle *handles)
{
    int why;
    uint32_t count = count_prefix(engine, source, &why);
    int64_t due;

    /* Room that has come back in the meantime counts. */
    if (why == -EAGAIN) {
        slu_progress(engine);
        count = count_prefix(engine, source, &why);
    }
    if (count == 0)
        return fail_first(engine, source, why);
    if (why == -EAGAIN)
        engine->peers[slu_source_peer(source, count)].counts.queue_full++;
    due = slu_after(deadline);
    slu_post_owned(engine, source, 0, count, SLU_RECEIVE_QUEUE, SLU_OWNER_PROGRAM, deadline, due,
                   handles);
    slu_post_owned(engine, source, 0, count, SLU_SEND_QUEUE, SLU_OWNER_PROGRAM, deadline, due,
                   handles);
    return (int)count;
}

int slu_post(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
             struct sluice_handle *handles)
{
    int result = slu_scope_check(engine);

    if (result == 0)
        result = slu_source_check(engine, source, deadline);
    if (result < 0 || source->count == 0)
        return result;
    slu_engine_enter(engine);
    result = deadline == 0 ? fail_expired(engine, source)
                           : post_prefix(engine, source, deadline, handles);
    slu_engine_leave(engine);
    return result;
}

int slu_post_remote(struct slu_engine *engine, struct sluice_request *request,
                    const struct sluice_remote_mr *remote, int64_t deadline,
                    struct sluice_handle *handle)
{
    if (SLU_UNLIKELY(remote == NULL))
        return slu_no_remote(request->opcode);
    request->remote = *remote;
    return slu_post_one(engine, request, deadline, handle);
}

int slu_poll_owner(struct slu_engine *engine, enum slu_slot_owner owner,
                   struct sluice_completion *completions, uint32_t count)
{
    uint32_t taken = 0;

    if (count > INT32_MAX)
        return slu_misuse(EINVAL, "count %u is above 2^31 - 1", count);
    if (count > 0 && completions == NULL)
        return slu_misuse(EINVAL, "completions must not be NULL for a count of %u", count);
    slu_engine_enter(engine);
    slu_wake_seen(engine);
    slu_progress(engine);
    while (taken < count && slu_take_done(engine, owner, &completions[taken]))
        taken++;
    slu_engine_leave(engine);
    return (int)taken;
}

int slu_poll(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count)
{
    int error = slu_scope_check(engine);

    return SLU_UNLIKELY(error < 0) ? error
                                   : slu_poll_owner(engine, SLU_OWNER_PROGRAM, completions, count);
}

/* Work of the program that will have a result to be taken. */
static bool awaits_results(const struct slu_engine *engine)
{
    return engine->pools[SLU_SEND_QUEUE].pending + engine->pools[SLU_RECEIVE_QUEUE].pending >
           engine->scope.pending + engine->detached;
}

static bool next_ready(void *argument)
{
    const struct slu_engine *engine = argument;

    return engine->pools[SLU_SEND_QUEUE].done[SLU_OWNER_PROGRAM].head != SLU_NONE ||
           engine->pools[SLU_RECEIVE_QUEUE].done[SLU_OWNER_PROGRAM].head != SLU_NONE ||
           engine->failure_count > 0 || !awaits_results(engine);
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
    return slu_fail(ENOENT, "nothing is posted, and nothing is unseen: no completion would come");
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
                         slu_say_pending(engine->pools[SLU_SEND_QUEUE].pending,
                                         engine->pools[SLU_RECEIVE_QUEUE].pending, pending));
    slu_engine_leave(engine);
    return ready > 0 ? 0 : ready;
}
