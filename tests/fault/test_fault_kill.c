/* SPDX-License-Identifier: MIT */
/*
 * Peers that are killed: exactly their requests fail, once each, soon and with
 * the right class, all others arrive, and a dead peer can be replaced.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../support/fault.h"

/* Ranks 0 and 1 live, each other one dies in a round of its own. */
#define SURVIVOR 0
#define BYSTANDER 1
#define FIRST_VICTIM 2

/* Requests of rank 0 in flight with the victim, which takes only the first sends. */
#define SENDS 8
#define TAKEN 3
#define OTHERS 4
#define POSTED (SENDS + 3 * OTHERS)
/* Sends and receives of rank 0 in flight with the bystander. */
#define PARKED (2 * OTHERS)
#define BIG ((size_t)1 << 18)

struct flight {
    struct mesh mesh;
    struct memory memory;
    struct sluice_remote_mr remotes[GROUP_MAX];
    struct sluice_sge sges[POSTED + PARKED];
    struct sluice_request requests[POSTED + PARKED];
    struct tally tally;
};

/* Makes the request number at, with its own part of the memory. */
static void ask(struct flight *flight, uint32_t at, uint32_t opcode, uint32_t peer)
{
    flight->sges[at] = memory_sge(&flight->memory, at * BIG, BIG);
    flight->requests[at] = request_of(opcode, peer, &flight->sges[at]);
    flight->requests[at].user_data = at;
    if (opcode == SLUICE_OP_READ || opcode == SLUICE_OP_WRITE) {
        require_ok(sluice_remote_mr_slice(&flight->remotes[peer], at * BIG, BIG,
                                          &flight->requests[at].remote));
    }
}

static void take_off(struct flight *flight, uint32_t victim)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < SENDS; i++) {
        ask(flight, at++, SLUICE_OP_SEND, victim);
    }
    for (uint32_t i = 0; i < OTHERS; i++) {
        ask(flight, at++, SLUICE_OP_RECEIVE, victim);
        ask(flight, at++, SLUICE_OP_WRITE, victim);
        ask(flight, at++, SLUICE_OP_READ, victim);
    }
    for (uint32_t i = 0; i < OTHERS; i++) {
        ask(flight, at++, SLUICE_OP_SEND, BYSTANDER);
        ask(flight, at++, SLUICE_OP_RECEIVE, BYSTANDER);
    }
    require_result(sluice_multichannel_post(flight->mesh.all, flight->requests, at, DEADLINE, NULL),
                   (int)at);
}

/*
 * All requests with the victim end by themselves, those with the bystander when it does its part.
 */
static void land(struct flight *flight, struct rank *rank, uint32_t victim)
{
    int64_t killed = fair_now();
    tally_multichannel(&flight->tally, flight->mesh.all, POSTED, DEADLINE);
    require(fair_now() - killed < NOTICE || !device_is_soft(), "noticed after %lld ms",
            (long long)(fair_now() - killed) / 1000000);
    check_lost(&flight->mesh, victim);
    /* None of its requests is in flight: bytes written to its buffers stay. */
    memset(flight->memory.bytes, 0x77, POSTED * BIG);
    rank_barrier(rank);
    tally_close_multichannel(&flight->tally, flight->mesh.all);
    mesh_pass(&flight->mesh, rank, SURVIVOR, BYSTANDER);
    value_check(flight->memory.bytes, POSTED * BIG, 0x77);
}

static void take_part(struct flight *flight, struct rank *rank)
{
    struct sluice_sge sge = memory_sge(&flight->memory, 0, BIG);
    rank_barrier(rank);
    for (uint32_t i = 0; i < OTHERS; i++) {
        require_ok(
            sluice_multichannel_receive(flight->mesh.all, SURVIVOR, &sge, 1, DEADLINE, NULL));
        require_ok(sluice_multichannel_send(flight->mesh.all, SURVIVOR, &sge, 1, DEADLINE));
    }
    mesh_pass(&flight->mesh, rank, SURVIVOR, BYSTANDER);
}

static void be_victim(struct flight *flight, struct rank *rank)
{
    struct sluice_sge sge = memory_sge(&flight->memory, 0, BIG);
    for (uint32_t i = 0; i < TAKEN; i++) {
        require_ok(
            sluice_multichannel_receive(flight->mesh.all, SURVIVOR, &sge, 1, DEADLINE, NULL));
    }
    rank_await_death(rank);
}

static void kill_in_flight(struct rank *rank, uint32_t victim)
{
    struct flight *flight = calloc(1, sizeof(*flight));
    require(flight, "%u", victim);
    mesh_open(&flight->mesh, rank, NULL);
    memory_open(&flight->memory, flight->mesh.pd, (POSTED + PARKED) * BIG);
    mesh_share(rank, &flight->memory, flight->remotes);
    tally_open(&flight->tally, 0, POSTED + PARKED);
    if (rank->index == SURVIVOR) {
        take_off(flight, victim);
        tally_multichannel(&flight->tally, flight->mesh.all, 1, DEADLINE);
        rank_kill(rank, victim);
        land(flight, rank, victim);
    } else if (rank->index == BYSTANDER) {
        take_part(flight, rank);
    } else if (rank->index == victim) {
        be_victim(flight, rank);
    } else {
        rank_barrier(rank);
    }
    rank_barrier(rank);
    memory_close(&flight->memory);
    mesh_close(&flight->mesh);
    free(flight);
}

/*
 * No rank has a request in flight with the victim; a request after its death still ends, and once.
 */
static void kill_idle(struct rank *rank, uint32_t victim)
{
    struct mesh mesh;
    struct tally tally;
    mesh_open(&mesh, rank, NULL);
    if (rank->index == victim) {
        rank_await_death(rank);
    }
    if (rank->index == SURVIVOR) {
        struct sluice_request send = request_of(SLUICE_OP_SEND, victim, NULL);
        tally_open(&tally, send.user_data, 1);
        rank_kill(rank, victim);
        mesh_pass(&mesh, rank, SURVIVOR, BYSTANDER);
        /* Its loss may be known: then the send is refused; otherwise it is accepted and ends. */
        int posted = sluice_multichannel_post(mesh.all, &send, 1, DEADLINE, NULL);
        require(posted == 1 || posted == -ENOTCONN, "%d: %s", posted, sluice_last_error());
        if (posted == 1) {
            tally_close_multichannel(&tally, mesh.all);
        }
        check_lost(&mesh, victim);
        require_result(sluice_multichannel_send(mesh.all, victim, NULL, 0, DEADLINE), -ENOTCONN);
    } else if (rank->index == BYSTANDER) {
        mesh_pass(&mesh, rank, SURVIVOR, BYSTANDER);
    }
    rank_barrier(rank);
    if (rank->index <= BYSTANDER) {
        mesh_pass(&mesh, rank, BYSTANDER, SURVIVOR);
    }
    rank_barrier(rank);
    mesh_close(&mesh);
}

/*
 * Kills one victim after the other; survivors have no more resources after the last than after the
 * first.
 */
static void lose_one_by_one(struct rank *rank, void (*round)(struct rank *rank, uint32_t victim))
{
    struct census census = {0};
    for (uint32_t victim = FIRST_VICTIM; victim < rank->size; victim++) {
        round(rank, victim);
        if (victim == FIRST_VICTIM) {
            census = census_take();
        } else {
            census_check(&census);
        }
    }
}

static void lose_in_flight(struct rank *rank)
{
    lose_one_by_one(rank, kill_in_flight);
}

static void lose_idle(struct rank *rank)
{
    lose_one_by_one(rank, kill_idle);
}

/* One rank for each victim, and the two that stay. */
static uint32_t ranks(void)
{
    return FIRST_VICTIM + (short_run() ? 2 : 3);
}

TEST(peers_killed_with_work_in_flight, .group = "victims")
{
    group_run(ranks(), lose_in_flight, NULL, 50);
}

TEST(peers_killed_while_idle, .group = "victims")
{
    group_run(ranks(), lose_idle, NULL, 50);
}

/* Sizes of a scatter: blocks for each rank. */
#define BLOCK ((size_t)1 << 18)
#define BLOCKS 3

/* Makes the sends of rank 0 to ranks 1, 2 and 3, for this many rounds. */
static void make_sends(struct memory *memory, struct sluice_sge *sges,
                       struct sluice_request *requests)
{
    for (uint32_t i = 0; i < 3 * BLOCKS; i++) {
        sges[i] = memory_sge(memory, 0, BLOCK);
        requests[i] = request_of(SLUICE_OP_SEND, 1 + i % 3, &sges[i]);
        requests[i].user_data = i;
    }
}

/* Takes count messages from rank 0. */
static void take(struct mesh *mesh, struct memory *memory, int count)
{
    struct sluice_sge sge = memory_sge(memory, 0, BLOCK);
    for (int i = 0; i < count; i++) {
        memset(memory->bytes, 0, BLOCK);
        require_ok(sluice_multichannel_receive(mesh->all, 0, &sge, 1, DEADLINE, NULL));
        pattern_check(memory->bytes, BLOCK, 11);
    }
}

/* Requires the results of the scatter: those of peer 2 are from after its death. */
static void check_scatter(const struct mesh *mesh, const struct sluice_completion *completions,
                          uint32_t arrived)
{
    uint32_t of_victim = 0;
    for (uint32_t i = 0; i < 3 * BLOCKS; i++) {
        const struct sluice_completion *completion = &completions[i];
        require(completion->user_data == i && completion->peer == 1 + i % 3, "%u", i);
        if (completion->peer != 2 || of_victim++ < arrived) {
            require_class(completion, SLUICE_CLASS_NONE);
        } else if (of_victim == arrived + 1) {
            require_death(completion);
        } else {
            require_class(completion, SLUICE_CLASS_CANCELLED);
            require(completion->cause == peer_error(mesh->all, 2).status, "cause %u",
                    completion->cause);
        }
    }
    check_lost(mesh, 2);
}

static void die_in_posted_scatter(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    signal(SIGPIPE, SIG_DFL);
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, BLOCK);
    if (rank->index == 0) {
        struct sluice_sge sges[3 * BLOCKS];
        struct sluice_request requests[3 * BLOCKS];
        struct sluice_handle handles[3 * BLOCKS];
        struct sluice_completion completions[3 * BLOCKS];
        pattern_fill(memory.bytes, BLOCK, 11);
        make_sends(&memory, sges, requests);
        require_result(
            sluice_multichannel_post(mesh.all, requests, COUNT(requests), DEADLINE, handles),
            COUNT(requests));
        require_ok(sluice_multichannel_wait(mesh.all, &handles[1], DEADLINE, &completions[1]));
        rank_kill(rank, 2);
        int64_t killed = fair_now();
        for (uint32_t i = 1; i < COUNT(requests); i += 3) {
            require_ok(sluice_multichannel_wait(mesh.all, &handles[i], DEADLINE, &completions[i]));
        }
        int64_t took = fair_now() - killed;
        require(took < NOTICE || !device_is_soft(), "noticed after %lld ms",
                (long long)took / 1000000);
        for (uint32_t i = 0; i < COUNT(requests); i++) {
            require_ok(sluice_multichannel_wait(mesh.all, &handles[i], DEADLINE, &completions[i]));
        }
        check_scatter(&mesh, completions, 1);
    } else if (rank->index == 2) {
        take(&mesh, &memory, 1);
        rank_await_death(rank);
    } else {
        take(&mesh, &memory, BLOCKS);
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(peer_dies_in_an_posted_scatter, .group = "processes")
{
    group_run(4, die_in_posted_scatter, NULL, 25);
}

/* Rank 0 is blocked meanwhile; rank 1 kills. */
static void die_in_blocking_scatter(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, BLOCK);
    if (rank->index == 0) {
        struct sluice_sge sges[3 * BLOCKS];
        struct sluice_request requests[3 * BLOCKS];
        struct sluice_completion completions[3 * BLOCKS];
        pattern_fill(memory.bytes, BLOCK, 11);
        make_sends(&memory, sges, requests);
        int64_t start = fair_now();
        require_result(sluice_multichannel_scatter_send(mesh.all, requests, COUNT(requests),
                                                        DEADLINE, completions),
                       -ECONNRESET);
        require(fair_now() - start < DEADLINE / 2, "%lld ns", (long long)(fair_now() - start));
        check_scatter(&mesh, completions, 0);
    } else if (rank->index == 1) {
        take(&mesh, &memory, 1);
        rank_kill(rank, 2);
        take(&mesh, &memory, BLOCKS - 1);
    } else if (rank->index == 2) {
        rank_await_death(rank);
    } else {
        take(&mesh, &memory, BLOCKS);
    }
    rank_barrier(rank);
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(peer_dies_in_a_blocking_scatter, .group = "processes")
{
    group_run(4, die_in_blocking_scatter, NULL, 25);
}

/* Reads from a dead peer, and writes to it, after its death was or was not noticed. */
static void use_dead_memory(struct rank *rank)
{
    struct mesh mesh;
    struct memory memory;
    struct sluice_remote_mr remotes[GROUP_MAX];
    mesh_open(&mesh, rank, NULL);
    memory_open(&memory, mesh.pd, BLOCK);
    mesh_share(rank, &memory, remotes);
    if (rank->index != 0) {
        rank_await_death(rank);
    }
    struct sluice_sge sge = memory_sge(&memory, 0, BLOCK);
    struct sluice_request requests[3];
    struct sluice_completion completions[3];
    for (uint32_t i = 0; i < 3; i++) {
        requests[i] = request_of(SLUICE_OP_READ, i, &sge);
        requests[i].remote = remotes[i];
    }
    struct sluice_sge own = memory_sge(&memory, 0, 0);
    requests[0].sges = &own;
    rank_kill(rank, 1);
    rank_kill(rank, 2);
    int64_t start = fair_now();
    int result = sluice_multichannel_gather_read(mesh.all, requests, 3, DEADLINE, completions);
    require(result == completions[1].error || result == completions[2].error, "%d", result);
    require(fair_now() - start < NOTICE || !device_is_soft(), "%lld ms",
            (long long)(fair_now() - start) / 1000000);
    require_class(&completions[0], SLUICE_CLASS_NONE);
    for (uint32_t i = 1; i < 3; i++) {
        if (completions[i].error != -ENOTCONN) {
            require_death(&completions[i]);
        }
        check_lost(&mesh, i);
        require_result(sluice_multichannel_write(mesh.all, i, &sge, 1, &remotes[i], DEADLINE),
                       -ENOTCONN);
    }
    memory_close(&memory);
    mesh_close(&mesh);
}

TEST(reads_from_dead_peers_end, .group = "processes")
{
    group_run(3, use_dead_memory, NULL, 25);
}

/* A parked receive ends when its peer dies, and no other one does. */
static void park_receive(struct rank *rank)
{
    struct mesh mesh;
    struct sluice_completion completion;
    struct sluice_handle handles[3];
    mesh_open(&mesh, rank, NULL);
    if (rank->index != 0) {
        rank_barrier(rank);
        if (rank->index == 2) {
            require_ok(sluice_multichannel_send(mesh.all, 0, NULL, 0, DEADLINE));
        }
    } else {
        for (uint32_t i = 1; i < 3; i++) {
            struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, i, NULL);
            require_result(
                sluice_multichannel_post(mesh.all, &receive, 1, SLUICE_FOREVER, &handles[i]), 1);
        }
        rank_kill(rank, 1);
        int64_t killed = fair_now();
        require_ok(sluice_multichannel_wait(mesh.all, &handles[1], DEADLINE, &completion));
        require(fair_now() - killed < NOTICE, "noticed after %lld ms",
                (long long)(fair_now() - killed) / 1000000);
        require_class(&completion, SLUICE_CLASS_PEER_LOST);
        check_lost(&mesh, 1);
        require_result(sluice_multichannel_wait(mesh.all, &handles[2], 0, &completion), -ETIMEDOUT);
        rank_barrier(rank);
        require_ok(sluice_multichannel_wait(mesh.all, &handles[2], DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(parked_receive_of_a_dead_peer_ends, .group = "processes")
{
    if (device_is_soft()) { /* a device does not notify an idle survivor */
        group_run(3, park_receive, NULL, 25);
    }
}

/* With no request in flight, the state of the peer shows the loss. */
static void watch_state(struct rank *rank)
{
    struct mesh mesh;
    mesh_open(&mesh, rank, NULL);
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    struct sluice_completion completion;
    require_result(sluice_multichannel_poll(mesh.all, &completion, 1), 0);
    require_result(sluice_multichannel_peer_state(mesh.all, 1), SLUICE_STATE_READY);
    rank_kill(rank, 1);
    int64_t killed = fair_now();
    while (sluice_multichannel_peer_state(mesh.all, 1) == SLUICE_STATE_READY) {
        require(fair_now() - killed < NOTICE, "not noticed after %lld ms",
                (long long)NOTICE / 1000000);
        let_pass(SLUICE_MS(2));
        require_result(sluice_multichannel_poll(mesh.all, &completion, 1), 0);
    }
    check_lost(&mesh, 1);
    require_result(sluice_multichannel_send(mesh.all, 1, NULL, 0, DEADLINE), -ENOTCONN);
    mesh_close(&mesh);
}

TEST(idle_death_shows_in_the_state, .group = "processes")
{
    if (device_is_soft()) {
        group_run(2, watch_state, NULL, 25);
    }
}

/* A channel of a live process takes the place of a dead peer. */
static void replace_dead_peer(struct rank *rank)
{
    struct mesh mesh;
    struct sluice_endpoint ours[GROUP_MAX] = {{{0}}};
    struct sluice_endpoint theirs[GROUP_MAX];
    struct sluice_prepared_channel *prepared = NULL;
    mesh_open(&mesh, rank, NULL);
    if (rank->index == 1) {
        rank_await_death(rank);
    }
    int fds = 0;
    for (int cycle = 0; cycle < 6; cycle++) {
        if (rank->index == 0) {
            if (cycle == 0) {
                rank_kill(rank, 1);
                require_result(sluice_multichannel_send(mesh.all, 1, NULL, 0, DEADLINE),
                               -ECONNRESET);
            }
            require_ok(sluice_multichannel_peer_reset(mesh.all, 1, &ours[2]));
        } else {
            prepared = prepare_channel(mesh.pd, NULL, &ours[0]);
        }
        rank_exchange(rank, ours, theirs, sizeof(ours[0]));
        if (rank->index == 0) {
            require_ok(sluice_multichannel_peer_handshake(mesh.all, 1, &theirs[2]));
            rank_barrier(rank);
            require_ok(sluice_multichannel_send(mesh.all, 1, NULL, 0, DEADLINE));
        } else {
            struct sluice_channel *channel =
                made(sluice_prepared_channel_handshake(prepared, &theirs[0]));
            rank_barrier(rank);
            require_ok(sluice_channel_receive(channel, NULL, 0, DEADLINE, NULL));
            /*
             * rxe completes a receive before it acknowledges it: if closed now, it might never do
             * so.
             */
            rank_barrier(rank);
            sluice_channel_close(channel);
        }
        if (rank->index == 0) {
            rank_barrier(rank);
        }
        if (cycle == 0) {
            let_pass(SLUICE_MS(100));
            fds = count_fds();
        }
    }
    require(settle_fds(fds) <= fds, "%d fds, were %d", count_fds(), fds);
    struct sluice_sge none = {0};
    if (rank->index == 0) {
        require_ok(sluice_multichannel_send(mesh.all, 2, &none, 0, DEADLINE));
    } else {
        require_ok(sluice_multichannel_receive(mesh.all, 0, NULL, 0, DEADLINE, NULL));
    }
    rank_barrier(rank);
    mesh_close(&mesh);
}

TEST(dead_peer_is_replaced, .group = "processes")
{
    group_run(3, replace_dead_peer, NULL, 25);
}

int main(void)
{
    /* A group of its own, as a device takes long to give up this many peers. */
    return RUN_GROUPS("fault_kill", {"victims", WIRE_SHM, 60}, {"processes", WIRE_SHM, 60});
}
