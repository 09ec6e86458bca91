/* SPDX-License-Identifier: MIT */
/*
 * Reads, writes and atomics on the data queue pair of a peer, by several threads at once. Each
 * call has up to SLU_AGENT_BATCH requests in flight, and returns only when all are complete.
 */
#include "config.h"

#include <stdio.h>

#include "agent/agent.h"
#include "engine/engine.h"
#include "multichannel/multichannel.h"

/* A request in flight. */
struct item {
    struct slu_agent_posted posted;
    struct transfer *transfer; /* NULL: free */
    uint32_t index;
    uint64_t user_data;
};

/* A call. */
struct transfer {
    struct sluice_agent_peer *peer;
    const struct sluice_agent_mr *mr; /* its lease is checked before each post; or NULL */
    const struct sluice_request *requests;
    struct sluice_completion *completions; /* or NULL */
    uint32_t count, posted, complete;
    int64_t until, time;       /* the deadline: when it ends, and its length, for texts */
    int error;                 /* the first that is neither ECANCELED nor ENOTCONN */
    int cancelled;             /* the first that is */
    bool failed;               /* nothing more is posted */
    char text[SLU_TEXT_BYTES]; /* of error, or of cancelled while that is 0 */
    struct item items[SLU_AGENT_BATCH];
};

static void note_error(struct transfer *transfer, int error, const char *text)
{
    int *first =
        error == -ECANCELED || error == -ENOTCONN ? &transfer->cancelled : &transfer->error;

    if (error == 0)
        return;
    transfer->failed = true;
    if (*first != 0)
        return;
    *first = error;
    if (first == &transfer->error || transfer->error == 0)
        snprintf(transfer->text, sizeof transfer->text, "%s", text);
}

/* Requests end in order, so those before this one are complete. */
static void note_late(struct transfer *transfer, uint32_t index)
{
    const char *name = slu_opcode_name(transfer->requests[index].opcode);
    char text[SLU_TEXT_BYTES], time[SLU_DURATION_BYTES];

    slu_say_duration(transfer->time, time);
    if (transfer->count == 1)
        snprintf(text, sizeof text, "peer %s: the %s was not complete within %s",
                 transfer->peer->address, name, time);
    else
        snprintf(text, sizeof text,
                 "peer %s: request %u, a %s, was not complete within %s; %u of %u were",
                 transfer->peer->address, index, name, time, index, transfer->count);
    note_error(transfer, -ETIMEDOUT, text);
}

static void note_completion(struct transfer *transfer, uint32_t index,
                            const struct sluice_completion *completion)
{
    struct sluice_agent_peer *peer = transfer->peer;
    char text[SLU_TEXT_BYTES + sizeof peer->address];

    if (completion->error == 0)
        return;
    if (completion->status == SLUICE_STATUS_DEADLINE) {
        note_late(transfer, index);
        return;
    }
    slu_agent_explain(peer, completion, text, sizeof text);
    note_error(transfer, completion->error, text);
}

static void end_item(struct sluice_agent_peer *peer, struct slu_agent_posted *posted,
                     const struct sluice_completion *completion)
{
    struct item *item = (struct item *)posted;
    struct transfer *transfer = item->transfer;

    (void)peer;
    if (transfer->completions != NULL) {
        struct sluice_completion *out = &transfer->completions[item->index];

        *out = *completion;
        out->user_data = item->user_data;
        out->peer = 0;
        out->flags = 0;
    }
    note_completion(transfer, item->index, completion);
    transfer->complete++;
    item->transfer = NULL;
}

/* Ends a request that was never posted. */
static void fail_request(struct transfer *transfer, uint32_t index, int error, uint32_t class,
                         uint32_t status)
{
    const struct sluice_request *request = &transfer->requests[index];

    if (transfer->completions != NULL)
        transfer->completions[index] = (struct sluice_completion){
            .user_data = request->user_data,
            .opcode = request->opcode,
            .error = error,
            .error_class = class,
            .status = status,
            .cause = status,
        };
    if (error == -ETIMEDOUT)
        note_late(transfer, index);
    else
        note_error(transfer, error, sluice_last_error());
}

static struct item *free_item(struct transfer *transfer)
{
    for (uint32_t i = 0; i < SLU_AGENT_BATCH; i++)
        if (transfer->items[i].transfer == NULL)
            return &transfer->items[i];
    return NULL;
}

static int check_lease(const struct sluice_agent_mr *mr)
{
    if (slu_agent_lease_left(mr) > 0)
        return 0;
    mr->peer->agent->info.refused_late++;
    return slu_fail(EACCES, "region %llu of peer %s: %s", (unsigned long long)mr->id,
                    mr->peer->address, mr->over ? "its owner took it back" : "its lease is over");
}

/* Returns 1 if posted, 0 if not possible now, or an error. */
static int post_one(struct transfer *transfer, struct item *item)
{
    struct sluice_request request = transfer->requests[transfer->posted];
    /* The call may have waited long since its lease was last checked. */
    int posted = transfer->mr != NULL ? check_lease(transfer->mr) : 0;

    if (posted < 0)
        return posted;
    *item = (struct item){.posted = {.ended = end_item},
                          .transfer = transfer,
                          .index = transfer->posted,
                          .user_data = request.user_data};
    posted = slu_agent_post(transfer->peer, &item->posted, &request, transfer->until);
    if (posted != 1)
        item->transfer = NULL;
    return posted;
}

/* Refuses requests that a channel would take, but an agent does not. */
static int check_request(const struct sluice_request *request, uint32_t index)
{
    if (request->opcode < SLUICE_OP_WRITE || request->opcode >= SLU_OPCODES)
        return slu_misuse(EINVAL,
                          "request %u: an agent takes reads, writes and atomics; send messages "
                          "with sluice_agent_send()",
                          index);
    if (request->peer != 0)
        return slu_misuse(EINVAL, "request %u: peer must be 0", index);
    if ((request->flags & SLUICE_IMMEDIATE) != 0)
        return slu_misuse(EINVAL, "request %u: an immediate cannot be received by an agent", index);
    return 0;
}

/* Each request is posted as a whole. The program cannot set the depth of the queue. */
static int check_room(const struct sluice_agent_peer *peer, const struct slu_source *source)
{
    const struct slu_engine *engine = peer->data.wire->base.engine;

    for (uint32_t i = 0; i < source->count; i++) {
        struct slu_item item;

        if (source->lists[0][i].blocks == NULL)
            continue;
        slu_source_any_item(source, i, &item);
        if (slu_parts_count(engine, &item, engine->attr.send_depth) > engine->attr.send_depth)
            return slu_fail(E2BIG,
                            "request %u has blocks that need more than the %u work requests that "
                            "an agent posts of one: split them over several requests of the list",
                            i, engine->attr.send_depth);
    }
    return 0;
}

/* Checks all of the list before any of it is posted. */
static int check_list(const struct sluice_agent_peer *peer, const struct sluice_request *requests,
                      uint32_t count)
{
    const struct slu_source source = {.lists = {requests}, .counts = {count}, .count = count};
    int result = 0;

    for (uint32_t i = 0; i < count && result == 0; i++)
        result = check_request(&requests[i], i);
    if (result == 0)
        result = slu_source_check(peer->data.wire->base.engine, &source, SLUICE_FOREVER);
    return result < 0 ? result : check_room(peer, &source);
}

/* Posts as many requests as there is room for. Returns whether any was posted or failed. */
static bool post_some(struct transfer *transfer)
{
    struct slu_agent_data *data = &transfer->peer->data;
    bool some = false;

    while (!transfer->failed && transfer->posted < transfer->count &&
           data->state == SLU_AGENT_DATA_READY && data->transfers < SLU_AGENT_TRANSFERS) {
        struct item *item = free_item(transfer);
        int posted = item != NULL ? post_one(transfer, item) : 0;

        if (posted == 0)
            break;
        some = true;
        if (posted < 0) {
            fail_request(transfer, transfer->posted++, posted,
                         posted == -ETIMEDOUT ? SLUICE_CLASS_TIMEOUT : SLUICE_CLASS_LOCAL,
                         posted == -ETIMEDOUT ? (uint32_t)SLUICE_STATUS_DEADLINE
                                              : (uint32_t)SLUICE_STATUS_LOC_QP_OP_ERR);
            transfer->complete++;
            break;
        }
        transfer->posted++;
    }
    return some;
}

/* Posts further requests. Returns whether all are complete and no more will be posted. */
static bool is_over(void *argument)
{
    struct transfer *transfer = argument;

    post_some(transfer);
    return transfer->complete == transfer->posted &&
           (transfer->failed || transfer->posted == transfer->count ||
            transfer->peer->state == SLU_AGENT_OVER);
}

static bool is_drained(void *argument)
{
    const struct transfer *transfer = argument;

    return transfer->complete == transfer->posted;
}

/*
 * Posts and polls once, without serving other peers unless that is overdue: on most transports a
 * short transfer is complete by then. The peer's messages are handled first, so that nothing is
 * posted to a region that its owner has revoked.
 */
static bool is_done_at_once(struct transfer *transfer)
{
    struct sluice_agent_peer *peer = transfer->peer;

    if (transfer->count > SLU_AGENT_BATCH || !slu_agent_serve_one(peer) ||
        peer->state != SLU_AGENT_OPEN)
        return false;
    post_some(transfer);
    slu_agent_data_poll(peer);
    return transfer->complete == transfer->count && !transfer->failed;
}

/* Waits for a transfer, of which some may be posted, and returns its result. */
static int finish(struct transfer *transfer, int64_t until)
{
    struct sluice_agent_peer *peer = transfer->peer;
    int error;
    int waited = is_done_at_once(transfer)
                     ? 0
                     : slu_agent_await(peer->agent, is_over, transfer, until, false);

    /* Posted requests have the same deadline, so they complete without further action. */
    transfer->failed |= waited < 0;
    while (!is_drained(transfer))
        (void)slu_agent_await(peer->agent, is_drained, transfer, SLUICE_FOREVER, false);
    if (transfer->posted < transfer->count && waited == -ETIMEDOUT && transfer->error == 0)
        fail_request(transfer, transfer->posted++, -ETIMEDOUT, SLUICE_CLASS_TIMEOUT,
                     SLUICE_STATUS_DEADLINE);
    while (transfer->posted < transfer->count)
        fail_request(transfer, transfer->posted++, -ECANCELED, SLUICE_CLASS_CANCELLED,
                     SLUICE_STATUS_WR_FLUSH_ERR);
    if (peer->state == SLU_AGENT_OVER && (transfer->error != 0 || transfer->cancelled != 0))
        return slu_agent_peer_check(peer);
    error = transfer->error != 0 ? transfer->error : transfer->cancelled;
    return error < 0 ? slu_fail(-error, "%s", transfer->text) : 0;
}

static void begin(struct transfer *transfer, struct sluice_agent_peer *peer,
                  const struct sluice_agent_mr *mr, const struct sluice_request *requests,
                  uint32_t count, int64_t deadline, int64_t until)
{
    *transfer = (struct transfer){.peer = peer,
                                  .mr = mr,
                                  .requests = requests,
                                  .count = count,
                                  .until = until,
                                  .time = deadline};
}

/* Does reads, writes and atomics. The caller has the lock. */
static int transfer_list(struct sluice_agent_peer *peer, const struct sluice_agent_mr *mr,
                         const struct sluice_request *requests, uint32_t count, int64_t deadline,
                         struct sluice_completion *completions)
{
    int64_t until = slu_after(deadline);
    struct transfer transfer;
    /* Callers may have given up the lock since their own check. */
    int error = slu_agent_peer_check(peer);

    if (error == 0 && mr != NULL)
        error = check_lease(mr);
    if (error == 0)
        error = check_list(peer, requests, count);
    if (error < 0)
        return error;
    begin(&transfer, peer, mr, requests, count, deadline, until);
    transfer.completions = completions;
    return finish(&transfer, until);
}

int sluice_agent_submit(struct sluice_agent_peer *peer, const struct sluice_request *requests,
                        uint32_t count, int64_t deadline, struct sluice_completion *completions)
{
    SLU_KEEP_ERRNO;
    int error;

    if (!slu_is_agent_peer(peer))
        return slu_not_an_agent_peer(peer);
    error = slu_agent_check_time(deadline, "deadline");
    if (error == 0 && requests == NULL && count > 0)
        error = slu_misuse(EINVAL, "requests must not be NULL");
    if (error < 0 || count == 0)
        return error;
    slu_agent_enter(peer->agent);
    error = transfer_list(peer, NULL, requests, count, deadline, completions);
    slu_agent_leave(peer->agent);
    return error;
}

/* Calls on a region of the peer. */

static uint32_t right_of(uint32_t opcode)
{
    switch (opcode) {
    case SLUICE_OP_WRITE:
        return SLUICE_ACCESS_REMOTE_WRITE;
    case SLUICE_OP_READ:
        return SLUICE_ACCESS_REMOTE_READ;
    default:
        return SLUICE_ACCESS_REMOTE_ATOMIC;
    }
}

static int check_use(const struct sluice_agent_mr *mr, uint32_t opcode)
{
    struct sluice_agent_peer *peer = mr->peer;
    int error = slu_agent_peer_check(peer);

    if (error < 0)
        return error;
    if ((mr->access & right_of(opcode)) == 0)
        return slu_fail(EACCES, "region %llu of peer %s: our rights %#x do not allow this",
                        (unsigned long long)mr->id, peer->address, mr->access);
    return 0;
}

/* Returns whether a region can be used for longer than a tick; if not, the clock must be read. */
static bool lasts(const struct sluice_agent_mr *mr)
{
    return !mr->over && mr->expires - slu_tick() > SLU_LONGEST_TICK;
}

/*
 * Posts a plain request and polls once. Returns 1 if it succeeded; 0 if it goes on as the first
 * item of the transfer, which it begins; or -EAGAIN if nothing was posted.
 */
static int use_at_once(const struct sluice_agent_mr *mr, const struct sluice_request *request,
                       int64_t deadline, struct transfer *transfer)
{
    struct sluice_agent_peer *peer = mr->peer;
    struct item *item = &transfer->items[0];
    struct slu_attempt attempt;
    int result;

    if (slu_opcode_is_atomic(request->opcode) || request->sge_count != 1 ||
        peer->data.state != SLU_AGENT_DATA_READY || peer->data.transfers > 0 || !lasts(mr) ||
        !slu_agent_is_quiet(peer))
        return -EAGAIN;
    attempt.sge = request->sges[0];
    attempt.remote_addr = request->remote.addr;
    attempt.rkey = request->remote.rkey;
    attempt.opcode = request->opcode;
    attempt.deadline = deadline;
    attempt.user_data = (uintptr_t)&item->posted;
    attempt.peer = peer->data.index;
    slu_agent_unarm_data(peer);
    result = slu_attempt(peer->data.wire->base.engine, &attempt);
    if (result != 0)
        return result;
    slu_agent_unarm(peer);
    begin(transfer, peer, mr, request, 1, deadline, slu_after(deadline));
    *item = (struct item){.posted = {.ended = end_item, .peer = peer, .remote = request->remote},
                          .transfer = transfer};
    transfer->posted = 1;
    peer->data.transfers++;
    return 0;
}

/* Does a request on a region. The caller has the lock. */
static int use_region(const struct sluice_agent_mr *mr, const struct sluice_request *request,
                      int64_t deadline)
{
    struct transfer transfer;
    int done = use_at_once(mr, request, deadline, &transfer);

    if (SLU_LIKELY(done == 1))
        return 0;
    if (done == 0)
        return finish(&transfer, transfer.until);
    return transfer_list(mr->peer, mr, request, 1, deadline, NULL);
}

/* Checks and performs a request at an offset of the region; its length is that of its elements. */
static int use(struct sluice_agent_mr *mr, uint64_t offset, struct sluice_request *request,
               int64_t deadline)
{
    uint64_t length = 0;
    int error;

    if (!slu_is_agent_mr(mr))
        return slu_not_an_agent_mr(mr);
    if (request->sges == NULL && request->sge_count > 0)
        return slu_misuse(EINVAL, "%s must not be NULL",
                          slu_opcode_is_atomic(request->opcode) ? "result" : "sges");
    if (request->sge_count > SLU_AGENT_BATCH)
        return slu_misuse(EINVAL, "sge_count %u: must be in 0..%d", request->sge_count,
                          SLU_AGENT_BATCH);
    for (uint32_t i = 0; i < request->sge_count; i++)
        length += request->sges[i].length;
    error = slu_agent_check_time(deadline, "deadline");
    if (error == 0)
        error = sluice_remote_mr_slice(&mr->remote, offset, length, &request->remote);
    if (error < 0)
        return error;
    if (request->sge_count == 0)
        request->sges = NULL;
    slu_agent_enter(mr->peer->agent);
    error = check_use(mr, request->opcode);
    if (error == 0)
        error = use_region(mr, request, deadline);
    slu_agent_leave(mr->peer->agent);
    return error;
}

int sluice_agent_mr_read(struct sluice_agent_mr *mr, uint64_t offset, const struct sluice_sge *sges,
                         uint32_t sge_count, int64_t deadline)
{
    SLU_KEEP_ERRNO;
    struct sluice_request request = {
        .opcode = SLUICE_OP_READ, .sges = sges, .sge_count = sge_count};

    return use(mr, offset, &request, deadline);
}

int sluice_agent_mr_write(struct sluice_agent_mr *mr, uint64_t offset,
                          const struct sluice_sge *sges, uint32_t sge_count, int64_t deadline)
{
    SLU_KEEP_ERRNO;
    struct sluice_request request = {
        .opcode = SLUICE_OP_WRITE, .sges = sges, .sge_count = sge_count};

    return use(mr, offset, &request, deadline);
}

int sluice_agent_mr_compare_swap(struct sluice_agent_mr *mr, uint64_t offset,
                                 const struct sluice_sge *result, uint64_t expected,
                                 uint64_t desired, int64_t deadline)
{
    SLU_KEEP_ERRNO;
    struct sluice_request request = {.opcode = SLUICE_OP_COMPARE_SWAP,
                                     .sges = result,
                                     .sge_count = 1,
                                     .operand = {expected, desired}};

    return use(mr, offset, &request, deadline);
}

int sluice_agent_mr_fetch_add(struct sluice_agent_mr *mr, uint64_t offset,
                              const struct sluice_sge *result, uint64_t addend, int64_t deadline)
{
    SLU_KEEP_ERRNO;
    struct sluice_request request = {
        .opcode = SLUICE_OP_FETCH_ADD, .sges = result, .sge_count = 1, .operand = {addend, 0}};

    return use(mr, offset, &request, deadline);
}
