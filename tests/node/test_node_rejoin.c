/* SPDX-License-Identifier: MIT */
/*
 * Ranks that are lost and come again, to the same nodes of the others: barriers, allgathers and
 * messages of all work as before, nothing of the old rank has an effect, and impossible requests
 * are refused.
 */
#include <endian.h>
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

/* A device without traffic to the peer notices the loss by keep-alive probes. */
static const struct sluice_channel_attr watchful = {
    .size = sizeof(watchful), .ack_timeout = 14, .keepalive = SLUICE_S(1)};
static const struct sluice_node_attr watchful_node = {.size = sizeof(watchful_node),
                                                      .channel = &watchful};
/* A lazy node makes its connections anew when they are used. */
static const struct sluice_node_attr lazy_node = {
    .size = sizeof(lazy_node), .channel = &watchful, .connect = SLUICE_NODE_CONNECT_LAZY};
/* The attributes of all nodes of a test. */
static const struct sluice_node_attr *attr_of_nodes;

static void try_nodes(uint32_t count, const struct sluice_node_attr *attr,
                      void (*function)(struct ranks *ranks, uint32_t rank))
{
    attr_of_nodes = attr;
    ranks_try(count, attr, function);
}

/*
 * A node that takes the place of a rank's own; the endpoints that it connects to come with the
 * meeting.
 */
static struct sluice_prepared_node *prepare_again(struct ranks *ranks, uint32_t rank)
{
    sluice_node_close(ranks->nodes[rank]);
    ranks->nodes[rank] = NULL;
    struct sluice_prepared_node *prepared =
        made(sluice_node_prepare(ranks->pds[rank], rank, ranks->count, attr_of_nodes));
    require_ok(sluice_prepared_node_endpoints(prepared, ranks->made[rank], ranks->count));
    return prepared;
}

static void connect_again(struct ranks *ranks, uint32_t rank, struct sluice_prepared_node *prepared)
{
    struct sluice_node_endpoint remotes[RANKS_MAX];
    for (uint32_t i = 0; i < ranks->count; i++) {
        remotes[i] = ranks->made[i][rank];
    }
    ranks->nodes[rank] = made(sluice_prepared_node_handshake(prepared, remotes, ranks->count));
}

/* A remaining rank resets its peer for the rank that came again, and connects to it. */
static void reset_again(struct ranks *ranks, uint32_t rank, uint32_t other)
{
    require_ok(sluice_node_peer_reset(ranks->nodes[rank], other, &ranks->made[rank][other]));
}

static void shake_again(struct ranks *ranks, uint32_t rank, uint32_t other)
{
    require_ok(sluice_node_peer_handshake(ranks->nodes[rank], other, &ranks->made[other][rank]));
}

/* Barriers are broken for all, also the new rank, until all have reset. */
static void mend_again(struct ranks *ranks, uint32_t rank)
{
    uint8_t value = 1, values[RANKS_MAX];
    require_error(sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, DEADLINE), -ENOTCONN,
                  "reset");
    require_error(sluice_node_allgather(ranks->nodes[rank], &value, values, 1, DEADLINE), -ENOTCONN,
                  "reset");
    ranks_reset(ranks, rank);
}

/* Leaves words in the memory of another rank, as if of this rank in the next generation. */
static void leave_garbage(const struct ranks *ranks, uint32_t rank, uint32_t to,
                          uint32_t generation)
{
    static const uint32_t places[] = {0, 8, 16, 64, 64 + 256};
    struct sluice_remote_mr line = {.length = 576};
    const uint8_t *endpoint = ranks->made[to][rank].bytes;
    for (int i = 20; i < 24; i++) {
        line.rkey = line.rkey << 8 | endpoint[i];
    }
    /* A card has the address of the first block, where an endpoint has that of the rank's own. */
    const int addr_at = attr_of_nodes->connect == SLUICE_NODE_CONNECT_LAZY ? 28 : 24;
    for (int i = addr_at; i < addr_at + 8; i++) {
        line.addr = line.addr << 8 | endpoint[i];
    }
    line.addr += addr_at == 28 ? 576 * (uint64_t)rank : 0;
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 8);
    uint64_t word = htobe64((uint64_t)generation << 32 | 77);
    memcpy(memory.bytes, &word, sizeof(word));
    struct sluice_sge sge = memory_sge(&memory, 0, 8);
    for (size_t i = 0; i < COUNT(places); i++) {
        struct sluice_remote_mr place = line;
        place.addr += places[i];
        place.length = 8;
        require_ok(sluice_multichannel_write(sluice_node_multichannel(ranks->nodes[rank]), to, &sge,
                                             1, &place, DEADLINE));
    }
    memory_close(&memory);
}

/* How the remaining ranks learn of the loss, or what they do meanwhile. */
enum meanwhile { AT_ONCE, IN_A_BARRIER, ALONE_FOR_LONG, MEANWHILES };

static void await_loss(const struct ranks *ranks, uint32_t rank)
{
    int result = sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, 2 * DEADLINE);
    require(result == -ECONNRESET || result == -ECANCELED, "%d: %s", result, sluice_last_error());
}

/* Remaining ranks, in threads; the thread of the lost rank only meets them. */
static void go_on_alone(struct ranks *ranks, uint32_t rank, uint32_t lost)
{
    const uint32_t living[2] = {lost == 0 ? 1 : 0, lost == 2 ? 1 : 2};
    for (int turn = 0; turn < 5; turn++) {
        ranks_meet(ranks);
        if (rank != lost) {
            require_ok(sluice_node_barrier_reset(ranks->nodes[rank]));
        }
        ranks_meet(ranks);
        if (rank != lost) {
            node_meets(ranks->nodes[rank], living, 2);
        }
    }
}

/* Each rank in turn comes again, also a rank that has reset others before. */
static void come_again_in_turns(struct ranks *ranks, uint32_t rank)
{
    uint32_t generation = 1;
    for (uint32_t turn = 0; turn < (short_run() ? 3 : 9); turn++) {
        uint32_t lost = (turn + 1) % 3;
        enum meanwhile meanwhile = (enum meanwhile)((turn + turn / 3) % MEANWHILES);
        struct sluice_prepared_node *prepared = NULL;
        node_works(ranks->nodes[rank], ranks->pds[rank]);
        ranks_meet(ranks);
        if (rank == lost && meanwhile == AT_ONCE) {
            leave_garbage(ranks, rank, (lost + 1) % 3, generation + 1);
        }
        ranks_meet(ranks);
        if (rank == lost) {
            prepared = prepare_again(ranks, rank);
        } else if (meanwhile != AT_ONCE) {
            await_loss(ranks, rank);
        }
        if (meanwhile == ALONE_FOR_LONG) {
            go_on_alone(ranks, rank, lost);
            generation += 5;
        }
        if (rank != lost) {
            reset_again(ranks, rank, lost);
        }
        ranks_meet(ranks);
        if (rank != lost) {
            shake_again(ranks, rank, lost);
        } else {
            connect_again(ranks, rank, prepared);
        }
        mend_again(ranks, rank);
        generation++;
    }
    node_works(ranks->nodes[rank], ranks->pds[rank]);
    require_ok(sluice_node_shutdown(ranks->nodes[rank], DEADLINE));
}

TEST(each_rank_in_turn)
{
    try_nodes(3, &watchful_node, come_again_in_turns);
}

TEST(each_rank_of_a_lazy_node_in_turn)
{
    try_nodes(3, &lazy_node, come_again_in_turns);
}

/* Ranks 1 and 2 of four, which know of each other that they come again. */
static void come_again_together(struct ranks *ranks, uint32_t rank)
{
    bool lost = rank == 1 || rank == 2;
    struct sluice_prepared_node *prepared = NULL;
    for (int turn = 0; turn < 2; turn++) {
        node_works(ranks->nodes[rank], ranks->pds[rank]);
        ranks_meet(ranks);
        if (lost) {
            prepared = prepare_again(ranks, rank);
        } else {
            reset_again(ranks, rank, 1);
            reset_again(ranks, rank, 2);
        }
        ranks_meet(ranks);
        if (lost) {
            connect_again(ranks, rank, prepared);
        } else {
            shake_again(ranks, rank, 1);
            shake_again(ranks, rank, 2);
        }
        mend_again(ranks, rank);
    }
    node_works(ranks->nodes[rank], ranks->pds[rank]);
}

TEST(two_at_once)
{
    try_nodes(4, &watchful_node, come_again_together);
    try_nodes(4, &lazy_node, come_again_together);
}

/* Rank 1 comes again while rank 2 is gone, which comes later, and is new to all. */
static void come_again_one_by_one(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t first[] = {0, 1, 3};
    struct sluice_prepared_node *prepared = NULL;
    node_works(ranks->nodes[rank], ranks->pds[rank]);
    ranks_meet(ranks);
    if (rank == 1) {
        prepared = prepare_again(ranks, rank);
    } else if (rank == 2) {
        sluice_node_close(ranks->nodes[2]);
        ranks->nodes[2] = NULL;
        memset(&ranks->made[2], 0, sizeof(ranks->made[2]));
    } else {
        reset_again(ranks, rank, 1);
    }
    ranks_meet(ranks);
    if (rank == 1) {
        connect_again(ranks, rank, prepared);
    } else if (rank != 2) {
        shake_again(ranks, rank, 1);
    }
    ranks_meet(ranks);
    if (rank != 2) {
        require_ok(sluice_node_barrier_reset(ranks->nodes[rank]));
    }
    ranks_meet(ranks);
    if (rank != 2) {
        node_meets(ranks->nodes[rank], first, 3);
    }
    ranks_meet(ranks);
    if (rank == 2) {
        prepared = prepare_again(ranks, rank);
    } else {
        reset_again(ranks, rank, 2);
    }
    ranks_meet(ranks);
    if (rank == 2) {
        connect_again(ranks, rank, prepared);
    } else {
        shake_again(ranks, rank, 2);
    }
    mend_again(ranks, rank);
    node_works(ranks->nodes[rank], ranks->pds[rank]);
}

TEST(one_while_another_is_away)
{
    try_nodes(4, &watchful_node, come_again_one_by_one);
    try_nodes(4, &lazy_node, come_again_one_by_one);
}

/* Only the connection is lost: both sides reset it. */
static void come_to_each_other(struct ranks *ranks, uint32_t rank)
{
    for (int turn = 0; turn < 3; turn++) {
        node_works(ranks->nodes[rank], ranks->pds[rank]);
        ranks_meet(ranks);
        if (rank < 2) {
            reset_again(ranks, rank, 1 - rank);
        }
        ranks_meet(ranks);
        if (rank < 2) {
            shake_again(ranks, rank, 1 - rank);
        }
        ranks_meet(ranks);
        /* A rank that is not part of it was notified. */
        int result = sluice_node_barrier(ranks->nodes[rank], NULL, 0, 0, DEADLINE);
        require(result == (rank < 2 ? -ENOTCONN : -ECANCELED), "%d: %s", result,
                sluice_last_error());
        mend_again(ranks, rank);
    }
    node_works(ranks->nodes[rank], ranks->pds[rank]);
}

TEST(two_that_live)
{
    try_nodes(3, &watchful_node, come_to_each_other);
    try_nodes(3, &lazy_node, come_to_each_other);
}

/* If a rank waits for one that has begun to reset a third one, its wait ends. */
static void wait_in_vain(struct ranks *ranks, uint32_t rank)
{
    static const uint32_t others[] = {0, 2};
    if (rank == 2) {
        int64_t start = fair_now();
        require_error(sluice_node_barrier(ranks->nodes[2], others, 2, 0, 2 * DEADLINE), -ECANCELED,
                      "rank 0 gave up because of rank 1");
        require(fair_now() - start < DEADLINE, "%lld", (long long)(fair_now() - start));
    } else if (rank == 0) {
        let_pass(SLUICE_MS(50));
        reset_again(ranks, 0, 1);
    }
    ranks_meet(ranks);
    if (rank == 0) {
        require_ok(sluice_node_barrier_reset(ranks->nodes[0]));
        require_error(
            sluice_node_barrier(ranks->nodes[0], NULL, 0, SLUICE_BARRIER_CENTRAL, DEADLINE),
            -ECONNRESET, "rank 1 is not connected");
    }
}

TEST(waiting_rank_is_notified_of_a_reset)
{
    ranks_try(3, NULL, wait_in_vain);
}

static void check_state(const struct ranks *ranks, uint32_t rank, int state)
{
    require_result(sluice_multichannel_peer_state(sluice_node_multichannel(ranks->nodes[0]), rank),
                   state);
}

TEST(wrong_arguments)
{
    struct ranks ranks;
    ranks_open(&ranks, 2, NULL);
    struct sluice_node *node = ranks.nodes[0];
    struct sluice_node_endpoint ours, zeros = {{0}};
    const struct sluice_node_endpoint *theirs = &ranks.made[1][0];
    require_error(sluice_node_peer_reset(NULL, 1, &ours), -EINVAL, "not a node");
    require_error(sluice_node_peer_reset(node, 2, &ours), -EINVAL, "rank 2 0..1");
    require_error(sluice_node_peer_reset(node, UINT32_MAX, &ours), -EINVAL, "0..1");
    require_error(sluice_node_peer_reset(node, 0, &ours), -EINVAL, "rank 0 is this one");
    require_error(sluice_node_peer_reset(node, 1, NULL), -EINVAL, "endpoint NULL");
    require_error(sluice_node_peer_handshake(NULL, 1, theirs), -EINVAL, "not a node");
    require_error(sluice_node_peer_handshake(node, 2, theirs), -EINVAL, "rank 2 0..1");
    require_error(sluice_node_peer_handshake(node, 0, theirs), -EINVAL, "rank 0 is this one");
    require_error(sluice_node_peer_handshake(node, 1, NULL), -EINVAL, "endpoint rank 1");
    require_error(sluice_node_peer_handshake(node, 1, theirs), -EINVAL, "rank 1 is connected");
    struct sluice_scope *scope =
        made(sluice_multichannel_scope_begin(sluice_node_multichannel(node), DEADLINE));
    require_error(sluice_node_peer_reset(node, 1, &ours), -EBUSY, "scope");
    require_error(sluice_node_peer_handshake(node, 1, theirs), -EBUSY, "scope");
    require_ok(sluice_scope_end(scope, NULL));
    check_state(&ranks, 1, SLUICE_STATE_READY);
    /* None of that has harmed the node. */
    ranks_run(&ranks, come_to_each_other);
    require_ok(sluice_node_peer_reset(node, 1, &ours));
    require_error(sluice_node_peer_handshake(node, 1, &zeros), -EPROTO, "endpoint of a node");
    check_state(&ranks, 1, SLUICE_STATE_PREPARED);
    ranks_close(&ranks);
}

static void shut_down(struct ranks *ranks, uint32_t rank)
{
    require_ok(sluice_node_shutdown(ranks->nodes[rank], DEADLINE));
}

TEST(after_a_shutdown)
{
    struct ranks ranks;
    struct sluice_node_endpoint ours;
    ranks_open(&ranks, 2, NULL);
    ranks_run(&ranks, shut_down);
    require_error(sluice_node_peer_reset(ranks.nodes[0], 1, &ours), -ENOTCONN, "shut down");
    require_error(sluice_node_peer_handshake(ranks.nodes[0], 1, &ranks.made[1][0]), -ENOTCONN,
                  "shut down");
    ranks_close(&ranks);
}

/*
 * Endpoints of another rank, for another rank, or of another attempt; then the right one still
 * connects.
 */
static void refuse_endpoints(struct ranks *ranks, uint32_t rank)
{
    struct sluice_prepared_node *prepared = NULL;
    struct sluice_node_endpoint old = ranks->made[1][0], spoilt;
    node_works(ranks->nodes[rank], ranks->pds[rank]);
    ranks_meet(ranks);
    if (rank == 1) {
        prepared = prepare_again(ranks, rank);
    } else {
        reset_again(ranks, rank, 1);
    }
    ranks_meet(ranks);
    if (rank == 0) {
        struct sluice_node *node = ranks->nodes[0];
        require_error(sluice_node_peer_handshake(node, 1, &old), -ESTALE, "stale");
        require_error(sluice_node_peer_handshake(node, 1, &ranks->made[2][0]), -EPROTO,
                      "endpoint 1 made by rank 2");
        require_error(sluice_node_peer_handshake(node, 1, &ranks->made[1][2]), -EPROTO,
                      "endpoint 1 is for rank 2");
        spoilt = ranks->made[1][0];
        spoilt.bytes[100] ^= 1;
        require_error(sluice_node_peer_handshake(node, 1, &spoilt), -EPROTO, "checksum");
        spoilt = ranks->made[1][0];
        spoilt.bytes[420] = 0x80;
        node_endpoint_sign(&spoilt);
        require_error(sluice_node_peer_handshake(node, 1, &spoilt), -EPROTO, "generation");
        check_state(ranks, 1, SLUICE_STATE_PREPARED);
    }
    ranks_meet(ranks);
    if (rank == 1) {
        connect_again(ranks, rank, prepared);
    } else {
        shake_again(ranks, rank, 1);
    }
    mend_again(ranks, rank);
    node_works(ranks->nodes[rank], ranks->pds[rank]);
    ranks_meet(ranks);
    /* The endpoints that rank 0 gave rank 2 for the first connection, and for the one after it. */
    if (rank == 2) {
        old = ranks->made[0][2];
        reset_again(ranks, 2, 0);
        require_error(sluice_node_peer_handshake(ranks->nodes[2], 0, &old), -ESTALE, "stale");
    }
    ranks_meet(ranks);
    if (rank == 0) {
        reset_again(ranks, 0, 2);
    }
    ranks_meet(ranks);
    if (rank != 1) {
        shake_again(ranks, rank, 2 - rank);
    }
    ranks_reset(ranks, rank);
    node_works(ranks->nodes[rank], ranks->pds[rank]);
}

TEST(endpoints_that_are_refused)
{
    try_nodes(3, NULL, refuse_endpoints);
}

/*
 * Processes: ranks 0 to 2 of the group are those of the node, one of which is killed; the next
 * waiting one takes its place.
 */
#define NODE_RANKS 3
#define SPARES 2

struct killing {
    const struct sluice_node_attr *attr;
    uint32_t algorithm;
    bool inside;
};

static struct sluice_node *replace(struct rank *rank, struct sluice_pd *pd, uint32_t as,
                                   const uint32_t places[NODE_RANKS])
{
    const struct killing *killing = rank->argument;
    struct sluice_node_endpoint made[NODE_RANKS], remotes[NODE_RANKS];
    struct sluice_node_endpoint blocks[GROUP_MAX] = {{{0}}}, received[GROUP_MAX];
    struct sluice_prepared_node *prepared =
        made(sluice_node_prepare(pd, as, NODE_RANKS, killing->attr));
    require_ok(sluice_prepared_node_endpoints(prepared, made, NODE_RANKS));
    for (uint32_t i = 0; i < NODE_RANKS; i++) {
        blocks[places[i]] = made[i];
    }
    rank_exchange(rank, blocks, received, sizeof(blocks[0]));
    for (uint32_t i = 0; i < NODE_RANKS; i++) {
        remotes[i] = received[places[i]];
    }
    struct sluice_node *node = made(sluice_prepared_node_handshake(prepared, remotes, NODE_RANKS));
    return node;
}

static void take_back(struct rank *rank, struct sluice_node *node, uint32_t lost, uint32_t spare)
{
    struct sluice_node_endpoint blocks[GROUP_MAX] = {{{0}}}, received[GROUP_MAX];
    require_ok(sluice_node_peer_reset(node, lost, &blocks[spare]));
    rank_exchange(rank, blocks, received, sizeof(blocks[0]));
    require_ok(sluice_node_peer_handshake(node, lost, &received[spare]));
}

/* A rank without a node, which waits for its turn, exchanges zeros. */
static void look_on(struct rank *rank)
{
    struct sluice_node_endpoint blocks[GROUP_MAX] = {{{0}}}, received[GROUP_MAX];
    rank_exchange(rank, blocks, received, sizeof(blocks[0]));
}

/* Rank 0 kills rank 1, before a barrier or in it; all others learn of it there. */
static void lose_rank(struct rank *rank, struct sluice_node *node, uint32_t victim)
{
    const struct killing *killing = rank->argument;
    if (rank->index == victim) {
        if (killing->inside) {
            (void)!sluice_node_barrier(node, NULL, 0, killing->algorithm, 2 * DEADLINE);
        }
        rank_await_death(rank);
    }
    if (rank->index == 0) {
        let_pass(killing->inside ? SLUICE_MS(50) : 0);
        rank_kill(rank, victim);
    }
    int result = sluice_node_barrier(node, NULL, 0, killing->algorithm, 2 * DEADLINE);
    require(result == -ECONNRESET || result == -ECANCELED || (result == 0 && killing->inside),
            "%d: %s", result, sluice_last_error());
}

static void die_and_come_again(struct rank *rank)
{
    uint32_t places[NODE_RANKS] = {0, 1, 2};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_node *node = NULL;
    if (rank->index < NODE_RANKS) {
        node = replace(rank, pd, rank->index, places);
    } else {
        look_on(rank);
    }
    rank_barrier(rank);
    for (uint32_t i = 0; i < SPARES; i++) {
        uint32_t spare = NODE_RANKS + i, victim = places[1];
        if (node != NULL) {
            node_works(node, pd);
        }
        rank_barrier(rank);
        if (node != NULL) {
            lose_rank(rank, node, victim);
        }
        rank_barrier(rank);
        places[1] = spare;
        if (node != NULL) {
            take_back(rank, node, 1, spare);
        } else if (rank->index == spare) {
            node = replace(rank, pd, 1, places);
        } else {
            look_on(rank);
        }
        rank_barrier(rank);
        if (node != NULL) {
            require_ok(sluice_node_barrier_reset(node));
        }
        rank_barrier(rank);
    }
    if (node != NULL) {
        node_works(node, pd);
        require_ok(sluice_node_shutdown(node, DEADLINE));
    }
    sluice_node_close(node);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(a_process_that_was_killed, .group = "processes", .unless = device_is_pretend)
{
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        for (int inside = 0; inside < 2; inside++) {
            const struct killing killing = {&watchful_node, algorithm, inside};
            group_run(NODE_RANKS + SPARES, die_and_come_again, &killing, 80);
        }
    }
}

TEST(a_process_of_a_lazy_node_that_was_killed, .group = "processes", .unless = device_is_pretend)
{
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        const struct killing killing = {&lazy_node, algorithm, algorithm != 2};
        group_run(NODE_RANKS + SPARES, die_and_come_again, &killing, 80);
    }
}

int main(void)
{
    return RUN_GROUPS("node_rejoin", {"self", WIRE_SELF, 120}, {"tcp", WIRE_TCP, 120},
                      {"processes", WIRE_SHM, 500});
}
