/* SPDX-License-Identifier: MIT */
/*
 * Requests of blocks: the moved bytes are compared with a model that moves one block after the
 * other; each request has one result; and impossible blocks are refused.
 */
#include <stdio.h>

#include "../support/pair.h"

#define SPAN 60000
#define BLOCKS 200
#define GAP 0x5a

/* Parts end at the size of a message, at pieces, and at the depth of the queue. */
static const struct sluice_channel_attr attr = {.size = sizeof(attr),
                                                .flags = SLUICE_CHANNEL_HISTOGRAMS,
                                                .max_message = 4096,
                                                .max_sge = 6,
                                                .send_depth = 24};

struct fixture {
    struct pair pair;
    struct memory near, far;
    uint32_t indices[2][BLOCKS];
    uint8_t model[SPAN];
    uint64_t seed;
};

static void fixture_open(struct fixture *fixture)
{
    pair_open(&fixture->pair, &attr);
    fixture->near = side_memory(&fixture->pair.sides, 0, SPAN);
    fixture->far = side_memory(&fixture->pair.sides, 1, SPAN);
    fixture->seed = 1;
}

static void fixture_close(struct fixture *fixture)
{
    pair_close(&fixture->pair);
}

static uint32_t choose(struct fixture *fixture, uint32_t below)
{
    fixture->seed = fixture->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(fixture->seed >> 33) % below;
}

/* Pages of a destination are distinct; those of a source may repeat. Some are adjacent. */
static void lay_pages(struct fixture *fixture, struct sluice_layout *layout, uint32_t *indices,
                      bool source)
{
    uint32_t pages = SPAN / (uint32_t)layout->bytes;
    uint32_t first = choose(fixture, pages);
    uint32_t step = choose(fixture, 3) == 0 ? 1 : 1 + choose(fixture, pages);
    bool taken[SPAN] = {false};
    for (uint32_t i = 0; i < layout->count; i++) {
        uint32_t page = (first + i * step) % pages;
        while (!source && taken[page]) {
            page = (page + 1) % pages;
        }
        taken[page] = true;
        indices[i] = page;
    }
    layout->kind = SLUICE_LAYOUT_PAGED;
    layout->indices = indices;
}

/* Blocks of a source may overlap. */
static void lay_strides(struct fixture *fixture, struct sluice_layout *layout, bool source)
{
    uint64_t most = layout->count > 1 ? (SPAN - layout->bytes) / (layout->count - 1) : 5000;
    layout->kind = SLUICE_LAYOUT_STRIDED;
    layout->stride = choose(fixture, 3) == 0 ? layout->bytes : choose(fixture, (uint32_t)most + 1);
    if (!source && layout->stride < layout->bytes) {
        layout->stride = layout->bytes;
    }
}

static void lay(struct fixture *fixture, struct sluice_layout *layout, uint32_t count,
                uint32_t bytes, uint32_t *indices, bool source)
{
    *layout = (struct sluice_layout){.count = count, .bytes = bytes};
    if (choose(fixture, 2)) {
        lay_pages(fixture, layout, indices, source);
    } else {
        lay_strides(fixture, layout, source);
    }
}

/* Makes blocks of two sizes, with as many bytes on both sides. */
static struct sluice_blocks make_blocks(struct fixture *fixture, bool write)
{
    struct sluice_blocks blocks = {.size = sizeof(blocks)};
    uint32_t count = 1 + choose(fixture, BLOCKS / 4);
    uint32_t bytes = 1 + choose(fixture, SPAN / (4 * count));
    uint32_t sides = 1 + choose(fixture, 3);
    if (sides & 1) {
        lay(fixture, &blocks.local, 3 * count, bytes, fixture->indices[0], write);
    }
    if (sides & 2) {
        lay(fixture, &blocks.remote, count, 3 * bytes, fixture->indices[1], !write);
    }
    return blocks;
}

static uint64_t bytes_of(const struct sluice_blocks *blocks)
{
    const struct sluice_layout *layout = blocks->local.kind ? &blocks->local : &blocks->remote;
    return layout->count * layout->bytes;
}

/* Returns the address of byte number at of a side. */
static uint64_t find_byte(const struct sluice_layout *layout, uint64_t at)
{
    switch (layout->kind) {
    case SLUICE_LAYOUT_STRIDED:
        return at / layout->bytes * layout->stride + at % layout->bytes;
    case SLUICE_LAYOUT_PAGED:
        return layout->indices[at / layout->bytes] * layout->bytes + at % layout->bytes;
    default:
        return at;
    }
}

static struct sluice_request ask(struct fixture *fixture, uint32_t opcode,
                                 const struct sluice_blocks *blocks)
{
    return REQUEST(.opcode = opcode, .sge_count = 1, .sge = memory_sge(&fixture->near, 0, SPAN),
                   .remote = memory_remote(&fixture->far, 0, SPAN), .user_data = 77,
                   .blocks = blocks);
}

/* All bytes of the source differ from those in the gaps of the destination. */
static void fill(struct fixture *fixture, bool write)
{
    struct memory *from = write ? &fixture->near : &fixture->far;
    struct memory *to = write ? &fixture->far : &fixture->near;
    for (uint32_t i = 0; i < SPAN; i++) {
        from->bytes[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + 1);
        from->bytes[i] += from->bytes[i] == GAP;
    }
    memset(to->bytes, GAP, SPAN);
}

static void check(struct fixture *fixture, const struct sluice_blocks *blocks, bool write)
{
    const uint8_t *from = write ? fixture->near.bytes : fixture->far.bytes;
    const uint8_t *to = write ? fixture->far.bytes : fixture->near.bytes;
    const struct sluice_layout *source = write ? &blocks->local : &blocks->remote;
    const struct sluice_layout *target = write ? &blocks->remote : &blocks->local;
    memset(fixture->model, GAP, SPAN);
    for (uint64_t at = 0; at < bytes_of(blocks); at++) {
        fixture->model[find_byte(target, at)] = from[find_byte(source, at)];
    }
    for (uint32_t i = 0; i < SPAN; i++) {
        require(to[i] == fixture->model[i], "byte %u is %02x, not %02x", i, to[i],
                fixture->model[i]);
    }
}

static void check_end(const struct sluice_completion *completion,
                      const struct sluice_blocks *blocks)
{
    require_equal(completion->error, 0, completion->user_data, 77, completion->bytes,
                  bytes_of(blocks));
}

static void do_submit(struct fixture *fixture, const struct sluice_request *request)
{
    struct sluice_completion completion;
    require_ok(sluice_channel_submit(fixture->pair.channels[0], request, 1, DEADLINE, &completion));
    check_end(&completion, request->blocks);
}

/* A request that never fits the queue is refused; each other one has one result. */
static void do_post(struct fixture *fixture, const struct sluice_request *request)
{
    struct sluice_channel *channel = fixture->pair.channels[0];
    struct sluice_completion completion;
    int posted = sluice_channel_post(channel, request, 1, DEADLINE, NULL);
    if (posted == -E2BIG) {
        require(strstr(sluice_last_error(), "send_depth"), "%s", sluice_last_error());
        do_submit(fixture, request);
        return;
    }
    require(posted == 1, "%d: %s", posted, sluice_last_error());
    require_ok(sluice_channel_next(channel, DEADLINE, &completion));
    check_end(&completion, request->blocks);
    require(sluice_channel_poll(channel, &completion, 1) == 0, "a second result");
}

static void do_scope(struct fixture *fixture, const struct sluice_request *request)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(fixture->pair.channels[0], DEADLINE);
    struct sluice_completion completion;
    struct sluice_handle handle;
    require(sluice_scope_post(scope, request, 1, &handle) == 1, "%s", sluice_last_error());
    require_ok(sluice_scope_wait(scope, &handle, DEADLINE, &completion));
    check_end(&completion, request->blocks);
    require_ok(sluice_scope_end(scope, NULL));
}

/* Prepares a list and posts it twice, after overwriting the arrays it was prepared from. */
static void do_list(struct fixture *fixture, const struct sluice_request *request)
{
    struct sluice_blocks copy = *request->blocks;
    struct sluice_request given = *request;
    struct sluice_completion completion;
    uint32_t kept[2][BLOCKS];
    given.blocks = &copy;
    memcpy(kept, fixture->indices, sizeof(kept));
    struct sluice_list *list = sluice_channel_list_prepare(fixture->pair.channels[0], &given, 1);
    if (!list) {
        require(errno == E2BIG, "%s", sluice_last_error());
        do_submit(fixture, request);
        return;
    }
    memset(&copy, 0xff, sizeof(copy));
    memset(fixture->indices, 0xff, sizeof(fixture->indices));
    require_ok(sluice_list_aim(list, 0, NULL, 0));
    require_ok(sluice_list_submit(list, DEADLINE, &completion));
    check_end(&completion, request->blocks);
    require_ok(sluice_list_post(list, DEADLINE, &completion));
    await_list(list);
    check_end(&completion, request->blocks);
    memcpy(fixture->indices, kept, sizeof(kept));
    sluice_list_free(list);
}

static void do_random(struct fixture *fixture, bool write)
{
    static void (*const calls[])(struct fixture * fixture, const struct sluice_request *request) = {
        do_submit, do_post, do_scope, do_list};
    struct sluice_blocks blocks = make_blocks(fixture, write);
    struct sluice_request request = ask(fixture, write ? SLUICE_OP_WRITE : SLUICE_OP_READ, &blocks);
    fill(fixture, write);
    request.flags = choose(fixture, 4) == 0 ? SLUICE_FENCE : 0;
    if (choose(fixture, 8) == 0) {
        blocks.local_length = SPAN;
        request.sge.length = 0;
    }
    calls[choose(fixture, COUNT(calls))](fixture, &request);
    check(fixture, &blocks, write);
}

TEST_WITH(fixture, random_layouts, ())
{
    for (uint32_t i = 0; i < (short_run() ? 60 : 600); i++) {
        do_random(fixture, i % 2 == 0);
    }
}

/* Some pages apart from each other on both sides; some tests change the second one. */
static const uint32_t some_pages[] = {3, 7, 1};
static const struct sluice_layout paged = {
    .kind = SLUICE_LAYOUT_PAGED, .count = 3, .bytes = 4096, .indices = some_pages};
static const struct sluice_layout strided = {
    .kind = SLUICE_LAYOUT_STRIDED, .count = 3, .bytes = 4096, .stride = 5000};

TEST_WITH(fixture, immediate_follows_the_last_block, ())
{
    const struct sluice_blocks blocks = {.size = sizeof(blocks), .local = paged, .remote = strided};
    struct sluice_request request = ask(fixture, SLUICE_OP_WRITE, &blocks);
    struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE};
    struct sluice_handle handle = post(fixture->pair.channels[1], &receive);
    request.flags = SLUICE_IMMEDIATE | SLUICE_SOLICITED;
    request.immediate = 4711;
    fill(fixture, true);
    do_submit(fixture, &request);
    struct sluice_completion completion =
        await(fixture->pair.channels[1], handle, SLUICE_CLASS_NONE);
    require(completion.immediate == 4711 && (completion.flags & SLUICE_WRITTEN) != 0, "%u",
            completion.immediate);
    check(fixture, &blocks, true);
    require(sluice_channel_poll(fixture->pair.channels[1], &completion, 1) == 0, "once only");
}

TEST_WITH(fixture, no_blocks_move_nothing, ())
{
    struct sluice_blocks blocks = {.size = sizeof(blocks), .local = strided, .remote = paged};
    struct sluice_request request = ask(fixture, SLUICE_OP_WRITE, &blocks);
    blocks.local.count = blocks.remote.count = 0;
    blocks.remote.indices = NULL;
    fill(fixture, true);
    do_submit(fixture, &request);
    do_post(fixture, &request);
    do_scope(fixture, &request);
    do_list(fixture, &request);
    request.opcode = SLUICE_OP_READ;
    do_submit(fixture, &request);
    check(fixture, &blocks, true);
}

/* Without blocks it is a request like any other. */
TEST_WITH(fixture, contiguous_on_both_sides, ())
{
    const struct sluice_blocks none = {.size = sizeof(none)};
    const struct sluice_blocks whole = {
        .size = sizeof(whole),
        .remote = {.kind = SLUICE_LAYOUT_STRIDED, .count = 1, .bytes = SPAN}};
    struct sluice_request request = ask(fixture, SLUICE_OP_READ, &none);
    struct sluice_completion completion;
    fill(fixture, false);
    require_ok(
        sluice_channel_submit(fixture->pair.channels[0], &request, 1, DEADLINE, &completion));
    require(completion.bytes == SPAN, "%llu bytes", (unsigned long long)completion.bytes);
    check(fixture, &whole, false);
}

/* Plain requests keep their order relative to those with blocks. */
TEST_WITH(fixture, lists_with_and_without_blocks, ())
{
    struct sluice_channel *channel = fixture->pair.channels[0];
    const struct sluice_blocks blocks = {.size = sizeof(blocks), .local = paged, .remote = strided};
    struct sluice_request requests[7];
    struct sluice_completion completions[7];
    for (uint32_t i = 0; i < COUNT(requests); i++) {
        requests[i] = ask(fixture, SLUICE_OP_WRITE, i % 2 == 1 ? &blocks : NULL);
        requests[i].user_data = i;
        if (!requests[i].blocks) {
            requests[i].sge = memory_sge(&fixture->near, 40000 + i, 1);
            requests[i].remote = memory_remote(&fixture->far, 20000 + i, 1);
        }
    }
    struct sluice_list *list =
        made(sluice_channel_list_prepare(channel, requests, COUNT(requests)));
    for (int way = 0; way < 3; way++) {
        fill(fixture, true);
        memset(completions, 0xcc, sizeof(completions));
        if (way == 0) {
            require_ok(
                sluice_channel_submit(channel, requests, COUNT(requests), DEADLINE, completions));
        } else if (way == 1) {
            require_ok(sluice_list_submit(list, DEADLINE, completions));
        } else {
            require_result(sluice_channel_post(channel, requests, COUNT(requests), DEADLINE, NULL),
                           COUNT(requests));
            for (uint32_t i = 0; i < COUNT(requests); i++) {
                require_ok(sluice_channel_next(channel, DEADLINE, &completions[i]));
            }
        }
        for (uint32_t i = 0; i < COUNT(requests); i++) {
            uint64_t bytes = requests[i].blocks ? bytes_of(&blocks) : 1;
            require(completions[i].error == 0 && completions[i].user_data == i &&
                        completions[i].bytes == bytes,
                    "way %d, request %u: error %d, %llu bytes", way, i, completions[i].error,
                    (unsigned long long)completions[i].bytes);
            require(requests[i].blocks ||
                        fixture->far.bytes[20000 + i] == fixture->near.bytes[40000 + i],
                    "way %d, byte %u", way, i);
            fixture->far.bytes[20000 + i] = GAP;
        }
        check(fixture, &blocks, true);
    }
    sluice_list_free(list);
}

/* The first error counts for the group, which has one result, and its memory is then free. */
TEST_WITH(fixture, refused_by_the_peer, ())
{
    struct sluice_blocks blocks = {.size = sizeof(blocks), .local = paged, .remote = strided};
    for (int way = 0; way < 2; way++) {
        struct sluice_request request = ask(fixture, SLUICE_OP_WRITE, &blocks);
        struct sluice_completion completion;
        request.remote.rkey ^= 0x5555;
        struct sluice_list *list =
            sluice_channel_list_prepare(fixture->pair.channels[0], &request, 1);
        require_result(way == 0 ? sluice_channel_submit(fixture->pair.channels[0], &request, 1,
                                                        DEADLINE, &completion)
                                : sluice_list_submit(list, DEADLINE, &completion),
                       -EACCES);
        require_class(&completion, SLUICE_CLASS_ACCESS);
        require(completion.bytes == 0, "%llu bytes", (unsigned long long)completion.bytes);
        sluice_list_free(list);
        pair_reset(&fixture->pair);
    }
}

TEST_WITH(star, many_peers, (4, &attr))
{
    static const uint32_t everybody[] = {0, 1, 2, 3};
    struct sluice_request requests[4];
    struct sluice_peer_remote_mr remotes[4];
    const struct sluice_blocks blocks = {
        .size = sizeof(blocks),
        .local = {.kind = SLUICE_LAYOUT_STRIDED, .count = 50, .bytes = 10, .stride = 40},
        .remote = {.kind = SLUICE_LAYOUT_STRIDED, .count = 25, .bytes = 20, .stride = 21}};
    struct memory near = side_memory(&star->sides, 0, 8000);
    struct memory far = side_memory(&star->sides, 1, 8000);
    pattern_fill(near.bytes, near.length, 5);
    for (uint32_t i = 0; i < 4; i++) {
        requests[i] = REQUEST(.opcode = SLUICE_OP_WRITE, .peer = i, .sge_count = 1,
                              .sge = memory_sge(&near, 2000 * i, 2000),
                              .remote = memory_remote(&far, 2000 * i, 2000), .blocks = &blocks);
        require_ok(sluice_multichannel_peer_remote(star->hub, i, &requests[i].remote, &remotes[i]));
    }
    require_ok(sluice_multichannel_scatter_write(star->hub, requests, 4, DEADLINE, NULL));
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t at = 0; at < 500; at++) {
            require(far.bytes[2000 * i + at / 20 * 21 + at % 20] ==
                        near.bytes[2000 * i + at / 10 * 40 + at % 10],
                    "peer %u, byte %u", i, at);
            near.bytes[2000 * i + at / 10 * 40 + at % 10] ^= 0xff;
        }
        requests[i].opcode = SLUICE_OP_READ;
    }
    require_ok(sluice_multichannel_gather_read(star->hub, requests, 4, DEADLINE, NULL));
    pattern_check(near.bytes, near.length, 5);
    memset(far.bytes, 0, far.length);
    requests[0].opcode = SLUICE_OP_WRITE;
    require_ok(
        sluice_multichannel_multicast_write(star->hub, requests, remotes, 4, DEADLINE, NULL));
    for (uint32_t i = 0; i < 2000; i++) {
        require(far.bytes[2000 * (i / 500) + i % 500 / 20 * 21 + i % 20] ==
                    near.bytes[i % 500 / 10 * 40 + i % 10],
                "multicast, byte %u", i);
    }
    requests[0].opcode = SLUICE_OP_SEND;
    requests[0].remote = (struct sluice_remote_mr){0};
    require_error(
        sluice_multichannel_multicast_send(star->hub, requests, everybody, 4, DEADLINE, NULL),
        -EINVAL, "blocks.remote of a send");
}

/* Wrong blocks, of which nothing is posted. */
struct wrong {
    struct sluice_blocks blocks;
    int error;
    const char *words;
};

static const uint32_t far_pages[] = {0, 14, 13};
#define STRIDED(c, b, s)                                                         \
    {                                                                            \
        .kind = SLUICE_LAYOUT_STRIDED, .count = (c), .bytes = (b), .stride = (s) \
    }
#define PAGES(c, b, i)                                                          \
    {                                                                           \
        .kind = SLUICE_LAYOUT_PAGED, .count = (c), .bytes = (b), .indices = (i) \
    }
#define SIZE .size = sizeof(struct sluice_blocks)

static const struct wrong wrongs[] = {
    {{.size = 8}, -EINVAL, "blocks.size is 8"},
    {{.size = UINT32_MAX}, -E2BIG, "blocks.size is 4294967295 initialised"},
    {{SIZE, .flags = 2}, -EINVAL, "flags is 0x2"},
    {{SIZE, .local = {.kind = 3}}, -EINVAL, "blocks.local.kind is 3"},
    {{SIZE, .remote = {.kind = UINT32_MAX}}, -EINVAL, "blocks.remote.kind"},
    {{SIZE, .local = {.count = 1}}, -EINVAL, "contiguous with count 1"},
    {{SIZE, .remote = {.bytes = 9}}, -EINVAL, "contiguous bytes 9"},
    {{SIZE, .local = {.stride = 9}}, -EINVAL, "local.stride is 9"},
    {{SIZE, .local = {.indices = some_pages}},
     -EINVAL,
     "blocks.local.indices must be NULL: the layout is SLUICE_LAYOUT_CONTIGUOUS"},
    {{SIZE,
      .remote = {.kind = SLUICE_LAYOUT_STRIDED, .count = 3, .bytes = 100, .indices = some_pages}},
     -EINVAL,
     "blocks.remote.indices must be NULL: the layout is SLUICE_LAYOUT_STRIDED, only "
     "SLUICE_LAYOUT_PAGED has indices"},
    {{SIZE, .local = STRIDED(3, 0, 10)}, -EINVAL, "blocks of 0 bytes"},
    {{SIZE, .remote = PAGES(3, 0, some_pages)}, -EINVAL, "remote blocks of 0 bytes"},
    {{SIZE, .remote = PAGES(3, 100, NULL)}, -EINVAL, "indices must not be NULL for 3"},
    {{SIZE, .local = STRIDED(3, 100, 100), .remote = STRIDED(3, 101, 101)},
     -EINVAL,
     "local 300 bytes remote 303"},
    {{SIZE, .local = STRIDED(0, 100, 100), .remote = STRIDED(3, 101, 101)},
     -EINVAL,
     "local 0 bytes remote 303"},
    {{SIZE, .local = STRIDED(3, 20000, 20001)}, -ERANGE, "local block 2 20000 stride of 20001"},
    {{SIZE, .local = STRIDED(1, SPAN + 1, 0)}, -ERANGE, "local block 0"},
    {{SIZE, .remote = STRIDED(UINT32_MAX, 1, 1)}, -ERANGE, "4294967295 local memory has 60000"},
    {{SIZE, .remote = STRIDED(3, 1, UINT64_MAX / 2 + 1)}, -ERANGE, "remote block 1"},
    {{SIZE, .remote = STRIDED(UINT32_MAX, UINT64_MAX / 2, 0)}, -ERANGE, "more than 2^64"},
    {{SIZE, .local = STRIDED(UINT32_MAX, UINT64_MAX / 2, 0)}, -ERANGE, "local more than 2^64"},
    {{SIZE, .remote = PAGES(3, 4096, far_pages)}, -ERANGE, "remote index 1 is 14 14 pages"},
    {{SIZE, .local = PAGES(3, 4096, far_pages)}, -ERANGE, "local index 1 is 14 14 pages"},
    {{SIZE, .local = PAGES(1, SPAN + 1, far_pages)}, -ERANGE, "local index 0 0 pages"},
    {{SIZE, .local = STRIDED(2, 100, 0), .local_length = UINT64_MAX}, -ERANGE, "local wraps"},
};

static void refuse(struct fixture *fixture, const struct sluice_request *request, int error,
                   const char *words)
{
    struct sluice_channel *channel = fixture->pair.channels[0];
    require_error(sluice_channel_submit(channel, request, 1, DEADLINE, NULL), error, words);
    require_error(sluice_channel_post(channel, request, 1, DEADLINE, NULL), error, words);
    require_null(sluice_channel_list_prepare(channel, request, 1), -error, words);
}

TEST_WITH(fixture, wrong_blocks, ())
{
    fill(fixture, true);
    for (size_t i = 0; i < COUNT(wrongs); i++) {
        struct sluice_request request = ask(fixture, SLUICE_OP_WRITE, &wrongs[i].blocks);
        refuse(fixture, &request, wrongs[i].error, wrongs[i].words);
    }
    value_check(fixture->far.bytes, SPAN, GAP);
    pair_works(&fixture->pair);
}

TEST_WITH(fixture, wrong_requests, ())
{
    struct {
        struct sluice_blocks blocks;
        uint32_t more;
    } later = {.blocks = {.size = sizeof(later), .local = strided}, .more = 1};
    const struct sluice_blocks blocks = {.size = sizeof(blocks), .local = strided};
    const struct sluice_blocks far = {.size = sizeof(far), .local = strided, .remote = strided};
    struct sluice_sge sges[2];
    struct sluice_request request = ask(fixture, SLUICE_OP_WRITE, &later.blocks);
    refuse(fixture, &request, -E2BIG, "request 0 blocks");
    request = ask(fixture, SLUICE_OP_SEND, &far);
    refuse(fixture, &request, -EINVAL, "blocks.remote of a send");
    request = ask(fixture, SLUICE_OP_RECEIVE, &far);
    refuse(fixture, &request, -EINVAL, "blocks.remote of a receive");
    request = ask(fixture, SLUICE_OP_FETCH_ADD, &blocks);
    refuse(fixture, &request, -EINVAL, "blocks");
    request = ask(fixture, SLUICE_OP_WRITE, &blocks);
    request.flags = SLUICE_INLINE;
    refuse(fixture, &request, -EINVAL, "inline");
    request.flags = 0;
    sges[0] = sges[1] = request.sge;
    request.sges = sges;
    request.sge_count = 2;
    refuse(fixture, &request, -EINVAL, "2 SGEs");
    request.sge_count = 1;
    request.remote.length = 12287;
    refuse(fixture, &request, -ERANGE, "12288 bytes remote memory has 12287");
    request.remote.length = UINT64_MAX;
    refuse(fixture, &request, -ERANGE, "wraps");
}

int main(void)
{
    return run_tests("blocks", 20);
}
