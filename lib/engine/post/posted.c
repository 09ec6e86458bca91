/* SPDX-License-Identifier: MIT */
/*
 * Posted work: a call posts as much of a list as there is room for, and the program retrieves the
 * results later.
 */
#include "config.h"

#include "engine/peer/peer.h"
#include "engine/peer/words.h"
#include "engine/post/call.h"
#include "engine/post/post.h"
#include "engine/post/work.h"
#include "engine/progress/wait.h"
#include "engine/request/borrow.h"
#include "engine/request/message.h"
#include "engine/ring/entry.h"

/* Counts a request if it fits after those already counted: 0, or the reason why not. */
static int add_need(struct slu_engine *engine, const struct slu_item *item,
                    uint32_t need[SLU_QUEUES])
{
    enum slu_queue queue = slu_item_queue(item);
    struct slu_peer *peer = &engine->peers[item->peer];
    uint32_t left, room, parts;

    if (!slu_peer_takes(engine, peer))
        return -ENOTCONN;
    left = peer->free[queue] - peer->need[queue];
    room = engine->cq_free[queue] - need[queue];
    if (left < room)
        room = left;
    parts = slu_parts_need(engine, item, room);
    if (parts > room || (slu_item_is_gathered(item) && !slu_message_plan(engine, item)))
        return -EAGAIN;
    peer->need[queue] += parts;
    need[queue] += parts;
    return 0;
}

/*
 * Returns how many requests from the first on can be posted; *why is the reason why not all, or 0.
 */
static uint32_t count_prefix(struct slu_engine *engine, const struct slu_source *source, int *why)
{
    uint32_t need[SLU_QUEUES] = {0};
    struct slu_item item;
    uint32_t count = 0;

    *why = 0;
    while (*why == 0 && count < source->count) {
        slu_source_any_item(source, count, &item);
        *why = add_need(engine, &item, need);
        count += *why == 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct slu_peer *peer = &engine->peers[slu_source_peer(source, i)];

        peer->need[slu_opcode_queue(slu_source_opcode(source, i))] = 0;
        slu_message_unplan(peer);
    }
    return count;
}

static int fail_peer(const struct slu_engine *engine, const struct slu_item *item)
{
    const char *word = engine->peer_word;
    struct sluice_error cause;

    engine->peers[item->peer].counts.refused++;
    if (engine->peers[item->peer].state == SLUICE_STATE_REMOVED)
        return slu_fail(ENOTCONN, "request 0: %s %u was removed", word, item->peer);
    if (slu_peer_error(engine, &engine->peers[item->peer], &cause))
        return slu_fail(ENOTCONN, "request 0: %s %u had failed before: %s", word, item->peer,
                        cause.text);
    return slu_fail(ENOTCONN, "request 0: %s %u is not connected", word, item->peer);
}

static int fail_room(const struct slu_engine *engine, const struct slu_item *item)
{
    enum slu_queue queue = slu_item_queue(item);
    const char *name = queue == SLU_SEND_QUEUE ? "send" : "receive", *word = engine->peer_word;
    uint32_t depth = slu_queue_depth(engine, queue);
    uint32_t size = depth < engine->cq_size[queue] ? depth : engine->cq_size[queue];
    uint32_t parts = slu_parts_count(engine, item, size);

    if (parts > size)
        return slu_fail(
            E2BIG,
            "%s %s %u: %llu bytes need %s%u parts, the send queue has room for %u: raise "
            "send_depth, or move less at a time",
            slu_opcode_phrase(item->opcode), word, item->peer, (unsigned long long)item->bytes,
            item->request->blocks != NULL ? "at least " : "", parts, size);
    engine->peers[item->peer].counts.queue_full++;
    if (slu_item_is_gathered(item) && slu_post_room(engine, &engine->peers[item->peer], queue, 1))
        return slu_fail(EAGAIN,
                        "%s %s %u: no room now in the staging buffer for blocks, "
                        "sluice_channel_attr.staging is %llu: poll, then post again",
                        slu_opcode_phrase(item->opcode), word, item->peer,
                        (unsigned long long)engine->staging);
    if (engine->peers[item->peer].free[queue] < parts)
        return slu_fail(EAGAIN,
                        "no room for a %s in the %s queue of %s %u now: poll, then post again",
                        slu_opcode_name(item->opcode), name, word, item->peer);
    return slu_fail(EAGAIN,
                    "%s %s %u: no room now in the completion queue, which the %ss of all %ss "
                    "fill: poll, then post again",
                    slu_opcode_phrase(item->opcode), word, item->peer, name, word);
}

/* Refuses a list whose deadline is 0: posting it could only end its connection. */
static int fail_expired(const struct slu_engine *engine, const struct slu_source *source)
{
    struct slu_item item;

    slu_source_any_item(source, 0, &item);
    if (engine->peers[item.peer].state != SLUICE_STATE_READY &&
        engine->peers[item.peer].state != SLU_PEER_ABSENT)
        return fail_peer(engine, &item);
    engine->peers[item.peer].counts.refused++;
    return slu_fail(ETIMEDOUT, "request 0: the deadline is 0: nothing was posted");
}

/* Returns the error of the first request if not even that can be posted. */
static int fail_first(struct slu_engine *engine, const struct slu_source *source, int why)
{
    struct slu_item item;

    slu_source_any_item(source, 0, &item);
    return why == -ENOTCONN ? fail_peer(engine, &item) : fail_room(engine, &item);
}

/*
 * Posts a list with receives and sends. Receives are posted first, so all that fits is counted
 * before.
 */
static uint32_t post_mixed(struct slu_call *call, struct slu_prefix *prefix)
{
    int why;

    prefix->count = count_prefix(call->engine, call->source, &why);
    /* Credits may have come back since the last poll. */
    if (why == -EAGAIN) {
        slu_progress(call->engine);
        prefix->count = count_prefix(call->engine, call->source, &why);
    }
    prefix->counted = true;
    if (prefix->count > 0) {
        slu_post_prefix(call, prefix, SLU_RECEIVE_QUEUE);
        slu_post_prefix(call, prefix, SLU_SEND_QUEUE);
    }
    prefix->why = why;
    return prefix->count;
}

/* Posts a list for one queue as far as there is room, and polls once for more room. */
static uint32_t post_alike(struct slu_call *call, struct slu_prefix *prefix, enum slu_queue queue)
{
    uint32_t count = slu_post_prefix(call, prefix, queue);

    if (SLU_UNLIKELY(prefix->why == -EAGAIN)) {
        slu_progress(call->engine);
        prefix->from = count;
        count = slu_post_prefix(call, prefix, queue);
    }
    return count;
}

static int post_source(struct slu_engine *engine, const struct slu_source *source, int queues,
                       int64_t deadline, struct sluice_handle *handles)
{
    struct slu_prefix prefix = {.count = source->count};
    bool sends = (queues & 1 << SLU_SEND_QUEUE) != 0;
    bool receives = (queues & 1 << SLU_RECEIVE_QUEUE) != 0;
    struct slu_call call;
    uint32_t count;

    /* A call that does not wait uses no other fields. */
    call.engine = engine;
    call.source = source;
    call.time = deadline;
    call.deadline = slu_after_or_later(deadline);
    call.owner = SLU_OWNER_PROGRAM;
    call.queues = (uint32_t)queues;
    call.handles = handles;
    count = SLU_UNLIKELY(sends && receives)
                ? post_mixed(&call, &prefix)
                : post_alike(&call, &prefix, sends ? SLU_SEND_QUEUE : SLU_RECEIVE_QUEUE);
    if (SLU_UNLIKELY(count == 0))
        return fail_first(engine, source, prefix.why);
    if (SLU_UNLIKELY(prefix.why == -EAGAIN))
        engine->peers[slu_source_peer(source, count)].counts.queue_full++;
    return (int)count;
}

/* Returns the error of a list that is wrong, or posts a list that names plain memory. */
static SLU_COLD int post_aside(struct slu_engine *engine, const struct slu_source *source, int why,
                               int64_t deadline, struct sluice_handle *handles)
{
    struct slu_borrowed borrowed;
    int result;

    if (why != SLU_NAMES_PLAIN)
        return why;
    result = slu_borrow(engine, source, &borrowed);
    if (result < 0)
        return result;
    result = slu_post_source(engine, &borrowed.source, deadline, handles);
    return slu_give_back(&borrowed, result);
}

int slu_post_source(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
                    struct sluice_handle *handles)
{
    int result = slu_scope_check(engine);

    if (result == 0)
        result = slu_source_check(engine, source, deadline);
    if (SLU_UNLIKELY(result <= 0))
        return post_aside(engine, source, result, deadline, handles);
    slu_engine_enter(engine);
    result = SLU_UNLIKELY(deadline == 0) ? fail_expired(engine, source)
                                         : post_source(engine, source, result, deadline, handles);
    slu_engine_leave(engine);
    return result;
}

static __attribute__((noinline)) int post_list(struct slu_engine *engine,
                                               const struct sluice_request *requests,
                                               uint32_t count, int64_t deadline,
                                               struct sluice_handle *handles)
{
    const struct slu_source source = {.lists = {requests}, .counts = {count}, .count = count};

    return slu_post_source(engine, &source, deadline, handles);
}

/*
 * Posts one valid request, if there is room for it. queue and usual are constants. usual is whether
 * slu_request_is_usual() holds for the request.
 */
static SLU_INLINE bool post_one(struct slu_engine *engine, const enum slu_queue queue,
                                const bool usual, const struct sluice_request *request,
                                int64_t deadline, struct sluice_handle *handle)
{
    const struct sluice_sge *sges = slu_request_sges(request);
    struct slu_peer *peer = &engine->peers[request->peer];
    const uint32_t sge_count = usual ? 1 : request->sge_count;
    const uint32_t key_count = usual ? 1 : slu_key_count(request);
    struct slu_receive_wr receive, *bad_receive;
    struct slu_send_wr send, *bad_send;
    struct slu_entry *entry;
    uint64_t id;
    int error;

    if (SLU_UNLIKELY(peer->state != SLUICE_STATE_READY || !slu_post_room(engine, peer, queue, 1)))
        return false;
    slu_engine_enter(engine);
    slu_find_place(engine, queue);
    slu_count_taken(engine, queue, SLU_OWNER_PROGRAM, 1);
    peer->free[queue]--;
    engine->cq_free[queue]--;
    id = peer->rings[queue].next;
    entry = slu_entry_begin(engine, &peer->rings[queue],
                            slu_pending_head(SLU_OWNER_PROGRAM, request->opcode, key_count), sges,
                            key_count, slu_sge_bytes(sges, sge_count));
    if (handle != NULL)
        slu_give_handle(handle, id, engine->tag);
    SLU_PROBE2(post, engine, id);
    if (queue == SLU_RECEIVE_QUEUE) {
        receive.next = NULL;
        slu_fill_receive(&receive, id, sges, sge_count);
        error = engine->transport->post_receive(peer->qp, &receive, &bad_receive);
    } else {
        send.next = NULL;
        send.id = id;
        send.opcode = request->opcode;
        send.flags = (usual ? 0 : request->flags) | SLU_SIGNALED;
        send.immediate = request->immediate;
        send.sge_count = sge_count;
        send.sges = sges;
        send.remote_addr = request->remote.addr;
        send.rkey = request->remote.rkey;
        error = engine->transport->post_send(peer->qp, &send, &bad_send);
    }
    /* The rest of the entry is not read before the next poll: fill it in while the device works. */
    entry->user_data = request->user_data;
    entry->time = deadline;
    entry->deadline = slu_after_or_later(deadline);
    slu_note_deadline(engine, entry->deadline);
    if (SLU_UNLIKELY(error < 0))
        slu_post_refused(engine, peer, entry, error);
    slu_engine_leave(engine);
    return true;
}

static __attribute__((noinline)) bool post_unusual(struct slu_engine *engine,
                                                   const struct sluice_request *request,
                                                   int64_t deadline, struct sluice_handle *handle)
{
    if (!slu_request_is_plain(engine, request, request->opcode))
        return false;
    return request->opcode == SLUICE_OP_RECEIVE
               ? post_one(engine, SLU_RECEIVE_QUEUE, false, request, deadline, handle)
               : post_one(engine, SLU_SEND_QUEUE, false, request, deadline, handle);
}

/*
 * Posts a request if it is valid, needs nothing of the slow path, and has room. Returns whether it
 * did.
 */
static SLU_INLINE bool post_single(struct slu_engine *engine, const struct sluice_request *request,
                                   int64_t deadline, struct sluice_handle *handle)
{
    if (SLU_UNLIKELY(request == NULL || deadline <= 0 || engine->scope.open))
        return false;
    if (SLU_UNLIKELY(request->opcode - SLUICE_OP_SEND > SLUICE_OP_READ - SLUICE_OP_SEND ||
                     !slu_request_is_usual(engine, request, request->opcode, request->opcode)))
        return post_unusual(engine, request, deadline, handle);
    return request->opcode == SLUICE_OP_RECEIVE
               ? post_one(engine, SLU_RECEIVE_QUEUE, true, request, deadline, handle)
               : post_one(engine, SLU_SEND_QUEUE, true, request, deadline, handle);
}

int slu_post(struct slu_engine *engine, const struct sluice_request *requests, uint32_t count,
             int64_t deadline, struct sluice_handle *handles)
{
    return count == 1 && post_single(engine, requests, deadline, handles)
               ? 1
               : post_list(engine, requests, count, deadline, handles);
}
