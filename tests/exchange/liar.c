/* SPDX-License-Identifier: MIT */
#include "liar.h"

#include <stdio.h>
#include <unistd.h>

static void make_head(uint8_t *head, const char *magic, uint32_t word, uint32_t bytes)
{
    memset(head, 0, HEAD);
    memcpy(head, magic, 8);
    put(head + VERSION, 1, 2);
    put(head + WORD, word, 4);
    put(head + BYTES, bytes, 4);
    memset(head + CHALLENGE, 0x5a, HEAD - CHALLENGE);
}

void make_hello(uint8_t hello[HELLO], uint32_t ranks, uint32_t rank)
{
    memset(hello, 0, HELLO);
    make_head(hello, "sludoor?", 2, HELLO - HEAD);
    put(hello + OWN_VERSION, 3, 4);
    put(hello + RANKS, ranks, 4);
    put(hello + RANK, rank, 4);
}

void make_answer(uint8_t answer[ANSWER])
{
    make_head(answer, "sludoor!", GO_ON, 0);
}

void make_reply(const struct talk *talk, uint8_t word, uint8_t reply[REPLY])
{
    memset(reply, 0, REPLY);
    put(reply, word, 4);
    sign(talk->key, sizeof(talk->key), "sluice replies", reply, REPLY - PROOF_BYTES,
         reply + REPLY - PROOF_BYTES);
}

void make_frame(uint8_t frame[FRAME], uint8_t type, uint64_t sequence, uint64_t bytes)
{
    memset(frame, 0, FRAME);
    frame[0] = type;
    put(frame + 8, sequence, 8);
    put(frame + 16, bytes, 8);
}

static void make_key(struct talk *talk)
{
    sign((const uint8_t *)"", 0, "sluice session", talk->said, sizeof(talk->said), talk->key);
}

bool prove(int fd, struct talk *talk)
{
    static const uint8_t proof[PROOF_BYTES];
    if (!hear(fd, talk->said + HELLO, ANSWER) || talk->said[HELLO + WORD + 3] != GO_ON) {
        return false;
    }
    make_key(talk);
    say(fd, proof, sizeof(proof));
    return true;
}

static void hear_word(int fd, const struct talk *talk, uint8_t word, const char *what)
{
    uint8_t reply[REPLY], expected[REPLY];
    make_reply(talk, word, expected);
    require(hear(fd, reply, REPLY), "%s: no reply", what);
    require(memcmp(reply, expected, REPLY) == 0, "%s: word %u, not %u, or not proven", what,
            reply[3], word);
}

void let_in(int fd, struct talk *talk)
{
    static const uint8_t none[PROOF_BYTES];
    uint8_t proof[PROOF_BYTES], reply[REPLY];
    require(hear(fd, talk->said, HELLO), "it says nothing");
    require(hear(fd, proof, PROOF_BYTES) && memcmp(proof, none, PROOF_BYTES) == 0, "no proof");
    make_answer(talk->said + HELLO);
    say(fd, talk->said + HELLO, ANSWER);
    make_key(talk);
    make_reply(talk, ADMITTED, reply);
    say(fd, reply, REPLY);
}

void require_dropped(int fd, const char *what)
{
    uint8_t byte;
    require(!hear(fd, &byte, 1), "%s: rank 0 answers", what);
    close(fd);
}

void require_answered(int fd, uint8_t word, const char *what)
{
    uint8_t answer[ANSWER];
    require(hear(fd, answer, ANSWER), "%s: no answer", what);
    require(answer[WORD + 3] == word, "%s: word %u", what, answer[WORD + 3]);
    require(!hear(fd, answer, 1), "%s: not dropped", what);
    close(fd);
}

void require_refused(int fd, struct talk *talk, uint32_t code, const char *words, const char *what)
{
    uint8_t reply[REPLY];
    char body[400] = "";
    require(prove(fd, talk), "%s: no answer", what);
    require(hear(fd, reply, REPLY) && reply[3] == REFUSED, "%s: no refusal", what);
    uint32_t count = reply[6] * 256U + reply[7];
    require(count >= 4 && count < sizeof(body) && hear(fd, body, count), "%s: %u bytes", what,
            count);
    require(body[3] == (char)code && strstr(body + 4, words), "%s: code %d, '%s'", what, body[3],
            body + 4);
    require(!hear(fd, body, 1), "%s: not dropped", what);
    close(fd);
}

int join(const struct parties *parties, uint32_t ranks, uint32_t rank)
{
    struct talk talk;
    int fd = dial_port(parties->port);
    make_hello(talk.said, ranks, rank);
    say(fd, talk.said, HELLO);
    require(prove(fd, &talk), "no answer");
    hear_word(fd, &talk, ADMITTED, "a rank");
    return fd;
}

void require_verdict(int fd, const char *words)
{
    uint8_t frame[FRAME];
    char text[400] = "";
    require(hear(fd, frame, FRAME) && frame[0] == VERDICT, "no verdict, but %u", frame[0]);
    require(frame[22] * 256U + frame[23] < sizeof(text), "a verdict of %u", frame[22]);
    hear_some(fd, text, frame[22] * 256U + frame[23]);
    require(strstr(text + 12, words), "no '%s' in '%s'", words, text + 12);
    close(fd);
}

void call_all(struct party *party)
{
    party_calls(party, 320);
}

void start_root_of(struct parties *parties, uint32_t count, int64_t deadline)
{
    parties_make(parties, count, deadline);
    for (uint32_t i = 1; i < count; i++) {
        parties->party[i].absent = true;
    }
    parties_start(parties, call_all);
}

void finish_all(struct parties *parties)
{
    for (uint32_t i = 1; i < parties->count; i++) {
        party_start(&parties->party[i], call_all);
    }
    parties_join(parties);
    require_all_ok(parties);
}
