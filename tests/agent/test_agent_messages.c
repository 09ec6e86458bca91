/* SPDX-License-Identifier: MIT */
/*
 * Messages of any size, whole and in order: sent at once, or read by the receiver; limits of both
 * sides; and messages that are never received. Also how a program is notified of messages and
 * everything else: in its own event loop, or by a wake.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../support/fair.h"
#include "../support/fault.h"
#include "agents.h"

/* Once this is answered, all earlier messages have arrived. */
static void await_all(struct sluice_agent_peer *peer)
{
    struct sluice_agent_mr *mr = sluice_agent_request_mr(peer, 100, ACCESS_READ_WRITE, 0, DEADLINE);
    require(mr, "%s", sluice_last_error());
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
}

/* However many messages one peer has sent, that of the other is received second. */
TEST(peers_take_turns)
{
    struct agents agents;
    struct sluice_agent_peer *other;
    agents_open(&agents, NULL, NULL);
    other = sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
    require(other, "%s", sluice_last_error());
    for (int i = 0; i < 3; i++) {
        require_ok(sluice_agent_send(agents.at_holder, "x", 1, DEADLINE));
    }
    await_all(agents.at_holder);
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_agent_send(other, "xx", 2, DEADLINE));
    }
    await_all(other);
    for (size_t i = 0; i < 5; i++) {
        static const size_t lengths[] = {1, 2, 1, 2, 1};
        struct sluice_agent_message *message = receive(agents.owner, NULL);
        require(sluice_agent_message_length(message) == lengths[i], "%zu: %zu bytes", i,
                sluice_agent_message_length(message));
        sluice_agent_message_free(message);
    }
    sluice_agent_peer_close(other);
    agents_close(&agents);
}

static const size_t sizes[] = {0, 1, 63, 4095, 4096, 4097, 70000, 3000000};

/* Each size, in both directions; a long one waits for its receiver. */
TEST(messages_of_all_sizes_come_whole)
{
    struct agents agents;
    agents_open(&agents, NULL, NULL);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        pass(&agents, true, sizes[i], 2 * i + 1);
        pass(&agents, false, sizes[i], 2 * i + 2);
        require(agent_info(agents.owner).messages_sent == i + 1 &&
                    agent_info(agents.owner).messages_arrived == i + 1,
                "not counted: %zu bytes", sizes[i]);
    }
    agents_close(&agents);
}

#define MESSAGES 300

static void *send_many(void *argument)
{
    struct agents *agents = argument;
    static uint8_t bytes[9000];
    for (uint32_t i = 0; i < MESSAGES; i++) {
        size_t length = i * 31 % (i % 50 == 7 ? sizeof(bytes) : 1500);
        pattern_fill(bytes, length, i);
        require_ok(sluice_agent_send(agents->at_holder, bytes, length, DEADLINE));
    }
    return NULL;
}

/* More messages than fit the window, long ones among them. */
TEST(messages_come_in_order)
{
    struct agents agents;
    pthread_t thread;
    agents_open(&agents, NULL, NULL);
    require(pthread_create(&thread, NULL, send_many, &agents) == 0, "no thread");
    for (uint32_t i = 0; i < MESSAGES; i++) {
        receive_pattern(agents.owner, i % 2 == 0 ? NULL : agents.at_owner,
                        i * 31 % (i % 50 == 7 ? 9000 : 1500), i);
    }
    require(pthread_join(thread, NULL) == 0, "no end");
    require_null(sluice_agent_receive(agents.owner, NULL, 0), ETIMEDOUT, "no message");
    agents_close(&agents);
}

#define VISITS 40

/*
 * Connects, sends a message, waits until it has arrived, and leaves. Returns false if it was
 * refused.
 */
static bool visit(struct agents *agents, uint64_t key)
{
    struct sluice_agent_peer *peer =
        sluice_agent_connect(agents->holder, agents->address, NULL, DEADLINE);
    uint8_t bytes[100];
    if (peer == NULL && errno == ECONNREFUSED) {
        return false;
    }
    require(peer, "%s", sluice_last_error());
    pattern_fill(bytes, sizeof(bytes), key);
    require_ok(sluice_agent_send(peer, bytes, sizeof(bytes), DEADLINE));
    require_ok(sluice_agent_flush(peer, DEADLINE));
    sluice_agent_peer_close(peer);
    return true;
}

/* The owner may still be admitting the peer when it leaves. */
TEST(message_of_a_peer_that_leaves_at_once_arrives)
{
    struct agents agents;
    agents_open(&agents, NULL, NULL);
    for (uint64_t i = 0; i < VISITS; i++) {
        require(visit(&agents, i), "%s", sluice_last_error());
        receive_pattern(agents.owner, NULL, 100, i);
    }
    require_null(sluice_agent_receive(agents.owner, NULL, 0), ETIMEDOUT, "no message");
    agents_close(&agents);
}

/* The owner notices that each visitor has left before the next one comes. */
static uint64_t visit_until_refused(struct agents *agents)
{
    uint64_t lost = agent_info(agents->owner).lost, visits = 0;
    while (visit(agents, visits)) {
        visits++;
        await_info(agents->owner, lost, lost + visits);
    }
    require(strstr(sluice_last_error(), "as many messages of peers that have left as it keeps"),
            "%s", sluice_last_error());
    return visits;
}

/* Spilled messages are all received; a sender that exceeds the limit is refused until then. */
TEST(spilled_messages_are_bounded_and_kept)
{
    struct sluice_agent_attr attr = {.size = sizeof(attr), .secret_file = ""};
    struct agents agents;
    uint64_t visits;
    attr.max_left_bytes = short_run() ? 32768 : 1 << 20;
    agents_open(&agents, &attr, NULL);
    for (int round = 0; round < 2; round++) {
        visits = visit_until_refused(&agents);
        require(visits > (short_run() ? 1 : 64), "%llu visits", (unsigned long long)visits);
        require(agent_info(agents.owner).left_bytes >= attr.max_left_bytes, "less is left");
        await_info(agents.owner, turned_away, (uint64_t)round + 1);
        for (uint64_t i = 0; i < visits; i++) {
            receive_pattern(agents.owner, NULL, 100, i);
        }
        require(agent_info(agents.owner).left_bytes == 0, "something is left");
    }
    agents_close(&agents);
}

/* A receiver that does not receive limits its sender, and its own memory stays bounded. */
TEST(waiting_messages_are_bounded, .times = 2)
{
    struct agents agents;
    struct sluice_agent_attr attr = {.size = sizeof(attr), .eager = 1000, .secret_file = ""};
    uint8_t bytes[1000];
    int sent = 0;
    if (_i == 0) {
        attr.max_waiting = 5;
    } else {
        attr.max_waiting_bytes = 5999;
    }
    agents_open(&agents, &attr, NULL);
    for (; sent < 100; sent++) {
        pattern_fill(bytes, sizeof(bytes), (uint64_t)sent);
        if (sluice_agent_send(agents.at_holder, bytes, sizeof(bytes),
                              sent < 5 ? DEADLINE : SLUICE_MS(100)) != 0) {
            break;
        }
    }
    require(sent == 5, "%d were sent", sent);
    require_error(sluice_agent_send(agents.at_holder, bytes, sizeof(bytes), 0), -ETIMEDOUT,
                  "no room");
    /* Other requests still work meanwhile. */
    struct sluice_agent_mr *mr = request(&agents, 100, ACCESS_READ_WRITE, 0);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    /* Room for one message is announced at once: a waiting sender need not wait for more. */
    for (int i = 0; i < 10; i++) {
        struct sluice_agent_message *message = receive(agents.owner, NULL);
        require(sluice_agent_message_peer(message) == agents.at_owner, "another peer");
        pattern_check(sluice_agent_message_addr(message), sizeof(bytes), (uint64_t)i);
        sluice_agent_message_free(message);
        pattern_fill(bytes, sizeof(bytes), (uint64_t)i + 5);
        require_ok(sluice_agent_send(agents.at_holder, bytes, sizeof(bytes), DEADLINE));
    }
    agents_close(&agents);
}

TEST(a_message_may_be_too_long)
{
    struct agents agents;
    struct sluice_agent_attr attr = {.size = sizeof(attr), .max_message = 5000, .secret_file = ""};
    struct sender sender;
    uint8_t bytes[5001] = {0};
    agents_open(&agents, &attr, NULL);
    require_error(sluice_agent_send(agents.at_holder, bytes, 5001, DEADLINE), -E2BIG, "5001 bytes");
    start_sender(&sender, agents.at_holder, bytes, 5000, DEADLINE);
    sluice_agent_message_free(receive(agents.owner, NULL));
    join_sender(&sender, 0);
    require_error(sluice_agent_send(agents.at_holder, NULL, 1, DEADLINE), -EINVAL, "bytes");
    require_error(sluice_agent_send(agents.at_holder, bytes, 1, -1), -EINVAL, "deadline");
    require_null(sluice_agent_receive(agents.owner, agents.at_holder, 0), EINVAL, "another agent");
    agents_close(&agents);
}

/* Messages sent before the end are received, and no receive waits for ever. */
TEST(messages_before_the_end_are_received)
{
    struct agents agents;
    struct sender sender;
    uint8_t *bytes = calloc(1, 100000);
    agents_open(&agents, NULL, NULL);
    require_ok(sluice_agent_send(agents.at_holder, "last", 4, DEADLINE));
    start_sender(&sender, agents.at_owner, bytes, 100000, DEADLINE);
    sluice_agent_peer_close(agents.at_holder);
    agents.at_holder = NULL;
    join_sender(&sender, -ENOTCONN);
    struct sluice_agent_message *message = receive(agents.owner, NULL);
    require(memcmp(sluice_agent_message_addr(message), "last", 4) == 0, "another one");
    sluice_agent_message_free(message);
    require_null(sluice_agent_receive(agents.owner, agents.at_owner, DEADLINE), ENOTCONN, "left");
    free(bytes);
    agents_close(&agents);
}

/* A peer that the program has not taken may leave before its message is received. */
TEST(message_of_an_untaken_peer_that_left_arrives)
{
    struct agents agents;
    agents_open(&agents, NULL, NULL);
    struct sluice_agent_peer *peer =
        sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
    require(peer, "%s", sluice_last_error());
    require_ok(sluice_agent_send(peer, "bye", 3, DEADLINE));
    sluice_agent_peer_close(peer);
    await_info(agents.owner, lost, 1);
    struct sluice_agent_message *message = receive(agents.owner, NULL);
    require(memcmp(sluice_agent_message_addr(message), "bye", 3) == 0, "another one");
    require(peer_info(sluice_agent_message_peer(message)).state == SLUICE_AGENT_PEER_LOST,
            "not lost");
    sluice_agent_message_free(message);
    require_null(sluice_agent_next_peer(agents.owner, 0), ETIMEDOUT, "no peer");
    agents_close(&agents);
}

/* A peer that was never taken, and its message, end with the agent, and so do its descriptors. */
TEST(unreceived_message_ends_with_the_agent)
{
    struct agents agents;
    struct sluice_agent_peer *peer;
    struct census before;
    agents_open(&agents, NULL, NULL);
    agents_close(&agents);
    before = census_take();
    agents_open(&agents, NULL, NULL);
    peer = sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
    require(peer, "%s", sluice_last_error());
    require_ok(sluice_agent_send(peer, "unheard", 7, DEADLINE));
    await_all(peer);
    sluice_agent_peer_close(agents.at_owner);
    agents.at_owner = NULL;
    sluice_agent_close(agents.owner);
    agents.owner = NULL;
    sluice_agent_peer_close(peer);
    agents_close(&agents);
    census_check(&before);
}

/* An event loop: it waits for the descriptor, and finds the cause by calls that do not wait. */
struct looked_for {
    struct agents *agents;
    struct sluice_agent_message *message;
    struct sluice_agent_mr *mr;
    atomic_bool done;
};

static bool has_message(struct looked_for *what)
{
    what->message = sluice_agent_receive(what->agents->holder, NULL, 0);
    return what->message != NULL;
}

static bool has_region(struct looked_for *what)
{
    what->mr = sluice_agent_receive_remote_mr(what->agents->holder, what->agents->at_holder, 0);
    return what->mr != NULL;
}

static bool is_done(struct looked_for *what)
{
    return atomic_load(&what->done);
}

static bool is_lost(struct looked_for *what)
{
    return peer_info(what->agents->at_holder).state == SLUICE_AGENT_PEER_LOST;
}

/* Serves the holder from an event loop until the condition holds. */
static void loop_until(bool (*is_there)(struct looked_for *what), struct looked_for *what)
{
    struct sluice_agent *agent = what->agents->holder;
    struct pollfd fd = {.fd = sluice_agent_fd(agent), .events = POLLIN};
    int64_t end = fair_now() + DEADLINE;
    while (!is_there(what)) {
        int64_t due = -1;
        int news = sluice_agent_arm(agent, &due);
        require(news == 0 || news == 1, "%d: %s", news, sluice_last_error());
        require(due >= 0 && (news == 0 || due == 0), "%lld", (long long)due);
        require(fair_now() < end, "it does not come");
        if (news == 0) {
            poll(&fd, 1, due < DEADLINE ? (int)(due / SLUICE_MS(1)) + 1 : -1);
        }
    }
}

/*
 * The owner hands memory over and requests some, for which the holder must answer; then it wakes
 * the holder, as its event loop gets no message.
 */
static void *give_and_ask(void *argument)
{
    struct looked_for *what = argument;
    struct agents *agents = what->agents;
    struct memory given;
    struct sluice_agent_mr *mr;
    memory_open(&given, agents->sides.pds[0], 4096);
    require_ok(sluice_agent_send_local_mr(agents->at_owner, given.mr, 0, 4096, ACCESS_READ_WRITE,
                                          SLUICE_FOREVER, DEADLINE, NULL));
    mr = sluice_agent_request_mr(agents->at_owner, 4096, ACCESS_READ_WRITE, 0, DEADLINE);
    require(mr, "%s", sluice_last_error());
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    memory_close(&given);
    atomic_store(&what->done, true);
    require_ok(sluice_agent_wake(agents->holder));
    return NULL;
}

/* A holder that has a thread beside its event loop. */
static const struct sluice_agent_attr threaded = {.size = sizeof(threaded), .secret_file = ""};

TEST(event_loop_is_notified_of_everything, .times = 2)
{
    struct agents agents;
    struct looked_for what = {.agents = &agents};
    struct sender sender;
    uint8_t *bytes = calloc(1, 9000000);
    pthread_t thread;
    require_error(sluice_agent_fd(NULL), -EINVAL, "not an agent");
    require_error(sluice_agent_arm(NULL, NULL), -EINVAL, "not an agent");
    require_error(sluice_agent_wake(NULL), -EINVAL, "not an agent");
    agents_open(&agents, NULL, _i == 1 ? &threaded : NULL);
    require_ok(sluice_agent_send(agents.at_owner, "word", 4, DEADLINE));
    loop_until(has_message, &what);
    require(memcmp(sluice_agent_message_addr(what.message), "word", 4) == 0, "another one");
    sluice_agent_message_free(what.message);
    start_sender(&sender, agents.at_owner, bytes, 9000000, DEADLINE);
    loop_until(has_message, &what);
    require(sluice_agent_message_length(what.message) == 9000000, "another one");
    sluice_agent_message_free(what.message);
    join_sender(&sender, 0);
    free(bytes);
    require(pthread_create(&thread, NULL, give_and_ask, &what) == 0, "no thread");
    loop_until(has_region, &what);
    loop_until(is_done, &what);
    require(pthread_join(thread, NULL) == 0, "no end");
    (void)!sluice_agent_mr_release(what.mr, 0);
    sluice_agent_peer_close(agents.at_owner);
    agents.at_owner = NULL;
    loop_until(is_lost, &what);
    agents_close(&agents);
}

/* A wake is reported once: by the fd and arm, or by the next wait; it does not end a transfer. */
TEST(wake_is_reported_once, .times = 2)
{
    struct agents agents;
    struct pollfd fd = {.events = POLLIN};
    struct sluice_agent_mr *mr;
    agents_open(&agents, NULL, _i == 1 ? &threaded : NULL);
    mr = request(&agents, 4096, ACCESS_READ_WRITE, 0);
    fd.fd = sluice_agent_fd(agents.holder);
    while (sluice_agent_arm(agents.holder, NULL) == 1) {
        continue;
    }
    require_ok(sluice_agent_wake(agents.holder));
    require(poll(&fd, 1, (int)(DEADLINE / SLUICE_MS(1))) == 1, "the fd stays quiet");
    require_result(sluice_agent_arm(agents.holder, NULL), 1);
    require_null(sluice_agent_receive(agents.holder, NULL, 0), ETIMEDOUT, "no message");
    require_ok(sluice_agent_wake(agents.holder));
    region_works(&agents, mr, 3);
    require_null(sluice_agent_receive(agents.holder, NULL, DEADLINE), EINTR, "wake");
    require_null(sluice_agent_receive(agents.holder, NULL, 0), ETIMEDOUT, "no message");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
}

static void *wake_often(void *argument)
{
    struct looked_for *what = argument;
    while (!atomic_load(&what->done)) {
        require_ok(sluice_agent_wake(what->agents->holder));
        let_pass(SLUICE_MS(1));
    }
    return NULL;
}

/* Wakes another thread, which sleeps. */
TEST(a_wait_is_woken)
{
    struct agents agents;
    struct looked_for what = {.agents = &agents};
    pthread_t thread;
    agents_open(&agents, NULL, NULL);
    require(pthread_create(&thread, NULL, wake_often, &what) == 0, "no thread");
    for (int i = 0; i < 10; i++) {
        require_null(sluice_agent_next_peer(agents.holder, DEADLINE), EINTR, "wake");
    }
    atomic_store(&what.done, true);
    require(pthread_join(thread, NULL) == 0, "no end");
    agents_close(&agents);
}

int main(void)
{
    return run_tests("agent_messages", 60);
}
