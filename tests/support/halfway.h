/* SPDX-License-Identifier: MIT */
/* Clients that speak the protocol of a connect by address, and stop, fail or leave during it. */
#ifndef SUPPORT_HALFWAY_H
#define SUPPORT_HALFWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice.h>

/* How far a client comes, and what it does there. Those before TWO_CHANNELS stop. */
enum halfway_way {
    SAYS_NOTHING,
    HALF_A_HELLO,
    SILENT, /* once it may be let in */
    HALF_A_STEP,
    NO_CHANNEL, /* its endpoint is right, and its channel never connects */
    TWO_CHANNELS,
    GARBAGE_HELLO,
    GARBAGE, /* in place of its endpoint */
    NO_ENDPOINT,
    LEAVES_AT_ONCE,
    LEAVES, /* once it may be let in */
    LEAVES_AMID,
    HALFWAY_WAYS
};

#define FIRST_TO_FAIL TWO_CHANNELS
#define FIRST_TO_LEAVE LEAVES_AT_ONCE

/* Their target, and their data. */
struct halfway {
    uint16_t port;
    const uint8_t *secret; /* NULL: there is none */
    size_t secret_bytes;
    uint8_t own[8]; /* private data */
    size_t own_bytes;
    struct sluice_endpoint endpoint;
};

/* Returns the socket, or -1 if it has left. Reads of the socket time out after 20 s. */
int halfway_come(const struct halfway *halfway, enum halfway_way way);
/* Reads all bytes that are there. Returns whether the other side still holds the connection. */
bool halfway_is_held(int fd);

#endif
