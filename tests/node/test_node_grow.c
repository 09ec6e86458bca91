/* SPDX-License-Identifier: MIT */
/*
 * Nodes whose members come later and leave for good: barriers and gathers are those of the members,
 * numbers are taken again, and processes that left, alive or dead, are refused and named.
 */
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define LONG SLUICE_S(30)
#define NUMBERS 8

static const struct sluice_node_attr growing = {
    .size = sizeof(growing), .connect = SLUICE_NODE_CONNECT_LAZY, .max_ranks = NUMBERS};

/* By number, the endpoint of a member, or zeros: the threads of a test give them to each other. */
static struct sluice_node_endpoint board[NUMBERS];
static struct sluice_prepared_node *prepared[RANKS_MAX];
static uint32_t numbers[RANKS_MAX];

static void require_members(const struct sluice_node *node, const uint32_t *wanted, uint32_t count)
{
    uint32_t members[NUMBERS];
    require_result(sluice_node_members(node, members, NUMBERS), count);
    for (uint32_t i = 0; i < count; i++) {
        require(members[i] == wanted[i], "member %u is %u, not %u", i, members[i], wanted[i]);
    }
}

/* Barriers, gathers and messages of all members, of which each checks the values of all. */
static void members_work(struct sluice_node *node, struct sluice_pd *pd)
{
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    uint32_t members[NUMBERS], rank = (uint32_t)sluice_node_rank(node), self = 0;
    uint32_t count = (uint32_t)sluice_node_members(node, members, NUMBERS);
    uint8_t own[600], values[NUMBERS * 600];
    struct sluice_peer_remote_mr remotes[NUMBERS];
    struct memory memory;
    memory_open(&memory, pd, 24);
    memset(memory.bytes, (int)rank + 1, 24);
    node_meets(node, NULL, 0);
    node_meets(node, members, count);
    memset(own, (int)rank + 1, sizeof(own));
    memset(values, 99, sizeof(values));
    require_ok(sluice_node_allgather(node, own, values, sizeof(own), LONG));
    for (uint32_t i = 0, next = 0; i < NUMBERS; i++) {
        bool there = next < count && members[next] == i;
        value_check(values + i * sizeof(own), sizeof(own), there ? (uint8_t)(i + 1) : 99);
        self = there && i == rank ? next : self;
        next += there;
    }
    require_ok(sluice_node_alltoall(node, values, values, 1, LONG));
    require_ok(sluice_node_share_mr(node, memory.mr, remotes, LONG));
    struct sluice_sge from = memory_sge(&memory, 0, 8), to = memory_sge(&memory, 8, 8);
    struct sluice_sge room = memory_sge(&memory, 16, 8);
    uint32_t next = members[(self + 1) % count], before = members[(self + count - 1) % count];
    struct sluice_request requests[] = {request_of(SLUICE_OP_RECEIVE, before, &to),
                                        request_of(SLUICE_OP_SEND, next, &from)};
    require_ok(sluice_multichannel_submit(all, requests, 2, LONG, NULL));
    value_check(memory.bytes + 8, 8, (uint8_t)(before + 1));
    struct sluice_remote_mr place;
    require_ok(sluice_remote_mr_slice(&remotes[next].remote, 0, 8, &place));
    require_ok(sluice_multichannel_read(all, next, &room, 1, &place, LONG));
    value_check(memory.bytes + 16, 8, (uint8_t)(next + 1));
    node_meets(node, NULL, 0);
    memory_close(&memory);
}

/* A thread prepares a node with a number, and gives its endpoint to the others. */
static void prepare_as(struct ranks *ranks, uint32_t thread, uint32_t number)
{
    struct sluice_node_endpoint made_for[NUMBERS];
    numbers[thread] = number;
    prepared[thread] = made(sluice_node_prepare(ranks->pds[thread], number, NUMBERS, &growing));
    require_ok(sluice_prepared_node_endpoints(prepared[thread], made_for, NUMBERS));
    board[number] = made_for[number];
}

static void join(struct ranks *ranks, uint32_t thread)
{
    ranks->nodes[thread] = made(sluice_prepared_node_handshake(prepared[thread], board, NUMBERS));
}

/* Threads that are in the list come with these numbers; members grow by them. */
static void grow_by(struct ranks *ranks, uint32_t thread, const uint32_t *comers,
                    const uint32_t *as, uint32_t count)
{
    struct sluice_node_endpoint fresh[NUMBERS];
    bool comes = false;
    if (ranks->nodes[thread] != NULL) {
        require_ok(sluice_node_own_endpoint(ranks->nodes[thread], &board[numbers[thread]]));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (comers[i] == thread) {
            prepare_as(ranks, thread, as[i]);
            comes = true;
        }
    }
    ranks_meet(ranks);
    for (uint32_t i = 0; i < count; i++) {
        fresh[i] = board[as[i]];
    }
    if (comes) {
        join(ranks, thread);
        require_error(sluice_node_barrier(ranks->nodes[thread], NULL, 0, 0, LONG), -ENOTCONN,
                      "reset");
        require_ok(sluice_node_barrier_reset(ranks->nodes[thread]));
    } else if (ranks->nodes[thread] != NULL) {
        require_ok(sluice_node_grow(ranks->nodes[thread], fresh, count));
    }
}

static void work_if_member(struct ranks *ranks, uint32_t thread, const uint32_t *members,
                           uint32_t count, int64_t generation)
{
    struct sluice_node *node = ranks->nodes[thread];
    if (node != NULL) {
        require_members(node, members, count);
        require_result(sluice_node_generation(node), generation);
        members_work(node, ranks->pds[thread]);
    }
    ranks_meet(ranks);
}

static void use_gone(struct ranks *ranks, uint32_t thread, uint32_t gone, const char *words)
{
    struct memory memory;
    memory_open(&memory, ranks->pds[thread], 8);
    struct sluice_sge sge = memory_sge(&memory, 0, 8);
    require_error(sluice_multichannel_send(sluice_node_multichannel(ranks->nodes[thread]), gone,
                                           &sge, 1, LONG),
                  -ECONNRESET, words);
    memory_close(&memory);
}

/* Threads 0 to 2 begin. Thread 3 comes as 3 and thread 4 as 7; thread 1 leaves, and comes again. */
static void come_and_go(struct ranks *ranks, uint32_t thread)
{
    static const uint32_t first[] = {0, 1, 2}, grown[] = {0, 1, 2, 3, 7}, shrunk[] = {0, 2, 3, 7};
    static const uint32_t comers[] = {3, 4}, as[] = {3, 7}, one = 1, two = 2;
    static const uint32_t last[] = {0, 1, 3, 7};
    if (thread < 3) {
        prepare_as(ranks, thread, thread);
    }
    ranks_meet(ranks);
    if (thread < 3) {
        join(ranks, thread);
    }
    ranks_meet(ranks);
    work_if_member(ranks, thread, first, 3, 1);
    grow_by(ranks, thread, comers, as, 2);
    work_if_member(ranks, thread, grown, 5, 2);
    if (thread == 1) {
        sluice_node_close(ranks->nodes[1]);
        ranks->nodes[1] = NULL;
        memset(&board[1], 0, sizeof(board[1]));
    } else {
        require_ok(sluice_node_shrink(ranks->nodes[thread], &one, 1));
        use_gone(ranks, thread, 1, "rank 1 left generation 3");
        require_error(sluice_node_barrier(ranks->nodes[thread], first, 3, 0, LONG), -EINVAL,
                      "ranks[1] no member generation 3");
    }
    work_if_member(ranks, thread, shrunk, 4, 3);
    grow_by(ranks, thread, &one, &one, 1);
    work_if_member(ranks, thread, grown, 5, 4);
    /* Rank 2 is removed, and does not know it. */
    if (thread != 2) {
        require_ok(sluice_node_shrink(ranks->nodes[thread], &two, 1));
    }
    ranks_meet(ranks);
    if (thread == 2) {
        const uint32_t zero = 0;
        (void)!sluice_node_reach(ranks->nodes[2], &zero, 1, LONG);
        require_error(sluice_node_reach(ranks->nodes[2], &zero, 1, LONG), -ECONNRESET,
                      "rank 2 was removed generation 5");
        sluice_node_close(ranks->nodes[2]);
        ranks->nodes[2] = NULL;
    }
    work_if_member(ranks, thread, last, 4, 5);
    if (thread != 2) {
        require_ok(sluice_node_shutdown(ranks->nodes[thread], LONG));
    }
}

static void try_threads(uint32_t count, void (*function)(struct ranks *ranks, uint32_t thread))
{
    static struct ranks ranks;
    memset(&ranks, 0, sizeof(ranks));
    memset(board, 0, sizeof(board));
    ranks.count = count;
    require(pthread_barrier_init(&ranks.meeting, NULL, count) == 0, "%u threads", count);
    for (uint32_t i = 0; i < count; i++) {
        bool own = i == 0 || current_wire() == WIRE_TCP;
        ranks.contexts[i] = own ? open_context() : ranks.contexts[0];
        ranks.pds[i] = made(sluice_pd_alloc(ranks.contexts[i]));
    }
    ranks_run(&ranks, function);
    ranks_close(&ranks);
}

TEST(members_come_and_go)
{
    for (int i = 0; i < (short_run() ? 1 : 4); i++) {
        try_threads(5, come_and_go);
    }
}

/* The members change in each round, so that all numbers have had several processes. */
static void take_turns(struct ranks *ranks, uint32_t thread)
{
    uint32_t leader = 0;
    if (thread == leader) {
        prepare_as(ranks, leader, 0);
        join(ranks, leader);
    }
    ranks_meet(ranks);
    for (uint32_t round = 0; round < (short_run() ? 4 : 12); round++) {
        uint32_t comers[] = {1 + round % 2, 3}, as[] = {1 + round % 7, 1 + (round + 3) % 7};
        grow_by(ranks, thread, comers, as, 2);
        if (ranks->nodes[thread] != NULL) {
            members_work(ranks->nodes[thread], ranks->pds[thread]);
        }
        ranks_meet(ranks);
        if (thread == leader) {
            require_ok(sluice_node_shrink(ranks->nodes[leader], as, 2));
            memset(&board[as[0]], 0, sizeof(board[0]));
            memset(&board[as[1]], 0, sizeof(board[0]));
            require_result(sluice_node_members(ranks->nodes[leader], NULL, 0), 1);
        } else {
            sluice_node_close(ranks->nodes[thread]);
            ranks->nodes[thread] = NULL;
        }
        ranks_meet(ranks);
    }
}

TEST(a_server_outlives_all_others)
{
    try_threads(4, take_turns);
}

TEST(arguments)
{
    static struct ranks ranks;
    struct sluice_node_endpoint endpoint, both[2];
    const uint32_t none = 3, self = 0, wild = NUMBERS;
    struct sluice_node_attr attr = growing;
    memset(&ranks, 0, sizeof(ranks));
    memset(board, 0, sizeof(board));
    ranks.contexts[0] = open_context();
    ranks.pds[0] = ranks.pds[1] = made(sluice_pd_alloc(ranks.contexts[0]));
    attr.connect = SLUICE_NODE_CONNECT_ALL;
    require_null(sluice_node_prepare(ranks.pds[0], 0, NUMBERS, &attr), EINVAL, "max_ranks lazy");
    attr = growing;
    attr.max_ranks = SLUICE_MAX_PEERS + 1;
    require_null(sluice_node_prepare(ranks.pds[0], 0, 1, &attr), EINVAL, "max_ranks 0..");
    require_null(sluice_node_prepare(ranks.pds[0], 0, 1, &growing), EINVAL, "1 rank max_ranks 8");
    attr = growing;
    attr.max_ranks = 0;
    struct sluice_prepared_node *plain = made(sluice_node_prepare(ranks.pds[0], 0, 1, &attr));
    require_ok(sluice_prepared_node_endpoints(plain, &endpoint, 1));
    struct sluice_node *fixed = made(sluice_prepared_node_handshake(plain, &endpoint, 1));
    require_error(sluice_node_grow(fixed, &endpoint, 1), -EINVAL, "max_ranks");
    require_error(sluice_node_shrink(fixed, &none, 1), -EINVAL, "max_ranks");
    require_error(sluice_node_own_endpoint(fixed, &endpoint), -EINVAL, "max_ranks");
    require_result(sluice_node_members(fixed, NULL, 0), 1);
    sluice_node_close(fixed);
    prepare_as(&ranks, 0, 0);
    join(&ranks, 0);
    prepare_as(&ranks, 1, 0);
    struct sluice_node *node = ranks.nodes[0];
    require_error(sluice_node_grow(NULL, &endpoint, 1), -EINVAL, "not a node");
    require_error(sluice_node_grow(node, NULL, 1), -EINVAL, "at least one");
    require_error(sluice_node_grow(node, &endpoint, 1), -EPROTO, "program of 1 rank");
    require_error(sluice_node_grow(node, board, 1), -EINVAL, "rank 0 is a member");
    memset(&endpoint, 0, sizeof(endpoint));
    require_error(sluice_node_grow(node, &endpoint, 1), -EPROTO, "checksum");
    sluice_prepared_node_free(prepared[1]);
    prepare_as(&ranks, 1, 5);
    both[0] = both[1] = board[5];
    require_error(sluice_node_grow(node, both, 2), -EINVAL, "endpoints 0 and 1 rank 5");
    sluice_prepared_node_free(prepared[1]);
    require_error(sluice_node_shrink(NULL, &none, 1), -EINVAL, "not a node");
    require_error(sluice_node_shrink(node, NULL, 1), -EINVAL, "at least one");
    require_error(sluice_node_shrink(node, &none, 1), -EINVAL, "3 no member");
    require_error(sluice_node_shrink(node, &self, 1), -EINVAL, "this rank");
    require_error(sluice_node_shrink(node, &wild, 1), -EINVAL, "8 0..7");
    require_error(sluice_node_own_endpoint(NULL, &endpoint), -EINVAL, "not a node");
    require_error(sluice_node_own_endpoint(node, NULL), -EINVAL, "NULL");
    require_error((int)sluice_node_members(NULL, NULL, 0), -EINVAL, "not a node");
    require_error((int)sluice_node_members(node, NULL, 1), -EINVAL, "NULL");
    require_error((int)sluice_node_generation(NULL), -EINVAL, "not a node");
    require_null(sluice_node_multichannel_open(node, NULL, LONG), EINVAL, "max_ranks");
    require_result(sluice_node_generation(node), 1);
    require_ok(sluice_node_shutdown(node, LONG));
    require_error(sluice_node_shrink(node, &none, 1), -ENOTCONN, "shut down");
    sluice_node_close(node);
    sluice_pd_free(ranks.pds[0]);
    sluice_context_close(ranks.contexts[0]);
}

/* Members 0 and 1, of which 1 only has an endpoint, and 5, which comes while 1 is being reset. */
TEST(a_member_that_is_reset_while_others_come)
{
    static struct ranks ranks;
    static const uint32_t without[] = {0, 5}, all[] = {0, 1, 5};
    struct sluice_node_endpoint own;
    memset(&ranks, 0, sizeof(ranks));
    memset(board, 0, sizeof(board));
    ranks.contexts[0] = open_context();
    ranks.pds[0] = ranks.pds[1] = ranks.pds[2] = made(sluice_pd_alloc(ranks.contexts[0]));
    prepare_as(&ranks, 0, 0);
    prepare_as(&ranks, 1, 1);
    join(&ranks, 0);
    prepare_as(&ranks, 2, 5);
    struct sluice_node *node = ranks.nodes[0];
    require_ok(sluice_node_peer_reset(node, 1, &own));
    require_ok(sluice_node_grow(node, &board[5], 1));
    require_members(node, without, 2);
    require_ok(sluice_node_peer_handshake(node, 1, &board[1]));
    require_ok(sluice_node_barrier_reset(node));
    require_members(node, all, 3);
    sluice_node_close(node);
    sluice_prepared_node_free(prepared[1]);
    sluice_prepared_node_free(prepared[2]);
    sluice_pd_free(ranks.pds[0]);
    sluice_context_close(ranks.contexts[0]);
}

/* Thread 0 removes thread 1, and takes it again with the node that it has. */
static void remove_and_take(struct ranks *ranks, uint32_t thread)
{
    static const uint32_t both[] = {0, 1}, one = 1, zero = 0;
    struct sluice_node_endpoint own;
    prepare_as(ranks, thread, thread);
    ranks_meet(ranks);
    join(ranks, thread);
    work_if_member(ranks, thread, both, 2, 1);
    if (thread == 0) {
        require_ok(sluice_node_shrink(ranks->nodes[0], &one, 1));
        require_ok(sluice_node_own_endpoint(ranks->nodes[0], &board[0]));
        require_ok(sluice_node_grow(ranks->nodes[0], &board[1], 1));
    }
    ranks_meet(ranks);
    if (thread == 1) {
        require_ok(sluice_node_peer_reset(ranks->nodes[1], 0, &own));
        require_ok(sluice_node_peer_handshake(ranks->nodes[1], 0, &board[0]));
        require_ok(sluice_node_barrier_reset(ranks->nodes[1]));
        require_ok(sluice_node_reach(ranks->nodes[1], &zero, 1, LONG));
    }
    work_if_member(ranks, thread, both, 2, 3);
}

TEST(a_process_that_was_removed_is_taken_again)
{
    try_threads(2, remove_and_take);
}

/* Thread 0 has ended the connection to thread 1 more often than half of the serials allow. */
static void reset_often(struct ranks *ranks, uint32_t thread)
{
    static const uint32_t one = 1;
    struct sluice_node_endpoint own;
    prepare_as(ranks, thread, thread);
    ranks_meet(ranks);
    join(ranks, thread);
    ranks_meet(ranks);
    for (int i = 0; thread == 0 && i < 20000; i++) {
        require_ok(sluice_node_peer_reset(ranks->nodes[0], 1, &own));
        require_ok(sluice_node_peer_handshake(ranks->nodes[0], 1, &board[1]));
    }
    require_ok(thread == 0 ? sluice_node_reach(ranks->nodes[0], &one, 1, LONG) : 0);
    ranks_meet(ranks);
    require_ok(sluice_node_barrier_reset(ranks->nodes[thread]));
    ranks_meet(ranks);
    members_work(ranks->nodes[thread], ranks->pds[thread]);
}

TEST(a_rank_connects_anew_after_any_number_of_connections)
{
    try_threads(2, reset_often);
}

static void gather_numbers(struct sluice_node *node, uint32_t members, int64_t deadline, int wanted)
{
    uint64_t own = 1000 + (uint64_t)sluice_node_rank(node), all[NUMBERS];
    int result = sluice_node_allgather(node, &own, all, sizeof(own), deadline);
    require(wanted == 0 ? result == 0 : result < 0, "%d: %s", result, sluice_last_error());
    for (uint32_t i = 0; i < members && result == 0; i++) {
        require(all[i] == 1000 + i, "rank %u got %llu of rank %u", (unsigned)(own - 1000),
                (unsigned long long)all[i], i);
    }
}

/*
 * A chunk of rank 5 for rank 0 stands behind a message without a receive, until the members have
 * changed, and rank 6 has given rank 0 a chunk that belongs into the same place.
 */
static void give_late(struct ranks *ranks, uint32_t thread)
{
    static const uint32_t comer = 7;
    struct memory memory;
    memory_open(&memory, ranks->pds[thread], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    if (thread < 7) {
        prepare_as(ranks, thread, thread);
    }
    ranks_meet(ranks);
    if (thread < 7) {
        join(ranks, thread);
        node_meets(ranks->nodes[thread], NULL, 0);
    }
    ranks_meet(ranks);
    if (thread == 5) {
        require_ok(sluice_multichannel_post_send(sluice_node_multichannel(ranks->nodes[5]), 0, &sge,
                                                 1, SLUICE_FOREVER, NULL));
    }
    if (thread < 7) {
        gather_numbers(ranks->nodes[thread], 7, thread == 0 ? SLUICE_MS(300) : LONG, -1);
    }
    ranks_meet(ranks);
    grow_by(ranks, thread, &comer, &comer, 1);
    gather_numbers(ranks->nodes[thread], 8, LONG, 0);
    gather_numbers(ranks->nodes[thread], 8, LONG, 0);
    ranks_meet(ranks);
    if (thread == 0) {
        let_pass(SLUICE_MS(200));
        require_ok(sluice_multichannel_receive(sluice_node_multichannel(ranks->nodes[0]), 5, &sge,
                                               1, LONG, NULL));
        let_pass(SLUICE_MS(200));
    }
    gather_numbers(ranks->nodes[thread], 8, LONG, 0);
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(chunks_of_an_earlier_generation_do_no_harm)
{
    try_threads(8, give_late);
}

/* Changes who wrote the card in an endpoint, and a byte that a later version may use. */
static void set_versions(struct sluice_node_endpoint *endpoint, uint8_t written, uint8_t readable)
{
    enum { FREE_AT = 74, CHECKSUM_AT = 156 };
    uint32_t hash = UINT32_C(2166136261);
    endpoint->bytes[0] = written;
    endpoint->bytes[1] = readable;
    endpoint->bytes[FREE_AT] = written;
    for (int i = 0; i < CHECKSUM_AT; i++) {
        hash = (hash ^ endpoint->bytes[i]) * UINT32_C(16777619);
    }
    for (int i = 0; i < 4; i++) {
        endpoint->bytes[CHECKSUM_AT + i] = (uint8_t)(hash >> (24 - 8 * i));
    }
}

/* A card of a later version that says so is read, and its bytes without a meaning are ignored. */
static void read_later_version(struct ranks *ranks, uint32_t thread)
{
    prepare_as(ranks, thread, thread);
    ranks_meet(ranks);
    if (thread == 0) {
        struct sluice_node_endpoint changed = board[1];
        uint8_t version = changed.bytes[0];
        memset(&board[1], 0, sizeof(board[1]));
        join(ranks, 0);
        set_versions(&changed, version + 1, version + 1);
        require_error(sluice_node_grow(ranks->nodes[0], &changed, 1), -EPROTO,
                      "card of rank 1 version 4 from version 4 knows version 3");
        set_versions(&changed, version - 1, version - 1);
        require_error(sluice_node_grow(ranks->nodes[0], &changed, 1), -EPROTO,
                      "card of rank 1 version 2 knows version 3");
        require_ok(sluice_node_own_endpoint(ranks->nodes[0], &board[0]));
        set_versions(&board[0], version + 1, version);
        set_versions(&changed, version + 1, version);
        require_ok(sluice_node_grow(ranks->nodes[0], &changed, 1));
    }
    ranks_meet(ranks);
    if (thread == 1) {
        join(ranks, 1);
        require_ok(sluice_node_barrier_reset(ranks->nodes[1]));
    }
    members_work(ranks->nodes[thread], ranks->pds[thread]);
    ranks_meet(ranks);
}

TEST(cards_of_other_versions)
{
    try_threads(2, read_later_version);
}

/* Gives each process the endpoint of each. */
static void show_all(struct rank *rank, const struct sluice_node_endpoint *own,
                     struct sluice_node_endpoint *given)
{
    struct sluice_node_endpoint blocks[GROUP_MAX];
    for (uint32_t i = 0; i < GROUP_MAX; i++) {
        blocks[i] = *own;
    }
    rank_exchange(rank, blocks, given, sizeof(*own));
}

/* Processes 0 to 2 begin. One is killed and removed, and process 3 takes its number. */
static void replace_dead(struct rank *rank)
{
    static const uint32_t left[] = {0, 2}, all[] = {0, 1, 2}, dead = 1;
    struct sluice_node_endpoint own = {{0}}, given[GROUP_MAX], remotes[NUMBERS] = {{{0}}};
    struct sluice_node_endpoint made_for[NUMBERS];
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    struct sluice_prepared_node *fresh = NULL;
    struct sluice_node *node = NULL;
    if (rank->index < 3) {
        fresh = made(sluice_node_prepare(pd, rank->index, NUMBERS, &growing));
        require_ok(sluice_prepared_node_endpoints(fresh, made_for, NUMBERS));
        own = made_for[0];
    }
    show_all(rank, &own, given);
    memcpy(remotes, given, 3 * sizeof(own));
    if (rank->index < 3) {
        node = made(sluice_prepared_node_handshake(fresh, remotes, NUMBERS));
        members_work(node, pd);
    }
    rank_barrier(rank);
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    if (rank->index == 0) {
        rank_kill(rank, 1);
    }
    rank_barrier(rank);
    if (node != NULL) {
        require(sluice_node_barrier(node, NULL, 0, 0, SLUICE_S(10)) < 0, "a dead rank");
        require_ok(sluice_node_shrink(node, &dead, 1));
        require_members(node, left, 2);
        members_work(node, pd);
        require_ok(sluice_node_own_endpoint(node, &own));
    } else {
        fresh = made(sluice_node_prepare(pd, 1, NUMBERS, &growing));
        require_ok(sluice_prepared_node_endpoints(fresh, made_for, NUMBERS));
        own = made_for[0];
    }
    show_all(rank, &own, given);
    if (node != NULL) {
        require_ok(sluice_node_grow(node, &given[3], 1));
    } else {
        remotes[0] = given[0];
        remotes[1] = own;
        remotes[2] = given[2];
        node = made(sluice_prepared_node_handshake(fresh, remotes, NUMBERS));
        require_ok(sluice_node_barrier_reset(node));
    }
    require_members(node, all, 3);
    members_work(node, pd);
    require_ok(sluice_node_shutdown(node, LONG));
    sluice_node_close(node);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(a_dead_member_is_replaced, .group = "processes", .unless = device_is_pretend)
{
    group_run(4, replace_dead, NULL, 60);
}

/* A node that grows may begin with all ranks of an exchange. */
static void open_over_exchange(struct rank *rank)
{
    static const uint32_t all[] = {0, 1, 2};
    struct sluice_node_attr attr = growing;
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    attr.max_ranks = 2;
    require_null(sluice_node_open(pd, exchange, &attr, LONG), EINVAL, "max_ranks 2 3 ranks");
    struct sluice_node *node = sluice_node_open(pd, exchange, &growing, LONG);
    require(node, "rank %u: %s", rank->index, sluice_last_error());
    require_result(sluice_node_ranks(node), NUMBERS);
    require_members(node, all, 3);
    members_work(node, pd);
    require_ok(sluice_node_shutdown(node, LONG));
    sluice_node_close(node);
    sluice_exchange_close(exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(all_ranks_of_an_exchange_are_members, .group = "processes", .unless = device_is_pretend)
{
    group_run(3, open_over_exchange, NULL, 60);
}

int main(void)
{
    return RUN_GROUPS("node_grow", {"self", WIRE_SELF, 120}, {"tcp", WIRE_TCP, 120},
                      {"processes", WIRE_SHM, 240});
}
