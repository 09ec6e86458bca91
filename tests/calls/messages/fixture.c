/* SPDX-License-Identifier: MIT */
#include "fixture.h"

const struct sluice_channel_attr messages_attr = {.size = sizeof(messages_attr),
                                                  .flags = SLUICE_CHANNEL_HISTOGRAMS,
                                                  .max_sge = 6,
                                                  .send_depth = 24,
                                                  .staging = STAGING};

void fixture_open_with(struct fixture *fixture, const struct sluice_channel_attr *with)
{
    pair_open(&fixture->pair, with);
    for (int side = 0; side < 2; side++) {
        memory_open(&fixture->memory[side], fixture->pair.sides.pds[side], SPAN);
    }
    fixture->seed = 1;
}

void fixture_open(struct fixture *fixture)
{
    fixture_open_with(fixture, &messages_attr);
}

void fixture_close(struct fixture *fixture)
{
    for (int side = 0; side < 2; side++) {
        memory_close(&fixture->memory[side]);
    }
    pair_close(&fixture->pair);
}

uint32_t choose(struct fixture *fixture, uint32_t below)
{
    fixture->seed = fixture->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(fixture->seed >> 33) % below;
}

/* Each page is there once. Some of them touch. */
static void lay_pages(struct fixture *fixture, struct sluice_layout *layout, uint32_t *indices)
{
    uint32_t pages = SPAN / (uint32_t)layout->bytes;
    uint32_t first = choose(fixture, pages);
    uint32_t step = choose(fixture, 3) == 0 ? 1 : 1 + choose(fixture, pages);
    bool taken[SPAN] = {false};
    for (uint32_t i = 0; i < layout->count; i++) {
        uint32_t page = (first + i * step) % pages;
        while (taken[page]) {
            page = (page + 1) % pages;
        }
        taken[page] = true;
        indices[i] = page;
    }
    layout->kind = SLUICE_LAYOUT_PAGED;
    layout->indices = indices;
}

void lay(struct fixture *fixture, int side, uint32_t count, uint32_t bytes)
{
    struct sluice_layout *layout = &fixture->blocks[side].local;
    fixture->blocks[side] = (struct sluice_blocks){.size = sizeof(struct sluice_blocks)};
    *layout = (struct sluice_layout){.count = count, .bytes = bytes};
    if (choose(fixture, 2)) {
        lay_pages(fixture, layout, fixture->indices[side]);
        return;
    }
    layout->kind = SLUICE_LAYOUT_STRIDED;
    layout->stride = bytes;
    if (count > 1 && choose(fixture, 3) != 0) {
        layout->stride += choose(fixture, (SPAN - bytes) / (count - 1) - bytes + 1);
    }
}

struct sluice_blocks strided(uint32_t count, uint64_t bytes, uint64_t stride)
{
    return (struct sluice_blocks){
        .size = sizeof(struct sluice_blocks),
        .local = {.kind = SLUICE_LAYOUT_STRIDED, .count = count, .bytes = bytes, .stride = stride}};
}

static uint64_t bytes_of(const struct sluice_blocks *blocks)
{
    return blocks->local.count * blocks->local.bytes;
}

/* Where byte number at is. */
static uint64_t find_byte(const struct sluice_blocks *blocks, uint64_t at)
{
    const struct sluice_layout *layout = &blocks->local;
    uint64_t block = at / layout->bytes;
    return at % layout->bytes + (layout->kind == SLUICE_LAYOUT_PAGED
                                     ? layout->indices[block] * layout->bytes
                                     : block * layout->stride);
}

struct sluice_request ask(struct fixture *fixture, int side)
{
    return REQUEST(.opcode = side == SEND ? SLUICE_OP_SEND : SLUICE_OP_RECEIVE, .sge_count = 1,
                   .sge = memory_sge(&fixture->memory[side], 0, SPAN),
                   .user_data = 70 + (uint32_t)side, .blocks = &fixture->blocks[side]);
}

/* The bytes of the source all differ from what is in the gaps of the destination. */
void fill(struct fixture *fixture)
{
    uint8_t *from = fixture->memory[SEND].bytes;
    for (uint32_t i = 0; i < SPAN; i++) {
        from[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + 1);
        from[i] += from[i] == GAP;
    }
    memset(fixture->memory[RECEIVE].bytes, GAP, SPAN);
}

/* The first bytes of the blocks of the receiver are those of the sender's, in their order. */
void check(struct fixture *fixture)
{
    const uint8_t *from = fixture->memory[SEND].bytes;
    const uint8_t *to = fixture->memory[RECEIVE].bytes;
    memset(fixture->model, GAP, SPAN);
    for (uint64_t at = 0; at < bytes_of(&fixture->blocks[SEND]); at++) {
        fixture->model[find_byte(&fixture->blocks[RECEIVE], at)] =
            from[find_byte(&fixture->blocks[SEND], at)];
    }
    for (uint32_t i = 0; i < SPAN; i++) {
        require(to[i] == fixture->model[i], "byte %u is %02x, not %02x", i, to[i],
                fixture->model[i]);
    }
}

void check_end(struct fixture *fixture, const struct sluice_completion *completion, int side)
{
    uint64_t bytes = bytes_of(&fixture->blocks[SEND]);
    require_equal(completion->error, 0, completion->bytes, bytes, completion->user_data,
                  70 + (uint32_t)side);
}

void take(struct fixture *fixture, int side)
{
    struct sluice_completion completion;
    require_ok(sluice_channel_next(fixture->pair.channels[side], DEADLINE, &completion));
    check_end(fixture, &completion, side);
}

/* The lists that a request was made from may go once it is posted. */
void do_post(struct fixture *fixture, int side)
{
    struct sluice_request request = ask(fixture, side);
    struct sluice_blocks blocks = *request.blocks;
    uint32_t indices[BLOCKS];
    memcpy(indices, fixture->indices[side], sizeof(indices));
    if (blocks.local.kind == SLUICE_LAYOUT_PAGED) {
        blocks.local.indices = indices;
    }
    request.blocks = &blocks;
    require_result(sluice_channel_post(fixture->pair.channels[side], &request, 1, DEADLINE, NULL),
                   1);
    memset(indices, 0xff, sizeof(indices));
    memset(&blocks, 0xff, sizeof(blocks));
}

void do_submit(struct fixture *fixture)
{
    struct sluice_completion completion;
    struct sluice_request request = ask(fixture, SEND);
    do_post(fixture, RECEIVE);
    require_ok(
        sluice_channel_submit(fixture->pair.channels[SEND], &request, 1, DEADLINE, &completion));
    check_end(fixture, &completion, SEND);
    take(fixture, RECEIVE);
}

void do_list(struct fixture *fixture)
{
    struct sluice_completion completions[2];
    struct sluice_list *lists[2];
    for (int side = 0; side < 2; side++) {
        struct sluice_request request = ask(fixture, side);
        lists[side] = made(sluice_channel_list_prepare(fixture->pair.channels[side], &request, 1));
    }
    for (int round = 0; round < 2; round++) {
        require_ok(sluice_list_post(lists[RECEIVE], DEADLINE, &completions[RECEIVE]));
        require_ok(round == 0 ? sluice_list_submit(lists[SEND], DEADLINE, &completions[SEND])
                              : sluice_list_post(lists[SEND], DEADLINE, &completions[SEND]));
        if (round == 1) {
            await_list(lists[SEND]);
        }
        await_list(lists[RECEIVE]);
        for (int side = 0; side < 2; side++) {
            check_end(fixture, &completions[side], side);
        }
    }
    sluice_list_free(lists[0]);
    sluice_list_free(lists[1]);
}
