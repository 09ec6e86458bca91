/* SPDX-License-Identifier: MIT */
/* A server whose clients come and go: a multichannel, and a channel of each connected client. */
#ifndef MEMBERS_FIXTURE_H
#define MEMBERS_FIXTURE_H

#include "../../support/pair.h"
#include "../../support/process.h"

#define MOST_CLIENTS 400

struct server {
    struct sides sides;
    struct sluice_channel_attr attr;
    struct sluice_multichannel *all;
    struct sluice_channel *clients[MOST_CLIENTS]; /* by index in all; NULL: not connected */
    struct memory memory;                         /* of the server's side */
    struct memory far;                            /* of the clients' */
};

/* Opens a server without clients. depth is that of both queues; 0: the default. */
void server_open(struct server *server, uint32_t depth);
/* Closes the remaining clients, too. */
void server_close(struct server *server);
/*
 * Connects a client, whose index must be this one. Its endpoint is as
 * sluice_multichannel_peer_add() wrote it.
 */
uint32_t client_comes(struct server *server, uint32_t index);
/* Disconnects a client, which closes its end before or after the server removes it. */
void client_goes(struct server *server, uint32_t index, bool closes_first);
/* Passes a few bytes in both directions. */
void client_works(struct server *server, uint32_t index);
/* Makes a request of 8 bytes with a client and this user data. */
struct sluice_request client_request(const struct server *server, uint32_t opcode, uint32_t index,
                                     uint64_t user_data);
/* Takes one completion, and waits for it if there is none yet. */
struct sluice_completion server_next(struct server *server);

#endif
