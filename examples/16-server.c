/* SPDX-License-Identifier: MIT */
/*
 * A server of any number of clients in one epoll(7) loop. It accepts each client as a peer of one
 * multichannel, and sends its lines back in capitals. A client that leaves, or dies, makes room
 * for the next. Only the loop waits: a client that stops at any point does not hold up others.
 *
 *   16-server                       a server and eight clients, two of which die
 *   16-server -l ADDRESS:PORT       the server, until SIGINT
 *   16-server -c ADDRESS:PORT TEXT  a client
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <sluice.h>

#include "workers.h"

#define CLIENTS 8u
#define VICTIMS 2u /* clients that end without a goodbye */
#define LINES 50   /* that a client sends, one at a time */
#define PLACES 64u /* clients at a time */
#define SIZE 256   /* bytes of a line */
#define BATCH 16   /* results of a poll */
#define TURN 256   /* results in a row */
#define DEADLINE SLUICE_S(30)
/* The time in which a client must complete its connection; others do not wait for it. */
#define WELCOME SLUICE_S(10)
/* After this much silence keepalive probes a client, because devices do not report its death. */
#define KEEPALIVE SLUICE_S(5)

/* Each client has one line in flight: it is received, and then sent back from its slot. */
enum step { RECEIVED, SENT };

struct server {
    struct sluice_pd *pd;
    struct sluice_mr *lines; /* a place for each index of a peer */
    struct sluice_listener *listener;
    struct sluice_multichannel *clients;
    int epoll;
    uint32_t coming; /* clients that are being let in */
    uint32_t there;  /* clients */
    uint32_t left;   /* that said goodbye, and others that are gone */
    uint32_t lost;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* Posts a receive into the slot of a client, or a send from it. */
static int post(struct server *server, uint32_t peer, uint32_t opcode, size_t bytes)
{
    struct sluice_request request = {.opcode = opcode,
                                     .peer = peer,
                                     .sge_count = 1,
                                     .user_data = opcode == SLUICE_OP_SEND ? SENT : RECEIVED};

    if (sluice_mr_sge(server->lines, (size_t)peer * SIZE, bytes, &request.sge) != 0)
        return -1;
    return sluice_multichannel_post(server->clients, &request, 1, SLUICE_FOREVER, NULL) == 1 ? 0
                                                                                             : -1;
}

static void part_from(struct server *server, uint32_t peer, const char *why)
{
    server->there--;
    if (sluice_multichannel_peer_remove(server->clients, peer) == 0)
        printf("client %u %s\n", peer, why);
}

static void lose(struct server *server, uint32_t peer)
{
    server->lost++;
    part_from(server, peer, "is lost");
}

/* Answers a line; an empty one is the goodbye. */
static void answer(struct server *server, const struct sluice_completion *done)
{
    char *line = (char *)sluice_mr_addr(server->lines) + (size_t)done->peer * SIZE;

    if (done->bytes == 0) {
        server->left++;
        part_from(server, done->peer, "has left");
        return;
    }
    for (uint64_t i = 0; i < done->bytes; i++)
        line[i] = (char)toupper((unsigned char)line[i]);
    if (post(server, done->peer, SLUICE_OP_SEND, (size_t)done->bytes) != 0)
        lose(server, done->peer);
}

static void serve(struct server *server, const struct sluice_completion *done)
{
    /* The result is of a peer that was removed. */
    if ((done->flags & SLUICE_PEER_REMOVED) != 0)
        return;
    if (done->error != 0)
        lose(server, done->peer);
    else if (done->user_data == RECEIVED)
        answer(server, done);
    else if (post(server, done->peer, SLUICE_OP_RECEIVE, SIZE) != 0)
        lose(server, done->peer);
}

/* Begins to accept the waiting clients, as many as there are slots for. */
static int admit(struct server *server)
{
    struct sluice_incoming *incoming;

    while ((incoming = sluice_listener_next(server->listener, 0)) != NULL) {
        if (server->there + server->coming >= PLACES)
            sluice_incoming_refuse(incoming, "all places are taken");
        else if (sluice_incoming_admit_into(incoming, server->clients, NULL, WELCOME, 0) == 0)
            server->coming++;
        else
            complain("server", "a client that came");
    }
    return errno == ETIMEDOUT ? 0 : complain("server", "listen");
}

/* Welcomes an accepted client. Each has one channel, and the slot at its peer index. */
static void welcome(struct server *server, const struct sluice_admitted *admitted)
{
    server->coming--;
    if (admitted->error != 0) {
        complain("server", "a client that came");
        return;
    }
    for (uint32_t i = 0; i < admitted->peer_count; i++) {
        server->there++;
        if (admitted->peers[i] >= PLACES)
            part_from(server, admitted->peers[i], "has no place");
        else if (post(server, admitted->peers[i], SLUICE_OP_RECEIVE, SIZE) != 0)
            lose(server, admitted->peers[i]);
    }
}

/* Serves the listener, which makes progress with all clients that are being accepted. */
static int let_in(struct server *server)
{
    uint32_t peers[SLUICE_MAX_CONNECT_CHANNELS];
    struct sluice_admitted admitted = {
        .size = sizeof(admitted), .peers = peers, .peer_capacity = SLUICE_MAX_CONNECT_CHANNELS};
    int error = admit(server);

    if (error != 0)
        return error;
    while ((error = sluice_listener_admitted(server->listener, 0, &admitted)) == 0)
        welcome(server, &admitted);
    return error == -ETIMEDOUT ? 0 : complain("server", "let in");
}

/*
 * Takes results, at most TURN of them, so that clients that are busy all the time do not keep the
 * loop from the listener. Returns -1, or sets the milliseconds that the loop may sleep: 0 if there
 * may be more results, because the descriptor is not armed then. A poll takes many results at once,
 * because each call has a cost.
 */
static int look_after(struct server *server, int *sleep)
{
    struct sluice_completion done[BATCH];
    int64_t due = 0;
    int got, taken = 0, armed = 0;

    do {
        got = sluice_multichannel_poll(server->clients, done, BATCH);
        for (int i = 0; i < got; i++)
            serve(server, &done[i]);
        taken += got;
    } while (got > 0 && taken < TURN);
    if (got == 0)
        armed = sluice_multichannel_arm(server->clients, &due);
    if (got < 0 || armed < 0)
        return complain("server", "poll");
    *sleep = due >= SLUICE_S(1000) ? -1 : (int)((due + 999999) / 1000000);
    return 0;
}

static int watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    perror("16-server: epoll_ctl");
    return -1;
}

/* Runs until that many clients have gone, or it is interrupted. */
static int loop(struct server *server, uint32_t clients)
{
    struct epoll_event event;
    int sleep = 0;

    if (watch(server->epoll, sluice_listener_fd(server->listener)) != 0 ||
        watch(server->epoll, sluice_multichannel_fd(server->clients)) != 0)
        return -1;
    while (server->left + server->lost < clients && !interrupted) {
        if (let_in(server) != 0 || look_after(server, &sleep) != 0)
            return -1;
        if (server->left + server->lost < clients &&
            epoll_wait(server->epoll, &event, 1, sleep) < 0 && errno != EINTR)
            return -1;
    }
    printf("%u clients have left, %u were lost\n", server->left, server->lost);
    return 0;
}

static int open_server(struct server *server, const char *address)
{
    const struct sluice_channel_attr attr = {
        .size = sizeof(attr), .send_depth = 4, .receive_depth = 4, .keepalive = KEEPALIVE};
    struct sluice_prepared_multichannel *prepared;

    server->lines = sluice_mr_alloc(server->pd, (size_t)PLACES * SIZE, SLUICE_ACCESS_LOCAL_WRITE);
    prepared = server->lines != NULL ? sluice_multichannel_prepare(server->pd, 0, &attr) : NULL;
    if (prepared != NULL)
        server->clients = sluice_prepared_multichannel_handshake(prepared, NULL, 0);
    if (server->clients != NULL)
        server->listener = sluice_listen(address, NULL);
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    return server->listener != NULL && server->epoll >= 0 ? 0 : complain("server", "open");
}

static void close_server(struct server *server)
{
    sluice_listener_close(server->listener);
    sluice_multichannel_close(server->clients);
    sluice_mr_deregister(server->lines);
    if (server->epoll >= 0)
        close(server->epoll);
}

/* Sends a line, receives the answer, and checks that it is the same in capitals. */
static int say(struct sluice_channel *channel, struct sluice_mr *mr, const char *text)
{
    size_t length = strnlen(text, SIZE);
    char *line = sluice_mr_addr(mr);
    struct sluice_completion done;
    struct sluice_sge sge;

    memcpy(line, text, length);
    if (sluice_mr_sge(mr, 0, length, &sge) != 0 ||
        sluice_channel_send(channel, &sge, 1, DEADLINE) != 0 ||
        sluice_channel_receive(channel, &sge, 1, DEADLINE, &done) != 0)
        return complain("client", "ask");
    for (size_t i = 0; i < length; i++)
        if (done.bytes != length || line[i] != toupper((unsigned char)text[i])) {
            fprintf(stderr, "16-server: client: a wrong answer\n");
            return -1;
        }
    return 0;
}

/* Sends the text, and the goodbye unless it is a victim. */
static int run_client(const char *address, const char *text, int lines, int victim)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .keepalive = KEEPALIVE};
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = context != NULL ? sluice_pd_alloc(context) : NULL;
    struct sluice_mr *mr = pd != NULL ? sluice_mr_alloc(pd, SIZE, SLUICE_ACCESS_LOCAL_WRITE) : NULL;
    struct sluice_channel *channel =
        mr != NULL ? sluice_connect(address, pd, &attr, NULL, DEADLINE) : NULL;
    int result = channel != NULL ? 0 : complain("client", "connect");

    for (int i = 0; i < lines && result == 0; i++)
        result = say(channel, mr, text);
    if (result == 0 && lines == 1)
        printf("%.*s\n", (int)strnlen(text, SIZE), (const char *)sluice_mr_addr(mr));
    if (result == 0 && victim)
        _exit(EXIT_SUCCESS);
    /* The server closes as soon as it has received this, perhaps before it is acknowledged. */
    if (result == 0)
        (void)!sluice_channel_send(channel, NULL, 0, DEADLINE);
    sluice_channel_close(channel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

/* The message to a worker: the server's address, and whether it is a victim. */
struct part {
    char address[64];
    int victim;
};

static int run_worker(int socket)
{
    struct part part;
    char text[SIZE];

    if (take(socket, &part, sizeof(part)) != 0)
        return -1;
    snprintf(text, sizeof(text), "process %ld says hello", (long)getpid());
    return run_client(part.address, text, LINES, part.victim);
}

static int tell_workers(const struct workers *workers, const struct server *server)
{
    int port = sluice_listener_address(server->listener, NULL, 0);

    for (uint32_t i = 1; i <= CLIENTS; i++) {
        struct part part = {.victim = i <= VICTIMS};

        snprintf(part.address, sizeof(part.address), "127.0.0.1:%d", port);
        if (give(workers->sockets[i], &part, sizeof(part)) != 0)
            return -1;
    }
    return 0;
}

/* Runs the server for that many clients; they are workers of ours, or any that connect. */
static int run_server(const char *address, const struct workers *workers, uint32_t clients)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct server server = {.epoll = -1};
    int result;

    server.pd = context != NULL ? sluice_pd_alloc(context) : NULL;
    result = server.pd != NULL ? open_server(&server, address) : complain("server", "set up");
    if (result == 0 && workers == NULL)
        printf("listening at port %d\n", sluice_listener_address(server.listener, NULL, 0));
    fflush(stdout);
    if (result == 0 && workers != NULL)
        result = tell_workers(workers, &server);
    if (result == 0)
        result = loop(&server, clients);
    close_server(&server);
    sluice_pd_free(server.pd);
    sluice_context_close(context);
    return result;
}

/* Starts the processes first: open objects do not survive a fork. */
static int run_both(void)
{
    struct workers workers = {0};
    int result = workers_start(&workers, CLIENTS + 1, run_worker);

    if (result == 0)
        result = run_server("127.0.0.1:0", &workers, CLIENTS);
    return workers_end(&workers, result);
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = interrupt};
    int result = 2;

    sigaction(SIGINT, &action, NULL);
    if (argc == 1)
        result = run_both();
    else if (argc == 3 && strcmp(argv[1], "-l") == 0)
        result = run_server(argv[2], NULL, UINT32_MAX);
    else if (argc == 4 && strcmp(argv[1], "-c") == 0 && argv[3][0] != 0)
        result = run_client(argv[2], argv[3], 1, 0);
    else
        fprintf(stderr, "usage: 16-server [-l ADDRESS:PORT | -c ADDRESS:PORT TEXT]\n");
    return result < 0 ? EXIT_FAILURE : result;
}
