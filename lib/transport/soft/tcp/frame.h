/* SPDX-License-Identifier: MIT */
/*
 * What is said over a connection once both sides have proven themselves, for which
 * connect/greeting.h has the words: frames, a header and for some a payload. Numbers are
 * in network byte order.
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
    TCP_REPEAT,   /* of a SEND: the message itself is wanted */
    TCP_FAREWELL, /* the last frame: why this side ends the connection */
    TCP_TYPES
};

#define TCP_FLAG_IMMEDIATE 1
#define TCP_FLAG_PROMPT 2 /* acknowledge without delay: somebody waits for that alone */
/* SEND, through shared memory: not the message follows, but rkey SGEs that name it. */
#define TCP_FLAG_LENT 4

/* Every frame carries ack and credit; what else is valid depends on the type. */
struct tcp_frame {
    uint8_t type; /* enum tcp_type */
    uint8_t flags;
    uint8_t status;     /* NAK: for the request seq; FAREWELL: enum slu_farewell */
    uint32_t immediate; /* with TCP_FLAG_IMMEDIATE */
    uint32_t seq;       /* requests: their number; replies, NAK: that of the request;
                           PROBE: any; ECHO: that of the probe; REPEAT: as a NAK */
    uint32_t ack;       /* requests of the peer that are complete, ever */
    uint32_t credit;    /* receives posted, ever */
    uint32_t rkey;      /* WRITE, READ_REQUEST, atomics; SEND: with TCP_FLAG_LENT, a count */
    uint64_t addr;      /* likewise; ATOMIC_REPLY: the old value */
    uint64_t length;    /* of the payload; READ_REQUEST: of the reply */
};

void slu_soft_frame_encode(const struct tcp_frame *frame, uint8_t bytes[TCP_FRAME_BYTES]);

/*
 * False unless the header is one that we could have encoded: known type, no
 * flag, field or length that the type does not have.
 */
bool slu_soft_frame_decode(const uint8_t bytes[TCP_FRAME_BYTES], struct tcp_frame *frame);

/* Bytes that follow the header. */
uint64_t slu_soft_frame_payload(const struct tcp_frame *frame);

#endif
