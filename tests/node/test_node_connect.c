/* SPDX-License-Identifier: MIT */
/*
 * Further multichannels of a node: arrivals are counted on one of them while the program posts
 * receives on the node's own. Lost ranks rejoin them, the failure of one rank is reported to all,
 * and running work is not disturbed.
 */
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define TAGS 4

/* A device without traffic to the peer notices the loss by keep-alive probes. */
static const struct sluice_channel_attr watchful = {
    .size = sizeof(watchful), .ack_timeout = 14, .keepalive = SLUICE_S(1)};
static const struct sluice_node_attr watchful_node = {.size = sizeof(watchful_node),
                                                      .channel = &watchful};
static const struct sluice_channel_attr counting = {
    .size = sizeof(counting), .ack_timeout = 14, .keepalive = SLUICE_S(1), .arrival_tags = TAGS};

/* Objects of a rank beside its node. */
struct second {
    struct sluice_multichannel *arrivals;
    struct memory memory; /* of each rank: what it wrote; and then what is sent, and received */
    uint64_t rounds;      /* of this multichannel */
};

static struct second seconds[RANKS_MAX];

#define ROOM 32

static void open_second(const struct ranks *ranks, uint32_t rank)
{
    struct second *second = &seconds[rank];

    second->arrivals = sluice_node_multichannel_open(ranks->nodes[rank], &counting, DEADLINE);
    require(second->arrivals, "rank %u: %s", rank, sluice_last_error());
    require(sluice_multichannel_peers(second->arrivals) == ranks->count, "%u peers",
            sluice_multichannel_peers(second->arrivals));
    memory_open(&second->memory, ranks->pds[rank], (size_t)3 * RANKS_MAX * ROOM);
    second->rounds = 0;
}

static void close_second(uint32_t rank)
{
    sluice_multichannel_close(seconds[rank].arrivals);
    memory_close(&seconds[rank].memory);
}

/* Writes to all with an immediate, and sends to all, which all of them receive. */
static void write_and_send(const struct ranks *ranks, uint32_t rank, uint32_t turn)
{
    struct second *second = &seconds[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(ranks->nodes[rank]);
    struct sluice_request sends[RANKS_MAX] = {{0}}, receives[RANKS_MAX] = {{0}};
    struct sluice_peer_remote_mr remotes[RANKS_MAX];
    const size_t sent_at = (size_t)RANKS_MAX * ROOM, received_at = 2 * sent_at;

    require_ok(sluice_node_share_mr(ranks->nodes[rank], second->memory.mr, remotes, DEADLINE));
    for (uint32_t i = 0; i < ranks->count; i++) {
        struct sluice_remote_mr there;

        pattern_fill(second->memory.bytes + sent_at + i * ROOM, ROOM,
                     pattern_key(rank, i, turn % TAGS));
        sends[i] = (struct sluice_request){.opcode = SLUICE_OP_SEND, .peer = i, .sge_count = 1};
        sends[i].sge = memory_sge(&second->memory, sent_at + i * ROOM, ROOM);
        receives[i] =
            (struct sluice_request){.opcode = SLUICE_OP_RECEIVE, .peer = i, .sge_count = 1};
        receives[i].sge = memory_sge(&second->memory, received_at + i * ROOM, ROOM);
        require_ok(sluice_remote_mr_slice(&remotes[i].remote, rank * ROOM, ROOM, &there));
        require_ok(sluice_multichannel_write_immediate(second->arrivals, i, &sends[i].sge, 1,
                                                       &there, turn % TAGS, DEADLINE));
    }
    require_ok(sluice_multichannel_scatter_gather(all, sends, ranks->count, receives, ranks->count,
                                                  DEADLINE, NULL));
}

static void exchange_once(const struct ranks *ranks, uint32_t rank)
{
    struct second *second = &seconds[rank];
    uint32_t turn = (uint32_t)second->rounds++;
    uint64_t count = 0;

    write_and_send(ranks, rank, turn);
    require_ok(sluice_multichannel_wait_arrivals(
        second->arrivals, turn % TAGS, (uint64_t)(turn / TAGS + 1) * ranks->count, DEADLINE));
    require_ok(sluice_multichannel_arrivals(second->arrivals, turn % TAGS, &count));
    require(count == (uint64_t)(turn / TAGS + 1) * ranks->count, "%llu", (unsigned long long)count);
    for (uint32_t i = 0; i < ranks->count; i++) {
        pattern_check(second->memory.bytes + i * ROOM, ROOM, pattern_key(i, rank, turn % TAGS));
        pattern_check(second->memory.bytes + (2 * RANKS_MAX + i) * ROOM, ROOM,
                      pattern_key(i, rank, turn % TAGS));
    }
    memset(second->memory.bytes, 0, second->memory.length);
    require_ok(sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, DEADLINE));
}

static void exchange(const struct ranks *ranks, uint32_t rank, int turns)
{
    for (int i = 0; i < turns; i++)
        exchange_once(ranks, rank);
}

static void use_both(struct ranks *ranks, uint32_t rank)
{
    struct sluice_sge sge;

    open_second(ranks, rank);
    exchange(ranks, rank, 10);
    /* Each of the two multichannels keeps its kind. */
    sge = memory_sge(&seconds[rank].memory, 0, 8);
    require_error(sluice_multichannel_receive(seconds[rank].arrivals, 0, &sge, 1, DEADLINE, NULL),
                  -EINVAL, "arrival");
    require_error(sluice_multichannel_wait_arrivals(sluice_node_multichannel(ranks->nodes[rank]), 0,
                                                    1, DEADLINE),
                  -EINVAL, "arrival_tags");
    require_ok(sluice_multichannel_flush(seconds[rank].arrivals, DEADLINE));
    require_ok(sluice_node_shutdown(ranks->nodes[rank], DEADLINE));
    close_second(rank);
}

TEST(receives_and_arrivals_of_one_node)
{
    static const uint32_t counts[] = {1, 2, 4};

    for (size_t i = 0; i < COUNT(counts); i++)
        ranks_try(counts[i], NULL, use_both);
}

/*
 * Several multichannels, closed in another order than they were made in, and one that outlives the
 * node.
 */
static void use_several(struct ranks *ranks, uint32_t rank)
{
    struct sluice_multichannel *more[3];

    for (int i = 0; i < 3; i++) {
        more[i] =
            sluice_node_multichannel_open(ranks->nodes[rank], i == 1 ? &counting : NULL, DEADLINE);
        require(more[i], "%s", sluice_last_error());
    }
    sluice_multichannel_close(more[1]);
    open_second(ranks, rank);
    exchange(ranks, rank, 3);
    sluice_multichannel_close(more[0]);
    require_ok(sluice_node_shutdown(ranks->nodes[rank], DEADLINE));
    sluice_node_close(ranks->nodes[rank]);
    ranks->nodes[rank] = NULL;
    sluice_multichannel_close(more[2]);
    close_second(rank);
}

TEST(as_many_as_wanted)
{
    ranks_try(3, NULL, use_several);
}

/*
 * Rank 1 asks for something impossible, and all ranks get the reason; then it asks for what is
 * possible.
 */
static void fail_alone(struct ranks *ranks, uint32_t rank)
{
    const struct sluice_channel_attr wrong = {.size = sizeof(wrong), .arrival_tags = UINT32_MAX};
    struct sluice_multichannel *none =
        sluice_node_multichannel_open(ranks->nodes[rank], rank == 1 ? &wrong : &counting, DEADLINE);
    int error = errno;

    require(!none, "rank %u is connected", rank);
    require(error == (rank == 1 ? EINVAL : ECANCELED), "%d: %s", error, sluice_last_error());
    require(strstr(sluice_last_error(), "arrival_tags"), "%s", sluice_last_error());
    require(rank == 1 || strstr(sluice_last_error(), "rank 1"), "%s", sluice_last_error());
    open_second(ranks, rank);
    exchange(ranks, rank, 2);
    close_second(rank);
}

TEST(failure_of_a_rank_fails_all)
{
    ranks_try(3, NULL, fail_alone);
}

/* Rank 1 does not come at first: the barriers break, and a reset repairs them. */
static void come_late(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];

    if (rank == 0)
        require_null(sluice_node_multichannel_open(node, NULL, SLUICE_MS(50)), ETIMEDOUT, "rank 1");
    ranks_meet(ranks);
    if (rank == 0)
        require_null(sluice_node_multichannel_open(node, NULL, DEADLINE), ENOTCONN, "reset");
    ranks_reset(ranks, rank);
    open_second(ranks, rank);
    exchange(ranks, rank, 2);
    close_second(rank);
}

TEST(deadlines)
{
    struct ranks ranks;
    struct sluice_multichannel *all;

    ranks_open(&ranks, 2, NULL);
    all = sluice_node_multichannel(ranks.nodes[0]);
    require_null(sluice_node_multichannel_open(ranks.nodes[0], NULL, 0), ETIMEDOUT,
                 "deadline is 0");
    require_error(sluice_node_multichannel_reconnect(ranks.nodes[0], all, 0), -ETIMEDOUT,
                  "deadline is 0");
    ranks_run(&ranks, come_late);
    ranks_close(&ranks);
}

TEST(wrong_arguments)
{
    struct ranks ranks;
    struct sluice_multichannel *all;
    struct sluice_prepared_multichannel *prepared;
    struct sluice_endpoint zeros = {{0}};

    ranks_open(&ranks, 2, NULL);
    all = sluice_node_multichannel(ranks.nodes[0]);
    require_null(sluice_node_multichannel_open(NULL, NULL, DEADLINE), EINVAL, "not a node");
    require_null(sluice_node_multichannel_open(ranks.nodes[0], NULL, -1), EINVAL, "deadline -1");
    require_error(sluice_node_multichannel_reconnect(NULL, all, DEADLINE), -EINVAL, "not a node");
    require_error(sluice_node_multichannel_reconnect(ranks.nodes[0], NULL, DEADLINE), -EINVAL,
                  "not a multichannel");
    require_error(sluice_node_multichannel_reconnect(ranks.nodes[0], all, -1), -EINVAL,
                  "deadline -1");
    require_error(sluice_node_multichannel_reconnect(ranks.nodes[0], all, DEADLINE), -EINVAL,
                  "belongs to a node");
    prepared = made(sluice_multichannel_prepare(ranks.pds[0], 1, NULL));
    all = made(sluice_prepared_multichannel_handshake(prepared, &zeros, 1));
    require_error(sluice_node_multichannel_reconnect(ranks.nodes[0], all, DEADLINE), -EINVAL,
                  "1 peers 2 ranks");
    sluice_multichannel_close(all);
    /* None of that has harmed the node. */
    ranks_run(&ranks, use_both);
    ranks_close(&ranks);
}

/* A node that takes the place of a rank's own; the second multichannel ends with the old one. */
static struct sluice_prepared_node *prepare_again(struct ranks *ranks, uint32_t rank)
{
    struct sluice_prepared_node *prepared;

    close_second(rank);
    sluice_node_close(ranks->nodes[rank]);
    ranks->nodes[rank] = NULL;
    prepared = made(sluice_node_prepare(ranks->pds[rank], rank, ranks->count, &watchful_node));
    require_ok(sluice_prepared_node_endpoints(prepared, ranks->made[rank], ranks->count));
    return prepared;
}

static void connect_again(struct ranks *ranks, uint32_t rank, struct sluice_prepared_node *prepared)
{
    struct sluice_node_endpoint remotes[RANKS_MAX];

    for (uint32_t i = 0; i < ranks->count; i++)
        remotes[i] = ranks->made[i][rank];
    ranks->nodes[rank] = made(sluice_prepared_node_handshake(prepared, remotes, ranks->count));
}

/* Connects a rank that came again, on all ranks: the others keep their counts. */
static void join_again(struct ranks *ranks, uint32_t rank, bool is_new)
{
    struct second *second = &seconds[rank];
    uint64_t before[TAGS], after = 0;

    if (is_new) {
        open_second(ranks, rank);
        return;
    }
    for (uint32_t tag = 0; tag < TAGS; tag++)
        require_ok(sluice_multichannel_arrivals(second->arrivals, tag, &before[tag]));
    require_ok(sluice_node_multichannel_reconnect(ranks->nodes[rank], second->arrivals, DEADLINE));
    for (uint32_t tag = 0; tag < TAGS; tag++) {
        require_ok(sluice_multichannel_arrivals(second->arrivals, tag, &after));
        require(after == before[tag], "tag %u: %llu", tag, (unsigned long long)after);
    }
}

/* Exchanges whole rounds of tags, so that a new rank uses the same tags as the others. */
static void go_on(struct ranks *ranks, uint32_t rank)
{
    exchange(ranks, rank, TAGS);
}

static void come_again(struct ranks *ranks, uint32_t rank)
{
    struct sluice_prepared_node *prepared = NULL;

    open_second(ranks, rank);
    for (uint32_t turn = 0; turn < 3; turn++) {
        bool lost = rank == (turn + 1) % 3;

        go_on(ranks, rank);
        ranks_meet(ranks);
        if (lost)
            prepared = prepare_again(ranks, rank);
        else
            require_ok(sluice_node_peer_reset(ranks->nodes[rank], (turn + 1) % 3,
                                              &ranks->made[rank][(turn + 1) % 3]));
        ranks_meet(ranks);
        if (lost)
            connect_again(ranks, rank, prepared);
        else
            require_ok(sluice_node_peer_handshake(ranks->nodes[rank], (turn + 1) % 3,
                                                  &ranks->made[(turn + 1) % 3][rank]));
        ranks_reset(ranks, rank);
        join_again(ranks, rank, lost);
    }
    go_on(ranks, rank);
    require_ok(sluice_node_shutdown(ranks->nodes[rank], DEADLINE));
    close_second(rank);
}

TEST(ranks_that_come_again)
{
    ranks_try(3, &watchful_node, come_again);
}

/* Only one side has lost the connection, and the other side reset its own, which is possible. */
static void lose_one(struct ranks *ranks, uint32_t rank)
{
    struct sluice_endpoint endpoint;

    open_second(ranks, rank);
    exchange(ranks, rank, TAGS);
    for (int turn = 0; turn < 3; turn++) {
        ranks_meet(ranks);
        if (rank == 0)
            require_ok(sluice_multichannel_peer_reset(seconds[0].arrivals, 1, &endpoint));
        if (rank == 1 && turn == 1)
            require_ok(sluice_multichannel_peer_reset(seconds[1].arrivals, 0, &endpoint));
        if (rank == 2 && turn == 2)
            require_ok(sluice_multichannel_peer_reset(seconds[2].arrivals, 2, &endpoint));
        ranks_meet(ranks);
        require_ok(sluice_node_multichannel_reconnect(ranks->nodes[rank], seconds[rank].arrivals,
                                                      DEADLINE));
        exchange(ranks, rank, TAGS);
    }
    close_second(rank);
}

TEST(connections_that_one_side_lost)
{
    ranks_try(3, &watchful_node, lose_one);
}

/* Rank 2 has a scope open: no connection is touched, and the next attempt succeeds. */
static void hold_scope(struct ranks *ranks, uint32_t rank)
{
    struct sluice_scope *scope = NULL;

    open_second(ranks, rank);
    if (rank == 2) {
        scope = made(sluice_multichannel_scope_begin(seconds[2].arrivals, DEADLINE));
        require_error(
            sluice_node_multichannel_reconnect(ranks->nodes[2], seconds[2].arrivals, DEADLINE),
            -EBUSY, "scope");
        require_ok(sluice_scope_end(scope, NULL));
    } else {
        require_error(sluice_node_multichannel_reconnect(ranks->nodes[rank], seconds[rank].arrivals,
                                                         DEADLINE),
                      -ECANCELED, "rank 2 scope");
    }
    exchange(ranks, rank, 1);
    require_ok(
        sluice_node_multichannel_reconnect(ranks->nodes[rank], seconds[rank].arrivals, DEADLINE));
    exchange(ranks, rank, 1);
    close_second(rank);
}

TEST(a_scope_that_is_open)
{
    ranks_try(3, NULL, hold_scope);
}

/* Over an exchange, each rank in a process of its own. */
static void take_part(struct rank *rank)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange_of_ranks = rank_exchange_open(rank);
    struct sluice_node *node = made(sluice_node_open(pd, exchange_of_ranks, NULL, DEADLINE));
    struct ranks ranks = {.count = 3};

    ranks.pds[rank->index] = pd;
    ranks.nodes[rank->index] = node;
    open_second(&ranks, rank->index);
    exchange(&ranks, rank->index, 20);
    require_ok(sluice_node_multichannel_reconnect(node, seconds[rank->index].arrivals, DEADLINE));
    exchange(&ranks, rank->index, 20);
    require_ok(sluice_node_shutdown(node, DEADLINE));
    close_second(rank->index);
    sluice_node_close(node);
    sluice_exchange_close(exchange_of_ranks);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(ranks_of_processes, .group = "processes", .unless = device_is_pretend)
{
    group_run(3, take_part, NULL, 60);
}

int main(void)
{
    return RUN_GROUPS("node_connect", {"self", WIRE_SELF, 120}, {"tcp", WIRE_TCP, 120},
                      {"processes", WIRE_SHM, 120});
}
