/* SPDX-License-Identifier: MIT */
/*
 * A listener with many clients of each rank, which stay: they are let in by one of three ways, as
 * channels or as peers, and some are cancelled, impatient, silent, or leave at once.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "programs.h"

enum { PORT = 7800, MOST_CLIENTS = 16384, BYTES = 64, MOST_CHANNELS = 4 };

/* How rank 0 lets clients in. */
enum way { BY_ACCEPT, BY_INCOMING, BY_ADMISSION, WAYS };

/* Shared by rank 0 and its clients. */
struct crowd {
    char address[64];
    struct sluice_remote_mr remote; /* memory of rank 0 that each client reads */
    struct gone gone;               /* ranks whose clients have all come */
    uint32_t cancelled, told;       /* admissions that were cancelled, and clients that read so */
};

struct host {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    struct sluice_multichannel *all;
    struct sluice_channel *channels[MOST_CLIENTS];
    uint32_t count;
    struct sluice_listener *listener;
};
static struct host host;
static enum way way;

static struct crowd *crowd(void)
{
    return sim_shared(sizeof(struct crowd));
}

static uint8_t value(uint32_t i)
{
    return (uint8_t)(i * 13 + 5);
}

static void keep(struct sluice_channel *channel)
{
    if (channel != NULL && host.count < MOST_CLIENTS) {
        host.channels[host.count++] = channel;
    } else {
        sluice_channel_close(channel);
    }
}

/* Waits for each client before the next one. */
static void let_in(struct sluice_incoming *incoming, uint32_t channels)
{
    uint32_t peers[MOST_CHANNELS];
    int64_t began = sim_own_time(), deadline = SLUICE_S(5);
    if (channels == 1 && below(2)) {
        keep(sluice_incoming_accept(incoming, host.pd, NULL, NULL, deadline));
    } else {
        (void)!sluice_incoming_accept_into(incoming, host.all, NULL, deadline, peers, channels);
    }
    in_time(began, deadline, "to let a client in");
}

/* Begins to let a client in, and may cancel it. */
static void admit(struct sluice_incoming *incoming, uint32_t channels)
{
    static uint64_t number;
    int result;
    number++;
    if (channels == 1 && below(2)) {
        result = sluice_incoming_admit(incoming, host.pd, NULL, NULL, PATIENCE, number);
    } else {
        result = sluice_incoming_admit_into(incoming, host.all, NULL, PATIENCE, number);
    }
    works(result == 0 || result == -ECONNRESET, "admit");
    if (below(16) == 0) {
        sim_pause((int64_t)below(2000000));
        crowd()->cancelled++; /* the client may read it before the call returns */
        result = sluice_listener_cancel(host.listener, number);
        must(result == 0 || result == 1, "%d admissions are cancelled", result);
        crowd()->cancelled -= result == 0;
    }
}

static void take_results(void)
{
    struct sluice_admitted admitted = {.size = sizeof admitted};
    while (sluice_listener_admitted(host.listener, 0, &admitted) == 0) {
        must((admitted.error == 0) == (admitted.channel != NULL || admitted.multichannel != NULL),
             "an admission has an error and a channel");
        keep(admitted.channel);
    }
}

static void meet(struct sluice_incoming *incoming)
{
    struct sluice_incoming_info info = {.size = sizeof info};
    must(sluice_incoming_query(incoming, &info) == 0 && info.channels <= MOST_CHANNELS,
         "a client asks for %u channels", info.channels);
    if (way == BY_ADMISSION) {
        admit(incoming, info.channels);
    } else {
        let_in(incoming, info.channels);
    }
}

/* Sleeps as an event loop does. */
static void sleep_on_listener(void)
{
    struct pollfd pollfd = {.fd = sluice_listener_fd(host.listener), .events = POLLIN};
    must(pollfd.fd >= 0, "the listener has no descriptor");
    (void)poll(&pollfd, 1, 20);
}

static void serve_once(void)
{
    static bool woken; /* no wait has ended by it yet */
    int64_t began = sim_own_time(), timeout = SLUICE_MS(below(20));
    struct sluice_incoming *incoming;
    /* It would end an accept as well. */
    if (way != BY_INCOMING && below(16) == 0) {
        woken = true;
        must(sluice_listener_wake(host.listener) == 0, "wake: %s", sluice_last_error());
    }
    if (below(4) == 0 && !woken) {
        sleep_on_listener();
    }
    if (way == BY_ACCEPT) {
        struct sluice_channel *channel = sluice_accept(host.listener, host.pd, NULL, timeout);
        works(channel != NULL || errno == ETIMEDOUT || (errno == EINTR && woken), "accept");
        woken = woken && (channel != NULL || errno != EINTR);
        keep(channel);
    } else {
        incoming = sluice_listener_next(host.listener, timeout);
        works(incoming != NULL || errno == ETIMEDOUT || (errno == EINTR && woken), "next");
        woken = woken && (incoming != NULL || errno != EINTR);
        if (incoming != NULL) {
            meet(incoming);
        }
    }
    if (way == BY_ADMISSION) {
        take_results();
    }
    in_time(began, timeout + SLUICE_S(6), "a turn of a server");
}

static void serve(void)
{
    while (count_gone(&crowd()->gone) < sim_ranks() - 1) {
        serve_once();
    }
}

/* Reads the memory of rank 0 over a new connection, which needs nothing of its program. */
static bool look(struct sluice_channel *channel, uint32_t peer)
{
    uint8_t *memory = sluice_mr_addr(host.mr);
    struct sluice_sge sge;
    int result;
    must(sluice_mr_sge(host.mr, 0, BYTES, &sge) == 0, "element: %s", sluice_last_error());
    memset(memory, 0, BYTES);
    result = channel != NULL
                 ? sluice_channel_read(channel, &sge, 1, &crowd()->remote, PATIENCE)
                 : sluice_multichannel_read(host.all, peer, &sge, 1, &crowd()->remote, PATIENCE);
    if (!well_with(result == 0, 0, "a read over a new connection")) {
        return false;
    }
    for (uint32_t i = 0; i < BYTES; i++) {
        must(memory[i] == value(i), "byte %u of rank 0 is wrong", i);
    }
    return true;
}

/* A client that was not let in has a reason, which its own haste may be. */
static void judge(int error, bool hasty)
{
    /* A reset may overtake the reason in the network. */
    bool overtaken = error == ECONNRESET && strstr(sluice_last_error(), "before all was") != NULL &&
                     crowd()->told < crowd()->cancelled;
    bool cancelled =
        overtaken || (error == ECONNABORTED && strstr(sluice_last_error(), " cancelled") != NULL);
    crowd()->told += cancelled;
    must(!cancelled || crowd()->told <= crowd()->cancelled || sim_is_troubled(),
         "more clients were cancelled than were");
    if (!cancelled && !(hasty && error == ETIMEDOUT)) {
        well_with(false, 0, "a client");
    }
}

static void come(void)
{
    struct sluice_connect_attr options = {.size = sizeof options};
    uint32_t kind = (uint32_t)below(16), peers[MOST_CHANNELS];
    bool hasty = kind == 0;
    int64_t began = sim_own_time(), deadline = hasty ? SLUICE_MS(below(10)) : PATIENCE;
    if (kind == 1) {
        be_stranger(crowd()->address, PORT, below(2) == 0);
        return;
    }
    if (way != BY_ACCEPT && below(2)) {
        uint32_t count = 1 + (uint32_t)below(MOST_CHANNELS);
        int result =
            sluice_connect_into(crowd()->address, host.all, &options, deadline, peers, count);
        in_time(began, deadline, "connect");
        for (uint32_t i = 0; result == 0 && i < count; i++) {
            look(NULL, peers[i]);
        }
        if (result != 0) {
            judge(-result, hasty);
        }
    } else {
        struct sluice_channel *channel =
            sluice_connect(crowd()->address, host.pd, NULL, &options, deadline);
        int error = errno;
        in_time(began, deadline, "connect");
        if (channel == NULL) {
            judge(error, hasty);
        } else if (kind != 2) {
            look(channel, 0);
        }
        if (kind == 2) {
            sluice_channel_close(channel); /* leaves at once */
        } else {
            keep(channel);
        }
    }
}

/* A listener lets fewer clients in at a time if there are few descriptors as it begins. */
static void limit_descriptors(rlim_t count)
{
    const struct rlimit files = {count, 1 << 20};
    must(setrlimit(RLIMIT_NOFILE, &files) == 0, "no more descriptors");
}

static bool begin(void)
{
    struct sluice_listen_attr attr = {.size = sizeof attr,
                                      .backlog = 1 + (uint32_t)below(below(2) ? 2 : 100)};
    char text[64];
    limit_descriptors(1 << 20);
    host.context = sluice_context_open(NULL, NULL);
    host.pd = works(host.context != NULL, "open") ? sluice_pd_alloc(host.context) : NULL;
    host.mr =
        host.pd != NULL
            ? sluice_mr_alloc(host.pd, BYTES, SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ)
            : NULL;
    if (!works(host.mr != NULL, "memory")) {
        return false;
    }
    host.all = sluice_prepared_multichannel_handshake(sluice_multichannel_prepare(host.pd, 0, NULL),
                                                      NULL, 0);
    if (!works(host.all != NULL, "multichannel") || sim_rank() != 0) {
        return host.all != NULL;
    }
    for (uint32_t i = 0; i < BYTES; i++) {
        ((uint8_t *)sluice_mr_addr(host.mr))[i] = value(i);
    }
    sluice_mr_remote(host.mr, &crowd()->remote);
    snprintf(text, sizeof text, ":%d", PORT);
    limit_descriptors(below(2) ? 128 : 1 << 20);
    host.listener = sluice_listen(text, &attr);
    limit_descriptors(1 << 20);
    write_address(crowd()->address, sizeof crowd()->address, PORT);
    return works(host.listener != NULL, "listen") &&
           works(sluice_listener_address(host.listener, text, sizeof text) == PORT, "address");
}

int run_crowd(void)
{
    uint64_t clients = sim_number("clients", 1 + agreed(agreed(8) == 0 ? 100 : 20));
    way = (enum way)sim_number("way", agreed(WAYS));
    if (all_well(begin())) {
        for (uint64_t i = 0; sim_rank() != 0 && i < clients; i++) {
            sim_pause((int64_t)below(3000000));
            come();
        }
        if (sim_rank() == 0) {
            serve();
        } else {
            leave(&crowd()->gone);
        }
        if (all_well(true)) {
            works(crowd()->told <= crowd()->cancelled, "clients that were cancelled");
        }
    }
    sluice_listener_close(host.listener);
    for (uint32_t i = 0; i < host.count; i++) {
        sluice_channel_close(host.channels[i]);
    }
    sluice_multichannel_close(host.all);
    must(host.mr == NULL || sluice_mr_deregister(host.mr) == 0, "deregister: %s",
         sluice_last_error());
    sluice_pd_free(host.pd);
    sluice_context_close(host.context);
    return 0;
}
