/* SPDX-License-Identifier: MIT */
/*
 * Two processes with a channel between them. They exchange endpoints over a
 * socket pair; anything that moves 384 bytes each way would do. Then they play
 * ping-pong and greet each other.
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

#define HALF 256 /* bytes of memory to send from, and as many to receive into */
#define ROUNDS 1000

#define DEADLINE SLUICE_S(10)

static const char *name = "parent";

static int complain(const char *what)
{
    fprintf(stderr, "02-two-peers: %s: %s: %s\n", name, what, sluice_last_error());
    return -1;
}

/* Sends and receives one message of the same size, out of band. */
static int swap(int socket, const void *out, void *in, size_t size)
{
    if (send(socket, out, size, MSG_NOSIGNAL) == (ssize_t)size &&
        recv(socket, in, size, 0) == (ssize_t)size)
        return 0;
    fprintf(stderr, "02-two-peers: %s: the other process is gone\n", name);
    return -1;
}

/* Waits until the other side has come to the same point. */
static int meet(int socket)
{
    char byte = 0;

    return swap(socket, &byte, &byte, 1);
}

static struct sluice_channel *connect_to_peer(struct sluice_pd *pd, int socket)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_endpoint ours, theirs;
    struct sluice_channel *channel;

    if (prepared == NULL) {
        complain("prepare");
        return NULL;
    }
    sluice_prepared_channel_endpoint(prepared, &ours);
    if (swap(socket, &ours, &theirs, sizeof(ours)) != 0) {
        sluice_prepared_channel_free(prepared);
        return NULL;
    }
    channel = sluice_prepared_channel_handshake(prepared, &theirs);
    if (channel == NULL) {
        complain("handshake");
        return NULL;
    }
    /*
     * The handshake makes our end ready and does not wait for the peer. On RDMA
     * hardware, a message that arrives before the peer's handshake is lost and
     * sent again only after a timeout of about a second. So meet first.
     */
    if (meet(socket) != 0) {
        sluice_channel_close(channel);
        return NULL;
    }
    return channel;
}

/*
 * The parent serves. A send completes when the other side has received the message. Each side
 * posts the next receive before it sends, because a message that comes before its receive waits.
 */
static int play(struct sluice_channel *channel, const struct sluice_sge *out,
                const struct sluice_sge *in, int serves)
{
    const struct sluice_request both[2] = {
        {.opcode = SLUICE_OP_RECEIVE, .sge_count = 1, .sge = *in},
        {.opcode = SLUICE_OP_SEND, .sge_count = 1, .sge = *out},
    };
    struct timespec begin, end;
    double seconds;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!serves && sluice_channel_submit(channel, &both[0], 1, DEADLINE, NULL) != 0)
        return complain("receive");
    for (int round = serves ? 0 : 1; round < ROUNDS; round++)
        if (sluice_channel_submit(channel, both, 2, DEADLINE, NULL) != 0)
            return complain("receive and send");
    if (!serves && sluice_channel_submit(channel, &both[1], 1, DEADLINE, NULL) != 0)
        return complain("send");
    clock_gettime(CLOCK_MONOTONIC, &end);
    seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    if (serves)
        printf("ping-pong of 8 bytes, %d rounds: %.2f us one way\n", ROUNDS,
               seconds * 1e6 / (2 * ROUNDS));
    return 0;
}

/*
 * Both send at once. Two sides that block in a send wait for each other; one
 * submit posts the receive first, then the send, and waits for both.
 */
static int greet(struct sluice_channel *channel, struct sluice_mr *mr)
{
    char *memory = sluice_mr_addr(mr);
    struct sluice_request requests[2] = {
        {.opcode = SLUICE_OP_SEND, .sge_count = 1},
        {.opcode = SLUICE_OP_RECEIVE, .sge_count = 1},
    };
    struct sluice_completion completions[2];
    int length = snprintf(memory, HALF, "greetings from the %s, process %ld", name, (long)getpid());

    if (sluice_mr_sge(mr, 0, (size_t)length, &requests[0].sge) != 0 ||
        sluice_mr_sge(mr, HALF, HALF, &requests[1].sge) != 0)
        return complain("name the memory");
    if (sluice_channel_submit(channel, requests, 2, DEADLINE, completions) != 0)
        return complain("greet");
    printf("the %s received: %.*s\n", name, (int)completions[1].bytes, memory + HALF);
    return 0;
}

static int talk(struct sluice_pd *pd, struct sluice_mr *mr, int socket, int serves)
{
    struct sluice_channel *channel = connect_to_peer(pd, socket);
    struct sluice_sge out, in;
    int result = -1;

    if (channel == NULL)
        return -1;
    if (sluice_mr_sge(mr, 0, 8, &out) != 0 || sluice_mr_sge(mr, HALF, 8, &in) != 0)
        complain("name the memory");
    else if (play(channel, &out, &in, serves) == 0 && greet(channel, mr) == 0)
        result = meet(socket); /* closing earlier would break the channel for the other side */
    sluice_channel_close(channel);
    return result;
}

/* Runs in both processes, each with a device, a domain and memory of its own. */
static int run(int socket, int serves)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = NULL;
    struct sluice_mr *mr = NULL;
    int result = -1;

    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        mr = sluice_mr_alloc(pd, (size_t)2 * HALF, SLUICE_ACCESS_LOCAL_WRITE);
    if (mr == NULL)
        complain("set up");
    else
        result = talk(pd, mr, socket, serves);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

int main(void)
{
    int pair[2], result, status;
    pid_t child, parent = getpid();

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0 || (child = fork()) < 0) {
        perror("02-two-peers");
        return EXIT_FAILURE;
    }
    /* Each process opens the device after the fork: open objects do not survive one. */
    if (child == 0) {
        name = "child";
        close(pair[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* do not outlive the parent */
        if (getppid() != parent)
            return EXIT_FAILURE;
        return run(pair[1], 0) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    close(pair[1]);
    result = run(pair[0], 1);
    close(pair[0]);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "02-two-peers: the child failed\n");
        return EXIT_FAILURE;
    }
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
