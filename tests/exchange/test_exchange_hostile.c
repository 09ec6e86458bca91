/* SPDX-License-Identifier: MIT */
/*
 * The exchange over TCP with strangers, liars and dying ranks: a stranger is dropped, and the ranks
 * go on; a rank that breaks a call fails all ranks, with the reason. Ranks that are impossible, and
 * ranks that do not come, are in test_exchange_refused.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/process.h"
#include "liar.h"

TEST(d1_strangers)
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
    start_root_of(&parties, 4, LONG);
    for (size_t i = 0; i < COUNT(idle); i++) {
        idle[i] = dial_port(parties.port);
        say(idle[i], words[i % 2], strlen(words[i % 2]));
    }
    for (size_t i = 0; i < 3 * COUNT(words); i++) {
        int fd = dial_port(parties.port);
        say(fd, words[i % COUNT(words)], strlen(words[i % COUNT(words)]));
        close(fd);
    }
    finish_all(&parties);
    require(fair_now() - start < SOON, "the strangers held them up");
    for (size_t i = 0; i < COUNT(idle); i++) {
        close(idle[i]);
    }
}

/*
 * More connections than rank 0 serves at once: silent ones, and those that say hello and prove
 * nothing, make room.
 */
TEST(d1_a_flood, .times = 2)
{
    struct parties parties;
    uint8_t hello[HELLO];
    int idle[400];
    int64_t start = fair_now();
    start_root_of(&parties, 4, LONG);
    for (size_t i = 0; i < COUNT(idle); i++) {
        idle[i] = dial_port(parties.port);
        make_hello(hello, 4, 1 + i % 3);
        say(idle[i], hello, _i == 0 ? 0 : HELLO);
    }
    finish_all(&parties);
    require(fair_now() - start < SOON, "the flood held them up");
    for (size_t i = 0; i < COUNT(idle); i++) {
        close(idle[i]);
    }
}

TEST(d2_hellos_to_rank_0)
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
                 {OWN_VERSION + 3, 1, NOT_STARTED, REFUSED_VERSION, "3"},
                 {OWN_VERSION + 1, 2, NOT_STARTED, REFUSED_VERSION, "3"},
                 {OWN_VERSION + 3, 4, NOT_STARTED, REFUSED_VERSION, "3"},
                 {JOB, 'x', NOT_STARTED, REFUSED_JOB, ""},
                 {RANKS + 3, 4, NOT_STARTED, 0, "rank 1 at 127.0.0.1"},
                 {RANK, 1, NOT_STARTED, 0, "it is rank 16777217, which can be 1 to 2"},
                 {JOB + 1, 'x', LET_GO, 0, ""},
                 {JOB + 63, 1, LET_GO, 0, ""}};
    struct parties parties;
    struct talk talk;
    char what[40];
    start_root_of(&parties, 3, LONG);
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
        default: /* any program could have sent it: it is no hello of a rank */
            require(prove(fd, &talk), "%s: no answer", what);
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
    finish_all(&parties);
}

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

/* Lets a rank of the test's own send this in its first call. */
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

TEST(d2_frames_to_rank_0)
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

/*
 * Lets rank 1 receive these bytes from a rank 0 of the test's own, in place of its answer or after
 * it was let in.
 */
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

TEST(d2_answers_of_rank_0)
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

/*
 * Answers correctly, and then sends these bytes in place of its first reply, or behind the reply
 * that rank 1 stands.
 */
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
    /* The proof covers its body as well. */
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

TEST(d2_replies_of_rank_0)
{
    /* Byte 15, which is normally 0, marks a part that a proof must follow. */
    static const struct {
        uint8_t word, proven, body[12];
        uint32_t bytes;
        bool first;
        int error;
        const char *words;
    } wrong[] = {{STANDS, 0, {0}, 0, true, EACCES, "does not know the secret"},
                 {DENIED, 0, {0}, 0, true, EACCES, "has another secret"},
                 {ADMITTED, 0, {0}, 0, true, EACCES, "does not know the secret"},
                 {REFUSED, 1, {0, 0, 0, 100, 'x'}, 5, true, EPROTO, "of job \"x\", not \"\""},
                 {99, 1, {0}, 0, true, EPROTO, "not rank 0"},
                 {ADMITTED, 0, {0}, 0, false, EACCES, "does not know the secret"},
                 {STANDS, 1, {0}, 0, false, EPROTO, "not rank 0"},
                 {DENIED, 0, {0}, 0, false, EACCES, "has another secret"},
                 {REFUSED, 0, {0, 0, 0, 100, 'x'}, 5, false, EACCES, "does not know the secret"},
                 {REFUSED, 1, {0, 0, 0}, 3, false, EPROTO, "not rank 0"},
                 {REFUSED, 1, {0, 0, 0, 100, 'x'}, 5, false, EPROTO, "of job \"x\", not \"\""},
                 {REFUSED,
                  1,
                  {0, 0, 0, 101, '9'},
                  5,
                  false,
                  EPROTO,
                  "version of the exchange: 9; this library version 3, readable from version 3"},
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

/* Sends a frame of a call after the correct start of rank 0. */
static void answer_call(uint8_t type, uint64_t sequence, uint64_t bytes, const void *payload,
                        size_t count, int error, const char *words)
{
    uint8_t whole[2 * FRAME + 64];
    make_frame(whole, STARTED, 0, 0);
    make_frame(whole + FRAME, type, sequence, bytes);
    memcpy(whole + 2 * FRAME, payload, count);
    answer(true, whole, 2 * FRAME + count, true, error, words);
}

TEST(d2_frames_of_rank_0)
{
    /* Fields: error, length of the text, number of missing ranks. */
    uint8_t verdict[12 + 4 + 4] = {0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 'l', 'a', '\x1b', 'e', 0};
    answer_call(0, 1, 8, "", 0, -EPROTO, "not a frame");
    answer_call(99, 1, 8, "", 0, -EPROTO, "not a frame");
    answer_call(9, 1, 8, "", 0, -EPROTO, "answers allgather with taken");
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

int main(void)
{
    const struct tests cases[] = {{"tcp", WIRE_TCP, 90}};
    /* Each refusal logs a warning, and there are many. */
    if (sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL) != 0) {
        return EXIT_FAILURE;
    }
    return run_groups("exchange_hostile", cases, COUNT(cases));
}
