/* SPDX-License-Identifier: MIT */
/* A listener at an address of this host, and a client that connects in a thread of its own. */
#ifndef SUPPORT_CLIENT_H
#define SUPPORT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "pair.h"

/* Opens a listener; must succeed. */
struct sluice_listener *listen_with(const char *address, const char *secret);

struct client {
    pthread_t thread;
    char address[128];
    struct sluice_pd *pd;
    const struct sluice_channel_attr *attr; /* NULL: the defaults */
    struct sluice_multichannel *into;       /* NULL: a channel */
    uint32_t count;
    struct sluice_connect_attr options;
    int64_t deadline;
    struct sluice_private_data own, peer;
    struct sluice_channel *channel;
    atomic_bool ended; /* the result is written */
    uint32_t peers[SLUICE_MAX_CONNECT_CHANNELS];
    int error;
    bool changed_errno; /* by a call that promises to keep it */
    char text[400];
};

/* Listener NULL: the address is set later. */
void client_init(struct client *client, const struct sluice_listener *listener,
                 struct sluice_pd *pd, const char *secret);
void client_start(struct client *client);
/* Waits for the client, whose result must be the wanted one. */
void client_join(struct client *client, int wanted);
/*
 * Starts a client that asks for this many new peers of a multichannel, and waits until it has come.
 */
struct sluice_incoming *client_meet(struct client *client, struct sluice_listener *listener,
                                    struct sluice_multichannel *into, uint32_t count);

/* Options of an accept with private data. */
#define WITH_DATA(data) \
    (&(struct sluice_accept_attr){.size = sizeof(struct sluice_accept_attr), .own = (data)})

#endif
