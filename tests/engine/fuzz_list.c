/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sluice/list.h>

#include "fuzz_state.h"

/* Checks the results of a list that was waited for or freed; its memory is no longer pinned. */
static void see_results(struct fuzz_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        fake_require(list->completions[i].user_data == list->first + i,
                     "result %u is of another request", i);
        fuzz_see_result(&list->completions[i], CALL);
    }
}

/* Returns the error that the list has to return. */
static int judge(const struct fuzz_list *list)
{
    int other = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        int error = list->completions[i].error;
        if (error != 0 && error != -ECANCELED && error != -ENOTCONN) {
            return error;
        }
        other = other == 0 ? error : other;
    }
    return other;
}

static void post_list(struct fuzz_list *list)
{
    int64_t deadline = fuzz_choose_deadline();
    fuzz_make_requests(1 + fake_random(12), SLUICE_OP_NONE);
    list->list = sluice_multichannel_list_prepare(fuzz.rig.channel, fuzz.requests, fuzz.count);
    if (!list->list) {
        fake_require(errno == E2BIG || errno == ENOMEM, "%s", sluice_last_error());
        return;
    }
    list->first = fuzz.next;
    list->count = fuzz.count;
    memset(list->completions, 0xcc, sizeof(list->completions));
    int result = sluice_list_post(list->list, deadline, list->completions);
    if (result == 0) {
        fuzz_accept_requests(CALL);
        return;
    }
    fuzz_refused_list(result);
    sluice_list_free(list->list);
    list->list = NULL;
}

void fuzz_refused_list(int result)
{
    fake_require(result == -EAGAIN || result == -E2BIG || result == -ENOTCONN ||
                     result == -ETIMEDOUT || result == -ESTALE,
                 "%d", result);
    fuzz.refused += result == -ENOTCONN || result == -ETIMEDOUT;
}

static void wait_for(struct fuzz_list *list, int64_t timeout)
{
    int64_t start = fake.now;
    int result = sluice_list_wait(list->list, timeout);
    fuzz_check_time("list_wait", start, timeout);
    if (result == -ETIMEDOUT) {
        fake_require(sluice_list_result(list->list) == -EBUSY, "%s", "it has a result");
        return;
    }
    fake_require(result == 0, "%d", result);
    result = sluice_list_result(list->list);
    sluice_list_free(list->list);
    list->list = NULL;
    see_results(list);
    fake_require(result == judge(list), "%d, not %d", result, judge(list));
}

static bool has_result(const struct fuzz_list *list, uint32_t i)
{
    struct sluice_completion none;
    memset(&none, 0xcc, sizeof(none));
    return memcmp(&list->completions[i], &none, sizeof(none)) != 0;
}

/* A request without a result at this time never gets one. */
static void free_in_flight(struct fuzz_list *list)
{
    sluice_list_free(list->list);
    list->list = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        if (has_result(list, i)) {
            fuzz_see_result(&list->completions[i], CALL);
        } else {
            fuzz.entries[list->first + i].owner = DETACHED;
        }
    }
    memset(list->completions, 0xcc, sizeof(list->completions));
}

uint32_t fuzz_pending_of_lists(void)
{
    uint32_t pending = 0;
    for (uint32_t k = 0; k < COUNT(fuzz.lists); k++) {
        for (uint32_t i = 0; fuzz.lists[k].list && i < fuzz.lists[k].count; i++) {
            pending += !has_result(&fuzz.lists[k], i);
        }
    }
    return pending;
}

void fuzz_list(void)
{
    struct fuzz_list *list = &fuzz.lists[fake_random(COUNT(fuzz.lists))];
    if (!list->list) {
        post_list(list);
    } else if (fake_random(5) == 0) {
        free_in_flight(list);
    } else {
        wait_for(list, fuzz_one_in(2, SLUICE_US(300)));
    }
}

void fuzz_end_lists(void)
{
    for (uint32_t i = 0; i < COUNT(fuzz.lists); i++) {
        if (fuzz.lists[i].list) {
            wait_for(&fuzz.lists[i], 0);
            fake_require(!fuzz.lists[i].list, "list %u is in flight after the shutdown", i);
        }
    }
}
