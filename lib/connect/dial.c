/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/dial.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "connect/stream.h"

/* How long each address waits for the one before it. */
#define STAGGER_TIME SLUICE_MS(250)
/* The longest connect, while other addresses are tried. */
#define CONNECT_TIME SLUICE_S(10)
/*
 * The first pause before the same address is dialed again, and how often it is doubled. Ranks of
 * one host start together, so the first attempt often comes less than a millisecond before the peer
 * listens.
 */
#define PAUSE_TIME SLUICE_MS(1)
#define PAUSE_DOUBLINGS 8

void slu_dial_add(struct slu_dial *dial, const struct slu_address *address)
{
    struct slu_dial_attempt *attempt = &dial->attempts[dial->count];

    if (dial->count == SLU_DIAL_MOST)
        return;
    for (uint32_t i = 0; i < dial->count; i++)
        if (slu_address_equal(&dial->attempts[i].address, address))
            return;
    attempt->address = *address;
    attempt->fd = -1;
    attempt->next = slu_now() + dial->count++ * STAGGER_TIME;
}

int slu_dial_take(struct slu_dial *dial, uint32_t index)
{
    struct slu_dial_attempt *attempt = &dial->attempts[index];
    int fd = attempt->fd;

    attempt->fd = -1;
    attempt->state = SLU_DIAL_NONE;
    return fd;
}

static void drop(struct slu_dial *dial, uint32_t index)
{
    int fd = slu_dial_take(dial, index);

    if (fd >= 0)
        slu_fd_close(fd);
}

void slu_dial_end(struct slu_dial *dial)
{
    for (uint32_t i = 0; i < dial->count; i++)
        drop(dial, i);
}

static int64_t pause_of(const struct slu_dial_attempt *attempt)
{
    return PAUSE_TIME << (attempt->failures < PAUSE_DOUBLINGS ? attempt->failures
                                                              : PAUSE_DOUBLINGS);
}

void slu_dial_fail(struct slu_dial *dial, uint32_t index, int error, const char *why)
{
    struct slu_dial_attempt *attempt = &dial->attempts[index];
    int64_t now = slu_now();

    drop(dial, index);
    attempt->error = error;
    attempt->why = why;
    attempt->next = now + pause_of(attempt);
    attempt->failures++;
    /* The next address was waiting for this one. */
    for (uint32_t i = 0; i < dial->count; i++) {
        struct slu_dial_attempt *other = &dial->attempts[i];

        if (other->failures > 0 || other->state != SLU_DIAL_NONE)
            continue;
        if (attempt->failures == 1 && other->next > now)
            other->next = now;
        return;
    }
}

/* Returns 1 if the socket is connected, 0 if not yet, or a negative errno value. */
static int finish_connect(int fd, bool unix_socket)
{
    struct slu_address own = slu_address_of_own(fd), peer = slu_address_of_peer(fd);

    /* A Unix socket is connected at once. */
    if (peer.family == 0 && unix_socket)
        return 1;
    if (peer.family == 0)
        return -slu_stream_error(fd);
    /* A socket can connect to itself if no process listens at its port. */
    return slu_address_equal(&own, &peer) ? -ECONNREFUSED : 1;
}

uint32_t slu_dial_wait(const struct slu_dial *dial, int64_t until)
{
    struct pollfd fds[SLU_DIAL_MOST + 1];
    uint32_t news = 0;

    for (uint32_t i = 0; i < dial->count; i++)
        fds[i] = (struct pollfd){.fd = dial->attempts[i].fd,
                                 .events = dial->attempts[i].state == SLU_DIAL_CONNECTING ? POLLOUT
                                                                                          : POLLIN};
    if (slu_duty_poll(dial->duty, fds, dial->count, until) <= 0)
        return 0;
    for (uint32_t i = 0; i < dial->count; i++)
        news |= (uint32_t)(fds[i].revents != 0) << i;
    return news;
}

bool slu_dial_event(struct slu_dial *dial, uint32_t index)
{
    struct slu_dial_attempt *attempt = &dial->attempts[index];
    int result;

    if (index >= dial->count || attempt->state != SLU_DIAL_CONNECTING)
        return index < dial->count && attempt->state == SLU_DIAL_UP;
    result = finish_connect(attempt->fd, attempt->address.family == SLU_FAMILY_UNIX);
    if (result < 0)
        slu_dial_fail(dial, index, -result, NULL);
    if (result <= 0)
        return false;
    attempt->state = SLU_DIAL_UP;
    attempt->since = slu_now();
    return true;
}

static void begin(struct slu_dial *dial, uint32_t index, int64_t now)
{
    struct slu_dial_attempt *attempt = &dial->attempts[index];
    int fd = slu_stream_dial(&attempt->address);

    attempt->since = now;
    if (fd < 0) {
        slu_dial_fail(dial, index, -fd, NULL);
        return;
    }
    attempt->fd = fd;
    attempt->state = SLU_DIAL_CONNECTING;
}

void slu_dial_tick(struct slu_dial *dial, int64_t now, int64_t *next)
{
    for (uint32_t i = 0; i < dial->count; i++) {
        struct slu_dial_attempt *attempt = &dial->attempts[i];

        if (attempt->state == SLU_DIAL_NONE && now >= attempt->next)
            begin(dial, i, now);
        else if (attempt->state == SLU_DIAL_CONNECTING && now - attempt->since >= CONNECT_TIME)
            slu_dial_fail(dial, i, ETIMEDOUT, "no answer");
    }
    for (uint32_t i = 0; i < dial->count; i++) {
        const struct slu_dial_attempt *attempt = &dial->attempts[i];

        if (attempt->state == SLU_DIAL_NONE && attempt->next < *next)
            *next = attempt->next;
        if (attempt->state == SLU_DIAL_CONNECTING && attempt->since + CONNECT_TIME < *next)
            *next = attempt->since + CONNECT_TIME;
    }
}

static bool is_among(int error, const int *errors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (errors[i] == error)
            return true;
    return false;
}

bool slu_dial_all_failed(const struct slu_dial *dial, const int *errors, uint32_t count)
{
    for (uint32_t i = 0; i < dial->count; i++) {
        const struct slu_dial_attempt *attempt = &dial->attempts[i];

        if (attempt->state == SLU_DIAL_UP || attempt->failures == 0 ||
            !is_among(attempt->error, errors, count))
            return false;
    }
    return dial->count > 0;
}

void slu_dial_explain(const struct slu_dial *dial, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < dial->count && used < size; i++) {
        const struct slu_dial_attempt *attempt = &dial->attempts[i];
        const char *why = attempt->why;
        char address[SLU_ADDRESS_TEXT];

        if (why == NULL)
            why = attempt->error != 0 ? strerrordesc_np(attempt->error) : "no answer yet";
        used += (size_t)snprintf(text + used, size - used, "%s%s: %s", i > 0 ? "; " : "",
                                 slu_address_text(&attempt->address, address), why);
    }
}
