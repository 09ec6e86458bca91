/* SPDX-License-Identifier: MIT */
/*
 * Bad requests are found before anything is posted: the call says what is
 * wrong and with which request, writes nothing, and all works as before.
 */
#include <sys/mman.h>

#include "../support/pair.h"

/* A star, a good request to peer 0, and one to peer 1 that a test spoils. */
struct desk {
    struct star star;
    struct memory near;
    struct memory far;
    struct sluice_sge sges[2][8];
    struct sluice_request requests[2];
};

static void desk_open(struct desk *desk)
{
    struct sluice_channel_attr attr = {
        .size = sizeof(attr), .max_sge = 4, .max_inline = 32, .max_message = 4096};
    star_open(&desk->star, 2, &attr);
    memory_open(&desk->near, desk->star.sides.pds[0], 10000);
    memory_open(&desk->far, desk->star.sides.pds[1], 10000);
    pattern_fill(desk->near.bytes, desk->near.length, 8);
    for (uint32_t i = 0; i < 2; i++) {
        memory_split(&desk->near, 0, 100, desk->sges[i], 8);
        desk->sges[i][0] = memory_sge(&desk->near, 0, 64);
        desk->requests[i] = request_of(SLUICE_OP_WRITE, i, desk->sges[i]);
        desk->requests[i].remote = memory_remote(&desk->far, 0, 64);
    }
}

/* Nothing arrived, and both peers work. */
static void desk_close(struct desk *desk)
{
    struct sluice_completion completion;
    value_check(desk->far.bytes, desk->far.length, 0);
    require_result(sluice_multichannel_poll(desk->star.hub, &completion, 1), 0);
    star_works(&desk->star, 0);
    star_works(&desk->star, 1);
    memory_close(&desk->near);
    memory_close(&desk->far);
    star_close(&desk->star);
}

/* Each way to give the list refuses it so. */
static void refused(struct desk *desk, int error, const char *words)
{
    struct sluice_completion completions[2];
    struct sluice_handle handles[2];
    struct sluice_multichannel *hub = desk->star.hub;
    memset(completions, 0xcc, sizeof(completions));
    memset(handles, 0xcc, sizeof(handles));
    require_error(sluice_multichannel_submit(hub, desk->requests, 2, DEADLINE, completions), error,
                  words);
    require_error(sluice_multichannel_post(hub, desk->requests, 2, DEADLINE, handles), error,
                  words);
    struct sluice_scope *scope = sluice_multichannel_scope_begin(hub, DEADLINE);
    require(scope, "%s", sluice_last_error());
    require_error(sluice_scope_post(scope, desk->requests, 2, handles), error, words);
    struct sluice_scope_report report = {.size = sizeof(report)};
    require_ok(sluice_scope_end(scope, &report));
    require(report.posted == 0, "%u posted", report.posted);
    value_check(completions, sizeof(completions), 0xcc);
    value_check(handles, sizeof(handles), 0xcc);
    require_result(sluice_multichannel_peer_state(hub, 1), SLUICE_STATE_READY);
}

START_TEST(unknown_peer)
{
    struct desk desk;
    struct sluice_sge *sge = desk.sges[1];
    desk_open(&desk);
    desk.requests[1].peer = 2;
    refused(&desk, -EINVAL, "2");
    desk.requests[1].peer = UINT32_MAX;
    refused(&desk, -EINVAL, "4294967295");
    struct sluice_multichannel *hub = desk.star.hub;
    require_error(sluice_multichannel_send(hub, 9, sge, 1, DEADLINE), -EINVAL, "9");
    require_error(sluice_multichannel_receive(hub, 9, sge, 1, DEADLINE, NULL), -EINVAL, "9");
    require_error(sluice_multichannel_write(hub, 9, sge, 1, &desk.requests[0].remote, DEADLINE),
                  -EINVAL, "9");
    require_error(sluice_multichannel_peer_state(hub, 9), -EINVAL, "9");
    struct sluice_error error = {.size = sizeof(error)};
    require_error(sluice_multichannel_peer_error(hub, 9, &error), -EINVAL, "9");
    /* A channel has one peer. */
    desk.requests[1].peer = 1;
    require_error(sluice_channel_submit(desk.star.spokes[0], &desk.requests[1], 1, DEADLINE, NULL),
                  -EINVAL, "1");
    desk_close(&desk);
}
END_TEST

START_TEST(unknown_operation)
{
    static const uint32_t opcodes[] = {SLUICE_OP_NONE, 5, 77, UINT32_MAX};
    struct desk desk;
    desk_open(&desk);
    for (size_t i = 0; i < COUNT(opcodes); i++) {
        desk.requests[1].opcode = opcodes[i];
        struct sluice_completion completion;
        memset(&completion, 0xcc, sizeof(completion));
        require_error(sluice_multichannel_submit(desk.star.hub, desk.requests, 2, DEADLINE, NULL),
                      -EINVAL, "1");
        require_error(sluice_multichannel_post(desk.star.hub, desk.requests, 2, DEADLINE, NULL),
                      -EINVAL, "1");
    }
    /* A list of one kind takes no other. */
    desk.requests[1].opcode = SLUICE_OP_SEND;
    require_error(
        sluice_multichannel_scatter_write(desk.star.hub, desk.requests, 2, DEADLINE, NULL), -EINVAL,
        "send");
    require_error(sluice_multichannel_gather_read(desk.star.hub, desk.requests, 2, DEADLINE, NULL),
                  -EINVAL, "write");
    desk_close(&desk);
}
END_TEST

START_TEST(unknown_flags)
{
    struct desk desk;
    desk_open(&desk);
    desk.requests[1].flags = UINT32_C(1) << 4;
    refused(&desk, -EINVAL, "flags");
    desk.requests[1].flags = UINT32_C(1) << 31;
    refused(&desk, -EINVAL, "flags");
    /* Known ones that the operation does not have. */
    desk.requests[1].opcode = SLUICE_OP_READ;
    desk.requests[1].flags = SLUICE_IMMEDIATE;
    refused(&desk, -EINVAL, "read");
    desk.requests[1].flags = SLUICE_INLINE;
    refused(&desk, -EINVAL, "read");
    desk.requests[1].opcode = SLUICE_OP_RECEIVE;
    refused(&desk, -EINVAL, "receive");
    desk_close(&desk);
}
END_TEST

START_TEST(reserved_fields)
{
    struct desk desk;
    desk_open(&desk);
    desk.requests[1].reserved = 1;
    refused(&desk, -EINVAL, "reserved");
    desk.requests[1].reserved = 0;
    desk.requests[1].extension = &desk;
    refused(&desk, -EINVAL, "extension");
    desk.requests[1].extension = NULL;
    for (int i = 0; i < 2; i++) {
        desk.requests[1].reserved2[i] = UINT64_C(1) << 63;
        refused(&desk, -EINVAL, "reserved2");
        desk.requests[1].reserved2[i] = 0;
    }
    desk.requests[1].operand[0] = 1;
    refused(&desk, -EINVAL, "operand");
    desk.requests[1].operand[0] = 0;
    desk.requests[1].operand[1] = UINT64_C(1) << 63;
    refused(&desk, -EINVAL, "operand");
    desk.requests[1].operand[1] = 0;
    for (int i = 0; i < 3; i++) {
        desk.requests[1].remote.reserved[i] = 1;
        refused(&desk, -EINVAL, "remote.reserved");
        require_error(sluice_multichannel_write(desk.star.hub, 1, desk.sges[1], 1,
                                                &desk.requests[1].remote, DEADLINE),
                      -EINVAL, "remote.reserved");
        desk.requests[1].remote.reserved[i] = 0;
    }
    desk_close(&desk);
}
END_TEST

START_TEST(lists_of_elements)
{
    struct desk desk;
    desk_open(&desk);
    desk.requests[1].sge_count = 5;
    refused(&desk, -EINVAL, "5 4");
    desk.requests[1].sge_count = UINT32_MAX;
    refused(&desk, -EINVAL, "4");
    desk.requests[1].sge_count = 1;
    desk.requests[1].sges = NULL;
    refused(&desk, -EINVAL, "");
    desk.requests[1].sge_count = 0;
    desk.requests[1].sge = desk.sges[1][0];
    refused(&desk, -EINVAL, "element sge_count 0 forgotten");
    desk.requests[1].sge = (struct sluice_sge){0};
    require_error(sluice_multichannel_send(desk.star.hub, 1, NULL, 1, DEADLINE), -EINVAL, "");
    require_error(sluice_multichannel_send(desk.star.hub, 1, desk.sges[0], 5, DEADLINE), -EINVAL,
                  "5 4");
    desk_close(&desk);
}
END_TEST

START_TEST(lengths)
{
    struct desk desk;
    desk_open(&desk);
    /* One byte more than a message may have, and than an inline one may have. */
    desk.sges[1][0] = memory_sge(&desk.near, 0, 4097);
    desk.requests[1].opcode = SLUICE_OP_SEND;
    refused(&desk, -EMSGSIZE, "4097 4096");
    desk.sges[1][0] = memory_sge(&desk.near, 0, 33);
    desk.requests[1].flags = SLUICE_INLINE;
    refused(&desk, -EMSGSIZE, "33 32");
    desk.requests[1].opcode = SLUICE_OP_WRITE;
    refused(&desk, -EMSGSIZE, "33 32");
    /* More than 4 GiB, by two elements. */
    desk.requests[1].flags = 0;
    desk.requests[1].sge_count = 2;
    desk.sges[1][0].length = desk.sges[1][1].length = UINT32_MAX;
    desk.requests[1].remote.length = UINT64_MAX - desk.requests[1].remote.addr;
    refused(&desk, -EMSGSIZE, "");
    desk_close(&desk);
}
END_TEST

START_TEST(remote_ranges)
{
    static const uint32_t opcodes[] = {SLUICE_OP_WRITE, SLUICE_OP_READ};
    struct desk desk;
    desk_open(&desk);
    for (size_t i = 0; i < COUNT(opcodes); i++) {
        desk.requests[1].opcode = opcodes[i];
        desk.requests[1].remote = memory_remote(&desk.far, 0, 63);
        refused(&desk, -ERANGE, "64 63");
        desk.requests[1].remote.length = 0;
        refused(&desk, -ERANGE, "64");
    }
    require_error(sluice_multichannel_read(desk.star.hub, 1, desk.sges[1], 1,
                                           &desk.requests[1].remote, DEADLINE),
                  -ERANGE, "64");
    desk_close(&desk);
}
END_TEST

START_TEST(elements_outside_their_region)
{
    struct desk desk;
    struct sluice_sge sge;
    memset(&sge, 0xcc, sizeof(sge));
    desk_open(&desk);
    struct sluice_mr *mr = desk.near.mr;
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
    require(sge.addr == (uint64_t)(uintptr_t)desk.near.bytes + 9999 && sge.length == 1, "length %u",
            sge.length);
    desk_close(&desk);
}
END_TEST

START_TEST(elements_by_address)
{
    struct desk desk;
    struct sluice_sge sge, same;
    memset(&sge, 0xcc, sizeof(sge));
    desk_open(&desk);
    struct sluice_mr *mr = desk.near.mr;
    uint8_t *bytes = desk.near.bytes;
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
    desk_close(&desk);
}
END_TEST

/* Address space only: nothing of it is ever touched. */
START_TEST(element_of_four_gib)
{
    struct sides sides;
    struct sluice_sge sge;
    size_t length = (size_t)UINT32_MAX + 4097;
    void *space = mmap(NULL, length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED || !device_is_soft()) {
        return; /* a real device pins it */
    }
    memset(&sge, 0xcc, sizeof(sge));
    sides_open(&sides);
    struct sluice_mr *mr =
        sluice_mr_register(sides.pds[0], space, length, SLUICE_ACCESS_LOCAL_WRITE);
    require(mr, "%s", sluice_last_error());
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
END_TEST

START_TEST(negative_times)
{
    struct desk desk;
    struct sluice_completion completion;
    struct sluice_handle handle = {0};
    desk_open(&desk);
    struct sluice_multichannel *hub = desk.star.hub;
    require_error(sluice_multichannel_submit(hub, desk.requests, 2, -1, NULL), -EINVAL, "deadline");
    require_error(sluice_multichannel_post(hub, desk.requests, 2, INT64_MIN, &handle), -EINVAL,
                  "deadline");
    require_error(sluice_multichannel_send(hub, 0, desk.sges[0], 1, -1), -EINVAL, "deadline");
    require_error(sluice_channel_receive(desk.star.spokes[0], NULL, 0, -1, NULL), -EINVAL,
                  "deadline");
    require_error(sluice_multichannel_wait(hub, &handle, -1, &completion), -EINVAL, "timeout");
    require_error(sluice_multichannel_shutdown(hub, -1), -EINVAL, "timeout");
    require_null(sluice_multichannel_scope_begin(hub, -1), EINVAL, "deadline");
    desk_close(&desk);
}
END_TEST

/* A list of no requests is no work: 0, and nothing is looked at or written. */
START_TEST(empty_lists)
{
    struct desk desk;
    struct sluice_completion completions[2];
    struct sluice_handle handle;
    memset(completions, 0xcc, sizeof(completions));
    memset(&handle, 0xcc, sizeof(handle));
    desk_open(&desk);
    struct sluice_multichannel *hub = desk.star.hub;
    require_ok(sluice_multichannel_submit(hub, NULL, 0, DEADLINE, completions));
    require_ok(sluice_multichannel_submit(hub, desk.requests, 0, DEADLINE, NULL));
    require_ok(sluice_multichannel_scatter_send(hub, NULL, 0, DEADLINE, completions));
    require_ok(sluice_multichannel_scatter_write(hub, NULL, 0, DEADLINE, completions));
    require_ok(sluice_multichannel_gather_receive(hub, NULL, 0, DEADLINE, completions));
    require_ok(sluice_multichannel_gather_read(hub, NULL, 0, DEADLINE, completions));
    require_ok(sluice_multichannel_scatter_gather(hub, NULL, 0, NULL, 0, DEADLINE, completions));
    require_ok(
        sluice_multichannel_multicast_send(hub, desk.requests, NULL, 0, DEADLINE, completions));
    require_ok(
        sluice_multichannel_multicast_write(hub, desk.requests, NULL, 0, DEADLINE, completions));
    require_ok(sluice_multichannel_post(hub, NULL, 0, DEADLINE, &handle));
    require_ok(sluice_channel_submit(desk.star.spokes[0], NULL, 0, DEADLINE, completions));
    require_ok(sluice_channel_post(desk.star.spokes[0], NULL, 0, DEADLINE, &handle));
    require_result(sluice_multichannel_poll(hub, completions, 0), 0);
    value_check(completions, sizeof(completions), 0xcc);
    value_check(&handle, sizeof(handle), 0xcc);
    desk_close(&desk);
}
END_TEST

START_TEST(scatter_gather_lists)
{
    struct desk desk;
    struct sluice_completion completions[2];
    memset(completions, 0xcc, sizeof(completions));
    desk_open(&desk);
    struct sluice_multichannel *hub = desk.star.hub;
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, desk.sges[0]);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, desk.sges[1]);
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
    desk_close(&desk);
}
END_TEST

START_TEST(multicast_lists)
{
    struct desk desk;
    struct sluice_completion completions[2];
    uint32_t peers[2] = {0, 2};
    struct sluice_peer_remote_mr remotes[2] = {{0}};
    memset(completions, 0xcc, sizeof(completions));
    desk_open(&desk);
    struct sluice_multichannel *hub = desk.star.hub;
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, desk.sges[0]);
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, desk.sges[0]);
    require_error(sluice_multichannel_multicast_send(hub, &send, peers, 2, DEADLINE, completions),
                  -EINVAL, "2");
    require_error(sluice_multichannel_multicast_send(hub, &write, peers, 1, DEADLINE, completions),
                  -EINVAL, "write");
    require_error(sluice_multichannel_multicast_send(hub, &send, NULL, 2, DEADLINE, completions),
                  -EINVAL, "");
    require_error(sluice_multichannel_multicast_send(hub, NULL, peers, 1, DEADLINE, completions),
                  -EINVAL, "");
    remotes[0].remote = remotes[1].remote = memory_remote(&desk.far, 0, 64);
    remotes[1].peer = 7;
    require_error(
        sluice_multichannel_multicast_write(hub, &write, remotes, 2, DEADLINE, completions),
        -EINVAL, "7");
    remotes[1].peer = 1;
    remotes[1].reserved = 1;
    require_error(
        sluice_multichannel_multicast_write(hub, &write, remotes, 2, DEADLINE, completions),
        -EINVAL, "reserved");
    remotes[1].reserved = 0;
    remotes[1].remote.length = 63;
    require_error(
        sluice_multichannel_multicast_write(hub, &write, remotes, 2, DEADLINE, completions),
        -ERANGE, "64 63");
    require_error(sluice_multichannel_multicast_write(hub, &write, NULL, 1, DEADLINE, completions),
                  -EINVAL, "");
    value_check(completions, sizeof(completions), 0xcc);
    desk_close(&desk);
}
END_TEST

START_TEST(null_arguments_of_calls)
{
    struct desk desk;
    struct sluice_completion completion;
    struct sluice_handle handle = {0};
    struct sluice_error error = {.size = sizeof(error)};
    struct sluice_error small = {.size = 4};
    desk_open(&desk);
    struct sluice_multichannel *hub = desk.star.hub;
    struct sluice_channel *spoke = desk.star.spokes[0];
    require_error(sluice_multichannel_submit(hub, NULL, 1, DEADLINE, NULL), -EINVAL, "");
    require_error(sluice_multichannel_submit(NULL, desk.requests, 1, DEADLINE, NULL), -EINVAL, "");
    require_error(sluice_multichannel_post(hub, NULL, 1, DEADLINE, NULL), -EINVAL, "");
    require_error(sluice_multichannel_post(NULL, desk.requests, 1, DEADLINE, NULL), -EINVAL, "");
    require_error(sluice_multichannel_poll(hub, NULL, 1), -EINVAL, "");
    require_error(sluice_multichannel_poll(NULL, &completion, 1), -EINVAL, "");
    require_error(sluice_multichannel_wait(hub, NULL, 0, &completion), -EINVAL, "");
    require_error(sluice_multichannel_wait(NULL, &handle, 0, &completion), -EINVAL, "");
    require_error(sluice_multichannel_write(hub, 0, desk.sges[0], 1, NULL, DEADLINE), -EINVAL, "");
    require_error(sluice_multichannel_peer_error(hub, 0, NULL), -EINVAL, "");
    require_error(sluice_multichannel_peer_error(hub, 0, &small), -EINVAL, "size");
    require_error(sluice_multichannel_peer_reset(hub, 0, NULL), -EINVAL, "");
    require_error(sluice_multichannel_peer_state(NULL, 0), -EINVAL, "");
    require_result(sluice_multichannel_peers(NULL), 0);
    require_error(sluice_channel_send(NULL, desk.sges[0], 1, DEADLINE), -EINVAL, "");
    require_error(sluice_channel_write(spoke, desk.sges[0], 1, NULL, DEADLINE), -EINVAL, "");
    require_error(sluice_channel_read(spoke, desk.sges[0], 1, NULL, DEADLINE), -EINVAL, "");
    require_error(sluice_channel_wait(spoke, NULL, 0, &completion), -EINVAL, "");
    require_error(sluice_channel_poll(spoke, NULL, 1), -EINVAL, "");
    require_error(sluice_channel_state(NULL), -EINVAL, "");
    require_error(sluice_channel_error(spoke, NULL), -EINVAL, "");
    require_error(sluice_channel_error(NULL, &error), -EINVAL, "");
    require_error(sluice_channel_error(spoke, &small), -EINVAL, "size");
    require_error(sluice_channel_shutdown(NULL, 0), -EINVAL, "");
    require_null(sluice_channel_scope_begin(NULL, DEADLINE), EINVAL, "");
    require_error(sluice_scope_post(NULL, desk.requests, 1, NULL), -EINVAL, "");
    require_error(sluice_scope_wait(NULL, &handle, 0, &completion), -EINVAL, "");
    require_result(sluice_scope_end(NULL, NULL), 0);
    desk_close(&desk);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, unknown_peer);
    tcase_add_test(tcase, unknown_operation);
    tcase_add_test(tcase, unknown_flags);
    tcase_add_test(tcase, reserved_fields);
    tcase_add_test(tcase, lists_of_elements);
    tcase_add_test(tcase, lengths);
    tcase_add_test(tcase, remote_ranges);
    tcase_add_test(tcase, elements_outside_their_region);
    tcase_add_test(tcase, elements_by_address);
    tcase_add_test(tcase, element_of_four_gib);
    tcase_add_test(tcase, negative_times);
    tcase_add_test(tcase, empty_lists);
    tcase_add_test(tcase, scatter_gather_lists);
    tcase_add_test(tcase, multicast_lists);
    tcase_add_test(tcase, null_arguments_of_calls);
}

int main(void)
{
    return run_on_wires("arguments", 30, add_tests);
}
