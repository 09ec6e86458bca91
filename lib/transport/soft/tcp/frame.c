/* SPDX-License-Identifier: MIT */
/* Encodes and decodes headers of frames. A header is accepted whole or not at all. */
#include "transport/soft/tcp/frame.h"

#include "transport/soft/core/soft.h"

static void put32(uint8_t *bytes, uint32_t value)
{
    bytes[0] = (uint8_t)(value >> 24);
    bytes[1] = (uint8_t)(value >> 16);
    bytes[2] = (uint8_t)(value >> 8);
    bytes[3] = (uint8_t)value;
}

static uint32_t get32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void put64(uint8_t *bytes, uint64_t value)
{
    put32(bytes, (uint32_t)(value >> 32));
    put32(bytes + 4, (uint32_t)value);
}

static uint64_t get64(const uint8_t *bytes)
{
    return (uint64_t)get32(bytes) << 32 | get32(bytes + 4);
}

void slu_soft_frame_encode(const struct tcp_frame *frame, uint8_t bytes[TCP_FRAME_BYTES])
{
    bytes[0] = frame->type;
    bytes[1] = frame->flags;
    bytes[2] = frame->status;
    bytes[3] = 0;
    put32(bytes + 4, frame->immediate);
    put32(bytes + 8, frame->seq);
    put32(bytes + 12, frame->ack);
    put32(bytes + 16, frame->credit);
    put32(bytes + 20, frame->rkey);
    put64(bytes + 24, frame->addr);
    put64(bytes + 32, frame->length);
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
    frame->type = bytes[0];
    frame->flags = bytes[1];
    frame->status = bytes[2];
    frame->immediate = get32(bytes + 4);
    frame->seq = get32(bytes + 8);
    frame->ack = get32(bytes + 12);
    frame->credit = get32(bytes + 16);
    frame->rkey = get32(bytes + 20);
    frame->addr = get64(bytes + 24);
    frame->length = get64(bytes + 32);
    if (frame->type < TCP_SEND || frame->type >= TCP_TYPES || bytes[3] != 0)
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
