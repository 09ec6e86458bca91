/* SPDX-License-Identifier: MIT */
/*
 * Values from each rank of a node to each other one, beside allgathers and barriers, and as sizes
 * of the messages that follow; and the tests of values.c.
 */
#include "values.h"

const enum call call = ALLTOALL;

/* The three kinds of calls use the same slots, and barriers go between them. */
static void mix(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    uint64_t own = rank, all[RANKS_MAX];

    for (uint32_t turn = 0; turn < 30; turn++) {
        give(ranks, rank, turn * 16, turn, turn % 2 != 0);
        require_ok(sluice_node_allgather(node, &own, all, sizeof own, DEADLINE));
        for (uint32_t i = 0; i < ranks->count; i++)
            require(all[i] == i, "%llu of rank %u", (unsigned long long)all[i], i);
        if (turn % 3 == 0)
            require_ok(sluice_node_barrier(node, NULL, 0, turn % 4, DEADLINE));
        give(ranks, rank, 8, turn, false);
        require_ok(sluice_node_share_mr(node, NULL, remotes, DEADLINE));
    }
    require_ok(sluice_node_shutdown(node, DEADLINE));
}

TEST(beside_other_calls)
{
    ranks_try(4, NULL, mix);
}

#define MOST 300

/* Each message has a different size, which the receiver knows before it posts the receive. */
static void send_what_was_told(struct ranks *ranks, uint32_t rank, uint32_t turn,
                               struct memory *memory)
{
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct sluice_request requests[2 * RANKS_MAX] = {{0}};
    struct sluice_completion results[2 * RANKS_MAX];
    uint32_t own[RANKS_MAX], theirs[RANKS_MAX], count = ranks->count;

    for (uint32_t i = 0; i < count; i++)
        own[i] = (turn * 37 + rank * 11 + i * 101) % (MOST + 1);
    require_ok(sluice_node_alltoall(ranks->nodes[rank], own, theirs, sizeof own[0], DEADLINE));
    for (uint32_t i = 0; i < count; i++) {
        require(theirs[i] == (turn * 37 + i * 11 + rank * 101) % (MOST + 1), "%u of rank %u",
                theirs[i], i);
        requests[i] = (struct sluice_request){.opcode = SLUICE_OP_RECEIVE, .peer = i};
        requests[i].sge = memory_sge(memory, i * MOST, theirs[i]);
        requests[count + i] = (struct sluice_request){.opcode = SLUICE_OP_SEND, .peer = i};
        requests[count + i].sge = memory_sge(memory, (count + i) * MOST, own[i]);
        requests[i].sge_count = requests[count + i].sge_count = 1;
        pattern_fill(memory->bytes + (count + i) * MOST, own[i], pattern_key(rank, i, turn));
    }
    require_ok(sluice_multichannel_submit(all, requests, 2 * count, DEADLINE, results));
    for (uint32_t i = 0; i < count; i++) {
        require(results[i].bytes == theirs[i], "%llu bytes", (unsigned long long)results[i].bytes);
        pattern_check(memory->bytes + i * MOST, theirs[i], pattern_key(i, rank, turn));
    }
}

static void send_sizes_first(struct ranks *ranks, uint32_t rank)
{
    struct memory memory;

    memory_open(&memory, ranks->pds[rank], 2 * RANKS_MAX * MOST);
    for (uint32_t turn = 0; turn < 20; turn++)
        send_what_was_told(ranks, rank, turn, &memory);
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(sizes_before_messages)
{
    ranks_try(4, NULL, send_sizes_first);
}

TEST(arguments)
{
    struct ranks ranks;
    uint8_t own[16] = {0}, all[16];

    ranks_open(&ranks, 2, NULL);
    struct sluice_node *node = ranks.nodes[0];
    require_error(sluice_node_alltoall(NULL, own, all, 8, DEADLINE), -EINVAL, "not a node");
    require_error(sluice_node_alltoall(node, NULL, all, 8, DEADLINE), -EINVAL, "8 bytes NULL");
    require_error(sluice_node_alltoall(node, own, NULL, 8, DEADLINE), -EINVAL, "8 bytes NULL");
    require_error(sluice_node_alltoall(node, own, all, SLUICE_NODE_ALLTOALL_BYTES + 1, DEADLINE),
                  -EINVAL, "65537 bytes 0 to 65536");
    require_error(sluice_node_alltoall(node, own, all, 8, -1), -EINVAL, "deadline -1");
    require_error(sluice_node_alltoall(node, own, all, 8, 0), -ETIMEDOUT, "deadline is 0");
    ranks_run(&ranks, still_works);
    ranks_close(&ranks);
}

int main(void)
{
    return run_values("alltoall");
}
