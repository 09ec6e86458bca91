/* SPDX-License-Identifier: MIT */
/* Pools of receives on a device: its limits, its events, and calls that it refuses. */
#include <stdatomic.h>

#include "check.h"
#include "endpoint/endpoint.h"

#define POOL 8

/* A hub with a pool and two peers of its own, in one process. Peer 2 i sends to peer 2 i + 1. */
struct shared {
    struct sides sides;
    struct sluice_multichannel *hub;
    struct memory memory;
};

static void shared_open(struct shared *shared, const struct sluice_channel_attr *attr)
{
    memset(shared, 0, sizeof *shared);
    sides_open(&shared->sides);
    memory_open(&shared->memory, shared->sides.pds[0], 4096);
    shared->hub = loop_open(shared->sides.pds[0], 4, attr);
}

static void shared_close(struct shared *shared)
{
    sluice_multichannel_close(shared->hub);
    memory_close(&shared->memory);
    sides_close(&shared->sides);
}

/* Posts count receives of 64 bytes. */
static int post_receives(struct shared *shared, uint32_t count)
{
    struct sluice_request requests[POOL];

    for (uint32_t i = 0; i < count; i++)
        requests[i] = REQUEST(.user_data = i, .sge_count = 1,
                              .sge = memory_sge(&shared->memory, (size_t)64 * i, 64));
    return sluice_multichannel_post_receive_any(shared->hub, requests, count, NULL);
}

static void post_message(struct shared *shared, uint32_t from)
{
    struct sluice_sge sge = memory_sge(&shared->memory, 2048, 64);
    struct sluice_handle handle;

    require_ok(sluice_multichannel_post_send(shared->hub, from, &sge, 1, DEADLINE, &handle));
    require_ok(sluice_multichannel_detach(shared->hub, &handle));
}

/* Requires that the next result is that of a message to this peer. */
static void take_message(struct shared *shared, uint32_t to)
{
    struct sluice_completion completion;

    require_ok(sluice_multichannel_next(shared->hub, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    require_equal(completion.peer, to, completion.opcode, SLUICE_OP_RECEIVE, completion.bytes, 64);
}

/* A device without shared receive queues refuses a pool by name; one that has few, its size. */
TEST(limits_of_the_device)
{
    static const struct sluice_channel_attr attr = {.size = sizeof attr, .receive_pool = POOL};
    struct sides sides;

    fake_verbs.device[0].max_srq = 0;
    sides_open(&sides);
    require_null(sluice_multichannel_prepare(sides.pds[0], 1, &attr), EOPNOTSUPP,
                 "receive_pool is 8, but device fake0 has no receives");
    sides_close(&sides);
    fake_verbs.device[0].max_srq = 1;
    fake_verbs.device[0].max_srq_wr = POOL - 1;
    sides_open(&sides);
    require_null(sluice_multichannel_prepare(sides.pds[0], 1, &attr), EINVAL,
                 "receive_pool is 8, this device allows 1..7");
    sides_close(&sides);
    fake_verbs.device[0].max_srq_wr = POOL;
    sides_open(&sides);
    struct sluice_multichannel *one = loop_open(sides.pds[0], 2, &attr);
    require_null(sluice_multichannel_prepare(sides.pds[0], 1, &attr), ENOMEM,
                 "cannot create a shared receive queue on fake0 with receive_pool 8");
    sluice_multichannel_close(one);
    sides_close(&sides);
}

/* Shared receives may have fewer elements than others: by default fewer are used. */
TEST(elements_of_shared_receives)
{
    struct shared shared;

    fake_verbs.device[0].max_srq_sge = 3;
    shared_open(&shared, ATTR(.receive_pool = POOL));
    struct sluice_channel_info info = {.size = sizeof info};
    require_ok(sluice_multichannel_peer_query(shared.hub, 0, &info));
    require_equal(info.max_sge, 3);
    require_null(sluice_multichannel_prepare(shared.sides.pds[0], 1,
                                             ATTR(.receive_pool = POOL, .max_sge = 4)),
                 EINVAL, "max_sge is 4, but with receive_pool this device allows 1..3");
    require_result(post_receives(&shared, 1), 1);
    post_message(&shared, 0);
    take_message(&shared, 1);
    shared_close(&shared);
}

/* A pool leaves nothing behind if any call fails while it is made. */
TEST(calls_that_fail)
{
    struct sides sides;
    uint32_t failed = 0;

    sides_open(&sides);
    for (uint32_t n = 1;; n++) {
        struct sluice_prepared_multichannel *prepared;

        fake_verbs_fail(n, FAKE_ALL_BUT_ENDS, ENOMEM);
        prepared = sluice_multichannel_prepare(sides.pds[0], 2, ATTR(.receive_pool = POOL));
        sluice_prepared_multichannel_free(prepared);
        if (!fake_verbs_failed())
            break;
        fake_verbs_fail(0, 0, 0);
        failed += prepared == NULL;
    }
    require(failed > 3, "only %u calls failed", failed);
    sides_close(&sides);
}

/* A receive that the driver refuses is not posted; those before it are. */
TEST_WITH(shared, receives_that_are_refused, (ATTR(.receive_pool = POOL)))
{
    fake_verbs_fail(1, FAKE_CALL(FAKE_POST_SRQ_RECV), ENOMEM);
    require_error(post_receives(shared, 2), -ENOMEM, "fake0 refused a receive of a pool");
    require_result(sluice_multichannel_receive_any_room(shared->hub), POOL);
    require_result(post_receives(shared, POOL), POOL);
    post_message(shared, 0);
    take_message(shared, 1);
    post_message(shared, 3);
    take_message(shared, 2);
}

static uint64_t limits_asked(void)
{
    uint64_t calls;

    fake_verbs_lock();
    calls = fake_verbs.calls[FAKE_MODIFY_SRQ];
    fake_verbs_unlock();
    return calls;
}

/* A program that polls makes no system call for a pool that runs low, however often it does. */
TEST_WITH(shared, low_pool_of_a_program_that_polls,
          (ATTR(.receive_pool = POOL, .receive_pool_low = 3)))
{
    struct sluice_completion completion;

    for (uint32_t round = 0; round < 5; round++) {
        int room = sluice_multichannel_receive_any_room(shared->hub);

        require_result(post_receives(shared, (uint32_t)room), room);
        for (uint32_t i = 0; i < POOL - 2; i++) {
            post_message(shared, 0);
            while (sluice_multichannel_poll(shared->hub, &completion, 1) == 0)
                ;
            require_class(&completion, SLUICE_CLASS_NONE);
        }
    }
    require_equal(limits_asked(), 0);
}

/*
 * The device reports once that the pool runs low to a program that sleeps, and again after it was
 * refilled.
 */
TEST_WITH(shared, pool_that_runs_low, (ATTR(.receive_pool = POOL, .receive_pool_low = 3)))
{
    for (uint64_t round = 1; round <= 3; round++) {
        int room = sluice_multichannel_receive_any_room(shared->hub);

        require_result(post_receives(shared, (uint32_t)room), room);
        require_ok(sluice_multichannel_arm(shared->hub, NULL));
        for (uint32_t i = 0; i < POOL - 3; i++) {
            require_equal(fake_verbs.srq_limits, round - 1,
                          sluice_multichannel_receive_any_room(shared->hub), 0);
            post_message(shared, i % 2 * 2);
            take_message(shared, i % 2 * 2 + 1);
        }
        post_message(shared, 0);
        take_message(shared, 1);
        require_equal(fake_verbs.srq_limits, round,
                      sluice_multichannel_receive_any_room(shared->hub), POOL - 2);
    }
}

/* A device without that event: the number of posted receives says when to refill. */
TEST_WITH(shared, device_that_reports_no_low_pool, (ATTR(.receive_pool = POOL)))
{
    fake_verbs_fail(1, FAKE_CALL(FAKE_MODIFY_SRQ), EOPNOTSUPP);
    require_result(post_receives(shared, POOL), POOL);
    require_ok(sluice_multichannel_arm(shared->hub, NULL));
    for (uint32_t i = 0; i < POOL / 2; i++) {
        require_result(sluice_multichannel_receive_any_room(shared->hub), 0);
        post_message(shared, 0);
        take_message(shared, 1);
    }
    require_result(sluice_multichannel_receive_any_room(shared->hub), POOL / 2);
}

/*
 * Messages that have come are not lost with their queue pair, whatever the device does with its
 * completions, and name their peer.
 */
TEST(results_of_a_peer_that_is_reset, .times = 2)
{
    struct sluice_endpoint endpoint;
    struct shared shared;

    fake_verbs.orphans = FAKE_LEAVE;
    fake_verbs.no_last_wqe = _i == 1;
    shared_open(&shared, ATTR(.receive_pool = POOL));
    require_result(post_receives(&shared, POOL), POOL);
    for (uint32_t i = 0; i < 4; i++)
        post_message(&shared, i % 2 * 2);
    require_ok(sluice_multichannel_flush(shared.hub, DEADLINE));
    require_ok(sluice_multichannel_peer_reset(shared.hub, 1, &endpoint));
    for (uint32_t i = 0; i < 4; i++)
        take_message(&shared, i % 2 * 2 + 1);
    require_result(sluice_multichannel_receive_any_room(shared.hub), 4);
    shared_close(&shared);
}

/* Returns the words that a peer writes to the side with this endpoint: see words/hint.c. */
static _Atomic uint64_t *words_of(const struct sluice_endpoint *endpoint)
{
    struct slu_endpoint decoded;

    require(slu_endpoint_decode(endpoint, &decoded) == 0, "%s", sluice_last_error());
    require(decoded.verbs.hint_addr != 0, "no place for hints%s", "");
    return (_Atomic uint64_t *)(uintptr_t)decoded.verbs.hint_addr;
}

/* A peer that asks for hints of receives learns once that it need not wait for any. */
TEST(hints_of_a_pool)
{
    struct sluice_prepared_multichannel *prepared;
    struct sluice_prepared_channel *peer;
    struct sluice_endpoint ours, theirs;
    struct shared shared = {.hub = NULL};
    struct sluice_completion completion;
    struct sluice_channel *channel;
    struct sluice_sge sge;

    sides_open(&shared.sides);
    memory_open(&shared.memory, shared.sides.pds[0], 4096);
    prepared =
        made(sluice_multichannel_prepare(shared.sides.pds[0], 1, ATTR(.receive_pool = POOL)));
    require_ok(sluice_prepared_multichannel_endpoints(prepared, &ours, 1));
    peer = prepare_channel(shared.sides.pds[1], NULL, &theirs);
    shared.hub = made(sluice_prepared_multichannel_handshake(prepared, &theirs, 1));
    channel = made(sluice_prepared_channel_handshake(peer, &ours));
    require_equal(words_of(&theirs)[0], 0);
    words_of(&ours)[1] = 1;
    sge = memory_sge(&shared.memory, 2048, 64);
    for (uint32_t i = 0; i < 3; i++) {
        struct sluice_handle handle = post_of(channel, SLUICE_OP_SEND, &sge);

        require_result(post_receives(&shared, 1), 1);
        take_message(&shared, 0);
        await(channel, handle, SLUICE_CLASS_NONE);
    }
    while (words_of(&theirs)[0] == 0)
        require_result(sluice_multichannel_poll(shared.hub, &completion, 1), 0);
    require(words_of(&theirs)[0] >= UINT64_C(1) << 32, "%llu receives",
            (unsigned long long)words_of(&theirs)[0]);
    sluice_channel_close(channel);
    shared_close(&shared);
}

/*
 * A completion that comes when its queue pair is gone, as from some devices, belongs to a peer that
 * is not known any more: its receive ends cancelled, and is not lost.
 */
TEST(result_that_comes_late)
{
    struct sluice_completion completion;
    struct sluice_endpoint endpoint;
    struct shared shared;

    fake_verbs.orphans = FAKE_LATE;
    shared_open(&shared, ATTR(.receive_pool = POOL));
    require_result(post_receives(&shared, POOL), POOL);
    fake_verbs_hold(qpn_of(1));
    post_message(&shared, 0);
    await_held(qpn_of(1), FAKE_RECEIVE, 1);
    require_ok(sluice_multichannel_peer_reset(shared.hub, 1, &endpoint));
    require_result(sluice_multichannel_receive_any_room(shared.hub), 0);
    fake_verbs_release(0);
    require_ok(sluice_multichannel_next(shared.hub, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_CANCELLED);
    require_equal(completion.peer, UINT32_MAX, completion.opcode, SLUICE_OP_RECEIVE);
    post_message(&shared, 3);
    take_message(&shared, 2);
    require_result(post_receives(&shared, 2), 2);
    shared_close(&shared);
}

/* Peers that are added later share the pool, on further completion queues of the device. */
TEST(more_completion_queues)
{
    struct sluice_endpoint ends[8];
    struct shared shared;

    fake_verbs.device[0].max_cqe = 64;
    shared_open(&shared, ATTR(.receive_pool = POOL, .send_depth = 8));
    for (uint32_t i = 0; i < 8; i++)
        require_result(sluice_multichannel_peer_add(shared.hub, &ends[i]), 4 + i);
    for (uint32_t i = 0; i < 8; i++)
        require_ok(sluice_multichannel_peer_handshake(shared.hub, 4 + i, &ends[i ^ 1]));
    require(fake_verbs.live.cqs > 1, "%u completion queues", fake_verbs.live.cqs);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t peer = 0; peer < 12; peer += 2) {
            require_result(post_receives(&shared, 1), 1);
            post_message(&shared, peer);
            take_message(&shared, peer + 1);
        }
        require_result(post_receives(&shared, POOL), POOL);
        for (uint32_t i = 0; i < POOL; i++)
            post_message(&shared, 10);
        for (uint32_t i = 0; i < POOL; i++)
            take_message(&shared, 11);
    }
    require_equal(fake_verbs.overruns, 0);
    shared_close(&shared);
}

int main(void)
{
    return run_verbs("verbs_pool", WIRE_SELF, 30);
}
