/* SPDX-License-Identifier: MIT */
/*
 * The completion engine on a pretend device that fails on request: the results of requests when
 * posts are refused, queue pairs never flush, queues are dead, and memory runs out; and random
 * sequences of all of that (engine/fuzz.h explains how to run them for longer, and how to repeat
 * one).
 */
#include "config.h"

#include <stdlib.h>

#include "../support/pair.h"
#include "fuzz.h"
#include "invariants.h"
#include "rig.h"
#include "unwind.h"

/* This holds however many busy polls passed since the clock was last read. */
TEST_WITH(rig, work_done_in_time_is_not_judged_late, (1, 64))
{
    struct sluice_completion completions[60];
    fake.by_hand = true;
    for (uint32_t before = 0; before < 130; before++) {
        require_result(sluice_multichannel_poll(rig->channel, completions, 1), 0);
        for (uint32_t i = 0; i < before; i++) {
            rig_post(rig, write_of(0, 1), LONG);
            fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
            require_result(sluice_multichannel_poll(rig->channel, completions, 1), 1);
        }
        for (uint32_t i = 0; i < COUNT(completions); i++) {
            rig_post(rig, write_of(0, 2 + i), SLUICE_MS(1));
            fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
        }
        fake.now += SLUICE_MS(3);
        rig_poll_all(rig, completions, COUNT(completions));
        for (uint32_t i = 0; i < COUNT(completions); i++) {
            require_status(&completions[i], 2 + i, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
        }
        require_result(sluice_multichannel_peer_state(rig->channel, 0), SLUICE_STATE_READY);
    }
}

/* The first poll that reads a peer's failure takes all completions of the queue. */
TEST_WITH(rig, root_cause_behind_many_successes, (1, 100))
{
    fake.by_hand = true;
    for (uint32_t i = 0; i < 90; i++) {
        rig_post(rig, write_of(0, 1 + i), LONG);
    }
    for (uint32_t i = 0; i < 80; i++) {
        fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
    }
    fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_REM_ACCESS_ERR);
    struct sluice_error error = peer_error(rig->channel, 0);
    require(error.status == SLUICE_STATUS_REM_ACCESS_ERR && error.opcode == SLUICE_OP_WRITE &&
                error.vendor == 99,
            "status %u of opcode %u: %s", error.status, error.opcode, error.text);
}

/* Receives are flushed before the failed send that caused it is reported. */
TEST_WITH(rig, root_cause_behind_many_flushes, (1, 64))
{
    struct sluice_completion completions[51];
    fake.by_hand = true;
    rig_post(rig, write_of(0, 1), LONG);
    for (uint32_t i = 0; i < 50; i++) {
        rig_post(rig, receive_of(0, 2 + i), LONG);
    }
    while (fake_complete(rig_qp(rig, 0), SLU_RECEIVE_QUEUE, SLUICE_STATUS_WR_FLUSH_ERR)) {
    }
    fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_REM_ACCESS_ERR);
    rig_poll_all(rig, completions, COUNT(completions));
    require_status(&completions[COUNT(completions) - 1], 1, SLUICE_STATUS_REM_ACCESS_ERR,
                   SLUICE_STATUS_REM_ACCESS_ERR);
    struct sluice_error error = peer_error(rig->channel, 0);
    require(error.status == SLUICE_STATUS_REM_ACCESS_ERR && error.opcode == SLUICE_OP_WRITE,
            "status %u of opcode %u: %s", error.status, error.opcode, error.text);
}

TEST_WITH(rig, recycling_forgets_the_oldest_success, (1, 16))
{
    struct sluice_completion completions[17];
    fake.by_hand = true;
    for (uint32_t i = 0; i < 16; i++) {
        rig_post(rig, receive_of(0, 1 + i), LONG);
    }
    while (fake_complete(rig_qp(rig, 0), SLU_RECEIVE_QUEUE, SLUICE_STATUS_SUCCESS)) {
    }
    require_result(sluice_multichannel_poll(rig->channel, completions, 0), 0);
    for (uint32_t i = 0; i < 6; i++) {
        rig_post(rig, receive_of(0, 17 + i), LONG);
        check_engine(rig->engine);
    }
    require_result(sluice_multichannel_poll(rig->channel, completions, 17), 10);
    for (uint32_t i = 0; i < 10; i++) {
        require_status(&completions[i], 7 + i, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    }
}

/* A late wait by a handle gets its request's result, however many calls blocked meanwhile. */
TEST(blocking_calls_take_no_result_away)
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

/* Dropping one success makes enough room: no failure is dropped. */
TEST_WITH(rig, recycling_keeps_failures, (2, 100))
{
    enum { DEPTH = 100 };
    fake.by_hand = true;
    struct sluice_handle handles[DEPTH];
    struct sluice_completion completions[DEPTH];
    for (uint32_t i = 0; i < DEPTH; i++) {
        handles[i] = rig_post(rig, write_of(0, 1 + i), LONG);
        rig_post(rig, write_of(1, 1001 + i), LONG);
    }
    fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_REM_ACCESS_ERR);
    while (fake_held(rig_qp(rig, 0), SLU_SEND_QUEUE) > 0) {
        require_result(sluice_multichannel_poll(rig->channel, completions, 0), 0);
    }
    fake_complete(rig_qp(rig, 1), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
    require_result(sluice_multichannel_poll(rig->channel, completions, 0), 0);
    rig_post(rig, write_of(1, 2000), LONG);
    check_engine(rig->engine);
    require_ok(sluice_multichannel_wait(rig->channel, &handles[70], 0, &completions[0]));
    require_status(&completions[0], 71, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_REM_ACCESS_ERR);
    require_result(sluice_multichannel_poll(rig->channel, completions, DEPTH), DEPTH - 1);
    for (uint32_t i = 0; i < DEPTH - 1; i++) {
        uint32_t key = i < 70 ? 1 + i : 2 + i;
        uint32_t status = i == 0 ? SLUICE_STATUS_REM_ACCESS_ERR : SLUICE_STATUS_WR_FLUSH_ERR;
        require_status(&completions[i], key, status, SLUICE_STATUS_REM_ACCESS_ERR);
    }
}

static void post_in_scope(struct rig *rig, struct sluice_scope *scope, uint32_t key)
{
    struct sluice_request request = write_of(0, key);
    require_result(sluice_scope_post(scope, &request, 1, NULL), 1);
    check_engine(rig->engine);
}

TEST_WITH(rig, scope_end_reports_in_order, (1, 8))
{
    struct sluice_completion failures[8];
    struct sluice_scope_report report = {
        .size = sizeof(report), .failures = failures, .capacity = COUNT(failures)};
    fake.by_hand = true;
    struct sluice_scope *scope = sluice_multichannel_scope_begin(rig->channel, LONG);
    post_in_scope(rig, scope, 10);
    fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_REM_ACCESS_ERR);
    require_result(sluice_scope_poll(scope, NULL, 0), 0);
    post_in_scope(rig, scope, 11);
    require_error(sluice_scope_end(scope, &report), -EACCES, "write peer 0");
    require_equal(report.posted, 2, report.failed, 2, report.unseen, 2, report.count, 2);
    require_class(&failures[0], SLUICE_CLASS_ACCESS);
    require_status(&failures[0], 10, SLUICE_STATUS_REM_ACCESS_ERR, SLUICE_STATUS_REM_ACCESS_ERR);
    require_status(&failures[1], 11, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_REM_ACCESS_ERR);
}

/* More failures than are kept: the newest are listed, all are counted. */
TEST_WITH(rig, scope_end_counts_what_it_cannot_list, (1, 8))
{
    struct sluice_completion failures[200];
    struct sluice_scope_report report = {
        .size = sizeof(report), .failures = failures, .capacity = COUNT(failures)};
    require_ok(sluice_multichannel_shutdown(rig->channel, 0));
    struct sluice_scope *scope = sluice_multichannel_scope_begin(rig->channel, LONG);
    for (uint32_t i = 0; i < 100; i++) {
        post_in_scope(rig, scope, 1 + i);
    }
    require_result(sluice_scope_end(scope, &report), -ENOTCONN);
    require_equal(report.posted, 100, report.failed, 100, report.unseen, 100, report.count,
                  SLU_FAILURES);
    for (uint32_t i = 0; i < report.count; i++) {
        require_status(&failures[i], 100 - SLU_FAILURES + 1 + i, SLUICE_STATUS_WR_FLUSH_ERR,
                       SLUICE_STATUS_WR_FLUSH_ERR);
    }
}

/* Neither its peer nor the peer that holds the room has failed. */
static void find_no_room(uint32_t peer)
{
    struct rig rig;
    struct sluice_completion completions[4];
    fake.by_hand = true;
    rig_open(&rig, 2, 4);
    for (uint32_t i = 0; i < 4; i++) {
        rig_post(&rig, write_of(0, 1 + i), SLUICE_FOREVER);
    }
    struct sluice_request request = write_of(peer, 9);
    int64_t start = fake.now;
    require_result(rig_submit(&rig, &request, 1, SLUICE_MS(5), completions), -ETIMEDOUT);
    require_status(&completions[0], 9, SLUICE_STATUS_DEADLINE, SLUICE_STATUS_DEADLINE);
    /* A poll takes 1 ms here, and a wait reads the clock once in 8 polls. */
    require(fake.now - start >= SLUICE_MS(5) && fake.now - start < SLUICE_MS(25), "%lld ns",
            (long long)(fake.now - start));
    for (uint32_t i = 0; i < 2; i++) {
        require_result(sluice_multichannel_peer_state(rig.channel, i), SLUICE_STATE_READY);
    }
    while (fake_complete(rig_qp(&rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS)) {
    }
    rig_poll_all(&rig, completions, 4);
    for (uint32_t i = 0; i < 4; i++) {
        require_status(&completions[i], 1 + i, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    }
    rig_works(&rig, 0);
    rig_works(&rig, 1);
    rig_close(&rig);
}

TEST(request_without_room_in_its_queue_fails_alone)
{
    find_no_room(0);
}

TEST(request_without_room_for_its_completion_fails_alone)
{
    fake.max_cq_depth = 9; /* 4 for sends, which peer 0 uses all; 1 for a probe */
    find_no_room(1);
}

static const struct rig *shared_rig;
static uint32_t most_held; /* of peer 0 */

static void serve_all_but_the_first(void)
{
    uint32_t held = fake_held(rig_qp(shared_rig, 0), SLU_SEND_QUEUE);
    most_held = held > most_held ? held : most_held;
    for (uint32_t i = 1; i < 4; i++) {
        fake_complete(rig_qp(shared_rig, i), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
    }
}

/*
 * Peer 0 does not answer. Each of the 4 peers keeps 1 of the 8 entries for sends to itself, so peer
 * 0 takes 5 of them, and the others go on with the rest.
 */
TEST(blocked_peer_leaves_the_others_their_share)
{
    enum { WRITES = 6, ALL = WRITES + 3 };
    struct sluice_completion completions[ALL];
    struct sluice_request requests[ALL];
    struct rig rig;
    fake.max_cq_depth = 18; /* 8 for sends, 8 for receives, 2 for probes */
    fake.by_hand = true;
    rig_open(&rig, 4, WRITES);
    require_equal(rig.engine->cq_size[SLU_SEND_QUEUE], 8);
    for (uint32_t i = 0; i < ALL; i++) {
        requests[i] = write_of(i < WRITES ? 0 : i - WRITES + 1, 1 + i);
    }
    shared_rig = &rig;
    fake.at_poll = serve_all_but_the_first;
    require_result(rig_submit(&rig, requests, ALL, SLUICE_MS(5), completions), -ETIMEDOUT);
    fake.at_poll = NULL;
    require(most_held == 5, "%u of peer 0 in flight", most_held);
    for (uint32_t i = WRITES; i < ALL; i++) {
        require_status(&completions[i], 1 + i, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    }
    rig_close(&rig);
}

/* Parts are posted as the queue drains, as in a submit. */
TEST_WITH(rig, scope_post_of_more_parts_than_the_share,
          (1, ON_DEVICE(16, fake.max_cq_depth = 2 * (RIG_PARTS - 1) + 1)))
{
    struct sluice_scope *scope = sluice_multichannel_scope_begin(rig->channel, SLUICE_FOREVER);
    struct sluice_request requests[] = {write_of(0, 1), split_write(0, 2)};
    require_result(sluice_scope_post(scope, requests, 2, NULL), 2);
    require_ok(sluice_scope_end(scope, NULL));
    require_equal(fake.ledger[2].bytes, (RIG_PARTS - 1) * RIG_MESSAGE + 10);
}

TEST(each_failing_call_of_the_device_unwinds)
{
    uint32_t n = 1;
    sluice_log_set(SLUICE_LOG_NONE, NULL, NULL);
    while (unwinds(n, FAIL_CALL)) {
        n++;
    }
    require(n > 15, "only %u calls can fail", n - 1);
}

TEST(each_failing_allocation_unwinds)
{
    uint32_t n = 1;
    sluice_log_set(SLUICE_LOG_NONE, NULL, NULL);
    while (unwinds(n, FAIL_ALLOCATION)) {
        n++;
    }
    require(n > 30, "only %u allocations can fail", n - 1);
}

TEST(parents_are_freed_twice_while_a_channel_lives)
{
    struct rig rig;
    rig_open(&rig, 1, 8);
    uint32_t objects = fake.objects;
    for (int i = 0; i < 2; i++) {
        sluice_pd_free(rig.pd);
        sluice_context_close(rig.context);
        require(fake.objects == objects, "%u objects of the device, not %u", fake.objects, objects);
        rig_works(&rig, 0);
    }
    sluice_multichannel_close(rig.channel);
    require(fake.objects == 0, "%u objects of the device are left", fake.objects);
}

static uint32_t log_lines;

static void count_lines(uint32_t level, const char *line, void *user)
{
    (void)user;
    log_lines += level == SLUICE_LOG_ERROR && strstr(line, "completion queue") != NULL;
}

/* The first request of each peer has the reason, and the others were cancelled by it. */
TEST(dead_queue_is_logged_once)
{
    struct rig rig;
    struct sluice_completion completions[3];
    sluice_log_set(SLUICE_LOG_ERROR, count_lines, NULL);
    fake.by_hand = true;
    rig_open(&rig, 2, 8);
    rig_post(&rig, write_of(0, 1), LONG);
    rig_post(&rig, write_of(0, 2), LONG);
    rig_post(&rig, receive_of(1, 3), LONG);
    fake.dead = true;
    rig_poll_all(&rig, completions, 3);
    for (uint32_t i = 0; i < 3; i++) {
        bool first = i != 1;
        require_class(&completions[i], first ? SLUICE_CLASS_DEVICE : SLUICE_CLASS_CANCELLED);
        require_status(&completions[i], 1 + i,
                       first ? SLUICE_STATUS_FATAL_ERR : SLUICE_STATUS_WR_FLUSH_ERR,
                       SLUICE_STATUS_FATAL_ERR);
        require(fake.ledger[1 + i].held == 0, "request %u is still held", 1 + i);
    }
    for (uint32_t i = 0; i < 10; i++) {
        require_result(sluice_multichannel_poll(rig.channel, completions, 2), 0);
    }
    require(peer_error(rig.channel, 1).error == -EIO, "%s", peer_error(rig.channel, 1).text);
    rig_close(&rig);
    require(log_lines == 1, "%u lines", log_lines);
}

/*
 * The queue pair is destroyed at once, because the device might still execute the refused request.
 */
TEST_WITH(rig, refused_post_keeps_the_words_of_the_driver, (1, 8))
{
    struct sluice_completion completions[3];
    struct sluice_request requests[] = {write_of(0, 1), write_of(0, 2), write_of(0, 3)};
    fake.refuse_send = 2;
    int64_t start = fake.now;
    require_error(sluice_multichannel_submit(rig->channel, requests, 3, LONG, completions), -EIO,
                  FAKE_REFUSAL);
    require_status(&completions[1], 2, SLUICE_STATUS_GENERAL_ERR, SLUICE_STATUS_GENERAL_ERR);
    require(completions[1].vendor == ENOMEM, "vendor code %u", completions[1].vendor);
    require(fake.now - start < SLUICE_MS(10) && !rig_qp(rig, 0), "%lld ns",
            (long long)(fake.now - start));
    require_result(sluice_multichannel_poll(NULL, NULL, 0), -EINVAL);
    struct sluice_error error = peer_error(rig->channel, 0);
    require(strstr(error.text, FAKE_REFUSAL) && error.error == -EIO, "%s", error.text);
    require_error(sluice_multichannel_post(rig->channel, requests, 1, LONG, NULL), -ENOTCONN,
                  FAKE_REFUSAL);
}

/* The device then says that it has succeeded, but the call has said that it failed. */
TEST_WITH(rig, refused_receive_that_runs_all_the_same_stays_failed,
          (1, ON_DEVICE(8, fake.chances.run_refused = 1000, fake.chances.late = 1000,
                        fake.chances.flush_at_once = 1000)))
{
    for (uint32_t i = 1; i <= 20; i++) {
        struct sluice_completion completion;
        struct sluice_endpoint endpoint;
        struct sluice_request request = rig_request(SLUICE_OP_RECEIVE, 0, RIG_MESSAGE, i);
        fake.chances.refuse = 1000;
        require_error(sluice_multichannel_submit(rig->channel, &request, 1, LONG, &completion),
                      -EIO, FAKE_REFUSAL);
        require_status(&completion, i, SLUICE_STATUS_GENERAL_ERR, SLUICE_STATUS_GENERAL_ERR);
        require(completion.error == -EIO && completion.bytes == 0, "%d", completion.error);
        fake.chances.refuse = 0;
        require_ok(sluice_multichannel_peer_reset(rig->channel, 0, &endpoint));
        require_ok(sluice_multichannel_peer_handshake(rig->channel, 0, &endpoint));
    }
}

TEST_WITH(rig, completions_of_unknown_ids_are_discarded,
          (2, ON_DEVICE(8, fake.chances.invent = 1000, fake.chances.repeat = 1000)))
{
    for (uint32_t i = 0; i < 100; i++) {
        rig_works(rig, i % 2);
        check_engine(rig->engine);
    }
    require(rig->engine->discarded == fake.strays && fake.strays > 20, "%llu of %llu",
            (unsigned long long)rig->engine->discarded, (unsigned long long)fake.strays);
}

/* Unrelated completions come all the time. */
TEST_WITH(rig, wait_ends_while_the_queue_is_busy,
          (1, ON_DEVICE(8, fake.by_hand = true, fake.chances.invent = 1000)))
{
    struct sluice_completion completion;
    struct sluice_handle handle = rig_post(rig, write_of(0, 1), LONG);
    int64_t start = fake.now;
    require_result(sluice_multichannel_wait(rig->channel, &handle, SLUICE_MS(1), &completion),
                   -ETIMEDOUT);
    require(fake.now - start < SLUICE_MS(2), "%lld ns", (long long)(fake.now - start));
    struct sluice_request request = write_of(0, 2);
    require_result(rig_submit(rig, &request, 1, SLUICE_MS(1), &completion), -ETIMEDOUT);
    require(fake.now - start < SLUICE_MS(4), "%lld ns", (long long)(fake.now - start));
}

/* The peer is lost; the other peer and the buffers are not. */
TEST_WITH(rig, queue_pair_that_never_flushes_is_abandoned, (2, 8))
{
    struct sluice_completion completions[4];
    struct sluice_endpoint endpoint;
    fake.by_hand = true;
    fake.never_flush = true;
    uint32_t objects = fake.objects;
    rig_post(rig, write_of(0, 1), LONG);
    rig_post(rig, receive_of(0, 2), LONG);
    struct sluice_request request = write_of(0, 3);
    int64_t start = fake.now;
    require_result(rig_submit(rig, &request, 1, SLUICE_MS(5), completions), -ETIMEDOUT);
    int64_t took = fake.now - start - SLUICE_MS(5);
    require(took >= SLU_DRAIN_TIME && took < SLU_DRAIN_TIME + SLUICE_MS(10), "%lld ns",
            (long long)took);
    require_status(&completions[0], 3, SLUICE_STATUS_DEADLINE, SLUICE_STATUS_DEADLINE);
    rig_poll_all(rig, completions, 2);
    require_status(&completions[0], 1, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_DEADLINE);
    require_status(&completions[1], 2, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_DEADLINE);
    require(fake.objects == objects - 1, "the queue pair is still there%s", "");
    rig_works(rig, 1);
    require_ok(sluice_multichannel_peer_reset(rig->channel, 0, &endpoint));
    require_ok(sluice_multichannel_peer_handshake(rig->channel, 0, &endpoint));
    rig_works(rig, 0);
}

TEST(random_sequences, .group = "fuzz")
{
    sluice_log_set(SLUICE_LOG_NONE, NULL, NULL);
    fuzz_run_all();
}

static void new_device(void)
{
    fake_reset(1);
}

/* A library whose struct has grown writes no more than the older program has room for. */
TEST(information_for_an_older_program)
{
    uint32_t newer[16], older[16];
    memset(newer, 0x55, sizeof(newer));
    for (uint32_t size = 8; size <= sizeof(older); size++) {
        memset(older, 0xcc, sizeof(older));
        older[0] = size;
        require_ok(slu_info_check(older, sizeof(newer), 8, "older"));
        slu_info_copy(older, newer, sizeof(newer));
        require(older[0] == size, "%u, was %u", older[0], size);
        value_check(older + 1, size - sizeof(size), 0x55);
        value_check((const uint8_t *)older + size, sizeof(older) - size, 0xcc);
    }
    older[0] = 7;
    require_error(slu_info_check(older, sizeof(newer), 8, "older"), -EINVAL, "older.size 7 64");
}

int main(void)
{
    const struct tests groups[] = {{"engine", WIRE_SELF, 20},
                                   {"fuzz", WIRE_SELF, 60 + fuzz_seconds()}};
    /* These tests bring a device of their own, which overrides the one chosen for the run. */
    setenv("SLUICE_TEST_DEVICE", "soft", 1);
    each_test(new_device, NULL);
    return run_groups("engine", groups, COUNT(groups));
}
