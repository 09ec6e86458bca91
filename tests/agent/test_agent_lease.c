/* SPDX-License-Identifier: MIT */
/*
 * Leases: a late holder is refused by its own library, and if it kept the key by the owner's, with
 * the memory untouched; and a data queue pair that fails is connected again, with requests on it or
 * without.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "../support/fair.h"
#include "../support/process.h"
#include "agents.h"

#define LENGTH 4096
#define LEASE SLUICE_MS(50)

/* Log lines about late use that name a peer and its region. */
struct late_lines {
    char words[100];
    atomic_int count;
};

static void read_log(uint32_t level, const char *line, void *user)
{
    struct late_lines *lines = user;
    (void)level;
    if (strstr(line, lines->words) != NULL && strstr(line, "ms after it") != NULL) {
        atomic_fetch_add(&lines->count, 1);
    }
}

/* The owner ends a lease one second late: in short runs only one wire waits for that. */
static bool waits_for_end(void)
{
    return !short_run() || current_wire() == WIRE_SELF;
}

/* Waits until the owner has ended the region, which was its program's: by lease or revocation. */
static void await_end(struct agents *agents, uint64_t id, bool by_lease)
{
    if (by_lease) {
        await_info(agents->owner, expired, 1);
    } else {
        require_ok(sluice_agent_revoke_mr(agents->at_owner, id));
    }
}

static void await_lease(struct sluice_agent_mr *mr)
{
    int64_t left;
    while ((left = mr_info(mr).lease) > 0) {
        let_pass(left);
    }
}

/*
 * Late use is refused by the holder's library: nothing is posted, and the connection is unharmed.
 */
TEST(a_late_use_is_refused_here)
{
    struct agents agents;
    struct sluice_agent_mr *mr;
    struct sluice_sge sge;
    agents_open(&agents, NULL, NULL);
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, LEASE);
    sge = memory_sge(&agents.memory, 0, 8);
    await_lease(mr);
    require_error(sluice_agent_mr_write(mr, 0, &sge, 1, DEADLINE), -EACCES, "its lease is over");
    require_error(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE), -EACCES, "its lease is over");
    require(agent_info(agents.holder).refused_late == 2, "%llu",
            (unsigned long long)agent_info(agents.holder).refused_late);
    if (waits_for_end()) {
        await_info(agents.owner, expired, 1);
        require(agent_info(agents.owner).regions == 0, "it is there still");
        require(agent_info(agents.owner).bytes == 0, "the quota has it still");
    }
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    require(agent_info(agents.owner).bytes == 0, "the quota has it still");
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
    region_works(&agents, mr, 1);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    require(peer_info(agents.at_holder).reconnects == 0, "the connection was harmed");
    require(agent_info(agents.owner).unasked == 0, "a release was refused");
    agents_close(&agents);
}

/* The owner limits the lease, and a region whose lease is over cannot be passed on. */
TEST(leases_are_the_owners)
{
    struct agents agents;
    struct sluice_agent_attr attr = {.size = sizeof(attr), .max_lease = LEASE, .secret_file = ""};
    struct sluice_agent_mr *mr;
    agents_open(&agents, &attr, NULL);
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, SLUICE_FOREVER);
    require(mr_info(mr).lease <= LEASE, "%lld", (long long)mr_info(mr).lease);
    await_lease(mr);
    require_error(sluice_agent_mr_send_back(mr, DEADLINE), -EACCES, "its lease is over");
    agents_close(&agents);
}

/* A lease is renewed whenever its holder asks in time, each time up to the owner's limit. */
TEST(leases_are_renewed)
{
    struct agents agents;
    struct sluice_agent_attr attr = {
        .size = sizeof(attr), .max_lease = SLUICE_S(100), .secret_file = ""};
    struct sluice_agent_mr *mr;
    agents_open(&agents, &attr, NULL);
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, SLUICE_S(50));
    require_ok(sluice_agent_mr_renew(mr, SLUICE_S(80), DEADLINE));
    require(mr_info(mr).lease > SLUICE_S(50) && mr_info(mr).lease <= SLUICE_S(80), "%lld",
            (long long)mr_info(mr).lease);
    /* A renewal never shortens a lease. */
    require_ok(sluice_agent_mr_renew(mr, 1, DEADLINE));
    require(mr_info(mr).lease > SLUICE_S(50), "%lld", (long long)mr_info(mr).lease);
    require_ok(sluice_agent_mr_renew(mr, SLUICE_FOREVER, DEADLINE));
    require(mr_info(mr).lease > SLUICE_S(80) && mr_info(mr).lease <= SLUICE_S(100), "%lld",
            (long long)mr_info(mr).lease);
    require_ok(sluice_agent_mr_renew(mr, 0, DEADLINE));
    require(mr_info(mr).lease > SLUICE_S(80) && mr_info(mr).lease <= SLUICE_S(100), "%lld",
            (long long)mr_info(mr).lease);
    region_works(&agents, mr, 1);
    require_error(sluice_agent_mr_renew(mr, -1, DEADLINE), -EINVAL, "lease -1");
    require_error(sluice_agent_mr_renew(mr, 1, -1), -EINVAL, "deadline -1");
    require_error(sluice_agent_mr_renew(NULL, 1, DEADLINE), -EINVAL, "not a region");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
}

/* Returns a region that was renewed before the end of its first lease, however long that took. */
static struct sluice_agent_mr *request_and_renew(struct agents *agents, int64_t lease)
{
    for (;;) {
        struct sluice_agent_mr *mr = request(agents, LENGTH, ACCESS_READ_WRITE, lease);
        int error = sluice_agent_mr_renew(mr, SLUICE_S(100), DEADLINE);
        if (error == 0) {
            return mr;
        }
        require(error == -EACCES, "%d: %s", error, sluice_last_error());
        require_ok(sluice_agent_mr_release(mr, DEADLINE));
    }
}

/* The owner keeps a renewed region: its first lease and the second behind it no longer count. */
TEST(renewed_region_is_kept)
{
    struct agents agents;
    struct sluice_agent_attr attr = {
        .size = sizeof(attr), .max_lease = SLUICE_S(100), .secret_file = ""};
    struct sluice_agent_mr *kept, *other;
    if (!waits_for_end()) {
        return;
    }
    agents_open(&agents, &attr, NULL);
    kept = request_and_renew(&agents, SLUICE_MS(200));
    other = request(&agents, LENGTH, ACCESS_READ_WRITE, SLUICE_MS(200));
    await_info(agents.owner, expired, 1);
    require(agent_info(agents.owner).regions == 1, "%u regions", agent_info(agents.owner).regions);
    region_works(&agents, kept, 2);
    require_error(sluice_agent_mr_renew(other, 0, DEADLINE), -EACCES, "its lease is over");
    require_ok(sluice_agent_mr_release(other, DEADLINE));
    require_ok(sluice_agent_mr_release(kept, DEADLINE));
    agents_close(&agents);
}

/*
 * Leases that are over, regions without such a lease, and regions that are gone cannot be renewed.
 */
TEST(regions_that_cannot_be_renewed)
{
    struct agents agents;
    struct sluice_agent_attr attr = {
        .size = sizeof(attr), .max_lease = SLUICE_FOREVER, .secret_file = ""};
    struct sluice_agent_mr *mr;
    agents_open(&agents, &attr, NULL);
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, SLUICE_MS(1));
    await_lease(mr);
    require_error(sluice_agent_mr_renew(mr, 0, DEADLINE), -EACCES, "its lease is over");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, SLUICE_FOREVER);
    require_error(sluice_agent_mr_renew(mr, 0, DEADLINE), -EINVAL, "no lease that ends");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, SLUICE_S(100));
    require_ok(sluice_agent_revoke_mr(agents.at_owner, mr_info(mr).id));
    /* This holds whether the holder was notified or asks its owner. */
    require_error(sluice_agent_mr_renew(mr, 0, DEADLINE), -EACCES, "region");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    require_error(sluice_agent_mr_renew((struct sluice_agent_mr *)(void *)agents.holder, 0, 0),
                  -EINVAL, "not a region");
    mr = request(&agents, LENGTH, ACCESS_READ_WRITE, SLUICE_S(100));
    sluice_agent_peer_close(agents.at_owner);
    agents.at_owner = NULL;
    require_error(sluice_agent_mr_renew(mr, 0, DEADLINE), -ENOTCONN, "left");
    require_result(sluice_agent_mr_release(mr, DEADLINE), -ENOTCONN);
    require(agent_info(agents.owner).unasked == 0, "it was refused");
    agents_close(&agents);
}

/* A lease without end, or so long that a second more is beyond any clock. */
TEST(leases_may_be_without_end)
{
    struct agents agents;
    struct sluice_agent_attr attr = {
        .size = sizeof(attr), .max_lease = SLUICE_FOREVER, .secret_file = ""};
    const int64_t leases[] = {SLUICE_FOREVER, SLUICE_FOREVER - 1,
                              SLUICE_FOREVER - clock_now() - SLUICE_MS(500)};
    agents_open(&agents, &attr, NULL);
    for (size_t i = 0; i < COUNT(leases); i++) {
        struct sluice_agent_mr *mr = request(&agents, LENGTH, ACCESS_READ_WRITE, leases[i]);
        require(i == 2 || mr_info(mr).lease == SLUICE_FOREVER, "%lld",
                (long long)mr_info(mr).lease);
        region_works(&agents, mr, i);
        require(agent_info(agents.owner).expired == 0, "it is over");
        require_ok(sluice_agent_mr_release(mr, DEADLINE));
    }
    agents_close(&agents);
}

static struct sluice_request raw(uint32_t opcode, const struct sluice_remote_mr *remote,
                                 const struct sluice_sge *sge)
{
    struct sluice_request request = request_of(opcode, 0, sge);
    request.remote = *remote;
    request.remote.length = sge->length;
    return request;
}

/* Hands over memory of the program's, so that a late write would be noticed. */
static struct sluice_agent_mr *hand_over(struct agents *agents, struct memory *given, int64_t lease)
{
    struct sluice_agent_mr *mr;
    memory_open(given, agents->sides.pds[0], LENGTH);
    memset(given->bytes, 7, LENGTH);
    require_ok(sluice_agent_send_local_mr(agents->at_owner, given->mr, 0, LENGTH, ACCESS_READ_WRITE,
                                          lease, DEADLINE, NULL));
    mr = sluice_agent_receive_remote_mr(agents->holder, agents->at_holder, DEADLINE);
    require(mr, "%s", sluice_last_error());
    return mr;
}

static const struct sluice_agent_attr threaded = {.size = sizeof(threaded), .secret_file = ""};

/* Only the program decides how long its own memory is lent. */
TEST(handed_over_region_is_not_renewed)
{
    struct agents agents;
    struct memory given;
    struct sluice_agent_mr *mr;
    agents_open(&agents, NULL, &threaded);
    mr = hand_over(&agents, &given, SLUICE_S(100));
    require_error(sluice_agent_mr_renew(mr, 0, DEADLINE), -EACCES, "handed over");
    require(mr_info(mr).lease > SLUICE_S(50), "%lld", (long long)mr_info(mr).lease);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    agents_close(&agents);
    memory_close(&given);
}

#define TAKEN_BACK 100

/*
 * A release is right whether or not the holder knows that the region was revoked, for any number of
 * them.
 */
TEST(a_release_may_come_late)
{
    struct agents agents;
    struct memory given;
    struct sluice_agent_mr *mrs[TAKEN_BACK];
    uint64_t ids[TAKEN_BACK];
    agents_open(&agents, NULL, &threaded);
    memory_open(&given, agents.sides.pds[0], LENGTH);
    for (int i = 0; i < TAKEN_BACK; i++) {
        require_ok(sluice_agent_send_local_mr(agents.at_owner, given.mr, 0, LENGTH,
                                              ACCESS_READ_WRITE, SLUICE_FOREVER, DEADLINE,
                                              &ids[i]));
        mrs[i] = sluice_agent_receive_remote_mr(agents.holder, agents.at_holder, DEADLINE);
        require(mrs[i], "%s", sluice_last_error());
    }
    for (int i = 0; i < TAKEN_BACK; i++) {
        require_ok(sluice_agent_revoke_mr(agents.at_owner, ids[i]));
    }
    for (int i = 0; i < TAKEN_BACK; i++) {
        require_ok(sluice_agent_mr_release(mrs[i], DEADLINE));
    }
    require(agent_info(agents.owner).unasked == 0, "%llu were refused",
            (unsigned long long)agent_info(agents.owner).unasked);
    require(peer_info(agents.at_owner).state == SLUICE_AGENT_PEER_CONNECTED, "it is lost");
    memory_close(&given);
    agents_close(&agents);
}

/*
 * A holder that kept the key gets an access error and changes nothing; the pair is connected again,
 * and works.
 */
TEST(a_kept_key_is_worth_nothing)
{
    struct agents agents;
    struct memory given;
    struct sluice_agent_mr *mr;
    struct sluice_agent_mr_info info;
    struct sluice_completion completions[3];
    struct sluice_request requests[3];
    struct sluice_sge sge;
    static struct late_lines lines;
    agents_open(&agents, NULL, &threaded);
    mr = hand_over(&agents, &given, waits_for_end() ? LEASE : SLUICE_FOREVER);
    info = mr_info(mr);
    snprintf(lines.words, sizeof(lines.words), "%s used region %llu,",
             peer_info(agents.at_owner).address, (unsigned long long)info.id);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, read_log, &lines));
    await_end(&agents, info.id, waits_for_end());
    sge = memory_sge(&agents.memory, 0, 64);
    memset(agents.memory.bytes, 9, 64);
    for (int round = 0; round < 2; round++) {
        requests[0] = raw(round == 0 ? SLUICE_OP_WRITE : SLUICE_OP_READ, &info.remote, &sge);
        require_result(sluice_agent_submit(agents.at_holder, requests, 1, DEADLINE, completions),
                       -EACCES);
        require_class(&completions[0], SLUICE_CLASS_ACCESS);
    }
    value_check(given.bytes, LENGTH, 7);
    value_check(agents.memory.bytes, 64, 9);
    await_info(agents.owner, late, 2);
    require(atomic_load(&lines.count) == 2, "%d lines '%s'", atomic_load(&lines.count),
            lines.words);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    /* Each other request of the list has a result of its own. */
    struct sluice_agent_mr *good = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
    struct sluice_remote_mr remote = mr_info(good).remote;
    requests[0] = raw(SLUICE_OP_WRITE, &remote, &sge);
    requests[1] = raw(SLUICE_OP_WRITE, &info.remote, &sge);
    requests[2] = raw(SLUICE_OP_WRITE, &remote, &sge);
    requests[2].user_data = 77;
    require_result(sluice_agent_submit(agents.at_holder, requests, 3, DEADLINE, completions),
                   -EACCES);
    require_class(&completions[1], SLUICE_CLASS_ACCESS);
    require_class(&completions[2], SLUICE_CLASS_CANCELLED);
    require(completions[2].user_data == 77, "%llu", (unsigned long long)completions[2].user_data);
    region_works(&agents, good, 8);
    require_ok(sluice_agent_mr_release(good, DEADLINE));
    require(peer_info(agents.at_holder).reconnects >= 3, "%llu",
            (unsigned long long)peer_info(agents.at_holder).reconnects);
    require(peer_info(agents.at_holder).state == SLUICE_AGENT_PEER_CONNECTED, "it is lost");
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
    agents_close(&agents);
    memory_close(&given);
}

/* Another thread works on the pair all the time. */
struct worker {
    pthread_t thread;
    struct agents *agents;
    struct memory memory;
    struct sluice_agent_mr *mr;
    uint32_t number;
    atomic_bool stop;
    atomic_uint_fast64_t done;
    uint64_t cancelled;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct sluice_sge sge = memory_sge(&worker->memory, 0, LENGTH);
    for (uint32_t i = 0; !atomic_load(&worker->stop); i++) {
        int error;
        pattern_fill(worker->memory.bytes, LENGTH, pattern_key(worker->number, 1, i));
        error = sluice_agent_mr_write(worker->mr, 0, &sge, 1, DEADLINE);
        if (error == 0) {
            memset(worker->memory.bytes, 0, LENGTH);
            error = sluice_agent_mr_read(worker->mr, 0, &sge, 1, DEADLINE);
        }
        if (error == 0) {
            pattern_check(worker->memory.bytes, LENGTH, pattern_key(worker->number, 1, i));
            atomic_fetch_add(&worker->done, 1);
        } else {
            require(error == -ECANCELED, "%d: %s", error, sluice_last_error());
            worker->cancelled++;
        }
    }
    return NULL;
}

static void start_worker(struct worker *worker, struct agents *agents, uint32_t number)
{
    *worker = (struct worker){.agents = agents, .number = number};
    memory_open(&worker->memory, agents->sides.pds[1], LENGTH);
    worker->mr = request(agents, LENGTH, ACCESS_READ_WRITE, 0);
    require(pthread_create(&worker->thread, NULL, work, worker) == 0, "no thread");
}

/* The worker makes progress whatever happened to the pair. */
static void join_worker(struct worker *worker)
{
    uint64_t before = atomic_load(&worker->done);
    int64_t end = fair_now() + DEADLINE;
    while (atomic_load(&worker->done) == before && fair_now() < end) {
        let_pass(SLUICE_MS(1));
    }
    require(atomic_load(&worker->done) > before, "nothing is done");
    atomic_store(&worker->stop, true);
    require(pthread_join(worker->thread, NULL) == 0, "no end");
    require_ok(sluice_agent_mr_release(worker->mr, DEADLINE));
    memory_close(&worker->memory);
}

/*
 * Several threads on one connection: if a request of one fails, requests of others are cancelled or
 * unaffected.
 */
TEST(a_kept_key_is_worth_nothing_under_load)
{
    struct agents agents;
    struct memory given;
    struct worker workers[2];
    struct sluice_agent_mr *mr;
    struct sluice_agent_mr_info info;
    struct sluice_sge sge;
    require_ok(sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL));
    agents_open(&agents, NULL, &threaded);
    mr = hand_over(&agents, &given, short_run() ? SLUICE_FOREVER : LEASE);
    info = mr_info(mr);
    for (uint32_t i = 0; i < 2; i++) {
        start_worker(&workers[i], &agents, i);
    }
    await_end(&agents, info.id, !short_run());
    sge = memory_sge(&agents.memory, 0, 64);
    memset(agents.memory.bytes, 9, 64);
    for (int round = 0; round < 3; round++) {
        struct sluice_request request = raw(SLUICE_OP_WRITE, &info.remote, &sge);
        int error = sluice_agent_submit(agents.at_holder, &request, 1, DEADLINE, NULL);
        require(error == -EACCES || error == -ECANCELED, "%d: %s", error, sluice_last_error());
    }
    value_check(given.bytes, LENGTH, 7);
    for (uint32_t i = 0; i < 2; i++) {
        join_worker(&workers[i]);
    }
    require(agent_info(agents.owner).lost == 0, "it was lost");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
    agents_close(&agents);
    memory_close(&given);
}

/* Several threads have several requests at a time: all of them are done. */
TEST(threads_share_a_connection)
{
    struct agents agents;
    struct worker workers[2];
    agents_open(&agents, NULL, &threaded);
    for (uint32_t i = 0; i < 2; i++) {
        start_worker(&workers[i], &agents, i);
    }
    /* Calls of all threads make progress at the same time. */
    for (int i = 0; i < 20; i++) {
        struct sluice_agent_mr *mr = request(&agents, LENGTH, ACCESS_READ_WRITE, 0);
        region_works(&agents, mr, (uint64_t)i);
        require_ok(sluice_agent_send(agents.at_holder, "x", 1, DEADLINE));
        struct sluice_agent_message *message = sluice_agent_receive(agents.owner, NULL, DEADLINE);
        require(message, "%s", sluice_last_error());
        sluice_agent_message_free(message);
        require_ok(sluice_agent_mr_release(mr, DEADLINE));
    }
    for (uint32_t i = 0; i < 2; i++) {
        join_worker(&workers[i]);
        require(workers[i].cancelled == 0, "%llu were cancelled",
                (unsigned long long)workers[i].cancelled);
    }
    require(peer_info(agents.at_holder).reconnects == 0, "the connection was harmed");
    agents_close(&agents);
}

int main(void)
{
    return run_tests("agent_lease", 60);
}
