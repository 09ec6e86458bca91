/* SPDX-License-Identifier: MIT */
/* Exchanges, over which ranks find each other: an iteration is one call of all ranks. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ways.h"

/* Finds a free port of the loopback. */
static unsigned find_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(fd, (struct sockaddr *)&address, length));
    getsockname(fd, (struct sockaddr *)&address, &length);
    close(fd);
    return ntohs(address.sin_port);
}

static struct sluice_exchange *open_exchange(struct rank *rank)
{
    unsigned own = find_port(), all[16];
    char root[32];
    const struct sluice_exchange_attr attr = {.size = sizeof attr,
                                              .kind = SLUICE_EXCHANGE_TCP,
                                              .rank = rank->rank == 0 ? SLUICE_ZERO : rank->rank,
                                              .ranks = rank->ranks,
                                              .root = root};

    share(rank, &own, all, sizeof own);
    snprintf(root, sizeof root, "127.0.0.1:%u", all[0]);
    return MAKE(sluice_exchange_open(&attr, DEADLINE));
}

static void make_exchange(struct rank *rank)
{
    rank->state = open_exchange(rank);
}

static void end_exchange(struct rank *rank)
{
    meet(rank);
    sluice_exchange_close(rank->state);
}

static void exchange_open(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sluice_exchange *exchange = open_exchange(rank);

        MUST(sluice_exchange_barrier(exchange, DEADLINE));
        meet(rank);
        sluice_exchange_close(exchange);
    }
}

static int gather_one(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    (void)argument;
    (void)deadline;
    (void)own;
    (void)all;
    (void)bytes;
    return 0;
}

static int pass(void *argument, int64_t deadline)
{
    (void)argument;
    (void)deadline;
    return 0;
}

static void exchange_wrap(struct rank *rank, uint64_t count)
{
    const struct sluice_exchange_provider provider = {
        .size = sizeof provider, .allgather = gather_one, .barrier = pass};

    for (uint64_t i = 0; i < count; i++)
        sluice_exchange_close(MAKE(sluice_exchange_wrap(&provider, rank, 0, 1)));
}

static void exchange_barrier(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_exchange_barrier(rank->state, DEADLINE));
}

static void exchange_allgather(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_exchange_allgather(rank->state, rank->memory, rank->memory + 4096, rank->size,
                                       DEADLINE));
}

static void exchange_alltoall(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_exchange_alltoall(rank->state, rank->memory, rank->memory + 4096, rank->size,
                                      DEADLINE));
}

static void exchange_locality(struct rank *rank, uint64_t count)
{
    uint32_t which, of;

    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_exchange_locality(rank->state, &which, &of, DEADLINE));
}

#define WAY(name, against, calls)                            \
    {                                                        \
#name, "exchange", against, NULL, NULL, calls, 0,    \
            {2, 4 }, {8 }, make_exchange, name, end_exchange \
    }

const struct way ways_exchange[] = {
    {"exchange_open",
     "exchange",
     NULL,
     "plain_connect",
     NULL,
     "exchange_open exchange_close",
     0,
     {2},
     {8},
     NULL,
     exchange_open,
     NULL},
    {"exchange_wrap",
     "exchange",
     NULL,
     NULL,
     NULL,
     "exchange_wrap exchange_close",
     0,
     {1},
     {8},
     NULL,
     exchange_wrap,
     NULL},
    WAY(exchange_barrier, NULL, "exchange_barrier"),
    WAY(exchange_allgather, "exchange_barrier", "exchange_allgather"),
    WAY(exchange_alltoall, "exchange_barrier", "exchange_alltoall"),
    WAY(exchange_locality, "exchange_barrier", "exchange_locality"),
    {0},
};
