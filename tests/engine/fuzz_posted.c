/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "fuzz_state.h"

void fuzz_post(void)
{
    const struct form *form = fuzz_choose_list(OF_PEER, POSTED);
    struct form_call call;
    struct sluice_handle handles[MOST];
    int64_t deadline = fuzz_choose_deadline();
    fuzz_make_requests(1 + fake_random(6), form->opcode);
    call = (struct form_call){.hub = fuzz.rig.channel,
                              .requests = fuzz.requests,
                              .count = fuzz.count,
                              .deadline = deadline,
                              .handles = handles};
    int result = form->call(&call);
    if (result < 0) {
        fake_require(deadline > 0 ? result == -EAGAIN || result == -E2BIG || result == -ENOTCONN
                                  : result == -ETIMEDOUT || result == -ENOTCONN,
                     "%d", result);
        fuzz.refused += result == -ENOTCONN || result == -ETIMEDOUT;
        return;
    }
    fake_require(result > 0 && (uint32_t)result <= fuzz.count, "%d of %u posted", result,
                 fuzz.count);
    fuzz.count = (uint32_t)result;
    for (uint32_t i = 0; i < fuzz.count; i++) {
        uint32_t at = fuzz.handle_count++ % KEPT;
        fuzz.handles[at] = handles[i];
        fuzz.handle_keys[at] = fuzz.next + i;
    }
    fuzz_accept_requests(PROGRAM);
}

void fuzz_poll(void)
{
    struct sluice_completion completions[MOST];
    int got = sluice_multichannel_poll(fuzz.rig.channel, completions,
                                       1 + fake_random(COUNT(completions)));
    fake_require(got >= 0, "%s", sluice_last_error());
    for (int i = 0; i < got; i++) {
        fuzz_see_result(&completions[i], PROGRAM);
    }
}

static uint32_t choose_handle(void)
{
    return fake_random(fuzz.handle_count < KEPT ? fuzz.handle_count : KEPT);
}

/* Checks the result that a handle returned. */
static void see_handle(uint32_t at, const struct sluice_completion *completion)
{
    fake_require(completion->user_data == fuzz.handle_keys[at], "the result of request %llu",
                 (unsigned long long)completion->user_data);
    if (fuzz.entries[fuzz.handle_keys[at]].owner != SEEN) {
        fuzz_see_result(completion, PROGRAM);
    }
}

/* An old handle returns the right result, even if it was seen, or is stale. */
void fuzz_wait(void)
{
    struct sluice_completion completion;
    if (fuzz.handle_count == 0) {
        return;
    }
    uint32_t at = choose_handle();
    int64_t timeout = fuzz_one_in(2, SLUICE_US(200));
    int64_t start = fake.now;
    int result =
        sluice_multichannel_wait(fuzz.rig.channel, &fuzz.handles[at], timeout, &completion);
    if (result == 0) {
        see_handle(at, &completion);
    } else {
        fake_require(result == -ETIMEDOUT || result == -ESTALE, "%d", result);
    }
    fuzz_check_time("wait", start, timeout - SLU_DRAIN_TIME);
}

/* A cancelled request is done, and if it was pending, its peer has failed. */
static void do_cancel(void)
{
    struct sluice_completion completion;
    if (fuzz.handle_count == 0) {
        return;
    }
    uint32_t at = choose_handle();
    int64_t start = fake.now;
    int result = sluice_multichannel_cancel(fuzz.rig.channel, &fuzz.handles[at], &completion);
    fake_require(result == 0 || result == -ESTALE, "%d", result);
    if (result == 0) {
        see_handle(at, &completion);
    }
    fuzz_check_time("cancel", start, 0);
}

static void do_detach(void)
{
    if (fuzz.handle_count == 0) {
        return;
    }
    uint32_t at = choose_handle();
    struct entry *entry = &fuzz.entries[fuzz.handle_keys[at]];
    int result = sluice_multichannel_detach(fuzz.rig.channel, &fuzz.handles[at]);
    fake_require(result == 0 || result == -ESTALE, "%d", result);
    if (result == 0 && entry->owner != SEEN) {
        fake_require(entry->owner == PROGRAM, "request %u has owner %d", fuzz.handle_keys[at],
                     (int)entry->owner);
        entry->owner = DETACHED;
    }
    require_result(sluice_multichannel_detach(fuzz.rig.channel, &fuzz.handles[at]), -ESTALE);
}

/* Takes any completion, of any peer; no pending or unread request is lost. */
static void do_next(void)
{
    struct sluice_completion completion;
    int64_t timeout = fuzz_one_in(2, SLUICE_US(200));
    int64_t start = fake.now;
    int result = sluice_multichannel_next(fuzz.rig.channel, timeout, &completion);
    if (result == 0) {
        fuzz_see_result(&completion, PROGRAM);
    } else {
        const uint32_t *pending = fuzz.rig.engine->pending;
        uint32_t awaited = pending[SLU_SEND_QUEUE] + pending[SLU_RECEIVE_QUEUE] -
                           fuzz.rig.engine->detached - fuzz_pending_of_lists();
        fake_require(result == (awaited == 0 ? -ENOENT : -ETIMEDOUT), "%d, %u pending", result,
                     awaited);
        require_result(fuzz.rig.engine->failure_count, 0);
    }
    fuzz_check_time("next", start, timeout - SLU_DRAIN_TIME);
}

static void do_flush(void)
{
    const uint32_t *pending = fuzz.rig.engine->pending;
    int64_t timeout = fuzz_one_in(2, SLUICE_US(200));
    int64_t start = fake.now;
    int result = sluice_multichannel_flush(fuzz.rig.channel, timeout);
    uint32_t left = pending[SLU_SEND_QUEUE] + pending[SLU_RECEIVE_QUEUE];
    fake_require(result == (left == 0 ? 0 : -ETIMEDOUT), "%d, %u pending", result, left);
    fuzz_check_time("flush", start, timeout - SLU_DRAIN_TIME);
}

void fuzz_posted(void)
{
    static void (*const calls[])(void) = {do_cancel, do_detach, do_detach,
                                          do_next,   do_next,   do_flush};
    calls[fake_random(COUNT(calls))]();
}
