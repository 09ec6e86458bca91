/* SPDX-License-Identifier: MIT */
#include "iwarp.h"

#include <stdio.h>

#include "client.h"

bool device_is_iwarp(void)
{
    return strncmp(test_device(), "siw", 3) == 0;
}

static struct sluice_listener *listen_here(struct client *client, struct sluice_pd *pd,
                                           const struct sluice_channel_attr *attr)
{
    struct sluice_listener *listener = listen_with("rdmacm:" IWARP_HOST ":0", "");
    client_init(client, NULL, pd, "");
    client->attr = attr;
    snprintf(client->address, sizeof(client->address), "rdmacm:" IWARP_HOST ":%d",
             sluice_listener_address(listener, NULL, 0));
    return listener;
}

void iwarp_connect_pair(struct pair *pair, const struct sluice_channel_attr *attr)
{
    struct client client;
    struct sluice_listener *listener = listen_here(&client, pair->sides.pds[1], attr);
    client_start(&client);
    pair->channels[0] = sluice_accept(listener, pair->sides.pds[0], attr, DEADLINE);
    if (pair->channels[0] == NULL) {
        /* Report that first: the client may fail because of it. */
        fail_at(__FILE__, __LINE__, "accept: %s", sluice_last_error());
    }
    client_join(&client, 0);
    pair->channels[1] = client.channel;
    sluice_listener_close(listener);
}

void iwarp_connect_star(struct star *star, const struct sluice_channel_attr *attr)
{
    star->hub = made(sluice_prepared_multichannel_handshake(
        sluice_multichannel_prepare(star->sides.pds[0], 0, attr), NULL, 0));
    for (uint32_t i = 0; i < star->peers; i++) {
        struct client client;
        struct sluice_listener *listener = listen_here(&client, star->sides.pds[1], attr);
        uint32_t peer = UINT32_MAX;
        client_start(&client);
        struct sluice_incoming *incoming = made(sluice_listener_next(listener, DEADLINE));
        require_ok(sluice_incoming_accept_into(incoming, star->hub, NULL, DEADLINE, &peer, 1));
        require(peer == i, "peer %u", peer);
        client_join(&client, 0);
        star->spokes[i] = client.channel;
        sluice_listener_close(listener);
    }
}
