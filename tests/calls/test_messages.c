/* SPDX-License-Identifier: MIT */
/*
 * Messages of blocks: what a send gathers and a receive scatters is compared, byte by byte, with
 * a model that moves the blocks one after the other, whether their pieces are elements of the
 * request or staged; and they end as messages without blocks do.
 */
#include "messages/fixture.h"

/* A small message comes before there is a receive for it. */
static void do_early(struct fixture *fixture)
{
    do_post(fixture, SEND);
    do_post(fixture, RECEIVE);
    take(fixture, RECEIVE);
    take(fixture, SEND);
}

static void do_receive(struct fixture *fixture)
{
    struct sluice_completion completion;
    struct sluice_request request = ask(fixture, RECEIVE);
    do_post(fixture, SEND);
    require_ok(
        sluice_channel_submit(fixture->pair.channels[RECEIVE], &request, 1, DEADLINE, &completion));
    check_end(fixture, &completion, RECEIVE);
    take(fixture, SEND);
}

static void do_scope(struct fixture *fixture)
{
    struct sluice_request requests[2] = {ask(fixture, SEND), ask(fixture, RECEIVE)};
    struct sluice_scope *scopes[2];
    struct sluice_handle handles[2];
    struct sluice_completion completion;
    for (int side = 2; side-- > 0;) {
        scopes[side] = sluice_channel_scope_begin(fixture->pair.channels[side], DEADLINE);
        require_result(sluice_scope_post(scopes[side], &requests[side], 1, &handles[side]), 1);
    }
    for (int side = 2; side-- > 0;) {
        require_ok(sluice_scope_wait(scopes[side], &handles[side], DEADLINE, &completion));
        check_end(fixture, &completion, side);
        require_ok(sluice_scope_end(scopes[side], NULL));
    }
}

static void do_random(struct fixture *fixture)
{
    static void (*const calls[])(struct fixture * fixture) = {do_submit, do_early, do_receive,
                                                              do_scope, do_list};
    uint32_t count = 1 + choose(fixture, BLOCKS / 4);
    uint32_t bytes = 1 + choose(fixture, 12000 / (3 * count));
    bool more = choose(fixture, 2);
    lay(fixture, SEND, 3 * count, bytes);
    /* There may be more room than bytes. */
    lay(fixture, RECEIVE, more ? count + choose(fixture, count + 1) : count, 3 * bytes);
    fill(fixture);
    calls[choose(fixture, COUNT(calls))](fixture);
    check(fixture);
}

TEST_WITH(fixture, random_layouts, ())
{
    for (uint32_t i = 0; i < (short_run() ? 60 : 600); i++) {
        do_random(fixture);
    }
}

/* All that a request of one element has is staged. */
TEST(one_element)
{
    static struct fixture fixture;
    struct sluice_channel_attr one = messages_attr;
    one.max_sge = 1;
    fixture_open_with(&fixture, &one);
    for (uint32_t i = 0; i < 40; i++) {
        do_random(&fixture);
    }
    fixture_close(&fixture);
}

TEST_WITH(fixture, no_blocks_are_an_empty_message, ())
{
    fixture->blocks[SEND] = strided(0, 8, 16);
    fixture->blocks[RECEIVE] = strided(0, 8, 16);
    fill(fixture);
    do_submit(fixture);
    do_early(fixture);
    do_scope(fixture);
    do_list(fixture);
    fixture->blocks[RECEIVE] = strided(30, 8, 16);
    do_submit(fixture);
    value_check(fixture->memory[RECEIVE].bytes, SPAN, GAP);
}

/* A struct of zeros is that of a request without blocks. */
TEST_WITH(fixture, contiguous, ())
{
    const struct sluice_blocks none = {.size = sizeof(none)};
    struct sluice_request request = ask(fixture, SEND);
    fixture->blocks[SEND] = strided(1, 5000, 0);
    fixture->blocks[RECEIVE] = strided(50, 100, 200);
    fill(fixture);
    do_post(fixture, RECEIVE);
    request.blocks = &none;
    request.sge.length = 5000;
    require_ok(sluice_channel_submit(fixture->pair.channels[SEND], &request, 1, DEADLINE, NULL));
    take(fixture, RECEIVE);
    check(fixture);
}

/* A message that does not fit in the blocks ends as one that does not fit in a plain receive. */
TEST_WITH(fixture, too_long, ())
{
    for (int way = 0; way < 2; way++) {
        struct sluice_request receive = ask(fixture, RECEIVE);
        struct sluice_request send = ask(fixture, SEND);
        struct sluice_completion completion;
        fixture->blocks[SEND] = strided(100, 50, 70);
        fixture->blocks[RECEIVE] = strided(49, 100, 200);
        fill(fixture);
        if (way == 0) {
            receive.blocks = NULL;
            receive.sge.length = 4900;
        }
        struct sluice_handle handle = post(fixture->pair.channels[RECEIVE], &receive);
        require(sluice_channel_submit(fixture->pair.channels[SEND], &send, 1, DEADLINE,
                                      &completion) < 0,
                "it was sent");
        completion = await(fixture->pair.channels[RECEIVE], handle, SLUICE_CLASS_TRUNCATED);
        value_check(fixture->memory[RECEIVE].bytes + 4900, SPAN - 4900, GAP);
        pair_reset(&fixture->pair);
    }
}

/* Where it is dropped, the receive fails alone, and tells how long the message was. */
TEST(too_long_and_dropped)
{
    static struct fixture fixture;
    struct sluice_channel_attr dropping = messages_attr;
    dropping.flags |= SLUICE_CHANNEL_DROP_LONG;
    if (!device_is_soft()) {
        return;
    }
    fixture_open_with(&fixture, &dropping);
    struct sluice_request receive = ask(&fixture, RECEIVE);
    struct sluice_request send = ask(&fixture, SEND);
    fixture.blocks[SEND] = strided(100, 50, 70);
    fixture.blocks[RECEIVE] = strided(49, 100, 200);
    fill(&fixture);
    struct sluice_handle handle = post(fixture.pair.channels[RECEIVE], &receive);
    require_ok(sluice_channel_submit(fixture.pair.channels[SEND], &send, 1, DEADLINE, NULL));
    struct sluice_completion completion;
    require_ok(sluice_channel_wait(fixture.pair.channels[RECEIVE], &handle, DEADLINE, &completion));
    require_equal(completion.error, -EMSGSIZE, completion.error_class, SLUICE_CLASS_TRUNCATED,
                  completion.bytes, 5000);
    value_check(fixture.memory[RECEIVE].bytes, SPAN, GAP);
    fixture.blocks[RECEIVE] = strided(50, 100, 200);
    do_submit(&fixture);
    check(&fixture);
    fixture_close(&fixture);
}

/* A write with an immediate takes the receive, and puts nothing in its blocks. */
TEST_WITH(fixture, taken_by_a_write, ())
{
    struct sluice_request receive = ask(fixture, RECEIVE);
    struct sluice_request write = ask(fixture, SEND);
    fixture->blocks[RECEIVE] = strided(50, 100, 200);
    fill(fixture);
    struct sluice_handle handle = post(fixture->pair.channels[RECEIVE], &receive);
    write.opcode = SLUICE_OP_WRITE;
    write.flags = SLUICE_IMMEDIATE;
    write.immediate = 9;
    write.blocks = NULL;
    write.sge.length = 10000;
    write.remote = memory_remote(&fixture->memory[RECEIVE], 50000, 10000);
    require_ok(sluice_channel_submit(fixture->pair.channels[SEND], &write, 1, DEADLINE, NULL));
    struct sluice_completion completion =
        await(fixture->pair.channels[RECEIVE], handle, SLUICE_CLASS_NONE);
    require((completion.flags & SLUICE_WRITTEN) != 0 && completion.immediate == 9, "flags %#x",
            completion.flags);
    value_check(fixture->memory[RECEIVE].bytes, 50000, GAP);
}

TEST_WITH(fixture, immediate_and_plain_neighbours, ())
{
    struct sluice_channel *receiver = fixture->pair.channels[RECEIVE];
    struct sluice_request requests[6];
    struct sluice_completion completions[6];
    fixture->blocks[SEND] = strided(100, 20, 50);
    fixture->blocks[RECEIVE] = strided(40, 50, 60);
    fill(fixture);
    for (uint32_t i = 0; i < COUNT(requests); i++) {
        requests[i] = ask(fixture, RECEIVE);
        requests[i].user_data = i;
        if (i % 2 == 0) {
            requests[i].blocks = NULL;
            requests[i].sge = memory_sge(&fixture->memory[RECEIVE], 20000 + 100 * i, 100);
        }
    }
    require_result(sluice_channel_post(receiver, requests, COUNT(requests), DEADLINE, NULL),
                   COUNT(requests));
    for (uint32_t i = 0; i < COUNT(requests); i++) {
        requests[i] = ask(fixture, SEND);
        requests[i].flags = SLUICE_IMMEDIATE | SLUICE_FENCE | SLUICE_SOLICITED;
        requests[i].immediate = 1000 + i;
        if (i % 2 == 0) {
            requests[i].blocks = NULL;
            requests[i].sge = memory_sge(&fixture->memory[SEND], 100 * i, 100);
        }
    }
    require_ok(sluice_channel_submit(fixture->pair.channels[SEND], requests, COUNT(requests),
                                     DEADLINE, completions));
    for (uint32_t i = 0; i < COUNT(requests); i++) {
        struct sluice_completion completion;
        require_ok(sluice_channel_next(receiver, DEADLINE, &completion));
        require(completion.user_data == i && completion.immediate == 1000 + i &&
                    completion.bytes == (i % 2 == 0 ? 100 : 2000),
                "request %u: %llu, %u, %llu bytes", i, (unsigned long long)completion.user_data,
                completion.immediate, (unsigned long long)completion.bytes);
        require(i % 2 == 1 || memcmp(fixture->memory[RECEIVE].bytes + 20000 + 100 * i,
                                     fixture->memory[SEND].bytes + 100 * i, 100) == 0,
                "request %u", i);
        if (i % 2 == 0) {
            memset(fixture->memory[RECEIVE].bytes + 20000 + 100 * i, GAP, 100);
        }
    }
    check(fixture);
}

/* A request that is cancelled, or late, puts nothing in its blocks. */
TEST_WITH(fixture, cancelled_and_late, ())
{
    struct sluice_channel *channel = fixture->pair.channels[RECEIVE];
    for (int way = 0; way < 2; way++) {
        struct sluice_request request = ask(fixture, RECEIVE);
        struct sluice_completion completion;
        fixture->blocks[SEND] = strided(100, 50, 70);
        fixture->blocks[RECEIVE] = strided(50, 100, 200);
        fill(fixture);
        if (way == 0) {
            struct sluice_handle handle = post(channel, &request);
            require_ok(sluice_channel_cancel(channel, &handle, &completion));
            require_class(&completion, SLUICE_CLASS_CANCELLED);
        } else {
            require_result(sluice_channel_submit(channel, &request, 1, SLUICE_MS(20), &completion),
                           -ETIMEDOUT);
        }
        value_check(fixture->memory[RECEIVE].bytes, SPAN, GAP);
        pair_reset(&fixture->pair);
        do_submit(fixture);
        check(fixture);
    }
}

TEST(many_peers)
{
    static const uint32_t everybody[] = {0, 1, 2, 3};
    struct star star;
    struct sluice_request sends[4], receives[4];
    struct sluice_completion completions[8];
    const struct sluice_blocks out = strided(50, 10, 40);
    const struct sluice_blocks in = strided(25, 20, 21);
    star_open(&star, 4, &messages_attr);
    struct memory hub = side_memory(&star.sides, 0, 16000);
    struct memory spokes = side_memory(&star.sides, 1, 16000);
    pattern_fill(hub.bytes, hub.length, 5);
    for (uint32_t i = 0; i < 4; i++) {
        struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE,
                                         .sge_count = 1,
                                         .sge = memory_sge(&spokes, 2000 * i, 2000),
                                         .blocks = &in};
        struct sluice_request send = receive;
        send.opcode = SLUICE_OP_SEND;
        post(star.spokes[i], &receive);
        post(star.spokes[i], &send);
        sends[i] = REQUEST(.opcode = SLUICE_OP_SEND, .peer = i, .sge_count = 1,
                           .sge = memory_sge(&hub, 2000 * i, 2000), .blocks = &out);
        receives[i] = sends[i];
        receives[i].opcode = SLUICE_OP_RECEIVE;
        receives[i].sge = memory_sge(&hub, 8000 + 2000 * i, 2000);
    }
    require_ok(
        sluice_multichannel_scatter_gather(star.hub, sends, 4, receives, 4, DEADLINE, completions));
    for (uint32_t i = 0; i < 8; i++) {
        require(completions[i].error == 0 && completions[i].bytes == 500, "%u: error %d", i,
                completions[i].error);
    }
    for (uint32_t i = 0; i < 4; i++) {
        require_ok(sluice_channel_flush(star.spokes[i], DEADLINE));
        for (uint32_t at = 0; at < 500; at++) {
            require(spokes.bytes[2000 * i + at / 20 * 21 + at % 20] ==
                        hub.bytes[2000 * i + at / 10 * 40 + at % 10],
                    "peer %u, byte %u", i, at);
        }
        struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE,
                                         .sge_count = 1,
                                         .sge = memory_sge(&spokes, 2000 * i, 2000),
                                         .blocks = &in};
        post(star.spokes[i], &receive);
    }
    memset(spokes.bytes, 0, spokes.length);
    require_ok(sluice_multichannel_multicast_send(star.hub, sends, everybody, 4, DEADLINE, NULL));
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t at = i % 500;
        if (at == 0) {
            require_ok(sluice_channel_flush(star.spokes[i / 500], DEADLINE));
        }
        require(spokes.bytes[2000 * (i / 500) + at / 20 * 21 + at % 20] ==
                    hub.bytes[at / 10 * 40 + at % 10],
                "multicast, byte %u", i);
    }
    star_close(&star);
}

/* A peer that comes later has a staging buffer, and keeps it over resets. */
TEST_WITH(fixture, peers_that_are_reset, ())
{
    fixture->blocks[SEND] = strided(100, 50, 70);
    fixture->blocks[RECEIVE] = strided(50, 100, 200);
    for (int round = 0; round < 3; round++) {
        struct sluice_request request = ask(fixture, SEND);
        fill(fixture);
        post(fixture->pair.channels[SEND], &request);
        pair_reset(&fixture->pair);
        do_submit(fixture);
        check(fixture);
    }
}

int main(void)
{
    return run_tests("messages", 30);
}
