/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "invariants.h"
#include "rig.h"

#define NUMBERS (UINT64_C(1) << 46)
#define ROUNDS 8

/* Requires that no two of them are equal, and none is 0. */
static void check_ids(const struct sluice_handle *handles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        require(handles[i].id != 0, "handle %u", i);
        for (uint32_t k = 0; k < i; k++) {
            require(handles[i].id != handles[k].id, "handles %u and %u are %#llx", k, i,
                    (unsigned long long)handles[i].id);
        }
    }
}

/* Makes the next ids have this number, of 46 bits. Nothing may be pending. */
static void set_number(struct slu_engine *engine, uint64_t number)
{
    for (uint32_t i = 0; i < engine->peer_count; i++) {
        for (uint32_t k = 0; k < SLU_RINGS; k++) {
            struct slu_ring *ring = &engine->peers[i].rings[k];
            ring->next = number * SLU_ID_STEP | ring->next % SLU_ID_STEP;
            ring->oldest = ring->since = ring->next;
        }
    }
    engine->refused_number = number - 1;
}

/* Uses every place of the ring often, before and after the numbers wrap to 0. */
static void wrap(uint32_t opcode, uint32_t depth)
{
    struct rig rig;
    struct sluice_handle handles[ROUNDS * 4];
    struct sluice_completion completion;
    rig_open(&rig, 1, depth);
    uint32_t places = rig.engine->peers[0].rings[SLU_SEND_QUEUE].size;
    require(places >= depth && places < 2 * depth, "%u", places);
    set_number(rig.engine, NUMBERS - 3);
    for (uint32_t i = 0; i < ROUNDS * depth; i++) {
        uint32_t key = 1 + i;
        handles[i] = rig_post(&rig, rig_request(opcode, 0, 10, key), LONG);
        require_ok(sluice_multichannel_wait(rig.channel, &handles[i], LONG, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
        require(completion.user_data == key, "%llu", (unsigned long long)completion.user_data);
        check_engine(rig.engine);
        /* The last handles can be waited for again; those whose places were reused are stale. */
        for (uint32_t k = 0; k <= i; k++) {
            int result = sluice_multichannel_wait(rig.channel, &handles[k], 0, &completion);
            require(result == (k + places > i ? 0 : -ESTALE), "handle %u at %u: %d", k, i, result);
            require(result != 0 || completion.user_data == 1 + k, "handle %u gives %llu", k,
                    (unsigned long long)completion.user_data);
        }
    }
    check_ids(handles, ROUNDS * depth);
    require(handles[0].id >> 18 == NUMBERS - 3, "it started at %#llx",
            (unsigned long long)handles[0].id);
    require(handles[ROUNDS * depth - 1].id >> 18 == ROUNDS * depth - 4, "it ended at %#llx",
            (unsigned long long)handles[ROUNDS * depth - 1].id);
    rig_close(&rig);
}

TEST(generation_wraps)
{
    for (uint32_t depth = 1; depth <= 4; depth++) {
        wrap(SLUICE_OP_WRITE, depth);
        wrap(SLUICE_OP_RECEIVE, depth);
    }
}

static struct rig *polled;
static uint64_t late_id;

/* The device reports a request of the generation before again. */
static void report_late(void)
{
    struct slu_entry *entry = slu_entry_find(polled->engine, late_id);
    require(!entry, "an id of before finds an entry%s", "");
    fake.at_poll = NULL;
}

/* Blocking calls go on over the wrap. */
TEST_WITH(rig, blocking_calls_over_the_wrap, (1, 1))
{
    set_number(rig->engine, NUMBERS - 2);
    struct sluice_handle handle = rig_post(rig, write_of(0, 1), LONG);
    struct sluice_completion completion;
    require_ok(sluice_multichannel_wait(rig->channel, &handle, LONG, &completion));
    polled = rig;
    late_id = handle.id;
    for (uint32_t i = 0; i < 40; i++) {
        fake.at_poll = i > 0 ? report_late : NULL;
        rig_works(rig, 0);
        check_engine(rig->engine);
    }
    require_result(sluice_multichannel_wait(rig->channel, &handle, 0, &completion), -ESTALE);
}

/* Refused requests without an entry get ids of their own, also when ids wrap. */
TEST_WITH(rig, ids_of_refused_requests_wrap, (2, 4))
{
    set_number(rig->engine, NUMBERS - 3);
    struct sluice_handle handles[ROUNDS];
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct sluice_completion completion = {.error = -ENOTCONN, .user_data = i};
        handles[i] = (struct sluice_handle){
            .id = slu_failure_keep_refused(rig->engine, SLU_OWNER_PROGRAM, i, &completion),
            .owner = rig->engine->tag};
        require(!slu_entry_find(rig->engine, handles[i].id), "it is that of an entry%s", "");
    }
    check_ids(handles, ROUNDS);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct sluice_completion completion;
        require_ok(sluice_multichannel_wait(rig->channel, &handles[i], 0, &completion));
        require(completion.user_data == i, "%llu", (unsigned long long)completion.user_data);
    }
}

/* Whatever its bits are, a handle that was never given out is stale, and nothing else happens. */
TEST_WITH(rig, forged_handles_are_stale, (2, 4))
{
    struct sluice_completion completion;
    fake.by_hand = true;
    struct sluice_handle pending = rig_post(rig, write_of(0, 1), LONG);
    for (uint64_t i = 0; i < 200000; i++) {
        /* All ids before the first valid ones, and then any. */
        struct sluice_handle forged = {.id = i < 100 ? i : i * UINT64_C(0x9e3779b97f4a7c15),
                                       .owner = rig->engine->tag};
        if (i >= 100 && i < 200) {
            forged.id = pending.id + ((i < 150 ? i - 99 : i - 200) << 18);
        }
        require_result(sluice_multichannel_wait(rig->channel, &forged, 0, &completion), -ESTALE);
        require_result(sluice_multichannel_cancel(rig->channel, &forged, &completion), -ESTALE);
        require_result(sluice_multichannel_detach(rig->channel, &forged), -ESTALE);
    }
    check_engine(rig->engine);
    require_result(sluice_multichannel_wait(rig->channel, &pending, 0, &completion), -ETIMEDOUT);
    require(fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS), "nothing");
    require_ok(sluice_multichannel_wait(rig->channel, &pending, 0, &completion));
}

/* A spilled failure can be cancelled and detached. */
TEST_WITH(rig, handles_of_failures_kept_aside, (1, 4))
{
    struct sluice_completion completion;
    struct sluice_handle handles[4];
    struct sluice_endpoint endpoint;
    fake.by_hand = true;
    for (uint32_t i = 0; i < 4; i++) {
        handles[i] = rig_post(rig, write_of(0, 1 + i), LONG);
    }
    fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_REM_ACCESS_ERR);
    require_ok(sluice_multichannel_flush(rig->channel, LONG));
    require_ok(sluice_multichannel_peer_reset(rig->channel, 0, &endpoint));
    require_ok(sluice_multichannel_peer_handshake(rig->channel, 0, &endpoint));
    /* These writes need the places of all of the failures. */
    for (uint32_t i = 0; i < 4; i++) {
        rig_post(rig, write_of(0, 10 + i), LONG);
    }
    require_result(rig->engine->failure_count, 4);
    require_ok(sluice_multichannel_cancel(rig->channel, &handles[0], &completion));
    require_status(&completion, 1, SLUICE_STATUS_REM_ACCESS_ERR, SLUICE_STATUS_REM_ACCESS_ERR);
    require_ok(sluice_multichannel_cancel(rig->channel, &handles[0], &completion));
    require_ok(sluice_multichannel_detach(rig->channel, &handles[1]));
    require_result(sluice_multichannel_wait(rig->channel, &handles[1], 0, &completion), -ESTALE);
    require_result(sluice_multichannel_detach(rig->channel, &handles[1]), -ESTALE);
    require_result(rig->engine->failure_count, 2);
    check_engine(rig->engine);
    for (uint32_t i = 2; i < 4; i++) {
        require_ok(sluice_multichannel_next(rig->channel, 0, &completion));
        require(completion.user_data == 1 + i, "%llu", (unsigned long long)completion.user_data);
    }
    require_result(sluice_multichannel_next(rig->channel, 0, &completion), -ETIMEDOUT);
}

/* A request that the device has already done is not cancelled. */
TEST_WITH(rig, cancel_polls_before_it_fails_the_peer, (1, 200))
{
    struct sluice_completion completion;
    fake.by_hand = true;
    /* The completion of the cancelled request is the last of many that the device reports. */
    struct sluice_handle handle = {0};
    for (uint32_t i = 0; i < 150; i++) {
        handle = rig_post(rig, write_of(0, 1 + i), LONG);
    }
    for (uint32_t i = 0; i < 150; i++) {
        fake_complete(rig_qp(rig, 0), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
    }
    require_ok(sluice_multichannel_cancel(rig->channel, &handle, &completion));
    require_status(&completion, 150, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    require_result(sluice_multichannel_peer_state(rig->channel, 0), SLUICE_STATE_READY);
    rig_works(rig, 0);
}

/* On a device that never flushes, a cancel takes no longer than the drain bound. */
TEST_WITH(rig, cancel_of_a_pair_that_never_flushes, (2, 4))
{
    struct sluice_completion completion;
    fake.by_hand = true;
    fake.never_flush = true;
    struct sluice_handle handle = rig_post(rig, write_of(0, 1), LONG);
    rig_post(rig, receive_of(0, 2), LONG);
    int64_t start = fake.now;
    require_ok(sluice_multichannel_cancel(rig->channel, &handle, &completion));
    require(fake.now - start >= SLU_DRAIN_TIME && fake.now - start < SLU_DRAIN_TIME + SLUICE_MS(20),
            "%lld ms", (long long)(fake.now - start) / 1000000);
    require_status(&completion, 1, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_WR_FLUSH_ERR);
    require(fake.ledger[1].held == 0 && fake.ledger[2].held == 0, "its buffers are in use%s", "");
    rig_works(rig, 1);
}

static uint32_t polls;

/* The poll of the cancel finds nothing; then the send is flushed, and the receive much later. */
static void flush_one_by_one(void)
{
    if (++polls == 2) {
        fake_complete(rig_qp(polled, 0), SLU_SEND_QUEUE, SLUICE_STATUS_WR_FLUSH_ERR);
    } else if (polls == 20) {
        fake_complete(rig_qp(polled, 0), SLU_RECEIVE_QUEUE, SLUICE_STATUS_WR_FLUSH_ERR);
    }
}

/* When cancel returns, no request of the peer uses memory. */
TEST_WITH(rig, cancel_waits_for_all_work_of_the_peer, (1, 4))
{
    struct sluice_completion completion;
    fake.by_hand = true;
    fake.never_flush = true;
    struct sluice_handle handle = rig_post(rig, write_of(0, 1), LONG);
    rig_post(rig, receive_of(0, 2), LONG);
    polled = rig;
    polls = 0;
    fake.at_poll = flush_one_by_one;
    require_ok(sluice_multichannel_cancel(rig->channel, &handle, &completion));
    require_status(&completion, 1, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_WR_FLUSH_ERR);
    require(polls >= 20 && fake.ledger[2].held == 0, "the receive is in flight after %u polls",
            polls);
    fake.at_poll = NULL;
    require_ok(sluice_multichannel_next(rig->channel, 0, &completion));
    require_status(&completion, 2, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_WR_FLUSH_ERR);
}

/* Late completions of detached requests are discarded, and their room is reused. */
TEST_WITH(rig, detached_requests_leave_the_pool_as_it_was, (2, 4))
{
    struct sluice_completion completion;
    for (uint32_t i = 0; i < 100000; i++) {
        fake.by_hand = i % 3 == 0;
        struct sluice_request request = i % 2 == 0 ? write_of(0, 1) : receive_of(0, 1);
        struct sluice_handle handle = rig_post(rig, request, LONG);
        require_ok(sluice_multichannel_detach(rig->channel, &handle));
        require_result(rig->engine->detached, 1);
        fake.by_hand = false;
        require_ok(sluice_multichannel_flush(rig->channel, LONG));
        require_result(rig->engine->detached, 0);
        require_result(sluice_multichannel_detach(rig->channel, &handle), -ESTALE);
    }
    check_engine(rig->engine);
    require_result(sluice_multichannel_next(rig->channel, 0, &completion), -ENOENT);
}
