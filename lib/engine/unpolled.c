/* SPDX-License-Identifier: MIT */
/*
 * Unpolled work: posted all or not at all, its results taken when the program
 * likes.
 */
#include "config.h"

#include "engine.h"

/* What a list needs beyond what its peers and pools have. */
struct need {
    uint32_t parts[SLU_QUEUES];
    uint32_t slots[SLU_QUEUES];
    bool too_much; /* for the depth of a queue: it will never fit */
    bool no_room;  /* now */
};

static void count_need(struct slu_engine *engine, const struct slu_source *source,
                       struct need *need)
{
    struct slu_item item;

    for (uint32_t i = 0; i < source->count; i++) {
        slu_source_item(source, i, &item);
        enum slu_queue queue = slu_item_queue(&item);
        struct slu_peer *peer = &engine->peers[item.peer];
        uint32_t parts = slu_item_parts(engine, &item);
        uint32_t depth =
            queue == SLU_SEND_QUEUE ? engine->attr.send_depth : engine->attr.receive_depth;

        peer->need[queue] += parts;
        need->parts[queue] += parts;
        need->slots[queue]++;
        need->too_much |= peer->need[queue] > depth;
        need->no_room |= peer->need[queue] > peer->free[queue];
    }
    for (uint32_t i = 0; i < source->count; i++) {
        slu_source_item(source, i, &item);
        engine->peers[item.peer].need[slu_item_queue(&item)] = 0;
    }
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        const struct slu_pool *pool = &engine->pools[queue];

        need->too_much |= need->slots[queue] > pool->size || need->parts[queue] > pool->size;
        need->no_room |=
            need->slots[queue] > pool->size - pool->pending || need->parts[queue] > pool->cq_free;
    }
}

static int check_peers(const struct slu_engine *engine, const struct slu_source *source)
{
    struct sluice_error cause = {.size = sizeof cause};
    struct slu_item item;

    for (uint32_t i = 0; i < source->count; i++) {
        slu_source_item(source, i, &item);
        if (engine->peers[item.peer].state == SLUICE_STATE_READY)
            continue;
        if (slu_peer_error(engine, &engine->peers[item.peer], &cause) == 1)
            return slu_fail(ENOTCONN, "request %u: peer %u had failed before: %s", i, item.peer,
                            cause.text);
        return slu_fail(ENOTCONN, "request %u: peer %u is not connected", i, item.peer);
    }
    return 0;
}

static int check_room(struct slu_engine *engine, const struct slu_source *source)
{
    struct need need = {0};

    count_need(engine, source, &need);
    if (need.too_much)
        return slu_fail(E2BIG,
                        "%u requests need more room than the queues have; raise send_depth or "
                        "receive_depth, or post less at a time",
                        source->count);
    if (!need.no_room)
        return 0;
    /* Room that has come back in the meantime counts. */
    slu_progress(engine);
    need = (struct need){0};
    count_need(engine, source, &need);
    if (need.no_room)
        return slu_fail(EAGAIN, "no room for %u requests now: poll, then post again",
                        source->count);
    return check_peers(engine, source);
}

static int post_list(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
                     struct sluice_handle *handles)
{
    int error = check_peers(engine, source);
    int64_t due;

    if (error == 0)
        error = check_room(engine, source);
    if (error < 0)
        return error;
    due = slu_after(deadline);
    slu_post_owned(engine, source, 0, source->count, SLU_RECEIVE_QUEUE, SLU_OWNER_PROGRAM, due,
                   handles);
    slu_post_owned(engine, source, 0, source->count, SLU_SEND_QUEUE, SLU_OWNER_PROGRAM, due,
                   handles);
    return 0;
}

int slu_post(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
             struct sluice_handle *handles)
{
    int error = slu_source_check(engine, source, deadline);

    if (error < 0 || source->count == 0)
        return error;
    slu_engine_enter(engine);
    error = post_list(engine, source, deadline, handles);
    slu_engine_leave(engine);
    return error;
}

int slu_poll(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count)
{
    uint32_t taken = 0;

    if (count > INT32_MAX || (count > 0 && completions == NULL))
        return slu_fail(EINVAL, "completions is NULL, or count %u is above 2^31 - 1", count);
    slu_engine_enter(engine);
    slu_progress(engine);
    while (taken < count && slu_take_done(engine, SLU_OWNER_PROGRAM, &completions[taken]))
        taken++;
    slu_engine_leave(engine);
    return (int)taken;
}

/* A slot that is free may remember a failure that was kept aside, and is seen now. */
static int find_old_result(struct slu_engine *engine, const struct slu_slot *slot, uint64_t id,
                           struct sluice_completion *completion)
{
    if ((slot == NULL || engine->failure_count > 0) && slu_failure_find(engine, id, completion))
        return 0;
    if (slot == NULL)
        return slu_fail(ESTALE, "no request has this handle any more: its place was needed");
    slu_slot_fill(slot, completion);
    return 0;
}

int slu_wait_handle(struct slu_engine *engine, const struct sluice_handle *handle, int64_t timeout,
                    struct sluice_completion *completion)
{
    struct slu_slot *slot;
    int error = 0;

    if (handle == NULL || completion == NULL)
        return slu_fail(EINVAL, "handle and completion must not be NULL");
    if (timeout < 0)
        return slu_fail(EINVAL, "timeout %lld is negative", (long long)timeout);
    if (handle->owner != engine->tag)
        return slu_fail(ESTALE, "the handle is not of this channel");
    slu_engine_enter(engine);
    slot = slu_slot_find(engine, handle->id);
    if (slot != NULL && slot->state == SLU_SLOT_PENDING && !slu_look_for_slot(engine, slot) &&
        !slu_wait_slot(engine, slot, slu_after(timeout))) {
        error = slu_fail(ETIMEDOUT, "the request is still pending");
    } else if (SLU_LIKELY(slot != NULL && slot->state == SLU_SLOT_DONE)) {
        slu_slot_fill(slot, completion);
        slu_slot_seen(engine, slot);
    } else {
        error = find_old_result(engine, slot, handle->id, completion);
    }
    slu_engine_leave(engine);
    return error;
}
