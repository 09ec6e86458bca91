/* SPDX-License-Identifier: MIT */
/*
 * Two agents within one process, on the wire of the running test: an owner, which listens and
 * has a thread, and a holder, which has connected to it.
 */
#ifndef AGENT_AGENTS_H
#define AGENT_AGENTS_H

#include <pthread.h>

#include "../support/pair.h"

#define ACCESS_REMOTE \
    (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC)
#define ACCESS_READ_WRITE (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)

struct agents {
    struct sides sides;
    struct sluice_agent *owner, *holder;
    struct sluice_agent_peer *at_owner;  /* the holder, as the owner has it */
    struct sluice_agent_peer *at_holder; /* the owner, as the holder has it */
    char address[64];
    struct memory memory; /* of the holder's domain */
};

/* Opens both with these attributes; NULL: all defaults, but the holder then has no thread. */
void agents_open(struct agents *agents, const struct sluice_agent_attr *owner,
                 const struct sluice_agent_attr *holder);
void agents_close(struct agents *agents);

/* Makes an agent. Without a quota in attr, it lends 64 MiB. */
struct sluice_agent *make_agent(struct sluice_pd *pd, const struct sluice_agent_attr *attr,
                                uint32_t flags);
struct sluice_agent_info agent_info(struct sluice_agent *agent);
struct sluice_agent_peer_info peer_info(struct sluice_agent_peer *peer);
struct sluice_agent_mr_info mr_info(struct sluice_agent_mr *mr);

/* Requests a region; must succeed. */
struct sluice_agent_mr *request(struct agents *agents, uint64_t length, uint32_t access,
                                int64_t lease);
/* Writes a pattern to the whole region, reads it back, and compares. */
void region_works(struct agents *agents, struct sluice_agent_mr *mr, uint64_t key);
/* Serves the agent until this number of it has this value. */
void await_number(struct sluice_agent *agent, size_t offset, uint64_t wanted);
#define await_info(agent, field, wanted) \
    await_number(agent, offsetof(struct sluice_agent_info, field), wanted)
void await_regions(struct sluice_agent *agent, uint32_t wanted);

/* A sender in a thread of its own. */
struct sender {
    pthread_t thread;
    struct sluice_agent_peer *peer;
    const void *bytes;
    size_t length;
    int64_t deadline;
    int error;
};

void start_sender(struct sender *sender, struct sluice_agent_peer *peer, const void *bytes,
                  size_t length, int64_t deadline);
void join_sender(struct sender *sender, int wanted);
/* Receives a message; must succeed. */
struct sluice_agent_message *receive(struct sluice_agent *agent, struct sluice_agent_peer *peer);
void receive_pattern(struct sluice_agent *agent, struct sluice_agent_peer *peer, size_t length,
                     uint64_t key);
/* Sends a message of that length, either way, and receives it. */
void pass(struct agents *agents, bool to_owner, size_t length, uint64_t key);

#endif
