/* SPDX-License-Identifier: MIT */
/*
 * Unpolled work: a post takes all of a list or nothing, each request completes
 * once, handles may be asked again, grow stale, and be dropped.
 */
#include "support/pair.h"

#define DEPTH 8

static const struct sluice_channel_attr short_queues = {
    .size = sizeof(short_queues), .send_depth = DEPTH, .receive_depth = DEPTH};

/* Receives of nothing, with user data from first. */
static void make_receives(struct sluice_request *requests, uint32_t count, uint64_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        requests[i] = request_of(SLUICE_OP_RECEIVE, 0, NULL);
        requests[i].user_data = first + i;
    }
}

static void send_messages(struct sluice_channel *channel, uint32_t count, uint32_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_channel_send_immediate(channel, NULL, 0, first + i, DEADLINE));
    }
}

/* Polls until so many completions came. */
static void poll_all(struct sluice_channel *channel, struct sluice_completion *completions,
                     uint32_t count)
{
    uint32_t got = 0;
    while (got < count) {
        int result = sluice_channel_poll(channel, completions + got, count - got);
        require(result >= 0, "%s", sluice_last_error());
        got += (uint32_t)result;
    }
    require_result(sluice_channel_poll(channel, completions, 1), 0);
}

START_TEST(full_queue_takes_nothing)
{
    struct pair pair;
    struct sluice_request requests[DEPTH + 1];
    struct sluice_handle handles[DEPTH + 1];
    struct sluice_completion completions[DEPTH + 1];
    pair_open(&pair, &short_queues);
    struct sluice_channel *channel = pair.channels[0];
    make_receives(requests, DEPTH + 1, 0);
    require_error(sluice_channel_post(channel, requests, DEPTH + 1, DEADLINE, handles), -E2BIG, "");
    require_ok(sluice_channel_post(channel, requests, DEPTH - 1, DEADLINE, handles));
    memset(handles + DEPTH - 1, 0xcc, 2 * sizeof(handles[0]));
    require_result(
        sluice_channel_post(channel, requests + DEPTH - 1, 2, DEADLINE, handles + DEPTH - 1),
        -EAGAIN);
    value_check(handles + DEPTH - 1, 2 * sizeof(handles[0]), 0xcc);
    /* Nothing of the two was posted: one more fits. */
    require_ok(sluice_channel_post(channel, requests + DEPTH - 1, 1, DEADLINE, NULL));
    require_result(sluice_channel_post(channel, requests, 1, DEADLINE, NULL), -EAGAIN);
    /* Parked receives starve no send, and the queue is no error. */
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle handle = post(pair.channels[1], &receive);
    require_ok(sluice_channel_send(channel, NULL, 0, DEADLINE));
    await(pair.channels[1], handle, SLUICE_CLASS_NONE);

    send_messages(pair.channels[1], DEPTH, 500);
    poll_all(channel, completions, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].user_data == i && completions[i].immediate == 500 + i,
                "completion %u: user data %llu, immediate %u", i,
                (unsigned long long)completions[i].user_data, completions[i].immediate);
    }
    require_ok(sluice_channel_post(channel, requests, DEPTH, DEADLINE, NULL));
    pair_close(&pair);
}
END_TEST

/* The same with sends, which wait for receives that are not there. */
START_TEST(full_send_queue_takes_nothing)
{
    struct pair pair;
    struct sluice_request sends[DEPTH];
    struct sluice_request receives[DEPTH];
    struct sluice_completion completions[DEPTH];
    pair_open(&pair, &short_queues);
    for (uint32_t i = 0; i < DEPTH; i++) {
        sends[i] = request_of(SLUICE_OP_SEND, 0, NULL);
        sends[i].user_data = i;
    }
    make_receives(receives, DEPTH, 100);
    require_ok(sluice_channel_post(pair.channels[0], sends, DEPTH, DEADLINE, NULL));
    require_result(sluice_channel_post(pair.channels[0], sends, 1, DEADLINE, NULL), -EAGAIN);
    require_result(sluice_channel_poll(pair.channels[0], completions, DEPTH), 0);
    require_ok(sluice_channel_post(pair.channels[1], receives, DEPTH, DEADLINE, NULL));
    poll_all(pair.channels[0], completions, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].user_data == i && completions[i].opcode == SLUICE_OP_SEND, "%u", i);
    }
    poll_all(pair.channels[1], completions, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require(completions[i].user_data == 100 + i, "%u", i);
    }
    pair_close(&pair);
}
END_TEST

START_TEST(handle_asked_twice_gives_the_same_answer)
{
    struct pair pair;
    struct sluice_completion again;
    pair_open(&pair, NULL);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle handle = post(pair.channels[0], &receive);
    struct sluice_handle copy = handle;
    send_messages(pair.channels[1], 1, 9);
    struct sluice_completion completion = await(pair.channels[0], handle, SLUICE_CLASS_NONE);
    for (int i = 0; i < 3; i++) {
        memset(&again, 0xcc, sizeof(again));
        require_ok(sluice_channel_wait(pair.channels[0], &copy, 0, &again));
        require(memcmp(&again, &completion, sizeof(again)) == 0, "the answer changed%s", "");
    }
    /* What was waited for is not polled as well. */
    require_result(sluice_channel_poll(pair.channels[0], &again, 1), 0);
    pair_close(&pair);
}
END_TEST

/* What was polled can still be asked for, and is not polled twice. */
START_TEST(handle_of_what_was_polled)
{
    struct pair pair;
    struct sluice_completion polled;
    struct sluice_completion waited;
    pair_open(&pair, NULL);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle handle = post(pair.channels[0], &receive);
    send_messages(pair.channels[1], 1, 10);
    poll_all(pair.channels[0], &polled, 1);
    require_ok(sluice_channel_wait(pair.channels[0], &handle, 0, &waited));
    require(memcmp(&polled, &waited, sizeof(polled)) == 0, "the answer changed%s", "");
    pair_close(&pair);
}
END_TEST

START_TEST(stale_and_foreign_handles)
{
    struct pair pair;
    struct sluice_completion completion;
    struct sluice_handle nothing = {0};
    pair_open(&pair, &short_queues);
    memset(&completion, 0xcc, sizeof(completion));
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle first = post(pair.channels[0], &receive);
    send_messages(pair.channels[1], 1, 0);
    await(pair.channels[0], first, SLUICE_CLASS_NONE);
    require_error(sluice_channel_wait(pair.channels[0], &nothing, 0, &completion), -ESTALE, "");
    require_error(sluice_channel_wait(pair.channels[1], &first, 0, &completion), -ESTALE, "");
    struct sluice_handle forged = first;
    forged.id ^= UINT64_C(0x5a5a5a5a00);
    require_error(sluice_channel_wait(pair.channels[0], &forged, 0, &completion), -ESTALE, "");
    forged.id = UINT64_MAX;
    require_error(sluice_channel_wait(pair.channels[0], &forged, 0, &completion), -ESTALE, "");
    /* Its place has been needed many times. */
    for (uint32_t i = 0; i < 8 * DEPTH; i++) {
        struct sluice_handle handle = post(pair.channels[0], &receive);
        send_messages(pair.channels[1], 1, i);
        await(pair.channels[0], handle, SLUICE_CLASS_NONE);
    }
    require_error(sluice_channel_wait(pair.channels[0], &first, 0, &completion), -ESTALE, "");
    value_check(&completion, sizeof(completion), 0xcc);
    pair_close(&pair);
}
END_TEST

/* Nobody asks for them: the queue never fills up with what is complete. */
START_TEST(dropped_handles_are_harmless)
{
    struct pair pair;
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_completion completions[4 * DEPTH];
    pair_open(&pair, &short_queues);
    for (uint32_t i = 0; i < 20 * DEPTH; i++) {
        receive.user_data = i;
        require_ok(sluice_channel_post(pair.channels[0], &receive, 1, DEADLINE, NULL));
        send_messages(pair.channels[1], 1, i);
    }
    /* The newest are still to be had, oldest first. */
    int count = 0;
    uint64_t last = 0;
    int got;
    do {
        got = sluice_channel_poll(pair.channels[0], completions, COUNT(completions));
        for (int i = 0; i < got; i++) {
            require(count == 0 || completions[i].user_data == last + 1, "%llu after %llu",
                    (unsigned long long)completions[i].user_data, (unsigned long long)last);
            require(completions[i].immediate == completions[i].user_data, "%u",
                    completions[i].immediate);
            last = completions[i].user_data;
            count++;
        }
    } while (got > 0);
    require(count > 0 && last == 20 * DEPTH - 1, "%d, last %llu", count, (unsigned long long)last);
    pair_works(&pair);
    pair_close(&pair);
}
END_TEST

/* Dropped failures are not forgotten as successes are. */
START_TEST(dropped_failures_are_kept)
{
    struct star star;
    struct sluice_request receives[4];
    struct sluice_completion completions[8];
    star_open(&star, 2, &short_queues);
    for (uint32_t i = 0; i < 4; i++) {
        receives[i] = request_of(SLUICE_OP_RECEIVE, 1, NULL);
        receives[i].user_data = 40 + i;
    }
    require_ok(sluice_multichannel_post(star.hub, receives, 4, DEADLINE, NULL));
    star_break(&star, 1);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    for (uint32_t i = 0; i < 10 * DEPTH; i++) {
        require_ok(sluice_multichannel_post(star.hub, &receive, 1, DEADLINE, NULL));
        send_messages(star.spokes[0], 1, i);
    }
    uint32_t failures = 0;
    int got;
    do {
        got = sluice_multichannel_poll(star.hub, completions, COUNT(completions));
        for (int i = 0; i < got; i++) {
            failures += completions[i].error != 0;
            require(completions[i].error == 0 || completions[i].user_data >= 40, "%llu",
                    (unsigned long long)completions[i].user_data);
        }
    } while (got > 0);
    require(failures == 4, "%u failures", failures);
    star_close(&star);
}
END_TEST

/* One poll for all peers; receive from any falls out. */
START_TEST(poll_takes_from_any_peer)
{
    struct star star;
    struct sluice_completion completion;
    uint32_t order[] = {4, 2, 0, 3, 1};
    star_open(&star, 5, NULL);
    for (uint32_t i = 0; i < 5; i++) {
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, i, NULL);
        require_ok(sluice_multichannel_post(star.hub, &receive, 1, DEADLINE, NULL));
    }
    for (uint32_t i = 0; i < 5; i++) {
        send_messages(star.spokes[order[i]], 1, 60 + order[i]);
        int got;
        do {
            got = sluice_multichannel_poll(star.hub, &completion, 1);
        } while (got == 0);
        require(got == 1 && completion.peer == order[i] && completion.immediate == 60 + order[i],
                "%d: peer %u, not %u", got, completion.peer, order[i]);
    }
    star_close(&star);
}
END_TEST

/* Each request completes once: what is left ends cancelled, and is counted. */
START_TEST(shutdown_completes_all)
{
    struct pair pair;
    struct sluice_request receives[DEPTH];
    struct sluice_completion completions[DEPTH];
    pair_open(&pair, &short_queues);
    make_receives(receives, DEPTH, 0);
    require_ok(sluice_channel_post(pair.channels[0], receives, DEPTH, DEADLINE, NULL));
    send_messages(pair.channels[1], 3, 0);
    require_result(sluice_channel_shutdown(pair.channels[0], SLUICE_MS(30)), -ETIMEDOUT);
    poll_all(pair.channels[0], completions, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require(completions[i].user_data == i, "%llu after %u",
                (unsigned long long)completions[i].user_data, i);
        require_class(&completions[i], i < 3 ? SLUICE_CLASS_NONE : SLUICE_CLASS_CANCELLED);
    }
    require_result(sluice_channel_post(pair.channels[0], receives, 1, DEADLINE, NULL), -ENOTCONN);
    pair_close(&pair);
}
END_TEST

START_TEST(shutdown_waits_for_work)
{
    struct star star;
    struct sluice_request sends[6];
    star_open(&star, 3, NULL);
    for (uint32_t i = 0; i < 6; i++) {
        sends[i] = request_of(SLUICE_OP_SEND, i % 3, NULL);
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
        post(star.spokes[i % 3], &receive);
    }
    require_ok(sluice_multichannel_post(star.hub, sends, 6, DEADLINE, NULL));
    require_ok(sluice_multichannel_shutdown(star.hub, DEADLINE));
    struct sluice_completion completions[7];
    require_result(sluice_multichannel_poll(star.hub, completions, 7), 6);
    for (uint32_t i = 0; i < 6; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
    }
    require_result(sluice_multichannel_send(star.hub, 0, NULL, 0, DEADLINE), -ENOTCONN);
    star_close(&star);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, full_queue_takes_nothing);
    tcase_add_test(tcase, full_send_queue_takes_nothing);
    tcase_add_test(tcase, handle_asked_twice_gives_the_same_answer);
    tcase_add_test(tcase, handle_of_what_was_polled);
    tcase_add_test(tcase, stale_and_foreign_handles);
    tcase_add_test(tcase, dropped_handles_are_harmless);
    tcase_add_test(tcase, dropped_failures_are_kept);
    tcase_add_test(tcase, poll_takes_from_any_peer);
    tcase_add_test(tcase, shutdown_completes_all);
    tcase_add_test(tcase, shutdown_waits_for_work);
}

int main(void)
{
    return run_on_wires("unpolled", 30, add_tests);
}
