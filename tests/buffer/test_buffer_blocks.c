/* SPDX-License-Identifier: MIT */
/*
 * Actions with blocks. The bytes move in the order of the blocks from the memory of one side to
 * that of the other, whatever the sizes of blocks, messages and queues. Each action has one result.
 * An action with a block outside its memory is an error and moves nothing.
 */
#include <stdlib.h>

#include "../support/fair.h"
#include "../support/pair.h"
#include "service.h"

#define RIGHTS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)
#define LENGTH ((size_t)400 * 1000)
#define OFFSET ((size_t)1003)

/* A buffer of an owner, and memory of a user. */
struct world {
    struct sides sides;
    struct sluice_buffer_service *owner, *user;
    struct sluice_buffer *buffer;
    struct sluice_buffer_handle handle;
    struct memory memory;
    uint8_t *bytes; /* of the buffer */
    uint8_t *wanted;
};

static void world_open(struct world *world, const struct sluice_channel_attr *channel)
{
    sides_open(&world->sides);
    world->owner = open_service(world->sides.pds[0], NULL);
    world->user = open_service(world->sides.pds[1], channel);
    world->buffer = sluice_buffer_publish(world->owner, NULL, LENGTH, RIGHTS);
    world->wanted = malloc(LENGTH);
    require(world->buffer != NULL && world->wanted != NULL, "%s", sluice_last_error());
    require_ok(sluice_buffer_export(world->buffer, &world->handle));
    world->bytes = sluice_buffer_addr(world->buffer);
    memory_open(&world->memory, world->sides.pds[1], LENGTH);
}

static void world_close(struct world *world)
{
    memory_close(&world->memory);
    sluice_buffer_release(world->buffer);
    sluice_buffer_service_close(world->user);
    sluice_buffer_service_close(world->owner);
    sides_close(&world->sides);
    free(world->wanted);
}

/* Returns the offset of byte k of the blocks in their memory. */
static size_t place_of(const struct sluice_layout *layout, size_t k)
{
    switch (layout->kind) {
    case SLUICE_LAYOUT_STRIDED:
        return k / layout->bytes * layout->stride + k % layout->bytes;
    case SLUICE_LAYOUT_PAGED:
        return layout->indices[k / layout->bytes] * layout->bytes + k % layout->bytes;
    default:
        return k;
    }
}

static struct sluice_buffer_action action_of(struct world *world, uint32_t opcode,
                                             const struct sluice_blocks *blocks, bool registered)
{
    return (struct sluice_buffer_action){.opcode = opcode,
                                         .handle = &world->handle,
                                         .offset = OFFSET,
                                         .length = LENGTH - OFFSET,
                                         .addr = world->memory.bytes + OFFSET,
                                         .mr = registered ? world->memory.mr : NULL,
                                         .user_data = 7,
                                         .blocks = blocks};
}

/*
 * Reads and writes with the blocks. The destination has the moved bytes and is otherwise unchanged.
 */
static void try_blocks(struct world *world, const struct sluice_blocks *blocks, size_t total,
                       bool registered)
{
    for (uint32_t opcode = 0; opcode < 2; opcode++) {
        bool reads = opcode == 0;
        uint8_t *to = reads ? world->memory.bytes : world->bytes;
        const uint8_t *from = reads ? world->bytes : world->memory.bytes;
        struct sluice_buffer_action action =
            action_of(world, reads ? SLUICE_OP_READ : SLUICE_OP_WRITE, blocks, registered);
        struct sluice_completion completion;
        pattern_fill(world->bytes, LENGTH, 10 + opcode);
        pattern_fill(world->memory.bytes, LENGTH, 20 + opcode);
        memcpy(world->wanted, to, LENGTH);
        for (size_t k = 0; k < total; k++) {
            size_t local = OFFSET + place_of(&blocks->local, k);
            size_t remote = OFFSET + place_of(&blocks->remote, k);
            world->wanted[reads ? local : remote] = from[reads ? remote : local];
        }
        require_ok(sluice_buffer_submit(world->user, &action, 1, 3 * DEADLINE, &completion));
        require(completion.bytes == total && completion.user_data == 7, "%llu of %zu bytes",
                (unsigned long long)completion.bytes, total);
        require(memcmp(to, world->wanted, LENGTH) == 0, "%s: other bytes",
                reads ? "read" : "write");
    }
}

/* Fills in different pages, in no order. */
static void shuffle(uint32_t *indices, uint32_t count, uint32_t most)
{
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = (uint32_t)((uint64_t)i * 7919 % most);
    }
}

/* Numbers and sizes of pages, for both sides. */
static const struct {
    uint32_t count;
    uint64_t bytes;
} pages[] = {{1, 4096}, {90, 4096}, {24, 16384}, {700, 512}, {3000, 64}, {6, 65536}, {37, 10007}};

static const struct sluice_channel_attr channels[] = {
    {.size = sizeof(channels[0])},
    {.size = sizeof(channels[0]), .max_message = 4096, .send_depth = 8},
    {.size = sizeof(channels[0]), .max_message = 5000, .send_depth = 1},
};

TEST(pages_of_both_sides, .times = COUNT(channels))
{
    struct world world;
    uint32_t local[3000], remote[3000];
    world_open(&world, &channels[_i]);
    for (uint32_t i = 0; i < COUNT(pages); i++) {
        if (short_run() && !device_is_soft() && pages[i].count > 500) {
            continue;
        }
        uint32_t most = (uint32_t)((LENGTH - OFFSET) / pages[i].bytes);
        struct sluice_layout ours = {.kind = SLUICE_LAYOUT_PAGED,
                                     .count = pages[i].count,
                                     .bytes = pages[i].bytes,
                                     .indices = local};
        struct sluice_layout theirs = ours;
        theirs.indices = remote;
        struct sluice_blocks blocks = {.size = sizeof(blocks), .local = ours, .remote = theirs};
        shuffle(local, pages[i].count, most);
        for (uint32_t k = 0; k < pages[i].count; k++) {
            remote[k] = most - 1 - local[pages[i].count - 1 - k];
        }
        try_blocks(&world, &blocks, pages[i].count * pages[i].bytes, i % 2 == 0);
        /* Now one side is contiguous. */
        blocks.local = (struct sluice_layout){.kind = SLUICE_LAYOUT_CONTIGUOUS};
        try_blocks(&world, &blocks, pages[i].count * pages[i].bytes, i % 2 == 1);
        blocks.local = ours;
        blocks.remote = (struct sluice_layout){.kind = SLUICE_LAYOUT_CONTIGUOUS};
        try_blocks(&world, &blocks, pages[i].count * pages[i].bytes, true);
    }
    world_close(&world);
}

/* Sizes that are equal, multiples, and neither. Rows that are contiguous, and rows with gaps. */
static const struct {
    uint32_t local_count, remote_count;
    uint64_t local_bytes, remote_bytes, local_stride, remote_stride;
} strides[] = {
    {100, 100, 1000, 1000, 3000, 1000},     {64, 256, 4096, 1024, 5000, 1024},
    {300, 100, 100, 300, 1000, 900},        {56, 96, 96, 56, 200, 100},
    {7, 11, 11000, 7000, 20000, 9000},      {1, 1000, 9000, 9, 9000, 17},
    {2, 2, 100000, 100000, 150000, 180000},
};

TEST(rows_of_both_sides, .times = COUNT(channels))
{
    struct world world;
    world_open(&world, &channels[_i]);
    for (uint32_t i = 0; i < COUNT(strides); i++) {
        const struct sluice_blocks blocks = {.size = sizeof(blocks),
                                             .local = {.kind = SLUICE_LAYOUT_STRIDED,
                                                       .count = strides[i].local_count,
                                                       .bytes = strides[i].local_bytes,
                                                       .stride = strides[i].local_stride},
                                             .remote = {.kind = SLUICE_LAYOUT_STRIDED,
                                                        .count = strides[i].remote_count,
                                                        .bytes = strides[i].remote_bytes,
                                                        .stride = strides[i].remote_stride}};
        try_blocks(&world, &blocks, strides[i].local_count * strides[i].local_bytes, i % 2 == 0);
    }
    world_close(&world);
}

/* Local rows with remote pages; no blocks at all; and two contiguous sides. */
TEST(kinds_are_mixed)
{
    struct world world;
    uint32_t indices[64];
    world_open(&world, NULL);
    shuffle(indices, 64, 95);
    struct sluice_blocks blocks = {
        .size = sizeof(blocks),
        .local = {.kind = SLUICE_LAYOUT_STRIDED, .count = 128, .bytes = 2048, .stride = 2500},
        .remote = {.kind = SLUICE_LAYOUT_PAGED, .count = 64, .bytes = 4096, .indices = indices}};
    try_blocks(&world, &blocks, 64 * 4096, true);
    blocks.local.count = blocks.remote.count = 0;
    try_blocks(&world, &blocks, 0, true);
    blocks.remote = blocks.local = (struct sluice_layout){.kind = SLUICE_LAYOUT_CONTIGUOUS};
    try_blocks(&world, &blocks, LENGTH - OFFSET, false);
    world_close(&world);
}

/* Several actions have more blocks than the queue has room for, beside a plain action. */
TEST(many_actions_at_once)
{
    enum { ACTIONS = 5, COUNT_EACH = 40, BYTES = 512 };
    struct world world;
    struct sluice_buffer_action actions[ACTIONS + 1];
    struct sluice_completion completions[ACTIONS + 1];
    struct sluice_blocks blocks[ACTIONS];
    uint32_t indices[ACTIONS][COUNT_EACH];
    uint8_t target[100] = {0};
    world_open(&world, &channels[1]);
    pattern_fill(world.bytes, LENGTH, 1);
    memset(world.memory.bytes, 0, LENGTH);
    for (uint32_t i = 0; i < ACTIONS; i++) {
        for (uint32_t k = 0; k < COUNT_EACH; k++) {
            indices[i][k] = (k * ACTIONS + i) * 3;
        }
        blocks[i] = (struct sluice_blocks){.size = sizeof(blocks[i]),
                                           .remote = {.kind = SLUICE_LAYOUT_PAGED,
                                                      .count = COUNT_EACH,
                                                      .bytes = BYTES,
                                                      .indices = indices[i]}};
        blocks[i].local = blocks[i].remote;
        actions[i] = action_of(&world, SLUICE_OP_READ, &blocks[i], true);
    }
    actions[ACTIONS] = (struct sluice_buffer_action){
        .opcode = SLUICE_OP_READ, .handle = &world.handle, .length = 100, .addr = target};
    for (int round = 0; round < 3; round++) {
        require_ok(
            sluice_buffer_submit(world.user, actions, ACTIONS + 1, 3 * DEADLINE, completions));
    }
    require(memcmp(target, world.bytes, 100) == 0, "other bytes");
    for (uint32_t i = 0; i < ACTIONS; i++) {
        require(completions[i].bytes == (uint64_t)COUNT_EACH * BYTES, "%llu",
                (unsigned long long)completions[i].bytes);
        for (uint32_t k = 0; k < COUNT_EACH; k++) {
            size_t at = OFFSET + (size_t)indices[i][k] * BYTES;
            require(memcmp(world.memory.bytes + at, world.bytes + at, BYTES) == 0, "page %u", k);
            value_check(world.memory.bytes + at + BYTES, 2 * (size_t)BYTES, 0);
        }
    }
    world_close(&world);
}

/*
 * The program may change the struct and the indices after the call, even while the batch is in
 * flight.
 */
TEST(a_batch_keeps_its_blocks)
{
    enum { PAGES = 64 };
    struct world world;
    uint32_t *indices = malloc(PAGES * sizeof(*indices));
    struct sluice_blocks *blocks = calloc(1, sizeof(*blocks));
    world_open(&world, &channels[1]);
    require(indices != NULL && blocks != NULL, "no memory");
    shuffle(indices, PAGES, 90);
    *blocks = (struct sluice_blocks){
        .size = sizeof(*blocks),
        .remote = {.kind = SLUICE_LAYOUT_PAGED, .count = PAGES, .bytes = 4096, .indices = indices}};
    struct sluice_buffer_action action = action_of(&world, SLUICE_OP_READ, blocks, true);
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(world.user, &action, 1);
    require(batch != NULL, "%s", sluice_last_error());
    memset(indices, 0xff, PAGES * sizeof(*indices));
    memset(blocks, 0xff, sizeof(*blocks));
    for (uint64_t round = 0; round < 3; round++) {
        pattern_fill(world.bytes, LENGTH, round);
        require_ok(sluice_buffer_batch_post(batch, DEADLINE));
        require_ok(sluice_buffer_batch_wait(batch, DEADLINE));
        shuffle(indices, PAGES, 90);
        for (uint32_t k = 0; k < PAGES; k++) {
            require(memcmp(world.memory.bytes + OFFSET + (size_t)k * 4096,
                           world.bytes + OFFSET + (size_t)indices[k] * 4096, 4096) == 0,
                    "page %u", k);
        }
        memset(indices, 0xff, PAGES * sizeof(*indices));
    }
    sluice_buffer_batch_free(batch);
    free(indices);
    free(blocks);
    world_close(&world);
}

/* Each mistake, in the second of two actions, is reported, and nothing moves. */
TEST(mistakes_name_the_block)
{
    struct world world;
    uint32_t good[4] = {3, 1, 2, 0}, bad[4] = {3, 1, 97, 0};
    struct sluice_completion completions[2];
    world_open(&world, NULL);
    const struct sluice_layout right = {
        .kind = SLUICE_LAYOUT_PAGED, .count = 4, .bytes = 4096, .indices = good};
    const struct sluice_blocks fine = {.size = sizeof(fine), .local = right, .remote = right};
    struct sluice_blocks blocks = fine;
    struct sluice_buffer_action actions[2] = {action_of(&world, SLUICE_OP_WRITE, &fine, true),
                                              action_of(&world, SLUICE_OP_WRITE, &blocks, true)};
    memset(world.bytes, 1, LENGTH);
    memset(world.memory.bytes, 2, LENGTH);
    memset(completions, 0x55, sizeof(completions));
#define WRONG(error, words)                                                                       \
    do {                                                                                          \
        require_error(sluice_buffer_submit(world.user, actions, 2, DEADLINE, completions), error, \
                      words);                                                                     \
        require_null(sluice_buffer_batch_prepare(world.user, actions, 2), -(error), words);       \
        blocks = fine;                                                                            \
    } while (0)
    blocks.remote.indices = bad;
    WRONG(-ERANGE, "action 1: write of buffer 1: remote index 2 is 97, 97 pages of 4096");
    blocks.local.indices = bad;
    WRONG(-ERANGE, "action 1: write of buffer 1: local index 2 is 97, 97 pages of 4096");
    blocks.remote = (struct sluice_layout){
        .kind = SLUICE_LAYOUT_STRIDED, .count = 4, .bytes = 4096, .stride = 200000};
    WRONG(-ERANGE, "remote block 2, of 4096 bytes with a stride of 200000");
    blocks.remote.count = 3;
    WRONG(-EINVAL, "the local blocks have 16384 bytes together, the remote ones 12288");
    blocks.local.bytes = UINT64_MAX;
    WRONG(-ERANGE, "more than 2^64");
    blocks.size = 8;
    WRONG(-EINVAL, "blocks.size is 8");
    blocks.local_length = 4096;
    WRONG(-EINVAL, "local_length is 4096, must be 0");
    blocks.flags = 1;
    WRONG(-EINVAL, "flags");
    blocks.local.kind = 9;
    WRONG(-EINVAL, "blocks.local.kind is 9");
    /*
     * Local blocks are limited by the length of the action, remote blocks by the end of the buffer.
     */
    actions[1].length = 4 * 4096 - 1;
    WRONG(-ERANGE, "local index 0 is 3");
    actions[1].length = LENGTH - OFFSET + 1;
    WRONG(-ERANGE, "outside the region");
    actions[1].length = LENGTH - OFFSET;
    actions[1].offset = LENGTH - 4 * 4096 + 1;
    WRONG(-ERANGE, "remote index 0 is 3");
    actions[1].offset = LENGTH + 1;
    WRONG(-ERANGE, "goes beyond buffer 1");
    value_check((uint8_t *)completions, sizeof(completions), 0x55);
    value_check(world.bytes, LENGTH, 1);
    world_close(&world);
}

/* A failed action has one result, and the next action works over the same service. */
TEST(a_released_buffer_is_refused)
{
    struct world world;
    uint32_t indices[90];
    struct sluice_completion completion;
    world_open(&world, &channels[1]);
    shuffle(indices, 90, 90);
    struct sluice_blocks blocks = {
        .size = sizeof(blocks),
        .remote = {.kind = SLUICE_LAYOUT_PAGED, .count = 90, .bytes = 4096, .indices = indices}};
    struct sluice_buffer_action action = action_of(&world, SLUICE_OP_READ, &blocks, true);
    for (int round = 0; round < 3; round++) {
        require_ok(sluice_buffer_submit(world.user, &action, 1, DEADLINE, &completion));
        sluice_buffer_release(world.buffer);
        require_error(sluice_buffer_submit(world.user, &action, 1, DEADLINE, &completion), -EACCES,
                      "read of 368640 bytes at offset 1003 the buffer was released, for a read");
        require_class(&completion, SLUICE_CLASS_ACCESS);
        world.buffer = sluice_buffer_publish(world.owner, NULL, LENGTH, RIGHTS);
        require(world.buffer != NULL, "%s", sluice_last_error());
        require_ok(sluice_buffer_export(world.buffer, &world.handle));
        world.bytes = sluice_buffer_addr(world.buffer);
    }
    try_blocks(&world, &blocks, (size_t)90 * 4096, true);
    world_close(&world);
}

/* The text of a batch names its action even if it has only one. That of a call does not. */
TEST(the_only_action_of_a_batch_is_named)
{
    static const struct sluice_blocks none;
    struct world world;
    world_open(&world, &channels[1]);
    struct sluice_buffer_action action = action_of(&world, SLUICE_OP_READ, &none, true);
    action.blocks = NULL;
    action.length = 8;
    struct sluice_buffer_batch *batch = made(sluice_buffer_post(world.user, &action, 1, 0));
    require_ok(sluice_buffer_batch_wait(batch, 0));
    require_error(sluice_buffer_batch_results(batch, NULL), -ETIMEDOUT,
                  "action 0: read the deadline passed");
    require_error(sluice_buffer_submit(world.user, &action, 1, 0, NULL), -ETIMEDOUT,
                  "read of 8 bytes");
    require(strstr(sluice_last_error(), "action") == NULL, "%s", sluice_last_error());
    sluice_buffer_batch_free(batch);
    world_close(&world);
}

int main(void)
{
    return run_tests("buffer_blocks", short_run() ? 40 : 60);
}
