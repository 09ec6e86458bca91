/* SPDX-License-Identifier: MIT */
/*
 * One-way latency between two processes of this host: half of the median round
 * trip.
 *
 *   bench/pingpong
 *
 *   send   the receive is posted beforehand; the blocking send ends when the
 *          other side has received
 *   write  the message, then an 8-byte word that the other side watches
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#define LARGE ((size_t)1 << 20)
/* The memory: out, in, and a word of each. */
#define WORD_OUT (2 * LARGE)
#define WORD_IN (WORD_OUT + 8)
#define MEMORY (WORD_IN + 8)
#define MAX_ROUNDS 10000
#define DEADLINE SLUICE_S(30)

struct side {
    int serves;
    int socket;
    struct sluice_channel *channel;
    struct sluice_mr *mr;
    struct sluice_remote_mr remote;
};

static int complain(const char *what)
{
    fprintf(stderr, "pingpong: %s: %s\n", what, sluice_last_error());
    return -1;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int swap(int socket, const void *out, void *in, size_t size)
{
    if (send(socket, out, size, MSG_NOSIGNAL) == (ssize_t)size &&
        recv(socket, in, size, 0) == (ssize_t)size)
        return 0;
    fprintf(stderr, "pingpong: the other process is gone\n");
    return -1;
}

static int meet(int socket)
{
    char byte = 0;

    return swap(socket, &byte, &byte, 1);
}

/* Both sides have a receive posted before the other one sends. */
static int play_send(struct side *side, size_t bytes, uint32_t rounds, double *times)
{
    struct sluice_sge out, in;
    const struct sluice_request receive = {
        .opcode = SLUICE_OP_RECEIVE, .sges = &in, .sge_count = 1};
    struct sluice_handle handle;
    struct sluice_completion completion;

    if (sluice_mr_sge(side->mr, 0, bytes, &out) != 0 ||
        sluice_mr_sge(side->mr, LARGE, bytes, &in) != 0 ||
        sluice_channel_post(side->channel, &receive, 1, DEADLINE, &handle) != 0)
        return complain("post the first receive");
    if (meet(side->socket) != 0)
        return -1;
    for (uint32_t round = 0; round < rounds; round++) {
        double begin = now();
        if (side->serves && sluice_channel_send(side->channel, &out, 1, DEADLINE) != 0)
            return complain("send");
        if (sluice_channel_wait(side->channel, &handle, DEADLINE, &completion) != 0 ||
            completion.error != 0)
            return complain("receive");
        if (round + 1 < rounds &&
            sluice_channel_post(side->channel, &receive, 1, DEADLINE, &handle) != 0)
            return complain("post a receive");
        if (!side->serves && sluice_channel_send(side->channel, &out, 1, DEADLINE) != 0)
            return complain("send");
        times[round] = now() - begin;
    }
    return 0;
}

/* The message, unless it is the word itself, and then the word. */
static int write_out(struct side *side, size_t bytes, uint64_t word)
{
    struct sluice_sge sges[2];
    struct sluice_request requests[2] = {
        {.opcode = SLUICE_OP_WRITE, .sges = &sges[0], .sge_count = 1},
        {.opcode = SLUICE_OP_WRITE, .sges = &sges[1], .sge_count = 1},
    };
    uint32_t first = bytes > sizeof(word) ? 0 : 1;

    *(uint64_t *)((char *)sluice_mr_addr(side->mr) + WORD_OUT) = word;
    if (sluice_mr_sge(side->mr, 0, bytes, &sges[0]) != 0 ||
        sluice_mr_sge(side->mr, WORD_OUT, sizeof(word), &sges[1]) != 0 ||
        sluice_remote_mr_slice(&side->remote, LARGE, bytes, &requests[0].remote) != 0 ||
        sluice_remote_mr_slice(&side->remote, WORD_IN, sizeof(word), &requests[1].remote) != 0 ||
        sluice_channel_submit(side->channel, requests + first, 2 - first, DEADLINE, NULL) != 0)
        return complain("write");
    return 0;
}

/* The other side is not asked for anything, so there is no call to wait with. */
static int watch(const struct side *side, uint64_t word)
{
    const uint64_t *place = (const uint64_t *)((char *)sluice_mr_addr(side->mr) + WORD_IN);
    double begin = 0;

    for (uint32_t spins = 1; sluice_load_acquire64(place) != word; spins++) {
        if (spins % 1024 != 0)
            continue;
        sched_yield();
        if (begin == 0)
            begin = now();
        if (now() - begin > 30) {
            fprintf(stderr, "pingpong: nothing was written for 30 s\n");
            return -1;
        }
    }
    return 0;
}

static int play_write(struct side *side, size_t bytes, uint32_t rounds, double *times)
{
    for (uint32_t round = 0; round < rounds; round++) {
        uint64_t word = (uint64_t)bytes << 32 | (round + 1);
        double begin = now();
        if (side->serves && write_out(side, bytes, word) != 0)
            return -1;
        if (watch(side, word) != 0)
            return -1;
        if (!side->serves && write_out(side, bytes, word) != 0)
            return -1;
        times[round] = now() - begin;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int play_all(struct side *side)
{
    static const struct {
        const char *name;
        int (*play)(struct side *side, size_t bytes, uint32_t rounds, double *times);
        size_t bytes;
        uint32_t rounds;
    } games[] = {
        {"send", play_send, 8, MAX_ROUNDS},
        {"send", play_send, LARGE, MAX_ROUNDS / 20},
        {"write", play_write, 8, MAX_ROUNDS / 5},
        {"write", play_write, LARGE, MAX_ROUNDS / 20},
    };
    static double times[MAX_ROUNDS];

    for (size_t i = 0; i < sizeof(games) / sizeof(games[0]); i++) {
        if (games[i].play(side, games[i].bytes, games[i].rounds, times) != 0)
            return -1;
        qsort(times, games[i].rounds, sizeof(times[0]), compare);
        if (side->serves)
            printf("%-5s %8zu bytes  %9.2f us one way  (median of %u)\n", games[i].name,
                   games[i].bytes, times[games[i].rounds / 2] * 1e6 / 2, games[i].rounds);
    }
    return meet(side->socket);
}

/* The handle of the memory goes with the endpoint. */
static int connect_to_peer(struct side *side, struct sluice_pd *pd)
{
    struct hello {
        struct sluice_endpoint endpoint;
        uint8_t memory[SLUICE_REMOTE_MR_BYTES];
    } ours, theirs;
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);

    if (prepared == NULL)
        return complain("prepare");
    sluice_prepared_channel_endpoint(prepared, &ours.endpoint);
    sluice_mr_remote(side->mr, &side->remote);
    sluice_remote_mr_pack(&side->remote, ours.memory);
    if (swap(side->socket, &ours, &theirs, sizeof(ours)) != 0) {
        sluice_prepared_channel_free(prepared);
        return -1;
    }
    side->channel = sluice_prepared_channel_handshake(prepared, &theirs.endpoint);
    if (side->channel == NULL)
        return complain("handshake");
    if (sluice_remote_mr_unpack(theirs.memory, &side->remote) != 0)
        return complain("read the handle of the memory");
    return meet(side->socket);
}

static int run(struct side *side)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = NULL;
    int result = -1;

    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        side->mr =
            sluice_mr_alloc(pd, MEMORY, SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE);
    if (side->mr == NULL)
        complain("set up");
    else if (connect_to_peer(side, pd) == 0)
        result = play_all(side);
    sluice_channel_close(side->channel);
    sluice_mr_deregister(side->mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

int main(void)
{
    struct side side = {.serves = 1};
    int pair[2], result, status;
    pid_t child, parent = getpid();

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0 || (child = fork()) < 0) {
        perror("pingpong");
        return EXIT_FAILURE;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            return EXIT_FAILURE;
        close(pair[0]);
        side.serves = 0;
        side.socket = pair[1];
        return run(&side) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    close(pair[1]);
    side.socket = pair[0];
    result = run(&side);
    close(pair[0]);
    if (waitpid(child, &status, 0) != child || status != 0)
        result = -1;
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
