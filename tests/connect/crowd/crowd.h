/* SPDX-License-Identifier: MIT */
/*
 * A crowd of clients of one server, each a process, of which a third is killed.
 *
 *   crowd.c    when clients come and are killed; checks that they leave nothing behind
 *   server.c   the server, one event loop in the test's own process
 *   client.c   a client
 */
#ifndef CONNECT_CROWD_H
#define CONNECT_CROWD_H

#include <stdatomic.h>
#include <sys/types.h>

#include "../../support/process.h"
#include "../../support/suite.h"

#define CROWD_MOST 4096 /* clients */
#define WINDOW 1024     /* bytes that a client has at the server */
/* Rounds of a client that is not killed; a victim goes on until it is killed. */
#define ROUNDS (short_run() ? 5U : 20U)
/* The time for each wait of a client; a longer one is a hang. */
#define LIFE SLUICE_S(300)

/* The time for all of them. */
#define CROWD_TIME SLUICE_S(500)

/* The first message of a client, and that of each round. */
struct line {
    uint32_t number, round;
};

/* Memory of all processes. */
struct board {
    char address[64];
    _Atomic uint32_t failed; /* clients */
    char failure[500];       /* of the first */
};

/* The moment at which a victim is killed. */
enum moment {
    AT_THE_DOOR = 0, /* it has connected, and is about to be let in */
    ASKING,          /* it has sent the line of its round, and has no answer yet */
    ANSWERED,        /* the answer is on its way */
    ANY_TIME,        /* at any moment after all have sent a number of lines, if it has come */
    MOMENTS
};

struct member {
    pid_t pid;
    bool victim, killed, left;
    enum moment moment;
    uint32_t when; /* a round, or lines */
};

struct crowd {
    struct board *board;
    uint32_t count;
    struct member members[CROWD_MOST];
};

/* Kills it; it is dead, or about to be, on return. */
void crowd_kill(struct crowd *crowd, uint32_t number);

/* client.c */
void run_client(struct board *board, uint32_t number, bool victim) __attribute__((noreturn));
/* The value in the window after the client wrote there, and after the server did. */
uint64_t asked_key(const struct line *line);
uint64_t answered_key(const struct line *line);

/* server.c */
struct server {
    struct crowd *crowd;
    struct sluice_context *context;
    struct sluice_pd *pd;
    /* Receive buffers, with separate ones for victims, so that the uses of those can be checked. */
    struct sluice_mr *lines, *doomed;
    struct sluice_mr *windows;
    struct sluice_listener *listener;
    struct sluice_multichannel *clients;
    int epoll;
    uint32_t numbers[CROWD_MOST]; /* of the client at an index of the multichannel */
    uint32_t there, most;
    /* Clients that said goodbye; that died; that died before they were let in. */
    uint32_t left, lost, in_vain;
    uint32_t said; /* lines */
};

void server_open(struct server *server, struct crowd *crowd);
/* Serves until this many clients have left, this many were killed, and none is connected. */
void server_run(struct server *server, uint32_t left, uint32_t killed);
/* Runs the event loop once, without sleeping. */
void server_turn(struct server *server);
/* Closes everything that was not closed already and set to NULL. */
void server_close(struct server *server);

#endif
