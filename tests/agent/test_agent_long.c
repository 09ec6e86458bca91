/* SPDX-License-Identifier: MIT */
/*
 * Long messages, which the receiver reads from their senders: a read that has begun goes on,
 * whichever call waits for it, and ends with the message or with its sender's deadline.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../support/fair.h"
#include "agents.h"

/* A long message that is not received is withdrawn, and later messages arrive. */
TEST(a_long_message_is_withdrawn)
{
    struct agents agents;
    struct sender sender;
    uint8_t *bytes = calloc(1, 100000);
    agents_open(&agents, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        require_error(sluice_agent_send(agents.at_holder, bytes, 100000, SLUICE_MS(30)), -ETIMEDOUT,
                      "did not answer within ms");
    }
    require_ok(sluice_agent_send(agents.at_holder, "short", 5, DEADLINE));
    struct sluice_agent_message *message = receive(agents.owner, agents.at_owner);
    require(sluice_agent_message_length(message) == 5, "%zu bytes",
            sluice_agent_message_length(message));
    sluice_agent_message_free(message);
    start_sender(&sender, agents.at_holder, bytes, 100000, DEADLINE);
    sluice_agent_message_free(receive(agents.owner, agents.at_owner));
    join_sender(&sender, 0);
    free(bytes);
    agents_close(&agents);
}

static struct sluice_agent_message *
receive_by_looking(struct sluice_agent *agent, struct sluice_agent_peer *peer, int64_t timeout)
{
    struct sluice_agent_message *message;
    int64_t end = fair_now() + DEADLINE;
    do {
        message = sluice_agent_receive(agent, peer, timeout);
        require(message != NULL || errno == ETIMEDOUT, "%s", sluice_last_error());
        require(fair_now() < end, "it does not come");
    } while (message == NULL);
    return message;
}

#define LOOKED_FOR 9000000

/*
 * A program that never waits long gets a long message as well: reading goes on from call to call,
 * and the data queue pair stays usable. From one peer, or from any.
 */
TEST(long_message_arrives_by_short_waits, .times = 4)
{
    const int64_t timeout = _i < 2 ? 0 : SLUICE_US(50);
    struct agents agents;
    struct sender sender;
    struct sluice_agent_message *message;
    uint8_t *bytes = malloc(LOOKED_FOR);
    agents_open(&agents, NULL, NULL);
    for (uint64_t i = 0; i < 3; i++) {
        size_t length = i == 0 ? 70000 : LOOKED_FOR;
        pattern_fill(bytes, length, i);
        start_sender(&sender, agents.at_owner, bytes, length, DEADLINE);
        message = receive_by_looking(agents.holder, _i % 2 == 0 ? NULL : agents.at_holder, timeout);
        join_sender(&sender, 0);
        require(sluice_agent_message_length(message) == length, "%zu bytes",
                sluice_agent_message_length(message));
        pattern_check(sluice_agent_message_addr(message), length, i);
        sluice_agent_message_free(message);
    }
    require(peer_info(agents.at_holder).reconnects == 0 &&
                peer_info(agents.at_owner).reconnects == 0,
            "the connection was harmed");
    free(bytes);
    agents_close(&agents);
}

/*
 * Any call that serves the agent goes on reading, so the message is complete although its sender
 * has left.
 */
TEST(begun_message_is_read_by_any_call)
{
    struct agents agents;
    struct sender sender;
    struct sluice_agent_message *message = NULL;
    uint8_t *bytes = malloc(LOOKED_FOR);
    uint64_t arrived;
    agents_open(&agents, NULL, NULL);
    require_ok(sluice_agent_send(agents.at_holder, "first", 5, DEADLINE));
    sluice_agent_message_free(receive(agents.owner, agents.at_owner));
    arrived = agent_info(agents.owner).messages_arrived;
    pattern_fill(bytes, LOOKED_FOR, 1);
    start_sender(&sender, agents.at_holder, bytes, LOOKED_FOR, DEADLINE);
    while (message == NULL && agent_info(agents.holder).messages_sent < 2) {
        message = sluice_agent_receive(agents.owner, agents.at_owner, 0);
    }
    join_sender(&sender, 0);
    memset(bytes, 0, LOOKED_FOR);
    require(agent_info(agents.owner).messages_arrived == arrived + (message != NULL), "not one");
    sluice_agent_peer_close(agents.at_holder);
    agents.at_holder = NULL;
    if (message == NULL) {
        message = receive(agents.owner, agents.at_owner);
    }
    pattern_check(sluice_agent_message_addr(message), LOOKED_FOR, 1);
    sluice_agent_message_free(message);
    require_null(sluice_agent_receive(agents.owner, agents.at_owner, DEADLINE), ENOTCONN, "left");
    free(bytes);
    agents_close(&agents);
}

/*
 * The deadline passes before the message is read, meanwhile, or after it: the message arrives whole
 * or not at all, and its sender owns its memory again.
 */
TEST(begun_message_is_withdrawn, .times = 8)
{
    struct agents agents;
    struct sender sender;
    struct sluice_agent_message *message = NULL;
    uint8_t *bytes = malloc(LOOKED_FOR);
    agents_open(&agents, NULL, NULL);
    pattern_fill(bytes, LOOKED_FOR, 1);
    start_sender(&sender, agents.at_owner, bytes, LOOKED_FOR, SLUICE_MS(1) * _i);
    while (pthread_tryjoin_np(sender.thread, NULL) != 0) {
        if (message == NULL) {
            message = sluice_agent_receive(agents.holder, NULL, SLUICE_US(100));
        } else {
            require(sluice_agent_progress(agents.holder) >= 0, "%s", sluice_last_error());
        }
    }
    require(sender.error == 0 || sender.error == -ETIMEDOUT, "%d", sender.error);
    if (message == NULL && sender.error == 0) {
        message = receive(agents.holder, NULL);
    }
    memset(bytes, 0, LOOKED_FOR);
    if (message != NULL) {
        pattern_check(sluice_agent_message_addr(message), LOOKED_FOR, 1);
    }
    sluice_agent_message_free(message);
    require_ok(sluice_agent_send(agents.at_owner, "next", 4, DEADLINE));
    message = receive(agents.holder, NULL);
    require(sluice_agent_message_length(message) == 4, "another one");
    sluice_agent_message_free(message);
    pass(&agents, false, 100000, 7);
    free(bytes);
    agents_close(&agents);
}

/* The message lies in memory that cannot be written, such as that of a file. */
TEST(a_message_may_be_read_only)
{
    struct agents agents;
    struct sender sender;
    uint8_t *bytes = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(bytes != MAP_FAILED, "no memory");
    pattern_fill(bytes, 65536, 4);
    require(mprotect(bytes, 65536, PROT_READ) == 0, "%s", strerror(errno));
    agents_open(&agents, NULL, NULL);
    start_sender(&sender, agents.at_holder, bytes, 65536, DEADLINE);
    receive_pattern(agents.owner, NULL, 65536, 4);
    join_sender(&sender, 0);
    agents_close(&agents);
    munmap(bytes, 65536);
}

/*
 * With a length that is copied, and with one that is registered: the send fails without further
 * harm.
 */
TEST(unmapped_bytes_are_refused, .times = 2)
{
    const size_t length = _i == 0 ? 65536 : 1 << 20;
    struct agents agents;
    struct sender sender;
    struct sluice_agent_message *message;
    uint8_t *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(bytes != MAP_FAILED, "no memory: %m");
    agents_open(&agents, NULL, NULL);
    pattern_fill(bytes, length / 2, 1);
    require(munmap(bytes + length / 2, length / 2) == 0, "%m");
    require_error(sluice_agent_send(agents.at_holder, bytes, length, DEADLINE), -EFAULT, "mapped");
    start_sender(&sender, agents.at_holder, bytes, length / 2, DEADLINE);
    message = receive(agents.owner, agents.at_owner);
    join_sender(&sender, 0);
    pattern_check(sluice_agent_message_addr(message), length / 2, 1);
    sluice_agent_message_free(message);
    munmap(bytes, length / 2);
    agents_close(&agents);
}

/* Messages of other lengths from the same memory of the sender, one after the other. */
TEST(long_messages_follow_each_other)
{
    static const size_t lengths[] = {65536, 5000, 262144, 65537, 262145, 4097};
    uint8_t *bytes = malloc(262145);
    struct agents agents;
    agents_open(&agents, NULL, NULL);
    for (uint64_t i = 0; i < 12; i++) {
        const size_t length = lengths[i % 6];
        struct sluice_agent_message *message;
        struct sender sender;
        pattern_fill(bytes, length, i);
        start_sender(&sender, agents.at_holder, bytes, length, DEADLINE);
        message = receive(agents.owner, agents.at_owner);
        join_sender(&sender, 0);
        require(sluice_agent_message_length(message) == length, "%zu bytes",
                sluice_agent_message_length(message));
        pattern_check(sluice_agent_message_addr(message), length, i);
        sluice_agent_message_free(message);
    }
    free(bytes);
    agents_close(&agents);
}

int main(void)
{
    return run_tests("agent_long", 60);
}
