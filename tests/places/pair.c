/* SPDX-License-Identifier: MIT */
/*
 * Two processes that exchange a message of 1 MiB, and read memory of each other, which is what a
 * host must allow. It uses the public header alone, so that any compiler and libc can build it. The
 * exit status is 0 if both succeed. The output is the level of the connection, or what failed.
 *
 *   pair                          once
 *   pair soon                     the same, but connecting may take 2 seconds only
 *   pair children                 with children of posix_spawn(3), vfork(2) and fork(2) meanwhile
 *   pair under ERROR CALL... -- COMMAND...
 *                                 not a pair: executes the command with a filter of seccomp(2) that
 *                                 refuses system calls, by numbers, with an error
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sluice.h>

#define BYTES ((size_t)1 << 20)
#define DEADLINE SLUICE_S(20)
#define ROUNDS 4 /* the library tries ways to move data, one after the other */
#define MOST_CALLS 16

extern char **environ;

struct side {
    int socket;
    int number; /* 0 is the parent */
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;    /* to send from, and to receive into */
    struct sluice_mr *given; /* which the other side reads */
    struct sluice_remote_mr theirs;
    struct sluice_channel *channel;
};

static unsigned char memory[BYTES];
static int64_t connect_time = DEADLINE;

static int complain(const char *what)
{
    fprintf(stderr, "pair: %s: %s\n", what, sluice_last_error());
    return -1;
}

static int swap(const struct side *side, const void *out, void *in, size_t size)
{
    if (send(side->socket, out, size, MSG_NOSIGNAL) == (ssize_t)size &&
        recv(side->socket, in, size, MSG_WAITALL) == (ssize_t)size)
        return 0;
    fprintf(stderr, "pair: side %d: the other one has failed\n", side->number);
    return -1;
}

static int open_side(struct side *side)
{
    const uint32_t given = SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ;

    memset(memory, 'a' + side->number, sizeof memory);
    side->context = sluice_context_open("soft", NULL);
    side->pd = side->context != NULL ? sluice_pd_alloc(side->context) : NULL;
    if (side->pd == NULL)
        return complain("open");
    side->mr = sluice_mr_alloc(side->pd, 2 * BYTES, SLUICE_ACCESS_LOCAL_WRITE);
    side->given = sluice_mr_register(side->pd, memory, sizeof memory, given);
    return side->mr != NULL && side->given != NULL ? 0 : complain("memory");
}

static int connect_side(struct side *side)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(side->pd, NULL);
    struct sluice_endpoint ours, theirs;
    struct sluice_remote_mr given;

    if (prepared == NULL)
        return complain("prepare");
    sluice_prepared_channel_endpoint(prepared, &ours);
    if (sluice_mr_remote(side->given, &given) != 0 ||
        swap(side, &ours, &theirs, sizeof ours) != 0 ||
        swap(side, &given, &side->theirs, sizeof given) != 0) {
        sluice_prepared_channel_free(prepared);
        return -1;
    }
    side->channel = sluice_prepared_channel_handshake(prepared, &theirs);
    if (side->channel == NULL)
        return complain("handshake");
    return sluice_channel_wait_connected(side->channel, connect_time) == 0 ? 0
                                                                           : complain("connect");
}

/* Tells whether all bytes are those of the other side. */
static int is_theirs(const struct side *side, const unsigned char *bytes)
{
    for (size_t i = 0; i < BYTES; i++)
        if (bytes[i] != 'a' + !side->number)
            return 0;
    return 1;
}

static int exchange(const struct side *side)
{
    unsigned char *bytes = sluice_mr_addr(side->mr);
    struct sluice_request requests[2] = {
        {.opcode = SLUICE_OP_RECEIVE, .sge_count = 1},
        {.opcode = SLUICE_OP_SEND, .sge_count = 1},
    };

    memset(bytes, 'a' + side->number, BYTES);
    memset(bytes + BYTES, 0, BYTES);
    if (sluice_mr_sge(side->mr, BYTES, BYTES, &requests[0].sge) != 0 ||
        sluice_mr_sge(side->mr, 0, BYTES, &requests[1].sge) != 0 ||
        sluice_channel_submit(side->channel, requests, 2, DEADLINE, NULL) != 0)
        return complain("send and receive");
    if (!is_theirs(side, bytes + BYTES))
        return complain("received bytes differ");
    memset(bytes + BYTES, 0, BYTES);
    if (sluice_channel_read(side->channel, &requests[0].sge, 1, &side->theirs, DEADLINE) != 0)
        return complain("read");
    return is_theirs(side, bytes + BYTES) ? 0 : complain("bytes read differ");
}

static int have_children(void)
{
    char name[] = "true";
    char *words[] = {name, NULL};
    pid_t children[3] = {-1, -1, -1};
    int status, failed = posix_spawnp(&children[0], name, NULL, NULL, words, environ) != 0;

    children[1] = vfork();
    if (children[1] == 0) {
        execvp(name, words);
        _exit(1);
    }
    children[2] = fork();
    if (children[2] == 0)
        _exit(0);
    for (int i = 0; i < 3; i++)
        failed |= waitpid(children[i], &status, 0) != children[i] || status != 0;
    if (failed)
        fprintf(stderr, "pair: a child failed\n");
    return failed ? -1 : 0;
}

static int work(struct side *side, int children)
{
    struct sluice_channel_info info = {.size = sizeof info};
    char byte = 0;

    for (int i = 0; i < ROUNDS; i++)
        if ((children && have_children() != 0) || exchange(side) != 0)
            return -1;
    if (swap(side, &byte, &byte, 1) != 0 || sluice_channel_query(side->channel, &info) != 0)
        return -1;
    if (side->number == 0)
        printf("connected over %s\n", info.level == SLUICE_LEVEL_MEMORY ? "memory" : "TCP");
    return 0;
}

static int run(struct side *side, int children)
{
    int result = open_side(side) == 0 && connect_side(side) == 0 ? work(side, children) : -1;

    sluice_channel_close(side->channel);
    sluice_mr_deregister(side->given);
    sluice_mr_deregister(side->mr);
    sluice_pd_free(side->pd);
    sluice_context_close(side->context);
    return result;
}

static int run_both(int children)
{
    struct side side = {.number = 0};
    int sockets[2], result, status = 1;
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0 || (child = fork()) < 0) {
        perror("pair");
        return EXIT_FAILURE;
    }
    side.number = child == 0;
    side.socket = sockets[side.number];
    close(sockets[!side.number]);
    result = run(&side, children);
    close(side.socket);
    if (child == 0)
        exit(result == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    if (waitpid(child, &status, 0) != child || status != 0)
        result = -1;
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The filter compares the number of a call with one after the other. */
static int refuse(unsigned error, const unsigned *calls, unsigned char count)
{
    struct sock_filter code[MOST_CALLS + 3];
    const struct sock_fprog program = {(unsigned short)(count + 3), code};

    code[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned char i = 0; i < count; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i],
                                                   (unsigned char)(count - i), 0);
    code[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[count + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        perror("pair: seccomp");
        return -1;
    }
    return 0;
}

static int run_under(char **words)
{
    unsigned error = (unsigned)atoi(words[0]), calls[MOST_CALLS];
    unsigned char count = 0;

    for (words++; *words != NULL && strcmp(*words, "--") != 0 && count < MOST_CALLS; words++)
        calls[count++] = (unsigned)atoi(*words);
    if (*words == NULL || words[1] == NULL || refuse(error, calls, count) != 0)
        return EXIT_FAILURE;
    execvp(words[1], words + 1);
    perror(words[1]);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "under") == 0)
        return run_under(argv + 2);
    if (argc > 1 && strcmp(argv[1], "soon") == 0)
        connect_time = SLUICE_S(2);
    return run_both(argc > 1 && strcmp(argv[1], "children") == 0);
}
