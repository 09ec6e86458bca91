/* SPDX-License-Identifier: MIT */
/*
 * What agents say to each other: one message in one receive of the control queue pair, a head
 * and a body, in network byte order. Reading one has no side effects and believes nothing: a
 * message that is taken has the form of its type, to the last byte.
 */
#ifndef SLU_AGENT_MESSAGE_H
#define SLU_AGENT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/endpoint.h>
#include <sluice/mr.h>

#define SLU_AGENT_HEAD 40
/* Of any message but one that the program sent. */
#define SLU_AGENT_MOST_BODY 400
/* Of the words of an error, without a terminator. */
#define SLU_AGENT_WORDS 160
/* Regions have rights of peers, and no others. */
#define SLU_AGENT_ACCESS \
    (SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_ATOMIC)
/* Lengths, quotas and the like are below it, so that sums of a few of them are right. */
#define SLU_AGENT_MOST_BYTES (UINT64_C(1) << 60)

enum slu_agent_type {
    SLU_AGENT_HELLO = 1, /* first, from both sides: limits, and the data endpoint */
    /* Requests: each has an id, and one answer with that id. */
    SLU_AGENT_ALLOC,    /* memory: answered by ALLOCATED, or DONE with an error */
    SLU_AGENT_RELEASE,  /* a region of the receiver's, by its name; these by DONE */
    SLU_AGENT_HAND,     /* a region of the sender's is the receiver's to use */
    SLU_AGENT_RETURN,   /* a region of the receiver's, for its program */
    SLU_AGENT_ANNOUNCE, /* a message, to be read from there */
    /* Answers. */
    SLU_AGENT_ALLOCATED,
    SLU_AGENT_DONE,
    /* Without an answer. */
    SLU_AGENT_TEXT,     /* of the program: the body */
    SLU_AGENT_WITHDRAW, /* the message that was announced by that id, which is answered still */
    SLU_AGENT_REVOKE,   /* a region of the sender's is over */
    /* Without an answer, nor a place in the window. */
    SLU_AGENT_CREDIT, /* the head is all */
    SLU_AGENT_RESET,  /* a new data queue pair: its generation and endpoint */
    SLU_AGENT_READY,  /* the one of that generation is connected at the sender */
    SLU_AGENT_BYE,    /* the sender leaves */
    /* A request, and its answer, unless that is DONE with an error. */
    SLU_AGENT_RENEW,   /* the lease of a region of the receiver's */
    SLU_AGENT_RENEWED, /* it is counted anew, and is that long */
    SLU_AGENT_TYPES
};

/* How a request ended. */
enum slu_agent_code {
    SLU_AGENT_OK,
    SLU_AGENT_DENIED,    /* rights */
    SLU_AGENT_QUOTA,     /* too much, or too many */
    SLU_AGENT_NO_MEMORY, /* of whoever was asked */
    SLU_AGENT_UNKNOWN,   /* no such region */
    SLU_AGENT_CANCELLED, /* withdrawn, or it could not be read */
    SLU_AGENT_TOO_LONG,
    SLU_AGENT_BUSY, /* too many requests */
    SLU_AGENT_CODES
};

/* What a side tells of itself. */
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

/* A message; what its type does not have is 0. */
struct slu_agent_message {
    uint32_t type;
    uint32_t length; /* of the body */
    uint64_t id;     /* of a request, and of its answer; else 0 */
    /* How many of the receiver's messages and requests the sender has taken, and what of those
       that wait its program has: counted from the start, and modulo 2^32. */
    uint32_t taken;
    uint32_t received;
    uint64_t received_bytes;
    struct slu_agent_hello hello;
    struct sluice_endpoint endpoint; /* hello, reset */
    uint32_t generation;             /* hello, reset, ready */
    struct sluice_remote_mr remote;  /* allocated, hand, announce; reset: what was named amiss */
    uint64_t region;                 /* its name */
    uint64_t bytes;                  /* alloc */
    int64_t lease;                   /* alloc, allocated, hand, renew, renewed */
    uint32_t access;                 /* likewise */
    uint32_t code;                   /* done */
    char words[SLU_AGENT_WORDS + 1]; /* done: printable */
    const uint8_t *body;             /* where it begins, in what was read; of MESSAGE that is all */
};

/*
 * 0: it is a message, and all of it is checked. -EPROTO: it has no form of ours. -EMSGSIZE: its
 * body is longer than those of its type, or than most for one of a program. -EPROTO and -EMSGSIZE
 * have no text, and *message is then not to be used.
 */
int slu_agent_message_read(const uint8_t *bytes, size_t count, uint32_t most,
                           struct slu_agent_message *message);

/* Writes head and body, but not that of MESSAGE, which stands behind the head: bytes in all. */
uint32_t slu_agent_message_write(const struct slu_agent_message *message, uint8_t *bytes);

#endif
