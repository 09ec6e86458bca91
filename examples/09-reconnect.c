/* SPDX-License-Identifier: MIT */
/*
 * A server that survives its clients. Each client sends it reports, one message after the
 * other. One of them is killed repeatedly, with SIGKILL. Keepalive notifies the server,
 * which removes the peer, goes on with the others, and accepts the client again when it
 * returns. Clients connect by address, and identify themselves in their private data.
 *
 *   09-reconnect
 *
 * The server starts the clients, and kills and restarts one of them itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#define CLIENTS 3u
#define VICTIM 1u
#define DEATHS 2u
#define REPORTS 100u /* of a client that is not killed */
#define LIFETIME 40u /* reports after which the victim is killed */
#define PAUSE_US 2000

#define PATIENCE_NS SLUICE_S(30)

struct report {
    uint32_t client;
    uint32_t number; /* from 1 */
};

static const struct sluice_channel_attr watchful = {.size = sizeof(watchful),
                                                    .keepalive = SLUICE_MS(500)};

static int complain(const char *who, const char *what)
{
    fprintf(stderr, "09-reconnect: %s: %s: %s\n", who, what, sluice_last_error());
    return -1;
}

static int complain_of_system(const char *what)
{
    fprintf(stderr, "09-reconnect: %s: %s\n", what, strerror(errno));
    return -1;
}

/* The client. */

/* Connects, with the client's number as private data. */
static struct sluice_channel *come(const char *address, struct sluice_pd *pd, uint32_t client)
{
    struct sluice_private_data own = {.bytes = sizeof(client)};
    const struct sluice_connect_attr options = {.size = sizeof(options), .own = &own};
    struct sluice_channel *channel;

    memcpy(own.data, &client, sizeof(client));
    channel = sluice_connect(address, pd, &watchful, &options, PATIENCE_NS);
    if (channel == NULL)
        complain("client", "connect");
    return channel;
}

/* Sends all reports. Reconnects if the server has given us up, for example after a long stop. */
static int report_all(const char *address, struct sluice_pd *pd, struct sluice_mr *mr,
                      uint32_t client)
{
    struct sluice_channel *channel = come(address, pd, client);
    struct report *report = sluice_mr_addr(mr);
    struct sluice_sge sge;

    *report = (struct report){.client = client, .number = 1};
    if (channel != NULL && sluice_mr_sge(mr, 0, sizeof(*report), &sge) != 0) {
        complain("client", "name the memory");
        sluice_channel_close(channel);
        channel = NULL;
    }
    while (channel != NULL && report->number <= REPORTS) {
        if (sluice_channel_send(channel, &sge, 1, PATIENCE_NS) == 0) {
            report->number++;
            usleep(PAUSE_US);
        } else {
            complain("client", "report");
            sluice_channel_close(channel);
            channel = come(address, pd, client);
        }
    }
    if (channel == NULL)
        return -1;
    sluice_channel_shutdown(channel, PATIENCE_NS);
    sluice_channel_close(channel);
    return 0;
}

static int be_client(uint32_t client, const char *address)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = context != NULL ? sluice_pd_alloc(context) : NULL;
    struct sluice_mr *mr =
        pd != NULL ? sluice_mr_alloc(pd, sizeof(struct report), SLUICE_ACCESS_LOCAL_WRITE) : NULL;
    int result = -1;

    if (mr == NULL)
        complain("client", "set up");
    else
        result = report_all(address, pd, mr, client);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

/* The server. */

struct client {
    pid_t pid;
    uint32_t deaths;
    uint32_t visits; /* times it connected */
    int peer;        /* its index in all, or -1: not connected */
    uint32_t heard;  /* its last report */
    struct report *report;
    struct sluice_request receive; /* user_data: number of the client */
};

struct server {
    char address[64];
    struct sluice_listener *listener;
    struct sluice_multichannel *all; /* the connected clients */
    struct client clients[CLIENTS];
};

/* Starts a client with exec(), because a mere fork would inherit the server's connections. */
static int start_client(struct server *server, uint32_t number)
{
    extern char **environ;
    char program[] = "09-reconnect", text[16];
    char *const arguments[] = {program, server->address, text, NULL};

    snprintf(text, sizeof(text), "%u", number);
    errno =
        posix_spawn(&server->clients[number].pid, "/proc/self/exe", NULL, NULL, arguments, environ);
    return errno == 0 ? 0 : complain_of_system("start a client");
}

static int expect_report(struct server *server, uint32_t number)
{
    const struct sluice_request *receive = &server->clients[number].receive;

    return sluice_multichannel_post(server->all, receive, 1, SLUICE_FOREVER, NULL) == 1
               ? 0
               : complain("server", "expect a report");
}

/* Removes the peer, which ends its requests. Results that are not taken yet are marked, because
   another peer may get the same index. */
static void give_up(struct server *server, struct client *client)
{
    if (client->peer >= 0 &&
        sluice_multichannel_peer_remove(server->all, (uint32_t)client->peer) != 0)
        complain("server", "remove");
    client->peer = -1;
}

/* Returns the client that connects, or NULL if it is not one of ours. */
static struct client *recognize(struct server *server, const struct sluice_incoming *incoming)
{
    struct sluice_incoming_info info = {.size = sizeof(info)};
    uint32_t number;

    if (sluice_incoming_query(incoming, &info) != 0 || info.private_data.bytes != sizeof(number))
        return NULL;
    memcpy(&number, info.private_data.data, sizeof(number));
    return number < CLIENTS ? &server->clients[number] : NULL;
}

/*
 * Begins to accept a client, without waiting: others are served meanwhile. If the client still
 * seems to be connected, its old peer is given up first.
 */
static void take_in(struct server *server, struct sluice_incoming *incoming)
{
    struct client *client = recognize(server, incoming);
    uint32_t number;

    if (client == NULL) {
        sluice_incoming_refuse(incoming, "no client of this server");
        return;
    }
    number = (uint32_t)(client - server->clients);
    give_up(server, client);
    sluice_listener_cancel(server->listener, number);
    if (sluice_incoming_admit_into(incoming, server->all, NULL, SLUICE_S(5), number) != 0)
        complain("server", "let a client in"); /* it has gone again, say */
}

static void welcome(struct server *server, const struct sluice_admitted *admitted)
{
    uint32_t number = (uint32_t)admitted->user_data;
    struct client *client = &server->clients[number];

    if (admitted->error == -ECANCELED)
        return; /* it has come again */
    if (admitted->error != 0) {
        complain("server", "let a client in");
        return;
    }
    give_up(server, client);
    client->receive.peer = admitted->peer;
    client->peer = (int)client->receive.peer;
    client->visits++;
    if (expect_report(server, number) != 0)
        give_up(server, client);
    else
        printf("client %u is connected\n", number);
}

static int admit(struct server *server)
{
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    struct sluice_incoming *incoming;
    int error;

    while ((incoming = sluice_listener_next(server->listener, 0)) != NULL)
        take_in(server, incoming);
    if (errno != ETIMEDOUT)
        return complain("server", "get the next client");
    while ((error = sluice_listener_admitted(server->listener, 0, &admitted)) == 0)
        welcome(server, &admitted);
    return error == -ETIMEDOUT ? 0 : complain("server", "get an accepted client");
}

/* Kills the victim. */
static int kill_victim(struct server *server)
{
    struct client *victim = &server->clients[VICTIM];

    victim->deaths++;
    kill(victim->pid, SIGKILL);
    waitpid(victim->pid, NULL, 0);
    victim->pid = 0;
    return 0;
}

static int hear(struct server *server, const struct sluice_completion *completion)
{
    uint32_t number = (uint32_t)completion->user_data;
    struct client *client = &server->clients[number];
    struct sluice_error error = {.size = sizeof(error)};

    if ((completion->flags & SLUICE_PEER_REMOVED) != 0)
        return 0; /* a result of a peer that was given up */
    if (completion->error != 0) {
        if (sluice_multichannel_peer_error(server->all, completion->peer, &error) == 1)
            printf("client %u is gone: %s\n", number, error.text);
        give_up(server, client);
        /* Start the client again; it connects by itself. */
        return client->pid == 0 ? start_client(server, number) : 0;
    }
    client->heard = client->report->number;
    if (client->heard == REPORTS)
        return 0;
    if (expect_report(server, number) != 0)
        return -1;
    if (number == VICTIM && client->heard == LIFETIME && client->deaths < DEATHS)
        return kill_victim(server);
    return 0;
}

static int all_heard(const struct server *server)
{
    for (uint32_t i = 0; i < CLIENTS; i++)
        if (server->clients[i].heard < REPORTS)
            return 0;
    return 1;
}

/* Sleeps until the library has something to do, or a client connects. */
static int sleep_for_both(struct server *server)
{
    struct pollfd fds[2] = {{.fd = sluice_multichannel_fd(server->all), .events = POLLIN},
                            {.fd = sluice_listener_fd(server->listener), .events = POLLIN}};
    struct timespec timeout;
    int64_t due;

    if (sluice_multichannel_arm(server->all, &due) != 0)
        return 0;
    timeout = (struct timespec){.tv_sec = due / SLUICE_S(1), .tv_nsec = due % SLUICE_S(1)};
    if (ppoll(fds, 2, due == SLUICE_FOREVER ? NULL : &timeout, NULL) < 0 && errno != EINTR)
        return complain_of_system("poll");
    return (fds[1].revents & POLLIN) != 0 ? admit(server) : 0;
}

static int serve(struct server *server)
{
    struct sluice_completion completions[CLIENTS];
    int result = 0;

    for (uint32_t i = 0; i < CLIENTS && result == 0; i++)
        result = start_client(server, i);
    while (result == 0 && !all_heard(server)) {
        int count = sluice_multichannel_poll(server->all, completions, CLIENTS);

        for (int i = 0; i < count && result == 0; i++)
            result = hear(server, &completions[i]);
        if (result == 0)
            result = count < 0 ? complain("server", "poll") : sleep_for_both(server);
    }
    return result;
}

static int tell(struct server *server, int result)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct client *client = &server->clients[i];
        int status = 0;

        if (result != 0 && client->pid > 0)
            kill(client->pid, SIGKILL);
        if (client->pid > 0)
            waitpid(client->pid, &status, 0);
        if (result == 0 && status != 0) {
            fprintf(stderr, "09-reconnect: client %u failed\n", i);
            result = -1;
        }
        if (result == 0)
            printf("client %u: %u reports, died %u times, was taken back %u times\n", i,
                   client->heard, client->deaths, client->visits - 1);
    }
    return result;
}

static int open_listener(struct server *server)
{
    server->listener = sluice_listen("127.0.0.1:0", NULL);
    if (server->listener == NULL ||
        sluice_listener_address(server->listener, server->address, sizeof(server->address)) < 0)
        return complain("server", "listen");
    return 0;
}

/* Makes the multichannel without peers. */
static struct sluice_multichannel *make_multichannel(struct sluice_pd *pd)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 0, &watchful);

    return prepared != NULL ? sluice_prepared_multichannel_handshake(prepared, NULL, 0) : NULL;
}

static int be_server(struct sluice_pd *pd, struct sluice_mr *mr)
{
    struct server server = {.listener = NULL};
    int result = -1;

    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct client *client = &server.clients[i];

        client->report = (struct report *)sluice_mr_addr(mr) + i;
        client->receive =
            (struct sluice_request){.opcode = SLUICE_OP_RECEIVE, .user_data = i, .sge_count = 1};
        client->peer = -1;
        if (sluice_mr_sge_at(mr, client->report, sizeof(*client->report), &client->receive.sge) !=
            0)
            return complain("server", "name the memory");
    }
    server.all = make_multichannel(pd);
    if (server.all == NULL)
        complain("server", "prepare");
    else if (open_listener(&server) == 0)
        result = serve(&server);
    result = tell(&server, result);
    sluice_listener_close(server.listener);
    sluice_multichannel_close(server.all);
    return result;
}

int main(int argc, char **argv)
{
    struct sluice_context *context;
    struct sluice_pd *pd = NULL;
    struct sluice_mr *mr = NULL;
    int result = -1;

    if (argc == 3) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* do not outlive the server */
        return be_client((uint32_t)strtoul(argv[2], NULL, 10), argv[1]) == 0 ? EXIT_SUCCESS
                                                                             : EXIT_FAILURE;
    }
    context = sluice_context_open(NULL, NULL);
    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        mr = sluice_mr_alloc(pd, CLIENTS * sizeof(struct report), SLUICE_ACCESS_LOCAL_WRITE);
    if (mr == NULL)
        complain("server", "set up");
    else
        result = be_server(pd, mr);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
