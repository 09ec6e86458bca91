/* SPDX-License-Identifier: MIT */
/*
 * The wire format of control messages. Guarantee: a message that was read has a known type and a
 * length of that type, and each field is in its range. No byte after the message is read.
 */
#include "config.h"

#include "agent/message.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/macros.h"
#include "endpoint/versions.h"

#define MAGIC 0x534c4147u /* "SLAG" */
/* Both in the 2 bytes behind the magic: see slu_versions_join(). */
#define VERSION (1 + SLU_VERSIONS_NEXT)
#define READABLE 1
#define OLDEST 1
#define REMOTE_BYTES 24
#define HELLO_BYTES (4 * 4 + 4 * 8 + 4 + SLUICE_ENDPOINT_BYTES)

_Static_assert(HELLO_BYTES <= SLU_AGENT_MOST_BODY, "each message but a TEXT has room");

/* Reads fields in order; once wrong is set it stays set. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool wrong;
    bool later; /* of a later version: what has no meaning here is ignored */
};

static inline uint64_t take(struct reader *reader, int bytes)
{
    uint64_t value = 0;

    if (reader->end - reader->at < bytes)
        reader->wrong = true;
    else
        reader->at = slu_get(reader->at, &value, bytes);
    return value;
}

/* Takes a number that must be in a range. */
static inline uint64_t take_in(struct reader *reader, int bytes, uint64_t least, uint64_t most)
{
    uint64_t value = take(reader, bytes);

    if (value < least || value > most)
        reader->wrong = true;
    return value;
}

/* Takes bytes that must be 0, for this version knows no meaning of them. */
static inline void take_nothing(struct reader *reader, int bytes)
{
    if (take(reader, bytes) != 0 && !reader->later)
        reader->wrong = true;
}

static uint32_t take_access(struct reader *reader, bool some)
{
    uint32_t access = (uint32_t)take(reader, 4);

    if (reader->later)
        access &= SLU_AGENT_ACCESS;
    if ((access & ~SLU_AGENT_ACCESS) != 0 || (some && access == 0))
        reader->wrong = true;
    return access;
}

static void take_remote(struct reader *reader, struct sluice_remote_mr *remote, bool some)
{
    *remote = (struct sluice_remote_mr){0};
    remote->addr = take(reader, 8);
    remote->length = take(reader, 8);
    remote->rkey = (uint32_t)take(reader, 4);
    take_nothing(reader, 4);
    if (some && (remote->length == 0 || remote->addr + remote->length - 1 < remote->addr))
        reader->wrong = true;
}

static void take_endpoint(struct reader *reader, struct sluice_endpoint *endpoint)
{
    if (reader->end - reader->at < SLUICE_ENDPOINT_BYTES) {
        reader->wrong = true;
        return;
    }
    memcpy(endpoint->bytes, reader->at, SLUICE_ENDPOINT_BYTES);
    reader->at += SLUICE_ENDPOINT_BYTES;
}

static void read_hello(struct reader *reader, struct slu_agent_message *message)
{
    struct slu_agent_hello *hello = &message->hello;

    hello->eager = (uint32_t)take_in(reader, 4, 64, 65536);
    hello->window = (uint32_t)take_in(reader, 4, 4, 256);
    hello->waiting = (uint32_t)take_in(reader, 4, 1, 65536);
    hello->access = take_access(reader, false);
    hello->waiting_bytes = take_in(reader, 8, hello->eager, UINT64_C(1) << 40);
    hello->max_message = take_in(reader, 8, 1, SLU_AGENT_MOST_BYTES);
    hello->quota = take_in(reader, 8, 0, SLU_AGENT_MOST_BYTES);
    hello->max_lease = (int64_t)take_in(reader, 8, 1, INT64_MAX);
    message->generation = (uint32_t)take_in(reader, 4, 1, 1);
    take_endpoint(reader, &message->endpoint);
}

static void read_alloc(struct reader *reader, struct slu_agent_message *message)
{
    message->bytes = take_in(reader, 8, 1, SLU_AGENT_MOST_BYTES);
    message->lease = (int64_t)take_in(reader, 8, 0, INT64_MAX);
    message->access = take_access(reader, true);
}

static void read_region(struct reader *reader, struct slu_agent_message *message)
{
    message->region = take_in(reader, 8, 1, UINT64_MAX);
}

static void read_renew(struct reader *reader, struct slu_agent_message *message)
{
    read_region(reader, message);
    message->lease = (int64_t)take_in(reader, 8, 0, INT64_MAX);
}

static void read_renewed(struct reader *reader, struct slu_agent_message *message)
{
    message->lease = (int64_t)take_in(reader, 8, 1, INT64_MAX);
}

/* The body of ALLOCATED and HAND. */
static void read_grant(struct reader *reader, struct slu_agent_message *message)
{
    take_remote(reader, &message->remote, true);
    read_region(reader, message);
    message->lease = (int64_t)take_in(reader, 8, 1, INT64_MAX);
    message->access = take_access(reader, true);
}

static void read_announce(struct reader *reader, struct slu_agent_message *message)
{
    take_remote(reader, &message->remote, true);
    if (message->remote.length > SLU_AGENT_MOST_BYTES)
        reader->wrong = true;
}

static void read_done(struct reader *reader, struct slu_agent_message *message)
{
    size_t count;

    message->code = (uint32_t)take_in(reader, 4, SLU_AGENT_OK, SLU_AGENT_CODES - 1);
    count = (size_t)(reader->end - reader->at);
    if (reader->wrong || count > SLU_AGENT_WORDS)
        return;
    for (size_t i = 0; i < count; i++)
        message->words[i] =
            (char)(reader->at[i] >= ' ' && reader->at[i] < 127 ? reader->at[i] : '?');
    message->words[count] = 0;
    reader->at += count;
}

static void read_reset(struct reader *reader, struct slu_agent_message *message)
{
    message->generation = (uint32_t)take_in(reader, 4, 2, UINT32_MAX);
    take_endpoint(reader, &message->endpoint);
    take_remote(reader, &message->remote, false);
}

static void read_ready(struct reader *reader, struct slu_agent_message *message)
{
    message->generation = (uint32_t)take_in(reader, 4, 1, UINT32_MAX);
}

static void read_nothing(struct reader *reader, struct slu_agent_message *message)
{
    (void)reader;
    (void)message;
}

static void write_hello(uint8_t *at, const struct slu_agent_message *message)
{
    const struct slu_agent_hello *hello = &message->hello;

    at = slu_put(at, hello->eager, 4);
    at = slu_put(at, hello->window, 4);
    at = slu_put(at, hello->waiting, 4);
    at = slu_put(at, hello->access, 4);
    at = slu_put(at, hello->waiting_bytes, 8);
    at = slu_put(at, hello->max_message, 8);
    at = slu_put(at, hello->quota, 8);
    at = slu_put(at, (uint64_t)hello->max_lease, 8);
    at = slu_put(at, message->generation, 4);
    memcpy(at, message->endpoint.bytes, SLUICE_ENDPOINT_BYTES);
}

static void write_alloc(uint8_t *at, const struct slu_agent_message *message)
{
    at = slu_put(at, message->bytes, 8);
    at = slu_put(at, (uint64_t)message->lease, 8);
    slu_put(at, message->access, 4);
}

static void write_region(uint8_t *at, const struct slu_agent_message *message)
{
    slu_put(at, message->region, 8);
}

static void write_renew(uint8_t *at, const struct slu_agent_message *message)
{
    at = slu_put(at, message->region, 8);
    slu_put(at, (uint64_t)message->lease, 8);
}

static void write_renewed(uint8_t *at, const struct slu_agent_message *message)
{
    slu_put(at, (uint64_t)message->lease, 8);
}

static uint8_t *put_remote(uint8_t *at, const struct sluice_remote_mr *remote)
{
    at = slu_put(at, remote->addr, 8);
    at = slu_put(at, remote->length, 8);
    at = slu_put(at, remote->rkey, 4);
    return slu_put(at, 0, 4);
}

static void write_grant(uint8_t *at, const struct slu_agent_message *message)
{
    at = put_remote(at, &message->remote);
    at = slu_put(at, message->region, 8);
    at = slu_put(at, (uint64_t)message->lease, 8);
    slu_put(at, message->access, 4);
}

static void write_announce(uint8_t *at, const struct slu_agent_message *message)
{
    put_remote(at, &message->remote);
}

static void write_done(uint8_t *at, const struct slu_agent_message *message)
{
    at = slu_put(at, message->code, 4);
    memcpy(at, message->words, strnlen(message->words, SLU_AGENT_WORDS));
}

static void write_reset(uint8_t *at, const struct slu_agent_message *message)
{
    at = slu_put(at, message->generation, 4);
    memcpy(at, message->endpoint.bytes, SLUICE_ENDPOINT_BYTES);
    put_remote(at + SLUICE_ENDPOINT_BYTES, &message->remote);
}

static void write_ready(uint8_t *at, const struct slu_agent_message *message)
{
    slu_put(at, message->generation, 4);
}

static void write_nothing(uint8_t *at, const struct slu_agent_message *message)
{
    (void)at;
    (void)message;
}

/* Each type: its lengths, whether it has an id, and how its body is read and written. */
static const struct form {
    uint32_t least, most;
    bool has_id;
    void (*read)(struct reader *reader, struct slu_agent_message *message);
    void (*write)(uint8_t *at, const struct slu_agent_message *message);
} forms[SLU_AGENT_TYPES] = {
    [SLU_AGENT_HELLO] = {HELLO_BYTES, HELLO_BYTES, false, read_hello, write_hello},
    [SLU_AGENT_ALLOC] = {20, 20, true, read_alloc, write_alloc},
    [SLU_AGENT_RELEASE] = {8, 8, true, read_region, write_region},
    [SLU_AGENT_HAND] = {REMOTE_BYTES + 20, REMOTE_BYTES + 20, true, read_grant, write_grant},
    [SLU_AGENT_RETURN] = {8, 8, true, read_region, write_region},
    [SLU_AGENT_ANNOUNCE] = {REMOTE_BYTES, REMOTE_BYTES, true, read_announce, write_announce},
    [SLU_AGENT_ALLOCATED] = {REMOTE_BYTES + 20, REMOTE_BYTES + 20, true, read_grant, write_grant},
    [SLU_AGENT_DONE] = {4, 4 + SLU_AGENT_WORDS, true, read_done, write_done},
    [SLU_AGENT_TEXT] = {0, UINT32_MAX, false, read_nothing, write_nothing},
    [SLU_AGENT_WITHDRAW] = {0, 0, true, read_nothing, write_nothing},
    [SLU_AGENT_REVOKE] = {8, 8, false, read_region, write_region},
    [SLU_AGENT_CREDIT] = {0, 0, false, read_nothing, write_nothing},
    [SLU_AGENT_RESET] = {4 + SLUICE_ENDPOINT_BYTES + REMOTE_BYTES,
                         4 + SLUICE_ENDPOINT_BYTES + REMOTE_BYTES, false, read_reset, write_reset},
    [SLU_AGENT_READY] = {4, 4, false, read_ready, write_ready},
    [SLU_AGENT_BYE] = {0, 0, false, read_nothing, write_nothing},
    [SLU_AGENT_RENEW] = {16, 16, true, read_renew, write_renew},
    [SLU_AGENT_RENEWED] = {8, 8, true, read_renewed, write_renewed},
};

/* Returns 0; -EPROTO if this is no message; -EPROTONOSUPPORT if its versions do not fit. */
static int read_versions(struct reader *reader, struct slu_agent_message *message)
{
    static const struct slu_versions known = {NULL, VERSION, OLDEST};
    uint64_t magic = take(reader, 4);
    uint32_t joined = (uint32_t)take(reader, 2);

    if (reader->wrong || magic != MAGIC)
        return -EPROTO;
    if (SLU_LIKELY(joined == slu_versions_join(VERSION, READABLE, 8)))
        return 0;
    slu_versions_split(joined, 8, &message->written, &message->readable);
    reader->later = message->written > VERSION;
    return slu_versions_fit(&known, message->written, message->readable) ? 0 : -EPROTONOSUPPORT;
}

const char *slu_agent_message_versions(const struct slu_agent_message *message,
                                       char text[SLU_AGENT_VERSIONS_TEXT])
{
    snprintf(text, SLU_AGENT_VERSIONS_TEXT,
             "its agent speaks version %u, readable from version %u on; ours speaks version %d, "
             "and reads from %d on",
             message->written, message->readable, VERSION, OLDEST);
    return text;
}

static void read_head(struct reader *reader, struct slu_agent_message *message)
{
    message->type = (uint32_t)take_in(reader, 2, 1, SLU_AGENT_TYPES - 1);
    message->length = (uint32_t)take(reader, 4);
    message->taken = (uint32_t)take(reader, 4);
    message->id = take(reader, 8);
    message->received = (uint32_t)take(reader, 4);
    take_nothing(reader, 4);
    message->received_bytes = take(reader, 8);
}

int slu_agent_message_read(const uint8_t *bytes, size_t count, uint32_t most,
                           struct slu_agent_message *message)
{
    struct reader reader = {.at = bytes, .end = bytes + count};
    const struct form *form;
    int error;

    /* The long fields are last, and only some types have them. */
    memset(message, 0, offsetof(struct slu_agent_message, words) + 1);
    error = read_versions(&reader, message);
    if (error < 0)
        return error;
    read_head(&reader, message);
    if (reader.wrong || message->length != (size_t)(reader.end - reader.at))
        return -EPROTO;
    form = &forms[message->type];
    if (message->length > (message->type == SLU_AGENT_TEXT ? most : form->most) &&
        (message->type == SLU_AGENT_TEXT || !reader.later))
        return -EMSGSIZE;
    if (message->length < form->least || (message->id != 0) != form->has_id)
        return -EPROTO;
    message->body = reader.at;
    form->read(&reader, message);
    if (message->type != SLU_AGENT_TEXT && reader.at != reader.end && !reader.later)
        return -EPROTO;
    return reader.wrong ? -EPROTO : 0;
}

uint32_t slu_agent_message_write(const struct slu_agent_message *message, uint8_t *bytes)
{
    const struct form *form = &forms[message->type];
    uint32_t length = message->type == SLU_AGENT_TEXT ? message->length : form->most;
    uint8_t *at = bytes;

    if (message->type == SLU_AGENT_DONE)
        length = 4 + (uint32_t)strnlen(message->words, SLU_AGENT_WORDS);
    at = slu_put(at, MAGIC, 4);
    at = slu_put(at, slu_versions_join(VERSION, READABLE, 8), 2);
    at = slu_put(at, message->type, 2);
    at = slu_put(at, length, 4);
    at = slu_put(at, message->taken, 4);
    at = slu_put(at, message->id, 8);
    at = slu_put(at, message->received, 4);
    at = slu_put(at, 0, 4);
    at = slu_put(at, message->received_bytes, 8);
    form->write(at, message);
    return SLU_AGENT_HEAD + length;
}
