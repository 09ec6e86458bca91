/* SPDX-License-Identifier: MIT */
#include "halfway.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stranger.h"
#include "suite.h"

/* Sizes of the words of a connect by address, and of a step behind them. */
enum { HEAD = 64, BODY = 8, REPLY = 48, SEAL = crypto_secretbox_MACBYTES };
enum { STEP_HEAD = 8 + SEAL, STEP = STEP_HEAD + SLUICE_ENDPOINT_BYTES + SEAL };
enum { STANDS = 4, ADMITTED = 5 };

static const uint8_t no_bytes[1];

static void seal(const uint8_t *key, const char *label, const void *bytes, size_t count,
                 uint8_t *sealed)
{
    static const uint8_t nonce[crypto_secretbox_NONCEBYTES];
    uint8_t label_key[PROOF_BYTES];
    sign(key, PROOF_BYTES, label, no_bytes, 0, label_key);
    crypto_secretbox_easy(sealed, bytes, count, nonce, label_key);
}

/* Makes the first step of the dialer, sealed correctly. */
static void make_step(const uint8_t *key, const struct sluice_endpoint *endpoint,
                      uint8_t step[STEP])
{
    uint8_t head[8] = {0};
    put(head + 4, SLUICE_ENDPOINT_BYTES, 4);
    seal(key, "step d 0 h", head, sizeof(head), step);
    seal(key, "step d 0 b", endpoint, SLUICE_ENDPOINT_BYTES, step + STEP_HEAD);
}

static size_t make_hello(const struct halfway *halfway, enum halfway_way way, uint8_t *said)
{
    size_t body = BODY + halfway->own_bytes;
    memcpy(said, "sludoor?", 8);
    put(said + 8, 1, 2);
    put(said + 12, 1, 4);
    put(said + 16, body, 4);
    put(said + 20, halfway->secret != NULL, 4);
    put(said + HEAD + 4, way == TWO_CHANNELS ? 2 : 1, 4);
    memcpy(said + HEAD + BODY, halfway->own, halfway->own_bytes);
    return HEAD + body;
}

/*
 * Sends hello and proof, and receives the reply that the client stands, that is, waits to be let
 * in.
 */
static void stand(const struct halfway *halfway, enum halfway_way way, int fd, uint8_t *key)
{
    uint8_t said[HEAD + BODY + sizeof(halfway->own) + HEAD] = {0};
    uint8_t proof[PROOF_BYTES], reply[REPLY];
    size_t hello = make_hello(halfway, way, said);
    say(fd, said, hello);
    require(hear(fd, said + hello, HEAD), "no answer");
    sign(halfway->secret != NULL ? halfway->secret : no_bytes, halfway->secret_bytes,
         "sluice session", said, hello + HEAD, key);
    sign(key, PROOF_BYTES, "sluice dials", no_bytes, 0, proof);
    say(fd, proof, sizeof(proof));
    size_t heard = hear_some(fd, reply, sizeof(reply));
    require(heard == sizeof(reply) && reply[3] == STANDS, "%zu bytes, word %u, %s", heard,
            heard > 3 ? reply[3] : 0, strerror(errno));
}

/* Closes as the system closes for a killed process: with a reset. */
static int leave(int fd)
{
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
    return -1;
}

int halfway_come(const struct halfway *halfway, enum halfway_way way)
{
    static const uint8_t half[] = "sludoor?", words[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
    uint8_t key[PROOF_BYTES], step[STEP] = {0};
    struct sluice_endpoint none = {{0}};
    int fd = dial_port(halfway->port);
    switch (way) {
    case HALF_A_HELLO:
        say(fd, half, sizeof(half) - 1);
        return fd;
    case GARBAGE_HELLO:
        say(fd, words, sizeof(words) - 1);
        return fd;
    case SAYS_NOTHING:
        return fd;
    case LEAVES_AT_ONCE:
        return leave(fd);
    default:
        break;
    }
    stand(halfway, way, fd, key);
    if (way == NO_ENDPOINT || way == NO_CHANNEL) {
        make_step(key, way == NO_CHANNEL ? &halfway->endpoint : &none, step);
    }
    /* A client has nothing to send before it is let in. */
    if (way != SILENT && way != TWO_CHANNELS && way != LEAVES) {
        uint8_t reply[REPLY];
        require(hear(fd, reply, sizeof(reply)) && reply[3] == ADMITTED, "it is not let in");
    }
    if (way == HALF_A_STEP || way == LEAVES_AMID) {
        say(fd, step, STEP / 2);
    } else if (way == NO_CHANNEL || way == GARBAGE || way == NO_ENDPOINT) {
        say(fd, step, STEP);
    }
    if (way == LEAVES) {
        close(fd);
        return -1;
    }
    return way == LEAVES_AMID ? leave(fd) : fd;
}

bool halfway_is_held(int fd)
{
    uint8_t bytes[4096];
    ssize_t got;
    do {
        got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    } while (got > 0 || (got < 0 && errno == EINTR));
    return got < 0 && errno == EAGAIN;
}
