/* SPDX-License-Identifier: MIT */
/*
 * The exchange over TCP among strangers, liars and the dying: who is no rank is
 * dropped, and who cannot be a rank refused, and the ranks go on; a rank that is wrong
 * in a call fails all, who are told why.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/process.h"
#include "liar.h"

static void call(struct party *party)
{
    party_calls(party, 320);
}

/* Rank 0 listens, and the others are yet to come. */
static void start_root(struct parties *parties, uint32_t count, int64_t deadline)
{
    parties_make(parties, count, deadline);
    for (uint32_t i = 1; i < count; i++) {
        parties->party[i].absent = true;
    }
    parties_start(parties, call);
}

static void finish(struct parties *parties)
{
    for (uint32_t i = 1; i < parties->count; i++) {
        party_start(&parties->party[i], call);
    }
    parties_join(parties);
    require_all_ok(parties);
}

START_TEST(d1_strangers)
{
    static const char *const words[] = {"",
                                        "s",
                                        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                                        "sluice but something else",
                                        "\n\n\n\n"};
    struct parties parties;
    int idle[128];
    int64_t start = fair_now();
    start_root(&parties, 4, LONG);
    for (size_t i = 0; i < COUNT(idle); i++) {
        idle[i] = dial_port(parties.port);
        say(idle[i], words[i % 2], strlen(words[i % 2]));
    }
    for (size_t i = 0; i < 3 * COUNT(words); i++) {
        int fd = dial_port(parties.port);
        say(fd, words[i % COUNT(words)], strlen(words[i % COUNT(words)]));
        close(fd);
    }
    finish(&parties);
    require(fair_now() - start < SOON, "the strangers held them up");
    for (size_t i = 0; i < COUNT(idle); i++) {
        close(idle[i]);
    }
}
END_TEST

/* More than it hears at once: the silent make place, and those who say hello and prove nothing. */
START_TEST(d1_a_flood)
{
    struct parties parties;
    uint8_t hello[HELLO];
    int idle[400];
    int64_t start = fair_now();
    start_root(&parties, 4, LONG);
    for (size_t i = 0; i < COUNT(idle); i++) {
        idle[i] = dial_port(parties.port);
        make_hello(hello, 4, 1 + i % 3);
        say(idle[i], hello, _i == 0 ? 0 : HELLO);
    }
    finish(&parties);
    require(fair_now() - start < SOON, "the flood held them up");
    for (size_t i = 0; i < COUNT(idle); i++) {
        close(idle[i]);
    }
}
END_TEST

START_TEST(d2_hellos_to_rank_0)
{
    enum { DROPPED, ANSWERED, NOT_STARTED, LET_GO };
    static const struct {
        size_t offset;
        uint8_t value, how;
        uint32_t word; /* of the answer, or code of the refusal */
        const char *words;
    } wrong[] = {{0, 'S', DROPPED, 0, ""},
                 {7, 0, DROPPED, 0, ""},
                 {VERSION, 1, ANSWERED, OTHER_VERSION, ""},
                 {VERSION + 1, 0, ANSWERED, OTHER_VERSION, ""},
                 {VERSION + 1, 2, ANSWERED, OTHER_VERSION, ""},
                 {WORD + 3, 1, ANSWERED, OTHER_PURPOSE, ""},
                 {WORD, 1, ANSWERED, OTHER_PURPOSE, ""},
                 {MEANS + 3, 1, ANSWERED, DENIED, ""},
                 {MEANS + 3, 2, ANSWERED, DENIED, ""},
                 {MEANS + 3, 3, ANSWERED, DENIED, ""},
                 {BYTES, 0x80, DROPPED, 0, ""},
                 {ZERO, 1, DROPPED, 0, ""},
                 {ZERO + 7, 1, DROPPED, 0, ""},
                 {OWN_VERSION + 3, 1, NOT_STARTED, REFUSED_VERSION, "2"},
                 {OWN_VERSION, 1, NOT_STARTED, REFUSED_VERSION, "2"},
                 {JOB, 'x', NOT_STARTED, REFUSED_JOB, ""},
                 {RANKS + 3, 4, NOT_STARTED, 0, "rank 1 at 127.0.0.1"},
                 {RANK, 1, NOT_STARTED, 0, "it is rank 16777217, which can be 1 to 2"},
                 {JOB + 1, 'x', LET_GO, 0, ""},
                 {JOB + 63, 1, LET_GO, 0, ""}};
    struct parties parties;
    struct talk talk;
    uint8_t reply[REPLY];
    char what[40];
    start_root(&parties, 3, LONG);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        int fd = dial_port(parties.port);
        snprintf(what, sizeof(what), "%u at %zu", wrong[i].value, wrong[i].offset);
        make_hello(talk.said, 3, 1);
        talk.said[wrong[i].offset] = wrong[i].value;
        say(fd, talk.said, HELLO);
        switch (wrong[i].how) {
        case DROPPED:
            require_dropped(fd, what);
            break;
        case ANSWERED:
            require_answered(fd, (uint8_t)wrong[i].word, what);
            break;
        case NOT_STARTED:
            require_refused(fd, &talk, wrong[i].word, wrong[i].words, what);
            break;
        default: /* it could be anybody's, and is no hello of a rank */
            require(prove(fd, &talk) && hear(fd, reply, REPLY), "%s: no reply", what);
            require_dropped(fd, what);
            break;
        }
    }
    make_hello(talk.said, 3, 1);
    for (size_t length = 0; length < HELLO; length++) {
        int fd = dial_port(parties.port);
        say(fd, talk.said, length);
        shutdown(fd, SHUT_WR);
        require_dropped(fd, "a part of a hello");
    }
    finish(&parties);
}
END_TEST

static void gather_of_two(struct party *party)
{
    uint8_t own[8] = {0};
    uint8_t all[16];
    memset(all, 0xcc, sizeof(all));
    int error = sluice_exchange_allgather(party->exchange, own, all, sizeof(own), party->deadline);
    require(party_failed(party, error), "it succeeded");
    for (size_t i = 8; i < sizeof(all); i++) {
        require(all[i] == 0xcc, "byte %zu was written", i);
    }
}

/* A rank of the test's own, which says this in its first call. */
static void say_call(const uint8_t *bytes, size_t count, int error, const char *words)
{
    struct parties parties;
    uint8_t started[FRAME];
    parties_make(&parties, 2, LONG);
    parties.party[1].absent = true;
    parties_start(&parties, gather_of_two);
    int fd = join(&parties, 2, 1);
    require(hear(fd, started, FRAME) && started[0] == STARTED, "it does not start");
    say(fd, bytes, count);
    shutdown(fd, SHUT_WR);
    pthread_join(parties.party[0].thread, NULL);
    party_require(&parties.party[0], error, words);
    close(fd);
}

START_TEST(d2_frames_to_rank_0)
{
    static const struct {
        uint8_t type, zero;
        uint64_t sequence, bytes;
        const char *words;
    } wrong[] = {{0, 0, 1, 8, "rank 1 sent something unexpected"},
                 {8, 0, 1, 8, "rank 1 sent something unexpected"},
                 {255, 0, 1, 8, "rank 1 sent something unexpected"},
                 {VERDICT, 0, 1, 8, "rank 1 sent something unexpected"},
                 {1, 0, 1, 8, "rank 1 sent something unexpected"},
                 {ALLGATHER, 1, 1, 8, "rank 1 sent something unexpected"},
                 {ALLTOALL, 0, 1, 8, "rank 1 call 1, alltoall of 8 rank 0 allgather of 8"},
                 {BARRIER, 0, 1, 0, "rank 1 call 1, barrier of 0 rank 0 allgather of 8"},
                 {ALLGATHER, 0, 2, 8, "rank 1 call 2, rank 0 makes call 1"},
                 {ALLGATHER, 0, UINT64_MAX, 8, "rank 1 rank 0 makes call 1"},
                 {ALLGATHER, 0, 1, 0, "of 0 bytes rank 0 of 8 bytes"},
                 {ALLGATHER, 0, 1, UINT32_MAX, "of 4294967295 bytes rank 0 of 8 bytes"},
                 {ALLGATHER, 0, 1, UINT64_MAX, "rank 0 of 8 bytes"}};
    uint8_t frame[FRAME + 8];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        make_frame(frame, wrong[i].type, wrong[i].sequence, wrong[i].bytes);
        frame[4] = wrong[i].zero;
        say_call(frame, FRAME, -EPROTO, wrong[i].words);
    }
    make_frame(frame, ALLGATHER, 1, 8);
    memset(frame + FRAME, 0xcc, 8);
    for (size_t length = 0; length < sizeof(frame); length++) {
        say_call(frame, length, -ECONNRESET, "rank 1 gone");
    }
}
END_TEST

/* What rank 1 hears of a rank 0 of the test's own: in place of its answer, or once it is let in. */
static void answer(bool inside, const void *bytes, size_t count, bool more, int error,
                   const char *words)
{
    struct parties parties;
    struct talk talk;
    parties_make(&parties, 2, more ? LONG : SLUICE_MS(100));
    parties.party[0].absent = true;
    int listener = listen_at(&parties.port);
    parties_start(&parties, gather_of_two);
    int fd = accept(listener, NULL, NULL);
    require(fd >= 0, "%m");
    if (inside) {
        let_in(fd, &talk);
    } else {
        require(hear(fd, talk.said, HELLO), "it says nothing");
    }
    say(fd, bytes, count);
    shutdown(fd, SHUT_WR);
    if (!more) {
        close(fd);
        close(listener);
    }
    parties_join(&parties);
    party_require(&parties.party[1], error, words);
    if (more) {
        close(fd);
        close(listener);
    }
}

START_TEST(d2_answers_of_rank_0)
{
    static const struct {
        size_t offset;
        uint8_t value;
        int error;
        const char *words;
    } wrong[] = {{0, 'H', EPROTO, "not rank 0"},
                 {7, '?', EPROTO, "not rank 0"},
                 {VERSION + 1, 2, EPROTO, "version 2"},
                 {WORD + 3, DENIED, EACCES, "refused the secret of rank 1"},
                 {WORD + 3, OTHER_VERSION, EPROTO, "not rank 0"},
                 {WORD + 3, OTHER_PURPOSE, EPROTO, "not rank 0"},
                 {WORD + 3, STANDS, EPROTO, "not rank 0"},
                 {WORD, 1, EPROTO, "not rank 0"},
                 {MEANS + 3, 1, EACCES, "has a secret"},
                 {MEANS + 3, 2, EACCES, "has munge"},
                 {BYTES, 0x80, EPROTO, "not rank 0"},
                 {ZERO, 1, EPROTO, "not rank 0"},
                 {ZERO + 7, 1, EPROTO, "not rank 0"}};
    static const size_t lengths[] = {0, 1, 9, 16, 63};
    uint8_t bytes[ANSWER];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        make_answer(bytes);
        bytes[wrong[i].offset] = wrong[i].value;
        answer(false, bytes, ANSWER, true, -wrong[i].error, wrong[i].words);
    }
    answer(false, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, true, -EPROTO, "not rank 0");
    make_answer(bytes);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        answer(false, bytes, lengths[i], false, -ETIMEDOUT, "rank 0 did not come");
    }
}
END_TEST

/* It answers well, and then says this in place of that rank 1 stands, or is let in. */
static void reply(const uint8_t *bytes, size_t count, bool first, int error, const char *words)
{
    struct parties parties;
    struct talk talk;
    uint8_t proof[PROOF_BYTES], whole[REPLY];
    parties_make(&parties, 2, LONG);
    parties.party[0].absent = true;
    int listener = listen_at(&parties.port);
    parties_start(&parties, gather_of_two);
    int fd = accept(listener, NULL, NULL);
    require(hear(fd, talk.said, HELLO), "it says nothing");
    make_answer(talk.said + HELLO);
    say(fd, talk.said + HELLO, ANSWER);
    sign((const uint8_t *)"", 0, "sluice session", talk.said, sizeof(talk.said), talk.key);
    require(hear(fd, proof, sizeof(proof)), "no proof");
    if (!first) {
        make_reply(&talk, STANDS, whole);
        say(fd, whole, REPLY);
    }
    /* Its body is proven as well. */
    uint8_t sent[REPLY + 64] = {0};
    memcpy(sent, bytes, count);
    if (sent[15] == 1) {
        uint8_t part[16 + 64];
        memcpy(part, sent, 15);
        part[15] = 0;
        memcpy(part + 16, sent + REPLY, count - REPLY);
        sent[15] = 0;
        sign(talk.key, sizeof(talk.key), "sluice replies", part, 16 + count - REPLY,
             sent + REPLY - PROOF_BYTES);
    }
    say(fd, sent, count);
    shutdown(fd, SHUT_WR);
    parties_join(&parties);
    party_require(&parties.party[1], error, words);
    close(fd);
    close(listener);
}

START_TEST(d2_replies_of_rank_0)
{
    /* Byte 15, which is to be 0, says that it is to be proven. */
    static const struct {
        uint8_t word, proven, body[12];
        uint32_t bytes;
        bool first;
        int error;
        const char *words;
    } wrong[] = {{STANDS, 0, {0}, 0, true, EACCES, "does not know the secret"},
                 {DENIED, 0, {0}, 0, true, EACCES, "has another secret"},
                 {ADMITTED, 1, {0}, 0, true, EPROTO, "not rank 0"},
                 {99, 1, {0}, 0, true, EPROTO, "not rank 0"},
                 {ADMITTED, 0, {0}, 0, false, EACCES, "does not know the secret"},
                 {STANDS, 1, {0}, 0, false, EPROTO, "not rank 0"},
                 {DENIED, 0, {0}, 0, false, EACCES, "has another secret"},
                 {REFUSED, 0, {0, 0, 0, 100, 'x'}, 5, false, EACCES, "does not know the secret"},
                 {REFUSED, 1, {0, 0, 0}, 3, false, EPROTO, "not rank 0"},
                 {REFUSED, 1, {0, 0, 0, 100, 'x'}, 5, false, EPROTO, "of job \"x\", not \"\""},
                 {REFUSED, 1, {0, 0, 0, 101, '9'}, 5, false, EPROTO, "version 9 of the exchange, this library 2"},
                 {REFUSED, 1, {0, 0, 0, 3, 'l', 'a', 0x1b}, 7, false, EEXIST, "la?"},
                 {REFUSED, 1, {0xff, 0, 0, 3, 'l', 'a'}, 6, false, EPROTO, "la"}};
    uint8_t bytes[REPLY + 12];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        memset(bytes, 0, sizeof(bytes));
        put(bytes, wrong[i].word, 4);
        put(bytes + 4, wrong[i].bytes, 4);
        bytes[15] = wrong[i].proven;
        memcpy(bytes + REPLY, wrong[i].body, wrong[i].bytes);
        reply(bytes, REPLY + wrong[i].bytes, wrong[i].first, -wrong[i].error, wrong[i].words);
    }
}
END_TEST

/* What follows the good beginning of rank 0. */
static void answer_call(uint8_t type, uint64_t sequence, uint64_t bytes, const void *payload,
                        size_t count, int error, const char *words)
{
    uint8_t whole[2 * FRAME + 64];
    make_frame(whole, STARTED, 0, 0);
    make_frame(whole + FRAME, type, sequence, bytes);
    memcpy(whole + 2 * FRAME, payload, count);
    answer(true, whole, 2 * FRAME + count, true, error, words);
}

START_TEST(d2_frames_of_rank_0)
{
    /* Error, length of the text, ranks that were missing. */
    uint8_t verdict[12 + 4 + 4] = {0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 'l', 'a', '\x1b', 'e', 0};
    answer_call(0, 1, 8, "", 0, -EPROTO, "not a frame");
    answer_call(9, 1, 8, "", 0, -EPROTO, "not a frame");
    answer_call(BARRIER, 1, 0, "", 0, -EPROTO, "answers allgather with barrier");
    answer_call(ALLGATHER, 2, 8, "", 0, -EPROTO, "call 1, call 2");
    answer_call(ALLGATHER, 1, 9, "", 0, -EPROTO, "8 bytes 9 bytes");
    answer_call(ALLGATHER, 1, 8, "", 0, -ECONNRESET, "rank 0 gone");
    answer_call(VERDICT, 1, UINT32_MAX, "", 0, -EPROTO, "verdict");
    answer_call(VERDICT, 1, 11, "", 0, -EPROTO, "verdict");
    answer_call(VERDICT, 1, 20, verdict, 10, -ECONNRESET, "rank 0 gone");
    answer_call(VERDICT, 1, 19, verdict, 19, -EPROTO, "malformed verdict");
    answer_call(VERDICT, 1, 20, verdict, 20, -ETIMEDOUT, "la?e");
    put(verdict + 8, UINT32_MAX, 4);
    answer_call(VERDICT, 1, 20, verdict, 20, -EPROTO, "malformed verdict");
    put(verdict, 99, 4);
    answer_call(VERDICT, 1, 20, verdict, 20, -EPROTO, "malformed verdict");
}
END_TEST

START_TEST(d3_another_job)
{
    static struct party stranger;
    struct parties parties;
    start_root(&parties, 3, LONG);
    stranger = parties.party[2];
    stranger.attr.job = "another";
    party_start(&stranger, call);
    pthread_join(stranger.thread, NULL);
    party_require(&stranger, -EPROTO, "job \"\", not \"another\"");
    finish(&parties);
}
END_TEST

/* Who says to be a rank that is there is refused, and told so; the others are not held up. */
START_TEST(d4_a_rank_twice)
{
    static const char *words = "rank 2: one at 127.0.0.1: one at 127.0.0.1:";
    static struct party twin;
    struct parties parties;
    start_root(&parties, 4, LONG);
    twin = parties.party[2];
    int fd = join(&parties, 4, 2);
    party_start(&twin, call);
    pthread_join(twin.thread, NULL);
    party_require(&twin, -EEXIST, words);
    close(fd);
    finish(&parties);
}
END_TEST

/* All that are there, and those that come later, learn in the end what was wrong. */
START_TEST(d4_other_numbers_of_ranks)
{
    struct parties parties;
    start_root(&parties, 4, SLUICE_S(2));
    int fd = join(&parties, 4, 1);
    parties.party[2].attr.ranks = 3;
    party_start(&parties.party[2], call);
    pthread_join(parties.party[2].thread, NULL);
    party_require(&parties.party[2], -EPROTO, "rank 2 at 127.0.0.1: 3 ranks, rank 0 says 4");
    parties.party[2].absent = true;
    party_start(&parties.party[3], call);
    parties_join(&parties);
    party_require(&parties.party[0], -EPROTO, "3 ranks, rank 0 says 4 refused missing: rank 2");
    party_require(&parties.party[3], -EPROTO, "3 ranks, rank 0 says 4 refused missing: rank 2");
    require_verdict(fd, "there are 3 ranks, rank 0 says 4");
}
END_TEST

/* One hello of a stranger who knows our words does not end the run of anybody. */
START_TEST(d4_a_rank_that_is_none)
{
    static const uint32_t ranks[] = {0, 4, UINT32_MAX, 1};
    struct parties parties;
    struct talk talk;
    char words[60];
    start_root(&parties, 4, LONG);
    int liar = dial_port(parties.port);
    make_hello(talk.said, _i == 3 ? 5 : 4, ranks[_i]);
    say(liar, talk.said, HELLO);
    snprintf(words, sizeof(words), "rank %u, which can be 1 to 3", ranks[_i]);
    require_refused(liar, &talk, 0, _i == 3 ? "there are 5 ranks, rank 0 says 4" : words, "a liar");
    finish(&parties);
}
END_TEST

/* Who says again and again to be a rank that is there is refused, and the ranks become complete. */
START_TEST(d4_false_ranks_without_end)
{
    struct parties parties;
    struct talk talk;
    int liars[100];
    size_t count = 0;
    int64_t start = fair_now();
    parties_make(&parties, 3, LONG);
    party_start(&parties.party[0], NULL);
    int fd = join(&parties, 3, 1);
    party_start(&parties.party[2], NULL);
    /* Until nobody listens any more. */
    uint8_t started[FRAME];
    while (recv(fd, started, FRAME, MSG_PEEK | MSG_DONTWAIT) < 0 && count < COUNT(liars)) {
        uint16_t port = parties.port;
        liars[count] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(liars[count], (struct sockaddr *)&at, sizeof(at)) == 0) {
            make_hello(talk.said, 3, 1);
            say(liars[count], talk.said, HELLO);
            (void)prove(liars[count], &talk);
        }
        count++;
        let_pass(SLUICE_MS(300));
    }
    require(hear(fd, started, FRAME) && started[0] == STARTED, "they did not become complete");
    require(fair_now() - start < SOON, "the liars held them up");
    close(fd);
    parties_join(&parties);
    party_require(&parties.party[2], 0, "");
    for (size_t i = 0; i < count; i++) {
        close(liars[i]);
    }
}
END_TEST

/* What rank 3 of 4 does; ranks 0 to 2 fail, and their texts name it. */
static void require_all(struct parties *parties, int error, const char *words)
{
    parties_join(parties);
    for (uint32_t i = 0; i < parties->count - 1; i++) {
        party_require(&parties->party[i], error, words);
    }
}

static void start_without_last(struct parties *parties, int64_t deadline)
{
    parties_make(parties, 4, deadline);
    parties->party[3].absent = true;
    parties_start(parties, call);
}

/* Rank 3 comes, or has come, and all is well. */
static void finish_last(struct parties *parties)
{
    if (parties->party[3].absent) {
        party_start(&parties->party[3], call);
    }
    parties_join(parties);
    require_all_ok(parties);
}

START_TEST(d5_missing)
{
    struct parties parties;
    start_without_last(&parties, SLUICE_S(1));
    require_all(&parties, -ETIMEDOUT, "rank 3 did not come");
}
END_TEST

START_TEST(d5_late)
{
    struct parties parties;
    parties_make(&parties, 4, LONG);
    parties.party[3].delay = short_run() ? SLUICE_MS(700) : SLUICE_S(20);
    parties_run(&parties, call);
    require_all(&parties, 0, "");
}
END_TEST

START_TEST(d5_dying)
{
    struct parties parties;
    /* Had all come before it is gone, they would have begun. */
    start_root(&parties, 4, SLUICE_MS(700));
    close(join(&parties, 4, 3));
    party_start(&parties.party[1], call);
    party_start(&parties.party[2], call);
    require_all(&parties, -ETIMEDOUT, "rank 3 did not come rank 3 at 127.0.0.1: there and is gone");
}
END_TEST

/* As one that rank 0 was too slow for: it has hung up, and what it said is still heard. */
START_TEST(d5_dialing_again)
{
    struct parties parties;
    uint8_t hello[HELLO];
    start_root(&parties, 4, LONG);
    make_hello(hello, 4, 3);
    for (int i = 0; i < 20; i++) {
        int fd = dial_port(parties.port);
        say(fd, hello, HELLO);
        close(fd);
    }
    close(join(&parties, 4, 3));
    finish(&parties);
}
END_TEST

/* The second connection is there before the end of the first one. */
START_TEST(d5_dialing_again_early)
{
    struct parties parties;
    start_root(&parties, 4, LONG);
    int fd = join(&parties, 4, 3);
    party_start(&parties.party[3], call);
    let_pass(SLUICE_MS(200));
    close(fd);
    party_start(&parties.party[1], call);
    party_start(&parties.party[2], call);
    finish_last(&parties);
}
END_TEST

/* What the log names as missing. */
static char missing[4096];

static void keep_missing(uint32_t level, const char *line, void *user)
{
    const char *found = strstr(line, "missing ranks ");
    (void)user;
    if (level == SLUICE_LOG_ERROR && found) {
        size_t length = strlen(missing);
        snprintf(missing + length, sizeof(missing) - length, "%s%s", length > 0 ? "," : "",
                 found + strlen("missing ranks "));
    }
}

/* Odd ranks and the last ones, which are more than fit into a line of the log. */
START_TEST(d5_all_that_are_missing)
{
    struct parties parties;
    char expected[4096] = "1";
    int fds[149];
    parties_make(&parties, 2, SLUICE_S(8));
    parties.party[0].attr.ranks = 400;
    parties.party[1].absent = true;
    require_ok(sluice_log_set(SLUICE_LOG_ERROR, keep_missing, NULL));
    parties_start(&parties, NULL);
    for (uint32_t i = 0; i < COUNT(fds); i++) {
        size_t length = strlen(expected);
        fds[i] = join(&parties, 400, 2 * i + 2);
        snprintf(expected + length, sizeof(expected) - length, ",%u", 2 * i + 3);
    }
    parties_join(&parties);
    strcat(expected, "-399");
    party_require(&parties.party[0], -ETIMEDOUT, "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 242 others");
    require(strcmp(missing, expected) == 0, "'%s', not '%s'", missing, expected);
    for (uint32_t i = 0; i < COUNT(fds); i++) {
        close(fds[i]);
    }
}
END_TEST

/* Rank 0 cannot take rank 1 in, though it had room when it began. */
START_TEST(d5_no_file_descriptor)
{
    struct parties parties;
    struct rlimit limit, low;
    uint8_t hello[HELLO];
    require_ok(sluice_log_set(SLUICE_LOG_NONE, NULL, NULL));
    start_root(&parties, 3, SLUICE_S(5));
    int stranger = dial_port(parties.port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    close(join(&parties, 3, 2));
    let_pass(SLUICE_MS(50));
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    low = limit;
    low.rlim_cur = 3;
    require(setrlimit(RLIMIT_NOFILE, &low) == 0, "%m");
    dial_with(fd, parties.port);
    make_hello(hello, 3, 1);
    say(fd, hello, HELLO);
    parties_join(&parties);
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    party_require(&parties.party[0], -EMFILE, "could not accept all ranks missing: ranks 1 and 2");
    close(fd);
    close(stranger);
}
END_TEST

/* Strangers of another process take no descriptor that a rank needs. */
START_TEST(d5_few_file_descriptors)
{
    struct parties parties;
    struct rlimit limit, low;
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    low = limit;
    low.rlim_cur = 64;
    require(setrlimit(RLIMIT_NOFILE, &low) == 0, "%m");
    start_root(&parties, 4, LONG);
    pid_t strangers = fork();
    if (strangers == 0) {
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int i = 0; i < 200; i++) {
            dial_port(parties.port);
        }
        pause();
        _exit(0);
    }
    let_pass(SLUICE_MS(200));
    int64_t start = fair_now();
    finish(&parties);
    require(fair_now() - start < SOON, "the strangers held them up");
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%m");
    kill(strangers, SIGKILL);
    waitpid(strangers, NULL, 0);
}
END_TEST

/* A byte every 20 ms: the greeting is not at its end when the deadline passes. */
START_TEST(d5_slow)
{
    struct parties parties;
    uint8_t hello[HELLO];
    start_without_last(&parties, SLUICE_S(1));
    int fd = dial_port(parties.port);
    make_hello(hello, 4, 3);
    for (int i = 0; i < 60; i++) {
        say(fd, hello + i, 1);
        let_pass(SLUICE_MS(20));
    }
    require_all(&parties, -ETIMEDOUT, "rank 3 did not come");
    close(fd);
}
END_TEST

static pthread_barrier_t meeting;

static void gather_large(struct party *party)
{
    size_t bytes = SLUICE_EXCHANGE_MAX_BYTES;
    uint8_t *own = calloc(1, bytes);
    uint8_t *all = calloc(party->attr.ranks, bytes);
    require(own && all, "no memory");
    int64_t deadline = party->attr.rank == 0 ? SLUICE_S(6) : party->deadline;
    int error = sluice_exchange_allgather(party->exchange, own, all, bytes, deadline);
    if (!party_failed(party, error)) {
        /* Who has its result learns of it in the next call. */
        error = sluice_exchange_barrier(party->exchange, party->deadline);
        require(party_failed(party, error), "it succeeded");
    }
    pthread_barrier_wait(&meeting);
    free(own);
    free(all);
}

/* It gives what is due, and never takes its result, which is more than a socket holds. */
START_TEST(d5_deaf)
{
    static const uint32_t deaf[] = {7};
    struct parties parties;
    uint8_t frame[FRAME];
    uint8_t *bytes = calloc(1, SLUICE_EXCHANGE_MAX_BYTES);
    require(bytes, "no memory");
    parties_make(&parties, 8, LONG);
    parties.party[7].absent = true;
    pthread_barrier_init(&meeting, NULL, 7);
    parties_start(&parties, gather_large);
    int fd = join(&parties, 8, 7);
    require(hear(fd, frame, FRAME) && frame[0] == STARTED, "it does not start");
    make_frame(frame, ALLGATHER, 1, SLUICE_EXCHANGE_MAX_BYTES);
    say(fd, frame, FRAME);
    say(fd, bytes, SLUICE_EXCHANGE_MAX_BYTES);
    require_all(&parties, -ETIMEDOUT, "rank 7 did not take the result");
    for (uint32_t i = 0; i < 7; i++) {
        party_require_missing(&parties.party[i], deaf, 1);
    }
    pthread_barrier_destroy(&meeting);
    close(fd);
    free(bytes);
}
END_TEST

static void add(TCase *tcase)
{
    tcase_add_test(tcase, d1_strangers);
    tcase_add_loop_test(tcase, d1_a_flood, 0, 2);
    tcase_add_test(tcase, d2_hellos_to_rank_0);
    tcase_add_test(tcase, d2_frames_to_rank_0);
    tcase_add_test(tcase, d2_answers_of_rank_0);
    tcase_add_test(tcase, d2_replies_of_rank_0);
    tcase_add_test(tcase, d2_frames_of_rank_0);
    tcase_add_test(tcase, d3_another_job);
    tcase_add_test(tcase, d4_a_rank_twice);
    tcase_add_test(tcase, d4_other_numbers_of_ranks);
    tcase_add_loop_test(tcase, d4_a_rank_that_is_none, 0, 4);
    tcase_add_test(tcase, d4_false_ranks_without_end);
    tcase_add_test(tcase, d5_missing);
    tcase_add_test(tcase, d5_late);
    tcase_add_test(tcase, d5_dying);
    tcase_add_test(tcase, d5_dialing_again);
    tcase_add_test(tcase, d5_dialing_again_early);
    tcase_add_test(tcase, d5_all_that_are_missing);
    tcase_add_test(tcase, d5_no_file_descriptor);
    tcase_add_test(tcase, d5_few_file_descriptors);
    tcase_add_test(tcase, d5_slow);
    tcase_add_test(tcase, d5_deaf);
}

int main(void)
{
    const struct cases cases[] = {{"tcp", WIRE_TCP, 90, add}};
    /* What is refused is in the log, many times. */
    if (sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL) != 0) {
        return EXIT_FAILURE;
    }
    return run_cases("exchange_hostile", cases, COUNT(cases));
}
