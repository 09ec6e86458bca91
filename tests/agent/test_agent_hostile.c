/* SPDX-License-Identifier: MIT */
/*
 * Messages of a peer that is not an agent, or a faulty one: malformed, excessive or unrequested
 * ones are refused and counted, the agent still works, and other peers are unaffected.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/process.h"
#include "strangers.h"

TEST(malformed_messages_are_refused)
{
    struct stranger stranger;
    stranger_greet(&stranger);
    say_raw(&stranger, 0);                        /* an empty message */
    say_raw(&stranger, HEAD - 1);                 /* less than a head */
    say(&stranger, 0, 0, 0);                      /* unknown types */
    say(&stranger, 99, 0, 0);                     /* */
    say(&stranger, RELEASE, 1, 7);                /* a byte too few */
    say(&stranger, RELEASE, 0, 8);                /* no id */
    say(&stranger, RELEASE, 1, 8);                /* no region has that name */
    say(&stranger, CREDIT, 5, 0);                 /* an id in a message without ids */
    say(&stranger, ALLOC, 1, 20);                 /* no bytes */
    say(&stranger, HAND, 1, 44);                  /* an empty region */
    say(&stranger, ANNOUNCE, 1, 24);              /* likewise */
    say(&stranger, RENEW, 1, 16);                 /* no region has that name */
    put(stranger.out + HEAD, 1, 8);               /* a lease that began before time */
    put(stranger.out + HEAD + 8, UINT64_MAX, 8);  /* */
    say(&stranger, RENEW, 1, 16);                 /* */
    say(&stranger, RENEWED, 1, 8);                /* no time at all */
    say(&stranger, DONE, 1, 3);                   /* no code */
    put(stranger.out + HEAD, 1000, 4);            /* no such code */
    say(&stranger, DONE, 1, 4);                   /* */
    put(stranger.out + HEAD, UINT64_MAX - 10, 8); /* a range that wraps */
    put(stranger.out + HEAD + 8, 100, 8);         /* */
    say(&stranger, ANNOUNCE, 1, 24);
    await_info(stranger.agent, malformed, 17);
    require(agent_info(stranger.agent).peers == 1, "it is lost");
    stranger_close(&stranger);
}

TEST(messages_of_excessive_length_are_refused)
{
    struct stranger stranger;
    stranger_greet(&stranger);
    say(&stranger, RELEASE, 1, 9);
    say(&stranger, BYE, 0, 1);
    put(stranger.out + HEAD + 8, UINT64_C(1) << 40, 8);
    say(&stranger, ANNOUNCE, 1, 24);
    await_info(stranger.agent, oversized, 3);
    require(agent_info(stranger.agent).peers == 1, "it is lost");
    stranger_close(&stranger);
}

/* A message longer than any receive of the agent ends the connection, and is counted as well. */
TEST(message_beyond_any_receive_ends_its_sender)
{
    struct stranger stranger;
    struct sluice_sge sge;
    stranger_open(&stranger);
    greet(&stranger);
    sge = memory_sge(&stranger.memory, (size_t)RECEIVES * SLOT, SLOT);
    require_result(sluice_channel_send(stranger.control, &sge, 1, DEADLINE), -EMSGSIZE);
    await_info(stranger.agent, oversized, 1);
    await_info(stranger.agent, lost, 1);
    stranger_close(&stranger);
}

TEST(unrequested_answers_are_refused)
{
    struct stranger stranger;
    stranger_greet(&stranger);
    say(&stranger, DONE, 1, 4);
    put(stranger.out + HEAD, 12345, 8);
    say(&stranger, RELEASE, 2, 8);
    put(stranger.out + HEAD, 12345, 8);
    say(&stranger, RETURN, 3, 8);
    put(stranger.out + HEAD, 12345, 8);
    say(&stranger, RENEW, 4, 16);
    put(stranger.out + HEAD, 1000, 8);
    say(&stranger, RENEWED, 5, 8);
    put(stranger.out + HEAD, 9, 4);
    say(&stranger, READY, 0, 4);
    put(stranger.out + HEAD, 7, 4);
    say(&stranger, RESET, 0, 4 + SLUICE_ENDPOINT_BYTES + 24);
    await_info(stranger.agent, unasked, 7);
    require(agent_info(stranger.agent).peers == 1, "it is lost");
    require(agent_info(stranger.agent).regions == 0, "it has a region");
    stranger_close(&stranger);
}

/* Messages before the greeting are ignored, and a second greeting is refused. */
TEST(peer_without_greeting_gets_nothing)
{
    struct stranger stranger;
    stranger_open(&stranger);
    put(stranger.out + HEAD, 4096, 8);
    put(stranger.out + HEAD + 16, 2, 4);
    say(&stranger, ALLOC, 1, 20);
    await_info(stranger.agent, unasked, 1);
    require(agent_info(stranger.agent).allocated == 0, "it has memory");
    require_null(sluice_agent_next_peer(stranger.agent, 0), ETIMEDOUT, "no peer");
    greet(&stranger);
    say_raw(&stranger, HEAD + SLUICE_ENDPOINT_BYTES + 52);
    await_info(stranger.agent, unasked, 2);
    stranger_close(&stranger);
}

/* A peer that keeps sending malformed messages is closed in the end. */
TEST(peer_of_many_malformed_messages_is_closed)
{
    struct stranger stranger;
    stranger_open(&stranger);
    greet(&stranger);
    for (int i = 0; i < 64; i++) {
        struct sluice_sge sge = memory_sge(&stranger.memory, (size_t)RECEIVES * SLOT, HEAD);
        memset(stranger.out, 0xff, SLOT);
        /* The agent may close it during the last of them. */
        int error = sluice_channel_send(stranger.control, &sge, 1, DEADLINE);
        require(error == 0 || i == 63, "%d: %s", i, sluice_last_error());
    }
    await_info(stranger.agent, lost, 1);
    require(agent_info(stranger.agent).malformed == 64, "%llu",
            (unsigned long long)agent_info(stranger.agent).malformed);
    stranger_close(&stranger);
}

/* Peers that leave before they have greeted free their places. */
TEST(peer_that_leaves_before_greeting_frees_its_place)
{
    struct stranger stranger;
    int64_t end = fair_now() + DEADLINE;
    stranger_open(&stranger);
    for (int i = 0; i < (short_run() ? 10 : 50); i++) {
        sluice_channel_close(connect_control(&stranger));
    }
    while (agent_info(stranger.agent).peers != 1 && fair_now() < end) {
        let_pass(SLUICE_MS(1));
    }
    require(agent_info(stranger.agent).peers == 1, "%u peers", agent_info(stranger.agent).peers);
    stranger_close(&stranger);
}

static void announce_as(struct stranger *stranger, uint64_t id, uint64_t length)
{
    put(stranger->out + HEAD, 4096, 8);
    put(stranger->out + HEAD + 8, length, 8);
    put(stranger->out + HEAD + 16, 1, 4);
    say(stranger, ANNOUNCE, id, 24);
}

static void announce(struct stranger *stranger, uint64_t length)
{
    announce_as(stranger, 1, length);
}

/* A receive of the program, in a thread. */
struct receiver {
    pthread_t thread;
    struct sluice_agent *agent;
    struct sluice_agent_peer *peer;
    int error;
};

static void *run_receiver(void *argument)
{
    struct receiver *receiver = argument;
    struct sluice_agent_message *message =
        sluice_agent_receive(receiver->agent, receiver->peer, DEADLINE);
    receiver->error = message == NULL ? -errno : 0;
    sluice_agent_message_free(message);
    return NULL;
}

/* The sender is lost while memory for its message is allocated, or shortly before or after that. */
TEST(lost_sender_ends_its_long_message, .times = 3)
{
    struct stranger stranger;
    struct receiver receiver = {.error = 0};
    stranger_greet(&stranger);
    receiver.agent = stranger.agent;
    receiver.peer = sluice_agent_next_peer(stranger.agent, DEADLINE);
    require(receiver.peer, "%s", sluice_last_error());
    require(pthread_create(&receiver.thread, NULL, run_receiver, &receiver) == 0, "no thread");
    announce(&stranger, LONG_BYTES);
    let_pass(SLUICE_MS(2) * _i);
    sluice_channel_close(stranger.control);
    stranger.control = NULL;
    require(pthread_join(receiver.thread, NULL) == 0, "no end");
    require(receiver.error == -ENOTCONN, "%d", receiver.error);
    sluice_agent_peer_close(receiver.peer);
    stranger_close(&stranger);
}

/*
 * The sender announces a message, and its data queue pair never comes; other peers get theirs
 * meanwhile.
 */
TEST(silence_after_an_announcement_delays_no_other)
{
    struct stranger stranger;
    struct sluice_agent *other;
    struct sluice_agent_peer *peer;
    struct sluice_agent_message *message;
    stranger_greet(&stranger);
    announce(&stranger, LONG_BYTES);
    say(&stranger, 99, 0, 0);
    await_info(stranger.agent, malformed, 1);
    other = make_agent(stranger.sides.pds[1], NULL, SLUICE_AGENT_NO_THREAD);
    peer = sluice_agent_connect(other, stranger.address, NULL, DEADLINE);
    require(peer, "%s", sluice_last_error());
    for (int i = 0; i < 3; i++) {
        require_ok(sluice_agent_send(peer, "word", 4, DEADLINE));
        message = sluice_agent_receive(stranger.agent, NULL, DEADLINE);
        require(message, "%s", sluice_last_error());
        require(sluice_agent_message_length(message) == 4, "another one");
        sluice_agent_message_free(message);
    }
    require_null(sluice_agent_receive(stranger.agent, NULL, SLUICE_MS(10)), ETIMEDOUT, "message");
    sluice_agent_peer_close(peer);
    sluice_agent_close(other);
    stranger_close(&stranger);
}

/* A sender of a long message, in a thread of its own: it ends when the message is answered. */
struct long_sender {
    pthread_t thread;
    struct sluice_agent_peer *peer;
    int error;
};

static void *send_long(void *argument)
{
    static const char bytes[10000];
    struct long_sender *sender = argument;
    sender->error = sluice_agent_send(sender->peer, bytes, sizeof(bytes), DEADLINE);
    return NULL;
}

/*
 * The sender reports its data queue pair ready, and nothing comes over it. Short messages of others
 * arrive meanwhile, and long ones too, or soon after if there is no room for both. That happens
 * once: its own message is read again only after it has made its data queue pair anew.
 */
TEST(silence_after_ready_delays_no_other, .times = 2)
{
    struct stranger stranger;
    struct sluice_agent *other;
    struct long_sender sender = {.error = 0};
    struct sluice_agent_message *message;
    const size_t lengths[] = {4, 10000, 4};
    if (_i == 1 && (short_run() || current_wire() != WIRE_TCP)) {
        return;
    }
    stranger_greet(&stranger);
    put(stranger.out + HEAD, 1, 4);
    say(&stranger, READY, 0, 4);
    announce(&stranger, _i == 0 ? LONG_BYTES / 2 : LONG_BYTES);
    say(&stranger, 99, 0, 0);
    await_info(stranger.agent, malformed, 1);
    require_null(sluice_agent_receive(stranger.agent, NULL, 0), ETIMEDOUT, "message");
    other = make_agent(stranger.sides.pds[1], NULL, SLUICE_AGENT_NO_THREAD);
    sender.peer = sluice_agent_connect(other, stranger.address, NULL, DEADLINE);
    require(sender.peer, "%s", sluice_last_error());
    for (size_t i = 0; i < COUNT(lengths); i++) {
        if (i == 1) {
            require(pthread_create(&sender.thread, NULL, send_long, &sender) == 0, "no thread");
        } else {
            require_ok(sluice_agent_send(sender.peer, "word", 4, DEADLINE));
        }
        message = sluice_agent_receive(stranger.agent, NULL, DEADLINE);
        require(message, "%s", sluice_last_error());
        require(sluice_agent_message_length(message) == lengths[i], "another one");
        sluice_agent_message_free(message);
        if (i == 1) {
            require(pthread_join(sender.thread, NULL) == 0, "no end");
            require_ok(sender.error);
        }
    }
    struct span span = span_begin();
    for (int i = 0; i < 10; i++) {
        require(pthread_create(&sender.thread, NULL, send_long, &sender) == 0, "no thread");
        message = sluice_agent_receive(stranger.agent, NULL, DEADLINE);
        require(message, "%s", sluice_last_error());
        sluice_agent_message_free(message);
        require(pthread_join(sender.thread, NULL) == 0, "no end");
        let_pass(SLUICE_MS(30));
    }
    require(span_since(span).fair < SLUICE_S(4), "it is held up again");
    sluice_agent_peer_close(sender.peer);
    sluice_agent_close(other);
    stranger_close(&stranger);
}

/*
 * A message is read for a receive from any peer, and its sender is then asked for by name: that
 * makes room for others, which wakes an event loop.
 */
TEST(receive_by_name_makes_room_for_others)
{
    struct stranger stranger;
    struct sluice_agent *other;
    struct sluice_agent_peer *peer;
    struct long_sender sender = {.error = 0};
    struct sluice_agent_message *message;
    stranger_greet(&stranger);
    peer = sluice_agent_next_peer(stranger.agent, DEADLINE);
    require(peer, "%s", sluice_last_error());
    put(stranger.out + HEAD, 1, 4);
    say(&stranger, READY, 0, 4);
    announce(&stranger, LONG_BYTES);
    say(&stranger, 99, 0, 0);
    await_info(stranger.agent, malformed, 1);
    require_null(sluice_agent_receive(stranger.agent, NULL, 0), ETIMEDOUT, "message");
    while (sluice_agent_arm(stranger.agent, NULL) == 1) {
        continue;
    }
    require_null(sluice_agent_receive(stranger.agent, peer, 0), ETIMEDOUT,
                 "no message of peer has arrived");
    require(sluice_agent_arm(stranger.agent, NULL) == 1, "there is no room");
    other = make_agent(stranger.sides.pds[1], NULL, SLUICE_AGENT_NO_THREAD);
    sender.peer = sluice_agent_connect(other, stranger.address, NULL, DEADLINE);
    require(sender.peer, "%s", sluice_last_error());
    require(pthread_create(&sender.thread, NULL, send_long, &sender) == 0, "no thread");
    message = sluice_agent_receive(stranger.agent, NULL, DEADLINE);
    require(message, "%s", sluice_last_error());
    sluice_agent_message_free(message);
    require(pthread_join(sender.thread, NULL) == 0, "no end");
    require_ok(sender.error);
    sluice_agent_peer_close(sender.peer);
    sluice_agent_close(other);
    sluice_agent_peer_close(peer);
    stranger_close(&stranger);
}

static uint64_t mapped(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    require(file != NULL && fscanf(file, "%lu", &pages) == 1, "no /proc");
    require(fclose(file) == 0, "%s", strerror(errno));
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * The sender announces messages, and withdraws them once they are asked for by name. While a part
 * of one is in flight, no later one is read, which bounds memory; that wait ends, also if all of a
 * message is in flight.
 */
TEST(withdrawn_messages_hold_bounded_memory, .times = 2)
{
    struct stranger stranger;
    struct sluice_agent_peer *peer;
    uint64_t before = 0;
    uint32_t heard = 1;
    stranger_greet(&stranger);
    peer = sluice_agent_next_peer(stranger.agent, DEADLINE);
    require(peer, "%s", sluice_last_error());
    put(stranger.out + HEAD, 1, 4);
    say(&stranger, READY, 0, 4);
    for (uint64_t id = 1; id <= 9; id++) {
        announce_as(&stranger, id, _i == 0 ? LONG_BYTES : 10000);
        say(&stranger, 99, 0, 0);
        await_info(stranger.agent, malformed, 2 * id - 1);
        require_null(sluice_agent_receive(stranger.agent, peer, SLUICE_MS(20)), ETIMEDOUT,
                     "message");
        say(&stranger, WITHDRAW, id, 0);
        say(&stranger, 99, 0, 0);
        await_info(stranger.agent, malformed, 2 * id);
        before = id == 1 ? mapped() : before;
    }
    require(mapped() < before + 4 * LONG_BYTES, "%llu bytes more",
            (unsigned long long)(mapped() - before));
    while (!short_run() && current_wire() == WIRE_TCP &&
           hear_request(&stranger, &heard, DONE) != 1) {
        continue;
    }
    sluice_agent_peer_close(peer);
    stranger_close(&stranger);
}

/*
 * The window of the peer is full when a region is revoked: it is notified once it takes a message.
 */
TEST(revocation_waits_for_room_in_the_window)
{
    struct stranger stranger;
    struct sluice_agent_peer *peer;
    uint32_t heard = 1, words = 0, type;
    stranger_greet(&stranger);
    peer = sluice_agent_next_peer(stranger.agent, DEADLINE);
    require(peer, "%s", sluice_last_error());
    put(stranger.out + HEAD, 4096, 8);
    put(stranger.out + HEAD + 16, SLUICE_ACCESS_REMOTE_READ, 4);
    say(&stranger, ALLOC, 1, 20);
    while (hear_type(&stranger, &heard) != ALLOCATED) {
        continue;
    }
    while (sluice_agent_send(peer, "x", 1, words < 4 ? DEADLINE : SLUICE_MS(10)) == 0) {
        words++;
    }
    require(words == 16, "a window of %u", words);
    require_ok(sluice_agent_revoke_mr(peer, 1));
    require(agent_info(stranger.agent).regions == 0, "it has it still");
    for (uint32_t i = 0; i < words;) {
        type = hear_type(&stranger, &heard);
        require(type != REVOKE, "there was room for it");
        i += type == TEXT;
    }
    stranger.taken = words;
    say(&stranger, CREDIT, 0, 0);
    while (hear_type(&stranger, &heard) != REVOKE) {
        continue;
    }
    sluice_agent_peer_close(peer);
    stranger_close(&stranger);
}

/* An error that belongs to no message counts as a malformed message; no region fails. */
TEST(error_for_no_message_counts_as_malformed)
{
    struct stranger stranger;
    struct long_sender sender = {.error = 0};
    uint32_t heard = 1;
    stranger_greet(&stranger);
    sender.peer = sluice_agent_next_peer(stranger.agent, DEADLINE);
    require(sender.peer, "%s", sluice_last_error());
    require(pthread_create(&sender.thread, NULL, send_long, &sender) == 0, "no thread");
    while (hear_type(&stranger, &heard) != ANNOUNCE) {
        continue;
    }
    put(stranger.out + HEAD, 4, 4); /* no such region */
    say(&stranger, DONE, 1, 4);
    require(pthread_join(sender.thread, NULL) == 0, "no end");
    require(sender.error == -EPROTO, "%d", sender.error);
    require(agent_info(stranger.agent).malformed == 1, "%llu",
            (unsigned long long)agent_info(stranger.agent).malformed);
    sluice_agent_peer_close(sender.peer);
    stranger_close(&stranger);
}

/* Nearly valid messages with random changes. */
TEST(random_changes_do_no_harm, .times = 4)
{
    struct stranger stranger;
    uint64_t state = 88172645463325252u + (uint64_t)_i;
    stranger_open(&stranger);
    greet(&stranger);
    for (int i = 0; i < 400; i++) {
        static const uint32_t lengths[] = {
            SLUICE_ENDPOINT_BYTES + 52, 20, 8, 44, 8, 24, 44, 4, 100, 0, 8, 0, 284, 4, 0, 16, 8};
        uint32_t type, length;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        /* All types except the goodbye. */
        type = 1 + (uint32_t)(state % (RENEWED - 1));
        type += type >= BYE;
        length = lengths[type - 1] + (state >> 20) % 40 / 39;
        for (uint32_t at = 0; at < length; at++) {
            stranger.out[HEAD + at] = (uint8_t)((state >> at % 56) * (at % 3));
        }
        struct sluice_sge sge =
            memory_sge(&stranger.memory, (size_t)RECEIVES * SLOT, HEAD + length);
        put(stranger.out, 0x534c4147, 4);
        put(stranger.out + 4, 1, 2);
        put(stranger.out + TYPE_AT, type, 2);
        put(stranger.out + LENGTH_AT, length, 4);
        put(stranger.out + ID_AT, (type <= DONE && type > HELLO) || type > BYE ? state >> 40 : 0,
            8);
        stranger.out[(state >> 30) % (HEAD + length)] ^= (uint8_t)(state >> 50 & 1);
        if (sluice_channel_send(stranger.control, &sge, 1, DEADLINE) != 0) {
            break;
        }
        memset(stranger.out, 0, SLOT);
    }
    require(agent_info(stranger.agent).malformed + agent_info(stranger.agent).oversized +
                    agent_info(stranger.agent).unasked >
                0,
            "all was right");
    stranger_close(&stranger);
}

int main(void)
{
    return run_tests("agent_hostile", 120);
}
