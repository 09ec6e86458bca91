/* SPDX-License-Identifier: MIT */
/* Peers with several queue pairs each that share receives. */
#include "../../support/fair.h"
#include "fixture.h"

#define STRIPED ((size_t)100000)

/* A message that follows a striped write arrives behind it, whatever receive it takes. */
TEST_WITH(striped, messages_behind_striped_writes, (PEERS, POOL))
{
    struct shared *shared = &striped->shared;
    struct sluice_sge sge = memory_sge(&shared->there, 0, STRIPED);
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, &sge);

    for (uint32_t round = 0; round < 4 * PEERS; round++) {
        uint32_t peer = round % PEERS;
        struct sluice_channel *spoke = shared->star.spokes[peer];

        require_equal(channel_info(spoke).queue_pairs, STRIPES);
        write.remote = memory_remote(&shared->here, (POOL - 1) * PLACE, STRIPED);
        pattern_fill(shared->there.bytes, PLACE, round);
        post_receive(shared, 0, PLACE);
        struct sluice_handle handles[2] = {post(spoke, &write),
                                           post_message(shared, peer, lengths[round % LENGTHS])};
        struct sluice_completion completion, unused = {.error = -EIO};
        int64_t end = fair_now() + DEADLINE;

        /* The message starts when its sender has seen the end of the write. */
        while (sluice_multichannel_next(shared->star.hub, SLUICE_MS(1), &completion) < 0)
            require((sluice_channel_wait(spoke, &handles[1], 0, &unused) == -ETIMEDOUT ||
                     unused.error == 0) &&
                        fair_now() < end,
                    "%s", sluice_last_error());
        require_class(&completion, SLUICE_CLASS_NONE);
        require_equal(completion.peer, peer, completion.bytes, lengths[round % LENGTHS]);
        pattern_check(shared->here.bytes + (POOL - 1) * PLACE, STRIPED, round);
        await(spoke, handles[0], SLUICE_CLASS_NONE);
        await(spoke, handles[1], SLUICE_CLASS_NONE);
    }
}

/* Messages of a peer complete in the order in which they were sent. */
TEST_WITH(striped, messages_of_a_peer_keep_their_order, (2, POOL))
{
    struct shared *shared = &striped->shared;

    for (uint32_t place = 0; place < POOL; place++)
        post_receive(shared, place, PLACE);
    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t round = 0; round < 8; round++) {
        struct sluice_handle handles[LENGTHS];

        for (size_t i = 0; i < LENGTHS; i++)
            handles[i] = post_message(shared, round % 2, lengths[(i + round) % LENGTHS]);
        for (size_t i = 0; i < LENGTHS; i++) {
            struct sluice_completion completion = next_result(shared);

            check_message(shared, &completion, lengths[(i + round) % LENGTHS]);
            require_equal(completion.peer, round % 2);
            post_receive(shared, (uint32_t)completion.user_data, PLACE);
        }
        await(shared->star.spokes[round % 2], handles[LENGTHS - 1], SLUICE_CLASS_NONE);
    }
}

/*
 * The end of a peer shows without requests in flight, by its further queue pairs or, without a
 * device, by itself. It says that it closes on a device as well.
 */
TEST_WITH(striped, end_of_an_idle_peer, (3, POOL))
{
    struct shared *shared = &striped->shared;
    struct sluice_multichannel *hub = shared->star.hub;
    struct sluice_completion completion;
    int64_t end = fair_now() + DEADLINE;

    for (uint32_t place = 0; place < POOL; place++)
        post_receive(shared, place, PLACE);
    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t peer = 0; peer < 3; peer++) {
        struct sluice_handle send = post_message(shared, peer, 8);

        completion = next_result(shared);
        check_message(shared, &completion, 8);
        await(shared->star.spokes[peer], send, SLUICE_CLASS_NONE);
    }
    sluice_channel_close(shared->star.spokes[1]);
    shared->star.spokes[1] = NULL;
    while (sluice_multichannel_peer_state(hub, 1) != SLUICE_STATE_FAILED && fair_now() < end)
        require_result(sluice_multichannel_next(hub, SLUICE_MS(1), &completion), -ETIMEDOUT);
    require_result(sluice_multichannel_peer_state(hub, 1), SLUICE_STATE_FAILED);
    require_result(sluice_multichannel_peer_state(hub, 0), SLUICE_STATE_READY);
    struct sluice_handle send = post_message(shared, 2, 8);
    completion = next_result(shared);
    check_message(shared, &completion, 8);
    await(shared->star.spokes[2], send, SLUICE_CLASS_NONE);
}

/* Several multichannels of one device have a pool each, with and without stripes. */
TEST(pools_of_one_device)
{
    struct striped striped;
    struct shared plain;
    struct shared *both[] = {&striped.shared, &plain};

    striped_open(&striped, 2, POOL);
    shared_open(&plain, 2, POOL);
    for (uint32_t round = 0; round < 8; round++) {
        struct shared *shared = both[round % 2];
        struct sluice_completion completion;

        pattern_fill(shared->there.bytes, PLACE, 3);
        post_receive(shared, round % POOL, PLACE);
        struct sluice_handle send = post_message(shared, round / 2 % 2, lengths[round]);
        completion = next_result(shared);
        check_message(shared, &completion, lengths[round]);
        require_equal(completion.user_data, round % POOL, completion.peer, round / 2 % 2);
        await(shared->star.spokes[completion.peer], send, SLUICE_CLASS_NONE);
    }
    shared_close(&plain);
    striped_close(&striped);
}
