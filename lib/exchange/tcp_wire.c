/* SPDX-License-Identifier: MIT */
/* The wire format. Decoding checks every field, and reads no byte that is not there. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "exchange/tcp.h"

void slu_tcp_hello_encode(const struct tcp_hello *hello, uint8_t bytes[TCP_HELLO_BYTES])
{
    uint8_t *at = slu_put(bytes, slu_versions_join(hello->written, hello->readable, 16), 4);

    at = slu_put(at, hello->ranks, 4);
    at = slu_put(at, hello->rank, 4);
    memcpy(at, hello->job, TCP_JOB_BYTES);
}

int slu_tcp_hello_decode(const uint8_t *bytes, size_t count, struct tcp_hello *hello)
{
    static const struct slu_versions known = {NULL, TCP_VERSION, TCP_OLDEST};
    uint64_t joined, ranks, rank;
    const uint8_t *at;

    *hello = (struct tcp_hello){.ranks = 0};
    if (count < TCP_HELLO_BYTES)
        return -EPROTO;
    at = slu_get(bytes, &joined, 4);
    slu_versions_split((uint32_t)joined, 16, &hello->written, &hello->readable);
    if (!slu_versions_fit(&known, hello->written, hello->readable))
        return -EPROTONOSUPPORT;
    if (count > TCP_HELLO_BYTES && hello->written <= TCP_VERSION)
        return -EPROTO;
    at = slu_get(at, &ranks, 4);
    at = slu_get(at, &rank, 4);
    hello->ranks = (uint32_t)ranks;
    hello->rank = (uint32_t)rank;
    memcpy(hello->job, at, TCP_JOB_BYTES);
    for (size_t i = strnlen(hello->job, TCP_JOB_BYTES - 1); i < TCP_JOB_BYTES; i++)
        if (hello->job[i] != '\0')
            return -EPROTO;
    return 0;
}

void slu_tcp_frame_encode(const struct tcp_frame *frame, uint8_t bytes[TCP_FRAME_BYTES])
{
    uint8_t *at = slu_put(bytes, frame->type, 1);

    at = slu_put(at, frame->port, 2);
    at = slu_put(at, 0, 5);
    at = slu_put(at, frame->sequence, 8);
    slu_put(at, frame->bytes, 8);
}

int slu_tcp_frame_decode(const uint8_t bytes[TCP_FRAME_BYTES], struct tcp_frame *frame)
{
    uint64_t type, port, zero;
    const uint8_t *at = slu_get(bytes, &type, 1);

    at = slu_get(at, &port, 2);
    at = slu_get(at, &zero, 5);
    at = slu_get(at, &frame->sequence, 8);
    slu_get(at, &frame->bytes, 8);
    if (type < TCP_STARTED || type > TCP_DONE || zero != 0)
        return -EPROTO;
    frame->type = (uint8_t)type;
    frame->port = (uint16_t)port;
    return 0;
}

const char *slu_tcp_type_name(uint8_t type)
{
    static const char *const names[] = {
        [TCP_STARTED] = "start",       [TCP_ALLGATHER] = "allgather",
        [TCP_ALLTOALL] = "alltoall",   [TCP_BARRIER] = "barrier",
        [TCP_GAVE_UP] = "give up",     [TCP_VERDICT] = "verdict",
        [TCP_NO_MEMORY] = "no memory", [TCP_RELAY] = "relay",
        [TCP_TAKEN] = "taken",         [TCP_ASK] = "ask",
        [TCP_DONE] = "done",
    };

    return type < sizeof names / sizeof names[0] && names[type] != NULL ? names[type] : "nothing";
}

/* errno values differ between systems, so the place in this list is sent. */
static const int wire_errors[] = {EPROTO, ETIMEDOUT, ECONNRESET, EEXIST, EACCES, ENOMEM, EMFILE};
#define WIRE_ERRORS (sizeof wire_errors / sizeof wire_errors[0])

uint32_t slu_tcp_encode_error(int error)
{
    for (uint32_t i = 0; i < WIRE_ERRORS; i++)
        if (wire_errors[i] == -error)
            return i;
    return 0;
}

int slu_tcp_decode_error(uint32_t code)
{
    return wire_errors[code < WIRE_ERRORS ? code : 0];
}

void slu_tcp_read_text(const uint8_t *bytes, size_t count, char text[TCP_TEXT_MAX + 1])
{
    for (size_t i = 0; i < count; i++)
        text[i] = (char)(bytes[i] >= ' ' && bytes[i] < 0x7f ? bytes[i] : '?');
    text[count] = '\0';
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
    at = slu_put(whole + TCP_FRAME_BYTES, slu_tcp_encode_error(error), 4);
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
    slu_tcp_read_text(at, length, text);
    at += length;
    for (uint64_t i = 0; i < named; i++) {
        at = slu_get(at, &rank, 4);
        if (rank < ranks)
            missing[rank] = true;
    }
    return slu_fail(wire_errors[error], "%s", text[0] != '\0' ? text : "rank 0 does not say why");
}
