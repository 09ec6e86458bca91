/* SPDX-License-Identifier: MIT */
/* Connecting by address: mistakes of a program, and failures that others cause in a correct one. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mistakes.h"

#define HERE "127.0.0.1:0"

static const struct sluice_listen_attr open_door = {.size = sizeof(open_door), .secret_file = ""};
static const struct sluice_connect_attr no_secret = {.size = sizeof(no_secret), .secret_file = ""};

static struct sluice_listener *listener_at(const char *address)
{
    struct sluice_listener *listener = made(sluice_listen(address, &open_door));
    return listener;
}

static const char *address_of(const struct sluice_listener *listener)
{
    static char address[64];
    require(sluice_listener_address(listener, address, sizeof(address)) > 0, "%s",
            sluice_last_error());
    return address;
}

/* A thread that connects to a listener of this process, or tries to. */
struct dialer {
    pthread_t thread;
    const char *address;
    struct sluice_pd *pd;
    int64_t deadline;
};

static void *dial(void *argument)
{
    struct dialer *dialer = argument;
    (void)!sluice_connect(dialer->address, dialer->pd, NULL, &no_secret, dialer->deadline);
    return NULL;
}

/* Returns the client that came within that time, or NULL. */
static struct sluice_incoming *dialed(struct dialer *dialer, struct world *world,
                                      struct sluice_listener *listener, int64_t deadline)
{
    *dialer = (struct dialer){
        .address = address_of(listener), .pd = world->sides.pds[1], .deadline = deadline};
    require(pthread_create(&dialer->thread, NULL, dial, dialer) == 0, "no thread");
    return sluice_listener_next(listener, deadline);
}

static struct sluice_incoming *somebody(struct world *world)
{
    static struct dialer dialer;
    struct sluice_incoming *incoming = made(dialed(&dialer, world, listener_at(HERE), DEADLINE));
    return incoming;
}

/* Mistakes. */

MAKES(null_address_to_listen, sluice_listen, NULL, &open_door);
MAKES(null_address_to_connect, sluice_connect, NULL, world->sides.pds[0], NULL, &no_secret,
      DEADLINE);
RETURNS(null_listener, sluice_listener_wake, NULL);
MAKES(null_incoming, sluice_incoming_accept, NULL, world->sides.pds[0], NULL, NULL, DEADLINE);
RETURNS(null_multichannel_to_connect, sluice_connect_into, "127.0.0.1:1", NULL, NULL, DEADLINE,
        &(uint32_t){0}, 1);
RETURNS(null_peers_to_accept, sluice_incoming_accept_into, somebody(world), world->loop, NULL,
        DEADLINE, NULL, 1);
MAKES(other_listener, sluice_listener_next, OTHER(sluice_listener), 0);
RETURNS(address_of_other_listener, sluice_listener_address, OTHER(sluice_listener), NULL, 0);
RETURNS(other_incoming, sluice_incoming_query, OTHER(sluice_incoming),
        &(struct sluice_incoming_info){.size = sizeof(struct sluice_incoming_info)});
ENDS(close_other_listener, sluice_listener_close, OTHER(sluice_listener));
ENDS(refuse_other_incoming, sluice_incoming_refuse, OTHER(sluice_incoming), "no");
MAKES(no_size_of_connect, sluice_connect, "127.0.0.1:1", world->sides.pds[0], NULL,
      &(struct sluice_connect_attr){.secret_file = ""}, DEADLINE);
RETURNS(no_size_of_incoming_info, sluice_incoming_query, somebody(world),
        &(struct sluice_incoming_info){.size = 0});
MAKES(wild_size_of_listen, sluice_listen, HERE, &(struct sluice_listen_attr){.size = 0xcccccccc});
MAKES(backlog_out_of_range, sluice_listen, HERE,
      &(struct sluice_listen_attr){.size = sizeof(struct sluice_listen_attr), .backlog = 5000});
MAKES(too_much_private_data, sluice_connect, "127.0.0.1:1", world->sides.pds[0], NULL,
      &(struct sluice_connect_attr){
          .size = sizeof(struct sluice_connect_attr),
          .own = &(struct sluice_private_data){.bytes = SLUICE_PRIVATE_DATA_BYTES + 1}},
      DEADLINE);
MAKES(unknown_flag_of_listen, sluice_listen, HERE,
      &(struct sluice_listen_attr){.size = sizeof(struct sluice_listen_attr), .flags = 8});
MAKES(unknown_flag_of_connect, sluice_connect, "127.0.0.1:1", world->sides.pds[0], NULL,
      &(struct sluice_connect_attr){.size = sizeof(struct sluice_connect_attr), .flags = 8},
      DEADLINE);
MAKES(unknown_flag_of_accept, sluice_incoming_accept, somebody(world), world->sides.pds[0], NULL,
      &(struct sluice_accept_attr){.size = sizeof(struct sluice_accept_attr), .flags = 8},
      DEADLINE);
RETURNS(capacity_without_peers, sluice_listener_admitted, listener_at(HERE), 0,
        &(struct sluice_admitted){.size = sizeof(struct sluice_admitted), .peer_capacity = 2});
MAKES(negative_timeout_of_listener, sluice_listener_next, listener_at(HERE), -1);
MAKES(negative_deadline_of_connect, sluice_connect, "127.0.0.1:1", world->sides.pds[0], NULL,
      &no_secret, -1);
MAKES(negative_deadline_of_accept, sluice_incoming_accept, somebody(world), world->sides.pds[0],
      NULL, NULL, -1);

int too_many_to_connect(struct world *world)
{
    uint32_t peers[SLUICE_MAX_CONNECT_CHANNELS + 1];
    return CALL(sluice_connect_into)("127.0.0.1:1", world->loop, &no_secret, DEADLINE, peers,
                                     SLUICE_MAX_CONNECT_CHANNELS + 1);
}

/* The text contains the descriptor, so use the same number each time. */
static int listen_with(int fd)
{
    const struct sluice_listen_attr attr = {
        .size = sizeof(attr), .flags = SLUICE_LISTEN_FD, .fd = STDIN_FILENO, .secret_file = ""};
    require(dup2(fd, STDIN_FILENO) == STDIN_FILENO, "%s", strerror(errno));
    return result_of(CALL(sluice_listen)(NULL, &attr));
}

int socket_that_does_not_listen(struct world *world)
{
    (void)world;
    return listen_with(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

int socket_that_is_not_of_tcp(struct world *world)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr unnamed = {.sa_family = AF_UNIX};
    (void)world;
    require(bind(fd, &unnamed, sizeof(sa_family_t)) == 0 && listen(fd, 1) == 0, "%s",
            strerror(errno));
    return listen_with(fd);
}

/* Faults of other processes. */

static int listen_with_secret(const char *bytes, mode_t mode)
{
    char path[] = "/tmp/sluice-misuse-XXXXXX";
    const struct sluice_listen_attr attr = {.size = sizeof(attr), .secret_file = path};
    int fd = mkstemp(path);
    require(fd >= 0 && dprintf(fd, "%s", bytes) > 0 && fchmod(fd, mode) == 0, "%s",
            strerror(errno));
    int result = result_of(sluice_listen(HERE, &attr));
    close(fd);
    unlink(path);
    return result;
}

int secret_for_all(struct world *world)
{
    (void)world;
    return listen_with_secret("it is long enough, and all can read it", 0644);
}

int secret_too_short(struct world *world)
{
    (void)world;
    return listen_with_secret("short", 0600);
}

MAKES(no_port_to_listen, sluice_listen, "127.0.0.1", &open_door);
MAKES(no_port_to_connect, sluice_connect, "::1:5", world->sides.pds[0], NULL, &no_secret, DEADLINE);
MAKES(port_in_use, sluice_listen, address_of(listener_at(HERE)), &open_door);
MAKES(address_of_nobody, sluice_listen, "240.0.0.1:0", &open_door);
MAKES(unknown_name, sluice_connect, "nobody.invalid:1", world->sides.pds[0], NULL, &no_secret,
      DEADLINE);

/* The socket has a port of its own, so that no other program can have it. */
static int bind_raw(char address[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &length) == 0,
            "%s", strerror(errno));
    snprintf(address, 64, "127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

int nobody_listens(struct world *world)
{
    char address[64];
    int fd = bind_raw(address);
    int result =
        result_of(sluice_connect(address, world->sides.pds[0], NULL, &no_secret, DEADLINE));
    close(fd);
    return result;
}

static void *answer_otherwise(void *argument)
{
    static const char words[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    int fd = accept(*(int *)argument, NULL, NULL);
    (void)!write(fd, words, sizeof(words) - 1);
    return NULL; /* the client stays open until the process ends */
}

int other_kind_of_listener(struct world *world)
{
    static int fd;
    char address[64];
    pthread_t thread;
    fd = bind_raw(address);
    require(listen(fd, 1) == 0, "%s", strerror(errno));
    require(pthread_create(&thread, NULL, answer_otherwise, &fd) == 0, "no thread");
    return result_of(sluice_connect(address, world->sides.pds[0], NULL, &no_secret, DEADLINE));
}

/* The client leaves after waiting that long, perhaps before its connection has arrived. */
int who_has_left(struct world *world)
{
    struct sluice_listener *listener = listener_at(HERE);
    struct sluice_incoming *incoming = NULL;
    for (int64_t wait = SLUICE_MS(500); incoming == NULL && wait < DEADLINE; wait *= 2) {
        struct dialer dialer;
        incoming = dialed(&dialer, world, listener, wait);
        require(pthread_join(dialer.thread, NULL) == 0, "no end");
    }
    require(incoming, "%s", sluice_last_error());
    return result_of(sluice_incoming_accept(incoming, world->sides.pds[0], NULL, NULL, DEADLINE));
}

/* Accepts clients until it is woken. */
static void *give_up_accepting(void *argument)
{
    struct world *world = argument;
    bool gave_up = false;
    while (!gave_up) {
        struct sluice_incoming *incoming = sluice_listener_next(world->listener, DEADLINE);
        if (incoming == NULL) {
            continue;
        }
        require_ok(sluice_listener_wake(world->listener));
        gave_up =
            sluice_incoming_accept(incoming, world->sides.pds[1], NULL, NULL, DEADLINE) == NULL;
    }
    return NULL;
}

int who_gave_up(struct world *world)
{
    struct sluice_channel *channel;
    char address[64];
    pthread_t thread;
    world->listener = listener_at(HERE);
    snprintf(address, sizeof(address), "%s", address_of(world->listener));
    require(pthread_create(&thread, NULL, give_up_accepting, world) == 0, "no thread");
    do {
        channel = sluice_connect(address, world->sides.pds[0], NULL, &no_secret, DEADLINE);
    } while (channel != NULL);
    return result_of(channel);
}

int woken_listener(struct world *world)
{
    struct sluice_listener *listener = listener_at(HERE);
    (void)world;
    require_ok(sluice_listener_wake(listener));
    return result_of(sluice_listener_next(listener, DEADLINE));
}

int wrong_number_to_accept(struct world *world)
{
    uint32_t peers[2];
    return sluice_incoming_accept_into(somebody(world), world->loop, NULL, DEADLINE, peers, 2);
}

int no_room_for_address(struct world *world)
{
    char text[8];
    (void)world;
    return sluice_listener_address(listener_at(HERE), text, sizeof(text));
}

MAKES(nobody_comes, sluice_listener_next, listener_at(HERE), 0);
