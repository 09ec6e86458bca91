/* SPDX-License-Identifier: MIT */
/*
 * Further cases of connections over rdma_cm: peers of multichannels, a full queue, a listener that
 * comes later, a device that does not lead there, silence, a reset, IPv6.
 */
#include "config.h"

#ifdef HAVE_RDMACM

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/group.h"
#include "../support/iwarp.h"
#include "../support/process.h"
#include "rdmacm.h"

/*
 * iWARP never leaves rdma_cm; a queue pair that ends takes its TCP connection along; and an answer
 * connects both sides at once, so no client can be silent then.
 */
static bool is_unconfirmed(void)
{
    return has_no_rdmacm() || device_is_iwarp();
}

static bool is_no_guest(void)
{
    return has_no_rdmacm() || getenv("SOFTROCE_HOST") == NULL;
}

/* Runs a command in the guest, whose network is its own. */
static void run(const char *command)
{
    char line[300];
    snprintf(line, sizeof(line), "PATH=$PATH:/usr/sbin:/sbin; %s", command);
    require(system(line) == 0, "%s", command);
}

static struct sluice_multichannel *open_multichannel(struct sluice_pd *pd)
{
    struct sluice_multichannel *all = made(
        sluice_prepared_multichannel_handshake(sluice_multichannel_prepare(pd, 0, NULL), NULL, 0));
    return all;
}

/*
 * Opens a multichannel without peers on each side, and a client that asks for a peer of the other.
 */
static struct sluice_listener *open_both(struct sides *sides, struct sluice_multichannel *all[2],
                                         struct client *client)
{
    char address[64];
    sides_open(sides);
    all[0] = open_multichannel(sides->pds[0]);
    all[1] = open_multichannel(sides->pds[1]);
    struct sluice_listener *listener = listen_here(address);
    client_of(client, address, NULL);
    client->into = all[1];
    return listener;
}

static struct sluice_incoming *next(struct sluice_listener *listener)
{
    struct sluice_incoming *incoming = made(sluice_listener_next(listener, DEADLINE));
    return incoming;
}

/* A message from a peer of one to a peer of the other. */
static void pass(struct sluice_multichannel *from, uint32_t to_peer, struct sluice_multichannel *to,
                 uint32_t from_peer)
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, from_peer, NULL);
    struct sluice_completion completion;
    struct sluice_handle handle;
    require_result(sluice_multichannel_post(to, &receive, 1, DEADLINE, &handle), 1);
    require_ok(sluice_multichannel_send(from, to_peer, NULL, 0, DEADLINE));
    require_ok(sluice_multichannel_wait(to, &handle, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
}

/* Each peer is a connection of its own: a client that wants two connects twice. */
TEST(peers_of_multichannels, .times = 2, .unless = has_no_rdmacm)
{
    struct sides sides;
    struct client client;
    struct sluice_multichannel *all[2];
    struct sluice_private_data answer = {.bytes = 5, .data = "world"};
    uint32_t peers[2], count = 1 + (uint32_t)_i;
    struct sluice_listener *listener = open_both(&sides, all, &client);
    client.count = count;
    client.own = (struct sluice_private_data){.bytes = 5, .data = "hello"};
    client_start(&client);
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_incoming_info info = {.size = sizeof(info)};
        struct sluice_incoming *incoming = next(listener);
        require_ok(sluice_incoming_query(incoming, &info));
        require(strcmp((const char *)info.private_data.data, "hello") == 0, "other data");
        require_ok(sluice_incoming_accept_into(incoming, all[0], WITH_DATA(&answer), DEADLINE,
                                               &peers[i], 1));
        require(peers[i] == i, "index %u", peers[i]);
    }
    client_join(&client, 0);
    require(strcmp((const char *)client.peer.data, "world") == 0, "other data");
    for (uint32_t i = 0; i < count; i++) {
        require_ok(sluice_multichannel_peer_wait_connected(all[1], client.peers[i], 0));
        pass(all[0], peers[i], all[1], client.peers[i]);
        pass(all[1], client.peers[i], all[0], peers[i]);
    }
    /* If one peer is removed, the other side loses only that one. */
    require_ok(sluice_multichannel_peer_remove(all[1], client.peers[0]));
    struct span span = span_begin();
    while (sluice_multichannel_peer_state(all[0], peers[0]) == SLUICE_STATE_READY) {
        require(span_since(span).fair < DEADLINE, "it does not hear that its peer has gone");
        let_pass(SLUICE_MS(1));
    }
    require_words(peer_error(all[0], peers[0]).text, "disconnected");
    if (count == 2) {
        pass(all[0], peers[1], all[1], client.peers[1]);
    }
    sluice_listener_close(listener);
    sluice_multichannel_close(all[0]);
    sluice_multichannel_close(all[1]);
    sides_close(&sides);
}

/* After a refusal, or a mistake of the program, no peer is left on either side. */
TEST(peers_that_are_refused, .unless = has_no_rdmacm)
{
    struct sides sides;
    struct client client;
    struct sluice_multichannel *all[2];
    uint32_t peers[2];
    struct sluice_listener *listener = open_both(&sides, all, &client);
    client.count = 2;
    client_start(&client);
    require_ok(sluice_incoming_accept_into(next(listener), all[0], NULL, DEADLINE, peers, 1));
    require_error(sluice_incoming_accept_into(next(listener), all[0], NULL, DEADLINE, peers, 2),
                  -EINVAL, "are wanted");
    client_join(&client, -ECONNREFUSED);
    require_words(client.text, "refused us");
    require_result(sluice_multichannel_peer_state(all[1], 0), SLUICE_STATE_REMOVED);
    require_result(sluice_multichannel_peer_state(all[1], 1), SLUICE_STATE_REMOVED);
    require(sluice_multichannel_peers(all[0]) == 1, "a peer is left");
    sluice_listener_close(listener);
    sluice_multichannel_close(all[0]);
    sluice_multichannel_close(all[1]);
    sides_close(&sides);
}

struct crowd {
    pthread_t thread;
    const char *address;
    struct sluice_listener *listener;
    struct plain plains[2];
};

/* Two clients come and one is rejected as too many; then the waiting accept is woken. */
static void *come_too_many(void *argument)
{
    struct crowd *crowd = argument;
    struct pollfd pollfds[2];
    for (int i = 0; i < 2; i++) {
        plain_dial(&crowd->plains[i], crowd->address);
        pollfds[i] = (struct pollfd){.fd = crowd->plains[i].events->fd, .events = POLLIN};
    }
    require(poll(pollfds, 2, (int)(DEADLINE / 1000000)) == 1, "none is rejected");
    struct plain *rejected = &crowd->plains[pollfds[1].revents != 0];
    struct rdma_cm_event *event = plain_expect(rejected, RDMA_CM_EVENT_REJECTED);
    require_words(event->param.conn.private_data, "too many wait at this listener");
    rdma_ack_cm_event(event);
    require_ok(sluice_listener_wake(crowd->listener));
    return NULL;
}

/* One client may wait while a silent one is being let in; clients of sluice dial again. */
TEST(a_queue_that_is_full, .unless = is_unconfirmed)
{
    struct sluice_listen_attr attr = {.size = sizeof(attr), .backlog = 1, .secret_file = ""};
    enum { MANY = 3 };
    struct sides sides;
    struct client clients[MANY];
    struct plain silent;
    struct crowd crowd;
    char address[64];
    sides_open(&sides);
    crowd.listener = made(sluice_listen("rdmacm:" HOST ":0", &attr));
    snprintf(address, sizeof(address), "rdmacm:" HOST ":%d",
             sluice_listener_address(crowd.listener, NULL, 0));
    crowd.address = address;
    plain_dial(&silent, address);
    struct sluice_incoming *incoming = next(crowd.listener);
    require(pthread_create(&crowd.thread, NULL, come_too_many, &crowd) == 0, "no thread");
    require_null(sluice_incoming_accept(incoming, sides.pds[0], NULL, NULL, DEADLINE), EINTR,
                 "wake");
    require(pthread_join(crowd.thread, NULL) == 0, "no end");
    plain_close(&silent);
    for (int i = 0; i < MANY; i++) {
        client_of(&clients[i], address, sides.pds[1]);
        client_start(&clients[i]);
    }
    /* Clients that wait and leave are refused without effect on the others. */
    plain_close(&crowd.plains[0]);
    plain_close(&crowd.plains[1]);
    for (int i = 0; i < MANY; i++) {
        struct sluice_channel *channel =
            made(sluice_accept(crowd.listener, sides.pds[0], NULL, DEADLINE));
        sluice_channel_close(channel);
    }
    for (int i = 0; i < MANY; i++) {
        client_join(&clients[i], 0);
        sluice_channel_close(clients[i].channel);
    }
    sluice_listener_close(crowd.listener);
    sides_close(&sides);
}

/* A client that waits for a listener connects once it is there, or fails at its deadline. */
TEST(a_listener_that_is_to_come, .unless = has_no_rdmacm)
{
    struct pair pair;
    struct client client;
    char address[64];
    sides_open(&pair.sides);
    struct sluice_connect_attr wait = {
        .size = sizeof(wait), .flags = SLUICE_CONNECT_WAIT, .secret_file = ""};
    sluice_listener_close(listen_here(address));
    struct span begin = span_begin();
    require(sluice_connect(address, pair.sides.pds[1], NULL, &wait, SLUICE_MS(300)) == NULL,
            "nobody was there");
    /* The last attempt was refused, or came too late. */
    require(errno == ECONNREFUSED || errno == ETIMEDOUT, "%s", sluice_last_error());
    require(span_since(begin).real > SLUICE_MS(5), "it did not wait");
    client_of(&client, address, pair.sides.pds[1]);
    client.options.flags = SLUICE_CONNECT_WAIT;
    client_start(&client);
    let_pass(SLUICE_MS(20));
    struct sluice_listener *listener = listen_with(address, "");
    pair.channels[0] = made(sluice_accept(listener, pair.sides.pds[0], NULL, DEADLINE));
    client_join(&client, 0);
    pair.channels[1] = client.channel;
    pair_works(&pair);
    sluice_listener_close(listener);
    pair_close(&pair);
}

static void connect_pair(struct pair *pair, const struct sluice_channel_attr *attr)
{
    struct client client;
    char address[64];
    sides_open(&pair->sides);
    struct sluice_listener *listener = listen_here(address);
    client_of(&client, address, pair->sides.pds[1]);
    client_start(&client);
    pair->channels[0] = made(sluice_accept(listener, pair->sides.pds[0], attr, DEADLINE));
    client_join(&client, 0);
    pair->channels[1] = client.channel;
    sluice_listener_close(listener);
}

/* Both ends are reset without rdma_cm, and the old connection does not affect the new one. */
TEST(a_reset_leaves_rdma_cm, .unless = is_unconfirmed)
{
    struct pair pair;
    connect_pair(&pair, NULL);
    pair_works(&pair);
    int qps = 0;
    for (int i = 0; i < 3; i++) {
        pair_reset(&pair);
        pair_works(&pair);
        qps = i == 0 ? count_objects("qp") : qps;
        require(count_objects("qp") <= qps, "%d queue pairs, were %d", count_objects("qp"), qps);
    }
    require_result(sluice_channel_state(pair.channels[0]), SLUICE_STATE_READY);
    require_result(sluice_channel_state(pair.channels[1]), SLUICE_STATE_READY);
    pair_close(&pair);
}

/* Waits for the answer on the side that dials; taking the event confirms it. */
static void *plain_hear_answer(void *argument)
{
    rdma_ack_cm_event(plain_expect(argument, RDMA_CM_EVENT_ESTABLISHED));
    return NULL;
}

/*
 * Polls, so that keep-alive acts, until the channel is lost or the time has passed. Returns whether
 * it is lost.
 */
static bool is_lost_within(struct sluice_channel *channel, int64_t time, struct span *took)
{
    struct span begin = span_begin();
    struct sluice_completion completion;
    do {
        require_result(sluice_channel_poll(channel, &completion, 1), 0);
        if (sluice_channel_state(channel) != SLUICE_STATE_READY) {
            *took = span_since(begin);
            return true;
        }
        let_pass(SLUICE_MS(1));
        *took = span_since(begin);
    } while (took->fair < time);
    return false;
}

/* A silent peer that is alive is not lost; a peer whose queue pair vanished without notice is. */
TEST(silent_peer_is_probed, .unless = is_unconfirmed)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .keepalive = SLUICE_MS(200)};
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct sides sides;
    struct plain plain;
    struct span took;
    pthread_t thread;
    char address[64];
    sides_open(&sides);
    struct sluice_listener *listener = listen_here(address);
    plain_dial(&plain, address);
    struct sluice_incoming *incoming = next(listener);
    require(pthread_create(&thread, NULL, plain_hear_answer, &plain) == 0, "no thread");
    struct sluice_channel *channel =
        made(sluice_incoming_accept(incoming, sides.pds[0], &attr, NULL, DEADLINE));
    require(pthread_join(thread, NULL) == 0, "no end");
    /* A machine that stalls may delay the answer. */
    require(!is_lost_within(channel, SLUICE_S(1), &took) || took.real - took.fair > SLUICE_MS(100),
            "%s", channel_error(channel).text);
    require(ibv_modify_qp(plain.id->qp, &error, IBV_QP_STATE) == 0, "%s", strerror(errno));
    require(is_lost_within(channel, DEADLINE, &took), "its silence is not noticed");
    require(channel_error(channel).error_class == SLUICE_CLASS_PEER_LOST, "%s",
            channel_error(channel).text);
    require_words(channel_error(channel).text, "no sign of life within 200 ms");
    sluice_channel_close(channel);
    plain_close(&plain);
    sluice_listener_close(listener);
    sides_close(&sides);
}

/* The address belongs to another device, on the side that dials and on the side that accepts. */
static void name_another_device(struct rank *rank)
{
    struct sides sides;
    struct client client;
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    struct sluice_context *context = made(sluice_context_open("rxe9", NULL));
    char address[64], words[80];
    (void)rank;
    snprintf(words, sizeof(words), "port 1 of rxe9 port 1 of %s: open that device", test_device());
    sides_open(&sides);
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    struct sluice_listener *listener = listen_with("rdmacm:198.51.100.1:0", "");
    snprintf(address, sizeof(address), "rdmacm:198.51.100.1:%d",
             sluice_listener_address(listener, NULL, 0));
    require_null(sluice_connect(address, sides.pds[0], NULL, &options, DEADLINE), EADDRNOTAVAIL,
                 words);
    client_of(&client, address, pd);
    client_start(&client);
    require_null(sluice_incoming_accept(next(listener), sides.pds[0], NULL, NULL, DEADLINE),
                 EADDRNOTAVAIL, words);
    client_join(&client, -ECONNREFUSED);
    require_words(client.text, "refused us");
    sluice_listener_close(listener);
    sluice_pd_free(pd);
    sluice_context_close(context);
    sides_close(&sides);
}

/* In a process of its own: librdmacm keeps each device open as long as its process lives. */
TEST(another_device_is_named, .unless = is_no_guest)
{
    run("ip link add sluice9 type dummy && ip address add 198.51.100.1/24 dev sluice9 &&"
        " ip link set sluice9 up && rdma link add rxe9 type rxe netdev sluice9");
    group_run(1, name_another_device, NULL, 50);
    run("rdma link delete rxe9 && ip link delete sluice9");
}

/* At an address of IPv6, and at all addresses of both families. */
TEST(ipv6, .times = 2, .unless = is_no_guest)
{
    static const char *const hosts[] = {"[2001:db8::1]", HOST};
    struct sides sides;
    char address[64];
    run("ip address add 2001:db8::1/64 dev sluice0 nodad");
    sides_open(&sides);
    struct sluice_listener *listener =
        listen_with(_i == 0 ? "rdmacm:[2001:db8::1]:0" : "rdmacm::0", "");
    for (int i = 0; i <= _i; i++) {
        struct sluice_incoming_info info = {.size = sizeof(info)};
        struct pair pair = {.sides = sides};
        struct client client;
        snprintf(address, sizeof(address), "rdmacm:%s:%d", hosts[i],
                 sluice_listener_address(listener, NULL, 0));
        client_of(&client, address, sides.pds[1]);
        client_start(&client);
        struct sluice_incoming *incoming = next(listener);
        require_ok(sluice_incoming_query(incoming, &info));
        require_words(info.address, hosts[i]);
        pair.channels[0] =
            made(sluice_incoming_accept(incoming, sides.pds[0], NULL, NULL, DEADLINE));
        client_join(&client, 0);
        pair.channels[1] = client.channel;
        pair_works(&pair);
        sluice_channel_close(pair.channels[0]);
        sluice_channel_close(pair.channels[1]);
    }
    sluice_listener_close(listener);
    sides_close(&sides);
    run("ip address del 2001:db8::1/64 dev sluice0");
}

/* By a link-local address with its interface, over rdma_cm and over TCP. */
TEST(ipv6_of_a_link, .times = 2, .unless = is_no_guest)
{
    struct sluice_incoming_info info = {.size = sizeof(info)};
    struct pair pair;
    struct client client;
    char address[64];
    if (_i == 1 && device_is_iwarp()) {
        return; /* it has no endpoints to exchange over TCP */
    }
    run("ip address replace fe80::7/64 dev sluice0 nodad");
    sides_open(&pair.sides);
    struct sluice_listener *listener =
        listen_with(_i == 0 ? "rdmacm:[fe80::7%sluice0]:0" : "[fe80::7%sluice0]:0", "");
    snprintf(address, sizeof(address), "%s[fe80::7%%sluice0]:%d", _i == 0 ? "rdmacm:" : "",
             sluice_listener_address(listener, NULL, 0));
    client_of(&client, address, pair.sides.pds[1]);
    client_start(&client);
    struct sluice_incoming *incoming = next(listener);
    require_ok(sluice_incoming_query(incoming, &info));
    require_words(info.address, "[fe80::7%");
    pair.channels[0] =
        made(sluice_incoming_accept(incoming, pair.sides.pds[0], NULL, NULL, DEADLINE));
    client_join(&client, 0);
    pair.channels[1] = client.channel;
    pair_works(&pair);
    sluice_listener_close(listener);
    pair_close(&pair);
    run("ip address del fe80::7/64 dev sluice0");
}

/* Uses the real kernel: the client leaves before or behind the answer. */
TEST(client_that_has_left_meanwhile, .times = 2, .unless = has_no_rdmacm)
{
    struct sides sides;
    struct plain plain;
    char address[64];
    sides_open(&sides);
    struct sluice_listener *listener = listen_here(address);
    plain_dial(&plain, address);
    struct sluice_incoming *incoming = next(listener);
    plain_close(&plain);
    if (_i == 0) {
        let_pass(SLUICE_MS(100));
    }
    require_null(sluice_incoming_accept(incoming, sides.pds[0], NULL, NULL, DEADLINE), ECONNRESET,
                 HOST " left before all was connected");
    sluice_listener_close(listener);
    sides_close(&sides);
}

/* No client can reach the address any more, so the call fails at once. */
static void lose_listener(struct rank *rank)
{
    struct sluice_listener *listener = listen_with("rdmacm:198.51.100.1:0", "");
    (void)rank;
    /* The deletion ends only with this process, which keeps the device open. */
    run("rdma link delete rxe9 &");
    require_null(sluice_listener_next(listener, DEADLINE), EIO, "device was removed");
    sluice_listener_close(listener);
}

TEST(device_of_a_listener_that_goes, .unless = is_no_guest)
{
    run("ip link add sluice9 type dummy && ip address add 198.51.100.1/24 dev sluice9 &&"
        " ip link set sluice9 up && rdma link add rxe9 type rxe netdev sluice9");
    group_run(1, lose_listener, NULL, 50);
    run("ip link delete sluice9");
}

#endif
