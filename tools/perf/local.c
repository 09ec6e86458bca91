/* SPDX-License-Identifier: MIT */
/*
 * Peers that this process starts by fork(2), and an exchange with them over socket pairs.
 * However the first process ends, no peer stays behind.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf.h"

/* How long to wait for the end of a killed peer, after the connections to it failed: 1 s. */
#define ENDING_STEPS 100
#define ENDING_STEP_MICROSECONDS 10000

/* Rank 0 has a socket and a process for each other rank; the others have a socket to rank 0. */
static struct local {
    uint32_t rank, ranks;
    int *sockets;
    pid_t *pids;
} local;

static int wait_for(int socket, short events, int64_t end)
{
    struct pollfd entry = {.fd = socket, .events = events};
    int64_t left = end == INT64_MAX ? -1 : (end - clock_nanoseconds()) / 1000000;

    if (end != INT64_MAX && left <= 0)
        return -ETIMEDOUT;
    if (poll(&entry, 1, left > 1000000 ? 1000000 : (int)left) < 0 && errno != EINTR)
        return -errno;
    return 0;
}

/* Sends or receives all bytes: 0, or a negative errno value. */
static int move(int socket, void *bytes, size_t count, bool out, int64_t end)
{
    char *at = bytes;

    while (count > 0) {
        ssize_t moved = out ? send(socket, at, count, MSG_DONTWAIT | MSG_NOSIGNAL)
                            : recv(socket, at, count, MSG_DONTWAIT);
        int error = 0;

        if (moved > 0) {
            at += moved;
            count -= (size_t)moved;
        } else if (moved == 0 || errno == EPIPE || errno == ECONNRESET) {
            return -ECONNRESET;
        } else if (errno == EAGAIN) {
            error = wait_for(socket, out ? POLLOUT : POLLIN, end);
        } else if (errno != EINTR) {
            return -errno;
        }
        if (error != 0)
            return error;
    }
    return 0;
}

static int allgather(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    int64_t end = deadline == SLUICE_FOREVER ? INT64_MAX : clock_nanoseconds() + deadline;
    char *places = all;
    int error = 0;

    (void)argument;
    if (bytes == 0)
        return 0;
    memmove(places + local.rank * bytes, own, bytes);
    if (local.rank != 0) {
        error = move(local.sockets[0], places + local.rank * bytes, bytes, true, end);
        return error == 0 ? move(local.sockets[0], all, local.ranks * bytes, false, end) : error;
    }
    for (uint32_t rank = 1; error == 0 && rank < local.ranks; rank++)
        error = move(local.sockets[rank], places + rank * bytes, bytes, false, end);
    for (uint32_t rank = 1; error == 0 && rank < local.ranks; rank++)
        error = move(local.sockets[rank], all, local.ranks * bytes, true, end);
    return error;
}

static int barrier(void *argument, int64_t deadline)
{
    uint8_t *all = calloc(local.ranks, 1);
    uint8_t own = 1;
    int error = all == NULL ? -ENOMEM : allgather(argument, &own, all, 1, deadline);

    free(all);
    return error;
}

/* Sets up a child: it dies with its parent, and closes the sockets of its siblings. */
static int become_child(uint32_t rank, int socket, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    for (uint32_t other = 1; other < rank; other++)
        close(local.sockets[other]);
    local.sockets[0] = socket;
    local.rank = rank;
    return 0;
}

static int start_one(uint32_t rank)
{
    pid_t parent = getpid(), pid;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return -errno;
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        close(pair[0]);
        return become_child(rank, pair[1], parent);
    }
    close(pair[1]);
    local.sockets[rank] = pair[0];
    local.pids[rank] = pid;
    return 0;
}

struct sluice_exchange *local_start(uint32_t ranks, uint32_t *rank)
{
    const struct sluice_exchange_provider provider = {
        .size = sizeof provider, .allgather = allgather, .barrier = barrier};
    int error = 0;

    local.sockets = calloc(ranks, sizeof *local.sockets);
    local.pids = calloc(ranks, sizeof *local.pids);
    local.ranks = ranks;
    if (local.sockets == NULL || local.pids == NULL)
        error = -ENOMEM;
    for (uint32_t other = 1; error == 0 && local.rank == 0 && other < ranks; other++)
        error = start_one(other);
    if (error != 0) {
        fprintf(stderr, "sluice-perf: cannot start a process: %s\n", strerror(-error));
        return NULL;
    }
    *rank = local.rank;
    return sluice_exchange_wrap(&provider, NULL, local.rank, ranks);
}

enum ending { ENDING_NOT_YET, ENDING_WELL, ENDING_BADLY, ENDING_KILLED };

/* Reaps a process and returns how it ended; reports one that was killed. */
static enum ending reap(uint32_t rank, int options)
{
    int status = 0;

    if (waitpid(local.pids[rank], &status, options) != local.pids[rank])
        return ENDING_NOT_YET;
    local.pids[rank] = 0;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status) == 0 ? ENDING_WELL : ENDING_BADLY;
    fprintf(stderr, "sluice-perf: rank %u was killed by signal %d (%s)\n", rank, WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    return ENDING_KILLED;
}

/* Waits up to 1 s for a peer that was killed, which explains the failures of the others. */
static void report_killed(void)
{
    for (int step = 0; step < ENDING_STEPS; step++) {
        uint32_t running = 0;

        for (uint32_t rank = 1; rank < local.ranks; rank++)
            if (local.pids[rank] > 0 && reap(rank, WNOHANG) == ENDING_KILLED)
                return;
        for (uint32_t rank = 1; rank < local.ranks; rank++)
            running += local.pids[rank] > 0;
        if (running == 0)
            return;
        usleep(ENDING_STEP_MICROSECONDS);
    }
}

int local_end(int result)
{
    if (local.ranks == 0 || local.rank != 0 || local.pids == NULL)
        return result;
    if (result != 0)
        report_killed();
    for (uint32_t rank = 1; rank < local.ranks; rank++)
        if (local.pids[rank] > 0 && result != 0)
            kill(local.pids[rank], SIGKILL);
    for (uint32_t rank = 1; rank < local.ranks; rank++) {
        if (local.pids[rank] <= 0)
            continue;
        if (result != 0)
            waitpid(local.pids[rank], NULL, 0);
        else if (reap(rank, 0) != ENDING_WELL)
            result = -1;
    }
    free(local.sockets);
    free(local.pids);
    local = (struct local){.ranks = 0};
    return result;
}
