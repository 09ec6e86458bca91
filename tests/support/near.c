/* SPDX-License-Identifier: MIT */
#include "near.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "process.h"

/* A segment: three lines, and slots. */
#define SEGMENT 4096
/* That of the side that makes the file, and then that of the other side. */
#define BOTH ((size_t)2 * SEGMENT)
#define TAKEN 0
#define WORDS 16
#define WANTED 24
#define ARMED 64
#define HUNGRY 128
#define WITHDRAWN 132
#define SLOTS 192
#define SLOT 64
#define SLOT_COUNT 61
#define HEAD 8
/* Bytes of a record. */
#define RECORD 1000
#define BELL 1
/* Messages before memory is shared: magic, version, kind, has_segments. */
#define JOIN_BYTES 32
#define JOIN_VERSION 7
#define GREETING 1
#define JOIN_PROBE 2
#define JOIN_OFFER 5
#define JOIN_ANSWER 6
/* The bit by which an endpoint says that its side can share memory. */
#define KNOWS_SHARING 4

static _Atomic uint32_t *word_of(uint8_t *segment, size_t at)
{
    return (_Atomic uint32_t *)(void *)(segment + at);
}

static _Atomic uint64_t *head_of(uint8_t *segment, uint32_t slot)
{
    return (_Atomic uint64_t *)(void *)(segment + SLOTS + (size_t)(slot % SLOT_COUNT) * SLOT);
}

static uint32_t slots_of(size_t bytes)
{
    return (uint32_t)((HEAD + bytes + SLOT - 1) / SLOT);
}

/* Copies bytes of the record at a slot, into it or out of it. */
static uint8_t *place_of(uint8_t *segment, uint32_t slot, size_t offset)
{
    return segment + SLOTS +
           ((size_t)(slot % SLOT_COUNT) * SLOT + HEAD + offset) % ((size_t)SLOT_COUNT * SLOT);
}

/* Meeting. */

/* The Unix socket of a context. */
static struct sockaddr_un address_of(const struct sluice_endpoint *endpoint, socklen_t *length)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint64_t context = 0;

    for (int i = 0; i < 8; i++)
        context = context << 8 | endpoint->bytes[56 + i];
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                          (size_t)snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                           "sluice-%016" PRIx64, context));
    return address;
}

void near_open(struct near_peer *peer)
{
    struct sides sides;
    struct sockaddr_un address;
    socklen_t length;

    memset(peer, 0, sizeof *peer);
    peer->fd = -1;
    sides_open(&sides);
    sluice_prepared_channel_free(prepare_channel(sides.pds[0], NULL, &peer->endpoint));
    sides_close(&sides);
    /* The endpoint names that context, which is gone, and this process; the nonce makes it lead. */
    put(peer->endpoint.bytes + 4, 77, 4);
    memset(peer->endpoint.bytes + 76, 0xff, 16);
    /* Pretends a version that does not get the reason of an end. */
    peer->endpoint.bytes[231] = KNOWS_SHARING;
    near_renew(peer);
    address = address_of(&peer->endpoint, &length);
    peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(peer->listener >= 0 && bind(peer->listener, (struct sockaddr *)&address, length) == 0 &&
                listen(peer->listener, 64) == 0,
            "%s", strerror(errno));
}

void near_close(struct near_peer *peer)
{
    close(peer->listener);
}

void near_renew(struct near_peer *peer)
{
    put(peer->endpoint.bytes + 240, ++peer->generation, 8);
    seal(&peer->endpoint);
}

static void greet_victim(struct near_peer *peer, const struct sluice_endpoint *victim)
{
    struct greeting greeting = {&peer->endpoint, victim, {0}};
    struct timeval patience = {.tv_sec = 20};
    uint8_t proof[PROOF_BYTES];
    socklen_t length;
    struct sockaddr_un address = address_of(victim, &length);

    peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    require(connect(peer->fd, (struct sockaddr *)&address, length) == 0, "%s", strerror(errno));
    require(greet(&greeting, peer->fd) && hear(peer->fd, proof, sizeof proof), "no proof: %s",
            strerror(errno));
    make_proof(&greeting, OF_CHOICE, proof);
    say(peer->fd, proof, sizeof proof);
}

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

static void say_with(int socket, void *bytes, size_t count, int fd)
{
    union control control = {.header = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec piece = {bytes, count};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};

    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    require(sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)count, "%s", strerror(errno));
}

static void exchange_greetings(struct near_peer *peer)
{
    static const uint8_t token[16] = "it is near still";
    const uint8_t *token_at = token;
    uint8_t greeting[JOIN_BYTES] = {'s', 'l', 'u', 'm', JOIN_VERSION, GREETING, 0, JOIN_VERSION};

    memcpy(greeting + 8, &token_at, sizeof token_at);
    memcpy(greeting + 16, token, sizeof token);
    say(peer->fd, greeting, sizeof greeting);
    require(hear(peer->fd, greeting, sizeof greeting) && greeting[5] == GREETING, "kind %u",
            greeting[5]);
}

/* Makes and maps both segments, and returns their descriptor. */
static int make_segments(struct near_peer *peer)
{
    int fd = memfd_create("near", MFD_ALLOW_SEALING | MFD_CLOEXEC);

    require(fd >= 0 && ftruncate(fd, BOTH) == 0 && fallocate(fd, 0, 0, BOTH) == 0 &&
                fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0,
            "%s", strerror(errno));
    peer->own = mmap(NULL, BOTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    require(peer->own != MAP_FAILED, "%s", strerror(errno));
    peer->theirs = peer->own + SEGMENT;
    return fd;
}

/*
 * Returns whether the victim has mapped the segments. Before it reads the offer, it may ask for
 * signs of life, or for the memory.
 */
static bool hear_answer(const struct near_peer *peer)
{
    uint8_t answer[JOIN_BYTES];

    do
        require(hear(peer->fd, answer, sizeof answer), "no answer: %s", strerror(errno));
    while (answer[5] != JOIN_ANSWER);
    return answer[6] == 1;
}

static void share_memory(struct near_peer *peer)
{
    uint8_t offer[JOIN_BYTES] = {'s', 'l', 'u', 'm', JOIN_VERSION, JOIN_OFFER, 1, JOIN_VERSION};
    int fd = make_segments(peer);

    say_with(peer->fd, offer, sizeof offer, fd);
    close(fd);
    require(hear_answer(peer), "the victim has not mapped the memory");
}

void near_meet(struct near_peer *peer, const struct sluice_endpoint *victim)
{
    peer->written = peer->write_at = peer->taken = peer->read_at = 0;
    peer->heard_bytes = 0;
    greet_victim(peer, victim);
    exchange_greetings(peer);
    share_memory(peer);
}

bool near_meet_early(struct near_peer *peer, const struct sluice_endpoint *victim)
{
    uint8_t probe[JOIN_BYTES] = {'s', 'l', 'u', 'm', JOIN_VERSION, JOIN_PROBE, 0, JOIN_VERSION};
    uint8_t offer[JOIN_BYTES] = {'s', 'l', 'u', 'm', JOIN_VERSION, JOIN_OFFER, 1, JOIN_VERSION};
    int fd;

    greet_victim(peer, victim);
    exchange_greetings(peer);
    fd = make_segments(peer);
    say_with(peer->fd, probe, sizeof probe, fd);
    close(fd);
    say(peer->fd, offer, sizeof offer);
    return hear_answer(peer);
}

void near_part(struct near_peer *peer)
{
    close(peer->fd);
    munmap(peer->own, BOTH);
    peer->fd = -1;
}

/* Talking. */

/* The victim sends on this socket only to show that it is alive, so the bytes are dropped. */
static bool has_ended(const struct near_peer *peer)
{
    uint8_t words[64];
    ssize_t got;

    do
        got = recv(peer->fd, words, sizeof words, MSG_DONTWAIT);
    while (got > 0);
    return got == 0 || (errno != EAGAIN && errno != EINTR);
}

static void ring(const struct near_peer *peer)
{
    static const uint8_t bell = BELL;

    send(peer->fd, &bell, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Returns false if the connection has ended. */
static bool await_room(struct near_peer *peer, uint32_t slots)
{
    int64_t end = clock_now() + SLUICE_S(60);

    while (peer->written - atomic_load(word_of(peer->theirs, TAKEN)) + slots >= SLOT_COUNT) {
        if (has_ended(peer))
            return false;
        require(clock_now() < end, "no room after %u slots", peer->written);
        let_pass(SLUICE_US(20));
    }
    return true;
}

static void say_record(struct near_peer *peer, const uint8_t *bytes, size_t count)
{
    uint32_t slots = slots_of(count);

    for (size_t i = 0; i < count; i++)
        *place_of(peer->theirs, peer->write_at, i) = bytes[i];
    atomic_store(head_of(peer->theirs, peer->write_at + slots), 0);
    atomic_store(head_of(peer->theirs, peer->write_at),
                 (uint64_t)(peer->written + 1) << 32 | count);
    peer->written += slots;
    peer->write_at = (peer->write_at + slots) % SLOT_COUNT;
    if (atomic_exchange(word_of(peer->theirs, ARMED), 0) != 0)
        ring(peer);
}

void near_say(struct near_peer *peer, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;

    while (count > 0) {
        size_t piece = count < RECORD ? count : RECORD;

        if (!await_room(peer, slots_of(piece)))
            return;
        say_record(peer, at, piece);
        at += piece;
        count -= piece;
    }
}

void near_say_frame(struct near_peer *peer, const struct frame *frame)
{
    uint8_t bytes[40];

    encode_frame(frame, bytes);
    near_say(peer, bytes, sizeof bytes);
}

/* Takes a record, if there is one: of the stream, or another, which is skipped. */
static bool take_record(struct near_peer *peer)
{
    uint64_t head = atomic_load(head_of(peer->own, peer->read_at));
    size_t count = head & 0xfffff;
    bool of_stream = (head >> 20 & 0xfff) == 0;

    if (head >> 32 != peer->taken + 1 ||
        (of_stream && count > sizeof peer->heard - peer->heard_bytes))
        return false;
    for (size_t i = 0; of_stream && i < count; i++)
        peer->heard[peer->heard_bytes++] = *place_of(peer->own, peer->read_at, i);
    peer->taken += slots_of(count);
    peer->read_at = (peer->read_at + slots_of(count)) % SLOT_COUNT;
    atomic_store(word_of(peer->own, TAKEN), peer->taken);
    if (atomic_exchange(word_of(peer->own, HUNGRY), 0) != 0)
        ring(peer);
    return true;
}

bool near_hear(struct near_peer *peer, void *bytes, size_t count)
{
    uint8_t *to = bytes;
    int64_t end = clock_now() + SLUICE_S(60);

    while (count > 0) {
        size_t piece = count < peer->heard_bytes ? count : peer->heard_bytes;

        memcpy(to, peer->heard, piece);
        peer->heard_bytes -= piece;
        memmove(peer->heard, peer->heard + piece, peer->heard_bytes);
        to += piece;
        count -= piece;
        if (count == 0 || take_record(peer))
            continue;
        if (has_ended(peer))
            return false;
        require(clock_now() < end, "%zu bytes are missing", count);
        let_pass(SLUICE_US(20));
    }
    return true;
}

static uint64_t get(const uint8_t *from, int bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value = value << 8 | from[i];
    return value;
}

bool near_hear_frame(struct near_peer *peer, struct frame *frame)
{
    uint8_t bytes[40];

    if (!near_hear(peer, bytes, sizeof bytes))
        return false;
    *frame = (struct frame){.type = bytes[0],
                            .flags = bytes[1],
                            .status = bytes[2],
                            .seq = (uint32_t)get(bytes + 8, 4),
                            .ack = (uint32_t)get(bytes + 12, 4),
                            .credit = (uint32_t)get(bytes + 16, 4),
                            .rkey = (uint32_t)get(bytes + 20, 4),
                            .addr = get(bytes + 24, 8),
                            .length = get(bytes + 32, 8)};
    return true;
}

enum near_sight near_look(struct near_peer *peer, uint32_t done)
{
    int64_t end = clock_now() + SLUICE_S(60);

    for (;;) {
        if (peer->heard_bytes > 0 || take_record(peer))
            return NEAR_HEARD;
        if (atomic_load(word_of(peer->theirs, WORDS)) == done)
            return NEAR_DONE;
        if (has_ended(peer))
            return NEAR_ENDED;
        require(clock_now() < end, "the victim does nothing%s", "");
        let_pass(SLUICE_US(20));
    }
}

void near_want_loans(struct near_peer *peer, bool all)
{
    atomic_store(word_of(peer->own, WANTED), all ? 0xff : 0);
}

void near_withdraw(struct near_peer *peer, bool withdrawn)
{
    atomic_store(word_of(peer->theirs, WITHDRAWN), withdrawn);
}
