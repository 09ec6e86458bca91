/* SPDX-License-Identifier: MIT */
/*
 * Strangers on the soft transport's TCP wire: a peer that answers nonsense, and visitors of our
 * listener that are not peers.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/hostile.h"
#include "../support/process.h"

/* Answers that no peer would give. Each ends an attempt; none of them is believed. */
static const struct {
    const char *text;
    size_t length;
} answers[] = {
    {"", 0},
    {"S", 1},
    {"HTTP/1.1 400 Bad Request\r\n\r\n", 28},
    {"sluice\0\2\0\0\0\0\0\0\0\0", 16},
    {"SLUICE\0\1\0\0\0\0\0\0\0\0", 16},
    {"SLUICE\0\2\0\0\0\2\0\0\0\0", 16},
    {"SLUICE\0\2\0\0\0\1\0\0\0\0", 16},
    {"SLUICE\0\2\0\0\0\1\0\0\0\1", 16},
    {"SLUICE\0\2\0\0\0\0\0\0\0\1", 16},
    {"SLUICE\0\2\0\0\0\0\0\0\0\0the challenge of a stranger.....", 48},
    {"SLUICE\0\2\0\0\0\0\0\0\0\0the challenge of a stranger.....and his proof, which is none....",
     80},
    {"SLUICE\0\2\0\0\0\0\0\0\0\0the challenge of a stranger.....and his proof, which is none...."
     "and more that is none, of 32 byt",
     112},
};

/* The victim dials us, and we misbehave: in the end the peer is lost. */
TEST(hostile_listener)
{
    struct victim victim;
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    size_t answered = 0;
    victim_open(&victim, 0);
    require_ok(sluice_multichannel_peer_reset(victim.star.hub, 0, &victim.endpoint));
    reset_hostile(&victim);
    require_ok(sluice_multichannel_peer_handshake(victim.star.hub, 0, &victim.forged));
    victim.posted = 1;
    require_result(
        sluice_multichannel_post(victim.star.hub, &receive, 1, SLUICE_FOREVER, &victim.handles[0]),
        1);
    while (sluice_multichannel_peer_state(victim.star.hub, 0) != SLUICE_STATE_FAILED) {
        struct pollfd waiting = {.fd = victim.listener, .events = POLLIN};
        if (poll(&waiting, 1, 1) > 0) {
            uint8_t hello[HELLO_BYTES];
            int fd = accept(victim.listener, NULL, NULL);
            /* A dialer that was accepted late may have hung up already. */
            if (hear(fd, hello, sizeof(hello))) {
                say(fd, answers[answered % COUNT(answers)].text,
                    answers[answered % COUNT(answers)].length);
                answered++;
            }
            close(fd);
        }
    }
    require(answered >= COUNT(answers), "it gave up after %zu answers", answered);
    expect_untouched(&victim, ENDED, "listener");
    victim_close(&victim);
}

/* Bytes that come to a listener before, or instead of, a valid hello. */
TEST(garbage_at_the_listener)
{
    struct victim victim;
    struct sluice_endpoint endpoint;
    struct greeting greeting = {&victim.forged, &endpoint, {0}};
    int scan[200];
    victim_open(&victim, 0xff);
    struct sluice_prepared_channel *prepared =
        prepare_channel(victim.star.sides.pds[0], NULL, &endpoint);
    make_hello(&greeting);
    for (int i = 0; i < 7; i++) {
        static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
                                            "\26\3\1\2\0\1\0\1\374\3\3 a client hello of TLS", "s"};
        uint8_t bad[HELLO_BYTES], answer[DENIAL_BYTES + 1];
        int fd = dial(&endpoint);
        memcpy(bad, greeting.said, sizeof(bad));
        bad[i == 3 ? 20 : i == 4 ? 7 : i == 5 ? 8 : 95] ^= 1; /* challenge, magic, number, proof */
        say(fd, i < 3 ? (const void *)texts[i] : bad, i < 3 ? strlen(texts[i]) : sizeof(bad));
        if (i == 2) {
            shutdown(fd, SHUT_WR);
        }
        /* The answer is the same whether there is such a target or not. */
        ssize_t got = recv(fd, answer, sizeof(answer), MSG_WAITALL);
        require(got <= 0 || (got == DENIAL_BYTES && answer[11] == 1),
                "it answers garbage %d: %zd, %s", i, got, strerror(errno));
        require(got >= 0 || errno == ECONNRESET, "garbage %d: %s", i, strerror(errno));
        close(fd);
    }
    int64_t cpu = cpu_used();
    for (size_t i = 0; i < COUNT(scan); i++) {
        scan[i] = dial(&endpoint);
    }
    int64_t start = fair_now();
    struct pair pair = {.sides = victim.star.sides};
    for (int i = 0; i < 6; i++) { /* which of them connects is random */
        pair_connect(&pair, NULL);
        pair_works(&pair);
        sluice_channel_close(pair.channels[0]);
        sluice_channel_close(pair.channels[1]);
    }
    require(fair_now() - start < SLUICE_S(5), "a good peer had to wait for %lld ms",
            (long long)(fair_now() - start) / 1000000);
    require(cpu_used() - cpu < SLUICE_S(1), "%lld ms of CPU",
            (long long)(cpu_used() - cpu) / 1000000);
    for (size_t i = 0; i < COUNT(scan); i++) {
        close(scan[i]);
    }
    sluice_prepared_channel_free(prepared);
    star_works(&victim.star, 1);
    victim_close(&victim);
}

int main(void)
{
    return RUN_ON_SOFT("listener", {"tcp", WIRE_TCP, 60});
}
