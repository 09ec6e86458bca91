/* SPDX-License-Identifier: MIT */
/*
 * A hostile peer on the soft transport's TCP wire. Whatever it sends after a valid hello, the
 * victim's channel fails cleanly, no memory changes outside of its rights, and the other peers work
 * on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../support/hostile.h"
#include "../support/process.h"

/* The longest message that is spilled. */
#define EARLY_BYTES 4096

/* Frames, and the target of a request. */
enum where { NOWHERE, INSIDE, BEHIND, ACROSS, WRAPPING, AT_NULL, WRONG_KEY, READ_ONLY, SHIFTED };

struct attack {
    const char *name;
    unsigned classes;
    enum asked asked; /* is under way, with number 0 */
    bool close;       /* the stream ends behind it */
    enum where where;
    size_t payload;
    struct frame frame;
};

/* The target of a refused access sees the loss of its peer. */
#define REFUSED MASK(PEER_LOST)
#define NONSENSE MASK(PROTOCOL)

#define SWAP .type = COMPARE_SWAP, .length = 16

static const struct attack attacks[] = {
    {"type 0", NONSENSE, 0, 0, 0, 0, {.type = 0}},
    {"type after the last", NONSENSE, 0, 0, 0, 0, {.type = LAST_TYPE + 1}},
    {"type 255", NONSENSE, 0, 0, 0, 0, {.type = 255}},
    {"reserved byte", NONSENSE, 0, 0, 0, 0, {.type = ACK, .reserved = 1}},
    {"send with flag 4", NONSENSE, 0, 0, 0, 8, {.type = SEND, .flags = 4, .length = 8}},
    {"send with flag 128", NONSENSE, 0, 0, 0, 8, {.type = SEND, .flags = 128, .length = 8}},
    {"ack with immediate", NONSENSE, 0, 0, 0, 0, {.type = ACK, .flags = IMMEDIATE}},
    {"read with a flag", NONSENSE, 0, 0, 0, 0, {.type = READ_REQUEST, .flags = PROMPT}},
    {"immediate without flag", NONSENSE, 0, 0, 0, 8, {.type = SEND, .immediate = 1, .length = 8}},
    {"send with status", NONSENSE, 0, 0, 0, 8, {.type = SEND, .status = 10, .length = 8}},
    {"send with key", NONSENSE, 0, 0, 0, 8, {.type = SEND, .rkey = 1, .length = 8}},
    {"ack with length", NONSENSE, 0, 0, 0, 8, {.type = ACK, .length = 8}},
    {"ack with seq", NONSENSE, 0, 0, 0, 0, {.type = ACK, .seq = 1}},
    {"send of 2^31 + 1", NONSENSE, 0, 0, 0, 8, {.type = SEND, .length = (1ULL << 31) + 1}},
    {"send of 2^63", NONSENSE, 0, 0, 0, 8, {.type = SEND, .length = 1ULL << 63}},
    {"send of 2^64 - 1", NONSENSE, 0, 0, 0, 8, {.type = SEND, .length = UINT64_MAX}},
    {"write of 2^31 + 1", NONSENSE, 0, 0, INSIDE, 8, {.type = WRITE, .length = (1ULL << 31) + 1}},
    {"write of 2^63", NONSENSE, 0, 0, INSIDE, 8, {.type = WRITE, .length = 1ULL << 63}},
    {"write of 2^64 - 1", NONSENSE, 0, 0, INSIDE, 8, {.type = WRITE, .length = UINT64_MAX}},
    {"read of 2^64 - 1", NONSENSE, 0, 0, INSIDE, 0, {.type = READ_REQUEST, .length = UINT64_MAX}},
    {"reply of 2^64 - 1", NONSENSE, 1, 0, 0, 8, {.type = READ_REPLY, .length = UINT64_MAX}},
    {"write of 2^31", REFUSED, 0, 0, INSIDE, 8, {.type = WRITE, .length = 1ULL << 31}},
    {"write behind", REFUSED, 0, 0, BEHIND, 8, {.type = WRITE, .length = 8}},
    {"write across", REFUSED, 0, 0, ACROSS, 8, {.type = WRITE, .length = 8}},
    {"large write across", REFUSED, 0, 0, ACROSS, 4000, {.type = WRITE, .length = 4000}},
    {"write that wraps", REFUSED, 0, 0, WRAPPING, 4000, {.type = WRITE, .length = 1 << 30}},
    {"write to 0", REFUSED, 0, 0, AT_NULL, 8, {.type = WRITE, .length = 8}},
    {"write with wrong key", REFUSED, 0, 0, WRONG_KEY, 8, {.type = WRITE, .length = 8}},
    {"write to read-only", REFUSED, 0, 0, READ_ONLY, 8, {.type = WRITE, .length = 8}},
    {"read behind", REFUSED, 0, 0, BEHIND, 0, {.type = READ_REQUEST, .length = 8}},
    {"read across", REFUSED, 0, 0, ACROSS, 0, {.type = READ_REQUEST, .length = 8}},
    {"read of 2^31", REFUSED, 0, 0, INSIDE, 0, {.type = READ_REQUEST, .length = 1ULL << 31}},
    {"read with wrong key", REFUSED, 0, 0, WRONG_KEY, 0, {.type = READ_REQUEST, .length = 8}},
    {"send too long", MASK(TRUNCATED), 0, 0, 0, 101, {.type = SEND, .length = 101}},
    {"large send", MASK(TRUNCATED), 0, 0, 0, 4000, {.type = SEND, .length = 1 << 30}},
    {"send number 1", NONSENSE, 0, 0, 0, 8, {.type = SEND, .seq = 1, .length = 8}},
    {"send number -1", NONSENSE, 0, 0, 0, 8, {.type = SEND, .seq = UINT32_MAX, .length = 8}},
    {"reply to no read", NONSENSE, 0, 0, 0, 100, {.type = READ_REPLY, .length = 100}},
    {"reply to read 1", NONSENSE, 1, 0, 0, 100, {.type = READ_REPLY, .seq = 1, .length = 100}},
    {"longer reply", NONSENSE, 1, 0, 0, 101, {.type = READ_REPLY, .length = 101}},
    {"shorter reply", NONSENSE, 1, 0, 0, 99, {.type = READ_REPLY, .length = 99}},
    {"half a reply", MASK(PEER_LOST), 1, 1, 0, 50, {.type = READ_REPLY, .length = 100}},
    {"reply, not acknowledged", MASK(PEER_LOST), 1, 1, 0, 100, {.type = READ_REPLY, .length = 100}},
    {"ack of an open read", NONSENSE, 1, 0, 0, 0, {.type = ACK, .ack = 1}},
    {"ack of nothing", NONSENSE, 0, 0, 0, 0, {.type = ACK, .ack = 1}},
    {"ack beyond", NONSENSE, 1, 0, 0, 0, {.type = ACK, .ack = 2}},
    {"ack of 2^31", NONSENSE, 1, 0, 0, 0, {.type = ACK, .ack = 1U << 31}},
    {"ack of -1", NONSENSE, 1, 0, 0, 0, {.type = ACK, .ack = UINT32_MAX}},
    {"refusal of nothing", NONSENSE, 0, 0, 0, 0, {.type = NAK, .status = 10}},
    {"refusal with status 0", NONSENSE, 1, 0, 0, 0, {.type = NAK}},
    {"refusal with status 5", NONSENSE, 1, 0, 0, 0, {.type = NAK, .status = 5}},
    {"refusal of request 1", NONSENSE, 1, 0, 0, 0, {.type = NAK, .status = 10, .seq = 1}},
    {"refusal", MASK(ACCESS), 1, 0, 0, 0, {.type = NAK, .status = 10}},
    {"credit of -1", NONSENSE, 0, 0, 0, 0, {.type = ACK, .credit = UINT32_MAX}},
    {"credit of 16385", NONSENSE, 0, 0, 0, 0, {.type = ACK, .credit = 16385}},
    {"credit of 2^31", NONSENSE, 0, 0, 0, 0, {.type = ACK, .credit = 1U << 31}},
    {"nothing, and the end", MASK(PEER_LOST), 0, 1, 0, 0, {.type = ACK}},
    {"half a send", MASK(PEER_LOST), 0, 1, 0, 50, {.type = SEND, .length = 100}},
    {"half a write", MASK(PEER_LOST), 0, 1, INSIDE, 0, {.type = WRITE, .length = 200}},
    {"no payload of a large write",
     MASK(PEER_LOST),
     0,
     1,
     INSIDE,
     0,
     {.type = WRITE, .length = REGION}},
    /* Atomic operations. */
    {"swap with 8 bytes", NONSENSE, 0, 0, INSIDE, 8, {.type = COMPARE_SWAP, .length = 8}},
    {"swap with 17 bytes", NONSENSE, 0, 0, INSIDE, 17, {.type = COMPARE_SWAP, .length = 17}},
    {"swap with 2^64 - 1", NONSENSE, 0, 0, INSIDE, 16, {.type = COMPARE_SWAP, .length = -1ULL}},
    {"swap with a flag", NONSENSE, 0, 0, INSIDE, 16, {SWAP, .flags = PROMPT}},
    {"swap with status", NONSENSE, 0, 0, INSIDE, 16, {SWAP, .status = 10}},
    {"swap with immediate", NONSENSE, 0, 0, INSIDE, 16, {SWAP, .immediate = 1}},
    {"swap number 1", NONSENSE, 0, 0, INSIDE, 16, {SWAP, .seq = 1}},
    {"add without operand", NONSENSE, 0, 0, INSIDE, 0, {.type = FETCH_ADD}},
    {"add of two operands", NONSENSE, 0, 0, INSIDE, 16, {.type = FETCH_ADD, .length = 16}},
    {"swap behind", REFUSED, 0, 0, BEHIND, 16, {SWAP}},
    {"swap across", REFUSED, 0, 0, ACROSS, 16, {SWAP}},
    {"swap that wraps", REFUSED, 0, 0, WRAPPING, 16, {SWAP}},
    {"swap at 0", REFUSED, 0, 0, AT_NULL, 16, {SWAP}},
    {"swap with wrong key", REFUSED, 0, 0, WRONG_KEY, 16, {SWAP}},
    {"swap in read-only", REFUSED, 0, 0, READ_ONLY, 16, {SWAP}},
    {"swap at no word", REFUSED, 0, 0, SHIFTED, 16, {SWAP}},
    {"half a swap", MASK(PEER_LOST), 0, 1, INSIDE, 8, {SWAP}},
    {"result of nothing", NONSENSE, 0, 0, 0, 0, {.type = ATOMIC_REPLY}},
    {"result of a read", NONSENSE, A_READ, 0, 0, 0, {.type = ATOMIC_REPLY}},
    {"reply to an atomic", NONSENSE, AN_ATOMIC, 0, 0, 8, {.type = READ_REPLY, .length = 8}},
    {"result of atomic 1", NONSENSE, AN_ATOMIC, 0, 0, 0, {.type = ATOMIC_REPLY, .seq = 1}},
    {"result with a key", NONSENSE, AN_ATOMIC, 0, 0, 0, {.type = ATOMIC_REPLY, .rkey = 1}},
    {"result of 8 bytes", NONSENSE, AN_ATOMIC, 0, 0, 8, {.type = ATOMIC_REPLY, .length = 8}},
    {"result, not acknowledged", MASK(PEER_LOST), AN_ATOMIC, 1, 0, 0, {.type = ATOMIC_REPLY}},
    {"ack of an open atomic", NONSENSE, AN_ATOMIC, 0, 0, 0, {.type = ACK, .ack = 1}},
    /* Probes. */
    {"probe with a flag", NONSENSE, 0, 0, 0, 0, {.type = PROBE, .flags = PROMPT}},
    {"probe with a key", NONSENSE, 0, 0, 0, 0, {.type = PROBE, .rkey = 1}},
    {"probe with length", NONSENSE, 0, 0, 0, 8, {.type = PROBE, .length = 8}},
    {"probe, and the end", MASK(PEER_LOST), 0, 1, 0, 0, {.type = PROBE, .seq = 5}},
    {"echo of nothing", NONSENSE, 0, 0, 0, 0, {.type = ECHO}},
    {"echo of probe 1", NONSENSE, 0, 0, 0, 0, {.type = ECHO, .seq = 1}},
    {"refusal of an atomic", MASK(ACCESS), AN_ATOMIC, 0, 0, 0, {.type = NAK, .status = 10}},
    {"repeat of nothing", NONSENSE, 0, 0, 0, 0, {.type = REPEAT}},
    /* Messages that are announced to a pool. */
    {"want without a pool", NONSENSE, 0, 0, 0, 0, {.type = WANT, .seq = 1}},
    {"want of nothing", NONSENSE, 0, 0, 0, 0, {.type = WANT}},
    {"want with a flag", NONSENSE, 0, 0, 0, 0, {.type = WANT, .seq = 1, .flags = PROMPT}},
    {"want with length", NONSENSE, 0, 0, 0, 8, {.type = WANT, .seq = 1, .length = 8}},
    /* Farewells. */
    {"farewell", MASK(PEER_LOST), 0, 0, 0, 0, {.type = FAREWELL, .status = 1}},
    {"farewell, and the end", MASK(PEER_LOST), 0, 1, 0, 0, {.type = FAREWELL, .status = 1}},
    {"farewell amid a read", MASK(PEER_LOST), A_READ, 0, 0, 0, {.type = FAREWELL, .status = 3}},
    {"farewell, and more", MASK(PEER_LOST), 0, 0, 0, 8, {.type = FAREWELL, .status = 2}},
    {"farewell of later times", MASK(PEER_LOST), 0, 0, 0, 0, {.type = FAREWELL, .status = 255}},
    {"farewell without a reason", NONSENSE, 0, 0, 0, 0, {.type = FAREWELL}},
    {"farewell with a flag", NONSENSE, 0, 0, 0, 0, {.type = FAREWELL, .status = 1, .flags = 2}},
    {"farewell with seq", NONSENSE, 0, 0, 0, 0, {.type = FAREWELL, .status = 1, .seq = 1}},
    {"farewell with length", NONSENSE, 0, 0, 0, 8, {.type = FAREWELL, .status = 1, .length = 8}},
    {"farewell that acknowledges", NONSENSE, 0, 0, 0, 0, {.type = FAREWELL, .status = 1, .ack = 1}},
};

static void aim(const struct victim *victim, enum where where, struct frame *frame)
{
    if (where == NOWHERE) {
        return;
    }
    frame->rkey = victim->remote.rkey;
    frame->addr = victim->remote.addr;
    switch (where) {
    case BEHIND:
        frame->addr += REGION;
        break;
    case ACROSS:
        frame->addr += REGION - 1;
        break;
    case WRAPPING:
        frame->addr = UINT64_MAX - 4;
        break;
    case AT_NULL:
        frame->addr = 0;
        break;
    case WRONG_KEY:
        frame->rkey ^= 0x5a5a5a5a;
        break;
    case SHIFTED:
        frame->addr += 4;
        break;
    case READ_ONLY:
        frame->rkey = victim->remote_read_only.rkey;
        frame->addr = victim->remote_read_only.addr;
        break;
    default:
        break;
    }
}

TEST(single_frames)
{
    struct victim victim;
    victim_open(&victim, 0xff);
    for (size_t i = 0; i < COUNT(attacks); i++) {
        const struct attack *attack = &attacks[i];
        struct frame frame = attack->frame;
        connect_hostile(&victim, attack->asked);
        aim(&victim, attack->where, &frame);
        say_frame(victim.fd, &frame, attack->payload);
        if (attack->close) {
            shutdown(victim.fd, SHUT_WR);
        }
        expect_untouched(&victim, attack->classes, attack->name);
    }
    victim_close(&victim);
}

/* A probe is answered even while the victim's program is busy elsewhere. */
TEST(probes_are_answered)
{
    struct victim victim;
    uint8_t bytes[40];
    victim_open(&victim, 0xff);
    connect_hostile(&victim, A_READ);
    for (uint32_t i = 0; i < 200; i++) {
        struct frame probe = {.type = PROBE, .seq = i << 24};
        say_frame(victim.fd, &probe, 0);
        do {
            require(hear(victim.fd, bytes, sizeof(bytes)), "no echo: %s", strerror(errno));
        } while (bytes[0] != ECHO);
        require(bytes[8] == (uint8_t)i, "echo of %u, not %u", bytes[8], i);
    }
    /* Many at a time count as one. */
    for (uint32_t i = 0; i < 1000; i++) {
        struct frame probe = {.type = PROBE, .seq = 1 + i % 2};
        say_frame(victim.fd, &probe, 0);
    }
    shutdown(victim.fd, SHUT_WR);
    expect_untouched(&victim, MASK(PEER_LOST), "probes");
    victim_close(&victim);
}

/* A probe of the victim must be answered with the right number, and once. */
TEST(answers_to_probes)
{
    struct victim victim;
    uint8_t bytes[40];
    victim_open(&victim, 0xff);
    for (int wrong = 0; wrong < 3; wrong++) {
        struct sluice_multichannel *hub = victim.star.hub;
        connect_hostile(&victim, NOTHING);
        require_result(sluice_multichannel_peer_wait_connected(hub, 0, SLUICE_MS(20)), -ETIMEDOUT);
        do {
            require(hear(victim.fd, bytes, sizeof(bytes)), "no probe: %s", strerror(errno));
        } while (bytes[0] != PROBE);
        struct frame echo = {.type = ECHO, .seq = bytes[11] + (wrong == 0)};
        say_frame(victim.fd, &echo, 0);
        if (wrong > 0) {
            require_ok(sluice_multichannel_peer_wait_connected(hub, 0, DEADLINE));
        }
        if (wrong == 1) {
            say_frame(victim.fd, &echo, 0);
        } else if (wrong == 2) {
            shutdown(victim.fd, SHUT_WR);
        }
        expect_untouched(&victim, wrong < 2 ? NONSENSE : MASK(PEER_LOST), "answers");
    }
    victim_close(&victim);
}

/* A refused request is answered with the refusal before the connection ends. */
TEST(refusals_are_answered)
{
    struct victim victim;
    uint8_t bytes[40];
    victim_open(&victim, 0xff);
    static const struct frame frames[] = {
        {.type = WRITE, .length = 8}, {.type = READ_REQUEST, .length = 8}, {SWAP}};
    for (size_t i = 0; i < COUNT(frames); i++) {
        struct frame frame = frames[i];
        connect_hostile(&victim, NOTHING);
        aim(&victim, WRONG_KEY, &frame);
        say_frame(victim.fd, &frame, frame.type == READ_REQUEST ? 0 : (size_t)frame.length);
        do {
            require(hear(victim.fd, bytes, sizeof(bytes)), "no refusal: %s", strerror(errno));
        } while (bytes[0] == ACK);
        require(bytes[0] == NAK && bytes[2] == SLUICE_STATUS_REM_ACCESS_ERR, "type %u, status %u",
                bytes[0], bytes[2]);
        expect_untouched(&victim, REFUSED, "refusal");
    }
    victim_close(&victim);
}

/* A legal write of 8 bytes, or compare-swap, with one bit of its header flipped. */
TEST(flipped_headers, .times = 2)
{
    struct victim victim;
    victim_open(&victim, 0xff);
    for (int bit = 0; bit < 40 * 8; bit += short_run() ? 7 : 1) {
        char name[40];
        uint8_t bytes[40 + 16];
        struct frame frame = {.type = WRITE, .length = 8};
        if (_i == 1) {
            frame = (struct frame){SWAP};
        }
        size_t length = 40 + (size_t)frame.length;
        snprintf(name, sizeof(name), "bit %d of byte %d", bit % 8, bit / 8);
        connect_hostile(&victim, NOTHING);
        aim(&victim, INSIDE, &frame);
        encode_frame(&frame, bytes);
        memset(bytes + 40, FILL, length - 40); /* where it is legal, nothing changes */
        bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
        say(victim.fd, bytes, length);
        shutdown(victim.fd, SHUT_WR);
        expect_failure(&victim, ENDED | MASK(ACCESS) | MASK(TRUNCATED), name);
        value_check(victim.region.bytes, REGION, FILL);
    }
    star_works(&victim.star, 1);
    victim_close(&victim);
}

/* Several frames that are valid each, but not together. */
TEST(sequences)
{
    struct victim victim;
    victim_open(&victim, 0xff);

    struct frame first = {.type = SEND, .length = 8};
    struct frame second = {.type = SEND, .seq = 1, .length = 8};
    connect_hostile(&victim, NOTHING);
    say_frame(victim.fd, &first, 8);
    /* As many messages are spilled. */
    for (uint32_t i = 0; i < 17; i++, second.seq++)
        say_frame(victim.fd, &second, 8);
    expect_untouched(&victim, ENDED, "more sends without credit than are set aside");

    connect_hostile(&victim, NOTHING);
    second = (struct frame){.type = SEND, .seq = 1, .length = EARLY_BYTES + 1};
    say_frame(victim.fd, &first, 8);
    say_frame(victim.fd, &second, EARLY_BYTES + 1);
    expect_untouched(&victim, ENDED, "a longer send without credit");

    connect_hostile(&victim, NOTHING);
    second.length = 8;
    say_frame(victim.fd, &first, 8);
    say_frame(victim.fd, &second, 8);
    second = (struct frame){.type = WRITE, .seq = 2, .length = 8};
    aim(&victim, INSIDE, &second);
    say_frame(victim.fd, &second, 8);
    expect_untouched(&victim, ENDED, "a write behind a send that is set aside");

    connect_hostile(&victim, NOTHING);
    second.seq = 1;
    second.type = WRITE;
    second.flags = IMMEDIATE;
    aim(&victim, INSIDE, &second);
    say_frame(victim.fd, &first, 8);
    say_frame(victim.fd, &second, 8);
    expect_untouched(&victim, ENDED, "a write with immediate without credit");

    connect_hostile(&victim, NOTHING);
    struct frame ack = {.type = ACK, .credit = 5};
    say_frame(victim.fd, &ack, 0);
    ack.credit = 4;
    say_frame(victim.fd, &ack, 0);
    expect_untouched(&victim, ENDED, "credit that goes back");

    connect_hostile(&victim, A_READ);
    struct frame reply = {.type = READ_REPLY, .length = LANDING};
    say_frame(victim.fd, &reply, LANDING);
    say_frame(victim.fd, &reply, LANDING);
    expect_untouched(&victim, ENDED, "two replies to one read");

    /* Sent in one piece, so that all are there before the first is answered. */
    uint8_t bytes[64 * 40];
    connect_hostile(&victim, NOTHING);
    for (uint32_t i = 0; i < 64; i++) {
        struct frame read = {.type = READ_REQUEST, .seq = i, .length = REGION};
        aim(&victim, INSIDE, &read);
        encode_frame(&read, bytes + (size_t)i * 40);
    }
    say(victim.fd, bytes, sizeof(bytes));
    expect_untouched(&victim, ENDED, "more reads than agreed");
    victim_close(&victim);
}

/* The same of atomic operations. */
TEST(sequences_of_atomics)
{
    struct victim victim;
    uint8_t bytes[64 * 56] = {0};
    struct frame result = {.type = ATOMIC_REPLY};
    victim_open(&victim, 0xff);

    connect_hostile(&victim, AN_ATOMIC);
    say_frame(victim.fd, &result, 0);
    say_frame(victim.fd, &result, 0);
    expect_untouched(&victim, ENDED, "two results of one atomic");

    connect_hostile(&victim, AN_ATOMIC);
    say_frame(victim.fd, &result, 0);
    result.type = NAK;
    result.status = SLUICE_STATUS_REM_ACCESS_ERR;
    say_frame(victim.fd, &result, 0);
    expect_untouched(&victim, MASK(ACCESS), "a result, and a refusal");

    connect_hostile(&victim, NOTHING);
    for (uint32_t i = 0; i < 64; i++) {
        struct frame add = {.type = FETCH_ADD, .seq = i, .length = 16};
        aim(&victim, INSIDE, &add);
        encode_frame(&add, bytes + (size_t)i * 56);
    }
    say(victim.fd, bytes, sizeof(bytes));
    expect_untouched(&victim, ENDED, "more atomics than agreed");
    victim_close(&victim);
}

/* A valid one, byte after byte: it is executed when it is complete, and answered. */
TEST(trickle_of_an_atomic)
{
    struct victim victim;
    uint8_t bytes[56];
    struct frame swap = {SWAP};
    victim_open(&victim, 0xff);
    connect_hostile(&victim, NOTHING);
    aim(&victim, INSIDE, &swap);
    encode_frame(&swap, bytes);
    memset(bytes + 40, FILL, 8);
    memset(bytes + 48, 0x11, 8);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        value_check(victim.region.bytes, REGION, FILL);
        say(victim.fd, &bytes[i], 1);
        let_pass(SLUICE_MS(1));
    }
    do {
        require(hear(victim.fd, bytes, 40), "no result: %s", strerror(errno));
    } while (bytes[0] == ACK);
    require(bytes[0] == ATOMIC_REPLY, "type %u", bytes[0]);
    value_check(bytes + 24, 8, FILL);
    value_check(victim.region.bytes, 8, 0x11);
    memset(victim.region.bytes, FILL, 8);
    shutdown(victim.fd, SHUT_WR);
    expect_untouched(&victim, ENDED, "an honest swap");
    victim_close(&victim);
}

/* Byte after byte; meanwhile the others work. */
TEST(trickle)
{
    struct victim victim;
    uint8_t bytes[40 + LANDING];
    struct frame frame = {.type = SEND, .length = LANDING};
    victim_open(&victim, 0xff);
    connect_hostile(&victim, NOTHING);
    encode_frame(&frame, bytes);
    memset(bytes + 40, 0xee, LANDING);
    for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
        say(victim.fd, &bytes[i], 1);
        if (i % 8 == 0) {
            star_works(&victim.star, 1);
        }
        let_pass(SLUICE_MS(1));
    }
    require_result(sluice_multichannel_peer_state(victim.star.hub, 0), SLUICE_STATE_READY);
    shutdown(victim.fd, SHUT_WR);
    expect_untouched(&victim, ENDED, "trickle");
    victim_close(&victim);
}

/* A message begins before its receive is posted, and ends after that. */
TEST(receive_during_an_early_message)
{
    struct victim victim;
    struct memory to;
    struct sluice_handle handle;
    struct sluice_completion done;
    uint8_t bytes[40 + EARLY_BYTES];
    struct frame frame = {.type = SEND, .length = 8};
    victim_open(&victim, 0xff);
    memory_open(&to, victim.star.sides.pds[0], EARLY_BYTES);
    for (uint32_t cut = 39; cut < sizeof(bytes); cut += 1011) {
        connect_hostile(&victim, NOTHING);
        frame.seq = 0;
        frame.length = 8;
        say_frame(victim.fd, &frame, 8);
        frame.seq = 1;
        frame.length = EARLY_BYTES;
        encode_frame(&frame, bytes);
        for (uint32_t i = 0; i < EARLY_BYTES; i++)
            bytes[40 + i] = (uint8_t)(i * 7 + cut);
        say(victim.fd, bytes, cut);
        require_ok(sluice_multichannel_wait(victim.star.hub, &victim.handles[0], DEADLINE, &done));
        star_works(&victim.star, 1);
        struct sluice_sge sge = memory_sge(&to, 0, EARLY_BYTES);
        require_ok(
            sluice_multichannel_post_receive(victim.star.hub, 0, &sge, 1, SLUICE_FOREVER, &handle));
        star_works(&victim.star, 1);
        require_result(sluice_multichannel_wait(victim.star.hub, &handle, 0, &done), -ETIMEDOUT);
        say(victim.fd, bytes + cut, sizeof(bytes) - cut);
        require_ok(sluice_multichannel_wait(victim.star.hub, &handle, DEADLINE, &done));
        require(done.error == 0 && done.bytes == EARLY_BYTES, "%u: %d, %llu bytes", cut, done.error,
                (unsigned long long)done.bytes);
        require(memcmp(to.bytes, bytes + 40, EARLY_BYTES) == 0, "%u", cut);
        shutdown(victim.fd, SHUT_WR);
        expect_untouched(&victim, ENDED, "an honest message");
    }
    memory_close(&to);
    victim_close(&victim);
}

static uint32_t pick(unsigned *seed, uint32_t bound)
{
    return (uint32_t)rand_r(seed) % bound;
}

/* Makes an almost right frame: every field is likely to have a meaningful value. */
static size_t make_frame(const struct victim *victim, unsigned *seed, uint8_t *bytes)
{
    struct frame frame = {.type = (uint8_t)(1 + pick(seed, LAST_TYPE)),
                          .length = pick(seed, REGION)};
    bool atomic = frame.type == COMPARE_SWAP || frame.type == FETCH_ADD;
    frame.flags = (uint8_t)(pick(seed, 4) == 0 ? pick(seed, 4) : 0);
    frame.seq = frame.type == ACK ? 0 : pick(seed, 3);
    frame.ack = pick(seed, 4) == 0 ? pick(seed, 3) : 0;
    frame.credit = pick(seed, 3);
    if (frame.type == NAK) {
        frame.status = (uint8_t)(9 + pick(seed, 3));
    }
    if (frame.type == WRITE || frame.type == READ_REQUEST || atomic) {
        aim(victim, INSIDE + pick(seed, 3), &frame);
        frame.addr += pick(seed, 8);
    }
    if (atomic) {
        frame.addr -= pick(seed, 4) != 0 ? frame.addr % 8 : 0;
        frame.length = 16;
    }
    if (frame.type == ACK || frame.type == NAK || frame.type >= ATOMIC_REPLY) {
        frame.length = 0;
    }
    if (frame.type == READ_REPLY) {
        frame.length = LANDING;
    }
    encode_frame(&frame, bytes);
    size_t payload = frame.type == READ_REQUEST ? 0 : (size_t)frame.length;
    /* Stores the present value, or adds 0. */
    memset(bytes + 40, frame.type == FETCH_ADD ? 0 : FILL, payload);
    return 40 + payload;
}

TEST(random_bytes)
{
    struct victim victim;
    unsigned seed = 20240817;
    victim_open(&victim, 0xff);
    for (int i = 0; i < (short_run() ? 40 : 400); i++) {
        uint8_t bytes[4096];
        char name[40];
        size_t length = 0;
        snprintf(name, sizeof(name), "random bytes %d", i);
        connect_hostile(&victim, (enum asked)(i % 3));
        for (uint32_t frames = 1 + pick(&seed, 8); i % 4 != 0 && frames > 0; frames--) {
            length += make_frame(&victim, &seed, bytes + length);
        }
        for (uint32_t more = i % 4 == 0 ? 1 + pick(&seed, 2000) : 0; more > 0; more--) {
            bytes[length++] = (uint8_t)(rand_r(&seed) >> 7);
        }
        say(victim.fd, bytes, length);
        shutdown(victim.fd, SHUT_WR);
        expect_failure(&victim, ENDED | MASK(ACCESS) | MASK(TRUNCATED), name);
        value_check(victim.region.bytes, REGION, FILL);
    }
    star_works(&victim.star, 1);
    victim_close(&victim);
}

int main(void)
{
    return RUN_ON_SOFT("hostile", {"tcp", WIRE_TCP, 60});
}
