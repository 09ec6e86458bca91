/* SPDX-License-Identifier: MIT */
/*
 * The first words between a dialer and a listener, before either trusts the other: who is let in,
 * who is refused with the reason, and who is denied without one, also if it alters, replays or
 * reflects words.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "connect/negotiation.h"
#include "connect/stream.h"
#include "connect/target.h"

#include "../support/process.h"
#include "../support/suite.h"

#define OFFER_TAG (UINT64_C(1) << 32)
#define EVENTS 64

static const uint8_t secret[] = "what both sides know";
static const uint8_t other_secret[] = "what nobody else knows";

/* Both sides, in one thread. */
struct scene {
    int epoll;
    struct slu_negotiations *offers;
    struct slu_target *target;
    struct slu_address address;
    int fds[8]; /* of dialers that stand */
    struct slu_session sessions[8];
    bool at_once; /* dialers are let in at once, without waiting in the queue */
    uint32_t stood, denied, foreign;
    uint8_t heard[SLU_BODY_BYTES];
    uint32_t heard_bytes;
    enum slu_target_state state;
};

static struct scene scene;

static void stands(struct slu_negotiations *offers, const struct slu_negotiation *offer,
                   const struct slu_session *session, int fd)
{
    (void)offers;
    require(scene.stood < 8, "too many stand");
    enum slu_reply_code word = scene.at_once ? SLU_REPLY_ADMITTED : SLU_REPLY_PENDING;
    require(slu_negotiation_reply(fd, session, word, "now", scene.at_once ? 3 : 0), "not taken");
    scene.fds[scene.stood] = fd;
    scene.sessions[scene.stood++] = *session;
    scene.heard_bytes = offer->hello.bytes;
    memcpy(scene.heard, slu_negotiation_body(offer), offer->hello.bytes);
}

static void denied(struct slu_negotiations *offers, const struct slu_negotiation *offer, int fd)
{
    (void)offers, (void)offer, (void)fd;
    scene.denied++;
}

static void foreign(struct slu_negotiations *offers, const struct slu_head *given, int fd)
{
    (void)offers, (void)fd;
    require(given->written == 77 && given->readable == 77, "version %u, readable from %u",
            given->written, given->readable);
    scene.foreign++;
}

static int listen_here(struct slu_address *address)
{
    *address = (struct slu_address){.family = 4, .port = 0, .ip = {127, 0, 0, 1}};
    int fd = slu_stream_listen(address, false);
    require(fd >= 0, "%s", strerror(-fd));
    address->port = slu_stream_port(fd);
    return fd;
}

static void open_scene(void)
{
    memset(&scene, 0, sizeof(scene));
    require_ok(slu_proof_init());
    scene.epoll = slu_fd_epoll();
    scene.offers = calloc(1, sizeof(*scene.offers));
    scene.target = calloc(1, sizeof(*scene.target));
    slu_negotiations_init(scene.offers, scene.epoll, OFFER_TAG);
    slu_target_init(scene.target);
    require_ok(slu_acceptor_add(&scene.offers->acceptor, listen_here(&scene.address)));
    scene.offers->purpose = scene.target->purpose = SLU_PURPOSE_CONNECT;
    scene.offers->means = scene.target->means = SLU_MEANS_SECRET;
    scene.offers->secret = scene.target->secret = secret;
    scene.offers->secret_bytes = scene.target->secret_bytes = sizeof(secret);
    scene.offers->proven = stands;
    scene.offers->denied = denied;
    scene.offers->foreign = foreign;
}

static void close_scene(void)
{
    for (uint32_t i = 0; i < scene.stood; i++) {
        if (scene.fds[i] >= 0) {
            slu_fd_close(scene.fds[i]);
        }
    }
    slu_target_end(scene.target);
    slu_acceptor_close(&scene.offers->acceptor);
    slu_fd_close(scene.epoll);
    free(scene.target);
    free(scene.offers);
}

/* Runs both sides once. Returns the state of the target. */
static enum slu_target_state step(void)
{
    struct epoll_event events[EVENTS];
    int64_t next = slu_now() + SLUICE_MS(20);
    enum slu_target_state state = slu_target_tick(scene.target, slu_now(), &next);
    slu_acceptor_tick(&scene.offers->acceptor, slu_now());
    if (state != SLU_TARGET_ON) {
        return state;
    }
    int count = epoll_wait(scene.epoll, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        slu_acceptor_event(&scene.offers->acceptor, (uint32_t)(events[i].data.u64 - OFFER_TAG));
    }
    return slu_target_wait(scene.target, slu_after(count > 0 ? 0 : SLUICE_MS(1)));
}

static void run_until(enum slu_target_state wanted)
{
    struct span begin = span_begin();
    enum slu_target_state state;
    do {
        state = step();
        require(span_since(begin).fair < SLUICE_S(30), "state %d never came", (int)wanted);
    } while (state == SLU_TARGET_ON || (state == SLU_TARGET_PENDING && wanted != state));
    require(state == wanted, "it is %d", (int)state);
}

/* Gives the verdict to the dialer that waits. */
static void give(enum slu_reply_code verdict, const char *body)
{
    require(slu_negotiation_reply(scene.fds[scene.stood - 1], &scene.sessions[scene.stood - 1],
                                  verdict, body, (uint32_t)strlen(body)),
            "not taken");
}

TEST(dialer_with_the_secret_is_let_in, .times = 2)
{
    static uint8_t hello[SLU_BODY_BYTES], answer[SLU_BODY_BYTES];
    struct slu_session session;
    uint8_t sealed[5 + SLU_SEAL_BYTES], opened[5];
    uint32_t bytes;
    open_scene();
    memset(hello, 'h', sizeof(hello));
    memset(answer, 'a', sizeof(answer));
    if (_i == 1) {
        scene.target->body = hello;
        scene.target->body_bytes = sizeof(hello);
        scene.offers->answer = answer;
        scene.offers->answer_bytes = sizeof(answer);
    }
    scene.target->ask = true;
    slu_dial_add(&scene.target->dial, &scene.address);
    run_until(SLU_TARGET_CHALLENGED);
    const uint8_t *heard = slu_target_answer(scene.target, &bytes);
    require(bytes == scene.offers->answer_bytes && memcmp(heard, answer, bytes) == 0, "%u", bytes);
    require_result(slu_target_prove(scene.target), SLU_TARGET_ON);
    run_until(SLU_TARGET_PENDING);
    /* The next message is sent without waiting for an acknowledgement of the one before. */
    int no_delay = 0;
    socklen_t size = sizeof(no_delay);
    getsockopt(scene.fds[0], IPPROTO_TCP, TCP_NODELAY, &no_delay, &size);
    require(no_delay != 0, "the socket waits for acknowledgements");
    require(scene.stood == 1 && scene.heard_bytes == scene.target->body_bytes &&
                memcmp(scene.heard, hello, scene.heard_bytes) == 0,
            "%u stand, %u bytes", scene.stood, scene.heard_bytes);
    give(SLU_REPLY_ADMITTED, "welcome");
    run_until(SLU_TARGET_ADMITTED);
    heard = slu_target_verdict(scene.target, &bytes);
    require(bytes == 7 && memcmp(heard, "welcome", 7) == 0, "%u bytes", bytes);
    int fd = slu_target_take(scene.target, &session);
    slu_session_seal(&session, "a label", "hello", 5, sealed);
    require(slu_session_open(&scene.sessions[0], "a label", sealed, 5, opened) &&
                memcmp(opened, "hello", 5) == 0,
            "it does not open");
    require(!slu_session_open(&scene.sessions[0], "another", sealed, 5, opened), "it opens");
    slu_fd_close(fd);
    close_scene();
}

TEST(refused_dialer_gets_the_reason)
{
    uint32_t bytes;
    open_scene();
    slu_dial_add(&scene.target->dial, &scene.address);
    run_until(SLU_TARGET_PENDING);
    give(SLU_REPLY_REFUSED, "not today");
    run_until(SLU_TARGET_REFUSED);
    const uint8_t *why = slu_target_verdict(scene.target, &bytes);
    require(bytes == 9 && memcmp(why, "not today", 9) == 0, "%.*s", (int)bytes, (const char *)why);
    close_scene();
}

/* A dialer that is told that too many wait dials again. */
TEST(dialer_of_a_full_queue_dials_again)
{
    open_scene();
    slu_dial_add(&scene.target->dial, &scene.address);
    run_until(SLU_TARGET_PENDING);
    give(SLU_REPLY_BUSY, "");
    run_until(SLU_TARGET_PENDING);
    require(scene.stood == 2, "%u", scene.stood);
    give(SLU_REPLY_ADMITTED, "");
    run_until(SLU_TARGET_ADMITTED);
    close_scene();
}

static const struct {
    const char *name;
    uint32_t listener_means, dialer_means;
    bool same;
    enum slu_purpose purpose;
    int error;
    const char *words;
} strangers[] = {
    {"another secret", 1, 1, false, SLU_PURPOSE_CONNECT, -EACCES, "its secret differs"},
    {"a secret for none", 0, 1, true, SLU_PURPOSE_CONNECT, -EACCES, "it has no secret"},
    {"none for a secret", 1, 0, true, SLU_PURPOSE_CONNECT, -EACCES, "it requires a secret"},
    {"other means", 2, 1, true, SLU_PURPOSE_CONNECT, -EACCES, "of another kind"},
    {"another purpose", 1, 1, true, SLU_PURPOSE_EXCHANGE, -EPROTO, "for another purpose"},
};

TEST(dialer_without_the_secret_is_denied, .times = COUNT(strangers))
{
    char text[400];
    open_scene();
    scene.offers->means = strangers[_i].listener_means;
    scene.target->means = strangers[_i].dialer_means;
    scene.target->purpose = strangers[_i].purpose;
    if (!strangers[_i].same) {
        scene.target->secret = other_secret;
        scene.target->secret_bytes = sizeof(other_secret);
    }
    slu_dial_add(&scene.target->dial, &scene.address);
    run_until(SLU_TARGET_HOPELESS);
    require_result(slu_target_explain(scene.target, text, sizeof(text)), strangers[_i].error);
    require_words(text, strangers[_i].words);
    require(scene.stood == 0, "%s: it stands", strangers[_i].name);
    require(scene.denied == (strangers[_i].error == -EACCES), "%u denied", scene.denied);
    close_scene();
}

/* A dialer that is let in at once gets no other word, with a secret and without. */
TEST(dialer_is_let_in_at_once, .times = 2)
{
    uint32_t bytes;
    open_scene();
    scene.at_once = true;
    scene.offers->means = scene.target->means = _i == 0 ? SLU_MEANS_NONE : SLU_MEANS_SECRET;
    slu_dial_add(&scene.target->dial, &scene.address);
    run_until(SLU_TARGET_ADMITTED);
    const uint8_t *heard = slu_target_verdict(scene.target, &bytes);
    require(bytes == 3 && memcmp(heard, "now", 3) == 0, "%u bytes", bytes);
    require(scene.stood == 1 && scene.target->proven, "%u stand", scene.stood);
    close_scene();
}

/* Without a secret the protocol is the same; one of several addresses is chosen later. */
TEST(nothing_is_proven_without_a_secret, .times = 2)
{
    struct slu_address silent;
    int listener = -1;
    open_scene();
    scene.offers->means = scene.target->means = SLU_MEANS_NONE;
    scene.offers->secret = scene.target->secret = NULL;
    scene.offers->secret_bytes = scene.target->secret_bytes = 0;
    if (_i == 1) {
        listener = listen_here(&silent);
        slu_dial_add(&scene.target->dial, &silent);
    }
    slu_dial_add(&scene.target->dial, &scene.address);
    run_until(SLU_TARGET_PENDING);
    give(SLU_REPLY_ADMITTED, "");
    run_until(SLU_TARGET_ADMITTED);
    require(scene.stood == 1, "%u stand", scene.stood);
    if (listener >= 0) {
        slu_fd_close(listener);
    }
    close_scene();
}

/* Addresses that refuse, drop all packets, or accept in silence delay no other address. */
TEST(other_addresses_delay_no_dial)
{
    struct slu_address silent, refused, nobody = {.family = 4, .port = 9, .ip = {240, 0, 0, 1}};
    struct span begin;
    open_scene();
    int listener = listen_here(&silent);
    slu_fd_close(listen_here(&refused));
    slu_dial_add(&scene.target->dial, &silent);
    slu_dial_add(&scene.target->dial, &refused);
    slu_dial_add(&scene.target->dial, &nobody);
    slu_dial_add(&scene.target->dial, &scene.address);
    begin = span_begin();
    run_until(SLU_TARGET_PENDING);
    require_took(span_since(begin), 0, SLUICE_S(4));
    require(scene.stood == 1, "%u", scene.stood);
    slu_fd_close(listener);
    close_scene();
}

static int dial_raw(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(scene.address.port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0, "%s", strerror(errno));
    return fd;
}

/* Returns what the offer answers to these bytes until it hangs up, at most this much. */
static size_t ask_raw(int fd, const void *bytes, size_t count, uint8_t *answer, size_t most)
{
    size_t got = 0;
    require(send(fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count, "%s", strerror(errno));
    struct span begin = span_begin();
    while (got < most && span_since(begin).fair < SLUICE_S(20)) {
        (void)step();
        ssize_t more = recv(fd, answer + got, most - got, MSG_DONTWAIT);
        if (more == 0 || (more < 0 && errno != EAGAIN)) {
            break;
        }
        got += more > 0 ? (size_t)more : 0;
    }
    return got;
}

static void make_hello(uint8_t hello[SLU_HEAD_BYTES])
{
    struct slu_head head = {.word = SLU_PURPOSE_CONNECT, .means = SLU_MEANS_SECRET};
    require_ok(slu_head_make(slu_session_hello_magic, &head, hello));
}

/* A recorded proof is invalid for another challenge, and a reflected one always. */
TEST(replayed_words)
{
    uint8_t said[2 * SLU_HEAD_BYTES], proof[SLU_PROOF_BYTES], reply[SLU_REPLY_BYTES];
    struct slu_session session;
    open_scene();
    make_hello(said);
    for (int times = 0; times < 3; times++) {
        int fd = dial_raw();
        require(ask_raw(fd, said, SLU_HEAD_BYTES, said + SLU_HEAD_BYTES, SLU_HEAD_BYTES) ==
                    SLU_HEAD_BYTES,
                "no answer");
        if (times == 0) {
            slu_session_make(secret, sizeof(secret), said, sizeof(said), &session);
            slu_session_prove(&session, proof);
        }
        if (times == 2) {
            memcpy(proof, reply + SLU_REPLY_BYTES - SLU_PROOF_BYTES, SLU_PROOF_BYTES);
        }
        require(ask_raw(fd, proof, sizeof(proof), reply, sizeof(reply)) == sizeof(reply), "none");
        uint32_t count;
        int word = slu_reply_read(reply, &count);
        require(word == (times == 0 ? SLU_REPLY_PENDING : SLU_REPLY_DENIED), "time %d: word %d",
                times, word);
        close(fd);
    }
    require(scene.stood == 1, "%u stand", scene.stood);
    close_scene();
}

/* The proof covers every bit that a relay passes on: no changed bit is accepted. */
TEST(altered_words)
{
    uint8_t said[2 * SLU_HEAD_BYTES], proof[SLU_PROOF_BYTES], reply[SLU_REPLY_BYTES];
    struct slu_session session, changed;
    open_scene();
    make_hello(said);
    int fd = dial_raw();
    require(ask_raw(fd, said, SLU_HEAD_BYTES, said + SLU_HEAD_BYTES, SLU_HEAD_BYTES) ==
                SLU_HEAD_BYTES,
            "no answer");
    slu_session_make(secret, sizeof(secret), said, sizeof(said), &session);
    for (size_t i = 0; i < sizeof(said); i++) {
        said[i] ^= 1;
        slu_session_make(secret, sizeof(secret), said, sizeof(said), &changed);
        slu_session_prove(&changed, proof);
        require(!slu_session_proves(&session, proof), "byte %zu", i);
        said[i] ^= 1;
    }
    slu_session_prove(&session, proof);
    require(ask_raw(fd, proof, sizeof(proof), reply, sizeof(reply)) == sizeof(reply), "no reply");
    require(slu_reply_proves(&session, reply, 0), "not proven");
    for (size_t i = 0; i < sizeof(reply); i++) {
        reply[i] ^= 1;
        require(!slu_reply_proves(&session, reply, 0), "byte %zu of the reply", i);
        reply[i] ^= 1;
    }
    close(fd);
    close_scene();
}

/* An impossible hello, in pieces or at once, gets no answer, or the reason. */
TEST(impossible_hellos)
{
    static const uint8_t garbage[SLU_HEAD_BYTES] = "GET / HTTP/1.1\r\n\r\n";
    uint8_t hello[SLU_HEAD_BYTES], answer[SLU_HEAD_BYTES];
    struct slu_head head;
    open_scene();
    int fd = dial_raw();
    require(ask_raw(fd, garbage, sizeof(garbage), answer, sizeof(answer)) == 0, "it was answered");
    close(fd);
    for (int at = 16; at < 32; at++) { /* the length of its body, and zeros */
        make_hello(hello);
        hello[at] = 0x80;
        fd = dial_raw();
        size_t got = ask_raw(fd, hello, sizeof(hello), answer, at == 19 ? 0 : sizeof(answer));
        if (at >= 20 && at < 24) { /* its means */
            require(got == sizeof(answer) &&
                        slu_head_first(slu_session_answer_magic, answer, &head) &&
                        head.word == SLU_REPLY_DENIED,
                    "byte %d: %zu bytes", at, got);
        } else {
            require(got == 0, "byte %d: %zu bytes", at, got);
        }
        close(fd);
    }
    make_hello(hello);
    hello[9] = hello[11] = 77;
    fd = dial_raw();
    require(ask_raw(fd, hello, SLU_HEAD_FIRST, answer, sizeof(answer)) == sizeof(answer), "none");
    require(slu_head_first(slu_session_answer_magic, answer, &head) &&
                head.word == SLU_REPLY_VERSION && head.written == SLU_SESSION_VERSION &&
                scene.foreign == 1,
            "word %u", head.word);
    close(fd);
    close_scene();
}

/*
 * Silent, incomplete and replaying strangers take all places, and the honest dialer is let in at
 * once.
 */
TEST(strangers_take_no_time, .times = 3)
{
    uint8_t hello[SLU_HEAD_BYTES];
    enum { STRANGERS = 300 };
    int fds[STRANGERS];
    open_scene();
    make_hello(hello);
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = dial_raw();
        /* Send nothing, a part, or all of a recorded hello. */
        size_t count = _i == 0 ? 0 : _i == 1 ? SLU_HEAD_BYTES - 1 : SLU_HEAD_BYTES;
        require(send(fds[i], hello, count, MSG_NOSIGNAL) == (ssize_t)count, "%s", strerror(errno));
        (void)step();
    }
    struct span begin = span_begin();
    slu_dial_add(&scene.target->dial, &scene.address);
    run_until(SLU_TARGET_PENDING);
    require_took(span_since(begin), 0, SLUICE_S(1));
    for (int i = 0; i < STRANGERS; i++) {
        close(fds[i]);
    }
    close_scene();
}

/* With few descriptors in the process, strangers do not get them all. */
TEST(strangers_take_no_descriptors)
{
    struct rlimit limit, all;
    int fds[200];
    require(getrlimit(RLIMIT_NOFILE, &all) == 0, "%s", strerror(errno));
    int used = count_fds();
    limit = all;
    limit.rlim_cur = 64;
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    open_scene();
    require(setrlimit(RLIMIT_NOFILE, &all) == 0, "%s", strerror(errno));
    for (int i = 0; i < 200; i++) {
        fds[i] = dial_raw();
        (void)step();
    }
    require(scene.offers->acceptor.count <= 16, "%u places", scene.offers->acceptor.count);
    slu_dial_add(&scene.target->dial, &scene.address);
    run_until(SLU_TARGET_PENDING);
    for (int i = 0; i < 200; i++) {
        close(fds[i]);
    }
    close_scene();
    require(settle_fds(used) == used, "%d left", count_fds() - used);
}

/* An acceptor of its own, which knows a dialer by its first word, and takes it with the second. */
#define WORD 4
static uint32_t taken;

static enum slu_received take_second(struct slu_acceptor *acceptor, struct slu_pending_conn *conn)
{
    (void)acceptor;
    if (conn->talk.got == 2 * WORD) {
        taken++;
        slu_fd_close(conn->talk.fd);
        return SLU_RECEIVED_TAKEN;
    }
    conn->known = true;
    conn->talk.want = 2 * WORD;
    return SLU_RECEIVED_MORE;
}

/*
 * A listener that was stopped, and first looks at a crowd, or at the clock, keeps the dialers whose
 * proof has come meanwhile.
 */
TEST(a_proof_that_has_come_is_read_before_its_place_is_taken, .times = 2)
{
    static struct slu_acceptor acceptor;
    static const uint8_t word[WORD] = {'w', 'o', 'r', 'd'};
    int fds[5], epoll = slu_fd_epoll();
    taken = 0;
    slu_acceptor_init(&acceptor, epoll, 0);
    acceptor.receive = take_second;
    acceptor.hello = acceptor.magic_bytes = WORD;
    acceptor.magic = word;
    acceptor.places = 4;
    require_ok(slu_acceptor_add(&acceptor, listen_here(&scene.address)));
    for (uint32_t i = 0; i < 4; i++) {
        fds[i] = dial_raw();
        require(send(fds[i], word, WORD, 0) == WORD, "%s", strerror(errno));
        for (int64_t end = fair_now() + SLUICE_S(20); !acceptor.conns[i].known;) {
            require(fair_now() < end, "dialer %u was not accepted", i);
            slu_acceptor_event(&acceptor, acceptor.count > i ? i : SLU_PLACES);
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        require(send(fds[i], word, WORD, 0) == WORD, "%s", strerror(errno));
        acceptor.conns[i].since -= SLUICE_S(2);
    }
    fds[4] = dial_raw();
    if (_i == 0) {
        slu_acceptor_event(&acceptor, SLU_PLACES);
        require(taken == 1 && acceptor.count == 4, "%u taken, %u wait", taken, acceptor.count);
    } else {
        slu_acceptor_tick(&acceptor, slu_now() + SLUICE_S(9));
        require(taken == 4 && acceptor.count == 0, "%u taken, %u wait", taken, acceptor.count);
    }
    for (int i = 0; i < 5; i++)
        close(fds[i]);
    slu_acceptor_close(&acceptor);
    slu_fd_close(epoll);
}

static void *pause_cancelled(void *goes_on)
{
    uint32_t pauses = 0;
    pthread_cancel(pthread_self());
    *(bool *)goes_on = slu_stream_pause(ENOBUFS, &pauses);
    return NULL;
}

/* Who pauses may hold locks, as a thread that deregisters memory does. */
TEST(a_pause_for_memory_is_no_cancellation_point)
{
    bool goes_on = false;
    pthread_t thread;
    require(pthread_create(&thread, NULL, pause_cancelled, &goes_on) == 0, "no thread");
    pthread_join(thread, NULL);
    require(goes_on, "the thread ended in the pause");
}

int main(void)
{
    return RUN_GROUPS("negotiation", {"negotiation", WIRE_SELF, 60});
}
