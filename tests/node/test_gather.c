/* SPDX-License-Identifier: MIT */
/*
 * Values and handles that each rank of a node gives to all, beside barriers and the program's own
 * messages; and the tests of values.c.
 */
#include "values.h"

const enum call call = ALLGATHER;

/* Barriers of all and of some between the calls, and a message to each rank around them. */
static void mix(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t pairs[2][2] = {{0, 1}, {2, 3}};
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    uint32_t next = (rank + 1) % ranks->count, last = (rank + ranks->count - 1) % ranks->count;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 128);
    struct sluice_sge in = memory_sge(&memory, 0, 64), out = memory_sge(&memory, 64, 64);
    struct sluice_handle handle;
    struct sluice_completion completion;
    for (uint32_t turn = 0; turn < 30; turn++) {
        require_ok(sluice_multichannel_post_receive(all, last, &in, 1, DEADLINE, &handle));
        give(ranks, rank, turn * 16, turn, false);
        require_ok(sluice_node_barrier(node, pairs[rank / 2], 2, turn % 4, DEADLINE));
        give(ranks, rank, 8, turn, true);
        require_ok(sluice_node_barrier(node, NULL, 0, (turn + 1) % 4, DEADLINE));
        pattern_fill(memory.bytes + 64, 64, pattern_key(rank, next, turn));
        require_ok(sluice_multichannel_send(all, next, &out, 1, DEADLINE));
        require_ok(sluice_multichannel_wait(all, &handle, DEADLINE, &completion));
        require(completion.bytes == 64, "%llu bytes", (unsigned long long)completion.bytes);
        pattern_check(memory.bytes, 64, pattern_key(last, rank, turn));
    }
    memory_close(&memory);
    require_ok(sluice_node_shutdown(node, DEADLINE));
}

TEST(beside_barriers_and_messages)
{
    ranks_try(4, NULL, mix);
}

/* An allgather loses no unread result. */
static void leave_results(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct sluice_handle handles[2];
    struct sluice_completion completion;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    require_ok(sluice_node_share_mr(ranks->nodes[rank], memory.mr, remotes, DEADLINE));
    require_ok(sluice_multichannel_flush(all, DEADLINE));
    struct sluice_sge sge = memory_sge(&memory, 0, 8);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t peer = (rank + 1 + i) % 3;
        require_ok(sluice_multichannel_post_write(all, peer, &sge, 1, &remotes[peer].remote,
                                                  DEADLINE, &handles[i]));
    }
    for (uint32_t turn = 0; turn < 10; turn++) {
        give(ranks, rank, 500, turn, false);
    }
    for (uint32_t i = 0; i < 2; i++) {
        require_ok(sluice_multichannel_wait(all, &handles[i], DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(results_left_for_later)
{
    const struct sluice_channel_attr channel = {.size = sizeof(channel), .send_depth = 1};
    const struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    ranks_try(3, &attr, leave_results);
}

/* With the handles each rank writes its block into the memory of all that share a region. */
static void write_to_all(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    bool shares = rank != 1 || ranks->count == 1;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], (RANKS_MAX + 1) * 64);
    memset(remotes, 0xff, sizeof(remotes));
    for (int turn = 0; turn < 3; turn++) {
        require_ok(sluice_node_share_mr(node, shares ? memory.mr : NULL, remotes, DEADLINE));
    }
    struct sluice_sge sge = memory_sge(&memory, RANKS_MAX * 64, 64);
    pattern_fill(memory.bytes + RANKS_MAX * 64, 64, pattern_key(rank, 0, 0));
    for (uint32_t i = 0; i < ranks->count; i++) {
        struct sluice_remote_mr slice;
        require(remotes[i].peer == i && remotes[i].generation == 0, "handle %u", i);
        if (i == 1) {
            require(remotes[i].remote.length == 0 && remotes[i].remote.rkey == 0, "an empty one");
            continue;
        }
        require(remotes[i].remote.length == memory.length, "handle %u", i);
        require_ok(sluice_remote_mr_slice(&remotes[i].remote, rank * 64, 64, &slice));
        require_ok(sluice_multichannel_write(all, i, &sge, 1, &slice, DEADLINE));
    }
    require_ok(sluice_node_barrier(node, NULL, 0, 0, DEADLINE));
    for (uint32_t i = 0; i < ranks->count && shares; i++) {
        pattern_check(memory.bytes + i * 64, 64, pattern_key(i, 0, 0));
    }
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(shared_regions)
{
    for (uint32_t count = 1; count <= RANKS_MAX; count += count < 3 ? 1 : 5) {
        ranks_try(count, NULL, write_to_all);
    }
}

TEST(arguments)
{
    struct ranks ranks;
    struct sluice_peer_remote_mr remotes[2];
    uint8_t own[8] = {0}, all[16];
    ranks_open(&ranks, 2, NULL);
    struct sluice_node *node = ranks.nodes[0];
    require_error(sluice_node_allgather(NULL, own, all, 8, DEADLINE), -EINVAL, "not a node");
    require_error(sluice_node_allgather(node, NULL, all, 8, DEADLINE), -EINVAL, "8 bytes NULL");
    require_error(sluice_node_allgather(node, own, NULL, 8, DEADLINE), -EINVAL, "8 bytes NULL");
    require_error(sluice_node_allgather(node, own, all, SLUICE_NODE_ALLGATHER_BYTES + 1, DEADLINE),
                  -EINVAL, "65537 bytes 0 to 65536");
    require_error(sluice_node_allgather(node, own, all, 8, -1), -EINVAL, "deadline -1");
    require_error(sluice_node_allgather(node, own, all, 8, 0), -ETIMEDOUT, "deadline is 0");
    require_error(sluice_node_share_mr(node, NULL, remotes, 0), -ETIMEDOUT, "deadline is 0");
    require_error(sluice_node_share_mr(NULL, NULL, remotes, DEADLINE), -EINVAL, "not a node");
    require_error(sluice_node_share_mr(node, NULL, NULL, DEADLINE), -EINVAL, "remotes NULL");
    require_error(sluice_node_share_mr(node, NULL, remotes, -1), -EINVAL, "deadline -1");
    require_error(
        sluice_node_share_mr(node, (const struct sluice_mr *)(const void *)node, remotes, DEADLINE),
        -EINVAL, "region");
    ranks_run(&ranks, still_works);
    ranks_close(&ranks);
}

TEST(handles_that_are_none)
{
    struct ranks ranks;
    struct sluice_peer_remote_mr remotes[2];
    const uint64_t handle[6] = {UINT64_C(1) << 32 | 1, UINT64_C(2) << 56 | 32};
    ranks_open(&ranks, 2, NULL);
    ranks_forge(&ranks, SLOTS_AT + SLOT_BYTES, handle, 6);
    require_error(sluice_node_share_mr(ranks.nodes[0], NULL, remotes, DEADLINE), -EPROTO,
                  "rank 1 shares no valid handle");
    ranks_close(&ranks);
}

int main(void)
{
    return run_values("gather");
}
