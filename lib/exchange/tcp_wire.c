/* SPDX-License-Identifier: MIT */
/* What goes over the wire: decoding believes nothing, and reads only what is there. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "exchange/tcp.h"

static const uint8_t magic[8] = {'s', 'l', 'u', 'i', 'c', 'e', 0x0a, 0xe5};

void slu_tcp_hello_encode(const struct tcp_hello *hello, uint8_t bytes[TCP_HELLO_BYTES])
{
    uint8_t *at = bytes + sizeof magic;

    memset(bytes, 0, TCP_HELLO_BYTES);
    memcpy(bytes, magic, sizeof magic);
    at = slu_put(at, hello->version, 2);
    at = slu_put(at, hello->role, 1);
    at = slu_put(at, hello->secret, 1);
    at = slu_put(at, hello->refusal, 1);
    at = slu_put(at, 0, 3);
    at = slu_put(at, hello->ranks, 4);
    at = slu_put(at, hello->rank, 4);
    memcpy(at, hello->nonce, TCP_NONCE_BYTES);
    memcpy(at + TCP_NONCE_BYTES, hello->job, TCP_JOB_BYTES);
}

bool slu_tcp_hello_possible(const uint8_t *bytes, size_t count)
{
    return memcmp(bytes, magic, count < sizeof magic ? count : sizeof magic) == 0;
}

uint16_t slu_tcp_hello_version(const uint8_t *bytes)
{
    uint64_t version;

    slu_get(bytes + sizeof magic, &version, 2);
    return (uint16_t)version;
}

static bool all_zero(const uint8_t *bytes, size_t count)
{
    uint8_t any = 0;

    for (size_t i = 0; i < count; i++)
        any |= bytes[i];
    return any == 0;
}

int slu_tcp_hello_decode(const uint8_t bytes[TCP_HELLO_BYTES], struct tcp_hello *hello)
{
    const uint8_t *at = bytes + sizeof magic;
    uint64_t version, role, secret, refusal, zero, ranks, rank;
    size_t length;

    at = slu_get(at, &version, 2);
    at = slu_get(at, &role, 1);
    at = slu_get(at, &secret, 1);
    at = slu_get(at, &refusal, 1);
    at = slu_get(at, &zero, 3);
    at = slu_get(at, &ranks, 4);
    at = slu_get(at, &rank, 4);
    if (!slu_tcp_hello_possible(bytes, TCP_HELLO_BYTES) || version != TCP_VERSION)
        return -EPROTO;
    if (role < TCP_ROLE_RANK || role > TCP_ROLE_ROOT || secret > TCP_MUNGE ||
        refusal > TCP_REFUSED_SECRET || zero != 0)
        return -EPROTO;
    hello->version = (uint16_t)version;
    hello->role = (uint8_t)role;
    hello->secret = (uint8_t)secret;
    hello->refusal = (uint8_t)refusal;
    hello->ranks = (uint32_t)ranks;
    hello->rank = (uint32_t)rank;
    memcpy(hello->nonce, at, TCP_NONCE_BYTES);
    memcpy(hello->job, at + TCP_NONCE_BYTES, TCP_JOB_BYTES);
    length = strnlen(hello->job, TCP_JOB_BYTES);
    at += TCP_NONCE_BYTES + length;
    return length < TCP_JOB_BYTES && all_zero(at, (size_t)(bytes + TCP_HELLO_BYTES - at)) ? 0
                                                                                          : -EPROTO;
}

void slu_tcp_frame_encode(const struct tcp_frame *frame, uint8_t bytes[TCP_FRAME_BYTES])
{
    uint8_t *at = slu_put(bytes, frame->type, 1);

    at = slu_put(at, 0, 7);
    at = slu_put(at, frame->sequence, 8);
    slu_put(at, frame->bytes, 8);
}

int slu_tcp_frame_decode(const uint8_t bytes[TCP_FRAME_BYTES], struct tcp_frame *frame)
{
    uint64_t type, zero;
    const uint8_t *at = slu_get(bytes, &type, 1);

    at = slu_get(at, &zero, 7);
    at = slu_get(at, &frame->sequence, 8);
    slu_get(at, &frame->bytes, 8);
    if (type < TCP_STARTED || type > TCP_NO_MEMORY || zero != 0)
        return -EPROTO;
    frame->type = (uint8_t)type;
    return 0;
}

const char *slu_tcp_type_name(uint8_t type)
{
    static const char *const names[] = {
        [TCP_STARTED] = "start",       [TCP_ALLGATHER] = "allgather", [TCP_ALLTOALL] = "alltoall",
        [TCP_BARRIER] = "barrier",     [TCP_GAVE_UP] = "give up",     [TCP_VERDICT] = "verdict",
        [TCP_NO_MEMORY] = "no memory",
    };

    return type < sizeof names / sizeof names[0] && names[type] != NULL ? names[type] : "nothing";
}

/* errno values are not the same everywhere: their place in this list is what is sent. */
static const int wire_errors[] = {EPROTO, ETIMEDOUT, ECONNRESET, EEXIST, EACCES, ENOMEM, EMFILE};
#define WIRE_ERRORS (sizeof wire_errors / sizeof wire_errors[0])

static uint32_t encode_error(int error)
{
    for (uint32_t i = 0; i < WIRE_ERRORS; i++)
        if (wire_errors[i] == -error)
            return i;
    return 0;
}

uint8_t *slu_tcp_verdict_make(int error, uint64_t sequence, const bool *missing, uint32_t ranks,
                              size_t *bytes)
{
    const char *text = sluice_last_error();
    size_t length = strnlen(text, TCP_TEXT_MAX);
    struct tcp_frame frame = {.type = TCP_VERDICT, .sequence = sequence};
    uint32_t count = 0;
    uint8_t *whole, *at;

    for (uint32_t i = 0; i < ranks; i++)
        count += missing[i];
    frame.bytes = TCP_VERDICT_HEAD + length + (size_t)4 * count;
    *bytes = TCP_FRAME_BYTES + (size_t)frame.bytes;
    whole = malloc(*bytes);
    if (whole == NULL)
        return NULL;
    slu_tcp_frame_encode(&frame, whole);
    at = slu_put(whole + TCP_FRAME_BYTES, encode_error(error), 4);
    at = slu_put(at, length, 4);
    at = slu_put(at, count, 4);
    memcpy(at, text, length);
    at += length;
    for (uint32_t i = 0; i < ranks; i++)
        if (missing[i])
            at = slu_put(at, i, 4);
    return whole;
}

bool slu_tcp_verdict_possible(uint64_t bytes, uint32_t ranks)
{
    return bytes >= TCP_VERDICT_HEAD &&
           bytes <= TCP_VERDICT_HEAD + TCP_TEXT_MAX + UINT64_C(4) * ranks;
}

int slu_tcp_verdict_read(const uint8_t *bytes, size_t count, bool *missing, uint32_t ranks)
{
    uint64_t error, length, named, rank;
    const uint8_t *at = slu_get(bytes, &error, 4);
    char text[TCP_TEXT_MAX + 1];

    at = slu_get(at, &length, 4);
    at = slu_get(at, &named, 4);
    if (error >= WIRE_ERRORS || length > TCP_TEXT_MAX || named > ranks ||
        count != TCP_VERDICT_HEAD + length + 4 * named)
        return slu_fail(EPROTO, "rank 0 sent a malformed verdict");
    for (size_t i = 0; i < length; i++)
        text[i] = at[i] >= ' ' && at[i] < 0x7f ? (char)at[i] : '?';
    text[length] = '\0';
    at += length;
    for (uint64_t i = 0; i < named; i++) {
        at = slu_get(at, &rank, 4);
        if (rank < ranks)
            missing[rank] = true;
    }
    return slu_fail(wire_errors[error], "%s", text);
}
