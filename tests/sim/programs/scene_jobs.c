/* SPDX-License-Identifier: MIT */
/* Scenarios of ranks that find each other, of threads, and of numbers that wrap. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scenarios.h"

enum { PORT = 7600, STRANGERS = 300 };

/* Rank 0 listens, and the address is here. */
static char *address(void)
{
    return sim_shared(71);
}

static struct sluice_listener *listen_here(void)
{
    struct sluice_listen_attr attr = {.size = sizeof attr};
    struct sluice_listener *listener;
    char text[32];
    snprintf(text, sizeof text, ":%d", PORT);
    listener = sluice_listen(text, &attr);
    must(listener != NULL, "listen: %s", sluice_last_error());
    write_address(address(), 71, PORT);
    return listener;
}

static struct sluice_channel *dial(const char *secret, int64_t within)
{
    struct sluice_connect_attr options = {.size = sizeof options, .secret_file = secret};
    int64_t began = sim_own_time(), took;
    struct sluice_channel *channel = sluice_connect(address(), scene.pd, NULL, &options, PATIENCE);
    took = (sim_own_time() - began) / SLUICE_MS(1);
    must(took <= within, "connect: took %ld ms: %s", (long)took, sluice_last_error());
    return channel;
}

/* Rank 0 lets so many clients in, which then close their channels. */
static void let_in(struct sluice_listener *listener, uint32_t count)
{
    struct sluice_channel *channels[8];
    for (uint32_t i = 0; i < count; i++) {
        channels[i] = sluice_accept(listener, scene.pd, NULL, PATIENCE);
        must(channels[i] != NULL, "accept: %s", sluice_last_error());
    }
    meet();
    for (uint32_t i = 0; i < count; i++) {
        sluice_channel_close(channels[i]);
    }
}

/* A client connects soon: lost packets of TCP are sent again after 0.2 s. */
void connects_at_once(void)
{
    struct sluice_listener *listener = NULL;
    struct sluice_channel *channel;
    scene_begin();
    if (scene.rank == 0) {
        listener = listen_here();
    }
    meet();
    if (scene.rank == 0) {
        let_in(listener, scene.ranks - 1);
    } else {
        channel = dial(NULL, 1000);
        must(channel != NULL, "connect: %s", sluice_last_error());
        meet();
        sluice_channel_close(channel);
    }
    sluice_listener_close(listener);
    scene_end();
}

/*
 * Strangers of rank 2 are silent or talk nonsense, more than a listener has places; rank 1 gets in
 * all the same.
 */
void d1_strangers(void)
{
    struct sluice_listener *listener = NULL;
    struct sluice_channel *channel;
    int fds[STRANGERS];
    scene_begin();
    if (scene.rank == 0) {
        listener = listen_here();
    }
    meet();
    if (scene.rank == 0) {
        let_in(listener, 1);
    } else if (scene.rank == 1) {
        /* Most of them are there by then. */
        sim_pause(STRANGERS * SLUICE_US(250) + (int64_t)below(SLUICE_MS(10)));
        channel = dial(NULL, 10000);
        must(channel != NULL, "connect: %s", sluice_last_error());
        meet();
        sluice_channel_close(channel);
    } else {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
        char host[71];
        snprintf(host, sizeof host, "%.*s", (int)strcspn(address(), ":"), address());
        must(inet_pton(AF_INET, host, &to.sin_addr) == 1, "an address: %s", host);
        for (uint32_t i = 0; i < STRANGERS; i++) {
            static const char noise[] = "GET / HTTP/1.1\r\nHost: sluice\r\n\r\n";
            fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            (void)connect(fds[i], (struct sockaddr *)&to, sizeof to);
            sim_pause(SLUICE_US(300));
            if (i % 2 == 0) {
                (void)send(fds[i], noise, 1 + below(sizeof noise - 1), MSG_NOSIGNAL);
            }
        }
        meet();
        for (uint32_t i = 0; i < STRANGERS; i++) {
            close(fds[i]);
        }
    }
    sluice_listener_close(listener);
    scene_end();
}

/* A client with the wrong secret learns only that; another one gets in. */
void d3_wrong_secret(void)
{
    struct sluice_listener *listener = NULL;
    struct sluice_channel *channel;
    scene_begin();
    if (scene.rank == 0) {
        listener = listen_here();
    }
    meet();
    if (scene.rank == 0) {
        let_in(listener, 1);
    } else {
        /* The listener is driven until it has let rank 1 in, which comes last. */
        bool *denied = sim_shared(sizeof *denied);
        while (scene.rank == 1 && !*denied) {
            sim_pause(SLUICE_MS(1));
        }
        channel = dial(scene.rank == 2 ? "/run/wrong-secret" : NULL, 2000);
        *denied = true;
        must(scene.rank == 1 ? channel != NULL : channel == NULL && errno == EACCES, "connect: %s",
             sluice_last_error());
        meet();
        sluice_channel_close(channel);
    }
    sluice_listener_close(listener);
    scene_end();
}

/* Opens a node with this deadline. */
static struct sluice_node *open_node(int64_t deadline)
{
    int64_t began = sim_own_time();
    struct sluice_node *node = sluice_node_open(NULL, NULL, NULL, deadline);
    in_time(began, deadline, "opening a node");
    return node;
}

static void names_rank(uint32_t rank)
{
    char text[16];
    snprintf(text, sizeof text, "rank %u", rank);
    must(strstr(sluice_last_error(), text) != NULL, "the text does not name rank %u: %s", rank,
         sluice_last_error());
}

/* Rank 1 comes late, and all open the node. */
void d5_late(void)
{
    struct sluice_node *node;
    if (sim_rank() == 1) {
        sim_pause(SLUICE_S(20));
    }
    node = open_node(PATIENCE);
    must(node != NULL, "a node whose rank 1 is late: %s", sluice_last_error());
    must(sluice_node_barrier(node, NULL, 0, 0, PATIENCE) == 0, "barrier: %s", sluice_last_error());
    sluice_node_close(node);
}

/* Rank 1 does not come, and the others name it. */
void d5_missing(void)
{
    if (sim_rank() != 1) {
        struct sluice_node *node = open_node(SLUICE_S(5));
        must(node == NULL && errno == ETIMEDOUT, "a node without rank 1: %s", sluice_last_error());
        names_rank(1);
    }
}

/* Rank 1 dies while the node opens: the others open it, or fail within the deadline. */
void d5_dies(void)
{
    struct sluice_node *node;
    if (sim_rank() == 1) {
        sim_strike(SIM_KILL, 1, (int64_t)below(SLUICE_MS(3)), 0);
    }
    node = open_node(SLUICE_S(5));
    if (node != NULL) {
        int error;
        if (sim_rank() == 1) {
            sim_pause(SLUICE_S(10));
        }
        error = sluice_node_barrier(node, NULL, 0, 0, SLUICE_S(2));
        must(error < 0, "a barrier of a rank that has died");
    }
    sluice_node_close(node);
}

/* Threads */

static void connect_two(struct sluice_channel *channels[2])
{
    struct sluice_prepared_channel *prepared[2];
    struct sluice_endpoint endpoints[2];
    for (uint32_t i = 0; i < 2; i++) {
        prepared[i] = sluice_channel_prepare(scene.pd, NULL);
        must(prepared[i] != NULL &&
                 sluice_prepared_channel_endpoint(prepared[i], &endpoints[i]) == 0,
             "prepare: %s", sluice_last_error());
    }
    for (uint32_t i = 0; i < 2; i++) {
        channels[i] = sluice_prepared_channel_handshake(prepared[i], &endpoints[!i]);
        must(channels[i] != NULL, "handshake: %s", sluice_last_error());
    }
}

static void converse(struct sluice_channel *const channels[2])
{
    enum { REGIONS = 4 };
    struct sluice_mr *mrs[REGIONS];
    struct sluice_completion completion;
    struct sluice_remote_mr remote;
    struct sluice_handle handle;
    struct sluice_sge sges[2];
    for (uint32_t i = 0; i < REGIONS; i++) {
        mrs[i] =
            sluice_mr_alloc(scene.pd, 4096, SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE);
        must(mrs[i] != NULL, "memory: %s", sluice_last_error());
    }
    for (uint32_t i = 0; i < 3 * REGIONS; i++) {
        struct sluice_mr *to = mrs[(i + 1) % REGIONS];
        uint8_t *from = sluice_mr_addr(mrs[i % REGIONS]), *at = sluice_mr_addr(to);
        must(sluice_mr_sge(mrs[i % REGIONS], 0, 64, &sges[0]) == 0 &&
                 sluice_mr_sge(to, 64, 64, &sges[1]) == 0 && sluice_mr_remote(to, &remote) == 0,
             "element: %s", sluice_last_error());
        from[0] = (uint8_t)(i + 1);
        must(sluice_channel_post_receive(channels[1], &sges[1], 1, PATIENCE, &handle) == 0 &&
                 sluice_channel_send(channels[0], &sges[0], 1, PATIENCE) == 0 &&
                 sluice_channel_wait(channels[1], &handle, PATIENCE, &completion) == 0 &&
                 completion.error == 0 && at[64] == from[0] &&
                 sluice_channel_write(channels[0], &sges[0], 1, &remote, PATIENCE) == 0 &&
                 at[0] == from[0],
             "message %u of a thread: %s", i, sluice_last_error());
    }
    for (uint32_t i = 0; i < REGIONS; i++) {
        must(sluice_mr_deregister(mrs[i]) == 0, "deregister: %s", sluice_last_error());
    }
}

static void *live(void *argument)
{
    (void)argument;
    for (uint32_t i = 0; i < 5; i++) {
        struct sluice_channel *channels[2];
        connect_two(channels);
        converse(channels);
        sluice_channel_close(channels[0]);
        sluice_channel_close(channels[1]);
    }
    return NULL;
}

/* Four threads share a context, and each makes, uses and closes channels and regions of its own. */
void e4_threads(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    scene_begin();
    for (uint32_t i = 0; i < THREADS; i++) {
        must(pthread_create(&threads[i], NULL, live, NULL) == 0, "thread");
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        must(pthread_join(threads[i], NULL) == 0, "join");
    }
    scene_end();
}

/* Numbers of packets wrap in the middle of messages. */
void e7_numbers_wrap(void)
{
    struct sluice_channel_attr attr = scene_attr();
    attr.flags = SLUICE_CHANNEL_PSN;
    attr.psn = 0xfffff0;
    scene_open(&attr);
    bystanders();
    if (scene.rank < 2) {
        exchange(0, 1, 20);
    }
    scene_close();
}

/* Packets are lost while all ranks connect with each other, again and again. */
void meet_with_loss(void)
{
    scene_begin();
    if (scene.rank == scene.victim) {
        sim_strike(SIM_LOSE, scene.rank, 0, 3);
    }
    for (uint32_t round = 0; round < 60; round++) {
        scene_connect(NULL);
        sluice_multichannel_close(scene.all);
        meet();
    }
    scene_end();
}
