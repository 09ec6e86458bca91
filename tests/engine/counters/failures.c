/* SPDX-License-Identifier: MIT */
/* One failure of each class that a program can cause, and work that is refused. */
#include "fixture.h"

/* Makes an RDMA device notice soon that its peer is gone. */
#define ACK_TIMEOUT 14

TEST_WITH(fixture, failure_of_access, (NULL))
{
    struct sluice_handle handles[2];
    struct sluice_sge sge = sge_of(fixture, 0, 10);
    for (int i = 0; i < 2; i++) {
        handles[i] = post_of(fixture->pair.channels[0], SLUICE_OP_RECEIVE, &sge);
    }
    fail_write(fixture, false);
    /* The other requests in flight end as cancelled. */
    for (int i = 0; i < 2; i++) {
        await(fixture->pair.channels[0], handles[i], SLUICE_CLASS_CANCELLED);
        fixture->wanted[0].failed[SLUICE_CLASS_CANCELLED]++;
    }
    fixture_check(fixture);
}

TEST_WITH(fixture, failure_of_local_memory, (NULL))
{
    fail_write(fixture, true);
    fixture_check(fixture);
}

TEST_WITH(fixture, failure_by_deadline, (NULL))
{
    require_result(sluice_channel_receive(fixture->pair.channels[0], NULL, 0, SLUICE_MS(20), NULL),
                   -ETIMEDOUT);
    fixture->wanted[0].failed[SLUICE_CLASS_TIMEOUT]++;
    fixture_check(fixture);
}

TEST_WITH(fixture, failure_by_truncation, (NULL))
{
    struct sluice_sge near = sge_of(fixture, 0, 100);
    struct sluice_sge far = sge_of(fixture, 1, 99);
    struct sluice_handle handle = post_of(fixture->pair.channels[1], SLUICE_OP_RECEIVE, &far);
    require_result(sluice_channel_send(fixture->pair.channels[0], &near, 1, DEADLINE), -EMSGSIZE);
    await(fixture->pair.channels[1], handle, SLUICE_CLASS_TRUNCATED);
    for (int i = 0; i < 2; i++) {
        fixture->wanted[i].failed[SLUICE_CLASS_TRUNCATED]++;
    }
    fixture_check(fixture);
}

TEST_WITH(fixture, failure_by_loss_of_the_peer,
          (ATTR(.ack_timeout = ACK_TIMEOUT, .retry_count = 1)))
{
    sluice_channel_close(fixture->pair.channels[1]);
    fixture->pair.channels[1] = NULL;
    struct sluice_sge sge = sge_of(fixture, 0, 10);
    struct sluice_request write = write_of(fixture, &sge);
    /* Submitted, because a blocking call may find that the channel has failed already. */
    struct sluice_completion completion;
    int result = sluice_channel_submit(fixture->pair.channels[0], &write, 1, DEADLINE, &completion);
    require(result == -ECONNRESET, "%d: %s", result, sluice_last_error());
    fixture->wanted[0].failed[SLUICE_CLASS_PEER_LOST]++;
    require_counters(read_channel(fixture->pair.channels[0]), &fixture->wanted[0]);
}

/* Work that a failed peer refuses is not posted, and counted apart. */
TEST_WITH(fixture, refused_work, (NULL))
{
    struct sluice_completion completions[3];
    fail_write(fixture, false);
    struct sluice_channel *channel = fixture->pair.channels[0];
    struct sluice_sge sge = sge_of(fixture, 0, 10);
    struct sluice_request writes[3];
    for (int i = 0; i < 3; i++) {
        writes[i] = write_of(fixture, &sge);
    }
    require_result(sluice_channel_send(channel, &sge, 1, DEADLINE), -ENOTCONN);
    fixture->wanted[0].refused++;
    fixture_check(fixture);
    require_result(sluice_channel_submit(channel, writes, 3, DEADLINE, completions), -ENOTCONN);
    fixture->wanted[0].refused += 3;
    fixture_check(fixture);
    require_result(sluice_channel_post(channel, writes, 3, DEADLINE, NULL), -ENOTCONN);
    fixture->wanted[0].refused++;
    fixture_check(fixture);
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, DEADLINE);
    require_result(sluice_scope_post(scope, writes, 2, NULL), 2);
    require_result(sluice_scope_end(scope, NULL), -ENOTCONN);
    fixture->wanted[0].refused += 2;
    fixture_check(fixture);
}

/* Work that finds no room until its deadline breaks nothing. */
TEST_WITH(fixture, work_that_found_no_room, (ATTR(.receive_depth = 1)))
{
    struct sluice_channel *channel = fixture->pair.channels[0];
    struct sluice_sge sge = sge_of(fixture, 0, 10);
    struct sluice_handle handle = post_of(channel, SLUICE_OP_RECEIVE, &sge);
    require_result(sluice_channel_receive(channel, &sge, 1, SLUICE_MS(10), NULL), -ETIMEDOUT);
    fixture->wanted[0].refused++;
    fixture->wanted[0].queue_full++;
    fixture_check(fixture);
    require_ok(sluice_channel_send(fixture->pair.channels[1], NULL, 0, DEADLINE));
    expect(&fixture->wanted[1], SLUICE_OP_SEND, 0);
    await(channel, handle, SLUICE_CLASS_NONE);
    expect(&fixture->wanted[0], SLUICE_OP_RECEIVE, 0);
    fixture_check(fixture);
}
