/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of many peers of an agent: one process listens, and another one connects as
 * often. Prints time and memory of the one that listens, for each number of peers.
 *
 *   bench/agents [--pool N] [PEERS]...    default 10 100 1000; with a pool, peers share N receives
 *
 *   connect   until all peers are connected, per peer
 *   mapped    growth of the address space once all are connected, per peer: memory that a device
 *             has to pin
 *   idle      growth of the process in memory, per peer
 *   used      the same, once each peer has sent 80 messages, which use each receive of its own
 *   echo      a message of 8 bytes there and back, with one peer beside the others; median of 1000
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#include "numbers.h"

#define ROUNDS 1000
#define MESSAGES 80
#define DEADLINE SLUICE_S(60)

static uint32_t pool; /* receives that all peers share; 0: each has its own */

struct usage {
    double seconds, mapped, resident;
};

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "agents: %s: %s\n", what, sluice_last_error());
    exit(EXIT_FAILURE);
}

static void must(int result, const char *what)
{
    if (result < 0)
        give_up(what);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static struct usage take_usage(void)
{
    unsigned long mapped = 0, resident = 0;
    double page = (double)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%lu %lu", &mapped, &resident) != 2)
        give_up("/proc/self/statm");
    fclose(file);
    return (struct usage){now(), (double)mapped * page, (double)resident * page};
}

static struct sluice_agent *make_agent(struct sluice_pd *pd)
{
    const struct sluice_agent_attr attr = {
        .size = sizeof attr, .max_peers = SLUICE_MAX_PEERS, .receive_pool = pool};
    struct sluice_agent *agent = sluice_agent_open(pd, &attr);

    if (agent == NULL)
        give_up("an agent");
    return agent;
}

static struct sluice_pd *open_domain(struct sluice_context **context)
{
    struct sluice_pd *pd;

    *context = sluice_context_open(NULL, NULL);
    pd = *context != NULL ? sluice_pd_alloc(*context) : NULL;
    if (pd == NULL)
        give_up("a device");
    return pd;
}

static void take(struct sluice_agent *agent, struct sluice_agent_peer *peer)
{
    struct sluice_agent_message *message = sluice_agent_receive(agent, peer, DEADLINE);

    if (message == NULL)
        give_up("a message");
    sluice_agent_message_free(message);
}

static void send_word(struct sluice_agent_peer *peer)
{
    const uint64_t word = 1;

    must(sluice_agent_send(peer, &word, sizeof word, DEADLINE), "send");
}

/* The process of the peers: connects, sends from each when it is asked to, and echoes. */
static void be_peers(uint32_t count, int in, int out)
{
    struct sluice_agent_peer **peers = calloc(count, sizeof *peers);
    struct sluice_context *context;
    struct sluice_agent *agent;
    char address[64], done = 0;

    if (peers == NULL || read(in, address, sizeof address) != sizeof address)
        give_up("no address");
    agent = make_agent(open_domain(&context));
    for (uint32_t i = 0; i < count; i++) {
        peers[i] = sluice_agent_connect(agent, address, NULL, DEADLINE);
        if (peers[i] == NULL)
            give_up("connect");
    }
    if (write(out, &done, 1) != 1 || read(in, &done, 1) != 1)
        give_up("the other process");
    for (uint32_t round = 0; round < MESSAGES; round++)
        for (uint32_t i = 0; i < count; i++)
            send_word(peers[i]);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        take(agent, peers[0]);
        send_word(peers[0]);
    }
    (void)!read(in, &done, 1);
    _exit(EXIT_SUCCESS);
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double time_echo(struct sluice_agent *agent, struct sluice_agent_peer *peer)
{
    static double times[ROUNDS];

    for (uint32_t i = 0; i < ROUNDS; i++) {
        double begun = now();

        send_word(peer);
        take(agent, peer);
        times[i] = now() - begun;
    }
    qsort(times, ROUNDS, sizeof times[0], compare);
    return times[ROUNDS / 2];
}

static void serve(uint32_t count, int in, int out)
{
    struct sluice_agent_peer *first = NULL;
    struct sluice_context *context;
    struct sluice_agent *agent;
    struct usage before, idle, used;
    char address[64] = "", done;
    double echo;

    agent = make_agent(open_domain(&context));
    must(sluice_agent_listen(agent, "127.0.0.1:0", NULL), "listen");
    must(sluice_agent_address(agent, address, sizeof address), "address");
    before = take_usage();
    if (write(out, address, sizeof address) != sizeof address || read(in, &done, 1) != 1)
        give_up("the other process");
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_agent_peer *peer = sluice_agent_next_peer(agent, DEADLINE);

        if (peer == NULL)
            give_up("a peer");
        first = first == NULL ? peer : first;
    }
    idle = take_usage();
    if (write(out, &done, 1) != 1)
        give_up("the other process");
    for (uint32_t i = 0; i < MESSAGES * count; i++)
        take(agent, NULL);
    used = take_usage();
    echo = time_echo(agent, first);
    printf("%6u %9.1f us %9.1f KiB %9.1f KiB %9.1f KiB %9.2f us\n", count,
           (idle.seconds - before.seconds) * 1e6 / count,
           (idle.mapped - before.mapped) / count / 1024,
           (idle.resident - before.resident) / count / 1024,
           (used.resident - before.resident) / count / 1024, echo * 1e6);
    fflush(stdout);
    _exit(EXIT_SUCCESS);
}

/* Measures in two processes. Returns EXIT_SUCCESS, or EXIT_FAILURE after a message. */
static int measure(uint32_t count)
{
    int to_peers[2], from_peers[2], status = 1, result = EXIT_SUCCESS;
    pid_t pids[2];

    fflush(stdout);
    if (pipe(to_peers) != 0 || pipe(from_peers) != 0)
        return EXIT_FAILURE;
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] != 0)
            continue;
        close(i == 0 ? to_peers[0] : to_peers[1]);
        close(i == 0 ? from_peers[1] : from_peers[0]);
        if (i == 0)
            serve(count, from_peers[0], to_peers[1]);
        be_peers(count, to_peers[0], from_peers[1]);
    }
    for (int i = 0; i < 2; i++) {
        close(to_peers[i]);
        close(from_peers[i]);
    }
    for (int i = 0; i < 2; i++)
        if (pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || status != 0)
            result = EXIT_FAILURE;
    return result;
}

int main(int argc, char **argv)
{
    uint32_t peers[MOST_NUMBERS] = {10, 100, 1000}, given[MOST_NUMBERS];
    int count, result = EXIT_SUCCESS;
    bool right = true;

    if (argc > 1 && strcmp(argv[1], "--pool") == 0) {
        char *one[] = {argv[0], argc > 2 ? argv[2] : argv[1]};

        right = read_numbers(2, one, 16, SLUICE_MAX_PEERS, given);
        pool = given[0];
        argc = argc > 2 ? argc - 2 : 1;
        argv += 2;
    }
    count = argc > 1 ? argc - 1 : 3;
    if (!right || !read_numbers(argc, argv, 1, SLUICE_MAX_PEERS, peers)) {
        fprintf(stderr,
                "usage: agents [--pool N] [PEERS]...\n"
                "a pool of 16 to %d, and up to %d numbers of 1 to %d peers\n",
                SLUICE_MAX_PEERS, MOST_NUMBERS, SLUICE_MAX_PEERS);
        return 2;
    }
    printf(" peers      connect       mapped         idle         used         echo\n");
    for (int i = 0; i < count && result == EXIT_SUCCESS; i++)
        result = measure(peers[i]);
    return result;
}
