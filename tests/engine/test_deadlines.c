/* SPDX-License-Identifier: MIT */
/*
 * Deadlines that have passed before a call begins: a program that passes its remaining time passes
 * 0 in the end. Then nothing is posted, each request ends with status DEADLINE, and no connection
 * is harmed.
 */
#include "../support/fair.h"
#include "../support/forms.h"
#include "../support/pair.h"

#define REQUESTS 6

/* Memory on both sides of a star, which no request may change. */
struct stand {
    struct star star;
    struct memory near, far;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    bool atomics;
    uint32_t failed; /* the peer that a test fails on purpose */
};

#define NONE 3 /* no peer */

static void stand_open(struct stand *stand, uint32_t failed)
{
    stand->failed = failed;
    star_open(&stand->star, 3, NULL);
    stand->near = side_memory(&stand->star.sides, 0, 64);
    stand->far = side_memory(&stand->star.sides, 1, 64);
    memset(stand->near.bytes, 1, 64);
    memset(stand->far.bytes, 2, 64);
    stand->sge = memory_sge(&stand->near, 8, 8);
    stand->remote = memory_remote(&stand->far, 8, 8);
    stand->atomics = context_info(stand->star.sides.contexts[0]).atomics != SLUICE_ATOMICS_NONE;
}

/*
 * Requires that all connections work, except one that was failed on purpose, and that no data
 * moved.
 */
static void stand_close(struct stand *stand)
{
    value_check(stand->near.bytes, 64, 1);
    value_check(stand->far.bytes, 64, 2);
    for (uint32_t i = 0; i < stand->star.peers; i++) {
        if (i != stand->failed) {
            require_result(sluice_multichannel_peer_state(stand->star.hub, i), SLUICE_STATE_READY);
            star_works(&stand->star, i);
        }
    }
    star_close(&stand->star);
}

/* Makes requests of each kind, to peers in turn. Returns how many there are. */
static uint32_t make_requests(const struct stand *stand, struct sluice_request *requests)
{
    uint32_t count = stand->atomics ? REQUESTS : REQUESTS - 2;
    for (uint32_t i = 0; i < count; i++) {
        requests[i] = request_of(SLUICE_OP_SEND + i, i % 3, &stand->sge);
        requests[i].user_data = 100 + i;
        if (requests[i].opcode >= SLUICE_OP_WRITE) {
            requests[i].remote = stand->remote;
        }
    }
    return count;
}

static void check_expired(const struct sluice_completion *completions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct sluice_completion *completion = &completions[i];
        require(completion->error == -ETIMEDOUT &&
                    completion->error_class == SLUICE_CLASS_TIMEOUT &&
                    completion->status == SLUICE_STATUS_DEADLINE &&
                    completion->cause == SLUICE_STATUS_DEADLINE && completion->bytes == 0,
                "completion %u: error %d, class %u, status %u, cause %u, %llu bytes", i,
                completion->error, completion->error_class, completion->status, completion->cause,
                (unsigned long long)completion->bytes);
    }
}

#define require_expired(call) require_error(call, -ETIMEDOUT, "deadline 0 nothing was posted")

/* Makes a call with a deadline of 0, for one peer or two. */
static void call_late(const struct stand *stand, const struct form *form)
{
    static const uint32_t peers[] = {0, 2};
    const struct sluice_peer_remote_mr remotes[] = {{.peer = 1, .remote = stand->remote},
                                                    {.peer = 0, .remote = stand->remote}};
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 2, &stand->sge), requests[2];
    struct sluice_completion completions[3];
    struct sluice_handle handles[2];
    uint32_t opcode = form->opcode ? form->opcode : SLUICE_OP_SEND;
    for (uint32_t i = 0; i < 2; i++) {
        requests[i] = request_of(opcode, form->of == OF_CHANNEL ? 0 : i, &stand->sge);
        if (opcode >= SLUICE_OP_WRITE) {
            requests[i].remote = stand->remote;
        }
    }
    struct form_call call = form_call_one(&requests[0]);
    call.channel = stand->star.spokes[1];
    call.hub = stand->star.hub;
    call.remote = &stand->remote;
    call.requests = requests;
    call.peers = peers;
    call.remotes = remotes;
    call.count = 2;
    call.receives = &receive;
    call.receive_count = 1;
    call.handles = handles;
    call.completions = completions;
    memset(completions, 0xcc, sizeof(completions));
    memset(handles, 0xcc, sizeof(handles));
    require_expired(form->call(&call));
    value_check(handles, sizeof(handles), 0xcc);
    if (form->end == BLOCKING && (form->shape != ONE || opcode == SLUICE_OP_RECEIVE)) {
        check_expired(completions, form->shape == ONE ? 1 : form->shape == TWO_LISTS ? 3 : 2);
        require_equal(completions[0].opcode, opcode);
    }
    call.completions = NULL;
    call.handles = NULL;
    require_expired(form->call(&call));
}

TEST_WITH(stand, each_call, (NONE))
{
    for (uint32_t i = 0; i < FORMS; i++) {
        if (forms[i].of != OF_SCOPE && (stand->atomics || !form_is_atomic(&forms[i]))) {
            call_late(stand, &forms[i]);
        }
    }
}

TEST_WITH(stand, lists_of_all_kinds, (NONE))
{
    struct sluice_request requests[REQUESTS];
    struct sluice_handle handles[REQUESTS];
    struct sluice_completion completions[REQUESTS];
    struct sluice_multichannel *hub = stand->star.hub;
    uint32_t count = make_requests(stand, requests);
    memset(completions, 0xcc, sizeof(completions));
    require_expired(sluice_multichannel_submit(hub, requests, count, 0, completions));
    check_expired(completions, count);
    for (uint32_t i = 0; i < count; i++) {
        require_equal(completions[i].user_data, 100 + i, completions[i].peer, i % 3,
                      completions[i].opcode, requests[i].opcode);
    }
    require_ok(sluice_multichannel_submit(hub, requests, 0, 0, NULL));
    memset(handles, 0xcc, sizeof(handles));
    require_expired(sluice_multichannel_post(hub, requests, count, 0, handles));
    value_check(handles, sizeof(handles), 0xcc);
    require_result(sluice_multichannel_post(hub, requests, 0, 0, NULL), 0);
    require_result(sluice_multichannel_next(hub, 0, completions), -ENOENT);
}

static struct sluice_scope_report report_of(void)
{
    return (struct sluice_scope_report){.size = sizeof(struct sluice_scope_report)};
}

TEST_WITH(stand, scopes, (NONE))
{
    struct sluice_request requests[REQUESTS];
    struct sluice_handle handles[REQUESTS];
    struct sluice_completion completion, failures[REQUESTS];
    struct sluice_scope_report report = report_of();
    uint32_t count = make_requests(stand, requests);
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(stand->star.hub, 0));
    require_result(sluice_scope_post(scope, requests, count, handles), count);
    require_ok(sluice_scope_post_send(scope, 1, &stand->sge, 1, NULL));
    require_ok(sluice_scope_wait(scope, &handles[1], 0, &completion));
    check_expired(&completion, 1);
    require(completion.user_data == 101, "%llu", (unsigned long long)completion.user_data);
    report.failures = failures;
    report.capacity = REQUESTS;
    require_expired(sluice_scope_end(scope, &report));
    require_equal(report.posted, count + 1, report.failed, count, report.count, count);
    check_expired(failures, report.count);

    /* A scope without requests ends well. */
    scope = sluice_multichannel_scope_begin(stand->star.hub, 0);
    require_ok(sluice_scope_end(scope, NULL));
}

/*
 * A request that waits in a scope for room finds none before the deadline; requests after that are
 * not posted.
 */
TEST_WITH(star, scope_whose_deadline_was_seen_to_pass, (2, ATTR(.receive_depth = 1)))
{
    struct sluice_handle handles[3];
    struct sluice_completion completion;
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(star->hub, SLUICE_MS(20)));
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_scope_post_receive(scope, 0, NULL, 0, &handles[i]));
    }
    /* The first two took the time of the scope: this one must not fail the other peer. */
    require_ok(sluice_scope_post_receive(scope, 1, NULL, 0, &handles[2]));
    for (int i = 0; i < 3; i++) {
        require_ok(sluice_scope_wait(scope, &handles[i], DEADLINE, &completion));
        check_expired(&completion, 1);
    }
    require_ok(sluice_scope_end(scope, NULL));
    require_result(sluice_multichannel_peer_state(star->hub, 0), SLUICE_STATE_FAILED);
    star_works(star, 1);
}

/* Mistakes are reported first, and so is a failed peer. */
TEST_WITH(stand, results_before_the_deadline, (1))
{
    struct sluice_request requests[2];
    struct sluice_completion completions[2];
    struct sluice_multichannel *hub = stand->star.hub;
    require_result(sluice_multichannel_send(hub, 3, &stand->sge, 1, 0), -EINVAL);
    require_result(sluice_multichannel_send(hub, 0, NULL, 1, 0), -EINVAL);
    require_result(sluice_multichannel_send(hub, 0, &stand->sge, 1, -1), -EINVAL);
    require_result(sluice_multichannel_post_send(hub, 3, &stand->sge, 1, 0, NULL), -EINVAL);
    star_break(&stand->star, 1);
    requests[0] = request_of(SLUICE_OP_SEND, 1, &stand->sge);
    requests[1] = request_of(SLUICE_OP_SEND, 2, &stand->sge);
    require_result(sluice_multichannel_submit(hub, requests, 2, 0, completions), -ETIMEDOUT);
    require(completions[0].error == -ENOTCONN, "%d", completions[0].error);
    check_expired(&completions[1], 1);
    require_result(sluice_multichannel_send(hub, 1, &stand->sge, 1, 0), -ENOTCONN);
    require_result(sluice_multichannel_post(hub, requests, 2, 0, NULL), -ENOTCONN);
}

/* A deadline of half a second and more may act 50 ms late, and never early. */
TEST_WITH(stand, a_long_deadline_is_never_early, (NONE))
{
    const int64_t time = SLUICE_MS(500);
    struct sluice_completion completion;
    struct sluice_multichannel *hub = stand->star.hub;
    for (int blocking = 0; blocking < 2; blocking++) {
        struct sluice_handle handle;
        struct span begin = span_begin();
        if (blocking) {
            require_result(sluice_multichannel_receive(hub, 1, NULL, 0, time, &completion),
                           -ETIMEDOUT);
        } else {
            require_ok(sluice_multichannel_post_receive(hub, 1, NULL, 0, time, &handle));
            require_ok(sluice_multichannel_wait(hub, &handle, DEADLINE, &completion));
        }
        require(completion.status == SLUICE_STATUS_DEADLINE, "status %u", completion.status);
        require_took(span_since(begin), time, time + SLUICE_S(1));
        star_reset(&stand->star, 1);
    }
}

/* Requests with time go on beside requests without. */
TEST_WITH(stand, other_work_goes_on, (NONE))
{
    struct sluice_handle handles[2];
    struct sluice_completion completion;
    struct sluice_multichannel *hub = stand->star.hub;
    struct sluice_channel *spoke = stand->star.spokes[1];
    require_ok(sluice_multichannel_post_receive(hub, 1, NULL, 0, DEADLINE, &handles[0]));
    require_ok(sluice_multichannel_post_send(hub, 1, NULL, 0, DEADLINE, &handles[1]));
    require_expired(sluice_multichannel_send(hub, 1, NULL, 0, 0));
    require_expired(sluice_multichannel_receive(hub, 1, NULL, 0, 0, NULL));
    require_result(sluice_multichannel_wait(hub, &handles[0], 0, &completion), -ETIMEDOUT);
    require_ok(sluice_channel_receive(spoke, NULL, 0, DEADLINE, NULL));
    require_ok(sluice_channel_send(spoke, NULL, 0, DEADLINE));
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_multichannel_wait(hub, &handles[i], DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
}

int main(void)
{
    return run_tests("deadlines", 30);
}
