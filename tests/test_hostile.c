/* SPDX-License-Identifier: MIT */
/*
 * A hostile peer on the soft transport's TCP wire. Whatever it says after a
 * right hello, the victim's channel fails cleanly, no memory changes but what
 * it was entitled to write, and the others work on.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/group.h"
#include "support/hostile.h"
#include "support/process.h"

/* Frames. Where a request points. */
enum where { NOWHERE, INSIDE, BEHIND, ACROSS, WRAPPING, AT_NULL, WRONG_KEY, READ_ONLY };

struct attack {
    const char *name;
    unsigned classes;
    bool reads; /* with a read of ours under way, of LANDING bytes, number 0 */
    bool close; /* the stream ends behind it */
    enum where where;
    size_t payload;
    struct frame frame;
};

/* To whom it was done, a refused access looks like the loss of the peer. */
#define REFUSED MASK(PEER_LOST)
#define NONSENSE MASK(PROTOCOL)

static const struct attack attacks[] = {
    {"type 0", NONSENSE, 0, 0, 0, 0, {.type = 0}},
    {"type 7", NONSENSE, 0, 0, 0, 0, {.type = 7}},
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
    case READ_ONLY:
        frame->rkey = victim->remote_read_only.rkey;
        frame->addr = victim->remote_read_only.addr;
        break;
    default:
        break;
    }
}

START_TEST(single_frames)
{
    struct victim victim;
    victim_open(&victim, 0xff);
    for (size_t i = 0; i < COUNT(attacks); i++) {
        const struct attack *attack = &attacks[i];
        struct frame frame = attack->frame;
        connect_hostile(&victim, attack->reads);
        aim(&victim, attack->where, &frame);
        say_frame(victim.fd, &frame, attack->payload);
        if (attack->close) {
            shutdown(victim.fd, SHUT_WR);
        }
        expect_untouched(&victim, attack->classes, attack->name);
    }
    victim_close(&victim);
}
END_TEST

/* What is refused is answered so, before the end. */
START_TEST(refusals_are_told)
{
    struct victim victim;
    uint8_t bytes[40];
    victim_open(&victim, 0xff);
    for (int i = 0; i < 2; i++) {
        struct frame frame = {.type = i == 0 ? WRITE : READ_REQUEST, .length = 8};
        connect_hostile(&victim, false);
        aim(&victim, WRONG_KEY, &frame);
        say_frame(victim.fd, &frame, i == 0 ? 8 : 0);
        do {
            require(hear(victim.fd, bytes, sizeof(bytes)), "no refusal: %s", strerror(errno));
        } while (bytes[0] == ACK);
        require(bytes[0] == NAK && bytes[2] == SLUICE_STATUS_REM_ACCESS_ERR, "type %u, status %u",
                bytes[0], bytes[2]);
        expect_untouched(&victim, REFUSED, "refusal");
    }
    victim_close(&victim);
}
END_TEST

/* A legal write of 8 bytes, with one bit of its header flipped. */
START_TEST(flipped_headers)
{
    struct victim victim;
    victim_open(&victim, 0xff);
    for (int bit = 0; bit < 40 * 8; bit += short_run() ? 7 : 1) {
        char name[40];
        uint8_t bytes[48];
        struct frame frame = {.type = WRITE, .length = 8};
        snprintf(name, sizeof(name), "bit %d of byte %d", bit % 8, bit / 8);
        connect_hostile(&victim, false);
        aim(&victim, INSIDE, &frame);
        encode_frame(&frame, bytes);
        memset(bytes + 40, FILL, 8); /* where it is legal, nothing changes */
        bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
        say(victim.fd, bytes, sizeof(bytes));
        shutdown(victim.fd, SHUT_WR);
        expect_failure(&victim, ENDED | MASK(ACCESS) | MASK(TRUNCATED), name);
        value_check(victim.region.bytes, REGION, FILL);
    }
    star_works(&victim.star, 1);
    victim_close(&victim);
}
END_TEST

/* Several frames that are legal each, but not together. */
START_TEST(sequences)
{
    struct victim victim;
    victim_open(&victim, 0xff);

    struct frame first = {.type = SEND, .length = 8};
    struct frame second = {.type = SEND, .seq = 1, .length = 8};
    connect_hostile(&victim, false);
    say_frame(victim.fd, &first, 8);
    say_frame(victim.fd, &second, 8);
    expect_untouched(&victim, ENDED, "a send without credit");

    connect_hostile(&victim, false);
    second.type = WRITE;
    second.flags = IMMEDIATE;
    aim(&victim, INSIDE, &second);
    say_frame(victim.fd, &first, 8);
    say_frame(victim.fd, &second, 8);
    expect_untouched(&victim, ENDED, "a write with immediate without credit");

    connect_hostile(&victim, false);
    struct frame ack = {.type = ACK, .credit = 5};
    say_frame(victim.fd, &ack, 0);
    ack.credit = 4;
    say_frame(victim.fd, &ack, 0);
    expect_untouched(&victim, ENDED, "credit that goes back");

    connect_hostile(&victim, true);
    struct frame reply = {.type = READ_REPLY, .length = LANDING};
    say_frame(victim.fd, &reply, LANDING);
    say_frame(victim.fd, &reply, LANDING);
    expect_untouched(&victim, ENDED, "two replies to one read");

    /* In one piece, so that they are there before the first is answered. */
    uint8_t bytes[64 * 40];
    connect_hostile(&victim, false);
    for (uint32_t i = 0; i < 64; i++) {
        struct frame read = {.type = READ_REQUEST, .seq = i, .length = REGION};
        aim(&victim, INSIDE, &read);
        encode_frame(&read, bytes + (size_t)i * 40);
    }
    say(victim.fd, bytes, sizeof(bytes));
    expect_untouched(&victim, ENDED, "more reads than agreed");
    victim_close(&victim);
}
END_TEST

/* Byte after byte; meanwhile the others work. */
START_TEST(trickle)
{
    struct victim victim;
    uint8_t bytes[40 + LANDING];
    struct frame frame = {.type = SEND, .length = LANDING};
    victim_open(&victim, 0xff);
    connect_hostile(&victim, false);
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
END_TEST

static uint32_t pick(unsigned *seed, uint32_t bound)
{
    return (uint32_t)rand_r(seed) % bound;
}

/* Almost right: every field is likely to have a value that means something. */
static size_t make_frame(const struct victim *victim, unsigned *seed, uint8_t *bytes)
{
    struct frame frame = {.type = (uint8_t)(1 + pick(seed, 6)), .length = pick(seed, REGION)};
    frame.flags = (uint8_t)(pick(seed, 4) == 0 ? pick(seed, 4) : 0);
    frame.seq = frame.type == ACK ? 0 : pick(seed, 3);
    frame.ack = pick(seed, 4) == 0 ? pick(seed, 3) : 0;
    frame.credit = pick(seed, 3);
    if (frame.type == NAK) {
        frame.status = (uint8_t)(9 + pick(seed, 3));
    }
    if (frame.type == WRITE || frame.type == READ_REQUEST) {
        aim(victim, INSIDE + pick(seed, 3), &frame);
        frame.addr += pick(seed, 8);
    }
    if (frame.type == ACK || frame.type == NAK) {
        frame.length = 0;
    }
    if (frame.type == READ_REPLY) {
        frame.length = LANDING;
    }
    encode_frame(&frame, bytes);
    size_t payload = frame.type == READ_REQUEST ? 0 : (size_t)frame.length;
    memset(bytes + 40, FILL, payload);
    return 40 + payload;
}

START_TEST(random_bytes)
{
    struct victim victim;
    unsigned seed = 20240817;
    victim_open(&victim, 0xff);
    for (int i = 0; i < (short_run() ? 40 : 400); i++) {
        uint8_t bytes[4096];
        char name[40];
        size_t length = 0;
        snprintf(name, sizeof(name), "random bytes %d", i);
        connect_hostile(&victim, i % 3 == 0);
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
END_TEST

/* The victim connects to us, and we are no polite host. */
START_TEST(hostile_listener)
{
    static const struct {
        const char *text;
        size_t length;
    } answers[] = {
        {"", 0},
        {"S", 1},
        {"HTTP/1.1 400 Bad Request\r\n\r\n", 28},
        {"sluice\0\1\0\0\0\115\0\0\0\0", 16},
        {"SLUICE\0\2\0\0\0\115\0\0\0\0", 16},
        {"SLUICE\0\1\0\0\0\116\0\0\0\0", 16},
        {"SLUICE\0\1\0\0\0\0\0\0\0\0", 16},
        {"SLUICE\0\1\0\0\0\115\0\0\0\1", 16},
        {"SLUICE\0\1\0\0\0\115\0\0\0\0\377garbage in the place of a frame......", 53},
    };
    struct victim victim;
    victim_open(&victim, 0);
    for (size_t i = 0; i < COUNT(answers); i++) {
        int64_t start = clock_now();
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
        require_ok(sluice_multichannel_peer_reset(victim.star.hub, 0, &victim.endpoint));
        require_ok(sluice_multichannel_peer_handshake(victim.star.hub, 0, &victim.forged));
        victim.posted = 1;
        require_ok(
            sluice_multichannel_post(victim.star.hub, &receive, 1, DEADLINE, &victim.handles[0]));
        while (sluice_multichannel_peer_state(victim.star.hub, 0) != SLUICE_STATE_FAILED) {
            struct pollfd waiting = {.fd = victim.listener, .events = POLLIN};
            require(clock_now() - start < SLUICE_S(5), "answer %zu: no failure", i);
            if (poll(&waiting, 1, 1) > 0) {
                uint8_t hello[64];
                int fd = accept(victim.listener, NULL, NULL);
                require(hear(fd, hello, 64), "no hello: %s", strerror(errno));
                say(fd, answers[i].text, answers[i].length);
                close(fd);
            }
        }
        expect_untouched(&victim, ENDED, "listener");
    }
    victim_close(&victim);
}
END_TEST

/* What knocks at a listener before, and instead of, a right hello. */
START_TEST(garbage_at_the_listener)
{
    struct victim victim;
    struct sluice_endpoint endpoint;
    uint8_t hello[64];
    int scan[200];
    victim_open(&victim, 0xff);
    struct sluice_prepared_channel *prepared =
        prepare_channel(victim.star.sides.pds[0], NULL, &endpoint);
    encode_hello(hello, &endpoint, &victim.forged);
    for (int i = 0; i < 7; i++) {
        static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
                                            "\26\3\1\2\0\1\0\1\374\3\3 a client hello of TLS", "s"};
        uint8_t bad[64];
        char answer;
        int fd = dial(&endpoint);
        memcpy(bad, hello, sizeof(bad));
        bad[i == 3 ? 20 : i == 4 ? 7 : i == 5 ? 8 : 63] ^= 1; /* nonce, magic, number, tail */
        say(fd, i < 3 ? (const void *)texts[i] : bad, i < 3 ? strlen(texts[i]) : sizeof(bad));
        if (i == 2) {
            shutdown(fd, SHUT_WR);
        }
        ssize_t got = recv(fd, &answer, 1, 0);
        require(got == 0 || (got < 0 && errno == ECONNRESET), "it answers garbage %d: %s", i,
                strerror(errno));
        close(fd);
    }
    int64_t cpu = cpu_used();
    for (size_t i = 0; i < COUNT(scan); i++) {
        scan[i] = dial(&endpoint);
    }
    int64_t start = clock_now();
    struct pair pair = {.sides = victim.star.sides};
    for (int i = 0; i < 6; i++) { /* which of them connects is a matter of chance */
        pair_connect(&pair, NULL);
        pair_works(&pair);
        sluice_channel_close(pair.channels[0]);
        sluice_channel_close(pair.channels[1]);
    }
    require(clock_now() - start < SLUICE_S(5), "a good peer had to wait for %lld ms",
            (long long)(clock_now() - start) / 1000000);
    require(cpu_used() - cpu < SLUICE_S(1), "%lld ms of CPU",
            (long long)(cpu_used() - cpu) / 1000000);
    for (size_t i = 0; i < COUNT(scan); i++) {
        close(scan[i]);
    }
    sluice_prepared_channel_free(prepared);
    star_works(&victim.star, 1);
    victim_close(&victim);
}
END_TEST

/* One large access, in a thread of its own. */
struct access {
    struct sluice_channel *channel;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    bool write;
    int result;
};

static void *run_access(void *argument)
{
    struct access *access = argument;
    access->result =
        access->write
            ? sluice_channel_write(access->channel, &access->sge, 1, &access->remote, DEADLINE)
            : sluice_channel_read(access->channel, &access->sge, 1, &access->remote, DEADLINE);
    return NULL;
}

/*
 * The target takes its memory away after so long, and has other use for the
 * addresses at once, which nobody disturbs.
 */
static void withdraw(struct access *access, struct sluice_pd *pd, size_t length, int64_t delay)
{
    pthread_t thread;
    int protection = PROT_READ | PROT_WRITE;
    void *bytes = mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(bytes != MAP_FAILED, "%s", strerror(errno));
    memset(bytes, 1, length);
    struct sluice_mr *mr = sluice_mr_register(pd, bytes, length, ACCESS_ALL);
    require(mr, "%s", sluice_last_error());
    require_ok(sluice_mr_remote(mr, &access->remote));
    require(pthread_create(&thread, NULL, run_access, access) == 0, "%zu bytes", length);
    let_pass(delay);
    require_ok(sluice_mr_deregister(mr));
    munmap(bytes, length);
    void *again =
        mmap(bytes, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    pthread_join(thread, NULL);
    require(access->result == 0 || access->result == -EACCES, "%d", access->result);
    if (again == bytes) {
        value_check(bytes, length, 0);
        munmap(bytes, length);
    }
}

START_TEST(withdrawn_memory)
{
    struct pair pair;
    struct memory memory;
    size_t length = (size_t)(short_run() ? 8 : 64) << 20;
    int rounds = short_run() ? 6 : 24;
    int refused = 0;
    sides_open(&pair.sides);
    memory_open(&memory, pair.sides.pds[0], length);
    memset(memory.bytes, 0xee, length);
    for (int i = 0; i < rounds; i++) {
        struct access access = {.sge = memory_sge(&memory, 0, length), .write = i % 2 != 0};
        pair_connect(&pair, NULL);
        access.channel = pair.channels[0];
        withdraw(&access, pair.sides.pds[1], length, SLUICE_MS(2) * i);
        refused += access.result != 0;
        sluice_channel_close(pair.channels[0]);
        sluice_channel_close(pair.channels[1]);
    }
    /* Within a process a copy is not interrupted: deregistering waits for it. */
    require(refused > 0 || current_wire() == WIRE_SELF, "of %d", rounds);
    memory_close(&memory);
    sides_close(&pair.sides);
}
END_TEST

static void allow_fds(rlim_t count)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = count;
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
}

/* A peer without descriptors, its end first or last: it does not spin, and goes on with them. */
static void starve(struct rank *rank)
{
    for (int i = 0; i < 4; i++) { /* who connects is a matter of chance */
        struct sluice_endpoint endpoints[2];
        struct sluice_channel *channel = NULL;
        struct sluice_context *context = open_context();
        struct sluice_pd *pd = sluice_pd_alloc(context);
        struct sluice_prepared_channel *prepared = prepare_channel(pd, NULL, &endpoints[0]);
        endpoints[1] = endpoints[0];
        rank_exchange(rank, endpoints, endpoints, sizeof(endpoints[0]));
        rank_barrier(rank);
        bool starving = rank->index == 0;
        if (starving) {
            allow_fds(3);
        }
        if (starving || i < 2) {
            channel = sluice_prepared_channel_handshake(prepared, &endpoints[!rank->index]);
            require(channel || (starving && errno == EMFILE), "%s", sluice_last_error());
        }
        rank_barrier(rank);
        if (!starving && i >= 2) {
            channel = sluice_prepared_channel_handshake(prepared, &endpoints[0]);
            require(channel, "%s", sluice_last_error());
        }
        int64_t cpu = cpu_used();
        let_pass(SLUICE_S(1));
        require(cpu_used() - cpu < SLUICE_MS(50), "%lld us of CPU in a second",
                (long long)(cpu_used() - cpu) / 1000);
        if (starving) {
            allow_fds(1024);
        }
        bool lives = channel != NULL;
        bool both[2] = {lives, lives};
        rank_exchange(rank, both, both, sizeof(both[0]));
        if (lives) {
            int result = rank->index == 0 ? sluice_channel_receive(channel, NULL, 0, DEADLINE, NULL)
                                          : sluice_channel_send(channel, NULL, 0, DEADLINE);
            require_result(result, both[!rank->index] ? 0 : -ECONNRESET);
        }
        rank_barrier(rank);
        sluice_channel_close(channel);
        sluice_pd_free(pd);
        sluice_context_close(context);
    }
}

START_TEST(no_fd_for_a_peer)
{
    group_run(2, starve, NULL, 50);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, single_frames);
    tcase_add_test(tcase, refusals_are_told);
    tcase_add_test(tcase, flipped_headers);
    tcase_add_test(tcase, sequences);
    tcase_add_test(tcase, trickle);
    tcase_add_test(tcase, random_bytes);
    tcase_add_test(tcase, hostile_listener);
    tcase_add_test(tcase, garbage_at_the_listener);
    tcase_add_test(tcase, withdrawn_memory);
    tcase_add_test(tcase, no_fd_for_a_peer);
}

static void add_withdrawal(TCase *tcase)
{
    tcase_add_test(tcase, withdrawn_memory);
}

int main(void)
{
    static const struct cases cases[] = {
        {"tcp", WIRE_TCP, 60, add_tests},
        {"self", WIRE_SELF, 60, add_withdrawal},
    };
    if (!device_is_soft()) {
        puts("1..0 # SKIP the wire is that of the soft transport");
        return EXIT_SUCCESS;
    }
    return run_cases("hostile", cases, COUNT(cases));
}
