/* SPDX-License-Identifier: MIT */
#include "agents.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/fair.h"

#define MEMORY (1u << 20)
#define QUOTA (64u << 20)

struct sluice_agent *make_agent(struct sluice_pd *pd, const struct sluice_agent_attr *attr,
                                uint32_t flags)
{
    struct sluice_agent_attr known = {.size = sizeof(known), .secret_file = ""};
    struct sluice_agent *agent;
    if (attr != NULL) {
        known = *attr;
    }
    known.flags |= flags;
    /* All tests of agents run with shared receives as well, by hand. */
    if (getenv("SLUICE_TEST_AGENT_POOL") != NULL && known.receive_pool == 0) {
        known.receive_pool = (uint32_t)atoi(getenv("SLUICE_TEST_AGENT_POOL"));
    }
    known.quota = known.quota ? known.quota : QUOTA;
    agent = sluice_agent_open(pd, &known);
    require(agent, "%s", sluice_last_error());
    return agent;
}

void agents_open(struct agents *agents, const struct sluice_agent_attr *owner,
                 const struct sluice_agent_attr *holder)
{
    memset(agents, 0, sizeof(*agents));
    sides_open(&agents->sides);
    agents->owner = make_agent(agents->sides.pds[0], owner, 0);
    agents->holder =
        make_agent(agents->sides.pds[1], holder, holder == NULL ? SLUICE_AGENT_NO_THREAD : 0);
    require_ok(sluice_agent_listen(agents->owner, "127.0.0.1:0", NULL));
    require(sluice_agent_address(agents->owner, agents->address, sizeof(agents->address)) > 0, "%s",
            sluice_last_error());
    agents->at_holder = sluice_agent_connect(agents->holder, agents->address, NULL, DEADLINE);
    require(agents->at_holder, "%s", sluice_last_error());
    agents->at_owner = sluice_agent_next_peer(agents->owner, DEADLINE);
    require(agents->at_owner, "%s", sluice_last_error());
    memory_open(&agents->memory, agents->sides.pds[1], MEMORY);
}

void agents_close(struct agents *agents)
{
    sluice_agent_peer_close(agents->at_holder);
    sluice_agent_peer_close(agents->at_owner);
    sluice_agent_close(agents->holder);
    sluice_agent_close(agents->owner);
    memory_close(&agents->memory);
    sides_close(&agents->sides);
}

struct sluice_agent_info agent_info(struct sluice_agent *agent)
{
    struct sluice_agent_info info = {.size = sizeof(info)};
    require_ok(sluice_agent_query(agent, &info));
    return info;
}

struct sluice_agent_peer_info peer_info(struct sluice_agent_peer *peer)
{
    struct sluice_agent_peer_info info = {.size = sizeof(info)};
    require_ok(sluice_agent_peer_query(peer, &info));
    return info;
}

struct sluice_agent_mr_info mr_info(struct sluice_agent_mr *mr)
{
    struct sluice_agent_mr_info info = {.size = sizeof(info)};
    require_ok(sluice_agent_mr_query(mr, &info));
    return info;
}

struct sluice_agent_mr *request(struct agents *agents, uint64_t length, uint32_t access,
                                int64_t lease)
{
    struct sluice_agent_mr *mr =
        sluice_agent_request_mr(agents->at_holder, length, access, lease, DEADLINE);
    require(mr, "%s", sluice_last_error());
    return mr;
}

void region_works(struct agents *agents, struct sluice_agent_mr *mr, uint64_t key)
{
    size_t length = (size_t)mr_info(mr).remote.length;
    struct sluice_sge sge = memory_sge(&agents->memory, 0, length);
    pattern_fill(agents->memory.bytes, length, key);
    require_ok(sluice_agent_mr_write(mr, 0, &sge, 1, DEADLINE));
    memset(agents->memory.bytes, 0, length);
    require_ok(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE));
    pattern_check(agents->memory.bytes, length, key);
}

static bool reached(struct sluice_agent *agent, uint64_t (*number)(const void *, size_t),
                    size_t offset, uint64_t wanted)
{
    int64_t end = fair_now() + DEADLINE;
    struct sluice_agent_info info;
    do {
        require(sluice_agent_progress(agent) >= 0, "%s", sluice_last_error());
        info = agent_info(agent);
        if (number(&info, offset) == wanted) {
            return true;
        }
        poll(NULL, 0, 1);
    } while (fair_now() < end);
    return false;
}

static uint64_t number64(const void *info, size_t offset)
{
    uint64_t number;
    memcpy(&number, (const char *)info + offset, sizeof(number));
    return number;
}

static uint64_t number32(const void *info, size_t offset)
{
    uint32_t number;
    memcpy(&number, (const char *)info + offset, sizeof(number));
    return number;
}

void await_number(struct sluice_agent *agent, size_t offset, uint64_t wanted)
{
    require(reached(agent, number64, offset, wanted), "number at %zu is not %llu", offset,
            (unsigned long long)wanted);
}

void await_regions(struct sluice_agent *agent, uint32_t wanted)
{
    require(reached(agent, number32, offsetof(struct sluice_agent_info, regions), wanted),
            "%u regions", agent_info(agent).regions);
}

static void *run_sender(void *argument)
{
    struct sender *sender = argument;
    sender->error =
        sluice_agent_send(sender->peer, sender->bytes, sender->length, sender->deadline);
    return NULL;
}

void start_sender(struct sender *sender, struct sluice_agent_peer *peer, const void *bytes,
                  size_t length, int64_t deadline)
{
    *sender = (struct sender){.peer = peer, .bytes = bytes, .length = length, .deadline = deadline};
    require(pthread_create(&sender->thread, NULL, run_sender, sender) == 0, "no thread");
}

void join_sender(struct sender *sender, int wanted)
{
    require(pthread_join(sender->thread, NULL) == 0, "no end");
    require(sender->error == wanted, "%d, not %d", sender->error, wanted);
}

struct sluice_agent_message *receive(struct sluice_agent *agent, struct sluice_agent_peer *peer)
{
    struct sluice_agent_message *message = sluice_agent_receive(agent, peer, DEADLINE);
    require(message, "%s", sluice_last_error());
    return message;
}

void receive_pattern(struct sluice_agent *agent, struct sluice_agent_peer *peer, size_t length,
                     uint64_t key)
{
    struct sluice_agent_message *message = receive(agent, peer);
    require(sluice_agent_message_length(message) == length, "%zu, not %zu",
            sluice_agent_message_length(message), length);
    require(sluice_agent_message_addr(message) != NULL, "no bytes");
    pattern_check(sluice_agent_message_addr(message), length, key);
    sluice_agent_message_free(message);
}

void pass(struct agents *agents, bool to_owner, size_t length, uint64_t key)
{
    struct sluice_agent_peer *from = to_owner ? agents->at_holder : agents->at_owner;
    struct sender sender;
    uint8_t *bytes = malloc(length + 1);
    pattern_fill(bytes, length, key);
    start_sender(&sender, from, bytes, length, DEADLINE);
    receive_pattern(to_owner ? agents->owner : agents->holder,
                    to_owner ? agents->at_owner : agents->at_holder, length, key);
    join_sender(&sender, 0);
    require_ok(sluice_agent_flush(from, DEADLINE));
    free(bytes);
}
