/* SPDX-License-Identifier: MIT */
/*
 * Connections over a pretend rdma_cm: a side that leaves at each moment, calls that fail, devices
 * that are removed, and malformed data of a peer.
 */
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "../support/client.h"
#include "check.h"
#include "connect/cm.h"
#include "fake_rdmacm.h"

#define ANYWHERE "rdmacm:192.0.2.1:0"

/* The n-th descriptor from now cannot be watched. */
static uint32_t unwatched_in;

int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    if (operation == EPOLL_CTL_ADD && unwatched_in > 0 && --unwatched_in == 0) {
        errno = ENOSPC;
        return -1;
    }
    return __real_epoll_ctl(epoll, operation, fd, event);
}

/* A client that speaks only rdma_cm, on its way to a listener. */
struct dialer {
    struct rdma_event_channel *events;
    struct slu_cm *cm;
};

static void dialer_step(struct dialer *dialer, int error, enum slu_cm_state state)
{
    struct slu_cm_reader reader = {.came = NULL};
    require_ok(error);
    slu_cm_read(dialer->events, &reader);
    require(dialer->cm->state == state, "state %d: %s", (int)dialer->cm->state, dialer->cm->why);
}

static void dialer_ask(struct dialer *dialer, const struct sluice_listener *listener)
{
    const struct slu_address to = {.family = 4,
                                   .port = (uint16_t)sluice_listener_address(listener, NULL, 0),
                                   .ip = {192, 0, 2, 1}};
    struct rdma_conn_param param = {.qp_num = 5, .private_data = "hello", .private_data_len = 6};
    dialer->events = made(slu_cm_events_open());
    dialer->cm = made(slu_cm_make(dialer->events));
    dialer_step(dialer, slu_cm_find(dialer->cm, &to, INT64_MAX), SLU_CM_FOUND);
    dialer_step(dialer, slu_cm_route(dialer->cm, INT64_MAX), SLU_CM_ROUTED);
    dialer_step(dialer, slu_cm_ask(dialer->cm, &param, INT64_MAX), SLU_CM_ROUTED);
}

static void dialer_leave(struct dialer *dialer)
{
    slu_cm_end(dialer->cm);
    slu_cm_events_close(dialer->events);
}

/* Requires that the dialer was rejected with these words, and ends it. */
static void dialer_is_rejected(struct dialer *dialer, const char *words)
{
    dialer_step(dialer, 0, SLU_CM_ENDED);
    require((int)dialer->cm->reason == SLU_CM_REASON_REJECTED, "%s", dialer->cm->why);
    require_words((const char *)dialer->cm->said, words);
    dialer_leave(dialer);
}

static struct sluice_listener *begin(struct sides *sides, const char *address)
{
    fake_rdmacm_reset();
    sides_open(sides);
    return listen_with(address, "");
}

static void end(struct sides *sides, struct sluice_listener *listener)
{
    sluice_listener_close(listener);
    sides_close(sides);
    fake_rdmacm_end();
}

static struct sluice_incoming *next(struct sluice_listener *listener)
{
    return made(sluice_listener_next(listener, DEADLINE));
}

static void client_of(struct client *client, const struct sluice_listener *listener,
                      struct sluice_pd *pd)
{
    client_init(client, NULL, pd, "");
    snprintf(client->address, sizeof(client->address), "rdmacm:192.0.2.1:%d",
             sluice_listener_address(listener, NULL, 0));
}

/* Lets a client in and requires that both channels work. */
static void meet(struct sides *sides, struct sluice_listener *listener)
{
    struct pair pair = {.sides = *sides};
    struct client client;
    client_of(&client, listener, sides->pds[1]);
    client_start(&client);
    pair.channels[0] = made(sluice_accept(listener, sides->pds[0], NULL, DEADLINE));
    client_join(&client, 0);
    pair.channels[1] = client.channel;
    pair_works(&pair);
    sluice_channel_close(pair.channels[0]);
    sluice_channel_close(pair.channels[1]);
}

/* Many at a time, each in a thread of its own. */
TEST(many_at_a_time)
{
    enum { MANY = 6 };
    struct sides sides;
    struct client clients[MANY];
    struct sluice_channel *channels[MANY];
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    for (int i = 0; i < MANY; i++) {
        client_of(&clients[i], listener, sides.pds[1]);
        client_start(&clients[i]);
    }
    for (int i = 0; i < MANY; i++) {
        channels[i] = made(sluice_accept(listener, sides.pds[0], NULL, DEADLINE));
    }
    for (int i = 0; i < MANY; i++) {
        client_join(&clients[i], 0);
        sluice_channel_close(i % 2 == 0 ? channels[i] : clients[i].channel);
        sluice_channel_close(i % 2 == 0 ? clients[i].channel : channels[i]);
    }
    end(&sides, listener);
}

TEST(both_sides_of_sluice)
{
    struct sides sides;
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    meet(&sides, listener);
    end(&sides, listener);
}

/* The client leaves before the call, as the answer is sent, and behind it. */
TEST(client_that_has_left_meanwhile, .times = 3)
{
    struct sides sides;
    struct dialer dialer;
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    dialer_ask(&dialer, listener);
    struct sluice_incoming *incoming = next(listener);
    fake_rdmacm.leaving = (enum fake_leaving)_i;
    if (_i == 0) {
        dialer_leave(&dialer);
    }
    require_null(sluice_incoming_accept(incoming, sides.pds[0], NULL, NULL, DEADLINE), ECONNRESET,
                 "192.0.2.1 left before all was connected");
    if (_i != 0) {
        dialer_leave(&dialer);
    }
    fake_rdmacm.leaving = FAKE_STAYS;
    meet(&sides, listener);
    end(&sides, listener);
}

/*
 * If rdma_cm cannot answer a client that is still there, the error does not blame that client, and
 * the client gets the reason.
 */
TEST(answer_that_is_wrong)
{
    struct sides sides;
    struct dialer dialer;
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    dialer_ask(&dialer, listener);
    fake_rdmacm.leaving = FAKE_STAYS_UNANSWERED;
    require_null(sluice_incoming_accept(next(listener), sides.pds[0], NULL, NULL, DEADLINE), EIO,
                 "rdma_cm cannot answer it: Invalid argument");
    dialer_is_rejected(&dialer, "rdma_cm cannot answer it");
    fake_rdmacm.leaving = FAKE_STAYS;
    meet(&sides, listener);
    end(&sides, listener);
}

/*
 * Incoming connections that the program took outlive the listener. A client that never confirms its
 * connection fails at the deadline.
 */
TEST(listener_that_is_closed_meanwhile)
{
    struct pair pair;
    struct client client;
    struct dialer dialer;
    struct sluice_listener *listener = begin(&pair.sides, ANYWHERE);
    client_of(&client, listener, pair.sides.pds[1]);
    client_start(&client);
    struct sluice_incoming *incoming = next(listener);
    dialer_ask(&dialer, listener);
    struct sluice_incoming *silent = next(listener);
    sluice_listener_close(listener);
    pair.channels[0] =
        made(sluice_incoming_accept(incoming, pair.sides.pds[0], NULL, NULL, DEADLINE));
    client_join(&client, 0);
    pair.channels[1] = client.channel;
    pair_works(&pair);
    sluice_channel_close(pair.channels[0]);
    sluice_channel_close(pair.channels[1]);
    require_null(sluice_incoming_accept(silent, pair.sides.pds[0], NULL, NULL, SLUICE_MS(50)),
                 ETIMEDOUT, "192.0.2.1 did not go on within 50 ms");
    dialer_leave(&dialer);
    end(&pair.sides, NULL);
}

/* Clients that never confirm do not delay others; each of them ends in its own way. */
TEST(silent_clients_delay_no_other)
{
    enum { SILENT = 20 };
    struct sides sides;
    struct client client;
    struct dialer dialers[SILENT];
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    for (int i = 0; i < SILENT; i++) {
        dialer_ask(&dialers[i], listener);
        require_ok(sluice_incoming_admit(next(listener), sides.pds[0], NULL, NULL,
                                         i == 0 ? SLUICE_MS(50) : SLUICE_FOREVER, (uint64_t)i));
    }
    meet(&sides, listener);
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    require_ok(sluice_listener_admitted(listener, DEADLINE, &admitted));
    require(admitted.error == -ETIMEDOUT && admitted.user_data == 0, "%d", admitted.error);
    require_words(sluice_last_error(), "192.0.2.1 did not go on within 50 ms");
    require_result(sluice_listener_cancel(listener, 1), 1);
    require_ok(sluice_listener_admitted(listener, DEADLINE, &admitted));
    require(admitted.error == -ECANCELED && admitted.user_data == 1, "%d", admitted.error);
    client_of(&client, listener, sides.pds[1]);
    client_start(&client);
    require_ok(sluice_incoming_admit(next(listener), sides.pds[0], NULL, NULL, DEADLINE, 77));
    require_ok(sluice_listener_admitted(listener, DEADLINE, &admitted));
    require(admitted.error == 0 && admitted.user_data == 77, "%d", admitted.error);
    client_join(&client, 0);
    sluice_channel_close(admitted.channel);
    sluice_channel_close(client.channel);
    for (int i = 0; i < SILENT; i++) {
        dialer_leave(&dialers[i]);
    }
    /* A dialer that leaves ends its admission as well. */
    require_ok(sluice_listener_admitted(listener, DEADLINE, &admitted));
    require(admitted.error == -ECONNRESET, "%d", admitted.error);
    end(&sides, listener);
}

/* The program removes a peer that was answered; the second time another one has its index then. */
TEST(peer_that_is_removed_while_it_is_let_in, .times = 2)
{
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    struct sluice_endpoint endpoint;
    struct sides sides;
    struct dialer dialer;
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    struct sluice_multichannel *many = made(sluice_prepared_multichannel_handshake(
        sluice_multichannel_prepare(sides.pds[0], 0, NULL), NULL, 0));
    dialer_ask(&dialer, listener);
    require_ok(sluice_incoming_admit_into(next(listener), many, NULL, DEADLINE, 0));
    require_ok(sluice_multichannel_peer_remove(many, 0));
    if (_i == 1) {
        require_result(sluice_multichannel_peer_add(many, &endpoint), 0);
    }
    dialer_step(&dialer, 0, SLU_CM_ANSWERED);
    require_ok(slu_cm_confirm(dialer.cm));
    require_ok(sluice_listener_admitted(listener, DEADLINE, &admitted));
    require(admitted.error == -ENOTCONN, "%d", admitted.error);
    require_words(sluice_last_error(), "peer 0 was removed before it was connected");
    if (_i == 1) {
        require_result(sluice_multichannel_peer_state(many, 0), SLUICE_STATE_PREPARED);
    }
    dialer_leave(&dialer);
    sluice_multichannel_close(many);
    end(&sides, listener);
}

/*
 * A call that looks for results reads the events of clients that come as well. The descriptor stays
 * readable until they are taken, though rdma_cm has no event of them any more.
 */
TEST(incoming_connections_keep_the_descriptor_readable)
{
    enum { MANY = 2 };
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    struct sides sides;
    struct dialer dialers[MANY];
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    struct pollfd pollfd = {.fd = sluice_listener_fd(listener), .events = POLLIN};
    for (int i = 0; i < MANY; i++) {
        dialer_ask(&dialers[i], listener);
    }
    require_result(sluice_listener_admitted(listener, 0, &admitted), -ETIMEDOUT);
    for (int i = 0; i < MANY; i++) {
        require(poll(&pollfd, 1, 0) == 1, "connection %d is forgotten", i);
        sluice_incoming_refuse(sluice_listener_next(listener, 0), "one at a time");
    }
    require(poll(&pollfd, 1, 0) == 0, "nobody is there any more");
    for (int i = 0; i < MANY; i++) {
        dialer_is_rejected(&dialers[i], "one at a time");
    }
    end(&sides, listener);
}

/* A client that left the queue is not returned, and its place is free for others. */
TEST(client_that_leaves_the_queue)
{
    const struct sluice_listen_attr attr = {.size = sizeof(attr), .backlog = 1, .secret_file = ""};
    struct sides sides;
    struct dialer dialers[2];
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    dialer_ask(&dialers[0], listener);
    dialer_leave(&dialers[0]);
    require_null(sluice_listener_next(listener, 0), ETIMEDOUT, "nobody wants to connect yet");
    sluice_listener_close(listener);
    listener = made(sluice_listen(ANYWHERE, &attr));
    dialer_ask(&dialers[0], listener);
    require(poll(&(struct pollfd){.fd = sluice_listener_fd(listener), .events = POLLIN}, 1, 0) == 1,
            "it is not readable");
    require_null(sluice_accept(listener, NULL, NULL, 0), EINVAL, "");
    sluice_incoming_refuse(next(listener), "not this one");
    dialer_is_rejected(&dialers[0], "not this one");
    dialer_ask(&dialers[0], listener);
    dialer_ask(&dialers[1], listener);
    dialer_leave(&dialers[0]);
    sluice_incoming_refuse(next(listener), "nor this");
    dialer_is_rejected(&dialers[1], "nor this");
    end(&sides, listener);
}

/* If a descriptor of a listener cannot be watched, the call fails and leaves nothing behind. */
TEST(listener_that_cannot_be_watched, .times = 2)
{
    const struct sluice_listen_attr attr = {.size = sizeof(attr), .secret_file = ""};
    uint32_t failures = 0;
    fake_rdmacm_reset();
    for (uint32_t n = 1;; n++) {
        require_null(sluice_listen(NULL, &attr), EINVAL, "address must not be NULL");
        unwatched_in = n;
        struct sluice_listener *listener = sluice_listen(_i == 0 ? ANYWHERE : "127.0.0.1:0", &attr);
        if (listener != NULL) {
            unwatched_in = 0;
            sluice_listener_close(listener);
            break;
        }
        require_result(errno, ENOSPC);
        require_words(sluice_last_error(), "a listener cannot be watched");
        failures++;
    }
    require(failures == 3, "%u failures", failures);
    fake_rdmacm_end();
}

/* If our program lacks something, the accept fails at once and does not wait for other clients. */
TEST(program_that_cannot_accept, .times = 3)
{
    static const int errors[] = {EMFILE, EINVAL, EOPNOTSUPP};
    static const char *const words[] = {"no descriptor for its events", "SLUICE_CHANNEL_PSN",
                                        "transport soft"};
    struct sluice_channel_attr attr = {.size = sizeof(attr)};
    struct sides sides;
    struct dialer dialer;
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    struct sluice_context *soft = sluice_context_open("soft", NULL);
    struct sluice_pd *pd = made(sluice_pd_alloc(soft));
    dialer_ask(&dialer, listener);
    fake_rdmacm.fail_open_in = _i == 0;
    if (_i == 1) {
        attr.flags = SLUICE_CHANNEL_PSN;
        attr.psn = 1;
    }
    require_null(sluice_accept(listener, _i == 2 ? pd : sides.pds[0], &attr, SLUICE_FOREVER),
                 errors[_i], words[_i]);
    dialer_is_rejected(&dialer, words[_i]);
    meet(&sides, listener);
    sluice_pd_free(pd);
    sluice_context_close(soft);
    end(&sides, listener);
}

static void count_warning(uint32_t level, const char *line, void *count)
{
    require(level == SLUICE_LOG_WARN && strstr(line, "device of the listener was removed"), "%s",
            line);
    ++*(int *)count;
}

/*
 * A client that waited at that time can still be refused; no call waits for further ones. The log
 * warns once: an agent and a service of buffers have no such call.
 */
TEST(device_of_a_listener_that_goes)
{
    struct sides sides;
    struct dialer dialer;
    int warnings = 0;
    require_ok(sluice_log_set(SLUICE_LOG_WARN, count_warning, &warnings));
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    dialer_ask(&dialer, listener);
    fake_rdmacm_lose_device();
    sluice_incoming_refuse(next(listener), "it is over");
    dialer_is_rejected(&dialer, "it is over");
    require_null(sluice_listener_next(listener, SLUICE_FOREVER), EIO, "device was removed");
    require_null(sluice_accept(listener, sides.pds[0], NULL, SLUICE_FOREVER), EIO,
                 "device was removed");
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
    require_result(warnings, 1);
    end(&sides, listener);
}

struct meeting {
    struct client client;
    pthread_t thread;
    struct sluice_listener *listener;
};

/* The accept would otherwise wait for a client that may never have come. */
static void *dial_and_wake(void *argument)
{
    struct meeting *meeting = argument;
    client_start(&meeting->client);
    require(pthread_join(meeting->client.thread, NULL) == 0, "no end");
    if (meeting->client.channel == NULL) {
        require_ok(sluice_listener_wake(meeting->listener));
    }
    return NULL;
}

/* Each step fails in turn: both sides get an error or a channel, and nothing is left behind. */
TEST(steps_that_fail)
{
    const int error = EIO;
    uint32_t n = 0;
    bool failed = true;
    for (; failed; n++) {
        struct sides sides;
        struct meeting meeting;
        struct sluice_channel *channel = NULL;
        meeting.listener = begin(&sides, ANYWHERE);
        client_of(&meeting.client, meeting.listener, sides.pds[1]);
        fake_rdmacm.fail_error = error;
        fake_rdmacm.fail_in = n + 1;
        require(pthread_create(&meeting.thread, NULL, dial_and_wake, &meeting) == 0, "no thread");
        struct sluice_incoming *incoming = sluice_listener_next(meeting.listener, DEADLINE);
        if (incoming != NULL) {
            channel = sluice_incoming_accept(incoming, sides.pds[0], NULL, NULL, DEADLINE);
        } else {
            require(errno == EINTR, "%s", sluice_last_error());
        }
        require(pthread_join(meeting.thread, NULL) == 0, "no end");
        failed = fake_rdmacm.fail_in == 0;
        require(failed || (channel != NULL && meeting.client.channel != NULL), "%s",
                meeting.client.text);
        sluice_channel_close(channel);
        sluice_channel_close(meeting.client.channel);
        end(&sides, meeting.listener);
    }
    require(n > 10, "%u steps", n);
}

/* Sizes of packets that no port has, as a peer may claim. */
TEST(packets_of_no_size, .times = 2)
{
    struct sides sides;
    struct dialer dialer;
    struct sluice_listener *listener = begin(&sides, ANYWHERE);
    dialer_ask(&dialer, listener);
    fake_rdmacm.mtu = _i == 0 ? (enum ibv_mtu)15 : (enum ibv_mtu)9;
    require_null(sluice_incoming_accept(next(listener), sides.pds[0], NULL, NULL, DEADLINE), EPROTO,
                 "rdma_cm has agreed on packets");
    dialer_is_rejected(&dialer, "agreed on packets");
    end(&sides, listener);
}

/* With its interface it is an address like any other; without one it is a mistake. */
TEST(addresses_of_a_link)
{
    const struct sluice_listen_attr attr = {.size = sizeof(attr), .secret_file = ""};
    const struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    struct sluice_incoming_info info = {.size = sizeof(info)};
    struct sides sides;
    struct client client;
    char address[64];
    struct sluice_listener *listener = begin(&sides, "rdmacm:[fe80::1%lo]:0");
    require(sluice_listener_address(listener, address, sizeof(address)) > 0, "no address");
    require_words(address, "[fe80::1%1]:");
    client_init(&client, NULL, sides.pds[1], "");
    snprintf(client.address, sizeof(client.address), "rdmacm:%s", address);
    client_start(&client);
    struct sluice_incoming *incoming = next(listener);
    require_ok(sluice_incoming_query(incoming, &info));
    require_words(info.address, "[fe80::1%1]:");
    struct sluice_channel *channel =
        made(sluice_incoming_accept(incoming, sides.pds[0], NULL, NULL, DEADLINE));
    client_join(&client, 0);
    sluice_channel_close(channel);
    sluice_channel_close(client.channel);
    require_null(sluice_listen("rdmacm:[fe80::1]:0", &attr), EINVAL, "link-local fe80::1%eth0");
    require_null(sluice_listen("[fe80::1]:0", &attr), EINVAL, "link-local fe80::1%eth0");
    require_null(sluice_connect("rdmacm:[fe80::1]:1", sides.pds[0], NULL, &options, DEADLINE),
                 EINVAL, "link-local fe80::1%eth0");
    require_null(sluice_connect("[fe80::1]:1", sides.pds[0], NULL, &options, DEADLINE), EINVAL,
                 "link-local fe80::1%eth0");
    end(&sides, listener);
}

int main(void)
{
    return run_verbs("verbs_rdmacm", WIRE_TCP, 60);
}
