/* SPDX-License-Identifier: MIT */
/*
 * Connecting by address, both sides and the steps behind it, with a peer of ours that says anything
 * in any pieces. No dialer stands, is admitted or refused without a proof; only sealed steps of a
 * passage are believed; no descriptor is left.
 *
 * The first byte of an input selects the part that is tried; the rest are steps (world.h).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <sluice/connect.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "connect/negotiation.h"
#include "connect/target.h"
#include "listener/passage.h"
#include "world.h"

const char fuzz_name[] = "connect";

enum part { PART_LISTEN, PART_LISTEN_SECRET, PART_DIAL, PART_DIAL_SECRET, PART_PASSAGE, PARTS };

#define TALKS 4
#define BACKLOG 64
#define BODY_BYTES 20
#define PASSAGE_STEPS 4
/* Bytes of the steps of a passage, in turn: an endpoint, nothing, a little, nothing. */
static const uint32_t step_bytes[PASSAGE_STEPS] = {SLUICE_ENDPOINT_BYTES, 0, 5, 0};

static const uint8_t secret[SLU_SECRET_MIN] = "what both know.";
static const uint8_t body[BODY_BYTES] = "the body of a word";

static struct fuzz_talk talks[TALKS];
static uint32_t talk_count;
static enum part part;
static int listener; /* of ours */

static bool has_secret(void)
{
    return part == PART_LISTEN_SECRET || part == PART_DIAL_SECRET;
}

static uint32_t means(void)
{
    return has_secret() ? SLU_MEANS_SECRET : SLU_MEANS_NONE;
}

static void make_session(const uint8_t *said, size_t count, struct slu_session *session)
{
    slu_session_make(has_secret() ? secret : NULL, has_secret() ? sizeof(secret) : 0, said, count,
                     session);
}

static struct sockaddr_un listener_name(socklen_t *length)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    *length = sizeof(name);
    hold(getsockname(listener, (struct sockaddr *)&name, length) == 0, "%s", strerror(errno));
    return name;
}

/* Listens at a name that the kernel chooses. */
static void listen_here(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (listener > 0) {
        return;
    }
    listener = slu_fd_stream(AF_UNIX);
    hold(listener >= 0, "%s", strerror(errno));
    hold(bind(listener, (struct sockaddr *)&name, sizeof(name.sun_family)) == 0 &&
             listen(listener, BACKLOG) == 0,
         "%s", strerror(errno));
}

/* Returns -1 if too many wait already. */
static int dial_here(void)
{
    socklen_t length;
    struct sockaddr_un name = listener_name(&length);
    int fd = slu_fd_stream(AF_UNIX);
    hold(fd >= 0, "%s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&name, length) == 0) {
        return fd;
    }
    hold(errno == EAGAIN, "%s", strerror(errno));
    slu_fd_close(fd);
    return -1;
}

/* Connections that were not accepted must not stay for the next input. */
static void drop_waiting(void)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        close(fd);
    }
}

/* Makes a head and a body of ours. Returns their bytes. */
static size_t make_words(const uint8_t *magic, uint32_t word, uint8_t *bytes)
{
    struct slu_head head = {.word = word, .bytes = BODY_BYTES, .means = means()};
    hold(slu_head_make(magic, &head, bytes) == 0, "no head");
    memcpy(bytes + SLU_HEAD_BYTES, body, BODY_BYTES);
    return SLU_HEAD_BYTES + BODY_BYTES;
}

/* Returns the bytes of head and body if both are complete, or 0. */
static size_t count_words(const uint8_t *bytes, size_t count)
{
    struct slu_head head;
    if (count < SLU_HEAD_BYTES || !slu_head_read(bytes, &head) ||
        count < SLU_HEAD_BYTES + head.bytes) {
        return 0;
    }
    return SLU_HEAD_BYTES + head.bytes;
}

/* The library listens. */

static struct slu_negotiations offers;

static size_t make_dialer_words(struct fuzz_talk *talk, unsigned argument)
{
    uint8_t said[SLU_SAID_BYTES];
    struct slu_session session;
    size_t hello, answer;
    (void)argument;
    if (talk->said_count == 0) {
        return make_words(slu_session_hello_magic, SLU_PURPOSE_CONNECT, talk->next);
    }
    hello = count_words(talk->said, talk->said_count);
    answer = count_words(talk->heard, talk->heard_count);
    if (hello == 0 || answer == 0 || talk->said_count > hello) {
        return 0;
    }
    memcpy(said, talk->said, hello);
    memcpy(said + hello, talk->heard, answer);
    make_session(said, hello + answer, &session);
    memset(talk->next, 0, SLU_PROOF_BYTES);
    if (has_secret()) {
        slu_session_prove(&session, talk->next);
    }
    return SLU_PROOF_BYTES;
}

/* Returns whether this talk sent the hello and then a proof. */
static bool has_proven(const struct fuzz_talk *talk, const struct slu_negotiation *offer)
{
    struct slu_session session;
    if (talk->said_count < offer->hello_bytes + SLU_PROOF_BYTES ||
        memcmp(talk->said, offer->said, offer->hello_bytes) != 0) {
        return false;
    }
    make_session(offer->said, offer->said_bytes, &session);
    return !has_secret() || slu_session_proves(&session, talk->said + offer->hello_bytes);
}

static void stands(struct slu_negotiations *at, const struct slu_negotiation *offer,
                   const struct slu_session *session, int fd)
{
    bool found = false;
    (void)at;
    hold(offer->hello.bytes <= SLU_BODY_BYTES &&
             offer->hello_bytes == SLU_HEAD_BYTES + offer->hello.bytes,
         "%u of %u bytes", offer->hello_bytes, offer->hello.bytes);
    for (uint32_t i = 0; i < talk_count; i++) {
        found = found || has_proven(&talks[i], offer);
    }
    hold(found, "nobody proved it");
    fuzz_taken++;
    slu_negotiation_reply(fd, session, SLU_REPLY_ADMITTED, body, BODY_BYTES);
    slu_fd_close(fd);
}

static void look_at_offers(void)
{
    struct epoll_event events[8];
    int count = epoll_wait(offers.acceptor.epoll, events, 8, 0);
    for (int i = 0; i < count; i++) {
        slu_acceptor_event(&offers.acceptor, (uint32_t)events[i].data.u64);
    }
}

/* The bytes of a talk must be known as long as the library may read them: none is opened again. */
static struct fuzz_talk *choose_talk(unsigned index)
{
    int fd = index >= talk_count && talk_count < TALKS ? dial_here() : -1;
    if (fd >= 0) {
        fuzz_talk_open(&talks[talk_count++], fd);
    }
    return &talks[index < talk_count ? index : talk_count - 1];
}

static void try_listening(struct fuzz_input *input)
{
    struct fuzz_talk *talk = &talks[0];
    int epoll = slu_fd_epoll(), own = fcntl(listener, F_DUPFD_CLOEXEC, 3);
    hold(epoll >= 0 && own >= 0, "%s", strerror(errno));
    slu_negotiations_init(&offers, epoll, 0);
    offers.purpose = SLU_PURPOSE_CONNECT;
    offers.means = means();
    offers.secret = has_secret() ? secret : NULL;
    offers.secret_bytes = has_secret() ? sizeof(secret) : 0;
    offers.answer = body;
    offers.answer_bytes = BODY_BYTES;
    offers.proven = stands;
    hold(slu_acceptor_add(&offers.acceptor, own) == 0, "it does not listen");
    choose_talk(0);
    while (input->left > 0) {
        unsigned step = fuzz_byte(input);
        if (step % 8 == STEP_LOOK) {
            look_at_offers();
        } else if (step % 8 == STEP_TICK) {
            fuzz_clock_advance(SLUICE_US(1) << (step >> 3));
            slu_acceptor_tick(&offers.acceptor, slu_now());
        } else if (step % 8 == STEP_OTHER) {
            talk = choose_talk((step >> 3) % TALKS);
        } else {
            fuzz_talk_step(talk, step % 8, step >> 3, input, make_dialer_words);
        }
    }
    look_at_offers();
    drop_waiting();
    slu_acceptor_close(&offers.acceptor);
    hold(offers.acceptor.count == 0, "%u are left", offers.acceptor.count);
    slu_fd_close(epoll);
}

/* The library dials. */

static struct slu_target target;
static int dialed[TALKS]; /* by the library, of each talk */

int __wrap_slu_stream_dial(const struct slu_address *address);
int __wrap_slu_stream_dial(const struct slu_address *address)
{
    int fd, other;
    (void)address;
    if (talk_count == TALKS) {
        return -ECONNREFUSED;
    }
    fd = dial_here();
    hold(fd >= 0, "nobody is let in");
    other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    hold(other >= 0, "%s", strerror(errno));
    dialed[talk_count] = fd;
    fuzz_talk_open(&talks[talk_count++], other);
    return fd;
}

/* Finds the words before a reply, which must have been complete. */
static bool reply_session(const struct fuzz_talk *talk, size_t *answer, struct slu_session *session)
{
    uint8_t said[SLU_SAID_BYTES];
    size_t hello = count_words(talk->heard, talk->heard_count);
    *answer = count_words(talk->said, talk->said_count);
    if (hello == 0 || *answer == 0) {
        return false;
    }
    memcpy(said, talk->heard, hello);
    memcpy(said + hello, talk->said, *answer);
    make_session(said, hello + *answer, session);
    return true;
}

static size_t make_listener_words(struct fuzz_talk *talk, unsigned argument)
{
    static const enum slu_reply_code words[] = {
        SLU_REPLY_ADMITTED, SLU_REPLY_PENDING, SLU_REPLY_REFUSED, SLU_REPLY_BUSY, SLU_REPLY_DENIED};
    enum slu_reply_code word = words[argument % 5];
    struct slu_session session;
    size_t answer;
    if (talk->said_count == 0) {
        return make_words(slu_session_answer_magic,
                          argument == 31 ? SLU_REPLY_DENIED : SLU_REPLY_GO_ON, talk->next);
    }
    if (!reply_session(talk, &answer, &session)) {
        return 0;
    }
    return slu_reply_make(&session, word, body,
                          word == SLU_REPLY_DENIED ? 0 : argument % BODY_BYTES, talk->next);
}

/*
 * The verdict claims that the other side has proven itself: finds that talk and checks its proof.
 */
static void check_verdict(enum slu_target_state state)
{
    const struct fuzz_talk *talk = NULL;
    struct slu_session session;
    size_t at;
    uint32_t count, told;
    int word;
    hold(target.chosen < target.dial.count, "%u is chosen", target.chosen);
    for (uint32_t i = 0; i < talk_count; i++) {
        if (dialed[i] == target.dial.attempts[target.chosen].fd) {
            talk = &talks[i];
        }
    }
    hold(talk != NULL && reply_session(talk, &at, &session), "nothing was said");
    word = slu_reply_read(talk->said + at, &count);
    hold(at + SLU_REPLY_BYTES + count <= talk->said_count, "no whole reply");
    hold(slu_reply_proves(&session, talk->said + at, count), "it did not prove itself");
    if (state != SLU_TARGET_PENDING && word == SLU_REPLY_PENDING) {
        at += SLU_REPLY_BYTES + count;
        word = slu_reply_read(talk->said + at, &count);
        hold(at + SLU_REPLY_BYTES + count <= talk->said_count, "no whole verdict");
        hold(slu_reply_proves(&session, talk->said + at, count), "its verdict is not proven");
    }
    hold(word == (state == SLU_TARGET_PENDING    ? SLU_REPLY_PENDING
                  : state == SLU_TARGET_ADMITTED ? SLU_REPLY_ADMITTED
                                                 : SLU_REPLY_REFUSED),
         "%d", word);
    if (state != SLU_TARGET_PENDING) {
        const uint8_t *verdict = slu_target_verdict(&target, &told);
        hold(told == count && memcmp(verdict, talk->said + at + SLU_REPLY_BYTES, count) == 0,
             "%u bytes, not %u", told, count);
    }
    fuzz_taken++;
}

/* Returns whether the attempt is over. */
static bool look_at_target(void)
{
    int64_t next = slu_now();
    enum slu_target_state state = slu_target_tick(&target, next, &next);
    for (uint32_t i = 0; i < talk_count; i++) {
        if (talks[i].fd >= 0) {
            fuzz_talk_hear(&talks[i]);
        }
    }
    if (state == SLU_TARGET_ON) {
        state = slu_target_wait(&target, 0);
    }
    if (state == SLU_TARGET_PENDING || state == SLU_TARGET_ADMITTED ||
        state == SLU_TARGET_REFUSED) {
        check_verdict(state);
    }
    return state != SLU_TARGET_ON && state != SLU_TARGET_PENDING;
}

static void try_dialing(struct fuzz_input *input)
{
    struct fuzz_talk *talk = &talks[0];
    char text[256];
    bool over;
    slu_target_init(&target);
    target.purpose = SLU_PURPOSE_CONNECT;
    target.means = means();
    target.secret = has_secret() ? secret : NULL;
    target.secret_bytes = has_secret() ? sizeof(secret) : 0;
    target.body = body;
    target.body_bytes = BODY_BYTES;
    slu_dial_add(&target.dial, &(struct slu_address){.family = 4, .port = 1, .ip = {127, 0, 0, 1}});
    if (has_secret()) {
        slu_dial_add(&target.dial,
                     &(struct slu_address){.family = 4, .port = 2, .ip = {127, 0, 0, 1}});
    }
    over = look_at_target() || look_at_target();
    while (!over && input->left > 0) {
        unsigned step = fuzz_byte(input);
        if (step % 8 == STEP_LOOK || step % 8 == STEP_TICK) {
            fuzz_clock_advance(step % 8 == STEP_TICK ? SLUICE_US(1) << (step >> 3) : 0);
            over = look_at_target();
        } else if (step % 8 == STEP_OTHER) {
            talk = &talks[talk_count > 0 ? (step >> 3) % talk_count : 0];
        } else {
            fuzz_talk_step(talk, step % 8, step >> 3, input, make_listener_words);
        }
    }
    slu_target_explain(&target, text, sizeof(text));
    slu_target_end(&target);
}

/* The passage behind the words: steps, each sealed. */

static struct slu_passage passage;
static uint32_t sealed;              /* steps that were sent */
static bool is_whole[PASSAGE_STEPS]; /* and sent unchanged */

static size_t make_step(struct fuzz_talk *talk, unsigned argument)
{
    uint32_t count = sealed < PASSAGE_STEPS ? step_bytes[sealed] : 0;
    uint32_t status = argument == 31 ? ECONNREFUSED : 0;
    uint8_t bytes[SLUICE_ENDPOINT_BYTES], head[SLU_PASSAGE_HEAD];
    char label[16];
    size_t whole = sizeof(head) + SLU_SEAL_BYTES;
    count = status != 0 ? argument : count;
    memset(bytes, (int)sealed, sizeof(bytes));
    slu_put(slu_put(head, status, 4), count, 4);
    snprintf(label, sizeof(label), "step %c %u h", passage.dialed ? 'a' : 'd', sealed);
    slu_session_seal(&passage.session, label, head, sizeof(head), talk->next);
    snprintf(label, sizeof(label), "step %c %u b", passage.dialed ? 'a' : 'd', sealed);
    slu_session_seal(&passage.session, label, bytes, count, talk->next + whole);
    if (sealed < PASSAGE_STEPS) {
        is_whole[sealed] = status == 0;
    }
    sealed++;
    return whole + count + SLU_SEAL_BYTES;
}

static void hear_steps(void)
{
    uint8_t bytes[SLUICE_ENDPOINT_BYTES];
    int error = 0;
    for (uint32_t i = 0; i < PASSAGE_STEPS && error == 0; i++) {
        error = slu_passage_receive(&passage, bytes, step_bytes[i]);
        if (error == 0) {
            hold(i < sealed && is_whole[i], "step %u was never said", i);
            for (uint32_t k = 0; k < step_bytes[i]; k++) {
                hold(bytes[k] == i, "byte %u of step %u is %u", k, i, bytes[k]);
            }
            fuzz_taken++;
        }
    }
    if (error != 0) {
        hold(error == -EPROTO || error == -ECONNRESET || error == -ECONNABORTED, "%d", error);
        fuzz_explained();
    }
}

static void try_passage(struct fuzz_input *input)
{
    int fds[2];
    hold(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "%s", strerror(errno));
    passage = (struct slu_passage){
        .fd = fds[0], .who = "somebody", .dialed = fuzz_byte(input) % 2, .until = INT64_MAX};
    sealed = 0;
    memset(is_whole, 0, sizeof(is_whole));
    slu_session_make(secret, sizeof(secret), body, sizeof(body), &passage.session);
    talk_count = 1;
    fuzz_talk_open(&talks[0], fds[1]);
    while (input->left > 0) {
        unsigned step = fuzz_byte(input);
        fuzz_talk_step(&talks[0], step % 8, step >> 3, input, make_step);
    }
    shutdown(fds[1], SHUT_WR);
    hear_steps();
    close(fds[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    int before;
    fuzz_world_begin();
    hold(slu_proof_init() == 0, "no proofs");
    listen_here();
    before = fuzz_free_descriptor();
    part = fuzz_byte(&input) % PARTS;
    talk_count = 0;
    if (part == PART_PASSAGE) {
        try_passage(&input);
    } else if (part == PART_DIAL || part == PART_DIAL_SECRET) {
        try_dialing(&input);
    } else {
        try_listening(&input);
    }
    for (uint32_t i = 0; i < talk_count; i++) {
        fuzz_talk_close(&talks[i]);
    }
    hold(fuzz_free_descriptor() == before, "a descriptor is left");
    return 0;
}
