/* SPDX-License-Identifier: MIT */
/*
 * Idle connections between two processes of a host: what they cost, and that they share memory once
 * one side has something to send.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

#define PEERS 512
#define FIRST 64
/* The most that an idle peer may cost each of the two processes. */
#define PEER_BYTES 4096
/* Endpoints that one exchange carries. */
#define BATCH (GROUP_BLOCK / sizeof(struct sluice_endpoint))

struct end {
    struct rank *rank;
    struct sluice_context *context;
    struct sluice_pd *pd;
};

static void end_open(struct end *end, struct rank *rank)
{
    end->rank = rank;
    end->context = open_context();
    end->pd = made(sluice_pd_alloc(end->context));
}

static void end_close(struct end *end)
{
    sluice_pd_free(end->pd);
    sluice_context_close(end->context);
}

static void swap_endpoints(struct rank *rank, struct sluice_endpoint *endpoints, uint32_t count)
{
    static struct sluice_endpoint both[2][BATCH];

    for (uint32_t at = 0; at < count; at += BATCH) {
        size_t bytes = sizeof both[0];

        memcpy(both[0], &endpoints[at], bytes);
        memcpy(both[1], &endpoints[at], bytes);
        rank_exchange(rank, both, both, bytes);
        memcpy(&endpoints[at], both[!rank->index], bytes);
    }
}

/* Connects a multichannel whose peers are all ends at the other rank. */
static struct sluice_multichannel *connect_peers(struct end *end, uint32_t peers)
{
    static struct sluice_endpoint endpoints[PEERS];
    struct sluice_prepared_multichannel *prepared =
        made(sluice_multichannel_prepare(end->pd, peers, NULL));

    require_ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, peers));
    swap_endpoints(end->rank, endpoints, peers);
    struct sluice_multichannel *all =
        made(sluice_prepared_multichannel_handshake(prepared, endpoints, peers));
    for (uint32_t i = 0; i < peers; i++)
        require_ok(sluice_multichannel_peer_wait_connected(all, i, DEADLINE));
    return all;
}

/* Returns the memory of the process, with a half of each page that two processes share. */
static long bytes_here(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kilobytes = 0;

    require(file, "%s", strerror(errno));
    while (fgets(line, sizeof line, file) && sscanf(line, "Pss: %ld", &kilobytes) != 1)
        ;
    fclose(file);
    return kilobytes * 1024;
}

/* Returns how many connections share memory. */
static int count_shared(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;

    require(file, "%s", strerror(errno));
    while (fgets(line, sizeof line, file)) {
        unsigned long start, end;

        if (strstr(line, "memfd:sluice-shm") && strstr(line, " rw-s ") &&
            sscanf(line, "%lx-%lx", &start, &end) == 2)
            count += end - start == 8192;
    }
    fclose(file);
    return count;
}

/* A message in each direction. */
static void use(struct rank *rank, struct sluice_multichannel *all, uint32_t peer, uint32_t first)
{
    for (uint32_t turn = 0; turn < 2; turn++)
        if (rank->index == (turn == 0 ? first : !first))
            require_ok(sluice_multichannel_send(all, peer, NULL, 0, DEADLINE));
        else
            require_ok(sluice_multichannel_receive(all, peer, NULL, 0, DEADLINE, NULL));
}

static void cost_little(struct rank *rank)
{
    struct end end;

    end_open(&end, rank);
    struct sluice_multichannel *few = connect_peers(&end, FIRST);
    rank_barrier(rank);
    long before = bytes_here();
    rank_barrier(rank);
    struct sluice_multichannel *all = connect_peers(&end, PEERS);
    rank_barrier(rank);
    long each = (bytes_here() - before) / PEERS;
    require(each <= PEER_BYTES || SANITIZED, "%ld bytes for an idle peer", each);
    require_result(count_shared(), 0);
    rank_barrier(rank);
    for (uint32_t i = 0; i < PEERS; i += 8)
        use(rank, all, i, i / 8 % 2);
    require_result(count_shared(), PEERS / 8);
    rank_barrier(rank);
    sluice_multichannel_close(all);
    sluice_multichannel_close(few);
    end_close(&end);
}

TEST(an_idle_peer_costs_little)
{
    group_run(2, cost_little, NULL, 60);
}

/* Both sides begin at the same time, with different requests. */
static void begin_together(struct rank *rank)
{
    struct memory memory;
    struct end end;

    end_open(&end, rank);
    memory_open(&memory, end.pd, PEERS * 8);
    struct sluice_multichannel *all = connect_peers(&end, PEERS);
    for (uint32_t i = 0; i < PEERS; i++) {
        struct sluice_sge sge = memory_sge(&memory, (size_t)i * 8, 8);
        struct sluice_request requests[2] = {request_of(SLUICE_OP_RECEIVE, i, &sge),
                                             request_of(SLUICE_OP_SEND, i, NULL)};

        if (i % 16 == 0)
            rank_barrier(rank);
        require_ok(sluice_multichannel_submit(all, requests, 2, DEADLINE, NULL));
    }
    require_result(count_shared(), PEERS);
    rank_barrier(rank);
    sluice_multichannel_close(all);
    memory_close(&memory);
    end_close(&end);
}

TEST(both_sides_may_begin)
{
    group_run(2, begin_together, NULL, 60);
}

/* An idle peer that closes says so, also to a side that has just begun to send. */
static void close_idle(struct rank *rank)
{
    struct end end;

    end_open(&end, rank);
    struct sluice_multichannel *all = connect_peers(&end, FIRST);
    rank_barrier(rank);
    if (rank->index == 0) {
        sluice_multichannel_close(all);
    } else {
        for (uint32_t i = 0; i < FIRST; i++) {
            int result = i % 2 == 0 ? sluice_multichannel_send(all, i, NULL, 0, DEADLINE)
                                    : sluice_multichannel_receive(all, i, NULL, 0, DEADLINE, NULL);

            require_error(result, -ECONNRESET, "the peer closed the connection");
        }
        sluice_multichannel_close(all);
    }
    end_close(&end);
}

TEST(an_idle_peer_that_closes_says_so, .times = 3)
{
    group_run(2, close_idle, NULL, 60);
}

/* A process that ends while its connections are idle, or are just used for the first time. */
static void die_idle(struct rank *rank)
{
    struct end end;

    end_open(&end, rank);
    struct sluice_multichannel *all = connect_peers(&end, FIRST);
    rank_barrier(rank);
    if (rank->index == 1)
        rank_await_death(rank);
    for (uint32_t i = 0; i < FIRST; i++) {
        struct sluice_request request = request_of(SLUICE_OP_SEND, i, NULL);

        if (i == FIRST / 2)
            rank_kill(rank, 1);
        if (i < FIRST / 2)
            require_result(sluice_multichannel_post(all, &request, 1, DEADLINE, NULL), 1);
        else
            require_result(sluice_multichannel_send(all, i, NULL, 0, DEADLINE), -ECONNRESET);
    }
    for (uint32_t i = 0; i < FIRST / 2; i++) {
        struct sluice_completion completion;

        require_ok(sluice_multichannel_next(all, DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_PEER_LOST);
    }
    sluice_multichannel_close(all);
    end_close(&end);
}

TEST(the_death_of_an_idle_peer_is_noticed)
{
    group_run(2, die_idle, NULL, 60);
}

int main(void)
{
    return RUN_ON_SOFT("idle", {"shm", WIRE_SHM, 100});
}
