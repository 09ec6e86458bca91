/* SPDX-License-Identifier: MIT */
/* Data arrive as they were sent: each operation between two peers, in all sizes. */
#include "../support/iwarp.h"

static const size_t sizes[] = {
    0,
    1,
    7,
    8,
    63,
    64,
    4095,
    4096,
    4097,
    65535,
    65536,
    65537,
    1 << 20,
    (8 << 20) - 1,
    8 << 20,
    (8 << 20) + 1,
    (16 << 20) + 1,
};

#define GREATEST ((size_t)(16 << 20) + 1)
#define MAX_SGE 32

/* A pair with memory on both sides, and its operation. */
struct transfer {
    struct pair pair;
    struct memory source, target;
    size_t max_send;
    struct sluice_sge source_sges[MAX_SGE], target_sges[MAX_SGE];
    uint32_t sge_count;
};

static size_t size_count(void)
{
    return short_run() ? 12 : COUNT(sizes);
}

static void transfer_open(struct transfer *transfer, size_t length)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .max_sge = MAX_SGE};
    sides_open(&transfer->pair.sides);
    struct sluice_context_info info = context_info(transfer->pair.sides.contexts[0]);
    attr.max_sge = info.max_sge < MAX_SGE ? info.max_sge : MAX_SGE;
    pair_connect(&transfer->pair, &attr);
    transfer->max_send = info.max_message < SIZE_MAX ? (size_t)info.max_message : SIZE_MAX;
    transfer->source = side_memory_at(&transfer->pair.sides, 0, length, ACCESS_ALL, 0);
    transfer->target = side_memory_at(&transfer->pair.sides, 1, length, ACCESS_ALL, 3);
    transfer->sge_count = 1;
}

static void transfer_close(struct transfer *transfer)
{
    pair_close(&transfer->pair);
}

/* Fills both sides for one transfer of the size, somewhere in the middle. */
static void fill(struct transfer *transfer, size_t size, uint64_t key)
{
    size_t used = size + 16 < transfer->target.length ? size + 16 : transfer->target.length;
    pattern_fill(transfer->source.bytes, size, key);
    memset(transfer->target.bytes, 0x11, used);
    memory_split(&transfer->source, 0, size, transfer->source_sges, transfer->sge_count);
    memory_split(&transfer->target, 0, size, transfer->target_sges, transfer->sge_count);
}

/* Requires that the data arrived, and that the bytes around them and the source are unchanged. */
static void verify(const struct transfer *transfer, size_t size, uint64_t key)
{
    size_t used = size + 16 < transfer->target.length ? size + 16 : transfer->target.length;
    pattern_check(transfer->target.bytes, size, key);
    value_check(transfer->target.bytes + size, used - size, 0x11);
    pattern_check(transfer->source.bytes, size, key);
    memory_check_guards(&transfer->source);
    memory_check_guards(&transfer->target);
}

static struct sluice_request receive_of(const struct transfer *transfer)
{
    struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE, .user_data = 31};
    receive.sges = transfer->target_sges;
    receive.sge_count = transfer->sge_count;
    return receive;
}

static void check_receive(const struct sluice_completion *completion, size_t size, uint32_t flags,
                          uint32_t immediate)
{
    require_equal(completion->bytes, size, completion->user_data, 31, completion->opcode,
                  SLUICE_OP_RECEIVE, completion->peer, 0, completion->flags, flags);
    require((flags & SLUICE_IMMEDIATE) == 0 || completion->immediate == immediate, "%x",
            completion->immediate);
}

static void send_one(struct transfer *transfer, size_t size, const uint32_t *immediate)
{
    struct sluice_channel *from = transfer->pair.channels[0];
    struct sluice_channel *to = transfer->pair.channels[1];
    uint64_t key = pattern_key(0, 1, (uint32_t)size);
    fill(transfer, size, key);
    if (size > transfer->max_send) {
        require_error(
            sluice_channel_send(from, transfer->source_sges, transfer->sge_count, DEADLINE), -E2BIG,
            "");
        return;
    }
    struct sluice_request receive = receive_of(transfer);
    struct sluice_handle handle = post(to, &receive);
    if (immediate) {
        require_ok(sluice_channel_send_immediate(from, transfer->source_sges, transfer->sge_count,
                                                 *immediate, DEADLINE));
    } else {
        require_ok(sluice_channel_send(from, transfer->source_sges, transfer->sge_count, DEADLINE));
    }
    struct sluice_completion completion = await(to, handle, SLUICE_CLASS_NONE);
    check_receive(&completion, size, immediate ? SLUICE_IMMEDIATE : 0, immediate ? *immediate : 0);
    verify(transfer, size, key);
}

static void send_bare(struct transfer *transfer, size_t size)
{
    send_one(transfer, size, NULL);
}

static void send_marked(struct transfer *transfer, size_t size)
{
    uint32_t immediate = 0xfedc0000U + (uint32_t)size;
    send_one(transfer, size, &immediate);
}

/* On iWARP a write has arrived for certain when a later read has. */
static void settle(struct transfer *transfer)
{
    const struct sluice_remote_mr none = {.length = 0};
    if (device_is_iwarp()) {
        require_ok(sluice_channel_read(transfer->pair.channels[0], NULL, 0, &none, DEADLINE));
    }
}

static void write_one(struct transfer *transfer, size_t size)
{
    uint64_t key = pattern_key(0, 1, (uint32_t)size);
    fill(transfer, size, key);
    struct sluice_remote_mr remote = memory_remote(&transfer->target, 0, size);
    require_ok(sluice_channel_write(transfer->pair.channels[0], transfer->source_sges,
                                    transfer->sge_count, &remote, DEADLINE));
    settle(transfer);
    verify(transfer, size, key);
}

static void write_immediate_one(struct transfer *transfer, size_t size)
{
    uint32_t immediate = (uint32_t)size + transfer->sge_count;
    uint64_t key = pattern_key(0, 2, (uint32_t)size);
    fill(transfer, size, key);
    struct sluice_remote_mr remote = memory_remote(&transfer->target, 0, size);
    struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE, .user_data = 31};
    struct sluice_handle handle = post(transfer->pair.channels[1], &receive);
    require_ok(sluice_channel_write_immediate(transfer->pair.channels[0], transfer->source_sges,
                                              transfer->sge_count, &remote, immediate, DEADLINE));
    struct sluice_completion completion =
        await(transfer->pair.channels[1], handle, SLUICE_CLASS_NONE);
    check_receive(&completion, size, SLUICE_IMMEDIATE | SLUICE_WRITTEN, immediate);
    verify(transfer, size, key);
}

/* The reader's memory is the target of the transfer; it pulls from the source. */
static void read_one(struct transfer *transfer, size_t size)
{
    uint64_t key = pattern_key(1, 0, (uint32_t)size);
    fill(transfer, size, key);
    struct sluice_remote_mr remote = memory_remote(&transfer->source, 0, size);
    require_ok(sluice_channel_read(transfer->pair.channels[1], transfer->target_sges,
                                   transfer->sge_count, &remote, DEADLINE));
    verify(transfer, size, key);
}

static void (*const moves[])(struct transfer *transfer, size_t size) = {
    send_bare, write_one, read_one, send_marked, write_immediate_one};

TEST_WITH(transfer, each_operation_in_all_sizes, (GREATEST), .times = COUNT(moves))
{
    /* iWARP has no immediates. */
    if (_i > 2 && device_is_iwarp()) {
        return;
    }
    for (size_t i = 0; i < size_count(); i++) {
        moves[_i](transfer, sizes[i]);
    }
}

TEST_WITH(transfer, lists_of_elements, (2 << 20))
{
    static const size_t list_sizes[] = {0, 1, 64, 4097, 65537, (1 << 20) + 5};
    for (uint32_t count = 1; count <= MAX_SGE; count += short_run() ? 31 : 1) {
        transfer->sge_count = count;
        for (size_t i = 0; i < COUNT(list_sizes); i++) {
            uint32_t immediate = count;
            send_one(transfer, list_sizes[i], count % 2 ? &immediate : NULL);
            write_one(transfer, list_sizes[i]);
            write_immediate_one(transfer, list_sizes[i]);
            read_one(transfer, list_sizes[i]);
        }
    }
}

/* The pieces of the two sides need not be the same. */
TEST_WITH(transfer, lists_of_different_pieces, (1 << 20))
{
    for (uint32_t count = 2; count <= 8; count++) {
        size_t size = 100003;
        transfer->sge_count = count;
        fill(transfer, size, count);
        for (uint32_t i = 0; i < count; i++) {
            size_t share = size / count;
            transfer->target_sges[i] =
                memory_sge(&transfer->target, i * share, i < count - 1 ? share : size - i * share);
        }
        struct sluice_request receive = receive_of(transfer);
        struct sluice_handle handle = post(transfer->pair.channels[1], &receive);
        require_ok(sluice_channel_send(transfer->pair.channels[0], transfer->source_sges, count,
                                       DEADLINE));
        await(transfer->pair.channels[1], handle, SLUICE_CLASS_NONE);
        verify(transfer, size, count);
    }
}

/* A receive that is longer than the message: the rest stays as it was. */
TEST_WITH(transfer, receive_longer_than_message, (70000))
{
    for (size_t size = 1; size < 69000; size = size * 7 + 1) {
        memset(transfer->target.bytes, 0x22, transfer->target.length);
        pattern_fill(transfer->source.bytes, size, size);
        struct sluice_sge from = memory_sge(&transfer->source, 0, size);
        struct sluice_sge to = memory_sge(&transfer->target, 0, transfer->target.length);
        struct sluice_handle handle = post_of(transfer->pair.channels[1], SLUICE_OP_RECEIVE, &to);
        require_ok(sluice_channel_send(transfer->pair.channels[0], &from, 1, DEADLINE));
        struct sluice_completion completion =
            await(transfer->pair.channels[1], handle, SLUICE_CLASS_NONE);
        require(completion.bytes == size, "%llu bytes", (unsigned long long)completion.bytes);
        pattern_check(transfer->target.bytes, size, size);
        value_check(transfer->target.bytes + size, transfer->target.length - size, 0x22);
    }
}

/* Memory of sluice_mr_alloc() carries data as well. */
TEST_WITH(pair, allocated_memory, (NULL))
{
    struct sluice_mr *mrs[2];
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    size_t length = 300000;
    for (int i = 0; i < 2; i++) {
        mrs[i] = made(sluice_mr_alloc(pair->sides.pds[i], length, ACCESS_ALL));
    }
    pattern_fill(sluice_mr_addr(mrs[0]), length, 5);
    require_ok(sluice_mr_sge(mrs[0], 0, length, &sge));
    require_ok(sluice_mr_remote(mrs[1], &remote));
    require_ok(sluice_channel_write(pair->channels[0], &sge, 1, &remote, DEADLINE));
    /* On iWARP this read shows that the write has arrived. */
    require_ok(sluice_channel_read(pair->channels[0], &sge, 1, &remote, DEADLINE));
    pattern_check(sluice_mr_addr(mrs[1]), length, 5);
    pattern_fill(sluice_mr_addr(mrs[1]), length, 6);
    require_ok(sluice_channel_read(pair->channels[0], &sge, 1, &remote, DEADLINE));
    pattern_check(sluice_mr_addr(mrs[0]), length, 6);
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_mr_deregister(mrs[i]));
    }
}

/* A long message in each direction at the same time, by posted work. */
TEST_WITH(pair, both_directions_at_once, (NULL))
{
    struct memory memories[2];
    struct sluice_handle handles[2][2];
    size_t length = short_run() ? 1 << 20 : 8 << 20;
    for (int i = 0; i < 2; i++) {
        memory_open(&memories[i], pair->sides.pds[i], 2 * length);
        pattern_fill(memories[i].bytes, length, (uint64_t)i);
        struct sluice_sge sges[2] = {memory_sge(&memories[i], 0, length),
                                     memory_sge(&memories[i], length, length)};
        struct sluice_request requests[2] = {request_of(SLUICE_OP_SEND, 0, &sges[0]),
                                             request_of(SLUICE_OP_RECEIVE, 0, &sges[1])};
        require_result(sluice_channel_post(pair->channels[i], requests, 2, DEADLINE, handles[i]),
                       2);
    }
    for (int i = 0; i < 4; i++) {
        struct sluice_completion completion =
            await(pair->channels[i / 2], handles[i / 2][i % 2], SLUICE_CLASS_NONE);
        require(completion.bytes == length, "%llu bytes", (unsigned long long)completion.bytes);
    }
    for (int i = 0; i < 2; i++) {
        pattern_check(memories[i].bytes + length, length, (uint64_t)!i);
        memory_close(&memories[i]);
    }
}

int main(void)
{
    return run_tests("data", 60);
}
