/* SPDX-License-Identifier: MIT */
/* Handles, results that are never read, and full queues. */
#include <stdlib.h>

#include "../../support/process.h"
#include "fixture.h"

TEST(double_poll)
{
    struct fixture fixture;
    struct sluice_completion again;
    fixture_open(&fixture);
    fixture.writes[1].remote.rkey ^= 0x33333333;
    require_result(
        sluice_multichannel_post(fixture.star.hub, fixture.writes, 2, DEADLINE, fixture.handles),
        2);
    poll_hub(&fixture, 2);
    for (uint32_t i = 0; i < 4; i++) {
        memset(&again, 0xcc, sizeof(again));
        require_ok(sluice_multichannel_wait(fixture.star.hub, &fixture.handles[i % 2], 0, &again));
        const struct sluice_completion *first =
            &fixture.completions[fixture.completions[0].user_data == 100 + i % 2 ? 0 : 1];
        require(memcmp(&again, first, sizeof(again)) == 0, "handle %u", i % 2);
    }
    require_result(sluice_multichannel_poll(fixture.star.hub, &again, 1), 0);
    fixture_close(&fixture);
}

/* Neither dropping nor detaching the handle of a pending receive waits for a message. */
TEST(dropped_handle)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    int64_t start = fair_now();
    require_result(
        sluice_multichannel_post(fixture.star.hub, &receive, 1, SLUICE_S(15), fixture.handles), 1);
    require_result(sluice_multichannel_post(fixture.star.hub, &receive, 1, SLUICE_S(15), NULL), 1);
    require_ok(sluice_multichannel_detach(fixture.star.hub, &fixture.handles[0]));
    int64_t took = fair_now() - start;
    require(took < SLUICE_S(5), "%lld ms", (long long)took / 1000000);
    require_error(
        sluice_multichannel_wait(fixture.star.hub, &fixture.handles[0], 0, &fixture.completions[0]),
        -ESTALE, "");
    /* The receives take their messages all the same; the detached one reports no result. */
    require_ok(sluice_channel_send(fixture.star.spokes[0], NULL, 0, DEADLINE));
    require_ok(sluice_channel_send_immediate(fixture.star.spokes[0], NULL, 0, 7, DEADLINE));
    poll_hub(&fixture, 1);
    require(fixture.completions[0].immediate == 7, "%u", fixture.completions[0].immediate);
    require_result(sluice_multichannel_poll(fixture.star.hub, fixture.completions, 1), 0);
    fixture_close(&fixture);
}

/* Thousands of unread results: there is always room for the next request. */
TEST(forgotten_handles)
{
    struct fixture fixture;
    fixture_open(&fixture);
    uint32_t posted = 0;
    for (int64_t limit = clock_now() + DEADLINE; posted < 5000 && clock_now() < limit;) {
        int result = sluice_multichannel_post(fixture.star.hub, &fixture.writes[posted % PEERS], 1,
                                              DEADLINE, fixture.handles);
        require(result == 1 || result == -EAGAIN, "%d: %s", result, sluice_last_error());
        posted += result == 1;
    }
    require(posted == 5000, "%u", posted);
    require_ok(sluice_multichannel_flush(fixture.star.hub, DEADLINE));
    /* A failure is not dropped for later successes. */
    fixture.writes[1].remote.rkey ^= 0x33333333;
    require_result(
        sluice_multichannel_post(fixture.star.hub, &fixture.writes[1], 1, DEADLINE, NULL), 1);
    for (posted = 0; posted < 500; posted++) {
        require_result(
            sluice_multichannel_post(fixture.star.hub, fixture.writes, 1, DEADLINE, NULL), 1);
        require_ok(sluice_multichannel_flush(fixture.star.hub, DEADLINE));
    }
    uint32_t failures = 0;
    uint32_t results = 0;
    while (sluice_multichannel_poll(fixture.star.hub, fixture.completions, 1) == 1) {
        failures += fixture.completions[0].error != 0;
        results++;
    }
    require(failures == 1 && results <= 2 * PEERS * DEPTH + 1, "%u failures of %u results",
            failures, results);
    fixture_close(&fixture);
}

TEST(handle_outlives_its_channel)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle handle = post(fixture.star.spokes[2], &receive);
    int64_t start = fair_now();
    sluice_channel_close(fixture.star.spokes[2]);
    fixture.star.spokes[2] = NULL;
    int64_t took = fair_now() - start;
    require(took < SLUICE_MS(1500), "%lld ms", (long long)took / 1000000);
    require_error(
        sluice_channel_wait(fixture.star.spokes[1], &handle, DEADLINE, &fixture.completions[0]),
        -ESTALE, "");
    /* The same holds for handles of a scope whose channel was closed while it was open. */
    struct sluice_scope *scope = sluice_channel_scope_begin(fixture.star.spokes[1], DEADLINE);
    require_ok(sluice_scope_post_receive(scope, 0, NULL, 0, &handle));
    sluice_channel_close(fixture.star.spokes[1]);
    fixture.star.spokes[1] = NULL;
    require_error(sluice_scope_wait(scope, &handle, DEADLINE, &fixture.completions[0]), -EINVAL,
                  "closed");
    require_result(sluice_scope_end(scope, &fixture.report), -ECANCELED);
    require(fixture.report.posted == 1 && fixture.report.failed == 1, "%u", fixture.report.failed);
    fixture_close(&fixture);
}

static int compare_ids(const void *left, const void *right)
{
    const struct sluice_handle *one = left;
    const struct sluice_handle *other = right;
    return one->id < other->id ? -1 : one->id > other->id;
}

/* Ids of sends and receives, scoped, unpolled and refused, come from one space. */
TEST(request_ids)
{
    enum { ROUNDS = 500 };
    static struct sluice_handle handles[4 * ROUNDS];
    struct fixture fixture;
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    star_break(&fixture.star, 2);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct sluice_handle *four = &handles[(size_t)4 * i];
        require_ok(sluice_multichannel_write_unpolled(
            hub, 0, fixture.sges, 1, &fixture.writes[0].remote, DEADLINE, &four[0]));
        require_ok(sluice_multichannel_flush(hub, DEADLINE));
        struct sluice_scope *scope = fixture_begin(&fixture);
        require_ok(sluice_scope_post_receive(scope, 1, NULL, 0, &four[1]));
        require_ok(sluice_scope_post_write(scope, 1, fixture.sges, 1, &fixture.writes[0].remote,
                                           &four[2]));
        require_ok(sluice_scope_post_send(scope, 2, NULL, 0, &four[3]));
        struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
        require_result(sluice_channel_post(fixture.star.spokes[1], &send, 1, DEADLINE, NULL), 1);
        require_result(sluice_scope_end(scope, NULL), -ENOTCONN);
        require_ok(sluice_channel_flush(fixture.star.spokes[1], DEADLINE));
    }
    qsort(handles, COUNT(handles), sizeof(handles[0]), compare_ids);
    require(handles[0].id != 0, "an id of %u", 0);
    for (size_t i = 1; i < COUNT(handles); i++) {
        require(handles[i - 1].id != handles[i].id, "id %llx came twice",
                (unsigned long long)handles[i].id);
    }
    fixture_close(&fixture);
}

TEST(full_queues)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct sluice_request sends[3 * DEPTH];
    struct sluice_request receives[3 * DEPTH];
    for (uint32_t i = 0; i < 3 * DEPTH; i++) {
        sends[i] = request_of(SLUICE_OP_SEND, 1, NULL);
        receives[i] = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    }
    /* As many requests as fit are posted, then none. None is lost, and the peer stays ready. */
    require_result(
        sluice_multichannel_post(fixture.star.hub, sends, 3 * DEPTH, DEADLINE, fixture.handles),
        DEPTH);
    require_result(sluice_multichannel_post(fixture.star.hub, sends, 1, DEADLINE, fixture.handles),
                   -EAGAIN);
    require_result(sluice_multichannel_peer_state(fixture.star.hub, 1), SLUICE_STATE_READY);
    require_result(sluice_channel_post(fixture.star.spokes[1], receives, DEPTH, DEADLINE, NULL),
                   DEPTH);
    require_ok(sluice_multichannel_flush(fixture.star.hub, DEADLINE));
    /* Blocking and scoped calls wait for room. */
    for (uint32_t i = 0; i < SLOTS; i++) {
        fixture.writes[i].peer = 1;
    }
    require_ok(sluice_multichannel_scatter_write(fixture.star.hub, fixture.writes, SLOTS / 2,
                                                 DEADLINE, fixture.completions));
    struct sluice_scope *scope = fixture_begin(&fixture);
    require_result(sluice_scope_post(scope, fixture.writes + SLOTS / 2, SLOTS / 2, NULL),
                   SLOTS / 2);
    require_ok(sluice_scope_end(scope, &fixture.report));
    require(fixture.report.posted == SLOTS / 2, "%u", fixture.report.posted);
    for (uint32_t i = 0; i < SLOTS; i++) {
        check_slot(&fixture, i, true);
    }
    fixture_close(&fixture);
}

TEST(completion_queue_never_overruns)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
    for (uint32_t i = 0; i < PEERS * DEPTH; i++) {
        receive.peer = fixture.writes[i].peer;
        receive.user_data = 500 + i;
        require_result(sluice_multichannel_post(fixture.star.hub, &receive, 1, DEADLINE, NULL), 1);
        require_result(
            sluice_channel_post(fixture.star.spokes[receive.peer], &send, 1, DEADLINE, NULL), 1);
        require_result(
            sluice_multichannel_post(fixture.star.hub, &fixture.writes[i], 1, DEADLINE, NULL), 1);
    }
    /* All of them complete while the hub does not poll. */
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_channel_flush(fixture.star.spokes[i], DEADLINE));
    }
    uint32_t seen[2] = {0, 0};
    poll_hub(&fixture, 2 * PEERS * DEPTH);
    for (uint32_t i = 0; i < 2 * PEERS * DEPTH; i++) {
        require_class(&fixture.completions[i], SLUICE_CLASS_NONE);
        uint64_t data = fixture.completions[i].user_data;
        seen[data >= 500] |= UINT32_C(1) << (data >= 500 ? data - 500 : data - 100);
    }
    require(seen[0] == (1 << PEERS * DEPTH) - 1 && seen[1] == seen[0], "%x, %x", seen[0], seen[1]);
    for (uint32_t i = 0; i < PEERS; i++) {
        star_works(&fixture.star, i);
    }
    fixture_close(&fixture);
}
