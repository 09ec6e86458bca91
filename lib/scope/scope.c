/* SPDX-License-Identifier: MIT */
/*
 * Scopes: work that is posted freely and waited for together. The scope object
 * is part of the engine, so opening one allocates nothing.
 */
#include "config.h"

#include <string.h>

#include "../engine/engine.h"

struct sluice_scope *slu_scope_begin(struct slu_engine *engine, int64_t deadline)
{
    struct sluice_scope *scope = &engine->scope;

    if (deadline < 0)
        return slu_fail_null(EINVAL, "deadline %lld is negative", (long long)deadline);
    if (scope->open)
        return slu_fail_null(EBUSY, "a scope of this channel is open: end it first");
    memset(scope, 0, sizeof *scope);
    scope->magic = SLU_MAGIC_SCOPE;
    scope->open = true;
    scope->engine = engine;
    scope->deadline = slu_after(deadline);
    return scope;
}

static bool is_scope(const struct sluice_scope *scope)
{
    return scope != NULL && scope->magic == SLU_MAGIC_SCOPE && scope->open;
}

struct room {
    struct slu_engine *engine;
    const struct slu_item *item;
    uint32_t parts;
};

static bool room_ready(void *argument)
{
    const struct room *room = argument;

    return room->engine->peers[room->item->peer].state != SLUICE_STATE_READY ||
           slu_post_room(room->engine, room->item, room->parts);
}

/* A request whose peer cannot take it has a result all the same. */
static void refuse_item(struct sluice_scope *scope, const struct slu_item *item, bool expired,
                        struct sluice_handle *handle)
{
    struct sluice_completion completion;
    uint64_t id;

    slu_refused(scope->engine, item, expired, scope->deadline, &completion);
    id = slu_failure_keep_refused(scope->engine, SLU_OWNER_SCOPE, &completion);
    if (handle != NULL)
        *handle = (struct sluice_handle){.id = id, .owner = scope->engine->tag};
}

static void post_item(struct sluice_scope *scope, const struct slu_source *source, uint32_t index,
                      struct sluice_handle *handles)
{
    struct slu_engine *engine = scope->engine;
    struct slu_item item;
    struct room room = {.engine = engine, .item = &item};
    bool expired;

    slu_source_item(source, index, &item);
    room.parts = slu_item_parts(engine, &item);
    expired = !room_ready(&room) && !slu_wait(engine, room_ready, &room, scope->deadline);
    scope->posted++;
    if (expired || engine->peers[item.peer].state != SLUICE_STATE_READY) {
        refuse_item(scope, &item, expired, handles != NULL ? &handles[index] : NULL);
        return;
    }
    scope->pending++;
    slu_post_owned(engine, source, index, 1, slu_item_queue(&item), SLU_OWNER_SCOPE,
                   scope->deadline, handles);
}

/* A request that is split into more parts than the queues have room can never be posted whole. */
static int check_depth(const struct slu_engine *engine, const struct slu_source *source)
{
    uint32_t share = engine->pools[SLU_SEND_QUEUE].size;
    uint32_t room = engine->attr.send_depth < share ? engine->attr.send_depth : share;
    struct slu_item item;

    for (uint32_t i = 0; i < source->count; i++) {
        slu_source_item(source, i, &item);
        if (slu_item_queue(&item) == SLU_SEND_QUEUE && slu_item_parts(engine, &item) > room)
            return slu_fail(E2BIG, "request %u needs %u parts, the send queue has room for %u", i,
                            slu_item_parts(engine, &item), room);
    }
    return 0;
}

int sluice_scope_post(struct sluice_scope *scope, const struct sluice_request *requests,
                      uint32_t count, struct sluice_handle *handles)
{
    struct slu_source source = {.lists = {requests}, .counts = {count}, .count = count};
    int error;

    if (!is_scope(scope))
        return slu_fail(EINVAL, "not an open scope");
    error = slu_source_check(scope->engine, &source, 0);
    if (error == 0)
        error = check_depth(scope->engine, &source);
    if (error < 0)
        return error;
    slu_engine_enter(scope->engine);
    for (uint32_t i = 0; i < count; i++)
        post_item(scope, &source, i, handles);
    slu_engine_leave(scope->engine);
    return 0;
}

int sluice_scope_wait(struct sluice_scope *scope, const struct sluice_handle *handle,
                      int64_t timeout, struct sluice_completion *completion)
{
    if (!is_scope(scope))
        return slu_fail(EINVAL, "not an open scope");
    return slu_wait_handle(scope->engine, handle, timeout, completion);
}

static bool scope_ready(void *argument)
{
    const struct sluice_scope *scope = argument;

    return scope->pending == 0;
}

/* Takes all results that nobody saw. Returns the error of the first failure. */
static int collect(struct sluice_scope *scope, struct sluice_scope_report *report)
{
    struct sluice_completion completion;
    int first = 0;

    report->posted = scope->posted;
    report->unseen = scope->recycled + scope->lost;
    report->failed = scope->lost;
    if (scope->lost > 0)
        first =
            slu_fail(-scope->lost_error, "%u requests of the scope failed unseen, the first: %s",
                     scope->lost, strerror(-scope->lost_error));
    while (slu_take_done(scope->engine, SLU_OWNER_SCOPE, &completion)) {
        report->unseen++;
        if (completion.error == 0)
            continue;
        report->failed++;
        if (first == 0)
            first =
                slu_fail(-completion.error, "%s to peer %u: %s", slu_opcode_name(completion.opcode),
                         completion.peer, sluice_status_name(completion.status));
        if (report->failures != NULL && report->count < report->capacity)
            report->failures[report->count++] = completion;
    }
    return first;
}

int sluice_scope_end(struct sluice_scope *scope, struct sluice_scope_report *report)
{
    struct sluice_scope_report own = {.size = sizeof own};
    int first;

    if (scope == NULL)
        return 0;
    if (!is_scope(scope))
        return slu_fail(EINVAL, "not an open scope");
    slu_engine_enter(scope->engine);
    slu_wait(scope->engine, scope_ready, scope, SLUICE_FOREVER);
    if (report != NULL && report->size == sizeof *report) {
        own.failures = report->failures;
        own.capacity = report->capacity;
    }
    first = collect(scope, &own);
    slu_engine_leave(scope->engine);
    scope->open = false;
    scope->magic = SLU_MAGIC_DEAD;
    if (report != NULL && report->size != sizeof *report)
        return slu_fail(EINVAL, "sluice_scope_report.size is %u, must be %zu", report->size,
                        sizeof *report);
    if (report != NULL)
        *report = own;
    return first;
}
