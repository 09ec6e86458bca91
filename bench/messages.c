/* SPDX-License-Identifier: MIT */
/*
 * What it costs to send pages that lie apart: a message of blocks beside the program's own copy
 * to memory without gaps and a plain send of that, between two processes.
 *
 *   bench/messages [WIRE...]    shm and tcp
 *
 * A message has 64 pages of 4 KiB, in an order of their own, and the peer receives it without
 * gaps. A round is a batch of blocking sends of each kind, so that a drift of the machine meets
 * both alike; the ratio is the median of the rounds, and beside it are its quartiles. Less than 1:
 * blocks are quicker. The channel has 4 elements a request, as by default, or 32.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#define DEADLINE SLUICE_S(60)
#define PAGE 4096u
#define PAGES 64u
#define SPAN (16 * PAGES) /* pages that they are taken from */
#define BYTES (PAGE * PAGES)
#define BATCH 64
#define ROUNDS 41
#define DEPTH 16

struct side {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_channel *channel;
    struct sluice_mr *mr;   /* of the pages, or of what is received */
    struct sluice_mr *flat; /* where the program copies pages to */
    uint32_t pages[PAGES];
};

static int complain(const char *what)
{
    fprintf(stderr, "messages: %s: %s\n", what, sluice_last_error());
    return -1;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int open_side(struct side *side, int socket, uint32_t max_sge)
{
    const struct sluice_channel_attr attr = {
        .size = sizeof attr, .max_sge = max_sge, .staging = 2 * BYTES};
    struct sluice_prepared_channel *prepared;
    struct sluice_endpoint ours, theirs;

    side->context = sluice_context_open("soft", NULL);
    side->pd = side->context != NULL ? sluice_pd_alloc(side->context) : NULL;
    side->mr = sluice_mr_alloc(side->pd, SPAN * PAGE, SLUICE_ACCESS_LOCAL_WRITE);
    side->flat = sluice_mr_alloc(side->pd, BYTES, SLUICE_ACCESS_LOCAL_WRITE);
    prepared = sluice_channel_prepare(side->pd, &attr);
    if (side->mr == NULL || side->flat == NULL || prepared == NULL ||
        sluice_prepared_channel_endpoint(prepared, &ours) != 0)
        return complain("prepare");
    if (send(socket, &ours, sizeof ours, MSG_NOSIGNAL) != sizeof ours ||
        recv(socket, &theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs)
        return complain("endpoints");
    side->channel = sluice_prepared_channel_handshake(prepared, &theirs);
    if (side->channel == NULL || sluice_channel_wait_connected(side->channel, DEADLINE) != 0)
        return complain("connect");
    memset(sluice_mr_addr(side->mr), 1, SPAN * PAGE);
    memset(sluice_mr_addr(side->flat), 1, BYTES);
    return 0;
}

static int close_side(struct side *side, int result)
{
    if (side->channel != NULL && sluice_channel_shutdown(side->channel, DEADLINE) != 0)
        result = result < 0 ? result : complain("shutdown");
    sluice_channel_close(side->channel);
    sluice_mr_deregister(side->mr);
    sluice_mr_deregister(side->flat);
    sluice_pd_free(side->pd);
    sluice_context_close(side->context);
    return result;
}

/* Receives all messages, of which some are always awaited. */
static int receive_all(struct side *side)
{
    const int total = 2 * BATCH * ROUNDS;
    struct sluice_request request = {.opcode = SLUICE_OP_RECEIVE, .sge_count = 1};
    int posted = 0;

    if (sluice_mr_sge(side->mr, 0, BYTES, &request.sge) != 0)
        return complain("element");
    for (int taken = 0; taken < total; taken++) {
        struct sluice_completion completion;

        for (; posted < total && posted < taken + DEPTH; posted++)
            if (sluice_channel_post(side->channel, &request, 1, DEADLINE, NULL) != 1)
                return complain("post");
        if (sluice_channel_next(side->channel, DEADLINE, &completion) != 0 ||
            completion.error != 0 || completion.bytes != BYTES)
            return complain("receive");
    }
    return 0;
}

static int send_copied(struct side *side)
{
    uint8_t *flat = sluice_mr_addr(side->flat);
    const uint8_t *from = sluice_mr_addr(side->mr);
    struct sluice_sge sge;

    for (uint32_t i = 0; i < PAGES; i++)
        memcpy(flat + (size_t)i * PAGE, from + (size_t)side->pages[i] * PAGE, PAGE);
    if (sluice_mr_sge(side->flat, 0, BYTES, &sge) != 0)
        return complain("element");
    return sluice_channel_send(side->channel, &sge, 1, DEADLINE) == 0 ? 0 : complain("send");
}

static int send_blocks(struct side *side)
{
    const struct sluice_blocks blocks = {
        .size = sizeof blocks,
        .local = {
            .kind = SLUICE_LAYOUT_PAGED, .count = PAGES, .bytes = PAGE, .indices = side->pages}};
    struct sluice_request request = {.opcode = SLUICE_OP_SEND, .sge_count = 1, .blocks = &blocks};

    if (sluice_mr_sge(side->mr, 0, SPAN * PAGE, &request.sge) != 0)
        return complain("element");
    return sluice_channel_submit(side->channel, &request, 1, DEADLINE, NULL) == 0
               ? 0
               : complain("blocks");
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Which of the two is first changes from round to round. */
static int measure(struct side *side, const char *wire, uint32_t max_sge)
{
    static int (*const kinds[])(struct side * side) = {send_copied, send_blocks};
    double times[2][ROUNDS], ratios[ROUNDS];

    for (uint32_t i = 0; i < PAGES; i++)
        side->pages[i] = (i * 37 + 5) % PAGES * (SPAN / PAGES);
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < 2; k++) {
            int kind = (round + k) % 2;
            double begin = now();

            for (int i = 0; i < BATCH; i++)
                if (kinds[kind](side) < 0)
                    return -1;
            times[kind][round] = (now() - begin) / BATCH;
        }
        ratios[round] = times[1][round] / times[0][round];
    }
    for (int kind = 0; kind < 2; kind++)
        qsort(times[kind], ROUNDS, sizeof times[kind][0], compare);
    qsort(ratios, ROUNDS, sizeof ratios[0], compare);
    printf("%-6s %7u %10.1f %10.1f %8.2f [%.2f, %.2f]\n", wire, max_sge, 1e6 * times[0][ROUNDS / 2],
           1e6 * times[1][ROUNDS / 2], ratios[ROUNDS / 2], ratios[ROUNDS / 4],
           ratios[ROUNDS * 3 / 4]);
    fflush(stdout);
    return 0;
}

/* One of the two processes. */
static int run_side(int socket, bool sends, const char *wire, uint32_t max_sge)
{
    struct side side = {0};
    int result;

    setenv("SLUICE_WIRE", wire, 1);
    result = open_side(&side, socket, max_sge);
    if (result == 0)
        result = sends ? measure(&side, wire, max_sge) : receive_all(&side);
    return close_side(&side, result);
}

static int run_wire(const char *wire, uint32_t max_sge)
{
    int sockets[2], status[2] = {1, 1};
    pid_t pids[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(sockets[1 - i]);
            exit(run_side(sockets[i], i == 0, wire, max_sge) == 0 ? 0 : 1);
        }
    }
    close(sockets[0]);
    close(sockets[1]);
    for (int i = 0; i < 2; i++)
        if (pids[i] < 0 || waitpid(pids[i], &status[i], 0) != pids[i])
            status[i] = 1;
    return status[0] == 0 && status[1] == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    static const char *usual[] = {"shm", "tcp"};
    const char *const *wires = argc > 1 ? (const char *const *)argv + 1 : usual;
    int count = argc > 1 ? argc - 1 : 2;
    int result = 0;

    printf("%-6s %7s %10s %10s %8s [quartiles]\n", "wire", "max_sge", "copied us", "blocks us",
           "ratio");
    fflush(stdout);
    for (int i = 0; i < count; i++)
        for (uint32_t max_sge = 4; max_sge <= 32; max_sge *= 8)
            if (run_wire(wires[i], max_sge) != 0)
                result = 1;
    return result;
}
