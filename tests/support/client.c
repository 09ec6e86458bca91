/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct sluice_listener *listen_with(const char *address, const char *secret)
{
    struct sluice_listen_attr attr = {.size = sizeof(attr), .secret_file = secret};
    return made(sluice_listen(address, &attr));
}

static void *run_client(void *argument)
{
    struct client *client = argument;
    if (client->into == NULL) {
        client->channel = sluice_connect(client->address, client->pd, client->attr,
                                         &client->options, client->deadline);
        client->error = client->channel == NULL ? -errno : 0;
    } else {
        errno = EXDEV;
        client->error = sluice_connect_into(client->address, client->into, &client->options,
                                            client->deadline, client->peers, client->count);
        client->changed_errno = errno != EXDEV;
    }
    if (client->error < 0) {
        snprintf(client->text, sizeof(client->text), "%s", sluice_last_error());
    }
    atomic_store(&client->ended, true);
    return NULL;
}

void client_init(struct client *client, const struct sluice_listener *listener,
                 struct sluice_pd *pd, const char *secret)
{
    memset(client, 0, sizeof(*client));
    if (listener != NULL) {
        snprintf(client->address, sizeof(client->address), "127.0.0.1:%d",
                 sluice_listener_address(listener, NULL, 0));
    }
    client->pd = pd;
    client->deadline = DEADLINE;
    client->options.size = sizeof(client->options);
    client->options.secret_file = secret;
    client->options.own = &client->own;
    client->options.peer = &client->peer;
}

void client_start(struct client *client)
{
    require(pthread_create(&client->thread, NULL, run_client, client) == 0, "no thread");
}

void client_join(struct client *client, int wanted)
{
    require(pthread_join(client->thread, NULL) == 0, "no end");
    require(client->error == wanted, "it is %d, not %d: %s", client->error, wanted, client->text);
    require(!client->changed_errno, "errno is another one");
}

struct sluice_incoming *client_meet(struct client *client, struct sluice_listener *listener,
                                    struct sluice_multichannel *into, uint32_t count)
{
    client_init(client, listener, NULL, "");
    client->into = into;
    client->count = count;
    client_start(client);
    return made(sluice_listener_next(listener, DEADLINE));
}
