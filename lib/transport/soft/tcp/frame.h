/* SPDX-License-Identifier: MIT */
/*
 * The frames of a connection. Each has a header, and some a payload; numbers are in network byte
 * order. Before the first frame both sides prove themselves, as in connect/greeting.h.
 */
#ifndef SLU_SOFT_TCP_FRAME_H
#define SLU_SOFT_TCP_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define TCP_FRAME_BYTES 40

/* Payload of an atomic request: its two operands. */
#define TCP_ATOMIC_BYTES 16

enum tcp_type {
    TCP_SEND = 1,
    TCP_WRITE,
    TCP_READ_REQUEST,
    TCP_READ_REPLY,
    TCP_ACK,
    TCP_NAK,
    TCP_COMPARE_SWAP,
    TCP_FETCH_ADD,
    TCP_ATOMIC_REPLY,
    TCP_PROBE,
    TCP_ECHO,
    TCP_REPEAT,   /* of a lent SEND: send the message itself */
    TCP_FAREWELL, /* the last frame: why this side ends the connection */
    TCP_WANT,     /* to a peer with a pool: messages wait for credit */
    TCP_TYPES
};

#define TCP_FLAG_IMMEDIATE 1
#define TCP_FLAG_PROMPT 2 /* acknowledge without delay: the sender waits for it */
/* SEND through shared memory: the payload is not the message, but rkey SGEs that name it. */
#define TCP_FLAG_LENT 4

/* Every frame carries ack and credit; the type determines which other fields are valid. */
struct tcp_frame {
    uint8_t type; /* enum tcp_type */
    uint8_t flags;
    uint8_t status;     /* NAK: for the request seq; FAREWELL: enum slu_farewell */
    uint32_t immediate; /* with TCP_FLAG_IMMEDIATE */
    uint32_t seq;       /* requests: their number; replies, NAK: that of the request;
                           PROBE: any; ECHO: that of the probe; REPEAT: as a NAK;
                           WANT: the credit that they need */
    uint32_t ack;       /* requests of the peer that are complete, ever */
    uint32_t credit;    /* receives posted, ever */
    uint32_t rkey;      /* WRITE, READ_REQUEST, atomics; SEND: with TCP_FLAG_LENT, a count */
    uint64_t addr;      /* likewise; ATOMIC_REPLY: the old value */
    uint64_t length;    /* of the payload; READ_REQUEST: of the reply */
};

void slu_soft_frame_encode(const struct tcp_frame *frame, uint8_t bytes[TCP_FRAME_BYTES]);

/*
 * Decodes a header. False if this version could not have encoded it: the type is unknown, or a
 * flag, field or length is not one of its type.
 */
bool slu_soft_frame_decode(const uint8_t bytes[TCP_FRAME_BYTES], struct tcp_frame *frame);

/* Returns the number of bytes that follow the header. */
uint64_t slu_soft_frame_payload(const struct tcp_frame *frame);

#endif
