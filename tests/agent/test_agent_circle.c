/* SPDX-License-Identifier: MIT */
/*
 * Agents without threads that connect to each other at the same time: each is let in by the call
 * with which the next one connects. An agent may also connect to itself.
 */
#include <pthread.h>

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
        members[i] = (struct member){.barrier = &barrier,
                                     .agent = make_agent(sides.pds[i % 2], NULL, 0),
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

int main(void)
{
    return run_tests("agent_circle", 60);
}
