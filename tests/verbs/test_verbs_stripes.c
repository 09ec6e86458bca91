/* SPDX-License-Identifier: MIT */
/*
 * Several queue pairs per peer on a pretend device, which holds the completions of some of them,
 * fails some, and refuses posts: the effects that a program sees.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/process.h"
#include "check.h"

#define PAIRS 3
#define BYTES 4096
#define VENDOR 0x51ce00
#define STEPS (FAKE_ALL_BUT_ENDS & ~FAKE_CALL(FAKE_GET_ASYNC_EVENT))

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return fake_verbs_fails(FAKE_MEMORY) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fake_verbs_fails(FAKE_MEMORY) ? NULL : __real_realloc(old, size);
}

static const struct sluice_channel_attr attr = {.size = sizeof(attr),
                                                .send_depth = 16,
                                                .queue_pairs = PAIRS,
                                                .stripe_least = 100,
                                                .ack_timeout = 14,
                                                .retry_count = 2};

/* The queue pairs of channel 0 were made first, and then those of channel 1. */
struct striped {
    struct pair pair;
    struct memory memory;
    struct sluice_sge large, small;
    struct sluice_request write; /* striped, from the first half of the memory to the second */
};

static void striped_open(struct striped *striped)
{
    pair_open(&striped->pair, &attr);
    striped->memory = side_memory(&striped->pair.sides, 0, 2 * BYTES + 100);
    striped->large = memory_sge(&striped->memory, 0, BYTES);
    striped->small = memory_sge(&striped->memory, 2 * BYTES, 50);
    striped->write = request_of(SLUICE_OP_WRITE, 0, &striped->large);
    striped->write.remote = memory_remote(&striped->memory, BYTES, BYTES);
    memset(striped->memory.bytes, 1, BYTES);
    memset(striped->memory.bytes + BYTES, 0, BYTES + 100);
}

static void striped_close(struct striped *striped)
{
    pair_close(&striped->pair);
}

static uint32_t posted_to(uint32_t index)
{
    struct fake_qp_info info;
    require(fake_verbs_qp(index, &info), "no queue pair %u", index);
    return info.posted[FAKE_SEND];
}

/* Requires that no further completion comes, however often the program polls. */
static void nothing_comes(struct sluice_channel *channel)
{
    struct sluice_completion unused;
    for (int i = 0; i < 100; i++) {
        require_result(sluice_channel_poll(channel, &unused, 1), 0);
    }
}

/*
 * The stripes end in any order: the request ends with the last, and then requests behind it start.
 */
TEST_WITH(striped, stripes_end_in_any_order, (), .times = 6)
{
    static const uint32_t orders[][PAIRS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                             {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct sluice_completion completion;
    struct sluice_handle handles[3];
    struct sluice_channel *channel = striped->pair.channels[0];
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &striped->small);
    struct sluice_handle received = post(striped->pair.channels[1], &receive);
    struct sluice_request requests[3] = {
        striped->write, request_of(SLUICE_OP_SEND, 0, &striped->small), striped->write};
    uint32_t before[PAIRS];
    for (uint32_t i = 0; i < PAIRS; i++) {
        before[i] = posted_to(i);
        fake_verbs_hold(qpn_of(i));
    }
    require_result(sluice_channel_post(channel, requests, 3, DEADLINE, handles), 3);
    for (uint32_t i = 0; i < PAIRS; i++) {
        await_held(qpn_of(i), FAKE_SEND, 1);
    }
    for (uint32_t i = 0; i < PAIRS; i++) {
        nothing_comes(channel);
        nothing_comes(striped->pair.channels[1]);
        require(posted_to(0) == before[0] + 1, "%u on the first", posted_to(0) - before[0]);
        fake_verbs_release_some(qpn_of(orders[_i][i]), FAKE_SEND, 1);
    }
    value_check(striped->memory.bytes + BYTES, BYTES, 1);
    require_ok(sluice_channel_wait(channel, &handles[0], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    await(striped->pair.channels[1], received, SLUICE_CLASS_NONE);
    await_held(qpn_of(0), FAKE_SEND, 1);
    nothing_comes(channel);
    for (uint32_t i = 0; i < PAIRS; i++) {
        require(posted_to(i) == before[i] + (i == 0 ? 2 : 1), "%u on %u", posted_to(i) - before[i],
                i);
        fake_verbs_release(qpn_of(i));
    }
    await(channel, handles[1], SLUICE_CLASS_NONE);
    await(channel, handles[2], SLUICE_CLASS_NONE);
}

/* One stripe fails, and the others end well, later, earlier, or are flushed. */
TEST_WITH(striped, a_stripe_fails, (), .times = 2 * PAIRS)
{
    uint32_t index = (uint32_t)_i / 2;
    struct sluice_handle handles[2];
    struct sluice_channel *channel = striped->pair.channels[0];
    struct sluice_request requests[2] = {striped->write, striped->write};
    if (_i % 2 == 1) {
        for (uint32_t i = 0; i < PAIRS; i++) {
            fake_verbs_hold(i == index ? UINT32_MAX : qpn_of(i));
        }
    }
    fake_verbs_end(qpn_of(index), FAKE_SEND, 1, IBV_WC_REM_ACCESS_ERR, VENDOR);
    require_result(sluice_channel_post(channel, requests, 2, DEADLINE, handles), 2);
    if (_i % 2 == 1) {
        for (uint32_t i = 0; i < PAIRS; i++) {
            if (i != index) {
                await_held(qpn_of(i), FAKE_SEND, 1);
            }
        }
        nothing_comes(channel);
        fake_verbs_release(0);
    }
    struct sluice_completion completion = await(channel, handles[0], SLUICE_CLASS_ACCESS);
    require_equal(completion.status, SLUICE_STATUS_REM_ACCESS_ERR, completion.vendor, VENDOR,
                  completion.cause, completion.status);
    completion = await(channel, handles[1], SLUICE_CLASS_CANCELLED);
    require_equal(completion.cause, SLUICE_STATUS_REM_ACCESS_ERR, channel_error(channel).opcode,
                  SLUICE_OP_WRITE);
    pair_reset(&striped->pair);
    pair_works(&striped->pair);
}

/* Among the errors of the stripes the most specific one counts, whichever comes first. */
TEST_WITH(striped, the_root_cause_is_found_among_stripes, (), .times = PAIRS)
{
    for (uint32_t i = 0; i < PAIRS; i++) {
        fake_verbs_hold(qpn_of(i));
        fake_verbs_end(qpn_of(i), FAKE_SEND, 1,
                       i == (uint32_t)_i ? IBV_WC_REM_OP_ERR : IBV_WC_RETRY_EXC_ERR, VENDOR + i);
    }
    struct sluice_handle handle = post(striped->pair.channels[0], &striped->write);
    for (uint32_t i = 0; i < PAIRS; i++) {
        await_held(qpn_of(i), FAKE_SEND, 1);
    }
    fake_verbs_release(0);
    struct sluice_completion completion;
    require_ok(sluice_channel_wait(striped->pair.channels[0], &handle, DEADLINE, &completion));
    require_equal(completion.status, SLUICE_STATUS_REM_OP_ERR, completion.vendor,
                  VENDOR + (uint32_t)_i);
}

/* A further queue pair fails while idle: the whole peer fails, on both sides. */
TEST_WITH(striped, a_queue_pair_is_lost_alone, (), .times = PAIRS)
{
    struct sluice_handle handles[2];
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &striped->small);
    for (int i = 0; i < 2; i++) {
        handles[i] = post(striped->pair.channels[i], &receive);
    }
    require(fake_verbs_qp_event(qpn_of((uint32_t)_i), IBV_EVENT_QP_FATAL, true),
            "the event has no recipient");
    struct sluice_completion completion;
    require_ok(sluice_channel_wait(striped->pair.channels[0], &handles[0], DEADLINE, &completion));
    require(completion.error != 0, "it was received");
    require_result(sluice_channel_state(striped->pair.channels[0]), SLUICE_STATE_FAILED);
    require(strstr(channel_error(striped->pair.channels[0]).text, "fake0"), "%s",
            channel_error(striped->pair.channels[0]).text);
    /* The peer notices when it uses it: a stripe is not answered. */
    struct sluice_request write = striped->write;
    struct sluice_handle handle = post(striped->pair.channels[1], &write);
    await(striped->pair.channels[1], handle, SLUICE_CLASS_PEER_LOST);
    await(striped->pair.channels[1], handles[1], SLUICE_CLASS_CANCELLED);
    pair_reset(&striped->pair);
    pair_works(&striped->pair);
}

/* A flushed receive tells less than the stripes, the last of which may come later. */
TEST_WITH(striped, receives_come_back_behind_the_stripes, (), .times = PAIRS)
{
    struct sluice_handle received[2];
    struct sluice_channel *channel = striped->pair.channels[0];
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &striped->small);
    received[0] = post(channel, &receive);
    received[1] = post(channel, &receive);
    for (uint32_t i = 1; i < PAIRS; i++) {
        fake_verbs_hold(qpn_of(i));
    }
    fake_verbs_end(qpn_of((uint32_t)_i), FAKE_SEND, 1, IBV_WC_REM_OP_ERR, VENDOR);
    struct sluice_handle handle = post(channel, &striped->write);
    for (uint32_t i = 1; i < PAIRS; i++) {
        await_held(qpn_of(i), FAKE_SEND, 1);
    }
    nothing_comes(channel);
    fake_verbs_release(0);
    struct sluice_completion completion;
    require_ok(sluice_channel_wait(channel, &received[1], DEADLINE, &completion));
    require_equal(completion.error, -ECANCELED, completion.cause, SLUICE_STATUS_REM_OP_ERR);
    await(channel, received[0], SLUICE_CLASS_CANCELLED);
    require_ok(sluice_channel_wait(channel, &handle, DEADLINE, &completion));
    require_equal(completion.status, SLUICE_STATUS_REM_OP_ERR, completion.vendor, VENDOR);
    pair_reset(&striped->pair);
    pair_works(&striped->pair);
}

/* Packets of one queue pair get lost: no request behind is done. */
TEST_WITH(striped, the_path_of_a_queue_pair_is_cut, (), .times = PAIRS)
{
    struct sluice_handle handles[2];
    struct sluice_channel *channel = striped->pair.channels[0];
    struct sluice_request requests[2] = {striped->write,
                                         request_of(SLUICE_OP_WRITE, 0, &striped->small)};
    requests[1].remote = memory_remote(&striped->memory, 2 * BYTES + 50, 50);
    memset(striped->memory.bytes + 2 * BYTES, 3, 50);
    fake_verbs_cut(qpn_of((uint32_t)_i), true);
    require_result(sluice_channel_post(channel, requests, 2, DEADLINE, handles), 2);
    await(channel, handles[0], SLUICE_CLASS_PEER_LOST);
    await(channel, handles[1], SLUICE_CLASS_CANCELLED);
    value_check(striped->memory.bytes + 2 * BYTES + 50, 50, 0);
}

/* There is no event and no request in flight here: the failed watch receive reports the loss. */
TEST_WITH(striped, target_of_a_refused_stripe_notices, ())
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &striped->small);
    struct sluice_handle received = post(striped->pair.channels[1], &receive);
    struct sluice_request write = striped->write;
    write.remote.rkey ^= 0x5a5a00;
    struct sluice_handle handle = post(striped->pair.channels[0], &write);
    await(striped->pair.channels[1], received, SLUICE_CLASS_PEER_LOST);
    await(striped->pair.channels[0], handle, SLUICE_CLASS_ACCESS);
}

/*
 * The driver refuses a stripe, at once or when it was held back: the device may still execute it.
 */
TEST(stripes_that_are_refused, .times = 4 * PAIRS)
{
    uint32_t index = (uint32_t)_i % PAIRS;
    bool held = _i / PAIRS % 2 == 1;
    struct striped striped;
    struct sluice_handle handles[3];
    fake_verbs.refused_runs = _i / PAIRS / 2 == 1;
    striped_open(&striped);
    struct sluice_channel *channel = striped.pair.channels[0];
    struct sluice_request requests[3] = {striped.write, striped.write, striped.write};
    uint32_t first = held ? 1 : 0;
    fake_verbs_refuse(qpn_of(index), FAKE_SEND, 1 + first, 1, EXDEV);
    require_result(sluice_channel_post(channel, requests, 3, DEADLINE, handles), 3);
    if (held) {
        await(channel, handles[0], SLUICE_CLASS_NONE);
    }
    struct sluice_completion completion = await(channel, handles[first], SLUICE_CLASS_DEVICE);
    require_equal(completion.error, -EIO, completion.vendor, EXDEV);
    for (uint32_t i = first + 1; i < 3; i++) {
        await(channel, handles[i], SLUICE_CLASS_CANCELLED);
    }
    require(strstr(channel_error(channel).text, "refused") &&
                strstr(channel_error(channel).text, strerror(EXDEV)),
            "%s", channel_error(channel).text);
    pair_reset(&striped.pair);
    pair_works(&striped.pair);
    striped_close(&striped);
}

/* The device does not report a stripe: the drain bound ends it, and no buffer is in flight. */
TEST_WITH(striped, a_stripe_that_does_not_end, (), .times = PAIRS)
{
    struct sluice_completion completion;
    struct sluice_channel *channel = striped->pair.channels[0];
    fake_verbs_hold(qpn_of((uint32_t)_i));
    struct span start = span_begin();
    require_result(
        sluice_channel_write(channel, &striped->large, 1, &striped->write.remote, SLUICE_MS(30)),
        -ETIMEDOUT);
    require_took(span_since(start), SLUICE_MS(1000), SLUICE_MS(1800));
    fake_verbs_release(0);
    require_result(sluice_channel_poll(channel, &completion, 1), 0);
    pair_reset(&striped->pair);
    pair_works(&striped->pair);
}

/* Each step of opening fails once: nothing is left behind, and the next attempt works. */
TEST_WITH(sides, each_step_fails, ())
{
    uint32_t step = 1;
    struct sluice_endpoint endpoint;
    struct sluice_prepared_channel *prepared;
    do {
        uint32_t alive = fake_verbs_alive();
        fake_verbs_fail(step++, STEPS, ENOMEM);
        prepared = sluice_channel_prepare(sides->pds[0], &attr);
        require(prepared || fake_verbs_alive() == alive, "step %u leaves something", step - 1);
        require(prepared || fake_verbs_failed(), "step %u", step - 1);
        fake_verbs_fail(0, 0, 0);
    } while (!prepared);
    require(step > 2 * PAIRS, "%u steps", step);
    require_ok(sluice_prepared_channel_endpoint(prepared, &endpoint));
    sluice_prepared_channel_free(prepared);
}

/* A port that changes while two queue pairs of a peer are made: one endpoint serves all. */
TEST_WITH(sides, all_have_one_address, ())
{
    struct fake_qp_info info;
    struct sluice_prepared_channel *prepared = made(sluice_channel_prepare(sides->pds[0], &attr));
    for (uint32_t i = 0; i < PAIRS; i++) {
        require(fake_verbs_qp(i, &info), "no queue pair %u", i);
        require(info.init.cap.max_send_wr == (i == 0 ? attr.send_depth + 1 : 2), "%u",
                info.init.cap.max_send_wr);
        require(info.init.send_cq == info.init.recv_cq, "two completion queues");
    }
    sluice_prepared_channel_free(prepared);
}

/* Small completion queues: peers share the entries, and none overruns. */
TEST(small_completion_queues)
{
    enum { PEERS = 4, ROUNDS = 20, LIST = 8 };
    struct sluice_channel_attr small = attr;
    struct sluice_request requests[PEERS * LIST];
    fake_verbs.device[0].max_cqe = 80;
    fake_verbs.device[0].max_cq = 1;
    small.receive_depth = 16;
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_multichannel *all = make_loop(pd, PEERS, &small);
    struct memory memory;
    require(all, "%s", sluice_last_error());
    memory_open(&memory, pd, 2 * BYTES);
    struct sluice_sge sge = memory_sge(&memory, 0, BYTES);
    for (uint32_t i = 0; i < COUNT(requests); i++) {
        requests[i] = request_of(SLUICE_OP_WRITE, i % PEERS, &sge);
        requests[i].remote = memory_remote(&memory, BYTES, BYTES);
    }
    for (int i = 0; i < ROUNDS; i++) {
        require_ok(sluice_multichannel_submit(all, requests, COUNT(requests), DEADLINE, NULL));
    }
    memory_close(&memory);
    sluice_multichannel_close(all);
    small.queue_pairs = 8;
    require_null(sluice_multichannel_prepare(pd, 16, &small), ENOMEM, "8 queue pairs 16 peers");
    sluice_pd_free(pd);
    sluice_context_close(context);
}

/*
 * Completions of a peer that is reset are dropped with its queue pairs, whatever their ids: some
 * look like those of receives that peers share.
 */
TEST(completions_of_a_peer_that_is_reset)
{
    enum { MESSAGES = 40 };
    struct sluice_counters counters = {.size = sizeof counters};
    struct sluice_completion completion;
    struct sluice_endpoint endpoint;
    struct sluice_multichannel *loop;
    struct memory memory;
    struct sides sides;

    sides_open(&sides);
    memory_open(&memory, sides.pds[0], 64);
    loop = loop_open(sides.pds[0], 2, ATTR(.queue_pairs = 2));
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    fake_verbs_hold(0);
    for (int i = 0; i < MESSAGES; i++) {
        require_ok(sluice_multichannel_post_receive(loop, 1, &sge, 1, DEADLINE, NULL));
        require_ok(sluice_multichannel_post_send(loop, 0, &sge, 1, DEADLINE, NULL));
    }
    await_held(qpn_of(2), FAKE_RECEIVE, MESSAGES);
    require_ok(sluice_multichannel_peer_reset(loop, 1, &endpoint));
    fake_verbs_release(0);
    for (int i = 0; i < 2 * MESSAGES + 10; i++)
        require(sluice_multichannel_poll(loop, &completion, 1) >= 0, "%s", sluice_last_error());
    require_ok(sluice_multichannel_counters(loop, &counters));
    require_equal(counters.discarded, 0);
    sluice_multichannel_close(loop);
    memory_close(&memory);
    sides_close(&sides);
}

int main(void)
{
    return run_verbs("verbs_stripes", WIRE_SELF, 30);
}
