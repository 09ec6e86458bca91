/* SPDX-License-Identifier: MIT */
/*
 * Posting in a scope: all of a list is accepted, or nothing is posted. Requests that the
 * queues have no room for are posted as they drain, before the call returns.
 */
#include "config.h"

#include "engine/list/list.h"
#include "engine/request/borrow.h"
#include "scope/scope.h"

static bool is_posted(void *argument)
{
    struct slu_call *call = argument;

    slu_post_stalled(call);
    return call->engine->stalled[SLU_SEND_QUEUE] == SLU_NONE &&
           call->engine->stalled[SLU_RECEIVE_QUEUE] == SLU_NONE;
}

/* Receives first, as in a submit. */
static void post_all(struct slu_call *call)
{
    struct slu_engine *engine = call->engine;

    if ((call->queues & 1U << SLU_RECEIVE_QUEUE) != 0)
        slu_post_call(call, SLU_RECEIVE_QUEUE);
    if ((call->queues & 1U << SLU_SEND_QUEUE) != 0)
        slu_post_call(call, SLU_SEND_QUEUE);
    if (SLU_LIKELY(engine->stalled[SLU_SEND_QUEUE] == SLU_NONE &&
                   engine->stalled[SLU_RECEIVE_QUEUE] == SLU_NONE))
        return;
    if (slu_wait(engine, is_posted, call, call->deadline))
        return;
    /* The deadline has passed: stalled requests are refused, and late ones fail with their peer. */
    call->expired = engine->scope.expired = true;
    slu_wait(engine, is_posted, call, SLUICE_FOREVER);
}

static int post_source(struct sluice_scope *scope, const struct slu_source *source,
                       struct sluice_handle *handles);

/* Posts a list that uses unregistered memory; why is the error of any other list. */
static SLU_COLD int post_aside(struct sluice_scope *scope, const struct slu_source *source, int why,
                               struct sluice_handle *handles)
{
    struct slu_borrowed borrowed;
    int result;

    if (why != SLU_NAMES_PLAIN)
        return why;
    result = slu_borrow(slu_scope_engine(scope), source, &borrowed);
    if (result < 0)
        return result;
    result = post_source(scope, &borrowed.source, handles);
    return slu_give_back(&borrowed, result);
}

/* Posts a checked source. Returns its count. queues: the result of slu_source_check(). */
static int post_checked(struct slu_engine *engine, const struct slu_source *source, int queues,
                        struct sluice_handle *handles)
{
    struct slu_call call;

    /* The fields for results of a blocking call are not used and stay unset. */
    call.engine = engine;
    call.source = source;
    call.time = engine->scope.time;
    call.deadline = engine->scope.deadline;
    call.owner = SLU_OWNER_SCOPE;
    call.queues = (uint32_t)queues;
    call.expired = engine->scope.expired;
    call.handles = handles;
    call.first = engine->scope.posted;
    slu_engine_enter(engine);
    engine->scope.posted += source->count;
    post_all(&call);
    slu_engine_leave(engine);
    return (int)source->count;
}

static int post_source(struct sluice_scope *scope, const struct slu_source *source,
                       struct sluice_handle *handles)
{
    struct slu_engine *engine = slu_scope_engine(scope);
    int queues;

    if (engine == NULL)
        return slu_scope_unusable(scope);
    if (source->count > INT32_MAX)
        return slu_misuse(EINVAL, "count %u is above 2^31 - 1", source->count);
    queues = slu_source_check(engine, source, 0);
    if (queues <= 0)
        return post_aside(scope, source, queues, handles);
    return post_checked(engine, source, queues, handles);
}

/* The requests were checked when the list was prepared. */
int slu_scope_post_prepared(struct sluice_scope *scope, struct slu_list *list,
                            struct sluice_handle *handles)
{
    struct slu_engine *engine = slu_scope_engine(scope);
    int error;

    if (engine == NULL)
        return slu_scope_unusable(scope);
    error = slu_list_check_scope(list);
    if (error < 0)
        return error;
    if (list->engine != engine)
        return slu_misuse(EINVAL, "the list is of another channel or multichannel than the scope");
    return post_checked(engine, &list->source, list->queues, handles);
}

static int post_one(struct sluice_scope *scope, const struct sluice_request *request,
                    struct sluice_handle *handle)
{
    struct slu_source source = {.lists = {request}, .counts = {1}, .count = 1};
    int posted = post_source(scope, &source, handle);

    return posted < 0 ? posted : 0;
}

static int post_remote(struct sluice_scope *scope, struct sluice_request *request,
                       const struct sluice_remote_mr *remote, struct sluice_handle *handle)
{
    if (remote == NULL && slu_scope_engine(scope) != NULL)
        return slu_no_remote(request->opcode);
    if (remote == NULL)
        return slu_scope_unusable(scope);
    request->remote = *remote;
    return post_one(scope, request, handle);
}

static int post_list(struct sluice_scope *scope, uint32_t opcode,
                     const struct sluice_request *requests, uint32_t count,
                     struct sluice_handle *handles)
{
    struct slu_source source = {
        .lists = {requests}, .counts = {count}, .opcodes = {opcode}, .count = count};

    return post_source(scope, &source, handles);
}

int sluice_scope_post(struct sluice_scope *scope, const struct sluice_request *requests,
                      uint32_t count, struct sluice_handle *handles)
{
    return post_list(scope, SLUICE_OP_NONE, requests, count, handles);
}

int sluice_scope_post_send(struct sluice_scope *scope, uint32_t peer, const struct sluice_sge *sges,
                           uint32_t sge_count, struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_SEND, peer, sges, sge_count);

    return post_one(scope, &request, handle);
}

int sluice_scope_post_receive(struct sluice_scope *scope, uint32_t peer,
                              const struct sluice_sge *sges, uint32_t sge_count,
                              struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_RECEIVE, peer, sges, sge_count);

    return post_one(scope, &request, handle);
}

int sluice_scope_post_write(struct sluice_scope *scope, uint32_t peer,
                            const struct sluice_sge *sges, uint32_t sge_count,
                            const struct sluice_remote_mr *remote, struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_WRITE, peer, sges, sge_count);

    return post_remote(scope, &request, remote, handle);
}

int sluice_scope_post_read(struct sluice_scope *scope, uint32_t peer, const struct sluice_sge *sges,
                           uint32_t sge_count, const struct sluice_remote_mr *remote,
                           struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_READ, peer, sges, sge_count);

    return post_remote(scope, &request, remote, handle);
}

int sluice_scope_post_compare_swap(struct sluice_scope *scope, uint32_t peer,
                                   const struct sluice_sge *result,
                                   const struct sluice_remote_mr *remote, uint64_t expected,
                                   uint64_t desired, struct sluice_handle *handle)
{
    struct sluice_request request = {.opcode = SLUICE_OP_COMPARE_SWAP,
                                     .peer = peer,
                                     .sges = result,
                                     .sge_count = 1,
                                     .operand = {expected, desired}};

    return post_remote(scope, &request, remote, handle);
}

int sluice_scope_post_fetch_add(struct sluice_scope *scope, uint32_t peer,
                                const struct sluice_sge *result,
                                const struct sluice_remote_mr *remote, uint64_t addend,
                                struct sluice_handle *handle)
{
    struct sluice_request request = {.opcode = SLUICE_OP_FETCH_ADD,
                                     .peer = peer,
                                     .sges = result,
                                     .sge_count = 1,
                                     .operand = {addend, 0}};

    return post_remote(scope, &request, remote, handle);
}

int sluice_scope_post_scatter_send(struct sluice_scope *scope,
                                   const struct sluice_request *requests, uint32_t count,
                                   struct sluice_handle *handles)
{
    return post_list(scope, SLUICE_OP_SEND, requests, count, handles);
}

int sluice_scope_post_scatter_write(struct sluice_scope *scope,
                                    const struct sluice_request *requests, uint32_t count,
                                    struct sluice_handle *handles)
{
    return post_list(scope, SLUICE_OP_WRITE, requests, count, handles);
}

int sluice_scope_post_gather_receive(struct sluice_scope *scope,
                                     const struct sluice_request *requests, uint32_t count,
                                     struct sluice_handle *handles)
{
    return post_list(scope, SLUICE_OP_RECEIVE, requests, count, handles);
}

int sluice_scope_post_gather_read(struct sluice_scope *scope, const struct sluice_request *requests,
                                  uint32_t count, struct sluice_handle *handles)
{
    return post_list(scope, SLUICE_OP_READ, requests, count, handles);
}

int sluice_scope_post_multicast_send(struct sluice_scope *scope,
                                     const struct sluice_request *request, const uint32_t *peers,
                                     uint32_t count, struct sluice_handle *handles)
{
    struct slu_source source = slu_multicast_send(request, peers, count);

    return post_source(scope, &source, handles);
}

int sluice_scope_post_multicast_write(struct sluice_scope *scope,
                                      const struct sluice_request *request,
                                      const struct sluice_peer_remote_mr *remotes, uint32_t count,
                                      struct sluice_handle *handles)
{
    struct slu_source source = slu_multicast_write(request, remotes, count);

    return post_source(scope, &source, handles);
}
