/* SPDX-License-Identifier: MIT */
/*
 * A reproducible environment for conversations: a clock that advances on demand, random numbers
 * that are fixed, and the other end of a connection, which sends bytes of an input, the right
 * words, or almost right ones.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include "fuzz.h"

/* slu_now() and slu_random() of the library are these. Before each input. */
void fuzz_world_begin(void);
void fuzz_clock_advance(int64_t nanoseconds);

#define TALK_MOST 4096

struct fuzz_talk {
    int fd; /* -1: none */
    bool ended;
    uint8_t said[TALK_MOST], heard[TALK_MOST], next[TALK_MOST];
    size_t said_count, heard_count;
    size_t next_at, next_count; /* what is left of what would be right */
};

void fuzz_talk_open(struct fuzz_talk *talk, int fd);
void fuzz_talk_close(struct fuzz_talk *talk);
/* All that is there now. */
void fuzz_talk_hear(struct fuzz_talk *talk);
void fuzz_talk_say(struct fuzz_talk *talk, const uint8_t *bytes, size_t count);

/* The next step of an input: the low three bits of a byte; its other bits are an argument. */
enum fuzz_step {
    STEP_SAY,     /* a count in one byte, and the bytes */
    STEP_RIGHT,   /* all that would be right */
    STEP_PART,    /* argument + 1 bytes of it */
    STEP_SPOILED, /* all of it, with the byte at a place (2 bytes) changed by a byte */
    STEP_LOOK,    /* the library looks what is there */
    STEP_TICK,    /* 2^argument microseconds pass, and the library checks the time */
    STEP_END,     /* no more will be said */
    STEP_OTHER    /* the target's: such as another connection */
};
/*
 * The first four of these and the end; make puts into next what would be right now, of as many
 * bytes as it returns, with the argument.
 */
void fuzz_talk_step(struct fuzz_talk *talk, enum fuzz_step step, unsigned argument,
                    struct fuzz_input *input,
                    size_t (*make)(struct fuzz_talk *talk, unsigned argument));

#endif
