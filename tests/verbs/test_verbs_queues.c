/* SPDX-License-Identifier: MIT */
/*
 * Completion queues of a device with small ones: there are as many as needed, none overruns (the
 * pretend device would stop the program), and the program does not notice. And queues that fail.
 */
#include <pthread.h>
#include <stdio.h>

#include "../support/process.h"
#include "check.h"

#define PEERS 100
#define DEPTH 16
/*
 * Entries of the completion queue that a peer needs: for its requests in flight, and for a probe.
 */
#define PLACES (2 * DEPTH + 1)

static const struct sluice_channel_attr shallow = {
    .size = sizeof(shallow), .send_depth = DEPTH, .receive_depth = DEPTH};

/* Counts queues for completions of queue pairs; requires that none of them was too full. */
static uint32_t check_queues(uint32_t limit)
{
    struct fake_cq_info info;
    uint32_t count = 0;
    for (; fake_verbs_cq(count, &info); count++) {
        require(info.depth <= limit && info.most <= info.depth, "queue %u: %u of %u, most %u",
                count, info.depth, limit, info.most);
    }
    return count;
}

struct crowd {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_multichannel *all;
    struct memory memory;
};

static void crowd_open(struct crowd *crowd, uint32_t peers)
{
    crowd->context = open_context();
    crowd->pd = made(sluice_pd_alloc(crowd->context));
    crowd->all = made(make_loop(crowd->pd, peers, &shallow));
    memory_open(&crowd->memory, crowd->pd, (size_t)peers * 16);
}

static void crowd_close(struct crowd *crowd)
{
    memory_close(&crowd->memory);
    sluice_multichannel_close(crowd->all);
    sluice_pd_free(crowd->pd);
    sluice_context_close(crowd->context);
}

/* Posts as many sends and receives of each peer as there is room for, or more. */
static void flood(struct crowd *crowd, uint32_t peers, uint32_t each)
{
    static struct sluice_request sends[PEERS * 2 * DEPTH], receives[PEERS * 2 * DEPTH];
    static struct sluice_sge from[PEERS], to[PEERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < peers; i++) {
        from[i] = memory_sge(&crowd->memory, (size_t)i * 16, 8);
        to[i] = memory_sge(&crowd->memory, (size_t)i * 16 + 8, 8);
        pattern_fill(crowd->memory.bytes + (size_t)i * 16, 8, pattern_key(i, i ^ 1, 1));
    }
    for (uint32_t j = 0; j < each; j++) {
        for (uint32_t i = 0; i < peers; i++, count++) {
            sends[count] = request_of(SLUICE_OP_SEND, i, &from[i]);
            receives[count] = request_of(SLUICE_OP_RECEIVE, i, &to[i]);
        }
    }
    require_ok(sluice_multichannel_scatter_gather(crowd->all, sends, count, receives, count,
                                                  DEADLINE, NULL));
    for (uint32_t i = 0; i < peers; i++) {
        pattern_check(crowd->memory.bytes + (size_t)i * 16 + 8, 8, pattern_key(i ^ 1, i, 1));
    }
}

static const int limits[] = {PLACES, PLACES + 1, 2 * PLACES - 1, 2 * PLACES, 100, 32767};

TEST_WITH(crowd, crowd_on_small_queues,
          (ON_DEVICE(PEERS, fake_verbs.device[0].max_cqe = limits[_i])), .times = COUNT(limits))
{
    uint32_t limit = (uint32_t)limits[_i];
    uint32_t queues = check_queues(limit);
    require(queues >= (PEERS * PLACES + limit - 1) / limit && queues <= PEERS, "%u queues", queues);
    flood(crowd, PEERS, 1);
    flood(crowd, PEERS, 2 * DEPTH);
    check_queues(limit);
    require(fake_verbs.live.channels == 1, "%u completion channels", fake_verbs.live.channels);
}

/* All completions come at once: there is a place for each. */
TEST_WITH(crowd, completions_all_at_once,
          (ON_DEVICE(PEERS, fake_verbs.device[0].max_cqe = limits[_i])), .times = COUNT(limits))
{
    static struct sluice_request requests[PEERS * DEPTH];
    static struct sluice_completion completions[PEERS * DEPTH];
    static struct sluice_handle handles[PEERS * DEPTH];
    uint32_t limit = (uint32_t)limits[_i];
    uint32_t last[PEERS] = {0};
    fake_verbs_hold(0);
    for (uint32_t i = 0; i < COUNT(requests); i++) {
        requests[i] = request_of(SLUICE_OP_WRITE, i % PEERS, NULL);
        requests[i].user_data = 1 + i / PEERS;
    }
    require_result(
        sluice_multichannel_post(crowd->all, requests, COUNT(requests), DEADLINE, handles),
        COUNT(requests));
    for (uint32_t i = 0; i < PEERS; i++) {
        await_held(qpn_of(i), FAKE_SEND, 1);
    }
    require_result(sluice_multichannel_poll(crowd->all, completions, COUNT(completions)), 0);
    let_pass(SLUICE_MS(20));
    fake_verbs_release(0);
    uint32_t seen = 0;
    for (int64_t start = fair_now(); seen < COUNT(requests);) {
        int got = sluice_multichannel_poll(crowd->all, completions, COUNT(completions));
        require(got >= 0 && fair_now() - start < DEADLINE, "%d, %u seen", got, seen);
        for (int i = 0; i < got; i++, seen++) {
            require_class(&completions[i], SLUICE_CLASS_NONE);
            require(completions[i].user_data == ++last[completions[i].peer],
                    "request %llu of peer %u, not %u", (unsigned long long)completions[i].user_data,
                    completions[i].peer, last[completions[i].peer]);
        }
    }
    check_queues(limit);
}

/* A peer that is reset again and again uses no more places than before. */
TEST_WITH(crowd, resets_on_small_queues,
          (ON_DEVICE(20, fake_verbs.device[0].max_cqe = limits[_i],
                     fake_verbs.orphans = (enum fake_orphans)(_i % 2))),
          .times = COUNT(limits))
{
    struct sluice_endpoint endpoints[2];
    uint32_t queues = fake_verbs.live.cqs, regions = fake_verbs.live.mrs;
    /* One region for the memory of the test, and one for hints of receives. */
    require(regions == 2, "%u regions", regions);
    int fds = count_fds();
    for (uint32_t cycle = 0; cycle < 1000; cycle++) {
        uint32_t peer = cycle * 7 % 20 & ~UINT32_C(1);
        struct sluice_request request = request_of(SLUICE_OP_WRITE, peer, NULL);
        struct sluice_handle handle;
        require_result(sluice_multichannel_post(crowd->all, &request, 1, DEADLINE, &handle), 1);
        for (uint32_t i = 0; i < 2; i++) {
            require_ok(sluice_multichannel_peer_reset(crowd->all, peer + i, &endpoints[i]));
        }
        for (uint32_t i = 0; i < 2; i++) {
            require_ok(sluice_multichannel_peer_handshake(crowd->all, peer + i, &endpoints[!i]));
        }
        if (cycle % 50 == 0) {
            flood(crowd, 20, DEPTH);
        }
        require(fake_verbs.live.qps == 20 && fake_verbs.live.cqs == queues &&
                    fake_verbs.live.mrs == regions,
                "cycle %u: %u queue pairs, %u queues, were %u", cycle, fake_verbs.live.qps,
                fake_verbs.live.cqs, queues);
    }
    require(count_fds() == fds, "%d fds, were %d", count_fds(), fds);
    check_queues((uint32_t)limits[_i]);
}

/* Posts all sends and receives that there is room for, and holds them. */
static void fill_peer(struct crowd *crowd, uint32_t peer)
{
    struct sluice_request requests[2 * DEPTH];
    struct sluice_handle handles[2 * DEPTH];
    for (uint32_t i = 0; i < 2 * DEPTH; i++) {
        requests[i] = request_of(i % 2 ? SLUICE_OP_WRITE : SLUICE_OP_RECEIVE, peer, NULL);
    }
    require_result(
        sluice_multichannel_post(crowd->all, requests, 2 * DEPTH, SLUICE_FOREVER, handles),
        2 * DEPTH);
    require_result(sluice_multichannel_peer_wait_connected(crowd->all, peer, 0), -ETIMEDOUT);
}

/*
 * A queue pair ends with as many completions as can be on the queue, where some devices leave them;
 * then all others have as many, and so has the next one of the peer. There is room for all, as the
 * first ones were removed.
 */
TEST_WITH(crowd, places_of_a_queue_pair_that_is_gone,
          (ON_DEVICE(4, fake_verbs.device[0].max_cqe = 4 * PLACES,
                     fake_verbs.orphans = (enum fake_orphans)_i)),
          .from = FAKE_LEAVE, .times = FAKE_PURGE + 1 - FAKE_LEAVE)
{
    struct sluice_endpoint ours;
    fake_verbs_hold(0);
    for (uint32_t i = 0; i < 4; i++) {
        fill_peer(crowd, i);
    }
    require_ok(sluice_multichannel_peer_reset(crowd->all, 0, &ours));
    require_ok(sluice_multichannel_peer_handshake(crowd->all, 0, &ours));
    fill_peer(crowd, 0);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t qpn = qpn_of(i);
        require(fake_verbs_qp_event(qpn, IBV_EVENT_COMM_EST, true), "no queue pair");
        await_held(qpn, FAKE_SEND, DEPTH + 1);
        await_held(qpn, FAKE_RECEIVE, DEPTH);
    }
    fake_verbs_release(0);
    struct fake_cq_info info;
    require(fake_verbs_cq(0, &info) && info.count == info.depth && info.depth == 4 * PLACES,
            "%u of %u places are taken", info.count, info.depth);
}

/* The first error is the reason, on whichever queue the completions of a peer come. */
TEST(first_error_on_small_queues, .times = 2)
{
    struct sluice_request requests[3];
    struct sluice_handle handles[3];
    struct pair pair;
    struct memory memory;
    fake_verbs.device[0].max_cqe = 128;
    fake_verbs.eager = _i == 1;
    for (int cycle = 0; cycle < 30; cycle++) {
        pair_open(&pair, NULL);
        memory_open(&memory, pair.sides.pds[0], 8);
        struct sluice_sge sge = memory_sge(&memory, 0, 8);
        requests[0] = request_of(SLUICE_OP_RECEIVE, 0, &sge);
        requests[1] = request_of(SLUICE_OP_WRITE, 0, &sge);
        requests[2] = request_of(SLUICE_OP_SEND, 0, &sge);
        requests[1].remote = memory_remote(&memory, 0, 8);
        requests[1].remote.rkey ^= 0x5a5a5a00;
        require_result(sluice_channel_post(pair.channels[0], requests, 3, DEADLINE, handles), 3);
        struct sluice_completion completion =
            await(pair.channels[0], handles[1], SLUICE_CLASS_ACCESS);
        require(completion.cause == completion.status, "cause %u", completion.cause);
        completion = await(pair.channels[0], handles[0], SLUICE_CLASS_CANCELLED);
        require(completion.cause == SLUICE_STATUS_REM_ACCESS_ERR, "cause %u", completion.cause);
        await(pair.channels[0], handles[2], SLUICE_CLASS_CANCELLED);
        struct sluice_error error = channel_error(pair.channels[0]);
        require(error.status == SLUICE_STATUS_REM_ACCESS_ERR, "%s", error.text);
        memory_close(&memory);
        pair_close(&pair);
    }
}

/* A multichannel on queues of 65, which depths of 32 and 16 do not fill. */
struct uneven {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct memory memory;
    struct sluice_sge sge;
    struct sluice_multichannel *all;
};

#define UNEVEN_PEERS 6

static void uneven_open(struct uneven *uneven, uint32_t wait_mode)
{
    struct sluice_channel_attr attr =
        *ATTR(.send_depth = 32, .receive_depth = 16, .wait_mode = wait_mode);
    fake_verbs.device[0].max_cqe = 65;
    uneven->context = open_context();
    uneven->pd = made(sluice_pd_alloc(uneven->context));
    memory_open(&uneven->memory, uneven->pd, 8);
    uneven->sge = memory_sge(&uneven->memory, 0, 8);
    uneven->all = made(make_loop(uneven->pd, UNEVEN_PEERS, &attr));
}

static void uneven_close(struct uneven *uneven)
{
    sluice_multichannel_close(uneven->all);
    memory_close(&uneven->memory);
    sluice_pd_free(uneven->pd);
    sluice_context_close(uneven->context);
}

/*
 * Posts a receive, a write that must fail, and a send behind it; the write is the reason for all.
 */
static void fail_peer(struct uneven *uneven, uint32_t peer)
{
    struct sluice_request requests[3] = {request_of(SLUICE_OP_RECEIVE, peer, &uneven->sge),
                                         request_of(SLUICE_OP_WRITE, peer, &uneven->sge),
                                         request_of(SLUICE_OP_SEND, peer, &uneven->sge)};
    struct sluice_completion completions[3];
    requests[1].remote = memory_remote(&uneven->memory, 0, 8);
    requests[1].remote.rkey ^= 0x5a5a5a00;
    require_result(sluice_multichannel_submit(uneven->all, requests, 3, DEADLINE, completions),
                   -EACCES);
    require_class(&completions[0], SLUICE_CLASS_CANCELLED);
    require_class(&completions[1], SLUICE_CLASS_ACCESS);
    require_class(&completions[2], SLUICE_CLASS_CANCELLED);
    for (int i = 0; i < 3; i++) {
        require_equal(completions[i].cause, SLUICE_STATUS_REM_ACCESS_ERR);
    }
}

TEST(first_error_on_many_queues, .times = 3)
{
    static const uint32_t modes[] = {SLUICE_WAIT_SPIN, SLUICE_WAIT_ADAPTIVE, SLUICE_WAIT_EVENT};
    for (int cycle = 0; cycle < 20; cycle++) {
        struct uneven uneven;
        uneven_open(&uneven, modes[_i]);
        for (uint32_t peer = 0; peer < UNEVEN_PEERS; peer += 2) {
            fail_peer(&uneven, peer);
        }
        uneven_close(&uneven);
    }
}

/* The error comes after the queues were found empty and before one is armed. */
TEST(first_error_before_arming)
{
    for (uint32_t peer = 0; peer < UNEVEN_PEERS; peer += 2) {
        struct uneven uneven;
        uneven_open(&uneven, SLUICE_WAIT_EVENT);
        fake_verbs_hold(0);
        fake_verbs_lock();
        fake_verbs.release_at_arm = true;
        fake_verbs_unlock();
        fail_peer(&uneven, peer);
        fake_verbs_release(0);
        uneven_close(&uneven);
    }
}

/* The error is queued when a peer that shares the queues is reset. */
TEST(first_error_before_a_reset)
{
    for (uint32_t peer = 0; peer < UNEVEN_PEERS; peer += 2) {
        for (uint32_t other = 1; other < UNEVEN_PEERS; other += 2) {
            struct sluice_request requests[2];
            struct sluice_handle handles[2];
            struct sluice_completion completion;
            struct sluice_endpoint endpoint;
            struct uneven uneven;
            fake_verbs.eager = true;
            uneven_open(&uneven, SLUICE_WAIT_ADAPTIVE);
            requests[0] = request_of(SLUICE_OP_RECEIVE, peer, &uneven.sge);
            requests[1] = request_of(SLUICE_OP_WRITE, peer, &uneven.sge);
            requests[1].remote = memory_remote(&uneven.memory, 0, 8);
            requests[1].remote.rkey ^= 0x5a5a5a00;
            require_result(sluice_multichannel_post(uneven.all, requests, 2, DEADLINE, handles), 2);
            require_ok(sluice_multichannel_peer_reset(uneven.all, other, &endpoint));
            require_ok(sluice_multichannel_wait(uneven.all, &handles[1], DEADLINE, &completion));
            require_class(&completion, SLUICE_CLASS_ACCESS);
            require_ok(sluice_multichannel_wait(uneven.all, &handles[0], DEADLINE, &completion));
            require_class(&completion, SLUICE_CLASS_CANCELLED);
            uneven_close(&uneven);
        }
    }
}

/* The device has no more queues: the error says so, and existing ones still work. */
TEST_WITH(crowd, device_without_more_queues,
          (ON_DEVICE(20, fake_verbs.device[0].max_cqe = 2 * PLACES,
                     fake_verbs.device[0].max_cq = 12)))
{
    require_null(make_loop(crowd->pd, 20, &shallow), ENOMEM, "completion queue fake0");
    flood(crowd, 20, 4);
}

/* Polling or arming it fails: its peers fail, those of another queue do not. */
TEST(queue_that_fails, .times = 2)
{
    static const struct sluice_channel_attr asleep = {.size = sizeof(asleep),
                                                      .wait_mode = SLUICE_WAIT_EVENT};
    struct pair pairs[2];
    struct sluice_completion completion = {0};
    for (int i = 0; i < 2; i++) {
        pair_open(&pairs[i], &asleep);
    }
    struct fake_cq_info info;
    require(fake_verbs_cq(0, &info), "no queue");
    fake_verbs_fail(1, FAKE_CALL(_i == 0 ? FAKE_POLL_CQ : FAKE_REQ_NOTIFY_CQ), EIO);
    require_result(sluice_channel_receive(pairs[0].channels[0], NULL, 0, DEADLINE, &completion),
                   -EIO);
    require_class(&completion, SLUICE_CLASS_DEVICE);
    struct sluice_error error = channel_error(pairs[0].channels[0]);
    require(error.error_class == SLUICE_CLASS_DEVICE && strstr(error.text, "queue"), "%s",
            error.text);
    require_result(sluice_channel_send(pairs[0].channels[0], NULL, 0, DEADLINE), -ENOTCONN);
    pair_works(&pairs[1]);
    for (int i = 0; i < 2; i++) {
        pair_close(&pairs[i]);
    }
}

#define ROUNDS 500

struct player {
    struct sluice_channel *channel;
    bool first;
};

static void *play(void *argument)
{
    const struct player *player = argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (player->first) {
            require_ok(sluice_channel_send(player->channel, NULL, 0, DEADLINE));
        }
        require_ok(sluice_channel_receive(player->channel, NULL, 0, DEADLINE, NULL));
        if (!player->first) {
            require_ok(sluice_channel_send(player->channel, NULL, 0, DEADLINE));
        }
    }
    return NULL;
}

/* Two threads that always sleep wake each other, each time, on one queue or on several. */
TEST(sleep_misses_nothing, .times = 2)
{
    struct sluice_channel_attr attr = *ATTR(.wait_mode = SLUICE_WAIT_EVENT, .rnr_timer = 1);
    struct fake_cq_info info;
    struct pair pair;
    pthread_t thread;
    fake_verbs.device[0].max_cqe = _i == 0 ? 32767 : 128;
    pair_open(&pair, &attr);
    struct player players[2] = {{pair.channels[0], true}, {pair.channels[1], false}};
    int64_t start = fair_now();
    require_ok(pthread_create(&thread, NULL, play, &players[1]));
    play(&players[0]);
    pthread_join(thread, NULL);
    require_within(start, SLUICE_S(15));
    require(fake_verbs_cq(0, &info) && info.events > 0, "no thread slept");
    pair_close(&pair);
}

int main(void)
{
    return run_verbs("verbs_queues", WIRE_SELF, 60);
}
