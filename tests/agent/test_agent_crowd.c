/* SPDX-License-Identifier: MIT */
/*
 * Agents with many peers: an event loop that serves them, the descriptors that they cost, the limit
 * of these, and the end of an agent that others want to connect to.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/group.h"
#include "../support/process.h"
#include "agents.h"

#define CLIENTS 4
#define ROUNDS 200
#define PEERS 8
#define LONG (100u << 10)

static bool device_is_no_soft(void)
{
    return !device_is_soft();
}

/* A client that asks, waits for the answer, and so on, in a thread of its own. */
struct client {
    pthread_t thread;
    struct sluice_agent *agent;
    const char *address;
};

static void *ask(void *argument)
{
    const struct client *client = argument;
    struct sluice_agent_peer *server =
        sluice_agent_connect(client->agent, client->address, NULL, DEADLINE);
    require(server, "%s", sluice_last_error());
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct sluice_agent_message *message;
        uint64_t answer;
        require_ok(sluice_agent_send(server, &i, sizeof(i), DEADLINE));
        message = receive(client->agent, server);
        memcpy(&answer, sluice_agent_message_addr(message), sizeof(answer));
        require(answer == i, "%llu, not %llu", (unsigned long long)answer, (unsigned long long)i);
        sluice_agent_message_free(message);
    }
    sluice_agent_peer_close(server);
    return NULL;
}

/* Serves from an event loop that arms once for all that it has taken. */
static void serve(struct sluice_agent *agent, uint32_t wanted)
{
    struct pollfd fd = {.fd = sluice_agent_fd(agent), .events = POLLIN};
    int64_t end = fair_now() + 3 * DEADLINE;
    while (wanted > 0) {
        struct sluice_agent_message *message = sluice_agent_receive(agent, NULL, 0);
        int64_t due = 0;
        require(fair_now() < end, "%u requests did not come", wanted);
        if (message != NULL) {
            require_ok(sluice_agent_send(sluice_agent_message_peer(message),
                                         sluice_agent_message_addr(message),
                                         sluice_agent_message_length(message), DEADLINE));
            sluice_agent_message_free(message);
            wanted--;
        } else if (sluice_agent_arm(agent, &due) == 0) {
            poll(&fd, 1, due < DEADLINE ? (int)(due / SLUICE_MS(1)) + 1 : -1);
        }
    }
}

/* Without keepalive, and with it, where the loop has to look after idle queue pairs as well. */
TEST(event_loop_misses_no_request, .times = 2)
{
    const struct sluice_agent_attr attr = {.size = sizeof(attr),
                                           .flags = SLUICE_AGENT_NO_THREAD,
                                           .keepalive = _i == 1 ? SLUICE_S(100) : 0,
                                           .secret_file = ""};
    struct client clients[CLIENTS];
    struct sides sides;
    char address[64];
    sides_open(&sides);
    struct sluice_agent *server = make_agent(sides.pds[0], &attr, 0);
    require_ok(sluice_agent_listen(server, "127.0.0.1:0", NULL));
    require(sluice_agent_address(server, address, sizeof(address)) > 0, "%s", sluice_last_error());
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].agent = make_agent(sides.pds[1], NULL, SLUICE_AGENT_NO_THREAD);
        clients[i].address = address;
        require(pthread_create(&clients[i].thread, NULL, ask, &clients[i]) == 0, "no thread");
    }
    serve(server, CLIENTS * ROUNDS);
    for (int i = 0; i < CLIENTS; i++) {
        require(pthread_join(clients[i].thread, NULL) == 0, "no end");
        sluice_agent_close(clients[i].agent);
    }
    sluice_agent_close(server);
    sides_close(&sides);
}

/*
 * Both ends are in this process, so each connection costs twice what a process has for a peer. A
 * few more may be for memory that is kept for the next one.
 */
TEST(peer_costs_few_descriptors, .unless = device_is_no_soft)
{
    struct agents agents;
    struct sluice_agent_peer *peers[PEERS];
    agents_open(&agents, NULL, NULL);
    int before = count_fds();
    for (int i = 0; i < PEERS; i++) {
        peers[i] = sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
        require(peers[i], "%s", sluice_last_error());
        require(sluice_agent_next_peer(agents.owner, DEADLINE), "%s", sluice_last_error());
    }
    int most = before + 2 * PEERS * 3 + 4;
    int after = settle_fds(most);
    require(after <= most, "%d descriptors for %d connections", after - before, PEERS);
    for (int i = 0; i < PEERS; i++) {
        sluice_agent_peer_close(peers[i]);
    }
    agents_close(&agents);
}

/* Sets the limit of descriptors so that none can be opened. Returns the former limit. */
static struct rlimit allow_no_more_fds(void)
{
    struct rlimit limit, low;
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    low = limit;
    low.rlim_cur = 3;
    require(setrlimit(RLIMIT_NOFILE, &low) == 0, "%m");
    return limit;
}

/* A long message needs memory, but no descriptor. */
TEST(long_message_is_received_without_descriptors, .unless = device_is_no_soft)
{
    struct agents agents;
    struct sender sender;
    uint8_t *bytes = malloc(LONG);
    pattern_fill(bytes, LONG, 7);
    agents_open(&agents, NULL, NULL);
    /* The sender has its own copy of a message of this length from now on. */
    pass(&agents, true, LONG, 6);
    struct rlimit limit = allow_no_more_fds();
    start_sender(&sender, agents.at_holder, bytes, LONG, DEADLINE);
    receive_pattern(agents.owner, agents.at_owner, LONG, 7);
    join_sender(&sender, 0);
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    agents_close(&agents);
    free(bytes);
}

/* Clients of a server that has no descriptors for them: it serves the peer that it has. */
static void reach_limit(struct rank *rank)
{
    char own[2][64] = {""}, all[2][64];
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    struct sluice_agent *agent = make_agent(pd, NULL, SLUICE_AGENT_NO_THREAD);
    struct sluice_agent_peer *peer = NULL;
    if (rank->index == 0) {
        require_ok(sluice_agent_listen(agent, "127.0.0.1:0", NULL));
        require(sluice_agent_address(agent, own[0], sizeof(own[0])) > 0, "%s", sluice_last_error());
        memcpy(own[1], own[0], sizeof(own[0]));
    }
    rank_exchange(rank, own, all, sizeof(own[0]));
    if (rank->index == 1) {
        struct sluice_agent_message *message;
        peer = sluice_agent_connect(agent, all[0], NULL, DEADLINE);
        require(peer, "%s", sluice_last_error());
        rank_barrier(rank);
        require_null(sluice_agent_connect(agent, all[0], NULL, SLUICE_MS(500)), ETIMEDOUT, "");
        require_ok(sluice_agent_send(peer, "word", 4, DEADLINE));
        message = receive(agent, peer);
        sluice_agent_message_free(message);
    } else {
        struct rlimit limit;
        int64_t cpu, due = 0;
        struct pollfd fd = {.fd = sluice_agent_fd(agent), .events = POLLIN};
        struct sluice_agent_message *message = NULL;
        uint32_t errors = 0, rounds = 0;
        peer = sluice_agent_next_peer(agent, DEADLINE);
        require(peer, "%s", sluice_last_error());
        require_ok(sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL));
        limit = allow_no_more_fds();
        cpu = cpu_used();
        rank_barrier(rank);
        while (message == NULL) {
            message = sluice_agent_receive(agent, NULL, 0);
            errors += message == NULL && errno != ETIMEDOUT;
            rounds++;
            if (message == NULL && sluice_agent_arm(agent, &due) == 0)
                poll(&fd, 1, due < DEADLINE ? (int)(due / SLUICE_MS(1)) + 1 : 1000);
        }
        require(errors == 0, "%u errors", errors);
        require(rounds < 2000, "%u rounds, %lld ns", rounds, (long long)(cpu_used() - cpu));
        require_ok(sluice_agent_send(peer, "answer", 6, DEADLINE));
        sluice_agent_message_free(message);
        require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    }
    rank_barrier(rank);
    sluice_agent_peer_close(peer);
    sluice_agent_close(agent);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(agent_without_descriptors_serves_its_peers, .group = "processes", .unless = device_is_pretend)
{
    group_run(2, reach_limit, NULL, 60);
}

static void *close_agent(void *argument)
{
    sluice_agent_close(argument);
    return NULL;
}

struct waiter {
    pthread_t thread;
    struct sluice_agent *agent;
    const char *address;
    struct sluice_agent_peer *peer;
};

static void *connect_once_there(void *argument)
{
    const struct sluice_connect_attr wait = {.size = sizeof(wait), .flags = SLUICE_CONNECT_WAIT};
    struct waiter *waiter = argument;
    waiter->peer = sluice_agent_connect(waiter->agent, waiter->address, &wait, 3 * DEADLINE);
    return NULL;
}

/*
 * One peer does not take its goodbye, so the close takes its time. Meanwhile the agent lets no peer
 * in: a client is refused or, if it waits for a server, gets the next one.
 */
TEST(closing_agent_lets_no_peer_in)
{
    const struct sluice_channel_attr deaf_attr = {.size = sizeof(deaf_attr),
                                                  .access = SLUICE_ACCESS_NONE};
    const struct sluice_connect_attr open = {.size = sizeof(open), .secret_file = ""};
    struct agents agents;
    struct waiter waiter = {.peer = NULL};
    pthread_t closer;
    int64_t end = fair_now() + DEADLINE;
    agents_open(&agents, NULL, NULL);
    struct sluice_channel *deaf =
        made(sluice_connect(agents.address, agents.sides.pds[1], &deaf_attr, &open, DEADLINE));
    struct sluice_agent *other = make_agent(agents.sides.pds[1], NULL, SLUICE_AGENT_NO_THREAD);
    require(pthread_create(&closer, NULL, close_agent, agents.owner) == 0, "no thread");
    while (peer_info(agents.at_holder).state != SLUICE_AGENT_PEER_LOST) {
        require(sluice_agent_progress(agents.holder) >= 0, "%s", sluice_last_error());
        require(fair_now() < end, "the owner does not close");
        poll(NULL, 0, 1);
    }
    require_null(sluice_agent_connect(other, agents.address, NULL, DEADLINE), ECONNREFUSED, "");
    waiter.agent = other;
    waiter.address = agents.address;
    require(pthread_create(&waiter.thread, NULL, connect_once_there, &waiter) == 0, "no thread");
    require(pthread_join(closer, NULL) == 0, "no end");
    sluice_agent_peer_close(agents.at_owner);
    agents.owner = make_agent(agents.sides.pds[0], NULL, 0);
    require_ok(sluice_agent_listen(agents.owner, agents.address, NULL));
    require(pthread_join(waiter.thread, NULL) == 0, "no end");
    require(waiter.peer, "it did not connect to the next agent");
    agents.at_owner = sluice_agent_next_peer(agents.owner, DEADLINE);
    require(agents.at_owner, "%s", sluice_last_error());
    sluice_agent_peer_close(waiter.peer);
    sluice_agent_close(other);
    sluice_channel_close(deaf);
    agents_close(&agents);
}

int main(void)
{
    static const struct tests groups[] = {{"self", WIRE_SELF, 60},
                                          {"tcp", WIRE_TCP, 60},
                                          {"shm", WIRE_SHM, 60},
                                          {"processes", WIRE_SHM, 60}};
    return run_groups("agent_crowd", groups, COUNT(groups));
}
