/* SPDX-License-Identifier: MIT */
/*
 * Deadlines that have passed before a call begins: a program that passes its remaining time passes
 * 0 in the end. Then nothing is posted, each request ends with status DEADLINE, and no connection
 * is harmed.
 */
#include "../support/pair.h"

#define REQUESTS 6

/* Memory on both sides of a star, which no request may change. */
struct stand {
    struct star star;
    struct memory near, far;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    bool atomics;
};

static void stand_open(struct stand *stand)
{
    star_open(&stand->star, 3, NULL);
    memory_open(&stand->near, stand->star.sides.pds[0], 64);
    memory_open(&stand->far, stand->star.sides.pds[1], 64);
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
static void stand_close(struct stand *stand, uint32_t failed)
{
    value_check(stand->near.bytes, 64, 1);
    value_check(stand->far.bytes, 64, 2);
    memory_close(&stand->near);
    memory_close(&stand->far);
    for (uint32_t i = 0; i < stand->star.peers; i++) {
        if (i != failed) {
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

TEST(blocking_calls_of_a_multichannel)
{
    struct stand stand;
    struct sluice_completion completion = {0};
    stand_open(&stand);
    struct sluice_multichannel *hub = stand.star.hub;
    const struct sluice_sge *sge = &stand.sge;
    require_expired(sluice_multichannel_send(hub, 0, sge, 1, 0));
    require_expired(sluice_multichannel_send_immediate(hub, 1, sge, 1, 7, 0));
    require_expired(sluice_multichannel_receive(hub, 2, sge, 1, 0, &completion));
    check_expired(&completion, 1);
    require_equal(completion.peer, 2, completion.opcode, SLUICE_OP_RECEIVE);
    require_expired(sluice_multichannel_receive(hub, 2, sge, 1, 0, NULL));
    require_expired(sluice_multichannel_write(hub, 0, sge, 1, &stand.remote, 0));
    require_expired(sluice_multichannel_write_immediate(hub, 1, sge, 1, &stand.remote, 7, 0));
    require_expired(sluice_multichannel_read(hub, 2, sge, 1, &stand.remote, 0));
    if (stand.atomics) {
        require_expired(sluice_multichannel_compare_swap(hub, 0, sge, &stand.remote, 1, 2, 0));
        require_expired(sluice_multichannel_fetch_add(hub, 1, sge, &stand.remote, 1, 0));
    }
    stand_close(&stand, 3);
}

TEST(blocking_calls_of_a_channel)
{
    struct stand stand;
    struct sluice_completion completion = {0};
    stand_open(&stand);
    struct sluice_channel *channel = stand.star.spokes[1];
    struct sluice_sge sge = memory_sge(&stand.far, 8, 8);
    struct sluice_remote_mr remote = memory_remote(&stand.near, 8, 8);
    require_expired(sluice_channel_send(channel, &sge, 1, 0));
    require_expired(sluice_channel_send_immediate(channel, &sge, 1, 7, 0));
    require_expired(sluice_channel_receive(channel, &sge, 1, 0, &completion));
    check_expired(&completion, 1);
    require_expired(sluice_channel_write(channel, &sge, 1, &remote, 0));
    require_expired(sluice_channel_write_immediate(channel, &sge, 1, &remote, 7, 0));
    require_expired(sluice_channel_read(channel, &sge, 1, &remote, 0));
    if (stand.atomics) {
        require_expired(sluice_channel_compare_swap(channel, &sge, &remote, 1, 2, 0));
        require_expired(sluice_channel_fetch_add(channel, &sge, &remote, 1, 0));
    }
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
    stand_close(&stand, 3);
}

TEST(blocking_lists)
{
    struct stand stand;
    struct sluice_request requests[REQUESTS];
    struct sluice_completion completions[REQUESTS];
    const uint32_t peers[] = {0, 2};
    stand_open(&stand);
    struct sluice_multichannel *hub = stand.star.hub;
    const struct sluice_peer_remote_mr remotes[] = {{.peer = 1, .remote = stand.remote},
                                                    {.peer = 0, .remote = stand.remote}};
    uint32_t count = make_requests(&stand, requests);
    memset(completions, 0xcc, sizeof(completions));
    require_expired(sluice_multichannel_submit(hub, requests, count, 0, completions));
    check_expired(completions, count);
    for (uint32_t i = 0; i < count; i++) {
        require_equal(completions[i].user_data, 100 + i, completions[i].peer, i % 3,
                      completions[i].opcode, requests[i].opcode);
    }
    require_expired(sluice_multichannel_submit(hub, requests, count, 0, NULL));
    require_ok(sluice_multichannel_submit(hub, requests, 0, 0, NULL));

    memset(completions, 0xcc, sizeof(completions));
    require_expired(sluice_multichannel_scatter_send(hub, &requests[0], 1, 0, &completions[0]));
    require_expired(sluice_multichannel_gather_receive(hub, &requests[1], 1, 0, &completions[1]));
    require_expired(sluice_multichannel_scatter_write(hub, &requests[2], 1, 0, &completions[2]));
    require_expired(sluice_multichannel_gather_read(hub, &requests[3], 1, 0, &completions[3]));
    check_expired(completions, 4);
    memset(completions, 0xcc, sizeof(completions));
    require_expired(
        sluice_multichannel_scatter_gather(hub, &requests[0], 1, &requests[1], 1, 0, completions));
    require_expired(
        sluice_multichannel_multicast_send(hub, &requests[0], peers, 2, 0, &completions[2]));
    require_expired(
        sluice_multichannel_multicast_write(hub, &requests[2], remotes, 2, 0, &completions[4]));
    check_expired(completions, 6);
    stand_close(&stand, 3);
}

TEST(unpolled_posts)
{
    struct stand stand;
    struct sluice_request requests[REQUESTS];
    struct sluice_handle handles[REQUESTS];
    struct sluice_completion completion;
    stand_open(&stand);
    struct sluice_multichannel *hub = stand.star.hub;
    uint32_t count = make_requests(&stand, requests);
    memset(handles, 0xcc, sizeof(handles));
    require_expired(sluice_multichannel_post(hub, requests, count, 0, handles));
    require_expired(sluice_multichannel_post(hub, requests, 1, 0, handles));
    require_expired(sluice_multichannel_post(hub, requests + 1, 1, 0, handles));
    require_expired(sluice_multichannel_send_unpolled(hub, 0, &stand.sge, 1, 0, handles));
    require_expired(sluice_multichannel_receive_unpolled(hub, 0, &stand.sge, 1, 0, handles));
    require_expired(
        sluice_multichannel_write_unpolled(hub, 0, &stand.sge, 1, &stand.remote, 0, handles));
    require_expired(
        sluice_multichannel_read_unpolled(hub, 0, &stand.sge, 1, &stand.remote, 0, handles));
    if (stand.atomics) {
        require_expired(sluice_multichannel_fetch_add_unpolled(hub, 0, &stand.sge, &stand.remote, 1,
                                                               0, handles));
    }
    require_expired(sluice_multichannel_scatter_send_unpolled(hub, requests, 1, 0, handles));
    require_expired(sluice_channel_send_unpolled(stand.star.spokes[0], NULL, 0, 0, handles));
    value_check(handles, sizeof(handles), 0xcc);
    require_result(sluice_multichannel_post(hub, requests, 0, 0, NULL), 0);
    require_result(sluice_multichannel_next(hub, 0, &completion), -ENOENT);
    stand_close(&stand, 3);
}

static struct sluice_scope_report report_of(void)
{
    return (struct sluice_scope_report){.size = sizeof(struct sluice_scope_report)};
}

TEST(scopes)
{
    struct stand stand;
    struct sluice_request requests[REQUESTS];
    struct sluice_handle handles[REQUESTS];
    struct sluice_completion completion, failures[REQUESTS];
    struct sluice_scope_report report = report_of();
    stand_open(&stand);
    uint32_t count = make_requests(&stand, requests);
    struct sluice_scope *scope = must(sluice_multichannel_scope_begin(stand.star.hub, 0));
    require_result(sluice_scope_post(scope, requests, count, handles), count);
    require_ok(sluice_scope_post_send(scope, 1, &stand.sge, 1, NULL));
    require_ok(sluice_scope_wait(scope, &handles[1], 0, &completion));
    check_expired(&completion, 1);
    require(completion.user_data == 101, "%llu", (unsigned long long)completion.user_data);
    report.failures = failures;
    report.capacity = REQUESTS;
    require_expired(sluice_scope_end(scope, &report));
    require_equal(report.posted, count + 1, report.failed, count, report.count, count);
    check_expired(failures, report.count);

    /* A scope without requests ends well. */
    scope = sluice_multichannel_scope_begin(stand.star.hub, 0);
    require_ok(sluice_scope_end(scope, NULL));
    stand_close(&stand, 3);
}

/*
 * A request that waits in a scope for room finds none before the deadline; requests after that are
 * not posted.
 */
TEST_WITH(star, scope_whose_deadline_was_seen_to_pass, (2, ATTR(.receive_depth = 1)))
{
    struct sluice_handle handles[3];
    struct sluice_completion completion;
    struct sluice_scope *scope = must(sluice_multichannel_scope_begin(star->hub, SLUICE_MS(20)));
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
TEST(results_before_the_deadline)
{
    struct stand stand;
    struct sluice_request requests[2];
    struct sluice_completion completions[2];
    stand_open(&stand);
    struct sluice_multichannel *hub = stand.star.hub;
    require_result(sluice_multichannel_send(hub, 3, &stand.sge, 1, 0), -EINVAL);
    require_result(sluice_multichannel_send(hub, 0, NULL, 1, 0), -EINVAL);
    require_result(sluice_multichannel_send(hub, 0, &stand.sge, 1, -1), -EINVAL);
    require_result(sluice_multichannel_send_unpolled(hub, 3, &stand.sge, 1, 0, NULL), -EINVAL);
    star_break(&stand.star, 1);
    requests[0] = request_of(SLUICE_OP_SEND, 1, &stand.sge);
    requests[1] = request_of(SLUICE_OP_SEND, 2, &stand.sge);
    require_result(sluice_multichannel_submit(hub, requests, 2, 0, completions), -ETIMEDOUT);
    require(completions[0].error == -ENOTCONN, "%d", completions[0].error);
    check_expired(&completions[1], 1);
    require_result(sluice_multichannel_send(hub, 1, &stand.sge, 1, 0), -ENOTCONN);
    require_result(sluice_multichannel_post(hub, requests, 2, 0, NULL), -ENOTCONN);
    stand_close(&stand, 1);
}

/* Requests with time go on beside requests without. */
TEST(other_work_goes_on)
{
    struct stand stand;
    struct sluice_handle handles[2];
    struct sluice_completion completion;
    stand_open(&stand);
    struct sluice_multichannel *hub = stand.star.hub;
    struct sluice_channel *spoke = stand.star.spokes[1];
    require_ok(sluice_multichannel_receive_unpolled(hub, 1, NULL, 0, DEADLINE, &handles[0]));
    require_ok(sluice_multichannel_send_unpolled(hub, 1, NULL, 0, DEADLINE, &handles[1]));
    require_expired(sluice_multichannel_send(hub, 1, NULL, 0, 0));
    require_expired(sluice_multichannel_receive(hub, 1, NULL, 0, 0, NULL));
    require_result(sluice_multichannel_wait(hub, &handles[0], 0, &completion), -ETIMEDOUT);
    require_ok(sluice_channel_receive(spoke, NULL, 0, DEADLINE, NULL));
    require_ok(sluice_channel_send(spoke, NULL, 0, DEADLINE));
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_multichannel_wait(hub, &handles[i], DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    stand_close(&stand, 3);
}

int main(void)
{
    return run_tests("deadlines", 30);
}
