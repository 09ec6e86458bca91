/* SPDX-License-Identifier: MIT */
/*
 * Clients that stop, send garbage, or leave while they are being let in: later clients are let in
 * as if those were not there, and each of them is refused alone.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/halfway.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "../support/stranger.h"

/* That a listener lets in at a time if it was made with so many descriptors. */
#define AT_A_TIME 16
#define DESCRIPTORS 128
/* Those that are silent are given up after ten seconds. */
#define WAIT (2 * DEADLINE)

/* Ways of clients that begin to connect and then stop, fail or leave. */
static const enum halfway_way ways[] = {SILENT,     HALF_A_STEP,  GARBAGE, NO_ENDPOINT,
                                        NO_CHANNEL, TWO_CHANNELS, LEAVES};
#define WAYS ((int)COUNT(ways))

struct scene {
    struct pair pair;
    struct sluice_listener *listener;
    struct sluice_prepared_channel *prepared; /* that never connects */
    struct halfway halfway;
    bool all_ways; /* or only silent ones */
    int count, fds[AT_A_TIME + 1];
    atomic_bool all_came; /* except the proper client, which may be held back then */
    atomic_bool held_back;
    pthread_t thread;
    char text[320];
};

/* Dials with all of these ways, and with one proper client. */
static void *come_all(void *argument)
{
    struct scene *scene = argument;
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    char address[64];
    for (int i = 0; i < scene->count; i++) {
        scene->fds[i] = halfway_come(&scene->halfway, scene->all_ways ? ways[i % WAYS] : SILENT);
    }
    atomic_store(&scene->all_came, true);
    while (atomic_load(&scene->held_back)) {
        let_pass(SLUICE_MS(1));
    }
    snprintf(address, sizeof(address), "127.0.0.1:%d",
             sluice_listener_address(scene->listener, NULL, 0));
    scene->pair.channels[1] =
        sluice_connect(address, scene->pair.sides.pds[1], NULL, &options, WAIT);
    if (scene->pair.channels[1] == NULL) {
        snprintf(scene->text, sizeof(scene->text), "%s", sluice_last_error());
    }
    return NULL;
}

/* How many it lets in at a time goes by the limit of descriptors, an eighth of it, or 16. */
static struct sluice_listener *listen_within(rlim_t descriptors)
{
    struct sluice_listen_attr attr = {.size = sizeof(attr), .secret_file = ""};
    struct rlimit limit, before;
    require(getrlimit(RLIMIT_NOFILE, &before) == 0, "%s", strerror(errno));
    limit = before;
    limit.rlim_cur = descriptors < before.rlim_cur ? descriptors : before.rlim_cur;
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    struct sluice_listener *listener = made(sluice_listen("127.0.0.1:0", &attr));
    require(setrlimit(RLIMIT_NOFILE, &before) == 0, "%s", strerror(errno));
    return listener;
}

static void open_scene(struct scene *scene, bool all_ways, int count, bool held_back)
{
    memset(scene, 0, sizeof(*scene));
    atomic_store(&scene->held_back, held_back);
    sides_open(&scene->pair.sides);
    scene->listener = listen_within(DESCRIPTORS);
    scene->prepared = prepare_channel(scene->pair.sides.pds[1], NULL, &scene->halfway.endpoint);
    scene->halfway.port = (uint16_t)sluice_listener_address(scene->listener, NULL, 0);
    scene->all_ways = all_ways;
    scene->count = count;
    require(pthread_create(&scene->thread, NULL, come_all, scene) == 0, "no thread");
}

/* Requires that the first accepted client is the proper one. */
static void accept_one(struct scene *scene)
{
    scene->pair.channels[0] =
        made(sluice_accept(scene->listener, scene->pair.sides.pds[0], NULL, WAIT));
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

/* Each way comes twice; when the listener is closed, nothing is left of them. */
TEST(stopped_clients_delay_no_other)
{
    struct scene scene;
    uint8_t byte;
    open_scene(&scene, true, 2 * WAYS, false);
    int fds = count_fds();
    accept_one(&scene);
    sluice_listener_close(scene.listener);
    /* The sockets of these clients reach their end. */
    for (int i = 0; i < scene.count; i++) {
        while (scene.fds[i] >= 0 && hear(scene.fds[i], &byte, 1)) {
        }
    }
    close_scene(&scene);
    require(settle_fds(fds) <= fds, "%d left", count_fds() - fds);
}

/* Accepts one client at a time, by hand: the silent one is refused long before its deadline. */
static void *accept_by_hand(void *argument)
{
    struct scene *scene = argument;
    while (scene->pair.channels[0] == NULL) {
        struct sluice_incoming *incoming = made(sluice_listener_next(scene->listener, DEADLINE));
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

/* With more silent clients than can be let in at a time, one of them makes room on either side. */
TEST(many_silent_ones_make_room)
{
    struct scene scene, by_hand;
    pthread_t thread;
    open_scene(&by_hand, false, 1, false);
    open_scene(&scene, false, AT_A_TIME + 1, false);
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

/*
 * One that has come before the call has to wait for room: nothing happens at the listener from then
 * on but that the time of a silent one is up.
 */
TEST(a_wait_for_room_has_its_timer)
{
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    struct scene scene;
    open_scene(&scene, false, AT_A_TIME, true);
    while (!atomic_load(&scene.all_came)) {
        require_null(sluice_accept(scene.listener, scene.pair.sides.pds[0], NULL, SLUICE_MS(10)),
                     ETIMEDOUT, "");
    }
    atomic_store(&scene.held_back, false);
    require_error(sluice_listener_admitted(scene.listener, SLUICE_MS(500), &admitted), -ETIMEDOUT,
                  "");
    accept_one(&scene);
    sluice_listener_close(scene.listener);
    close_scene(&scene);
}

int main(void)
{
    return RUN_GROUPS("amid", {"amid", WIRE_TCP, 60});
}
