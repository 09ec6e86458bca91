/* SPDX-License-Identifier: MIT */
/*
 * Keep-alive: a dead or stopped peer is noticed though nothing is sent to it; a busy or late peer
 * is not taken for lost.
 */
#include <signal.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/hostile.h"
#include "../support/pair.h"
#include "../support/process.h"

/* Frequent probes do no harm, with requests in flight or not, and wherever the program is. */
TEST(keepalive_of_peers_that_are_there)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .keepalive = SLUICE_MS(100)};
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_completion completion;
    struct pair pair;
    pair_open(&pair, &attr);
    struct sluice_handle handle = post(pair.channels[0], &receive);
    require_result(sluice_channel_wait(pair.channels[0], &handle, SLUICE_MS(450), &completion),
                   -ETIMEDOUT);
    let_pass(SLUICE_MS(350));
    require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
    await(pair.channels[0], handle, SLUICE_CLASS_NONE);
    for (int64_t start = clock_now(); clock_now() - start < SLUICE_MS(400);) {
        pair_works(&pair);
    }
    for (int i = 0; i < 2; i++) {
        require_result(sluice_channel_state(pair.channels[i]), SLUICE_STATE_READY);
    }
    pair_close(&pair);
}

/* A peer that has never been heard is late, not lost. */
TEST(keepalive_of_a_late_peer)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .keepalive = SLUICE_MS(300)};
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_completion completion;
    struct sluice_endpoint endpoints[2];
    struct pair pair;
    sides_open(&pair.sides);
    struct sluice_prepared_channel *first =
        prepare_channel(pair.sides.pds[0], &attr, &endpoints[0]);
    struct sluice_prepared_channel *late = prepare_channel(pair.sides.pds[1], &attr, &endpoints[1]);
    pair.channels[0] = made(sluice_prepared_channel_handshake(first, &endpoints[1]));
    struct sluice_handle handle = post(pair.channels[0], &receive);
    require_result(sluice_channel_wait(pair.channels[0], &handle, SLUICE_MS(1500), &completion),
                   -ETIMEDOUT);
    require_result(sluice_channel_state(pair.channels[0]), SLUICE_STATE_READY);
    pair.channels[1] = made(sluice_prepared_channel_handshake(late, &endpoints[0]));
    require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
    require_ok(sluice_channel_send(pair.channels[1], NULL, 0, DEADLINE));
    await(pair.channels[0], handle, SLUICE_CLASS_NONE);
    pair_close(&pair);
}

#define KEEPALIVE SLUICE_MS(600)
/* Twice that time, and the delays of processes that share two processors. */
#define NOTICED (2 * KEEPALIVE + SLUICE_MS(700))

static const struct sluice_channel_attr watchful = {.size = sizeof(watchful),
                                                    .keepalive = KEEPALIVE};

/* Processes of all ranks. */
static void learn_pids(struct rank *rank, pid_t pids[GROUP_MAX])
{
    pid_t own[GROUP_MAX];
    for (uint32_t i = 0; i < rank->size; i++) {
        own[i] = getpid();
    }
    rank_exchange(rank, own, pids, sizeof(own[0]));
}

/* Waits for a message that does not come. Returns the result of the wait, and its time. */
static int watch(struct mesh *mesh, uint32_t peer, int64_t timeout, int64_t *took)
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, peer, NULL);
    struct sluice_completion completion = {0};
    struct sluice_handle handle;
    require_result(sluice_multichannel_post(mesh->all, &receive, 1, SLUICE_FOREVER, &handle), 1);
    int64_t start = fair_now();
    int result = sluice_multichannel_wait(mesh->all, &handle, timeout, &completion);
    *took = fair_now() - start;
    return result < 0 ? result : completion.error;
}

/* Requires that this peer is lost, and no other. */
static void check_lost(const struct rank *rank, struct mesh *mesh, uint32_t peer)
{
    struct sluice_error error = peer_error(mesh->all, peer);
    require(error.error_class == SLUICE_CLASS_PEER_LOST && error.error == -ECONNRESET,
            "class %u: %s", error.error_class, error.text);
    for (uint32_t i = 0; i < rank->size; i++) {
        require_result(sluice_multichannel_peer_state(mesh->all, i),
                       i == peer ? SLUICE_STATE_FAILED : SLUICE_STATE_READY);
    }
}

/* Rank 2, a bystander, and rank 0 pass a message. */
static void bystanders_work(const struct rank *rank, struct mesh *mesh)
{
    uint32_t other = 2 - rank->index;
    struct sluice_request requests[2] = {request_of(SLUICE_OP_SEND, other, NULL),
                                         request_of(SLUICE_OP_RECEIVE, other, NULL)};
    for (int i = 0; i < 100; i++) {
        require_ok(sluice_multichannel_submit(mesh->all, requests, 2, DEADLINE, NULL));
    }
}

/* Rank 1 is stopped, so that its host answers and its process does not; rank 0 notices that. */
static void stop_one(struct rank *rank)
{
    bool with_send = *(const bool *)rank->argument;
    struct mesh mesh;
    pid_t pids[GROUP_MAX];
    int64_t took;
    learn_pids(rank, pids);
    mesh_open(&mesh, rank, rank->index == 1 ? NULL : &watchful);
    require_ok(sluice_multichannel_wait_connected(mesh.all, DEADLINE));
    rank_barrier(rank);
    if (rank->index == 0) {
        struct sluice_request send = request_of(SLUICE_OP_SEND, 1, NULL);
        require(kill(pids[1], SIGSTOP) == 0, "%s", strerror(errno));
        /* The send finds no receive, so it stays in flight. */
        if (with_send) {
            require_result(sluice_multichannel_post(mesh.all, &send, 1, DEADLINE, NULL), 1);
        }
        require_result(watch(&mesh, 1, DEADLINE, &took), with_send ? -ECANCELED : -ECONNRESET);
        require(took <= NOTICED, "it took %lld ms", (long long)took / 1000000);
        check_lost(rank, &mesh, 1);
        require(strstr(peer_error(mesh.all, 1).text, "600 ms"), "%s", peer_error(mesh.all, 1).text);
        kill(pids[1], SIGCONT);
    }
    if (rank->index != 1) {
        bystanders_work(rank, &mesh);
    }
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(stopped_peer_is_lost, .times = 2, .group = "processes")
{
    static const bool with_send[] = {false, true};
    if (device_is_soft()) { /* a device answers for a process that is stopped */
        group_run(3, stop_one, &with_send[_i], 40);
    }
}

/*
 * Rank 1 is stopped for less time than a loss takes; then rank 0, which sends probes, for longer.
 */
static void stop_for_a_while(struct rank *rank)
{
    struct mesh mesh;
    pid_t pids[GROUP_MAX];
    int64_t took;
    learn_pids(rank, pids);
    mesh_open(&mesh, rank, rank->index == 1 ? NULL : &watchful);
    rank_barrier(rank);
    for (int i = 0; rank->index == 0 && i < 4; i++) {
        require(kill(pids[1], SIGSTOP) == 0, "%s", strerror(errno));
        require_result(watch(&mesh, 1, KEEPALIVE / 2, &took), -ETIMEDOUT);
        kill(pids[1], SIGCONT);
        require_result(watch(&mesh, 1, KEEPALIVE / 3, &took), -ETIMEDOUT);
    }
    rank_barrier(rank);
    if (rank->index == 0) {
        require_result(watch(&mesh, 1, 8 * KEEPALIVE, &took), -ETIMEDOUT);
    } else if (rank->index == 1) {
        for (int i = 0; i < 3; i++) {
            let_pass(KEEPALIVE / 3);
            require(kill(pids[0], SIGSTOP) == 0, "%s", strerror(errno));
            let_pass(2 * KEEPALIVE);
            kill(pids[0], SIGCONT);
        }
    }
    rank_barrier(rank);
    require_result(sluice_multichannel_peer_state(mesh.all, !rank->index), SLUICE_STATE_READY);
    if (rank->index != 1) {
        bystanders_work(rank, &mesh);
    }
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(stop_is_survived, .group = "processes")
{
    group_run(3, stop_for_a_while, NULL, 60);
}

/* Rank 1 is busy elsewhere for long, and is not lost. */
static void work_elsewhere(struct rank *rank)
{
    struct mesh mesh;
    int64_t took;
    mesh_open(&mesh, rank, &watchful);
    rank_barrier(rank);
    if (rank->index == 0) {
        require_result(watch(&mesh, 1, 8 * KEEPALIVE, &took), -ETIMEDOUT);
    } else {
        let_pass(8 * KEEPALIVE);
    }
    rank_barrier(rank);
    require_result(sluice_multichannel_peer_state(mesh.all, !rank->index), SLUICE_STATE_READY);
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(absence_of_this_side_is_no_loss, .group = "processes")
{
    group_run(2, work_elsewhere, NULL, 40);
}

/* Rank 1 dies without a goodbye while nothing is sent to it. */
static void kill_one(struct rank *rank)
{
    struct mesh mesh;
    int64_t took;
    mesh_open(&mesh, rank, &watchful);
    require_ok(sluice_multichannel_wait_connected(mesh.all, DEADLINE));
    rank_barrier(rank);
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    if (rank->index == 0) {
        rank_kill(rank, 1);
        require_result(watch(&mesh, 1, DEADLINE, &took), -ECONNRESET);
        require(took <= NOTICED, "it took %lld ms", (long long)took / 1000000);
        check_lost(rank, &mesh, 1);
    }
    bystanders_work(rank, &mesh);
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(killed_peer_is_lost, .group = "processes")
{
    group_run(3, kill_one, NULL, 40);
}

/* On a device, a peer that is only late has more time, with retries. */
#define NOTICED_UNHEARD (NOTICED + (device_is_soft() ? 0 : SLUICE_S(16)))

/* Rank 1 dies before it was ever heard, while rank 0 only waits for it. */
static void kill_unheard(struct rank *rank)
{
    struct sluice_channel_attr attr = watchful;
    struct mesh mesh;
    int64_t took;
    attr.ack_timeout = 14; /* 67 ms */
    mesh_open(&mesh, rank, &attr);
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    if (rank->index == 0) {
        rank_kill(rank, 1);
        require_result(watch(&mesh, 1, SLUICE_S(30), &took), -ECONNRESET);
        require(took <= NOTICED_UNHEARD, "it took %lld ms", (long long)took / 1000000);
        check_lost(rank, &mesh, 1);
    }
    rank_barrier(rank);
    bystanders_work(rank, &mesh);
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(killed_peer_is_lost_before_it_was_heard, .group = "processes")
{
    group_run(3, kill_unheard, NULL, 60);
}

/*
 * A peer that sends very slowly has no time to answer, but is alive; when it falls silent halfway,
 * it is lost.
 */
TEST(slow_peer_is_not_lost, .group = "processes")
{
    struct victim victim;
    uint8_t bytes[40];
    struct sluice_completion completion;
    if (!device_is_soft()) {
        return; /* the hostile peer speaks the protocol of the soft transport */
    }
    victim_open_with(&victim, 0xff, &watchful);
    connect_hostile(&victim, NOTHING);
    struct sluice_multichannel *hub = victim.star.hub;
    struct sluice_handle *receive = &victim.handles[0];
    require_result(sluice_multichannel_wait(hub, receive, SLUICE_MS(10), &completion), -ETIMEDOUT);
    do {
        require(hear(victim.fd, bytes, sizeof(bytes)), "no probe: %s", strerror(errno));
    } while (bytes[0] != PROBE);
    struct frame echo = {.type = ECHO, .seq = bytes[11]};
    struct frame message = {.type = SEND, .length = LANDING};
    say_frame(victim.fd, &echo, 0);
    encode_frame(&message, bytes);
    say(victim.fd, bytes, sizeof(bytes));
    for (int64_t start = clock_now(); clock_now() - start < 6 * KEEPALIVE;) {
        static int said;
        if (said++ < LANDING - 1) {
            say(victim.fd, "x", 1);
        }
        require_result(sluice_multichannel_wait(hub, receive, KEEPALIVE / 10, &completion),
                       -ETIMEDOUT);
    }
    struct span start = span_begin();
    require_ok(sluice_multichannel_wait(hub, receive, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_PEER_LOST);
    require_took(span_since(start), KEEPALIVE / 2, NOTICED + KEEPALIVE);
    require_result(sluice_multichannel_peer_state(hub, 1), SLUICE_STATE_READY);
    star_works(&victim.star, 1);
    close(victim.fd);
    victim_close(&victim);
}

int main(void)
{
    return RUN_GROUPS("keepalive", {"self", WIRE_SELF, 60}, {"tcp", WIRE_TCP, 60},
                      {"processes", WIRE_SHM, 90});
}
