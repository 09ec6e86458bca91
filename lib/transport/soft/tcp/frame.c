/* SPDX-License-Identifier: MIT */
/* Encodes and decodes headers of frames. A header is accepted whole or not at all. */
#include "transport/soft/tcp/frame.h"

#include <endian.h>
#include <string.h>

#include "transport/soft/core/soft.h"

/* As it is sent; numbers are in network byte order. */
struct wire {
    uint8_t type, flags, status, zero;
    uint32_t immediate, seq, ack, credit, rkey;
    uint64_t addr, length;
};

_Static_assert(sizeof(struct wire) == TCP_FRAME_BYTES, "no padding");

void slu_soft_frame_encode(const struct tcp_frame *frame, uint8_t bytes[TCP_FRAME_BYTES])
{
    struct wire wire = {.type = frame->type,
                        .flags = frame->flags,
                        .status = frame->status,
                        .immediate = htobe32(frame->immediate),
                        .seq = htobe32(frame->seq),
                        .ack = htobe32(frame->ack),
                        .credit = htobe32(frame->credit),
                        .rkey = htobe32(frame->rkey),
                        .addr = htobe64(frame->addr),
                        .length = htobe64(frame->length)};
    memcpy(bytes, &wire, sizeof(wire));
}

/* The fields that each type may use. */
static const struct {
    uint8_t flags;
    bool status;
    bool seq;
    bool rkey;
    bool addr;
    uint64_t least; /* length */
    uint64_t most;
} rules[TCP_TYPES] = {
    [TCP_SEND] = {TCP_FLAG_IMMEDIATE | TCP_FLAG_PROMPT | TCP_FLAG_LENT, false, true, true, false, 0,
                  SOFT_MAX_MESSAGE},
    [TCP_WRITE] = {TCP_FLAG_IMMEDIATE | TCP_FLAG_PROMPT, false, true, true, true, 0,
                   SOFT_MAX_MESSAGE},
    [TCP_READ_REQUEST] = {0, false, true, true, true, 0, SOFT_MAX_MESSAGE},
    [TCP_READ_REPLY] = {0, false, true, false, false, 0, SOFT_MAX_MESSAGE},
    [TCP_ACK] = {TCP_FLAG_PROMPT, false, false, false, false, 0, 0},
    [TCP_NAK] = {0, true, true, false, false, 0, 0},
    [TCP_COMPARE_SWAP] = {0, false, true, true, true, TCP_ATOMIC_BYTES, TCP_ATOMIC_BYTES},
    [TCP_FETCH_ADD] = {0, false, true, true, true, TCP_ATOMIC_BYTES, TCP_ATOMIC_BYTES},
    [TCP_ATOMIC_REPLY] = {0, false, true, false, true, 0, 0},
    [TCP_PROBE] = {0, false, true, false, false, 0, 0},
    [TCP_ECHO] = {0, false, true, false, false, 0, 0},
    [TCP_REPEAT] = {0, false, true, false, false, 0, 0},
    [TCP_FAREWELL] = {0, true, false, false, false, 0, 0},
    [TCP_WANT] = {0, false, true, false, false, 0, 0},
};

/* Checks the number of pieces: a lent message has at least one, any other has none. */
static bool counts_pieces(const struct tcp_frame *frame)
{
    if ((frame->flags & TCP_FLAG_LENT) != 0)
        return frame->rkey > 0 && frame->rkey <= SOFT_MAX_SGE;
    return frame->rkey == 0;
}

/* Checks a status. Unknown reasons of a farewell come from later versions and are valid. */
static bool check_status(uint8_t type, uint8_t status)
{
    if (type == TCP_FAREWELL)
        return status != SLU_FAREWELL_NONE;
    return status == SLUICE_STATUS_REM_INV_REQ_ERR || status == SLUICE_STATUS_REM_ACCESS_ERR ||
           status == SLUICE_STATUS_REM_OP_ERR;
}

bool slu_soft_frame_decode(const uint8_t bytes[TCP_FRAME_BYTES], struct tcp_frame *frame)
{
    struct wire wire;
    memcpy(&wire, bytes, sizeof(wire));
    *frame = (struct tcp_frame){.type = wire.type,
                                .flags = wire.flags,
                                .status = wire.status,
                                .immediate = be32toh(wire.immediate),
                                .seq = be32toh(wire.seq),
                                .ack = be32toh(wire.ack),
                                .credit = be32toh(wire.credit),
                                .rkey = be32toh(wire.rkey),
                                .addr = be64toh(wire.addr),
                                .length = be64toh(wire.length)};
    if (frame->type < TCP_SEND || frame->type >= TCP_TYPES || wire.zero != 0)
        return false;
    uint8_t type = frame->type;
    if ((frame->flags & ~rules[type].flags) != 0 || frame->length < rules[type].least ||
        frame->length > rules[type].most)
        return false;
    if (rules[type].status ? !check_status(type, frame->status) : frame->status != 0)
        return false;
    if (type == TCP_SEND && !counts_pieces(frame))
        return false;
    return ((frame->flags & TCP_FLAG_IMMEDIATE) != 0 || frame->immediate == 0) &&
           (rules[type].seq || frame->seq == 0) && (rules[type].rkey || frame->rkey == 0) &&
           (rules[type].addr || frame->addr == 0);
}

uint64_t slu_soft_frame_payload(const struct tcp_frame *frame)
{
    if ((frame->flags & TCP_FLAG_LENT) != 0)
        return (uint64_t)frame->rkey * sizeof(struct sluice_sge);
    return frame->type == TCP_READ_REQUEST ? 0 : frame->length;
}
