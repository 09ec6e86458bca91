/* SPDX-License-Identifier: MIT */
/*
 * Letting in without waiting: any number at a time, each with its own deadline and result; what
 * ends one of them, or all; and what the descriptor of the listener tells.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../support/client.h"
#include "../support/halfway.h"
#include "../support/process.h"

#define MANY 12
#define NO_SECRET ""

struct door {
    struct pair pair; /* its sides, and two ends that are to work */
    struct sluice_listener *listener;
    struct sluice_multichannel *multichannel;
    struct halfway halfway;
};

static void open_door(struct door *door)
{
    memset(door, 0, sizeof(*door));
    sides_open(&door->pair.sides);
    door->listener = listen_with("127.0.0.1:0", NO_SECRET);
    door->multichannel = made(sluice_prepared_multichannel_handshake(
        sluice_multichannel_prepare(door->pair.sides.pds[0], 0, NULL), NULL, 0));
    door->halfway.port = (uint16_t)sluice_listener_address(door->listener, NULL, 0);
}

static void close_door(struct door *door)
{
    sluice_listener_close(door->listener);
    sluice_multichannel_close(door->multichannel);
    sides_close(&door->pair.sides);
}

static void start_client(const struct door *door, struct client *client)
{
    client_init(client, door->listener, door->pair.sides.pds[1], NO_SECRET);
    client_start(client);
}

/* Whether the listener has something to do, within that time. */
static bool is_readable(const struct door *door, int milliseconds)
{
    struct pollfd pollfd = {.fd = sluice_listener_fd(door->listener), .events = POLLIN};
    return poll(&pollfd, 1, milliseconds) > 0;
}

static struct sluice_incoming *next(const struct door *door)
{
    struct sluice_incoming *incoming = made(sluice_listener_next(door->listener, DEADLINE));
    return incoming;
}

static struct sluice_admitted result(const struct door *door)
{
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    require_ok(sluice_listener_admitted(door->listener, DEADLINE, &admitted));
    return admitted;
}

static void nothing_yet(const struct door *door)
{
    struct sluice_admitted admitted = {.size = sizeof(admitted), .user_data = 5};
    require_error(sluice_listener_admitted(door->listener, 0, &admitted), -ETIMEDOUT,
                  "no admission is finished");
    require(admitted.user_data == 5, "it is written");
}

struct stranger {
    pthread_t thread;
    const struct halfway *halfway;
    int fd;
};

static void *come_silently(void *argument)
{
    struct stranger *stranger = argument;
    stranger->fd = halfway_come(stranger->halfway, SILENT);
    return NULL;
}

static int admit(const struct door *door, struct sluice_incoming *incoming, bool into,
                 int64_t deadline, uint64_t user_data)
{
    return into
               ? sluice_incoming_admit_into(incoming, door->multichannel, NULL, deadline, user_data)
               : sluice_incoming_admit(incoming, door->pair.sides.pds[0], NULL, NULL, deadline,
                                       user_data);
}

/* A client that falls silent once it may be let in; which it is when this returns. */
static int admit_silent(const struct door *door, bool into, int64_t deadline, uint64_t user_data)
{
    struct stranger stranger = {.halfway = &door->halfway, .fd = -1};
    require(pthread_create(&stranger.thread, NULL, come_silently, &stranger) == 0, "no thread");
    struct sluice_incoming *incoming = next(door);
    require(pthread_join(stranger.thread, NULL) == 0, "no end");
    require_ok(admit(door, incoming, into, deadline, user_data));
    return stranger.fd;
}

static void check_works(struct door *door, struct sluice_channel *ours,
                        struct sluice_channel *theirs)
{
    door->pair.channels[0] = ours;
    door->pair.channels[1] = theirs;
    pair_works(&door->pair);
    sluice_channel_close(ours);
    sluice_channel_close(theirs);
}

/* A client gets in although others are silent. */
static void let_one_in(struct door *door, uint64_t user_data)
{
    struct client client;
    start_client(door, &client);
    require_ok(admit(door, next(door), false, DEADLINE, user_data));
    struct sluice_admitted admitted = result(door);
    require(admitted.error == 0 && admitted.user_data == user_data, "%d: %s", admitted.error,
            sluice_last_error());
    client_join(&client, 0);
    check_works(door, admitted.channel, client.channel);
}

/* Each way of what a server does in its loop: one call for all that come, one for all results. */
TEST(many_at_once_by_the_descriptor, .times = 2)
{
    struct door door;
    struct client clients[MANY];
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    struct sluice_private_data own = {.bytes = 7, .data = "welcome"};
    bool seen[MANY] = {false};
    int in = 0, came = 0;
    open_door(&door);
    for (int i = 0; i < MANY; i++) {
        start_client(&door, &clients[i]);
    }
    while (in < MANY) {
        struct sluice_incoming *incoming;
        require(is_readable(&door, PATIENCE * 20000), "%d came, and %d are in", came, in);
        while ((incoming = sluice_listener_next(door.listener, 0)) != NULL) {
            require_ok(_i == 0
                           ? sluice_incoming_admit(incoming, door.pair.sides.pds[0], NULL,
                                                   WITH_DATA(&own), DEADLINE, (uint64_t)came)
                           : sluice_incoming_admit_into(incoming, door.multichannel,
                                                        WITH_DATA(&own), DEADLINE, (uint64_t)came));
            came++;
        }
        while (sluice_listener_admitted(door.listener, 0, &admitted) == 0) {
            require(admitted.error == 0, "%s", sluice_last_error());
            require(admitted.user_data < MANY && !seen[admitted.user_data], "%llu",
                    (unsigned long long)admitted.user_data);
            seen[admitted.user_data] = true;
            require_words(admitted.address, "127.0.0.1:");
            require((admitted.channel != NULL) == (_i == 0), "a channel, or none");
            require(admitted.peer_count == (uint32_t)_i, "%u peers", admitted.peer_count);
            require(admitted.multichannel == (_i == 0 ? NULL : door.multichannel), "another one");
            require(_i == 0 || sluice_multichannel_peer_state(door.multichannel, admitted.peer) ==
                                   SLUICE_STATE_READY,
                    "peer %u", admitted.peer);
            sluice_channel_close(admitted.channel);
            in++;
        }
    }
    /* A timer, or the end of a connection, may be left to be read; then it sleeps. */
    for (int i = 0; is_readable(&door, 0); i++) {
        require(i < 1000, "there is nothing to do");
        nothing_yet(&door);
    }
    for (int i = 0; i < MANY; i++) {
        client_join(&clients[i], 0);
        require(clients[i].peer.bytes == 7 && memcmp(clients[i].peer.data, "welcome", 7) == 0,
                "%u bytes", clients[i].peer.bytes);
        sluice_channel_close(clients[i].channel);
    }
    close_door(&door);
}

/*
 * A call that looks for results takes in those that come as well: until they are asked for, the
 * descriptor tells of them, of the second one too.
 */
TEST(incoming_connections_keep_the_descriptor_readable)
{
    struct door door;
    struct client clients[2];
    open_door(&door);
    for (int i = 0; i < 2; i++) {
        start_client(&door, &clients[i]);
    }
    for (int i = 0; i < 1000; i++) {
        require(is_readable(&door, PATIENCE * 20000), "a connection that waits is forgotten");
        nothing_yet(&door);
    }
    for (int i = 0; i < 2; i++) {
        require(is_readable(&door, PATIENCE * 20000), "connection %d is forgotten", i);
        sluice_incoming_refuse(next(&door), "one at a time");
    }
    for (int i = 0; i < 2; i++) {
        client_join(&clients[i], -ECONNREFUSED);
    }
    close_door(&door);
}

/* Several channels of one client are let in, or refused, together. */
TEST(several_peers_of_one_client, .times = 2)
{
    struct door door;
    struct client client;
    struct sluice_multichannel *theirs;
    uint32_t most = short_run() ? 5 : SLUICE_MAX_CONNECT_CHANNELS;
    /* The room is for one less, then for all. */
    uint32_t peers[SLUICE_MAX_CONNECT_CHANNELS], room = most - 1 + (uint32_t)_i;
    open_door(&door);
    theirs = made(sluice_prepared_multichannel_handshake(
        sluice_multichannel_prepare(door.pair.sides.pds[1], 0, NULL), NULL, 0));
    client_init(&client, door.listener, door.pair.sides.pds[1], NO_SECRET);
    struct sluice_incoming *incoming = client_meet(&client, door.listener, theirs, most);
    require_ok(sluice_incoming_admit_into(incoming, door.multichannel, NULL, DEADLINE, 7));
    struct sluice_admitted admitted = {
        .size = sizeof(admitted), .peers = peers, .peer_capacity = room};
    memset(peers, 0xff, sizeof(peers));
    require_ok(sluice_listener_admitted(door.listener, DEADLINE, &admitted));
    require(admitted.error == 0 && admitted.peer_count == most, "%d, %u: %s", admitted.error,
            admitted.peer_count, sluice_last_error());
    require(admitted.peers == peers && admitted.peer_capacity == room, "they were changed");
    require_equal(admitted.peer, peers[0]);
    client_join(&client, 0);
    for (uint32_t i = 0; i < room; i++) {
        require_result(sluice_multichannel_peer_state(door.multichannel, peers[i]),
                       SLUICE_STATE_READY);
    }
    value_check(peers + room, sizeof(peers) - room * sizeof(*peers), 0xff);
    client_init(&client, door.listener, door.pair.sides.pds[1], NO_SECRET);
    incoming = client_meet(&client, door.listener, theirs, 2);
    require_error(sluice_incoming_admit(incoming, door.pair.sides.pds[0], NULL, NULL, DEADLINE, 8),
                  -EINVAL, "a single channel is let in here, and 2 are wanted");
    client_join(&client, -ECONNREFUSED);
    nothing_yet(&door);
    sluice_multichannel_close(theirs);
    close_door(&door);
}

/* The descriptor tells when the time of one is up; another one goes on. */
TEST(each_has_its_own_deadline, .times = 2)
{
    struct door door;
    open_door(&door);
    int patient = admit_silent(&door, _i == 1, SLUICE_FOREVER, 1);
    int64_t begun = clock_now();
    int hasty = admit_silent(&door, _i == 1, SLUICE_MS(100), 2);
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    for (int error = -ETIMEDOUT; error != 0;) {
        require(is_readable(&door, PATIENCE * 20000), "nothing happens");
        error = sluice_listener_admitted(door.listener, 0, &admitted);
        require(error == 0 || error == -ETIMEDOUT, "%s", sluice_last_error());
    }
    require(clock_now() - begun >= SLUICE_MS(100), "too early");
    require(admitted.error == -ETIMEDOUT && admitted.user_data == 2 && admitted.channel == NULL &&
                admitted.peer_count == 0,
            "%d of %llu", admitted.error, (unsigned long long)admitted.user_data);
    require_words(sluice_last_error(), "127.0.0.1:");
    require_words(sluice_last_error(), " did not go on within 100 ms");
    require(!halfway_is_held(hasty) && halfway_is_held(patient), "the wrong one has ended");
    let_one_in(&door, 3);
    nothing_yet(&door);
    close(hasty);
    close(patient);
    close_door(&door);
}

/* A deadline of 0 is over, and there is no result of what did not begin. */
TEST(what_does_not_begin_has_no_result)
{
    struct door door;
    struct client client;
    open_door(&door);
    start_client(&door, &client);
    require_error(admit(&door, next(&door), false, 0, 1), -ETIMEDOUT, "the deadline of the accept");
    client_join(&client, -ECONNREFUSED);
    start_client(&door, &client);
    require_error(admit(&door, next(&door), true, -1, 1), -EINVAL, "deadline -1 is negative");
    client_join(&client, -ECONNREFUSED);
    start_client(&door, &client);
    require_error(sluice_incoming_admit(next(&door), NULL, NULL, NULL, DEADLINE, 1), -EINVAL, "");
    client_join(&client, -ECONNREFUSED);
    start_client(&door, &client);
    require_error(sluice_incoming_admit_into(next(&door), NULL, NULL, DEADLINE, 1), -EINVAL,
                  "multichannel must not be NULL");
    client_join(&client, -ECONNREFUSED);
    struct {
        struct sluice_accept_attr attr;
        uint64_t newer;
    } longer = {.attr = {.size = sizeof(longer)}, .newer = 1};
    struct sluice_pd *pd = door.pair.sides.pds[0];
    start_client(&door, &client);
    require_error(
        sluice_incoming_admit_into(next(&door), door.multichannel, &longer.attr, DEADLINE, 1),
        -E2BIG, "sluice_accept_attr");
    client_join(&client, -ECONNREFUSED);
    longer.attr.size = sizeof(longer.attr) - 1;
    start_client(&door, &client);
    require_null(sluice_incoming_accept(next(&door), pd, NULL, &longer.attr, DEADLINE), EINVAL,
                 "sluice_accept_attr.size 15");
    client_join(&client, -ECONNREFUSED);
    require_error(sluice_incoming_admit(NULL, door.pair.sides.pds[0], NULL, NULL, DEADLINE, 1),
                  -EINVAL, "not an incoming connection");
    struct sluice_admitted admitted = {.size = 8};
    require_error(sluice_listener_admitted(door.listener, 0, &admitted), -EINVAL, "size");
    require_error(sluice_listener_admitted(door.listener, 0, NULL), -EINVAL, "NULL");
    admitted.size = sizeof(admitted);
    require_error(sluice_listener_admitted(door.listener, -1, &admitted), -EINVAL, "negative");
    admitted.peer_capacity = 1;
    require_error(sluice_listener_admitted(door.listener, 0, &admitted), -EINVAL,
                  "sluice_admitted.peers is NULL peer_capacity 1");
    admitted.peer_capacity = 0;
    require_error(sluice_listener_admitted(NULL, 0, &admitted), -EINVAL, "not a listener");
    require_error(sluice_listener_cancel(NULL, 1), -EINVAL, "not a listener");
    nothing_yet(&door);
    close_door(&door);
}

/* A client whose admission is cancelled reads that, however far it has come meanwhile. */
TEST(cancelled_client_reads_the_reason, .times = 20)
{
    struct door door;
    struct client client;
    open_door(&door);
    start_client(&door, &client);
    require_ok(admit(&door, next(&door), false, DEADLINE, 1));
    if (_i % 2 == 1) {
        require(is_readable(&door, PATIENCE * 20000), "it does not go on");
    }
    require_result(sluice_listener_cancel(door.listener, 1), 1);
    client_join(&client, -ECONNABORTED);
    require_words(client.text, "could not connect: the admission of 127.0.0.1:");
    require_words(client.text, " was cancelled");
    require(result(&door).error == -ECANCELED, "it goes on");
    close_door(&door);
}

/* The text is of the last call that failed, and not of what a later call ended. */
TEST(closing_keeps_the_text)
{
    struct door door;
    int fd;
    open_door(&door);
    fd = admit_silent(&door, false, SLUICE_FOREVER, 1);
    require_error(sluice_listener_cancel(NULL, 1), -EINVAL, "not a listener");
    close_door(&door);
    require_words(sluice_last_error(), "not a listener");
    require(!halfway_is_held(fd), "it goes on");
    close(fd);
}

/* Those with one number end, and no others. */
TEST(one_is_cancelled, .times = 2)
{
    struct door door;
    int fds[4];
    open_door(&door);
    for (int i = 0; i < 4; i++) {
        fds[i] = admit_silent(&door, _i == 1, SLUICE_FOREVER, (uint64_t)(i / 2));
    }
    require_result(sluice_listener_cancel(door.listener, 7), 0);
    nothing_yet(&door);
    require_result(sluice_listener_cancel(door.listener, 1), 2);
    require_result(sluice_listener_cancel(door.listener, 1), 0);
    for (int i = 0; i < 2; i++) {
        require(is_readable(&door, 0), "%d results were taken", i);
        struct sluice_admitted admitted = result(&door);
        require(admitted.error == -ECANCELED && admitted.user_data == 1, "%d", admitted.error);
        require_words(sluice_last_error(), "the admission of 127.0.0.1:");
    }
    nothing_yet(&door);
    require(halfway_is_held(fds[0]) && halfway_is_held(fds[1]), "others have ended");
    require(!halfway_is_held(fds[2]) && !halfway_is_held(fds[3]), "it goes on");
    let_one_in(&door, 9);
    close_door(&door);
    for (int i = 0; i < 4; i++) {
        require(!halfway_is_held(fds[i]), "it goes on after the end");
        close(fds[i]);
    }
}

/* A client that is let in, and connected when this returns: its result is there to be taken. */
static void admit_connected(struct door *door, struct client *client, bool into, uint64_t user_data)
{
    start_client(door, client);
    require_ok(admit(door, next(door), into, DEADLINE, user_data));
    for (int i = 0; !atomic_load(&client->ended) && i < 10000; i++) {
        let_pass(SLUICE_MS(1));
        require_null(sluice_listener_next(door->listener, 0), ETIMEDOUT, "");
    }
    client_join(client, 0);
}

/* The channel of a peer is closed: the peer is told so, whether it is connected by then or not. */
TEST(its_multichannel_is_closed)
{
    struct door door;
    struct client client;
    open_door(&door);
    int silent = admit_silent(&door, true, SLUICE_FOREVER, 1);
    admit_connected(&door, &client, true, 2);
    sluice_multichannel_close(door.multichannel);
    door.multichannel = NULL;
    for (int i = 0; i < 2; i++) {
        require(is_readable(&door, 0), "%d results were taken", i);
        struct sluice_admitted admitted = result(&door);
        require(admitted.error == -ECANCELED && admitted.multichannel == NULL, "%d",
                admitted.error);
        require_words(sluice_last_error(), "the multichannel was closed before ");
    }
    require(!halfway_is_held(silent), "it goes on");
    let_one_in(&door, 3);
    close(silent);
    sluice_channel_close(client.channel);
    close_door(&door);
}

/* The program removes a peer that it has not been told of. */
TEST(its_peer_is_removed)
{
    struct door door;
    open_door(&door);
    int silent = admit_silent(&door, true, SLUICE_MS(50), 1);
    require_ok(sluice_multichannel_peer_remove(door.multichannel, 0));
    struct sluice_endpoint endpoint;
    require_result(sluice_multichannel_peer_add(door.multichannel, &endpoint), 0);
    struct sluice_admitted admitted = result(&door);
    require(admitted.error == -ETIMEDOUT, "%d", admitted.error);
    require_result(sluice_multichannel_peer_state(door.multichannel, 0), SLUICE_STATE_PREPARED);
    close(silent);
    close_door(&door);
}

/* The same of a peer that is connected: its index may be another one's before it is told of. */
TEST(a_connected_peer_is_removed, .times = 2)
{
    struct door door;
    struct client client;
    struct sluice_endpoint endpoint;
    open_door(&door);
    admit_connected(&door, &client, true, 4);
    require_ok(sluice_multichannel_peer_remove(door.multichannel, 0));
    if (_i == 1) {
        require_result(sluice_multichannel_peer_add(door.multichannel, &endpoint), 0);
    }
    struct sluice_admitted admitted = result(&door);
    require(admitted.error == -ENOTCONN && admitted.user_data == 4 && admitted.peer_count == 0 &&
                admitted.multichannel == NULL,
            "%d, %u peers", admitted.error, admitted.peer_count);
    require_words(sluice_last_error(), "peer 0 was removed");
    require_result(sluice_multichannel_peer_state(door.multichannel, 0),
                   _i == 1 ? SLUICE_STATE_PREPARED : SLUICE_STATE_REMOVED);
    sluice_channel_close(client.channel);
    close_door(&door);
}

/* What is undone while the program has a scope leaves no peer behind. */
TEST(a_scope_keeps_no_peer)
{
    struct door door;
    struct client client;
    open_door(&door);
    int silent = admit_silent(&door, true, SLUICE_FOREVER, 1);
    admit_connected(&door, &client, true, 2);
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(door.multichannel, DEADLINE));
    sluice_listener_close(door.listener);
    door.listener = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        require_result(sluice_multichannel_peer_state(door.multichannel, i), SLUICE_STATE_REMOVED);
    }
    require_ok(sluice_scope_end(scope, NULL));
    require(!halfway_is_held(silent), "it goes on");
    close(silent);
    sluice_channel_close(client.channel);
    close_door(&door);
}

/* While the program has a scope, its multichannel is the scope's. */
TEST(a_scope_comes_first)
{
    struct door door;
    struct client client;
    open_door(&door);
    start_client(&door, &client);
    require_ok(admit(&door, next(&door), true, DEADLINE, 1));
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(door.multichannel, DEADLINE));
    for (int i = 0; i < 10; i++) {
        let_pass(SLUICE_MS(5));
        nothing_yet(&door);
    }
    require_result(sluice_listener_cancel(door.listener, 2), 0);
    require_ok(sluice_scope_end(scope, NULL));
    struct sluice_admitted admitted = result(&door);
    require(admitted.error == 0 && admitted.user_data == 1, "%s", sluice_last_error());
    client_join(&client, 0);
    sluice_channel_close(client.channel);
    close_door(&door);
}

/* Nothing is left of what was under way, nor of results that nobody took. */
TEST(the_listener_is_closed, .times = 2)
{
    struct door door;
    struct client client;
    int fds[3];
    open_door(&door);
    let_one_in(&door, 0); /* helpers and their descriptors are there from then on */
    int before = count_fds();
    for (int i = 0; i < 3; i++) {
        fds[i] = admit_silent(&door, _i == 1, SLUICE_FOREVER, 1);
    }
    admit_connected(&door, &client, _i == 1, 2);
    sluice_listener_close(door.listener);
    door.listener = NULL;
    for (int i = 0; i < 3; i++) {
        require(!halfway_is_held(fds[i]), "it goes on");
        close(fds[i]);
    }
    sluice_channel_close(client.channel);
    require(settle_fds(before) <= before, "%d left", count_fds() - before);
    close_door(&door);
}

/* Calls that wait for one go on with the others, and a wake ends each wait. */
TEST(a_call_that_waits_drives_all)
{
    struct door door;
    struct client first, second;
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    open_door(&door);
    int silent = admit_silent(&door, true, SLUICE_FOREVER, 1);
    start_client(&door, &first);
    require_ok(admit(&door, next(&door), false, DEADLINE, 2));
    start_client(&door, &second);
    struct sluice_channel *waited =
        made(sluice_accept(door.listener, door.pair.sides.pds[0], NULL, DEADLINE));
    client_join(&second, 0);
    admitted = result(&door);
    require(admitted.error == 0 && admitted.user_data == 2, "%s", sluice_last_error());
    client_join(&first, 0);
    check_works(&door, waited, second.channel);
    check_works(&door, admitted.channel, first.channel);
    require_ok(sluice_listener_wake(door.listener));
    require_error(sluice_listener_admitted(door.listener, DEADLINE, &admitted), -EINTR, "wake");
    nothing_yet(&door);
    close(silent);
    admitted = result(&door);
    require(admitted.error == -ECONNRESET && admitted.user_data == 1, "%d: %s", admitted.error,
            sluice_last_error());
    close_door(&door);
}

int main(void)
{
    return RUN_GROUPS("admitted", {"self", WIRE_SELF, 60}, {"tcp", WIRE_TCP, 60},
                      {"shm", WIRE_SHM, 60});
}
