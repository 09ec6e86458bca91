/* SPDX-License-Identifier: MIT */
/*
 * Somebody who pretends to be an agent, byte by byte: a control channel to a true one, on the
 * wire of the running test.
 */
#ifndef AGENT_STRANGERS_H
#define AGENT_STRANGERS_H

#include "agents.h"

#define HEAD 40
#define SLOT 4160
#define RECEIVES 64
#define TYPE_AT 6
#define LENGTH_AT 8
#define TAKEN_AT 12
#define ID_AT 16
/* The longest message that the agent takes. */
#define LONG_BYTES (UINT64_C(64) << 20)

/* Types of messages, as they are on the wire. */
enum {
    HELLO = 1,
    ALLOC,
    RELEASE,
    HAND,
    RETURN,
    ANNOUNCE,
    ALLOCATED,
    DONE,
    TEXT,
    WITHDRAW,
    REVOKE,
    CREDIT,
    RESET,
    READY,
    BYE,
    RENEW,
    RENEWED
};

/* A control channel of ours, and what pretends to be a data queue pair behind it. */
struct stranger {
    struct sides sides;
    struct sluice_agent *agent;
    struct sluice_channel *control;
    struct sluice_prepared_channel *data;
    struct memory memory; /* receives, and then what is sent */
    uint8_t *out;
    uint32_t taken; /* of what the agent has said, as it is told */
    char address[64];
};

/* Connects, and has not greeted. */
void stranger_open(struct stranger *stranger);
/* Its first word comes, and ours is like it, with an endpoint of ours. */
void greet(struct stranger *stranger);
/* Both; out is zeros, as it is after each that was said. */
void stranger_greet(struct stranger *stranger);
/* The agent lives, for somebody else. */
void stranger_close(struct stranger *stranger);
struct sluice_channel *connect_control(struct stranger *stranger);

void put(uint8_t *at, uint64_t value, int bytes);
/* A message of that type, whose head is right; its body is what out has behind that. */
void say(struct stranger *stranger, uint32_t type, uint64_t id, uint32_t length);
/* So many bytes, as out has them. */
void say_raw(struct stranger *stranger, uint32_t count);
/* The type of the next that the agent says, in the order of the receives. */
uint32_t hear_type(struct stranger *stranger, uint32_t *heard);
/* The id of the next of that type. */
uint64_t hear_request(struct stranger *stranger, uint32_t *heard, uint32_t type);

#endif
