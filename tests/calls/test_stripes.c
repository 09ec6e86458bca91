/* SPDX-License-Identifier: MIT */
/*
 * Several queue pairs per peer: striped data arrive as they were sent, and neither order, results
 * nor failures show the stripes.
 */
#include "../support/pair.h"

#include <pthread.h>
#include <sched.h>

/* Requests longer than a cache line are striped. */
#define LEAST 65
#define BYTES ((size_t)1 << 18)
#define WORD 8

static struct sluice_channel_attr attr_of(uint32_t queue_pairs)
{
    return (struct sluice_channel_attr){.size = sizeof(struct sluice_channel_attr),
                                        .flags = SLUICE_CHANNEL_HISTOGRAMS,
                                        .max_sge = 5,
                                        .queue_pairs = queue_pairs,
                                        .stripe_least = LEAST};
}

/* A pair with this many queue pairs, and memory on both sides. */
struct striped {
    struct pair pair;
    struct memory here, there;
};

static void striped_open(struct striped *striped, uint32_t queue_pairs, size_t bytes)
{
    const uint32_t rights = ACCESS_ALL | (SLUICE_ACCESS_REMOTE_ATOMIC);
    struct sluice_channel_attr attr = attr_of(queue_pairs);
    pair_open(&striped->pair, &attr);
    memory_open_at(&striped->here, striped->pair.sides.pds[0], bytes, rights, 0);
    memory_open_at(&striped->there, striped->pair.sides.pds[1], bytes, rights, 0);
    require_ok(sluice_channel_wait_connected(striped->pair.channels[0], DEADLINE));
    require_ok(sluice_channel_wait_connected(striped->pair.channels[1], DEADLINE));
}

static void striped_close(struct striped *striped)
{
    memory_close(&striped->here);
    memory_close(&striped->there);
    pair_close(&striped->pair);
}

static uint32_t queue_pairs_of(const struct sluice_channel *channel)
{
    struct sluice_channel_info info = channel_info(channel);
    return info.queue_pairs;
}

static struct sluice_request write_of(const struct striped *striped, const struct sluice_sge *sge,
                                      size_t offset)
{
    struct sluice_request request = request_of(SLUICE_OP_WRITE, 0, sge);
    request.remote = memory_remote(&striped->there, offset, sge->length);
    return request;
}

static const size_t sizes[] = {0, 1, 64, 65, 127, 128, 129, 4096, 4097, 65537, BYTES - 1, BYTES};

static void one_size(struct striped *striped, size_t size, uint32_t pieces)
{
    struct sluice_channel *channel = striped->pair.channels[0];
    struct sluice_remote_mr remote = memory_remote(&striped->there, 0, size);
    uint64_t key = pattern_key(0, pieces, (uint32_t)size);
    struct sluice_sge sges[5];
    memory_split(&striped->here, 0, size, sges, pieces);
    pattern_fill(striped->here.bytes, size, key);
    memset(striped->there.bytes, 0x22, striped->there.length);
    require_ok(sluice_channel_write(channel, sges, pieces, &remote, DEADLINE));
    pattern_check(striped->there.bytes, size, key);
    value_check(striped->there.bytes + size, striped->there.length - size, 0x22);
    memset(striped->here.bytes, 0x33, striped->here.length);
    require_ok(sluice_channel_read(channel, sges, pieces, &remote, DEADLINE));
    pattern_check(striped->here.bytes, size, key);
    value_check(striped->here.bytes + size, striped->here.length - size, 0x33);
    memory_check_guards(&striped->here);
    memory_check_guards(&striped->there);
}

static const uint32_t numbers[] = {2, 3, 8};

TEST_WITH(striped, all_sizes_arrive, (numbers[_i], BYTES), .times = COUNT(numbers))
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        one_size(striped, sizes[i], 1);
        one_size(striped, sizes[i], 5);
    }
}

#define PAGE ((size_t)64)

/*
 * Adjacent pages are merged into one work request, which is striped by its own length; others are
 * not.
 */
TEST(blocks_are_striped_by_what_was_merged_of_them)
{
    static const uint32_t pages[] = {9, 2, 3, 4, 30, 11, 12, 100, 98, 40, 41, 42, 43, 44, 45, 7};
    const struct sluice_blocks blocks = {
        .size = sizeof(blocks),
        .remote = {
            .kind = SLUICE_LAYOUT_PAGED, .count = COUNT(pages), .bytes = PAGE, .indices = pages}};
    struct striped striped;
    struct sluice_completion got;
    uint64_t key = pattern_key(0, 1, 77);
    size_t bytes = COUNT(pages) * PAGE;
    striped_open(&striped, 3, 128 * PAGE);
    struct sluice_sge sge = memory_sge(&striped.here, 0, bytes);
    struct sluice_request request = write_of(&striped, &sge, 0);
    request.remote = memory_remote(&striped.there, 0, striped.there.length);
    request.blocks = &blocks;
    request.flags = SLUICE_IMMEDIATE;
    request.immediate = 78;
    struct sluice_handle handle = post_of(striped.pair.channels[1], SLUICE_OP_RECEIVE, NULL);
    pattern_fill(striped.here.bytes, bytes, key);
    require_ok(sluice_channel_submit(striped.pair.channels[0], &request, 1, DEADLINE, &got));
    require(got.bytes == bytes, "%llu", (unsigned long long)got.bytes);
    got = await(striped.pair.channels[1], handle, SLUICE_CLASS_NONE);
    require(got.immediate == 78 && got.bytes == PAGE, "%llu bytes", (unsigned long long)got.bytes);
    for (size_t i = 0; i < COUNT(pages); i++) {
        require(
            memcmp(striped.there.bytes + pages[i] * PAGE, striped.here.bytes + i * PAGE, PAGE) == 0,
            "page %zu", i);
    }
    memset(striped.here.bytes, 0, bytes);
    request.opcode = SLUICE_OP_READ;
    request.flags = 0;
    request.immediate = 0;
    require_ok(sluice_channel_submit(striped.pair.channels[0], &request, 1, DEADLINE, NULL));
    pattern_check(striped.here.bytes, bytes, key);
    striped_close(&striped);
}

/* Both sides use the smaller number; with a side that knows only one, they use one. */
TEST(different_numbers_meet, .times = 4)
{
    static const uint32_t counts[][2] = {{3, 2}, {1, 4}, {8, 1}, {2, 8}};
    struct sluice_endpoint endpoints[2];
    struct sluice_prepared_channel *prepared[2];
    struct striped striped;
    uint32_t least = counts[_i][0] < counts[_i][1] ? counts[_i][0] : counts[_i][1];
    sides_open(&striped.pair.sides);
    for (int i = 0; i < 2; i++) {
        struct sluice_channel_attr attr = attr_of(counts[_i][i]);
        prepared[i] = prepare_channel(striped.pair.sides.pds[i], &attr, &endpoints[i]);
    }
    for (int i = 0; i < 2; i++) {
        striped.pair.channels[i] =
            made(sluice_prepared_channel_handshake(prepared[i], &endpoints[1 - i]));
    }
    memory_open(&striped.here, striped.pair.sides.pds[0], BYTES);
    memory_open(&striped.there, striped.pair.sides.pds[1], BYTES);
    one_size(&striped, BYTES, 5);
    pair_works(&striped.pair);
    for (int i = 0; i < 2; i++) {
        require(queue_pairs_of(striped.pair.channels[i]) == least, "%u of %u and %u",
                queue_pairs_of(striped.pair.channels[i]), counts[_i][0], counts[_i][1]);
    }
    striped_close(&striped);
}

/* A reader that sees the flag sees all data written before it. */
#define ROUNDS 60

struct reader {
    const struct memory *memory;
    struct sluice_channel *channel;
    uint32_t rounds;
};

static void *read_rounds(void *argument)
{
    const struct reader *reader = argument;
    const uint64_t *flag = (const void *)(reader->memory->bytes + BYTES);
    uint64_t *answer = (void *)(reader->memory->bytes + BYTES + WORD);
    for (uint64_t round = 1; round <= reader->rounds; round++) {
        while (sluice_load_acquire64(flag) != round) {
            struct sluice_completion unused;
            /* On soft, a call of the owner of the memory writes it there. */
            require_result(sluice_channel_poll(reader->channel, &unused, 1), 0);
        }
        value_check(reader->memory->bytes, BYTES, (uint8_t)round);
        __atomic_store_n(answer, round, __ATOMIC_RELEASE);
    }
    return NULL;
}

TEST_WITH(striped, a_flag_is_behind_all_stripes, (4, BYTES + 2 * WORD))
{
    pthread_t thread;
    memset(striped->there.bytes, 0, BYTES + 2 * WORD);
    struct reader reader = {&striped->there, striped->pair.channels[1], short_run() ? 10 : ROUNDS};
    struct sluice_sge data = memory_sge(&striped->here, 0, BYTES);
    struct sluice_sge flag = memory_sge(&striped->here, BYTES, WORD);
    const uint64_t *answer = (const void *)(striped->there.bytes + BYTES + WORD);
    require(pthread_create(&thread, NULL, read_rounds, &reader) == 0, "no thread");
    for (uint64_t round = 1; round <= reader.rounds; round++) {
        struct sluice_request requests[2] = {write_of(striped, &data, 0),
                                             write_of(striped, &flag, BYTES)};
        memset(striped->here.bytes, (int)round, BYTES);
        memcpy(striped->here.bytes + BYTES, &round, WORD);
        require_ok(sluice_channel_submit(striped->pair.channels[0], requests, 2, DEADLINE, NULL));
        while (sluice_load_acquire64(answer) != round)
            sched_yield();
    }
    pthread_join(thread, NULL);
}

/* A list in which each request depends on the one before it. */
TEST_WITH(striped, requests_keep_their_order, (3, 5 * BYTES))
{
    enum { SMALL, LARGE, MIDDLE, READ, COVER, SEND, ADD, REQUESTS };
    struct sluice_completion completions[REQUESTS];
    struct sluice_request requests[REQUESTS];
    struct sluice_channel *channel = striped->pair.channels[0];
    struct sluice_sge small = memory_sge(&striped->here, 0, 100);
    struct sluice_sge large = memory_sge(&striped->here, BYTES, BYTES);
    struct sluice_sge middle = memory_sge(&striped->here, 8, 40);
    struct sluice_sge back = memory_sge(&striped->here, 2 * BYTES, BYTES);
    struct sluice_sge cover = memory_sge(&striped->here, 3 * BYTES, BYTES);
    struct sluice_sge word = memory_sge(&striped->here, 4 * BYTES, WORD);
    struct sluice_sge taken = memory_sge(&striped->there, 2 * BYTES, 100);
    uint8_t *here = striped->here.bytes, *there = striped->there.bytes;
    for (int round = 0; round < (short_run() ? 5 : 50); round++) {
        memset(here, 1, BYTES);
        memset(here + BYTES, 2, BYTES);
        memset(here + 2 * BYTES, 0, BYTES);
        memset(here + 3 * BYTES, 4, BYTES);
        memset(there, 0, 5 * BYTES);
        requests[SMALL] = write_of(striped, &small, 1000);
        requests[LARGE] = write_of(striped, &large, 0);
        requests[MIDDLE] = write_of(striped, &middle, BYTES / 2);
        requests[READ] = request_of(SLUICE_OP_READ, 0, &back);
        requests[READ].remote = memory_remote(&striped->there, 0, BYTES);
        requests[COVER] = write_of(striped, &cover, 0);
        requests[SEND] = request_of(SLUICE_OP_SEND, 0, &small);
        requests[ADD] = request_of(SLUICE_OP_FETCH_ADD, 0, &word);
        requests[ADD].remote = memory_remote(&striped->there, 0, WORD);
        requests[ADD].operand[0] = 1;
        struct sluice_handle handle = post_of(striped->pair.channels[1], SLUICE_OP_RECEIVE, &taken);
        require_ok(sluice_channel_submit(channel, requests, REQUESTS, DEADLINE, completions));
        for (int i = 0; i < REQUESTS; i++) {
            require_class(&completions[i], SLUICE_CLASS_NONE);
        }
        await(striped->pair.channels[1], handle, SLUICE_CLASS_NONE);
        /* The read came between the two large writes, and saw all of the write before it. */
        value_check(here + 2 * BYTES, BYTES / 2, 2);
        value_check(here + 2 * BYTES + BYTES / 2, 40, 1);
        value_check(here + 2 * BYTES + BYTES / 2 + 40, BYTES / 2 - 40, 2);
        value_check(there + WORD, BYTES - WORD, 4);
        value_check(here + 4 * BYTES, WORD, 4);
        value_check(there + 2 * BYTES, 100, 1);
    }
}

/* A request that is held back sends the bytes that it had when it was posted. */
TEST_WITH(striped, inline_bytes_are_taken_at_once, (2, 2 * BYTES))
{
    struct sluice_handle handles[2];
    uint8_t bytes[16];
    struct sluice_sge own = {.addr = (uint64_t)(uintptr_t)bytes, .length = sizeof(bytes)};
    struct sluice_sge large = memory_sge(&striped->here, 0, BYTES);
    memset(bytes, 5, sizeof(bytes));
    struct sluice_request requests[2] = {write_of(striped, &large, 0),
                                         write_of(striped, &own, BYTES)};
    requests[1].flags = SLUICE_INLINE;
    require_result(sluice_channel_post(striped->pair.channels[0], requests, 2, DEADLINE, handles),
                   2);
    memset(bytes, 6, sizeof(bytes));
    requests[0].sges = requests[1].sges = NULL;
    await(striped->pair.channels[0], handles[0], SLUICE_CLASS_NONE);
    await(striped->pair.channels[0], handles[1], SLUICE_CLASS_NONE);
    value_check(striped->there.bytes + BYTES, sizeof(bytes), 5);
}

/* A write with an immediate is not striped: its receive reports all of its bytes. */
TEST_WITH(striped, write_with_immediate_is_not_striped, (4, BYTES))
{
    struct sluice_sge large = memory_sge(&striped->here, 0, BYTES);
    struct sluice_remote_mr remote = memory_remote(&striped->there, 0, BYTES);
    struct sluice_handle handle = post_of(striped->pair.channels[1], SLUICE_OP_RECEIVE, NULL);
    memset(striped->here.bytes, 7, BYTES);
    require_ok(sluice_channel_write_immediate(striped->pair.channels[0], &large, 1, &remote, 12345,
                                              DEADLINE));
    struct sluice_completion completion =
        await(striped->pair.channels[1], handle, SLUICE_CLASS_NONE);
    require_equal(completion.bytes, BYTES, completion.immediate, 12345);
    value_check(striped->there.bytes, BYTES, 7);
}

/* The stripes beyond the region are refused; requests behind are cancelled, and not done. */
TEST_WITH(striped, a_refused_stripe_fails_the_peer, (3, 3 * BYTES))
{
    struct sluice_handle handles[3];
    struct sluice_channel *channel = striped->pair.channels[0];
    struct memory narrow = side_memory(&striped->pair.sides, 1, BYTES);
    struct sluice_sge large = memory_sge(&striped->here, 0, BYTES);
    struct sluice_request requests[3];
    for (int round = 0; round < 3; round++) {
        memset(striped->here.bytes, 9, BYTES);
        memset(striped->there.bytes, 0, 3 * BYTES);
        for (int i = 0; i < 3; i++) {
            requests[i] = write_of(striped, &large, (size_t)i * BYTES);
        }
        requests[1].remote = memory_remote(&narrow, 0, BYTES);
        requests[1].remote.addr += BYTES / 2;
        require_result(sluice_channel_post(channel, requests, 3, DEADLINE, handles), 3);
        await(channel, handles[0], SLUICE_CLASS_NONE);
        struct sluice_completion failed = await(channel, handles[1], SLUICE_CLASS_ACCESS);
        struct sluice_completion behind = await(channel, handles[2], SLUICE_CLASS_CANCELLED);
        require_equal(behind.cause, failed.status, channel_error(channel).status, failed.status);
        value_check(striped->there.bytes, BYTES, 9);
        value_check(striped->there.bytes + 2 * BYTES, BYTES, 0);
        memory_check_guards(&narrow);
        pair_reset(&striped->pair);
        pair_works(&striped->pair);
        one_size(striped, BYTES, 5);
    }
}

/*
 * As with one queue pair, the target of the wrong request loses its peer if it has a receive
 * posted.
 */
TEST_WITH(striped, target_of_a_refused_stripe_loses_its_peer, (3, BYTES))
{
    struct sluice_sge large = memory_sge(&striped->here, 0, BYTES);
    struct sluice_sge taken = memory_sge(&striped->there, 0, 100);
    struct sluice_remote_mr remote = memory_remote(&striped->there, 0, BYTES);
    struct sluice_handle handle = post_of(striped->pair.channels[1], SLUICE_OP_RECEIVE, &taken);
    remote.addr += 8;
    require(sluice_channel_write(striped->pair.channels[0], &large, 1, &remote, DEADLINE) < 0,
            "it was done");
    await(striped->pair.channels[1], handle, SLUICE_CLASS_PEER_LOST);
}

/*
 * Requests behind a send without a receive are held back; when it times out, they are cancelled and
 * never executed.
 */
TEST_WITH(striped, held_back_requests_end_with_a_deadline, (2, BYTES))
{
    struct sluice_handle handles[3];
    struct sluice_channel *channel = striped->pair.channels[0];
    struct sluice_sge small = memory_sge(&striped->here, 0, 10);
    struct sluice_sge large = memory_sge(&striped->here, 0, BYTES);
    struct sluice_request requests[3] = {request_of(SLUICE_OP_SEND, 0, &small),
                                         write_of(striped, &large, 0),
                                         write_of(striped, &small, 0)};
    memset(striped->there.bytes, 0, BYTES);
    memset(striped->here.bytes, 1, BYTES);
    require_result(sluice_channel_post(channel, requests, 1, SLUICE_MS(50), handles), 1);
    require_result(sluice_channel_post(channel, requests + 1, 2, DEADLINE, handles + 1), 2);
    await(channel, handles[0], SLUICE_CLASS_TIMEOUT);
    await(channel, handles[1], SLUICE_CLASS_CANCELLED);
    await(channel, handles[2], SLUICE_CLASS_CANCELLED);
    pair_reset(&striped->pair);
    value_check(striped->there.bytes, BYTES, 0);
    pair_works(&striped->pair);
}

/* As many requests as the queue takes, most of them held back. */
TEST(the_queue_is_as_deep_as_it_was_asked_for)
{
    enum { DEPTH = 32 };
    struct striped striped;
    struct sluice_handle handles[DEPTH];
    struct sluice_request requests[DEPTH + 1];
    struct sluice_sge sges[DEPTH + 1];
    struct sluice_channel_attr attr = attr_of(4);
    attr.send_depth = DEPTH;
    pair_open(&striped.pair, &attr);
    memory_open(&striped.here, striped.pair.sides.pds[0], (DEPTH + 1) * 4096);
    memory_open(&striped.there, striped.pair.sides.pds[1], (DEPTH + 1) * 4096);
    for (size_t i = 0; i <= DEPTH; i++) {
        sges[i] = memory_sge(&striped.here, i * 4096, i % 3 == 0 ? 16 : 4096);
        requests[i] = write_of(&striped, &sges[i], i * 4096);
        memset(striped.here.bytes + i * 4096, (int)i + 1, 4096);
    }
    require_result(
        sluice_channel_post(striped.pair.channels[0], requests, DEPTH, DEADLINE, handles), DEPTH);
    require_ok(sluice_channel_flush(striped.pair.channels[0], DEADLINE));
    for (size_t i = 0; i < DEPTH; i++) {
        await(striped.pair.channels[0], handles[i], SLUICE_CLASS_NONE);
        value_check(striped.there.bytes + i * 4096, sges[i].length, (uint8_t)(i + 1));
    }
    require_ok(
        sluice_channel_submit(striped.pair.channels[0], requests, DEPTH + 1, DEADLINE, NULL));
    striped_close(&striped);
}

TEST(peers_come_and_go)
{
    struct star star;
    struct sluice_channel_attr attr = attr_of(3);
    attr.keepalive = SLUICE_S(3);
    star_open(&star, 4, &attr);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t peer = 0; peer < 4; peer++) {
            star_works(&star, peer);
        }
        star_break(&star, round);
        star_works(&star, 3);
        star_reset(&star, round);
    }
    star_close(&star);
}

int main(void)
{
    return run_tests("stripes", 20);
}
