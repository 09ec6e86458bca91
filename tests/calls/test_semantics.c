/* SPDX-License-Identifier: MIT */
/*
 * Edge cases that libraries of this kind are known to handle badly, one test each, of
 * lists, handles, polling and scopes:
 *
 *   unknown_peer_index             the list is refused, nothing of it was posted
 *   empty_list                     is no error, and does nothing
 *   empty_sge_list                 is a message of no bytes
 *   duplicate_peers_in_a_list      are served in the order of the list
 *   scoped_list_fails_midway       each request has a handle and a result
 *   blocking_list_fails_midway     each request has a result, within the deadline
 *   unpolled_list_fails_midway     the call returns how many were posted
 *   completion_of_a_scatter_fails  the failed one is known, and the others are not lost
 *   scope_exit_order               posting order; the block's error and the failures
 *   polled_error_is_delivered      and not reported again at the end of the scope
 *   strict_scope                   -EBUSY and a count, after draining
 *   double_poll                    the same result again
 *   dropped_handle                 costs nothing, the call returns at once
 *   forgotten_handles              are bounded: work goes on, failures are kept longest
 *   handle_outlives_its_channel    is stale, and no call waits for it
 *   request_ids                    are never reused
 *   full_queues                    are waited for, or -EAGAIN
 *   completion_queue_never_overruns  with all queues full and without polls
 *   immediate_of_a_receive         in host byte order, and distinct from none
 *   bytes_of_sends_and_writes      are defined
 *   sges_beyond_their_memory       are refused when they are made
 *   endpoint_count_mismatch        is refused with the expected number
 *   handshake_fails_for_one_peer   the others are connected
 *   numbers_of_peers               0 is allowed, too many are refused
 *   error_after_an_error           the first error stays
 *
 * Tests of handles and queues are in semantics/handles.c, those of messages and peers in
 * semantics/peers.c. A failing completion queue is tested where one can be made to fail:
 * dead_queue_is_logged_once of test_engine, queue_that_fails of test_verbs_queues.
 */
#include "../support/process.h"
#include "semantics/fixture.h"

TEST(unknown_peer_index)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    fixture.writes[2].peer = PEERS;
    memset(fixture.completions, 0xcc, sizeof(fixture.completions));
    require_error(sluice_multichannel_submit(hub, fixture.writes, 3, DEADLINE, fixture.completions),
                  -EINVAL, "request 2 peer 3");
    require_error(
        sluice_multichannel_scatter_write(hub, fixture.writes, 3, DEADLINE, fixture.completions),
        -EINVAL, "request 2 peer 3");
    require_error(sluice_multichannel_post(hub, fixture.writes, 3, DEADLINE, fixture.handles),
                  -EINVAL, "request 2 peer 3");
    value_check(fixture.completions, sizeof(fixture.completions), 0xcc);
    struct sluice_scope *scope = fixture_begin(&fixture);
    require_error(sluice_scope_post(scope, fixture.writes, 3, fixture.handles), -EINVAL,
                  "request 2 peer 3");
    require_ok(sluice_scope_end(scope, &fixture.report));
    require(fixture.report.posted == 0, "%u", fixture.report.posted);
    require_result(sluice_multichannel_poll(hub, fixture.completions, 1), 0);
    value_check(fixture.far.bytes, fixture.far.length, 0);
    fixture_close(&fixture);
}

TEST(empty_list)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    require_ok(sluice_multichannel_submit(hub, NULL, 0, 0, NULL));
    require_ok(sluice_multichannel_scatter_send(hub, NULL, 0, 0, NULL));
    require_ok(sluice_multichannel_gather_receive(hub, NULL, 0, 0, NULL));
    require_ok(sluice_multichannel_multicast_send(hub, NULL, NULL, 0, 0, NULL));
    require_result(sluice_multichannel_post(hub, NULL, 0, 0, NULL), 0);
    struct sluice_scope *scope = fixture_begin(&fixture);
    require_result(sluice_scope_post(scope, NULL, 0, NULL), 0);
    require_ok(sluice_scope_end(scope, &fixture.report));
    require(fixture.report.posted == 0, "%u", fixture.report.posted);
    /* This holds even where no peer is left to take a request. */
    sluice_multichannel_shutdown(hub, 0);
    require_ok(sluice_multichannel_scatter_send(hub, NULL, 0, 0, NULL));
    fixture_close(&fixture);
}

TEST(empty_sge_list)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 1, NULL);
    struct sluice_handle handle = post(fixture.star.spokes[1], &receive);
    require_ok(sluice_multichannel_send(fixture.star.hub, 1, NULL, 0, DEADLINE));
    struct sluice_completion completion = await(fixture.star.spokes[1], handle, SLUICE_CLASS_NONE);
    require(completion.bytes == 0, "%llu", (unsigned long long)completion.bytes);
    require_ok(sluice_multichannel_submit(fixture.star.hub, &write, 1, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    fixture_close(&fixture);
}

TEST(duplicate_peers_in_a_list)
{
    struct fixture fixture;
    fixture_open(&fixture);
    /* All writes go to one place of one peer, one after the other: the last one stays. */
    for (uint32_t i = 0; i < 10; i++) {
        fixture.writes[i].peer = 1;
        fixture.writes[i].remote = fixture.writes[0].remote;
    }
    require_ok(sluice_multichannel_scatter_write(fixture.star.hub, fixture.writes, 10, DEADLINE,
                                                 fixture.completions));
    require(memcmp(fixture.far.bytes, fixture.near.bytes + 9 * SLOT, SLOT) == 0, "slot %u", 9);
    for (uint32_t i = 0; i < 10; i++) {
        require(fixture.completions[i].user_data == 100 + i, "%u", i);
    }
    struct sluice_scope *scope = fixture_begin(&fixture);
    require_result(sluice_scope_post_scatter_write(scope, fixture.writes, 8, NULL), 8);
    require_ok(sluice_scope_end(scope, NULL));
    require(memcmp(fixture.far.bytes, fixture.near.bytes + 7 * SLOT, SLOT) == 0, "slot %u", 7);
    fixture_close(&fixture);
}

/* Peer 1 has failed. */
static void break_one(struct fixture *fixture)
{
    star_break(&fixture->star, 1);
}

TEST(scoped_list_fails_midway)
{
    struct fixture fixture;
    struct sluice_completion completion;
    fixture_open(&fixture);
    break_one(&fixture);
    struct sluice_scope *scope = fixture_begin(&fixture);
    require_result(sluice_scope_post_scatter_write(scope, fixture.writes, 9, fixture.handles), 9);
    /* The places of the first requests are reused by the last: the handle is one of these. */
    for (uint32_t i = 9 - PEERS; i < 9; i++) {
        require_ok(sluice_scope_wait(scope, &fixture.handles[i], DEADLINE, &completion));
        require(completion.user_data == 100 + i, "%u", i);
        require_class(&completion, i % PEERS == 1 ? SLUICE_CLASS_CANCELLED : SLUICE_CLASS_NONE);
        require(completion.error == (i % PEERS == 1 ? -ENOTCONN : 0), "%d", completion.error);
    }
    require_result(sluice_scope_end(scope, &fixture.report), -ENOTCONN);
    require(fixture.report.posted == 9 && fixture.report.failed == 2 && fixture.report.count == 2,
            "posted %u, failed %u", fixture.report.posted, fixture.report.failed);
    require(fixture.completions[0].user_data == 101 && fixture.completions[1].user_data == 104,
            "%llu", (unsigned long long)fixture.completions[0].user_data);
    for (uint32_t i = 0; i < 9; i++) {
        check_slot(&fixture, i, i % PEERS != 1);
    }
    fixture_close(&fixture);
}

TEST(blocking_list_fails_midway)
{
    struct fixture fixture;
    fixture_open(&fixture);
    break_one(&fixture);
    memset(fixture.completions, 0xcc, sizeof(fixture.completions));
    require_result(sluice_multichannel_scatter_write(fixture.star.hub, fixture.writes, 9, DEADLINE,
                                                     fixture.completions),
                   -ENOTCONN);
    for (uint32_t i = 0; i < 9; i++) {
        require(fixture.completions[i].user_data == 100 + i, "%u", i);
        require_class(&fixture.completions[i],
                      i % PEERS == 1 ? SLUICE_CLASS_CANCELLED : SLUICE_CLASS_NONE);
        check_slot(&fixture, i, i % PEERS != 1);
    }
    /* A peer that never sends is waited for until the deadline, and no longer. */
    struct sluice_request receives[PEERS];
    for (uint32_t i = 0; i < PEERS; i++) {
        receives[i] = request_of(SLUICE_OP_RECEIVE, i, NULL);
    }
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
    post(fixture.star.spokes[0], &send);
    int64_t start = fair_now();
    require_result(sluice_multichannel_gather_receive(fixture.star.hub, receives, PEERS,
                                                      SLUICE_MS(200), fixture.completions),
                   -ETIMEDOUT);
    int64_t took = fair_now() - start;
    require(took < SLUICE_MS(1600), "%lld ms", (long long)took / 1000000);
    require_class(&fixture.completions[0], SLUICE_CLASS_NONE);
    require_class(&fixture.completions[1], SLUICE_CLASS_CANCELLED);
    require_class(&fixture.completions[2], SLUICE_CLASS_TIMEOUT);
    fixture_close(&fixture);
}

TEST(unpolled_list_fails_midway)
{
    struct fixture fixture;
    fixture_open(&fixture);
    break_one(&fixture);
    memset(fixture.handles, 0xcc, sizeof(fixture.handles));
    require_result(
        sluice_multichannel_post(fixture.star.hub, fixture.writes, 6, DEADLINE, fixture.handles),
        1);
    value_check(&fixture.handles[1], sizeof(fixture.handles[0]), 0xcc);
    require_ok(sluice_multichannel_wait(fixture.star.hub, &fixture.handles[0], DEADLINE,
                                        &fixture.completions[0]));
    require_class(&fixture.completions[0], SLUICE_CLASS_NONE);
    require_error(sluice_multichannel_post(fixture.star.hub, fixture.writes + 1, 5, DEADLINE,
                                           fixture.handles + 1),
                  -ENOTCONN, "peer 1");
    value_check(&fixture.handles[1], sizeof(fixture.handles[0]), 0xcc);
    require_result(sluice_multichannel_poll(fixture.star.hub, fixture.completions, 1), 0);
    for (uint32_t i = 0; i < 6; i++) {
        check_slot(&fixture, i, i == 0);
    }
    fixture_close(&fixture);
}

TEST(completion_of_a_scatter_fails)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture.writes[4].remote.rkey ^= 0x33333333;
    require_error(sluice_multichannel_scatter_write(fixture.star.hub, fixture.writes, 9, DEADLINE,
                                                    fixture.completions),
                  -EACCES, "write peer 1");
    for (uint32_t i = 0; i < 9; i++) {
        require_class(&fixture.completions[i], i == 4   ? SLUICE_CLASS_ACCESS
                                               : i == 7 ? SLUICE_CLASS_CANCELLED
                                                        : SLUICE_CLASS_NONE);
        require(fixture.completions[i].peer == i % PEERS, "%u", fixture.completions[i].peer);
        check_slot(&fixture, i, i != 4 && i != 7);
    }
    fixture_close(&fixture);
}

TEST(scope_exit_order)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture.writes[4].remote.rkey ^= 0x33333333; /* this fails write 7 to the same peer as well */
    fixture.writes[2].remote.rkey ^= 0x33333333; /* this fails writes 5 and 8 as well */
    struct sluice_scope *scope = fixture_begin(&fixture);
    require_result(sluice_scope_post_scatter_write(scope, fixture.writes, 9, NULL), 9);
    fixture.report.said = -EDOM;
    require_result(sluice_scope_end(scope, &fixture.report), -EDOM);
    static const uint32_t failed[] = {2, 4, 5, 7, 8};
    require(fixture.report.count == COUNT(failed) && fixture.report.said == -EDOM, "%u",
            fixture.report.count);
    for (uint32_t i = 0; i < COUNT(failed); i++) {
        require(fixture.completions[i].user_data == 100 + failed[i],
                "failure %u is of request %llu", i,
                (unsigned long long)fixture.completions[i].user_data - 100);
    }
    for (uint32_t i = 0; i < 9; i++) {
        check_slot(&fixture, i, i < 2 || i == 3 || i == 6);
    }
    fixture_close(&fixture);
}

TEST(polled_error_is_delivered)
{
    struct fixture fixture;
    struct sluice_completion completion;
    fixture_open(&fixture);
    fixture.writes[1].remote.rkey ^= 0x33333333;
    struct sluice_scope *scope = fixture_begin(&fixture);
    require_result(sluice_scope_post_scatter_write(scope, fixture.writes, 3, fixture.handles), 3);
    require_ok(sluice_scope_wait(scope, &fixture.handles[1], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_ACCESS);
    require_ok(sluice_scope_end(scope, &fixture.report));
    require(fixture.report.failed == 0 && fixture.report.unseen == 2, "%u", fixture.report.unseen);
    fixture_close(&fixture);
}

TEST(strict_scope)
{
    struct fixture fixture;
    struct sluice_completion completion;
    fixture_open(&fixture);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
    fixture.report.flags = SLUICE_SCOPE_STRICT;
    struct sluice_scope *scope = fixture_begin(&fixture);
    require_result(sluice_scope_post(scope, &receive, 1, fixture.handles), 1);
    require_result(sluice_scope_post(scope, fixture.writes, 3, fixture.handles + 1), 3);
    /* A wait that finds no result yet does not count. */
    require_result(sluice_scope_wait(scope, &fixture.handles[0], 0, &completion), -ETIMEDOUT);
    require_ok(sluice_scope_wait(scope, &fixture.handles[2], DEADLINE, &completion));
    post(fixture.star.spokes[0], &send);
    require_error(sluice_scope_end(scope, &fixture.report), -EBUSY, "3 of 4");
    require(fixture.report.unseen == 3 && fixture.report.failed == 0 &&
                fixture.report.error == -EBUSY,
            "%u", fixture.report.unseen);
    for (uint32_t i = 0; i < 3; i++) {
        check_slot(&fixture, i, true);
    }
    fixture_close(&fixture);
}

int main(void)
{
    return run_tests("semantics", 30);
}
