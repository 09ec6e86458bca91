/* SPDX-License-Identifier: MIT */
/*
 * A hostile peer that lends, and to which is lent: wherever it claims its message to be, and
 * however often it asks for one again, the victim reads no memory but that peer's, writes only its
 * receive, and goes on, or fails with "protocol".
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../support/fault.h"
#include "../support/near.h"

#define SIZE ((uint32_t)65536)
#define SECRET_BYTES 65536
#define MOST_PIECES 40
#define KERNEL UINT64_C(0xffff888000000000)
#define NO_ADDRESS UINT64_C(0x8000000000000000) /* between the halves */

enum victim_does { RECEIVES, RECEIVES_NOTHING, SENDS, SENDS_LITTLE };

/* The victim, rank 0. */
struct scene {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct memory landing;
    struct memory little; /* of another receive */
    uint8_t *secret;      /* registered without rights for peers */
};

/* Where the message lies that the hostile peer lends. */
enum where { GOOD, UNMAPPED, HALF_MAPPED, PROTECTED, OF_VICTIM, AT };

struct attack {
    const char *name;
    unsigned classes;
    enum victim_does victim;
    void (*act)(struct near_peer *peer, const struct attack *attack, uint64_t secret);
    enum where where;
    uint64_t at;
    uint32_t pieces;
    uint32_t said;   /* number of pieces; 0: the true number */
    uint32_t piece;  /* bytes of each */
    uint64_t length; /* of the message */
    uint8_t type;    /* 0: a send */
    uint32_t seq;
};

/* The hostile peer, rank 1. */

static uint8_t *good, *hole;

static void make_places(void)
{
    good = mmap(NULL, 3 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hole = good + SIZE;
    require(good != MAP_FAILED && mprotect(good + 2 * SIZE, SIZE, PROT_NONE) == 0 &&
                munmap(hole, SIZE) == 0,
            "%s", strerror(errno));
    pattern_fill(good, SIZE, 1);
}

static uint64_t address_of(const struct attack *attack, uint64_t secret)
{
    switch (attack->where) {
    case UNMAPPED:
        return (uintptr_t)hole;
    case HALF_MAPPED:
        return (uintptr_t)hole - SIZE / 2;
    case PROTECTED:
        return (uintptr_t)hole + SIZE;
    case OF_VICTIM:
        return secret;
    case AT:
        return attack->at;
    default:
        return (uintptr_t)good;
    }
}

static void lend(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    struct sluice_sge list[MOST_PIECES] = {{0}};
    struct frame frame = {.type = attack->type ? attack->type : SEND,
                          .flags = LENT,
                          .seq = attack->seq,
                          .rkey = attack->said ? attack->said : attack->pieces,
                          .length = attack->length};
    uint64_t address = address_of(attack, secret);

    for (uint32_t i = 0; i < attack->pieces; i++) {
        list[i] = (struct sluice_sge){address, attack->piece, 0xffffffff};
        address += attack->piece;
    }
    near_say_frame(peer, &frame);
    near_say(peer, list, attack->pieces * sizeof list[0]);
}

/* Sends the message itself, as an honest peer does. */
static void send_whole(struct near_peer *peer)
{
    struct frame frame = {.type = SEND, .length = SIZE};

    near_say_frame(peer, &frame);
    near_say(peer, good, SIZE);
}

/* The victim reads the loan, asks for the message itself, or ends the connection. */
static void lend_once(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    struct frame frame;

    lend(peer, attack, secret);
    while (near_look(peer, 1) == NEAR_HEARD && near_hear_frame(peer, &frame)) {
        if (frame.type == REPEAT && frame.seq == 0)
            send_whole(peer);
    }
}

/* Lends again when asked for the message itself. */
static void lend_twice(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    struct frame frame;
    bool again = false;

    lend(peer, attack, secret);
    while (near_look(peer, 1) == NEAR_HEARD && near_hear_frame(peer, &frame)) {
        if (frame.type != REPEAT)
            continue;
        if (again)
            send_whole(peer);
        else
            lend(peer, attack, secret);
        again = true;
    }
}

static void lend_and_end(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    lend(peer, attack, secret);
    shutdown(peer->fd, SHUT_WR);
}

/* The victim must not take a message that may have been replaced, and waits for the reason. */
static void withdraw_twice(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    near_withdraw(peer, true);
    lend(peer, attack, secret);
    lend(peer, attack, secret);
    shutdown(peer->fd, SHUT_WR);
}

static void withdraw_and_send(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    near_withdraw(peer, true);
    lend(peer, attack, secret);
    lend(peer, attack, secret);
    send_whole(peer);
    require(near_look(peer, 1) != NEAR_HEARD, "%s: asked for more", attack->name);
}

/* Withdraws at any time. */
static void flicker(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    lend(peer, attack, secret);
    for (int i = 0; i < 20000; i++)
        near_withdraw(peer, i % 2 == 0);
    near_withdraw(peer, false);
    send_whole(peer);
    near_look(peer, 1);
}

/* Posts one receive, and takes the message that the victim sends into it. */
static void hear_send(struct near_peer *peer, struct frame *frame)
{
    struct frame credit = {.type = ACK, .credit = 1};

    near_want_loans(peer, true);
    near_say_frame(peer, &credit);
    do
        require(near_hear_frame(peer, frame), "%s", "the victim has ended");
    while (frame->type != SEND);
}

static void say_repeat(struct near_peer *peer, uint32_t seq, uint32_t ack)
{
    struct frame repeat = {.type = REPEAT, .seq = seq, .ack = ack, .credit = 1};

    near_say_frame(peer, &repeat);
}

static void repeat_nothing(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    (void)secret;
    say_repeat(peer, attack->seq, 0);
}

/* Asks again for a message that was not lent, but sent. */
static void repeat_what_is_here(struct near_peer *peer, const struct attack *attack,
                                uint64_t secret)
{
    struct frame credit = {.type = ACK, .credit = 1};

    (void)secret;
    near_say_frame(peer, &credit);
    require(near_look(peer, UINT32_MAX) == NEAR_HEARD, "%s: nothing was sent", attack->name);
    say_repeat(peer, attack->seq, 0);
}

static void hear_loan(struct near_peer *peer)
{
    struct sluice_sge list;
    struct frame frame;

    hear_send(peer, &frame);
    require(frame.flags & LENT && frame.rkey == 1 && frame.length == SIZE, "flags %u, %u pieces",
            frame.flags, frame.rkey);
    require(near_hear(peer, &list, sizeof list), "%s", "half a loan");
    require(list.length == SIZE, "%u bytes", list.length);
}

static void repeat_another(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    (void)secret;
    hear_loan(peer);
    say_repeat(peer, attack->seq, 0);
}

static void repeat_what_is_done(struct near_peer *peer, const struct attack *attack,
                                uint64_t secret)
{
    (void)secret;
    hear_loan(peer);
    say_repeat(peer, attack->seq, 1);
}

static void hear_whole(struct near_peer *peer)
{
    static uint8_t message[SIZE];
    struct frame frame;

    do
        require(near_hear_frame(peer, &frame), "%s", "the victim has ended");
    while (frame.type != SEND);
    require(frame.flags == 0 && frame.length == SIZE && frame.seq == 0, "flags %u, number %u",
            frame.flags, frame.seq);
    require(near_hear(peer, message, SIZE), "%s", "half a message");
    pattern_check(message, SIZE, 2);
}

static void repeat_once(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    struct frame done = {.type = ACK, .credit = 1, .ack = 1};

    (void)secret;
    hear_loan(peer);
    say_repeat(peer, attack->seq, 0);
    hear_whole(peer);
    near_say_frame(peer, &done);
}

static void repeat_twice(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    (void)secret;
    hear_loan(peer);
    say_repeat(peer, attack->seq, 0);
    say_repeat(peer, attack->seq, 0);
}

static void repeat_when_whole(struct near_peer *peer, const struct attack *attack, uint64_t secret)
{
    (void)secret;
    hear_loan(peer);
    say_repeat(peer, attack->seq, 0);
    hear_whole(peer);
    say_repeat(peer, attack->seq, 0);
}

#define ARRIVES MASK(NONE)
#define NONSENSE MASK(PROTOCOL)
#define ONE .pieces = 1, .piece = SIZE, .length = SIZE

static const struct attack attacks[] = {
    {"a good loan", ARRIVES, RECEIVES, lend_once, GOOD, ONE},
    {"in pieces", ARRIVES, RECEIVES, lend_once, GOOD, .pieces = 32, .piece = 2048, .length = SIZE},
    /* Loans of memory that is not there. */
    {"unmapped", ARRIVES, RECEIVES, lend_once, UNMAPPED, ONE},
    {"half mapped", ARRIVES, RECEIVES, lend_once, HALF_MAPPED, ONE},
    {"not readable", ARRIVES, RECEIVES, lend_once, PROTECTED, ONE},
    {"at 0", ARRIVES, RECEIVES, lend_once, AT, 0, ONE},
    {"at 1", ARRIVES, RECEIVES, lend_once, AT, 1, ONE},
    {"of the kernel", ARRIVES, RECEIVES, lend_once, AT, KERNEL, ONE},
    {"at no address", ARRIVES, RECEIVES, lend_once, AT, NO_ADDRESS, ONE},
    {"just before it", ARRIVES, RECEIVES, lend_once, AT, NO_ADDRESS / UINT64_C(65536) - 100, ONE},
    {"that wraps", ARRIVES, RECEIVES, lend_once, AT, UINT64_MAX - 100, ONE},
    {"at the end", ARRIVES, RECEIVES, lend_once, AT, UINT64_MAX, ONE},
    {"at the victim's address", ARRIVES, RECEIVES, lend_once, OF_VICTIM, ONE},
    {"twice unmapped", ARRIVES, RECEIVES, lend_twice, UNMAPPED, ONE},
    {"twice of the kernel", ARRIVES, RECEIVES, lend_twice, AT, KERNEL, ONE},
    {"unmapped, and the end", MASK(PEER_LOST) | ARRIVES, RECEIVES, lend_and_end, UNMAPPED, ONE},
    /* Loans that differ from the message. */
    {"a byte less", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 1, .piece = SIZE - 1,
     .length = SIZE},
    {"a byte more", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 1, .piece = SIZE + 1,
     .length = SIZE},
    {"pieces of nothing", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 32, .length = SIZE},
    {"pieces of 2^32 - 1", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 32, .piece = UINT32_MAX,
     .length = SIZE},
    {"pieces that add up to it in 32 bits", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 2,
     .piece = (UINT32_C(1) << 31) + SIZE / 2, .length = SIZE},
    {"no pieces", NONSENSE, RECEIVES, lend_once, GOOD, .length = SIZE},
    {"33 pieces", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 33, .piece = 2048,
     .length = (uint64_t)33 * 2048},
    {"2^32 - 1 pieces", NONSENSE, RECEIVES, lend_once, GOOD, ONE, .said = UINT32_MAX},
    {"2^28 + 1 pieces", NONSENSE, RECEIVES, lend_once, GOOD, ONE, .said = (1U << 28) + 1},
    {"nothing", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 1},
    {"a small message", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 1, .piece = 64,
     .length = 64},
    {"a byte less than is worth it", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 1,
     .piece = 32767, .length = 32767},
    {"more than the receive", MASK(TRUNCATED), RECEIVES, lend_once, GOOD, .pieces = 2,
     .piece = SIZE, .length = (uint64_t)2 * SIZE},
    {"2^31 bytes", MASK(TRUNCATED), RECEIVES, lend_once, GOOD, .pieces = 1,
     .piece = UINT32_C(1) << 31, .length = UINT64_C(1) << 31},
    {"2^31 + 1 bytes", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 1,
     .piece = (UINT32_C(1) << 31) + 1, .length = (UINT64_C(1) << 31) + 1},
    {"2^64 - 1 bytes", NONSENSE, RECEIVES, lend_once, GOOD, .pieces = 1, .piece = UINT32_MAX,
     .length = UINT64_MAX},
    {"a write", NONSENSE, RECEIVES, lend_once, GOOD, ONE, .type = WRITE},
    {"a reply", NONSENSE, RECEIVES, lend_once, GOOD, ONE, .type = READ_REPLY},
    {"number 1", NONSENSE, RECEIVES, lend_once, GOOD, ONE, .seq = 1},
    {"without a receive", NONSENSE, RECEIVES_NOTHING, lend_once, GOOD, ONE},
    {"half a list, and the end", MASK(PEER_LOST), RECEIVES, lend_and_end, GOOD, .pieces = 1,
     .piece = SIZE / 2, .length = SIZE, .said = 2},
    /* Withdrawn loans. */
    {"withdrawn twice", MASK(PEER_LOST), RECEIVES, withdraw_twice, GOOD, ONE},
    {"withdrawn, and sent", ARRIVES, RECEIVES, withdraw_and_send, GOOD, ONE},
    {"withdrawn and not", ARRIVES, RECEIVES, flicker, GOOD, ONE},
    /* Loans that are asked for again. */
    {"a loan, wanted again", ARRIVES, SENDS, repeat_once, GOOD, ONE},
    {"wanted twice", NONSENSE, SENDS, repeat_twice, GOOD, ONE},
    {"wanted when it is here", NONSENSE, SENDS, repeat_when_whole, GOOD, ONE},
    {"another one wanted", NONSENSE, SENDS, repeat_another, GOOD, ONE, .seq = 1},
    {"number -1 wanted", NONSENSE, SENDS, repeat_another, GOOD, ONE, .seq = UINT32_MAX},
    {"wanted and done", NONSENSE, SENDS, repeat_what_is_done, GOOD, ONE},
    {"nothing lent, wanted", NONSENSE, RECEIVES, repeat_nothing, GOOD, ONE},
    {"nothing lent, -1 wanted", NONSENSE, RECEIVES, repeat_nothing, GOOD, ONE, .seq = UINT32_MAX},
    {"what was sent, wanted", NONSENSE, SENDS_LITTLE, repeat_what_is_here, GOOD, ONE},
};

static void attack_once(struct rank *rank, struct near_peer *peer, const struct attack *attack)
{
    struct sluice_endpoint endpoints[2];
    uint64_t secrets[2] = {0, 0};

    near_renew(peer);
    endpoints[0] = endpoints[1] = peer->endpoint;
    rank_exchange(rank, endpoints, endpoints, sizeof endpoints[0]);
    rank_exchange(rank, secrets, secrets, sizeof secrets[0]);
    near_meet(peer, &endpoints[0]);
    attack->act(peer, attack, secrets[0]);
    rank_barrier(rank);
    near_part(peer);
}

/* The victim. */

static bool is_over(struct sluice_channel *channel, const struct attack *attack)
{
    return (attack->classes & ARRIVES) != 0 || sluice_channel_state(channel) == SLUICE_STATE_FAILED;
}

/* Requires that the request, or the channel, ended as the attack expects. */
static void check_end(struct sluice_channel *channel, struct sluice_handle handle,
                      const struct attack *attack)
{
    struct sluice_completion completion = {0};
    enum sluice_error_class class = SLUICE_CLASS_NONE;
    int64_t end = fair_now() + SLUICE_S(10);
    int result = sluice_channel_wait(channel, &handle, DEADLINE, &completion);

    require(result == 0, "%s: still pending", attack->name);
    while (!is_over(channel, attack)) {
        require(fair_now() < end, "%s: the channel does not fail", attack->name);
        let_pass(SLUICE_MS(1));
    }
    if (completion.status != SLUICE_STATUS_SUCCESS || (attack->classes & ARRIVES) == 0)
        class = channel_error(channel).error_class;
    require((attack->classes >> class & 1) != 0, "%s: class %d, status %u: %s", attack->name,
            (int)class, completion.status, channel_error(channel).text);
    require(class != SLUICE_CLASS_NONE || completion.bytes == SIZE, "%s: %llu bytes", attack->name,
            (unsigned long long)completion.bytes);
}

static bool sends(const struct attack *attack)
{
    return attack->victim == SENDS || attack->victim == SENDS_LITTLE;
}

static void check_memory(const struct scene *scene, const struct attack *attack)
{
    if (attack->where == OF_VICTIM)
        require(memcmp(scene->landing.bytes, scene->secret, SIZE) != 0, "%s: it did", attack->name);
    else if (!sends(attack) && attack->classes == ARRIVES)
        pattern_check(scene->landing.bytes, SIZE, 1);
    memory_check_guards(&scene->landing);
    memory_check_guards(&scene->little);
    value_check(scene->little.bytes, scene->little.length, FILL);
    pattern_check(scene->secret, SECRET_BYTES, 3);
}

static struct sluice_request begin(const struct scene *scene, const struct attack *attack,
                                   struct sluice_sge *sge)
{
    *sge = memory_sge(&scene->landing, 0, attack->victim == SENDS_LITTLE ? 64 : SIZE);
    if (sends(attack))
        pattern_fill(scene->landing.bytes, SIZE, 2);
    else
        memset(scene->landing.bytes, FILL, SIZE);
    return request_of(sends(attack) ? SLUICE_OP_SEND : SLUICE_OP_RECEIVE, 0, sge);
}

static void suffer(struct rank *rank, struct scene *scene, const struct attack *attack)
{
    struct sluice_endpoint endpoints[2];
    uint64_t secrets[2] = {(uintptr_t)scene->secret, (uintptr_t)scene->secret};
    struct sluice_sge sge;
    struct sluice_request request = begin(scene, attack, &sge);
    struct sluice_sge little = memory_sge(&scene->little, 0, scene->little.length);
    struct sluice_request little_request = request_of(SLUICE_OP_RECEIVE, 0, &little);
    struct sluice_prepared_channel *prepared = prepare_channel(scene->pd, NULL, &endpoints[0]);
    struct sluice_channel *channel;
    struct sluice_handle handle;

    endpoints[1] = endpoints[0];
    rank_exchange(rank, endpoints, endpoints, sizeof endpoints[0]);
    channel = made(sluice_prepared_channel_handshake(prepared, &endpoints[1]));
    /* The hostile peer waits for the second exchange: from then on it may send. */
    if (sends(attack))
        post(channel, &little_request);
    /* An ordinary request without credit fails with the channel. */
    if (attack->victim == RECEIVES_NOTHING)
        request.opcode = SLUICE_OP_SEND;
    handle = post(channel, &request);
    rank_exchange(rank, secrets, secrets, sizeof secrets[0]);
    check_end(channel, handle, attack);
    check_memory(scene, attack);
    sluice_channel_close(channel);
    rank_barrier(rank);
}

static void scene_open(struct scene *scene)
{
    scene->context = open_context();
    scene->pd = made(sluice_pd_alloc(scene->context));
    memory_open(&scene->landing, scene->pd, SIZE);
    memory_open(&scene->little, scene->pd, 4096);
    memset(scene->little.bytes, FILL, scene->little.length);
    scene->secret = malloc(SECRET_BYTES);
    require(scene->secret, "%s", strerror(errno));
    pattern_fill(scene->secret, SECRET_BYTES, 3);
}

static void scene_close(struct scene *scene)
{
    free(scene->secret);
    memory_close(&scene->little);
    memory_close(&scene->landing);
    sluice_pd_free(scene->pd);
    sluice_context_close(scene->context);
}

static void meet(struct rank *rank)
{
    struct near_peer peer;
    struct scene scene;

    if (rank->index == 0) {
        scene_open(&scene);
        for (size_t i = 0; i < COUNT(attacks); i++)
            suffer(rank, &scene, &attacks[i]);
        scene_close(&scene);
        return;
    }
    near_open(&peer);
    make_places();
    for (size_t i = 0; i < COUNT(attacks); i++)
        attack_once(rank, &peer, &attacks[i]);
    near_close(&peer);
}

TEST(forged_loans_do_no_harm)
{
    group_run(2, meet, NULL, 60);
}

int main(void)
{
    return RUN_ON_SOFT("loans", {"shm", WIRE_SHM, 100});
}
