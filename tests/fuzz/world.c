/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "world.h"

#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

#define BEGINNING SLUICE_S(1000)
/* Each reading of the clock takes some time, so that a waiting loop comes to its deadline. */
#define LOOK_TIME SLUICE_US(1)

static int64_t now;
static uint64_t drawn;

void fuzz_world_begin(void)
{
    now = BEGINNING;
    drawn = 1;
}

void fuzz_clock_advance(int64_t nanoseconds)
{
    now += nanoseconds;
}

int64_t slu_now(void)
{
    return now += LOOK_TIME;
}

int64_t slu_tick(void)
{
    return slu_now();
}

/* No thread of a fuzz target is interrupted. */
const volatile int *sluice_interrupt_set(const volatile int *flag)
{
    (void)flag;
    return NULL;
}

bool slu_is_interrupted(void)
{
    return false;
}

bool slu_is_late_at(int64_t at, int64_t until)
{
    return at >= until;
}

bool slu_is_late(int64_t until)
{
    return slu_is_late_at(slu_now(), until);
}

int64_t slu_sleep_until(int64_t until)
{
    return until;
}

/* Waits a millisecond at a time, which passes at once. */
int slu_milliseconds(int64_t until)
{
    if (until <= now) {
        return 0;
    }
    now += SLUICE_MS(1);
    return 1;
}

int slu_random(void *bytes, size_t count)
{
    uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++) {
        drawn = drawn * 6364136223846793005ULL + 1442695040888963407ULL;
        at[i] = (uint8_t)(drawn >> 56);
    }
    return 0;
}

void fuzz_talk_open(struct fuzz_talk *talk, int fd)
{
    talk->fd = fd;
    talk->ended = false;
    talk->said_count = talk->heard_count = 0;
    talk->next_at = talk->next_count = 0;
}

void fuzz_talk_close(struct fuzz_talk *talk)
{
    if (talk->fd >= 0) {
        close(talk->fd);
    }
    talk->fd = -1;
}

void fuzz_talk_hear(struct fuzz_talk *talk)
{
    ssize_t got;
    do {
        got = recv(talk->fd, talk->heard + talk->heard_count, TALK_MOST - talk->heard_count,
                   MSG_DONTWAIT);
        talk->heard_count += got > 0 ? (size_t)got : 0;
    } while (got > 0);
}

void fuzz_talk_say(struct fuzz_talk *talk, const uint8_t *bytes, size_t count)
{
    ssize_t sent;
    if (talk->fd < 0 || talk->ended || count > TALK_MOST - talk->said_count) {
        return;
    }
    sent = send(talk->fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
        memcpy(talk->said + talk->said_count, bytes, (size_t)sent);
        talk->said_count += (size_t)sent;
    }
}

static void say_literally(struct fuzz_talk *talk, struct fuzz_input *input)
{
    size_t count = fuzz_byte(input);
    const uint8_t *bytes = fuzz_bytes(input, &count);
    fuzz_talk_say(talk, bytes, count);
}

/* Sends up to count of the right bytes. */
static void say_right(struct fuzz_talk *talk, size_t count)
{
    size_t left = talk->next_count - talk->next_at;
    count = count < left ? count : left;
    fuzz_talk_say(talk, talk->next + talk->next_at, count);
    talk->next_at += count;
}

void fuzz_talk_step(struct fuzz_talk *talk, enum fuzz_step step, unsigned argument,
                    struct fuzz_input *input,
                    size_t (*make)(struct fuzz_talk *talk, unsigned argument))
{
    if (talk->fd < 0) {
        return;
    }
    fuzz_talk_hear(talk);
    if (step >= STEP_RIGHT && step <= STEP_SPOILED && talk->next_at == talk->next_count) {
        talk->next_at = 0;
        talk->next_count = make(talk, argument);
    }
    if (step == STEP_SAY) {
        say_literally(talk, input);
    } else if (step == STEP_RIGHT) {
        say_right(talk, TALK_MOST);
    } else if (step == STEP_PART) {
        say_right(talk, argument + 1);
    } else if (step == STEP_SPOILED) {
        size_t at = fuzz_number(input, 2);
        if (talk->next_count > talk->next_at) {
            talk->next[talk->next_at + at % (talk->next_count - talk->next_at)] ^= fuzz_byte(input);
        }
        say_right(talk, TALK_MOST);
    } else if (step == STEP_END && !talk->ended) {
        shutdown(talk->fd, SHUT_WR);
        talk->ended = true;
    }
}
