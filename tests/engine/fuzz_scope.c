/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "fuzz_state.h"

/* The last handles of the scope, and the keys of their requests. */
static struct sluice_handle handles[KEPT];
static uint32_t handle_keys[KEPT];
static uint32_t handle_count;

static int64_t time_left(void)
{
    return fuzz.scope_until > fake.now ? fuzz.scope_until - fake.now : 0;
}

static void begin_scope(void)
{
    int64_t deadline = fuzz_choose_deadline();
    fuzz.scope = sluice_multichannel_scope_begin(fuzz.rig.channel, deadline);
    fake_require(fuzz.scope, "%s", sluice_last_error());
    fuzz.scope_until = fake.now + deadline;
    fuzz.scope_posted = 0;
    fuzz.scope_first = fuzz.next;
    handle_count = 0;
}

static uint32_t count_unseen(void)
{
    uint32_t unseen = 0;
    for (uint32_t key = fuzz.scope_first; key < fuzz.next; key++) {
        unseen += fuzz.entries[key].owner == SCOPE;
    }
    return unseen;
}

/* Failures come in the order of posting, which is the order of their keys. */
static void check_order(const struct sluice_completion *failures, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        fake_require(failures[i - 1].user_data < failures[i].user_data,
                     "failure of request %llu before that of %llu",
                     (unsigned long long)failures[i - 1].user_data,
                     (unsigned long long)failures[i].user_data);
    }
}

/* Returns what the end of the scope must return if it lists all failures. */
static int expected_error(const struct sluice_scope_report *report)
{
    for (uint32_t i = 0; i < report->count; i++) {
        int error = report->failures[i].error;
        if (error != -ECANCELED && error != -ENOTCONN) {
            return error;
        }
    }
    if (report->count > 0) {
        return report->failures[0].error;
    }
    return (report->flags & SLUICE_SCOPE_STRICT) && report->unseen > 0 ? -EBUSY : 0;
}

static void check_report(const struct sluice_scope_report *report, uint32_t unseen, int result)
{
    uint32_t kept = report->failed - report->lost;
    fake_require(report->posted == fuzz.scope_posted, "%u posted, not %u", report->posted,
                 fuzz.scope_posted);
    fake_require(report->unseen == unseen, "%u unseen, not %u", report->unseen, unseen);
    fake_require(report->count == (kept < report->capacity ? kept : report->capacity),
                 "%u of %u failures in a list of %u, %u lost", report->count, report->failed,
                 report->capacity, report->lost);
    check_order(report->failures, report->count);
    fake_require(report->error == result, "%d, the report has %d", result, report->error);
    if (report->said != 0) {
        fake_require(result == report->said, "%d, the block said %d", result, report->said);
    } else if (report->count == report->failed) {
        fake_require(result == expected_error(report), "%d, not %d", result,
                     expected_error(report));
    } else {
        fake_require(result != 0 && result != -EBUSY, "%d, %u failed", result, report->failed);
    }
}

void fuzz_end_scope(void)
{
    struct sluice_completion failures[300];
    struct sluice_scope_report report = {.size = sizeof(report),
                                         .flags = fuzz_one_in(2, SLUICE_SCOPE_STRICT),
                                         .said = (int32_t)fuzz_one_in(5, 1) * -EDOM,
                                         .failures = failures,
                                         .capacity = fake_random(COUNT(failures))};
    int64_t left = time_left();
    int64_t start = fake.now;
    int result = sluice_scope_end(fuzz.scope, &report);
    fuzz.scope = NULL;
    check_report(&report, count_unseen(), result);
    for (uint32_t i = 0; i < report.count; i++) {
        fuzz_see_result(&failures[i], SCOPE);
    }
    for (uint32_t key = fuzz.scope_first; key < fuzz.next; key++) {
        if (fuzz.entries[key].owner == SCOPE) {
            fuzz_check_released(key);
            fuzz.entries[key].owner = SEEN;
        }
    }
    fuzz_check_time("scope_end", start, left);
}

static int post_single(const struct sluice_request *request, struct sluice_handle *handle)
{
    struct form_call call = form_call_one(request);
    call.scope = fuzz.scope;
    call.handles = handle;
    return form_find(OF_SCOPE, request->opcode, ONE, POSTED, 0)->call(&call);
}

/* Detached requests have no user data by which their results could be identified. */
static void post_list(void)
{
    const struct form *form = fuzz_choose_list(OF_SCOPE, POSTED);
    struct form_call call;
    struct sluice_handle posted[MOST];
    int64_t left = time_left();
    int64_t start = fake.now;
    fuzz_make_requests(fake_random(fake_random(4) ? 10 : 40), form->opcode);
    call = (struct form_call){
        .scope = fuzz.scope, .requests = fuzz.requests, .count = fuzz.count, .handles = posted};
    require_result(form->call(&call), fuzz.count);
    fuzz_check_time(form->name, start, left);
    fuzz.scope_posted += fuzz.count;
    for (uint32_t i = 0; i < fuzz.count; i++) {
        uint32_t at = handle_count++ % KEPT;
        handles[at] = posted[i];
        handle_keys[at] = fuzz.next + i;
    }
    fuzz_accept_requests(SCOPE);
}

/* So the test waits for a single one at once. */
static void post_one(void)
{
    struct sluice_completion completion;
    struct sluice_handle handle;
    int64_t left = time_left();
    int64_t start = fake.now;
    uint32_t key = fuzz.next;
    fuzz_make_single();
    require_ok(post_single(&fuzz.requests[0], &handle));
    fuzz.scope_posted++;
    fuzz_accept_requests(SCOPE);
    require_ok(sluice_scope_wait(fuzz.scope, &handle, SLUICE_FOREVER, &completion));
    fuzz_check_time("scope_wait", start, left);
    fake_require(completion.user_data == 0, "%llu", (unsigned long long)completion.user_data);
    completion.user_data = key;
    fuzz_see_result(&completion, SCOPE);
}

static void wait_in_scope(void)
{
    struct sluice_completion completion;
    if (handle_count == 0) {
        return;
    }
    uint32_t at = fake_random(handle_count < KEPT ? handle_count : KEPT);
    uint32_t key = handle_keys[at];
    int64_t timeout = fuzz_one_in(2, SLUICE_US(200));
    int64_t start = fake.now;
    int result = sluice_scope_wait(fuzz.scope, &handles[at], timeout, &completion);
    fuzz_check_time("scope_wait", start, timeout - SLU_DRAIN_TIME);
    if (result != 0) {
        fake_require(result == -ETIMEDOUT || result == -ESTALE, "%d", result);
        return;
    }
    fake_require(completion.user_data == key, "the result of request %llu",
                 (unsigned long long)completion.user_data);
    if (fuzz.entries[key].owner != SEEN) {
        fuzz_see_result(&completion, SCOPE);
    }
}

static void poll_in_scope(void)
{
    struct sluice_completion completions[MOST];
    int got = sluice_scope_poll(fuzz.scope, completions, 1 + fake_random(COUNT(completions)));
    fake_require(got >= 0, "%s", sluice_last_error());
    for (int i = 0; i < got; i++) {
        fuzz_see_result(&completions[i], SCOPE);
    }
}

/* No other use of the channel is allowed here, or its results would be found below. */
static void use_channel(void)
{
    struct sluice_completion completion;
    struct sluice_endpoint endpoint;
    struct sluice_multichannel *channel = fuzz.rig.channel;
    fuzz_make_single();
    require_result(sluice_multichannel_submit(channel, fuzz.requests, 1, 0, NULL), -EBUSY);
    require_result(sluice_multichannel_post(channel, fuzz.requests, 1, 0, NULL), -EBUSY);
    require_result(sluice_multichannel_send(channel, 0, fuzz.sges[0], 1, 0), -EBUSY);
    require_result(sluice_multichannel_poll(channel, &completion, 1), -EBUSY);
    bool there = fuzz.rig.engine->peers[0].state != SLUICE_STATE_REMOVED;
    require_result(sluice_multichannel_peer_add(channel, &endpoint), -EBUSY);
    require_result(sluice_multichannel_peer_remove(channel, 0), there ? -EBUSY : -ENOTCONN);
    require_result(sluice_multichannel_peer_reset(channel, 0, &endpoint),
                   there ? -EBUSY : -ENOTCONN);
    require_result(sluice_multichannel_shutdown(channel, 0), -EBUSY);
}

void fuzz_scope(void)
{
    static void (*const calls[])(void) = {post_list,     post_list,     post_list,  post_one,
                                          wait_in_scope, poll_in_scope, use_channel};
    if (!fuzz.scope) {
        begin_scope();
    } else if (fake_random(6) == 0) {
        fuzz_end_scope();
    } else {
        calls[fake_random(COUNT(calls))]();
    }
}
