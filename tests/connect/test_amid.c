/* SPDX-License-Identifier: MIT */
/*
 * Those who are being let in, and fall silent, say what cannot be, or leave in the midst of
 * it: who comes behind them is let in as if they were not there, and each of them is refused
 * alone.
 */
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/stranger.h"

/* Of the words of a connect by address, and of a step behind them. */
enum { HEAD = 64, BODY = 8, REPLY = 48, SEAL = crypto_secretbox_MACBYTES };
enum { STEP_HEAD = 8 + SEAL, STEP = STEP_HEAD + SLUICE_ENDPOINT_BYTES + SEAL };
enum { STANDS = 4, ADMITTED = 5 };

/* Where it stops. */
enum way { SILENT, HALF_A_STEP, GARBAGE, NO_ENDPOINT, NO_CHANNEL, TWO_CHANNELS, LEAVES, WAYS };

#define MOST 17

static const uint8_t no_bytes[1];

struct scene {
    struct pair pair;
    struct sluice_listener *listener;
    struct sluice_prepared_channel *prepared; /* that never connects */
    struct sluice_endpoint endpoint;
    enum way way; /* WAYS: each */
    int count, fds[MOST];
    pthread_t thread;
    char text[320];
};

static void seal(const uint8_t *key, const char *label, const void *bytes, size_t count,
                 uint8_t *sealed)
{
    static const uint8_t nonce[crypto_secretbox_NONCEBYTES];
    uint8_t label_key[PROOF_BYTES];
    sign(key, PROOF_BYTES, label, no_bytes, 0, label_key);
    crypto_secretbox_easy(sealed, bytes, count, nonce, label_key);
}

/* What the dialer says first, sealed as it must be. */
static void make_step(const uint8_t *key, const struct sluice_endpoint *endpoint,
                      uint8_t step[STEP])
{
    uint8_t head[8] = {0};
    put(head + 4, SLUICE_ENDPOINT_BYTES, 4);
    seal(key, "step d 0 h", head, sizeof(head), step);
    seal(key, "step d 0 b", endpoint, SLUICE_ENDPOINT_BYTES, step + STEP_HEAD);
}

/* A client that knows the words, and has no secret, as the listener. */
static int come(const struct scene *scene, enum way way)
{
    uint8_t said[HEAD + BODY + HEAD] = "sludoor?", key[PROOF_BYTES], proof[PROOF_BYTES];
    uint8_t step[STEP] = {0}, reply[REPLY];
    struct sluice_endpoint none = {{0}};
    int fd = dial_port((uint16_t)sluice_listener_address(scene->listener, NULL, 0));
    put(said + 8, 1, 2);
    put(said + 12, 1, 4);
    put(said + 16, BODY, 4);
    put(said + HEAD + 4, way == TWO_CHANNELS ? 2 : 1, 4);
    say(fd, said, HEAD + BODY);
    require(hear(fd, said + HEAD + BODY, HEAD), "no answer");
    sign(no_bytes, 0, "sluice session", said, sizeof(said), key);
    sign(key, PROOF_BYTES, "sluice dials", no_bytes, 0, proof);
    say(fd, proof, sizeof(proof));
    require(hear(fd, reply, sizeof(reply)) && reply[3] == STANDS, "it does not stand");
    if (way == NO_ENDPOINT || way == NO_CHANNEL) {
        make_step(key, way == NO_CHANNEL ? &scene->endpoint : &none, step);
    }
    if (way != SILENT && way != TWO_CHANNELS && way != LEAVES) {
        say(fd, step, way == HALF_A_STEP ? STEP / 2 : STEP);
    }
    return fd;
}

/* All of them, and one who does as it should. */
static void *come_all(void *argument)
{
    struct scene *scene = argument;
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    char address[64];
    for (int i = 0; i < scene->count; i++) {
        enum way way = scene->way == WAYS ? (enum way)(i % WAYS) : scene->way;
        scene->fds[i] = come(scene, way);
        if (way == LEAVES) {
            close(scene->fds[i]);
            scene->fds[i] = -1;
        }
    }
    snprintf(address, sizeof(address), "127.0.0.1:%d",
             sluice_listener_address(scene->listener, NULL, 0));
    scene->pair.channels[1] =
        sluice_connect(address, scene->pair.sides.pds[1], NULL, &options, DEADLINE);
    if (scene->pair.channels[1] == NULL) {
        snprintf(scene->text, sizeof(scene->text), "%s", sluice_last_error());
    }
    return NULL;
}

static void open_scene(struct scene *scene, enum way way, int count)
{
    struct sluice_listen_attr attr = {.size = sizeof(attr), .secret_file = ""};
    memset(scene, 0, sizeof(*scene));
    sides_open(&scene->pair.sides);
    scene->listener = sluice_listen("127.0.0.1:0", &attr);
    require(scene->listener != NULL, "%s", sluice_last_error());
    scene->prepared = prepare_channel(scene->pair.sides.pds[1], NULL, &scene->endpoint);
    scene->way = way;
    scene->count = count;
    require(pthread_create(&scene->thread, NULL, come_all, scene) == 0, "no thread");
}

/* The first that is let in is the one who does as it should. */
static void accept_one(struct scene *scene)
{
    scene->pair.channels[0] =
        sluice_accept(scene->listener, scene->pair.sides.pds[0], NULL, DEADLINE);
    require(scene->pair.channels[0] != NULL, "%s", sluice_last_error());
    require(pthread_join(scene->thread, NULL) == 0, "no end");
    require(scene->pair.channels[1] != NULL, "%s", scene->text);
    pair_works(&scene->pair);
}

static void close_scene(struct scene *scene)
{
    for (int i = 0; i < scene->count; i++) {
        if (scene->fds[i] >= 0) {
            close(scene->fds[i]);
        }
    }
    sluice_prepared_channel_free(scene->prepared);
    pair_close(&scene->pair);
}

/* Each in its way, twice; when the listener ends nothing of them is left. */
TEST(who_stops_amid_it_holds_up_nobody)
{
    struct scene scene;
    uint8_t byte;
    open_scene(&scene, WAYS, 2 * WAYS);
    int fds = count_fds();
    accept_one(&scene);
    sluice_listener_close(scene.listener);
    /* They hear the end of it. */
    for (int i = 0; i < scene.count; i++) {
        while (scene.fds[i] >= 0 && hear(scene.fds[i], &byte, 1)) {
        }
    }
    close_scene(&scene);
    require(settle_fds(fds) <= fds, "%d left", count_fds() - fds);
}

/* One at a time, by hand: the silent one is refused long before its deadline. */
static void *accept_by_hand(void *argument)
{
    struct scene *scene = argument;
    while (scene->pair.channels[0] == NULL) {
        struct sluice_incoming *incoming = sluice_listener_next(scene->listener, DEADLINE);
        require(incoming != NULL, "%s", sluice_last_error());
        scene->pair.channels[0] =
            sluice_incoming_accept(incoming, scene->pair.sides.pds[0], NULL, NULL, DEADLINE);
        if (scene->pair.channels[0] == NULL) {
            require(errno == ETIMEDOUT, "%s", sluice_last_error());
            require_words(sluice_last_error(), "127.0.0.1:");
            require_words(sluice_last_error(), " did not go on, and others wait");
        }
    }
    return NULL;
}

/* Of more than can be let in at a time one makes room, here or there. */
TEST(many_silent_ones_make_room, .unless = short_run)
{
    struct scene scene, by_hand;
    pthread_t thread;
    open_scene(&by_hand, SILENT, 1);
    open_scene(&scene, SILENT, MOST);
    require(pthread_create(&thread, NULL, accept_by_hand, &by_hand) == 0, "no thread");
    accept_one(&scene);
    require(pthread_join(thread, NULL) == 0, "no end");
    require(pthread_join(by_hand.thread, NULL) == 0, "no end");
    require(by_hand.pair.channels[1] != NULL, "%s", by_hand.text);
    pair_works(&by_hand.pair);
    sluice_listener_close(by_hand.listener);
    sluice_listener_close(scene.listener);
    close_scene(&by_hand);
    close_scene(&scene);
}

int main(void)
{
    static const struct tests groups[] = {{"amid", WIRE_TCP, 60}};
    return run_groups("amid", groups, COUNT(groups));
}
