/* SPDX-License-Identifier: MIT */
/*
 * A reproducible environment for conversations: a clock that advances on demand, random numbers
 * that are fixed, and the other end of a connection, which sends bytes of an input, the right
 * words, or almost right ones.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include "fuzz.h"

/* Replaces slu_now() and slu_random() of the library. To be called before each input. */
void fuzz_world_begin(void);
void fuzz_clock_advance(int64_t nanoseconds);

#define TALK_MOST 4096

struct fuzz_talk {
    int fd; /* -1: none */
    bool ended;
    uint8_t said[TALK_MOST], heard[TALK_MOST], next[TALK_MOST];
    size_t said_count, heard_count;
    size_t next_at, next_count; /* remaining right bytes */
};

void fuzz_talk_open(struct fuzz_talk *talk, int fd);
void fuzz_talk_close(struct fuzz_talk *talk);
/* Reads all bytes that are there now. */
void fuzz_talk_hear(struct fuzz_talk *talk);
void fuzz_talk_say(struct fuzz_talk *talk, const uint8_t *bytes, size_t count);

/* The next step of an input: the low three bits of a byte; its other bits are an argument. */
enum fuzz_step {
    STEP_SAY,     /* a count in one byte, and the bytes */
    STEP_RIGHT,   /* all right bytes */
    STEP_PART,    /* argument + 1 bytes of it */
    STEP_SPOILED, /* all of them, with the byte at a place (2 bytes) changed by a byte */
    STEP_LOOK,    /* the library polls */
    STEP_TICK,    /* 2^argument microseconds pass, and the library checks the time */
    STEP_END,     /* nothing more will be sent */
    STEP_OTHER    /* specific to the target, such as another connection */
};
/*
 * Does the first four of these and the end. make() puts the bytes that are right now into next, and
 * returns their number; it gets the argument.
 */
void fuzz_talk_step(struct fuzz_talk *talk, enum fuzz_step step, unsigned argument,
                    struct fuzz_input *input,
                    size_t (*make)(struct fuzz_talk *talk, unsigned argument));

#endif
