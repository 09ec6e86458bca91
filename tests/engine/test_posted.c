/* SPDX-License-Identifier: MIT */
/*
 * Posted requests: a post takes as much of a list as there is room for and returns how much, each
 * request completes once, and results are polled, or waited for from any peer.
 */
#include "../support/pair.h"

#define DEPTH 8

static const struct sluice_channel_attr short_queues = {
    .size = sizeof(short_queues), .send_depth = DEPTH, .receive_depth = DEPTH};

/* Makes receives without memory, with user data from first. */
static void make_receives(struct sluice_request *requests, uint32_t count, uint64_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        requests[i] = request_of(SLUICE_OP_RECEIVE, 0, NULL);
        requests[i].user_data = first + i;
    }
}

static void send_messages(struct sluice_channel *channel, uint32_t count, uint32_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_channel_send_immediate(channel, NULL, 0, first + i, DEADLINE));
    }
}

/* Polls until count completions came. */
static void poll_all(struct sluice_channel *channel, struct sluice_completion *completions,
                     uint32_t count)
{
    uint32_t got = 0;
    while (got < count) {
        int result = sluice_channel_poll(channel, completions + got, count - got);
        require(result >= 0, "%s", sluice_last_error());
        got += (uint32_t)result;
    }
    require_result(sluice_channel_poll(channel, completions, 1), 0);
}

TEST_WITH(pair, full_queue_takes_what_fits, (&short_queues))
{
    struct sluice_request requests[DEPTH + 1];
    struct sluice_handle handles[DEPTH + 1];
    struct sluice_completion completions[DEPTH + 1];
    struct sluice_channel *channel = pair->channels[0];
    make_receives(requests, DEPTH + 1, 0);
    memset(handles, 0xcc, sizeof(handles));
    require_result(sluice_channel_post(channel, requests, DEPTH - 1, DEADLINE, handles), DEPTH - 1);
    /* There is room for the first one only; the other handle is not written. */
    require_result(
        sluice_channel_post(channel, requests + DEPTH - 1, 2, DEADLINE, handles + DEPTH - 1), 1);
    value_check(handles + DEPTH, sizeof(handles[0]), 0xcc);
    require_error(sluice_channel_post(channel, requests + DEPTH, 1, DEADLINE, handles + DEPTH),
                  -EAGAIN, "receive queue");
    value_check(handles + DEPTH, sizeof(handles[0]), 0xcc);
    /* Parked receives take no room of sends, and a full queue is no error. */
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle handle = post(pair->channels[1], &receive);
    require_ok(sluice_channel_send(channel, NULL, 0, DEADLINE));
    await(pair->channels[1], handle, SLUICE_CLASS_NONE);

    send_messages(pair->channels[1], DEPTH, 500);
    poll_all(channel, completions, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require_equal(completions[i].user_data, i, completions[i].immediate, 500 + i);
    }
    /* A list that is longer than the queue. */
    require_result(sluice_channel_post(channel, requests, DEPTH + 1, DEADLINE, NULL), DEPTH);
}

/* The same with sends, for which there are no receives. */
TEST_WITH(pair, full_send_queue_takes_what_fits, (&short_queues))
{
    struct sluice_request sends[2 * DEPTH], receives[DEPTH];
    struct sluice_completion completions[DEPTH];
    for (uint32_t i = 0; i < 2 * DEPTH; i++) {
        sends[i] = request_of(SLUICE_OP_SEND, 0, NULL);
        sends[i].user_data = i;
    }
    make_receives(receives, DEPTH, 100);
    require_result(sluice_channel_post(pair->channels[0], sends, 2 * DEPTH, DEADLINE, NULL), DEPTH);
    require_error(sluice_channel_post(pair->channels[0], sends, 1, DEADLINE, NULL), -EAGAIN,
                  "send queue");
    require_result(sluice_channel_poll(pair->channels[0], completions, DEPTH), 0);
    require_result(sluice_channel_post(pair->channels[1], receives, DEPTH, DEADLINE, NULL), DEPTH);
    poll_all(pair->channels[0], completions, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].user_data == i && completions[i].opcode == SLUICE_OP_SEND, "%u", i);
    }
    poll_all(pair->channels[1], completions, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require(completions[i].user_data == 100 + i, "%u", i);
    }
}

/* The list ends before the first request whose peer has no room; the rest is unchanged. */
TEST_WITH(star, list_stops_at_a_full_peer, (3, &short_queues))
{
    struct sluice_request requests[2 * DEPTH];
    struct sluice_handle handles[2 * DEPTH];
    struct sluice_completion completion;
    /* Peer 1 has room for three more. */
    make_receives(requests, DEPTH - 3, 900);
    for (uint32_t i = 0; i < DEPTH - 3; i++) {
        requests[i].peer = 1;
    }
    require_result(sluice_multichannel_post(star->hub, requests, DEPTH - 3, DEADLINE, NULL),
                   DEPTH - 3);
    make_receives(requests, 2 * DEPTH, 0);
    for (uint32_t i = 0; i < 2 * DEPTH; i++) {
        requests[i].peer = i % 3;
    }
    memset(handles, 0xcc, sizeof(handles));
    /* 0 1 2 0 1 2 0 1 2 0, and then the fourth of peer 1. */
    require_result(sluice_multichannel_post(star->hub, requests, 2 * DEPTH, DEADLINE, handles), 10);
    value_check(handles + 10, (2 * DEPTH - 10) * sizeof(handles[0]), 0xcc);
    require_error(
        sluice_multichannel_post(star->hub, requests + 10, 2 * DEPTH - 10, DEADLINE, handles + 10),
        -EAGAIN, "receive queue peer 1");
    value_check(handles + 10, (2 * DEPTH - 10) * sizeof(handles[0]), 0xcc);
    /* The posted requests are pending, each at its peer. */
    for (uint32_t i = 0; i < 10; i++) {
        require_result(sluice_multichannel_wait(star->hub, &handles[i], 0, &completion),
                       -ETIMEDOUT);
    }
    send_messages(star->spokes[0], 1, 0);
    send_messages(star->spokes[2], 1, 2);
    require_ok(sluice_multichannel_wait(star->hub, &handles[0], DEADLINE, &completion));
    require_ok(sluice_multichannel_wait(star->hub, &handles[2], DEADLINE, &completion));
    require_equal(completion.user_data, 2, completion.peer, 2);
    /* Once there is room again, the rest of the list is posted. */
    send_messages(star->spokes[1], 3, 100);
    for (uint32_t i = 0; i < 3; i++) {
        require_ok(sluice_multichannel_next(star->hub, DEADLINE, &completion));
        require(completion.user_data == 900 + i, "%llu", (unsigned long long)completion.user_data);
    }
    require_result(
        sluice_multichannel_post(star->hub, requests + 10, 2 * DEPTH - 10, DEADLINE, handles + 10),
        2 * DEPTH - 10);
}

TEST_WITH(star, list_stops_at_a_failed_peer, (3, &short_queues))
{
    struct sluice_request requests[6];
    struct sluice_handle handles[6];
    struct sluice_completion completion;
    star_break(star, 2);
    make_receives(requests, 6, 0);
    for (uint32_t i = 0; i < 6; i++) {
        requests[i].peer = i % 3;
    }
    memset(handles, 0xcc, sizeof(handles));
    require_result(sluice_multichannel_post(star->hub, requests, 6, DEADLINE, handles), 2);
    value_check(handles + 2, 4 * sizeof(handles[0]), 0xcc);
    require_error(sluice_multichannel_post(star->hub, requests + 2, 4, DEADLINE, handles + 2),
                  -ENOTCONN, "peer 2");
    value_check(handles + 2, 4 * sizeof(handles[0]), 0xcc);
    /* The program goes on behind that peer, and with it after a reset. */
    require_result(sluice_multichannel_post(star->hub, requests + 3, 3, DEADLINE, handles + 3), 2);
    star_reset(star, 2);
    require_result(sluice_multichannel_post(star->hub, requests + 5, 1, DEADLINE, handles + 5), 1);
    for (uint32_t i = 0; i < 6; i++) {
        if (i != 2) {
            send_messages(star->spokes[i % 3], 1, i);
            require_ok(sluice_multichannel_wait(star->hub, &handles[i], DEADLINE, &completion));
            require_equal(completion.user_data, i, completion.immediate, i);
        }
    }
}

/* A wrong request anywhere in a list is found before anything is posted. */
TEST_WITH(star, unknown_peer_index_posts_nothing, (2, &short_queues))
{
    struct sluice_request requests[DEPTH + 3];
    struct sluice_handle handles[DEPTH + 3];
    struct sluice_completion completion;
    make_receives(requests, DEPTH + 3, 0);
    memset(handles, 0xcc, sizeof(handles));
    /* This holds even behind a request without room, or of a failed peer. */
    requests[DEPTH + 2].peer = 2;
    require_error(sluice_multichannel_post(star->hub, requests, DEPTH + 3, DEADLINE, handles),
                  -EINVAL, "peer 2");
    star_break(star, 0);
    require_error(sluice_multichannel_post(star->hub, requests, DEPTH + 3, DEADLINE, handles),
                  -EINVAL, "peer 2");
    value_check(handles, sizeof(handles), 0xcc);
    require_error(sluice_multichannel_next(star->hub, DEADLINE, &completion), -ENOENT, "");
    require_result(sluice_multichannel_post(star->hub, requests, 0, DEADLINE, handles), 0);
}

/* Requests of one peer are posted in the order of the list. */
TEST_WITH(star, duplicate_peers_are_posted_in_order, (2, &short_queues))
{
    struct sluice_request receives[DEPTH];
    struct sluice_completion completion;
    make_receives(receives, DEPTH, 0);
    for (uint32_t i = 0; i < DEPTH; i++) {
        receives[i].peer = i >= DEPTH / 2;
    }
    require_result(sluice_multichannel_post(star->hub, receives, DEPTH, DEADLINE, NULL), DEPTH);
    send_messages(star->spokes[1], DEPTH / 2, DEPTH / 2);
    send_messages(star->spokes[0], DEPTH / 2, 0);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_ok(sluice_multichannel_next(star->hub, DEADLINE, &completion));
        require(completion.immediate == completion.user_data, "%u: immediate %u", i,
                completion.immediate);
    }
}

/* A write of more parts than the queue is deep never fits; one with as many does. */
TEST(request_of_too_many_parts)
{
    struct pair pair;
    struct sluice_channel_attr attr = short_queues;
    struct sluice_request requests[2];
    struct sluice_handle handles[2];
    attr.max_message = 4096;
    pair_open(&pair, &attr);
    struct memory near = side_memory(&pair.sides, 0, 4096 * (DEPTH + 1));
    struct memory far = side_memory(&pair.sides, 1, 4096 * (DEPTH + 1));
    pattern_fill(near.bytes, near.length, 4);
    struct sluice_sge sges[2] = {memory_sge(&near, 0, 4096 * DEPTH),
                                 memory_sge(&near, 0, near.length)};
    for (uint32_t i = 0; i < 2; i++) {
        requests[i] = request_of(SLUICE_OP_WRITE, 0, &sges[i]);
        requests[i].remote = memory_remote(&far, 0, far.length);
    }
    require_result(sluice_channel_post(pair.channels[0], requests, 2, DEADLINE, handles), 1);
    require_error(sluice_channel_post(pair.channels[0], requests + 1, 1, DEADLINE, handles + 1),
                  -E2BIG, "write 36864 bytes 9 parts 8");
    await(pair.channels[0], handles[0], SLUICE_CLASS_NONE);
    pattern_check(far.bytes, sges[0].length, 4);
    require_error(sluice_channel_post_write(pair.channels[0], &sges[1], 1, &requests[1].remote,
                                            DEADLINE, handles),
                  -E2BIG, "");
    pair_works(&pair);
    pair_close(&pair);
}

/* One poll serves all peers, so a receive from any peer needs no call of its own. */
TEST_WITH(star, poll_takes_from_any_peer, (5, NULL))
{
    struct sluice_completion completion;
    uint32_t order[] = {4, 2, 0, 3, 1};
    for (uint32_t i = 0; i < 5; i++) {
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, i, NULL);
        require_result(sluice_multichannel_post(star->hub, &receive, 1, DEADLINE, NULL), 1);
    }
    for (uint32_t i = 0; i < 5; i++) {
        send_messages(star->spokes[order[i]], 1, 60 + order[i]);
        int got;
        do {
            got = sluice_multichannel_poll(star->hub, &completion, 1);
        } while (got == 0);
        require_equal(got, 1, completion.peer, order[i], completion.immediate, 60 + order[i]);
    }
}

/* The same with next, which waits. */
/* One poll takes all that are there, however many that is. */
static void take_many(enum sluice_opcode opcode, bool seen_before)
{
    enum { MANY = 100 };
    static const struct sluice_channel_attr deep = {
        .size = sizeof(deep), .send_depth = MANY, .receive_depth = MANY};
    struct sluice_request requests[MANY];
    struct sluice_completion completions[MANY + 1];
    struct pair pair;
    int taken = 0;
    pair_open(&pair, &deep);
    make_receives(requests, MANY, 0);
    require_result(sluice_channel_post(pair.channels[1], requests, MANY, DEADLINE, NULL), MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        requests[i].opcode = SLUICE_OP_SEND;
    }
    require_result(sluice_channel_post(pair.channels[0], requests, MANY, DEADLINE, NULL), MANY);
    require_ok(sluice_channel_flush(pair.channels[0], DEADLINE));
    struct sluice_channel *channel = pair.channels[opcode == SLUICE_OP_RECEIVE ? 1 : 0];
    if (seen_before) {
        require_ok(sluice_channel_next(channel, DEADLINE, &completions[taken++]));
    }
    while (taken < MANY) {
        int result = sluice_channel_poll(channel, completions + taken, MANY + 1 - (uint32_t)taken);
        require(result >= 0, "%s", sluice_last_error());
        taken += result;
        /* A device may notify the peer before its own program. */
        require(taken == MANY || !device_is_soft(), "%d of %d", taken, MANY);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        require(completions[i].user_data == i && completions[i].error == 0, "%u", i);
    }
    pair_close(&pair);
}

TEST(one_poll_takes_all)
{
    take_many(SLUICE_OP_RECEIVE, false);
    take_many(SLUICE_OP_RECEIVE, true);
    take_many(SLUICE_OP_SEND, false);
}

TEST(next_receives_from_any_peer)
{
    enum { PEERS = 8, ROUNDS = 40 };
    struct star star;
    struct sluice_completion completion;
    uint32_t seen[PEERS] = {0};
    star_open(&star, PEERS, &short_queues);
    for (uint32_t i = 0; i < PEERS * DEPTH; i++) {
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, i % PEERS, NULL);
        require_result(sluice_multichannel_post(star.hub, &receive, 1, DEADLINE, NULL), 1);
    }
    require_error(sluice_multichannel_next(star.hub, 0, &completion), -ETIMEDOUT, "");
    for (uint32_t round = 0; round < ROUNDS; round++) {
        /* Peer 0 sends more than all others, and no other peer is delayed. */
        send_messages(star.spokes[0], DEPTH - 1, round * 100);
        for (uint32_t i = 1; i < PEERS; i++) {
            send_messages(star.spokes[i], 1, round * 100);
        }
        uint32_t others = 0;
        for (uint32_t i = 0; i < DEPTH - 1 + PEERS - 1; i++) {
            require_ok(sluice_multichannel_next(star.hub, DEADLINE, &completion));
            require_class(&completion, SLUICE_CLASS_NONE);
            require(completion.immediate / 100 == round, "peer %u: %u in round %u", completion.peer,
                    completion.immediate, round);
            seen[completion.peer]++;
            others += completion.peer != 0;
            require_ok(sluice_multichannel_post_receive(star.hub, completion.peer, NULL, 0,
                                                        DEADLINE, NULL));
        }
        require(others == PEERS - 1, "%u of the others in round %u", others, round);
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        require(seen[i] == ROUNDS * (i == 0 ? DEPTH - 1 : 1), "peer %u: %u", i, seen[i]);
    }
    require_error(sluice_multichannel_next(star.hub, SLUICE_MS(5), &completion), -ETIMEDOUT, "");
    star_close(&star);
}

/* Results come in the order of completion, across peers. */
TEST_WITH(star, next_takes_the_oldest_first, (5, NULL))
{
    struct sluice_completion completion;
    uint32_t order[] = {4, 2, 0, 3, 1};
    for (uint32_t i = 0; i < 5; i++) {
        require_ok(sluice_multichannel_post_receive(star->hub, i, NULL, 0, DEADLINE, NULL));
    }
    for (uint32_t i = 0; i < 5; i++) {
        send_messages(star->spokes[order[i]], 1, i);
        /* The arrival was counted, but its result not taken. */
        struct sluice_error error = {.size = sizeof(error)};
        require_result(sluice_multichannel_flush(star->hub, SLUICE_MS(i == 4 ? 20000 : 5)),
                       i == 4 ? 0 : -ETIMEDOUT);
        require_result(sluice_multichannel_peer_error(star->hub, 0, &error), 0);
    }
    for (uint32_t i = 0; i < 5; i++) {
        require_ok(sluice_multichannel_next(star->hub, 0, &completion));
        require_equal(completion.peer, order[i], completion.immediate, i);
    }
}

/* The call would wait for ever, so it fails at once, whatever its deadline. */
TEST_WITH(pair, next_with_nothing_posted, (NULL))
{
    struct sluice_completion completion;
    memset(&completion, 0xcc, sizeof(completion));
    require_error(sluice_channel_next(pair->channels[0], SLUICE_FOREVER, &completion), -ENOENT, "");
    require_error(sluice_channel_next(pair->channels[0], 0, &completion), -ENOENT, "");
    value_check(&completion, sizeof(completion), 0xcc);
    /* A failed request is a result; after it there is nothing again. */
    require_ok(sluice_channel_post_receive(pair->channels[0], NULL, 0, SLUICE_MS(10), NULL));
    require_ok(sluice_channel_next(pair->channels[0], SLUICE_FOREVER, &completion));
    require_class(&completion, SLUICE_CLASS_TIMEOUT);
    require_error(sluice_channel_next(pair->channels[0], SLUICE_FOREVER, &completion), -ENOENT, "");
    require_error(sluice_channel_next(pair->channels[0], -1, &completion), -EINVAL, "-1");
    require_error(sluice_channel_next(pair->channels[0], 0, NULL), -EINVAL, "completion");
    require_error(sluice_channel_next(NULL, 0, &completion), -EINVAL, "channel");
    require_error(sluice_multichannel_next(NULL, 0, &completion), -EINVAL, "multichannel");
}

TEST_WITH(star, flush_waits_and_loses_nothing, (3, &short_queues))
{
    struct sluice_request sends[6];
    struct sluice_completion completions[8];
    struct sluice_handle parked;
    require_ok(sluice_multichannel_flush(star->hub, 0));
    for (uint32_t i = 0; i < 6; i++) {
        sends[i] = request_of(SLUICE_OP_SEND, i % 3, NULL);
        sends[i].user_data = i;
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
        post(star->spokes[i % 3], &receive);
    }
    require_result(sluice_multichannel_post(star->hub, sends, 6, DEADLINE, NULL), 6);
    require_ok(sluice_multichannel_flush(star->hub, DEADLINE));
    /* The results are still there, and the connections too. */
    require_ok(sluice_multichannel_post_receive(star->hub, 1, NULL, 0, SLUICE_FOREVER, &parked));
    require_error(sluice_multichannel_flush(star->hub, SLUICE_MS(20)), -ETIMEDOUT, "1 receive");
    require_result(sluice_multichannel_poll(star->hub, completions, 8), 6);
    for (uint32_t i = 0; i < 6; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].opcode == SLUICE_OP_SEND, "opcode %u", completions[i].opcode);
    }
    require_result(sluice_multichannel_wait(star->hub, &parked, 0, completions), -ETIMEDOUT);
    send_messages(star->spokes[1], 1, 44);
    require_ok(sluice_multichannel_flush(star->hub, DEADLINE));
    require_ok(sluice_multichannel_wait(star->hub, &parked, 0, completions));
    require(completions[0].immediate == 44, "%u", completions[0].immediate);
    require_error(sluice_multichannel_flush(star->hub, -5), -EINVAL, "-5");
    require_error(sluice_multichannel_flush(NULL, 0), -EINVAL, "multichannel");
    require_error(sluice_channel_flush(NULL, 0), -EINVAL, "channel");
    for (uint32_t i = 0; i < 3; i++) {
        star_works(star, i);
    }
}

/* Each request completes once: those in flight end cancelled, and are counted. */
TEST_WITH(pair, shutdown_completes_all, (&short_queues))
{
    struct sluice_request receives[DEPTH];
    struct sluice_completion completions[DEPTH];
    make_receives(receives, DEPTH, 0);
    require_result(sluice_channel_post(pair->channels[0], receives, DEPTH, DEADLINE, NULL), DEPTH);
    send_messages(pair->channels[1], 3, 0);
    require_result(sluice_channel_shutdown(pair->channels[0], SLUICE_MS(30)), -ETIMEDOUT);
    poll_all(pair->channels[0], completions, DEPTH);
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_equal(completions[i].user_data, i);
        require_class(&completions[i], i < 3 ? SLUICE_CLASS_NONE : SLUICE_CLASS_CANCELLED);
    }
    require_result(sluice_channel_post(pair->channels[0], receives, 1, DEADLINE, NULL), -ENOTCONN);
}

TEST_WITH(star, shutdown_waits_for_work, (3, NULL))
{
    struct sluice_request sends[6];
    for (uint32_t i = 0; i < 6; i++) {
        sends[i] = request_of(SLUICE_OP_SEND, i % 3, NULL);
        post_of(star->spokes[i % 3], SLUICE_OP_RECEIVE, NULL);
    }
    require_result(sluice_multichannel_post(star->hub, sends, 6, DEADLINE, NULL), 6);
    require_ok(sluice_multichannel_shutdown(star->hub, DEADLINE));
    /* An empty list is no error even where no peer is left to take a request. */
    require_ok(sluice_multichannel_scatter_send(star->hub, NULL, 0, 0, NULL));
    struct sluice_completion completions[7];
    require_result(sluice_multichannel_poll(star->hub, completions, 7), 6);
    for (uint32_t i = 0; i < 6; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
    }
    require_result(sluice_multichannel_send(star->hub, 0, NULL, 0, DEADLINE), -ENOTCONN);
}

int main(void)
{
    return run_tests("posted", 30);
}
