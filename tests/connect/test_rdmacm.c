/* SPDX-License-Identifier: MIT */
/*
 * Connecting by address over rdma_cm, with a program of sluice and with one that knows
 * rdma_cm alone: both directions, private data both ways, rejections both ways, and the end.
 * Where there is none, the call says so.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/client.h"
#include "../support/iwarp.h"
#include "../support/process.h"
#ifdef HAVE_RDMACM
#include "rdmacm.h"
#endif

/* On soft there is no device that could, and built without rdma_cm nothing can. */
TEST(devices_that_cannot_are_named)
{
    struct sides sides;
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    if (!device_is_soft()) {
        return;
    }
    sides_open(&sides);
    require_null(sluice_connect("rdmacm:127.0.0.1:7471", sides.pds[0], NULL, &options, SLUICE_S(5)),
                 EOPNOTSUPP, "leave out \"rdmacm:\"");
    /* One colon: a port of a host of that name. */
    require_null(sluice_connect("rdmacm:99999", sides.pds[0], NULL, &options, SLUICE_S(5)), EINVAL,
                 "not host:port");
    sides_close(&sides);
}

#ifdef HAVE_RDMACM

bool has_no_rdmacm(void)
{
    return device_is_soft() || device_is_pretend();
}

struct sluice_listener *listen_here(char address[64])
{
    struct sluice_listener *listener = listen_with("rdmacm:" HOST ":0", "");
    snprintf(address, 64, "rdmacm:" HOST ":%d", sluice_listener_address(listener, NULL, 0));
    return listener;
}

void client_of(struct client *client, const char *address, struct sluice_pd *pd)
{
    client_init(client, NULL, pd, "");
    snprintf(client->address, sizeof(client->address), "%s", address);
}

/*
 * A program of sluice on both sides: private data, accept, work, and the end of it. One that
 * may have several queue pairs has one here, since rdma_cm connects no more.
 */
TEST(both_sides_of_sluice, .times = 2, .unless = has_no_rdmacm)
{
    const struct sluice_channel_attr several = {.size = sizeof(several), .queue_pairs = 3};
    struct pair pair;
    struct client client;
    struct sluice_incoming_info info = {.size = sizeof(info)};
    struct sluice_private_data answer = {.bytes = 5, .data = "world"};
    char address[64];
    sides_open(&pair.sides);
    struct sluice_listener *listener = listen_here(address);
    client_of(&client, address, pair.sides.pds[1]);
    client.own = (struct sluice_private_data){.bytes = 5, .data = "hello"};
    client.options.own = &client.own;
    client.options.peer = &client.peer;
    client_start(&client);
    struct sluice_incoming *incoming = made(sluice_listener_next(listener, DEADLINE));
    require_ok(sluice_incoming_query(incoming, &info));
    require_result((int)info.channels, 1);
    require_result((int)info.proven, 0);
    /* iWARP sends as many as there are, other devices a fixed number. */
    require_result((int)info.private_data.bytes, device_is_iwarp() ? 5 : 56);
    require(strcmp((const char *)info.private_data.data, "hello") == 0, "other private data");
    require(strncmp(info.address, HOST ":", strlen(HOST) + 1) == 0, "from %s", info.address);
    pair.channels[0] = sluice_incoming_accept(
        incoming, pair.sides.pds[0], _i == 1 ? &several : NULL, WITH_DATA(&answer), DEADLINE);
    require(pair.channels[0] != NULL, "%s", sluice_last_error());
    client_join(&client, 0);
    pair.channels[1] = client.channel;
    require(strcmp((const char *)client.peer.data, "world") == 0, "other private data");
    require_ok(sluice_channel_wait_connected(pair.channels[1], 0));
    pair_works(&pair);
    sluice_channel_close(pair.channels[1]);
    /* The other one hears that it has gone, without asking. */
    struct span span = span_begin();
    while (sluice_channel_state(pair.channels[0]) == SLUICE_STATE_READY) {
        require(span_since(span).fair < DEADLINE, "it does not hear that its peer has gone");
        let_pass(SLUICE_MS(1));
    }
    struct sluice_error error = channel_error(pair.channels[0]);
    require(strstr(error.text, "disconnected") != NULL, "%s", error.text);
    sluice_channel_close(pair.channels[0]);
    sluice_listener_close(listener);
    sides_close(&pair.sides);
}

/* The same without waiting: the descriptor tells who comes and who is connected. */
TEST(many_are_let_in_by_the_descriptor, .times = 2, .unless = has_no_rdmacm)
{
    enum { MANY = 4 };
    struct sides sides;
    struct sluice_channel *channels[MANY];
    struct client clients[MANY];
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    struct sluice_incoming *incoming;
    char address[64];
    int in = 0;
    sides_open(&sides);
    struct sluice_multichannel *many = made(sluice_prepared_multichannel_handshake(
        sluice_multichannel_prepare(sides.pds[0], 0, NULL), NULL, 0));
    struct sluice_listener *listener = listen_here(address);
    struct pollfd pollfd = {.fd = sluice_listener_fd(listener), .events = POLLIN};
    for (int i = 0; i < MANY; i++) {
        client_of(&clients[i], address, sides.pds[1]);
        client_start(&clients[i]);
    }
    while (in < MANY) {
        if (poll(&pollfd, 1, PATIENCE * 20000) != 1) {
            /* One of the clients may know why. */
            for (int i = 0; i < MANY; i++) {
                client_join(&clients[i], 0);
            }
            fail_at(__FILE__, __LINE__, "%d are in", in);
        }
        while ((incoming = sluice_listener_next(listener, 0)) != NULL) {
            require_ok(_i == 0
                           ? sluice_incoming_admit(incoming, sides.pds[0], NULL, NULL, DEADLINE, 0)
                           : sluice_incoming_admit_into(incoming, many, NULL, DEADLINE, 0));
        }
        while (sluice_listener_admitted(listener, 0, &admitted) == 0) {
            require(admitted.error == 0, "%s", sluice_last_error());
            /* A client whose peer closes before its call returns is told of that on iWARP. */
            channels[in++] = admitted.channel;
        }
    }
    for (int i = 0; i < MANY; i++) {
        client_join(&clients[i], 0);
        sluice_channel_close(clients[i].channel);
        sluice_channel_close(channels[i]);
    }
    sluice_listener_close(listener);
    sluice_multichannel_close(many);
    sides_close(&sides);
}

/* Several that wait, each let in by one call; and one that is refused hears why. */
TEST(many_come_and_one_is_refused, .unless = has_no_rdmacm)
{
    enum { MANY = 3 };
    struct sides sides;
    struct client clients[MANY + 1];
    struct sluice_channel *channels[MANY];
    char address[64];
    sides_open(&sides);
    struct sluice_listener *listener = listen_here(address);
    for (int i = 0; i < MANY; i++) {
        client_of(&clients[i], address, sides.pds[1]);
        client_start(&clients[i]);
    }
    for (int i = 0; i < MANY; i++) {
        channels[i] = made(sluice_accept(listener, sides.pds[0], NULL, DEADLINE));
    }
    for (int i = 0; i < MANY; i++) {
        client_join(&clients[i], 0);
    }
    client_of(&clients[MANY], address, sides.pds[1]);
    client_start(&clients[MANY]);
    struct sluice_incoming *incoming = made(sluice_listener_next(listener, DEADLINE));
    sluice_incoming_refuse(incoming, "full");
    client_join(&clients[MANY], -ECONNREFUSED);
    require(strstr(clients[MANY].text, "refused us: full") != NULL, "%s", clients[MANY].text);
    for (int i = 0; i < MANY; i++) {
        sluice_channel_close(channels[i]);
        sluice_channel_close(clients[i].channel);
    }
    sluice_listener_close(listener);
    sides_close(&sides);
}

/* What rdma_cm cannot have, and nobody who listens. */
TEST(mistakes_are_named, .unless = has_no_rdmacm)
{
    struct sides sides;
    struct sluice_private_data own = {.bytes = 57};
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = "", .own = &own};
    sides_open(&sides);
    require_null(sluice_connect("rdmacm:" HOST ":1", sides.pds[0], NULL, &options, DEADLINE),
                 EINVAL, "takes 56");
    options.own = NULL;
    require_null(sluice_connect("rdmacm:" HOST ":1", sides.pds[0], NULL, &options, DEADLINE),
                 ECONNREFUSED, "no process listens");
    sides_close(&sides);
}

struct rdma_cm_event *plain_expect(struct plain *plain, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    require(rdma_get_cm_event(plain->events, &event) == 0, "%s", strerror(errno));
    require(event->event == type, "%s in place of %s", rdma_event_str(event->event),
            rdma_event_str(type));
    return event;
}

void plain_open(struct plain *plain)
{
    memset(plain, 0, sizeof(*plain));
    plain->events = rdma_create_event_channel();
    require(plain->events != NULL, "%s", strerror(errno));
    require(rdma_create_id(plain->events, &plain->id, NULL, RDMA_PS_TCP) == 0, "%s",
            strerror(errno));
}

void plain_make_qp(struct plain *plain)
{
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
    struct ibv_sge sge;
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    require(rdma_create_qp(plain->id, NULL, &init) == 0, "%s", strerror(errno));
    plain->mr =
        ibv_reg_mr(plain->id->pd, plain->bytes, sizeof(plain->bytes), IBV_ACCESS_LOCAL_WRITE);
    require(plain->mr != NULL, "%s", strerror(errno));
    sge = (struct ibv_sge){(uintptr_t)plain->bytes, sizeof(plain->bytes), plain->mr->lkey};
    require(ibv_post_recv(plain->id->qp, &wr, &bad) == 0, "no receive");
}

/* Waits for the receive, and sends back what came. */
static void *plain_echo(void *argument)
{
    struct plain *plain = argument;
    struct ibv_wc wc;
    struct span span = span_begin();
    while (ibv_poll_cq(plain->id->recv_cq, 1, &wc) == 0) {
        require(span_since(span).fair < DEADLINE, "nothing comes");
    }
    require(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
    struct ibv_sge sge = {(uintptr_t)plain->bytes, wc.byte_len, plain->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    require(ibv_post_send(plain->id->qp, &wr, &bad) == 0, "no send");
    while (ibv_poll_cq(plain->id->send_cq, 1, &wc) == 0) {
        require(span_since(span).fair < DEADLINE, "nothing leaves");
    }
    require(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
    return NULL;
}

/* Of who dials: its answer is confirmed by the look for it. */
static void *plain_serve(void *argument)
{
    struct rdma_cm_event *event = plain_expect(argument, RDMA_CM_EVENT_ESTABLISHED);
    require(strcmp(event->param.conn.private_data, "welcome") == 0, "another answer");
    rdma_ack_cm_event(event);
    return plain_echo(argument);
}

void plain_close(struct plain *plain)
{
    if (plain->mr != NULL) {
        rdma_destroy_qp(plain->id);
        ibv_dereg_mr(plain->mr);
    }
    rdma_destroy_id(plain->id);
    rdma_destroy_event_channel(plain->events);
}

/* Sends some bytes and takes them back. */
static void talk(struct sluice_channel *channel, struct sluice_pd *pd)
{
    static char bytes[2][64];
    struct sluice_mr *mr =
        made(sluice_mr_register(pd, bytes, sizeof(bytes), SLUICE_ACCESS_LOCAL_WRITE));
    struct sluice_completion completion;
    struct sluice_sge sges[2];
    require_ok(sluice_mr_sge(mr, 0, 6, &sges[0]));
    require_ok(sluice_mr_sge(mr, 64, 64, &sges[1]));
    memcpy(bytes[0], "echo!", 6);
    require_ok(sluice_channel_send(channel, &sges[0], 1, DEADLINE));
    require_ok(sluice_channel_receive(channel, &sges[1], 1, DEADLINE, &completion));
    require(completion.bytes == 6 && strcmp(bytes[1], "echo!") == 0, "other bytes");
    sluice_mr_deregister(mr);
}

void plain_dial(struct plain *plain, const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1)),
                             .sin_addr.s_addr = htonl(0xc0000201)};
    struct rdma_conn_param param = {.private_data = "plain", .private_data_len = 6};
    plain_open(plain);
    require(rdma_resolve_addr(plain->id, NULL, (struct sockaddr *)&to, 5000) == 0, "%s",
            strerror(errno));
    rdma_ack_cm_event(plain_expect(plain, RDMA_CM_EVENT_ADDR_RESOLVED));
    require(rdma_resolve_route(plain->id, 5000) == 0, "%s", strerror(errno));
    rdma_ack_cm_event(plain_expect(plain, RDMA_CM_EVENT_ROUTE_RESOLVED));
    plain_make_qp(plain);
    require(rdma_connect(plain->id, &param) == 0, "%s", strerror(errno));
}

/* A plain program dials: it is let in, or hears why not. It gives no reads, and needs none. */
TEST(a_plain_program_dials, .times = 2, .unless = has_no_rdmacm)
{
    struct sides sides;
    struct plain plain;
    struct sluice_private_data answer = {.bytes = 7, .data = "welcome"};
    char address[64];
    sides_open(&sides);
    struct sluice_listener *listener = listen_here(address);
    plain_dial(&plain, address);
    struct sluice_incoming *incoming = made(sluice_listener_next(listener, DEADLINE));
    if (_i == 1) {
        sluice_incoming_refuse(incoming, "not today");
        struct rdma_cm_event *event = plain_expect(&plain, RDMA_CM_EVENT_REJECTED);
        require(strcmp(event->param.conn.private_data, "not today") == 0, "another reason");
        rdma_ack_cm_event(event);
    } else {
        pthread_t thread;
        require(pthread_create(&thread, NULL, plain_serve, &plain) == 0, "no thread");
        struct sluice_channel *channel = made(
            sluice_incoming_accept(incoming, sides.pds[0], NULL, WITH_DATA(&answer), DEADLINE));
        talk(channel, sides.pds[0]);
        pthread_join(thread, NULL);
        sluice_channel_close(channel);
        rdma_ack_cm_event(plain_expect(&plain, RDMA_CM_EVENT_DISCONNECTED));
    }
    plain_close(&plain);
    sluice_listener_close(listener);
    sides_close(&sides);
}

/* A plain program listens: it lets us in and disconnects, or rejects us. */
TEST(a_plain_program_listens, .times = 2, .unless = has_no_rdmacm)
{
    struct sides sides;
    struct plain plain;
    struct client client;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)};
    struct rdma_conn_param param = {.private_data = "server",
                                    .private_data_len = 7,
                                    .responder_resources = 1,
                                    .initiator_depth = 1};
    sides_open(&sides);
    plain_open(&plain);
    struct rdma_cm_id *listening = plain.id;
    require(rdma_bind_addr(listening, (struct sockaddr *)&at) == 0, "%s", strerror(errno));
    require(rdma_listen(listening, 4) == 0, "%s", strerror(errno));
    client_init(&client, NULL, sides.pds[0], "");
    snprintf(client.address, sizeof(client.address), "rdmacm:" HOST ":%d",
             ntohs(rdma_get_src_port(listening)));
    client.own = (struct sluice_private_data){.bytes = 7, .data = "client"};
    client.options.own = &client.own;
    client.options.peer = &client.peer;
    client_start(&client);
    struct rdma_cm_event *event = plain_expect(&plain, RDMA_CM_EVENT_CONNECT_REQUEST);
    require(strcmp(event->param.conn.private_data, "client") == 0, "other private data");
    plain.id = event->id;
    rdma_ack_cm_event(event);
    if (_i == 1) {
        require(rdma_reject(plain.id, "go away", 8) == 0, "%s", strerror(errno));
        client_join(&client, -ECONNREFUSED);
        require(strstr(client.text, "refused us: go away") != NULL, "%s", client.text);
    } else {
        plain_make_qp(&plain);
        require(rdma_accept(plain.id, &param) == 0, "%s", strerror(errno));
        rdma_ack_cm_event(plain_expect(&plain, RDMA_CM_EVENT_ESTABLISHED));
        client_join(&client, 0);
        require(strcmp((const char *)client.peer.data, "server") == 0, "another answer");
        pthread_t thread;
        require(pthread_create(&thread, NULL, plain_echo, &plain) == 0, "no thread");
        talk(client.channel, sides.pds[0]);
        pthread_join(thread, NULL);
        require(rdma_disconnect(plain.id) == 0, "%s", strerror(errno));
        struct span span = span_begin();
        while (sluice_channel_state(client.channel) == SLUICE_STATE_READY) {
            require(span_since(span).fair < DEADLINE, "it does not hear that its peer has gone");
            let_pass(SLUICE_MS(1));
        }
        sluice_channel_close(client.channel);
    }
    rdma_destroy_id(listening);
    plain_close(&plain);
    sides_close(&sides);
}

#endif

int main(void)
{
    return run_tests("rdmacm", 60);
}
