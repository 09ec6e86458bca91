/* SPDX-License-Identifier: MIT */
/*
 * Failures of requests: each request ends once, with an error of the right class; the first error
 * of a peer is kept as its cause; other peers are unaffected.
 */
#include <stdio.h>

#include "../support/iwarp.h"
#include "../support/pair.h"
#include "../support/process.h"

#define LENGTH 1000

/* A star of 3, with memory. */
struct fixture {
    struct star star;
    struct memory near, far;
    struct sluice_sge near_sge, far_sge;
};

static void fixture_open(struct fixture *fixture)
{
    star_open(&fixture->star, 3, NULL);
    memory_open(&fixture->near, fixture->star.sides.pds[0], LENGTH);
    memory_open(&fixture->far, fixture->star.sides.pds[1], LENGTH);
    fixture->near_sge = memory_sge(&fixture->near, 0, LENGTH);
    fixture->far_sge = memory_sge(&fixture->far, 0, LENGTH);
}

static void fixture_close(struct fixture *fixture)
{
    star_works(&fixture->star, 0);
    star_works(&fixture->star, 2);
    memory_close(&fixture->near);
    memory_close(&fixture->far);
    star_close(&fixture->star);
}

/* Requires the status, class and cause of a request that was refused or cancelled. */
static void require_cancelled(const struct sluice_completion *completion, uint32_t cause)
{
    require_class(completion, SLUICE_CLASS_CANCELLED);
    require_equal(completion->status, SLUICE_STATUS_WR_FLUSH_ERR, completion->cause, cause);
}

TEST(receive_too_small)
{
    struct fixture fixture;
    static const uint32_t lengths[] = {0, 1, 999};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        fixture_open(&fixture);
        struct sluice_sge sge = memory_sge(&fixture.far, 0, lengths[i]);
        struct sluice_handle handle = post_of(fixture.star.spokes[1], SLUICE_OP_RECEIVE, &sge);
        require_result(
            sluice_multichannel_send(fixture.star.hub, 1, &fixture.near_sge, 1, DEADLINE),
            -EMSGSIZE);
        await(fixture.star.spokes[1], handle, SLUICE_CLASS_TRUNCATED);
        require(peer_error(fixture.star.hub, 1).error_class == SLUICE_CLASS_TRUNCATED, "%s",
                peer_error(fixture.star.hub, 1).text);
        struct sluice_error error = channel_error(fixture.star.spokes[1]);
        require(error.error_class == SLUICE_CLASS_TRUNCATED && error.error == -EMSGSIZE &&
                    error.opcode == SLUICE_OP_RECEIVE,
                "%s", error.text);
        /* Only the software transport has the length of a message that does not fit. */
        char words[80];
        snprintf(words, sizeof(words), "message has 1000 bytes, and the receive posted for it %u",
                 lengths[i]);
        if (device_is_soft())
            require_words(error.text, words);
        require_result(sluice_channel_state(fixture.star.spokes[1]), SLUICE_STATE_FAILED);
        require_result(sluice_multichannel_peer_state(fixture.star.hub, 1), SLUICE_STATE_FAILED);
        value_check(fixture.far.bytes + lengths[i], LENGTH - lengths[i], 0);
        fixture_close(&fixture);
    }
}

/* Without a receive the send ends at its deadline. */
TEST_WITH(fixture, no_receive_until_the_deadline, ())
{
    struct span start = span_begin();
    require_result(
        sluice_multichannel_send(fixture->star.hub, 1, &fixture->near_sge, 1, SLUICE_MS(100)),
        -ETIMEDOUT);
    struct span took = span_since(start);
    require_took(took, SLUICE_MS(100), SLUICE_MS(1400));
    struct sluice_error error = peer_error(fixture->star.hub, 1);
    require(error.status == SLUICE_STATUS_DEADLINE && error.error_class == SLUICE_CLASS_TIMEOUT &&
                error.opcode == SLUICE_OP_SEND,
            "%s", error.text);
    require_result(sluice_multichannel_peer_state(fixture->star.hub, 1), SLUICE_STATE_FAILED);
}

TEST_WITH(fixture, no_message_until_the_deadline, ())
{
    struct sluice_completion completion;
    int64_t start = clock_now();
    require_result(sluice_channel_receive(fixture->star.spokes[1], &fixture->far_sge, 1,
                                          SLUICE_MS(50), &completion),
                   -ETIMEDOUT);
    require(clock_now() - start >= SLUICE_MS(50), "%lld ns", (long long)(clock_now() - start));
    require_class(&completion, SLUICE_CLASS_TIMEOUT);
    require(completion.status == SLUICE_STATUS_DEADLINE, "%u", completion.status);
    require(channel_error(fixture->star.spokes[1]).status == SLUICE_STATUS_DEADLINE, "%s",
            channel_error(fixture->star.spokes[1]).text);
    value_check(fixture->far.bytes, LENGTH, 0);
}

/* One late peer of a scatter: its request times out, the others have arrived. */
TEST_WITH(fixture, late_peer_of_a_scatter_fails_alone, ())
{
    struct sluice_request requests[4];
    struct sluice_completion completions[4];
    struct sluice_handle handles[3];
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &fixture->far_sge);
    handles[0] = post(fixture->star.spokes[0], &receive);
    handles[2] = post(fixture->star.spokes[2], &receive);
    for (uint32_t i = 0; i < 4; i++) {
        requests[i] = request_of(SLUICE_OP_SEND, i % 3, &fixture->near_sge);
        requests[i].user_data = i;
    }
    requests[3].peer = 1;
    /* Long enough for the others on a machine that stalls for some time. */
    require_result(
        sluice_multichannel_scatter_send(fixture->star.hub, requests, 4, SLUICE_S(5), completions),
        -ETIMEDOUT);
    for (uint32_t i = 0; i < 4; i++) {
        require(completions[i].user_data == i && completions[i].peer == requests[i].peer, "%u", i);
    }
    require_class(&completions[0], SLUICE_CLASS_NONE);
    require_class(&completions[1], SLUICE_CLASS_TIMEOUT);
    require_class(&completions[2], SLUICE_CLASS_NONE);
    require_class(&completions[3], SLUICE_CLASS_TIMEOUT);
    await(fixture->star.spokes[0], handles[0], SLUICE_CLASS_NONE);
    await(fixture->star.spokes[2], handles[2], SLUICE_CLASS_NONE);
}

/* When a deadline passes, the other requests with that peer are cancelled. */
TEST_WITH(fixture, deadline_cancels_other_work_of_its_peer, ())
{
    struct sluice_handle parked[2];
    struct sluice_completion completion;
    for (uint32_t i = 0; i < 2; i++) {
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, i, &fixture->near_sge);
        require_result(
            sluice_multichannel_post(fixture->star.hub, &receive, 1, DEADLINE, &parked[i]), 1);
    }
    require_result(
        sluice_multichannel_send(fixture->star.hub, 1, &fixture->near_sge, 1, SLUICE_MS(30)),
        -ETIMEDOUT);
    require_ok(sluice_multichannel_wait(fixture->star.hub, &parked[1], 0, &completion));
    require_cancelled(&completion, SLUICE_STATUS_DEADLINE);
    /* The request with the other peer is still pending. */
    require_result(sluice_multichannel_wait(fixture->star.hub, &parked[0], 0, &completion),
                   -ETIMEDOUT);
    require_ok(sluice_channel_send(fixture->star.spokes[0], &fixture->far_sge, 1, DEADLINE));
    require_ok(sluice_multichannel_wait(fixture->star.hub, &parked[0], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
}

/* The deadline of posted requests takes effect when the program calls the library. */
TEST_WITH(pair, deadline_of_posted_work, (NULL))
{
    struct sluice_handle handle;
    struct sluice_completion completion;
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    require_result(sluice_channel_post(pair->channels[0], &receive, 1, SLUICE_MS(20), &handle), 1);
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_READY);
    require_ok(sluice_channel_wait(pair->channels[0], &handle, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_TIMEOUT);
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_FAILED);
}

/* A wait that times out changes nothing. */
TEST_WITH(pair, timeout_of_a_wait_is_harmless, (NULL))
{
    struct sluice_completion completion;
    struct sluice_handle handle = post_of(pair->channels[0], SLUICE_OP_RECEIVE, NULL);
    for (int i = 0; i < 5; i++) {
        int64_t timeout = i == 0 ? 0 : SLUICE_MS(10);
        int64_t start = clock_now();
        memset(&completion, 0xcc, sizeof(completion));
        require_result(sluice_channel_wait(pair->channels[0], &handle, timeout, &completion),
                       -ETIMEDOUT);
        value_check(&completion, sizeof(completion), 0xcc);
        require(clock_now() - start >= timeout, "%lld ns", (long long)(clock_now() - start));
        require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_READY);
    }
    require_ok(sluice_channel_send_immediate(pair->channels[1], NULL, 0, 77, DEADLINE));
    completion = await(pair->channels[0], handle, SLUICE_CLASS_NONE);
    require(completion.immediate == 77, "%u", completion.immediate);
}

/* A failed peer refuses requests of each kind, with the reason. */
TEST_WITH(fixture, failed_peer_refuses_work, ())
{
    struct sluice_request requests[3];
    struct sluice_completion completions[3];
    struct sluice_handle handles[3];
    struct sluice_multichannel *hub = fixture->star.hub;
    star_break(&fixture->star, 1);
    uint32_t cause = peer_error(hub, 1).status;
    require_error(sluice_multichannel_send(hub, 1, &fixture->near_sge, 1, DEADLINE), -ENOTCONN,
                  "1");
    require_error(sluice_multichannel_receive(hub, 1, &fixture->near_sge, 1, DEADLINE, completions),
                  -ENOTCONN, "1");
    struct sluice_remote_mr remote = memory_remote(&fixture->far, 0, LENGTH);
    for (uint32_t i = 0; i < 3; i++) {
        requests[i] = request_of(SLUICE_OP_WRITE, i, &fixture->near_sge);
        requests[i].remote = remote;
    }
    require_result(sluice_multichannel_submit(hub, requests, 3, DEADLINE, completions), -ENOTCONN);
    require_class(&completions[0], SLUICE_CLASS_NONE);
    require_cancelled(&completions[1], cause);
    require(completions[1].error == -ENOTCONN, "%d", completions[1].error);
    require_class(&completions[2], SLUICE_CLASS_NONE);

    memset(handles, 0xcc, sizeof(handles));
    require_result(sluice_multichannel_post(hub, requests, 3, DEADLINE, handles), 1);
    require_error(sluice_multichannel_post(hub, requests + 1, 2, DEADLINE, handles + 1), -ENOTCONN,
                  "peer 1");
    value_check(handles + 1, 2 * sizeof(handles[0]), 0xcc);
    require_ok(sluice_multichannel_next(hub, DEADLINE, completions));
    require_class(&completions[0], SLUICE_CLASS_NONE);
    require_result(sluice_multichannel_next(hub, DEADLINE, completions), -ENOENT);

    struct sluice_scope *scope = sluice_multichannel_scope_begin(hub, DEADLINE);
    require_result(sluice_scope_post(scope, requests, 3, handles), 3);
    require_ok(sluice_scope_wait(scope, &handles[1], DEADLINE, &completions[1]));
    require_cancelled(&completions[1], cause);
    require_ok(sluice_scope_end(scope, NULL));
    /* The cause is what it was. */
    require(peer_error(hub, 1).status == cause, "%s", peer_error(hub, 1).text);
}

/* The call returns the root failure, not the cancellations around it. */
TEST(submit_returns_the_first_real_failure)
{
    struct fixture fixture;
    struct sluice_request requests[4];
    struct sluice_completion completions[4];
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    struct sluice_remote_mr remote = memory_remote(&fixture.far, 0, LENGTH);
    star_break(&fixture.star, 0);
    for (uint32_t i = 0; i < 4; i++) {
        requests[i] = request_of(SLUICE_OP_WRITE, 1, &fixture.near_sge);
        requests[i].remote = remote;
    }
    requests[0].peer = 0;                   /* refused: -ENOTCONN */
    requests[1].opcode = SLUICE_OP_RECEIVE; /* cancelled because of the next one */
    requests[2].remote.rkey ^= 0x11111111;
    require_result(sluice_multichannel_submit(hub, requests, 4, DEADLINE, completions), -EACCES);
    require(completions[0].error == -ENOTCONN, "%d", completions[0].error);
    require_class(&completions[2], SLUICE_CLASS_ACCESS);
    require_cancelled(&completions[1], completions[2].status);
    require_cancelled(&completions[3], completions[2].status);
    value_check(fixture.far.bytes, LENGTH, 0);
    /* All are cancelled: the result is that of the first. */
    require_result(sluice_multichannel_submit(hub, requests, 4, DEADLINE, completions), -ENOTCONN);
    memory_close(&fixture.near);
    memory_close(&fixture.far);
    star_close(&fixture.star);
}

/* The first error of a channel is kept, and returned with the flushes after it. */
TEST_WITH(pair, first_error_is_kept, (NULL))
{
    struct sluice_handle handles[5];
    struct sluice_error none = {.size = sizeof(none)};
    struct memory memory = side_memory(&pair->sides, 0, 64);
    require_ok(sluice_channel_error(pair->channels[0], &none));
    require(none.status == 0 && none.error == 0 && none.error_class == 0, "%s", none.text);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    struct sluice_request requests[5];
    for (int i = 0; i < 5; i++) {
        requests[i] = request_of(i == 0 ? SLUICE_OP_WRITE : SLUICE_OP_SEND, 0, &sge);
    }
    requests[0].remote =
        (struct sluice_remote_mr){.addr = sge.addr, .length = 64, .rkey = 0x77777777};
    requests[4].opcode = SLUICE_OP_RECEIVE;
    require_result(sluice_channel_post(pair->channels[0], requests, 5, DEADLINE, handles), 5);
    struct sluice_completion first = await(pair->channels[0], handles[0], SLUICE_CLASS_ACCESS);
    for (int i = 1; i < 5; i++) {
        struct sluice_completion completion =
            await(pair->channels[0], handles[i], SLUICE_CLASS_CANCELLED);
        require_equal(completion.cause, first.status, completion.error, -ECANCELED);
    }
    require_error(sluice_channel_send(pair->channels[0], &sge, 1, DEADLINE), -ENOTCONN, "");
    struct sluice_error error = channel_error(pair->channels[0]);
    require(error.status == first.status && error.opcode == SLUICE_OP_WRITE &&
                error.error_class == SLUICE_CLASS_ACCESS && error.peer == 0,
            "%s", error.text);
}

/*
 * Closing an end ends a parked receive of the peer, whichever side connects and whether they were
 * connected already.
 */
TEST(peer_of_a_closed_end_notices)
{
    if (!device_is_soft()) {
        return; /* soft-RoCE does not notify an idle peer */
    }
    for (int i = 0; i < 12; i++) {
        struct pair pair;
        struct sluice_completion completion;
        pair_open(&pair, NULL);
        if (i % 3 == 0) {
            pair_works(&pair);
        }
        struct sluice_handle handle = post_of(pair.channels[1], SLUICE_OP_RECEIVE, NULL);
        sluice_channel_close(pair.channels[0]);
        pair.channels[0] = NULL;
        require_ok(sluice_channel_wait(pair.channels[1], &handle, DEADLINE / 2, &completion));
        require_class(&completion, SLUICE_CLASS_PEER_LOST);
        require_result(sluice_channel_state(pair.channels[1]), SLUICE_STATE_FAILED);
        pair_close(&pair);
    }
}

/*
 * With limited retries the device gives up by itself; soft has none, so the deadline ends the send.
 * The class is the same, and no data arrive.
 */
TEST_WITH(pair, no_receive_until_the_last_retry, (ATTR(.rnr_timer = 1, .rnr_retry = 2)))
{
    uint32_t status = device_is_soft() ? SLUICE_STATUS_DEADLINE : SLUICE_STATUS_RNR_RETRY_EXC_ERR;
    struct memory memory = side_memory(&pair->sides, 0, 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    int64_t deadline = device_is_soft() ? SLUICE_MS(100) : DEADLINE;
    require_result(sluice_channel_send(pair->channels[0], &sge, 1, deadline), -ETIMEDOUT);
    require(channel_error(pair->channels[0]).status == status, "%s",
            channel_error(pair->channels[0]).text);
}

/* The queue pair of the endpoint is gone before the connection. */
TEST_WITH(sides, endpoint_of_nobody, ())
{
    const struct sluice_channel_attr attr = *ATTR(.ack_timeout = 12, .retry_count = 3);
    struct sluice_endpoint ours, theirs;
    struct sluice_handle handles[2];
    struct sluice_prepared_channel *prepared = prepare_channel(sides->pds[0], &attr, &ours);
    sluice_prepared_channel_free(prepare_channel(sides->pds[1], &attr, &theirs));
    struct sluice_channel *channel = made(sluice_prepared_channel_handshake(prepared, &theirs));
    for (int i = 0; i < 2; i++) {
        handles[i] = post_of(channel, SLUICE_OP_SEND, NULL);
    }
    await(channel, handles[0], SLUICE_CLASS_PEER_LOST);
    await(channel, handles[1], SLUICE_CLASS_CANCELLED);
    sluice_channel_close(channel);
}

/* The state of a peer is told, whatever the deadline is: one of 0 has not passed for it. */
TEST_WITH(star, peer_that_is_not_connected, (2, NULL))
{
    struct sluice_multichannel *hub = star->hub;
    struct sluice_completion completion;
    struct sluice_endpoint endpoint;
    struct sluice_request send = request_of(SLUICE_OP_SEND, 1, NULL);
    if (device_is_iwarp()) { /* it resets nothing */
        return;
    }
    require_ok(sluice_multichannel_peer_reset(hub, 1, &endpoint));
    require_error(sluice_multichannel_send(hub, 1, NULL, 0, 0), -ENOTCONN, "1");
    require_result(sluice_multichannel_submit(hub, &send, 1, 0, &completion), -ENOTCONN);
    require(completion.error == -ENOTCONN, "%d", completion.error);
    require_error(sluice_multichannel_send(hub, 0, NULL, 0, 0), -ETIMEDOUT, "");
}

int main(void)
{
    return run_tests("errors", 30);
}
