/* SPDX-License-Identifier: MIT */
/* Contents of messages, and how peers are connected and fail. */
#include "fixture.h"

TEST(immediate_of_a_receive)
{
    struct fixture fixture;
    struct sluice_completion completion;
    fixture_open(&fixture);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
    for (int with = 0; with < 2; with++) {
        send.flags = with ? SLUICE_IMMEDIATE : 0;
        send.immediate = with ? 0x01020304 : 0;
        struct sluice_handle handle = post(fixture.star.spokes[0], &send);
        require_ok(
            sluice_multichannel_receive(fixture.star.hub, 0, NULL, 0, DEADLINE, &completion));
        require(completion.flags == send.flags && completion.immediate == send.immediate,
                "flags %x, immediate %x", completion.flags, completion.immediate);
        await(fixture.star.spokes[0], handle, SLUICE_CLASS_NONE);
    }
    fixture_close(&fixture);
}

TEST(bytes_of_sends_and_writes)
{
    struct fixture fixture;
    struct sluice_completion completion;
    fixture_open(&fixture);
    struct sluice_sge far = memory_sge(&fixture.far, 0, 100);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &far);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 2, fixture.sges);
    send.sge_count = 3;
    struct sluice_handle handle = post(fixture.star.spokes[2], &receive);
    require_ok(sluice_multichannel_submit(fixture.star.hub, &send, 1, DEADLINE, &completion));
    require(completion.bytes == 3 * SLOT, "%llu", (unsigned long long)completion.bytes);
    completion = await(fixture.star.spokes[2], handle, SLUICE_CLASS_NONE);
    require(completion.bytes == 3 * SLOT, "%llu", (unsigned long long)completion.bytes);
    require_ok(
        sluice_multichannel_submit(fixture.star.hub, fixture.writes, 1, DEADLINE, &completion));
    require(completion.bytes == SLOT, "%llu", (unsigned long long)completion.bytes);
    fixture.writes[0].opcode = SLUICE_OP_READ;
    require_ok(
        sluice_multichannel_submit(fixture.star.hub, fixture.writes, 1, DEADLINE, &completion));
    require(completion.bytes == SLOT, "%llu", (unsigned long long)completion.bytes);
    fixture.writes[0].remote.rkey ^= 0x33333333;
    require_result(
        sluice_multichannel_submit(fixture.star.hub, fixture.writes, 1, DEADLINE, &completion),
        -EACCES);
    require(completion.bytes == 0, "%llu", (unsigned long long)completion.bytes);
    fixture_close(&fixture);
}

TEST(sges_beyond_their_memory)
{
    struct fixture fixture;
    struct sluice_sge sge = {.addr = 7};
    fixture_open(&fixture);
    size_t length = fixture.near.length;
    require_result(sluice_mr_sge(fixture.near.mr, 0, length + 1, &sge), -ERANGE);
    require_result(sluice_mr_sge(fixture.near.mr, length, 1, &sge), -ERANGE);
    require_result(sluice_mr_sge(fixture.near.mr, SIZE_MAX, 2, &sge), -ERANGE);
    int result = sluice_mr_sge(fixture.near.mr, 0, (size_t)UINT32_MAX + 1, &sge);
    require(result == -ERANGE || result == -EMSGSIZE, "%d", result);
    require(sge.addr == 7, "it was written");
    require_ok(sluice_mr_sge(fixture.near.mr, length, 0, &sge));
    fixture_close(&fixture);
}

TEST(endpoint_count_mismatch)
{
    struct sides sides;
    struct sluice_endpoint endpoints[PEERS + 1];
    sides_open(&sides);
    memset(endpoints, 0, sizeof(endpoints));
    for (uint32_t count = PEERS - 1; count <= PEERS + 1; count += 2) {
        struct sluice_prepared_multichannel *prepared =
            sluice_multichannel_prepare(sides.pds[0], PEERS, NULL);
        require(prepared, "%s", sluice_last_error());
        require_error(sluice_prepared_multichannel_endpoints(prepared, endpoints, count), -EINVAL,
                      count < PEERS ? "2 3" : "4 3");
        require_null(sluice_prepared_multichannel_handshake(prepared, endpoints, count), EINVAL,
                     count < PEERS ? "2 3" : "4 3");
    }
    sides_close(&sides);
}

TEST(handshake_fails_for_one_peer)
{
    struct fixture fixture;
    struct sluice_endpoint endpoints[2];
    fixture_open(&fixture);
    struct sluice_pd *pd = fixture.star.sides.pds[0];
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 2, NULL);
    require(prepared, "%s", sluice_last_error());
    require_ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, 2));
    memset(&endpoints[0], 0x77, sizeof(endpoints[0])); /* peer 1 is the channel itself */
    struct sluice_multichannel *both =
        sluice_prepared_multichannel_handshake(prepared, endpoints, 2);
    require(both, "%s", sluice_last_error());
    require_result(sluice_multichannel_peer_state(both, 0), SLUICE_STATE_FAILED);
    require_result(sluice_multichannel_peer_state(both, 1), SLUICE_STATE_READY);
    struct sluice_error error = peer_error(both, 0);
    require(error.error == -EPROTO, "%d: %s", error.error, error.text);
    struct memory own;
    memory_open(&own, pd, SLOT);
    struct sluice_remote_mr remote = memory_remote(&own, 0, SLOT);
    require_ok(sluice_multichannel_write(both, 1, fixture.sges, 1, &remote, DEADLINE));
    require(memcmp(own.bytes, fixture.near.bytes, SLOT) == 0, "slot %u", 0);
    memory_close(&own);
    sluice_multichannel_close(both);
    fixture_close(&fixture);
}

/* No peers at all are allowed, as they may be added later. */
TEST(numbers_of_peers)
{
    struct sides sides;
    sides_open(&sides);
    struct sluice_prepared_multichannel *none = sluice_multichannel_prepare(sides.pds[0], 0, NULL);
    require(none, "%s", sluice_last_error());
    sluice_prepared_multichannel_free(none);
    require_null(sluice_multichannel_prepare(sides.pds[0], SLUICE_MAX_PEERS + 1, NULL), EINVAL,
                 "65537 peers");
    sides_close(&sides);
}

TEST(error_after_an_error)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture.writes[1].remote.rkey ^= 0x33333333;
    for (uint32_t i = 0; i < 8; i++) {
        fixture.writes[i].peer = 1;
    }
    require_result(sluice_multichannel_scatter_write(fixture.star.hub, fixture.writes, 8, DEADLINE,
                                                     fixture.completions),
                   -EACCES);
    struct sluice_error first = peer_error(fixture.star.hub, 1);
    require(first.error_class == SLUICE_CLASS_ACCESS && first.opcode == SLUICE_OP_WRITE, "%s",
            first.text);
    for (uint32_t i = 2; i < 8; i++) {
        require_class(&fixture.completions[i], SLUICE_CLASS_CANCELLED);
        require(fixture.completions[i].cause == first.status, "%u", fixture.completions[i].cause);
    }
    require_error(sluice_multichannel_send(fixture.star.hub, 1, NULL, 0, DEADLINE), -ENOTCONN,
                  "peer 1 write");
    struct sluice_error later = peer_error(fixture.star.hub, 1);
    require(memcmp(&first, &later, sizeof(first)) == 0, "%s", later.text);
    /* A reset makes the peer work. */
    star_reset(&fixture.star, 1);
    star_works(&fixture.star, 1);
    fixture_close(&fixture);
}
