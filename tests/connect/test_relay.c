/* SPDX-License-Identifier: MIT */
/*
 * A live relay, a process of another user, between a dialer and a listener with a secret. If it
 * passes all bytes on unchanged, the two sides connect directly, without the relay. It could not
 * read their endpoints, and cannot change any byte unnoticed.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/pair.h"
#include "../support/process.h"
#include "../support/stranger.h"

#define NOBODY 65534
#define KEPT 4096

/* The relay, and which byte it changes of the dialer's or the listener's words. */
struct relay {
    uint8_t bytes[2][KEPT];
    uint32_t counts[2];
    int side; /* -1: none */
    uint32_t at;
    atomic_bool slow; /* it takes its time with the listener's words */
};

struct scene {
    struct pair pair;
    struct sluice_listener *listener;
    char secret[40];
    struct relay *relay; /* of both processes */
    uint16_t port;
    pid_t pid;
    struct sluice_channel *channel; /* that was let in */
};

/* Passes the words of one side to the other. Returns false at their end. */
static bool pass_on(struct relay *relay, int side, const int fds[2])
{
    uint8_t bytes[KEPT];
    uint32_t *count = &relay->counts[side];
    ssize_t got = recv(fds[side], bytes, sizeof(bytes), 0);
    if (got <= 0 || *count + (uint32_t)got > KEPT) {
        return false;
    }
    memcpy(relay->bytes[side] + *count, bytes, (size_t)got);
    if (relay->side == side && relay->at >= *count && relay->at < *count + (uint32_t)got) {
        bytes[relay->at - *count] ^= 1;
    }
    *count += (uint32_t)got;
    if (side == 1 && atomic_load(&relay->slow)) {
        let_pass(SLUICE_MS(150));
    }
    return send(fds[!side], bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

/* Relays one connection after the other, for ever. */
static void run_relay(struct relay *relay, int listener, uint16_t port)
{
    for (;;) {
        int fds[2] = {accept(listener, NULL, NULL), dial_port(port)};
        struct pollfd pollfds[2] = {{.fd = fds[0], .events = POLLIN},
                                    {.fd = fds[1], .events = POLLIN}};
        bool on = true;
        relay->counts[0] = relay->counts[1] = 0;
        while (on && poll(pollfds, 2, -1) > 0) {
            for (int side = 0; side < 2; side++) {
                on = on && (pollfds[side].revents == 0 || pass_on(relay, side, fds));
            }
        }
        close(fds[0]);
        close(fds[1]);
    }
}

static void start_relay(struct scene *scene)
{
    int listener = listen_at(&scene->port);
    uint16_t port = (uint16_t)sluice_listener_address(scene->listener, NULL, 0);
    scene->pid = fork();
    require(scene->pid >= 0, "%s", strerror(errno));
    if (scene->pid == 0) {
        if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) {
            _exit(1);
        }
        run_relay(scene->relay, listener, port);
    }
    close(listener);
}

static void end_relay(struct scene *scene)
{
    kill(scene->pid, SIGKILL);
    require(waitpid(scene->pid, NULL, 0) == scene->pid, "%s", strerror(errno));
}

static void scene_open(struct scene *scene)
{
    struct sluice_listen_attr attr = {.size = sizeof(attr)};
    memset(scene, 0, sizeof(*scene));
    strcpy(scene->secret, "/tmp/sluice-secret-XXXXXX");
    int fd = mkstemp(scene->secret);
    require(fd >= 0 && dprintf(fd, "what the relay does not know") > 0, "%s", strerror(errno));
    close(fd);
    scene->relay = mmap(NULL, sizeof(*scene->relay), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(scene->relay != MAP_FAILED, "%s", strerror(errno));
    scene->relay->side = -1;
    attr.secret_file = scene->secret;
    scene->listener = made(sluice_listen("127.0.0.1:0", &attr));
    start_relay(scene); /* before there are threads */
    sides_open(&scene->pair.sides);
}

static void scene_close(struct scene *scene)
{
    sluice_listener_close(scene->listener);
    sides_close(&scene->pair.sides);
    munmap(scene->relay, sizeof(*scene->relay));
    unlink(scene->secret);
}

static void *let_in(void *argument)
{
    struct scene *scene = argument;
    scene->channel = sluice_accept(scene->listener, scene->pair.sides.pds[0], NULL, DEADLINE);
    return NULL;
}

/* Dials the address of the relay. Returns the channels of both ends, as far as they exist. */
static void connect_by_relay(struct scene *scene, int64_t deadline,
                             struct sluice_channel *channels[2])
{
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = scene->secret};
    char address[64];
    pthread_t thread;
    snprintf(address, sizeof(address), "127.0.0.1:%u", scene->port);
    require(pthread_create(&thread, NULL, let_in, scene) == 0, "no thread");
    channels[1] = sluice_connect(address, scene->pair.sides.pds[1], NULL, &options, deadline);
    if (channels[1] == NULL) {
        require_ok(sluice_listener_wake(scene->listener));
    }
    require(pthread_join(thread, NULL) == 0, "no end");
    channels[0] = scene->channel;
}

static bool has(const uint8_t *all, uint32_t count, const uint8_t *part, uint32_t size)
{
    return memmem(all, count, part, size) != NULL;
}

/* Both sides trust the relay only as far as the secret proves. */
TEST(a_relay_that_passes_all_on)
{
    struct scene scene;
    struct sluice_endpoint endpoint;
    scene_open(&scene);
    connect_by_relay(&scene, DEADLINE, scene.pair.channels);
    require(scene.pair.channels[1] != NULL, "%s", sluice_last_error());
    require(scene.pair.channels[0] != NULL, "it was not let in");
    end_relay(&scene);
    pair_works(&scene.pair);
    /* The relay has seen neither the beginning of an endpoint nor its host. */
    for (int i = 0; i < 2; i++) {
        struct relay *relay = scene.relay;
        struct sluice_prepared_channel *prepared =
            prepare_channel(scene.pair.sides.pds[i], NULL, &endpoint);
        require(relay->counts[i] > sizeof(endpoint), "it passed on %u bytes", relay->counts[i]);
        require(!has(relay->bytes[i], relay->counts[i], endpoint.bytes, 4) &&
                    (!device_is_soft() ||
                     !has(relay->bytes[i], relay->counts[i], endpoint.bytes + 32, 16)),
                "it has read the endpoint of side %d", i);
        sluice_prepared_channel_free(prepared);
        sluice_channel_close(scene.pair.channels[i]);
    }
    scene_close(&scene);
}

/* The side that gets the changed byte does not connect. */
TEST(a_relay_that_changes_a_byte, .times = 2)
{
    struct scene scene;
    struct sluice_channel *channels[2];
    scene_open(&scene);
    connect_by_relay(&scene, DEADLINE, channels);
    require(channels[1] != NULL, "%s", sluice_last_error());
    uint32_t all = scene.relay->counts[_i];
    sluice_channel_close(channels[0]);
    sluice_channel_close(channels[1]);
    scene.relay->side = _i;
    for (uint32_t at = 0; at < all; at += all / 24) {
        scene.relay->at = at;
        connect_by_relay(&scene, SLUICE_MS(30), channels);
        require(channels[_i] == NULL, "byte %u of %u was changed, and they are connected", at, all);
        sluice_channel_close(channels[0]);
        sluice_channel_close(channels[1]);
    }
    end_relay(&scene);
    scene_close(&scene);
}

static void *cancel(void *argument)
{
    struct scene *scene = argument;
    struct pollfd pollfd = {.fd = sluice_listener_fd(scene->listener), .events = POLLIN};
    struct sluice_incoming *incoming = made(sluice_listener_next(scene->listener, DEADLINE));
    require_ok(sluice_incoming_admit(incoming, scene->pair.sides.pds[0], NULL, NULL, DEADLINE, 1));
    /* The client has the endpoint, and has sent its own. */
    require(poll(&pollfd, 1, 20000) == 1, "the client does not go on");
    atomic_store(&scene->relay->slow, true);
    require_result(sluice_listener_cancel(scene->listener, 1), 1);
    return NULL;
}

/* A client that finds its channel ended waits for the reason, which comes another way. */
TEST(late_reason_is_read)
{
    struct scene scene;
    struct sluice_connect_attr options = {.size = sizeof(options)};
    char address[64];
    pthread_t thread;
    scene_open(&scene);
    options.secret_file = scene.secret;
    snprintf(address, sizeof(address), "127.0.0.1:%u", scene.port);
    require(pthread_create(&thread, NULL, cancel, &scene) == 0, "no thread");
    require_null(sluice_connect(address, scene.pair.sides.pds[1], NULL, &options, DEADLINE),
                 ECONNABORTED, " was cancelled");
    require(pthread_join(thread, NULL) == 0, "no end");
    end_relay(&scene);
    scene_close(&scene);
}

int main(void)
{
    return RUN_GROUPS("relay", {"relay", WIRE_TCP, 60});
}
