/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int pair_pinned;

/* Where it cannot be done, it is not. */
static void pin(int side)
{
    cpu_set_t allowed, one;
    int found = -1;

    CPU_ZERO(&one);
    if (!pair_pinned || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && side >= 0; cpu++)
        if (CPU_ISSET(cpu, &allowed)) {
            found = cpu;
            side--;
        }
    CPU_SET(found, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

int pair_complain(const struct pair *pair, const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", pair->program, what, sluice_last_error());
    return -1;
}

uint32_t pair_number(const char *program, char option, const char *text, uint32_t most)
{
    char *rest;
    unsigned long value = strtoul(text, &rest, 10);

    if (*text == '\0' || *rest != '\0' || value < 1 || value > most) {
        fprintf(stderr, "%s: -%c %s: not a number of 1 to %u\n", program, option, text, most);
        exit(2);
    }
    return (uint32_t)value;
}

uint64_t pair_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
#endif
}

struct pair_clock pair_clock(void)
{
    struct timespec time;
    struct pair_clock clock;

    clock_gettime(CLOCK_MONOTONIC, &time);
    clock.ticks = pair_ticks();
    clock.seconds = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
    return clock;
}

double pair_tick(const struct pair_clock *begin, const struct pair_clock *end)
{
    return (end->seconds - begin->seconds) / (double)(end->ticks - begin->ticks);
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

uint64_t pair_median(uint64_t *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

static int swap(const struct pair *pair, const void *out, void *in, size_t size)
{
    if (send(pair->socket, out, size, MSG_NOSIGNAL) == (ssize_t)size &&
        recv(pair->socket, in, size, 0) == (ssize_t)size)
        return 0;
    fprintf(stderr, "%s: the other process is gone\n", pair->program);
    return -1;
}

int pair_meet(const struct pair *pair)
{
    char byte = 0;

    return swap(pair, &byte, &byte, 1);
}

/* The handle of the memory goes with the endpoint. */
static int connect_to_peer(struct pair *pair, struct sluice_pd *pd,
                           const struct sluice_channel_attr *attr)
{
    struct hello {
        struct sluice_endpoint endpoint;
        uint8_t memory[SLUICE_REMOTE_MR_BYTES];
    } ours, theirs;
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, attr);

    if (prepared == NULL)
        return pair_complain(pair, "prepare");
    sluice_prepared_channel_endpoint(prepared, &ours.endpoint);
    sluice_mr_remote(pair->mr, &pair->remote);
    sluice_remote_mr_pack(&pair->remote, ours.memory);
    if (swap(pair, &ours, &theirs, sizeof(ours)) != 0) {
        sluice_prepared_channel_free(prepared);
        return -1;
    }
    pair->channel = sluice_prepared_channel_handshake(prepared, &theirs.endpoint);
    if (pair->channel == NULL)
        return pair_complain(pair, "handshake");
    if (sluice_remote_mr_unpack(theirs.memory, &pair->remote) != 0)
        return pair_complain(pair, "read the handle of the memory");
    return pair_meet(pair);
}

static int run_side(struct pair *pair, const struct sluice_channel_attr *attr, size_t memory,
                    int (*play)(struct pair *pair))
{
    struct sluice_context *context;
    struct sluice_pd *pd = NULL;
    int result = -1;

    pin(pair->serves);
    context = sluice_context_open(NULL, NULL);
    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        pair->mr = sluice_mr_alloc(pd, memory,
                                   SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE |
                                       SLUICE_ACCESS_REMOTE_READ);
    if (pair->mr == NULL)
        pair_complain(pair, "set up");
    else if (connect_to_peer(pair, pd, attr) == 0 && play(pair) == 0)
        /* Nobody leaves while the other one may still need the connection. */
        result = pair_meet(pair);
    sluice_channel_close(pair->channel);
    sluice_mr_deregister(pair->mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

int pair_run(const char *program, const struct sluice_channel_attr *attr, size_t memory,
             int (*play)(struct pair *pair))
{
    struct pair pair = {.program = program, .serves = 1};
    int sockets[2], result, status;
    pid_t child, parent = getpid();

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0 || (child = fork()) < 0) {
        perror(program);
        return EXIT_FAILURE;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            return EXIT_FAILURE;
        close(sockets[0]);
        pair.serves = 0;
        pair.socket = sockets[1];
        return run_side(&pair, attr, memory, play) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    close(sockets[1]);
    pair.socket = sockets[0];
    result = run_side(&pair, attr, memory, play);
    close(sockets[0]);
    if (waitpid(child, &status, 0) != child || status != 0)
        result = -1;
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
