/* SPDX-License-Identifier: MIT */
/*
 * The lines of PMI-1: "cmd=...", then words "name=value" after blanks, then a newline. Only the
 * words that the library asked for are used, and no byte behind the line is read.
 */
#include "config.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/environment.h"
#include "exchange/pmi.h"
#include "exchange/tcp.h"

static int fail_late(const struct pmi_talk *talk)
{
    if (strcmp(talk->command, "barrier_in") == 0)
        return slu_fail(ETIMEDOUT, "PMI: not all ranks came before the deadline");
    return slu_fail(ETIMEDOUT, "PMI: the server did not answer cmd=%s before the deadline",
                    talk->command);
}

static int fail_gone(const struct pmi_talk *talk)
{
    return slu_fail(ECONNRESET, "PMI: the server hung up at cmd=%s", talk->command);
}

int slu_pmi_wait(const struct pmi_talk *talk, short events)
{
    struct pollfd pollfd = {.fd = talk->fd, .events = events};
    int wait = slu_milliseconds(talk->until);
    int ready = poll(&pollfd, 1, wait);

    if (ready < 0 && errno != EINTR)
        return slu_fail(errno, "PMI: poll failed: %s", strerrordesc_np(errno));
    return ready == 0 && wait == 0 ? fail_late(talk) : 0;
}

int slu_pmi_send(const struct pmi_talk *talk)
{
    size_t count = strlen(talk->line), sent = 0;

    while (sent < count) {
        ssize_t done = send(talk->fd, talk->line + sent, count - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        int error = 0;

        if (done > 0)
            sent += (size_t)done;
        else if (done < 0 && errno == EAGAIN)
            error = slu_pmi_wait(talk, POLLOUT);
        else if (done == 0 || errno != EINTR)
            error = fail_gone(talk);
        if (error < 0)
            return error;
    }
    return 0;
}

/*
 * Checks the bytes received since have. Returns 1 at the end of the line, 0 before it, or -EPROTO.
 */
static int check_text(const struct pmi_talk *talk, size_t have, size_t count)
{
    for (size_t i = have; i < count; i++) {
        unsigned char byte = (unsigned char)talk->line[i];

        if (byte == '\n' && i == count - 1)
            return 1;
        if (byte == '\n')
            return slu_fail(EPROTO, "PMI: the server sent more than a line for cmd=%s",
                            talk->command);
        if (byte < ' ' || byte == 0x7f)
            return slu_fail(EPROTO, "PMI: the server's answer to cmd=%s has a byte 0x%02x",
                            talk->command, byte);
    }
    return 0;
}

static int receive_line(struct pmi_talk *talk)
{
    size_t count = 0;

    while (count < sizeof talk->line) {
        ssize_t got = recv(talk->fd, talk->line + count, sizeof talk->line - count, MSG_DONTWAIT);
        int ended = 0;

        if (got > 0) {
            ended = check_text(talk, count, count + (size_t)got);
            count += (size_t)got;
        } else if (got < 0 && errno == EAGAIN) {
            ended = slu_pmi_wait(talk, POLLIN);
        } else if (got == 0 || errno != EINTR) {
            ended = fail_gone(talk);
        }
        if (ended > 0)
            talk->line[count - 1] = '\0';
        if (ended != 0)
            return ended < 0 ? ended : 0;
    }
    return slu_fail(EPROTO, "PMI: the server's answer to cmd=%s has more than %d bytes",
                    talk->command, PMI_LINE_BYTES);
}

/*
 * Finds a word in "name=word name=word ...". Returns 0, -ENOENT, or -E2BIG if it is too long;
 * without a text.
 */
static int find_word(const char *line, const char *name, char *word, size_t size)
{
    size_t length = strlen(name);

    for (const char *at = line; *at != '\0';) {
        size_t end = strcspn(at, " ");

        if (end > length && strncmp(at, name, length) == 0 && at[length] == '=') {
            size_t count = end - length - 1;

            if (count >= size)
                return -E2BIG;
            memcpy(word, at + length + 1, count);
            word[count] = '\0';
            return 0;
        }
        at += end + strspn(at + end, " ");
    }
    return -ENOENT;
}

int slu_pmi_word(const struct pmi_talk *talk, const char *name, char *word, size_t size)
{
    int error = find_word(talk->line, name, word, size);

    if (error == 0 && word[0] != '\0')
        return 0;
    if (error == -E2BIG)
        return slu_fail(EPROTO, "PMI: %s in the server's answer to cmd=%s has more than %zu bytes",
                        name, talk->command, size - 1);
    return slu_fail(EPROTO, "PMI: the server's answer to cmd=%s has no %s", talk->command, name);
}

int slu_pmi_number(const struct pmi_talk *talk, const char *name, uint32_t *number)
{
    char word[16];
    int error = slu_pmi_word(talk, name, word, sizeof word);

    if (error == 0 && slu_parse_number(word, 1, INT32_MAX, number) < 0)
        error = slu_fail(EPROTO, "PMI: %s in the server's answer to cmd=%s is '%s', no number",
                         name, talk->command, word);
    return error;
}

int slu_pmi_success(const struct pmi_talk *talk)
{
    char result[16], why[128];
    int error = slu_pmi_word(talk, "rc", result, sizeof result);

    if (error < 0 || strcmp(result, "0") == 0)
        return error;
    if (find_word(talk->line, "msg", why, sizeof why) < 0)
        snprintf(why, sizeof why, "it does not say why");
    return slu_fail(EPROTO, "PMI: the server refuses cmd=%s: rc=%s, %s", talk->command, result,
                    why);
}

int slu_pmi_request(struct pmi_talk *talk, const char *command, const char *kind,
                    const char *format, ...)
{
    char word[64];
    va_list list;
    int head = snprintf(talk->line, sizeof talk->line, "cmd=%s", command);
    int error, rest;

    talk->command = command;
    va_start(list, format);
    rest = vsnprintf(talk->line + head, sizeof talk->line - (size_t)head - 1, format, list);
    va_end(list);
    if (rest < 0 || head + rest + 2 >= PMI_LINE_BYTES)
        return slu_fail(EPROTO, "PMI: cmd=%s would have more than %d bytes", command,
                        PMI_LINE_BYTES);
    memcpy(talk->line + head + rest, "\n", 2);
    error = slu_pmi_send(talk);
    if (error == 0)
        error = receive_line(talk);
    if (error == 0)
        error = slu_pmi_word(talk, "cmd", word, sizeof word);
    if (error == 0 && strcmp(word, kind) != 0)
        error = slu_fail(EPROTO, "PMI: the server answers cmd=%s by cmd=%s, must be cmd=%s",
                         command, word, kind);
    return error;
}
