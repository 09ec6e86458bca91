/* SPDX-License-Identifier: MIT */
/* Objects made for a removed peer are never used for a later peer with the same index. */
#include "fixture.h"

static struct sluice_handle post_one(struct server *server, uint32_t opcode, uint32_t index,
                                     uint64_t user_data)
{
    struct sluice_request request = client_request(server, opcode, index, user_data);
    struct sluice_handle handle = {0};
    require_result(sluice_multichannel_post(server->all, &request, 1, DEADLINE, &handle), 1);
    return handle;
}

/* Handles of requests that were done, that were cancelled, and whose results were never read. */
TEST_WITH(server, handles_of_a_removed_peer, (8))
{
    struct sluice_completion completion;
    struct sluice_handle done, pending, seen, other;
    client_comes(server, 0);
    client_comes(server, 1);
    other = post_one(server, SLUICE_OP_RECEIVE, 1, 4);
    seen = post_one(server, SLUICE_OP_WRITE, 0, 1);
    require_ok(sluice_multichannel_wait(server->all, &seen, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    done = post_one(server, SLUICE_OP_WRITE, 0, 2);
    require_ok(sluice_multichannel_wait(server->all, &done, DEADLINE, &completion));
    pending = post_one(server, SLUICE_OP_RECEIVE, 0, 3);
    client_goes(server, 0, false);

    require_ok(sluice_multichannel_wait(server->all, &seen, 0, &completion));
    require(completion.user_data == 1 && completion.error == 0, "%d", completion.error);
    require_ok(sluice_multichannel_wait(server->all, &done, 0, &completion));
    require(completion.user_data == 2 && completion.error == 0, "%d", completion.error);
    require_ok(sluice_multichannel_wait(server->all, &pending, 0, &completion));
    require_class(&completion, SLUICE_CLASS_CANCELLED);
    require_equal(completion.user_data, 3, completion.flags, SLUICE_PEER_REMOVED);

    client_comes(server, 0);
    require_error(sluice_multichannel_wait(server->all, &seen, 0, &completion), -ESTALE, "");
    require_error(sluice_multichannel_wait(server->all, &done, 0, &completion), -ESTALE, "");
    require_error(sluice_multichannel_wait(server->all, &pending, 0, &completion), -ESTALE, "");
    require_error(sluice_multichannel_cancel(server->all, &pending, &completion), -ESTALE, "");
    require_error(sluice_multichannel_detach(server->all, &done), -ESTALE, "");
    require_result(sluice_multichannel_wait(server->all, &other, 0, &completion), -ETIMEDOUT);
    client_works(server, 0);
    require_ok(sluice_channel_send(server->clients[1], NULL, 0, DEADLINE));
    require_ok(sluice_multichannel_wait(server->all, &other, DEADLINE, &completion));
    require(completion.user_data == 4 && completion.flags == 0, "%#x", completion.flags);
}

/*
 * Each result comes once, however late, with SLUICE_PEER_REMOVED; results of the new peer come
 * without it.
 */
TEST_WITH(server, unread_results_of_a_removed_peer, (8))
{
    struct sluice_completion completion;
    struct sluice_handle handles[5];
    client_comes(server, 0);
    client_comes(server, 1);
    for (uint32_t i = 0; i < 4; i++) {
        handles[i] = post_one(server, SLUICE_OP_RECEIVE, 0, 10 + i);
    }
    require_ok(sluice_channel_send(server->clients[0], NULL, 0, DEADLINE));
    client_goes(server, 0, false);
    client_comes(server, 0);
    handles[4] = post_one(server, SLUICE_OP_WRITE, 0, 20);
    for (uint32_t i = 0; i < 4; i++) {
        completion = server_next(server);
        require_equal(completion.user_data, 10 + i, completion.peer, 0);
        require((completion.flags & SLUICE_PEER_REMOVED) != 0, "%#x", completion.flags);
        require((completion.error == 0) == (i == 0), "%u: %d", i, completion.error);
        require_error(sluice_multichannel_wait(server->all, &handles[i], 0, &completion), -ESTALE,
                      "");
    }
    require_ok(sluice_multichannel_wait(server->all, &handles[4], DEADLINE, &completion));
    require(completion.user_data == 20 && completion.flags == 0, "%#x", completion.flags);
    require_result(sluice_multichannel_next(server->all, 0, &completion), -ENOENT);
}

/* Spilled failures are marked and stale, too. */
TEST_WITH(server, failures_that_were_kept_aside, (8))
{
    struct sluice_completion completion;
    struct sluice_handle handles[8];
    uint32_t marked = 0;
    client_comes(server, 0);
    for (uint32_t i = 0; i < 8; i++) {
        handles[i] = post_one(server, SLUICE_OP_RECEIVE, 0, i);
    }
    client_goes(server, 0, false);
    for (int life = 0; life < 6; life++) {
        client_comes(server, 0);
        for (int i = 0; i < 8; i++) {
            post_one(server, SLUICE_OP_RECEIVE, 0, 100);
        }
        client_goes(server, 0, false);
    }
    for (uint32_t i = 0; i < 8; i++) {
        require_error(sluice_multichannel_wait(server->all, &handles[i], 0, &completion), -ESTALE,
                      "");
    }
    while (sluice_multichannel_poll(server->all, &completion, 1) == 1) {
        require_class(&completion, SLUICE_CLASS_CANCELLED);
        require(completion.flags == SLUICE_PEER_REMOVED, "%#x", completion.flags);
        marked++;
    }
    require(marked == 56, "%u", marked);
}

/*
 * Results that are dropped because their places are needed count for the old peer, not the new one.
 */
TEST_WITH(server, results_that_are_forgotten, (4))
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    client_comes(server, 0);
    for (uint32_t i = 0; i < 4; i++) {
        post_one(server, SLUICE_OP_RECEIVE, 0, i);
    }
    for (uint32_t i = 0; i < 4; i++) {
        require_ok(sluice_channel_send(server->clients[0], NULL, 0, DEADLINE));
    }
    client_goes(server, 0, false);
    /* First the successes are dropped, and then all but the last 64 spilled failures. */
    for (int life = 0; life < 20; life++) {
        client_comes(server, 0);
        for (int i = 0; i < 4; i++) {
            post_one(server, SLUICE_OP_RECEIVE, 0, 100);
        }
        require_ok(sluice_multichannel_peer_counters(server->all, 0, &counters));
        require(counters.forgotten == 0, "life %d: %llu", life,
                (unsigned long long)counters.forgotten);
        client_goes(server, 0, false);
    }
    require_ok(sluice_multichannel_counters(server->all, &counters));
    require(counters.forgotten > 0, "nothing was forgotten");
}

TEST_WITH(server, regions_of_a_removed_peer, (8))
{
    struct sluice_peer_remote_mr tags[2], before;
    struct sluice_completion completions[2];
    struct sluice_remote_mr remote;
    struct sluice_request write;
    remote = memory_remote(&server->far, 0, 8);
    require_error(sluice_multichannel_peer_remote(server->all, 0, &remote, &tags[0]), -EINVAL,
                  "none yet");
    for (uint32_t i = 0; i < 2; i++) {
        client_comes(server, i);
        require_ok(sluice_multichannel_peer_remote(server->all, i, &remote, &tags[i]));
        require(tags[i].peer == i && tags[i].generation == 0, "%u", tags[i].generation);
    }
    write = client_request(server, SLUICE_OP_WRITE, 0, 0);
    memset(server->memory.bytes, 0x11, 8);
    require_ok(sluice_multichannel_multicast_write(server->all, &write, tags, 2, DEADLINE, NULL));
    before = tags[1];
    client_goes(server, 1, false);
    require_error(sluice_multichannel_peer_remote(server->all, 1, &remote, &tags[1]), -ENOTCONN,
                  "peer 1 removed");
    require(memcmp(&before, &tags[1], sizeof(before)) == 0, "it was written");
    /* A write to the present peer still works. */
    memset(server->memory.bytes, 0x22, 8);
    require_error(
        sluice_multichannel_multicast_write(server->all, &write, tags, 2, DEADLINE, completions),
        -ENOTCONN, "peer 1 removed");
    require_equal(completions[0].error, 0, completions[1].error, -ENOTCONN);
    value_check(server->far.bytes, 8, 0x22);

    client_comes(server, 1);
    memset(server->memory.bytes, 0x33, 8);
    memset(completions, 0x77, sizeof(completions));
    require_error(
        sluice_multichannel_multicast_write(server->all, &write, tags, 2, DEADLINE, completions),
        -ESTALE, "remotes[1] generation 0 index 1 at 1");
    require_error(
        sluice_multichannel_post_multicast_write(server->all, &write, tags, 2, DEADLINE, NULL),
        -ESTALE, "remotes[1] generation 0 index 1 at 1");
    value_check(completions, sizeof(completions), 0x77);
    value_check(server->far.bytes, 8, 0x22);
    require_ok(sluice_multichannel_peer_remote(server->all, 1, &remote, &tags[1]));
    require(tags[1].peer == 1 && tags[1].generation == 1, "%u", tags[1].generation);
    require_ok(sluice_multichannel_multicast_write(server->all, &write, tags, 2, DEADLINE, NULL));
    value_check(server->far.bytes, 8, 0x33);
    /* A reset does not make it another peer. */
    require_error(sluice_multichannel_peer_remote(server->all, 2, &remote, &tags[1]), -EINVAL,
                  "2 0..1");
    require_error(sluice_multichannel_peer_remote(server->all, 1, NULL, &tags[1]), -EINVAL,
                  "remote");
    require_error(sluice_multichannel_peer_remote(server->all, 1, &remote, NULL), -EINVAL,
                  "tagged");
}

/* An endpoint that an earlier peer got connects to no peer. */
TEST_WITH(server, endpoint_of_a_removed_peer, (8))
{
    struct sluice_endpoint ours, theirs, next;
    struct sluice_prepared_channel *prepared;
    struct sluice_channel *late;
    require_result(sluice_multichannel_peer_add(server->all, &ours), 0);
    require_ok(sluice_multichannel_peer_remove(server->all, 0));
    require_result(sluice_multichannel_peer_add(server->all, &next), 0);
    require(memcmp(&ours, &next, sizeof(ours)) != 0, "the same endpoint again");
    prepared = prepare_channel(server->sides.pds[1], &server->attr, &theirs);
    require_ok(sluice_multichannel_peer_handshake(server->all, 0, &theirs));
    late = sluice_prepared_channel_handshake(prepared, &ours);
    if (late != NULL) {
        require(sluice_channel_wait_connected(late, SLUICE_MS(200)) != 0, "it was let in");
        require(sluice_multichannel_peer_wait_connected(server->all, 0, 0) != 0, "it is connected");
    }
    sluice_channel_close(late);
}
