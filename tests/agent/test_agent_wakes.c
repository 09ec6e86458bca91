/* SPDX-License-Identifier: MIT */
/* While one thread of an agent lets a peer in, its other threads sleep. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "agents.h"

#define ROUNDS 20
/*
 * Waits for events of one connect and its end: up to 90 of both agents and their contexts. There
 * were over 1,300 when the listener woke all threads until the peer was in.
 */
#define MOST_WAITS 400

static atomic_uint waits;

/* In place of that of the C library, also for the library. */
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    atomic_fetch_add(&waits, 1);
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

int main(void)
{
    return run_tests("agent_wakes", 60);
}
