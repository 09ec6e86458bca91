/* SPDX-License-Identifier: MIT */
/*
 * Regions that are handed over and come back: with one peer, or with any; and memory that is
 * granted again.
 */
#include "agents.h"

#define LENGTH 100000

/* Memory of ours is used by the peer, and comes back or is revoked. */
TEST(local_memory_is_handed_over)
{
    struct agents agents;
    struct memory given;
    struct sluice_agent_mr *mr;
    struct sluice_agent_local local = {.size = sizeof(local)};
    struct sluice_agent_attr attr = {.size = sizeof(attr), .secret_file = ""};
    uint64_t id = 0;
    agents_open(&agents, NULL, &attr);
    memory_open(&given, agents.sides.pds[0], 10000);
    pattern_fill(given.bytes, 10000, 3);
    require_ok(sluice_agent_send_local_mr(agents.at_owner, given.mr, 1000, 8000, ACCESS_READ_WRITE,
                                          SLUICE_FOREVER, DEADLINE, &id));
    mr = sluice_agent_receive_remote_mr(agents.holder, agents.at_holder, DEADLINE);
    require(mr, "%s", sluice_last_error());
    require(mr_info(mr).lease == SLUICE_FOREVER && mr_info(mr).remote.length == 8000, "%lld",
            (long long)mr_info(mr).lease);
    require(mr_info(mr).id == id, "%llu", (unsigned long long)id);
    struct sluice_sge sge = memory_sge(&agents.memory, 0, 8000);
    require_ok(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE));
    require(memcmp(agents.memory.bytes, given.bytes + 1000, 8000) == 0, "other bytes");
    require(sluice_mr_lkey(given.mr) != mr_info(mr).remote.rkey, "it is the key of the whole");
    memset(agents.memory.bytes, 9, 8000);
    require_ok(sluice_agent_mr_write(mr, 0, &sge, 1, DEADLINE));
    require_ok(sluice_agent_mr_send_back(mr, DEADLINE));
    require_ok(sluice_agent_receive_local_mr(agents.owner, agents.at_owner, DEADLINE, &local));
    require(local.id == id && local.addr == given.bytes + 1000 && local.length == 8000 &&
                local.mr == NULL,
            "%llu", (unsigned long long)local.id);
    value_check(given.bytes + 1000, 8000, 9);
    require_ok(sluice_agent_send_local_mr(agents.at_owner, given.mr, 0, 10000,
                                          SLUICE_ACCESS_REMOTE_READ, SLUICE_S(1000), DEADLINE,
                                          &id));
    mr = sluice_agent_receive_remote_mr(agents.holder, agents.at_holder, DEADLINE);
    require(mr, "%s", sluice_last_error());
    require_ok(sluice_agent_revoke_mr(agents.at_owner, id));
    require_error(sluice_agent_revoke_mr(agents.at_owner, id), -ENOENT, "no region");
    require(agent_info(agents.owner).regions == 0, "it has it still");
    require_error(sluice_agent_send_local_mr(agents.at_owner, given.mr, 1, 10000,
                                             SLUICE_ACCESS_REMOTE_READ, 1, DEADLINE, &id),
                  -ERANGE, "");
    require_error(sluice_agent_send_local_mr(agents.at_owner, given.mr, 0, 1, 0, 1, DEADLINE, &id),
                  -EINVAL, "access 0");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    memory_close(&given);
    agents_close(&agents);
}

/* Requests are posted as a whole, and the text says what to do about one that is too large. */
TEST(blocks_of_a_request_fit_the_queue)
{
    struct agents agents;
    struct sluice_agent_mr *mr;
    struct sluice_blocks blocks = {.size = sizeof(blocks)};
    struct sluice_request requests[4];
    agents_open(&agents, NULL, NULL);
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
    blocks.remote = (struct sluice_layout){.kind = SLUICE_LAYOUT_STRIDED, .bytes = 8, .stride = 64};
    for (uint32_t i = 0; i < 4; i++)
        requests[i] = (struct sluice_request){.opcode = SLUICE_OP_WRITE,
                                              .sge = memory_sge(&agents.memory, 0, 8 * 512),
                                              .sge_count = 1,
                                              .remote = mr_info(mr).remote,
                                              .blocks = &blocks};
    blocks.remote.count = 512;
    require_error(sluice_agent_submit(agents.at_holder, requests, 1, DEADLINE, NULL), -E2BIG,
                  "request 0 has blocks more than the 128 work requests split them over several");
    blocks.remote.count = 128;
    require_ok(sluice_agent_submit(agents.at_holder, requests, 4, DEADLINE, NULL));
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
}

TEST(a_late_list_names_its_deadline_and_what_is_done)
{
    struct agents agents;
    struct sluice_agent_mr *mr;
    struct sluice_request requests[40];
    agents_open(&agents, NULL, NULL);
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
    for (uint32_t i = 0; i < 40; i++)
        requests[i] = (struct sluice_request){.opcode = SLUICE_OP_WRITE,
                                              .sge = memory_sge(&agents.memory, 0, 4096),
                                              .sge_count = 1,
                                              .remote = mr_info(mr).remote};
    require_error(sluice_agent_submit(agents.at_holder, requests, 40, 1, NULL), -ETIMEDOUT,
                  "request a write, was not complete within 1 ns; of 40 were");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
}

/* The owner gets its own memory back, with what the holder wrote, and the key is gone. */
TEST(remote_memory_is_sent_back)
{
    struct agents agents;
    struct sluice_agent_mr *mr;
    struct sluice_agent_local local = {.size = sizeof(local)};
    struct sluice_agent_mr_info info;
    agents_open(&agents, NULL, NULL);
    require_error(sluice_agent_receive_local_mr(agents.owner, agents.at_owner, 0, &local),
                  -ETIMEDOUT, "");
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
    info = mr_info(mr);
    region_works(&agents, mr, 12);
    require_ok(sluice_agent_mr_send_back(mr, DEADLINE));
    require_ok(sluice_agent_receive_local_mr(agents.owner, agents.at_owner, DEADLINE, &local));
    require(local.id == info.id && local.length == LENGTH && local.mr != NULL, "%llu",
            (unsigned long long)local.length);
    pattern_check(local.addr, LENGTH, 12);
    require(local.addr == sluice_mr_addr(local.mr), "another address");
    await_regions(agents.owner, 0);
    require(agent_info(agents.owner).bytes == 0, "the quota has it still");
    require_ok(sluice_mr_deregister(local.mr));
    agents_close(&agents);
}

/*
 * Memory that was sent back counts against its sender's quota until it is received: copies of it
 * are memory as well.
 */
TEST(returned_memory_counts_until_it_is_received)
{
    struct agents agents;
    struct sluice_agent_attr attr = {.size = sizeof(attr), .quota = 3 * 4096, .secret_file = ""};
    struct sluice_agent_local local = {.size = sizeof(local)};
    agents_open(&agents, &attr, NULL);
    for (int i = 0; i < 3; i++) {
        struct sluice_agent_mr *mr = request(&agents, 8192, ACCESS_READ_WRITE, 0);
        require_ok(sluice_agent_mr_send_back(mr, DEADLINE));
        require(agent_info(agents.owner).regions == 0, "it has it still");
        require(agent_info(agents.owner).bytes == 8192, "%llu",
                (unsigned long long)agent_info(agents.owner).bytes);
        require_null(
            sluice_agent_request_mr(agents.at_holder, 8192, ACCESS_READ_WRITE, 0, DEADLINE), EDQUOT,
            "8192 are in use");
        if (i < 2) {
            require_ok(
                sluice_agent_receive_local_mr(agents.owner, agents.at_owner, DEADLINE, &local));
            require_ok(sluice_mr_deregister(local.mr));
            require(agent_info(agents.owner).bytes == 0, "the quota has it still");
        }
    }
    /* The last region is never received and ends with its peer. */
    sluice_agent_peer_close(agents.at_owner);
    agents.at_owner = NULL;
    await_info(agents.owner, bytes, 0);
    agents_close(&agents);
}

static void hand_page(struct sluice_agent_peer *peer, const struct memory *given, size_t page)
{
    require_ok(sluice_agent_send_local_mr(peer, given->mr, page * 4096, 4096, ACCESS_READ_WRITE,
                                          SLUICE_FOREVER, DEADLINE, NULL));
}

/*
 * Regions of several owners are received in turns, and so are those that come back; each result
 * names its peer.
 */
TEST(regions_are_received_in_turns)
{
    struct agents agents;
    struct memory given;
    struct sluice_agent_attr attr = {.size = sizeof(attr), .secret_file = ""};
    struct sluice_agent_local local = {.size = sizeof(local)};
    struct sluice_agent_peer *others[2], *turns[2][3];
    struct sluice_agent_mr *mrs[3];
    agents_open(&agents, NULL, &attr);
    others[0] = sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
    require(others[0], "%s", sluice_last_error());
    others[1] = sluice_agent_next_peer(agents.owner, DEADLINE);
    require(others[1], "%s", sluice_last_error());
    memory_open(&given, agents.sides.pds[0], 3 * 4096);
    require_null(sluice_agent_receive_remote_mr(agents.holder, NULL, 0), ETIMEDOUT, "no region");
    hand_page(agents.at_owner, &given, 0);
    hand_page(agents.at_owner, &given, 1);
    hand_page(others[1], &given, 2);
    for (int i = 0; i < 3; i++) {
        mrs[i] = sluice_agent_receive_remote_mr(agents.holder, NULL, DEADLINE);
        require(mrs[i], "%s", sluice_last_error());
        turns[0][i] = sluice_agent_mr_peer(mrs[i]);
    }
    require(turns[0][0] == agents.at_holder && turns[0][1] == others[0] &&
                turns[0][2] == agents.at_holder,
            "no turns");
    require_error(sluice_agent_receive_local_mr(agents.owner, NULL, 0, &local), -ETIMEDOUT,
                  "no region");
    require_ok(sluice_agent_mr_send_back(mrs[0], DEADLINE));
    require_ok(sluice_agent_mr_send_back(mrs[2], DEADLINE));
    require_ok(sluice_agent_mr_send_back(mrs[1], DEADLINE));
    for (int i = 0; i < 3; i++) {
        require_ok(sluice_agent_receive_local_mr(agents.owner, NULL, DEADLINE, &local));
        turns[1][i] = local.peer;
    }
    require(turns[1][0] == agents.at_owner && turns[1][1] == others[1] &&
                turns[1][2] == agents.at_owner,
            "no turns");
    require_null(sluice_agent_receive_remote_mr(agents.owner, agents.at_holder, 0), EINVAL,
                 "another agent");
    require_error(sluice_agent_receive_local_mr(NULL, NULL, 0, &local), -EINVAL, "not an agent");
    require(sluice_agent_mr_peer(NULL) == NULL, "a peer");
    sluice_agent_peer_close(others[0]);
    sluice_agent_peer_close(others[1]);
    memory_close(&given);
    agents_close(&agents);
}

/*
 * A receive from any peer skips peers that the program has not taken; the region of a taken peer
 * that has left is still received.
 */
TEST(regions_of_untaken_peers_are_skipped, .times = 2)
{
    struct agents agents;
    struct sluice_agent_local local = {.size = sizeof(local)};
    struct sluice_agent_peer *peer, *taken;
    struct sluice_agent_mr *mr;
    agents_open(&agents, NULL, NULL);
    peer = sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
    require(peer, "%s", sluice_last_error());
    mr = sluice_agent_request_mr(peer, 4096, ACCESS_READ_WRITE, 0, DEADLINE);
    require(mr, "%s", sluice_last_error());
    require_ok(sluice_agent_mr_send_back(mr, DEADLINE));
    require_error(sluice_agent_receive_local_mr(agents.owner, NULL, 0, &local), -ETIMEDOUT,
                  "no region");
    if (_i == 0) {
        taken = sluice_agent_next_peer(agents.owner, DEADLINE);
        require(taken, "%s", sluice_last_error());
        sluice_agent_peer_close(peer);
        await_info(agents.owner, lost, 1);
        require_ok(sluice_agent_receive_local_mr(agents.owner, NULL, DEADLINE, &local));
        require(local.peer == taken && local.length == 4096, "another one");
        require_ok(sluice_mr_deregister(local.mr));
        sluice_agent_peer_close(taken);
    } else {
        sluice_agent_peer_close(peer);
        await_info(agents.owner, bytes, 0);
        require_error(sluice_agent_receive_local_mr(agents.owner, NULL, 0, &local), -ETIMEDOUT,
                      "no region");
    }
    agents_close(&agents);
}

/* A region that is taken back, or ends with its peer, cannot be received. */
TEST(revoked_regions_are_not_received)
{
    struct agents agents;
    struct memory given;
    struct sluice_agent_attr attr = {.size = sizeof(attr), .secret_file = ""};
    uint64_t id;
    agents_open(&agents, NULL, &attr);
    memory_open(&given, agents.sides.pds[0], 4096);
    require_ok(sluice_agent_send_local_mr(agents.at_owner, given.mr, 0, 4096, ACCESS_READ_WRITE,
                                          SLUICE_FOREVER, DEADLINE, &id));
    require_ok(sluice_agent_revoke_mr(agents.at_owner, id));
    require_ok(sluice_agent_send(agents.at_owner, "", 0, DEADLINE));
    sluice_agent_message_free(receive(agents.holder, NULL));
    require_null(sluice_agent_receive_remote_mr(agents.holder, NULL, 0), ETIMEDOUT, "no region");
    hand_page(agents.at_owner, &given, 0);
    sluice_agent_peer_close(agents.at_owner);
    agents.at_owner = NULL;
    await_info(agents.holder, lost, 1);
    require_null(sluice_agent_receive_remote_mr(agents.holder, NULL, 0), ETIMEDOUT, "no region");
    require_null(sluice_agent_receive_remote_mr(agents.holder, agents.at_holder, 0), ENOTCONN,
                 "left");
    memory_close(&given);
    agents_close(&agents);
}

/* Writes to a region by its key alone, as a peer does that ignores the end of the region. */
static int write_by_key(const struct agents *agents, const struct sluice_remote_mr *remote)
{
    const struct sluice_request request = {.opcode = SLUICE_OP_WRITE,
                                           .sge_count = 1,
                                           .sge = memory_sge(&agents->memory, 0, 8),
                                           .remote = *remote};
    return sluice_agent_submit(agents->at_holder, &request, 1, DEADLINE, NULL);
}

static void check_zeroed(struct agents *agents, struct sluice_agent_mr *mr, uint64_t length)
{
    const struct sluice_sge sge = memory_sge(&agents->memory, 0, (uint32_t)length);
    memset(agents->memory.bytes, 1, length);
    require_ok(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE));
    for (uint64_t i = 0; i < length; i++) {
        require(agents->memory.bytes[i] == 0, "byte %llu is not zero", (unsigned long long)i);
    }
}

/*
 * Memory of ended regions is used for the next requests of the same peer: zeroed, with a new key,
 * and the quota holds with it.
 */
TEST(memory_is_zeroed_before_it_is_granted_again)
{
    static const uint64_t lengths[] = {100, 4096, 5000, 65536, 100, 65537, 4096, 1};
    struct sluice_agent_attr attr = {
        .size = sizeof(attr), .quota = 3 * 65536, .secret_file = "", .access = ACCESS_READ_WRITE};
    struct agents agents;
    struct sluice_remote_mr last = {0};
    agents_open(&agents, &attr, NULL);
    for (uint32_t i = 0; i < 4 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint64_t length = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
        struct sluice_agent_mr *mr = request(&agents, length, ACCESS_READ_WRITE, 0);
        check_zeroed(&agents, mr, length);
        region_works(&agents, mr, i);
        require(mr_info(mr).remote.rkey != last.rkey, "the key is that of the region before");
        last = mr_info(mr).remote;
        require_ok(sluice_agent_mr_release(mr, DEADLINE));
        require(agent_info(agents.owner).bytes == 0, "the quota has it still");
    }
    struct sluice_agent_mr *all = request(&agents, 3 * 65536, ACCESS_READ_WRITE, 0);
    require_ok(sluice_agent_mr_release(all, DEADLINE));
    struct sluice_agent_mr *small = request(&agents, 4096, ACCESS_READ_WRITE, 0);
    last = mr_info(small).remote;
    require_ok(sluice_agent_mr_release(small, DEADLINE));
    require_result(write_by_key(&agents, &last), -EACCES);
    small = request(&agents, 4096, ACCESS_READ_WRITE, 0);
    check_zeroed(&agents, small, 4096);
    require_ok(sluice_agent_mr_release(small, DEADLINE));
    agents_close(&agents);
}

/* An agent gives its peers messages, and no memory, unless its program allows that. */
TEST(no_memory_by_default)
{
    struct agents agents;
    char address[64];
    agents_open(&agents, NULL, NULL);
    struct sluice_agent_attr attr = {.size = sizeof(attr), .secret_file = ""};
    struct sluice_agent *owner = made(sluice_agent_open(agents.sides.pds[0], &attr));
    require_ok(sluice_agent_listen(owner, "127.0.0.1:0", NULL));
    require(sluice_agent_address(owner, address, sizeof(address)) > 0, "%s", sluice_last_error());
    struct sluice_agent_peer *peer =
        made(sluice_agent_connect(agents.holder, address, NULL, DEADLINE));
    require(peer_info(peer).quota == 0, "%llu", (unsigned long long)peer_info(peer).quota);
    require_null(sluice_agent_request_mr(peer, 1, SLUICE_ACCESS_REMOTE_READ, 0, DEADLINE), EDQUOT,
                 "lends no memory quota");
    require(agent_info(owner).denied == 1 && agent_info(owner).regions == 0, "it got some");
    require_ok(sluice_agent_send(peer, "word", 4, DEADLINE));
    struct sluice_agent_message *message = made(sluice_agent_receive(owner, NULL, DEADLINE));
    require_equal(sluice_agent_message_length(message), 4);
    sluice_agent_message_free(message);
    sluice_agent_peer_close(peer);
    sluice_agent_close(owner);
    agents_close(&agents);
}

int main(void)
{
    return run_tests("agent_regions", 60);
}
