/* SPDX-License-Identifier: MIT */
/*
 * Barriers: the three algorithms side by side, groups of ranks with barriers of
 * their own, a rank that is late, and a rank that is too late, after which all ranks
 * reset their barriers and go on.
 *
 *   11-barriers [-n RANKS]
 *
 * The ranks are processes of this program. They have sockets already, and a function
 * makes an exchange of these, which is all that a node needs to find the other ranks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#include "workers.h"

#define ROUNDS 200
#define DEADLINE SLUICE_S(60)
#define LATE SLUICE_MS(100)

static const char *const names[] = {"default", "tree", "central", "dissemination"};

/* The sockets over which the ranks talk before they are connected: rank 0 has one to each. */
struct party {
    uint32_t rank, ranks;
    int socket;                    /* to rank 0 */
    const struct workers *workers; /* of rank 0 */
};

/* Collects the blocks of all ranks at rank 0, which sends them to all. */
static int allgather(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    const struct party *party = argument;
    char *blocks = all;
    int failed = 0;

    (void)deadline; /* the sockets have a timeout of their own */
    if (party->rank != 0)
        return give(party->socket, own, bytes) == 0 &&
                       take(party->socket, all, party->ranks * bytes) == 0
                   ? 0
                   : -ECONNRESET;
    memcpy(blocks, own, bytes);
    for (uint32_t i = 1; i < party->ranks; i++)
        failed |= take(party->workers->sockets[i], blocks + i * bytes, bytes);
    for (uint32_t i = 1; i < party->ranks; i++)
        failed |= give(party->workers->sockets[i], all, party->ranks * bytes);
    return failed == 0 ? 0 : -ECONNRESET;
}

static int meet(void *argument, int64_t deadline)
{
    char own = 0, all[MAX_PROCESSES];

    return allgather(argument, &own, all, 1, deadline);
}

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void be_late(void)
{
    const struct timespec time = {.tv_nsec = LATE};

    nanosleep(&time, NULL);
}

static int compare_algorithms(const struct party *party, struct sluice_node *node)
{
    for (uint32_t algorithm = 1; algorithm <= 3; algorithm++) {
        int64_t start = now();

        for (int i = 0; i < ROUNDS; i++)
            if (sluice_node_barrier(node, NULL, 0, algorithm, DEADLINE) != 0)
                return complain_as(party->rank, names[algorithm]);
        if (party->rank == 0)
            printf("%-14s %8.1f us\n", names[algorithm], (double)(now() - start) / ROUNDS / 1000);
    }
    return 0;
}

/* Even and odd ranks have barriers of their own, at the same time. */
static int part_in_groups(const struct party *party, struct sluice_node *node)
{
    uint32_t group[MAX_PROCESSES], count = 0;

    for (uint32_t i = party->rank % 2; i < party->ranks; i += 2)
        group[count++] = i;
    for (int i = 0; i < ROUNDS; i++)
        if (sluice_node_barrier(node, group, count, SLUICE_BARRIER_DEFAULT, DEADLINE) != 0)
            return complain_as(party->rank, "barrier of a group");
    if (party->rank == 0)
        printf("rank 0 had %d barriers with %" PRIu32 " other even ranks\n", ROUNDS, count - 1);
    return 0;
}

static int wait_for_the_last(const struct party *party, struct sluice_node *node)
{
    int64_t start = now();

    if (party->rank == party->ranks - 1)
        be_late();
    if (sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE) != 0)
        return complain_as(party->rank, "barrier with a late rank");
    if (party->rank == 0 && party->ranks > 1)
        printf("nobody left before rank %" PRIu32 " came: %s\n", party->ranks - 1,
               now() - start >= LATE / 2 ? "true" : "false");
    return 0;
}

/* Rank 0 does not wait that long: the barrier fails for all ranks at once. */
static int give_up(const struct party *party, struct sluice_node *node,
                   struct sluice_exchange *exchange)
{
    int64_t deadline = party->rank == 0 ? LATE / 10 : DEADLINE;
    int result;

    if (party->ranks == 1)
        return 0;
    if (party->rank == party->ranks - 1)
        be_late();
    result = sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_CENTRAL, deadline);
    if (party->rank <= 1)
        printf("rank %" PRIu32 ": %s\n", party->rank, sluice_last_error());
    if (result != (party->rank == 0 ? -ETIMEDOUT : -ECANCELED))
        return complain_as(party->rank, "a barrier that should fail");
    /* Barriers work again once all ranks have reset theirs. */
    if (sluice_node_barrier_reset(node) != 0 || sluice_exchange_barrier(exchange, DEADLINE) != 0 ||
        sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_DEFAULT, DEADLINE) != 0)
        return complain_as(party->rank, "reset the barriers");
    if (party->rank == 0)
        printf("and the barriers work again\n");
    return 0;
}

/* The node opens its own device, as it is not given one. */
static int run(const struct party *party, struct sluice_exchange *exchange)
{
    struct sluice_node *node = sluice_node_open(NULL, exchange, NULL, DEADLINE);
    int result = 0;

    if (node == NULL)
        return complain_as(party->rank, "connect");
    if (compare_algorithms(party, node) != 0 || part_in_groups(party, node) != 0 ||
        wait_for_the_last(party, node) != 0 || give_up(party, node, exchange) != 0)
        result = -1;
    else if (sluice_node_shutdown(node, DEADLINE) != 0)
        result = complain_as(party->rank, "shut down");
    fflush(stdout);
    sluice_node_close(node);
    return result;
}

static int live(struct party *party)
{
    const struct sluice_exchange_provider provider = {
        .size = sizeof(provider), .allgather = allgather, .barrier = meet};
    struct sluice_exchange *exchange =
        sluice_exchange_wrap(&provider, party, party->rank, party->ranks);
    int result;

    if (exchange == NULL)
        return complain_as(party->rank, "begin");
    result = run(party, exchange);
    sluice_exchange_close(exchange);
    return result;
}

/* Receives the rank from rank 0, and runs it. */
static int run_worker(int socket)
{
    struct party party = {.socket = socket};

    if (take(socket, &party.rank, sizeof(party.rank)) != 0 ||
        take(socket, &party.ranks, sizeof(party.ranks)) != 0)
        return -1;
    return live(&party);
}

static int run_first(const struct workers *workers)
{
    struct party party = {.ranks = workers->count, .workers = workers};

    for (uint32_t i = 1; i < workers->count; i++)
        if (give(workers->sockets[i], &i, sizeof(i)) != 0 ||
            give(workers->sockets[i], &party.ranks, sizeof(party.ranks)) != 0)
            return -1;
    return live(&party);
}

int main(int argc, char **argv)
{
    struct workers workers = {.count = 0};
    int ranks = 6, option;
    int result = -1;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option == 'n')
            ranks = atoi(optarg);
        if (option == '?' || ranks < 1 || ranks > MAX_PROCESSES) {
            fprintf(stderr, "usage: 11-barriers [-n RANKS], 1 to %d\n", MAX_PROCESSES);
            return 2;
        }
    }
    if (workers_start(&workers, (uint32_t)ranks, run_worker) == 0)
        result = run_first(&workers);
    return workers_end(&workers, result) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
