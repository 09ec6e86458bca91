/* SPDX-License-Identifier: MIT */
/*
 * Prepared lists whose lengths and blocks change between posts, and lists that are posted in
 * scopes: each post moves what the list says at that time.
 */
#include <sluice/list.h>

#include "../support/pair.h"

enum { DEPTH = 16, BLOCK = 300, SPAN = 20000 };
enum { SEND, RECEIVE, WRITE, READ, KINDS };

/* Blocks are split into several work requests of several pieces. */
static const struct sluice_channel_attr attr = {.size = sizeof(attr),
                                                .flags = SLUICE_CHANNEL_HISTOGRAMS,
                                                .max_message = 4096,
                                                .max_sge = 3,
                                                .send_depth = DEPTH,
                                                .receive_depth = DEPTH};

struct fixture {
    struct pair pair;
    struct memory near, far;
    struct sluice_completion completions[KINDS];
};

static void fixture_open(struct fixture *fixture)
{
    memset(fixture, 0, sizeof *fixture);
    pair_open(&fixture->pair, &attr);
    fixture->near = side_memory(&fixture->pair.sides, 0, SPAN);
    fixture->far = side_memory(&fixture->pair.sides, 1, SPAN);
}

static void fixture_close(struct fixture *fixture)
{
    pair_close(&fixture->pair);
}

static struct sluice_list *prepare(struct fixture *fixture, const struct sluice_request *requests,
                                   uint32_t count)
{
    struct sluice_list *list =
        sluice_channel_list_prepare(fixture->pair.channels[0], requests, count);

    require(list, "%s", sluice_last_error());
    return list;
}

/* One request of each kind, each with a block of near and of far of its own. */
static struct sluice_list *prepare_kinds(struct fixture *fixture)
{
    static const uint32_t opcodes[] = {SLUICE_OP_SEND, SLUICE_OP_RECEIVE, SLUICE_OP_WRITE,
                                       SLUICE_OP_READ};
    struct sluice_request requests[KINDS];
    struct sluice_sge sges[KINDS];

    for (uint32_t i = 0; i < KINDS; i++) {
        sges[i] = memory_sge(&fixture->near, (size_t)i * BLOCK, BLOCK);
        requests[i] = request_of(opcodes[i], 0, &sges[i]);
        if (i >= WRITE)
            requests[i].remote = memory_remote(&fixture->far, (size_t)i * BLOCK, BLOCK);
    }
    return prepare(fixture, requests, KINDS);
}

static struct sluice_handle far_post(struct fixture *fixture, uint32_t opcode, uint32_t kind,
                                     uint32_t length)
{
    struct sluice_sge sge = memory_sge(&fixture->far, (size_t)kind * BLOCK, length);
    struct sluice_request request = request_of(opcode, 0, &sge);

    if (length == 0) {
        request.sges = NULL;
        request.sge_count = 0;
    }
    return post(fixture->pair.channels[1], &request);
}

static struct memory *source_of(struct fixture *fixture, uint32_t kind)
{
    return kind == SEND || kind == WRITE ? &fixture->near : &fixture->far;
}

static struct memory *target_of(struct fixture *fixture, uint32_t kind)
{
    return kind == SEND || kind == WRITE ? &fixture->far : &fixture->near;
}

/* Requires that as many bytes as set have moved, and no more. */
static void check_moved(struct fixture *fixture, const uint32_t lengths[KINDS], uint32_t turn)
{
    for (uint32_t i = 0; i < KINDS; i++) {
        const uint8_t *bytes = target_of(fixture, i)->bytes + (size_t)i * BLOCK;

        pattern_check(bytes, lengths[i], pattern_key(0, i, turn));
        value_check(bytes + lengths[i], BLOCK - lengths[i], 0xee);
    }
}

/* By a call that waits, by one that does not, and in a scope. */
enum way { SUBMIT, POST, SCOPE, WAYS };

static void move(struct fixture *fixture, struct sluice_list *list, enum way way)
{
    struct sluice_scope_report report = {.size = sizeof report};
    struct sluice_handle handles[KINDS];
    struct sluice_scope *scope;

    if (way == SUBMIT)
        require_ok(sluice_list_submit(list, DEADLINE, fixture->completions));
    if (way == POST) {
        require_ok(sluice_list_post(list, DEADLINE, fixture->completions));
        await_list(list);
    }
    if (way != SCOPE)
        return;
    scope = made(sluice_channel_scope_begin(fixture->pair.channels[0], DEADLINE));
    require_result(sluice_scope_post_list(scope, list, handles), KINDS);
    for (uint32_t i = 0; i < KINDS; i++)
        require_ok(sluice_scope_wait(scope, &handles[i], DEADLINE, &fixture->completions[i]));
    require_ok(sluice_scope_end(scope, &report));
    require_equal(report.posted, KINDS, report.unseen, 0);
}

TEST_WITH(fixture, lengths_that_vary, ())
{
    static const uint32_t lengths[] = {BLOCK, 0, 1, BLOCK - 1, 77, BLOCK, 8};
    struct sluice_list *list;

    list = prepare_kinds(fixture);
    for (uint32_t turn = 0; turn < 7 * WAYS; turn++) {
        uint32_t own[KINDS];

        memset(fixture->near.bytes, 0xee, SPAN);
        memset(fixture->far.bytes, 0xee, SPAN);
        for (uint32_t i = 0; i < KINDS; i++) {
            own[i] = lengths[(turn + 2 * i) % COUNT(lengths)];
            require_ok(sluice_list_set_length(list, i, own[i]));
            pattern_fill(source_of(fixture, i)->bytes + (size_t)i * BLOCK, BLOCK,
                         pattern_key(0, i, turn));
        }
        struct sluice_handle took = far_post(fixture, SLUICE_OP_RECEIVE, SEND, BLOCK);
        struct sluice_handle gave = far_post(fixture, SLUICE_OP_SEND, RECEIVE, own[RECEIVE]);

        move(fixture, list, (enum way)(turn % WAYS));
        await(fixture->pair.channels[1], took, SLUICE_CLASS_NONE);
        await(fixture->pair.channels[1], gave, SLUICE_CLASS_NONE);
        for (uint32_t i = 0; i < KINDS; i++)
            require(fixture->completions[i].bytes == own[i], "%u: %llu", i,
                    (unsigned long long)fixture->completions[i].bytes);
        check_moved(fixture, own, turn);
    }
    sluice_list_free(list);
}

/* A receive whose length was reduced is too short for the original message. */
TEST_WITH(fixture, a_receive_that_is_shorter, ())
{
    struct sluice_sge sge;
    struct sluice_request request;
    struct sluice_list *list;

    sge = memory_sge(&fixture->near, 0, BLOCK);
    request = request_of(SLUICE_OP_RECEIVE, 0, &sge);
    list = prepare(fixture, &request, 1);
    require_ok(sluice_list_set_length(list, 0, BLOCK - 1));
    far_post(fixture, SLUICE_OP_SEND, 0, BLOCK);
    require(sluice_list_submit(list, DEADLINE, fixture->completions) < 0, "it has room");
    require(fixture->completions[0].error_class == SLUICE_CLASS_TRUNCATED, "%s",
            sluice_last_error());
    sluice_list_free(list);
    /* Closed before their memory, which failed requests may still name. */
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(fixture->pair.channels[i]);
        fixture->pair.channels[i] = NULL;
    }
}

TEST_WITH(fixture, lengths_and_places, ())
{
    struct sluice_sge sge, two[2];
    struct sluice_request requests[2];
    struct sluice_list *list;

    sge = memory_sge(&fixture->near, 0, BLOCK);
    memory_split(&fixture->near, 0, BLOCK, two, 2);
    requests[0] = request_of(SLUICE_OP_WRITE, 0, &sge);
    requests[0].remote = memory_remote(&fixture->far, 0, 2 * BLOCK);
    requests[1] = requests[0];
    requests[1].sges = two;
    requests[1].sge_count = 2;
    list = prepare(fixture, requests, 2);
    require_error(sluice_list_set_length(NULL, 0, 1), -EINVAL, "not a list");
    require_error(sluice_list_set_length(list, 2, 1), -EINVAL, "no request 2");
    require_error(sluice_list_set_length(list, 1, 1), -EINVAL, "request 1 2 elements");
    require_error(sluice_list_set_length(list, 0, BLOCK + 1), -EINVAL, "prepared 300 bytes 301");
    require_error(sluice_list_set_length(list, 0, UINT64_C(1) << 32), -EINVAL, "4294967296");
    require_ok(sluice_list_set_length(list, 0, 10));
    sge = memory_sge(&fixture->near, SPAN - 10, 9);
    require_error(sluice_list_aim(list, 0, &sge, 0), -EINVAL, "10 bytes element 9");
    sge = memory_sge(&fixture->near, 0, BLOCK + 1);
    require_error(sluice_list_aim(list, 0, &sge, 0), -EINVAL, "10 bytes element 301");
    sge = memory_sge(&fixture->near, 0, 20);
    require_ok(sluice_list_aim(list, 0, &sge, 0));
    require_error(sluice_list_set_length(list, 0, 21), -ERANGE, "aimed element of 20");
    require_ok(sluice_list_set_length(list, 0, 20));
    require_ok(sluice_list_set_length(list, 0, 10));
    sge = memory_sge(&fixture->near, SPAN - 10, 10);
    require_error(sluice_list_aim(list, 0, &sge, 2 * BLOCK - 9), -ERANGE, "remote range");
    require_ok(sluice_list_aim(list, 0, &sge, 2 * BLOCK - 10));
    require_error(sluice_list_set_length(list, 0, 11), -ERANGE, "aimed element of 10");
    sge = memory_sge(&fixture->near, SPAN - 20, 20);
    require_ok(sluice_list_aim(list, 0, &sge, 2 * BLOCK - 10));
    require_error(sluice_list_set_length(list, 0, 11), -ERANGE, "remote range 10 more");
    sge = memory_sge(&fixture->near, SPAN - 10, 10);
    require_ok(sluice_list_aim(list, 0, &sge, 2 * BLOCK - 10));
    pattern_fill(fixture->near.bytes + SPAN - 10, 10, 7);
    require_ok(sluice_list_submit(list, DEADLINE, NULL));
    pattern_check(fixture->far.bytes + 2 * BLOCK - 10, 10, 7);
    require_ok(sluice_list_aim(list, 0, NULL, 0));
    sluice_channel_close(fixture->pair.channels[0]);
    fixture->pair.channels[0] = NULL;
    require_error(sluice_list_set_length(list, 0, 1), -ESTALE, "closed");
    sluice_list_free(list);
}

/* Blocks of 40 bytes, each third one of near to each second one of far, or pages that are named. */
#define PIECE 40
#define PIECES 12

static const uint32_t pages[PIECES] = {3, 1, 2, 11, 0, 5, 6, 7, 20, 9, 8, 4};

static struct sluice_blocks lay_blocks(bool paged)
{
    struct sluice_blocks blocks = {.size = sizeof blocks};

    blocks.local = (struct sluice_layout){
        .kind = SLUICE_LAYOUT_STRIDED, .count = PIECES, .bytes = PIECE, .stride = 3 * PIECE};
    blocks.remote = blocks.local;
    blocks.remote.stride = 2 * PIECE;
    if (paged)
        blocks.remote = (struct sluice_layout){
            .kind = SLUICE_LAYOUT_PAGED, .count = PIECES, .bytes = PIECE, .indices = pages};
    return blocks;
}

#define NEAR_BYTES ((3 * (PIECES - 1) + 1) * PIECE)

static void check_blocks(struct fixture *fixture, bool reads, bool paged, size_t from, size_t to)
{
    const uint8_t *near = fixture->near.bytes + from, *far = fixture->far.bytes + to;

    for (uint32_t i = 0; i < PIECES; i++) {
        size_t there = (size_t)(paged ? pages[i] : 2 * i) * PIECE;

        require(memcmp(near + (size_t)i * 3 * PIECE, far + there, PIECE) == 0, "block %u", i);
    }
    /* Bytes between the blocks of the target are unchanged. */
    if (reads)
        value_check(near + PIECE, 2 * PIECE, 0xee);
    else if (!paged)
        value_check(far + PIECE, PIECE, 0xee);
}

static void aim_blocks(bool reads, bool paged)
{
    const struct sluice_blocks blocks = lay_blocks(paged);
    struct fixture fixture;
    struct sluice_sge sge;
    struct sluice_request request;
    struct sluice_list *list;

    fixture_open(&fixture);
    sge = memory_sge(&fixture.near, 0, NEAR_BYTES);
    request = request_of(reads ? SLUICE_OP_READ : SLUICE_OP_WRITE, 0, &sge);
    request.remote = memory_remote(&fixture.far, 0, SPAN);
    request.blocks = &blocks;
    list = prepare(&fixture, &request, 1);
    require_error(sluice_list_set_length(list, 0, 1), -EINVAL, "blocks prepare a list for each");
    for (uint32_t turn = 0; turn < 12; turn++) {
        size_t from = (size_t)turn * 997 % (SPAN - NEAR_BYTES);
        size_t to = (size_t)turn * 1733 % (SPAN - 24 * PIECE);

        memset((reads ? fixture.near : fixture.far).bytes, 0xee, SPAN);
        pattern_fill((reads ? fixture.far : fixture.near).bytes, SPAN, turn);
        sge = memory_sge(&fixture.near, from, NEAR_BYTES);
        require_ok(sluice_list_aim(list, 0, &sge, to));
        if (turn % 2 != 0) {
            require_ok(sluice_list_post(list, DEADLINE, NULL));
            await_list(list);
        } else {
            require_ok(sluice_list_submit(list, DEADLINE, NULL));
        }
        check_blocks(&fixture, reads, paged, from, to);
        require_error(sluice_list_aim(list, 0, NULL, SPAN - 3 * PIECE), -ERANGE, "remote");
        require_error(sluice_list_aim(list, 0, NULL, UINT64_MAX), -ERANGE, "remote range");
    }
    sge.length--;
    require_error(sluice_list_aim(list, 0, &sge, 0), -EINVAL, "element");
    sluice_list_free(list);
    fixture_close(&fixture);
}

TEST(blocks_aimed_elsewhere)
{
    for (int i = 0; i < 4; i++)
        aim_blocks(i % 2 != 0, i / 2 != 0);
}

/*
 * Posts more than the queue has room for, to another place each time; and frees the list meanwhile.
 */
static void post_often(struct fixture *fixture, struct sluice_scope *scope)
{
    struct sluice_sge sge = memory_sge(&fixture->near, 0, 8);
    struct sluice_request request = request_of(SLUICE_OP_WRITE, 0, &sge);
    struct sluice_list *list;

    request.remote = memory_remote(&fixture->far, 0, SPAN);
    list = prepare(fixture, &request, 1);
    require_error(sluice_list_submit(list, DEADLINE, NULL), -EBUSY, "scope");
    require_error(sluice_list_post(list, DEADLINE, NULL), -EBUSY, "scope");
    require_error(sluice_list_wait(list, 0), -EBUSY, "scope");
    for (size_t i = 0; i < 10 * DEPTH; i++) {
        sge = memory_sge(&fixture->near, 8 * i, 8);
        require_ok(sluice_list_aim(list, 0, &sge, 16 * i));
        require_result(sluice_scope_post_list(scope, list, NULL), 1);
    }
    sluice_list_free(list);
}

TEST_WITH(fixture, posted_in_a_scope, ())
{
    struct sluice_scope_report report = {.size = sizeof report};
    struct sluice_scope *scope;

    pattern_fill(fixture->near.bytes, SPAN, 9);
    scope = made(sluice_channel_scope_begin(fixture->pair.channels[0], DEADLINE));
    post_often(fixture, scope);
    require_ok(sluice_scope_end(scope, &report));
    require(report.posted == 10 * DEPTH && report.failed == 0, "%u", report.posted);
    for (size_t i = 0; i < 10 * DEPTH; i++)
        require(memcmp(fixture->near.bytes + 8 * i, fixture->far.bytes + 16 * i, 8) == 0, "%zu", i);
}

TEST(blocks_in_a_scope)
{
    const struct sluice_blocks blocks = lay_blocks(false);
    struct sluice_request request;
    struct fixture fixture;
    struct sluice_scope *scope;
    struct sluice_list *list;
    struct sluice_sge sge;

    fixture_open(&fixture);
    pattern_fill(fixture.near.bytes, SPAN, 9);
    memset(fixture.far.bytes, 0xee, SPAN);
    sge = memory_sge(&fixture.near, 0, NEAR_BYTES);
    request = request_of(SLUICE_OP_WRITE, 0, &sge);
    request.remote = memory_remote(&fixture.far, 0, SPAN);
    request.blocks = &blocks;
    list = prepare(&fixture, &request, 1);
    scope = made(sluice_channel_scope_begin(fixture.pair.channels[0], DEADLINE));
    for (size_t i = 0; i < 6; i++) {
        require_ok(sluice_list_aim(list, 0, NULL, i * 24 * PIECE));
        require_result(sluice_scope_post_list(scope, list, NULL), 1);
    }
    require_ok(sluice_scope_end(scope, NULL));
    for (size_t i = 0; i < 6; i++)
        check_blocks(&fixture, false, false, 0, i * 24 * PIECE);
    sluice_list_free(list);
    fixture_close(&fixture);
}

/* A list that cannot be posted in a scope leaves the scope unchanged. */
TEST_WITH(fixture, scopes_that_are_not_its_own, ())
{
    struct sluice_list *list;
    struct sluice_scope *scope, *other;
    struct sluice_scope *volatile ended; /* hides the end from the compiler */
    struct sluice_sge sge;
    struct sluice_request request;

    sge = memory_sge(&fixture->near, 0, 8);
    request = request_of(SLUICE_OP_WRITE, 0, &sge);
    request.remote = memory_remote(&fixture->far, 0, 8);
    list = prepare(fixture, &request, 1);
    require_error(sluice_scope_post_list(NULL, list, NULL), -EINVAL, "not a scope");
    other = made(sluice_channel_scope_begin(fixture->pair.channels[1], DEADLINE));
    require_error(sluice_scope_post_list(other, list, NULL), -EINVAL, "another channel");
    require_ok(sluice_scope_end(other, NULL));
    require_ok(sluice_list_post(list, DEADLINE, NULL));
    scope = made(sluice_channel_scope_begin(fixture->pair.channels[0], DEADLINE));
    require_error(sluice_scope_post_list(scope, NULL, NULL), -EINVAL, "not a list");
    require_error(sluice_scope_post_list(scope, list, NULL), -EBUSY, "in flight");
    ended = scope;
    require_ok(sluice_scope_end(scope, NULL));
    await_list(list);
    require_error(sluice_scope_post_list(ended, list, NULL), -ESTALE, "ended before");
    pair_reset(&fixture->pair);
    scope = made(sluice_channel_scope_begin(fixture->pair.channels[0], DEADLINE));
    require_error(sluice_scope_post_list(scope, list, NULL), -ESTALE, "stale");
    require_ok(sluice_scope_end(scope, NULL));
    sluice_list_free(list);
}

/* In a scope without time each request ends late, and is reported by the end of the scope. */
TEST_WITH(fixture, a_scope_without_time, ())
{
    struct sluice_scope_report report = {.size = sizeof report};
    struct sluice_list *list;
    struct sluice_scope *scope;

    list = prepare_kinds(fixture);
    scope = made(sluice_channel_scope_begin(fixture->pair.channels[0], 0));
    require_result(sluice_scope_post_list(scope, list, NULL), KINDS);
    require_result(sluice_scope_end(scope, &report), -ETIMEDOUT);
    require_equal(report.posted, KINDS, report.failed, KINDS);
    sluice_list_free(list);
    pair_works(&fixture->pair);
}

int main(void)
{
    return run_tests("list_change", device_is_soft() ? 60 : 300);
}
