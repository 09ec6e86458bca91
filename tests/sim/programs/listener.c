/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "programs.h"

enum { PORT = 7500, MOST_BYTES = 2000, VISITS = 6 };

/* Rank 0 listens; the other ranks are clients. */
struct door {
    char address[64];
    struct gone gone; /* ranks whose clients have all come */
    uint32_t served, welcome;
};

static struct door *door(void)
{
    return sim_shared(sizeof(struct door));
}

static void fill(uint8_t *bytes, uint32_t count, uint32_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(seed * 37 + i * 11);
    }
}

/* Sends bytes to the other side, which has sent as many. */
static bool speak(struct sluice_pd *pd, struct sluice_channel *channel, uint32_t seed,
                  uint32_t bytes, bool first)
{
    struct sluice_mr *mr = sluice_mr_alloc(pd, MOST_BYTES, SLUICE_ACCESS_LOCAL_WRITE);
    uint8_t *memory = mr != NULL ? sluice_mr_addr(mr) : NULL, expected[MOST_BYTES];
    struct sluice_sge sge;
    bool well = works(mr != NULL, "memory");
    if (well) {
        must(sluice_mr_sge(mr, 0, bytes, &sge) == 0, "element: %s", sluice_last_error());
        fill(expected, bytes, seed);
        memcpy(memory, expected, first ? bytes : 0);
        well = !first || works(sluice_channel_send(channel, &sge, 1, PATIENCE) == 0, "send");
        memset(memory, 0, bytes);
        well =
            well && works(sluice_channel_receive(channel, &sge, 1, PATIENCE, NULL) == 0, "receive");
        must(!well || memcmp(memory, expected, bytes) == 0, "a message is wrong");
        well = well &&
               (first || works(sluice_channel_send(channel, &sge, 1, PATIENCE) == 0, "answer"));
    }
    must(mr == NULL || sluice_mr_deregister(mr) == 0, "deregister: %s", sluice_last_error());
    return well;
}

/* The private data of a client: a seed, how many bytes it sends, and what it wants. */
enum wish { TALK, REFUSAL, LEAVE };

static void meet(struct sluice_incoming *incoming, struct sluice_pd *pd)
{
    struct sluice_incoming_info info = {.size = sizeof info};
    uint32_t words[3];
    must(sluice_incoming_query(incoming, &info) == 0, "query: %s", sluice_last_error());
    must(info.private_data.bytes == sizeof words && info.proven == 1 && info.channels == 1,
         "a client without a secret comes in");
    memcpy(words, info.private_data.data, sizeof words);
    if (words[2] == REFUSAL) {
        sluice_incoming_refuse(incoming, "you are not welcome");
        return;
    }
    works(sluice_incoming_admit(incoming, pd, NULL, NULL, PATIENCE,
                                words[2] == LEAVE ? 0 : (uint64_t)words[0] << 32 | words[1]) == 0 ||
              words[2] == LEAVE,
          "admit");
}

static void serve(struct sluice_listener *listener, struct sluice_pd *pd)
{
    while (count_gone(&door()->gone) < sim_ranks() - 1) {
        struct sluice_admitted admitted = {.size = sizeof admitted};
        int64_t began = sim_own_time(), timeout = SLUICE_MS(below(20));
        struct sluice_incoming *incoming = sluice_listener_next(listener, timeout);
        in_time(began, timeout, "next");
        if (incoming != NULL) {
            meet(incoming, pd);
        } else {
            works(errno == ETIMEDOUT, "next");
        }
        if (sluice_listener_admitted(listener, 0, &admitted) == 0 && admitted.error == 0) {
            if (admitted.user_data != 0 &&
                speak(pd, admitted.channel, (uint32_t)(admitted.user_data >> 32),
                      (uint32_t)admitted.user_data, false)) {
                door()->served++;
            }
            sluice_channel_close(admitted.channel);
        }
    }
}

static void be_client(struct sluice_pd *pd, uint32_t kind)
{
    uint32_t words[3] = {(uint32_t)below(1000), 1 + (uint32_t)below(MOST_BYTES),
                         kind == 1   ? REFUSAL
                         : kind == 3 ? LEAVE
                                     : TALK};
    struct sluice_private_data data = {.bytes = sizeof words};
    struct sluice_connect_attr options = {.size = sizeof options,
                                          .own = &data,
                                          .secret_file = kind == 2 ? "/run/wrong-secret" : NULL};
    int64_t began = sim_own_time(), deadline = kind == 3 ? SLUICE_MS(below(8)) : PATIENCE;
    struct sluice_channel *channel;
    int error;
    memcpy(data.data, words, sizeof words);
    channel = sluice_connect(door()->address, pd, NULL, &options, deadline);
    error = errno;
    in_time(began, deadline, "connect");
    must(channel == NULL || (kind != 1 && kind != 2), "a client of kind %u was let in", kind);
    switch (kind) {
    case 0:
        if (works(channel != NULL, "connect") && speak(pd, channel, words[0], words[1], true)) {
            door()->welcome++;
        }
        break;
    case 1:
        works(error == ECONNREFUSED && strstr(sluice_last_error(), "not welcome") != NULL,
              "connect to be refused");
        break;
    case 2:
        works(error == EACCES, "connect with the wrong secret");
        break;
    default: /* had little time, and leaves */
        works(channel != NULL || error == ETIMEDOUT, "connect in little time");
        break;
    }
    sluice_channel_close(channel);
}

/* Begins to connect without the library. -1: it was refused a socket. */
static int call_without(const char *address, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    char host[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(host, sizeof host, "%.*s", (int)strcspn(address, ":"), address);
    to.sin_port = htons((uint16_t)port);
    if (works(fd >= 0 && inet_pton(AF_INET, host, &to.sin_addr) == 1, "socket")) {
        (void)connect(fd, (struct sockaddr *)&to, sizeof to);
    }
    return fd;
}

void be_noise(const char *address, int port)
{
    struct pollfd pollfd = {.fd = call_without(address, port), .events = POLLOUT};
    uint8_t noise[300];
    memset(noise, 0xff, sizeof noise);
    if (pollfd.fd < 0) {
        return;
    }
    if (poll(&pollfd, 1, 8000) == 1 &&
        send(pollfd.fd, noise, 1 + below(sizeof noise - 1), MSG_NOSIGNAL) > 0) {
        pollfd.events = POLLIN;
        must(poll(&pollfd, 1, 8000) == 1 || sim_is_troubled(), "noise is listened to for 8 s");
    }
    close(pollfd.fd);
}

void be_stranger(const char *address, int port, bool silent)
{
    uint8_t noise[300];
    int fd = call_without(address, port);
    if (fd < 0) {
        return;
    }
    for (uint64_t i = below(10); i > 0; i--) {
        for (size_t at = 0; at < sizeof noise; at++) {
            noise[at] = (uint8_t)below(256);
        }
        sim_pause((int64_t)below(3000000));
        if (!silent) {
            (void)send(fd, noise, 1 + below(sizeof noise - 1), MSG_NOSIGNAL);
        }
    }
    close(fd);
}

static void visit(struct sluice_pd *pd)
{
    for (uint64_t visits = 1 + below(VISITS); visits > 0; visits--) {
        uint32_t kind = (uint32_t)sim_number("visit", below(8));
        sim_pause((int64_t)below(5000000));
        if (kind >= 4 && kind < 6) {
            be_stranger(door()->address, PORT, kind == 4);
        } else {
            be_client(pd, kind < 6 ? kind : 0);
        }
    }
    leave(&door()->gone);
}

int run_listener(void)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = works(context != NULL, "open") ? sluice_pd_alloc(context) : NULL;
    struct sluice_listen_attr attr = {.size = sizeof attr, .backlog = 1 + (uint32_t)below(6)};
    struct sluice_listener *listener = NULL;
    bool well = pd != NULL;
    if (sim_rank() == 0 && well) {
        char text[32];
        snprintf(text, sizeof text, ":%d", PORT);
        listener = sluice_listen(text, &attr);
        well = works(listener != NULL, "listen");
        write_address(door()->address, sizeof door()->address, PORT);
    }
    if (all_well(well)) {
        if (sim_rank() == 0) {
            serve(listener, pd);
        } else {
            visit(pd);
        }
        if (all_well(true)) {
            works(door()->served == door()->welcome, "clients that were served");
        }
    }
    sluice_listener_close(listener);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return 0;
}
