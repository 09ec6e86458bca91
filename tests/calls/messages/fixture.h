/* SPDX-License-Identifier: MIT */
/* A pair of channels, and blocks in the memory of both sides: side 0 sends, side 1 receives. */
#ifndef MESSAGES_FIXTURE_H
#define MESSAGES_FIXTURE_H

#include "../../support/pair.h"

#define SPAN 60000
#define BLOCKS 200
#define STAGING 32768
#define GAP 0x5a
#define SEND 0
#define RECEIVE 1

/* Some messages have no more pieces than a request has elements, and most have more. */
extern const struct sluice_channel_attr messages_attr;

struct fixture {
    struct pair pair;
    struct memory memory[2];
    struct sluice_blocks blocks[2];
    uint32_t indices[2][BLOCKS];
    uint8_t model[SPAN];
    uint64_t seed;
};

void fixture_open_with(struct fixture *fixture, const struct sluice_channel_attr *with);
void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture);

/* A number below that one. */
uint32_t choose(struct fixture *fixture, uint32_t below);
/* The blocks of a side are so many of so many bytes each, at random places. */
void lay(struct fixture *fixture, int side, uint32_t count, uint32_t bytes);
struct sluice_blocks strided(uint32_t count, uint64_t bytes, uint64_t stride);

/* The request of a side. */
struct sluice_request ask(struct fixture *fixture, int side);
/* The bytes of the source all differ from what is in the gaps of the destination. */
void fill(struct fixture *fixture);
/* The first bytes of the blocks of the receiver are those of the sender's, in their order. */
void check(struct fixture *fixture);
/* It is a success, and has all bytes. */
void check_end(struct fixture *fixture, const struct sluice_completion *completion, int side);
/* The next result of a side is one. */
void take(struct fixture *fixture, int side);

/* Posts the request of a side; what it was made of goes once it is posted. */
void do_post(struct fixture *fixture, int side);
/* A blocking send, for which a receive is posted. */
void do_submit(struct fixture *fixture);
/* By prepared lists, twice. */
void do_list(struct fixture *fixture);

#endif
