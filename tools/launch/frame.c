/* SPDX-License-Identifier: MIT */
#include "frame.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Flags of a START. */
#define FLAG_BIND 1U
#define FLAG_PLAIN 2U
#define FLAG_SECRET 4U

static void write_number(char *to, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)(number >> (24 - 8 * i));
}

static uint32_t read_number(const char *from)
{
    uint32_t number = 0;

    for (int i = 0; i < 4; i++)
        number = number << 8 | (uint8_t)from[i];
    return number;
}

static void add_number(struct buffer *out, uint32_t number)
{
    write_number(buffer_extend(out, 4), number);
}

static void add_text(struct buffer *out, const char *text)
{
    text = text != NULL ? text : "";
    buffer_add(out, text, strlen(text) + 1);
}

static void add_list(struct buffer *out, const char **list)
{
    uint32_t count = 0;

    while (list[count] != NULL)
        count++;
    add_number(out, count);
    for (uint32_t i = 0; i < count; i++)
        add_text(out, list[i]);
}

void frame_add(struct buffer *out, enum frame_type type, const void *body, size_t bytes)
{
    char *head = buffer_extend(out, FRAME_HEAD);

    write_number(head, (uint32_t)bytes);
    memset(head + 4, 0, FRAME_HEAD - 4);
    head[4] = (char)type;
    buffer_add(out, body, bytes);
}

/* Adds a frame whose body is a buffer, and releases that. */
static void add_body(struct buffer *out, enum frame_type type, struct buffer *body)
{
    frame_add(out, type, buffer_front(body), buffer_count(body));
    buffer_free(body);
}

void frame_add_hello(struct buffer *out, const struct frame_hello *hello)
{
    struct buffer body = {0};

    add_number(&body, hello->written == hello->readable ? hello->readable
                                                        : hello->written << 16 | hello->readable);
    add_number(&body, hello->port);
    add_body(out, FRAME_HELLO, &body);
}

void frame_add_signal(struct buffer *out, uint32_t number)
{
    char body[4];

    write_number(body, number);
    frame_add(out, FRAME_SIGNAL, body, sizeof body);
}

void frame_add_close(struct buffer *out, uint32_t stream)
{
    char body[4];

    write_number(body, stream);
    frame_add(out, FRAME_CLOSE, body, sizeof body);
}

void frame_add_output(struct buffer *out, uint32_t stream, const char *bytes, size_t count)
{
    char *head = buffer_extend(out, FRAME_HEAD + 4);

    memset(head, 0, FRAME_HEAD);
    write_number(head, (uint32_t)(count + 4));
    head[4] = (char)FRAME_OUTPUT;
    write_number(head + FRAME_HEAD, stream);
    buffer_add(out, bytes, count);
}

void frame_add_ended(struct buffer *out, const struct frame_ended *ended)
{
    struct buffer body = {0};

    add_number(&body, ended->rank);
    add_number(&body, ended->killed);
    add_number(&body, ended->status);
    add_body(out, FRAME_ENDED, &body);
}

void frame_add_failed(struct buffer *out, const struct frame_failed *failed)
{
    struct buffer body = {0};

    add_number(&body, failed->code);
    add_number(&body, failed->first);
    add_number(&body, failed->count);
    add_text(&body, failed->text);
    add_body(out, FRAME_FAILED, &body);
}

void frame_add_start(struct buffer *out, const struct job *job)
{
    struct buffer body = {0};

    add_number(&body, job->ranks);
    add_number(&body, job->fan);
    add_number(&body, (job->bind ? FLAG_BIND : 0) | (job->plain ? FLAG_PLAIN : 0) |
                          (job->has_secret ? FLAG_SECRET : 0));
    if (job->has_secret)
        buffer_add(&body, job->secret, sizeof job->secret);
    add_text(&body, job->root);
    add_text(&body, job->name);
    add_text(&body, job->directory);
    add_text(&body, job->ssh);
    add_text(&body, job->path);
    add_list(&body, job->environment);
    add_list(&body, job->command);
    add_number(&body, job->place_count);
    for (uint32_t i = 0; i < job->place_count; i++) {
        add_text(&body, job->places[i].host);
        add_number(&body, job->places[i].first);
        add_number(&body, job->places[i].count);
        add_number(&body, job->places[i].local);
    }
    add_body(out, FRAME_START, &body);
}

int frame_next(const char *bytes, size_t count, struct frame *frame)
{
    uint32_t length;

    if (count < FRAME_HEAD)
        return 0;
    length = read_number(bytes);
    if (length > FRAME_MOST || bytes[4] < 1 || bytes[4] >= FRAME_TYPES || bytes[5] != 0 ||
        bytes[6] != 0 || bytes[7] != 0)
        return -1;
    if (count - FRAME_HEAD < length)
        return 0;
    *frame = (struct frame){(enum frame_type)bytes[4], bytes + FRAME_HEAD, length};
    return 1;
}

/* A body that is read from its front. After the first mistake all further values are empty. */
struct reader {
    const char *at;
    size_t left;
    bool wrong;
};

static struct reader read_body(const struct frame *frame)
{
    return (struct reader){frame->body, frame->bytes, false};
}

static const char *take(struct reader *reader, size_t count)
{
    const char *at = reader->at;

    if (reader->wrong || reader->left < count) {
        reader->wrong = true;
        return NULL;
    }
    reader->at += count;
    reader->left -= count;
    return at;
}

static uint32_t take_number(struct reader *reader)
{
    const char *bytes = take(reader, 4);

    return bytes != NULL ? read_number(bytes) : 0;
}

static bool take_flag(struct reader *reader)
{
    uint32_t number = take_number(reader);

    reader->wrong = reader->wrong || number > 1;
    return number == 1;
}

/* Returns a text of the body, or "". */
static const char *take_text(struct reader *reader)
{
    const char *end = reader->left > 0 ? memchr(reader->at, '\0', reader->left) : NULL;
    const char *text = end != NULL ? take(reader, (size_t)(end - reader->at) + 1) : NULL;

    reader->wrong = reader->wrong || text == NULL;
    return text != NULL ? text : "";
}

static bool is_read(const struct reader *reader)
{
    return !reader->wrong && reader->left == 0;
}

/* Takes a number of things that have at least so many bytes each. */
static uint32_t take_count(struct reader *reader, size_t least)
{
    uint32_t count = take_number(reader);

    if (count > reader->left / least)
        reader->wrong = true;
    return reader->wrong ? 0 : count;
}

static const char **take_list(struct reader *reader)
{
    uint32_t count = take_count(reader, 1);
    const char **list = calloc((size_t)count + 1, sizeof *list);

    if (list == NULL)
        reader->wrong = true;
    for (uint32_t i = 0; i < count && list != NULL; i++)
        list[i] = take_text(reader);
    return list;
}

bool frame_fits(const struct frame_hello *hello)
{
    return hello->readable <= FRAME_VERSION && hello->written >= FRAME_OLDEST;
}

bool frame_read_hello(const struct frame *frame, struct frame_hello *hello)
{
    struct reader reader = read_body(frame);

    uint32_t versions = take_number(&reader);

    hello->readable = versions & UINT16_MAX;
    hello->written = versions >> 16 != 0 ? versions >> 16 : hello->readable;
    hello->port = 0;
    if (reader.wrong || hello->readable == 0 || hello->readable > hello->written)
        return false;
    if (!frame_fits(hello))
        return true;
    hello->port = take_number(&reader);
    return !reader.wrong && (hello->written > FRAME_VERSION || reader.left == 0) &&
           hello->port <= UINT16_MAX;
}

bool frame_read_signal(const struct frame *frame, int *number)
{
    struct reader reader = read_body(frame);

    *number = (int)take_number(&reader);
    return is_read(&reader) &&
           (*number == SIGHUP || *number == SIGINT || *number == SIGKILL || *number == SIGTERM);
}

bool frame_read_close(const struct frame *frame, uint32_t *stream)
{
    struct reader reader = read_body(frame);

    *stream = take_number(&reader);
    return is_read(&reader) && *stream <= 1;
}

bool frame_read_output(const struct frame *frame, uint32_t *stream, const char **bytes,
                       size_t *count)
{
    struct reader reader = read_body(frame);

    *stream = take_number(&reader);
    *bytes = reader.at;
    *count = reader.left;
    return !reader.wrong && *stream <= 1;
}

bool frame_read_ended(const struct frame *frame, struct frame_ended *ended)
{
    struct reader reader = read_body(frame);

    ended->rank = take_number(&reader);
    ended->killed = take_flag(&reader);
    ended->status = take_number(&reader);
    return is_read(&reader) && ended->rank < MOST_RANKS &&
           (ended->killed ? ended->status >= 1 && ended->status <= 64 : ended->status <= 255);
}

bool frame_read_failed(const struct frame *frame, struct frame_failed *failed)
{
    struct reader reader = read_body(frame);

    failed->code = take_number(&reader);
    failed->first = take_number(&reader);
    failed->count = take_number(&reader);
    failed->text = take_text(&reader);
    return is_read(&reader) && failed->code <= 255 && failed->first < MOST_RANKS &&
           failed->count <= MOST_RANKS - failed->first;
}

/* Takes places, each of which begins where the one before it ends. */
static void take_places(struct reader *reader, struct job *job)
{
    job->place_count = take_count(reader, 13);
    job->places = calloc((size_t)job->place_count + 1, sizeof *job->places);
    reader->wrong = reader->wrong || job->places == NULL || job->place_count == 0;
    for (uint32_t i = 0; i < job->place_count && !reader->wrong; i++) {
        struct place *place = &job->places[i];

        place->host = take_text(reader);
        place->first = take_number(reader);
        place->count = take_number(reader);
        place->local = take_number(reader);
        if (place->host[0] == '-' || (i > 0 && place->host[0] == '\0') || place->count == 0 ||
            place->count > job->ranks || place->first > job->ranks - place->count ||
            place->local >= MOST_RANKS ||
            (i > 0 && place->first != place[-1].first + place[-1].count))
            reader->wrong = true;
    }
}

static void take_job(struct reader *reader, struct job *job)
{
    uint32_t flags;
    const char *secret;

    job->ranks = take_number(reader);
    job->fan = take_number(reader);
    flags = take_number(reader);
    job->bind = (flags & FLAG_BIND) != 0;
    job->plain = (flags & FLAG_PLAIN) != 0;
    job->has_secret = (flags & FLAG_SECRET) != 0;
    secret = job->has_secret ? take(reader, SECRET_BYTES) : NULL;
    if (secret != NULL)
        memcpy(job->secret, secret, SECRET_BYTES);
    job->root = take_text(reader);
    job->name = take_text(reader);
    job->directory = take_text(reader);
    job->ssh = take_text(reader);
    job->path = take_text(reader);
    job->environment = take_list(reader);
    job->command = take_list(reader);
    reader->wrong = reader->wrong || job->ranks == 0 || job->ranks > MOST_RANKS || flags > 7;
    take_places(reader, job);
}

static bool is_complete(const struct job *job)
{
    if (job->command[0] == NULL || job->command[0][0] == '\0')
        return false;
    for (uint32_t i = 0; job->environment[i] != NULL; i++)
        if (strchr(job->environment[i], '=') == NULL || job->environment[i][0] == '=')
            return false;
    return true;
}

bool frame_read_start(const struct frame *frame, struct job *job)
{
    struct reader reader = read_body(frame);

    *job = (struct job){.store = malloc(frame->bytes > 0 ? frame->bytes : 1)};
    if (job->store == NULL)
        return false;
    memcpy(job->store, frame->body, frame->bytes);
    reader.at = job->store;
    take_job(&reader, job);
    if (is_read(&reader) && is_complete(job))
        return true;
    job_free(job);
    return false;
}

void job_free(struct job *job)
{
    free(job->environment);
    free(job->command);
    free(job->places);
    free(job->store);
    *job = (struct job){0};
}
