/* SPDX-License-Identifier: MIT */
/*
 * Two sides that know each other's endpoint and both dial: one is the library's, the other is ours
 * and says anything in any pieces, as a side that was dialed, as one that dials, or both at once.
 * They meet only if proofs of both keys were sent, and the leading side has chosen that connection;
 * no descriptor is left.
 *
 * The first byte of an input selects which side leads, and whether the peer is known only later;
 * the rest are steps (world.h).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "connect/meeting.h"
#include "world.h"

const char fuzz_name[] = "meeting";

#define OWN_LISTENER UINT64_C(0x51a1ce51a1ce0001)
#define PEER_LISTENER UINT64_C(0x51a1ce51a1ce0002)
#define OWN_NUMBER 7
#define PEER_NUMBER 9
#define MEETING_TAG (UINT64_C(1) << 32)
#define SAID_BYTES (SLU_HELLO_BYTES + SLU_ANSWER_BYTES)
#define TALKS 4

/* Talks that the library dialed, and talks that dial it. */
static struct fuzz_talk talks[TALKS];
static bool is_guest[TALKS]; /* this talk dials the library's side */
static uint32_t talk_count;

static struct slu_identity self;
static struct slu_side own, peer;
static struct slu_meeting meeting;
static struct slu_acceptor acceptor;
static int own_listener, peer_listener, epoll_fd;
static enum slu_meeting_state state;
static int met; /* the connection */

/* Listens as long as the program runs: the names are bound once. */
static void listen_here(void)
{
    if (peer_listener > 0) {
        return;
    }
    slu_identity_of_self(&self);
    own_listener = slu_stream_listen_here(OWN_LISTENER ^ (uint64_t)getpid() << 16);
    peer_listener = slu_stream_listen_here(PEER_LISTENER ^ (uint64_t)getpid() << 16);
    hold(own_listener > 0 && peer_listener > 0, "%d, %d", own_listener, peer_listener);
}

static void note(enum slu_meeting_state now, const int *fd)
{
    if (state == SLU_MEETING_ON && now != SLU_MEETING_ON) {
        state = now;
        met = *fd;
    }
}

/* Accepts as the soft transport does. */
static enum slu_received hear(struct slu_acceptor *at, struct slu_pending_conn *conn)
{
    struct slu_talk *talk = &conn->talk;
    struct slu_hello hello;
    uint8_t denial[SLU_DENIAL_BYTES];
    int fd = -1;
    (void)at;
    if (talk->got != SLU_HELLO_BYTES) {
        note(slu_meeting_welcome(&meeting, conn, &fd), &fd);
        return SLU_RECEIVED_TAKEN;
    }
    slu_hello_read(talk->bytes, &hello);
    if (hello.target != OWN_NUMBER || !slu_hello_proves(talk->bytes, own.key) ||
        state != SLU_MEETING_ON) {
        slu_denial_make(denial);
        slu_talk_say(talk, denial, sizeof(denial));
        return SLU_RECEIVED_DROP;
    }
    if (slu_answer_make(talk->bytes, own.key) < 0 ||
        !slu_talk_say(talk, talk->bytes + SLU_HELLO_BYTES, SLU_ANSWER_BYTES)) {
        return SLU_RECEIVED_DROP;
    }
    conn->spoke = conn->known = true;
    talk->want = SAID_BYTES + SLU_PROOF_BYTES;
    talk->got = SAID_BYTES;
    return SLU_RECEIVED_MORE;
}

static void open_talk(int fd, bool guest)
{
    if (talk_count == TALKS) {
        close(fd);
        return;
    }
    is_guest[talk_count] = guest;
    fuzz_talk_open(&talks[talk_count++], fd);
}

static void take_dialed(void)
{
    int fd;
    while ((fd = accept4(peer_listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        open_talk(fd, false);
    }
}

static void dial(void)
{
    int fd =
        talk_count < TALKS ? slu_stream_dial_here(OWN_LISTENER ^ (uint64_t)getpid() << 16) : -1;
    if (fd >= 0) {
        open_talk(fd, true);
    }
}

/* Finds hello and answer of a talk. Returns whether both are complete. */
static bool get_said(const struct fuzz_talk *talk, bool guest, uint8_t said[SAID_BYTES])
{
    const uint8_t *hello = guest ? talk->said : talk->heard;
    const uint8_t *answer = guest ? talk->heard : talk->said;
    size_t hello_count = guest ? talk->said_count : talk->heard_count;
    size_t answer_count = guest ? talk->heard_count : talk->said_count;
    if (hello_count < SLU_HELLO_BYTES || answer_count < SLU_ANSWER_BYTES) {
        return false;
    }
    memcpy(said, hello, SLU_HELLO_BYTES);
    memcpy(said + SLU_HELLO_BYTES, answer, SLU_ANSWER_BYTES);
    return true;
}

static const struct slu_side *dialer(bool guest)
{
    return guest ? &peer : &own;
}

static const struct slu_side *accepting(bool guest)
{
    return guest ? &own : &peer;
}

static bool is_proven(const struct fuzz_talk *talk, bool guest, enum slu_proof_part part)
{
    uint8_t said[SAID_BYTES];
    size_t at = guest ? SLU_HELLO_BYTES : SLU_ANSWER_BYTES;
    at += part == SLU_PROOF_CHOICE ? SLU_PROOF_BYTES : 0;
    return get_said(talk, guest, said) && talk->said_count >= at + SLU_PROOF_BYTES &&
           slu_greeting_proves(said, part, dialer(guest), accepting(guest), talk->said + at);
}

static size_t make_guest_words(struct fuzz_talk *talk)
{
    struct slu_hello hello = {OWN_NUMBER, PEER_NUMBER};
    uint8_t said[SAID_BYTES];
    if (talk->said_count == 0) {
        hold(slu_hello_make(&hello, own.key, talk->next) == 0, "no hello");
        return SLU_HELLO_BYTES;
    }
    if (!get_said(talk, true, said)) {
        return 0;
    }
    slu_greeting_prove(said,
                       talk->said_count == SLU_HELLO_BYTES ? SLU_PROOF_DIALER : SLU_PROOF_CHOICE,
                       &peer, &own, talk->next);
    return SLU_PROOF_BYTES;
}

static size_t make_words(struct fuzz_talk *talk, unsigned argument)
{
    uint8_t said[SAID_BYTES];
    if (is_guest[talk - talks]) {
        return make_guest_words(talk);
    }
    if (talk->heard_count < SLU_HELLO_BYTES) {
        return 0;
    }
    if (talk->said_count == 0 && argument == 31) {
        slu_denial_make(talk->next);
        return SLU_DENIAL_BYTES;
    }
    memcpy(said, talk->heard, SLU_HELLO_BYTES);
    if (talk->said_count == 0) {
        hold(slu_answer_make(said, peer.key) == 0, "no answer");
        memcpy(talk->next, said + SLU_HELLO_BYTES, SLU_ANSWER_BYTES);
        return SLU_ANSWER_BYTES;
    }
    if (!get_said(talk, false, said)) {
        return 0;
    }
    slu_greeting_prove(said, SLU_PROOF_ACCEPTOR, &own, &peer, talk->next);
    return SLU_PROOF_BYTES;
}

/* At least one talk sent all proofs, so meeting it is right. */
static void check_met(void)
{
    bool leads = memcmp(own.key, peer.key, SLU_SIDE_KEY) > 0, found = false;
    for (uint32_t i = 0; i < talk_count; i++) {
        if (is_guest[i]) {
            found = found || (is_proven(&talks[i], true, SLU_PROOF_DIALER) &&
                              (leads || is_proven(&talks[i], true, SLU_PROOF_CHOICE)));
        } else {
            found = found || is_proven(&talks[i], false, SLU_PROOF_ACCEPTOR);
        }
    }
    hold(found, "nobody proved it");
    fuzz_taken++;
}

static void look(void)
{
    struct epoll_event events[8];
    int count = epoll_wait(epoll_fd, events, 8, 0);
    for (int i = 0; i < count && state == SLU_MEETING_ON; i++) {
        int fd = -1;
        if (events[i].data.u64 >= MEETING_TAG) {
            note(slu_meeting_event(&meeting, (uint32_t)(events[i].data.u64 - MEETING_TAG), &fd),
                 &fd);
        } else {
            slu_acceptor_event(&acceptor, (uint32_t)events[i].data.u64);
        }
    }
    take_dialed();
}

static void tick(void)
{
    int64_t now = slu_now(), next = INT64_MAX;
    int fd = -1;
    slu_acceptor_tick(&acceptor, now);
    if (state == SLU_MEETING_ON) {
        note(slu_meeting_tick(&meeting, now, &next, &fd), &fd);
    }
    take_dialed();
}

static void begin(bool leads)
{
    int listener = fcntl(own_listener, F_DUPFD_CLOEXEC, 3);
    memset(&own, 1, sizeof(own));
    memset(&peer, 2, sizeof(peer));
    own.key[0] = leads ? 3 : 1;
    epoll_fd = slu_fd_epoll();
    hold(epoll_fd >= 0 && listener >= 0, "%s", strerror(errno));
    slu_acceptor_init(&acceptor, epoll_fd, 0);
    acceptor.receive = hear;
    acceptor.hello = SLU_HELLO_BYTES;
    acceptor.magic = slu_hello_magic;
    acceptor.magic_bytes = SLU_HELLO_MAGIC_BYTES;
    hold(slu_acceptor_add(&acceptor, listener) == 0, "it does not listen");
    slu_meeting_init(&meeting, epoll_fd, MEETING_TAG, &own, OWN_NUMBER);
    state = SLU_MEETING_ON;
    talk_count = 0;
    met = -1;
}

static void know_peer(void)
{
    struct slu_meeting_peer known = {.side = peer,
                                     .identity = self,
                                     .listener = PEER_LISTENER ^ (uint64_t)getpid() << 16,
                                     .number = PEER_NUMBER};
    if (!meeting.known && state == SLU_MEETING_ON) {
        slu_meeting_begin(&meeting, &self, &known);
        tick();
    }
}

/* Connections that were not accepted must not stay for the next input. */
static void drop_waiting(void)
{
    int fd;
    while ((fd = accept4(own_listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        close(fd);
    }
}

static void end(void)
{
    drop_waiting();
    if (state == SLU_MEETING_MET) {
        hold(met >= 0, "no connection");
        check_met();
        slu_fd_close(met);
    }
    if (state == SLU_MEETING_ON) {
        slu_meeting_end(&meeting);
    }
    slu_acceptor_close(&acceptor);
    slu_fd_close(epoll_fd);
    take_dialed();
    for (uint32_t i = 0; i < talk_count; i++) {
        fuzz_talk_close(&talks[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct fuzz_talk *talk = &talks[0];
    unsigned how = fuzz_byte(&input);
    int before;
    fuzz_world_begin();
    hold(slu_proof_init() == 0, "no proofs");
    listen_here();
    before = fuzz_free_descriptor();
    begin(how % 2 == 1);
    if (how / 2 % 2 == 0) {
        know_peer();
    }
    while (input.left > 0) {
        unsigned step = fuzz_byte(&input), argument = step >> 3;
        if (step % 8 == STEP_LOOK) {
            look();
        } else if (step % 8 == STEP_TICK) {
            fuzz_clock_advance(SLUICE_US(1) << argument);
            tick();
        } else if (step % 8 == STEP_OTHER && argument >= 16) {
            know_peer();
        } else if (step % 8 == STEP_OTHER) {
            if (argument >= talk_count) {
                dial();
            }
            talk = &talks[argument < talk_count ? argument : talk_count - (talk_count > 0)];
        } else if (talk < talks + talk_count) {
            fuzz_talk_step(talk, step % 8, argument, &input, make_words);
        }
    }
    look();
    end();
    hold(fuzz_free_descriptor() == before, "a descriptor is left");
    return 0;
}
