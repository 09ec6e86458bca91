/* SPDX-License-Identifier: MIT */
/*
 * The control messages of agents: one message in one receive of the control queue pair, a head
 * and a body, in network byte order. Reading one has no side effects and checks every byte.
 */
#ifndef SLU_AGENT_MESSAGE_H
#define SLU_AGENT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/endpoint.h>
#include <sluice/mr.h>

#define SLU_AGENT_HEAD 40
/* Longest body of any message but TEXT, in bytes. */
#define SLU_AGENT_MOST_BODY 512
/* Longest text of an error in bytes, without a terminator. */
#define SLU_AGENT_WORDS 160
/* The rights that a region may have: those of peers. */
#define SLU_AGENT_ACCESS \
    (SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_ATOMIC)
/* Upper limit of lengths and quotas, so that sums of a few of them do not overflow. */
#define SLU_AGENT_MOST_BYTES (UINT64_C(1) << 60)

enum slu_agent_type {
    SLU_AGENT_HELLO = 1, /* first, from both sides: limits, and the data endpoint */
    /* Requests: each has an id, and one answer with that id. */
    SLU_AGENT_ALLOC,    /* memory: answered by ALLOCATED, or DONE with an error */
    SLU_AGENT_RELEASE,  /* gives up a region of the receiver; this and the rest: DONE */
    SLU_AGENT_HAND,     /* hands a region of the sender to the receiver */
    SLU_AGENT_RETURN,   /* sends a region of the receiver back, for its program */
    SLU_AGENT_ANNOUNCE, /* a long message, to be read from that region */
    /* Answers. */
    SLU_AGENT_ALLOCATED,
    SLU_AGENT_DONE,
    /* Without an answer. */
    SLU_AGENT_TEXT,     /* a message of the program: the body */
    SLU_AGENT_WITHDRAW, /* withdraws the message announced by that id, which is still answered */
    SLU_AGENT_REVOKE,   /* ends a region of the sender */
    /* Without an answer, and not counted in the window. */
    SLU_AGENT_CREDIT, /* a head without a body */
    SLU_AGENT_RESET,  /* a new data queue pair: its generation and endpoint */
    SLU_AGENT_READY,  /* the data queue pair of that generation is connected at the sender */
    SLU_AGENT_BYE,    /* the sender leaves */
    /* A request, and its answer, unless that is DONE with an error. */
    SLU_AGENT_RENEW,   /* renews the lease of a region of the receiver */
    SLU_AGENT_RENEWED, /* the lease begins anew, with that length */
    SLU_AGENT_TYPES
};

/* How a request ended. */
enum slu_agent_code {
    SLU_AGENT_OK,
    SLU_AGENT_DENIED,    /* rights */
    SLU_AGENT_QUOTA,     /* of bytes or of regions */
    SLU_AGENT_NO_MEMORY, /* at the receiver of the request */
    SLU_AGENT_UNKNOWN,   /* no such region */
    SLU_AGENT_CANCELLED, /* withdrawn, or it could not be read */
    SLU_AGENT_TOO_LONG,
    SLU_AGENT_BUSY, /* too many requests */
    SLU_AGENT_CODES
};

/* The limits of a side. */
struct slu_agent_hello {
    uint32_t eager;
    uint32_t window;
    uint32_t waiting;
    uint32_t access;
    uint64_t waiting_bytes;
    uint64_t max_message;
    uint64_t quota;
    int64_t max_lease;
};

/* A message; fields that its type does not have are 0, but for the endpoint. */
struct slu_agent_message {
    uint32_t type;
    uint32_t written, readable; /* by and from version, unless they are ours: then 0 */
    uint32_t length;            /* of the body */
    uint64_t id;                /* of a request, and of its answer; else 0 */
    /* Counts since the connection began, modulo 2^32: windowed messages of the receiver that the
       sender has taken, and waiting ones that its program has received. */
    uint32_t taken;
    uint32_t received;
    uint64_t received_bytes;
    uint32_t generation;            /* hello, reset, ready */
    struct sluice_remote_mr remote; /* allocated, hand, announce; reset: the failed target */
    uint64_t region;                /* id */
    uint64_t bytes;                 /* alloc */
    int64_t lease;                  /* alloc, allocated, hand, renew, renewed */
    uint32_t access;                /* likewise */
    uint32_t code;                  /* done */
    struct slu_agent_hello hello;
    const uint8_t *body;             /* in the bytes that were read; all there is of a TEXT */
    char words[SLU_AGENT_WORDS + 1]; /* done: printable; else empty */
    struct sluice_endpoint endpoint; /* hello, reset; else not set */
};

/*
 * Reads and checks a message. Returns 0; -EPROTO if it is malformed; -EMSGSIZE if its body is
 * longer than its type allows, or than most for a TEXT; -EPROTONOSUPPORT if this version cannot
 * read it: then *message has the versions. On another error *message must not be used. Errors have
 * no text.
 */
int slu_agent_message_read(const uint8_t *bytes, size_t count, uint32_t most,
                           struct slu_agent_message *message);

/* Writes the versions of a message, and those of this library; returns text. */
#define SLU_AGENT_VERSIONS_TEXT 140
const char *slu_agent_message_versions(const struct slu_agent_message *message,
                                       char text[SLU_AGENT_VERSIONS_TEXT]);

/* Writes head and body, but the head alone of a TEXT. Returns the length with the body. */
uint32_t slu_agent_message_write(const struct slu_agent_message *message, uint8_t *bytes);

#endif
