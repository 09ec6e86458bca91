/* SPDX-License-Identifier: MIT */
/*
 * Order: messages and receives match in order, a message waits for its receive, lists longer than
 * the queues stream, and fences hold.
 */
#include "../support/pair.h"

#define MESSAGES 100
#define SLOT 600

/* A pair with memory of as many slots as messages on each side. */
struct slots {
    struct pair pair;
    struct memory memories[2];
    struct sluice_sge sges[2][MESSAGES];
    struct sluice_request requests[2][MESSAGES];
    struct sluice_handle handles[2][MESSAGES];
};

static void slots_open(struct slots *slots, const struct sluice_channel_attr *attr)
{
    pair_open(&slots->pair, attr);
    for (int i = 0; i < 2; i++) {
        memory_open(&slots->memories[i], slots->pair.sides.pds[i], MESSAGES * SLOT);
    }
    pattern_fill(slots->memories[0].bytes, slots->memories[0].length, 1);
}

static void slots_close(struct slots *slots)
{
    memory_close(&slots->memories[0]);
    memory_close(&slots->memories[1]);
    pair_close(&slots->pair);
}

static struct sluice_request *slot(struct slots *slots, int side, uint32_t i, uint32_t opcode,
                                   uint32_t length)
{
    slots->sges[side][i] = memory_sge(&slots->memories[side], (size_t)i * SLOT, length);
    slots->requests[side][i] = request_of(opcode, 0, &slots->sges[side][i]);
    slots->requests[side][i].user_data = i;
    return &slots->requests[side][i];
}

static void check_slot(const struct slots *slots, uint32_t i, uint32_t length)
{
    const struct memory *memories = slots->memories;
    require(memcmp(memories[0].bytes + (size_t)i * SLOT, memories[1].bytes + (size_t)i * SLOT,
                   length) == 0,
            "slot %u", i);
    value_check(memories[1].bytes + (size_t)i * SLOT + length, SLOT - length, 0);
}

/* Sends, and writes with immediate, take the receives in the order of posting. */
TEST_WITH(slots, receives_match_in_order, (NULL))
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        slots->handles[1][i] =
            post(slots->pair.channels[1], slot(slots, 1, i, SLUICE_OP_RECEIVE, SLOT));
    }
    for (uint32_t i = 0; i < MESSAGES; i++) {
        bool write = i % 5 == 4;
        struct sluice_request *request =
            slot(slots, 0, i, write ? SLUICE_OP_WRITE : SLUICE_OP_SEND, i);
        if (write) {
            request->remote = memory_remote(&slots->memories[1], (size_t)i * SLOT, i);
        }
        request->flags = write || i % 3 == 0 ? SLUICE_IMMEDIATE : 0;
        request->immediate = request->flags ? i : 0;
        slots->handles[0][i] = post(slots->pair.channels[0], request);
    }
    for (uint32_t i = 0; i < MESSAGES; i++) {
        await(slots->pair.channels[0], slots->handles[0][i], SLUICE_CLASS_NONE);
        struct sluice_completion completion =
            await(slots->pair.channels[1], slots->handles[1][i], SLUICE_CLASS_NONE);
        require_equal(completion.bytes, i, completion.user_data, i);
        require(completion.immediate == slots->requests[0][i].immediate, "message %u", i);
        check_slot(slots, i, i);
    }
}

/* A message that comes before its receive waits for it, and so do all behind it. */
TEST_WITH(slots, message_waits_for_receive, (NULL))
{
    struct sluice_completion completion;
    for (uint32_t i = 0; i < 10; i++) {
        slots->handles[0][i] =
            post(slots->pair.channels[0], slot(slots, 0, i, SLUICE_OP_SEND, SLOT - i));
    }
    require_result(sluice_channel_wait(slots->pair.channels[0], &slots->handles[0][0],
                                       SLUICE_MS(30), &completion),
                   -ETIMEDOUT);
    for (uint32_t i = 0; i < 10; i++) {
        slots->handles[1][i] =
            post(slots->pair.channels[1], slot(slots, 1, i, SLUICE_OP_RECEIVE, SLOT));
        await(slots->pair.channels[1], slots->handles[1][i], SLUICE_CLASS_NONE);
        await(slots->pair.channels[0], slots->handles[0][i], SLUICE_CLASS_NONE);
        check_slot(slots, i, SLOT - i);
    }
}

/* A fenced write does not overtake a read of the same memory. */
TEST_WITH(pair, fence_keeps_writes_behind_reads, (NULL))
{
    struct sluice_request requests[2];
    size_t length = 1 << 20;
    struct memory near = side_memory(&pair->sides, 0, 2 * length);
    struct memory far = side_memory(&pair->sides, 1, length);
    for (uint32_t round = 0; round < 5; round++) {
        struct sluice_sge sges[2] = {memory_sge(&near, 0, length),
                                     memory_sge(&near, length, length)};
        pattern_fill(near.bytes + length, length, round);
        pattern_fill(far.bytes, length, 50 + round);
        requests[0] = request_of(SLUICE_OP_READ, 0, &sges[0]);
        requests[1] = request_of(SLUICE_OP_WRITE, 0, &sges[1]);
        requests[1].flags = SLUICE_FENCE;
        requests[0].remote = requests[1].remote = memory_remote(&far, 0, length);
        require_ok(sluice_channel_submit(pair->channels[0], requests, 2, DEADLINE, NULL));
        pattern_check(near.bytes, length, 50 + round);
        pattern_check(far.bytes, length, round);
    }
}

/* A write into memory that the next send announces is there before the send. */
TEST_WITH(pair, send_comes_after_write, (NULL))
{
    size_t length = 200000;
    struct memory near = side_memory(&pair->sides, 0, length);
    struct memory far = side_memory(&pair->sides, 1, length);
    for (uint32_t round = 0; round < 20; round++) {
        struct sluice_sge sge = memory_sge(&near, 0, length);
        struct sluice_request requests[2] = {request_of(SLUICE_OP_WRITE, 0, &sge),
                                             request_of(SLUICE_OP_SEND, 0, NULL)};
        pattern_fill(near.bytes, length, round);
        requests[0].remote = memory_remote(&far, 0, length);
        struct sluice_handle received = post_of(pair->channels[1], SLUICE_OP_RECEIVE, NULL);
        struct sluice_handle handles[2];
        require_result(sluice_channel_post(pair->channels[0], requests, 2, DEADLINE, handles), 2);
        await(pair->channels[1], received, SLUICE_CLASS_NONE);
        pattern_check(far.bytes, length, round);
        await(pair->channels[0], handles[0], SLUICE_CLASS_NONE);
        await(pair->channels[0], handles[1], SLUICE_CLASS_NONE);
    }
}

/* A peer that is in a list many times gets its messages in the order of the list. */
TEST_WITH(star, same_peer_many_times_in_a_list, (3, NULL))
{
    static const uint32_t peers[] = {1, 0, 1, 1, 2, 0, 1, 2, 2, 1, 0, 0};
    uint32_t seen[3] = {0};
    struct sluice_sge sges[2][COUNT(peers)];
    struct sluice_request requests[2][COUNT(peers)];
    struct sluice_handle handles[COUNT(peers)];
    struct sluice_completion completions[COUNT(peers)];
    struct memory out = side_memory(&star->sides, 0, COUNT(peers) * 8);
    struct memory in = side_memory(&star->sides, 1, COUNT(peers) * 8);
    for (uint32_t i = 0; i < COUNT(peers); i++) {
        uint64_t word = i;
        memcpy(out.bytes + (size_t)i * 8, &word, 8);
        sges[0][i] = memory_sge(&out, (size_t)i * 8, 8);
        sges[1][i] = memory_sge(&in, (size_t)i * 8, 8);
        requests[0][i] = request_of(SLUICE_OP_SEND, peers[i], &sges[0][i]);
        requests[1][i] = request_of(SLUICE_OP_RECEIVE, 0, &sges[1][i]);
        requests[0][i].user_data = i;
        handles[i] = post(star->spokes[peers[i]], &requests[1][i]);
    }
    require_ok(sluice_multichannel_scatter_send(star->hub, requests[0], COUNT(peers), DEADLINE,
                                                completions));
    for (uint32_t i = 0; i < COUNT(peers); i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].user_data == i && completions[i].peer == peers[i], "%u", i);
        await(star->spokes[peers[i]], handles[i], SLUICE_CLASS_NONE);
        seen[peers[i]]++;
    }
    require(memcmp(out.bytes, in.bytes, out.length) == 0, "%u of peer 0", seen[0]);
}

/* One-sided lists far longer than the queue. */
TEST_WITH(slots, list_streams_through_short_queue,
          (ATTR(.send_depth = 3, .receive_depth = 1, .read_depth = 2)))
{
    struct sluice_completion completions[MESSAGES];
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct sluice_request *request = slot(slots, 0, i, SLUICE_OP_WRITE, SLOT);
        request->remote = memory_remote(&slots->memories[1], (size_t)i * SLOT, SLOT);
    }
    require_ok(sluice_channel_submit(slots->pair.channels[0], slots->requests[0], MESSAGES,
                                     DEADLINE, completions));
    pattern_check(slots->memories[1].bytes, slots->memories[1].length, 1);
    memset(slots->memories[0].bytes, 0, slots->memories[0].length);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].user_data == i && completions[i].bytes == SLOT, "%u", i);
        slots->requests[0][i].opcode = SLUICE_OP_READ;
    }
    require_ok(sluice_channel_submit(slots->pair.channels[0], slots->requests[0], MESSAGES,
                                     DEADLINE, completions));
    pattern_check(slots->memories[0].bytes, slots->memories[0].length, 1);
}

/* Both ends are in one list, far longer than the queues; the sends stand first. */
TEST_WITH(sides, receives_are_posted_before_sends, ())
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 2, .receive_depth = 2};
    struct memory out, in;
    struct sluice_sge sges[2 * MESSAGES];
    struct sluice_request requests[2 * MESSAGES];
    struct sluice_completion completions[2 * MESSAGES];
    struct sluice_multichannel *loop = loop_open(sides->pds[0], 2, &attr);
    memory_open(&out, sides->pds[0], MESSAGES * SLOT);
    memory_open(&in, sides->pds[0], MESSAGES * SLOT);
    pattern_fill(out.bytes, out.length, 3);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        sges[i] = memory_sge(&out, (size_t)i * SLOT, SLOT);
        sges[MESSAGES + i] = memory_sge(&in, (size_t)i * SLOT, SLOT);
        requests[i] = request_of(SLUICE_OP_SEND, 0, &sges[i]);
        requests[MESSAGES + i] = request_of(SLUICE_OP_RECEIVE, 1, &sges[MESSAGES + i]);
    }
    require_ok(sluice_multichannel_submit(loop, requests, 2 * MESSAGES, DEADLINE, completions));
    for (uint32_t i = 0; i < 2 * MESSAGES; i++) {
        require_class(&completions[i], SLUICE_CLASS_NONE);
        require(completions[i].bytes == SLOT && completions[i].peer == i / MESSAGES, "%u", i);
    }
    pattern_check(in.bytes, in.length, 3);
    memory_close(&in);
    memory_close(&out);
    sluice_multichannel_close(loop);
}

/* Writes and reads longer than the largest message are split without visible effects. */
TEST_WITH(pair, long_writes_and_reads_are_split,
          (ATTR(.max_message = 4096, .send_depth = 4, .max_sge = 5)))
{
    struct sluice_sge sges[5];
    size_t length = 100001;
    uint32_t immediate = 0x12345678;
    struct memory near = side_memory(&pair->sides, 0, length);
    struct memory far = side_memory_at(&pair->sides, 1, length, ACCESS_ALL, 5);
    struct sluice_remote_mr remote = memory_remote(&far, 0, length);
    for (uint32_t count = 1; count <= 5; count++) {
        memory_split(&near, 0, length, sges, count);
        pattern_fill(near.bytes, length, count);
        require_ok(sluice_channel_write(pair->channels[0], sges, count, &remote, DEADLINE));
        pattern_check(far.bytes, length, count);

        pattern_fill(far.bytes, length, 10 + count);
        require_ok(sluice_channel_read(pair->channels[0], sges, count, &remote, DEADLINE));
        pattern_check(near.bytes, length, 10 + count);

        struct sluice_handle handle = post_of(pair->channels[1], SLUICE_OP_RECEIVE, NULL);
        memset(far.bytes, 0, length);
        require_ok(sluice_channel_write_immediate(pair->channels[0], sges, count, &remote,
                                                  immediate, DEADLINE));
        struct sluice_completion completion = await(pair->channels[1], handle, SLUICE_CLASS_NONE);
        require(completion.immediate == immediate, "%x", completion.immediate);
        pattern_check(far.bytes, length, 10 + count);
    }
    pair_works(pair);
}

/* The limit applies to sends, not to receives: the other side may have another limit. */
TEST(receive_longer_than_own_limit)
{
    struct sluice_channel_attr attrs[2] = {{.size = sizeof(attrs[0])},
                                           {.size = sizeof(attrs[0]), .max_message = 4096}};
    struct sluice_prepared_channel *prepared[2];
    struct sluice_endpoint endpoints[2];
    struct pair pair;
    struct memory memories[2];
    sides_open(&pair.sides);
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(pair.sides.pds[i], &attrs[i], &endpoints[i]);
        memory_open(&memories[i], pair.sides.pds[i], 10000);
    }
    for (int i = 0; i < 2; i++) {
        pair.channels[i] = made(sluice_prepared_channel_handshake(prepared[i], &endpoints[1 - i]));
    }
    struct sluice_sge out = memory_sge(&memories[0], 0, 10000);
    struct sluice_sge in = memory_sge(&memories[1], 0, 10000);
    pattern_fill(memories[0].bytes, 10000, 6);
    struct sluice_handle handle = post_of(pair.channels[1], SLUICE_OP_RECEIVE, &in);
    require_ok(sluice_channel_send(pair.channels[0], &out, 1, DEADLINE));
    struct sluice_completion completion = await(pair.channels[1], handle, SLUICE_CLASS_NONE);
    require(completion.bytes == 10000, "%llu", (unsigned long long)completion.bytes);
    pattern_check(memories[1].bytes, 10000, 6);
    require_error(sluice_channel_send(pair.channels[1], &in, 1, DEADLINE), -E2BIG, "4096");
    memory_close(&memories[0]);
    memory_close(&memories[1]);
    pair_close(&pair);
}

TEST_WITH(pair, immediate_values, (NULL))
{
    static const uint32_t values[] = {0, 1, 0x80000000, 0x01020304, 0xffffffff};
    for (size_t i = 0; i < COUNT(values); i++) {
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
        struct sluice_handle handle = post(pair->channels[1], &receive);
        require_ok(sluice_channel_send_immediate(pair->channels[0], NULL, 0, values[i], DEADLINE));
        struct sluice_completion completion = await(pair->channels[1], handle, SLUICE_CLASS_NONE);
        require_equal(completion.flags, SLUICE_IMMEDIATE, completion.immediate, values[i],
                      completion.bytes, 0);
    }
    /* No immediate is distinct from an immediate of zero. */
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_handle handle = post(pair->channels[1], &receive);
    require_ok(sluice_channel_send(pair->channels[0], NULL, 0, DEADLINE));
    struct sluice_completion completion = await(pair->channels[1], handle, SLUICE_CLASS_NONE);
    require(completion.flags == 0, "%u", completion.flags);
}

/* A receive tells whether a send filled it or a write with an immediate took it. */
TEST_WITH(pair, receive_tells_what_filled_it, (NULL))
{
    struct memory memories[2];
    struct sluice_completion completion;
    memory_open(&memories[0], pair->sides.pds[0], 100);
    memory_open(&memories[1], pair->sides.pds[1], 100);
    pattern_fill(memories[0].bytes, 100, 3);
    struct sluice_sge out = memory_sge(&memories[0], 0, 100);
    struct sluice_sge in = memory_sge(&memories[1], 0, 100);
    struct sluice_remote_mr remote = memory_remote(&memories[1], 0, 100);
    for (uint32_t length = 0; length <= 100; length += 50) {
        out.length = length;
        struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &out);
        struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, &out);
        write.remote = remote;
        write.flags = send.flags = SLUICE_IMMEDIATE;
        write.immediate = send.immediate = 5;
        /* As seen by a handle, and by the blocking call: before the message arrived and after. */
        struct sluice_handle handle = post_of(pair->channels[1], SLUICE_OP_RECEIVE, &in);
        struct sluice_handle sent = post(pair->channels[0], &write);
        completion = await(pair->channels[1], handle, SLUICE_CLASS_NONE);
        require_equal(completion.flags, (SLUICE_IMMEDIATE | SLUICE_WRITTEN), completion.immediate,
                      5, completion.bytes, length);
        completion = await(pair->channels[0], sent, SLUICE_CLASS_NONE);
        require(completion.flags == 0, "a write has flags %u", completion.flags);
        sent = post(pair->channels[0], &send);
        require_ok(sluice_channel_receive(pair->channels[1], &in, 1, DEADLINE, &completion));
        require_equal(completion.flags, SLUICE_IMMEDIATE, completion.immediate, 5);
        await(pair->channels[0], sent, SLUICE_CLASS_NONE);
        sent = post(pair->channels[0], &write);
        require_ok(sluice_channel_receive(pair->channels[1], &in, 1, DEADLINE, &completion));
        require_equal(completion.flags, (SLUICE_IMMEDIATE | SLUICE_WRITTEN));
        await(pair->channels[0], sent, SLUICE_CLASS_NONE);
        /* A request must not have a flag that only completions have. */
        write.flags |= SLUICE_WRITTEN;
        require_error(sluice_channel_post(pair->channels[0], &write, 1, DEADLINE, NULL), -EINVAL,
                      "flags 0x10");
    }
    memory_close(&memories[0]);
    memory_close(&memories[1]);
}

/* The buffer of an inline request may be used again at once. */
TEST_WITH(slots, inline_buffers_are_free_after_the_post, (ATTR(.max_inline = 200)))
{
    for (uint32_t i = 0; i < 50; i++) {
        uint32_t length = i * 4;
        struct sluice_request *send = slot(slots, 0, 0, SLUICE_OP_SEND, length);
        pattern_fill(slots->memories[0].bytes, length, i);
        send->flags = SLUICE_INLINE;
        slots->handles[0][i] = post(slots->pair.channels[0], send);
        memset(slots->memories[0].bytes, 0xee, length);
        send->opcode = SLUICE_OP_WRITE;
        send->remote = memory_remote(&slots->memories[1], (size_t)(50 + i) * SLOT, length);
        pattern_fill(slots->memories[0].bytes, length, 50 + i);
        slots->handles[0][50 + i] = post(slots->pair.channels[0], send);
        memset(slots->memories[0].bytes, 0xee, length);
    }
    for (uint32_t i = 0; i < 50; i++) {
        slots->handles[1][i] =
            post(slots->pair.channels[1], slot(slots, 1, i, SLUICE_OP_RECEIVE, SLOT));
    }
    for (uint32_t i = 0; i < 50; i++) {
        await(slots->pair.channels[1], slots->handles[1][i], SLUICE_CLASS_NONE);
        await(slots->pair.channels[0], slots->handles[0][i], SLUICE_CLASS_NONE);
        await(slots->pair.channels[0], slots->handles[0][50 + i], SLUICE_CLASS_NONE);
        pattern_check(slots->memories[1].bytes + (size_t)i * SLOT, (size_t)i * 4, i);
        pattern_check(slots->memories[1].bytes + (size_t)(50 + i) * SLOT, (size_t)i * 4, 50 + i);
    }
}

/* The list of requests and elements may go as soon as the post returns. */
TEST_WITH(slots, lists_may_go_after_the_post, (NULL))
{
    for (uint32_t i = 0; i < 20; i++) {
        slots->handles[0][i] =
            post(slots->pair.channels[0], slot(slots, 0, i, SLUICE_OP_SEND, SLOT));
    }
    memset(slots->sges, 0xff, sizeof(slots->sges));
    memset(slots->requests, 0xff, sizeof(slots->requests));
    for (uint32_t i = 0; i < 20; i++) {
        slots->handles[1][i] =
            post(slots->pair.channels[1], slot(slots, 1, i, SLUICE_OP_RECEIVE, SLOT));
    }
    memset(slots->sges, 0xff, sizeof(slots->sges));
    memset(slots->requests, 0xff, sizeof(slots->requests));
    for (uint32_t i = 0; i < 20; i++) {
        await(slots->pair.channels[1], slots->handles[1][i], SLUICE_CLASS_NONE);
        await(slots->pair.channels[0], slots->handles[0][i], SLUICE_CLASS_NONE);
        check_slot(slots, i, SLOT);
    }
}

/*
 * The sender knows of all receives that were posted one by one: it requests no answer before the
 * last send of a list, and so must not need one.
 */
TEST(list_fits_the_receives_that_are_posted)
{
    for (uint32_t count = 1; count <= 17; count++) {
        struct slots slots;
        slots_open(&slots, NULL);
        pair_works(&slots.pair);
        for (uint32_t i = 0; i < count; i++) {
            slots.handles[1][i] =
                post(slots.pair.channels[1], slot(&slots, 1, i, SLUICE_OP_RECEIVE, SLOT));
            slot(&slots, 0, i, SLUICE_OP_SEND, i);
        }
        require_ok(sluice_channel_submit(slots.pair.channels[0], slots.requests[0], count, DEADLINE,
                                         NULL));
        for (uint32_t i = 0; i < count; i++) {
            await(slots.pair.channels[1], slots.handles[1][i], SLUICE_CLASS_NONE);
            check_slot(&slots, i, i);
        }
        slots_close(&slots);
    }
}

int main(void)
{
    return run_tests("order", 30);
}
