/* SPDX-License-Identifier: MIT */
/*
 * Agents that connect and let peers in at the same time. Without threads, each is let in by the
 * call with which the next one connects. An agent may also connect to itself.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "agents.h"

#define MOST 3

struct member {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct sluice_agent *agent;
    char address[64];
    const char *next;
};

static void *come_and_meet(void *argument)
{
    struct member *member = argument;
    struct sluice_agent_peer *next, *before;
    (void)pthread_barrier_wait(member->barrier);
    next = sluice_agent_connect(member->agent, member->next, NULL, DEADLINE);
    require(next, "%s", sluice_last_error());
    before = sluice_agent_next_peer(member->agent, DEADLINE);
    require(before, "%s", sluice_last_error());
    (void)pthread_barrier_wait(member->barrier);
    sluice_agent_peer_close(next);
    sluice_agent_peer_close(before);
    return NULL;
}

TEST(agents_without_threads_connect_in_a_circle, .times = MOST)
{
    struct member members[MOST];
    pthread_barrier_t barrier;
    struct sides sides;
    int count = _i + 1;
    sides_open(&sides);
    require(pthread_barrier_init(&barrier, NULL, (unsigned)count) == 0, "no barrier");
    for (int i = 0; i < count; i++) {
        members[i] =
            (struct member){.barrier = &barrier,
                            .agent = make_agent(sides.pds[i % 2], NULL, SLUICE_AGENT_NO_THREAD),
                            .next = members[(i + 1) % count].address};
        require_ok(sluice_agent_listen(members[i].agent, "127.0.0.1:0", NULL));
        require(sluice_agent_address(members[i].agent, members[i].address,
                                     sizeof(members[i].address)) > 0,
                "%s", sluice_last_error());
    }
    for (int i = 0; i < count; i++) {
        require(pthread_create(&members[i].thread, NULL, come_and_meet, &members[i]) == 0,
                "no thread");
    }
    for (int i = 0; i < count; i++) {
        require(pthread_join(members[i].thread, NULL) == 0, "no end");
        sluice_agent_close(members[i].agent);
    }
    pthread_barrier_destroy(&barrier);
    sides_close(&sides);
}

struct caller {
    pthread_t thread;
    struct sluice_agent *agent;
    char address[64];
    struct sluice_agent_peer *peer;
};

/* Connects to an address where nothing listens yet, once the agent has a place. */
static void *call(void *argument)
{
    const struct sluice_connect_attr wait = {.size = sizeof(wait), .flags = SLUICE_CONNECT_WAIT};
    struct caller *caller = argument;
    do {
        caller->peer = sluice_agent_connect(caller->agent, caller->address, &wait, DEADLINE);
    } while (caller->peer == NULL && errno == ENOBUFS);
    require(caller->peer, "%s", sluice_last_error());
    return NULL;
}

static struct sluice_agent *listen_at(struct sides *sides, const char *address,
                                      const struct sluice_agent_attr *attr)
{
    struct sluice_agent *agent = make_agent(sides->pds[0], attr, 0);
    require_ok(sluice_agent_listen(agent, address, NULL));
    return agent;
}

/* Returns when the agent refuses a peer because it is full. */
static void await_refusal(struct sluice_agent *from, const char *address)
{
    struct sluice_agent_peer *peer;
    while ((peer = sluice_agent_connect(from, address, NULL, DEADLINE)) != NULL) {
        sluice_agent_peer_close(peer);
    }
    require(strstr(sluice_last_error(), "as many peers as it takes"), "%s", sluice_last_error());
}

/* The place of a peer that the agent is connecting to is not given to one that comes meanwhile. */
TEST(the_last_place_is_given_once)
{
    const struct sluice_agent_attr attr = {.size = sizeof(attr), .max_peers = 1, .secret_file = ""};
    struct caller caller;
    char address[64];
    struct sides sides;
    sides_open(&sides);
    struct sluice_agent *other = listen_at(&sides, "127.0.0.1:0", NULL);
    struct sluice_agent *from = make_agent(sides.pds[1], NULL, SLUICE_AGENT_NO_THREAD);
    require(sluice_agent_address(other, caller.address, sizeof(caller.address)) > 0, "%s",
            sluice_last_error());
    sluice_agent_close(other);
    caller.agent = listen_at(&sides, "127.0.0.1:0", &attr);
    require(sluice_agent_address(caller.agent, address, sizeof(address)) > 0, "%s",
            sluice_last_error());
    require(pthread_create(&caller.thread, NULL, call, &caller) == 0, "no thread");
    await_refusal(from, address);
    other = listen_at(&sides, caller.address, NULL);
    require(pthread_join(caller.thread, NULL) == 0, "no end");
    require(agent_info(caller.agent).peers == 1, "%u peers", agent_info(caller.agent).peers);
    await_refusal(from, address);
    sluice_agent_peer_close(caller.peer);
    struct sluice_agent_peer *peer = sluice_agent_connect(from, address, NULL, DEADLINE);
    require(peer, "%s", sluice_last_error());
    sluice_agent_peer_close(peer);
    sluice_agent_close(from);
    sluice_agent_close(caller.agent);
    sluice_agent_close(other);
    sides_close(&sides);
}

/* Returns whether an agent lets a peer in whose program makes no call meanwhile. */
static bool serves_alone(struct sides *sides, uint32_t flags, int64_t deadline)
{
    struct sluice_agent *server = make_agent(sides->pds[0], NULL, flags);
    struct sluice_agent *client = make_agent(sides->pds[1], NULL, SLUICE_AGENT_NO_THREAD);
    struct sluice_agent_peer *peer;
    char address[64];
    bool served;
    require_ok(sluice_agent_listen(server, "127.0.0.1:0", NULL));
    require(sluice_agent_address(server, address, sizeof(address)) > 0, "%s", sluice_last_error());
    peer = sluice_agent_connect(client, address, NULL, deadline);
    served = peer != NULL;
    sluice_agent_peer_close(peer);
    sluice_agent_close(client);
    sluice_agent_close(server);
    return served;
}

TEST(an_agent_serves_unless_it_has_no_thread)
{
    struct sides sides;
    sides_open(&sides);
    require(serves_alone(&sides, 0, DEADLINE), "%s", sluice_last_error());
    require(!serves_alone(&sides, SLUICE_AGENT_NO_THREAD, SLUICE_MS(300)), "it has a thread");
    sides_close(&sides);
}

int main(void)
{
    return run_tests("agent_circle", 60);
}
