/* SPDX-License-Identifier: MIT */
/* Events that wake the threads of an agent, and events that must not. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "agents.h"

#define ROUNDS 20
/*
 * Waits for events of one connect and its end: some 20 of both agents and their contexts, without
 * those of a thread that spins. When the listener woke all threads until the peer was in, they
 * waited more than a thousand times.
 */
#define MOST_WAITS 100

static atomic_uint waits;

/* In place of that of the C library, also for the library. */
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    atomic_fetch_add(&waits, timeout != 0);
    return epoll_pwait(fd, events, most, timeout, NULL);
}

static struct sluice_agent_peer *taken[ROUNDS];

static void *take_peers(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        taken[i] = sluice_agent_next_peer(argument, DEADLINE);
        require(taken[i], "%s", sluice_last_error());
    }
    return NULL;
}

TEST(agent_that_lets_a_peer_in_wakes_no_other_thread)
{
    struct sluice_agent *server, *client;
    struct sluice_agent_peer *peers[ROUNDS];
    struct sides sides;
    pthread_t thread;
    char address[64];
    unsigned before = atomic_load(&waits), count;

    sides_open(&sides);
    server = make_agent(sides.pds[0], NULL, 0);
    client = make_agent(sides.pds[1], NULL, SLUICE_AGENT_NO_THREAD);
    require_ok(sluice_agent_listen(server, "127.0.0.1:0", NULL));
    require(sluice_agent_address(server, address, sizeof address) > 0, "%s", sluice_last_error());
    require(pthread_create(&thread, NULL, take_peers, server) == 0, "no thread");
    for (int i = 0; i < ROUNDS; i++) {
        peers[i] = sluice_agent_connect(client, address, NULL, DEADLINE);
        require(peers[i], "%s", sluice_last_error());
    }
    require(pthread_join(thread, NULL) == 0, "no end");
    for (int i = 0; i < ROUNDS; i++) {
        sluice_agent_peer_close(peers[i]);
        sluice_agent_peer_close(taken[i]);
    }
    count = atomic_load(&waits) - before;
    require(count < ROUNDS * MOST_WAITS, "%u waits for %d peers", count, ROUNDS);
    sluice_agent_close(client);
    sluice_agent_close(server);
    sides_close(&sides);
}

#define MESSAGES 50
/* Messages that the two agents exchange on their own account may end some. */
#define MOST_SLEEPS_ENDED 25

static void await_sleep(struct sluice_agent *agent)
{
    int64_t due;
    int result;

    do
        result = sluice_agent_arm(agent, &due);
    while (result == 1);
    require_ok(result);
}

/* Over TCP the acknowledgement is a frame, which the socket reports. */
TEST(acknowledgement_of_message_ends_no_sleep)
{
    struct agents agents;
    unsigned ended = 0;

    agents_open(&agents, NULL, NULL);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct pollfd fd = {.fd = sluice_agent_fd(agents.holder), .events = POLLIN};

        require_ok(sluice_agent_send(agents.at_holder, &i, sizeof i, DEADLINE));
        await_sleep(agents.holder);
        sluice_agent_message_free(receive(agents.owner, agents.at_owner));
        ended += poll(&fd, 1, 0) > 0;
    }
    require(current_wire() != WIRE_SHM || ended <= MOST_SLEEPS_ENDED,
            "%u of %d acknowledgements ended a sleep", ended, MESSAGES);
    agents_close(&agents);
}

TEST(flush_takes_acknowledgements_that_ended_no_sleep)
{
    struct agents agents;

    agents_open(&agents, NULL, NULL);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        require_ok(sluice_agent_send(agents.at_holder, &i, sizeof i, DEADLINE));
        await_sleep(agents.holder);
        sluice_agent_message_free(receive(agents.owner, agents.at_owner));
        require_ok(sluice_agent_flush(agents.at_holder, DEADLINE));
    }
    agents_close(&agents);
}

/* As the loop of a program: it sleeps only if nothing has come since the flush. */
static bool flushes_later(struct sluice_agent_peer *peer, struct sluice_agent *agent, bool *sleeps)
{
    int error = sluice_agent_flush(peer, 0);
    int64_t due;

    if (error == -ETIMEDOUT)
        *sleeps = sluice_agent_arm(agent, &due) == 0;
    else
        require_ok(error);
    return error != 0;
}

TEST(flush_that_has_not_ended_is_followed_by_an_event)
{
    struct agents agents;

    agents_open(&agents, NULL, NULL);
    for (uint64_t i = 0; i < MESSAGES / 5; i++) {
        struct pollfd fd = {.fd = sluice_agent_fd(agents.holder), .events = POLLIN};
        bool later, sleeps = false;

        require_ok(sluice_agent_send(agents.at_holder, &i, sizeof i, DEADLINE));
        later = flushes_later(agents.at_holder, agents.holder, &sleeps);
        (void)poll(NULL, 0, 20); /* until the library's thread looks no more */
        sluice_agent_message_free(receive(agents.owner, agents.at_owner));
        while (later) {
            require(!sleeps || poll(&fd, 1, 5000) == 1, "message %d: no event", (int)i);
            later = flushes_later(agents.at_holder, agents.holder, &sleeps);
        }
    }
    agents_close(&agents);
}

int main(void)
{
    return run_tests("agent_wakes", 60);
}
