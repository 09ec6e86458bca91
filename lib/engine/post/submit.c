/* SPDX-License-Identifier: MIT */
/*
 * Blocking calls: a list of requests is posted, receives first, as far as the queues have room, and
 * the rest as they drain. The call returns when each request has its result.
 */
#include "config.h"

#include "engine/peer/words.h"
#include "engine/post/call.h"
#include "engine/post/post.h"
#include "engine/post/work.h"
#include "engine/progress/progress.h"
#include "engine/progress/wait.h"
#include "engine/request/borrow.h"
#include "engine/ring/entry.h"

#define NOINLINE __attribute__((noinline))
/* Every BUSY_CALLS polls, check the clock: other requests may have passed their deadlines. */
#define BUSY_CALLS 64

static bool call_ready(void *argument)
{
    struct slu_call *call = argument;

    if (call->incomplete > 0)
        slu_post_stalled(call);
    return call->incomplete == 0;
}

/*
 * Returns whether the peer of a late request has lost that error. A list in flight may be waited
 * for long after it was late, when the peer was reset or removed.
 */
static bool is_late_no_more(const struct slu_call *call)
{
    const struct slu_peer *peer = &call->engine->peers[call->real.peer];

    return call->real.status == SLUICE_STATUS_DEADLINE && !call->expired &&
           (peer->state != SLUICE_STATE_FAILED || peer->cause_status != SLUICE_STATUS_DEADLINE);
}

int slu_call_failure(const struct slu_call *call)
{
    if (call->first_real != SLU_NONE)
        return is_late_no_more(call) ? slu_fail_late(call->engine, &call->real, call->time)
                                     : slu_fail_completion(call->engine, &call->real, call->time);
    return slu_fail_completion(call->engine, &call->other, call->time);
}

static inline int end_call(const struct slu_call *call)
{
    int error = slu_call_error(call);

    slu_engine_leave(call->engine);
    return error;
}

/* Goes on with a call that its first poll did not complete, or that is due to check the clock. */
static SLU_COLD int finish_waiting(struct slu_call *call, int count)
{
    struct slu_engine *engine = call->engine;

    slu_call_set_due(call);
    /* If nothing came, the wait checks the clock. */
    if (count > 0)
        slu_look_at_clock(engine, count);
    if (!slu_wait(engine, call_ready, call, call->deadline)) {
        /*
         * The check of the clock fails peers that are late. Requests that never found room are
         * refused, and their peers are not failed.
         */
        call->expired = true;
        slu_wait(engine, call_ready, call, SLUICE_FOREVER);
    }
    return end_call(call);
}

static SLU_INLINE int finish(struct slu_call *call)
{
    struct slu_engine *engine = call->engine;
    struct slu_wc wcs[SLU_BATCH];
    int count = slu_poll_cq(engine, wcs, SLU_BATCH);

    if (SLU_UNLIKELY(count < 0))
        count = slu_take_batch(engine, wcs, count);
    else
        slu_dispatch(engine, wcs, count, SLU_OWNER_CALL);
    if (SLU_UNLIKELY(call->incomplete > 0 || ++engine->busy_polls >= BUSY_CALLS))
        return finish_waiting(call, count);
    return end_call(call);
}

int slu_call_finish(struct slu_call *call)
{
    return finish(call);
}

void slu_call_set_due(struct slu_call *call)
{
    call->deadline = slu_after_or_later(call->time);
    slu_note_deadline(call->engine, call->deadline);
}

/* Returns the error of a list that is wrong, or submits a list that names plain memory. */
static SLU_COLD int submit_aside(struct slu_engine *engine, const struct slu_source *source,
                                 int why, int64_t deadline, struct sluice_completion *completions)
{
    struct slu_borrowed borrowed;
    int error;

    if (why != SLU_NAMES_PLAIN)
        return why;
    error = slu_borrow(engine, source, &borrowed);
    if (error < 0)
        return error;
    error = slu_submit(engine, &borrowed.source, deadline, completions);
    return slu_give_back(&borrowed, error);
}

int slu_submit(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
               struct sluice_completion *completions)
{
    int queues = slu_scope_check(engine);
    struct slu_call call;

    if (queues == 0)
        queues = slu_source_check(engine, source, deadline);
    if (SLU_UNLIKELY(queues <= 0))
        return submit_aside(engine, source, queues, deadline, completions);
    slu_call_begin(&call, engine, source, deadline, completions);
    call.queues = (uint32_t)queues;
    slu_engine_enter(engine);
    if ((call.queues & 1U << SLU_RECEIVE_QUEUE) != 0)
        slu_post_call(&call, SLU_RECEIVE_QUEUE);
    if ((call.queues & 1U << SLU_SEND_QUEUE) != 0)
        slu_post_call(&call, SLU_SEND_QUEUE);
    return finish(&call);
}

/* Submits one request as a list: it may be wrong, wait for room, or be split. */
static SLU_COLD int submit_general(struct slu_engine *engine, const struct sluice_request *given,
                                   const struct sluice_remote_mr *remote, int64_t deadline,
                                   struct sluice_completion *completion)
{
    struct sluice_request request = *given;
    struct slu_source source = {.lists = {&request}, .counts = {1}, .count = 1};

    request.sges = slu_list_of(given->sges, given->sge_count);
    if (remote != NULL)
        request.remote = *remote;
    return slu_submit(engine, &source, deadline, completion);
}

/*
 * Returns whether a call may take the fast path as far as its arguments and the peer's index go.
 * The functions below have a form for one element, with a constant sge_count of 1, and one for
 * several.
 */
static SLU_INLINE bool is_plain(const struct slu_engine *engine, uint32_t index,
                                const struct sluice_sge *sges, uint32_t sge_count, int64_t deadline,
                                int64_t least)
{
    return deadline >= least && sges != NULL &&
           (sge_count == 1 || sge_count <= engine->plain_sges) && !engine->scope.open &&
           index < engine->peer_count;
}

static SLU_INLINE bool is_ready(const struct slu_engine *engine, const struct slu_peer *peer,
                                enum slu_queue queue, uint64_t bytes,
                                const struct sluice_remote_mr *remote)
{
    return peer->state == SLUICE_STATE_READY && slu_post_room(engine, peer, queue, 1) &&
           bytes <= engine->max_plain && (remote == NULL || slu_remote_holds(remote, bytes));
}

/*
 * Returns whether the first poll returns the success of this request and nothing else, as is most
 * common. No credits were taken for it, so there are none to return.
 */
static SLU_INLINE bool ends_at_once(struct slu_engine *engine, struct slu_ring *ring, uint64_t id,
                                    struct slu_entry *entry, struct slu_wc *wc, int *polled)
{
    engine->polls++;
    *polled = engine->transport->cq_poll(engine->cq, wc, 1);
    if (SLU_UNLIKELY(*polled != 1 || wc->id != id || ring->oldest != id ||
                     wc->status != SLUICE_STATUS_SUCCESS))
        return false;
    ring->oldest = id + SLU_ID_STEP;
    atomic_store_explicit(&entry->state, SLU_ENTRY_FREE, memory_order_relaxed);
    return true;
}

/* Checks the clock once in BUSY_CALLS polls, since other requests may be late. */
static SLU_INLINE void look_after_others(struct slu_engine *engine)
{
    if (SLU_LIKELY(engine->polls % BUSY_CALLS != 0))
        return;
    engine->busy_polls = BUSY_CALLS;
    slu_progress(engine);
}

/* Placeholder: a single request that completes late no longer needs its source. */
static const struct sluice_request one_request;
static const struct slu_source list_of_one = {.lists = {&one_request}, .counts = {1}, .count = 1};

/*
 * Goes on with a request that was refused, or was posted and did not complete at once. Turns it
 * into a request like all others, waits for it and returns its result. The deadline counts from
 * now, when it starts to wait. If wc is NULL, the post was refused and result_of is its error; else
 * result_of is the result of the poll.
 */
static SLU_COLD int finish_late(struct slu_engine *engine, struct slu_ring *ring,
                                const struct slu_wc *wc, int result_of, uint32_t opcode,
                                int64_t deadline, struct sluice_completion *completion)
{
    enum slu_queue queue = slu_opcode_queue(opcode);
    uint64_t id = ring->next - SLU_ID_STEP;
    struct slu_peer *peer = &engine->peers[slu_id_peer(id)];
    struct slu_entry *entry = slu_ring_entry(ring, id);
    struct slu_call call;

    slu_call_begin(&call, engine, &list_of_one, deadline, completion);
    slu_call_set_due(&call);
    entry->owner = SLU_OWNER_CALL;
    entry->opcode = (uint8_t)opcode;
    entry->call = &call;
    entry->index = 0;
    entry->course = SLU_PLAIN_COURSE;
    engine->pending[queue]++;
    engine->cq_free[queue]--;
    peer->free[queue]--;
    if (wc == NULL)
        slu_post_refused(engine, peer, entry, result_of);
    else if (result_of != 0)
        slu_look_at_clock(engine, slu_take_batch(engine, wc, result_of));
    if (entry->state == SLU_ENTRY_PENDING)
        slu_wait_entry(engine, entry);
    return end_call(&call);
}

/*
 * Takes the next entry of a ring. It only has the memory and the bytes of the request: the rest is
 * not needed if the request completes at once.
 */
static SLU_INLINE struct slu_entry *take_entry(struct slu_engine *engine, struct slu_ring *ring,
                                               uint64_t id, const struct sluice_sge *sges,
                                               uint32_t sge_count, uint64_t bytes)
{
    struct slu_entry *entry = slu_ring_entry(ring, id);

    if (SLU_UNLIKELY(slu_entry_is_unseen(engine, entry)))
        slu_entry_displace(engine, ring, entry);
    ring->next = id + SLU_ID_STEP;
    entry->bytes = bytes;
    slu_entry_pend(engine, ring, entry,
                   slu_pending_head(SLU_OWNER_NOBODY, SLUICE_OP_NONE, sge_count), sges, sge_count);
    return entry;
}

/* The way for each request that is not plain, or not ready, with all checks. */
static SLU_INLINE int submit_checked(struct slu_engine *engine, uint32_t opcode, uint32_t index,
                                     const struct sluice_sge *sges, uint32_t sge_count,
                                     const struct sluice_remote_mr *remote,
                                     const uint32_t *immediate, int64_t deadline)
{
    return submit_general(engine,
                          &(struct sluice_request){
                              .opcode = opcode,
                              .peer = index,
                              .flags = immediate != NULL ? SLUICE_IMMEDIATE : 0,
                              .immediate = immediate != NULL ? *immediate : 0,
                              .sges = sges,
                              .sge_count = sge_count,
                          },
                          remote, deadline, NULL);
}

static SLU_INLINE int submit_send(struct slu_engine *engine, const uint32_t opcode, uint32_t index,
                                  const struct sluice_sge *sges, const uint32_t sge_count,
                                  const struct sluice_remote_mr *remote, const uint32_t *immediate,
                                  int64_t deadline)
{
    struct slu_peer *peer = &engine->peers[index];
    struct slu_ring *ring = &peer->rings[SLU_SEND_QUEUE];
    struct slu_send_wr wr, *bad;
    struct slu_wc wc;

    /*
     * A message with a short deadline must not wait for its receive in the transport: see
     * slu_call_flags().
     */
    if (SLU_LIKELY(is_plain(engine, index, sges, sge_count, deadline,
                            opcode == SLUICE_OP_SEND ? SLU_BLOCKING_LEAST : 1))) {
        uint64_t bytes = slu_sge_bytes(sges, sge_count);

        if (SLU_LIKELY(is_ready(engine, peer, SLU_SEND_QUEUE, bytes, remote))) {
            uint64_t id = ring->next;
            struct slu_entry *entry = take_entry(engine, ring, id, sges, sge_count, bytes);
            int refused, polled;

            wr.next = NULL;
            wr.id = id;
            wr.opcode = opcode;
            wr.flags = SLU_SIGNALED | SLU_WAITED | SLU_BLOCKING |
                       (immediate != NULL ? SLUICE_IMMEDIATE : 0);
            wr.immediate = immediate != NULL ? *immediate : 0;
            wr.sge_count = sge_count;
            wr.sges = sges;
            if (remote != NULL) {
                wr.remote_addr = remote->addr;
                wr.rkey = remote->rkey;
            }
            slu_engine_enter(engine);
            SLU_PROBE2(post, engine, id);
            refused = engine->transport->post_send(peer->qp, &wr, &bad);
            if (SLU_UNLIKELY(refused < 0))
                return finish_late(engine, ring, NULL, refused, opcode, deadline, NULL);
            if (SLU_UNLIKELY(!ends_at_once(engine, ring, id, entry, &wc, &polled)))
                return finish_late(engine, ring, &wc, polled, opcode, deadline, NULL);
            peer->counts.requests[opcode]++;
            peer->counts.bytes[opcode] += bytes;
            SLU_PROBE5(completion, engine, id, opcode, bytes, SLUICE_STATUS_SUCCESS);
            look_after_others(engine);
            slu_engine_leave(engine);
            return 0;
        }
    }
    return submit_checked(engine, opcode, index, sges, sge_count, remote, immediate, deadline);
}

static NOINLINE int submit_list(struct slu_engine *engine, uint32_t opcode, uint32_t index,
                                const struct sluice_sge *sges, uint32_t sge_count,
                                const struct sluice_remote_mr *remote, const uint32_t *immediate,
                                int64_t deadline)
{
    return submit_send(engine, opcode, index, sges, sge_count, remote, immediate, deadline);
}

static SLU_INLINE int submit(struct slu_engine *engine, const uint32_t opcode, uint32_t index,
                             const struct sluice_sge *sges, uint32_t sge_count,
                             const struct sluice_remote_mr *remote, const uint32_t *immediate,
                             int64_t deadline)
{
    return SLU_LIKELY(sge_count == 1)
               ? submit_send(engine, opcode, index, sges, 1, remote, immediate, deadline)
               : submit_list(engine, opcode, index, sges, sge_count, remote, immediate, deadline);
}

int slu_submit_send(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                    int64_t deadline, uint32_t peer, const uint32_t *immediate)
{
    return submit(engine, SLUICE_OP_SEND, peer, sges, sge_count, NULL, immediate, deadline);
}

int slu_submit_checked_send(struct slu_engine *engine, const struct sluice_sge *sges,
                            uint32_t sge_count, int64_t deadline, uint32_t peer,
                            const uint32_t *immediate)
{
    return submit_checked(engine, SLUICE_OP_SEND, peer, sges, sge_count, NULL, immediate, deadline);
}

int slu_submit_write(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                     const struct sluice_remote_mr *remote, int64_t deadline, uint32_t peer)
{
    return SLU_LIKELY(remote != NULL)
               ? submit(engine, SLUICE_OP_WRITE, peer, sges, sge_count, remote, NULL, deadline)
               : slu_no_remote(SLUICE_OP_WRITE);
}

int slu_submit_write_immediate(struct slu_engine *engine, const struct sluice_sge *sges,
                               uint32_t sge_count, const struct sluice_remote_mr *remote,
                               int64_t deadline, uint32_t peer, uint32_t immediate)
{
    if (SLU_UNLIKELY(remote == NULL))
        return slu_no_remote(SLUICE_OP_WRITE);
    return SLU_LIKELY(engine->lacking_flags == 0)
               ? submit(engine, SLUICE_OP_WRITE, peer, sges, sge_count, remote, &immediate,
                        deadline)
               : submit_checked(engine, SLUICE_OP_WRITE, peer, sges, sge_count, remote, &immediate,
                                deadline);
}

int slu_submit_read(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                    const struct sluice_remote_mr *remote, int64_t deadline, uint32_t peer)
{
    return SLU_LIKELY(remote != NULL)
               ? submit(engine, SLUICE_OP_READ, peer, sges, sge_count, remote, NULL, deadline)
               : slu_no_remote(SLUICE_OP_READ);
}

/*
 * Turns an attempt that did not complete at once into a request of the program, whose result a poll
 * returns. wc and result_of are as in finish_late().
 */
static SLU_COLD int keep_attempt(struct slu_engine *engine, struct slu_ring *ring,
                                 const struct slu_wc *wc, int result_of,
                                 const struct slu_attempt *attempt)
{
    uint64_t id = ring->next - SLU_ID_STEP;
    struct slu_peer *peer = &engine->peers[slu_id_peer(id)];
    struct slu_entry *entry = slu_ring_entry(ring, id);

    slu_find_place(engine, SLU_SEND_QUEUE);
    slu_count_taken(engine, SLU_SEND_QUEUE, SLU_OWNER_PROGRAM, 1);
    engine->cq_free[SLU_SEND_QUEUE]--;
    peer->free[SLU_SEND_QUEUE]--;
    entry->owner = SLU_OWNER_PROGRAM;
    entry->opcode = (uint8_t)attempt->opcode;
    entry->course = SLU_PLAIN_COURSE;
    entry->user_data = attempt->user_data;
    entry->time = attempt->deadline;
    entry->deadline = slu_after(attempt->deadline);
    slu_note_deadline(engine, entry->deadline);
    if (wc == NULL)
        slu_post_refused(engine, peer, entry, result_of);
    else if (result_of != 0)
        slu_take_batch(engine, wc, result_of);
    slu_engine_leave(engine);
    return 0;
}

int slu_attempt(struct slu_engine *engine, const struct slu_attempt *attempt)
{
    struct slu_peer *peer = &engine->peers[attempt->peer];
    struct slu_ring *ring = &peer->rings[SLU_SEND_QUEUE];
    const struct sluice_sge *sge = &attempt->sge;
    struct slu_send_wr wr, *bad;
    struct slu_entry *entry;
    struct slu_wc wc;
    int refused, polled;
    uint64_t id = ring->next;

    if (SLU_UNLIKELY(attempt->deadline <= 0 || engine->scope.open ||
                     !is_ready(engine, peer, SLU_SEND_QUEUE, sge->length, NULL)))
        return -EAGAIN;
    entry = take_entry(engine, ring, id, sge, 1, sge->length);
    wr.next = NULL;
    wr.id = id;
    wr.opcode = attempt->opcode;
    wr.flags = SLU_SIGNALED | SLU_WAITED;
    wr.immediate = 0;
    wr.sge_count = 1;
    wr.sges = sge;
    wr.remote_addr = attempt->remote_addr;
    wr.rkey = attempt->rkey;
    slu_engine_enter(engine);
    SLU_PROBE2(post, engine, id);
    refused = engine->transport->post_send(peer->qp, &wr, &bad);
    if (SLU_UNLIKELY(refused < 0))
        return keep_attempt(engine, ring, NULL, refused, attempt);
    if (SLU_UNLIKELY(!ends_at_once(engine, ring, id, entry, &wc, &polled)))
        return keep_attempt(engine, ring, &wc, polled, attempt);
    peer->counts.requests[attempt->opcode]++;
    peer->counts.bytes[attempt->opcode] += sge->length;
    SLU_PROBE5(completion, engine, id, attempt->opcode, (uint64_t)sge->length,
               SLUICE_STATUS_SUCCESS);
    slu_engine_leave(engine);
    return 1;
}

static SLU_INLINE int submit_receive(struct slu_engine *engine, const struct sluice_sge *sges,
                                     const uint32_t sge_count, int64_t deadline,
                                     struct sluice_completion *completion, uint32_t index)
{
    struct slu_peer *peer = &engine->peers[index];
    struct slu_ring *ring = &peer->rings[SLU_RECEIVE_QUEUE];
    struct slu_receive_wr wr, *bad;
    struct slu_wc wc;

    if (SLU_LIKELY(is_plain(engine, index, sges, sge_count, deadline, 1))) {
        uint64_t bytes = slu_sge_bytes(sges, sge_count);

        if (SLU_LIKELY(is_ready(engine, peer, SLU_RECEIVE_QUEUE, bytes, NULL))) {
            uint64_t id = ring->next;
            struct slu_entry *entry = take_entry(engine, ring, id, sges, sge_count, bytes);
            int refused, polled;

            wr.next = NULL;
            slu_fill_receive(&wr, id, sges, sge_count);
            slu_engine_enter(engine);
            SLU_PROBE2(post, engine, id);
            refused = engine->transport->post_receive(peer->qp, &wr, &bad);
            if (SLU_UNLIKELY(refused < 0))
                return finish_late(engine, ring, NULL, refused, SLUICE_OP_RECEIVE, deadline,
                                   completion);
            if (SLU_UNLIKELY(!ends_at_once(engine, ring, id, entry, &wc, &polled)))
                return finish_late(engine, ring, &wc, polled, SLUICE_OP_RECEIVE, deadline,
                                   completion);
            peer->counts.requests[SLUICE_OP_RECEIVE]++;
            peer->counts.bytes[SLUICE_OP_RECEIVE] += wc.bytes;
            SLU_PROBE5(completion, engine, id, SLUICE_OP_RECEIVE, wc.bytes, SLUICE_STATUS_SUCCESS);
            if (completion != NULL)
                *completion = (struct sluice_completion){.bytes = wc.bytes,
                                                         .peer = index,
                                                         .opcode = SLUICE_OP_RECEIVE,
                                                         .flags = wc.flags,
                                                         .immediate = wc.immediate};
            look_after_others(engine);
            slu_engine_leave(engine);
            return 0;
        }
    }
    return submit_general(
        engine,
        &(struct sluice_request){
            .opcode = SLUICE_OP_RECEIVE, .peer = index, .sges = sges, .sge_count = sge_count},
        NULL, deadline, completion);
}

static NOINLINE int receive_list(struct slu_engine *engine, const struct sluice_sge *sges,
                                 uint32_t sge_count, int64_t deadline,
                                 struct sluice_completion *completion, uint32_t peer)
{
    return submit_receive(engine, sges, sge_count, deadline, completion, peer);
}

int slu_submit_receive(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                       int64_t deadline, struct sluice_completion *completion, uint32_t peer)
{
    return SLU_LIKELY(sge_count == 1)
               ? submit_receive(engine, sges, 1, deadline, completion, peer)
               : receive_list(engine, sges, sge_count, deadline, completion, peer);
}
