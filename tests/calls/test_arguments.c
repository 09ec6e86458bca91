/* SPDX-License-Identifier: MIT */
/*
 * Bad requests are found before anything is posted: the call reports the mistake and the index of
 * the request, writes nothing, and all works as before. Mistakes that all forms of an operation
 * share are in test_forms.
 */
#include <sys/mman.h>

#include "../support/pair.h"

/* A star, a good request to peer 0, and one to peer 1 that a test spoils. */
struct fixture {
    struct star star;
    struct memory near, far;
    struct sluice_sge sges[2][8];
    struct sluice_request requests[2];
};

static void fixture_open(struct fixture *fixture)
{
    struct sluice_channel_attr attr = *ATTR(.max_sge = 4, .max_inline = 32, .max_message = 4096);
    star_open(&fixture->star, 2, &attr);
    memory_open(&fixture->near, fixture->star.sides.pds[0], 10000);
    fixture->far = side_memory(&fixture->star.sides, 1, 10000);
    pattern_fill(fixture->near.bytes, fixture->near.length, 8);
    for (uint32_t i = 0; i < 2; i++) {
        memory_split(&fixture->near, 0, 100, fixture->sges[i], 8);
        fixture->sges[i][0] = memory_sge(&fixture->near, 0, 64);
        fixture->requests[i] = request_of(SLUICE_OP_WRITE, i, fixture->sges[i]);
        fixture->requests[i].remote = memory_remote(&fixture->far, 0, 64);
    }
}

/* Requires that no message arrived and that both peers work. */
static void fixture_close(struct fixture *fixture)
{
    struct sluice_completion completion;
    value_check(fixture->far.bytes, fixture->far.length, 0);
    require_result(sluice_multichannel_poll(fixture->star.hub, &completion, 1), 0);
    star_works(&fixture->star, 0);
    star_works(&fixture->star, 1);
    memory_close(&fixture->near);
    star_close(&fixture->star);
}

/* Requires that each call that takes a list refuses it with this error. */
static void refused(struct fixture *fixture, int error, const char *words)
{
    struct sluice_completion completions[2];
    struct sluice_handle handles[2];
    struct sluice_multichannel *hub = fixture->star.hub;
    memset(completions, 0xcc, sizeof(completions));
    memset(handles, 0xcc, sizeof(handles));
    require_error(sluice_multichannel_submit(hub, fixture->requests, 2, DEADLINE, completions),
                  error, words);
    require_error(sluice_multichannel_post(hub, fixture->requests, 2, DEADLINE, handles), error,
                  words);
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(hub, DEADLINE));
    require_error(sluice_scope_post(scope, fixture->requests, 2, handles), error, words);
    struct sluice_scope_report report = {.size = sizeof(report)};
    require_ok(sluice_scope_end(scope, &report));
    require(report.posted == 0, "%u posted", report.posted);
    value_check(completions, sizeof(completions), 0xcc);
    value_check(handles, sizeof(handles), 0xcc);
    require_result(sluice_multichannel_peer_state(hub, 1), SLUICE_STATE_READY);
}

TEST_WITH(fixture, unknown_peer, ())
{
    fixture->requests[1].peer = 2;
    refused(fixture, -EINVAL, "request 1 peer 2");
    fixture->requests[1].peer = UINT32_MAX;
    refused(fixture, -EINVAL, "4294967295");
    struct sluice_multichannel *hub = fixture->star.hub;
    require_error(sluice_multichannel_peer_state(hub, 9), -EINVAL, "9");
    struct sluice_error error = {.size = sizeof(error)};
    require_error(sluice_multichannel_peer_error(hub, 9, &error), -EINVAL, "9");
    /* A channel has one peer. */
    fixture->requests[1].peer = 1;
    require_error(
        sluice_channel_submit(fixture->star.spokes[0], &fixture->requests[1], 1, DEADLINE, NULL),
        -EINVAL, "1");
}

TEST_WITH(fixture, unknown_operation, ())
{
    static const uint32_t opcodes[] = {SLUICE_OP_NONE, 5, 7, 77, UINT32_MAX};
    for (size_t i = 0; i < COUNT(opcodes); i++) {
        fixture->requests[1].opcode = opcodes[i];
        struct sluice_completion completion;
        memset(&completion, 0xcc, sizeof(completion));
        require_error(
            sluice_multichannel_submit(fixture->star.hub, fixture->requests, 2, DEADLINE, NULL),
            -EINVAL, "1");
        require_error(
            sluice_multichannel_post(fixture->star.hub, fixture->requests, 2, DEADLINE, NULL),
            -EINVAL, "1");
    }
}

TEST_WITH(fixture, unknown_flags, ())
{
    fixture->requests[1].flags = UINT32_C(1) << 4;
    refused(fixture, -EINVAL, "flags");
    fixture->requests[1].flags = UINT32_C(1) << 31;
    refused(fixture, -EINVAL, "flags");
    /* Known flags that the operation does not support. */
    fixture->requests[1].opcode = SLUICE_OP_READ;
    fixture->requests[1].flags = SLUICE_IMMEDIATE;
    refused(fixture, -EINVAL, "read");
    fixture->requests[1].flags = SLUICE_INLINE;
    refused(fixture, -EINVAL, "read");
    fixture->requests[1].opcode = SLUICE_OP_RECEIVE;
    refused(fixture, -EINVAL, "receive");
}

TEST_WITH(fixture, reserved_fields, ())
{
    fixture->requests[1].reserved = 1;
    refused(fixture, -EINVAL, "reserved");
    fixture->requests[1].reserved = 0;
    for (int i = 0; i < 2; i++) {
        fixture->requests[1].reserved2[i] = UINT64_C(1) << 63;
        refused(fixture, -EINVAL, "reserved2");
        fixture->requests[1].reserved2[i] = 0;
    }
    fixture->requests[1].operand[0] = 1;
    refused(fixture, -EINVAL, "operand");
    fixture->requests[1].operand[0] = 0;
    fixture->requests[1].operand[1] = UINT64_C(1) << 63;
    refused(fixture, -EINVAL, "operand");
    fixture->requests[1].operand[1] = 0;
    for (int i = 0; i < 3; i++) {
        fixture->requests[1].remote.reserved[i] = 1;
        refused(fixture, -EINVAL, "remote.reserved");
        require_error(sluice_multichannel_write(fixture->star.hub, 1, fixture->sges[1], 1,
                                                &fixture->requests[1].remote, DEADLINE),
                      -EINVAL, "remote.reserved");
        fixture->requests[1].remote.reserved[i] = 0;
    }
}

TEST_WITH(fixture, lists_of_elements, ())
{
    fixture->requests[1].sge_count = 5;
    refused(fixture, -EINVAL, "5 4");
    fixture->requests[1].sge_count = UINT32_MAX;
    refused(fixture, -EINVAL, "4");
    fixture->requests[1].sge_count = 1;
    fixture->requests[1].sges = NULL;
    refused(fixture, -EINVAL, "");
    fixture->requests[1].sge_count = 0;
    fixture->requests[1].sge = fixture->sges[1][0];
    refused(fixture, -EINVAL, "element sge_count 0 forgotten");
    fixture->requests[1].sge = (struct sluice_sge){0};
    require_error(sluice_multichannel_send(fixture->star.hub, 1, NULL, 1, DEADLINE), -EINVAL, "");
    require_error(sluice_multichannel_send(fixture->star.hub, 1, fixture->sges[0], 5, DEADLINE),
                  -EINVAL, "5 4");
}

/* Requires that each call that posts finds the request too long, and not truncated by the peer. */
static void refused_as_too_long(struct fixture *fixture, const char *words)
{
    refused(fixture, -E2BIG, words);
    require_null(sluice_multichannel_list_prepare(fixture->star.hub, fixture->requests, 2), E2BIG,
                 words);
}

/* The same for the calls of one request. */
static void refused_by_single_calls(struct fixture *fixture, const struct sluice_sge *sge)
{
    struct sluice_multichannel *hub = fixture->star.hub;
    struct sluice_channel *channel = fixture->star.spokes[1];
    struct sluice_scope *scope;
    require_error(sluice_multichannel_send(hub, 1, sge, 1, DEADLINE), -E2BIG, "4097 4096");
    require_error(sluice_multichannel_post_send(hub, 1, sge, 1, DEADLINE, NULL), -E2BIG,
                  "4097 4096");
    require_error(sluice_channel_send(channel, sge, 1, DEADLINE), -E2BIG, "4097 4096");
    require_error(sluice_channel_post_send(channel, sge, 1, DEADLINE, NULL), -E2BIG, "4097 4096");
    scope = made(sluice_channel_scope_begin(channel, DEADLINE));
    require_error(sluice_scope_post_send(scope, 0, sge, 1, NULL), -E2BIG, "4097 4096");
    require_ok(sluice_scope_end(scope, NULL));
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
}

static void refused_with_blocks(struct fixture *fixture)
{
    struct sluice_blocks blocks = {
        .size = sizeof(blocks),
        .local = {.kind = SLUICE_LAYOUT_STRIDED, .count = 4097, .bytes = 1, .stride = 1}};
    fixture->requests[1].blocks = &blocks;
    refused_as_too_long(fixture, "4097 4096");
    fixture->requests[1].blocks = NULL;
}

TEST_WITH(fixture, lengths, ())
{
    struct sluice_sge far = memory_sge(&fixture->far, 0, 4097);
    /* One byte more than the limit of a message, and than that of an inline message. */
    fixture->sges[1][0] = memory_sge(&fixture->near, 0, 4097);
    fixture->requests[1].opcode = SLUICE_OP_SEND;
    refused_as_too_long(fixture, "4097 4096");
    refused_by_single_calls(fixture, &far);
    refused_with_blocks(fixture);
    fixture->sges[1][0] = memory_sge(&fixture->near, 0, 33);
    fixture->requests[1].flags = SLUICE_INLINE;
    refused_as_too_long(fixture, "33 32");
    fixture->requests[1].opcode = SLUICE_OP_WRITE;
    refused_as_too_long(fixture, "33 32");
    /* More than 4 GiB, by two elements. */
    fixture->requests[1].flags = 0;
    fixture->requests[1].sge_count = 2;
    fixture->sges[1][0].length = fixture->sges[1][1].length = UINT32_MAX;
    fixture->requests[1].remote.length = UINT64_MAX - fixture->requests[1].remote.addr;
    refused_as_too_long(fixture, "8589934590");
}

TEST_WITH(fixture, remote_ranges, ())
{
    static const uint32_t opcodes[] = {SLUICE_OP_WRITE, SLUICE_OP_READ};
    for (size_t i = 0; i < COUNT(opcodes); i++) {
        fixture->requests[1].opcode = opcodes[i];
        fixture->requests[1].remote = memory_remote(&fixture->far, 0, 63);
        refused(fixture, -ERANGE, "64 63");
        fixture->requests[1].remote.length = 0;
        refused(fixture, -ERANGE, "64");
        fixture->requests[1].remote = memory_remote(&fixture->far, 0, 64);
        fixture->requests[1].remote.addr = UINT64_MAX - 10;
        refused(fixture, -ERANGE, "request 1");
    }
    fixture->requests[1].remote = memory_remote(&fixture->far, 0, 0);
    require_error(sluice_multichannel_read(fixture->star.hub, 1, fixture->sges[1], 1,
                                           &fixture->requests[1].remote, DEADLINE),
                  -ERANGE, "64");
}

TEST_WITH(fixture, elements_outside_their_region, ())
{
    struct sluice_sge sge;
    memset(&sge, 0xcc, sizeof(sge));
    struct sluice_mr *mr = fixture->near.mr;
    require_error(sluice_mr_sge(mr, 0, 10001, &sge), -ERANGE, "10001 10000");
    require_error(sluice_mr_sge(mr, 1, 10000, &sge), -ERANGE, "10000");
    require_error(sluice_mr_sge(mr, 10001, 0, &sge), -ERANGE, "10001");
    require_error(sluice_mr_sge(mr, SIZE_MAX, 2, &sge), -ERANGE, "");
    require_error(sluice_mr_sge(mr, 2, SIZE_MAX, &sge), -ERANGE, "");
    require_error(sluice_mr_sge(mr, SIZE_MAX, SIZE_MAX, &sge), -ERANGE, "");
    require_error(sluice_mr_sge(NULL, 0, 1, &sge), -EINVAL, "");
    require_error(sluice_mr_sge(mr, 0, 1, NULL), -EINVAL, "");
    value_check(&sge, sizeof(sge), 0xcc);
    require_ok(sluice_mr_sge(mr, 10000, 0, &sge));
    require_ok(sluice_mr_sge(mr, 9999, 1, &sge));
    require_equal(sge.addr, (uint64_t)(uintptr_t)fixture->near.bytes + 9999, sge.length, 1);
}

TEST_WITH(fixture, elements_by_address, ())
{
    struct sluice_sge sge, same;
    memset(&sge, 0xcc, sizeof(sge));
    struct sluice_mr *mr = fixture->near.mr;
    uint8_t *bytes = fixture->near.bytes;
    require_error(sluice_mr_sge_at(mr, bytes, 10001, &sge), -ERANGE, "10001 10000");
    require_error(sluice_mr_sge_at(mr, bytes + 1, 10000, &sge), -ERANGE, "outside");
    require_error(sluice_mr_sge_at(mr, bytes - 1, 1, &sge), -ERANGE, "outside");
    require_error(sluice_mr_sge_at(mr, bytes - 1, 0, &sge), -ERANGE, "outside");
    require_error(sluice_mr_sge_at(mr, bytes + 10001, 0, &sge), -ERANGE, "outside");
    require_error(sluice_mr_sge_at(mr, bytes + 2, SIZE_MAX, &sge), -ERANGE, "");
    require_error(sluice_mr_sge_at(mr, NULL, 1, &sge), -ERANGE, "outside");
    require_error(sluice_mr_sge_at(mr, (void *)UINTPTR_MAX, SIZE_MAX, &sge), -ERANGE, "");
    require_error(sluice_mr_sge_at(NULL, bytes, 1, &sge), -EINVAL, "NULL");
    require_error(sluice_mr_sge_at(mr, bytes, 1, NULL), -EINVAL, "sge NULL");
    value_check(&sge, sizeof(sge), 0xcc);
    require_ok(sluice_mr_sge_at(mr, bytes + 10000, 0, &sge));
    require_ok(sluice_mr_sge_at(mr, bytes + 17, 1000, &sge));
    require_ok(sluice_mr_sge(mr, 17, 1000, &same));
    require(memcmp(&sge, &same, sizeof(sge)) == 0, "length %u", sge.length);
}

/* The memory is reserved address space, and is never accessed. */
TEST(element_of_four_gib)
{
    struct sides sides;
    struct sluice_sge sge;
    size_t length = (size_t)UINT32_MAX + 4097;
    void *space = mmap(NULL, length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED || !device_is_soft()) {
        return; /* a real device would pin it */
    }
    memset(&sge, 0xcc, sizeof(sge));
    sides_open(&sides);
    struct sluice_mr *mr =
        made(sluice_mr_register(sides.pds[0], space, length, SLUICE_ACCESS_LOCAL_WRITE));
    require_error(sluice_mr_sge(mr, 0, (size_t)UINT32_MAX + 1, &sge), -EMSGSIZE, "4294967296");
    require_error(sluice_mr_sge_at(mr, space, (size_t)UINT32_MAX + 1, &sge), -EMSGSIZE,
                  "4294967296");
    value_check(&sge, sizeof(sge), 0xcc);
    require_ok(sluice_mr_sge(mr, 4096, UINT32_MAX, &sge));
    require_ok(sluice_mr_sge_at(mr, space, UINT32_MAX, &sge));
    require_ok(sluice_mr_deregister(mr));
    munmap(space, length);
    sides_close(&sides);
}

TEST_WITH(fixture, negative_times, ())
{
    struct sluice_completion completion;
    struct sluice_handle handle = {0};
    struct sluice_multichannel *hub = fixture->star.hub;
    require_error(sluice_multichannel_submit(hub, fixture->requests, 2, -1, NULL), -EINVAL,
                  "deadline");
    require_error(sluice_multichannel_post(hub, fixture->requests, 2, INT64_MIN, &handle), -EINVAL,
                  "deadline");
    require_error(sluice_multichannel_wait(hub, &handle, -1, &completion), -EINVAL, "timeout");
    require_error(sluice_multichannel_shutdown(hub, -1), -EINVAL, "deadline");
    require_null(sluice_multichannel_scope_begin(hub, -1), EINVAL, "deadline");
}

/* A call with an empty list returns 0, and reads or writes no argument. */
TEST_WITH(fixture, empty_lists, ())
{
    struct sluice_completion completions[2];
    struct sluice_handle handle;
    memset(completions, 0xcc, sizeof(completions));
    memset(&handle, 0xcc, sizeof(handle));
    struct sluice_multichannel *hub = fixture->star.hub;
    require_ok(sluice_multichannel_submit(hub, NULL, 0, DEADLINE, completions));
    require_ok(sluice_multichannel_submit(hub, fixture->requests, 0, 0, NULL));
    require_ok(sluice_multichannel_scatter_gather(hub, NULL, 0, NULL, 0, DEADLINE, completions));
    require_ok(sluice_multichannel_post(hub, NULL, 0, DEADLINE, &handle));
    require_ok(sluice_channel_submit(fixture->star.spokes[0], NULL, 0, DEADLINE, completions));
    require_ok(sluice_channel_post(fixture->star.spokes[0], NULL, 0, DEADLINE, &handle));
    require_result(sluice_multichannel_poll(hub, completions, 0), 0);
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(hub, DEADLINE));
    require_result(sluice_scope_post(scope, NULL, 0, &handle), 0);
    require_ok(sluice_scope_end(scope, NULL));
    value_check(completions, sizeof(completions), 0xcc);
    value_check(&handle, sizeof(handle), 0xcc);
}

TEST_WITH(fixture, scatter_gather_lists, ())
{
    struct sluice_completion completions[2];
    memset(completions, 0xcc, sizeof(completions));
    struct sluice_multichannel *hub = fixture->star.hub;
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, fixture->sges[0]);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, fixture->sges[1]);
    require_error(
        sluice_multichannel_scatter_gather(hub, &send, 1, &send, 1, DEADLINE, completions), -EINVAL,
        "send");
    require_error(
        sluice_multichannel_scatter_gather(hub, &receive, 1, &receive, 1, DEADLINE, completions),
        -EINVAL, "receive");
    require_error(
        sluice_multichannel_scatter_gather(hub, NULL, 1, &receive, 1, DEADLINE, completions),
        -EINVAL, "");
    require_error(sluice_multichannel_scatter_gather(hub, &send, 1, NULL, 1, DEADLINE, completions),
                  -EINVAL, "");
    receive.peer = 5;
    require_error(
        sluice_multichannel_scatter_gather(hub, &send, 1, &receive, 1, DEADLINE, completions),
        -EINVAL, "5");
    value_check(completions, sizeof(completions), 0xcc);
}

TEST_WITH(fixture, regions_of_a_multicast, ())
{
    struct sluice_completion completions[2];
    struct sluice_peer_remote_mr remotes[2] = {{0}, {.peer = 1, .generation = 1}};
    memset(completions, 0xcc, sizeof(completions));
    struct sluice_multichannel *hub = fixture->star.hub;
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, fixture->sges[0]);
    remotes[0].remote = remotes[1].remote = memory_remote(&fixture->far, 0, 64);
    require_error(
        sluice_multichannel_multicast_write(hub, &write, remotes, 2, DEADLINE, completions),
        -ESTALE, "remotes[1] generation 1 index 1");
    remotes[1].generation = 0;
    remotes[1].remote.length = 63;
    require_error(
        sluice_multichannel_multicast_write(hub, &write, remotes, 2, DEADLINE, completions),
        -ERANGE, "64 63");
    value_check(completions, sizeof(completions), 0xcc);
}

TEST_WITH(fixture, null_arguments_of_calls, ())
{
    struct sluice_completion completion;
    struct sluice_handle handle = {0};
    struct sluice_error error = {.size = sizeof(error)};
    struct sluice_error small = {.size = 4};
    struct sluice_multichannel *hub = fixture->star.hub;
    struct sluice_channel *spoke = fixture->star.spokes[0];
    require_error(sluice_multichannel_submit(hub, NULL, 1, DEADLINE, NULL), -EINVAL, "");
    require_error(sluice_multichannel_submit(NULL, fixture->requests, 1, DEADLINE, NULL), -EINVAL,
                  "");
    require_error(sluice_multichannel_post(hub, NULL, 1, DEADLINE, NULL), -EINVAL, "");
    require_error(sluice_multichannel_post(NULL, fixture->requests, 1, DEADLINE, NULL), -EINVAL,
                  "");
    require_error(sluice_multichannel_poll(hub, NULL, 1), -EINVAL, "");
    require_error(sluice_multichannel_poll(NULL, &completion, 1), -EINVAL, "");
    require_error(sluice_multichannel_wait(hub, NULL, 0, &completion), -EINVAL, "");
    require_error(sluice_multichannel_wait(NULL, &handle, 0, &completion), -EINVAL, "");
    require_error(sluice_multichannel_peer_error(hub, 0, NULL), -EINVAL, "");
    require_error(sluice_multichannel_peer_error(hub, 0, &small), -EINVAL, "size");
    require_error(sluice_multichannel_peer_reset(hub, 0, NULL), -EINVAL, "");
    require_error(sluice_multichannel_peer_state(NULL, 0), -EINVAL, "");
    require_result(sluice_multichannel_peers(NULL), 0);
    require_error(sluice_channel_wait(spoke, NULL, 0, &completion), -EINVAL, "");
    require_error(sluice_channel_poll(spoke, NULL, 1), -EINVAL, "");
    require_error(sluice_channel_state(NULL), -EINVAL, "");
    require_error(sluice_channel_error(spoke, NULL), -EINVAL, "");
    require_error(sluice_channel_error(NULL, &error), -EINVAL, "");
    require_error(sluice_channel_error(spoke, &small), -EINVAL, "size");
    require_error(sluice_channel_shutdown(NULL, 0), -EINVAL, "");
    require_null(sluice_channel_scope_begin(NULL, DEADLINE), EINVAL, "");
    require_error(sluice_scope_post(NULL, fixture->requests, 1, NULL), -EINVAL, "");
    require_error(sluice_scope_wait(NULL, &handle, 0, &completion), -EINVAL, "");
    require_result(sluice_scope_end(NULL, NULL), 0);
}

int main(void)
{
    return run_tests("arguments", 30);
}
