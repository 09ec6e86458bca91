/* SPDX-License-Identifier: MIT */
#include "ranks.h"

#include <endian.h>
#include <stdlib.h>

#include "pair.h"

static void prepare_all(struct ranks *ranks, const struct sluice_node_attr *attr,
                        struct sluice_prepared_node *prepared[RANKS_MAX])
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        bool own = i == 0 || current_wire() == WIRE_TCP;
        ranks->contexts[i] = own ? open_context() : ranks->contexts[0];
        ranks->pds[i] = made(sluice_pd_alloc(ranks->contexts[i]));
        prepared[i] = sluice_node_prepare(ranks->pds[i], i, ranks->count, attr);
        require(prepared[i], "rank %u: %s", i, sluice_last_error());
        require_ok(sluice_prepared_node_endpoints(prepared[i], ranks->made[i], ranks->count));
    }
}

void ranks_open(struct ranks *ranks, uint32_t count, const struct sluice_node_attr *attr)
{
    struct sluice_prepared_node *prepared[RANKS_MAX];
    struct sluice_node_endpoint remotes[RANKS_MAX];
    require(count <= RANKS_MAX, "%u ranks", count);
    memset(ranks, 0, sizeof(*ranks));
    ranks->count = count;
    require(pthread_barrier_init(&ranks->meeting, NULL, count) == 0, "%u ranks", count);
    prepare_all(ranks, attr, prepared);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < count; j++) {
            remotes[j] = ranks->made[j][i];
        }
        ranks->nodes[i] = sluice_prepared_node_handshake(prepared[i], remotes, count);
        require(ranks->nodes[i], "rank %u: %s", i, sluice_last_error());
    }
}

void ranks_close(struct ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->count; i++) {
        sluice_node_close(ranks->nodes[i]);
    }
    for (uint32_t i = 0; i < ranks->count; i++) {
        sluice_pd_free(ranks->pds[i]);
        if (i == 0 || ranks->contexts[i] != ranks->contexts[0]) {
            sluice_context_close(ranks->contexts[i]);
        }
    }
    pthread_barrier_destroy(&ranks->meeting);
}

struct hand {
    struct ranks *ranks;
    uint32_t rank;
    void (*function)(struct ranks *ranks, uint32_t rank);
};

static void *lend(void *argument)
{
    const struct hand *hand = argument;
    hand->function(hand->ranks, hand->rank);
    return NULL;
}

void ranks_run(struct ranks *ranks, void (*function)(struct ranks *ranks, uint32_t rank))
{
    struct hand hands[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    for (uint32_t i = 0; i < ranks->count; i++) {
        hands[i] = (struct hand){ranks, i, function};
        require(pthread_create(&threads[i], NULL, lend, &hands[i]) == 0, "rank %u", i);
    }
    for (uint32_t i = 0; i < ranks->count; i++) {
        pthread_join(threads[i], NULL);
    }
}

void ranks_try(uint32_t count, const struct sluice_node_attr *attr,
               void (*function)(struct ranks *ranks, uint32_t rank))
{
    struct ranks ranks;
    ranks_open(&ranks, count, attr);
    ranks_run(&ranks, function);
    ranks_close(&ranks);
}

void ranks_meet(struct ranks *ranks)
{
    pthread_barrier_wait(&ranks->meeting);
}

void ranks_reset(struct ranks *ranks, uint32_t rank)
{
    ranks_meet(ranks);
    require_ok(sluice_node_barrier_reset(ranks->nodes[rank]));
    ranks_meet(ranks);
}

void ranks_forge(struct ranks *ranks, uint32_t at, const uint64_t *words, uint32_t count)
{
    const uint8_t *bytes = ranks->made[0][1].bytes;
    struct sluice_remote_mr remote = {.length = 8 * count};
    struct memory memory;
    for (int i = 20; i < 24; i++) {
        remote.rkey = remote.rkey << 8 | bytes[i];
    }
    for (int i = 24; i < 32; i++) {
        remote.addr = remote.addr << 8 | bytes[i];
    }
    remote.addr += at;
    memory_open(&memory, ranks->pds[1], 8 * count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word = htobe64(words[i]);
        memcpy(memory.bytes + 8 * i, &word, 8);
    }
    struct sluice_sge sge = memory_sge(&memory, 0, 8 * count);
    require_ok(sluice_multichannel_write(sluice_node_multichannel(ranks->nodes[1]), 0, &sge, 1,
                                         &remote, DEADLINE));
    memory_close(&memory);
}

void node_endpoint_sign(struct sluice_node_endpoint *endpoint)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < sizeof(*endpoint) - 4; i++) {
        hash = (hash ^ endpoint->bytes[i]) * UINT32_C(16777619);
    }
    for (int i = 0; i < 4; i++) {
        endpoint->bytes[sizeof(*endpoint) - 4 + (size_t)i] = (uint8_t)(hash >> (24 - 8 * i));
    }
}

/* More bytes than one piece of an allgather. */
#define VALUE 600

void node_meets(struct sluice_node *node, const uint32_t *ranks, uint32_t count)
{
    for (uint32_t algorithm = 0; algorithm <= 3; algorithm++) {
        require_ok(sluice_node_barrier(node, ranks, count, algorithm, DEADLINE));
    }
}

static void values_pass(struct sluice_node *node)
{
    uint32_t rank = sluice_node_rank(node), ranks = sluice_node_ranks(node);
    uint8_t own[VALUE], all[RANKS_MAX * VALUE];
    for (uint64_t round = 0; round < 3; round++) {
        pattern_fill(own, VALUE, pattern_key(rank, 0, round));
        require_ok(sluice_node_allgather(node, own, all, VALUE, DEADLINE));
        for (uint32_t i = 0; i < ranks; i++) {
            pattern_check(all + (size_t)i * VALUE, VALUE, pattern_key(i, 0, round));
        }
    }
}

/* Each rank writes its number to its own place in the memory of each other rank. */
static void shares_pass(struct sluice_node *node, struct sluice_pd *pd)
{
    uint32_t rank = sluice_node_rank(node), ranks = sluice_node_ranks(node);
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    struct sluice_remote_mr place;
    struct memory memory;
    memory_open(&memory, pd, 8 * (size_t)ranks + 8);
    memset(memory.bytes, 0, 8 * (size_t)ranks);
    memset(memory.bytes + 8 * (size_t)ranks, (int)rank + 1, 8);
    struct sluice_sge own = memory_sge(&memory, 8 * (size_t)ranks, 8);
    require_ok(sluice_node_share_mr(node, memory.mr, remotes, DEADLINE));
    for (uint32_t i = 0; i < ranks; i++) {
        require_ok(sluice_remote_mr_slice(&remotes[i].remote, 8 * (size_t)rank, 8, &place));
        require_ok(sluice_multichannel_write(sluice_node_multichannel(node), i, &own, 1, &place,
                                             DEADLINE));
    }
    require_ok(sluice_node_barrier(node, NULL, 0, 0, DEADLINE));
    for (uint32_t i = 0; i < ranks; i++) {
        value_check(memory.bytes + 8 * (size_t)i, 8, (uint8_t)(i + 1));
    }
    require_ok(sluice_node_barrier(node, NULL, 0, 0, DEADLINE));
    memory_close(&memory);
}

/* Each rank sends to all and receives from all at once. */
static void messages_pass(struct sluice_node *node, struct sluice_pd *pd)
{
    uint32_t rank = sluice_node_rank(node), ranks = sluice_node_ranks(node);
    struct sluice_sge sges[2 * RANKS_MAX];
    struct sluice_request sends[RANKS_MAX], receives[RANKS_MAX];
    struct memory memory;
    memory_open(&memory, pd, 8 * (size_t)ranks + 8);
    memset(memory.bytes + 8 * (size_t)ranks, (int)rank + 1, 8);
    for (uint32_t i = 0; i < ranks; i++) {
        sges[i] = memory_sge(&memory, 8 * (size_t)ranks, 8);
        sges[RANKS_MAX + i] = memory_sge(&memory, 8 * (size_t)i, 8);
        sends[i] = request_of(SLUICE_OP_SEND, i, &sges[i]);
        receives[i] = request_of(SLUICE_OP_RECEIVE, i, &sges[RANKS_MAX + i]);
    }
    require_ok(sluice_multichannel_scatter_gather(sluice_node_multichannel(node), sends, ranks,
                                                  receives, ranks, DEADLINE, NULL));
    for (uint32_t i = 0; i < ranks; i++) {
        value_check(memory.bytes + 8 * (size_t)i, 8, (uint8_t)(i + 1));
    }
    memory_close(&memory);
}

void node_works(struct sluice_node *node, struct sluice_pd *pd)
{
    node_meets(node, NULL, 0);
    values_pass(node);
    shares_pass(node, pd);
    messages_pass(node, pd);
}

static int allgather(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    struct rank *rank = argument;
    uint8_t *blocks = calloc(rank->size, bytes + 1);
    require(blocks, "%zu bytes", bytes);
    (void)deadline;
    for (uint32_t i = 0; i < rank->size; i++) {
        memcpy(blocks + i * bytes, own, bytes);
    }
    rank_exchange(rank, blocks, all, bytes);
    free(blocks);
    return 0;
}

static int alltoall(void *argument, const void *to, void *from, size_t bytes, int64_t deadline)
{
    (void)deadline;
    rank_exchange(argument, to, from, bytes);
    return 0;
}

static int barrier(void *argument, int64_t deadline)
{
    (void)deadline;
    rank_barrier(argument);
    return 0;
}

struct sluice_exchange *rank_exchange_open(struct rank *rank)
{
    const struct sluice_exchange_provider provider = {
        .size = sizeof(provider), .allgather = allgather, .alltoall = alltoall, .barrier = barrier};
    return made(sluice_exchange_wrap(&provider, rank, rank->index, rank->size));
}
