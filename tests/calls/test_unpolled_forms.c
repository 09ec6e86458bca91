/* SPDX-License-Identifier: MIT */
/*
 * The unpolled forms of the operations: each does what the blocking one does,
 * gives a handle or none, and refuses what the blocking one refuses.
 */
#include "../support/pair.h"

#define DEPTH 8
#define PEERS 4
#define LENGTH 512

static const struct sluice_channel_attr short_queues = {
    .size = sizeof(short_queues), .send_depth = DEPTH, .receive_depth = DEPTH};

/* A hub and its peers; near memory is the hub's, far memory that of all its peers, a piece each. */
struct fixture {
    struct star star;
    struct memory near;
    struct memory far;
    struct sluice_sge near_sges[PEERS];
    struct sluice_sge far_sges[PEERS];
    struct sluice_remote_mr remotes[PEERS];
    bool atomics;
};

static void fixture_open(struct fixture *fixture)
{
    uint32_t access = ACCESS_ALL;
    star_open(&fixture->star, PEERS, &short_queues);
    fixture->atomics = context_info(fixture->star.sides.contexts[1]).atomics != SLUICE_ATOMICS_NONE;
    if (fixture->atomics) {
        access |= SLUICE_ACCESS_REMOTE_ATOMIC;
    }
    memory_open_at(&fixture->near, fixture->star.sides.pds[0], PEERS * LENGTH, ACCESS_ALL, 0);
    memory_open_at(&fixture->far, fixture->star.sides.pds[1], PEERS * LENGTH, access, 0);
    for (uint32_t i = 0; i < PEERS; i++) {
        fixture->near_sges[i] = memory_sge(&fixture->near, i * LENGTH, LENGTH);
        fixture->far_sges[i] = memory_sge(&fixture->far, i * LENGTH, LENGTH);
        fixture->remotes[i] = memory_remote(&fixture->far, i * LENGTH, LENGTH);
    }
}

static void fixture_close(struct fixture *fixture)
{
    memory_close(&fixture->near);
    memory_close(&fixture->far);
    star_close(&fixture->star);
}

static void clear(struct fixture *fixture)
{
    memset(fixture->near.bytes, 0, fixture->near.length);
    memset(fixture->far.bytes, 0, fixture->far.length);
}

/* Piece i of a memory has the pattern that its peer is to get, or that it gave. */
static void fill(const struct memory *memory, uint32_t operation)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        pattern_fill(memory->bytes + i * LENGTH, LENGTH, pattern_key(0, i, operation));
    }
}

static void check(const struct memory *memory, uint32_t operation)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        pattern_check(memory->bytes + i * LENGTH, LENGTH, pattern_key(0, i, operation));
    }
}

/* It ends well. */
static void await_hub(struct fixture *fixture, struct sluice_handle handle, uint32_t peer,
                      uint32_t opcode)
{
    struct sluice_completion completion;
    require_ok(sluice_multichannel_wait(fixture->star.hub, &handle, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    require(completion.peer == peer && completion.opcode == opcode, "peer %u, opcode %u",
            completion.peer, completion.opcode);
}

START_TEST(messages_with_a_channel)
{
    struct fixture fixture;
    struct sluice_handle handles[2];
    struct sluice_completion completion;
    fixture_open(&fixture);
    struct sluice_channel *spoke = fixture.star.spokes[0];
    fill(&fixture.near, 1);
    require_ok(sluice_channel_receive_unpolled(spoke, fixture.far_sges, 1, DEADLINE, &handles[0]));
    require_ok(sluice_multichannel_send(fixture.star.hub, 0, fixture.near_sges, 1, DEADLINE));
    completion = await(spoke, handles[0], SLUICE_CLASS_NONE);
    require(completion.bytes == LENGTH && completion.opcode == SLUICE_OP_RECEIVE, "%llu bytes",
            (unsigned long long)completion.bytes);
    pattern_check(fixture.far.bytes, LENGTH, pattern_key(0, 0, 1));
    clear(&fixture);

    fill(&fixture.far, 2);
    require_ok(sluice_channel_send_unpolled(spoke, fixture.far_sges, 1, DEADLINE, &handles[1]));
    require_ok(sluice_multichannel_receive(fixture.star.hub, 0, fixture.near_sges, 1, DEADLINE,
                                           &completion));
    completion = await(spoke, handles[1], SLUICE_CLASS_NONE);
    require(completion.bytes == LENGTH && completion.opcode == SLUICE_OP_SEND, "%llu bytes",
            (unsigned long long)completion.bytes);
    pattern_check(fixture.near.bytes, LENGTH, pattern_key(0, 0, 2));
    fixture_close(&fixture);
}
END_TEST

/* The hub's memory is the remote one here. */
START_TEST(one_sided_with_a_channel)
{
    struct fixture fixture;
    struct sluice_handle handle;
    fixture_open(&fixture);
    struct sluice_channel *spoke = fixture.star.spokes[0];
    struct sluice_remote_mr remote = memory_remote(&fixture.near, 0, LENGTH);
    fill(&fixture.far, 3);
    require_ok(
        sluice_channel_write_unpolled(spoke, fixture.far_sges, 1, &remote, DEADLINE, &handle));
    await(spoke, handle, SLUICE_CLASS_NONE);
    pattern_check(fixture.near.bytes, LENGTH, pattern_key(0, 0, 3));
    clear(&fixture);

    fill(&fixture.near, 4);
    require_ok(
        sluice_channel_read_unpolled(spoke, fixture.far_sges, 1, &remote, DEADLINE, &handle));
    await(spoke, handle, SLUICE_CLASS_NONE);
    pattern_check(fixture.far.bytes, LENGTH, pattern_key(0, 0, 4));
    fixture_close(&fixture);
}
END_TEST

START_TEST(one_peer_of_a_multichannel)
{
    struct fixture fixture;
    struct sluice_handle handles[PEERS], theirs[PEERS];
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    fill(&fixture.near, 1);
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_channel_receive_unpolled(fixture.star.spokes[i], &fixture.far_sges[i], 1,
                                                   DEADLINE, &theirs[i]));
        require_ok(sluice_multichannel_send_unpolled(hub, i, &fixture.near_sges[i], 1, DEADLINE,
                                                     &handles[i]));
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        await_hub(&fixture, handles[i], i, SLUICE_OP_SEND);
        await(fixture.star.spokes[i], theirs[i], SLUICE_CLASS_NONE);
    }
    check(&fixture.far, 1);
    clear(&fixture);

    fill(&fixture.far, 2);
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_multichannel_receive_unpolled(hub, i, &fixture.near_sges[i], 1, DEADLINE,
                                                        &handles[i]));
        require_ok(sluice_channel_send(fixture.star.spokes[i], &fixture.far_sges[i], 1, DEADLINE));
        await_hub(&fixture, handles[i], i, SLUICE_OP_RECEIVE);
    }
    check(&fixture.near, 2);
    clear(&fixture);

    fill(&fixture.near, 3);
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_multichannel_write_unpolled(hub, i, &fixture.near_sges[i], 1,
                                                      &fixture.remotes[i], DEADLINE, &handles[i]));
        await_hub(&fixture, handles[i], i, SLUICE_OP_WRITE);
    }
    check(&fixture.far, 3);
    memset(fixture.near.bytes, 0, fixture.near.length);
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_multichannel_read_unpolled(hub, i, &fixture.near_sges[i], 1,
                                                     &fixture.remotes[i], DEADLINE, &handles[i]));
        await_hub(&fixture, handles[i], i, SLUICE_OP_READ);
    }
    check(&fixture.near, 3);
    fixture_close(&fixture);
}
END_TEST

static uint64_t word(const struct memory *memory, size_t offset)
{
    uint64_t value;
    memcpy(&value, memory->bytes + offset, sizeof(value));
    return value;
}

/* Without atomics on the device, they are refused before anything is posted. */
START_TEST(atomics)
{
    struct fixture fixture;
    struct sluice_handle handle;
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    struct sluice_sge result = memory_sge(&fixture.near, 8, 8);
    struct sluice_remote_mr remote = memory_remote(&fixture.far, 16, 8);
    if (!fixture.atomics) {
        require_error(
            sluice_multichannel_fetch_add_unpolled(hub, 1, &result, &remote, 1, DEADLINE, &handle),
            -EOPNOTSUPP, "");
        require_error(sluice_multichannel_compare_swap_unpolled(hub, 1, &result, &remote, 1, 2,
                                                                DEADLINE, &handle),
                      -EOPNOTSUPP, "");
        fixture_close(&fixture);
        return;
    }
    clear(&fixture);
    require_ok(
        sluice_multichannel_fetch_add_unpolled(hub, 1, &result, &remote, 41, DEADLINE, &handle));
    await_hub(&fixture, handle, 1, SLUICE_OP_FETCH_ADD);
    require(word(&fixture.near, 8) == 0 && word(&fixture.far, 16) == 41, "%llu",
            (unsigned long long)word(&fixture.far, 16));
    require_ok(sluice_multichannel_compare_swap_unpolled(hub, 1, &result, &remote, 41, 77, DEADLINE,
                                                         &handle));
    await_hub(&fixture, handle, 1, SLUICE_OP_COMPARE_SWAP);
    require(word(&fixture.near, 8) == 41 && word(&fixture.far, 16) == 77, "%llu",
            (unsigned long long)word(&fixture.far, 16));
    fixture_close(&fixture);
}
END_TEST

START_TEST(atomics_of_a_channel)
{
    struct pair pair;
    struct memory near;
    struct memory far;
    struct sluice_handle handle;
    pair_open(&pair, NULL);
    if (context_info(pair.sides.contexts[0]).atomics == SLUICE_ATOMICS_NONE) {
        pair_close(&pair);
        return;
    }
    memory_open_at(&near, pair.sides.pds[0], 8, ACCESS_ALL, 0);
    memory_open_at(&far, pair.sides.pds[1], 8, ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC, 0);
    memset(near.bytes, 0, 8);
    memset(far.bytes, 0, 8);
    struct sluice_sge result = memory_sge(&near, 0, 8);
    struct sluice_remote_mr remote = memory_remote(&far, 0, 8);
    require_ok(sluice_channel_fetch_add_unpolled(pair.channels[0], &result, &remote, 5, DEADLINE,
                                                 &handle));
    await(pair.channels[0], handle, SLUICE_CLASS_NONE);
    require_ok(sluice_channel_compare_swap_unpolled(pair.channels[0], &result, &remote, 5, 6,
                                                    DEADLINE, &handle));
    await(pair.channels[0], handle, SLUICE_CLASS_NONE);
    require(word(&near, 0) == 5 && word(&far, 0) == 6, "%llu, %llu",
            (unsigned long long)word(&near, 0), (unsigned long long)word(&far, 0));
    require_error(
        sluice_channel_fetch_add_unpolled(pair.channels[0], NULL, &remote, 5, DEADLINE, &handle),
        -EINVAL, "");
    require_error(
        sluice_channel_fetch_add_unpolled(pair.channels[0], &result, NULL, 5, DEADLINE, &handle),
        -EINVAL, "fetch-add remote");
    require_error(sluice_channel_compare_swap_unpolled(pair.channels[0], &result, NULL, 5, 5,
                                                       DEADLINE, &handle),
                  -EINVAL, "compare-swap remote");
    memory_close(&near);
    memory_close(&far);
    pair_close(&pair);
}
END_TEST

static void make_list(struct fixture *fixture, struct sluice_request *requests)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        requests[i] = request_of(SLUICE_OP_NONE, i, &fixture->near_sges[i]);
        requests[i].remote = fixture->remotes[i];
    }
}

static void await_list(struct fixture *fixture, const struct sluice_handle *handles,
                       uint32_t opcode)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        await_hub(fixture, handles[i], i, opcode);
    }
}

static void receive_all(struct fixture *fixture, struct sluice_handle *theirs)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_channel_receive_unpolled(fixture->star.spokes[i], &fixture->far_sges[i],
                                                   1, DEADLINE, &theirs[i]));
    }
}

static void await_all(struct fixture *fixture, const struct sluice_handle *theirs)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        await(fixture->star.spokes[i], theirs[i], SLUICE_CLASS_NONE);
    }
}

START_TEST(lists)
{
    struct fixture fixture;
    struct sluice_request requests[PEERS];
    struct sluice_handle handles[PEERS], theirs[PEERS];
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    make_list(&fixture, requests);
    fill(&fixture.near, 1);
    receive_all(&fixture, theirs);
    require_result(
        sluice_multichannel_scatter_send_unpolled(hub, requests, PEERS, DEADLINE, handles), PEERS);
    await_list(&fixture, handles, SLUICE_OP_SEND);
    await_all(&fixture, theirs);
    check(&fixture.far, 1);
    clear(&fixture);

    fill(&fixture.near, 2);
    require_result(
        sluice_multichannel_scatter_write_unpolled(hub, requests, PEERS, DEADLINE, handles), PEERS);
    await_list(&fixture, handles, SLUICE_OP_WRITE);
    check(&fixture.far, 2);
    memset(fixture.near.bytes, 0, fixture.near.length);
    require_result(
        sluice_multichannel_gather_read_unpolled(hub, requests, PEERS, DEADLINE, handles), PEERS);
    await_list(&fixture, handles, SLUICE_OP_READ);
    check(&fixture.near, 2);
    clear(&fixture);

    fill(&fixture.far, 3);
    require_result(
        sluice_multichannel_gather_receive_unpolled(hub, requests, PEERS, DEADLINE, handles),
        PEERS);
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_channel_send(fixture.star.spokes[i], &fixture.far_sges[i], 1, DEADLINE));
    }
    await_list(&fixture, handles, SLUICE_OP_RECEIVE);
    check(&fixture.near, 3);
    fixture_close(&fixture);
}
END_TEST

START_TEST(multicasts)
{
    struct fixture fixture;
    struct sluice_handle handles[PEERS], theirs[PEERS];
    struct sluice_peer_remote_mr remotes[PEERS];
    const uint32_t peers[PEERS] = {2, 0, 3, 1};
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    struct sluice_request request = request_of(SLUICE_OP_NONE, 99, &fixture.near_sges[0]);
    for (uint32_t i = 0; i < PEERS; i++) {
        remotes[i] =
            (struct sluice_peer_remote_mr){.peer = peers[i], .remote = fixture.remotes[peers[i]]};
    }
    pattern_fill(fixture.near.bytes, LENGTH, 5);
    receive_all(&fixture, theirs);
    require_result(
        sluice_multichannel_multicast_send_unpolled(hub, &request, peers, PEERS, DEADLINE, handles),
        PEERS);
    for (uint32_t i = 0; i < PEERS; i++) {
        await_hub(&fixture, handles[i], peers[i], SLUICE_OP_SEND);
        await(fixture.star.spokes[i], theirs[i], SLUICE_CLASS_NONE);
        pattern_check(fixture.far.bytes + i * LENGTH, LENGTH, 5);
    }
    memset(fixture.far.bytes, 0, fixture.far.length);
    require_result(sluice_multichannel_multicast_write_unpolled(hub, &request, remotes, PEERS,
                                                                DEADLINE, handles),
                   PEERS);
    for (uint32_t i = 0; i < PEERS; i++) {
        await_hub(&fixture, handles[i], peers[i], SLUICE_OP_WRITE);
        pattern_check(fixture.far.bytes + peers[i] * LENGTH, LENGTH, 5);
    }
    fixture_close(&fixture);
}
END_TEST

/* All forms of lists end before a peer that has failed, and say so if it is the first. */
START_TEST(lists_stop_at_a_failed_peer)
{
    struct fixture fixture;
    struct sluice_request requests[PEERS];
    struct sluice_handle handles[PEERS];
    struct sluice_peer_remote_mr remotes[PEERS];
    const uint32_t peers[PEERS] = {0, 1, 2, 3};
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    make_list(&fixture, requests);
    star_break(&fixture.star, 2);
    for (uint32_t i = 0; i < PEERS; i++) {
        remotes[i] = (struct sluice_peer_remote_mr){.peer = i, .remote = fixture.remotes[i]};
    }
    memset(handles, 0xcc, sizeof(handles));
    for (uint32_t from = 0; from < 3; from += 2) {
        int wanted = from == 0 ? 2 : -ENOTCONN;
        uint32_t count = PEERS - from;
        require_result(sluice_multichannel_scatter_send_unpolled(hub, requests + from, count,
                                                                 DEADLINE, handles),
                       wanted);
        require_result(sluice_multichannel_scatter_write_unpolled(hub, requests + from, count,
                                                                  DEADLINE, handles),
                       wanted);
        require_result(sluice_multichannel_gather_receive_unpolled(hub, requests + from, count,
                                                                   DEADLINE, handles),
                       wanted);
        require_result(sluice_multichannel_gather_read_unpolled(hub, requests + from, count,
                                                                DEADLINE, handles),
                       wanted);
        require_result(sluice_multichannel_multicast_send_unpolled(hub, requests, peers + from,
                                                                   count, DEADLINE, handles),
                       wanted);
        require_result(sluice_multichannel_multicast_write_unpolled(hub, requests, remotes + from,
                                                                    count, DEADLINE, handles),
                       wanted);
        value_check(handles + 2, 2 * sizeof(handles[0]), 0xcc);
    }
    require_error(
        sluice_multichannel_send_unpolled(hub, 2, fixture.near_sges, 1, DEADLINE, handles + 2),
        -ENOTCONN, "peer 2");
    value_check(handles + 2, 2 * sizeof(handles[0]), 0xcc);
    require_result(sluice_multichannel_shutdown(hub, 0), -ETIMEDOUT);
    fixture_close(&fixture);
}
END_TEST

START_TEST(full_queues_and_no_handles)
{
    struct fixture fixture;
    struct sluice_completion completion;
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    struct sluice_handle handle;
    memset(&handle, 0xcc, sizeof(handle));
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_ok(sluice_multichannel_receive_unpolled(hub, 3, NULL, 0, DEADLINE, NULL));
        require_ok(
            sluice_channel_receive_unpolled(fixture.star.spokes[0], NULL, 0, DEADLINE, NULL));
    }
    require_error(sluice_multichannel_receive_unpolled(hub, 3, NULL, 0, DEADLINE, &handle), -EAGAIN,
                  "peer 3");
    require_error(
        sluice_channel_receive_unpolled(fixture.star.spokes[0], NULL, 0, DEADLINE, &handle),
        -EAGAIN, "receive queue");
    value_check(&handle, sizeof(handle), 0xcc);
    /* What has no handle is polled. */
    require_ok(sluice_multichannel_send_unpolled(hub, 0, NULL, 0, DEADLINE, NULL));
    require_ok(sluice_multichannel_next(hub, DEADLINE, &completion));
    require(completion.opcode == SLUICE_OP_SEND && completion.peer == 0, "opcode %u",
            completion.opcode);
    require_ok(sluice_channel_next(fixture.star.spokes[0], DEADLINE, &completion));
    require(completion.opcode == SLUICE_OP_RECEIVE, "opcode %u", completion.opcode);
    fixture_close(&fixture);
}
END_TEST

START_TEST(wrong_arguments)
{
    struct fixture fixture;
    struct sluice_request requests[PEERS];
    struct sluice_handle handles[PEERS];
    struct sluice_completion completion;
    const uint32_t peers[2] = {0, PEERS};
    fixture_open(&fixture);
    struct sluice_multichannel *hub = fixture.star.hub;
    struct sluice_channel *spoke = fixture.star.spokes[0];
    const struct sluice_sge *sge = fixture.near_sges;
    make_list(&fixture, requests);
    memset(handles, 0xcc, sizeof(handles));
    struct sluice_remote_mr narrow = memory_remote(&fixture.far, 0, LENGTH - 1);
    require_error(sluice_channel_write_unpolled(spoke, sge, 1, NULL, DEADLINE, handles), -EINVAL,
                  "write remote");
    require_error(sluice_channel_read_unpolled(spoke, sge, 1, NULL, DEADLINE, handles), -EINVAL,
                  "read remote");
    require_error(sluice_multichannel_write_unpolled(hub, 0, sge, 1, &narrow, DEADLINE, handles),
                  -ERANGE, "511");
    require_error(sluice_multichannel_read_unpolled(hub, 0, sge, 1, &narrow, DEADLINE, handles),
                  -ERANGE, "511");
    require_error(sluice_channel_send_unpolled(spoke, NULL, 1, DEADLINE, handles), -EINVAL, "NULL");
    require_error(sluice_channel_send_unpolled(spoke, sge, 1, -1, handles), -EINVAL, "-1");
    require_error(sluice_multichannel_send_unpolled(hub, PEERS, sge, 1, DEADLINE, handles), -EINVAL,
                  "peer 4");
    require_error(sluice_channel_receive_unpolled(NULL, sge, 1, DEADLINE, handles), -EINVAL,
                  "channel");
    require_error(sluice_multichannel_receive_unpolled(NULL, 0, sge, 1, DEADLINE, handles), -EINVAL,
                  "multichannel");
    requests[PEERS - 1].opcode = SLUICE_OP_READ;
    require_error(
        sluice_multichannel_scatter_write_unpolled(hub, requests, PEERS, DEADLINE, handles),
        -EINVAL, "3 read write");
    require_error(sluice_multichannel_scatter_send_unpolled(hub, NULL, 1, DEADLINE, handles),
                  -EINVAL, "NULL");
    require_error(
        sluice_multichannel_multicast_send_unpolled(hub, requests, peers, 2, DEADLINE, handles),
        -EINVAL, "peer 4");
    require_error(
        sluice_multichannel_multicast_send_unpolled(hub, requests, NULL, 2, DEADLINE, handles),
        -EINVAL, "NULL");
    require_error(
        sluice_multichannel_multicast_write_unpolled(hub, requests, NULL, 2, DEADLINE, handles),
        -EINVAL, "NULL");
    require_result(
        sluice_multichannel_multicast_write_unpolled(hub, requests, NULL, 0, DEADLINE, handles), 0);
    require_result(sluice_multichannel_gather_read_unpolled(hub, NULL, 0, DEADLINE, handles), 0);
    value_check(handles, sizeof(handles), 0xcc);
    require_error(sluice_multichannel_next(hub, 0, &completion), -ENOENT, "");
    require_error(sluice_channel_next(spoke, 0, &completion), -ENOENT, "");
    fixture_close(&fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, messages_with_a_channel);
    tcase_add_test(tcase, one_sided_with_a_channel);
    tcase_add_test(tcase, one_peer_of_a_multichannel);
    tcase_add_test(tcase, atomics);
    tcase_add_test(tcase, atomics_of_a_channel);
    tcase_add_test(tcase, lists);
    tcase_add_test(tcase, multicasts);
    tcase_add_test(tcase, lists_stop_at_a_failed_peer);
    tcase_add_test(tcase, full_queues_and_no_handles);
    tcase_add_test(tcase, wrong_arguments);
}

int main(void)
{
    return run_on_wires("unpolled_forms", 30, add_tests);
}
