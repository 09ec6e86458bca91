/* SPDX-License-Identifier: MIT */
/*
 * Peers of an agent that share receives: all are served, a peer that floods or takes no answers
 * harms no other one, and an idle peer needs no memory for receives.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/process.h"
#include "strangers.h"

#define POOL 16
#define MANY 40
#define EAGER 1024
#define WAITING 8

/* The fewest receives, and short messages. */
static const struct sluice_agent_attr narrow = {.size = sizeof(narrow),
                                                .eager = EAGER,
                                                .window = 4,
                                                .max_waiting = WAITING,
                                                .receive_pool = POOL,
                                                .secret_file = ""};

/* Peers of the owner of agents beside its holder. */
struct crowd {
    struct agents agents;
    uint32_t count;
    struct sluice_agent *others[MANY];
    struct sluice_agent_peer *peers[MANY];
    struct sluice_agent_peer *at_owner[MANY];
};

static void crowd_open(struct crowd *crowd, uint32_t count)
{
    struct sluice_agent_attr holder = narrow;
    holder.flags = SLUICE_AGENT_NO_THREAD;
    agents_open(&crowd->agents, &narrow, &holder);
    crowd->count = count;
    for (uint32_t i = 0; i < count; i++) {
        crowd->others[i] = make_agent(crowd->agents.sides.pds[1], &holder, 0);
        crowd->peers[i] =
            sluice_agent_connect(crowd->others[i], crowd->agents.address, NULL, DEADLINE);
        require(crowd->peers[i], "%s", sluice_last_error());
        crowd->at_owner[i] = sluice_agent_next_peer(crowd->agents.owner, DEADLINE);
        require(crowd->at_owner[i], "%s", sluice_last_error());
    }
}

static void crowd_close(struct crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->count; i++) {
        sluice_agent_peer_close(crowd->peers[i]);
        sluice_agent_peer_close(crowd->at_owner[i]);
        sluice_agent_close(crowd->others[i]);
    }
    agents_close(&crowd->agents);
}

/* Messages of more peers than there are receives arrive, each peer's in order. */
TEST(more_peers_than_receives_are_served)
{
    struct crowd crowd;
    uint64_t heard[MANY] = {0};
    crowd_open(&crowd, MANY);
    for (uint64_t round = 0; round < 4; round++) {
        for (uint64_t i = 0; i < MANY; i++) {
            const uint64_t said[2] = {i, round};
            require_ok(sluice_agent_send(crowd.peers[i], said, sizeof(said), DEADLINE));
        }
    }
    for (uint64_t i = 0; i < 4 * MANY; i++) {
        struct sluice_agent_message *message = receive(crowd.agents.owner, NULL);
        uint64_t said[2];
        require(sluice_agent_message_length(message) == sizeof(said), "another length");
        memcpy(said, sluice_agent_message_addr(message), sizeof(said));
        require(said[0] < MANY && said[1] == heard[said[0]], "out of order");
        heard[said[0]]++;
        sluice_agent_message_free(message);
    }
    pass(&crowd.agents, true, EAGER, 1);
    pass(&crowd.agents, false, EAGER, 2);
    pass(&crowd.agents, true, 100000, 3);
    crowd_close(&crowd);
}

/* A peer sends until its credit is used up, and the others are served all the same. */
TEST(flooding_peer_leaves_receives_to_others)
{
    struct crowd crowd;
    const uint8_t bytes[EAGER] = {0};
    uint32_t sent = 0;
    int error = 0;
    crowd_open(&crowd, 2);
    while (error == 0 && sent <= WAITING) {
        error = sluice_agent_send(crowd.peers[0], bytes, sizeof(bytes), SLUICE_MS(200));
        sent += error == 0;
    }
    require(error == -ETIMEDOUT && sent == WAITING, "%d after %u", error, sent);
    for (uint64_t i = 0; i < 2 * POOL; i++) {
        require_ok(sluice_agent_send(crowd.peers[1], &i, sizeof(i), DEADLINE));
        struct sluice_agent_message *message = receive(crowd.agents.owner, crowd.at_owner[1]);
        require(sluice_agent_message_length(message) == sizeof(i) &&
                    memcmp(sluice_agent_message_addr(message), &i, sizeof(i)) == 0,
                "another message");
        sluice_agent_message_free(message);
    }
    for (uint32_t i = 0; i < WAITING; i++) {
        sluice_agent_message_free(receive(crowd.agents.owner, crowd.at_owner[0]));
    }
    crowd_close(&crowd);
}

/* Posts a request for a region that the agent does not have, whose answer needs a receive. */
static int ask(struct stranger *stranger, uint64_t id)
{
    struct sluice_sge sge = memory_sge(&stranger->memory, (size_t)RECEIVES * SLOT, HEAD + 8);
    put(stranger->out, 0x534c4147, 4);
    put(stranger->out + 4, 1, 2);
    put(stranger->out + TYPE_AT, RELEASE, 2);
    put(stranger->out + LENGTH_AT, 8, 4);
    put(stranger->out + ID_AT, id, 8);
    put(stranger->out + HEAD, 1000000, 8);
    return sluice_channel_send(stranger->control, &sge, 1, DEADLINE);
}

/*
 * A peer asks and takes no answers: what it has asked is copied, so that it keeps no receives from
 * others. Once it has asked more than a peer may, it is lost.
 */
TEST(peer_that_takes_no_answers_is_lost_alone)
{
    struct stranger stranger;
    struct sluice_agent *other;
    struct sluice_agent_peer *peer;
    struct sluice_sge sge;
    uint64_t asked = 0;
    int error = 0;
    stranger_open_to(&stranger, &narrow);
    sge = memory_sge(&stranger.memory, 0, SLOT);
    require_ok(sluice_channel_post_receive(stranger.control, &sge, 1, SLUICE_FOREVER, NULL));
    greet(&stranger);
    memset(stranger.out, 0, SLOT);
    other = make_agent(stranger.sides.pds[1], &narrow, SLUICE_AGENT_NO_THREAD);
    peer = sluice_agent_connect(other, stranger.address, NULL, DEADLINE);
    require(peer, "%s", sluice_last_error());
    while (error == 0 && asked < 1000) {
        error = ask(&stranger, ++asked);
        if (asked % 20 == 0) {
            require_ok(sluice_agent_send(peer, &asked, sizeof(asked), DEADLINE));
            sluice_agent_message_free(receive(stranger.agent, NULL));
        }
    }
    require(error < 0 && asked > 3 * POOL, "%d after %llu", error, (unsigned long long)asked);
    await_info(stranger.agent, lost, 1);
    sluice_agent_peer_close(peer);
    sluice_agent_close(other);
    stranger_close(&stranger);
}

/* Returns the pages of address space of this process that hold data. */
static uint64_t mapped_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long pages = 0;
    require(file != NULL && fscanf(file, "%llu", &pages) == 1, "no statm");
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns the address space that peers of an agent with this pool take. */
static uint64_t space_of_peers(uint32_t pool)
{
    const struct sluice_agent_attr attr = {.size = sizeof(attr),
                                           .eager = 65536,
                                           .window = 256,
                                           .receive_pool = pool,
                                           .secret_file = ""};
    struct sluice_agent_attr holder = attr;
    struct agents agents;
    struct sluice_agent_peer *peers[MANY];
    uint64_t before;
    holder.flags = SLUICE_AGENT_NO_THREAD;
    agents_open(&agents, &attr, &holder);
    before = mapped_bytes();
    for (uint32_t i = 0; i < MANY; i++) {
        peers[i] = sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
        require(peers[i], "%s", sluice_last_error());
    }
    before = mapped_bytes() - before;
    for (uint32_t i = 0; i < MANY; i++) {
        sluice_agent_peer_close(peers[i]);
    }
    agents_close(&agents);
    return before;
}

static bool device_cannot_share(void)
{
    return !device_is_soft() || SANITIZED;
}

/*
 * Each peer has 256 + 32 + 24 receives of 64 KiB at both ends, or none. Where a device has no
 * shared receives, it has these too. A sanitizer maps memory of its own.
 */
TEST(idle_peers_have_no_memory_for_receives, .unless = device_cannot_share)
{
    const uint64_t receives = (uint64_t)2 * MANY * (256 + 32 + 24) * 65536;
    /* See agents.c: a pool of 0 is to be one. */
    require(unsetenv("SLUICE_TEST_AGENT_POOL") == 0, "it is set");
    uint64_t own = space_of_peers(0), shared = space_of_peers(64);
    require(own - shared > receives * 9 / 10, "%llu and %llu", (unsigned long long)own,
            (unsigned long long)shared);
}

TEST(attributes_of_shared_receives_are_checked)
{
    struct sides sides;
    struct sluice_agent_attr attr = narrow;
    sides_open(&sides);
    attr.receive_pool = 15;
    require_null(sluice_agent_open(sides.pds[0], &attr), EINVAL, "receive_pool");
    attr.receive_pool = 65537;
    require_null(sluice_agent_open(sides.pds[0], &attr), EINVAL, "receive_pool");
    attr.receive_pool = 16;
    attr.receive_share = 17;
    require_null(sluice_agent_open(sides.pds[0], &attr), EINVAL, "receive_share");
    attr.receive_pool = 0;
    attr.receive_share = 1;
    require_null(sluice_agent_open(sides.pds[0], &attr), EINVAL, "receive_share");
    sides_close(&sides);
}

int main(void)
{
    return run_tests("agent_pool", 60);
}
