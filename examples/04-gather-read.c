/* SPDX-License-Identifier: MIT */
/*
 * One-sided reads: the workers publish memory, and rank 0 reads a piece of each
 * without waking them. The handle of the memory is sent along with the endpoint.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#define WORKERS 3
#define PUBLISHED ((size_t)1 << 20) /* bytes that a worker publishes */
#define PIECE ((size_t)64 << 10)    /* bytes that rank 0 reads from each at a time */
#define DEADLINE SLUICE_S(10)

/* The message that both sides exchange. */
struct hello {
    struct sluice_endpoint endpoint;
    uint8_t memory[SLUICE_REMOTE_MR_BYTES]; /* of the worker; rank 0 publishes none */
};

static int complain(const char *who, const char *what)
{
    fprintf(stderr, "04-gather-read: %s: %s: %s\n", who, what, sluice_last_error());
    return -1;
}

/* Returns the value at an index of a worker's memory. */
static uint32_t value_at(uint32_t worker, size_t index)
{
    return (worker + 1) * UINT32_C(2654435761) ^ (uint32_t)index;
}

static struct sluice_channel *publish(struct sluice_pd *pd, const struct sluice_mr *mr, int socket)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_remote_mr memory;
    struct hello hello = {.memory = {0}};

    if (prepared == NULL)
        return NULL;
    if (sluice_mr_remote(mr, &memory) == 0)
        sluice_remote_mr_pack(&memory, hello.memory);
    if (sluice_prepared_channel_endpoint(prepared, &hello.endpoint) != 0 ||
        send(socket, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello) ||
        recv(socket, &hello, sizeof(hello), 0) != sizeof(hello)) {
        sluice_prepared_channel_free(prepared);
        return NULL;
    }
    return sluice_prepared_channel_handshake(prepared, &hello.endpoint);
}

/* Publishes memory, sends a byte that it is ready, and then never calls the library. */
static int run_worker(uint32_t worker, int socket)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = NULL;
    struct sluice_mr *mr = NULL;
    struct sluice_channel *channel = NULL;
    int result = -1;
    char byte = 0;

    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        mr = sluice_mr_alloc(pd, PUBLISHED, SLUICE_ACCESS_REMOTE_READ);
    if (mr != NULL) {
        uint32_t *values = sluice_mr_addr(mr);
        for (size_t i = 0; i < PUBLISHED / sizeof(*values); i++)
            values[i] = value_at(worker, i);
        channel = publish(pd, mr, socket);
    }
    if (channel == NULL)
        complain("worker", "publish");
    else if (send(socket, &byte, 1, MSG_NOSIGNAL) == 1)
        result = (int)recv(socket, &byte, 1, 0); /* sleeps; returns 0 when rank 0 is done */

    sluice_channel_close(channel);
    sluice_mr_deregister(mr); /* from here on, no peer can read it */
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

static struct sluice_multichannel *connect_all(struct sluice_pd *pd, const int sockets[WORKERS],
                                               struct sluice_remote_mr memory[WORKERS])
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, WORKERS, NULL);
    struct sluice_endpoint ours[WORKERS], theirs[WORKERS];
    struct sluice_multichannel *multichannel;
    struct hello hello;
    char byte;

    if (prepared == NULL || sluice_prepared_multichannel_endpoints(prepared, ours, WORKERS) != 0) {
        complain("rank 0", "prepare");
        goto free_prepared;
    }
    for (int i = 0; i < WORKERS; i++) {
        if (recv(sockets[i], &hello, sizeof(hello), 0) != sizeof(hello) ||
            sluice_remote_mr_unpack(hello.memory, &memory[i]) != 0) {
            fprintf(stderr, "04-gather-read: worker %d published nothing\n", i);
            goto free_prepared;
        }
        theirs[i] = hello.endpoint;
        hello = (struct hello){.endpoint = ours[i]};
        if (send(sockets[i], &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
            goto free_prepared;
    }
    multichannel = sluice_prepared_multichannel_handshake(prepared, theirs, WORKERS);
    if (multichannel == NULL)
        complain("rank 0", "handshake");
    /* A read that arrives before the worker's handshake would take a second longer. */
    for (int i = 0; i < WORKERS && multichannel != NULL; i++)
        if (recv(sockets[i], &byte, 1, 0) != 1) {
            fprintf(stderr, "04-gather-read: worker %d did not connect\n", i);
            sluice_multichannel_close(multichannel);
            return NULL;
        }
    return multichannel;

free_prepared:
    sluice_prepared_multichannel_free(prepared);
    return NULL;
}

/* Reads all published memory, a piece of each worker at a time. */
static int read_all(struct sluice_multichannel *multichannel, struct sluice_mr *mr,
                    const struct sluice_remote_mr memory[WORKERS])
{
    const uint32_t *values = sluice_mr_addr(mr);
    struct sluice_request requests[WORKERS];
    struct sluice_completion completions[WORKERS] = {{0}}; /* not written on a wrong argument */

    for (size_t offset = 0; offset < PUBLISHED; offset += PIECE) {
        for (uint32_t i = 0; i < WORKERS; i++) {
            requests[i] = (struct sluice_request){.peer = i, .sge_count = 1};
            if (sluice_mr_sge(mr, i * PIECE, PIECE, &requests[i].sge) != 0 ||
                sluice_remote_mr_slice(&memory[i], offset, PIECE, &requests[i].remote) != 0)
                return complain("rank 0", "name the memory");
        }
        if (sluice_multichannel_gather_read(multichannel, requests, WORKERS, DEADLINE,
                                            completions) != 0) {
            complain("rank 0", "gather");
            for (uint32_t i = 0; i < WORKERS; i++)
                if (completions[i].error != 0)
                    fprintf(stderr, "04-gather-read: worker %u: %s\n", i,
                            sluice_error_class_name(completions[i].error_class));
            return -1;
        }
        for (uint32_t i = 0; i < WORKERS; i++)
            for (size_t k = 0; k < PIECE / sizeof(*values); k++)
                if (values[i * PIECE / sizeof(*values) + k] !=
                    value_at(i, offset / sizeof(*values) + k)) {
                    fprintf(stderr, "04-gather-read: wrong bytes of worker %u\n", i);
                    return -1;
                }
    }
    printf("read %zu bytes of each of %d sleeping workers, all as published\n", PUBLISHED, WORKERS);
    return 0;
}

static int run_rank0(const int sockets[WORKERS])
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = NULL;
    struct sluice_mr *mr = NULL;
    struct sluice_multichannel *multichannel = NULL;
    struct sluice_remote_mr memory[WORKERS];
    int result = -1;

    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        mr = sluice_mr_alloc(pd, WORKERS * PIECE, SLUICE_ACCESS_LOCAL_WRITE);
    if (mr == NULL)
        complain("rank 0", "set up");
    else
        multichannel = connect_all(pd, sockets, memory);
    if (multichannel != NULL)
        result = read_all(multichannel, mr, memory);
    sluice_multichannel_close(multichannel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

int main(void)
{
    int sockets[WORKERS], pair[2], result, status;
    pid_t pids[WORKERS], parent = getpid();

    for (int i = 0; i < WORKERS; i++) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0 || (pids[i] = fork()) < 0) {
            perror("04-gather-read");
            return EXIT_FAILURE; /* the workers that run see that the sockets close */
        }
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* do not outlive rank 0 */
            if (getppid() != parent)
                return EXIT_FAILURE;
            close(pair[0]);
            for (int k = 0; k < i; k++)
                close(sockets[k]);
            return run_worker((uint32_t)i, pair[1]) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        }
        close(pair[1]);
        sockets[i] = pair[0];
    }
    result = run_rank0(sockets);
    for (int i = 0; i < WORKERS; i++) {
        close(sockets[i]); /* the worker wakes up and ends */
        if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
            fprintf(stderr, "04-gather-read: worker %d failed\n", i);
            result = -1;
        }
    }
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
