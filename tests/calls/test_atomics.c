/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations: the values they leave and return, their order among other requests, and that a
 * peer without the right gets none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/words.h"

/* Each kind of call returns the old value and stores the new one, modulo 2^64. */
TEST_WITH(fixture, fetch_add_values, (NULL, ACCESS))
{
    static const uint64_t addends[] = {1, 0, UINT64_MAX, UINT64_C(1) << 63, 0x1122334455667788};
    struct sluice_sge sge = result_sge(fixture, 2);
    struct sluice_remote_mr remote = word_of(fixture, 3);
    uint64_t value = START + 3;
    for (size_t i = 0; i < COUNT(addends); i++) {
        fixture->results[2] = 0;
        require_ok(sluice_multichannel_fetch_add(fixture->star.hub, 1, &sge, &remote, addends[i],
                                                 DEADLINE));
        require_word(fixture->results[2], value, "the old value");
        value += addends[i];
        require_word(fixture->words[3], value, "the new value");
    }
    require_word(value, START + 3 + 0x9122334455667788, "the sum");

    struct sluice_request request = add_request(fixture, 3, &sge, 5);
    struct sluice_completion completion = {0};
    require_ok(sluice_multichannel_submit(fixture->star.hub, &request, 1, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    require_equal(completion.bytes, 8, completion.opcode, SLUICE_OP_FETCH_ADD, completion.peer, 1,
                  completion.user_data, request.user_data);
    require_word(fixture->results[2], value, "the old value");
    require_word(fixture->words[3], value + 5, "the new value");
    check_others(fixture, 1 << 3);
}

TEST_WITH(fixture, compare_swap_values, (NULL, ACCESS))
{
    struct sluice_sge sge = result_sge(fixture, 0);
    struct sluice_remote_mr remote = word_of(fixture, 7);
    /* The value is as expected, and then differs in one bit, each in turn. */
    require_ok(sluice_multichannel_compare_swap(fixture->star.hub, 1, &sge, &remote, START + 7,
                                                ~START, DEADLINE));
    require_word(fixture->results[0], START + 7, "the old value");
    require_word(fixture->words[7], ~START, "the new value");
    for (int bit = 0; bit < 64; bit += short_run() ? 9 : 1) {
        fixture->results[0] = 0;
        require_ok(sluice_multichannel_compare_swap(fixture->star.hub, 1, &sge, &remote,
                                                    ~START ^ UINT64_C(1) << bit, (uint64_t)bit,
                                                    DEADLINE));
        require_word(fixture->results[0], ~START, "the old value");
        require_word(fixture->words[7], ~START, "the value that was not as expected");
    }
    struct sluice_request request = swap_request(fixture, 7, &sge, ~START, 0);
    struct sluice_completion completion = {0};
    require_ok(sluice_multichannel_submit(fixture->star.hub, &request, 1, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    require_equal(completion.bytes, 8, completion.opcode, SLUICE_OP_COMPARE_SWAP);
    require_word(fixture->words[7], 0, "the new value");
    check_others(fixture, 1 << 7);
}

/* In the other direction, by a channel; posted, one alone and several at once. */
TEST_WITH(pair, channel_and_posted, (NULL))
{
    struct memory near = side_memory(&pair->sides, 0, BYTES);
    struct memory far = side_memory_at(&pair->sides, 1, BYTES, ACCESS, 0);
    uint64_t *results = (uint64_t *)(void *)near.bytes, *words = (uint64_t *)(void *)far.bytes;
    struct sluice_sge sges[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        sges[i] = memory_sge(&near, i * sizeof(uint64_t), sizeof(uint64_t));
    }
    struct sluice_remote_mr remote = memory_remote(&far, 0, BYTES);
    words[0] = START;
    require_ok(sluice_channel_fetch_add(pair->channels[0], &sges[0], &remote, 7, DEADLINE));
    require_word(results[0], START, "the old value");
    require_ok(
        sluice_channel_compare_swap(pair->channels[0], &sges[0], &remote, START + 7, 1, DEADLINE));
    require_word(results[0], START + 7, "the old value");
    require_word(words[0], 1, "the new value");

    struct sluice_request requests[WORDS];
    struct sluice_handle handles[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        bool add = i % 2 == 0;
        requests[i] = request_of(add ? SLUICE_OP_FETCH_ADD : SLUICE_OP_COMPARE_SWAP, 0, &sges[i]);
        requests[i].remote = remote;
        requests[i].operand[0] = i + 1;
        requests[i].operand[1] = add ? 0 : i + 2;
    }
    /* Begins at 1; additions of one alternate with exchanges that add one more. */
    handles[0] = post(pair->channels[0], &requests[0]);
    await(pair->channels[0], handles[0], SLUICE_CLASS_NONE);
    require_word(results[0], 1, "the old value");
    require_word(words[0], 2, "the new value");
    require(
        sluice_channel_post(pair->channels[0], requests + 1, WORDS - 1, DEADLINE, handles + 1) >= 0,
        "%s", sluice_last_error());
    for (uint32_t i = 1; i < WORDS; i++) {
        struct sluice_completion completion =
            await(pair->channels[0], handles[i], SLUICE_CLASS_NONE);
        require(completion.bytes == 8, "%llu bytes", (unsigned long long)completion.bytes);
    }
    uint64_t value = 2;
    for (uint32_t i = 1; i < WORDS; i++) {
        require_word(results[i], value, "an old value");
        value = i % 2 == 0 ? value + i + 1 : value == i + 1 ? i + 2 : value;
    }
    require_word(words[0], value, "the last value");
}

/* A mistake of the caller, and the words of its error. */
struct mistake {
    int error;
    const char *words;
    uint32_t sges;   /* if not 1 */
    uint32_t length; /* if not 8 */
    uint32_t shift;  /* of the address of the result */
    uint32_t flags;
    uint64_t operands;      /* the second operand */
    uint64_t remote_length; /* if not 8 */
    uint64_t remote_shift;
};

static const struct mistake mistakes[] = {
    {-EINVAL, "SGE", .sges = 2},
    {-EINVAL, "SGE", .sges = UINT32_MAX}, /* none */
    {-EINVAL, "8 bytes, not 7", .length = 7},
    {-EINVAL, "8 bytes, not 9", .length = 9},
    {-EINVAL, "8 bytes, not 16", .length = 16},
    {-EINVAL, "multiple of 8", .shift = 4},
    {-EINVAL, "multiple of 8", .shift = 1},
    {-EINVAL, "remote.addr", .remote_shift = 1, .remote_length = 16},
    {-EINVAL, "remote.addr", .remote_shift = 4, .remote_length = 12},
    {-ERANGE, "has 7", .remote_length = 7},
    {-ERANGE, "has 4", .remote_length = 4},
    {-EINVAL, "flags", .flags = SLUICE_IMMEDIATE},
    {-EINVAL, "flags", .flags = SLUICE_INLINE},
    {-EINVAL, "flags", .flags = SLUICE_SOLICITED},
    {-EINVAL, "operand", .operands = 1},
};

static void check_mistake(struct fixture *fixture, uint32_t opcode, const struct mistake *mistake)
{
    struct sluice_sge sges[2] = {result_sge(fixture, 0), result_sge(fixture, 1)};
    struct sluice_request request = add_request(fixture, 2, sges, 1);
    request.opcode = opcode;
    request.operand[1] = mistake->operands;
    request.flags = mistake->flags;
    request.sge_count = mistake->sges == 0 ? 1 : mistake->sges == 2 ? 2 : 0;
    request.sges = request.sge_count != 0 ? sges : NULL;
    request.remote.addr += mistake->remote_shift;
    sges[0].addr += mistake->shift;
    if (mistake->length != 0) {
        sges[0].length = mistake->length;
    }
    if (mistake->remote_length != 0) {
        request.remote.length = mistake->remote_length;
    }
    struct sluice_completion completion = {.user_data = 99};
    struct sluice_handle handle;
    struct sluice_multichannel *hub = fixture->star.hub;
    require_error(sluice_multichannel_submit(hub, &request, 1, DEADLINE, &completion),
                  mistake->error, mistake->words);
    require(completion.user_data == 99, "a completion was written");
    require_error(sluice_multichannel_post(hub, &request, 1, DEADLINE, &handle), mistake->error,
                  mistake->words);
    if (mistake->flags != 0 || mistake->operands != 0 || mistake->sges != 0) {
        return;
    }
    int result = opcode == SLUICE_OP_FETCH_ADD
                     ? sluice_multichannel_fetch_add(hub, 1, sges, &request.remote, 1, DEADLINE)
                     : sluice_multichannel_compare_swap(hub, 1, sges, &request.remote, START + 2, 1,
                                                        DEADLINE);
    require_error(result, mistake->error, mistake->words);
}

TEST_WITH(fixture, wrong_arguments, (NULL, ACCESS), .times = 2)
{
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        check_mistake(fixture, SLUICE_OP_FETCH_ADD, &mistakes[i]);
        /* A compare-and-swap has two operands, so only its address may be wrong here. */
        if (mistakes[i].operands == 0) {
            check_mistake(fixture, SLUICE_OP_COMPARE_SWAP, &mistakes[i]);
        }
    }
    struct sluice_sge sge = result_sge(fixture, 0);
    struct sluice_remote_mr remote = word_of(fixture, 0);
    struct sluice_channel *spoke = fixture->star.spokes[1];
    struct sluice_multichannel *hub = fixture->star.hub;
    require_error(sluice_channel_fetch_add(spoke, NULL, &remote, 1, DEADLINE), -EINVAL, "NULL");
    require_error(sluice_channel_fetch_add(spoke, &sge, NULL, 1, DEADLINE), -EINVAL, "NULL");
    require_error(sluice_channel_compare_swap(spoke, NULL, &remote, 1, 2, DEADLINE), -EINVAL,
                  "NULL");
    require_error(sluice_channel_compare_swap(spoke, &sge, NULL, 1, 2, DEADLINE), -EINVAL, "NULL");
    require_error(sluice_multichannel_fetch_add(hub, 2, &sge, &remote, 1, DEADLINE), -EINVAL,
                  "peer 2");
    require_error(sluice_multichannel_fetch_add(hub, 1, &sge, &remote, 1, -1), -EINVAL, "deadline");
    require_error(sluice_channel_fetch_add(NULL, &sge, &remote, 1, DEADLINE), -EINVAL, "channel");
    require_error(sluice_channel_compare_swap(NULL, &sge, &remote, 1, 2, DEADLINE), -EINVAL,
                  "channel");
    require_error(sluice_multichannel_fetch_add(NULL, 0, &sge, &remote, 1, DEADLINE), -EINVAL,
                  "multichannel");
    require_error(sluice_multichannel_compare_swap(NULL, 0, &sge, &remote, 1, 2, DEADLINE), -EINVAL,
                  "multichannel");
    /* Only these operations have operands. */
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 1, &sge);
    write.remote = remote;
    write.operand[_i] = 1;
    require_error(sluice_multichannel_submit(hub, &write, 1, DEADLINE, NULL), -EINVAL, "operand");
    require_error(sluice_multichannel_post(hub, &write, 1, DEADLINE, NULL), -EINVAL, "operand");
    require_result(sluice_multichannel_peer_state(hub, 1), SLUICE_STATE_READY);
    check_others(fixture, 0);
    value_check(fixture->near.bytes, BYTES, 0);
    star_works(&fixture->star, 1);
}

/*
 * Requires that the request fails, and its peer with it, and that no word changes on either side.
 */
static void refused(struct fixture *fixture, const struct sluice_sge *sge,
                    const struct sluice_remote_mr *remote, enum sluice_error_class error_class,
                    int kind)
{
    struct sluice_completion completion = {0};
    struct sluice_request request = add_request(fixture, 0, sge, 1);
    if (kind == 1) {
        request.opcode = SLUICE_OP_COMPARE_SWAP;
        request.operand[0] = START;
        request.operand[1] = 1;
    }
    request.remote = *remote;
    int result = sluice_multichannel_submit(fixture->star.hub, &request, 1, DEADLINE, &completion);
    require_class(&completion, error_class);
    require(result == completion.error, "%d, not %d", result, completion.error);
    require_result(sluice_multichannel_peer_state(fixture->star.hub, 1), SLUICE_STATE_FAILED);
    struct sluice_error error = peer_error(fixture->star.hub, 1);
    require_equal(error.error_class, error_class, error.opcode, request.opcode);
    check_others(fixture, error_class == SLUICE_CLASS_LOCAL && !device_is_soft());
    value_check(fixture->near.bytes, BYTES, 0);
}

/* A region without the right to atomics; forged keys, addresses and ranges. */
TEST_WITH(fixture, no_right_in_the_region, (NULL, ACCESS_ALL), .times = 2)
{
    struct sluice_sge sge = result_sge(fixture, 0);
    struct sluice_remote_mr remote = word_of(fixture, 0);
    refused(fixture, &sge, &remote, SLUICE_CLASS_ACCESS, _i);
}

TEST_WITH(fixture, forged_regions, (NULL, ACCESS), .times = 2)
{
    static const int64_t shifts[] = {-8, BYTES, BYTES + 4096, INT64_MIN};
    struct sluice_sge sge = result_sge(fixture, 0);
    for (size_t i = 0; i < COUNT(shifts); i++) {
        struct sluice_remote_mr remote = word_of(fixture, 0);
        remote.addr += (uint64_t)shifts[i];
        refused(fixture, &sge, &remote, SLUICE_CLASS_ACCESS, _i);
        star_reset(&fixture->star, 1);
    }
    struct sluice_remote_mr remote = word_of(fixture, 0);
    remote.rkey ^= 0x5a5a5a5a;
    refused(fixture, &sge, &remote, SLUICE_CLASS_ACCESS, _i);
    star_reset(&fixture->star, 1);
    star_works(&fixture->star, 1);
}

/* The last word of a region whose length is not a multiple of 8. */
TEST_WITH(fixture, end_of_the_region, (NULL, ACCESS), .times = 2)
{
    struct memory odd = side_memory_at(&fixture->star.sides, 1, 20, ACCESS, 0);
    memset(odd.bytes, 0x77, 20);
    struct sluice_sge sge = result_sge(fixture, 0);
    struct sluice_remote_mr remote = memory_remote(&odd, 8, 12);
    require_ok(sluice_multichannel_fetch_add(fixture->star.hub, 1, &sge, &remote, 0, DEADLINE));
    require_word(fixture->results[0], 0x7777777777777777, "the old value");
    fixture->results[0] = 0;
    remote.addr += 8;
    remote.length = 8;
    refused(fixture, &sge, &remote, SLUICE_CLASS_ACCESS, _i);
    value_check(odd.bytes, 20, 0x77);
}

/* A channel that lets its peer read and write, or nothing. */
TEST(no_right_of_the_channel, .times = 2)
{
    static const uint32_t rights[] = {SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE,
                                      SLUICE_ACCESS_NONE};
    for (size_t i = 0; i < COUNT(rights); i++) {
        struct fixture fixture;
        struct sluice_channel_attr attr = {.size = sizeof(attr), .access = rights[i]};
        fixture_open(&fixture, &attr, ACCESS);
        struct sluice_sge sge = result_sge(&fixture, 0);
        struct sluice_remote_mr remote = word_of(&fixture, 0);
        refused(&fixture, &sge, &remote, SLUICE_CLASS_ACCESS, _i);
        fixture_close(&fixture);
    }
}

/* A channel with only the right to atomics refuses writes and reads. */
TEST_WITH(fixture, right_for_nothing_else,
          (ATTR(.access = SLUICE_ACCESS_REMOTE_ATOMIC),
           SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC),
          .times = 2)
{
    struct sluice_completion completion;
    struct sluice_sge sge = result_sge(fixture, 0);
    struct sluice_remote_mr remote = word_of(fixture, 1);
    require_ok(sluice_multichannel_fetch_add(fixture->star.hub, 1, &sge, &remote, 0, DEADLINE));
    require_word(fixture->results[0], START + 1, "the old value");
    fixture->results[0] = 0;
    struct sluice_request request = request_of(_i == 0 ? SLUICE_OP_WRITE : SLUICE_OP_READ, 1, &sge);
    request.remote = remote;
    require_result(
        sluice_multichannel_submit(fixture->star.hub, &request, 1, DEADLINE, &completion), -EACCES);
    require_class(&completion, SLUICE_CLASS_ACCESS);
    check_others(fixture, 0);
    value_check(fixture->near.bytes, BYTES, 0);
}

/*
 * The place for the old value is wrong. The peer's word is unchanged as well, except on devices
 * that check the place only when the old value arrives.
 */
TEST_WITH(fixture, no_place_for_the_result, (NULL, ACCESS), .times = 2)
{
    struct memory mute = side_memory_at(&fixture->star.sides, 0, 8, SLUICE_ACCESS_REMOTE_READ, 0);
    memset(mute.bytes, 0, 8);
    struct sluice_remote_mr remote = word_of(fixture, 0);
    struct sluice_sge bad[] = {memory_sge(&mute, 0, 8), result_sge(fixture, 0),
                               result_sge(fixture, 0)};
    bad[1].lkey ^= 0x5a5a5a5a;
    bad[2].addr += BYTES;
    for (size_t i = 0; i < COUNT(bad); i++) {
        refused(fixture, &bad[i], &remote, SLUICE_CLASS_LOCAL, _i);
        fixture->words[0] = START;
        value_check(mute.bytes, 8, 0);
        star_reset(&fixture->star, 1);
    }
}

/* The rights with which memory may be registered, and those that a channel may allow. */
TEST_WITH(sides, rights, ())
{
    uint64_t word = 0;
    struct sluice_channel_attr attr = *ATTR(.access = SLUICE_ACCESS_REMOTE_ATOMIC << 1);
    require_null(sluice_mr_register(sides->pds[0], &word, 8, SLUICE_ACCESS_REMOTE_ATOMIC), EINVAL,
                 "LOCAL_WRITE");
    require_null(
        sluice_mr_alloc(sides->pds[0], 8, SLUICE_ACCESS_REMOTE_ATOMIC | SLUICE_ACCESS_REMOTE_READ),
        EINVAL, "REMOTE_ATOMIC");
    require_null(sluice_channel_prepare(sides->pds[0], &attr), EINVAL, "access");
    struct sluice_mr *mr = made(
        sluice_mr_alloc(sides->pds[0], 8, SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC));
    require_ok(sluice_mr_deregister(mr));
}

/*
 * In one list, each request sees the effect of those before it: a write, an addition, a read, and
 * so on.
 */
TEST_WITH(fixture, mixed_in_order, (NULL, ACCESS))
{
    struct sluice_completion completions[WORDS];
    struct sluice_request requests[WORDS];
    struct sluice_sge sges[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        sges[i] = result_sge(fixture, i);
    }
    for (int round = 0; round < (short_run() ? 20 : 200); round++) {
        uint64_t value = (uint64_t)round << 32;
        memset(fixture->near.bytes, 0, BYTES);
        fixture->results[0] = value;
        requests[0] = request_of(SLUICE_OP_WRITE, 1, &sges[0]);
        requests[1] = add_request(fixture, 0, &sges[1], 10);
        requests[2] = request_of(SLUICE_OP_READ, 1, &sges[2]);
        requests[3] = swap_request(fixture, 0, &sges[3], value + 10, value + 20);
        requests[4] = add_request(fixture, 0, &sges[4], 1);
        requests[5] = request_of(SLUICE_OP_READ, 1, &sges[5]);
        requests[6] = swap_request(fixture, 0, &sges[6], value, 0);
        requests[7] = request_of(SLUICE_OP_READ, 1, &sges[7]);
        for (uint32_t i = 0; i < WORDS; i++) {
            requests[i].remote = word_of(fixture, 0);
            /* Devices keep the order without a fence, but need not. */
            if (i > 0 && (round % 2 == 0 || !device_is_soft())) {
                requests[i].flags = SLUICE_FENCE;
            }
        }
        require_ok(
            sluice_multichannel_submit(fixture->star.hub, requests, WORDS, DEADLINE, completions));
        require_word(fixture->results[1], value, "what it was written to");
        require_word(fixture->results[2], value + 10, "the sum");
        require_word(fixture->results[3], value + 10, "the sum that was expected");
        require_word(fixture->results[4], value + 20, "what it was exchanged for");
        require_word(fixture->results[5], value + 21, "the second sum");
        require_word(fixture->results[6], value + 21, "the second sum that was not expected");
        require_word(fixture->results[7], value + 21, "the second sum that stays");
        for (uint32_t i = 0; i < WORDS; i++) {
            require_class(&completions[i], SLUICE_CLASS_NONE);
        }
    }
    check_others(fixture, 1);
}

/* A write with a fence sends on the result of the atomic operation before it. */
TEST_WITH(fixture, fence_passes_the_result_on, (NULL, ACCESS))
{
    struct sluice_sge sge = result_sge(fixture, 0);
    uint64_t value = START;
    for (int round = 0; round < (short_run() ? 20 : 200); round++) {
        bool add = round % 2 == 0;
        struct sluice_request requests[2] = {add ? add_request(fixture, 0, &sge, 9)
                                                 : swap_request(fixture, 0, &sge, value, value + 9),
                                             request_of(SLUICE_OP_WRITE, 1, &sge)};
        requests[1].flags = SLUICE_FENCE;
        requests[1].remote = word_of(fixture, 5);
        fixture->results[0] = 0;
        require_ok(sluice_multichannel_submit(fixture->star.hub, requests, 2, DEADLINE, NULL));
        require_word(fixture->words[5], value, "the old value that was sent on");
        value += 9;
    }
    require_word(fixture->words[0], value, "the sum");
    check_others(fixture, 1 << 0 | 1 << 5);
}

/* A large read before it and a large write behind it: the atomic operation is between them. */
TEST_WITH(fixture, among_large_transfers, (NULL, ACCESS))
{
    size_t length = (size_t)(short_run() ? 1 : 8) << 20;
    struct memory near = side_memory(&fixture->star.sides, 0, 2 * length);
    struct memory far = side_memory_at(&fixture->star.sides, 1, length, ACCESS, 0);
    struct sluice_remote_mr remote = memory_remote(&far, 0, length);
    struct sluice_remote_mr last = memory_remote(&far, length - 8, 8);
    struct sluice_sge sges[] = {memory_sge(&near, 0, length), result_sge(fixture, 0),
                                memory_sge(&near, length, length), result_sge(fixture, 1)};
    for (int round = 0; round < 4; round++) {
        uint64_t word;
        struct sluice_request requests[4] = {
            request_of(SLUICE_OP_READ, 1, &sges[0]), add_request(fixture, 0, &sges[1], 1),
            request_of(SLUICE_OP_WRITE, 1, &sges[2]), add_request(fixture, 0, &sges[3], 1)};
        requests[0].remote = requests[2].remote = remote;
        requests[1].remote = requests[3].remote = last;
        /* Without a fence, a write may overtake an earlier read. */
        requests[2].flags = SLUICE_FENCE;
        requests[1].flags = device_is_soft() ? 0 : SLUICE_FENCE;
        pattern_fill(far.bytes, length, pattern_key(1, 2, (uint32_t)round));
        pattern_fill(near.bytes + length, length, pattern_key(2, 1, (uint32_t)round));
        require_ok(sluice_multichannel_submit(fixture->star.hub, requests, 4, DEADLINE, NULL));
        pattern_check(near.bytes, length, pattern_key(1, 2, (uint32_t)round));
        memcpy(&word, near.bytes + length - 8, 8);
        require_word(fixture->results[0], word, "the last word of the read");
        memcpy(&word, near.bytes + 2 * length - 8, 8);
        require_word(fixture->results[1], word, "the last word of the write");
    }
}

/* More operations than the agreed read depth: they are done in groups of that size. */
TEST(more_than_read_depth)
{
    static const uint32_t depths[] = {1, 2, 16};
    for (size_t i = 0; i < COUNT(depths); i++) {
        struct fixture fixture;
        struct memory results;
        struct sluice_channel_attr attr = {
            .size = sizeof(attr), .read_depth = depths[i], .send_depth = 32};
        enum { REQUESTS = 200 };
        static struct sluice_request requests[REQUESTS];
        static struct sluice_sge sges[REQUESTS];
        fixture_open(&fixture, &attr, ACCESS);
        memory_open(&results, fixture.star.sides.pds[0], REQUESTS * sizeof(uint64_t));
        uint64_t *old = (uint64_t *)(void *)results.bytes;
        for (uint32_t j = 0; j < REQUESTS; j++) {
            sges[j] = memory_sge(&results, j * sizeof(uint64_t), sizeof(uint64_t));
            requests[j] = add_request(&fixture, 0, &sges[j], 3);
            if (j % 7 == 6) {
                requests[j].opcode = SLUICE_OP_READ;
                requests[j].operand[0] = 0;
                requests[j].flags = device_is_soft() ? 0 : SLUICE_FENCE;
            } else if (j % 7 == 0 && !device_is_soft()) {
                requests[j].flags = SLUICE_FENCE;
            }
        }
        require_ok(
            sluice_multichannel_submit(fixture.star.hub, requests, REQUESTS, DEADLINE, NULL));
        uint64_t value = START;
        for (uint32_t j = 0; j < REQUESTS; j++) {
            require_word(old[j], value, "an old value");
            value += j % 7 == 6 ? 0 : 3;
        }
        require_word(fixture.words[0], value, "the sum");
        memory_close(&results);
        fixture_close(&fixture);
    }
}

int main(void)
{
    if (!device_has_atomics()) {
        puts("1..0 # SKIP the device has no atomic operations");
        return EXIT_SUCCESS;
    }
    return run_tests("atomics", 100);
}
