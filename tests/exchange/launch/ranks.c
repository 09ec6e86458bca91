/* SPDX-License-Identifier: MIT */
/*
 * One rank of a job, for check-launch.sh: opens the exchanges that the environment
 * asks for, one after the other, checks each call, and prints "rank R of N by
 * SOURCE over KIND".
 *
 *   ranks [EXCHANGES | late | child]
 *
 * With "late" one rank does not come, and the others print the text of their deadline. With
 * "child", beside each exchange a forked child and a second exchange are refused.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sluice.h>

#define LIMIT SLUICE_S(60)

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, sluice_last_error());
    exit(1);
}

static uint32_t mark(uint32_t from, uint32_t to)
{
    return from * 65537 + to * 3 + 1;
}

static void check_calls(struct sluice_exchange *exchange, uint32_t rank, uint32_t ranks)
{
    uint32_t *to = calloc(ranks, sizeof(*to));
    uint32_t *from = calloc(ranks, sizeof(*from));
    uint32_t own = mark(rank, 0);
    if (!to || !from) {
        die("no memory");
    }
    if (sluice_exchange_allgather(exchange, &own, from, sizeof(own), LIMIT) < 0) {
        die("allgather");
    }
    for (uint32_t i = 0; i < ranks; i++) {
        if (from[i] != mark(i, 0)) {
            die("what allgather brought");
        }
        to[i] = mark(rank, i);
    }
    if (sluice_exchange_alltoall(exchange, to, from, sizeof(own), LIMIT) < 0) {
        die("alltoall");
    }
    for (uint32_t i = 0; i < ranks; i++) {
        if (from[i] != mark(i, rank)) {
            die("what alltoall brought");
        }
    }
    if (sluice_exchange_barrier(exchange, LIMIT) < 0 ||
        sluice_exchange_allgather(exchange, NULL, NULL, 0, LIMIT) < 0) {
        die("barrier");
    }
    free(from);
    free(to);
}

/* Opens that the launcher's server would confuse with the first one are refused. */
static void check_refusals(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        _exit(sluice_exchange_open(NULL, LIMIT) || errno != ENOTCONN);
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        die("an exchange of a child");
    }
    if (sluice_exchange_open(NULL, LIMIT) || errno != EBUSY) {
        die("a second exchange");
    }
}

int main(int argc, char **argv)
{
    bool child = argc > 1 && strcmp(argv[1], "child") == 0;
    bool late = argc > 1 && strcmp(argv[1], "late") == 0;
    int count = argc > 1 && !late && !child ? atoi(argv[1]) : 1;
    for (int i = 0; i < count; i++) {
        static const char *const kinds[] = {"auto", "TCP", "PMIx", "own"};
        struct sluice_exchange_info info = {.size = sizeof(info)};
        struct sluice_exchange *exchange = sluice_exchange_open(NULL, late ? SLUICE_S(3) : LIMIT);
        if (!exchange) {
            die("open");
        }
        if (sluice_exchange_query(exchange, &info) < 0) {
            die("query");
        }
        if (child) {
            check_refusals();
        }
        check_calls(exchange, info.rank, info.ranks);
        if (i == count - 1) {
            printf("rank %u of %u by %s over %s\n", info.rank, info.ranks, info.source,
                   kinds[info.kind]);
        }
        sluice_exchange_close(exchange);
    }
    return 0;
}
