/* SPDX-License-Identifier: MIT */
/*
 * Unpolled work: as much of a list as there is room for is posted, and its
 * results are taken when the program likes.
 */
#include "config.h"

#include "engine/engine.h"

/* 0: the request fits after what was counted, and is counted; else why not. */
static int add_need(struct slu_engine *engine, const struct slu_item *item,
                    uint32_t need[SLU_QUEUES])
{
    enum slu_queue queue = slu_item_queue(item);
    struct slu_peer *peer = &engine->peers[item->peer];
    uint32_t parts = slu_item_parts(engine, item);

    if (peer->state != SLUICE_STATE_READY)
        return -ENOTCONN;
    if (peer->free[queue] - peer->need[queue] < parts ||
        engine->cq_free[queue] - need[queue] < parts)
        return -EAGAIN;
    peer->need[queue] += parts;
    need[queue] += parts;
    return 0;
}

/* How many requests from the first one on can be posted; *why not all, or 0. */
static uint32_t count_prefix(struct slu_engine *engine, const struct slu_source *source, int *why)
{
    uint32_t need[SLU_QUEUES] = {0};
    struct slu_item item;
    uint32_t count = 0;

    *why = 0;
    while (*why == 0 && count < source->count) {
        slu_source_item(source, count, &item);
        *why = add_need(engine, &item, need);
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

    if (parts > depth || parts > engine->cq_size[queue])
        return slu_fail(
            E2BIG,
            "%s peer %u: %llu bytes need %u parts, the send queue has room for %u: raise "
            "send_depth, or move less at a time",
            slu_opcode_phrase(item->opcode), item->peer, (unsigned long long)item->bytes, parts,
            depth < engine->cq_size[queue] ? depth : engine->cq_size[queue]);
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

/* Receives come before sends, so what can be posted of both is counted first. */
static uint32_t post_mixed(struct slu_engine *engine, const struct slu_source *source,
                           struct slu_prefix *prefix)
{
    int why;

    prefix->count = count_prefix(engine, source, &why);
    /* Room that has come back in the meantime counts. */
    if (why == -EAGAIN) {
        slu_progress(engine);
        prefix->count = count_prefix(engine, source, &why);
    }
    prefix->counted = true;
    if (prefix->count > 0) {
        slu_post_prefix(engine, source, prefix, SLU_RECEIVE_QUEUE);
        slu_post_prefix(engine, source, prefix, SLU_SEND_QUEUE);
    }
    prefix->why = why;
    return prefix->count;
}

/* All of one queue: posted as far as there is room, which may have come back meanwhile. */
static uint32_t post_alike(struct slu_engine *engine, const struct slu_source *source,
                           struct slu_prefix *prefix, enum slu_queue queue)
{
    uint32_t count = slu_post_prefix(engine, source, prefix, queue);

    if (SLU_UNLIKELY(prefix->why == -EAGAIN)) {
        slu_progress(engine);
        prefix->from = count;
        count = slu_post_prefix(engine, source, prefix, queue);
    }
    return count;
}

static int post_source(struct slu_engine *engine, const struct slu_source *source, int queues,
                       int64_t deadline, struct sluice_handle *handles)
{
    struct slu_prefix prefix = {.count = source->count,
                                .time = deadline,
                                .deadline = slu_after(deadline),
                                .handles = handles};
    uint32_t count =
        SLU_UNLIKELY(queues == (1 << SLU_SEND_QUEUE | 1 << SLU_RECEIVE_QUEUE))
            ? post_mixed(engine, source, &prefix)
            : post_alike(engine, source, &prefix,
                         queues == 1 << SLU_SEND_QUEUE ? SLU_SEND_QUEUE : SLU_RECEIVE_QUEUE);

    if (SLU_UNLIKELY(count == 0))
        return fail_first(engine, source, prefix.why);
    if (SLU_UNLIKELY(prefix.why == -EAGAIN))
        engine->peers[slu_source_peer(source, count)].counts.queue_full++;
    return (int)count;
}

/* A list of one that is right, and has room. queue is a constant. */
static SLU_INLINE void post_one(struct slu_engine *engine, struct slu_peer *peer,
                                const enum slu_queue queue, const struct sluice_request *request,
                                uint32_t opcode, uint64_t bytes, int64_t deadline,
                                struct sluice_handle *handle)
{
    const struct slu_item item = {.request = request,
                                  .sges = slu_request_sges(request),
                                  .remote = &request->remote,
                                  .opcode = opcode};
    struct slu_ring *ring = &peer->rings[queue];
    struct slu_receive_wr receive, *bad_receive;
    struct slu_send_wr send, *bad_send;
    uint64_t id = ring->next;
    struct slu_entry *entry = slu_entry_take(engine, ring, queue, opcode, item.sges,
                                             slu_key_count(request), bytes, SLU_OWNER_PROGRAM);
    int error;

    slu_engine_enter(engine);
    if (queue == SLU_RECEIVE_QUEUE) {
        slu_fill_receive(&receive, id, item.sges, request->sge_count);
        receive.next = NULL;
        error = engine->transport->post_receive(peer->qp, &receive, &bad_receive);
    } else {
        slu_fill_send(&send, id, &item, item.sges, request->sge_count);
        send.next = NULL;
        error = engine->transport->post_send(peer->qp, &send, &bad_send);
    }
    /* Nobody looks at the rest before the next poll: it is filled in while the device works. */
    entry->user_data = request->user_data;
    entry->time = deadline;
    entry->deadline = deadline == SLUICE_FOREVER ? SLUICE_FOREVER : slu_after(deadline);
    entry->posted = 1;
    peer->free[queue]--;
    engine->cq_free[queue]--;
    if (entry->deadline < engine->next_deadline)
        engine->next_deadline = entry->deadline;
    if (handle != NULL)
        *handle = (struct sluice_handle){.id = id, .owner = engine->tag};
    if (SLU_UNLIKELY(error < 0))
        slu_post_refused(engine, peer, entry, error);
    slu_engine_leave(engine);
}

/* Whether it was a list of one that is right, and had room. */
static SLU_INLINE bool post_plain(struct slu_engine *engine, const struct slu_source *source,
                                  int64_t deadline, struct sluice_handle *handle)
{
    const struct sluice_request *request = source->lists[0];
    struct slu_peer *peer;
    uint32_t opcode;
    uint64_t bytes;

    if (source->count != 1 || source->multicast || request == NULL || deadline <= 0 ||
        engine->scope.open)
        return false;
    opcode = source->opcodes[0] != SLUICE_OP_NONE ? source->opcodes[0] : request->opcode;
    if (!slu_request_is_plain(engine, request, opcode))
        return false;
    peer = &engine->peers[request->peer];
    bytes = slu_sge_bytes(slu_request_sges(request), request->sge_count);
    if (peer->state != SLUICE_STATE_READY ||
        !slu_post_room(engine, peer, slu_opcode_queue(opcode), 1))
        return false;
    if (opcode == SLUICE_OP_RECEIVE)
        post_one(engine, peer, SLU_RECEIVE_QUEUE, request, opcode, bytes, deadline, handle);
    else
        post_one(engine, peer, SLU_SEND_QUEUE, request, opcode, bytes, deadline, handle);
    return true;
}

static __attribute__((noinline)) int post_list(struct slu_engine *engine,
                                               const struct slu_source *source, int64_t deadline,
                                               struct sluice_handle *handles)
{
    int result = slu_scope_check(engine);

    if (result == 0)
        result = slu_source_check(engine, source, deadline);
    if (result <= 0)
        return result;
    slu_engine_enter(engine);
    result = SLU_UNLIKELY(deadline == 0) ? fail_expired(engine, source)
                                         : post_source(engine, source, result, deadline, handles);
    slu_engine_leave(engine);
    return result;
}

int slu_post(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
             struct sluice_handle *handles)
{
    return post_plain(engine, source, deadline, handles)
               ? 1
               : post_list(engine, source, deadline, handles);
}

static int check_room(const struct sluice_completion *completions, uint32_t count)
{
    if (count > INT32_MAX)
        return slu_misuse(EINVAL, "count %u is above 2^31 - 1", count);
    if (count > 0 && completions == NULL)
        return slu_misuse(EINVAL, "completions must not be NULL for a count of %u", count);
    return 0;
}

/* What comes while nothing older waits to be seen goes straight to where it is wanted. */
static uint32_t poll_into(struct slu_engine *engine, enum slu_owner owner,
                          struct sluice_completion *completions, uint32_t count)
{
    if (owner != SLU_OWNER_PROGRAM || engine->failure_count > 0 ||
        engine->orders[owner].unseen > 0) {
        slu_progress(engine);
        return 0;
    }
    engine->sink.next = completions;
    engine->sink.left = count;
    slu_progress(engine);
    count -= engine->sink.left;
    engine->sink.left = 0;
    return count;
}

int slu_poll_owner(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completions, uint32_t count)
{
    uint32_t taken;
    int error;

    if (SLU_UNLIKELY(count > INT32_MAX || completions == NULL)) {
        error = check_room(completions, count);
        if (error < 0)
            return error;
    }
    slu_engine_enter(engine);
    slu_wake_seen(engine);
    taken = poll_into(engine, owner, completions, count);
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
    return engine->pending[SLU_SEND_QUEUE] + engine->pending[SLU_RECEIVE_QUEUE] >
           engine->scope.pending + engine->detached;
}

static bool next_ready(void *argument)
{
    const struct slu_engine *engine = argument;

    return engine->orders[SLU_OWNER_PROGRAM].unseen > 0 || engine->failure_count > 0 ||
           !awaits_results(engine);
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
                         slu_say_pending(engine->pending[SLU_SEND_QUEUE],
                                         engine->pending[SLU_RECEIVE_QUEUE], pending));
    slu_engine_leave(engine);
    return ready > 0 ? 0 : ready;
}
