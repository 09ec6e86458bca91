/* SPDX-License-Identifier: MIT */
/* What has no room in a staging buffer, or is wrong; and lists, which need room for all. */
#include "fixture.h"

/* Nothing of these is posted, and the text names the limit and the attribute. */
TEST_WITH(fixture, refusals, ())
{
    static const uint32_t pages[] = {0, 1, 99};
    struct sluice_channel *channel = fixture->pair.channels[SEND];
    for (int side = 0; side < 2; side++) {
        struct sluice_request request = ask(fixture, side);
        struct {
            struct sluice_blocks blocks;
            int error;
            const char *words;
        } wrongs[] = {
            {strided(800, 50, 60), -E2BIG, "request 0 max_sge 6 staging is 32768"},
            {strided(100, 5000, 600), -ERANGE, "request 0 local block"},
            {strided(3, 1, 4), -EINVAL, "request 0 blocks.remote must be all 0"},
            {strided(3, 0, 4), -EINVAL, "request 0 0 bytes"},
            {{.size = sizeof(struct sluice_blocks),
              .local = {.kind = SLUICE_LAYOUT_PAGED, .count = 3, .bytes = 4096, .indices = pages}},
             -ERANGE,
             "request 0 local index 2 is 99"},
        };
        wrongs[2].blocks.remote = strided(3, 1, 4).local;
        for (uint32_t i = 0; i < COUNT(wrongs); i++) {
            request.blocks = &wrongs[i].blocks;
            require_error(sluice_channel_submit(channel, &request, 1, DEADLINE, NULL),
                          wrongs[i].error, wrongs[i].words);
            require_error(sluice_channel_post(channel, &request, 1, DEADLINE, NULL),
                          wrongs[i].error, wrongs[i].words);
            require_null(sluice_channel_list_prepare(channel, &request, 1), -wrongs[i].error,
                         wrongs[i].words);
        }
        request.blocks = &wrongs[2].blocks;
        wrongs[2].blocks.remote = (struct sluice_layout){0};
        if (side == SEND) {
            request.flags = SLUICE_INLINE;
            require_error(sluice_channel_submit(channel, &request, 1, DEADLINE, NULL), -EINVAL,
                          "inline");
        }
    }
    pair_works(&fixture->pair);
}

TEST(no_staging_buffer)
{
    static struct fixture fixture;
    struct sluice_channel_attr none = messages_attr;
    none.staging = 0;
    fixture_open_with(&fixture, &none);
    fixture.blocks[SEND] = strided(6, 20, 50);
    fixture.blocks[RECEIVE] = strided(6, 20, 70);
    fill(&fixture);
    do_submit(&fixture);
    do_list(&fixture);
    check(&fixture);
    for (int side = 0; side < 2; side++) {
        struct sluice_request request = ask(&fixture, side);
        fixture.blocks[side] = strided(7, 20, 50);
        require_error(
            sluice_channel_submit(fixture.pair.channels[side], &request, 1, DEADLINE, NULL), -E2BIG,
            "request 0 max_sge 6 sluice_channel_attr.staging is 0");
    }
    fixture_close(&fixture);
}

/* Of several that fill the buffer, posted ones are posted as far as there is room. */
TEST_WITH(fixture, full_staging_buffer, ())
{
    struct sluice_channel *sender = fixture->pair.channels[SEND];
    struct sluice_channel *receiver = fixture->pair.channels[RECEIVE];
    struct sluice_request sends[10], receives[10];
    struct sluice_completion completions[10];
    fixture->blocks[SEND] = strided(100, 80, 100);
    fixture->blocks[RECEIVE] = strided(100, 80, 90);
    fill(fixture);
    for (uint32_t i = 0; i < COUNT(sends); i++) {
        sends[i] = ask(fixture, SEND);
        receives[i] = ask(fixture, RECEIVE);
    }
    /* Beside what goes as it is, 7,600 bytes of each are staged. */
    require_result(sluice_channel_post(receiver, receives, 10, DEADLINE, NULL), 4);
    require_error(sluice_channel_post(receiver, receives, 10, DEADLINE, NULL), -EAGAIN,
                  "staging buffer sluice_channel_attr.staging");
    require_result(sluice_channel_post(sender, sends, 4, DEADLINE, NULL), 4);
    for (int i = 0; i < 4; i++) {
        take(fixture, RECEIVE);
        take(fixture, SEND);
    }
    check(fixture);
    require_result(sluice_channel_post(sender, sends, 10, DEADLINE, NULL), 4);
    require_error(sluice_channel_post(sender, sends, 10, DEADLINE, NULL), -EAGAIN,
                  "staging buffer sluice_channel_attr.staging");
    require_result(sluice_channel_post(receiver, receives, 4, DEADLINE, NULL), 4);
    for (int i = 0; i < 4; i++) {
        take(fixture, RECEIVE);
        take(fixture, SEND);
    }
    /* Plain ones before and behind them do not change which come back. */
    pair_works(&fixture->pair);
    for (uint32_t round = 0; round < 10; round++) {
        fill(fixture);
        require_result(sluice_channel_post(receiver, receives, 4, DEADLINE, NULL), 4);
        require_ok(sluice_channel_submit(sender, sends, 4, DEADLINE, completions));
        for (int i = 0; i < 4; i++) {
            take(fixture, RECEIVE);
        }
        check(fixture);
        pair_works(&fixture->pair);
    }
}

/* A blocking call posts what there is no room for when there is. */
TEST_WITH(fixture, blocking_lists_wait_for_room, ())
{
    struct sluice_multichannel *loop = loop_open(fixture->pair.sides.pds[0], 2, &messages_attr);
    struct sluice_request requests[40];
    struct sluice_completion completions[40];
    fixture->blocks[SEND] = strided(100, 80, 100);
    fixture->blocks[RECEIVE] = strided(100, 80, 90);
    fill(fixture);
    for (uint32_t i = 0; i < COUNT(requests); i++) {
        requests[i] = ask(fixture, i % 2 == 0 ? SEND : RECEIVE);
        requests[i].sge = memory_sge(&fixture->memory[SEND], i % 2 == 0 ? 0 : 30000, 30000);
        requests[i].peer = i % 2;
    }
    memset(fixture->memory[SEND].bytes + 30000, GAP, 30000);
    require_ok(sluice_multichannel_submit(loop, requests, COUNT(requests), DEADLINE, completions));
    memcpy(fixture->memory[RECEIVE].bytes, fixture->memory[SEND].bytes + 30000, 30000);
    check(fixture);
    /* A posted list of both kinds is posted up to the first that has no room. */
    require_result(sluice_multichannel_post(loop, requests, COUNT(requests), DEADLINE, NULL), 8);
    require_ok(sluice_multichannel_flush(loop, DEADLINE));
    for (uint32_t i = 0; i < 8; i++) {
        require_result(sluice_multichannel_poll(loop, completions, 1), 1);
        require_equal(completions[0].error, 0, completions[0].bytes, 8000);
    }
    sluice_multichannel_close(loop);
}

TEST_WITH(fixture, lists_that_are_aimed, ())
{
    struct sluice_request requests[2];
    struct sluice_list *lists[2];
    for (int side = 0; side < 2; side++) {
        fixture->blocks[side] = strided(50, 100 - 50 * side, 200);
        fixture->blocks[side].local.count <<= side;
        requests[side] = ask(fixture, side);
        requests[side].sge.length = 20000;
        lists[side] =
            made(sluice_channel_list_prepare(fixture->pair.channels[side], &requests[side], 1));
        require_error(sluice_list_set_length(lists[side], 0, 10), -EINVAL, "request 0 blocks");
        require_error(sluice_list_aim(lists[side], 0, NULL, 8), -EINVAL, "no remote offset");
    }
    for (uint32_t offset = 0; offset < 40000; offset += 7001) {
        fill(fixture);
        for (int side = 2; side-- > 0;) {
            struct sluice_sge sge = memory_sge(&fixture->memory[side], offset, 20000);
            require_ok(sluice_list_aim(lists[side], 0, &sge, 0));
            require_ok(sluice_list_post(lists[side], DEADLINE, NULL));
        }
        await_list(lists[SEND]);
        await_list(lists[RECEIVE]);
        for (uint32_t at = 0; at < 5000; at++) {
            require(fixture->memory[RECEIVE].bytes[offset + at / 50 * 200 + at % 50] ==
                        fixture->memory[SEND].bytes[offset + at / 100 * 200 + at % 100],
                    "byte %u at offset %u", at, offset);
        }
    }
    for (int side = 0; side < 2; side++) {
        sluice_list_free(lists[side]);
    }
    requests[0].blocks = &fixture->blocks[SEND];
    fixture->blocks[SEND] = strided(200, 80, 90);
    struct sluice_request three[3] = {requests[0], requests[0], requests[0]};
    require_null(sluice_channel_list_prepare(fixture->pair.channels[SEND], three, 3), E2BIG,
                 "peer 0 32768 staging");
}
