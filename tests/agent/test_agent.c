/* SPDX-License-Identifier: MIT */
/*
 * Memory as a service: peers come and go; memory is allocated at them, used and given back, within
 * quota and rights.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/group.h"
#include "../support/process.h"
#include "agents.h"

#define LENGTH 100000

TEST(both_sides_know_each_other)
{
    struct agents agents;
    struct sluice_agent_attr attr = {.size = sizeof(attr),
                                     .quota = 1 << 20,
                                     .max_message = 5000000,
                                     .max_lease = SLUICE_S(5),
                                     .eager = 1000,
                                     .access = SLUICE_ACCESS_REMOTE_READ,
                                     .secret_file = ""};
    struct sluice_agent_peer_info info;
    agents_open(&agents, &attr, NULL);
    info = peer_info(agents.at_holder);
    require(info.state == SLUICE_AGENT_PEER_CONNECTED && info.error == 0, "%u", info.state);
    require(info.quota == 1 << 20 && info.max_message == 5000000, "%llu",
            (unsigned long long)info.quota);
    require(info.max_lease == SLUICE_S(5) && info.eager == 1000, "%u", info.eager);
    require(info.access == SLUICE_ACCESS_REMOTE_READ, "%#x", info.access);
    require(info.address[0] != 0 && info.text[0] == 0, "%s", info.text);
    info = peer_info(agents.at_owner);
    require(info.quota == 64 << 20 && info.eager == 1000, "%u", info.eager);
    require(agent_info(agents.owner).peers == 1 && agent_info(agents.holder).peers == 1, "not one");
    agents_close(&agents);
}

TEST(memory_is_requested_used_and_released)
{
    struct agents agents;
    struct sluice_agent_mr *mr;
    struct sluice_agent_mr_info info;
    agents_open(&agents, NULL, NULL);
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
    info = mr_info(mr);
    require(info.remote.length == LENGTH && info.access == ACCESS_READ_WRITE, "%llu",
            (unsigned long long)info.remote.length);
    require(info.lease > SLUICE_S(50) && info.lease <= SLUICE_S(60), "%lld", (long long)info.lease);
    struct sluice_sge sge = memory_sge(&agents.memory, 0, LENGTH);
    memset(agents.memory.bytes, 1, LENGTH);
    require_ok(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE));
    value_check(agents.memory.bytes, LENGTH, 0);
    region_works(&agents, mr, 1);
    require(agent_info(agents.owner).regions == 1, "not one region");
    require(agent_info(agents.owner).bytes == 102400, "%llu",
            (unsigned long long)agent_info(agents.owner).bytes);
    require(peer_info(agents.at_owner).regions == 1 && peer_info(agents.at_holder).held == 1,
            "not one");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    require(agent_info(agents.owner).regions == 0 && agent_info(agents.owner).bytes == 0,
            "it is there still");
    require(agent_info(agents.owner).allocated == 1 && agent_info(agents.holder).held == 0,
            "not counted");
    agents_close(&agents);
}

TEST(pieces_of_a_region_are_used)
{
    struct agents agents;
    struct sluice_agent_mr *mr;
    struct sluice_sge sges[3];
    agents_open(&agents, NULL, NULL);
    mr = request(&agents, 4096, ACCESS_READ_WRITE, 0);
    memory_split(&agents.memory, 0, 1000, sges, 3);
    pattern_fill(agents.memory.bytes, 1000, 7);
    require_ok(sluice_agent_mr_write(mr, 3096, sges, 3, DEADLINE));
    require_error(sluice_agent_mr_write(mr, 3097, sges, 3, DEADLINE), -ERANGE, "");
    require_error(sluice_agent_mr_read(mr, 4097, NULL, 0, DEADLINE), -ERANGE, "");
    require_ok(sluice_agent_mr_read(mr, 4096, NULL, 0, DEADLINE));
    memset(agents.memory.bytes, 0, 1000);
    require_ok(sluice_agent_mr_read(mr, 3096, sges, 3, DEADLINE));
    pattern_check(agents.memory.bytes, 1000, 7);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
}

TEST(atomics_work_where_there_are_some)
{
    struct agents agents;
    struct sluice_agent_mr *mr;
    uint64_t *word;
    agents_open(&agents, NULL, NULL);
    if (context_info(agents.sides.contexts[0]).atomics == SLUICE_ATOMICS_NONE) {
        require_null(sluice_agent_request_mr(agents.at_holder, 8, ACCESS_REMOTE, 0, DEADLINE),
                     EACCES, "rights");
        agents_close(&agents);
        return;
    }
    mr = request(&agents, 64, ACCESS_REMOTE, 0);
    word = (uint64_t *)(void *)agents.memory.bytes;
    struct sluice_sge sge = memory_sge(&agents.memory, 0, 8);
    require_ok(sluice_agent_mr_fetch_add(mr, 8, &sge, 5, DEADLINE));
    require(*word == 0, "%llu", (unsigned long long)*word);
    require_ok(sluice_agent_mr_compare_swap(mr, 8, &sge, 5, 11, DEADLINE));
    require(*word == 5, "%llu", (unsigned long long)*word);
    require_ok(sluice_agent_mr_compare_swap(mr, 8, &sge, 5, 12, DEADLINE));
    require(*word == 11, "%llu", (unsigned long long)*word);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
}

TEST(quota_and_rights_are_the_owners)
{
    struct agents agents;
    struct sluice_agent_mr *mrs[3];
    struct sluice_agent_attr attr = {.size = sizeof(attr),
                                     .access = ACCESS_READ_WRITE,
                                     .quota = 5 * 4096,
                                     .max_regions = 3,
                                     .secret_file = ""};
    agents_open(&agents, &attr, NULL);
    require_null(
        sluice_agent_request_mr(agents.at_holder, 5 * 4096 + 1, ACCESS_READ_WRITE, 0, DEADLINE),
        EDQUOT, "quota is 20480 bytes");
    require_null(sluice_agent_request_mr(agents.at_holder, 8, ACCESS_REMOTE, 0, DEADLINE), EACCES,
                 "rights");
    mrs[0] = request(&agents, 1, SLUICE_ACCESS_REMOTE_READ, 0);
    mrs[1] = request(&agents, 4097, SLUICE_ACCESS_REMOTE_WRITE, 0);
    require_null(sluice_agent_request_mr(agents.at_holder, 8193, ACCESS_READ_WRITE, 0, DEADLINE),
                 EDQUOT, "12288 are in use");
    mrs[2] = request(&agents, 8192, ACCESS_READ_WRITE, 0);
    require_null(sluice_agent_request_mr(agents.at_holder, 1, ACCESS_READ_WRITE, 0, DEADLINE),
                 EDQUOT, "3 regions");
    struct sluice_sge sge = memory_sge(&agents.memory, 0, 1);
    require_error(sluice_agent_mr_write(mrs[0], 0, &sge, 1, DEADLINE), -EACCES, "rights");
    require_error(sluice_agent_mr_read(mrs[1], 0, &sge, 1, DEADLINE), -EACCES, "rights");
    require_ok(sluice_agent_mr_read(mrs[0], 0, &sge, 1, DEADLINE));
    require(agent_info(agents.owner).denied == 4, "%llu",
            (unsigned long long)agent_info(agents.owner).denied);
    require_ok(sluice_agent_mr_release(mrs[2], DEADLINE));
    mrs[2] = request(&agents, 8192, ACCESS_READ_WRITE, 0);
    for (int i = 0; i < 3; i++) {
        require_ok(sluice_agent_mr_release(mrs[i], DEADLINE));
    }
    require(agent_info(agents.owner).bytes == 0, "some is left");
    require(peer_info(agents.at_holder).reconnects == 0, "the connection was harmed");
    agents_close(&agents);
}

/* Requests that the program must not make. */
TEST(arguments_are_checked)
{
    struct agents agents;
    struct sluice_agent_attr attr = {.size = sizeof(attr), .eager = 63};
    struct sluice_agent_mr *mr;
    agents_open(&agents, NULL, NULL);
    require_null(sluice_agent_open(agents.sides.pds[0], &attr), EINVAL, "eager 63");
    attr = (struct sluice_agent_attr){.size = sizeof(attr), .flags = 2};
    require_null(sluice_agent_open(agents.sides.pds[0], &attr), EINVAL, "flags 0x2");
    attr = (struct sluice_agent_attr){.size = sizeof(attr), .max_lease = -1};
    require_null(sluice_agent_open(agents.sides.pds[0], &attr), EINVAL, "max_lease");
    require_null(sluice_agent_open(NULL, NULL), EINVAL, "domain");
    require_null(sluice_agent_request_mr(agents.at_holder, 0, ACCESS_READ_WRITE, 0, DEADLINE),
                 EINVAL, "0 bytes");
    require_null(sluice_agent_request_mr(agents.at_holder, 8, 0, 0, DEADLINE), EINVAL, "access 0");
    require_null(
        sluice_agent_request_mr(agents.at_holder, 8, SLUICE_ACCESS_LOCAL_WRITE, 0, DEADLINE),
        EINVAL, "access 0x1");
    require_null(sluice_agent_request_mr(agents.at_holder, 8, ACCESS_READ_WRITE, -1, DEADLINE),
                 EINVAL, "lease -1");
    require_null(sluice_agent_request_mr(agents.at_holder, 8, ACCESS_READ_WRITE, 0, -1), EINVAL,
                 "deadline -1");
    require_null(sluice_agent_request_mr(NULL, 8, ACCESS_READ_WRITE, 0, DEADLINE), EINVAL,
                 "not a peer");
    require_error(sluice_agent_listen(agents.owner, "127.0.0.1:0", NULL), -EBUSY, "already");
    require_error(sluice_agent_address(agents.holder, NULL, 0), -ENOENT, "does not listen");
    mr = request(&agents, 8, SLUICE_ACCESS_REMOTE_READ, 0);
    require_error(sluice_agent_mr_read(mr, 0, NULL, 1, DEADLINE), -EINVAL, "sges");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
}

/* A mistake anywhere in a list is found before anything of it is done. */
TEST(lists_are_checked_first)
{
    static const struct {
        uint32_t opcode, peer, flags, sge_count, reserved;
        int error;
        const char *words;
    } mistakes[] = {
        {SLUICE_OP_SEND, 0, 0, 1, 0, -EINVAL, "request 1: send messages with"},
        {SLUICE_OP_WRITE, 1, 0, 1, 0, -EINVAL, "request 1: peer must be 0"},
        {SLUICE_OP_WRITE, 0, SLUICE_IMMEDIATE, 1, 0, -EINVAL, "request 1: an immediate"},
        {SLUICE_OP_WRITE, 0, UINT32_C(1) << 31, 1, 0, -EINVAL, "request 1 has flags"},
        {SLUICE_OP_WRITE, 0, 0, 0, 0, -EINVAL, "request 1 has a list and sge_count 0"},
        {SLUICE_OP_WRITE, 0, 0, 100, 0, -EINVAL, "request 1 has 100 SGEs"},
        {SLUICE_OP_READ, 0, 0, 1, 1, -EINVAL, "request 1: reserved is 1"},
        {SLUICE_OP_READ, 0, 0, 1, 0, -ERANGE, "request 1: a read of 64 bytes"},
    };
    struct agents agents;
    struct sluice_sge sge;
    struct sluice_agent_mr *mr;
    agents_open(&agents, NULL, NULL);
    mr = request(&agents, 64, ACCESS_READ_WRITE, 0);
    sge = memory_sge(&agents.memory, 0, 64);
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        struct sluice_request requests[2];
        memset(agents.memory.bytes, 5, 64);
        requests[0] = request_of(SLUICE_OP_WRITE, 0, &sge);
        requests[0].remote = mr_info(mr).remote;
        requests[1] = request_of(mistakes[i].opcode, mistakes[i].peer, &sge);
        requests[1].remote = requests[0].remote;
        requests[1].remote.length -= mistakes[i].error == -ERANGE;
        requests[1].flags = mistakes[i].flags;
        requests[1].sge_count = mistakes[i].sge_count;
        requests[1].reserved = mistakes[i].reserved;
        require_error(sluice_agent_submit(agents.at_holder, requests, 2, DEADLINE, NULL),
                      mistakes[i].error, mistakes[i].words);
        require_ok(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE));
        value_check(agents.memory.bytes, 64, 0);
    }
    require(peer_info(agents.at_holder).reconnects == 0, "the connection was harmed");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
}

/* The text gives the reason of the failed request, not of an earlier failure. */
TEST(text_is_of_the_request_that_failed)
{
    struct agents agents;
    struct sluice_request write = {.opcode = SLUICE_OP_WRITE, .sge_count = 1};
    struct sluice_agent_mr *mr;
    require_result(sluice_agent_progress(NULL), -EINVAL);
    agents_open(&agents, NULL, NULL);
    require(strstr(sluice_last_error(), "not an agent"), "%s", sluice_last_error());
    mr = request(&agents, 64, ACCESS_READ_WRITE, 0);
    write.sge = memory_sge(&agents.memory, 0, 64);
    write.remote = mr_info(mr).remote;
    write.remote.rkey ^= 1;
    require_error(sluice_agent_submit(agents.at_holder, &write, 1, DEADLINE, NULL), -EACCES,
                  "remote access error");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
}

/* The holder leaves, or has died: its memory is reclaimed, and waits for it end. */
TEST(a_lost_peers_memory_is_reclaimed)
{
    struct agents agents;
    struct sluice_agent_mr *mrs[2];
    agents_open(&agents, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        mrs[i] = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
    }
    sluice_agent_peer_close(agents.at_holder);
    agents.at_holder = NULL;
    await_regions(agents.owner, 0);
    require(agent_info(agents.owner).reclaimed == 2 && agent_info(agents.owner).bytes == 0, "%llu",
            (unsigned long long)agent_info(agents.owner).reclaimed);
    require(peer_info(agents.at_owner).state == SLUICE_AGENT_PEER_LOST, "it is there still");
    require(peer_info(agents.at_owner).error == 0, "%d", peer_info(agents.at_owner).error);
    require_words(peer_info(agents.at_owner).text, "has left");
    require_error(sluice_agent_send(agents.at_owner, "x", 1, DEADLINE), -ENOTCONN, "has left");
    struct sluice_sge sge = memory_sge(&agents.memory, 0, 8);
    for (int i = 0; i < 2; i++) {
        require_error(sluice_agent_mr_read(mrs[i], 0, &sge, 1, DEADLINE), -ENOTCONN, "left");
        require(mr_info(mrs[i]).lease == 0, "a lease");
        require_result(sluice_agent_mr_release(mrs[i], DEADLINE), -ENOTCONN);
    }
    agents_close(&agents);
}

/* This holds whichever side is closed first. */
TEST(an_agent_may_be_closed_first, .times = 2)
{
    struct agents agents;
    struct sluice_agent_mr *mr;
    agents_open(&agents, NULL, NULL);
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
    require_ok(sluice_agent_send(agents.at_owner, "left behind", 11, DEADLINE));
    struct sluice_agent_message *message =
        sluice_agent_receive(agents.holder, agents.at_holder, DEADLINE);
    require(message, "%s", sluice_last_error());
    sluice_agent_close(_i == 0 ? agents.holder : agents.owner);
    struct sluice_sge sge = memory_sge(&agents.memory, 0, 8);
    if (_i == 0) {
        require_error(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE), -ENOTCONN, "is lost");
        sluice_agent_close(agents.owner);
    } else {
        require_null(sluice_agent_receive(agents.holder, agents.at_holder, DEADLINE), ENOTCONN,
                     "left");
        require_error(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE), -ENOTCONN, "left");
        sluice_agent_close(agents.holder);
    }
    require(sluice_agent_message_length(message) == 11, "another length");
    sluice_agent_message_free(message);
    require_result(sluice_agent_mr_release(mr, DEADLINE), -ENOTCONN);
    sluice_agent_peer_close(agents.at_holder);
    sluice_agent_peer_close(agents.at_owner);
    memory_close(&agents.memory);
    sides_close(&agents.sides);
}

/* Several peers connect; one too many gets that reason. */
TEST(peers_beyond_the_limit_are_refused)
{
    struct agents agents;
    struct sluice_agent_peer *peers[3];
    struct sluice_agent_attr attr = {.size = sizeof(attr), .max_peers = 3, .secret_file = ""};
    agents_open(&agents, &attr, NULL);
    for (int i = 0; i < 2; i++) {
        peers[i] = sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
        require(peers[i], "%s", sluice_last_error());
    }
    require_null(sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE), ECONNREFUSED,
                 "as many peers as it takes");
    require(agent_info(agents.owner).peers == 3, "%u", agent_info(agents.owner).peers);
    sluice_agent_peer_close(peers[0]);
    int64_t end = fair_now() + DEADLINE;
    while (agent_info(agents.owner).peers == 3 && fair_now() < end) {
        poll(NULL, 0, 1);
    }
    peers[0] = sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
    require(peers[0], "%s", sluice_last_error());
    sluice_agent_peer_close(peers[0]);
    sluice_agent_peer_close(peers[1]);
    agents_close(&agents);
}

/* Clients that come together to an agent that has one place. */
#define COMERS 6

struct comer {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct sluice_agent *agent;
    const char *address;
    struct sluice_agent_peer *peer;
    int error;
};

static void *come(void *argument)
{
    struct comer *comer = argument;
    (void)pthread_barrier_wait(comer->barrier);
    comer->peer = sluice_agent_connect(comer->agent, comer->address, NULL, DEADLINE);
    comer->error = comer->peer == NULL ? -errno : 0;
    /* The agent says so even to one that has connected its end already. */
    require(comer->error == 0 ||
                ((comer->error == -ECONNREFUSED || comer->error == -ECONNABORTED) &&
                 strstr(sluice_last_error(), "as many peers as it takes") != NULL),
            "%d: %s", comer->error, sluice_last_error());
    return NULL;
}

/* One gets in, each other one is turned away, and then the thread of the agent sleeps. */
TEST(a_full_agent_turns_away_who_came_together)
{
    const struct sluice_agent_attr attr = {
        .size = sizeof(attr), .flags = SLUICE_AGENT_NO_THREAD, .secret_file = ""};
    const struct sluice_agent_attr narrow = {
        .size = sizeof(narrow), .max_peers = 1, .secret_file = ""};
    struct comer comers[COMERS];
    pthread_barrier_t barrier;
    struct sides sides;
    char address[64];
    int in = 0;
    sides_open(&sides);
    struct sluice_agent *agent = sluice_agent_open(sides.pds[0], &narrow);
    require(agent, "%s", sluice_last_error());
    require_ok(sluice_agent_listen(agent, "127.0.0.1:0", NULL));
    require(sluice_agent_address(agent, address, sizeof(address)) > 0, "%s", sluice_last_error());
    require(pthread_barrier_init(&barrier, NULL, COMERS) == 0, "no barrier");
    for (int i = 0; i < COMERS; i++) {
        comers[i] = (struct comer){.barrier = &barrier,
                                   .agent = sluice_agent_open(sides.pds[1], &attr),
                                   .address = address};
        require(comers[i].agent, "%s", sluice_last_error());
        require(pthread_create(&comers[i].thread, NULL, come, &comers[i]) == 0, "no thread");
    }
    for (int i = 0; i < COMERS; i++) {
        require(pthread_join(comers[i].thread, NULL) == 0, "no end");
        in += comers[i].error == 0;
        require(comers[i].error != -ETIMEDOUT, "%d was neither let in nor turned away", i);
    }
    require(in == 1 && agent_info(agent).peers == 1, "%d got in", in);
    /* It is counted after it was told. */
    int64_t end = fair_now() + DEADLINE;
    while (agent_info(agent).turned_away < COMERS - 1 && fair_now() < end) {
        let_pass(SLUICE_MS(1));
    }
    require(agent_info(agent).turned_away == COMERS - 1, "%llu",
            (unsigned long long)agent_info(agent).turned_away);
    int64_t used = cpu_used();
    let_pass(SLUICE_MS(500));
    used = cpu_used() - used;
    require(used < SLUICE_MS(250), "%lld us while there is nothing to do",
            (long long)(used / 1000));
    for (int i = 0; i < COMERS; i++) {
        sluice_agent_peer_close(comers[i].peer);
        sluice_agent_close(comers[i].agent);
    }
    pthread_barrier_destroy(&barrier);
    sluice_agent_close(agent);
    sides_close(&sides);
}

/* A device answers for a process that is stopped, and has times of its own. */
static bool device_answers(void)
{
    return !device_is_soft();
}

/*
 * Keep-alive of idle peers is due at whole seconds, for all of them at once, whenever they last
 * sent. A device may have times of its own.
 */
TEST(keepalive_of_idle_peers_is_due_together, .unless = device_answers)
{
    struct agents agents;
    struct sluice_agent_peer *peer;
    int64_t due = 0, before, after;
    agents_open(&agents, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        while (sluice_agent_arm(agents.holder, NULL) == 1) {
            continue;
        }
        before = clock_now();
        require(sluice_agent_arm(agents.holder, &due) == 0, "it has news");
        after = clock_now();
        require(due > SLUICE_S(1) && due <= SLUICE_S(6), "%lld", (long long)due);
        /* A whole second lies in the range of possible values. */
        require((after + due) / SLUICE_S(1) * SLUICE_S(1) >= before + due, "%lld",
                (long long)(before + due));
        peer = sluice_agent_connect(agents.holder, agents.address, NULL, DEADLINE);
        require(peer, "%s", sluice_last_error());
        sluice_agent_peer_close(peer);
    }
    agents_close(&agents);
}

/* No descriptor is left open once everything is closed. */
TEST(nothing_is_left)
{
    struct agents agents;
    int fds[2];
    for (int round = 0; round < 2; round++) {
        agents_open(&agents, NULL, NULL);
        struct sluice_agent_mr *mr = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
        region_works(&agents, mr, 5);
        require_ok(sluice_agent_mr_release(mr, DEADLINE));
        agents_close(&agents);
        fds[round] = round == 0 ? count_fds() : settle_fds(fds[0]);
    }
    require(fds[1] <= fds[0], "%d descriptors, and %d before", fds[1], fds[0]);
}

/* Two processes: an owner, rank 0, and a holder that has connected to it. */
struct end {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_agent *agent;
    struct sluice_agent_peer *peer;
    struct memory given;             /* of the owner's */
    struct sluice_agent_mr *held[3]; /* by the holder */
    pid_t holder;
};

struct card {
    char address[64];
    pid_t pid;
};

static void end_open(struct end *end, struct rank *rank, const struct sluice_agent_attr *attr)
{
    struct card own[2] = {{.pid = getpid()}}, cards[2];
    memset(end, 0, sizeof(*end));
    end->context = open_context();
    end->pd = sluice_pd_alloc(end->context);
    require(end->pd, "%s", sluice_last_error());
    end->agent = make_agent(end->pd, attr, rank->index == 0 ? 0 : SLUICE_AGENT_NO_THREAD);
    memory_open(&end->given, end->pd, LENGTH);
    if (rank->index == 0) {
        require_ok(sluice_agent_listen(end->agent, "127.0.0.1:0", NULL));
        require(sluice_agent_address(end->agent, own[0].address, sizeof(own[0].address)) > 0, "%s",
                sluice_last_error());
    }
    own[1] = own[0];
    rank_exchange(rank, own, cards, sizeof(own[0]));
    end->holder = cards[1].pid;
    end->peer = rank->index == 0
                    ? sluice_agent_next_peer(end->agent, DEADLINE)
                    : sluice_agent_connect(end->agent, cards[0].address, NULL, DEADLINE);
    require(end->peer, "%s", sluice_last_error());
}

static void end_close(struct end *end)
{
    for (int i = 0; i < 3 && end->held[i] != NULL; i++) {
        require_result(sluice_agent_mr_release(end->held[i], DEADLINE), -ENOTCONN);
    }
    sluice_agent_peer_close(end->peer);
    sluice_agent_close(end->agent);
    memory_close(&end->given);
    sluice_pd_free(end->pd);
    sluice_context_close(end->context);
}

/*
 * Ends the share that the holder has: two regions allocated for it, and one of the owner's program.
 */
static void end_share(struct end *end, struct rank *rank)
{
    if (rank->index == 0) {
        require_ok(sluice_agent_send_local_mr(end->peer, end->given.mr, 0, LENGTH,
                                              ACCESS_READ_WRITE, SLUICE_FOREVER, DEADLINE, NULL));
    } else {
        for (int i = 0; i < 2; i++) {
            end->held[i] =
                sluice_agent_request_mr(end->peer, LENGTH, ACCESS_READ_WRITE, 0, DEADLINE);
            require(end->held[i], "%s", sluice_last_error());
        }
        end->held[2] = sluice_agent_receive_remote_mr(end->agent, end->peer, DEADLINE);
        require(end->held[2], "%s", sluice_last_error());
    }
    rank_barrier(rank);
    require(rank->index != 0 || agent_info(end->agent).regions == 3, "not all regions");
}

/* Requires that everything was reclaimed, waits for the holder end, and the agent still works. */
static void owner_has_all(struct end *end, const char *words)
{
    struct sluice_agent_info info;
    require_null(sluice_agent_receive(end->agent, end->peer, 3 * DEADLINE), ENOTCONN, words);
    info = agent_info(end->agent);
    require(info.regions == 0 && info.bytes == 0 && info.peers == 0, "%u regions", info.regions);
    require(info.reclaimed == 3 && info.lost == 1, "%llu", (unsigned long long)info.reclaimed);
    require(peer_info(end->peer).error == -ECONNRESET, "%d", peer_info(end->peer).error);
    require_null(sluice_agent_next_peer(end->agent, 0), ETIMEDOUT, "no peer");
}

static void kill_holder(struct rank *rank)
{
    struct end end;
    end_open(&end, rank, NULL);
    end_share(&end, rank);
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    rank_kill(rank, 1);
    owner_has_all(&end, "is lost");
    end_close(&end);
}

TEST(memory_of_the_killed_is_reclaimed, .group = "processes", .unless = device_is_pretend)
{
    group_run(2, kill_holder, NULL, 60);
}

/* The holder does not answer, which only keepalive notices: it is lost, and learns that. */
static void stop_holder(struct rank *rank)
{
    const struct sluice_agent_attr watchful = {
        .size = sizeof(watchful), .keepalive = SLUICE_S(1), .secret_file = ""};
    struct end end;
    end_open(&end, rank, rank->index == 0 ? &watchful : NULL);
    end_share(&end, rank);
    if (rank->index == 0) {
        require(kill(end.holder, SIGSTOP) == 0, "%s", strerror(errno));
        owner_has_all(&end, "silent");
        require(kill(end.holder, SIGCONT) == 0, "%s", strerror(errno));
    } else {
        require_null(sluice_agent_receive(end.agent, end.peer, 3 * DEADLINE), ENOTCONN, "is lost");
    }
    rank_barrier(rank);
    end_close(&end);
}

TEST(silent_peer_is_lost, .group = "processes", .unless = device_answers)
{
    group_run(2, stop_holder, NULL, 60);
}

int main(void)
{
    static const struct tests groups[] = {{"self", WIRE_SELF, 60},
                                          {"tcp", WIRE_TCP, 60},
                                          {"shm", WIRE_SHM, 60},
                                          {"processes", WIRE_SHM, 60}};
    return run_groups("agent", groups, COUNT(groups));
}
