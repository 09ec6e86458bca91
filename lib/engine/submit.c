/* SPDX-License-Identifier: MIT */
/*
 * The blocking primitive: a list of requests is posted, receives first, as far
 * as the queues have room, and the rest as they drain; the call returns when
 * each request has its result.
 */
#include "config.h"

#include "engine/engine.h"

void slu_call_result(struct slu_call *call, uint32_t index,
                     const struct sluice_completion *completion)
{
    call->incomplete--;
    if (call->completions != NULL)
        call->completions[index] = *completion;
    if (SLU_LIKELY(completion->error == 0))
        return;
    if (slu_is_mere_cancellation(completion->error)) {
        if (index <= call->first_other) {
            call->first_other = index;
            call->other = *completion;
        }
    } else if (index <= call->first_real) {
        call->first_real = index;
        call->real = *completion;
    }
}

/*
 * A peer that failed before the call refuses it (ENOTCONN); one that failed
 * during the call cancels what was not posted yet, unless the deadline was it.
 */
void slu_complete_unposted(const struct slu_engine *engine, const struct slu_item *item,
                           bool expired, int64_t deadline, struct sluice_completion *completion)
{
    struct slu_peer *peer = &engine->peers[item->peer];
    bool during = peer->state == SLUICE_STATE_FAILED && peer->failed_in == engine->call_number;
    bool late =
        (expired && peer->state == SLUICE_STATE_READY) ||
        (during && peer->cause_status == SLUICE_STATUS_DEADLINE && deadline <= peer->failed_at);

    peer->counts.refused++;
    *completion = (struct sluice_completion){
        .user_data = item->request->user_data,
        .peer = item->peer,
        .opcode = item->opcode,
        .error = late     ? -ETIMEDOUT
                 : during ? -ECANCELED
                          : -ENOTCONN,
        .error_class = late ? SLUICE_CLASS_TIMEOUT : SLUICE_CLASS_CANCELLED,
        .status = late ? SLUICE_STATUS_DEADLINE : SLUICE_STATUS_WR_FLUSH_ERR,
        .vendor = peer->cause_vendor,
    };
    /* No failure has a cause that says success. */
    completion->cause =
        peer->cause_status != SLUICE_STATUS_SUCCESS ? peer->cause_status : completion->status;
}

static bool call_ready(void *argument)
{
    struct slu_call *call = argument;

    if (call->incomplete > 0)
        slu_post_stalled(call);
    return call->incomplete == 0;
}

static int call_error(const struct slu_engine *engine, const struct slu_call *call)
{
    if (call->first_real != SLU_NONE)
        return slu_fail_completion(engine, &call->real, call->time);
    return call->first_other != SLU_NONE ? slu_fail_completion(engine, &call->other, call->time)
                                         : 0;
}

int slu_call_finish(struct slu_call *call, struct slu_slot *slot)
{
    struct slu_engine *engine = call->engine;
    bool in_time = slot != NULL ? slu_wait_slot(engine, slot, call->deadline)
                                : slu_wait(engine, call_ready, call, call->deadline);
    int error;

    if (!in_time) {
        /* The clock fails the peers that are late; what never found room breaks nobody. */
        call->expired = true;
        slu_wait(engine, call_ready, call, SLUICE_FOREVER);
    }
    error = call_error(engine, call);
    slu_engine_leave(engine);
    return error;
}

int slu_submit(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
               struct sluice_completion *completions)
{
    int error = slu_scope_check(engine);
    struct slu_call call;

    if (error == 0)
        error = slu_source_check(engine, source, deadline);
    if (error < 0 || source->count == 0)
        return error;
    /* Its two failures are written before they are read. */
    call.engine = engine;
    call.source = source;
    call.completions = completions;
    call.time = deadline;
    call.deadline = slu_after(deadline);
    call.owner = SLU_OWNER_CALL;
    call.expired = deadline == 0;
    call.incomplete = source->count;
    call.first_real = call.first_other = SLU_NONE;
    slu_engine_enter(engine);
    slu_post_call(&call, SLU_RECEIVE_QUEUE);
    slu_post_call(&call, SLU_SEND_QUEUE);
    return slu_call_finish(&call, NULL);
}
