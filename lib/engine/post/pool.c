/* SPDX-License-Identifier: MIT */
/*
 * Receives that all peers share. They have no deadline: a receive waits in the pool until a message
 * takes it, or until the pool ends. Guarantee: a blocking call has taken its receive back when it
 * returns, so the pool does not touch the buffer any more.
 */
#include "config.h"

#include "engine/post/pool.h"

#include "engine/peer/peer.h"
#include "engine/peer/words.h"
#include "engine/post/call.h"
#include "engine/post/work.h"
#include "engine/progress/progress.h"
#include "engine/progress/wait.h"
#include "engine/request/borrow.h"
#include "engine/ring/pool.h"

#define CHAIN 16

/*
 * Ends the entries of receives that the transport did not take: they were never posted, and no
 * handle of them was given out.
 */
static void take_back_rest(struct slu_engine *engine, const struct slu_receive_wr *wr)
{
    for (; wr != NULL; wr = wr->next) {
        struct slu_entry *entry = slu_pool_find(engine, wr->id);

        slu_pool_untake(engine, entry);
        if (entry->owner < SLU_OWNERS_KEEP)
            engine->held[SLU_RECEIVE_QUEUE]--;
        entry->owner = SLU_OWNER_NOBODY;
        atomic_store_explicit(&entry->state, SLU_ENTRY_FREE, memory_order_relaxed);
    }
}

/* Posts a chain of count work requests. Returns 0, or the error; *posted is how many were taken. */
static int post_chain(struct slu_engine *engine, struct slu_receive_wr *wrs, uint32_t count,
                      uint32_t *posted)
{
    struct slu_receive_wr *bad = NULL;
    int error;

    for (uint32_t i = 0; i < count; i++)
        wrs[i].next = i + 1 < count ? &wrs[i + 1] : NULL;
    error = engine->transport->pool_post(engine->attr.pool, wrs, &bad);
    if (error < 0 && bad == NULL)
        bad = wrs;
    if (error < 0)
        take_back_rest(engine, bad);
    *posted = error < 0 ? (uint32_t)(bad - wrs) : count;
    return slu_listed(error);
}

static void fill(const struct slu_engine *engine, struct slu_receive_wr *wr, uint64_t id,
                 const struct sluice_request *request)
{
    slu_fill_receive(wr, id, slu_request_sges(request), request->sge_count);
    SLU_PROBE2(post, engine, id);
}

/* Posts up to count requests. Returns how many, or the error of the first. */
static int post_requests(struct slu_engine *engine, const struct sluice_request *requests,
                         uint32_t count, struct sluice_handle *handles)
{
    struct slu_receive_wr wrs[CHAIN];
    uint32_t done = 0;
    int error = 0;

    while (error == 0 && done < count) {
        uint32_t in_chain = (uint32_t)slu_least(count - done, CHAIN);
        uint32_t posted;

        for (uint32_t i = 0; i < in_chain; i++) {
            const struct sluice_request *request = &requests[done + i];
            uint64_t id = slu_pool_take(engine, SLU_OWNER_PROGRAM, request);

            fill(engine, &wrs[i], id, request);
            if (handles != NULL)
                slu_give_handle(&handles[done + i], id, engine->tag);
        }
        error = post_chain(engine, wrs, in_chain, &posted);
        done += posted;
    }
    return done > 0 ? (int)done : error;
}

static int fail_full(const struct slu_engine *engine)
{
    return slu_fail(
        EAGAIN,
        "no room in the pool, which has %u receives (sluice_channel_attr.receive_pool): "
        "poll, then post again",
        engine->pool->pending);
}

static int post_source(struct slu_engine *engine, const struct slu_source *source,
                       struct sluice_handle *handles)
{
    uint32_t count = source->count;
    int result = 0;

    slu_engine_enter(engine);
    if (slu_pool_room(engine) < count)
        slu_progress(engine);
    if (count > slu_pool_room(engine))
        count = slu_pool_room(engine);
    if (source->count > 0)
        result =
            count > 0 ? post_requests(engine, source->lists[0], count, handles) : fail_full(engine);
    slu_engine_leave(engine);
    return result;
}

int slu_pool_post(struct slu_engine *engine, const struct sluice_request *requests, uint32_t count,
                  struct sluice_handle *handles)
{
    const struct slu_source source = {
        .lists = {requests}, .counts = {count}, .opcodes = {SLUICE_OP_RECEIVE}, .count = count};
    int result = slu_scope_check(engine);
    struct slu_borrowed borrowed;

    if (result == 0)
        result = slu_shared_check(engine, &source);
    if (result == 0)
        return post_source(engine, &source, handles);
    if (result != SLU_NAMES_PLAIN)
        return result;
    result = slu_borrow(engine, &source, &borrowed);
    if (result < 0)
        return result;
    return slu_give_back(&borrowed, post_source(engine, &borrowed.source, handles));
}

int slu_pool_refill(const struct slu_engine *engine)
{
    if (engine->pool == NULL && engine->pool_limits.depth > 0)
        return slu_misuse(EINVAL, "the pool of receives is for arrivals, which are counted "
                                  "(sluice_channel_attr.arrival_tags)");
    if (engine->pool == NULL)
        return slu_misuse(EINVAL, "there is no pool of receives: sluice_channel_attr.receive_pool "
                                  "is 0");
    return engine->pool->pending > engine->pool_limits.low ? 0 : (int)slu_pool_room(engine);
}

/* A receive that is taken back: the message came, or the transport has given it up. */
struct taking {
    struct slu_engine *engine;
    const struct slu_entry *entry;
    uint64_t id;
    bool taken;
};

static bool is_over(void *argument)
{
    struct taking *taking = argument;
    const struct slu_engine *engine = taking->engine;

    if (taking->entry->state != SLU_ENTRY_PENDING)
        return true;
    taking->taken = engine->transport->pool_take_back(engine->attr.pool, taking->id, false);
    return taking->taken;
}

/*
 * Takes back a receive that is pending. If a message is on its way to it, waits for that, for at
 * most the drain bound, and then ends the connection of its peer. Returns whether the receive was
 * taken back; if not, it is complete.
 */
static bool take_back(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry)
{
    struct taking taking = {.engine = engine, .entry = entry, .id = id};

    slu_progress_all(engine);
    if (!is_over(&taking) && !slu_wait(engine, is_over, &taking, slu_now() + SLU_DRAIN_TIME)) {
        taking.taken = engine->transport->pool_take_back(engine->attr.pool, id, true);
        slu_progress_all(engine);
    }
    return taking.taken;
}

static int check_take_back(const struct slu_engine *engine, const char *what)
{
    if (engine->transport->pool_take_back != NULL)
        return 0;
    return slu_fail(EOPNOTSUPP,
                    "device %s cannot take back a receive of a pool, so %s: post by "
                    "sluice_multichannel_post_receive_any(), and wait by "
                    "sluice_multichannel_next()",
                    engine->pd->context->transport->device, what);
}

int slu_pool_cancel(struct slu_engine *engine, uint64_t id, struct slu_entry *entry)
{
    int error = check_take_back(engine, "no receive can be cancelled");

    if (error < 0 || !take_back(engine, id, entry))
        return error;
    slu_pool_untake(engine, entry);
    slu_pool_give_cancelled(engine, id, entry);
    return 0;
}

static bool is_lonely(const struct slu_engine *engine)
{
    return engine->ready_count == 0;
}

static int fail_lonely(void)
{
    return slu_fail(ENOTCONN, "no peer is connected: no message would come");
}

/* A wait that ends when nothing can come any more, too. */
struct awaiting {
    const struct slu_engine *engine;
    const struct slu_entry *entry;
};

static bool has_ended(void *argument)
{
    const struct awaiting *awaiting = argument;

    return awaiting->entry->state != SLU_ENTRY_PENDING || is_lonely(awaiting->engine);
}

int slu_pool_await(struct slu_engine *engine, const struct slu_entry *entry, int64_t until)
{
    struct awaiting awaiting = {.engine = engine, .entry = entry};
    int ready = slu_wait_interruptible(engine, has_ended, &awaiting, until);

    return ready > 0 && entry->state == SLU_ENTRY_PENDING ? fail_lonely() : ready;
}

static bool has_room(void *argument)
{
    const struct slu_engine *engine = argument;

    return slu_pool_room(engine) > 0 || is_lonely(engine);
}

/* Posts the receive of a call and waits: 0 if it is complete, or the error without a result. */
static int receive_one(struct slu_engine *engine, struct slu_call *call,
                       const struct sluice_request *request)
{
    struct slu_receive_wr wr;
    struct slu_entry *entry;
    struct awaiting awaiting;
    uint32_t posted;
    uint64_t id;
    int error;

    call->deadline = slu_after(call->time);
    if (!slu_wait(engine, has_room, engine, call->deadline))
        return slu_fail(ETIMEDOUT, "the deadline has passed, and the pool has had no room");
    if (is_lonely(engine))
        return fail_lonely();
    id = slu_pool_take(engine, SLU_OWNER_CALL, request);
    entry = slu_pool_find(engine, id);
    entry->call = call;
    fill(engine, &wr, id, request);
    error = post_chain(engine, &wr, 1, &posted);
    if (error < 0)
        return error;
    awaiting = (struct awaiting){.engine = engine, .entry = entry};
    slu_wait(engine, has_ended, &awaiting, call->deadline);
    if (entry->state != SLU_ENTRY_PENDING || !take_back(engine, id, entry))
        return 0;
    slu_pool_untake(engine, entry);
    atomic_store_explicit(&entry->state, SLU_ENTRY_FREE, memory_order_relaxed);
    if (is_lonely(engine))
        return fail_lonely();
    return slu_fail(ETIMEDOUT, "receive from any peer: no message came in time");
}

int slu_pool_receive(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                     int64_t deadline, struct sluice_completion *completion)
{
    const struct sluice_request request = {
        .opcode = SLUICE_OP_RECEIVE, .sges = slu_list_of(sges, sge_count), .sge_count = sge_count};
    const struct slu_source source = {.lists = {&request}, .counts = {1}, .count = 1};
    int error = slu_scope_check(engine);
    struct slu_call call;

    if (error == 0 && deadline < 0)
        error = slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    if (error == 0)
        error = slu_shared_check(engine, &source);
    if (error == 0)
        error = check_take_back(engine, "no call can wait for one with a deadline");
    if (error == 0 && deadline == 0)
        error = slu_fail(ETIMEDOUT, "the deadline is 0: nothing was posted");
    if (error < 0)
        return error;
    slu_call_begin(&call, engine, &source, deadline, completion);
    slu_engine_enter(engine);
    slu_progress(engine);
    error = receive_one(engine, &call, &request);
    if (error == 0)
        error = slu_call_error(&call);
    slu_engine_leave(engine);
    return error;
}
