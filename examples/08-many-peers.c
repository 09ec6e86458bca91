/* SPDX-License-Identifier: MIT */
/*
 * Receive from any: rank 0 hands out ranges of numbers, takes the answers in
 * the order in which they arrive, and sends the next range to the worker that
 * has answered. If a worker dies, its range goes to another one.
 *
 *   08-many-peers [-k] [-n WORKERS]
 *
 * The workers count primes. With -k rank 0 kills one of them half way.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sluice.h>

#include "workers.h"

#define RANGE UINT64_C(20000)
#define RANGES 100u
#define PRIMES UINT64_C(148933) /* below RANGE * RANGES */
#define DEADLINE SLUICE_S(30)
#define NO_RANGE UINT32_MAX

/* The messages to a worker, and back. */
struct work {
    struct task {
        uint64_t first, count; /* count 0: no more work */
    } task;
    uint64_t primes;
};

static uint64_t count_primes(uint64_t first, uint64_t count)
{
    uint64_t primes = 0;

    for (uint64_t number = first; number < first + count; number++) {
        uint64_t divisor = 2;

        while (divisor * divisor <= number && number % divisor != 0)
            divisor++;
        primes += number > 1 && divisor * divisor > number;
    }
    return primes;
}

/* Receives ranges and answers them, until there are no more. */
static int serve(struct sluice_channel *channel, struct sluice_mr *mr)
{
    struct work *work = sluice_mr_addr(mr);
    struct sluice_sge in, out;

    if (sluice_mr_sge_at(mr, &work->task, sizeof(work->task), &in) != 0 ||
        sluice_mr_sge_at(mr, &work->primes, sizeof(work->primes), &out) != 0)
        return complain("worker", "name the memory");
    for (;;) {
        if (sluice_channel_receive(channel, &in, 1, DEADLINE, NULL) != 0)
            return complain("worker", "receive");
        if (work->task.count == 0)
            return 0;
        work->primes = count_primes(work->task.first, work->task.count);
        if (sluice_channel_send(channel, &out, 1, DEADLINE) != 0)
            return complain("worker", "send");
    }
}

/* Receives the port of rank 0 over the socket, and connects to it. */
static struct sluice_channel *join(struct sluice_pd *pd, int socket)
{
    char address[32];
    int port;

    if (take(socket, &port, sizeof(port)) != 0)
        return NULL;
    snprintf(address, sizeof(address), "127.0.0.1:%d", port);
    return sluice_connect(address, pd, NULL, NULL, DEADLINE);
}

static int run_worker(int socket)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = context != NULL ? sluice_pd_alloc(context) : NULL;
    struct sluice_mr *mr =
        pd != NULL ? sluice_mr_alloc(pd, sizeof(struct work), SLUICE_ACCESS_LOCAL_WRITE) : NULL;
    struct sluice_channel *channel = mr != NULL ? join(pd, socket) : NULL;
    int result;

    if (channel == NULL)
        result = complain("worker", "join");
    else
        result = serve(channel, mr);
    sluice_channel_close(channel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

/* Rank 0. The task and answer of a worker may be accessed while none of its requests is pending. */
struct peer {
    uint32_t range;   /* that the worker works on, or NO_RANGE */
    uint32_t pending; /* requests in flight */
    uint32_t answers;
    int lost;
};

struct hub {
    struct sluice_multichannel *peers_channel;
    struct sluice_mr *mr;
    struct work *work; /* of each peer, in that memory */
    uint32_t count;    /* of peers */
    uint32_t alive;    /* of them */
    struct peer peers[MAX_PROCESSES];
    uint32_t todo[RANGES]; /* a stack */
    uint32_t todo_count;
    uint32_t done;
    uint64_t primes;
    pid_t victim; /* to be killed, or 0 */
};

/*
 * Gives up a worker that is lost, or to which nothing can be posted, and hands its range to
 * another one. Removing the peer completes its requests in flight.
 */
static void lose(struct hub *hub, uint32_t index)
{
    struct peer *peer = &hub->peers[index];

    if (!peer->lost) {
        peer->lost = 1;
        hub->alive--;
        if (sluice_multichannel_peer_remove(hub->peers_channel, index) != 0)
            complain("rank 0", "remove a worker");
        printf("worker %u is gone after %u answers\n", index + 1, peer->answers);
    }
    if (peer->range != NO_RANGE)
        hub->todo[hub->todo_count++] = peer->range;
    peer->range = NO_RANGE;
}

/* Sends a range; posts the receive for the answer first, so that it does not wait. */
static void hand_out(struct hub *hub, uint32_t index)
{
    struct peer *peer = &hub->peers[index];
    struct work *work = &hub->work[index];
    struct sluice_sge in, out;

    if (hub->todo_count == 0 || peer->lost)
        return;
    peer->range = hub->todo[--hub->todo_count];
    work->task = (struct task){.first = peer->range * RANGE, .count = RANGE};
    if (sluice_mr_sge_at(hub->mr, &work->primes, sizeof(work->primes), &in) != 0 ||
        sluice_mr_sge_at(hub->mr, &work->task, sizeof(work->task), &out) != 0 ||
        sluice_multichannel_post_receive(hub->peers_channel, index, &in, 1, DEADLINE, NULL) != 0) {
        lose(hub, index);
        return;
    }
    peer->pending = 1;
    if (sluice_multichannel_post_send(hub->peers_channel, index, &out, 1, DEADLINE, NULL) == 0)
        peer->pending = 2;
}

static void take_completion(struct hub *hub, const struct sluice_completion *completion)
{
    struct peer *peer = &hub->peers[completion->peer];

    peer->pending--;
    if (completion->error != 0) {
        lose(hub, completion->peer);
    } else if (completion->opcode == SLUICE_OP_RECEIVE) {
        hub->primes += hub->work[completion->peer].primes;
        hub->done++;
        peer->answers++;
        peer->range = NO_RANGE;
    }
    if (peer->pending == 0)
        hand_out(hub, completion->peer);
}

/* Kills the first worker while it works. */
static void kill_half_way(struct hub *hub)
{
    if (hub->victim == 0 || hub->done < RANGES / 2 || hub->peers[0].range == NO_RANGE)
        return;
    kill(hub->victim, SIGKILL);
    waitpid(hub->victim, NULL, 0);
    hub->victim = 0;
}

/* Hands out ranges to idle workers; a range of a dead worker may be the only one left. */
static void hand_out_all(struct hub *hub)
{
    for (uint32_t i = 0; i < hub->count; i++)
        if (hub->peers[i].pending == 0 && hub->peers[i].range == NO_RANGE)
            hand_out(hub, i);
}

static int work(struct hub *hub)
{
    struct sluice_completion completion;

    while (hub->done < RANGES && hub->alive > 0) {
        hand_out_all(hub);
        if (sluice_multichannel_next(hub->peers_channel, DEADLINE, &completion) != 0)
            return complain("rank 0", "wait for an answer");
        take_completion(hub, &completion);
        kill_half_way(hub);
    }
    for (uint32_t i = 0; i < hub->count; i++)
        printf("worker %u answered %u times\n", i + 1, hub->peers[i].answers);
    if (hub->done < RANGES) {
        fprintf(stderr, "08-many-peers: no worker is left\n");
        return -1;
    }
    printf("%" PRIu64 " primes below %" PRIu64 "\n", hub->primes, RANGE * RANGES);
    return hub->primes == PRIMES ? 0 : -1;
}

/* Sends all workers that there is no more work. */
static void dismiss(struct hub *hub)
{
    uint32_t living[MAX_PROCESSES], count = 0;
    struct sluice_request request = {.sge_count = 1};

    for (uint32_t i = 0; i < hub->count; i++)
        if (!hub->peers[i].lost)
            living[count++] = i;
    hub->work->task.count = 0;
    if (sluice_multichannel_flush(hub->peers_channel, DEADLINE) != 0 ||
        sluice_mr_sge_at(hub->mr, &hub->work->task, sizeof(struct task), &request.sge) != 0 ||
        sluice_multichannel_multicast_send(hub->peers_channel, &request, living, count, DEADLINE,
                                           NULL) != 0)
        complain("rank 0", "dismiss the workers");
}

/* Adds each worker that connects as a peer: worker i + 1 is peer i, as they connect in turn. */
static int admit(struct sluice_multichannel *peers_channel, struct sluice_listener *listener,
                 int socket)
{
    int port = sluice_listener_address(listener, NULL, 0);
    struct sluice_incoming *incoming;
    uint32_t peer;

    if (port < 0 || give(socket, &port, sizeof(port)) != 0)
        return -1;
    incoming = sluice_listener_next(listener, DEADLINE);
    return incoming != NULL
               ? sluice_incoming_accept_into(incoming, peers_channel, NULL, DEADLINE, &peer, 1)
               : -1;
}

/* Makes the multichannel without peers, and lets the workers connect. */
static struct sluice_multichannel *connect_all(struct sluice_pd *pd, const struct workers *workers)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 0, NULL);
    struct sluice_multichannel *peers_channel =
        prepared != NULL ? sluice_prepared_multichannel_handshake(prepared, NULL, 0) : NULL;
    struct sluice_listener *listener = sluice_listen("127.0.0.1:0", NULL);
    int error = peers_channel != NULL && listener != NULL ? 0 : -1;

    for (uint32_t i = 1; i < workers->count && error == 0; i++)
        error = admit(peers_channel, listener, workers->sockets[i]);
    sluice_listener_close(listener);
    if (error == 0)
        return peers_channel;
    sluice_multichannel_close(peers_channel);
    return NULL;
}

static int run_hub(const struct workers *workers, pid_t victim)
{
    static struct hub hub;
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = context != NULL ? sluice_pd_alloc(context) : NULL;
    int result = -1;

    hub.victim = victim;
    hub.count = hub.alive = workers->count - 1;
    for (uint32_t i = 0; i < RANGES; i++)
        hub.todo[hub.todo_count++] = RANGES - 1 - i;
    for (uint32_t i = 0; i < hub.count; i++)
        hub.peers[i].range = NO_RANGE;
    if (pd != NULL)
        hub.mr = sluice_mr_alloc(pd, hub.count * sizeof(struct work), SLUICE_ACCESS_LOCAL_WRITE);
    if (hub.mr != NULL) {
        hub.work = sluice_mr_addr(hub.mr);
        hub.peers_channel = connect_all(pd, workers);
    }
    if (hub.peers_channel == NULL) {
        complain("rank 0", "connect");
    } else {
        result = work(&hub);
        dismiss(&hub);
    }
    sluice_multichannel_close(hub.peers_channel);
    sluice_mr_deregister(hub.mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

int main(int argc, char **argv)
{
    struct workers workers = {.count = 0};
    uint32_t count = 8;
    pid_t victim = 0;
    int kills = 0, option;
    int result = -1;

    while ((option = getopt(argc, argv, "kn:")) != -1) {
        if (option == 'k')
            kills = 1;
        else if (option == 'n')
            count = (uint32_t)atoi(optarg);
        if (option == '?' || count < 1 || count >= MAX_PROCESSES) {
            fprintf(stderr, "usage: 08-many-peers [-k] [-n WORKERS], 1 to %d\n", MAX_PROCESSES - 1);
            return 2;
        }
    }
    if (workers_start(&workers, count + 1, run_worker) == 0) {
        /* kill_half_way() reaps this one. */
        if (kills) {
            victim = workers.pids[1];
            workers.pids[1] = 0;
        }
        result = run_hub(&workers, victim);
    }
    return workers_end(&workers, result) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
