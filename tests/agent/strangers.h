/* SPDX-License-Identifier: MIT */
/*
 * A stranger that pretends to be an agent, byte by byte: a control channel to a real one, on the
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

/* A control channel of ours, and a pretended data queue pair behind it. */
struct stranger {
    struct sides sides;
    struct sluice_agent *agent;
    struct sluice_channel *control;
    struct sluice_prepared_channel *data;
    struct memory memory; /* receives, and then what is sent */
    uint8_t *out;
    uint32_t taken; /* messages taken from the agent, as reported to it */
    char address[64];
};

/* Connects without a greeting. */
void stranger_open(struct stranger *stranger);
/* The same to an agent with these attributes, and without receives. */
void stranger_open_to(struct stranger *stranger, const struct sluice_agent_attr *attr);
/* Receives the agent's greeting and prepares a matching one with our endpoint. */
void greet(struct stranger *stranger);
/* Opens and greets; out is zeroed, as after each message. */
void stranger_greet(struct stranger *stranger);
/* Requires that the agent still works for another peer, and closes. */
void stranger_close(struct stranger *stranger);
struct sluice_channel *connect_control(struct stranger *stranger);

void put(uint8_t *at, uint64_t value, int bytes);
/* Sends a message of that type with a valid head; its body follows the head in out. */
void say(struct stranger *stranger, uint32_t type, uint64_t id, uint32_t length);
/* Sends this many bytes of out. */
void say_raw(struct stranger *stranger, uint32_t count);
/* Returns the type of the agent's next message, in the order of the receives. */
uint32_t hear_type(struct stranger *stranger, uint32_t *heard);
/* Waits for the next message of that type. Returns its id. */
uint64_t hear_request(struct stranger *stranger, uint32_t *heard, uint32_t type);

#endif
