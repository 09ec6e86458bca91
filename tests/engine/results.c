/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "results.h"

#include "invariants.h"
#include "rig.h"

/* Twice as many as the queue is deep are kept of those that nobody takes. */
START_TEST(recycling_forgets_the_oldest_success)
{
    enum { DEPTH = 16, ROUNDS = 50, KEPT = 2 * DEPTH };
    struct rig rig;
    struct sluice_completion completions[KEPT + 1];
    fake.by_hand = true;
    rig_open(&rig, 1, DEPTH);
    for (uint32_t i = 0; i < ROUNDS * DEPTH; i++) {
        rig_post(&rig, receive_of(0, 1 + i), LONG);
        if (i % DEPTH != DEPTH - 1) {
            continue;
        }
        while (fake_complete(rig_qp(&rig, 0), SLU_RECEIVE_QUEUE, SLUICE_STATUS_SUCCESS)) {
        }
        require_result(sluice_multichannel_poll(rig.channel, completions, 0), 0);
        check_engine(rig.engine);
    }
    require_result(sluice_multichannel_poll(rig.channel, completions, KEPT + 1), KEPT);
    for (uint32_t i = 0; i < KEPT; i++) {
        require_status(&completions[i], (ROUNDS - 2) * DEPTH + 1 + i, SLUICE_STATUS_SUCCESS,
                       SLUICE_STATUS_SUCCESS);
    }
    rig_close(&rig);
}
END_TEST

/*
 * A program that has no more requests in flight, or done and not taken, than the queue is deep
 * finds each result by its handle, in whatever order it waits and however long it lets one wait.
 */
START_TEST(full_window_in_any_order_loses_nothing)
{
    enum { DEPTH = 8, ROUNDS = 5000 };
    struct rig rig;
    struct sluice_handle handles[DEPTH];
    uint32_t keys[DEPTH];
    struct sluice_completion completion;
    uint32_t random = 1;
    rig_open(&rig, 1, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        handles[i] = rig_post(&rig, write_of(0, keys[i] = 1 + i), LONG);
    }
    for (uint32_t i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        /* The first one is waited for at the end alone. */
        uint32_t at = 1 + (random >> 16) % (DEPTH - 1);
        require_ok(sluice_multichannel_wait(rig.channel, &handles[at], LONG, &completion));
        require_status(&completion, keys[at], SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
        keys[at] = 1 + DEPTH + i;
        handles[at] = rig_post(&rig, write_of(0, keys[at]), LONG);
        check_engine(rig.engine);
    }
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_ok(sluice_multichannel_wait(rig.channel, &handles[i], LONG, &completion));
        require_status(&completion, keys[i], SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    }
    rig_close(&rig);
}
END_TEST

/* A handle that is waited for late names its request however many calls blocked meanwhile. */
START_TEST(blocking_calls_take_no_result_away)
{
    enum { DEPTH = 8, CALLS = 50 };
    struct rig rig;
    struct sluice_handle handles[DEPTH];
    struct sluice_completion completion;
    rig_open(&rig, 1, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        handles[i] = rig_post(&rig, write_of(0, 1 + i), LONG);
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        struct sluice_request request = write_of(0, 100 + i);
        require_ok(sluice_multichannel_submit(rig.channel, &request, 1, LONG, NULL));
        check_engine(rig.engine);
    }
    for (uint32_t i = DEPTH; i-- > 0;) {
        require_ok(sluice_multichannel_wait(rig.channel, &handles[i], 0, &completion));
        require_status(&completion, 1 + i, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
        check_engine(rig.engine);
    }
    require_result(sluice_multichannel_poll(rig.channel, &completion, 1), 0);
    rig_close(&rig);
}
END_TEST

/* Results of one peer that nobody takes cost no other peer a result. */
START_TEST(recycling_keeps_results_of_others)
{
    enum { DEPTH = 100, KEPT = 256, FLOOD = 1000 };
    struct rig rig;
    struct sluice_handle handles[DEPTH];
    static struct sluice_completion completions[DEPTH + KEPT];
    fake.by_hand = true;
    rig_open(&rig, 2, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        handles[i] = rig_post(&rig, write_of(0, 1 + i), LONG);
    }
    fake_complete(rig_qp(&rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_REM_ACCESS_ERR);
    while (fake_held(rig_qp(&rig, 0), SLU_SEND_QUEUE) > 0) {
        require_result(sluice_multichannel_poll(rig.channel, completions, 0), 0);
    }
    for (uint32_t i = 0; i < FLOOD; i++) {
        rig_post(&rig, write_of(1, 1001 + i), LONG);
        fake_complete(rig_qp(&rig, 1), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
        require_result(sluice_multichannel_poll(rig.channel, completions, 0), 0);
    }
    check_engine(rig.engine);
    require_ok(sluice_multichannel_wait(rig.channel, &handles[70], 0, &completions[0]));
    require_status(&completions[0], 71, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_REM_ACCESS_ERR);
    require_result(sluice_multichannel_poll(rig.channel, completions, DEPTH + KEPT),
                   DEPTH - 1 + KEPT);
    for (uint32_t i = 0; i < DEPTH - 1; i++) {
        uint32_t key = i < 70 ? 1 + i : 2 + i;
        uint32_t status = i == 0 ? SLUICE_STATUS_REM_ACCESS_ERR : SLUICE_STATUS_WR_FLUSH_ERR;
        require_status(&completions[i], key, status, SLUICE_STATUS_REM_ACCESS_ERR);
    }
    for (uint32_t i = 0; i < KEPT; i++) {
        require_status(&completions[DEPTH - 1 + i], 1001 + FLOOD - KEPT + i, SLUICE_STATUS_SUCCESS,
                       SLUICE_STATUS_SUCCESS);
    }
    rig_close(&rig);
}
END_TEST

void results_add_tests(TCase *tcase)
{
    tcase_add_test(tcase, recycling_forgets_the_oldest_success);
    tcase_add_test(tcase, full_window_in_any_order_loses_nothing);
    tcase_add_test(tcase, blocking_calls_take_no_result_away);
    tcase_add_test(tcase, recycling_keeps_results_of_others);
}
