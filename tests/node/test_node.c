/* SPDX-License-Identifier: MIT */
/*
 * Nodes from opening to closing: arguments, endpoints that are wrong in every way, opening over an
 * exchange, and the orderly end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

TEST(arguments)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_channel_attr channel = {.size = sizeof(channel)};
    struct sluice_node_attr attr = {.size = sizeof(attr), .channel = &channel};
    struct sluice_node_endpoint endpoints[2];
    struct {
        struct sluice_node_attr known;
        uint64_t unknown;
    } newer = {{.size = sizeof(newer)}, 1};

    require_null(sluice_node_prepare(NULL, 0, 1, NULL), EINVAL, "protection domain");
    require_null(sluice_node_prepare(pd, 0, 0, NULL), EINVAL, "0 ranks 1..65536");
    require_null(sluice_node_prepare(pd, 0, 65537, NULL), EINVAL, "65537 ranks");
    require_null(sluice_node_prepare(pd, 2, 2, NULL), EINVAL, "rank 2 0..1");
    attr.barrier = 4;
    require_null(sluice_node_prepare(pd, 0, 2, &attr), EINVAL, "sluice_node_attr.barrier 4 0..3");
    attr.barrier = 0;
    channel.access = SLUICE_ACCESS_REMOTE_READ;
    require_null(sluice_node_prepare(pd, 0, 2, &attr), EINVAL, "access REMOTE_WRITE");
    channel.access = SLUICE_ACCESS_NONE;
    require_null(sluice_node_prepare(pd, 0, 2, &attr), EINVAL, "access REMOTE_WRITE");
    channel.access = 0;
    channel.max_sge = 33;
    require_null(sluice_node_prepare(pd, 0, 2, &attr), EINVAL, "max_sge");
    attr.size = 8;
    require_null(sluice_node_prepare(pd, 0, 2, &attr), EINVAL, "sluice_node_attr.size 8");
    require_null(sluice_node_prepare(pd, 0, 2, &newer.known), E2BIG, "sluice_node_attr");
    newer.unknown = 0;
    struct sluice_prepared_node *prepared = made(sluice_node_prepare(pd, 1, 2, &newer.known));
    require_error(sluice_prepared_node_endpoints(prepared, NULL, 2), -EINVAL, "NULL");
    require_error(sluice_prepared_node_endpoints(prepared, endpoints, 1), -EINVAL, "1 2 ranks");
    require_error(sluice_prepared_node_endpoints(NULL, endpoints, 2), -EINVAL, "prepared node");
    require_null(sluice_prepared_node_handshake(prepared, NULL, 2), EINVAL, "all ranks");
    prepared = made(sluice_node_prepare(pd, 1, 2, NULL));
    require_null(sluice_prepared_node_handshake(prepared, endpoints, 3), EINVAL, "3 2 ranks");
    require_null(sluice_prepared_node_handshake(NULL, endpoints, 2), EINVAL, "prepared node");
    require_error(sluice_node_rank(NULL), -EINVAL, "not a node");
    require_error(sluice_node_ranks(NULL), -EINVAL, "not a node");
    require_null(sluice_node_multichannel(NULL), EINVAL, "not a node");
    require_error(sluice_node_shutdown(NULL, 0), -EINVAL, "not a node");
    require_null(sluice_node_open(pd, NULL, NULL, -1), EINVAL, "deadline -1");
    require_null(sluice_node_pd(NULL), EINVAL, "not a node");
    require_null(sluice_node_context(NULL), EINVAL, "not a node");
    require_null(sluice_node_exchange(NULL), EINVAL, "not a node");
    sluice_prepared_node_free(NULL);
    sluice_node_close(NULL);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(node_reports_its_parts)
{
    struct ranks ranks;
    ranks_open(&ranks, 3, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        require(sluice_node_pd(ranks.nodes[i]) == ranks.pds[i], "another domain");
        require(sluice_node_context(ranks.nodes[i]) == ranks.contexts[i], "another context");
        require_null(sluice_node_exchange(ranks.nodes[i]), EINVAL, "did not open its exchange");
        require_result(sluice_node_rank(ranks.nodes[i]), i);
        require_result(sluice_node_ranks(ranks.nodes[i]), 3);
        require_result(sluice_multichannel_peers(sluice_node_multichannel(ranks.nodes[i])), 3);
        require_ok(
            sluice_multichannel_wait_connected(sluice_node_multichannel(ranks.nodes[i]), DEADLINE));
    }
    ranks_close(&ranks);
}

/* Two prepared nodes of ranks 0 and 1, and what each needs. */
struct duo {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_prepared_node *prepared[2];
    struct sluice_node_endpoint remotes[2][2];
};

static void duo_open(struct duo *duo)
{
    struct sluice_node_endpoint made[2][2];
    duo->context = open_context();
    duo->pd = sluice_pd_alloc(duo->context);
    for (uint32_t i = 0; i < 2; i++) {
        duo->prepared[i] = made(sluice_node_prepare(duo->pd, i, 2, NULL));
        require_ok(sluice_prepared_node_endpoints(duo->prepared[i], made[i], 2));
    }
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t j = 0; j < 2; j++) {
            duo->remotes[i][j] = made[j][i];
        }
    }
}

static void duo_close(struct duo *duo)
{
    sluice_prepared_node_free(duo->prepared[0]);
    sluice_prepared_node_free(duo->prepared[1]);
    sluice_pd_free(duo->pd);
    sluice_context_close(duo->context);
}

static struct sluice_node *duo_connect(struct duo *duo, uint32_t rank)
{
    struct sluice_prepared_node *prepared = duo->prepared[rank];
    duo->prepared[rank] = NULL;
    return sluice_prepared_node_handshake(prepared, duo->remotes[rank], 2);
}

/* Changes one number in the endpoint that rank 1 made for rank 0. */
TEST(endpoints_of_others)
{
    static const struct {
        size_t at; /* of the last byte of a number */
        uint8_t value;
        const char *words;
    } wrong[] = {
        {7, 0, "endpoint 1 made by rank 0"},
        {7, 2, "endpoint 1 made by rank 2"},
        {11, 1, "endpoint 1 is for rank 1"},
        {15, 3, "endpoint 1 program of 3 ranks"},
        {19, 3, "barrier of rank 1 stands for algorithm 3"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct duo duo;
        duo_open(&duo);
        duo.remotes[0][1].bytes[wrong[i].at] = wrong[i].value;
        node_endpoint_sign(&duo.remotes[0][1]);
        require_null(duo_connect(&duo, 0), EPROTO, wrong[i].words);
        duo_close(&duo);
    }
}

static void flip(struct sluice_node_endpoint *endpoint, size_t at)
{
    endpoint->bytes[at] ^= 0x10;
}

static void change_and_sign(struct sluice_node_endpoint *endpoint, size_t at)
{
    endpoint->bytes[at] ^= 0x81;
    node_endpoint_sign(endpoint);
}

static void erase(struct sluice_node_endpoint *endpoint, size_t at)
{
    memset(endpoint, (int)at, sizeof(*endpoint));
}

/* An unusable endpoint fails only its rank: damaged, of another version, nonsense, or zeros. */
static void connect_unusable(void (*spoil)(struct sluice_node_endpoint *endpoint, size_t at),
                             size_t at)
{
    struct duo duo;
    duo_open(&duo);
    spoil(&duo.remotes[0][1], at);
    struct sluice_node *node = duo_connect(&duo, 0);
    require(node, "byte %zu: %s", at, sluice_last_error());
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    require_result(sluice_multichannel_peer_state(all, 0), SLUICE_STATE_READY);
    require_result(sluice_multichannel_peer_state(all, 1), SLUICE_STATE_FAILED);
    require(peer_error(all, 1).error == -EPROTO, "byte %zu: %s", at, peer_error(all, 1).text);
    require_error(sluice_node_barrier(node, NULL, 0, 0, DEADLINE), -ECONNRESET,
                  "rank 1 is lost endpoint");
    /* A connection that was reset serves barriers again, if the address to write to is known. */
    bool known = spoil == change_and_sign && at >= 32 && at < 416;
    struct sluice_endpoint endpoint;
    require_ok(sluice_multichannel_peer_reset(all, 1, &endpoint));
    struct sluice_prepared_channel *channel = prepare_channel(duo.pd, NULL, &endpoint);
    require_ok(sluice_multichannel_peer_handshake(all, 1, &endpoint));
    require_ok(sluice_node_barrier_reset(node));
    require_error(sluice_node_barrier(node, NULL, 0, 0, known ? SLUICE_MS(1) : DEADLINE),
                  known ? -ETIMEDOUT : -ECONNRESET,
                  known ? "rank 1" : "rank 1 cannot take part in barriers");
    require_result(sluice_multichannel_peer_state(all, 1), SLUICE_STATE_READY);
    sluice_prepared_channel_free(channel);
    sluice_node_close(node);
    duo_close(&duo);
}

TEST(unusable_endpoints)
{
    for (size_t at = 0; at < sizeof(struct sluice_node_endpoint); at += short_run() ? 53 : 9) {
        connect_unusable(flip, at);
    }
    connect_unusable(change_and_sign, 1);
    connect_unusable(change_and_sign, 3);
    connect_unusable(change_and_sign, 31);
    connect_unusable(change_and_sign, 40);
    connect_unusable(change_and_sign, 415);
    connect_unusable(change_and_sign, 420);
    connect_unusable(erase, 0);
    connect_unusable(erase, 0xff);
}

/* The first line of the log. */
static char first_line[300];

static void keep_first_line(uint32_t level, const char *line, void *user)
{
    (void)level;
    (void)user;
    if (!first_line[0]) {
        snprintf(first_line, sizeof(first_line), "%s", line);
    }
}

/* Versions of the endpoint of rank 1; the connection inside has a version of its own. */
TEST(endpoints_from_the_future)
{
    static const struct {
        uint8_t written, readable; /* after ours */
        bool usable;
        const char *words;
    } later[] = {
        {9, 0, true, NULL},
        {1, 1, false, "rank 1: from version this library knows version too old"},
        {0, 1, false, "rank 1: version wrote it"},
        {(uint8_t)-1, (uint8_t)-1, false, "rank 1: written by version this library knows version"},
    };
    for (size_t i = 0; i < COUNT(later); i++) {
        struct duo duo;
        duo_open(&duo);
        struct sluice_node_endpoint *endpoint = &duo.remotes[0][1];
        endpoint->bytes[0] = (uint8_t)(endpoint->bytes[0] + later[i].written);
        endpoint->bytes[1] = (uint8_t)(endpoint->bytes[1] + later[i].readable);
        memset(endpoint->bytes + 424, 0x77, 20);
        node_endpoint_sign(endpoint);
        first_line[0] = '\0';
        require_ok(sluice_log_set(SLUICE_LOG_WARN, keep_first_line, NULL));
        struct sluice_node *nodes[2] = {duo_connect(&duo, 0), duo_connect(&duo, 1)};
        require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
        require(nodes[0] && nodes[1], "%zu: %s", i, sluice_last_error());
        require(later[i].usable == !first_line[0], "%zu: %s", i, first_line);
        struct sluice_multichannel *all = sluice_node_multichannel(nodes[0]);
        require_result(sluice_multichannel_peer_state(all, 1),
                       later[i].usable ? SLUICE_STATE_READY : SLUICE_STATE_FAILED);
        if (!later[i].usable) {
            require_result(peer_error(all, 1).error, -EPROTO);
            require_words(first_line, later[i].words);
        }
        sluice_node_close(nodes[0]);
        sluice_node_close(nodes[1]);
        duo_close(&duo);
    }
}

static void stop_at_different_times(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    struct sluice_completion completion;
    struct memory memory;
    uint32_t next = (rank + 1) % ranks->count;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    /* This receive stays empty. */
    require_ok(sluice_multichannel_post_receive(all, next, &sge, 1, DEADLINE, NULL));
    let_pass(rank == 2 ? SLUICE_MS(200) : 0);
    require_ok(sluice_node_shutdown(node, DEADLINE));
    require_result(sluice_multichannel_poll(all, &completion, 1), 1);
    /* The receive ends with the connection, which either side may end first. */
    require(completion.error == -ECANCELED || completion.error == -ECONNRESET, "%d",
            completion.error);
    require_error(sluice_node_barrier(node, NULL, 0, 0, DEADLINE), -ENOTCONN, "shut down");
    require_error(sluice_node_barrier_reset(node), -ENOTCONN, "shut down");
    require_error(sluice_node_shutdown(node, DEADLINE), -ENOTCONN, "shut down");
    sluice_node_close(node);
    ranks->nodes[rank] = NULL;
    memory_close(&memory);
}

/* One rank is much slower than the others, which close as soon as they may. */
TEST(orderly_end)
{
    static const uint32_t sizes[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
            const struct sluice_node_attr attr = {.size = sizeof(attr), .barrier = algorithm};
            ranks_try(sizes[i], &attr, stop_at_different_times);
        }
    }
}

/*
 * Rank 0 sends to rank 2, which receives only after the deadline of rank 0. The mark of rank 0
 * waits behind that message, so rank 2 gets it from rank 1.
 */
static void leave_work(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    if (rank == 0) {
        require_ok(sluice_multichannel_post_send(all, 2, &sge, 1, DEADLINE, NULL));
        require_error(sluice_node_shutdown(node, SLUICE_MS(100)), -ETIMEDOUT,
                      "1 send, write or read, to rank 2");
    } else {
        require_error(sluice_node_shutdown(node, DEADLINE), -ECANCELED,
                      rank == 2 ? "rank 0 gave up because of this rank: it did not take"
                                : "rank 0 gave up because of rank 2: it did not take");
    }
    ranks_meet(ranks);
    if (rank == 2) {
        require_ok(sluice_multichannel_receive(all, 0, &sge, 1, DEADLINE, NULL));
    }
    ranks_reset(ranks, rank);
    require_ok(sluice_node_shutdown(node, DEADLINE));
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(an_end_that_fails)
{
    ranks_try(3, NULL, leave_work);
}

/*
 * In reverse, rank 0 waits for its work, and sleeps, while rank 1 gives up. The mark of that wakes
 * no thread.
 */
static void wait_for_work(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    struct memory memory;
    memory_open(&memory, ranks->pds[rank], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    int64_t start = fair_now();
    if (rank == 0) {
        require_ok(sluice_multichannel_post_send(all, 2, &sge, 1, SLUICE_FOREVER, NULL));
        require_error(sluice_node_shutdown(node, DEADLINE), -ECANCELED, "rank 1 gave up");
        require(fair_now() - start < SLUICE_S(5), "%lld ms",
                (long long)(fair_now() - start) / 1000000);
    } else if (rank == 1) {
        require_error(sluice_node_shutdown(node, SLUICE_MS(100)), -ETIMEDOUT, "barrier of 3 ranks");
    }
    ranks_meet(ranks);
    if (rank == 2) {
        require_ok(sluice_multichannel_receive(all, 0, &sge, 1, DEADLINE, NULL));
    }
    ranks_reset(ranks, rank);
    require_ok(sluice_node_shutdown(node, DEADLINE));
    ranks_meet(ranks);
    memory_close(&memory);
}

TEST(an_end_that_fails_elsewhere)
{
    ranks_try(3, NULL, wait_for_work);
}

/* The multichannel belongs to the node: the program cannot close it. */
TEST(an_owned_multichannel)
{
    struct ranks ranks;
    ranks_open(&ranks, 2, NULL);
    sluice_multichannel_close(sluice_node_multichannel(ranks.nodes[0]));
    require(strstr(sluice_last_error(), "sluice_node_close()"), "%s", sluice_last_error());
    struct sluice_multichannel *all = sluice_node_multichannel(ranks.nodes[0]);
    require_error(sluice_multichannel_shutdown(all, 0), -EINVAL, "sluice_node_shutdown()");
    require_result(sluice_multichannel_peer_state(all, 1), SLUICE_STATE_READY);
    ranks_run(&ranks, stop_at_different_times);
    ranks_close(&ranks);
}

/* Exchanges of this process with itself, or that fail. */
static int copy_own(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    (void)argument;
    (void)deadline;
    memcpy(all, own, bytes);
    return 0;
}

static int miss(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    (void)argument;
    (void)own;
    (void)all;
    (void)bytes;
    (void)deadline;
    return -ETIMEDOUT;
}

static int lose(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    (void)argument;
    (void)own;
    (void)all;
    (void)bytes;
    (void)deadline;
    return -ECONNRESET;
}

TEST(open_alone)
{
    struct sluice_exchange_provider provider = {
        .size = sizeof(provider), .allgather = copy_own, .alltoall = copy_own};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange = sluice_exchange_wrap(&provider, NULL, 0, 1);
    require_null(sluice_node_open(pd, exchange, NULL, -1), EINVAL, "deadline -1");
    struct sluice_node *node = made(sluice_node_open(pd, exchange, NULL, DEADLINE));
    require_result(sluice_node_rank(node), 0);
    require_ok(sluice_node_barrier(node, NULL, 0, 0, 0));
    require_ok(sluice_node_shutdown(node, DEADLINE));
    sluice_node_close(node);
    sluice_exchange_close(exchange);

    int fds = count_fds();
    provider.alltoall = miss;
    provider.allgather = miss;
    exchange = sluice_exchange_wrap(&provider, NULL, 0, 2);
    errno = 0;
    node = sluice_node_open(pd, exchange, NULL, SLUICE_MS(100));
    require(!node && errno == ETIMEDOUT, "errno %d", errno);
    sluice_exchange_close(exchange);

    provider.alltoall = copy_own;
    provider.allgather = lose;
    exchange = sluice_exchange_wrap(&provider, NULL, 0, 1);
    errno = 0;
    node = sluice_node_open(pd, exchange, NULL, DEADLINE);
    require(!node && errno == ECONNRESET, "errno %d", errno);
    sluice_exchange_close(exchange);
    require(settle_fds(fds) <= fds, "%d file descriptors were %d", count_fds(), fds);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

/* Each rank sends its number to all, and stops. */
static void work_together(struct rank *rank)
{
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    struct sluice_node *node = made(sluice_node_open(pd, exchange, NULL, DEADLINE));
    sluice_exchange_close(exchange);
    require_result(sluice_node_rank(node), rank->index);
    require_result(sluice_node_ranks(node), rank->size);
    struct memory memory;
    struct sluice_sge sges[2 * GROUP_MAX];
    struct sluice_request sends[GROUP_MAX], receives[GROUP_MAX];
    memory_open(&memory, pd, 8 * GROUP_MAX + 8);
    memset(memory.bytes + 8 * GROUP_MAX, (int)rank->index + 1, 8);
    for (uint32_t i = 0; i < rank->size; i++) {
        sges[i] = memory_sge(&memory, 8 * GROUP_MAX, 8);
        sges[GROUP_MAX + i] = memory_sge(&memory, 8 * i, 8);
        sends[i] = request_of(SLUICE_OP_SEND, i, &sges[i]);
        receives[i] = request_of(SLUICE_OP_RECEIVE, i, &sges[GROUP_MAX + i]);
    }
    require_ok(sluice_multichannel_scatter_gather(sluice_node_multichannel(node), sends, rank->size,
                                                  receives, rank->size, DEADLINE, NULL));
    for (uint32_t i = 0; i < rank->size; i++) {
        value_check(memory.bytes + 8 * i, 8, (uint8_t)(i + 1));
    }
    let_pass(rank->index == 1 ? SLUICE_MS(100) : 0);
    require_ok(sluice_node_shutdown(node, DEADLINE));
    sluice_node_close(node);
    memory_close(&memory);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(open_together, .group = "processes", .unless = device_is_pretend)
{
    static const uint32_t sizes[] = {1, 2, 3, 5, 8, 16};
    for (size_t i = 0; i < COUNT(sizes) && !(short_run() && sizes[i] > 5); i++) {
        group_run(sizes[i], work_together, NULL, 40);
    }
}

/* One rank asks for another kind of barriers: both get the error, and everything is closed. */
static void disagree(struct rank *rank)
{
    const struct sluice_node_attr attr = {.size = sizeof(attr), .barrier = rank->index + 1};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_exchange *exchange = rank_exchange_open(rank);
    require_null(sluice_node_open(pd, exchange, &attr, DEADLINE), EPROTO,
                 "sluice_node_attr.barrier");
    sluice_exchange_close(exchange);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(open_in_disagreement, .group = "processes", .unless = device_is_pretend)
{
    group_run(2, disagree, NULL, 40);
}

int main(void)
{
    return RUN_GROUPS("node", {"self", WIRE_SELF, 120}, {"tcp", WIRE_TCP, 120},
                      {"processes", WIRE_SHM, 240});
}
