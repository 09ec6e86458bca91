/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "rig.h"

/* The request behind it was not posted at all, and the next call is unaffected by that. */
TEST_WITH(rig, refused_post_before_a_split_request, (2, 8))
{
    struct sluice_completion completions[2];
    struct sluice_request requests[] = {write_of(0, 1), split_write(0, 2)};
    fake.refuse_send = 1;
    require_result(rig_submit(rig, requests, 2, LONG, completions), -EIO);
    require_status(&completions[0], 1, SLUICE_STATUS_GENERAL_ERR, SLUICE_STATUS_GENERAL_ERR);
    require_status(&completions[1], 2, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_GENERAL_ERR);
    require_class(&completions[1], SLUICE_CLASS_CANCELLED);
    require(fake.ledger[2].bytes == 0 && fake.ledger[2].held == 0, "it was posted%s", "");
    struct sluice_request request = write_of(1, 3);
    require_ok(rig_submit(rig, &request, 1, LONG, completions));
}

static struct rig *polled;

static void complete_all_sends(void)
{
    while (fake_complete(rig_qp(polled, 0), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS)) {
    }
    fake.at_poll = NULL;
}

static void fail_a_send(void)
{
    fake_complete(rig_qp(polled, 0), SLU_SEND_QUEUE, SLUICE_STATUS_REM_ACCESS_ERR);
    while (fake_complete(rig_qp(polled, 0), SLU_SEND_QUEUE, SLUICE_STATUS_WR_FLUSH_ERR)) {
    }
    fake.at_poll = NULL;
}

/* A receive of the peer fails, and thereby the peer. */
static void fail_a_receive(void)
{
    fake_complete(rig_qp(polled, 0), SLU_RECEIVE_QUEUE, SLUICE_STATUS_LOC_LEN_ERR);
}

static void fail_a_receive_after_the_parts(void)
{
    complete_all_sends();
    fail_a_receive();
}

static void fail_a_receive_before_the_parts(void)
{
    fail_a_receive();
    complete_all_sends();
}

/* The engine sees the failure before the parts in flight end. */
static void fail_a_receive_then_complete(void)
{
    fail_a_receive();
    fake.at_poll = complete_all_sends;
}

static void fail_a_receive_then_fail(void)
{
    fail_a_receive();
    fake.at_poll = fail_a_send;
}

/* Parts are in flight, one at a time or several, when their peer fails. */
static void fail_between_parts(void (*fault)(void), int error, uint32_t status)
{
    for (uint32_t depth = 1; depth < RIG_PARTS; depth++) {
        struct rig rig;
        struct sluice_completion completion;
        uint64_t moved = error == -ECANCELED ? depth * RIG_MESSAGE : 0;
        fake_reset(depth);
        fake.by_hand = true;
        fake.never_flush = true;
        rig_open(&rig, 1, depth);
        rig_post(&rig, receive_of(0, 1), LONG);
        struct sluice_request request = split_write(0, 2);
        polled = &rig;
        fake.at_poll = fault;
        require_result(rig_submit(&rig, &request, 1, LONG, &completion), error);
        require_status(&completion, 2, status, SLUICE_STATUS_LOC_LEN_ERR);
        require(completion.bytes == 0 && fake.ledger[2].bytes == moved, "%llu bytes of %u parts",
                (unsigned long long)fake.ledger[2].bytes, depth);
        rig_poll_all(&rig, &completion, 1);
        require_class(&completion, SLUICE_CLASS_TRUNCATED);
        rig_close(&rig);
    }
}

TEST(split_request_of_a_peer_that_fails_is_no_success)
{
    fail_between_parts(fail_a_receive_after_the_parts, -ECANCELED, SLUICE_STATUS_WR_FLUSH_ERR);
    fail_between_parts(fail_a_receive_before_the_parts, -ECANCELED, SLUICE_STATUS_WR_FLUSH_ERR);
    fail_between_parts(fail_a_receive_then_complete, -ECANCELED, SLUICE_STATUS_WR_FLUSH_ERR);
}

TEST(error_of_a_part_survives_that_of_its_peer)
{
    fail_between_parts(fail_a_receive_then_fail, -EACCES, SLUICE_STATUS_REM_ACCESS_ERR);
}

static uint32_t good_parts;

/* Completes some parts, fails one, and flushes the rest. */
static void fail_a_part(void)
{
    struct slu_qp *qp = rig_qp(polled, 0);
    for (; good_parts > 0 && fake_held(qp, SLU_SEND_QUEUE) > 0; good_parts--) {
        fake_complete(qp, SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
    }
    if (good_parts == 0 && fake_complete(qp, SLU_SEND_QUEUE, SLUICE_STATUS_REM_ACCESS_ERR)) {
        fake.at_poll = NULL;
    }
}

TEST(error_of_a_part_survives)
{
    for (uint32_t depth = 1; depth <= RIG_PARTS + 1; depth++) {
        for (uint32_t good = 0; good < RIG_PARTS; good++) {
            struct rig rig;
            struct sluice_completion completion;
            fake_reset(good);
            fake.by_hand = true;
            rig_open(&rig, 1, depth);
            struct sluice_request request = split_write(0, 1);
            polled = &rig;
            good_parts = good;
            fake.at_poll = fail_a_part;
            require_result(rig_submit(&rig, &request, 1, LONG, &completion), -EACCES);
            require_status(&completion, 1, SLUICE_STATUS_REM_ACCESS_ERR,
                           SLUICE_STATUS_REM_ACCESS_ERR);
            require(completion.vendor == 99, "vendor code %u", completion.vendor);
            rig_close(&rig);
        }
    }
}

#define SCARCE_PEERS 4

static void complete_others(void)
{
    for (uint32_t i = 1; i < SCARCE_PEERS; i++) {
        while (fake_complete(rig_qp(polled, i), SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS)) {
        }
    }
}

/* The completion queue has room for fewer requests than one peer, which does not get all of it. */
static void hold_up_scarce_queue(struct sluice_request first, uint32_t count)
{
    struct rig rig;
    struct sluice_request requests[16 + 2 * SCARCE_PEERS];
    struct sluice_completion completions[COUNT(requests)];
    uint32_t all = count;
    fake_reset(count);
    fake.by_hand = true;
    fake.max_cq_depth = 12;
    rig_open(&rig, SCARCE_PEERS, 8);
    polled = &rig;
    fake.at_poll = complete_others;
    for (uint32_t i = 0; i < count; i++) {
        requests[i] = first;
    }
    for (uint32_t peer = 1; peer < SCARCE_PEERS; peer++) {
        requests[all++] = write_of(peer, 100 + peer);
        requests[all++] = split_write(peer, 200 + peer);
    }
    require_result(rig_submit(&rig, requests, all, SLUICE_S(1), completions), -ETIMEDOUT);
    for (uint32_t i = 0; i < all; i++) {
        require(completions[i].error == (i < count ? -ETIMEDOUT : 0), "request %u: %d", i,
                completions[i].error);
    }
    fake.at_poll = NULL;
    rig_close(&rig);
}

TEST(slow_peer_leaves_room_in_a_scarce_queue)
{
    hold_up_scarce_queue(write_of(0, 1), 16);
    hold_up_scarce_queue(split_write(0, 1), 2);
}
