/* SPDX-License-Identifier: MIT */
/*
 * Peers that are added and removed on a device with small completion queues: there are as many
 * queues as peers need, none is resized or overruns, and none is left behind. And each step of
 * adding one fails.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/process.h"
#include "check.h"

#define DEPTH 4
/* Entries of a completion queue that a peer needs: for its requests in flight, and for a probe. */
#define PLACES (2 * DEPTH + 1)
#define MOST 64
/* A failure to read events ends a device, and is not a step of adding a peer. */
#define STEPS (FAKE_ALL_BUT_ENDS & ~FAKE_CALL(FAKE_GET_ASYNC_EVENT))

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return fake_verbs_fails(FAKE_MEMORY) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fake_verbs_fails(FAKE_MEMORY) ? NULL : __real_realloc(old, size);
}

/* Peers 2 i and 2 i + 1 are connected to each other. */
struct house {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_multichannel *all;
    struct memory memory;
    struct sluice_channel_attr attr;
};

static void house_open(struct house *house, uint32_t peers)
{
    house->attr = (struct sluice_channel_attr){.size = sizeof(house->attr),
                                               .send_depth = DEPTH,
                                               .receive_depth = DEPTH,
                                               .wait_mode = SLUICE_WAIT_EVENT};
    house->context = open_context();
    house->pd = made(sluice_pd_alloc(house->context));
    house->all = made(make_loop(house->pd, peers, &house->attr));
    memory_open(&house->memory, house->pd, 64);
}

static void house_close(struct house *house)
{
    memory_close(&house->memory);
    sluice_multichannel_close(house->all);
    sluice_pd_free(house->pd);
    sluice_context_close(house->context);
}

/* Adds two more peers, with these indices. */
static void add_two(struct house *house, uint32_t first, uint32_t second)
{
    struct sluice_endpoint endpoints[2];
    require_result(sluice_multichannel_peer_add(house->all, &endpoints[0]), (int)first);
    require_result(sluice_multichannel_peer_add(house->all, &endpoints[1]), (int)second);
    require_ok(sluice_multichannel_peer_handshake(house->all, first, &endpoints[1]));
    require_ok(sluice_multichannel_peer_handshake(house->all, second, &endpoints[0]));
}

/* Posts all that there is room for, between two peers; sleeps until it comes. */
static void flood(struct house *house, uint32_t first)
{
    struct sluice_request requests[2 * DEPTH];
    struct sluice_sge sge = memory_sge(&house->memory, 0, 8);
    for (uint32_t i = 0; i < DEPTH; i++) {
        requests[i] = request_of(SLUICE_OP_SEND, first + i % 2, &sge);
        requests[DEPTH + i] = request_of(SLUICE_OP_RECEIVE, first + i % 2, &sge);
    }
    require_ok(sluice_multichannel_submit(house->all, requests, 2 * DEPTH, DEADLINE, NULL));
}

/*
 * Completions are held, so that each queue fills up with all that its queue pairs can have in
 * flight.
 */
static void fill_all(struct house *house, uint32_t peers)
{
    struct sluice_completion completions[MOST];
    struct sluice_request write = {.opcode = SLUICE_OP_WRITE};
    struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE};
    uint32_t left = 2 * DEPTH * peers;
    fake_verbs_hold(0);
    for (uint32_t i = 0; i < peers; i++) {
        write.peer = receive.peer = i;
        for (int k = 0; k < DEPTH; k++) {
            require_result(sluice_multichannel_post(house->all, &write, 1, DEADLINE, NULL), 1);
            require_result(sluice_multichannel_post(house->all, &receive, 1, DEADLINE, NULL), 1);
        }
        require_result(sluice_multichannel_post(house->all, &write, 1, DEADLINE, NULL), -EAGAIN);
        require_result(sluice_multichannel_post(house->all, &receive, 1, DEADLINE, NULL), -EAGAIN);
    }
    fake_verbs_release(0);
    for (uint32_t i = 0; i < peers; i += 2) {
        require_ok(sluice_multichannel_peer_remove(house->all, i));
        require_ok(sluice_multichannel_peer_remove(house->all, i + 1));
    }
    while (left > 0) {
        int got = sluice_multichannel_poll(house->all, completions, MOST);
        require(got > 0, "%d, %u are left", got, left);
        for (int i = 0; i < got; i++) {
            require((completions[i].flags & SLUICE_PEER_REMOVED) != 0, "%#x", completions[i].flags);
        }
        left -= (uint32_t)got;
    }
}

static const int limits[] = {PLACES, PLACES + 1, 2 * PLACES - 1, 2 * PLACES, 50, 32767};

static void check_queues(int limit)
{
    struct fake_cq_info info;
    for (uint32_t i = 0; fake_verbs_cq(i, &info); i++) {
        require(info.depth <= (uint32_t)limit && info.most <= info.depth,
                "queue %u: %u of %d, most %u", i, info.depth, limit, info.most);
    }
}

/* From no peers, and from two, to many and back, twice. */
TEST(further_queues, .times = 2 * (int)COUNT(limits))
{
    struct house house;
    uint32_t first = _i < (int)COUNT(limits) ? 0 : 2;
    int limit = limits[_i % (int)COUNT(limits)];
    fake_verbs.device[0].max_cqe = limit;
    fake_verbs.orphans = (enum fake_orphans)(_i % 2);
    house_open(&house, first);
    int fds = count_fds();
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = round == 0 ? first : 0; i < MOST; i += 2) {
            add_two(&house, i, i + 1);
            flood(&house, i);
            if (first > 0 && round == 0) {
                flood(&house, 0);
            }
        }
        uint32_t queues = fake_verbs.live.cqs;
        require(queues >= (uint32_t)((MOST * PLACES + limit - 1) / limit) && queues <= MOST,
                "%u queues", queues);
        /*
         * Queues double in size, so that a poll does not visit one for each peer if the device has
         * room for larger ones.
         */
        require(limit < 32767 || queues <= 8, "%u queues", queues);
        require(fake_verbs.live.channels == 1, "%u channels", fake_verbs.live.channels);
        for (uint32_t i = 0; i < MOST; i += 2) {
            flood(&house, i);
        }
        fill_all(&house, MOST);
        check_queues(limit);
        require_equal(fake_verbs.live.cqs, 1, fake_verbs.live.qps, 0, count_fds(), fds);
    }
    house_close(&house);
}

/* Queues in the middle are freed, and their places reused; the others stay. */
TEST_WITH(house, queues_with_holes, (ON_DEVICE(0, fake_verbs.device[0].max_cqe = 2 * PLACES)))
{
    for (uint32_t i = 0; i < 16; i += 2) {
        add_two(house, i, i + 1);
    }
    uint32_t queues = fake_verbs.live.cqs;
    require(queues == 8, "%u queues", queues);
    for (int round = 0; round < 50; round++) {
        uint32_t at = (uint32_t)round * 6 % 14;
        require_ok(sluice_multichannel_peer_remove(house->all, at));
        require(fake_verbs.live.cqs == queues, "%u queues", fake_verbs.live.cqs);
        require_ok(sluice_multichannel_peer_remove(house->all, at + 1));
        require(fake_verbs.live.cqs == (at == 0 ? queues : queues - 1), "%u queues, at %u",
                fake_verbs.live.cqs, at);
        for (uint32_t i = 0; i < 16; i += 2) {
            if (i != at) {
                flood(house, i);
            }
        }
        add_two(house, at, at + 1);
        require(fake_verbs.live.cqs == queues, "%u queues", fake_verbs.live.cqs);
        flood(house, at);
    }
    check_queues(2 * PLACES);
}

/* Adds and removes a peer, and returns a handle that it leaves behind. */
static struct sluice_handle leave_handle(struct house *house)
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 2, NULL);
    struct sluice_handle handle;
    add_two(house, 2, 3);
    require_result(sluice_multichannel_post(house->all, &receive, 1, SLUICE_FOREVER, &handle), 1);
    require_ok(sluice_multichannel_peer_remove(house->all, 3));
    require_ok(sluice_multichannel_peer_remove(house->all, 2));
    return handle;
}

/* Each step fails once, with a new index and with a reused one. */
TEST_WITH(house, every_step_fails, (ON_DEVICE(2, fake_verbs.device[0].max_cqe = 2 * PLACES)),
          .times = 2)
{
    struct sluice_completion completion;
    struct sluice_endpoint endpoint;
    struct sluice_handle left = {0};
    uint32_t failures = 0;
    bool more = true;
    /* A step of the thread that reads events may have failed instead: then the peer was added. */
    bool added = false;
    if (_i == 1) {
        left = leave_handle(house);
    }
    for (uint32_t n = 1; more; n++) {
        uint32_t base = sluice_multichannel_peers(house->all);
        uint32_t qps = fake_verbs.live.qps;
        uint32_t cqs = fake_verbs.live.cqs;
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
        struct sluice_handle handle;
        require_result(sluice_multichannel_post(house->all, &receive, 1, SLUICE_FOREVER, &handle),
                       1);
        memset(&endpoint, 0x5a, sizeof(endpoint));
        fake_verbs_fail(n, STEPS, ENOMEM);
        int result = sluice_multichannel_peer_add(house->all, &endpoint);
        more = fake_verbs_failed() != NULL;
        fake_verbs_fail(0, 0, 0);
        if (result < 0) {
            failures++;
            value_check(&endpoint, sizeof(endpoint), 0x5a);
            require(more && result == -ENOMEM, "%d: %s", result, sluice_last_error());
            require_equal(sluice_multichannel_peers(house->all), base, fake_verbs.live.qps, qps,
                          fake_verbs.live.cqs, cqs);
            require(_i == 0 || added ||
                        sluice_multichannel_wait(house->all, &left, 0, &completion) == 0,
                    "%s", sluice_last_error());
        }
        /* Requests in flight are still in flight, and the remaining room is still there. */
        require_result(sluice_multichannel_wait(house->all, &handle, 0, &completion), -ETIMEDOUT);
        require_ok(sluice_multichannel_send(house->all, 1, NULL, 0, DEADLINE));
        require_ok(sluice_multichannel_wait(house->all, &handle, DEADLINE, &completion));
        flood(house, 0);
        if (result >= 0) {
            added = true;
            require_ok(sluice_multichannel_peer_remove(house->all, (uint32_t)result));
        }
    }
    require(failures >= 4, "%u", failures);
    require(_i == 0 || sluice_multichannel_wait(house->all, &left, 0, &completion) == -ESTALE,
            "the handle still holds");
}

/* The queues of the device are full: another peer finds no room until one is removed. */
TEST_WITH(house, full_device,
          (ON_DEVICE(0, fake_verbs.device[0].max_cqe = 2 * PLACES,
                     fake_verbs.device[0].max_cq = 3)))
{
    struct sluice_endpoint endpoint;
    for (uint32_t i = 0; i < 6; i += 2) {
        add_two(house, i, i + 1);
    }
    require_error(sluice_multichannel_peer_add(house->all, &endpoint), -ENOMEM,
                  "fake0 54 entries 54 taken 9 lower send_depth");
    flood(house, 4);
    require_ok(sluice_multichannel_peer_remove(house->all, 3));
    require_ok(sluice_multichannel_peer_remove(house->all, 2));
    add_two(house, 2, 3);
    require_error(sluice_multichannel_peer_add(house->all, &endpoint), -ENOMEM, "54");
    for (uint32_t i = 0; i < 6; i += 2) {
        flood(house, i);
    }
}

/* Peers that share entries share them with new peers, and no queue overruns. */
TEST_WITH(house, shared_entries,
          (ON_DEVICE(4, fake_verbs.device[0].max_cqe = 3 * PLACES,
                     fake_verbs.device[0].max_cq = 1)))
{
    for (uint32_t i = 4; i < 12; i += 2) {
        add_two(house, i, i + 1);
        for (uint32_t k = 0; k <= i; k += 2) {
            flood(house, k);
        }
    }
    require(fake_verbs.live.cqs == 1, "%u queues", fake_verbs.live.cqs);
    for (uint32_t i = 0; i < 8; i++) {
        require_ok(sluice_multichannel_peer_remove(house->all, i));
    }
    flood(house, 8);
    flood(house, 10);
    add_two(house, 0, 1);
    flood(house, 0);
    check_queues(3 * PLACES);
}

/* On a dead device peers can still be removed, at once, and none is added. */
TEST_WITH(house, dead_device, (ON_DEVICE(2, fake_verbs.device[0].max_cqe = 2 * PLACES)))
{
    struct sluice_endpoint endpoint;
    add_two(house, 2, 3);
    require(fake_verbs_port_event(0, 0, IBV_EVENT_DEVICE_FATAL), "the event has no recipient");
    while (sluice_multichannel_peer_state(house->all, 3) != SLUICE_STATE_FAILED) {
    }
    require(sluice_multichannel_peer_add(house->all, &endpoint) < 0, "it was added");
    for (uint32_t i = 0; i < 4; i++) {
        require_ok(sluice_multichannel_peer_remove(house->all, i));
    }
}

int main(void)
{
    return run_verbs("verbs_members", WIRE_SELF, 60);
}
