/* SPDX-License-Identifier: MIT */
/*
 * Lazy nodes with a limit of connections: idle ones are closed and made anew without notice, no
 * message is lost or comes twice, and a connection that either side uses stays.
 */
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define LONG SLUICE_S(30)

static struct sluice_node_attr limited(uint32_t most)
{
    return (struct sluice_node_attr){.size = sizeof(struct sluice_node_attr),
                                     .connect = SLUICE_NODE_CONNECT_LAZY,
                                     .max_connections = most};
}

static struct sluice_multichannel *all_of(const struct ranks *ranks, uint32_t rank)
{
    return sluice_node_multichannel(ranks->nodes[rank]);
}

static bool has_connection(struct sluice_multichannel *all, uint32_t peer)
{
    struct sluice_channel_info info = {.size = sizeof(info)};
    require_ok(sluice_multichannel_peer_query(all, peer, &info));
    return info.level != 0;
}

static uint32_t count_connections(struct sluice_multichannel *all)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sluice_multichannel_peers(all); i++) {
        count += has_connection(all, i);
    }
    return count;
}

static struct sluice_remote_mr shared[RANKS_MAX];

static void read_from(const struct ranks *ranks, uint32_t rank, const struct memory *memory)
{
    struct sluice_sge sge = memory_sge(memory, 0, 8);
    require_ok(sluice_multichannel_read(all_of(ranks, 0), rank, &sge, 1, &shared[rank], LONG));
    value_check(memory->bytes, 8, (uint8_t)(rank + 1));
}

static void share(struct ranks *ranks, uint32_t rank, struct memory *memory)
{
    memory_open(memory, ranks->pds[rank], 16);
    memset(memory->bytes, (int)rank + 1, 16);
    shared[rank] = memory_remote(memory, 8, 8);
    ranks_meet(ranks);
}

/* Barriers, gathers and reads with all ranks, over few connections. */
static void work_with_few(struct ranks *ranks, uint32_t rank)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    struct memory memory;
    share(ranks, rank, &memory);
    struct sluice_sge sge = memory_sge(&memory, 0, 8);
    for (uint32_t turn = 0; turn < 2 * ranks->count; turn++) {
        uint32_t other = (rank + turn) % ranks->count;
        uint8_t all[RANKS_MAX];
        node_meets(ranks->nodes[rank], NULL, 0);
        require_ok(sluice_node_allgather(ranks->nodes[rank], &turn, all, 1, LONG));
        value_check(all, ranks->count, (uint8_t)turn);
        require_ok(
            sluice_multichannel_read(all_of(ranks, rank), other, &sge, 1, &shared[other], LONG));
        value_check(memory.bytes, 8, (uint8_t)(other + 1));
    }
    uint32_t count = count_connections(all_of(ranks, rank));
    require(count < ranks->count, "%u connections", count);
    require_ok(sluice_multichannel_counters(all_of(ranks, rank), &counters));
    require(counters.resets == 0, "%llu resets", (unsigned long long)counters.resets);
    for (uint32_t i = 0; i < ranks->count; i++) {
        require_result(sluice_multichannel_peer_state(all_of(ranks, rank), i), SLUICE_STATE_READY);
    }
    ranks_meet(ranks);
    memory_close(&memory);
    require_ok(sluice_node_shutdown(ranks->nodes[rank], LONG));
}

TEST(few_connections_are_enough)
{
    static const uint32_t limits[] = {1, 2, 3};
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct sluice_node_attr attr = limited(limits[i]);
        ranks_try(6, &attr, work_with_few);
    }
}

/* Rank 0 has two connections; that of rank 2 is not used for longest, then that of rank 1. */
static void use_in_turns(struct ranks *ranks, uint32_t rank)
{
    struct memory memory;
    share(ranks, rank, &memory);
    for (int turn = 0; rank == 0 && turn < 3; turn++) {
        static const uint32_t order[] = {1, 2, 1, 3};
        for (size_t i = 0; i < COUNT(order); i++) {
            read_from(ranks, order[i], &memory);
        }
        require(has_connection(all_of(ranks, 0), 1) && has_connection(all_of(ranks, 0), 3),
                "the last two are connected");
        require(!has_connection(all_of(ranks, 0), 2), "rank 2 was not used for longest");
        require_result(sluice_multichannel_peer_state(all_of(ranks, 0), 2), SLUICE_STATE_READY);
    }
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(the_one_that_was_not_used_for_longest_is_closed)
{
    struct sluice_node_attr attr = limited(2);
    ranks_try(4, &attr, use_in_turns);
}

/* Receives of either side keep a connection. A request that needs another one is late. */
static void keep_in_use(struct ranks *ranks, uint32_t rank)
{
    struct sluice_completion completion;
    struct memory memory;
    share(ranks, rank, &memory);
    struct sluice_sge sge = memory_sge(&memory, 0, 8), more = memory_sge(&memory, 8, 8);
    if (rank == 0) {
        read_from(ranks, 1, &memory);
        read_from(ranks, 2, &memory);
        require_ok(sluice_multichannel_post_receive(all_of(ranks, 0), 2, &more, 1, LONG, NULL));
    }
    ranks_meet(ranks);
    if (rank == 1) {
        require_ok(sluice_multichannel_post_receive(all_of(ranks, 1), 0, &sge, 1, LONG, NULL));
    }
    ranks_meet(ranks);
    if (rank == 0) {
        require_error(
            sluice_multichannel_read(all_of(ranks, 0), 3, &sge, 1, &shared[3], SLUICE_MS(300)),
            -ETIMEDOUT, "max_connections idle");
    }
    ranks_meet(ranks);
    if (rank == 0) {
        require_ok(sluice_multichannel_send(all_of(ranks, 0), 1, &sge, 1, LONG));
        require_result(sluice_multichannel_next(all_of(ranks, 0), LONG, &completion), 0);
    } else if (rank == 1) {
        require_result(sluice_multichannel_next(all_of(ranks, 1), LONG, &completion), 0);
    } else if (rank == 2) {
        require_ok(sluice_multichannel_send(all_of(ranks, 2), 0, &sge, 1, LONG));
    }
    require(rank > 1 || completion.error == 0, "rank %u: %d", rank, completion.error);
    ranks_meet(ranks);
    /* Now there is room, and the rank whose request was late is reached anew. */
    if (rank == 0 || rank == 3) {
        const uint32_t other = 3 - rank;
        require_ok(sluice_node_reach(ranks->nodes[rank], &other, 1, LONG));
    }
    if (rank == 0) {
        read_from(ranks, 3, &memory);
    }
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(connections_that_either_side_uses_stay)
{
    struct sluice_node_attr attr = limited(2);
    ranks_try(4, &attr, keep_in_use);
}

/* The result of a request is found after its connection was closed, and so is a list prepared. */
static void keep_results(struct ranks *ranks, uint32_t rank)
{
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct memory memory;
    share(ranks, rank, &memory);
    if (rank == 0) {
        struct sluice_sge sge = memory_sge(&memory, 0, 8);
        struct sluice_request request = request_of(SLUICE_OP_READ, 1, &sge);
        request.remote = shared[1];
        struct sluice_list *list =
            made(sluice_multichannel_list_prepare(all_of(ranks, 0), &request, 1));
        require_ok(
            sluice_multichannel_post_read(all_of(ranks, 0), 1, &sge, 1, &shared[1], LONG, &handle));
        require_ok(sluice_multichannel_flush(all_of(ranks, 0), LONG));
        read_from(ranks, 2, &memory);
        require(!has_connection(all_of(ranks, 0), 1), "its connection is closed");
        require_result(sluice_multichannel_wait(all_of(ranks, 0), &handle, 0, &completion), 0);
        require(completion.error == 0 && completion.peer == 1, "%d", completion.error);
        require_ok(sluice_list_submit(list, LONG, NULL));
        value_check(memory.bytes, 8, 2);
        require(has_connection(all_of(ranks, 0), 1), "the list has connected it");
        sluice_list_free(list);
    }
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(results_outlive_their_connection)
{
    struct sluice_node_attr attr = limited(1);
    ranks_try(3, &attr, keep_results);
}

/* The rank makes no call meanwhile, and has not polled what it posted. */
static void read_from_busy(struct ranks *ranks, uint32_t rank)
{
    struct memory memory;
    share(ranks, rank, &memory);
    struct sluice_sge sge = memory_sge(&memory, 0, 8);
    if (rank == 0) {
        require_ok(
            sluice_multichannel_post_read(all_of(ranks, 0), 1, &sge, 1, &shared[1], LONG, NULL));
        require_ok(
            sluice_multichannel_post_read(all_of(ranks, 0), 2, &sge, 1, &shared[2], LONG, NULL));
    }
    for (uint32_t turn = 1; turn < 2 * ranks->count; turn++) {
        if (rank > 0 && rank == turn % ranks->count) {
            require_ok(sluice_multichannel_read(all_of(ranks, rank), 0, &sge, 1, &shared[0], LONG));
            value_check(memory.bytes, 8, 1);
        }
        ranks_meet(ranks);
    }
    if (rank == 0) {
        require_ok(sluice_multichannel_flush(all_of(ranks, 0), LONG));
        require_result(sluice_multichannel_peer_state(all_of(ranks, 0), 1), SLUICE_STATE_READY);
    }
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(a_rank_that_makes_no_calls_closes_connections)
{
    struct sluice_node_attr attr = limited(1);
    ranks_try(4, &attr, read_from_busy);
}

/*
 * Each pair of ranks counts its messages. Ranks that are ahead hold two connections of one that is
 * not: by a send, and by a receive. So fewer than three would not do.
 */
static void pass_numbers(struct sluice_node *node, struct sluice_pd *pd, uint32_t rounds)
{
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    uint32_t rank = (uint32_t)sluice_node_rank(node), count = (uint32_t)sluice_node_ranks(node);
    uint64_t sent[RANKS_MAX] = {0}, received[RANKS_MAX] = {0}, value;
    struct memory memory;
    memory_open(&memory, pd, 16);
    struct sluice_sge from = memory_sge(&memory, 0, 8), to = memory_sge(&memory, 8, 8);
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t step = 1 + round * 7 % (count - 1);
        uint32_t next = (rank + step) % count, before = (rank + count - step) % count;
        struct sluice_request requests[] = {request_of(SLUICE_OP_RECEIVE, before, &to),
                                            request_of(SLUICE_OP_SEND, next, &from)};
        value = (uint64_t)rank << 32 | sent[next]++;
        memcpy(memory.bytes, &value, 8);
        /* No rank is in another round, so that each send meets its receive. */
        require_ok(sluice_node_barrier(node, NULL, 0, 0, LONG));
        int result = sluice_multichannel_submit(all, requests, 2, LONG, NULL);
        require(result == 0, "rank %u, round %u: %d: %s", rank, round, result, sluice_last_error());
        memcpy(&value, memory.bytes + 8, 8);
        require(value == ((uint64_t)before << 32 | received[before]),
                "round %u: %#llx of rank %u, where number %llu is due", round,
                (unsigned long long)value, before, (unsigned long long)received[before]);
        received[before]++;
    }
    memory_close(&memory);
}

static void pass_in_thread(struct ranks *ranks, uint32_t rank)
{
    pass_numbers(ranks->nodes[rank], ranks->pds[rank], short_run() ? 20 : 60);
    ranks_meet(ranks);
}

TEST(no_message_is_lost_or_comes_twice)
{
    for (uint32_t most = 3; most <= 5; most++) {
        struct sluice_node_attr attr = limited(most);
        ranks_try(7, &attr, pass_in_thread);
    }
}

static void pass_in_process(struct rank *rank)
{
    struct sluice_node_attr attr = limited(3);
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    struct sluice_node *node = sluice_node_open(pd, exchange, &attr, LONG);
    require(node, "rank %u: %s", rank->index, sluice_last_error());
    sluice_exchange_close(exchange);
    node_meets(node, NULL, 0);
    pass_numbers(node, pd, short_run() ? 20 : 60);
    require_ok(sluice_node_shutdown(node, LONG));
    sluice_node_close(node);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(processes_with_few_connections, .group = "processes", .unless = device_is_pretend)
{
    group_run(6, pass_in_process, NULL, 100);
}

TEST(arguments)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_node_attr attr = limited(2);
    attr.connect = SLUICE_NODE_CONNECT_ALL;
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "max_connections lazy");
    sluice_pd_free(pd);
    sluice_context_close(context);
}

int main(void)
{
    return RUN_GROUPS("node_limit", {"self", WIRE_SELF, 120}, {"tcp", WIRE_TCP, 120},
                      {"processes", WIRE_SHM, 240});
}
