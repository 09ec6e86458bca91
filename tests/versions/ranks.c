/* SPDX-License-Identifier: MIT */
/*
 * The ranks of a job. Those of even number have the library of side 0, and the others that of side
 * 1; tests/check-versions.sh starts them with the variables of a launcher.
 */
#include "talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a value: rank 0 alone sends the result, or from 32 ranks on it goes along a tree. */
#define SHORT 64
#define RELAYED 8192

static int check_all(const uint8_t *all, uint32_t ranks, size_t bytes, uint32_t salt,
                     const char *what)
{
    for (uint32_t i = 0; i < ranks; i++)
        if (!is_filled(all + i * bytes, bytes, (int)i, salt))
            return differ(what);
    return 0;
}

static int exchange_values(struct sluice_exchange *exchange, size_t bytes)
{
    struct sluice_exchange_info info = {.size = sizeof info};
    uint8_t *own, *all;
    int result = -1;

    if (sluice_exchange_query(exchange, &info) != 0)
        return complain("describe the exchange");
    own = calloc(info.ranks, bytes);
    all = calloc(info.ranks, bytes);
    if (own != NULL && all != NULL) {
        fill(own, bytes, (int)info.rank, 1);
        result = sluice_exchange_allgather(exchange, own, all, bytes, DEADLINE) == 0
                     ? check_all(all, info.ranks, bytes, 1, "allgather")
                     : complain("allgather");
        for (uint32_t i = 0; i < info.ranks; i++)
            fill(own + i * bytes, bytes, (int)info.rank, 2);
    }
    if (result == 0)
        result = sluice_exchange_alltoall(exchange, own, all, bytes, DEADLINE) == 0
                     ? check_all(all, info.ranks, bytes, 2, "alltoall")
                     : complain("alltoall");
    if (result == 0 && sluice_exchange_barrier(exchange, DEADLINE) != 0)
        result = complain("barrier");
    free(own);
    free(all);
    return result;
}

static int exchange(size_t bytes)
{
    struct sluice_exchange *opened = sluice_exchange_open(NULL, DEADLINE);
    int result;

    if (opened == NULL)
        return complain("open the exchange");
    result = exchange_values(opened, bytes);
    sluice_exchange_close(opened);
    return result;
}

int talk_exchange(void)
{
    return exchange(SHORT);
}

int talk_relay(void)
{
    return exchange(RELAYED);
}

/* Writes a value to each rank, and reads what each has written here. */
static int write_all(struct sluice_node *node, struct sluice_mr *mr, uint32_t rank, uint32_t ranks)
{
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    struct sluice_peer_remote_mr *remotes = calloc(ranks, sizeof *remotes);
    uint8_t *memory = sluice_mr_addr(mr);
    int result = 0;

    if (remotes == NULL || sluice_node_share_mr(node, mr, remotes, DEADLINE) != 0)
        return complain("share memory");
    fill(memory + (size_t)ranks * SHORT, SHORT, (int)rank, 7);
    for (uint32_t i = 0; i < ranks && result == 0; i++) {
        struct sluice_remote_mr place;
        struct sluice_sge sge;

        if (sluice_remote_mr_slice(&remotes[i].remote, (uint64_t)rank * SHORT, SHORT, &place) !=
                0 ||
            sluice_mr_sge(mr, (size_t)ranks * SHORT, SHORT, &sge) != 0 ||
            sluice_multichannel_write(all, i, &sge, 1, &place, DEADLINE) != 0)
            result = complain("write to a rank");
    }
    free(remotes);
    for (uint32_t algorithm = SLUICE_BARRIER_TREE;
         algorithm <= SLUICE_BARRIER_DISSEMINATION && result == 0; algorithm++)
        if (sluice_node_barrier(node, NULL, 0, algorithm, DEADLINE) != 0)
            result = complain("barrier");
    return result == 0 ? check_all(memory, ranks, SHORT, 7, "what the ranks wrote") : result;
}

static int use_node(struct sluice_node *node)
{
    uint32_t rank = (uint32_t)sluice_node_rank(node), ranks = (uint32_t)sluice_node_ranks(node);
    struct sluice_mr *mr = sluice_mr_alloc(sluice_node_pd(node), (size_t)(ranks + 1) * SHORT,
                                           SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE);
    uint8_t own[SHORT], *all = calloc(ranks, SHORT);
    int result;

    if (mr == NULL || all == NULL)
        return complain("memory");
    result = write_all(node, mr, rank, ranks);
    fill(own, SHORT, (int)rank, 9);
    if (result == 0)
        result = sluice_node_allgather(node, own, all, SHORT, DEADLINE) == 0
                     ? check_all(all, ranks, SHORT, 9, "allgather of the node")
                     : complain("allgather of the node");
    free(all);
    if (result == 0 && sluice_node_shutdown(node, DEADLINE) != 0)
        result = complain("shutdown");
    sluice_node_close(node);
    sluice_mr_deregister(mr);
    return result;
}

static int open_and_use(uint32_t connect)
{
    const struct sluice_node_attr attr = {.size = sizeof attr, .connect = connect};
    struct sluice_node *node = sluice_node_open(NULL, NULL, &attr, DEADLINE);

    return node != NULL ? use_node(node) : complain("open the node");
}

int talk_node(void)
{
    return open_and_use(SLUICE_NODE_CONNECT_ALL);
}

int talk_lazy(void)
{
    return open_and_use(SLUICE_NODE_CONNECT_LAZY);
}
