/* SPDX-License-Identifier: MIT */
/* Peers that fail, come and go while they share receives. */
#include "fixture.h"

/* A peer that fails takes no receive with it. */
static void fail_a_peer(struct shared *shared)
{
    struct sluice_handle send;

    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t place = 0; place < POOL; place++)
        post_receive(shared, place, PLACE);
    star_break(&shared->star, 1);
    for (uint32_t i = 0; i < POOL; i++) {
        uint32_t peer = i % 2 == 0 ? 0 : 2;

        send = post_message(shared, peer, lengths[i]);
        struct sluice_completion completion = next_result(shared);
        check_message(shared, &completion, lengths[i]);
        require_equal(completion.peer, peer);
        await(shared->star.spokes[peer], send, SLUICE_CLASS_NONE);
    }
    require_result(sluice_multichannel_receive_any_room(shared->star.hub), POOL);
    star_reset(&shared->star, 1);
    send = post_message(shared, 1, 4097);
    post_receive(shared, 0, PLACE);
    struct sluice_completion completion = next_result(shared);
    check_message(shared, &completion, 4097);
    require_equal(completion.peer, 1);
    await(shared->star.spokes[1], send, SLUICE_CLASS_NONE);
}

TEST_WITH(shared, peer_that_fails, (3, POOL))
{
    fail_a_peer(shared);
}

TEST_WITH(striped, striped_peer_that_fails, (3, POOL))
{
    fail_a_peer(&striped->shared);
}

/* A message that is too long fails its receive, which names the peer, and that peer alone. */
static void send_too_much(struct shared *shared)
{
    struct sluice_completion completion;

    pattern_fill(shared->there.bytes, PLACE, 3);
    for (size_t i = 1; i < LENGTHS; i++) {
        struct sluice_handle send = post_message(shared, 1, lengths[i]);

        post_receive(shared, 0, lengths[i] - 1);
        completion = next_result(shared);
        require_class(&completion, SLUICE_CLASS_TRUNCATED);
        require_equal(completion.peer, 1, completion.user_data, 0);
        await(shared->star.spokes[1], send, SLUICE_CLASS_TRUNCATED);
        require_result(sluice_multichannel_peer_state(shared->star.hub, 0), SLUICE_STATE_READY);
        require_result(sluice_multichannel_peer_state(shared->star.hub, 1), SLUICE_STATE_FAILED);
        star_reset(&shared->star, 1);
    }
    struct sluice_handle send = post_message(shared, 0, 8);
    post_receive(shared, 0, 8);
    completion = next_result(shared);
    check_message(shared, &completion, 8);
    await(shared->star.spokes[0], send, SLUICE_CLASS_NONE);
}

TEST_WITH(shared, message_that_is_too_long, (2, POOL))
{
    send_too_much(shared);
}

TEST_WITH(striped, striped_message_that_is_too_long, (2, POOL))
{
    send_too_much(&striped->shared);
}

/* Nothing waits for ever where no peer is connected. */
TEST_WITH(shared, no_peer_is_left, (2, POOL))
{
    struct sluice_sge sge = memory_sge(&shared->here, 0, 8);
    struct sluice_handle receive = post_receive(shared, 0, 8);
    struct sluice_multichannel *hub = shared->star.hub;
    struct sluice_completion completion;

    require_error(sluice_multichannel_next(hub, 0, &completion), -ETIMEDOUT, "pending");
    require_ok(sluice_multichannel_flush(hub, 0));
    for (uint32_t peer = 0; peer < 2; peer++)
        star_break(&shared->star, peer);
    require_error(sluice_multichannel_wait(hub, &receive, SLUICE_FOREVER, &completion), -ENOTCONN,
                  "no peer is connected");
    require_error(sluice_multichannel_next(hub, SLUICE_FOREVER, &completion), -ENOENT,
                  "no peer is connected: no message would come for the 1 receive in the pool");
    if (device_is_soft())
        require_error(sluice_multichannel_receive_any(hub, &sge, 1, SLUICE_FOREVER, NULL),
                      -ENOTCONN, "no peer is connected");
    require_ok(sluice_multichannel_shutdown(hub, 0));
}

/* Results of a removed peer say so; a peer that is added shares the pool. */
static void come_and_go(struct shared *shared)
{
    struct sluice_multichannel *hub = shared->star.hub;
    struct sluice_prepared_channel *prepared;
    struct sluice_endpoint ours, theirs;
    struct sluice_completion completion;
    struct sluice_handle send;

    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t place = 0; place < POOL; place++)
        post_receive(shared, place, 8);
    send = post_message(shared, 1, 8);
    await(shared->star.spokes[1], send, SLUICE_CLASS_NONE);
    require_ok(sluice_multichannel_peer_remove(hub, 1));
    sluice_channel_close(shared->star.spokes[1]);
    for (int i = 0; i < 2; i++) {
        int index = sluice_multichannel_peer_add(hub, &ours);

        require_result(index, 1 + i);
        prepared = prepare_channel(shared->star.sides.pds[1], NULL, &theirs);
        shared->star.spokes[index] = made(sluice_prepared_channel_handshake(prepared, &ours));
        require_ok(sluice_multichannel_peer_handshake(hub, (uint32_t)index, &theirs));
    }
    shared->star.peers = 3;
    completion = next_result(shared);
    require_class(&completion, SLUICE_CLASS_NONE);
    require_equal(completion.peer, 1, completion.flags, SLUICE_IMMEDIATE | SLUICE_PEER_REMOVED);
    for (uint32_t peer = 0; peer < 3; peer++) {
        send = post_message(shared, peer, 8);
        completion = next_result(shared);
        check_message(shared, &completion, 8);
        require_equal(completion.peer, peer);
        await(shared->star.spokes[peer], send, SLUICE_CLASS_NONE);
    }
}

TEST_WITH(shared, peers_that_come_and_go, (2, POOL))
{
    come_and_go(shared);
}

TEST_WITH(striped, striped_peers_that_come_and_go, (2, POOL))
{
    come_and_go(&striped->shared);
}
