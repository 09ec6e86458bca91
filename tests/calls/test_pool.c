/* SPDX-License-Identifier: MIT */
/*
 * Receives that all peers of a multichannel share. The hub has a pool, and its peers are plain
 * channels. A device differs in two ways: it cannot take a receive back, and it has no shares.
 */
#include <pthread.h>

#include "../support/process.h"
#include "pool/fixture.h"

TEST_WITH(shared, messages_of_all_peers, (PEERS, POOL))
{
    struct sluice_handle sends[PEERS];

    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t place = 0; place < POOL; place++)
        post_receive(shared, place, PLACE);
    for (size_t i = 0; i < LENGTHS; i++) {
        uint32_t of[PEERS] = {0};

        for (uint32_t peer = 0; peer < PEERS; peer++)
            sends[peer] = post_message(shared, peer, lengths[i]);
        for (uint32_t k = 0; k < PEERS; k++) {
            struct sluice_completion completion = next_result(shared);

            check_message(shared, &completion, lengths[i]);
            require(++of[completion.peer] == 1, "two from peer %u", completion.peer);
            post_receive(shared, (uint32_t)completion.user_data, PLACE);
        }
        for (uint32_t peer = 0; peer < PEERS; peer++)
            await(shared->star.spokes[peer], sends[peer], SLUICE_CLASS_NONE);
    }
}

/* The messages of each peer come in their order, more of them than there are receives. */
TEST_WITH(shared, more_messages_than_receives, (PEERS, 2))
{
    enum { EACH = 12 };
    struct sluice_handle sends[PEERS][EACH];
    uint32_t seen[PEERS] = {0};

    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t i = 0; i < EACH; i++)
        for (uint32_t peer = 0; peer < PEERS; peer++)
            sends[peer][i] = post_message(shared, peer, lengths[(i + peer) % LENGTHS]);
    post_receive(shared, 0, PLACE);
    post_receive(shared, 1, PLACE);
    for (uint32_t i = 0; i < PEERS * EACH; i++) {
        struct sluice_completion completion = next_result(shared);
        uint32_t number = seen[completion.peer]++;

        check_message(shared, &completion, lengths[(number + completion.peer) % LENGTHS]);
        post_receive(shared, (uint32_t)completion.user_data, PLACE);
    }
    for (uint32_t peer = 0; peer < PEERS; peer++)
        for (uint32_t i = 0; i < EACH; i++)
            await(shared->star.spokes[peer], sends[peer][i], SLUICE_CLASS_NONE);
}

/* Writes with immediate take receives of the pool, and leave their buffers alone. */
TEST_WITH(shared, writes_with_immediate, (PEERS, POOL))
{
    struct sluice_remote_mr remote = memory_remote(&shared->here, 7 * PLACE, 64);
    struct sluice_sge sge = memory_sge(&shared->there, 0, 64);

    pattern_fill(shared->there.bytes, 64, 4);
    for (uint32_t peer = 0; peer < PEERS; peer++) {
        struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, &sge);
        struct sluice_handle handle;
        struct sluice_completion completion;

        write.remote = remote;
        write.flags = SLUICE_IMMEDIATE;
        write.immediate = 100 + peer;
        handle = post(shared->star.spokes[peer], &write);
        post_receive(shared, 0, 0);
        completion = next_result(shared);
        require_class(&completion, SLUICE_CLASS_NONE);
        require_equal(completion.peer, peer, completion.immediate, 100 + peer, completion.flags,
                      SLUICE_IMMEDIATE | SLUICE_WRITTEN, completion.bytes, 64);
        pattern_check(shared->here.bytes + 7 * PLACE, 64, 4);
        await(shared->star.spokes[peer], handle, SLUICE_CLASS_NONE);
    }
}

/* A message and one-sided requests behind it keep their order, with no receive at first. */
TEST_WITH(shared, requests_behind_a_message, (2, POOL))
{
    struct sluice_remote_mr remote = memory_remote(&shared->here, 7 * PLACE, 64);
    struct sluice_sge sge = memory_sge(&shared->there, 0, 64);
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, &sge);

    pattern_fill(shared->there.bytes, PLACE, 3);
    memset(shared->here.bytes + 7 * PLACE, 0, 64);
    write.remote = remote;
    for (size_t i = 0; i < LENGTHS; i++) {
        struct sluice_handle handles[2] = {post_message(shared, i % 2, lengths[i]),
                                           post(shared->star.spokes[i % 2], &write)};

        post_receive(shared, 0, PLACE);
        await(shared->star.spokes[i % 2], handles[1], SLUICE_CLASS_NONE);
        await(shared->star.spokes[i % 2], handles[0], SLUICE_CLASS_NONE);
        struct sluice_completion completion = next_result(shared);
        check_message(shared, &completion, lengths[i]);
    }
    pattern_check(shared->here.bytes + 7 * PLACE, 64, 3);
}

/*
 * A peer that floods uses its share, and no more, while the program is away: messages of others
 * find receives. The transport serves them.
 */
TEST_WITH(shared, flood_of_one_peer, (PEERS, POOL))
{
    enum { FLOOD = 40 };
    struct sluice_handle flood[FLOOD], others[PEERS];

    if (!device_is_soft())
        return;
    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t place = 0; place < POOL; place++)
        post_receive(shared, place, PLACE);
    for (uint32_t i = 0; i < FLOOD; i++)
        flood[i] = post_message(shared, 0, 8);
    for (uint32_t peer = 1; peer < PEERS; peer++)
        others[peer] = post_message(shared, peer, 8);
    for (uint32_t peer = 1; peer < PEERS; peer++)
        await(shared->star.spokes[peer], others[peer], SLUICE_CLASS_NONE);
    for (uint32_t i = 0; i < FLOOD + PEERS - 1; i++) {
        struct sluice_completion completion = next_result(shared);

        check_message(shared, &completion, 8);
        post_receive(shared, (uint32_t)completion.user_data, PLACE);
    }
    for (uint32_t i = 0; i < FLOOD; i++)
        await(shared->star.spokes[0], flood[i], SLUICE_CLASS_NONE);
}

#define REFUSED "receives are those of the pool"

/* With a pool, no peer has receives of its own, by whatever call. */
TEST_WITH(shared, receives_of_one_peer_are_refused, (2, POOL))
{
    struct sluice_sge sge = memory_sge(&shared->here, 0, 8);
    struct sluice_request requests[2] = {request_of(SLUICE_OP_RECEIVE, 0, &sge),
                                         request_of(SLUICE_OP_SEND, 1, &sge)};
    struct sluice_multichannel *hub = shared->star.hub;
    struct sluice_handle handle;
    struct sluice_scope *scope;

    require_error(sluice_multichannel_receive(hub, 0, &sge, 1, DEADLINE, NULL), -EINVAL, REFUSED);
    require_error(sluice_multichannel_post_receive(hub, 1, &sge, 1, DEADLINE, &handle), -EINVAL,
                  REFUSED);
    require_error(sluice_multichannel_post(hub, requests, 2, DEADLINE, NULL), -EINVAL, REFUSED);
    require_error(sluice_multichannel_submit(hub, requests, 1, DEADLINE, NULL), -EINVAL, REFUSED);
    require_error(sluice_multichannel_gather_receive(hub, requests, 1, DEADLINE, NULL), -EINVAL,
                  REFUSED);
    require_error(
        sluice_multichannel_scatter_gather(hub, requests + 1, 1, requests, 1, DEADLINE, NULL),
        -EINVAL, REFUSED);
    scope = made(sluice_multichannel_scope_begin(hub, DEADLINE));
    require_error(sluice_scope_post_receive(scope, 0, &sge, 1, NULL), -EINVAL, REFUSED);
    require_error(sluice_multichannel_post_receive_any(hub, requests, 1, NULL), -EBUSY, "scope");
    require_ok(sluice_scope_end(scope, NULL));
    require_null(sluice_multichannel_list_prepare(hub, requests, 1), EINVAL, REFUSED);
    require_null(sluice_channel_prepare(shared->star.sides.pds[0], ATTR(.receive_pool = 4)), EINVAL,
                 "receive_pool is for multichannels");
}

TEST_WITH(shared, wrong_receives_are_refused, (1, 2))
{
    struct sluice_sge sge = memory_sge(&shared->here, 0, 8), sges[2] = {sge, sge};
    struct sluice_request request = request_of(SLUICE_OP_RECEIVE, 0, &sge);
    struct sluice_blocks blocks = {0};
    struct sluice_multichannel *hub = shared->star.hub, *plain;
    struct sluice_request requests[3] = {request, request, request};

    require_error(sluice_multichannel_post_receive_any(hub, NULL, 1, NULL), -EINVAL, "is NULL");
    require_result(sluice_multichannel_post_receive_any(hub, NULL, 0, NULL), 0);
    request.opcode = SLUICE_OP_SEND;
    require_error(sluice_multichannel_post_receive_any(hub, &request, 1, NULL), -EINVAL, "opcode");
    request.opcode = SLUICE_OP_NONE;
    request.flags = SLUICE_FENCE;
    require_error(sluice_multichannel_post_receive_any(hub, &request, 1, NULL), -EINVAL, "flags");
    request.flags = SLUICE_PLAIN_MEMORY;
    require_error(sluice_multichannel_post_receive_any(hub, &request, 1, NULL), -EINVAL, "cache");
    request.flags = 0;
    request.blocks = &blocks;
    require_error(sluice_multichannel_post_receive_any(hub, &request, 1, NULL), -EINVAL, "blocks");
    request.blocks = NULL;
    sges[0].length = sges[1].length = UINT32_MAX;
    request.sges = sges;
    request.sge_count = 2;
    require_error(sluice_multichannel_post_receive_any(hub, &request, 1, NULL), -E2BIG,
                  "8589934590");
    require_result(sluice_multichannel_post_receive_any(hub, requests, 3, NULL), 2);
    require_error(sluice_multichannel_post_receive_any(hub, requests, 1, NULL), -EAGAIN,
                  "no room in the pool");
    require_error(sluice_multichannel_post_receive_any(NULL, requests, 1, NULL), -EINVAL,
                  "not a multichannel");
    require_error(sluice_multichannel_receive_any_room(NULL), -EINVAL, "not a multichannel");
    plain = loop_open(shared->star.sides.pds[0], 2, NULL);
    require_error(sluice_multichannel_post_receive_any(plain, requests, 1, NULL), -EINVAL,
                  "receive_pool");
    require_error(sluice_multichannel_receive_any(plain, &sge, 1, DEADLINE, NULL), -EINVAL,
                  "receive_pool");
    require_error(sluice_multichannel_receive_any_room(plain), -EINVAL, "receive_pool");
    sluice_multichannel_close(plain);
}

TEST_WITH(shared, wrong_attributes_are_refused, (1, 2))
{
    struct sluice_pd *pd = shared->star.sides.pds[0];

    require_null(sluice_multichannel_prepare(pd, 1, ATTR(.receive_pool = 65537)), EINVAL,
                 "receive_pool is 65537");
    require_null(sluice_multichannel_prepare(pd, 1, ATTR(.receive_pool = 4, .receive_pool_low = 4)),
                 EINVAL, "receive_pool_low is 4, must be less");
    require_null(sluice_multichannel_prepare(pd, 1, ATTR(.receive_pool_low = 1)), EINVAL,
                 "receive_pool_low is 1, must be less");
}

/* The room is 0 until the limit is reached, and then all that is missing. */
TEST_WITH(shared, room_for_refilling, (1, POOL))
{
    require_result(sluice_multichannel_receive_any_room(shared->star.hub), POOL);
    for (uint32_t place = 0; place < POOL; place++)
        post_receive(shared, place, 8);
    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t left = POOL; left-- > 0;) {
        struct sluice_handle send = post_message(shared, 0, 8);
        struct sluice_completion completion = next_result(shared);

        check_message(shared, &completion, 8);
        await(shared->star.spokes[0], send, SLUICE_CLASS_NONE);
        require_result(sluice_multichannel_receive_any_room(shared->star.hub),
                       left > POOL / 2 ? 0 : POOL - left);
    }
}

/* Results are found by handle, in any order, and when their entries were used again. */
TEST_WITH(shared, results_by_handle, (2, POOL))
{
    struct sluice_handle receives[POOL], more[POOL], send = {0};
    struct sluice_completion completion;

    pattern_fill(shared->there.bytes, PLACE, 3);
    for (uint32_t place = 0; place < POOL; place++)
        receives[place] = post_receive(shared, place, 8);
    for (uint32_t i = 0; i < POOL; i++)
        send = post_message(shared, i % 2, 8);
    for (uint32_t i = POOL; i-- > 1;) {
        require_ok(sluice_multichannel_wait(shared->star.hub, &receives[i], DEADLINE, &completion));
        check_message(shared, &completion, 8);
        require_equal(completion.user_data, i);
    }
    await(shared->star.spokes[1], send, SLUICE_CLASS_NONE);
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 1; i < POOL; i++)
            more[i] = post_receive(shared, i, 8);
        for (uint32_t i = 1; i < POOL; i++)
            send = post_message(shared, 0, 8);
        for (uint32_t i = 1; i < POOL; i++)
            require_ok(sluice_multichannel_wait(shared->star.hub, &more[i], DEADLINE, &completion));
        await(shared->star.spokes[0], send, SLUICE_CLASS_NONE);
    }
    require_ok(sluice_multichannel_wait(shared->star.hub, &receives[0], DEADLINE, &completion));
    check_message(shared, &completion, 8);
    require_equal(completion.user_data, 0);
    receives[1].id += UINT64_C(1) << 40;
    require_error(sluice_multichannel_wait(shared->star.hub, &receives[1], 0, &completion), -ESTALE,
                  "handle");
}

/* A receive that nobody looks at any more still takes a message. */
TEST_WITH(shared, detached_receive, (1, POOL))
{
    struct sluice_handle receive = post_receive(shared, 0, 8), send;
    struct sluice_completion completion;

    require_ok(sluice_multichannel_detach(shared->star.hub, &receive));
    post_receive(shared, 1, 8);
    pattern_fill(shared->there.bytes, PLACE, 3);
    post_message(shared, 0, 8);
    send = post_message(shared, 0, 8);
    completion = next_result(shared);
    check_message(shared, &completion, 8);
    require_equal(completion.user_data, 1);
    await(shared->star.spokes[0], send, SLUICE_CLASS_NONE);
    require_error(sluice_multichannel_wait(shared->star.hub, &receive, 0, &completion), -ESTALE,
                  "handle");
}

/* Cancelling takes a receive out of the pool and harms no peer; a device cannot do it. */
TEST_WITH(shared, cancelled_receive, (1, POOL))
{
    struct sluice_handle receive = post_receive(shared, 0, 8), send;
    struct sluice_completion completion;

    if (!device_is_soft()) {
        require_error(sluice_multichannel_cancel(shared->star.hub, &receive, &completion),
                      -EOPNOTSUPP, "cannot take back");
        return;
    }
    post_receive(shared, 1, 8);
    require_ok(sluice_multichannel_cancel(shared->star.hub, &receive, &completion));
    require_class(&completion, SLUICE_CLASS_CANCELLED);
    require_equal(completion.user_data, 0, completion.peer, UINT32_MAX);
    pattern_fill(shared->there.bytes, PLACE, 3);
    send = post_message(shared, 0, 8);
    completion = next_result(shared);
    check_message(shared, &completion, 8);
    require_equal(completion.user_data, 1);
    await(shared->star.spokes[0], send, SLUICE_CLASS_NONE);
    require_result(sluice_multichannel_peer_state(shared->star.hub, 0), SLUICE_STATE_READY);
}

/* The blocking call takes its receive back when its time is up, so a later message is not lost. */
TEST_WITH(shared, blocking_receive, (2, POOL))
{
    struct sluice_sge sge = memory_sge(&shared->here, 0, 8);
    struct sluice_multichannel *hub = shared->star.hub;
    struct sluice_completion completion;
    struct sluice_handle send;

    if (!device_is_soft()) {
        require_error(sluice_multichannel_receive_any(hub, &sge, 1, DEADLINE, &completion),
                      -EOPNOTSUPP, "cannot take back");
        return;
    }
    memset(shared->here.bytes, 0, 8);
    require_error(sluice_multichannel_receive_any(hub, &sge, 1, 0, NULL), -ETIMEDOUT,
                  "deadline is 0");
    require_error(sluice_multichannel_receive_any(hub, &sge, 1, -1, NULL), -EINVAL, "negative");
    for (int i = 0; i < 3; i++)
        require_error(sluice_multichannel_receive_any(hub, &sge, 1, SLUICE_MS(2), NULL), -ETIMEDOUT,
                      "no message came");
    require_result(sluice_multichannel_receive_any_room(hub), POOL);
    pattern_fill(shared->there.bytes, PLACE, 3);
    send = post_message(shared, 1, 8);
    require_result(sluice_multichannel_next(hub, SLUICE_MS(2), &completion), -ENOENT);
    value_check(shared->here.bytes, 8, 0);
    require_ok(sluice_multichannel_receive_any(hub, &sge, 1, DEADLINE, &completion));
    check_message(shared, &completion, 8);
    require_equal(completion.peer, 1);
    await(shared->star.spokes[1], send, SLUICE_CLASS_NONE);
    send = post_message(shared, 0, 9);
    require_error(sluice_multichannel_receive_any(hub, &sge, 1, DEADLINE, &completion), -EMSGSIZE,
                  "peer 0");
    require_equal(completion.peer, 0);
    await(shared->star.spokes[0], send, SLUICE_CLASS_TRUNCATED);
}

/* Memory of a posted receive stays registered, until the receive is used. */
TEST_WITH(shared, memory_in_use, (1, POOL))
{
    struct memory memory;
    struct sluice_request request;
    struct sluice_completion completion;
    struct sluice_handle send;

    memory_open(&memory, shared->star.sides.pds[0], 64);
    struct sluice_sge pieces[2];
    memory_split(&memory, 0, 64, pieces, 2);
    request = request_of(SLUICE_OP_RECEIVE, 0, pieces);
    request.sge_count = 2;
    require_result(sluice_multichannel_post_receive_any(shared->star.hub, &request, 1, NULL), 1);
    require_error(sluice_mr_deregister(memory.mr), -EBUSY, "");
    pattern_fill(shared->there.bytes, PLACE, 3);
    send = post_message(shared, 0, 64);
    completion = next_result(shared);
    require_class(&completion, SLUICE_CLASS_NONE);
    pattern_check(memory.bytes, 64, 3);
    await(shared->star.spokes[0], send, SLUICE_CLASS_NONE);
    memory_close(&memory);
}

static void *close_late(void *channel)
{
    let_pass(SLUICE_MS(50));
    sluice_channel_close(channel);
    return NULL;
}

/* No receive of its own tells the hub that its last peer has closed: its waits end all the same. */
static void wait_for_the_last_peer(struct shared *shared)
{
    struct sluice_completion completion;
    pthread_t closer;

    /* On a device, keep-alive alone shows the end of a peer that has no receives of its own. */
    if (!device_is_soft())
        return;
    post_receive(shared, 0, PLACE);
    require(pthread_create(&closer, NULL, close_late, shared->star.spokes[0]) == 0, "no thread");
    require_result(sluice_multichannel_next(shared->star.hub, DEADLINE, &completion), -ENOENT);
    require(pthread_join(closer, NULL) == 0, "no end");
    shared->star.spokes[0] = NULL;
    require_equal(sluice_multichannel_peer_state(shared->star.hub, 0), SLUICE_STATE_FAILED);
}

TEST_WITH(shared, a_wait_ends_with_the_last_peer, (1, POOL))
{
    wait_for_the_last_peer(shared);
}

TEST_WITH(striped, a_wait_ends_with_the_last_striped_peer, (1, POOL))
{
    wait_for_the_last_peer(&striped->shared);
}

/* Receives of plain memory, whose region is that of a cache while they are posted. */
TEST(plain_memory)
{
    static char message[100] = "of plain memory", room[100];
    struct sluice_request receive = REQUEST(.flags = SLUICE_PLAIN_MEMORY, .user_data = 5);
    struct sluice_request send = REQUEST(.opcode = SLUICE_OP_SEND, .flags = SLUICE_PLAIN_MEMORY);
    struct sluice_counters counters = {.size = sizeof counters};
    struct sluice_completion completion;
    struct sluice_multichannel *loop;
    struct sluice_mr_cache *cache;
    struct sides sides;

    sides_open(&sides);
    cache = made(sluice_mr_cache_create(sides.pds[0], SLUICE_ACCESS_LOCAL_WRITE, NULL));
    loop = loop_open(sides.pds[0], 2, ATTR(.receive_pool = 2, .mr_cache = cache));
    receive.sge = (struct sluice_sge){(uintptr_t)room, sizeof room, 0};
    send.sge = (struct sluice_sge){(uintptr_t)message, sizeof message, 0};
    receive.sge_count = send.sge_count = 1;
    require_result(sluice_multichannel_post_receive_any(loop, &receive, 1, NULL), 1);
    require_ok(sluice_multichannel_submit(loop, &send, 1, DEADLINE, NULL));
    require_ok(sluice_multichannel_next(loop, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    require_equal(completion.peer, 1, completion.user_data, 5, completion.bytes, sizeof room);
    require(memcmp(message, room, sizeof room) == 0, "other bytes");
    require_ok(sluice_multichannel_peer_counters(loop, 1, &counters));
    require_equal(counters.requests[SLUICE_OP_RECEIVE], 1, counters.bytes[SLUICE_OP_RECEIVE],
                  sizeof room);
    sluice_multichannel_close(loop);
    require_ok(sluice_mr_cache_destroy(cache));
    sides_close(&sides);
}

int main(void)
{
    return run_tests("pool", 20);
}
