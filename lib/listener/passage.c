/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "listener/passage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"

#define HEAD_BYTES SLU_PASSAGE_HEAD
#define SEALED_HEAD (HEAD_BYTES + SLU_SEAL_BYTES)
#define LABEL_BYTES 16
/* A step up to this size fits the default send buffer of any socket. */
#define SMALL_STEP 4096

/* Texts of errors name the other side first, and are in the past tense. */
int slu_passage_fail_late(const struct slu_passage *passage)
{
    char time[SLU_DURATION_BYTES];

    if (passage->time == 0)
        return slu_fail(ETIMEDOUT, "%s did not go on before the deadline", passage->who);
    return slu_fail(ETIMEDOUT, "%s did not go on within %s", passage->who,
                    slu_say_duration(passage->time, time));
}

/*
 * The other side causes an end or a reset; any other error comes from this socket or this system.
 */
static int fail_gone(const struct slu_passage *passage, int error)
{
    if (error == ECONNRESET || error == EPIPE)
        return slu_fail(ECONNRESET, "%s left before all was connected", passage->who);
    return slu_fail(ECONNRESET, "the connection with %s failed before all was connected: %s",
                    passage->who, strerrordesc_np(error));
}

/* Waits for events of the socket, at most until the deadline; fails if that has passed. */
static int await(const struct slu_passage *passage, short events)
{
    struct pollfd fds[2] = {{.fd = passage->fd, .events = events}};

    if (slu_is_late(passage->until))
        return slu_passage_fail_late(passage);
    (void)!slu_duty_poll(passage->duty, fds, 1, passage->until);
    return 0;
}

/* Waits for room in the socket. A step that must not wait finds an idle one, which has room. */
static int await_room(const struct slu_passage *passage, int error, uint32_t *pauses)
{
    bool waits = passage->until > 0;

    if (waits && error == EAGAIN)
        return await(passage, POLLOUT);
    if (waits)
        *pauses = 0;
    if ((waits && slu_is_late(passage->until)) || !slu_stream_pause(error, pauses))
        return slu_passage_fail_late(passage);
    return 0;
}

static int send_all(struct slu_passage *passage, const uint8_t *bytes, size_t count)
{
    uint32_t pauses = 0;
    int error = 0;

    while (count > 0 && error == 0) {
        ssize_t sent = send(passage->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent >= 0) {
            bytes += sent;
            count -= (size_t)sent;
        } else if (errno == EAGAIN || slu_is_shortage(errno)) {
            error = await_room(passage, errno, &pauses);
        } else if (errno != EINTR) {
            error = fail_gone(passage, errno);
        }
    }
    return error;
}

static int hear_all(struct slu_passage *passage, uint8_t *bytes, size_t count)
{
    int error = 0;

    while (count > 0 && error == 0) {
        error = slu_stream_receive(passage->fd, &bytes, &count);
        if (error < 0)
            return fail_gone(passage, -error);
        if (count > 0)
            error = await(passage, POLLIN);
    }
    return error;
}

/* Makes the label of a seal. Each side has two of its own for each step: for head and for bytes. */
static const char *make_label(char label[LABEL_BYTES], bool dialer, uint32_t step, char part)
{
    snprintf(label, LABEL_BYTES, "step %c %u %c", dialer ? 'd' : 'a', step % 1000, part);
    return label;
}

static int send_step(struct slu_passage *passage, uint32_t error, const void *bytes, uint32_t count)
{
    uint8_t *sealed = malloc(SEALED_HEAD + count + SLU_SEAL_BYTES);
    uint8_t head[HEAD_BYTES];
    char label[LABEL_BYTES];
    int result;

    if (sealed == NULL)
        return slu_fail(ENOMEM, "no memory to connect");
    slu_put(slu_put(head, error, 4), count, 4);
    slu_session_seal(&passage->session, make_label(label, passage->dialed, passage->sent, 'h'),
                     head, sizeof head, sealed);
    slu_session_seal(&passage->session, make_label(label, passage->dialed, passage->sent, 'b'),
                     bytes, count, sealed + SEALED_HEAD);
    passage->sent++;
    result = send_all(passage, sealed, SEALED_HEAD + count + SLU_SEAL_BYTES);
    /* No step can be understood that follows a part of one. */
    if (result < 0)
        (void)!shutdown(passage->fd, SHUT_WR);
    free(sealed);
    return result;
}

int slu_passage_send(struct slu_passage *passage, const void *bytes, uint32_t count)
{
    return send_step(passage, 0, bytes, count);
}

/*
 * Replaces the name of the other side at the start of a text by "we": the other side will read it.
 */
static void turn(const struct slu_passage *passage, const char *words,
                 char turned[SLU_PASSAGE_TEXT])
{
    size_t length = strlen(passage->who);
    bool names = length > 0 && strncmp(words, passage->who, length) == 0;

    snprintf(turned, SLU_PASSAGE_TEXT, "%s%.316s", names ? "we" : "", words + (names ? length : 0));
}

/* Reads and drops what has arrived: closing a socket that has bytes resets its connection. */
static void drain(const struct slu_passage *passage)
{
    uint8_t bytes[1024];

    for (int i = 0; i < 32; i++)
        if (recv(passage->fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0)
            return;
}

void slu_passage_fail(struct slu_passage *passage, int error)
{
    struct slu_text text;
    char words[SLU_PASSAGE_TEXT];
    int64_t until = passage->until;

    slu_text_save(&text);
    turn(passage, text.bytes, words);
    /* The step fits an idle socket. If it does not, the text is lost: do not wait for room. */
    passage->until = 0;
    (void)send_step(passage, (uint32_t)-error, words, (uint32_t)strlen(words));
    passage->until = until;
    drain(passage);
    slu_text_restore(&text);
}

void slu_passage_clean(char text[SLU_PASSAGE_TEXT], const uint8_t *bytes, uint32_t count)
{
    uint32_t i;

    for (i = 0; i < count && i < SLU_PASSAGE_TEXT - 1; i++)
        text[i] = (char)(bytes[i] >= 0x20 && bytes[i] != 0x7f ? bytes[i] : '?');
    text[i] = '\0';
}

static int hear_part(struct slu_passage *passage, char part, uint8_t *sealed, uint32_t count,
                     void *bytes)
{
    char label[LABEL_BYTES];
    int error = hear_all(passage, sealed, count + SLU_SEAL_BYTES);

    if (error == 0 &&
        !slu_session_open(&passage->session,
                          make_label(label, !passage->dialed, passage->received, part), sealed,
                          count, bytes))
        error = slu_fail(EPROTO, "%s said what is no step of it, or it was changed on its way",
                         passage->who);
    return error;
}

static int hear_error(struct slu_passage *passage, uint32_t count)
{
    uint8_t sealed[SLU_PASSAGE_TEXT + SLU_SEAL_BYTES], bytes[SLU_PASSAGE_TEXT];
    char text[SLU_PASSAGE_TEXT];
    int error = hear_part(passage, 'b', sealed, count, bytes);

    if (error < 0)
        return error;
    slu_passage_clean(text, bytes, count);
    return slu_fail(ECONNABORTED, "%s could not connect: %.220s", passage->who, text);
}

int slu_passage_receive(struct slu_passage *passage, void *bytes, uint32_t count)
{
    uint8_t sealed_head[SEALED_HEAD], head[HEAD_BYTES], *sealed;
    uint64_t status, told;
    int error;

    error = hear_part(passage, 'h', sealed_head, HEAD_BYTES, head);
    if (error < 0)
        return error;
    slu_get(slu_get(head, &status, 4), &told, 4);
    if (status != 0 && told < SLU_PASSAGE_TEXT)
        return hear_error(passage, (uint32_t)told);
    if (status != 0 || told != count)
        return slu_fail(EPROTO, "%s said %llu bytes in place of %u", passage->who,
                        (unsigned long long)told, count);
    sealed = malloc(count + SLU_SEAL_BYTES);
    if (sealed == NULL)
        return slu_fail(ENOMEM, "no memory to connect");
    error = hear_part(passage, 'b', sealed, count, bytes);
    free(sealed);
    passage->received++;
    return error;
}

void slu_passage_make_room(const struct slu_passage *passage, uint32_t count)
{
    int bytes = (int)(2 * SLU_PASSAGE_STEP(count));

    if (bytes > SMALL_STEP)
        setsockopt(passage->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

void slu_passage_await(const struct slu_passage *passage, uint32_t count)
{
    int bytes = (int)SLU_PASSAGE_STEP(count);

    setsockopt(passage->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

bool slu_passage_has_step(const struct slu_passage *passage, uint32_t count)
{
    struct pollfd pollfd = {.fd = passage->fd, .events = POLLIN | POLLRDHUP};
    uint8_t bytes[SLU_PASSAGE_STEP(SLUICE_MAX_CONNECT_CHANNELS * SLUICE_ENDPOINT_BYTES)];
    size_t whole = SLU_PASSAGE_STEP(count);

    if (poll(&pollfd, 1, 0) <= 0)
        return false;
    /* The connection may end after a part of a step. */
    if ((pollfd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
        return true;
    return recv(passage->fd, bytes, whole, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)whole;
}

bool slu_passage_await_news(const struct slu_passage *passage, int64_t timeout)
{
    struct pollfd fds[2] = {{.fd = passage->fd, .events = POLLIN}};

    return slu_duty_poll(passage->duty, fds, 1, slu_earlier(passage->until, slu_after(timeout))) >
           0;
}

bool slu_passage_has_news(const struct slu_passage *passage)
{
    struct pollfd pollfd = {.fd = passage->fd, .events = POLLIN};

    return poll(&pollfd, 1, 0) > 0;
}
