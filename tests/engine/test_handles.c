/* SPDX-License-Identifier: MIT */
/*
 * Handles of posted requests: they may be waited for again, cancelled, detached and dropped; they
 * become stale, and never name another request.
 */
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"

#define DEPTH 8

static const struct sluice_channel_attr short_queues = {
    .size = sizeof(short_queues), .send_depth = DEPTH, .receive_depth = DEPTH};

static void send_messages(struct sluice_channel *channel, uint32_t count, uint32_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_channel_send_immediate(channel, NULL, 0, first + i, DEADLINE));
    }
}

static struct sluice_handle post_receive(struct sluice_channel *channel)
{
    return post_of(channel, SLUICE_OP_RECEIVE, NULL);
}

TEST_WITH(pair, handles_are_written_whole, (NULL))
{
    struct sluice_handle handles[2];
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_request receives[2] = {receive, receive};
    memset(handles, 0xcc, sizeof(handles));
    require_result(sluice_channel_post(pair->channels[0], receives, 2, DEADLINE, handles), 2);
    require_result(sluice_channel_post(pair->channels[1], receives, 1, DEADLINE, &handles[1]), 1);
    for (int i = 0; i < 2; i++) {
        require(handles[i].reserved[0] == 0 && handles[i].reserved[1] == 0, "handle %d", i);
    }
}

/* Returns the handle of a receive that is complete and read. */
static struct sluice_handle seen_receive(struct pair *pair)
{
    struct sluice_handle handle = post_receive(pair->channels[0]);
    send_messages(pair->channels[1], 1, 0);
    await(pair->channels[0], handle, SLUICE_CLASS_NONE);
    return handle;
}

TEST(double_wait_gives_the_same_answer)
{
    struct pair pair;
    struct sluice_completion again;
    pair_open(&pair, NULL);
    struct sluice_handle handle = post_receive(pair.channels[0]);
    struct sluice_handle copy = handle;
    send_messages(pair.channels[1], 1, 9);
    struct sluice_completion completion = await(pair.channels[0], handle, SLUICE_CLASS_NONE);
    for (int i = 0; i < 3; i++) {
        memset(&again, 0xcc, sizeof(again));
        require_ok(sluice_channel_wait(pair.channels[0], &copy, 0, &again));
        require(memcmp(&again, &completion, sizeof(again)) == 0, "the answer changed%s", "");
    }
    /* A poll does not return a result that a wait has returned. */
    require_result(sluice_channel_poll(pair.channels[0], &again, 1), 0);
    require_error(sluice_channel_next(pair.channels[0], DEADLINE, &again), -ENOENT, "");
    pair_close(&pair);
}

/* A wait returns a result that was polled before, and a poll does not return it twice. */
TEST_WITH(pair, handle_of_what_was_polled, (NULL))
{
    struct sluice_completion polled, waited;
    struct sluice_handle handle = post_receive(pair->channels[0]);
    send_messages(pair->channels[1], 1, 10);
    require_ok(sluice_channel_next(pair->channels[0], DEADLINE, &polled));
    require_ok(sluice_channel_wait(pair->channels[0], &handle, 0, &waited));
    require(memcmp(&polled, &waited, sizeof(polled)) == 0, "the answer changed%s", "");
    require_result(sluice_channel_poll(pair->channels[0], &waited, 1), 0);
}

/* Requires that all calls with a handle return that it is stale, and write nothing. */
static void require_stale(struct sluice_channel *channel, struct sluice_handle handle)
{
    struct sluice_completion completion;
    memset(&completion, 0xcc, sizeof(completion));
    require_error(sluice_channel_wait(channel, &handle, 0, &completion), -ESTALE, "handle");
    require_error(sluice_channel_wait(channel, &handle, DEADLINE, &completion), -ESTALE, "handle");
    require_error(sluice_channel_cancel(channel, &handle, &completion), -ESTALE, "handle");
    require_error(sluice_channel_detach(channel, &handle), -ESTALE, "handle");
    value_check(&completion, sizeof(completion), 0xcc);
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
}

TEST_WITH(pair, zero_foreign_and_forged_handles, (&short_queues))
{
    struct sluice_handle nothing = {0};
    struct sluice_handle seen = seen_receive(pair);
    struct sluice_handle pending = post_receive(pair->channels[0]);
    require_stale(pair->channels[0], nothing);
    nothing.owner = seen.owner;
    require_stale(pair->channels[0], nothing);
    require_stale(pair->channels[1], seen);
    require_stale(pair->channels[1], pending);
    struct sluice_handle forged = seen;
    forged.id ^= UINT64_C(0x5a5a5a5a00);
    require_stale(pair->channels[0], forged);
    forged.id = UINT64_MAX;
    require_stale(pair->channels[0], forged);
    /* The pending request is unaffected. */
    send_messages(pair->channels[1], 1, 3);
    await(pair->channels[0], pending, SLUICE_CLASS_NONE);
    pair_works(pair);
}

TEST_WITH(pair, handle_is_stale_when_its_place_was_taken, (&short_queues))
{
    struct sluice_handle first = seen_receive(pair);
    for (uint32_t i = 0; i < 8 * DEPTH; i++) {
        seen_receive(pair);
    }
    require_stale(pair->channels[0], first);
}

/* A new channel, perhaps at the same address, does not accept it. */
TEST_WITH(pair, handle_of_a_closed_channel_is_foreign_to_the_next, (&short_queues))
{
    struct sluice_handle seen = seen_receive(pair);
    struct sluice_handle pending = post_receive(pair->channels[0]);
    sluice_channel_close(pair->channels[0]);
    sluice_channel_close(pair->channels[1]);
    pair_connect(pair, &short_queues);
    struct sluice_handle now = post_receive(pair->channels[0]);
    require_stale(pair->channels[0], seen);
    require_stale(pair->channels[0], pending);
    send_messages(pair->channels[1], 1, 3);
    await(pair->channels[0], now, SLUICE_CLASS_NONE);
}

/* After a reset the old results are still there, apart from the new ones. */
TEST_WITH(star, handle_over_a_reset, (2, &short_queues))
{
    struct sluice_completion completion;
    struct sluice_handle before, after;
    require_ok(sluice_multichannel_post_receive(star->hub, 0, NULL, 0, DEADLINE, &before));
    star_reset(star, 0);
    require_ok(sluice_multichannel_wait(star->hub, &before, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_CANCELLED);
    require_ok(sluice_multichannel_post_receive(star->hub, 0, NULL, 0, DEADLINE, &after));
    require_result(sluice_multichannel_wait(star->hub, &after, 0, &completion), -ETIMEDOUT);
    require_ok(sluice_multichannel_cancel(star->hub, &before, &completion));
    require_class(&completion, SLUICE_CLASS_CANCELLED);
    require_result(sluice_multichannel_peer_state(star->hub, 0), SLUICE_STATE_READY);
    send_messages(star->spokes[0], 1, 5);
    require_ok(sluice_multichannel_wait(star->hub, &after, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
}

/* Their results are never asked for, but complete entries do not fill the queue. */
TEST_WITH(pair, dropped_handles_are_harmless, (&short_queues))
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_completion completions[4 * DEPTH];
    for (uint32_t i = 0; i < 20 * DEPTH; i++) {
        receive.user_data = i;
        require_result(sluice_channel_post(pair->channels[0], &receive, 1, DEADLINE, NULL), 1);
        send_messages(pair->channels[1], 1, i);
    }
    /* The newest are still there, oldest first. */
    int count = 0;
    uint64_t last = 0;
    int got;
    do {
        got = sluice_channel_poll(pair->channels[0], completions, COUNT(completions));
        for (int i = 0; i < got; i++) {
            require(count == 0 || completions[i].user_data == last + 1, "%llu after %llu",
                    (unsigned long long)completions[i].user_data, (unsigned long long)last);
            require_equal(completions[i].immediate, completions[i].user_data);
            last = completions[i].user_data;
            count++;
        }
    } while (got > 0);
    require(count > 0 && last == 20 * DEPTH - 1, "%d, last %llu", count, (unsigned long long)last);
    pair_works(pair);
}

/* Dropped failures are not forgotten as successes are. */
TEST_WITH(star, dropped_failures_are_kept, (2, &short_queues))
{
    struct sluice_request receives[4];
    struct sluice_completion completions[8];
    for (uint32_t i = 0; i < 4; i++) {
        receives[i] = request_of(SLUICE_OP_RECEIVE, 1, NULL);
        receives[i].user_data = 40 + i;
    }
    require_result(sluice_multichannel_post(star->hub, receives, 4, DEADLINE, NULL), 4);
    star_break(star, 1);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    for (uint32_t i = 0; i < 10 * DEPTH; i++) {
        require_result(sluice_multichannel_post(star->hub, &receive, 1, DEADLINE, NULL), 1);
        send_messages(star->spokes[0], 1, i);
    }
    uint32_t failures = 0;
    int got;
    do {
        got = sluice_multichannel_poll(star->hub, completions, COUNT(completions));
        for (int i = 0; i < got; i++) {
            failures += completions[i].error != 0;
            require(completions[i].error == 0 || completions[i].user_data >= 40, "%llu",
                    (unsigned long long)completions[i].user_data);
        }
    } while (got > 0);
    require(failures == 4, "%u failures", failures);
}

/* A detached request is executed all the same, and its result is discarded. */
TEST_WITH(pair, detached_request_goes_on, (&short_queues))
{
    struct memory memory;
    struct sluice_completion completion;
    struct sluice_handle handle;
    memory_open(&memory, pair->sides.pds[0], 1000);
    struct sluice_sge sge = memory_sge(&memory, 0, memory.length);
    require_ok(sluice_channel_post_receive(pair->channels[0], &sge, 1, DEADLINE, &handle));
    require_ok(sluice_channel_detach(pair->channels[0], &handle));
    require_stale(pair->channels[0], handle);
    require_error(sluice_channel_next(pair->channels[0], DEADLINE, &completion), -ENOENT, "");
    /* The request's memory is in use until it ends, and flush reports that. */
    require_result(sluice_channel_flush(pair->channels[0], SLUICE_MS(10)), -ETIMEDOUT);
    require_result(sluice_mr_deregister(memory.mr), -EBUSY);
    struct memory far = side_memory(&pair->sides, 1, 1000);
    pattern_fill(far.bytes, far.length, 7);
    struct sluice_sge far_sge = memory_sge(&far, 0, far.length);
    require_ok(sluice_channel_send(pair->channels[1], &far_sge, 1, DEADLINE));
    require_ok(sluice_channel_flush(pair->channels[0], DEADLINE));
    pattern_check(memory.bytes, memory.length, 7);
    require_result(sluice_channel_poll(pair->channels[0], &completion, 1), 0);
    require_stale(pair->channels[0], handle);
    memory_close(&memory);
}

/* A complete result, read or unread, is dropped at once. */
TEST_WITH(pair, detach_of_what_is_complete, (&short_queues))
{
    struct sluice_completion completion;
    struct sluice_handle unseen = post_receive(pair->channels[0]);
    struct sluice_handle other = post_receive(pair->channels[0]);
    send_messages(pair->channels[1], 2, 0);
    require_ok(sluice_channel_flush(pair->channels[0], DEADLINE));
    require_ok(sluice_channel_detach(pair->channels[0], &unseen));
    require_stale(pair->channels[0], unseen);
    require_result(sluice_channel_poll(pair->channels[0], &completion, 1), 1);
    require(completion.immediate == 1, "immediate %u", completion.immediate);
    require_ok(sluice_channel_wait(pair->channels[0], &other, 0, &completion));
    require_ok(sluice_channel_detach(pair->channels[0], &other));
    require_stale(pair->channels[0], other);
    pair_works(pair);
}

/* As with any request, the failure fails the peer of the request, and only that one. */
TEST_WITH(star, detached_request_that_fails, (2, &short_queues))
{
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct memory near = side_memory(&star->sides, 0, 8);
    struct memory far = side_memory(&star->sides, 1, 8);
    struct sluice_sge sge = memory_sge(&near, 0, 8);
    struct sluice_remote_mr remote = memory_remote(&far, 0, 8);
    remote.rkey ^= 0x5a5a5a5a;
    require_ok(sluice_multichannel_post_write(star->hub, 1, &sge, 1, &remote, DEADLINE, &handle));
    require_ok(sluice_multichannel_detach(star->hub, &handle));
    require_ok(sluice_multichannel_flush(star->hub, DEADLINE));
    require_result(sluice_multichannel_peer_state(star->hub, 1), SLUICE_STATE_FAILED);
    struct sluice_error error = peer_error(star->hub, 1);
    require(error.error == -EACCES && error.opcode == SLUICE_OP_WRITE, "%s", error.text);
    require_result(sluice_multichannel_poll(star->hub, &completion, 1), 0);
    require_error(sluice_multichannel_next(star->hub, DEADLINE, &completion), -ENOENT, "");
    star_works(star, 0);
    star_reset(star, 1);
    star_works(star, 1);
}

/* Places are reused, however many requests were detached, before their end or after it. */
TEST_WITH(pair, detached_requests_do_not_fill_the_pool, (&short_queues))
{
    struct sluice_handle handle;
    uint32_t rounds =
        short_run() || !device_is_soft() || current_wire() == WIRE_TCP ? 2000 : 100000;
    for (uint32_t i = 0; i < rounds; i++) {
        require_ok(sluice_channel_post_receive(pair->channels[0], NULL, 0, DEADLINE, &handle));
        if (i % 2 == 0) {
            require_ok(sluice_channel_detach(pair->channels[0], &handle));
        }
        send_messages(pair->channels[1], 1, i);
        if (i % 2 == 1) {
            require_ok(sluice_channel_detach(pair->channels[0], &handle));
        }
        if (i % DEPTH == DEPTH - 1) {
            require_ok(sluice_channel_flush(pair->channels[0], DEADLINE));
        }
    }
    /* The whole depth is available. */
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_ok(sluice_channel_post_receive(pair->channels[0], NULL, 0, DEADLINE, NULL));
    }
    require_result(sluice_channel_post_receive(pair->channels[0], NULL, 0, DEADLINE, NULL),
                   -EAGAIN);
}

static void require_cancelled(const struct sluice_completion *completion, uint64_t user_data)
{
    require_class(completion, SLUICE_CLASS_CANCELLED);
    require_equal(completion->status, SLUICE_STATUS_WR_FLUSH_ERR, completion->user_data, user_data,
                  completion->bytes, 0);
}

/* Requires that 100 transfers pass with a bystander. */
static void require_bystander(struct star *star, uint32_t peer)
{
    for (uint32_t i = 0; i < 50; i++) {
        star_works(star, peer);
    }
}

/* Cancels one of two requests of this kind with peer 1; the other ends cancelled too. */
static void cancel_pending(uint32_t opcode)
{
    struct star star;
    struct sluice_completion completion;
    struct sluice_request requests[3];
    struct sluice_handle handles[3];
    star_open(&star, 3, &short_queues);
    struct memory memory = side_memory(&star.sides, 0, 1000);
    struct sluice_sge sge = memory_sge(&memory, 0, memory.length);
    for (uint32_t i = 0; i < 3; i++) {
        requests[i] = request_of(opcode, i == 2 ? 2 : 1, &sge);
        requests[i].user_data = 70 + i;
    }
    require_result(sluice_multichannel_post(star.hub, requests, 3, DEADLINE, handles), 3);
    require_result(sluice_multichannel_wait(star.hub, &handles[1], SLUICE_MS(20), &completion),
                   -ETIMEDOUT);
    int64_t start = fair_now();
    require_ok(sluice_multichannel_cancel(star.hub, &handles[1], &completion));
    require_within(start, SLUICE_MS(1500));
    require_cancelled(&completion, 71);
    require_result(sluice_multichannel_peer_state(star.hub, 1), SLUICE_STATE_FAILED);
    struct sluice_error error = peer_error(star.hub, 1);
    require(error.error_class == SLUICE_CLASS_CANCELLED &&
                error.status == SLUICE_STATUS_WR_FLUSH_ERR,
            "%s", error.text);
    /* The other request of that peer has ended as well, and its result is not lost. */
    require_ok(sluice_multichannel_next(star.hub, 0, &completion));
    require_cancelled(&completion, 70);
    /* A second cancel returns the same result. */
    require_ok(sluice_multichannel_cancel(star.hub, &handles[1], &completion));
    require_cancelled(&completion, 71);
    require_ok(sluice_multichannel_wait(star.hub, &handles[1], 0, &completion));
    require_cancelled(&completion, 71);
    /* The other peers are unaffected, and the pending request with one still is pending. */
    require_bystander(&star, 0);
    require_result(sluice_multichannel_wait(star.hub, &handles[2], 0, &completion), -ETIMEDOUT);
    require_ok(sluice_multichannel_cancel(star.hub, &handles[2], &completion));
    require_cancelled(&completion, 72);
    require_bystander(&star, 0);
    for (uint32_t peer = 1; peer < 3; peer++) {
        star_reset(&star, peer);
        star_works(&star, peer);
    }
    /* No buffer is in use. */
    star_close(&star);
}

/* The peer posts no receive for it. */
TEST(cancel_of_a_pending_send)
{
    cancel_pending(SLUICE_OP_SEND);
}

TEST(cancel_of_a_parked_receive)
{
    cancel_pending(SLUICE_OP_RECEIVE);
}

/* The cancel finds it complete; its peer is unaffected. */
TEST_WITH(pair, cancel_of_what_is_complete, (&short_queues))
{
    struct sluice_completion completion;
    struct sluice_handle seen = seen_receive(pair);
    struct sluice_handle unseen = post_receive(pair->channels[0]);
    send_messages(pair->channels[1], 1, 33);
    require_ok(sluice_channel_flush(pair->channels[0], DEADLINE));
    struct sluice_handle parked = post_receive(pair->channels[0]);
    require_ok(sluice_channel_cancel(pair->channels[0], &unseen, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    require(completion.immediate == 33, "immediate %u", completion.immediate);
    require_ok(sluice_channel_cancel(pair->channels[0], &seen, &completion));
    require_result(sluice_channel_poll(pair->channels[0], &completion, 1), 0);
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_READY);
    send_messages(pair->channels[1], 1, 34);
    await(pair->channels[0], parked, SLUICE_CLASS_NONE);
    pair_works(pair);
}

TEST_WITH(pair, wrong_arguments, (NULL))
{
    struct sluice_completion completion;
    struct sluice_handle handle;
    require_error(sluice_channel_cancel(pair->channels[0], NULL, &completion), -EINVAL, "handle");
    require_error(sluice_channel_detach(pair->channels[0], NULL), -EINVAL, "handle");
    handle = post_receive(pair->channels[0]);
    require_error(sluice_channel_wait(pair->channels[0], &handle, -1, &completion), -EINVAL, "-1");
    require_error(sluice_channel_wait(pair->channels[0], &handle, 0, NULL), -EINVAL, "completion");
    require_error(sluice_channel_cancel(pair->channels[0], &handle, NULL), -EINVAL, "completion");
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_READY);
    require_result(sluice_channel_wait(pair->channels[0], &handle, 0, &completion), -ETIMEDOUT);
    require_error(sluice_channel_cancel(NULL, &handle, &completion), -EINVAL, "channel");
    require_error(sluice_channel_detach(NULL, &handle), -EINVAL, "channel");
    require_error(sluice_multichannel_cancel(NULL, &handle, &completion), -EINVAL, "multichannel");
    require_error(sluice_multichannel_detach(NULL, &handle), -EINVAL, "multichannel");
}

int main(void)
{
    return run_tests("handles", 30);
}
